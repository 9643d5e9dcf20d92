//! A node of another host: the link to it, its clock, and the samples that come from it.
//!
//! Samples of one of its writers go into a ring, as if the writer were on this host, with the source time
//! already in this node's clock. So subscribers know one kind of source only.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use noctule_discovery::{Endpoint, EndpointId, NodeId, Qos, Reliability};
use noctule_prrt::{
    Arrival, Bound, Class, Delivered, Link, LinkConfig, Local as LinkClock, Order, Outgoing,
    ReceivedCounters, SentCounters, StreamId, Wish,
};
use noctule_shm_ring::{Origin, PINS_PER_READER, Reader, RingConfig, StartAt, Writer};
use noctule_time_sync::{
    Bounded, BoundedConfig, Estimate, Estimator, Exchanger, ExchangerConfig, Local, Remote as RemoteClock,
};
use noctule_timebase::{Instant, Span};

use super::offer::{Offer, open_ring};
use crate::clock::{LocalClock, Raw};
use crate::sample::{Route, pack_widths};
use crate::subscriber::{Change, Source, SubscribedTopic};
use crate::sync::wire::{Reply, Request};

/// Longest datagram where no network is in between: what loopback carries in one piece, sealed.
const LOOPBACK_DATAGRAM_BYTES: usize = 61_440;

/// A node of another host.
#[derive(Debug)]
pub(super) struct Remote {
    link: Link,
    clock: Clock,
    inbound: BTreeMap<EndpointId, Inbound>,
    /// Newest sequence sent of each of our writers, so that history and live samples do not overlap.
    sent: BTreeMap<EndpointId, u64>,
}

/// Its clock, known by exchange.
#[derive(Debug)]
struct Clock {
    exchanger: Exchanger,
    estimator: Bounded,
}

/// One of its writers that we read.
#[derive(Debug)]
struct Inbound {
    writer: Writer,
    offer: Offer,
    /// Those of our subscribers that read it.
    readers: BTreeSet<EndpointId>,
    /// Who watches the deadline asks when the last came.
    has_deadline: bool,
}

impl Remote {
    /// The link from `me` to `other`, which begins now. Over loopback datagrams may be long.
    pub(super) fn new(
        (me, other): (NodeId, NodeId),
        over_loopback: bool,
        key: [u8; 16],
        clock: &LocalClock,
        now: Instant<Raw>,
    ) -> Remote {
        let part = |id: NodeId| u32::from_le_bytes([id.0[0], id.0[1], id.0[2], id.0[3]]);
        // Both sides come to the same, and another life of either to another.
        let default = LinkConfig::default();
        let datagram_bytes_max =
            if over_loopback { LOOPBACK_DATAGRAM_BYTES } else { default.datagram_bytes_max };
        let config = LinkConfig { session: part(me) ^ part(other), datagram_bytes_max, ..default };
        let exchanger = Exchanger::new(ExchangerConfig::default(), key, clock.at(now));
        Remote {
            link: Link::new(config, link_clock(now)),
            clock: Clock { exchanger, estimator: Bounded::new(BoundedConfig::default()) },
            inbound: BTreeMap::new(),
            sent: BTreeMap::new(),
        }
    }

    /// Queues a sample of one of our writers.
    pub(super) fn send(&mut self, sample: &Outgoing<'_>, now: Instant<Raw>) {
        self.link.send(sample, link_clock(now));
    }

    /// Its readers want no more of one of our writers.
    pub(super) fn stop(&mut self, writer: EndpointId) {
        self.link.stop(StreamId(writer.0));
    }

    /// A wish of one of our writers that cannot be fulfilled, or can be again.
    pub(super) fn poll_wish(&mut self, now: Instant<Raw>) -> Option<(EndpointId, Wish)> {
        self.link.poll_wish(link_clock(now)).map(|(writer, wish)| (EndpointId(writer.0), wish))
    }

    /// What was sent there of one of our deadline-bound writers.
    pub(super) fn sent(&self, writer: EndpointId) -> Option<SentCounters> {
        self.link.sent(StreamId(writer.0))
    }

    /// What came from there of one of its deadline-bound writers.
    pub(super) fn received(&self, writer: EndpointId) -> Option<ReceivedCounters> {
        self.link.received(StreamId(writer.0))
    }

    /// Whether it has still to get a sample of one of our writers, or to say that it has.
    pub(super) fn is_sending(&self, writer: EndpointId) -> bool {
        self.link.is_sending(StreamId(writer.0))
    }

    /// Appends the next datagram of the link.
    pub(super) fn poll_transmit(&mut self, now: Instant<Raw>, out: &mut Vec<u8>) -> bool {
        self.link.poll_transmit(link_clock(now), out)
    }

    /// When the link next has something to do.
    pub(super) fn poll_timeout(&self) -> Option<Instant<Raw>> {
        self.link.poll_timeout().map(|at| Instant::from_ns(at.ns()))
    }

    /// One of our subscribers reads one of its writers from now on.
    ///
    /// # Errors
    /// No memory, in words.
    pub(super) fn subscribe(
        &mut self,
        node: NodeId,
        writer: &Endpoint,
        topic: &SubscribedTopic,
    ) -> Result<(), String> {
        let most_bytes = writer.payload_bytes_max.min(topic.endpoint.payload_bytes_max);
        let inbound = match self.inbound.entry(writer.id) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                let inbound = Inbound::new(writer, most_bytes)?;
                self.link.expect(StreamId(writer.id.0), most_bytes, class(&writer.qos));
                place.insert(inbound)
            }
        };
        let reader = inbound.reader(topic.pins, writer.type_hash)?;
        inbound.readers.insert(topic.id);
        topic.change(Change::Came(Box::new(Source::new((node, writer), reader, Route::Udp))));
        Ok(())
    }

    /// One subscriber less; it may be one that never came to read.
    pub(super) fn unsubscribe(&mut self, writer: EndpointId, reader: EndpointId) {
        let Some(inbound) = self.inbound.get_mut(&writer) else { return };
        inbound.readers.remove(&reader);
        if inbound.readers.is_empty() {
            self.inbound.remove(&writer);
            self.link.forget(StreamId(writer.0));
        }
    }

    /// Whether a sample of one of our writers is newer than what was sent; it counts as sent then.
    pub(super) fn is_newer(&mut self, writer: EndpointId, sequence: u64) -> bool {
        let last = self.sent.entry(writer).or_insert(0);
        let newer = sequence > *last;
        *last = sequence.max(*last);
        newer
    }

    /// A datagram of the link. `local` is now on this node's clock.
    pub(super) fn handle_datagram(&mut self, body: &[u8], now: Instant<Raw>, local: Instant<Local>) {
        let estimate = self.clock.estimator.estimate(local);
        let peer_ns = estimate.map(|known| (local + known.offset).ns());
        let arrival = Arrival { now: link_clock(now), own_ns: local.ns(), peer_ns };
        let inbound = &mut self.inbound;
        // What breaks the specification is counted by the link.
        let _ = self.link.handle_datagram(body, arrival, &mut |sample| {
            if let Some(inbound) = inbound.get_mut(&EndpointId(sample.writer.0)) {
                inbound.take(&sample, estimate, now);
            }
        });
    }

    /// Time has passed: samples that waited for one that will not come go to their readers.
    pub(super) fn handle_timeout(&mut self, now: Instant<Raw>, local: Instant<Local>) {
        let estimate = self.clock.estimator.estimate(local);
        let inbound = &mut self.inbound;
        self.link.handle_timeout(link_clock(now), &mut |sample| {
            if let Some(inbound) = inbound.get_mut(&EndpointId(sample.writer.0)) {
                inbound.take(&sample, estimate, now);
            }
        });
    }

    /// A reply of the clock exchange that arrived at `t4`.
    pub(super) fn handle_reply(&mut self, reply: &Reply, t4: Instant<Local>) {
        let Clock { exchanger, estimator } = &mut self.clock;
        // Why one does not count is in the counters.
        let Ok(exchange) = exchanger.handle_reply(reply.nonce, (reply.t2, reply.t3), t4) else { return };
        let _ = estimator.handle_exchange(&exchange);
        if let Some(estimate) = estimator.estimate(t4) {
            exchanger.handle_state(estimate.state, t4);
        }
    }

    /// The next request of the clock exchange, if one is due: only from whom we read.
    pub(super) fn poll_request(&mut self, local: Instant<Local>) -> Option<Request> {
        if self.inbound.is_empty() {
            return None;
        }
        let nonce = self.clock.exchanger.poll_request(local)?;
        Some(Request { nonce })
    }

    /// When the next request is due.
    pub(super) fn poll_exchange_timeout(&self) -> Option<Instant<Local>> {
        (!self.inbound.is_empty()).then(|| self.clock.exchanger.poll_timeout())
    }
}

impl Inbound {
    fn new(writer: &Endpoint, most_bytes: u32) -> Result<Inbound, String> {
        let config = RingConfig {
            history: writer.qos.depth,
            pins: 2 * PINS_PER_READER,
            payload_bytes_max: most_bytes as usize,
            type_hash: writer.type_hash,
        };
        let has_deadline = writer.qos.deadline.is_some();
        let offer = Offer::new(config).map_err(|error| error.to_string())?;
        let writer = offer.make()?.ok_or("the ring is there already")?;
        Ok(Inbound { writer, offer, readers: BTreeSet::new(), has_deadline })
    }

    fn reader(&self, pins: u32, type_hash: u64) -> Result<Reader, String> {
        let granted = self.offer.attach(pins)?;
        // What this host received before it was wanted by anybody is not there; what comes from now on is.
        let start = StartAt::From { position: granted.position, history: 0 };
        open_ring((granted.data, granted.control), granted.pins, type_hash, start)
    }

    fn take(&mut self, sample: &Delivered<'_>, estimate: Option<Estimate>, now: Instant<Raw>) {
        self.writer.skip_numbers(sample.missed);
        let remote = Instant::<RemoteClock>::from_ns(sample.source_time_ns);
        let (source_time, bound, sigma) = match estimate {
            None => (Instant::MIN, None, None),
            Some(known) => (remote.translate::<Local>(Span::ZERO - known.offset), known.bound, known.sigma),
        };
        let origin = Origin { source_time_ns: source_time.ns(), user: pack_widths(bound, sigma) };
        if self.has_deadline {
            self.writer.stamp(now.ns());
        }
        // Longer ones were not expected, so the link has not let them through.
        if let Ok(wake) = self.writer.copy_in(sample.payload, origin) {
            self.writer.wake(wake);
        }
    }
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
fn link_clock(now: Instant<Raw>) -> Instant<LinkClock> {
    Instant::from_ns(now.ns())
}
