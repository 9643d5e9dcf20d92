//! Connections to the other nodes of this host: over them rings are handed out and got.
//!
//! One connection for a pair of nodes and direction, however many topics they share. It lives as long as
//! both processes do: its end is how each side learns, at once, that the other has died.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, OnceLock};

use noctule_discovery::{EndpointId, NodeId};
use noctule_shm_ring::StartAt;
use noctule_sys::local_socket::{LocalListener, LocalSocket, own_user};
use noctule_sys::random;
use noctule_timebase::{Instant, Span};
use rustix::event::epoll;
use rustix::fd::OwnedFd;

use super::Shared;
use super::death_detection::DeathDetection;
use super::guid::Guid;
use super::own_readers::OwnReaders;
use super::ring_handshake::{self, PACKET_BYTES_MAX, Packet, proven, socket_name};
use crate::clock::{self, Raw};
use crate::notice::Notice;
use crate::sample::Route;
use crate::shared_topic::{Change, RingError, Source, is_out_of_descriptors, map_granted, open_ring};

mod admitted;
mod arrival;
mod held_up;
mod question;

use admitted::Admitted;
use arrival::{Arrival, take};
use question::{Described, Question};

/// Other nodes of this host that may be connected at once.
const CONNECTIONS_LIMIT: usize = 1024;
/// Questions that may be unanswered at once: few enough for the socket to hold them and the answers.
const QUESTIONS_MAX: usize = 16;
/// A node whose backlog is full is tried again after this, doubled each time,
/// [`CONNECT_TRIES`] times.
const CONNECT_AGAIN: Span = Span::from_ms(10);
/// Attempts to connect to a node whose backlog is full: 2.5 s in all.
const CONNECT_TRIES: u32 = 8;
/// The first token of a connection; those below belong to the node's own descriptors.
pub(super) const FIRST_TOKEN: u64 = 16;

/// All connections of a node; belongs to its thread.
#[derive(Debug)]
pub(super) struct Connections {
    listener: LocalListener,
    next_token: u64,
    /// From nodes that read our writers.
    incoming: BTreeMap<u64, Incoming>,
    /// To nodes whose writers we read.
    outgoing: BTreeMap<u64, Outgoing>,
    /// Nodes that cannot be connected to at the moment: one attempt for all that is wanted of a node.
    attempts: BTreeMap<NodeId, Attempt>,
    death_detection: DeathDetection,
    /// Of this node's own writers, for which nothing is connected.
    own: OwnReaders,
    /// Given up for a moment when this process has no descriptor left, to turn away a process that waits.
    spare: Option<File>,
}

/// Pending requests to a node that cannot be connected to yet.
#[derive(Debug)]
struct Attempt {
    at: Instant<Raw>,
    tries: u32,
    wanted: Vec<(Described, EndpointId)>,
}

/// Wildcard for all writers of a node in a refusal, and in a release.
const ALL: Guid = (NodeId([0; 16]), EndpointId(0));

#[derive(Debug)]
struct Incoming {
    socket: LocalSocket,
    /// Known from its first question on.
    node: Option<NodeId>,
    admitted: Admitted,
}

#[derive(Debug)]
struct Outgoing {
    node: NodeId,
    socket: LocalSocket,
    /// Has the socket when this is gone, and is held by what was mapped: a connection that ends gives back all that is borrowed.
    kept: Arc<OnceLock<LocalSocket>>,
    /// Requests sent, in the order in which the answers come.
    asked: VecDeque<Question>,
    /// Requests to be sent.
    to_ask: VecDeque<Question>,
    /// The other side refuses all requests.
    is_refused: bool,
}

impl Connections {
    /// Listens for the other nodes.
    pub(super) fn open(me: NodeId) -> io::Result<Connections> {
        let listener = LocalListener::bind(socket_name(me).as_bytes())?;
        Ok(Connections {
            listener,
            next_token: FIRST_TOKEN,
            incoming: BTreeMap::new(),
            outgoing: BTreeMap::new(),
            attempts: BTreeMap::new(),
            death_detection: DeathDetection::default(),
            own: OwnReaders::default(),
            spare: File::open("/dev/null").ok(),
        })
    }

    pub(super) fn listener(&self) -> &LocalListener {
        &self.listener
    }

    /// Accepts connections.
    pub(super) fn accept(&mut self, shared: &Shared, epoll: &OwnedFd) {
        while let Some(socket) = self.next_connection(shared.id) {
            let allowed = is_trusted(&socket, shared);
            if !allowed || self.incoming.len() >= CONNECTIONS_LIMIT {
                let why = if allowed {
                    "it is connected to as many nodes of this host as it can be"
                } else {
                    "it runs as another user; name a group that may read, or run both as one user"
                };
                turn_away(&socket, why, shared.id);
                continue;
            }
            if let Ok(token) = self.watch(&socket, epoll) {
                self.incoming.insert(token, Incoming { socket, node: None, admitted: Admitted::default() });
            }
        }
    }

    /// Something came on a connection, or it ended.
    pub(super) fn handle(&mut self, token: u64, shared: &Shared) {
        let mut buffer = [0; PACKET_BYTES_MAX + 1];
        if let Some(incoming) = self.incoming.get_mut(&token) {
            if !incoming.receive(&mut buffer, shared) {
                self.drop_incoming(token, shared);
            }
        } else if let Some(outgoing) = self.outgoing.get_mut(&token)
            && !outgoing.receive(&mut buffer, shared)
        {
            self.drop_outgoing(token, shared);
        }
    }

    /// The next that has connected. Where this process can have no more descriptors it is turned away: left waiting, it would keep
    /// the thread awake.
    fn next_connection(&mut self, me: NodeId) -> Option<LocalSocket> {
        loop {
            match self.listener.accept() {
                Ok(socket) => return socket,
                Err(error) if is_out_of_descriptors(&error) => {
                    // The kernel reports it even if no process waits any more.
                    self.spare.take()?;
                    let turned_away = self.listener.accept();
                    if let Ok(Some(socket)) = &turned_away {
                        let why = "its process has no file descriptor left; raise `ulimit -n` there";
                        turn_away(socket, why, me);
                    }
                    let is_last = !matches!(turned_away, Ok(Some(_)));
                    drop(turned_away);
                    self.spare = File::open("/dev/null").ok();
                    if is_last {
                        return None;
                    }
                }
                Err(_) => return None,
            }
        }
    }

    /// Requests the ring of a writer from a node.
    pub(super) fn attach(
        &mut self,
        (via, writer, reader): (NodeId, Described, EndpointId),
        shared: &Shared,
        epoll: &OwnedFd,
    ) {
        if via == shared.id {
            return self.own.attach((&writer.1, reader), shared);
        }
        if !shared.lock().discovery.is_here(via) {
            // It has gone meanwhile, and any process can have its name now.
            return;
        }
        if let Some(attempt) = self.attempts.get_mut(&via) {
            return attempt.wanted.push((writer, reader));
        }
        match self.connection(via, shared, epoll) {
            Ok(outgoing) => outgoing.want((writer, reader), shared),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let at = clock::now() + CONNECT_AGAIN;
                self.attempts.insert(via, Attempt { at, tries: 1, wanted: vec![(writer, reader)] });
            }
            Err(error) => unreachable_node(shared, (via, writer, reader), &error),
        }
    }

    /// Time has passed: tries again to connect, and looks again whether a node that closed its connection is alive.
    pub(super) fn handle_timeout(&mut self, shared: &Shared, epoll: &OwnedFd) {
        let now = clock::now();
        while let Some(node) = self.death_detection.poll(now, is_listening) {
            shared.lock().handle_death(node, now);
        }
        let due: Vec<NodeId> =
            self.attempts.iter().filter(|(_, attempt)| attempt.at <= now).map(|(node, _)| *node).collect();
        for via in due {
            let Some(Attempt { tries, wanted, .. }) = self.attempts.remove(&via) else { continue };
            match self.connection(via, shared, epoll) {
                Ok(outgoing) => wanted.into_iter().for_each(|wanted| outgoing.want(wanted, shared)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && tries < CONNECT_TRIES => {
                    let at = now + CONNECT_AGAIN * (1 << tries);
                    self.attempts.insert(via, Attempt { at, tries: tries + 1, wanted });
                }
                Err(error) => {
                    for (writer, reader) in wanted {
                        unreachable_node(shared, (via, writer, reader), &error);
                    }
                }
            }
        }
    }

    /// When [`handle_timeout`](Connections::handle_timeout) has something to do.
    pub(super) fn poll_timeout(&self) -> Option<Instant<Raw>> {
        let attempts = self.attempts.values().map(|attempt| attempt.at);
        attempts.chain(self.death_detection.poll_timeout()).min()
    }

    /// Notifies a node that one of our readers is done with a writer.
    pub(super) fn release(&mut self, (via, writer, reader): (NodeId, Guid, EndpointId), shared: &Shared) {
        if via == shared.id {
            return self.own.release(writer.1, reader, shared);
        }
        if let Some(attempt) = self.attempts.get_mut(&via) {
            let is_about = |(its, its_reader): &(Described, EndpointId)| {
                (its.0, its.1.id) == writer && *its_reader == reader
            };
            attempt.wanted.retain(|wanted| !is_about(wanted));
        }
        if let Some(outgoing) = self.outgoing.values_mut().find(|outgoing| outgoing.node == via) {
            outgoing.to_ask.retain(|question| !question.is_about(writer, reader));
            for question in &mut outgoing.asked {
                question.is_wanted &= !question.is_about(writer, reader);
            }
            // If that cannot be sent, the other side is gone and has nothing to release.
            let _ = outgoing.socket.send(&Packet::Release { writer, reader }.encode(shared.id), &[]);
        }
    }

    /// This node receives a writer of another host no more: readers that read it through this node look elsewhere.
    pub(super) fn end(&mut self, writer: Guid, shared: &Shared) {
        for incoming in self.incoming.values_mut() {
            for reader in incoming.admitted.end(writer, shared) {
                // If that cannot be sent, its connection is at its end.
                let _ = incoming.socket.send(&Packet::End { writer, reader }.encode(shared.id), &[]);
            }
        }
    }

    /// A node is gone.
    pub(super) fn forget(&mut self, node: NodeId, shared: &Shared, epoll: &OwnedFd) {
        let token = self.outgoing.iter().find(|(_, outgoing)| outgoing.node == node).map(|(token, _)| *token);
        if let Some(outgoing) = token.and_then(|token| self.outgoing.remove(&token)) {
            let _ = epoll::delete(epoll, outgoing.socket.as_fd());
            outgoing.part(shared.id);
        }
        self.attempts.remove(&node);
        shared.sources_went(node);
    }

    /// This node ends.
    pub(super) fn close(self, me: NodeId) {
        self.outgoing.into_values().for_each(|outgoing| outgoing.part(me));
    }

    fn connection(&mut self, node: NodeId, shared: &Shared, epoll: &OwnedFd) -> io::Result<&mut Outgoing> {
        let known = self.outgoing.iter().find(|(_, outgoing)| outgoing.node == node).map(|(token, _)| *token);
        let token = match known {
            Some(token) => token,
            None => {
                let socket = LocalSocket::connect_now(socket_name(node).as_bytes())?;
                if !is_trusted(&socket, shared) {
                    // Any process can take the name of a node that has died.
                    let why =
                        "its socket belongs to another user; run both as one user, or name a group in both";
                    return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
                }
                let token = self.watch(&socket, epoll)?;
                self.outgoing.insert(token, Outgoing::new(node, socket));
                token
            }
        };
        self.outgoing.get_mut(&token).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn watch(&mut self, socket: &LocalSocket, epoll: &OwnedFd) -> io::Result<u64> {
        let token = self.next_token;
        self.next_token += 1;
        epoll::add(epoll, socket.as_fd(), epoll::EventData::new_u64(token), epoll::EventFlags::IN)?;
        Ok(token)
    }

    fn drop_outgoing(&mut self, token: u64, shared: &Shared) {
        let Some(mut outgoing) = self.outgoing.remove(&token) else { return };
        if outgoing.is_refused {
            // What was requested after that.
            return outgoing.refuse_all("it has hung up", shared);
        }
        shared.sources_went(outgoing.node);
        shared.lock().handle_death(outgoing.node, clock::now());
    }

    fn drop_incoming(&mut self, token: u64, shared: &Shared) {
        let Some(incoming) = self.incoming.remove(&token) else { return };
        incoming.admitted.clear(shared);
        if let Some(node) = incoming.node {
            self.death_detection.add(node, clock::now());
        }
    }
}

impl Incoming {
    /// False if the connection is at its end, or the other side does not keep to the protocol.
    fn receive(&mut self, buffer: &mut [u8], shared: &Shared) -> bool {
        match take(&self.socket, buffer) {
            Arrival::Nothing => true,
            Arrival::Packet(from, Packet::Ask { writer, reader, pins, keeps_all, number, proof, .. }, _) => {
                let state = shared.lock();
                let is_here = state.discovery.is_here(from);
                let what = proven(ring_handshake::ASK, shared.id, (writer, reader), number);
                let is_proven = state.envelope.is_proven(from, &[&what], &proof);
                drop(state);
                let granted = if is_proven {
                    // Only of nodes of this host can a connection be, and its end mean anything.
                    self.node = self.node.or(is_here.then_some(from));
                    self.grant((from, writer, reader), (pins, keeps_all, number), shared)
                } else {
                    Err(RingError::Unproven)
                };
                let refused =
                    granted.err().map(|why| Packet::Refuse { writer, reader, why: why.to_string() });
                refused.is_none_or(|refusal| self.socket.send(&refusal.encode(shared.id), &[]).is_ok())
            }
            Arrival::Packet(_, Packet::Release { writer, reader }, _) => {
                self.admitted.release((writer != ALL).then_some((writer, reader)), shared);
                true
            }
            Arrival::Packet(..) | Arrival::End => false,
        }
    }

    fn grant(
        &mut self,
        (to, writer, reader): (NodeId, Guid, EndpointId),
        (pins, keeps_all, number): (u32, bool, u64),
        shared: &Shared,
    ) -> Result<(), RingError> {
        let granted = if writer.0 == shared.id {
            let topic = shared.lock().publishers.get(&writer.1).cloned();
            let topic = topic.ok_or(RingError::PublisherClosed)?;
            // Before the answer: what is published after the reader knows goes into the ring.
            topic.make_ring()?;
            topic.offer.attach(pins, keeps_all)?
        } else {
            let granted = shared.lock().hand_on(writer, pins)?;
            // Our own subscriber may be busy: then it must not be the one that reads the socket.
            shared.begin_following();
            granted
        };
        self.admitted.add((writer, reader), (granted.reader_table, granted.reader), shared);
        let (pins, position) = (granted.pins, granted.position);
        let what = proven(ring_handshake::GRANT, to, (writer, reader), number);
        let proof = shared.lock().envelope.proof(shared.id, &[&what]);
        let answer = Packet::Grant { writer, reader, pins, position, proof }.encode(shared.id);
        let descriptors = [granted.data.as_fd(), granted.control.as_fd()];
        // If it fails the connection is at its end, and that detaches.
        let _ = self.socket.send(&answer, &descriptors);
        Ok(())
    }
}

impl Outgoing {
    fn new(node: NodeId, socket: LocalSocket) -> Outgoing {
        let (asked, to_ask) = (VecDeque::new(), VecDeque::new());
        Outgoing { node, socket, kept: Arc::default(), asked, to_ask, is_refused: false }
    }

    /// Done with the other node, whose process lives: the connection ends when nothing of it is borrowed any more.
    fn part(self, me: NodeId) {
        let _ = self.socket.send(&Packet::Release { writer: ALL, reader: EndpointId(0) }.encode(me), &[]);
        let _ = self.kept.set(self.socket);
    }

    /// Requests the ring of a writer, now or when others have been answered.
    fn want(&mut self, (writer, reader): (Described, EndpointId), shared: &Shared) {
        let state = shared.lock();
        let Some(topic) = state.subscribers.get(&reader).cloned() else { return };
        // Without random numbers an answer to another node cannot be distinguished from ours; without a key it does not matter.
        let number = random::secret().map_or(0, u64::from_le_bytes);
        let partner = (writer.0, writer.1.id);
        let what = proven(ring_handshake::ASK, self.node, (partner, reader), number);
        let proof = state.envelope.proof(shared.id, &[&what]);
        drop(state);
        let history = topic.past(&writer.1) > 0;
        let keeps_all = topic.keeps_all_of(&writer.1).is_some();
        let pins = topic.pins;
        let ask = Packet::Ask { writer: partner, reader, pins, history, keeps_all, number, proof };
        self.to_ask.push_back(Question { reader, writer, ask, number, is_wanted: true });
        self.ask(shared);
    }

    /// False if the connection is at its end, or the other side does not keep to the protocol.
    fn receive(&mut self, buffer: &mut [u8], shared: &Shared) -> bool {
        match take(&self.socket, buffer) {
            Arrival::Nothing => true,
            Arrival::Packet(_, Packet::Grant { writer, reader, pins, position, proof }, descriptors) => {
                let Some(question) = self.answered(writer, reader) else { return false };
                let what = proven(ring_handshake::GRANT, shared.id, (writer, reader), question.number);
                if !shared.lock().envelope.is_proven(self.node, &[&what], &proof) {
                    return false;
                }
                if question.is_wanted
                    && let Err(why) = self.begin(&question, (pins, position), descriptors, shared)
                {
                    // The writer need not keep anything for it.
                    let _ = self.socket.send(&Packet::Release { writer, reader }.encode(shared.id), &[]);
                    let (topic, why) = (question.writer.1.topic.clone(), why.to_string());
                    let notice = Notice::Unreadable { topic, why };
                    refused(shared, (self.node, question.writer, reader), notice, true);
                }
                self.ask(shared);
                true
            }
            Arrival::Packet(_, Packet::Refuse { writer: ALL, why, .. }, _) => {
                self.refuse_all(&why, shared);
                true
            }
            Arrival::Packet(_, Packet::Refuse { writer, reader, why }, _) => {
                let Some(question) = self.answered(writer, reader) else { return false };
                if question.is_wanted {
                    let notice = Notice::Refused { topic: question.writer.1.topic.clone(), why };
                    refused(shared, (self.node, question.writer, reader), notice, false);
                }
                self.ask(shared);
                true
            }
            Arrival::Packet(_, Packet::End { writer, reader }, _) => {
                // If it has been requested anew, what ended is no longer of interest.
                if !self.asked.iter().chain(&self.to_ask).any(|question| question.is_about(writer, reader)) {
                    shared.lock().handle_relay_end(reader, (self.node, writer), clock::now());
                }
                true
            }
            Arrival::Packet(..) | Arrival::End => false,
        }
    }

    /// The question that an answer belongs to, which is the oldest; `None` without a question.
    fn answered(&mut self, writer: Guid, reader: EndpointId) -> Option<Question> {
        let question = self.asked.pop_front()?;
        let is_meant = ((question.writer.0, question.writer.1.id), question.reader) == (writer, reader);
        is_meant.then_some(question)
    }

    /// The other node lets this one read nothing, and ends the connection; that is not its end.
    fn refuse_all(&mut self, why: &str, shared: &Shared) {
        self.is_refused = true;
        let questions = self.asked.drain(..).chain(self.to_ask.drain(..));
        for Question { reader, writer, .. } in questions.filter(|question| question.is_wanted) {
            let notice = Notice::Refused { topic: writer.1.topic.clone(), why: why.to_owned() };
            refused(shared, (self.node, writer, reader), notice, true);
        }
    }

    /// Asks on, as far as questions are not too many at once.
    fn ask(&mut self, shared: &Shared) {
        while self.asked.len() < QUESTIONS_MAX
            && let Some(question) = self.to_ask.pop_front()
        {
            if let Err(error) = self.socket.send(&question.ask.encode(shared.id), &[]) {
                if matches!(
                    error.kind(),
                    io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset | io::ErrorKind::WouldBlock
                ) {
                    // The other side closed the connection: the reason, if it sent one, lies in the socket and is read next. Or it does not read: then
                    // nothing is asked before it answers.
                    self.to_ask.push_front(question);
                    return;
                }
                let why = format!("its process does not answer on this host ({error})");
                let notice = Notice::Refused { topic: question.writer.1.topic.clone(), why };
                refused(shared, (self.node, question.writer, question.reader), notice, true);
                continue;
            }
            self.asked.push_back(question);
        }
    }

    fn begin(
        &self,
        Question { reader, writer: (node, endpoint), .. }: &Question,
        (pins, position): (u32, u64),
        descriptors: Vec<OwnedFd>,
        shared: &Shared,
    ) -> Result<(), RingError> {
        let memory = <[OwnedFd; 2]>::try_from(descriptors);
        let [data, control] = memory.map_err(|_| RingError::NoDescriptorHere)?;
        let Some(topic) = shared.lock().subscribers.get(reader).cloned() else { return Ok(()) };
        let history = topic.past(endpoint);
        let memory = map_granted((data, control), Arc::clone(&self.kept))?;
        if *node == self.node {
            let start = StartAt::From { position, history };
            let ring = open_ring(memory, pins, endpoint.type_hash, start)?;
            let source = Source::new((*node, endpoint), ring, Route::SharedMemory);
            topic.change(Change::Came(Box::new(source)));
            return Ok(());
        }
        let source = super::remote::source((*node, endpoint), memory, (pins, position, history))?;
        let source = source.relayed_by(self.node);
        shared.lock().handle_relay(*reader, self.node, Box::new(source), clock::now());
        Ok(())
    }
}

/// A node does not let us read a writer: there are other ways.
fn refused(
    shared: &Shared,
    (via, (node, writer), reader): (NodeId, Described, EndpointId),
    notice: Notice,
    is_final: bool,
) {
    if node == via {
        shared.lock().fall_back((reader, node), &writer, notice, clock::now());
    } else {
        shared.lock().handle_relay_refusal(reader, (via, (node, writer.id)), is_final, clock::now());
    }
}

/// A node of this host cannot be asked.
fn unreachable_node(
    shared: &Shared,
    (via, writer, reader): (NodeId, Described, EndpointId),
    error: &io::Error,
) {
    let why = match is_out_of_descriptors(error) {
        true => "this process has no file descriptor left to ask it; raise `ulimit -n`".to_owned(),
        false => format!("its process does not answer on this host ({error})"),
    };
    let notice = Notice::Refused { topic: writer.1.topic.clone(), why };
    refused(shared, (via, writer, reader), notice, true);
}

/// Lets a process that has connected read nothing.
fn turn_away(socket: &LocalSocket, why: &str, me: NodeId) {
    let refusal = Packet::Refuse { writer: ALL, reader: EndpointId(0), why: why.to_owned() };
    // If it cannot be sent, the end of the connection says the same.
    let _ = socket.send(&refusal.encode(me), &[]);
}

/// Whether the process at the other end may share memory with us: the same user, root, or a member of the named group.
fn is_trusted(socket: &LocalSocket, shared: &Shared) -> bool {
    socket.credentials().is_ok_and(|process| {
        let group = shared.group.is_some_and(|group| socket.peer_is_in_group(group).unwrap_or(false));
        process.uid == own_user() || process.uid == 0 || group
    })
}

/// Whether the socket of a node is there. If that is unknown it is.
fn is_listening(node: NodeId) -> bool {
    let error = LocalSocket::connect_now(socket_name(node).as_bytes()).err();
    error.is_none_or(|error| error.kind() != io::ErrorKind::ConnectionRefused)
}
