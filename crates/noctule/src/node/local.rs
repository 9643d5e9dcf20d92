//! Connections to the other nodes of this host: over them rings are handed out and got.
//!
//! One connection for a pair of nodes and direction, however many topics they share. It lives as long as
//! both processes do: its end is how each side learns, at once, that the other has died.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use noctule_discovery::{Endpoint, EndpointId, NodeId};
use noctule_shm_ring::{ReaderId, Roster, StartAt};
use noctule_sys::local_socket::{LocalListener, LocalSocket, Packet as Received, own_user};
use rustix::event::epoll;
use rustix::fd::OwnedFd;

use super::Shared;
use super::hand_over::{PACKET_BYTES_MAX, Packet, socket_name};
use super::offer::open_ring;
use super::state::Partner;
use crate::clock;
use crate::notice::Notice;
use crate::sample::Route;
use crate::subscriber::{Change, Source};

/// Other nodes of this host that may be connected at once.
const CONNECTIONS_LIMIT: usize = 1024;
/// Questions that may be unanswered at once: few enough for the socket to hold them and the answers.
const QUESTIONS_MAX: usize = 16;
/// A connection on one host is made at once or not at all.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(200);
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
}

/// A writer and its node.
type Described = (NodeId, Arc<Endpoint>);

/// What one of our readers wants to read.
#[derive(Debug)]
struct Question {
    reader: EndpointId,
    writer: Described,
    ask: Packet,
    /// The reader has not let go of it meanwhile.
    is_wanted: bool,
}

impl Question {
    fn is_about(&self, writer: Partner, reader: EndpointId) -> bool {
        self.is_wanted && self.reader == reader && (self.writer.0, self.writer.1.id) == writer
    }
}

/// Stands for all writers of a node in a refusal.
const ALL: Partner = (NodeId([0; 16]), EndpointId(0));

#[derive(Debug)]
struct Incoming {
    socket: LocalSocket,
    /// Known from its first question on.
    node: Option<NodeId>,
    attached: Vec<Attached>,
}

/// A reader of the other node that is let in.
#[derive(Debug)]
struct Attached {
    writer: Partner,
    reader: EndpointId,
    roster: Roster,
    id: ReaderId,
}

#[derive(Debug)]
struct Outgoing {
    node: NodeId,
    socket: LocalSocket,
    /// What was asked for, in the order in which the answers come.
    asked: VecDeque<Question>,
    /// What will be.
    to_ask: VecDeque<Question>,
    /// The other side said that it will grant nothing.
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
        })
    }

    pub(super) fn listener(&self) -> &LocalListener {
        &self.listener
    }

    /// Takes in who has connected.
    pub(super) fn accept(&mut self, shared: &Shared, epoll: &OwnedFd) {
        while let Ok(Some(socket)) = self.listener.accept() {
            let allowed = socket.credentials().is_ok_and(|who| {
                let group = shared.group.is_some_and(|group| socket.peer_is_in_group(group).unwrap_or(false));
                who.uid == own_user() || who.uid == 0 || group
            });
            if !allowed || self.incoming.len() >= CONNECTIONS_LIMIT {
                let why = if allowed {
                    format!("{CONNECTIONS_LIMIT} nodes of this host are connected already")
                } else {
                    "it runs as another user; name a group that may read, or run both as one user".to_owned()
                };
                let _ = socket
                    .send(&Packet::Refuse { writer: ALL, reader: EndpointId(0), why }.encode(shared.id), &[]);
                continue;
            }
            if let Ok(token) = self.watch(&socket, epoll) {
                self.incoming.insert(token, Incoming { socket, node: None, attached: Vec::new() });
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

    /// Asks a node for the ring of a writer.
    pub(super) fn attach(
        &mut self,
        (via, writer, reader): (NodeId, Described, EndpointId),
        shared: &Shared,
        epoll: &OwnedFd,
    ) {
        let Some(topic) = shared.lock().subscribers.get(&reader).cloned() else { return };
        let ask = Packet::Ask {
            writer: (writer.0, writer.1.id),
            reader,
            pins: topic.pins,
            history: topic.history(&writer.1) > 0,
        };
        match self.connection(via, epoll) {
            Ok(outgoing) => {
                outgoing.to_ask.push_back(Question { reader, writer, ask, is_wanted: true });
                outgoing.ask(shared);
            }
            Err(error) => {
                let why = format!("its process does not answer on this host ({error})");
                let notice = Notice::Refused { topic: writer.1.topic.clone(), why };
                refused(shared, (via, writer, reader), notice, true);
            }
        }
    }

    /// Tells a node that one of our readers is done with a writer.
    pub(super) fn release(&mut self, (via, writer, reader): (NodeId, Partner, EndpointId), shared: &Shared) {
        if let Some(outgoing) = self.outgoing.values_mut().find(|outgoing| outgoing.node == via) {
            outgoing.to_ask.retain(|question| !question.is_about(writer, reader));
            for question in &mut outgoing.asked {
                question.is_wanted &= !question.is_about(writer, reader);
            }
            // If it cannot be told, it is gone and has nothing to forget.
            let _ = outgoing.socket.send(&Packet::Release { writer, reader }.encode(shared.id), &[]);
        }
    }

    /// What came from a writer of another host comes here no more: those that read it through this node look elsewhere.
    pub(super) fn end(&mut self, writer: Partner, shared: &Shared) {
        for incoming in self.incoming.values_mut() {
            for ended in incoming.attached.extract_if(.., |attached| attached.writer == writer) {
                let reader = ended.reader;
                ended.detach(shared);
                // If it cannot be told, its connection is at its end.
                let _ = incoming.socket.send(&Packet::End { writer, reader }.encode(shared.id), &[]);
            }
        }
    }

    /// A node is gone.
    pub(super) fn forget(&mut self, node: NodeId, shared: &Shared) {
        self.outgoing.retain(|_, outgoing| outgoing.node != node);
        shared.sources_went(node);
    }

    fn connection(&mut self, node: NodeId, epoll: &OwnedFd) -> io::Result<&mut Outgoing> {
        let known = self.outgoing.iter().find(|(_, outgoing)| outgoing.node == node).map(|(token, _)| *token);
        let token = match known {
            Some(token) => token,
            None => {
                let socket = LocalSocket::connect(socket_name(node).as_bytes(), CONNECT_TIMEOUT)?;
                let token = self.watch(&socket, epoll)?;
                let (asked, to_ask) = (VecDeque::new(), VecDeque::new());
                self.outgoing.insert(token, Outgoing { node, socket, asked, to_ask, is_refused: false });
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
            // What was asked for after that.
            return outgoing.refuse_all("it has hung up", shared);
        }
        shared.sources_went(outgoing.node);
        shared.lock().handle_death(outgoing.node, clock::now());
    }

    fn drop_incoming(&mut self, token: u64, shared: &Shared) {
        let Some(incoming) = self.incoming.remove(&token) else { return };
        incoming.attached.into_iter().for_each(|attached| attached.detach(shared));
        if let Some(node) = incoming.node {
            shared.lock().handle_death(node, clock::now());
        }
    }
}

impl Incoming {
    /// False if the connection is at its end, or the other side does not keep to the protocol.
    fn receive(&mut self, buffer: &mut [u8], shared: &Shared) -> bool {
        match take(&self.socket, buffer) {
            Arrival::Nothing => true,
            Arrival::Packet(from, Packet::Ask { writer, reader, pins, .. }, _) => {
                self.node = Some(from);
                let granted = self.grant(writer, reader, pins, shared);
                let refused = granted.err().map(|why| Packet::Refuse { writer, reader, why });
                refused.is_none_or(|refusal| self.socket.send(&refusal.encode(shared.id), &[]).is_ok())
            }
            Arrival::Packet(_, Packet::Release { writer, reader }, _) => {
                let is_meant = |its: &mut Attached| (its.writer, its.reader) == (writer, reader);
                self.attached.extract_if(.., is_meant).for_each(|attached| attached.detach(shared));
                true
            }
            Arrival::Packet(..) | Arrival::End => false,
        }
    }

    fn grant(
        &mut self,
        writer: Partner,
        reader: EndpointId,
        pins: u32,
        shared: &Shared,
    ) -> Result<(), String> {
        let granted = if writer.0 == shared.id {
            let topic = shared.lock().publishers.get(&writer.1).cloned();
            let topic = topic.ok_or("the publisher has been closed")?;
            // Before the answer: what is published after the reader knows goes into the ring.
            topic.make_ring()?;
            topic.offer.attach(pins)?
        } else {
            let granted = shared.lock().hand_on(writer, pins)?;
            // Our own subscriber may be busy: then it must not be the one that reads the socket.
            shared.begin_following();
            granted
        };
        self.attached.push(Attached { writer, reader, roster: granted.roster, id: granted.reader });
        let (pins, position) = (granted.pins, granted.position);
        let answer = Packet::Grant { writer, reader, pins, position }.encode(shared.id);
        let descriptors = [granted.data.as_fd(), granted.control.as_fd()];
        // If it fails the connection is at its end, and that detaches.
        let _ = self.socket.send(&answer, &descriptors);
        Ok(())
    }
}

impl Attached {
    fn detach(self, shared: &Shared) {
        self.roster.detach(self.id);
        if self.writer.0 != shared.id {
            shared.end_following();
        }
    }
}

impl Outgoing {
    /// False if the connection is at its end, or the other side does not keep to the protocol.
    fn receive(&mut self, buffer: &mut [u8], shared: &Shared) -> bool {
        match take(&self.socket, buffer) {
            Arrival::Nothing => true,
            Arrival::Packet(_, Packet::Grant { writer, reader, pins, position }, descriptors) => {
                let Some(question) = self.answered(writer, reader) else { return false };
                if question.is_wanted
                    && let Err(why) = self.begin(&question, (pins, position), descriptors, shared)
                {
                    // The writer need not keep anything for it.
                    let _ = self.socket.send(&Packet::Release { writer, reader }.encode(shared.id), &[]);
                    let notice = Notice::Unreadable { topic: question.writer.1.topic.clone(), why };
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
                // If it has been asked for anew, what ended is no longer of interest.
                if !self.asked.iter().chain(&self.to_ask).any(|question| question.is_about(writer, reader)) {
                    shared.lock().handle_relay_end(reader, (self.node, writer), clock::now());
                }
                true
            }
            Arrival::Packet(..) | Arrival::End => false,
        }
    }

    /// The question that an answer belongs to, which is the oldest; `None` for what was not asked.
    fn answered(&mut self, writer: Partner, reader: EndpointId) -> Option<Question> {
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
                if matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) {
                    // It has hung up. Why, if it said so, lies in the socket and is taken next.
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
    ) -> Result<(), String> {
        let [data, control] =
            <[OwnedFd; 2]>::try_from(descriptors).map_err(|_| "it sent no memory".to_owned())?;
        let Some(topic) = shared.lock().subscribers.get(reader).cloned() else { return Ok(()) };
        let history = topic.history(endpoint);
        if *node == self.node {
            let start = StartAt::From { position, history };
            let ring = open_ring((data, control), pins, endpoint.type_hash, start)?;
            let source = Source::new((*node, endpoint), ring, Route::SharedMemory);
            topic.change(Change::Came(Box::new(source)));
            return Ok(());
        }
        let source = super::remote::source((*node, endpoint), (data, control), (pins, position, history))?;
        let source = source.relayed_by(self.node);
        shared.lock().handle_relay(*reader, self.node, Box::new(source), clock::now());
        Ok(())
    }
}

/// A node does not let us read a writer. If it is its own, the user must know; else there are other ways.
fn refused(
    shared: &Shared,
    (via, (node, writer), reader): (NodeId, Described, EndpointId),
    notice: Notice,
    is_final: bool,
) {
    if node == via {
        shared.note(notice);
    } else {
        shared.lock().handle_relay_refusal(reader, (via, (node, writer.id)), is_final, clock::now());
    }
}

/// What came on a connection.
enum Arrival {
    Nothing,
    Packet(NodeId, Packet, Vec<OwnedFd>),
    /// The other process is gone, or does not keep to the protocol.
    End,
}

fn take(socket: &LocalSocket, buffer: &mut [u8]) -> Arrival {
    match socket.receive(buffer) {
        Ok(Received { length_bytes, descriptors, truncated: false }) if length_bytes > 0 => {
            match Packet::decode(&buffer[..length_bytes]) {
                Some((from, packet)) => Arrival::Packet(from, packet, descriptors),
                None => Arrival::End,
            }
        }
        Ok(_) => Arrival::End,
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
            Arrival::Nothing
        }
        Err(_) => Arrival::End,
    }
}
