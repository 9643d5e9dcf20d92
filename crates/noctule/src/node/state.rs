//! What a node knows, behind one lock: discovery, the seal, and its own topics.
//!
//! Sans-IO like the cores it joins: datagrams come in, datagrams and wishes come out, `now` is an
//! argument. The node's thread and whoever waits for samples of other hosts take turns with it.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use noctule_discovery::{
    Destination, Discovery, Durability, Endpoint, EndpointId, EndpointKind, Event, Local as DiscoveryClock,
    NodeId, Reason, Via,
};
use noctule_prrt::{Outgoing, ReceivedCounters, SentCounters, StreamId, Wish as LinkWish};
use noctule_time_sync::Local;
use noctule_timebase::Instant;

use super::NodeCounters;
use super::deadlines::Deadlines;
use super::offer::Past;
use super::ping::Pings;
use super::remote::{Remote, Remotes};
use crate::clock::{LocalClock, Raw};
use crate::deadline::DeadlineMissed;
use crate::envelope::{Envelope, Opened};
use crate::notice::Notice;
use crate::publisher::PublishedTopic;
use crate::subscriber::SubscribedTopic;
use crate::sync::arrival::Arrivals;
use crate::sync::wire::{Reply, Request};

/// Replies of the clock exchange that wait to be sent.
const OUTBOX_LIMIT: usize = 256;
/// Notices kept for who asks; older ones are dropped.
const NOTICES_LIMIT: usize = 256;

/// What the node's thread is to do with other processes of this host.
#[derive(Debug)]
pub(super) enum Wish {
    /// Get the ring of a writer for one of our readers.
    Attach { node: NodeId, writer: Arc<Endpoint>, reader: EndpointId },
    /// Let go of it.
    Release { node: NodeId, writer: EndpointId, reader: EndpointId },
    /// The node is gone, and its connection with it.
    Forget { node: NodeId },
}

/// An endpoint of another node, or of this one.
pub(super) type Partner = (NodeId, EndpointId);

/// See the module.
#[derive(Debug)]
pub(super) struct State {
    pub(super) discovery: Discovery,
    pub(super) envelope: Envelope,
    pub(super) publishers: BTreeMap<EndpointId, Arc<PublishedTopic>>,
    pub(super) subscribers: BTreeMap<EndpointId, Arc<SubscribedTopic>>,
    /// Partners of each of our endpoints.
    pub(super) partners: BTreeMap<EndpointId, Vec<Partner>>,
    /// Nodes whose memory we share, or not.
    same_host: BTreeMap<NodeId, bool>,
    remotes: Remotes,
    pub(super) deadlines: Deadlines,
    strangers: u64,
    by_address: BTreeMap<SocketAddr, NodeId>,
    clock: LocalClock,
    arrivals: Arrivals,
    pub(super) pings: Pings,
    /// Secret; each exchange of clocks derives its own from it.
    exchange_key: [u8; 16],
    /// Replies of the clock exchange, sealed.
    outbox: VecDeque<(SocketAddr, Vec<u8>)>,
    wishes: VecDeque<Wish>,
    notices: VecDeque<Notice>,
    me: NodeId,
    /// Kept from one datagram to the next.
    body: Vec<u8>,
    pub(super) out: Vec<u8>,
}

impl State {
    pub(super) fn new(
        me: NodeId,
        (discovery, envelope): (Discovery, Envelope),
        clock: LocalClock,
        exchange_key: [u8; 16],
    ) -> State {
        State {
            discovery,
            envelope,
            publishers: BTreeMap::new(),
            subscribers: BTreeMap::new(),
            partners: BTreeMap::new(),
            same_host: BTreeMap::new(),
            remotes: Remotes::new(),
            deadlines: Deadlines::default(),
            strangers: 0,
            by_address: BTreeMap::new(),
            clock,
            arrivals: Arrivals::new(),
            pings: Pings::default(),
            exchange_key,
            outbox: VecDeque::new(),
            wishes: VecDeque::new(),
            notices: VecDeque::new(),
            me,
            body: Vec::new(),
            out: Vec::new(),
        }
    }

    /// A datagram from one of the sockets; `stamp_realtime_ns` is when the kernel took it in.
    pub(super) fn handle_datagram(
        &mut self,
        bytes: &mut [u8],
        (source, via): (SocketAddr, Via),
        stamp_realtime_ns: Option<i64>,
        now: Instant<Raw>,
    ) {
        // Why one is not believed is counted by who did not believe it.
        let Ok(Opened { from, body }) = self.envelope.open(bytes, source, now) else {
            self.note_refusals();
            return;
        };
        match body.first_chunk::<6>() {
            Some(b"NCTS\x01\x01") => {
                let arrived = self.arrivals.handle(stamp_realtime_ns);
                if let Ok(request) = Request::decode(body) {
                    self.answer(&request, source, arrived);
                }
            }
            Some(b"NCTS\x01\x02") => {
                let arrived = self.clock.at(self.arrivals.handle(stamp_realtime_ns));
                let sender = from.or_else(|| self.by_address.get(&source).copied());
                let (Ok(reply), Some(sender)) = (Reply::decode(body), sender) else {
                    self.strangers = self.strangers.saturating_add(1);
                    return;
                };
                if !self.pings.handle_reply(sender, &reply, arrived)
                    && let Some(remote) = self.remotes.get_mut(&sender)
                {
                    remote.handle_reply(&reply, arrived);
                }
            }
            Some([b'N', b'C', b'T', b'M', ..]) => {
                let local = self.clock.at(now);
                if let Some(remote) = remote(&mut self.remotes, from, source, &self.by_address) {
                    remote.handle_datagram(body, now, local);
                } else {
                    self.strangers = self.strangers.saturating_add(1);
                }
            }
            _ => {
                let _ = self.discovery.handle_datagram(body, source, via, discovery_clock(now));
                self.handle_events(now);
            }
        }
    }

    /// Time has passed.
    pub(super) fn handle_timeout(&mut self, now: Instant<Raw>) {
        self.discovery.handle_timeout(discovery_clock(now));
        self.handle_events(now);
        let local = self.clock.at(now);
        let mut notices = Vec::new();
        for (node, remote) in &mut self.remotes {
            remote.handle_timeout(now, local);
            while let Some((writer, wish)) = remote.poll_wish(now) {
                let Some(topic) = self.publishers.get(&writer) else { continue };
                let (topic, node) = (topic.name.clone(), *node);
                notices.push(match wish {
                    LinkWish::Infeasible(why) => Notice::Infeasible { topic, node, why },
                    LinkWish::Feasible => Notice::Feasible { topic, node },
                });
            }
        }
        notices.into_iter().for_each(|notice| self.note(notice));
        let notices = &mut self.notices;
        self.deadlines.handle_timeout(now, |notice| push_notice(notices, notice));
    }

    /// What was sent of a deadline-bound writer, to each node that reads it.
    pub(super) fn sent(&self, writer: EndpointId) -> Vec<(NodeId, SentCounters)> {
        self.remotes.iter().filter_map(|(node, remote)| Some((*node, remote.sent(writer)?))).collect()
    }

    /// What came for a reader, from each deadline-bound writer of another host.
    pub(super) fn received(&self, reader: EndpointId) -> Vec<(NodeId, ReceivedCounters)> {
        let writers = self.partners.get(&reader).into_iter().flatten();
        writers
            .filter_map(|(node, writer)| Some((*node, self.remotes.get(node)?.received(*writer)?)))
            .collect()
    }

    /// A sample of one of our publishers for the nodes of other hosts that read it.
    pub(super) fn send(&mut self, writer: EndpointId, sample: &Outgoing<'_>, now: Instant<Raw>) {
        let mut previous = None;
        for (node, _) in self.partners.get(&writer).into_iter().flatten() {
            // One sample for a node, however many of its subscribers read it.
            if previous.replace(*node) != Some(*node)
                && let Some(remote) = self.remotes.get_mut(node)
                && remote.is_newer(writer, sample.sequence)
            {
                remote.send(sample, now);
            }
        }
    }

    /// A process of this host has died: its connection ended.
    pub(super) fn handle_death(&mut self, node: NodeId, now: Instant<Raw>) {
        if node != self.me {
            self.discovery.handle_death(node);
            self.handle_events(now);
        }
    }

    /// The next datagram to send, sealed.
    pub(super) fn poll_transmit(&mut self, now: Instant<Raw>, out: &mut Vec<u8>) -> Option<Destination> {
        if let Some((to, bytes)) = self.envelope.poll_transmit().or_else(|| self.outbox.pop_front()) {
            *out = bytes;
            return Some(Destination::One(to));
        }
        self.envelope.begin(out);
        let destination = self.poll_remotes(now, out).or_else(|| {
            let mut body = std::mem::take(&mut self.body);
            let destination = self.discovery.poll_transmit(discovery_clock(now), &mut body);
            out.extend_from_slice(&body);
            self.body = body;
            destination
        })?;
        self.envelope.seal(out);
        Some(destination)
    }

    fn poll_remotes(&mut self, now: Instant<Raw>, out: &mut Vec<u8>) -> Option<Destination> {
        let local = self.clock.at(now);
        for (node, remote) in &mut self.remotes {
            let Some(locator) = self.discovery.locator(*node) else { continue };
            if let Some(request) = remote.poll_request(local) {
                out.extend_from_slice(&request.encode());
                return Some(Destination::One(locator));
            }
            if remote.poll_transmit(now, out) {
                return Some(Destination::One(locator));
            }
        }
        None
    }

    /// When something is to be done again.
    pub(super) fn poll_timeout(&self, now: Instant<Raw>) -> Instant<Raw> {
        let mut earliest = Instant::from_ns(self.discovery.poll_timeout().ns());
        earliest = self.deadlines.poll_timeout().map_or(earliest, |at| earliest.min(at));
        for remote in self.remotes.values() {
            // By this node's clock, which may be artificial: it is the distance that counts.
            let exchange = remote.poll_exchange_timeout().map(|at| now + (at - self.clock.at(now)));
            earliest = [exchange, remote.poll_timeout()].into_iter().flatten().fold(earliest, Instant::min);
        }
        earliest
    }

    /// What the node's thread is to do next.
    pub(super) fn poll_wish(&mut self) -> Option<Wish> {
        self.wishes.pop_front()
    }

    /// What the user should know.
    pub(super) fn poll_notice(&mut self) -> Option<Notice> {
        self.notices.pop_front()
    }

    pub(super) fn note(&mut self, notice: Notice) {
        push_notice(&mut self.notices, notice);
    }

    pub(super) fn counters(&self) -> NodeCounters {
        NodeCounters {
            discovery: self.discovery.counters(),
            refused: self.envelope.counters(),
            strangers: self.strangers,
        }
    }

    /// How often the DEADLINE of one of our endpoints was missed.
    pub(super) fn deadline_missed(&self, id: EndpointId) -> DeadlineMissed {
        self.deadlines.missed(id, &self.clock)
    }

    /// Announces an endpoint; `None` if there is no room. Then put its topic into `publishers` or
    /// `subscribers` and call [`settle`](State::settle), or its partners are not served.
    pub(super) fn add(&mut self, endpoint: Endpoint, now: Instant<Raw>) -> Option<EndpointId> {
        let id = self.discovery.add(endpoint, discovery_clock(now))?;
        self.partners.insert(id, Vec::new());
        Some(id)
    }

    /// Joins a new endpoint with its partners, those of this node included: nobody hears its own
    /// announcements.
    pub(super) fn settle(&mut self, id: EndpointId, now: Instant<Raw>) {
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
            match noctule_discovery::incompatible(writer, reader) {
                None => self.match_local(self.me, writer, reader),
                Some(why) => {
                    self.note(Notice::Mismatch { topic: ours.topic.clone(), node: "this node".into(), why });
                }
            }
        }
        self.handle_events(now);
    }

    /// Whether a reader of another host has still to get a sample of a writer.
    pub(super) fn is_sending(&self, writer: EndpointId) -> bool {
        self.remotes.values().any(|remote| remote.is_sending(writer))
    }

    /// Readers to whom what is published from now on goes: on this host those that have been given the
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
            self.wishes.push_back(Wish::Release { node, writer, reader });
            self.part(other, (node, id));
        }
        self.publishers.remove(&id);
        self.subscribers.remove(&id);
        self.deadlines.remove(id);
    }

    fn match_local(&mut self, node: NodeId, writer: &Arc<Endpoint>, reader: &Arc<Endpoint>) {
        self.partners.entry(writer.id).or_default().push((node, reader.id));
        self.partners.entry(reader.id).or_default().push((node, writer.id));
        self.wishes.push_back(Wish::Attach { node, writer: Arc::clone(writer), reader: reader.id });
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
                    self.same_host.insert(node, same_host);
                    self.by_address.insert(locator, node);
                }
                Event::Gone { node, reason } => {
                    self.same_host.remove(&node);
                    self.remotes.remove(&node);
                    self.by_address.retain(|_, known| *known != node);
                    self.wishes.push_back(Wish::Forget { node });
                    if !matches!(reason, Reason::Left | Reason::Died) {
                        self.note(Notice::Gone { node, reason });
                    }
                }
                Event::Matched { local, node, remote } => self.matched(local, node, remote, now),
                Event::Unmatched { local, node, remote } => self.unmatched(local, (node, remote)),
                Event::Mismatched { local, node, remote, why } => {
                    let _ = local;
                    let name = self
                        .discovery
                        .nodes()
                        .find(|(id, ..)| *id == node)
                        .map(|(_, name, ..)| name.to_owned());
                    let node = name.unwrap_or_else(|| node.to_string());
                    self.note(Notice::Mismatch { topic: remote.topic.clone(), node, why });
                }
            }
        }
    }

    fn matched(&mut self, local: EndpointId, node: NodeId, remote: Arc<Endpoint>, now: Instant<Raw>) {
        let partners = self.partners.entry(local).or_default();
        partners.push((node, remote.id));
        // Partners of one node side by side, see `send`.
        partners.sort_unstable();
        let here = self.same_host.get(&node).copied().unwrap_or(false);
        match (here, remote.kind) {
            (true, EndpointKind::Reader) => {}
            (true, EndpointKind::Writer) => {
                self.wishes.push_back(Wish::Attach { node, writer: remote, reader: local });
            }
            (false, kind) => {
                let other = self.remotes.entry(node).or_insert_with(|| {
                    let mut key = self.exchange_key;
                    key.iter_mut().zip(node.0).for_each(|(byte, other)| *byte ^= other);
                    let locator = self.discovery.locator(node);
                    let over_loopback = locator.is_some_and(|locator| locator.ip().is_loopback());
                    Remote::new((self.me, node), over_loopback, key, &self.clock, now)
                });
                if kind == EndpointKind::Reader {
                    self.begin_sending(local, &remote, node, now);
                } else if let Some(topic) = self.subscribers.get(&local)
                    && let Err(why) = other.subscribe(node, &remote, topic)
                {
                    self.note(Notice::Unreadable { topic: remote.topic.clone(), why });
                }
            }
        }
    }

    /// A reader of another host has come: from now on samples go there, the history first if it asks.
    fn begin_sending(&mut self, local: EndpointId, reader: &Endpoint, node: NodeId, now: Instant<Raw>) {
        let Some(topic) = self.publishers.get(&local).cloned() else { return };
        topic.remote_readers.fetch_add(1, Ordering::SeqCst);
        let Some(qos) = self.discovery.local(local).map(|endpoint| endpoint.qos) else { return };
        if reader.qos.durability != Durability::TransientLocal {
            return;
        }
        let Some(remote) = self.remotes.get_mut(&node) else { return };
        for Past { sequence, source_time_ns, bytes } in topic.offer.history(qos.depth) {
            if remote.is_newer(local, sequence) {
                let age = self.clock.at::<Local>(now) - Instant::from_ns(source_time_ns);
                let sample = Outgoing {
                    writer: StreamId(local.0),
                    sequence,
                    source_time_ns,
                    age,
                    class: topic.class,
                    depth: qos.depth,
                    payload: &bytes,
                };
                remote.send(&sample, now);
            }
        }
    }

    fn unmatched(&mut self, local: EndpointId, (node, remote): Partner) {
        self.part(local, (node, remote));
        if self.subscribers.contains_key(&local) {
            // Of this host or not: the subscriber lets go of the source.
            self.wishes.push_back(Wish::Release { node, writer: remote, reader: local });
            if let Some(other) = self.remotes.get_mut(&node) {
                other.unsubscribe(remote, local);
            }
        } else if let Some(topic) = self.publishers.get(&local)
            && let Some(other) = self.remotes.get_mut(&node)
        {
            topic.remote_readers.fetch_sub(1, Ordering::SeqCst);
            let others = self.partners.get(&local);
            if others.is_none_or(|partners| partners.iter().all(|(other, _)| *other != node)) {
                other.stop(local);
            }
        }
    }

    /// Our reading of another node's clock goes back as soon as it came.
    fn answer(&mut self, request: &Request, to: SocketAddr, arrived: Instant<Raw>) {
        if self.outbox.len() >= OUTBOX_LIMIT {
            return;
        }
        let mut out = Vec::new();
        self.envelope.begin(&mut out);
        let reply = Reply { nonce: request.nonce, t2: self.clock.at(arrived), t3: self.clock.now() };
        out.extend_from_slice(&reply.encode());
        self.envelope.seal(&mut out);
        self.outbox.push_back((to, out));
    }

    fn note_refusals(&mut self) {
        while let Some(why) = self.envelope.poll_warning() {
            self.note(Notice::Seal { why });
        }
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
fn discovery_clock(now: Instant<Raw>) -> Instant<DiscoveryClock> {
    Instant::from_ns(now.ns())
}
