//! Connections to the other nodes of this host: over them rings are handed out and got.
//!
//! One connection for a pair of nodes and direction, however many topics they share. It lives as long as
//! both processes do: its end is how each side learns, at once, that the other has died.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use noctule_discovery::{Durability, Endpoint, EndpointId, NodeId};
use noctule_shm_ring::{ReaderId, StartAt};
use noctule_sys::local_socket::{LocalListener, LocalSocket, Packet as Received, own_user};
use rustix::event::epoll;
use rustix::fd::OwnedFd;

use super::Shared;
use super::hand_over::{PACKET_BYTES_MAX, Packet, socket_name};
use super::offer::open_ring;
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

/// What to say, for which reader, about which writer.
type Question = (Packet, EndpointId, Arc<Endpoint>);

#[derive(Debug)]
struct Incoming {
    socket: LocalSocket,
    /// Known from its first question on.
    node: Option<NodeId>,
    attached: Vec<(EndpointId, EndpointId, ReaderId)>,
}

#[derive(Debug)]
struct Outgoing {
    node: NodeId,
    socket: LocalSocket,
    /// By writer and reader: what was asked for.
    asked: BTreeMap<(EndpointId, EndpointId), Arc<Endpoint>>,
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
                let (writer, reader) = (EndpointId(0), EndpointId(0));
                let _ = socket.send(&Packet::Refuse { writer, reader, why }.encode(shared.id), &[]);
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
            let (node, is_refused) = (outgoing.node, outgoing.is_refused);
            self.outgoing.remove(&token);
            if is_refused {
                return;
            }
            shared.sources_went(node);
            shared.lock().handle_death(node, clock::now());
        }
    }

    /// Asks a node for the ring of one of its writers.
    pub(super) fn attach(
        &mut self,
        (node, writer, reader): (NodeId, Arc<Endpoint>, EndpointId),
        shared: &Shared,
        epoll: &OwnedFd,
    ) {
        let Some(topic) = shared.lock().subscribers.get(&reader).cloned() else { return };
        let ask = Packet::Ask {
            writer: writer.id,
            reader,
            pins: topic.pins,
            history: topic.endpoint.qos.durability == Durability::TransientLocal,
        };
        match self.connection(node, epoll) {
            Ok(outgoing) => {
                outgoing.to_ask.push_back((ask, reader, writer));
                outgoing.ask(shared);
            }
            Err(error) => {
                let why = format!("its process does not answer on this host ({error})");
                shared.note(Notice::Refused { topic: writer.topic.clone(), why });
            }
        }
    }

    /// Tells a node that one of our readers is done with one of its writers.
    pub(super) fn release(
        &mut self,
        (node, writer, reader): (NodeId, EndpointId, EndpointId),
        shared: &Shared,
    ) {
        shared.source_went(reader, (node, writer));
        if let Some(outgoing) = self.outgoing.values_mut().find(|outgoing| outgoing.node == node) {
            outgoing.asked.remove(&(writer, reader));
            // If it cannot be told, it is gone and has nothing to forget.
            let _ = outgoing.socket.send(&Packet::Release { writer, reader }.encode(shared.id), &[]);
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
                self.outgoing.insert(
                    token,
                    Outgoing {
                        node,
                        socket,
                        asked: BTreeMap::new(),
                        to_ask: VecDeque::new(),
                        is_refused: false,
                    },
                );
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

    fn drop_incoming(&mut self, token: u64, shared: &Shared) {
        let Some(incoming) = self.incoming.remove(&token) else { return };
        let mut state = shared.lock();
        for (writer, _, reader) in incoming.attached {
            if let Some(topic) = state.publishers.get(&writer) {
                topic.offer.detach(reader);
            }
        }
        if let Some(node) = incoming.node {
            state.handle_death(node, clock::now());
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
                let state = shared.lock();
                self.attached.retain(|(a_writer, a_reader, id)| {
                    let meant = (*a_writer, *a_reader) == (writer, reader);
                    if meant && let Some(topic) = state.publishers.get(&writer) {
                        topic.offer.detach(*id);
                    }
                    !meant
                });
                true
            }
            Arrival::Packet(..) | Arrival::End => false,
        }
    }

    fn grant(
        &mut self,
        writer: EndpointId,
        reader: EndpointId,
        pins: u32,
        shared: &Shared,
    ) -> Result<(), String> {
        let topic = shared.lock().publishers.get(&writer).cloned();
        let topic = topic.ok_or("the publisher has been closed")?;
        if let Some(ring) = topic.offer.make()? {
            *topic.fresh.lock().map_err(|_| "the publisher has failed")? = Some(ring);
            // Before the answer: what is published after the reader knows goes into the ring.
            topic.is_fresh.store(true, Ordering::Release);
        }
        let granted = topic.offer.attach(pins)?;
        self.attached.push((writer, reader, granted.reader));
        let (pins, position) = (granted.pins, granted.position);
        let answer = Packet::Grant { writer, reader, pins, position }.encode(shared.id);
        let descriptors = [granted.data.as_fd(), granted.control.as_fd()];
        // If it fails the connection is at its end, and that detaches.
        let _ = self.socket.send(&answer, &descriptors);
        Ok(())
    }
}

impl Outgoing {
    /// False if the connection is at its end, or the other side does not keep to the protocol.
    fn receive(&mut self, buffer: &mut [u8], shared: &Shared) -> bool {
        match take(&self.socket, buffer) {
            Arrival::Nothing => true,
            Arrival::Packet(_, Packet::Grant { writer, reader, pins, position }, descriptors) => {
                let Some(endpoint) = self.asked.remove(&(writer, reader)) else { return true };
                if let Err(why) = self.begin(&endpoint, (reader, pins, position), descriptors, shared) {
                    shared.note(Notice::Unreadable { topic: endpoint.topic.clone(), why });
                    // The writer need not keep anything for it.
                    let _ = self.socket.send(&Packet::Release { writer, reader }.encode(shared.id), &[]);
                }
                self.ask(shared);
                true
            }
            Arrival::Packet(_, Packet::Refuse { writer, reader, why }, _) => {
                match self.asked.remove(&(writer, reader)) {
                    Some(endpoint) => {
                        shared.note(Notice::Refused { topic: endpoint.topic.clone(), why });
                        self.ask(shared);
                    }
                    None => self.refuse_all(&why, shared),
                }
                true
            }
            Arrival::Packet(..) | Arrival::End => false,
        }
    }

    /// The other node lets this one read nothing, and ends the connection; that is not its end.
    fn refuse_all(&mut self, why: &str, shared: &Shared) {
        self.is_refused = true;
        let asked = std::mem::take(&mut self.asked);
        let to_ask = std::mem::take(&mut self.to_ask).into_iter().map(|(.., writer)| writer);
        for writer in asked.into_values().chain(to_ask) {
            shared.note(Notice::Refused { topic: writer.topic.clone(), why: why.to_owned() });
        }
    }

    /// Asks on, as far as questions are not too many at once.
    fn ask(&mut self, shared: &Shared) {
        while self.asked.len() < QUESTIONS_MAX
            && let Some((question, reader, writer)) = self.to_ask.pop_front()
        {
            if let Err(error) = self.socket.send(&question.encode(shared.id), &[]) {
                if matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) {
                    // It has hung up. Why, if it said so, lies in the socket and is taken next.
                    self.to_ask.push_front((question, reader, writer));
                    return;
                }
                let why = format!("its process does not answer on this host ({error})");
                shared.note(Notice::Refused { topic: writer.topic.clone(), why });
                continue;
            }
            self.asked.insert((writer.id, reader), writer);
        }
    }

    fn begin(
        &self,
        endpoint: &Endpoint,
        (reader, pins, position): (EndpointId, u32, u64),
        descriptors: Vec<OwnedFd>,
        shared: &Shared,
    ) -> Result<(), String> {
        let [data, control] =
            <[OwnedFd; 2]>::try_from(descriptors).map_err(|_| "it sent no memory".to_owned())?;
        let Some(topic) = shared.lock().subscribers.get(&reader).cloned() else { return Ok(()) };
        let history = match topic.endpoint.qos.durability {
            Durability::TransientLocal => endpoint.qos.depth,
            Durability::Volatile => 0,
        };
        let start = StartAt::From { position, history };
        let ring = open_ring((data, control), pins, endpoint.type_hash, start)?;
        let source = Source::new((self.node, endpoint), ring, Route::SharedMemory);
        topic.change(Change::Came(Box::new(source)));
        Ok(())
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
