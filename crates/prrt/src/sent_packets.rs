//! Numbered datagrams in flight: acknowledgement, loss detection, RTT, retransmission time-out (RTO), congestion window.
//!
//! A retransmission has a new packet number, so that an acknowledgement is never ambiguous (RFC 9002, section 3.1). The rules of loss detection
//! are the packet threshold and the time threshold (RFC 9002, section 6.1; with reordering as in RACK, RFC 8985), in
//! [`loss_detection`]; a reliable packet is lost, too, when no feedback came for the RTO. RTO and
//! smoothed RTT: RFC 6298, with a shorter floor. How many may be in flight: [window](crate::congestion::window).

use std::collections::VecDeque;

use noctule_timebase::{Instant, Span};

use crate::ack_state::{ACK_ELICITING_THRESHOLD, ACK_RANGE_PACKETS, MAX_ACK_DELAY, PACKET_THRESHOLD};
use crate::congestion::bandwidth::{Bandwidth, Passage};
use crate::congestion::ecn::EcnValidation;
use crate::congestion::path_delay::PathDelay;
use crate::congestion::path_mtu::PathMtu;
use crate::congestion::rate_limit::RateLimit;
use crate::congestion::window::{Arrived, PACKET_OVERHEAD_BYTES, Window, WindowLimits};
use crate::delay_table::{DelayTable, Quantiles};
use crate::gilbert::{Departure, Gilbert};
use crate::loss::LossEstimator;
use crate::round_trip::RoundTrip;
use crate::stream::{Ecn, Local, StreamId};
use crate::trace::LossRule;
use crate::wire::Feedback;

mod loss_detection;

/// Packets remembered at once, those given up for lost included.
const PACKETS_LIMIT: usize = 8_192;
const TIMEOUT_FLOOR: Span = Span::from_ms(10);
const TIMEOUT_LIMIT: Span = Span::from_s(1);
/// Before the first round trip has been measured.
const TIMEOUT_INITIAL: Span = Span::from_ms(100);
/// Eight time-outs are waited for at most: what a radio loses for seconds is reported soon after.
const DOUBLINGS_LIMIT: u32 = 3;
/// A packet with a deadline without feedback for so long is given up.
const STALE: Span = Span::from_s(2);
/// Variations of the round trip after which a datagram that feedback does not name is lost (RFC 6298, section 2.3).
const TIMEOUT_VARIATIONS: i64 = 4;
/// The same before a deadline: more leave fewer rounds, and what is bought in advance for that costs more than a repeat
/// in vain.
const OVERDUE_VARIATIONS: i64 = 2;
/// The reordering window fades to 1/e within this time.
const REORDERING_MEMORY: Span = Span::from_s(5);
/// Packets of a long sample leave within this.
const TOGETHER: Span = Span::from_ms(4);
/// Measurements over which the longest wait of a thread fades.
const WAITS_FADE: i64 = 64;
/// Beyond that, before a datagram that feedback does not name is lost.
const OVERDUE_MARGIN: Span = Span::from_us(200);

/// The load of a packet: a fragment of a sample that may be gone by the time its fate is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Carried {
    pub(crate) writer: StreamId,
    pub(crate) position: u64,
    pub(crate) index: u16,
    pub(crate) kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A fragment of a reliable sample that was cut into so many.
    Fragment { count: u16 },
    /// So many reliable samples, whole, the first of them at `position`.
    Samples { count: u16 },
    /// With a deadline: `position` is a block and `index` a symbol.
    Symbol,
    /// Of the path: it carries nothing, and its loss teaches nothing but that.
    Probe,
}

impl Carried {
    fn is_reliable(&self) -> bool {
        matches!(self.kind, Kind::Fragment { .. } | Kind::Samples { .. })
    }

    /// Several samples one by one; anything else is itself.
    pub(crate) fn each(self) -> impl Iterator<Item = Carried> {
        let (count, kind) = match self.kind {
            Kind::Samples { count } => (count, Kind::Fragment { count: 1 }),
            kind => (1, kind),
        };
        let first = self.position;
        (0..count).map(move |place| Carried { position: first + u64::from(place), kind, ..self })
    }
}

/// The fate of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PacketOutcome {
    /// It arrived and was taken.
    Arrived,
    /// It arrived, and the other side has no use for it yet.
    Refused,
    /// It did not, by this rule.
    Lost(LossRule),
}

#[derive(Debug)]
pub(crate) struct SentPackets {
    limits: WindowLimits,
    /// Numbered from `first` without gaps.
    packets: VecDeque<Packet>,
    first: u64,
    newest_arrived: u64,
    in_flight_bytes: usize,
    window: Window,
    dispersion: Bandwidth,
    /// Bytes of all packets that arrived.
    arrived_bytes: u64,
    round_trip: Option<RoundTrip>,
    /// Of round trips, and of the way there as far as the other side's clock is known.
    round_trips: DelayTable,
    ways_there: DelayTable,
    /// Packets that arrived although they had been overtaken took so much longer than the round trip, at most; fading.
    reordering: Span,
    measured_at: Instant<Local>,
    /// How long packets, or feedback on them, lay unread in sockets because a thread woke late: the longest of late, fading.
    waits: Span,
    /// Later packets that must have arrived before one counts as lost.
    later: u64,
    /// The newest packet whose fate is known, and whether it was lost.
    known: (Departure, bool),
    heard_at: Instant<Local>,
    /// No packet before this one is in flight.
    overtaken: u64,
    /// Fates are recorded in the order of sending, up to here.
    recorded: u64,
    loss: LossEstimator,
    /// Of what has a deadline.
    pace: RateLimit,
    path_delay: PathDelay,
    path_mtu: PathMtu,
    ecn: EcnValidation,
    marked: u64,
    doublings: u32,
    /// The last time that an acknowledgement or a first packet started the time-out anew.
    progress_at: Instant<Local>,
}

#[derive(Clone, Copy, Debug)]
struct Packet {
    carried: Carried,
    bytes: usize,
    /// Bytes that it counts against the window.
    cost_bytes: usize,
    sent_at: Instant<Local>,
    /// Bytes with a deadline that had left before it.
    sent_before: u64,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    InFlight,
    /// Given up for lost; an acknowledgement may still prove otherwise.
    Lost,
    /// Given up, and no feedback that could have named it came: it says nothing of the path.
    Unreportable,
    Settled,
}

impl SentPackets {
    pub(crate) fn new(limits: WindowLimits, path_mtu: PathMtu, now: Instant<Local>) -> SentPackets {
        SentPackets {
            limits,
            packets: VecDeque::new(),
            first: 0,
            newest_arrived: 0,
            in_flight_bytes: 0,
            window: Window::new(limits, now),
            dispersion: Bandwidth::default(),
            arrived_bytes: 0,
            round_trip: None,
            round_trips: DelayTable::new(),
            ways_there: DelayTable::new(),
            reordering: Span::ZERO,
            measured_at: now,
            waits: Span::ZERO,
            later: 1,
            known: (Departure { packet: 0, sent_at: now }, false),
            heard_at: now,
            overtaken: 0,
            recorded: 0,
            loss: LossEstimator::new(),
            pace: RateLimit::new(now),
            path_delay: PathDelay::new(now),
            path_mtu,
            ecn: EcnValidation::new(),
            marked: 0,
            doublings: 0,
            progress_at: now,
        }
    }

    /// Bytes that a datagram counts against the window.
    pub(crate) fn cost(datagram_bytes: usize) -> usize {
        datagram_bytes + PACKET_OVERHEAD_BYTES
    }

    /// When one more packet may be sent, in the past if at once; `None` while the window is full. One always fits if
    /// none is on its way.
    pub(crate) fn ready_at(&self) -> Option<Instant<Local>> {
        self.has_room().then(|| self.window.ready_at())
    }

    /// How many samples of so many bytes the window takes.
    pub(crate) fn samples_in_window(&self, sample_bytes: usize) -> usize {
        let room_bytes = self.window.with_waits(self.waits).saturating_sub(self.in_flight_bytes);
        room_bytes / SentPackets::cost(sample_bytes)
    }

    fn has_room(&self) -> bool {
        let fits = self.in_flight_bytes + self.limits.packet_bytes <= self.window.with_waits(self.waits);
        let remembered = self.packets.len() < PACKETS_LIMIT
            || self.packets.front().is_some_and(|packet| packet.state != State::InFlight);
        remembered && (fits || self.in_flight_bytes == 0)
    }

    /// The number of the next packet.
    pub(crate) fn next_number(&self) -> u64 {
        self.first + self.packets.len() as u64
    }

    /// The highest number that is known to have arrived; 0 before the first.
    pub(crate) fn newest_arrived(&self) -> u64 {
        self.newest_arrived
    }

    /// The packet [`next_number`](SentPackets::next_number) has been sent. What has a deadline does not count
    /// against the window. Gives a reliable packet that had to be forgotten: it is to be retransmitted.
    pub(crate) fn sent(&mut self, carried: Carried, bytes: usize, now: Instant<Local>) -> Option<Carried> {
        let mut forgotten = None;
        if self.packets.len() >= PACKETS_LIMIT
            && let Some(packet) = self.packets.pop_front()
        {
            self.first += 1;
            self.recorded = self.recorded.max(self.first);
            if packet.state == State::InFlight && packet.carried.is_reliable() {
                self.in_flight_bytes -= packet.cost_bytes;
                forgotten = Some(packet.carried);
            }
        }
        // As if each of several samples had left by itself: datagrams that are longer do not make a window wider.
        let cost_bytes = match carried.kind {
            Kind::Fragment { .. } => SentPackets::cost(bytes),
            Kind::Samples { count } => bytes + usize::from(count) * PACKET_OVERHEAD_BYTES,
            Kind::Symbol | Kind::Probe => 0,
        };
        let sent_before = self.pace.total_bytes();
        match carried.kind {
            Kind::Fragment { .. } | Kind::Samples { .. } => self.window.sent(cost_bytes, now),
            Kind::Symbol => self.pace.sent(bytes, now),
            Kind::Probe => {}
        }
        if self.in_flight_bytes == 0 {
            self.progress_at = now;
        }
        self.in_flight_bytes += cost_bytes;
        let (sent_at, state) = (now, State::InFlight);
        self.packets.push_back(Packet { carried, bytes, cost_bytes, sent_at, sent_before, state });
        forgotten
    }

    /// Tells `settle` what became of packets, by number. `None` if it acknowledges what was never sent;
    /// else when the newest that it names left, if that is news.
    pub(crate) fn handle_feedback(
        &mut self,
        feedback: &Feedback,
        (came, now): (Instant<Local>, Instant<Local>),
        settle: &mut dyn FnMut(PacketOutcome, u64, Carried),
    ) -> Option<Option<Instant<Local>>> {
        let newest = feedback.newest;
        if newest >= self.next_number() {
            return None;
        }
        self.heard_at = now;
        let mut left = None;
        let (in_flight_bytes, mut arrived) = (self.in_flight_bytes, Arrived::default());
        for number in self.first.max(newest.saturating_sub(ACK_RANGE_PACKETS))..=newest {
            let named = number == newest || feedback.earlier >> (newest - number - 1) & 1 == 1;
            let packet = &mut self.packets[(number - self.first) as usize];
            if !named || packet.state == State::Settled {
                continue;
            }
            arrived.named += 1;
            let back = newest - number;
            let refused = feedback.refused >> back & 1 == 1;
            let was_lost = matches!(packet.state, State::Lost | State::Unreportable);
            packet.state = State::Settled;
            let packet = *packet;
            self.path_mtu.arrived(number, packet.bytes, now);
            self.ecn.acknowledge(number);
            if packet.carried.kind == Kind::Probe {
                continue;
            }
            if was_lost {
                self.handle_spurious(number, &packet, came);
            } else {
                self.in_flight_bytes -= packet.cost_bytes;
                // What was sent before a decrease says nothing of the window after it.
                let is_after = number >= self.window.decreased_at();
                arrived.cost_bytes += if is_after { packet.cost_bytes } else { 0 };
            }
            if packet.carried.is_reliable() {
                arrived.datagram_bytes += packet.bytes;
                arrived.packets += u32::from(number >= self.window.decreased_at());
            } else {
                self.pace.arrived(packet.bytes, packet.sent_at, now);
            }
            self.arrived_bytes += packet.bytes as u64;
            match (refused, was_lost) {
                (false, _) => settle(PacketOutcome::Arrived, number, packet.carried),
                (true, false) => settle(PacketOutcome::Refused, number, packet.carried),
                // It is being retransmitted already.
                (true, true) => {}
            }
            // A later one measures the delay of packets that were overtaken, not of the path.
            if number == newest && newest + ACK_RANGE_PACKETS >= self.newest_arrived {
                let (sent_at, sent_before) = (packet.sent_at, packet.sent_before);
                left = Some(sent_at);
                self.measure((sent_at, sent_before), feedback, (came, now));
            }
            (self.progress_at, self.doublings) = (now, 0);
        }
        if newest >= self.known.0.packet
            && let Some(packet) =
                newest.checked_sub(self.first).and_then(|place| self.packets.get(place as usize))
        {
            self.known = (Departure { packet: newest, sent_at: packet.sent_at }, false);
        }
        self.newest_arrived = self.newest_arrived.max(newest);
        self.window.arrived(arrived, in_flight_bytes, now);
        self.handle_marks(feedback, now);
        self.declare_lost_by_packets(came, now, settle);
        let lay = self.note_lay(feedback, arrived.named, now - came);
        self.declare_lost_by_time(newest, (came, lay), now, settle);
        self.window.handle_feedback(self.next_number(), now);
        self.record_outcomes(now);
        self.forget_settled(now);
        self.pace.handle_feedback(&self.path_delay, self.dispersion.bytes_per_s(), now);
        Some(left)
    }

    /// How long what came after the newest packet may lie unread on the other side, if it has a deadline and if it is reliable; this feedback `waited` here.
    fn note_lay(&mut self, feedback: &Feedback, named: u32, waited: Span) -> [Span; 2] {
        let lay = lay_unread(feedback, named);
        self.waits = (lay + waited).max(self.waits - self.waits / WAITS_FADE);
        // Feedback that went with a datagram of a thread that has not read on says nothing of what lies there.
        let may_lie = lay.max(Span::from_ns(feedback.delay_ns.into()).min(self.waits));
        // With a deadline only beside a thread that reads what a long sample has brought: a copy in vain costs less than a sample.
        let is_reading = named >= ACK_ELICITING_THRESHOLD && self.left_together(feedback.newest);
        [if is_reading { may_lie } else { Span::ZERO }, may_lie]
    }

    /// Whether that packet and those before it that feedback waits for left together, as those of a long sample do.
    fn left_together(&self, newest: u64) -> bool {
        let sent_at = |number: u64| {
            let place = number.checked_sub(self.first)?;
            self.packets.get(place as usize).map(|packet| packet.sent_at)
        };
        let first = newest.checked_sub(u64::from(ACK_ELICITING_THRESHOLD) - 1).and_then(sent_at);
        sent_at(newest).zip(first).is_some_and(|(last, first)| last - first < TOGETHER)
    }

    /// A packet has arrived that was taken for lost.
    fn handle_spurious(&mut self, number: u64, packet: &Packet, came: Instant<Local>) {
        // One that merely took long has not been overtaken.
        let was_overtaken = number < self.newest_arrived;
        self.later = (self.later + u64::from(was_overtaken)).min(PACKET_THRESHOLD);
        if packet.carried.is_reliable() {
            self.window.spurious(number);
        }
        if let Some(RoundTrip { smoothed, .. }) = self.round_trip.filter(|_| was_overtaken) {
            let excess = (came - packet.sent_at - smoothed).min(smoothed);
            self.reordering = self.reordering.max(excess);
        }
    }

    /// Queues have marked packets in place of dropping them.
    fn handle_marks(&mut self, feedback: &Feedback, now: Instant<Local>) {
        let next = self.next_number();
        let marked = self.ecn.handle_feedback(feedback.newest, feedback.marks, next);
        if marked > 0 {
            self.marked += u64::from(marked);
            self.window.marked(feedback.newest, next, now);
            self.pace.marked(marked);
        }
    }

    /// The newest packet that feedback names has been there and back.
    fn measure(
        &mut self,
        (sent_at, sent_before): (Instant<Local>, u64),
        feedback: &Feedback,
        (came, now): (Instant<Local>, Instant<Local>),
    ) {
        let sample = (came - sent_at - Span::from_ns(feedback.delay_ns.into())).max(Span::ZERO);
        let trip = RoundTrip::measure(&mut self.round_trip, sample);
        self.round_trips.measure(sample);
        let part = ((now - self.measured_at).as_s_f64() / REORDERING_MEMORY.as_s_f64()).clamp(0.0, 1.0);
        self.reordering = self.reordering - Span::from_ns((self.reordering.ns() as f64 * part) as i64);
        self.measured_at = now;
        self.path_delay.measure(sample, self.pace.queue_loses(), now);
        self.pace.measure(sample, (sent_at, sent_before), &self.path_delay);
        self.window.measure(trip, feedback.newest, &self.path_delay);
        let (packet, arrived_ns, arrived_bytes) = (feedback.newest, feedback.arrived_ns, self.arrived_bytes);
        let passage = Passage { packet, sent_at, arrived_ns, arrived_bytes };
        self.dispersion.handle_arrival(passage, self.path_delay.noise());
    }

    /// Gives up what the time-out has passed for.
    pub(crate) fn handle_timeout(
        &mut self,
        now: Instant<Local>,
        settle: &mut dyn FnMut(PacketOutcome, u64, Carried),
    ) -> bool {
        self.path_mtu.handle_timeout(now);
        if self.timeout().is_none_or(|at| now < at) {
            return false;
        }
        let round_trip = self.smoothed();
        // However long it is waited, what left so long ago will not be acknowledged.
        let earliest = now - self.timeout_without_back_off();
        for (number, packet) in (self.first..).zip(&mut self.packets) {
            if packet.sent_at > earliest {
                break;
            }
            if packet.state == State::InFlight && packet.carried.is_reliable() {
                packet.state = State::Lost;
                self.in_flight_bytes -= packet.cost_bytes;
                self.path_mtu.lost((number, packet.bytes), packet.sent_at, round_trip, now);
                settle(PacketOutcome::Lost(LossRule::Timeout), number, packet.carried);
            }
        }
        self.doublings = (self.doublings + 1).min(DOUBLINGS_LIMIT);
        self.window.timed_out(self.doublings, self.next_number(), now);
        self.ecn.timed_out();
        self.progress_at = now;
        true
    }

    /// Packets take another path from now on.
    pub(crate) fn handle_new_path(&mut self, now: Instant<Local>) {
        self.path_mtu.restart(now);
        self.ecn.restart(self.next_number());
    }

    /// What every datagram carries for the queues on its way; and how many were marked.
    pub(crate) fn ecn(&self) -> (Ecn, u64) {
        (self.ecn.codepoint(), self.marked)
    }

    /// When the time-out passes.
    pub(crate) fn timeout(&self) -> Option<Instant<Local>> {
        (self.in_flight_bytes > 0).then(|| self.progress_at + self.retransmission_timeout())
    }

    pub(crate) fn round_trip(&self) -> Option<RoundTrip> {
        self.round_trip
    }

    /// Quantiles of it; `None` before the first.
    pub(crate) fn round_trips(&mut self) -> Option<Quantiles> {
        self.round_trips.quantiles()
    }

    /// A packet took so long to the other side, by its clock.
    pub(crate) fn measure_way_there(&mut self, delay: Span) {
        self.ways_there.measure(delay.max(Span::ZERO));
    }

    /// Quantiles of that; `None` if the other side's clock is not known.
    pub(crate) fn ways_there(&mut self) -> Option<Quantiles> {
        self.ways_there.quantiles()
    }

    fn smoothed(&self) -> Span {
        self.round_trip.map_or(Span::ZERO, |trip| trip.smoothed)
    }

    /// How long datagrams may be.
    pub(crate) fn path_mtu(&self) -> &PathMtu {
        &self.path_mtu
    }

    /// The same, to be changed; call [`resize`](SentPackets::resize) when the length has changed.
    pub(crate) fn path_mtu_mut(&mut self) -> &mut PathMtu {
        &mut self.path_mtu
    }

    /// Datagrams are of another length at most from now on: the window is reckoned in them.
    pub(crate) fn resize(&mut self) {
        self.limits.packet_bytes = SentPackets::cost(self.path_mtu.datagram_bytes());
        self.window.resize(self.limits.packet_bytes);
    }

    /// The newest packet whose fate is known, and whether it was lost.
    pub(crate) fn known(&self) -> (Departure, bool) {
        self.known
    }

    /// When the last feedback came.
    pub(crate) fn heard_at(&self) -> Instant<Local> {
        self.heard_at
    }

    /// The application has so many bytes with a deadline to send.
    pub(crate) fn offer(&mut self, bytes: usize, deadline: Span, now: Instant<Local>) {
        self.pace.offer(bytes, deadline, now);
    }

    /// The shortest round trip that is possible at present; 0 before the first.
    pub(crate) fn floor(&self) -> Span {
        self.path_delay.floor()
    }

    /// By how much round trips are longer than the shortest that is possible at present.
    pub(crate) fn queue(&self) -> Span {
        self.smoothed() - self.floor()
    }

    /// How fast what has a deadline may leave.
    pub(crate) fn pace(&self) -> &RateLimit {
        &self.pace
    }

    /// The same, to tell it what became of samples.
    pub(crate) fn pace_mut(&mut self) -> &mut RateLimit {
        &mut self.pace
    }

    /// Bytes of datagrams a second that the path carried while it was full; `None` if it never was.
    pub(crate) fn capacity_bytes_per_s(&self) -> Option<f64> {
        let trains = self.dispersion.at_least_bytes_per_s();
        self.window.capacity_bytes_per_s().into_iter().chain(trains).reduce(f64::max)
    }

    /// Whether one more repair may leave now.
    pub(crate) fn allows_repair(&self, now: Instant<Local>) -> bool {
        let known = [self.window.capacity_bytes_per_s(), self.dispersion.bytes_per_s()];
        self.pace.allows_repair(known.into_iter().flatten().reduce(f64::max), now)
    }

    /// How the channel loses.
    pub(crate) fn loss(&self) -> &LossEstimator {
        &self.loss
    }

    /// The channel's model from the fates so far, and what they leave uncertain.
    pub(crate) fn channel(&self) -> Gilbert {
        Gilbert::new(&self.loss.model())
    }

    fn retransmission_timeout(&self) -> Span {
        let once = self.timeout_without_back_off();
        (once * (1 << self.doublings)).min(TIMEOUT_LIMIT.max(once))
    }

    fn timeout_without_back_off(&self) -> Span {
        let once = self.round_trip.map_or(TIMEOUT_INITIAL, |measured| {
            measured.smoothed + measured.variation * TIMEOUT_VARIATIONS + MAX_ACK_DELAY + self.waits
        });
        once.max(TIMEOUT_FLOOR)
    }
}

/// How long the newest packet that feedback names lay unread: others that came after it may lie there still. `named` packets are news. Feedback that
/// waited for a datagram to go with is of a thread that has read all there was.
fn lay_unread(feedback: &Feedback, named: u32) -> Span {
    let recent = (1 << feedback.newest.min(PACKET_THRESHOLD)) - 1;
    let is_at_once = named >= ACK_ELICITING_THRESHOLD || feedback.earlier & recent != recent;
    let delay = Span::from_ns(feedback.delay_ns.into());
    if is_at_once { delay } else { (delay - MAX_ACK_DELAY).max(Span::ZERO) }
}

#[cfg(test)]
mod tests;
