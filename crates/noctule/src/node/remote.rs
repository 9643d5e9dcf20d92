//! A node of another host: the link to it, its clock, and the samples that come from it.
//!
//! Samples of one of its writers go into a ring, as if the writer were on this host, with the source time
//! already in this node's clock. So subscribers know one kind of source only.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use noctule_discovery::{Endpoint, EndpointId, NodeId, Qos, Reliability};
use noctule_prrt::{
    Arrival, Bound, Class, Delivery as _, Ecn, FeasibilityChange, Link, LinkConfig, LinkCounters,
    Local as LinkClock, Order, Origin as LinkOrigin, Outgoing, ReceivedCounters, SentCounters, StreamId,
    group::{Datagram as GroupDatagram, GroupReceiver},
};
use noctule_shm_ring::{Memory, Origin, StartAt};
use noctule_time_sync::{Bounded, BoundedConfig, Estimate, Estimator, Exchanger, ExchangerConfig, Local};
use noctule_timebase::{Instant, Span};

use super::inbound::{Inbound, SourceClock};
use super::path::PathFigures;
use super::rings::Rings;
use super::trace::LinkTrace;
use crate::clock::{LocalClock, Raw};
use crate::sample::Route;
use crate::shared_topic::{Change, Granted, PublishedTopic, RingError, Source, SubscribedTopic, open_ring};
use crate::sync::wire::{Reply, Request};

/// Longest datagram where no network is in between: what loopback carries in one piece, sealed.
const LOOPBACK_DATAGRAM_BYTES: usize = 61_440;
/// Datagrams that every path carries, and the longest that is tried: RFC 8899, section 5.1.2, and Ethernet's jumbo frames, in bytes of UDP payload.
const PATH_DATAGRAM_BYTES: (usize, usize) = (1_200, 8_972);

/// Requests of the clock exchange that this node sends in a second, in the long run, to nodes that it hears by groups only: all of a
/// swarm ask all others, on one channel. While drift is unsettled it sends twice as many.
const GROUP_REQUESTS_PER_S: i64 = 4;
/// The shortest time between two requests to one of them while drift is unsettled, and the longest in any state: two may be lost before its clock counts as stale.
const GROUP_EXCHANGE_INTERVALS: (Span, Span) = (Span::from_ms(500), Span::from_s(4));

/// A node of another host.
#[derive(Debug)]
pub(super) struct Remote {
    link: Link,
    /// Bytes that the seal adds to each datagram.
    envelope_bytes: usize,
    clock: Clock,
    inbound: BTreeMap<EndpointId, Inbound>,
    /// Newest sequence sent of each of our writers, so that history and live samples do not overlap.
    sent: BTreeMap<EndpointId, u64>,
    /// It runs on this host, by the same clock.
    has_our_clock: bool,
    trace: Option<LinkTrace>,
    /// Times that the link was polled for a datagram.
    #[cfg(test)]
    pub(super) asked: u64,
}

/// Its clock, known by exchange.
#[derive(Debug)]
struct Clock {
    exchanger: Exchanger,
    estimator: Bounded,
    /// As estimated last, and for when: datagrams that the kernel joined are processed at one time.
    known: Option<Known>,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    at: Instant<Local>,
    estimate: Option<Estimate>,
}

impl Clock {
    fn estimate(&mut self, local: Instant<Local>) -> Option<Estimate> {
        match self.known {
            Some(Known { at, estimate }) if at == local => estimate,
            _ => {
                let estimate = self.estimator.estimate(local);
                self.known = Some(Known { at: local, estimate });
                estimate
            }
        }
    }
}

/// Configuration of a link of this node, apart from its number.
fn link_config(over_loopback: bool, envelope_bytes: usize) -> LinkConfig {
    let (base_bytes, max_bytes) = PATH_DATAGRAM_BYTES;
    let longest = if over_loopback { [LOOPBACK_DATAGRAM_BYTES; 2] } else { [base_bytes, max_bytes] };
    let [datagram_bytes_initial, datagram_bytes_max] = longest.map(|bytes| bytes - envelope_bytes);
    LinkConfig {
        datagram_bytes_base: base_bytes - envelope_bytes,
        datagram_bytes_initial,
        datagram_bytes_max,
        envelope_bytes,
        ..LinkConfig::default()
    }
}

/// The longest sample that travels to other hosts, bytes.
pub(super) fn sample_bytes_max(envelope_bytes: usize) -> usize {
    link_config(false, envelope_bytes).sample_bytes_max()
}

impl Remote {
    /// The link from `me` to `other`, which begins now; `other` addresses it by `id`. Over loopback datagrams may be long.
    pub(super) fn new(
        (me, other): (NodeId, NodeId),
        (id, over_loopback, envelope_bytes): (u16, bool, usize),
        key: [u8; 16],
        clock: &LocalClock,
        now: Instant<Raw>,
    ) -> Remote {
        let part = |id: NodeId| u32::from_le_bytes([id.0[0], id.0[1], id.0[2], id.0[3]]);
        // Both sides come to the same, and another life of either to another.
        let session = part(me) ^ part(other);
        let config = LinkConfig { session, id, ..link_config(over_loopback, envelope_bytes) };
        let exchanger = Exchanger::new(ExchangerConfig::default(), key, clock.at(now));
        let mut link = Link::new(config, link_clock(now));
        let trace = LinkTrace::start(&mut link, me, other);
        Remote {
            link,
            envelope_bytes,
            clock: Clock { exchanger, estimator: Bounded::new(BoundedConfig::default()), known: None },
            inbound: BTreeMap::new(),
            sent: BTreeMap::new(),
            has_our_clock: false,
            trace,
            #[cfg(test)]
            asked: 0,
        }
    }

    /// The same to a node of this host, which has the same clock: there is nothing to compare.
    pub(super) fn with_our_clock(self) -> Remote {
        Remote { has_our_clock: true, ..self }
    }

    /// Its clock is ours from now on.
    #[cfg(test)]
    pub(super) fn share_clock(&mut self) {
        self.has_our_clock = true;
    }

    /// Its clock, as estimated at `local`, and the time on it, ns.
    fn source_clock(&mut self, local: Instant<Local>) -> (SourceClock, Option<i64>) {
        if self.has_our_clock {
            return (SourceClock::Ours, Some(local.ns()));
        }
        let estimate = self.clock.estimate(local);
        (SourceClock::Others(estimate), estimate.map(|known| (local + known.offset).ns()))
    }

    /// Queues a sample of one of our writers, of which `payload` holds the bytes.
    pub(super) fn send(&mut self, sample: &Outgoing<'_>, payload: &Arc<[u8]>, now: Instant<Raw>) {
        // A refused sample counts as given up, one with a deadline in the link's `refused_full`; the publisher refuses those that are too long.
        let _ = self.link.send_shared(sample, payload, link_clock(now));
    }

    /// Whether a sample of one of our writers fits without any of its last `depth` given up.
    pub(super) fn has_room(&self, writer: EndpointId, payload_bytes: usize, depth: u32) -> bool {
        self.link.has_room(StreamId(writer.0), payload_bytes, depth)
    }

    /// Bytes of samples that it has still to be sent or to acknowledge.
    pub(super) fn queue_bytes(&self) -> usize {
        self.link.queue_bytes()
    }

    /// Those of them that are kept for it alone.
    pub(super) fn own_bytes(&self) -> usize {
        self.link.own_bytes()
    }

    /// One of our writers of which samples were given up for newer ones or refused, and how many since the last call.
    pub(super) fn poll_given_up(&mut self) -> Option<(EndpointId, u64)> {
        self.link.poll_given_up().map(|(writer, samples)| (EndpointId(writer.0), samples))
    }

    /// A wish of one of our writers that cannot be fulfilled, or can be again.
    pub(super) fn poll_feasibility_change(
        &mut self,
        now: Instant<Raw>,
    ) -> Option<(EndpointId, FeasibilityChange)> {
        self.link.poll_feasibility_change(link_clock(now)).map(|(writer, wish)| (EndpointId(writer.0), wish))
    }

    /// Counters of one of our deadline-bound writers on this link.
    pub(super) fn sent(&self, writer: EndpointId) -> Option<SentCounters> {
        self.link.sent(StreamId(writer.0))
    }

    /// Capacity of the path there, bytes of datagrams a second; `None`: not known.
    pub(super) fn capacity_bytes_per_s(&self) -> Option<f64> {
        self.link.capacity_bytes_per_s()
    }

    /// Counters of one of its deadline-bound writers on this link.
    pub(super) fn received(&self, writer: EndpointId) -> Option<ReceivedCounters> {
        self.link.received(StreamId(writer.0))
    }

    /// Whether it has still to receive or to acknowledge a sample of one of our writers.
    pub(super) fn is_sending(&self, writer: EndpointId) -> bool {
        self.link.is_sending(StreamId(writer.0))
    }

    /// Counters of the link.
    pub(super) fn link_counters(&self) -> LinkCounters {
        self.link.counters()
    }

    /// The estimate of its clock at `now`.
    pub(super) fn clock_estimate(&self, now: Instant<Local>) -> Option<Estimate> {
        self.clock.estimator.estimate(now)
    }

    /// Of reliable datagrams and their acknowledgements.
    pub(super) fn round_trip(&self) -> Option<Span> {
        self.link.round_trip()
    }

    /// Figures of the path to it.
    pub(super) fn path_figures(&self) -> PathFigures {
        let (loss, burst_packets) = self.link.loss();
        PathFigures { loss, burst_packets, capacity_bytes_per_s: self.link.capacity_bytes_per_s() }
    }

    /// Appends the next datagram of the link; of long samples without a deadline nothing, if `only_urgent`.
    pub(super) fn poll_transmit(
        &mut self,
        (now, only_urgent): (Instant<Raw>, bool),
        out: &mut Vec<u8>,
    ) -> bool {
        #[cfg(test)]
        {
            self.asked += 1;
        }
        let has_sent = match only_urgent {
            true => self.link.poll_transmit_urgent(link_clock(now), out),
            false => self.link.poll_transmit(link_clock(now), out),
        };
        self.drain_trace();
        has_sent
    }

    fn drain_trace(&mut self) {
        if let Some(trace) = &mut self.trace {
            trace.drain(&mut self.link);
        }
    }

    /// Whether what was queued last waits for more, as what was queued before it.
    pub(super) fn is_gathering(&self, now: Instant<Raw>) -> bool {
        self.link.is_gathering(link_clock(now))
    }

    /// Whether the other side waits for feedback.
    pub(super) fn has_urgent_feedback(&self) -> bool {
        self.link.has_urgent_feedback()
    }

    /// Whether the sample queued last ended the wait of others.
    pub(super) fn has_gathered(&self) -> bool {
        self.link.has_gathered()
    }

    /// What waits for more leaves with the next datagram.
    pub(super) fn flush(&mut self) {
        self.link.flush();
    }

    /// Whether a sample of several datagrams waits to be sent.
    pub(super) fn has_long_samples(&self) -> bool {
        self.link.has_long_samples()
    }

    /// This host would not send a datagram of so many bytes.
    pub(super) fn handle_too_long(&mut self, sealed_bytes: usize, now: Instant<Raw>) {
        self.link.handle_too_long(sealed_bytes.saturating_sub(self.envelope_bytes), link_clock(now));
    }

    /// It has another address.
    pub(super) fn handle_new_path(&mut self, now: Instant<Raw>) {
        self.link.handle_new_path(link_clock(now));
    }

    /// When the link next has something to do.
    pub(super) fn poll_timeout(&self) -> Option<Instant<Raw>> {
        self.link.poll_timeout().map(|at| Instant::from_ns(at.ns()))
    }

    /// One of our subscribers reads one of its writers from now on.
    ///
    /// # Errors
    /// No memory.
    pub(super) fn subscribe(
        &mut self,
        node: NodeId,
        writer: &Endpoint,
        topic: &SubscribedTopic,
    ) -> Result<(), RingError> {
        let most_bytes = writer.payload_bytes_max.min(topic.endpoint.payload_bytes_max);
        let inbound = match self.inbound.entry(writer.id) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                let writer_here = (writer, self.has_our_clock);
                let inbound = Inbound::new(writer_here, most_bytes, topic.history.depth())?;
                self.link.expect(StreamId(writer.id.0), most_bytes, class(&writer.qos));
                if let Some(trace) = &mut self.trace {
                    trace.note_topic(writer.id.0, &writer.topic);
                }
                place.insert(inbound)
            }
        };
        let (granted, progress) = inbound.attach(topic, writer)?;
        let begin = (granted.pins, granted.position, topic.past(writer));
        let source = source((node, writer), granted.into_memory(), begin)?;
        // What it requested itself it has; a reader that asks for nothing has the publisher's depth.
        let has_asked = topic.history.depth().is_some();
        let source = if has_asked { source.with_depth(inbound.depth) } else { source }
            .kept(progress)
            .counted_to(Arc::clone(&inbound.highest));
        if inbound.is_kept {
            inbound.grant(writer.id, &mut self.link);
        }
        topic.change(Change::Came(Box::new(source)));
        Ok(())
    }

    /// Whether all that is read from it comes by groups.
    pub(super) fn is_heard_by_groups(&self) -> bool {
        !self.inbound.is_empty() && self.inbound.values().all(|inbound| inbound.is_group)
    }

    /// Sets how often the clocks are compared, where datagrams of so many nodes arrive by groups only.
    pub(super) fn pace_exchange(&mut self, heard_by_groups: usize) {
        let config = ExchangerConfig::default();
        let shared = Span::from_s(heard_by_groups as i64) / GROUP_REQUESTS_PER_S;
        let (shortest, longest) = GROUP_EXCHANGE_INTERVALS;
        let config = match self.is_heard_by_groups() {
            true => ExchangerConfig {
                fastest_interval: (shared / 2).clamp(shortest, longest),
                slowest_interval: shared.clamp(config.slowest_interval, longest),
                ..config
            },
            false => config,
        };
        self.clock.exchanger.set_config(config);
    }

    /// One subscriber less; it may be one that never came to read. True if it was the last: then the ring is gone.
    pub(super) fn unsubscribe(&mut self, writer: EndpointId, reader: EndpointId) -> bool {
        let Some(inbound) = self.inbound.get_mut(&writer) else { return false };
        let was_last = inbound.detach(reader);
        if was_last {
            self.inbound.remove(&writer);
            self.link.forget(StreamId(writer.0));
        } else {
            inbound.grant(writer, &mut self.link);
        }
        was_last
    }

    /// Its writers that we read.
    pub(super) fn writers(&self) -> impl Iterator<Item = EndpointId> {
        self.inbound.keys().copied()
    }

    /// Lets another node of this host read what comes from one of its writers.
    ///
    /// # Errors
    /// It is not received, or has no room for another reader.
    pub(super) fn hand_on(&self, writer: EndpointId, pins: u32) -> Result<Granted, RingError> {
        let inbound = self.inbound.get(&writer).ok_or(RingError::NotReceived)?;
        inbound.hand_on(pins)
    }

    /// The newest sequence received of a writer.
    pub(super) fn last_sequence(&self, writer: EndpointId) -> Option<u64> {
        self.inbound.get(&writer)?.sequence
    }

    /// Samples of one of our writers are no longer sent. What had not arrived is given up, so if they are sent
    /// again, then from the beginning.
    pub(super) fn stop(&mut self, writer: EndpointId) {
        self.link.stop(StreamId(writer.0));
        self.sent.remove(&writer);
    }

    /// Whether a sample of one of our writers is newer than what was sent; it counts as sent then.
    pub(super) fn is_newer(&mut self, writer: EndpointId, sequence: u64) -> bool {
        let last = self.sent.entry(writer).or_insert(0);
        let newer = sequence > *last;
        *last = sequence.max(*last);
        newer
    }

    /// ECN bits for the IP header of the link's datagrams.
    pub(super) fn ecn(&self) -> Ecn {
        self.link.ecn()
    }

    /// A datagram of the link, that came before `now` if the thread was stalled. `local` is now on this node's clock, `ecn` that of its IP header.
    pub(super) fn handle_datagram(
        &mut self,
        body: &[u8],
        (came, now): (Instant<Raw>, Instant<Raw>),
        (local, ecn): (Instant<Local>, Ecn),
    ) {
        let (clock, peer_ns) = self.source_clock(local);
        let own_ns = (local - (now - came)).ns();
        let arrival = Arrival { now: link_clock(now), came: link_clock(came), own_ns, peer_ns, ecn };
        let mut rings = Rings { inbound: &mut self.inbound, clock, now, granted: None };
        // What breaks the specification is counted by the link.
        let _ = self.link.handle_datagram_into(body, arrival, &mut rings);
        // A datagram is of one writer.
        if let Some(writer) = rings.granted {
            self.grant(writer);
        }
        self.drain_trace();
    }

    /// A datagram of `length_bytes` that it sent to a group, one of whose ends `receiver` is.
    pub(super) fn handle_group_datagram(
        &mut self,
        (datagram, length_bytes): (&GroupDatagram<'_>, usize),
        receiver: &mut GroupReceiver,
        now: Instant<Raw>,
        local: Instant<Local>,
    ) {
        let (clock, peer_ns) = self.source_clock(local);
        let arrival = Arrival {
            now: link_clock(now),
            came: link_clock(now),
            own_ns: local.ns(),
            peer_ns,
            ecn: Ecn::NotCapable,
        };
        let mut rings = Rings { inbound: &mut self.inbound, clock, now, granted: None };
        let link = &mut self.link;
        receiver.handle_datagram(datagram, length_bytes, arrival, &mut |fragment, is_repaired| {
            link.handle_fragment(fragment, is_repaired, arrival, &mut |sample| rings.deliver(sample));
        });
    }

    /// A reader that keeps all of one of its writers has read on, or got more to read.
    pub(super) fn grant(&mut self, writer: EndpointId) {
        if let Some(inbound) = self.inbound.get_mut(&writer) {
            inbound.grant(writer, &mut self.link);
        }
    }

    /// One of our writers whose readers there have taken nothing for `timeout` although something waits; each such time once.
    pub(super) fn poll_held_up(&mut self, timeout: Span, now: Instant<Raw>) -> Option<EndpointId> {
        self.link.poll_held_up(timeout, link_clock(now)).map(|writer| EndpointId(writer.0))
    }

    /// Time has passed: samples that waited for one that will not come go to their readers.
    pub(super) fn handle_timeout(&mut self, now: Instant<Raw>, local: Instant<Local>) {
        let (clock, _) = self.source_clock(local);
        let mut rings = Rings { inbound: &mut self.inbound, clock, now, granted: None };
        self.link.handle_timeout(link_clock(now), &mut |sample| rings.deliver(sample));
        self.drain_trace();
    }

    /// A reply of the clock exchange that arrived at `t4`.
    pub(super) fn handle_reply(&mut self, reply: &Reply, t4: Instant<Local>) {
        let Clock { exchanger, estimator, known } = &mut self.clock;
        *known = None;
        // Why one does not count is in the counters.
        let Ok(exchange) = exchanger.handle_reply(reply.nonce, (reply.t2, reply.t3), t4) else { return };
        let _ = estimator.handle_exchange(&exchange);
        if let Some(estimate) = estimator.estimate(t4) {
            exchanger.handle_state(estimate.state, t4);
        }
    }

    /// The next request of the clock exchange, if one is due: only from nodes that we read from.
    pub(super) fn poll_request(&mut self, local: Instant<Local>) -> Option<Request> {
        if self.inbound.is_empty() || self.has_our_clock {
            return None;
        }
        let nonce = self.clock.exchanger.poll_request(local)?;
        Some(Request { nonce })
    }

    /// When the next request is due.
    pub(super) fn poll_exchange_timeout(&self) -> Option<Instant<Local>> {
        (!self.inbound.is_empty() && !self.has_our_clock).then(|| self.clock.exchanger.poll_timeout())
    }
}

/// A sample for nodes of other hosts, `now` being the time.
pub(crate) fn outgoing<'a>(
    topic: &PublishedTopic,
    (sequence, origin): (u64, Origin),
    payload: &'a [u8],
    now: Instant<Local>,
) -> Outgoing<'a> {
    Outgoing {
        writer: StreamId(topic.id.0),
        sequence,
        origin: LinkOrigin { source_time_ns: origin.source_time_ns, source_error: origin.user },
        age: now - Instant::from_ns(origin.source_time_ns),
        class: topic.class,
        depth: topic.depth,
        payload,
    }
}

/// Opens a ring of samples from the network: with so many borrows, from a position on, with so much history before.
///
/// # Errors
/// Memory that is not such a ring.
pub(super) fn source(
    (node, writer): (NodeId, &Endpoint),
    memory: (Memory, Memory),
    (pins, position, history): (u32, u64, u32),
) -> Result<Source, RingError> {
    // The first number of such a ring is any, and nothing was missed before it.
    let is_whole = position == 1;
    let start = if is_whole { StartAt::Oldest } else { StartAt::From { position, history } };
    let source = Source::new((node, writer), open_ring(memory, pins, writer.type_hash, start)?, Route::Udp);
    Ok(if is_whole || history > 0 { source } else { source.resumable() })
}

/// Nodes of other hosts, by number.
pub(super) type Remotes = BTreeMap<NodeId, Remote>;

/// How the link serves a writer of these terms.
pub(crate) fn class(qos: &Qos) -> Class {
    match (qos.reliability, qos.deadline) {
        (Reliability::BestEffort, _) => Class::BestEffort,
        (Reliability::DeadlineBound, Some(deadline)) => {
            let loss_target = f64::from(qos.loss_ppm) / 1e6;
            Class::DeadlineBound(Bound { deadline, loss_target, order: Order::Asap })
        }
        // Bound by no deadline.
        (Reliability::DeadlineBound, None) | (Reliability::Reliable, _) => Class::Reliable,
    }
}

/// The link has a marker of its own for the clock that drives it, as every core.
pub(super) fn link_clock(now: Instant<Raw>) -> Instant<LinkClock> {
    Instant::from_ns(now.ns())
}
