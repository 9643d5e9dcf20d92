//! The sender of reliable and best-effort samples: queue, fragmentation, retransmission, turns among writers.
//!
//! Samples with a deadline go first, and repairs among them ([`deadline_sender`](crate::deadline_sender)). Writers take turns, a datagram each, so
//! that a camera does not hold up an inertial sensor. What was lost goes before what is new. What was refused (its reader may not be there yet) rests before it is retransmitted,
//! so that it cannot fill the line.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use noctule_timebase::{Instant, Span};

use crate::config::SAMPLE_OVERHEAD_BYTES;
use crate::congestion::path_mtu::PathMtu;
use crate::deadline_sender::{DeadlineSender, HEADER_BYTES as BOUND_HEADER_BYTES};
use crate::feasibility::FeasibilityChange;
use crate::flow_control::{QUESTION_PAUSE_MAX, Waiting};
use crate::history::{Queued, Stream, arrived};
use crate::round_trip::RoundTrip;
use crate::sent_counters::SentCounters;
use crate::sent_packets::{Carried, Kind, PacketOutcome, SentPackets};
use crate::stream::{Arrival, Class, Ecn, Local, Outgoing, StreamId};
use crate::trace::{self, Event, GivenUp, LossRule, Part, Record, Sending as Purpose};
use crate::wire::{Blocked, Body, Datagram, FRAGMENTS_MAX, Feedback, HEADER_BYTES_MAX, Head, Limit, Load};

mod coalescing;
mod gathering;
mod transmit;

use gathering::Gathering;

/// Why a sample was not queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// It would have more fragments than can be numbered: [`LinkConfig::sample_bytes_max`](crate::LinkConfig::sample_bytes_max).
    #[error("the sample is longer than can be numbered in fragments; split it up")]
    TooLong,
    /// [`LinkConfig::queue_bytes_max`](crate::LinkConfig::queue_bytes_max) is reached by samples that are being sent.
    #[error(
        "the queue to this node is full of samples that are being sent; publish less, or raise queue_bytes_max"
    )]
    Full,
}

/// Delay before a datagram that the receiver refused is retransmitted.
const REST: Span = Span::from_ms(50);

/// Head and feedback of a datagram, beside its load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piggyback {
    pub(crate) head: Head,
    /// Of what must have its whole length whatever an envelope makes of the head.
    pub(crate) long: Head,
    pub(crate) clock_ns: i64,
    /// Gone once a datagram carries it.
    pub(crate) feedback: Option<Feedback>,
    /// With feedback a datagram is no longer than this.
    pub(crate) bytes_max: usize,
}

impl Piggyback {
    /// Appends a datagram with this load, and feedback if there is room for it.
    pub(crate) fn encode(&mut self, load: Option<Load<'_>>, out: &mut Vec<u8>) {
        let before = out.len();
        let Piggyback { head, clock_ns, feedback, bytes_max, .. } = *self;
        Datagram { head, feedback, load }.encode(clock_ns, out);
        if feedback.is_some() && load.is_some() && out.len() - before > bytes_max {
            out.truncate(before);
            Datagram { head, feedback: None, load }.encode(clock_ns, out);
        } else {
            self.feedback = None;
        }
    }
}

#[derive(Debug)]
pub(crate) struct Sending {
    fragment_bytes_max: usize,
    queue_bytes_max: usize,
    queue_bytes: usize,
    streams: BTreeMap<StreamId, Stream>,
    /// Writers with fragments never sent yet, each once, in the order of their turns.
    turns: VecDeque<StreamId>,
    lost: VecDeque<Carried>,
    /// With the time when each has rested enough.
    resting: VecDeque<(Instant<Local>, Carried)>,
    /// Writers whose readers take nothing more.
    waiting: Waiting,
    bound: DeadlineSender,
    sent_packets: SentPackets,
    /// Something reliable waits for its turn in time or for the window.
    paced: bool,
    gathering: Gathering,
    /// Kept from one datagram with several samples to the next.
    body: Body,
    /// Kept from one parity symbol to the next.
    parity: Vec<u8>,
    /// Samples of each writer given up or refused since [`poll_given_up`](Sending::poll_given_up) named it.
    given_up: BTreeMap<StreamId, u64>,
}

impl Sending {
    /// The flight's datagrams must leave room for a header and a byte.
    pub(crate) fn new(queue_bytes_max: usize, sent_packets: SentPackets) -> Sending {
        Sending {
            fragment_bytes_max: sent_packets.path_mtu().datagram_bytes() - HEADER_BYTES_MAX,
            queue_bytes_max,
            queue_bytes: 0,
            streams: BTreeMap::new(),
            turns: VecDeque::new(),
            lost: VecDeque::new(),
            resting: VecDeque::new(),
            waiting: Waiting::default(),
            bound: DeadlineSender::new(),
            sent_packets,
            paced: false,
            gathering: Gathering::default(),
            body: Body::default(),
            parity: Vec::new(),
            given_up: BTreeMap::new(),
        }
    }

    /// Queues a sample, in place of older ones of its writer that have not begun to be sent, where a limit says so.
    /// `shared` holds the bytes of `sample.payload`; without it they are copied.
    pub(crate) fn send(
        &mut self,
        sample: &Outgoing<'_>,
        shared: Option<&Arc<[u8]>>,
        now: Instant<Local>,
        counters: &mut Record,
    ) -> Result<(), SendError> {
        self.sent_packets.path_mtu_mut().demand(sample.payload.len() + HEADER_BYTES_MAX, now);
        self.follow_path(counters);
        if let Class::DeadlineBound(bound) = sample.class {
            let fragments = sample.payload.len() / self.fragment_bytes_max + 1;
            self.sent_packets.offer(
                sample.payload.len() + fragments * BOUND_HEADER_BYTES,
                bound.deadline,
                now,
            );
            let room = self.queue_bytes_max.saturating_sub(self.queue_bytes);
            self.bound.send(sample, bound, (self.fragment_bytes_max, room), (now, counters));
            return Ok(());
        }
        // As many as there would be at most, should the path become narrower.
        let fragment_bytes_min = self.sent_packets.path_mtu().base_bytes() - HEADER_BYTES_MAX;
        if sample.payload.len().div_ceil(fragment_bytes_min) > usize::from(FRAGMENTS_MAX) {
            counters.refused_too_long += 1;
            return Err(SendError::TooLong);
        }
        if !self.make_room(sample, counters) {
            counters.refused_full += 1;
            let part = trace::sample(sample.writer, sample.sequence);
            counters.note(|| Event::GivenUp { part, why: GivenUp::QueueFull });
            *self.given_up.entry(sample.writer).or_default() += 1;
            return Err(SendError::Full);
        }
        let stream = self
            .streams
            .entry(sample.writer)
            .or_insert_with(|| Stream::beginning_at(sample.writer, sample.sequence));
        stream.reliable = sample.class == Class::Reliable;
        let queued = Queued::new(sample, shared, self.fragment_bytes_max);
        self.queue_bytes += queued.cost();
        let may_gather = stream.reliable;
        stream.push(queued);
        if may_gather {
            let waiting = (stream.waiting(), sample.depth as usize);
            let is_alone = self.turns.is_empty();
            let bytes = (sample.payload.len(), self.fragment_bytes_max);
            self.gathering.handle_queued(bytes, waiting, is_alone, now);
        } else {
            self.gathering.end();
        }
        if !stream.has_turn {
            stream.has_turn = true;
            self.turns.push_back(sample.writer);
        }
        Ok(())
    }

    /// Gives up samples of the same writer that have not begun to be sent until `sample` fits its history and the
    /// queue; `false`, and nothing is given up for the queue, if it cannot fit.
    fn make_room(&mut self, sample: &Outgoing<'_>, counters: &mut Record) -> bool {
        let most_bytes = self.queue_bytes_max.saturating_sub(self.bound.queue_bytes());
        let cost = sample.payload.len() + SAMPLE_OVERHEAD_BYTES;
        let stream = self
            .streams
            .entry(sample.writer)
            .or_insert_with(|| Stream::beginning_at(sample.writer, sample.sequence));
        let before = counters.given_up;
        if stream.reliable != (sample.class == Class::Reliable) {
            self.queue_bytes -= stream.give_up_all(counters);
        }
        while stream.waiting() >= sample.depth.max(1) as usize {
            let Some(freed_bytes) = stream.give_up_oldest_waiting(counters) else { break };
            self.queue_bytes -= freed_bytes;
        }
        let mut fits = self.queue_bytes + cost <= most_bytes;
        if !fits && self.queue_bytes + cost <= most_bytes + stream.waiting_bytes() {
            while self.queue_bytes + cost > most_bytes {
                let Some(freed_bytes) = stream.give_up_oldest_waiting(counters) else { break };
                self.queue_bytes -= freed_bytes;
            }
            fits = self.queue_bytes + cost <= most_bytes;
        }
        if counters.given_up > before {
            *self.given_up.entry(sample.writer).or_default() += counters.given_up - before;
        }
        fits
    }

    /// Whether a sample of so many bytes can be queued and `depth` of its writer be neither sent nor acknowledged,
    /// without giving up any. A writer fills at most half of the queue, so that a reader that stops reading holds up no other.
    pub(crate) fn has_room(&self, writer: StreamId, payload_bytes: usize, depth: u32) -> bool {
        let unsettled = self.streams.get(&writer).map_or(0, Stream::unsettled);
        let cost = payload_bytes + SAMPLE_OVERHEAD_BYTES;
        let (all, half) = (self.queue_bytes_max, self.queue_bytes_max / 2);
        let total = self.queue_bytes() + cost;
        // To add up what is queued of a writer takes a look at each sample.
        let is_own_share =
            || unsettled == 0 || self.streams.get(&writer).is_none_or(|own| own.bytes() + cost <= half);
        unsettled < depth.max(1) as usize && (total <= half || total <= all && is_own_share())
    }

    /// The reader of a writer takes its samples up to a limit.
    pub(crate) fn handle_limit(&mut self, limit: Limit) {
        let writer = limit.writer;
        let Some(stream) = self.streams.get_mut(&writer).filter(|stream| stream.reliable) else { return };
        stream.set_limit(limit.position);
        let lost = &mut self.lost;
        self.resting.retain(|(_, carried)| {
            let is_free = carried.writer == writer && stream.is_within_limit(carried.position);
            lost.extend(is_free.then_some(*carried));
            !is_free
        });
        if stream.next_unsent().is_some() && !stream.has_turn {
            stream.has_turn = true;
            self.turns.push_back(writer);
        }
        if !stream.is_blocked() {
            self.waiting.end(writer);
        }
    }

    /// A question after a limit, if one is due.
    pub(crate) fn poll_blocked(&mut self, now: Instant<Local>) -> Option<Blocked> {
        while let Some(writer) = self.waiting.poll_question(now) {
            match self.streams.get(&writer).filter(|stream| stream.is_blocked()) {
                Some(stream) => return Some(Blocked { writer, oldest: stream.first_position() }),
                // What waited was given up.
                None => self.waiting.end(writer),
            }
        }
        None
    }

    /// A writer whose reader has received nothing for `timeout` although samples wait; each such time once.
    pub(crate) fn poll_held_up(&mut self, timeout: Span, now: Instant<Local>) -> Option<StreamId> {
        self.waiting.poll_long(timeout, now)
    }

    /// Whether the sample queued last only waits for more, and not as the first that does.
    pub(crate) fn is_gathering(&self, now: Instant<Local>) -> bool {
        self.gathering.has_joined()
            && self.gathering.is_on(now)
            && self.lost.is_empty()
            && self.bound.is_empty()
    }

    /// Whether the sample queued last ended the wait of others.
    pub(crate) fn has_gathered(&self) -> bool {
        self.gathering.has_gathered()
    }

    /// What waits for more waits no longer.
    pub(crate) fn flush(&mut self) {
        self.gathering.end();
    }

    /// Whether fragments of a sample of several wait to be sent, for the first time or again.
    pub(crate) fn has_long_samples(&self) -> bool {
        let is_lost = self.lost.front().is_some_and(|carried| carried.kind != Kind::Fragment { count: 1 });
        let waits = |writer| self.streams.get(writer).is_some_and(Stream::has_long_unsent);
        is_lost || self.turns.iter().any(waits)
    }

    /// A writer of which samples were given up for newer ones or refused, and how many since it was last named.
    pub(crate) fn poll_given_up(&mut self) -> Option<(StreamId, u64)> {
        self.given_up.pop_first()
    }

    /// Drops what is queued of a writer. Its numbering goes on, should it come back.
    pub(crate) fn stop(&mut self, writer: StreamId, counters: &mut Record) {
        self.bound.stop(writer);
        self.waiting.end(writer);
        let Some(stream) = self.streams.get_mut(&writer) else { return };
        stream.clear_limit();
        self.queue_bytes -= stream.give_up_all(counters);
    }

    /// Whether anything of a writer is queued.
    pub(crate) fn holds(&self, writer: StreamId) -> bool {
        self.bound.holds(writer) || self.streams.get(&writer).is_some_and(|stream| !stream.is_empty())
    }

    /// Gives when the newest datagram that it names had left, if that is news.
    pub(crate) fn handle_feedback(
        &mut self,
        feedback: &Feedback,
        arrival: Arrival,
        counters: &mut Record,
    ) -> Option<Instant<Local>> {
        let now = arrival.now;
        let Sending { sent_packets, streams, queue_bytes, lost, resting, bound, .. } = self;
        let known =
            sent_packets.handle_feedback(feedback, (arrival.came, now), &mut |outcome, packet, carried| {
                counters.lost_packets += u64::from(matches!(outcome, PacketOutcome::Lost(_)));
                counters.note_each(carried.each(), |each| {
                    let part = part(streams, bound, each);
                    match outcome {
                        PacketOutcome::Arrived => Event::Acknowledged { packet, part },
                        PacketOutcome::Refused => Event::Refused { packet, part },
                        PacketOutcome::Lost(rule) => Event::Lost { packet, part, rule },
                    }
                });
                match outcome {
                    _ if carried.kind == Kind::Symbol => bound.settle(outcome, packet, carried, now),
                    PacketOutcome::Arrived => {
                        *queue_bytes -= carried.each().map(|each| arrived(streams, each)).sum::<usize>();
                    }
                    PacketOutcome::Refused => {
                        for each in carried.each() {
                            if let Some(stream) = streams.get_mut(&each.writer) {
                                stream.refused(each.position);
                            }
                            let at = resting.partition_point(|(other, _)| *other <= now + REST);
                            resting.insert(at, (now + REST, each));
                        }
                    }
                    PacketOutcome::Lost(_) => lost.extend(carried.each()),
                }
            });
        counters.impossible_feedback += u64::from(known.is_none());
        let left = known.flatten();
        if let (Some(left), Some(peer_ns)) = (left, arrival.peer_ns) {
            let left_peer_ns = peer_ns.saturating_sub((now - left).ns());
            sent_packets.measure_way_there(Span::from_ns(feedback.arrived_ns.saturating_sub(left_peer_ns)));
        }
        left
    }

    /// This host took in now what it got before.
    pub(crate) fn handle_wait(&mut self, came: Instant<Local>, now: Instant<Local>) {
        self.bound.handle_wait(came, now);
    }

    /// Gives up packets whose time-out has passed, wakes fragments that have rested.
    pub(crate) fn handle_timeout(&mut self, now: Instant<Local>, counters: &mut Record) {
        let Sending { sent_packets, lost, streams, bound, .. } = self;
        let passed = sent_packets.handle_timeout(now, &mut |_, packet, carried| {
            counters.lost_packets += 1;
            let rule = LossRule::Timeout;
            let lose = |each| Event::Lost { packet, part: part(streams, bound, each), rule };
            counters.note_each(carried.each(), lose);
            lost.extend(carried.each());
        });
        counters.timeouts += u64::from(passed);
        while self.resting.front().is_some_and(|(until, _)| *until <= now) {
            let Some((_, carried)) = self.resting.pop_front() else { break };
            let stream = self.streams.get(&carried.writer);
            if stream.is_none_or(|stream| stream.is_within_limit(carried.position)) {
                self.lost.push_back(carried);
            } else {
                let until = now + QUESTION_PAUSE_MAX;
                let at = self.resting.partition_point(|(other, _)| *other <= until);
                self.resting.insert(at, (until, carried));
                self.waiting.begin(carried.writer, now);
            }
        }
        self.follow_path(counters);
    }

    /// Datagrams are as long as the path carries from now on.
    fn follow_path(&mut self, counters: &mut Record) {
        let fragment_bytes_max = self.sent_packets.path_mtu().datagram_bytes() - HEADER_BYTES_MAX;
        if fragment_bytes_max == self.fragment_bytes_max {
            return;
        }
        counters.path_narrowed += u64::from(fragment_bytes_max < self.fragment_bytes_max);
        self.fragment_bytes_max = fragment_bytes_max;
        self.sent_packets.resize();
        self.bound.give_up_longer(fragment_bytes_max);
        for (writer, stream) in &mut self.streams {
            stream.cut_again(*writer, fragment_bytes_max, &mut self.lost);
        }
    }

    /// The number of the next packet, and the highest that is known to have arrived.
    pub(crate) fn packets(&self) -> (u64, u64) {
        (self.sent_packets.next_number(), self.sent_packets.newest_arrived())
    }

    /// What goes out from now on takes another way.
    pub(crate) fn handle_new_path(&mut self, now: Instant<Local>) {
        self.sent_packets.handle_new_path(now);
    }

    /// What every datagram carries for the queues on its way; and how many were marked.
    pub(crate) fn ecn(&self) -> (Ecn, u64) {
        self.sent_packets.ecn()
    }

    /// How long datagrams may be.
    pub(crate) fn path_mtu(&self) -> &PathMtu {
        self.sent_packets.path_mtu()
    }

    /// The same, to be changed.
    pub(crate) fn path_mtu_mut(&mut self) -> &mut PathMtu {
        self.sent_packets.path_mtu_mut()
    }

    /// Whether [`poll_transmit`](Sending::poll_transmit) would find nothing now: that is asked after each datagram that comes, and less
    /// work than looking.
    pub(crate) fn has_nothing(&mut self, now: Instant<Local>) -> bool {
        let has_nothing = self.lost.is_empty()
            && (self.turns.is_empty() || self.gathering.is_on(now))
            && self.bound.is_empty()
            && self.path_mtu().timeout().is_none_or(|at| now < at);
        self.paced &= !has_nothing;
        has_nothing
    }

    /// Appends the next datagram to `out`, if one may be sent; no fragment of a longer sample without a deadline, if
    /// `only_urgent`.
    pub(crate) fn poll_transmit(
        &mut self,
        (now, only_urgent): (Instant<Local>, bool),
        piggyback: &mut Piggyback,
        out: &mut Vec<u8>,
        counters: &mut Record,
    ) -> bool {
        if let Some(next) = self.bound.next(&mut self.sent_packets, now, counters) {
            let load = self.bound.load(&next, &mut self.parity);
            let before = out.len();
            piggyback.encode(load, out);
            let (packet, bytes) = (Some(self.sent_packets.next_number()), (out.len() - before) as u64);
            let why = next.purpose();
            counters.note(|| Event::Sent { packet, part: self.bound.part(next.carried), bytes, why });
            self.note_in_flight(next.carried, out.len() - before, now);
            return true;
        }
        let packet = self.sent_packets.next_number();
        if let Some(bytes) = self.sent_packets.path_mtu_mut().poll_probe(packet, now) {
            counters.path_probes += 1;
            self.transmit_probe(bytes, now, piggyback, out);
            return true;
        }
        let may_send = self.sent_packets.ready_at().is_some_and(|ready| ready <= now);
        self.paced = !may_send && !self.lost.is_empty();
        let is_held_back = |kind| only_urgent && !matches!(kind, Kind::Fragment { count: 1 });
        if may_send {
            while self.lost.front().is_some_and(|carried| !is_held_back(carried.kind)) {
                let Some(carried) = self.lost.pop_front() else { break };
                if self.is_wanted(carried) {
                    counters.repeated += 1;
                    let before = out.len();
                    self.transmit(carried, now, piggyback, out);
                    self.note_sent(carried, Purpose::Retransmission, out.len() - before, counters);
                    return true;
                }
            }
        }
        if self.gathering.is_on(now) {
            return false;
        }
        self.gathering.end();
        for _ in 0..self.turns.len() {
            let Some(writer) = self.turns.pop_front() else { break };
            let Some(stream) = self.streams.get_mut(&writer) else { continue };
            let Some((position, index)) = stream.next_unsent() else {
                stream.has_turn = false;
                if stream.is_blocked() {
                    self.waiting.begin(writer, now);
                }
                continue;
            };
            self.turns.push_back(writer);
            let count = stream.sample(position).map_or(0, |sample| sample.count);
            if is_held_back(Kind::Fragment { count }) {
                continue;
            }
            if stream.reliable && !may_send {
                self.paced = true;
                continue;
            }
            let unsent = stream.unsent_in_limit();
            let carried = Carried { writer, position, index, kind: Kind::Fragment { count } };
            let carried = self.coalesce(carried, unsent, piggyback.clock_ns);
            let before = out.len();
            self.transmit(carried, now, piggyback, out);
            self.note_sent(carried, Purpose::First, out.len() - before, counters);
            for _ in carried.each() {
                self.queue_bytes -= self.streams.get_mut(&writer).map_or(0, Stream::advance);
            }
            return true;
        }
        false
    }

    /// When [`handle_timeout`](Sending::handle_timeout) next has something to do.
    pub(crate) fn timeout(&self) -> Option<Instant<Local>> {
        let rested = self.resting.front().map(|(until, _)| *until);
        let paced = self.sent_packets.ready_at().filter(|_| self.paced);
        self.sent_packets
            .timeout()
            .into_iter()
            .chain(rested)
            .chain(paced)
            .chain(self.bound.timeout())
            .chain(self.waiting.timeout())
            .chain(self.path_mtu().timeout())
            .chain(self.gathering.until().filter(|_| !self.turns.is_empty()))
            .min()
    }

    pub(crate) fn round_trip(&self) -> Option<RoundTrip> {
        self.sent_packets.round_trip()
    }

    /// Counters of a stream with a deadline; `None` for others.
    pub(crate) fn sent_counters(&self, writer: StreamId) -> Option<SentCounters> {
        self.bound.counters(writer)
    }

    /// Next change of a stream's feasibility.
    pub(crate) fn poll_feasibility_change(
        &mut self,
        now: Instant<Local>,
    ) -> Option<(StreamId, FeasibilityChange)> {
        self.bound.poll_feasibility_change(&mut self.sent_packets, now)
    }

    /// Delivery rate while the congestion window was full.
    pub(crate) fn capacity_bytes_per_s(&self) -> Option<f64> {
        self.sent_packets.capacity_bytes_per_s()
    }

    /// Share of datagrams lost, and the mean number in a row.
    pub(crate) fn loss(&self) -> (f64, f64) {
        (self.sent_packets.loss().share(), self.sent_packets.loss().mean_burst())
    }

    /// Bytes of the samples held, with [`SAMPLE_OVERHEAD_BYTES`] each.
    pub(crate) fn queue_bytes(&self) -> usize {
        self.queue_bytes + self.bound.queue_bytes()
    }

    /// The part of [`queue_bytes`](Sending::queue_bytes) that is not shared: everything but payloads.
    pub(crate) fn own_bytes(&self) -> usize {
        let samples: usize = self.streams.values().map(Stream::len).sum();
        samples * SAMPLE_OVERHEAD_BYTES + self.bound.queue_bytes()
    }

    fn is_wanted(&self, carried: Carried) -> bool {
        let sample = self.streams.get(&carried.writer).and_then(|stream| stream.sample(carried.position));
        sample.is_some_and(|sample| {
            carried.kind == sample.kind() && !sample.has_arrived() && !sample.arrived.contains(carried.index)
        })
    }
}

/// Sample and part of it that a packet carries.
fn part(streams: &BTreeMap<StreamId, Stream>, bound: &DeadlineSender, carried: Carried) -> Part {
    if carried.kind == Kind::Symbol {
        return bound.part(carried);
    }
    let sample = streams.get(&carried.writer).and_then(|stream| stream.sample(carried.position));
    let sequence = sample.map(|sample| sample.sequence);
    Part { writer: carried.writer, sequence, part: carried.index }
}
