//! State of a node, behind one lock: discovery, the seal, and its own topics.
//!
//! Sans-IO like the cores it joins: datagrams come in, datagrams and commands come out, `now` is an
//! argument. The node's thread and threads that wait for samples of other hosts take turns with it.
//!
//! Below it are the machines that it joins, each of which knows nothing of it: discovery, links (`remote`), `groups`, `reader_route`,
//! `histories`, `deadlines` and others. The files of `state/` say what one of them means for the others. Above it are `send_queue`, which takes
//! its datagrams, and `send` and the driver, which lock it.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use noctule_discovery::{
    Discovery, Durability, Endpoint, EndpointId, EndpointKind, Event, Incompatible, Local as DiscoveryClock,
    NodeId, Via, can_be_handed_on,
};
use noctule_prrt::{Ecn, FeasibilityChange as LinkWish};
use noctule_timebase::Instant;

use super::command::Command;
use super::deadlines::Deadlines;
use super::fallback::Fallback;
use super::groups::Groups;
use super::guid::Guid;
use super::histories::Histories;
use super::overload::Overload;
use super::ping::Pings;
use super::reader_route::ReaderRoutes;
use super::reception::Reception;
use super::remote::{Remote, Remotes};
use super::served_nodes::{ServedNodes, Shift};
use super::trace::NodeTrace;
use super::unacknowledged::{UNACKNOWLEDGED_BYTES_DEFAULT, Unacknowledged};
use crate::clock::{LocalClock, Raw};
use crate::envelope::{Envelope, Opened};
use crate::notice::Notice;
use crate::shared_topic::{Change, ChangeCount, Granted, PublishedTopic, RingError, SubscribedTopic};
use crate::sync::arrival::Arrivals;
use crate::sync::wire::{Reply, Request};
use crate::type_descriptions::Descriptions;

mod budget;
mod by_udp;
mod figures;
mod gone;
mod multicast;
mod network;
mod protocol;
mod questions;
mod relay;
mod sealed;
mod sending;
mod subscriptions;

use network::LimitWatch;
use protocol::Protocol;

/// Short answers and questions that wait to be sent: of the clock exchange, and about samples by UDP.
const SEND_QUEUE_LIMIT: usize = 256;
/// Notices kept until they are fetched; older ones are dropped.
const NOTICES_LIMIT: usize = 256;

/// The node that a datagram is for, known if there is a key, and where it is.
type Destined = (Option<NodeId>, SocketAddr);

/// State of a node; its one lock protects all of it.
#[derive(Debug)]
pub(super) struct State {
    pub(super) discovery: Discovery,
    pub(super) envelope: Envelope,
    pub(super) publishers: BTreeMap<EndpointId, Arc<PublishedTopic>>,
    pub(super) subscribers: BTreeMap<EndpointId, Arc<SubscribedTopic>>,
    /// Partners of each of our endpoints.
    pub(super) partners: BTreeMap<EndpointId, Vec<Guid>>,
    /// Readers of other hosts of each of our publishers.
    pub(super) audiences: BTreeMap<EndpointId, ServedNodes>,
    /// Where each of our subscribers gets the samples of other hosts from.
    pub(super) routes: ReaderRoutes,
    /// Nodes of other hosts have been seen.
    pub(super) has_other_hosts: bool,
    pub(super) fallback: Fallback,
    pub(super) remotes: Remotes,
    pub(super) groups: Groups,
    pub(super) deadlines: Deadlines,
    strangers: u64,
    /// Datagrams sealed by one node in the name of another, or with a key that others have, too.
    impostors: u64,
    by_address: BTreeMap<SocketAddr, NodeId>,
    pub(super) clock: LocalClock,
    arrivals: Arrivals,
    pub(super) pings: Pings,
    pub(super) descriptions: Descriptions,
    /// Secret; each exchange of clocks derives its own from it.
    pub(super) exchange_key: [u8; 16],
    /// Short answers and questions, sealed.
    pub(super) send_queue: VecDeque<(SocketAddr, Vec<u8>)>,
    pub(super) commands: VecDeque<Command>,
    notices: VecDeque<Notice>,
    warned_without_key: bool,
    limits: LimitWatch,
    /// Rings of writers of other hosts, of all nodes together.
    rings_max: usize,
    /// Samples given up because a path carries less than is published.
    pub(super) overload: Overload,
    pub(super) waiters: super::waiters::Waiters,
    /// Of all samples that nodes of other hosts have still to acknowledge.
    pub(super) unacknowledged: Unacknowledged,
    /// Histories to be retransmitted.
    pub(super) histories: Histories,
    pub(super) me: NodeId,
    /// Kept from one datagram to the next.
    pub(super) body: Vec<u8>,
    /// Of the datagram that was given out last: the octet of RFC 2474.
    pub(super) octet: u8,
    /// Whose turn it is to send, and for how many datagrams.
    pub(super) turn: (NodeId, u32),
    /// If the environment requests it.
    trace: Option<NodeTrace>,
    /// For a program that keeps a picture of the system.
    pub(super) changes: ChangeCount,
    /// Of discovery, as last counted.
    generation: u64,
}

impl State {
    pub(super) fn new(
        me: NodeId,
        (mut discovery, envelope): (Discovery, Envelope),
        clock: LocalClock,
        exchange_key: [u8; 16],
    ) -> State {
        let (mut routes, mut groups) = (ReaderRoutes::default(), Groups::default());
        let trace = NodeTrace::start(me, &mut discovery, &mut routes);
        groups.keep_traces(trace.is_some());
        State {
            discovery,
            envelope,
            publishers: BTreeMap::new(),
            subscribers: BTreeMap::new(),
            partners: BTreeMap::new(),
            audiences: BTreeMap::new(),
            routes,
            has_other_hosts: false,
            fallback: Fallback::default(),
            remotes: Remotes::new(),
            groups,
            deadlines: Deadlines::default(),
            strangers: 0,
            impostors: 0,
            by_address: BTreeMap::new(),
            clock,
            arrivals: Arrivals::new(),
            pings: Pings::default(),
            descriptions: Descriptions::default(),
            exchange_key,
            send_queue: VecDeque::new(),
            commands: VecDeque::new(),
            notices: VecDeque::new(),
            warned_without_key: false,
            limits: LimitWatch::default(),
            rings_max: network::rings_max(),
            overload: Overload::default(),
            waiters: Default::default(),
            unacknowledged: Unacknowledged::new(UNACKNOWLEDGED_BYTES_DEFAULT),
            histories: Histories::default(),
            me,
            body: Vec::new(),
            octet: 0,
            turn: (me, 0),
            trace,
            changes: ChangeCount::default(),
            generation: 0,
        }
    }

    /// A datagram from one of the sockets.
    pub(super) fn handle_datagram(
        &mut self,
        bytes: &mut [u8],
        (source, via): (SocketAddr, Via),
        Reception { stamp_realtime_ns, octet, came, now }: Reception,
    ) {
        // The envelope counts why it did not open one.
        let Ok(Opened { from, body, with }) = self.envelope.open(bytes, source, now) else {
            self.note_refusals();
            return;
        };
        let protocol = Protocol::of(body);
        if !protocol.is_fit(with) {
            self.impostors = self.impostors.saturating_add(1);
            return;
        }
        match protocol {
            Protocol::ClockRequest => {
                let arrived = self.arrivals.handle(stamp_realtime_ns);
                if let Ok(request) = Request::decode(body) {
                    self.answer(&request, (from, source), arrived);
                }
            }
            Protocol::ClockReply => {
                let arrived = self.clock.at(self.arrivals.handle(stamp_realtime_ns));
                let reply = Reply::decode(body);
                let sender = from.or_else(|| self.by_address.get(&source).copied());
                let (Ok(reply), Some(sender)) = (reply, sender) else {
                    self.strangers = self.strangers.saturating_add(1);
                    return;
                };
                if !self.pings.handle_reply(sender, &reply, arrived)
                    && let Some(remote) = self.remotes.get_mut(&sender)
                {
                    remote.handle_reply(&reply, arrived);
                }
            }
            Protocol::Link => {
                let local = self.clock.at(now);
                if let Some(remote) = remote(&mut self.remotes, from, source, &self.by_address) {
                    remote.handle_datagram(body, (came, now), (local, Ecn::from_bits(octet)));
                    if self.routes.has_handover() {
                        self.handle_arrivals(now);
                    }
                } else {
                    self.strangers = self.strangers.saturating_add(1);
                }
            }
            Protocol::Description => self.handle_description(body, (from, source), now),
            Protocol::Group => {
                let local = self.clock.at(now);
                let sender = from.or_else(|| self.by_address.get(&source).copied());
                match sender.and_then(|sender| Some((sender, self.remotes.get_mut(&sender)?))) {
                    Some(sender) => self.groups.handle_datagram(sender, body, (now, local)),
                    None => self.strangers = self.strangers.saturating_add(1),
                }
            }
            Protocol::Fallback => self.handle_fallback(body, (from, source), now),
            // A holder of the key may speak for itself only.
            Protocol::Discovery
                if from.zip(noctule_discovery::sender(body)).is_some_and(|(is, says)| is != says) =>
            {
                self.impostors = self.impostors.saturating_add(1);
            }
            Protocol::Discovery => {
                let _ = self.discovery.handle_datagram(body, source, via, discovery_clock(now));
                self.handle_events(now);
            }
        }
    }

    /// Time has passed.
    pub(super) fn handle_timeout(&mut self, now: Instant<Raw>) {
        self.envelope.handle_timeout(now);
        self.discovery.handle_timeout(discovery_clock(now));
        self.handle_events(now);
        let local = self.clock.at(now);
        let mut notices = Vec::new();
        for (node, remote) in &mut self.remotes {
            remote.handle_timeout(now, local);
            while let Some((writer, wish)) = remote.poll_feasibility_change(now) {
                let Some(topic) = self.publishers.get(&writer) else { continue };
                let (topic, node) = (topic.name.clone(), *node);
                notices.push(match wish {
                    LinkWish::Infeasible(why) => Notice::Infeasible { topic, node, why },
                    LinkWish::Feasible => Notice::Feasible { topic, node },
                });
            }
        }
        notices.into_iter().for_each(|notice| self.note(notice));
        self.note_limits(now);
        self.note_memberships();
        let notices = &mut self.notices;
        self.deadlines.handle_timeout(now, |notice| push_notice(notices, notice));
        self.handle_routes(now);
        self.handle_histories(now);
        self.ask_for_udp(now);
        self.sweep_unacknowledged();
        self.note_held_up(now);
    }

    /// Nodes of other hosts that samples of a writer are sent to.
    #[cfg(test)]
    pub(super) fn served_nodes(&self, writer: EndpointId) -> &[NodeId] {
        self.audiences.get(&writer).map_or(&[], ServedNodes::nodes)
    }

    /// A process of this host has died: its connection ended.
    pub(super) fn handle_death(&mut self, node: NodeId, now: Instant<Raw>) {
        if node != self.me {
            self.discovery.trace().at(discovery_clock(now));
            self.discovery.handle_death(node);
            self.handle_events(now);
        }
    }

    /// This host's line does not carry a datagram of so many bytes to that address.
    pub(super) fn handle_too_long(&mut self, to: SocketAddr, sealed_bytes: usize, now: Instant<Raw>) {
        let node = self.by_address.get(&to);
        if let Some(remote) = node.and_then(|node| self.remotes.get_mut(node)) {
            remote.handle_too_long(sealed_bytes, now);
        }
    }

    /// When something is to be done again.
    pub(super) fn poll_timeout(&self, now: Instant<Raw>) -> Instant<Raw> {
        let mut earliest = Instant::from_ns(self.discovery.poll_timeout().ns());
        let others = [
            self.deadlines.poll_timeout(),
            self.groups.poll_timeout(),
            self.histories.poll_timeout(),
            self.routes.poll_timeout(),
            self.fallback.poll_timeout(),
        ];
        for at in others.into_iter().flatten() {
            earliest = earliest.min(at);
        }
        for remote in self.remotes.values() {
            // By this node's clock, which may be artificial: it is the distance that counts.
            let exchange = remote.poll_exchange_timeout().map(|at| now + (at - self.clock.at(now)));
            earliest = [exchange, remote.poll_timeout()].into_iter().flatten().fold(earliest, Instant::min);
        }
        earliest
    }

    /// Next command for the node's thread.
    pub(super) fn poll_command(&mut self) -> Option<Command> {
        let listen = self.groups.poll_channels().map(|channels| Command::Listen { channels });
        listen.or_else(|| self.commands.pop_front())
    }

    /// Next notice for the user.
    pub(super) fn poll_notice(&mut self) -> Option<Notice> {
        self.notices.pop_front()
    }

    pub(super) fn note(&mut self, notice: Notice) {
        push_notice(&mut self.notices, notice);
    }

    /// Announces an endpoint; `None` if there is no room. Put its topic into `publishers` or `subscribers` and [`settle`](State::settle).
    pub(super) fn add(&mut self, endpoint: Endpoint, now: Instant<Raw>) -> Option<EndpointId> {
        let id = self.discovery.add(endpoint, discovery_clock(now))?;
        self.partners.insert(id, Vec::new());
        self.changes.count();
        Some(id)
    }

    /// Joins a new endpoint with its partners, those of this node included: no node hears its own
    /// announcements.
    pub(super) fn settle(&mut self, id: EndpointId, now: Instant<Raw>) {
        self.add_route(id, now);
        let Some(ours) = self.discovery.local(id).cloned().map(Arc::new) else { return };
        let others: Vec<EndpointId> = match ours.kind {
            EndpointKind::Writer => self.subscribers.keys().copied().collect(),
            EndpointKind::Reader => self.publishers.keys().copied().collect(),
        };
        for other in others {
            let Some(other) = self.discovery.local(other).filter(|other| other.topic == ours.topic) else {
                continue;
            };
            let other = Arc::new(other.clone());
            let (writer, reader) = match ours.kind {
                EndpointKind::Writer => (&ours, &other),
                EndpointKind::Reader => (&other, &ours),
            };
            if self.subscribers.get(&reader.id).is_some_and(|topic| topic.ignores_local) {
                continue;
            }
            match noctule_discovery::incompatible(writer, reader) {
                None => self.match_local(writer, reader),
                Some(why) => self.mismatched(reader.id, &ours.topic, "this node".into(), why),
            }
        }
        self.handle_events(now);
    }

    /// Readers to which what is published from now on goes: on this host those that have been given the
    /// ring, on others those that are known.
    pub(super) fn readers_of(&self, writer: EndpointId) -> usize {
        let Some(topic) = self.publishers.get(&writer) else { return 0 };
        topic.offer.readers() + topic.remote_readers.load(Ordering::Relaxed) as usize
    }

    /// Takes an endpoint back.
    pub(super) fn remove(&mut self, id: EndpointId, now: Instant<Raw>) {
        self.discovery.remove(id, discovery_clock(now));
        // Partners of other nodes part by events, which need the topic; those of this node are left.
        self.handle_events(now);
        for (node, other) in self.partners.remove(&id).unwrap_or_default() {
            let (writer, reader) = if self.subscribers.contains_key(&id) { (other, id) } else { (id, other) };
            self.release(reader, (node, writer));
            self.part(other, (node, id));
        }
        self.publishers.remove(&id);
        self.audiences.remove(&id);
        self.groups.close(id);
        self.overload.close(id);
        self.subscribers.remove(&id);
        self.deadlines.remove(id);
        self.routes.remove(id);
        self.changes.count();
    }

    fn match_local(&mut self, writer: &Arc<Endpoint>, reader: &Arc<Endpoint>) {
        let me = self.me;
        self.partners.entry(writer.id).or_default().push((me, reader.id));
        self.partners.entry(reader.id).or_default().push((me, writer.id));
        self.commands.push_back(Command::Attach {
            via: me,
            writer: (me, Arc::clone(writer)),
            reader: reader.id,
        });
    }

    /// A reader lets go of a writer of this host.
    fn release(&mut self, reader: EndpointId, writer: Guid) {
        self.commands.push_back(Command::Release { via: writer.0, writer, reader });
        if let Some(topic) = self.subscribers.get(&reader) {
            topic.change(Change::Went(writer.0, writer.1));
        }
    }

    fn part(&mut self, ours: EndpointId, other: (NodeId, EndpointId)) {
        if let Some(partners) = self.partners.get_mut(&ours) {
            partners.retain(|partner| *partner != other);
        }
    }

    fn handle_events(&mut self, now: Instant<Raw>) {
        while let Some(event) = self.discovery.poll_event() {
            match event {
                Event::Joined { node, same_host, locator, .. } => {
                    self.by_address.insert(locator, node);
                    if !same_host && !std::mem::replace(&mut self.has_other_hosts, true) {
                        self.elect_all(now);
                    }
                }
                Event::AlsoAt { node, locator } => self.add_address(node, locator),
                Event::Moved { node, locator } => self.handle_move(node, locator, now),
                Event::Gone { node, reason } => self.handle_gone(node, reason),
                Event::Matched { local, node, remote } => self.matched(local, node, remote, now),
                Event::Unmatched { local, node, remote } => self.unmatched(local, (node, remote)),
                Event::Changed { local, node, remote } => self.address(local, node, &remote, now),
                Event::Beside { local } => self.elect(local, now),
                Event::Mismatched { local, node, remote, why } => {
                    let name = self.discovery.name(node).map(str::to_owned);
                    let node = name.unwrap_or_else(|| node.to_string());
                    self.mismatched(local, &remote.topic, node, why);
                }
            }
        }
        let generation = self.discovery.generation();
        if std::mem::replace(&mut self.generation, generation) != generation {
            self.changes.count();
        }
    }

    /// Tells it, and of one of our readers also whether another build of this program would do.
    fn mismatched(&mut self, local: EndpointId, topic: &str, node: String, why: Incompatible) {
        let left_out = self.subscribers.get(&local).map_or(0, |topic| topic.left_out);
        self.note(Notice::mismatch(topic, node, why, left_out));
    }

    fn matched(&mut self, local: EndpointId, node: NodeId, remote: Arc<Endpoint>, now: Instant<Raw>) {
        self.partners.entry(local).or_default().push((node, remote.id));
        self.compare_definitions(local, node, &remote);
        match (self.discovery.is_here(node), remote.kind) {
            (true, EndpointKind::Reader) => {}
            (true, EndpointKind::Writer) => {
                self.commands.push_back(Command::Attach { via: node, writer: (node, remote), reader: local });
            }
            (false, EndpointKind::Reader) => {
                if let Some(topic) = self.publishers.get(&local) {
                    topic.remote_readers.fetch_add(1, Ordering::SeqCst);
                    self.changes.count();
                }
                self.audiences.entry(local).or_default();
                self.address(local, node, &remote, now);
            }
            (false, EndpointKind::Writer) => self.add_writer(local, node, &remote, now),
        }
    }

    /// Says of a reader here that knows its type's definition if the writer does not.
    fn compare_definitions(&mut self, local: EndpointId, node: NodeId, writer: &Endpoint) {
        let knows = self.discovery.local(local).is_some_and(|reader| reader.type_hash != 0);
        if knows && writer.kind == EndpointKind::Writer && writer.type_hash == 0 {
            let name = self.discovery.name(node).map(str::to_owned);
            let (topic, type_name) = (writer.topic.clone(), writer.type_name.clone());
            let node = name.unwrap_or_else(|| node.to_string());
            self.note(Notice::Undescribed { topic, node, type_name });
        }
    }

    /// The link to a node of another host, which begins now if there is none.
    pub(super) fn remote(&mut self, node: NodeId, now: Instant<Raw>) -> &mut Remote {
        self.remotes.entry(node).or_insert_with(|| {
            let mut key = self.exchange_key;
            key.iter_mut().zip(node.0).for_each(|(byte, other)| *byte ^= other);
            let locator = self.discovery.locator(node);
            let over_loopback = locator.is_some_and(|locator| locator.ip().to_canonical().is_loopback());
            let envelope_bytes = self.envelope.overhead_bytes();
            let link = (self.envelope.open_link(node), over_loopback, envelope_bytes);
            let remote = Remote::new((self.me, node), link, key, &self.clock, now);
            if self.discovery.is_here(node) { remote.with_our_clock() } else { remote }
        })
    }

    /// A reader of another host has come, or is described anew. If it is to be sent to and wants the history,
    /// that goes first; what it had already, it knows.
    fn address(&mut self, writer: EndpointId, node: NodeId, reader: &Endpoint, now: Instant<Raw>) {
        let Some(served_nodes) = self.audiences.get_mut(&writer) else { return };
        if self.discovery.is_here(node) {
            // Of this host only those are sent to that have asked, and whether they are relayed is about other hosts.
            return;
        }
        let was_served = served_nodes.serves((node, reader.id));
        let relayed = reader.relayed && self.discovery.local(writer).is_some_and(can_be_handed_on);
        match served_nodes.insert((node, reader.id), relayed) {
            Shift::Went => self.stop(writer, node),
            Shift::Came => {
                _ = self.remote(node, now);
                self.join_group(writer, node, now);
            }
            Shift::None => {}
        }
        if !was_served && !relayed && reader.qos.durability == Durability::TransientLocal {
            self.send_history(writer, node, now);
        }
    }

    fn stop(&mut self, writer: EndpointId, node: NodeId) {
        if let Some(remote) = self.remotes.get_mut(&node) {
            remote.stop(writer);
        }
        self.groups.leave(writer, node);
    }

    /// The ring of a writer of another host, for another node of this one.
    pub(super) fn hand_on(&self, writer: Guid, pins: u32) -> Result<Granted, RingError> {
        let remote = self.remotes.get(&writer.0).ok_or(RingError::NotReceived)?;
        remote.hand_on(writer.1, pins)
    }

    fn unmatched(&mut self, local: EndpointId, (node, remote): Guid) {
        self.part(local, (node, remote));
        if self.subscribers.contains_key(&local) {
            // Of this host or not: the subscriber lets go of the source.
            self.release(local, (node, remote));
            self.remove_writer(local, (node, remote));
            self.end_fallback(local, (node, remote));
        } else if let Some(shift) = self.audiences.get_mut(&local).and_then(|all| all.remove((node, remote)))
        {
            if let Some(topic) = self.publishers.get(&local) {
                topic.remote_readers.fetch_sub(1, Ordering::SeqCst);
                self.changes.count();
            }
            if shift == Shift::Went {
                self.stop(local, node);
            }
        }
    }

    /// Our reading of another node's clock goes back as soon as it came.
    fn answer(&mut self, request: &Request, to: Destined, arrived: Instant<Raw>) {
        let reply = Reply { nonce: request.nonce, t2: self.clock.at(arrived), t3: self.clock.now() };
        self.queue(&reply.encode(), to);
    }

    /// The node that an address is proven to be of.
    pub(super) fn node_at(&self, source: SocketAddr) -> Option<NodeId> {
        self.by_address.get(&source).copied()
    }

    /// A datagram came that no known node sent, or none that is understood.
    pub(super) fn count_stranger(&mut self) {
        self.strangers = self.strangers.saturating_add(1);
    }
}

fn push_notice(notices: &mut VecDeque<Notice>, notice: Notice) {
    if notices.len() >= NOTICES_LIMIT {
        notices.pop_front();
    }
    notices.push_back(notice);
}

/// The node that a datagram comes from: by its seal, or by where it came from.
fn remote<'a>(
    remotes: &'a mut Remotes,
    sealed_by: Option<NodeId>,
    source: SocketAddr,
    by_address: &BTreeMap<SocketAddr, NodeId>,
) -> Option<&'a mut Remote> {
    remotes.get_mut(&sealed_by.or_else(|| by_address.get(&source).copied())?)
}

/// The cores have a marker each for the one clock they are all driven by.
pub(super) fn discovery_clock(now: Instant<Raw>) -> Instant<DiscoveryClock> {
    Instant::from_ns(now.ns())
}
