//! A network in virtual time: one node of another host that writes, and nodes of one host that read, each a real
//! `State` with real rings; what lies between them is simulated.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64};

use noctule_discovery::{
    Discovery, DiscoveryConfig, Endpoint, EndpointId, EndpointKind, Identity, NodeId, Qos, Via,
};
use noctule_netsim::Story;
use noctule_prrt::{Origin, Outgoing, StreamId};
use noctule_shm_ring::{ReaderId, ReaderTable, RingConfig};
use noctule_timebase::{Instant, Span};

use crate::clock::{LocalClock, Raw};
use crate::envelope::Envelope;
use crate::node::command::Command;
use crate::node::guid::Guid;
use crate::node::reader_route::trace::Event;
use crate::node::reception::Reception;
use crate::node::remote::{Remote, class, source};
use crate::node::sockets::To;
use crate::node::state::State;
use crate::shared_topic::{
    Change, Granted, History, PublishedTopic, RingOwner, Sources, SubscribedTopic, map_granted,
};
use crate::swarm_key::SwarmKey;

mod reader;

pub(super) use reader::Reader;

const FAR: u64 = 1;
pub(super) const NEAR: u64 = 2;
const DEPTH: u32 = 64;
/// Every node is known, or known to have gone, after this.
pub(super) const CALM: Span = Span::from_s(12);

/// xorshift64.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// Arrival at a node.
enum Arrival {
    Datagram {
        from: SocketAddr,
        via: Via,
        bytes: Vec<u8>,
    },
    Ask {
        from: NodeId,
        writer: Guid,
        reader: EndpointId,
    },
    Release {
        from: NodeId,
        writer: Guid,
        reader: EndpointId,
    },
    Answer {
        from: NodeId,
        /// `Err(true)`: there is nobody.
        granted: Result<Granted, bool>,
    },
    End {
        from: NodeId,
        writer: Guid,
        reader: EndpointId,
    },
    Death {
        of: NodeId,
    },
}

pub(super) struct Member {
    state: State,
    address: SocketAddr,
    pub(super) readers: Vec<Reader>,
    /// Unanswered requests to each, in the order of the answers, and whether each is still needed.
    asked: BTreeMap<NodeId, VecDeque<Asked>>,
    connected: BTreeSet<NodeId>,
    attached: Vec<Attached>,
    /// Channels of groups, a bit each.
    listening: u16,
    /// Its thread handles nothing before this.
    stalled_until: Instant<Raw>,
}

/// A writer and its node.
type Described = (NodeId, Arc<Endpoint>);

/// By which reader, and whether it is still needed.
type Asked = (Described, EndpointId, bool);

/// Which node reads what for which of its readers.
type Attached = (NodeId, Guid, EndpointId, ReaderTable, ReaderId);

/// When, and in which order of those at the same time.
type Due = (Instant<Raw>, u64);

pub(super) struct World {
    seed: u64,
    pub(super) random: Random,
    pub(super) now: Instant<Raw>,
    pub(super) members: BTreeMap<NodeId, Member>,
    arrivals: BTreeMap<Due, (NodeId, Arrival)>,
    /// Numbers nodes and arrivals.
    count: u64,
    /// Of datagrams, or, if samples are spared, of those of discovery.
    pub(super) loss_percent: u64,
    pub(super) spares_samples: bool,
    /// Of datagrams to a group at least.
    pub(super) group_loss_percent: u64,
    writer: (NodeId, EndpointId),
    pub(super) published: u64,
    /// Of the swarm, if it has one.
    keys: Vec<SwarmKey>,
    /// Of the topic.
    qos: Qos,
    story: Option<Story>,
    /// Decisions about the routes of each node's readers, if they are recorded.
    pub(super) noted: Option<Vec<(NodeId, Event)>>,
}

fn endpoint(kind: EndpointKind, payload_bytes_max: u32, qos: Qos) -> Endpoint {
    Endpoint {
        id: EndpointId(0),
        kind,
        topic: "camera".into(),
        type_name: "bytes".into(),
        type_hash: 0,
        formats: 1,
        payload_bytes_max,
        qos: Qos { depth: DEPTH, ..qos },
        relayed: false,
    }
}

impl World {
    pub(super) fn new(seed: u64) -> World {
        World::with_keys(seed, vec![])
    }

    /// Nodes that join keep what they note.
    pub(super) fn noting(seed: u64) -> World {
        World { noted: Some(Vec::new()), ..World::new(seed) }
    }

    /// Every node has these keys of the swarm.
    pub(super) fn with_keys(seed: u64, keys: Vec<SwarmKey>) -> World {
        World::with(seed, keys, Qos::default())
    }

    /// The topic is offered and requested on these terms; all clocks are known to be the same.
    pub(super) fn with(seed: u64, keys: Vec<SwarmKey>, qos: Qos) -> World {
        let mut world = World {
            seed,
            random: Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
            now: Instant::from_ns(1_000_000_000),
            members: BTreeMap::new(),
            arrivals: BTreeMap::new(),
            count: 0,
            loss_percent: 0,
            spares_samples: false,
            group_loss_percent: 0,
            writer: (NodeId([0; 16]), EndpointId(0)),
            published: 0,
            keys,
            qos,
            story: Story::wanted("relay", seed),
            noted: None,
        };
        world.random.below(2);
        world.start_writer();
        world
    }

    /// Starts the writer's node, which publishes from the first number on.
    pub(super) fn start_writer(&mut self) {
        let (node, now) = (self.join(FAR), self.now);
        let member = self.members.get_mut(&node).unwrap();
        let endpoint = endpoint(EndpointKind::Writer, 8, self.qos);
        let config =
            RingConfig { history: DEPTH, pins: 0, payload_bytes_max: 8, type_hash: 0, shift_bytes: 0 };
        let (offer, class) = (RingOwner::new(config).unwrap(), class(&endpoint.qos));
        let id = member.state.add(endpoint, now).unwrap();
        let topic = PublishedTopic {
            id,
            name: "camera".into(),
            class,
            depth: DEPTH,
            offer,
            fresh: None.into(),
            is_fresh: AtomicBool::new(false),
            remote_readers: AtomicU32::new(0),
            published: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            given_up: AtomicU64::new(0),
            held_up: AtomicU64::new(0),
            undelivered: AtomicU64::new(0),
            remote_bytes_max: 1 << 20,
            has_deadline: false,
            last_ns: AtomicI64::new(0),
        };
        member.state.publishers.insert(id, Arc::new(topic));
        member.state.settle(id, now);
        (self.writer, self.published) = ((node, id), 0);
    }

    /// A new node, whose number says nothing of its age.
    pub(super) fn join(&mut self, host: u64) -> NodeId {
        self.count += 1;
        let mut id = [0; 16];
        id[..8].copy_from_slice(&(self.random.below(u64::MAX) | 1).to_le_bytes());
        id[8..].copy_from_slice(&self.count.to_le_bytes());
        let port = 10_000 + (self.count % 50_000) as u16;
        let seed = self.random.below(u64::MAX);
        let mut secret = [7; 32];
        secret[..16].copy_from_slice(&id);
        let envelope = Envelope::new(&self.keys, secret, seed);
        let id = envelope.number().unwrap_or(NodeId(id));
        let me = Identity { id, name: format!("node {port}"), host, port };
        let now = Instant::from_ns(self.now.ns());
        let discovery = Discovery::new(DiscoveryConfig::default(), me, vec![], [seed as u8; 16], now);
        let mut state = State::new(id, (discovery, envelope), LocalClock::default(), [7; 16]);
        if self.story.is_some() || self.noted.is_some() {
            state.discovery.trace().start();
            state.routes.trace().start();
        }
        let member = Member {
            state,
            address: SocketAddr::from(([10, 0, 0, host as u8], port)),
            readers: Vec::new(),
            asked: BTreeMap::new(),
            connected: BTreeSet::new(),
            attached: Vec::new(),
            listening: 0,
            stalled_until: Instant::MIN,
        };
        self.members.insert(id, member);
        id
    }

    pub(super) fn subscribe(&mut self, node: NodeId, payload_bytes_max: u32) {
        let (now, member) = (self.now, self.members.get_mut(&node).unwrap());
        let mut endpoint = endpoint(EndpointKind::Reader, payload_bytes_max, self.qos);
        endpoint.id = member.state.add(endpoint.clone(), now).unwrap();
        let topic = Arc::new(SubscribedTopic::new(endpoint, 0, (0, History::AsPublished)));
        member.state.subscribers.insert(topic.id, Arc::clone(&topic));
        member.state.settle(topic.id, now);
        member.readers.push(Reader { topic, sources: Sources::default(), last: 0, missed: 0 });
    }

    pub(super) fn unsubscribe(&mut self, node: NodeId, at: usize) {
        let (now, member) = (self.now, self.members.get_mut(&node).unwrap());
        let reader = member.readers.remove(at);
        member.state.remove(reader.topic.id, now);
    }

    /// Leaves with a word, or without.
    pub(super) fn end(&mut self, node: NodeId, with_goodbye: bool) {
        if with_goodbye {
            self.members.get_mut(&node).unwrap().state.discovery.leave();
            self.serve(node);
        }
        let gone = self.members.remove(&node).unwrap();
        let others = self
            .members
            .iter()
            .filter(|(id, other)| gone.connected.contains(id) || other.connected.contains(&node));
        let others: Vec<NodeId> = others.map(|(id, _)| *id).collect();
        others.into_iter().for_each(|other| self.post(other, Arrival::Death { of: node }));
    }

    pub(super) fn publish(&mut self) {
        self.publish_late(Span::ZERO);
    }

    /// Publishes a sample that is so old already, because its thread stalled after it had looked at the clock.
    pub(super) fn publish_late(&mut self, age: Span) {
        self.published += 1;
        let ((node, id), now) = (self.writer, self.now);
        let member = self.members.get_mut(&node).unwrap();
        let topic = Arc::clone(&member.state.publishers[&id]);
        let sample = Outgoing {
            writer: StreamId(id.0),
            sequence: self.published,
            origin: Origin::exactly((now - age).ns()),
            age,
            class: topic.class,
            depth: DEPTH,
            payload: &self.published.to_le_bytes(),
        };
        member.state.send(id, &sample, &Arc::from(sample.payload), now);
        self.serve(node);
    }

    /// The threads of a node do nothing for so long; what comes meanwhile waits.
    pub(super) fn stall(&mut self, node: NodeId, span: Span) {
        self.members.get_mut(&node).unwrap().stalled_until = self.now + span;
    }

    /// Until when a node's threads do nothing.
    fn stalled_until(&self, node: NodeId) -> Instant<Raw> {
        self.members.get(&node).map_or(Instant::MIN, |member| member.stalled_until)
    }

    /// The number of the writer's node, which is another after it was started anew.
    pub(super) fn writer(&self) -> NodeId {
        self.writer.0
    }

    /// The writer's node.
    pub(super) fn far(&mut self) -> &mut State {
        &mut self.members.get_mut(&self.writer.0).unwrap().state
    }

    pub(super) fn member(&mut self, node: NodeId) -> &mut State {
        &mut self.members.get_mut(&node).unwrap().state
    }

    /// Up to 0.3 ms on the way, and behind what is on the way already.
    fn post(&mut self, to: NodeId, arrival: Arrival) {
        self.count += 1;
        let at = self.now + Span::from_ns(20_000 + self.random.below(280_000) as i64);
        let mut latest = self.arrivals.iter().rev();
        let last = latest.find(|(_, (its_to, _))| *its_to == to).map_or(at, |((last, _), _)| *last);
        self.arrivals.insert((at.max(last), self.count), (to, arrival));
    }

    fn send(&mut self, from: SocketAddr, destination: To, bytes: &[u8]) {
        // The exchange of clocks asks the machine's, which is no part of the simulation.
        if bytes.starts_with(b"NCTS") {
            return;
        }
        let to: Vec<(NodeId, Via)> = self
            .members
            .iter()
            .filter(|(_, other)| other.address != from)
            .filter_map(|(id, other)| match destination {
                To::Channel(channel, _) => (other.listening >> channel & 1 == 1).then_some((*id, Via::Group)),
                To::Everyone => Some((*id, Via::Group)),
                To::One(locator) => (other.address == locator).then_some((*id, Via::Unicast)),
            })
            .collect();
        let is_of_group = matches!(destination, To::Channel(..));
        let loss_percent =
            if is_of_group { self.group_loss_percent.max(self.loss_percent) } else { self.loss_percent };
        let is_spared = self.spares_samples && (bytes.starts_with(b"NCTM") || bytes[0] >= 128);
        for (to, via) in to {
            if is_spared || self.random.below(100) >= loss_percent {
                self.post(to, Arrival::Datagram { from, via, bytes: bytes.to_vec() });
            }
        }
    }

    /// Runs a node's thread until it has nothing to do.
    fn serve(&mut self, node: NodeId) {
        loop {
            let now = self.now;
            let Some(member) = self.members.get_mut(&node) else { return };
            if self.qos.deadline.is_some() {
                member.state.remotes.values_mut().for_each(Remote::share_clock);
            }
            if let Some(story) = &mut self.story {
                story.drain(&node.to_string(), member.state.discovery.trace());
                story.drain(&node.to_string(), member.state.routes.trace());
            }
            if let Some(noted) = &mut self.noted {
                let log = member.state.routes.trace();
                noted.extend(std::iter::from_fn(|| log.poll()).map(|(_, event)| (node, event)));
            }
            let command = member.state.poll_command();
            let is_command = command.is_some();
            match command {
                Some(Command::Attach { via, writer, reader }) => {
                    let partner = (writer.0, writer.1.id);
                    member.asked.entry(via).or_default().push_back((writer, reader, true));
                    if self.members.contains_key(&via) {
                        self.members.get_mut(&node).unwrap().connected.insert(via);
                        self.post(via, Arrival::Ask { from: node, writer: partner, reader });
                    } else {
                        self.post(node, Arrival::Answer { from: via, granted: Err(true) });
                    }
                }
                Some(Command::Release { via, writer, reader }) => {
                    member.release(via, writer, reader);
                    if member.connected.contains(&via) {
                        self.post(via, Arrival::Release { from: node, writer, reader });
                    }
                }
                Some(Command::End { writer }) => {
                    let ended = member.detach(|whom| whom.1 == writer);
                    for (whom, writer, reader, ..) in ended {
                        self.post(whom, Arrival::End { from: node, writer, reader });
                    }
                }
                Some(Command::Forget { node: gone }) => {
                    let was_connected = member.connected.contains(&gone);
                    member.forget(gone);
                    if was_connected {
                        // It sees that the connection ends.
                        self.post(gone, Arrival::Death { of: node });
                    }
                }
                Some(Command::Listen { channels }) => member.listening = channels,
                Some(Command::NameReader { .. }) | None => {}
            }
            let Some(member) = self.members.get_mut(&node) else { return };
            let (mut out, address) = (Vec::new(), member.address);
            let destination = member.state.poll_transmit(now, false, &mut out);
            match destination {
                Some(destination) => self.send(address, destination, &out),
                None if !is_command => return,
                None => {}
            }
        }
    }

    fn arrive(&mut self, to: NodeId, arrival: Arrival) {
        let now = self.now;
        let Some(member) = self.members.get_mut(&to) else { return };
        match arrival {
            Arrival::Datagram { from, via, mut bytes } => {
                member.state.handle_datagram(&mut bytes, (from, via), Reception::unstamped(now));
            }
            Arrival::Death { of } => {
                member.forget(of);
                _ = member.detach(|whom| whom.0 == of);
                member.state.handle_death(of, now);
            }
            Arrival::Ask { from, writer, reader } => {
                let granted = member.state.hand_on(writer, 0);
                if let Ok(granted) = &granted {
                    let (reader_table, id) = (granted.reader_table.clone(), granted.reader);
                    member.attached.push((from, writer, reader, reader_table, id));
                }
                self.post(from, Arrival::Answer { from: to, granted: granted.map_err(|_| false) });
            }
            Arrival::Release { from, writer, reader } => {
                _ = member.detach(|whom| (whom.0, whom.1, whom.2) == (from, writer, reader));
            }
            Arrival::End { from, writer, reader } => {
                let mut asked = member.asked.entry(from).or_default().iter();
                if !asked.any(|asked| asked.2 && ((asked.0.0, asked.0.1.id), asked.1) == (writer, reader)) {
                    member.state.handle_relay_end(reader, (from, writer), now);
                }
            }
            Arrival::Answer { from, granted } => match (member.answered(from), granted) {
                (None, _) => {}
                (Some(((node, writer), reader)), Ok(granted)) => {
                    let memory = map_granted((granted.data, granted.control), ()).unwrap();
                    let source = source((node, &writer), memory, (0, granted.position, 0)).unwrap();
                    member.state.handle_relay(reader, from, Box::new(source.relayed_by(from)), now);
                }
                (Some(((node, writer), reader)), Err(is_final)) => {
                    let writer = (node, writer.id);
                    member.state.handle_relay_refusal(reader, (from, writer), is_final, now);
                }
            },
        }
        self.serve(to);
    }

    pub(super) fn run(&mut self, duration: Span) {
        let end = self.now + duration;
        loop {
            let timeout = |member: &Member| member.state.poll_timeout(self.now).max(member.stalled_until);
            let timeouts = self.members.iter().map(|(id, member)| (timeout(member), *id));
            let timeout = timeouts.min().unwrap();
            let arrival = self.arrivals.keys().next().copied();
            let next = arrival.map_or(timeout.0, |(at, _)| at.min(timeout.0));
            if next > end {
                break;
            }
            self.now = self.now.max(next);
            let due = arrival.filter(|(at, _)| *at <= timeout.0);
            match due.and_then(|key| Some((key, self.arrivals.remove(&key)?))) {
                Some(((_, count), (to, arrival))) if self.stalled_until(to) > self.now => {
                    self.arrivals.insert((self.stalled_until(to), count), (to, arrival));
                }
                Some((_, (to, arrival))) => self.arrive(to, arrival),
                None => {
                    let now = self.now;
                    self.members.get_mut(&timeout.1).unwrap().state.handle_timeout(now);
                    self.serve(timeout.1);
                    // What is due and has nothing to do.
                    self.now += Span::from_ns(1000);
                }
            }
        }
        self.now = end;
    }

    /// All readers take what there is.
    pub(super) fn take(&mut self) {
        let seed = self.seed;
        for reader in self.members.values_mut().flat_map(|member| &mut member.readers) {
            reader.take(seed);
        }
    }

    pub(super) fn near(&self) -> Vec<NodeId> {
        self.members.keys().copied().filter(|node| *node != self.writer.0).collect()
    }

    pub(super) fn reader_number(&self, node: NodeId, at: usize) -> u32 {
        self.members[&node].readers[at].topic.id.0
    }

    /// The relay of a reader of a node, if another node receives for it.
    pub(super) fn relay(&self, node: NodeId, at: usize) -> Option<NodeId> {
        let member = &self.members[&node];
        member.state.routes.relay(member.readers[at].topic.id)
    }

    /// Nodes that the writer sends to.
    pub(super) fn served(&self) -> Vec<NodeId> {
        let state = &self.members[&self.writer.0].state;
        state.served_nodes(self.writer.1).to_vec()
    }

    /// In calm, everyone gets everything, and the host gets it once.
    pub(super) fn settle(&mut self) {
        let seed = self.seed;
        self.loss_percent = 0;
        self.run(CALM);
        for _ in 0..3 {
            // A reader in a handover must see that samples come to the relay.
            self.publish();
            self.run(Span::from_ms(50));
        }
        self.take();
        let readers: usize = self.members.values().map(|member| member.readers.len()).sum();
        assert_eq!(self.served().len(), readers.min(1), "seed {seed}: {:?}", self.served());
        let first = self.published;
        for _ in 0..10 {
            self.publish();
            self.run(Span::from_ms(2));
        }
        self.take();
        for (node, member) in &self.members {
            for reader in &member.readers {
                assert_eq!(reader.last, self.published, "seed {seed}: after {first}, {node}");
            }
        }
    }
}

impl Member {
    fn forget(&mut self, node: NodeId) {
        self.connected.remove(&node);
        self.asked.remove(&node);
        for reader in &self.readers {
            reader.topic.change(Change::NodeWent(node));
        }
    }

    fn detach(&mut self, is_meant: impl Fn(&Attached) -> bool) -> Vec<Attached> {
        let detached: Vec<Attached> = self.attached.extract_if(.., |whom| is_meant(whom)).collect();
        detached.iter().for_each(|whom| whom.3.detach(whom.4));
        detached
    }

    fn release(&mut self, via: NodeId, writer: Guid, reader: EndpointId) {
        for asked in self.asked.entry(via).or_default() {
            asked.2 &= ((asked.0.0, asked.0.1.id), asked.1) != (writer, reader);
        }
    }

    /// Endpoints of the oldest request, which this answers, if it is still needed.
    fn answered(&mut self, via: NodeId) -> Option<(Described, EndpointId)> {
        let (writer, reader, is_wanted) = self.asked.get_mut(&via)?.pop_front()?;
        is_wanted.then_some((writer, reader))
    }
}

/// `count` seeds, or those that the environment says.
pub(super) fn seeds(count: u64) -> std::ops::Range<u64> {
    let seeds = noctule_netsim::seeds(1, count);
    println!("seeds {seeds:?}");
    seeds
}
