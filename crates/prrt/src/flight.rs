//! Numbered datagrams on their way: which are lost, how long the way is, how many it bears.
//!
//! Every repetition is a packet of its own, so an acknowledgement never leaves open which of two it means.
//! A reliable packet is lost when one sent three later has arrived, or when nothing was heard for the time-out. One
//! with a deadline is lost when any later one has arrived (more, once that has proven wrong), or when feedback
//! that must have seen it does not name it. Time-out and smoothed round trip: RFC 6298, with a shorter floor. Window: slow start, then additive increase
//! and multiplicative decrease (RFC 5681), in bytes, at most one decrease a round trip.

use std::collections::VecDeque;

use noctule_timebase::{Instant, Span};

use crate::arrivals::{FEEDBACK_DELAY, LATER_PACKETS, REACH};
use crate::gilbert::Gilbert;
use crate::loss::LossEstimator;
use crate::pace::Pace;
use crate::round_trip::RoundTrip;
use crate::stream::{Local, StreamId};
use crate::wire::Feedback;

/// About what a small datagram costs the buffer of a socket besides its own bytes.
pub(crate) const PACKET_OVERHEAD_BYTES: usize = 512;
/// Packets remembered at once, those given up for lost included.
const PACKETS_LIMIT: usize = 8_192;
const TIMEOUT_FLOOR: Span = Span::from_ms(10);
const TIMEOUT_LIMIT: Span = Span::from_s(1);
/// Before the first round trip has been measured.
const TIMEOUT_INITIAL: Span = Span::from_ms(100);
const DOUBLINGS_LIMIT: u32 = 7;
/// What has a deadline and was not heard of for this long will not be.
const STALE: Span = Span::from_s(2);
/// Beyond the variation of the round trip, before a datagram that feedback does not name is lost.
const OVERDUE_MARGIN: Span = Span::from_us(200);

/// What a packet carries: a piece of a sample that may be gone by the time its fate is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Carried {
    pub(crate) writer: StreamId,
    pub(crate) position: u64,
    pub(crate) index: u16,
    /// It has a deadline: `position` is a block and `index` a symbol.
    pub(crate) bound: bool,
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It arrived and was taken.
    Arrived,
    /// It arrived, and the other side has no use for it yet.
    Refused,
    Lost,
}

/// Bounds of the window, in bytes as [`Flight::cost`] counts them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WindowLimits {
    /// Cost of the largest datagram.
    pub(crate) packet_bytes: usize,
    pub(crate) initial_bytes: usize,
    pub(crate) max_bytes: usize,
}

#[derive(Debug)]
pub(crate) struct Flight {
    limits: WindowLimits,
    /// Numbered from `first` without gaps.
    packets: VecDeque<Packet>,
    first: u64,
    newest_arrived: u64,
    in_flight_bytes: usize,
    window_bytes: usize,
    threshold_bytes: usize,
    /// A loss of a packet before this one has had its decrease already.
    decreased_at: u64,
    round_trip: Option<RoundTrip>,
    /// Later packets that must have arrived before one with a deadline counts as lost.
    bound_later: u64,
    /// The newest packet whose fate is known, and whether it was lost.
    known: (u64, bool),
    heard_at: Instant<Local>,
    /// No packet before this one is in flight.
    overtaken: u64,
    /// Fates are recorded in the order of sending, up to here.
    recorded: u64,
    loss: LossEstimator,
    /// Of what has a deadline.
    pace: Pace,
    /// The fate recorded last was a loss.
    in_burst: bool,
    doublings: u32,
    /// The last time that an acknowledgement or a first packet started the time-out anew.
    progress_at: Instant<Local>,
}

#[derive(Debug)]
struct Packet {
    carried: Carried,
    bytes: usize,
    /// What it counts against the window.
    cost_bytes: usize,
    sent_at: Instant<Local>,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    InFlight,
    /// Given up for lost; an acknowledgement may still prove otherwise.
    Lost,
    Settled,
}

impl Flight {
    pub(crate) fn new(limits: WindowLimits, now: Instant<Local>) -> Flight {
        Flight {
            limits,
            packets: VecDeque::new(),
            first: 0,
            newest_arrived: 0,
            in_flight_bytes: 0,
            window_bytes: limits.initial_bytes.max(2 * limits.packet_bytes),
            threshold_bytes: limits.max_bytes,
            decreased_at: 0,
            round_trip: None,
            bound_later: 1,
            known: (0, false),
            heard_at: now,
            overtaken: 0,
            recorded: 0,
            loss: LossEstimator::new(),
            pace: Pace::new(now),
            in_burst: false,
            doublings: 0,
            progress_at: now,
        }
    }

    /// What a datagram counts against the window.
    pub(crate) fn cost(datagram_bytes: usize) -> usize {
        datagram_bytes + PACKET_OVERHEAD_BYTES
    }

    /// Whether one more packet may be sent. One always may if none is on its way.
    pub(crate) fn has_room(&self) -> bool {
        let fits = self.in_flight_bytes + self.limits.packet_bytes <= self.window_bytes;
        let remembered = self.packets.len() < PACKETS_LIMIT
            || self.packets.front().is_some_and(|packet| packet.state != State::InFlight);
        remembered && (fits || self.in_flight_bytes == 0)
    }

    /// The number of the next packet.
    pub(crate) fn next_number(&self) -> u64 {
        self.first + self.packets.len() as u64
    }

    /// The packet [`next_number`](Flight::next_number) has been sent. What has a deadline does not count
    /// against the window. Gives a reliable packet that had to be forgotten: it is to be sent again.
    pub(crate) fn sent(
        &mut self,
        carried: Carried,
        cost_bytes: usize,
        now: Instant<Local>,
    ) -> Option<Carried> {
        let mut forgotten = None;
        if self.packets.len() >= PACKETS_LIMIT
            && let Some(packet) = self.packets.pop_front()
        {
            self.first += 1;
            self.recorded = self.recorded.max(self.first);
            if packet.state == State::InFlight && !packet.carried.bound {
                self.in_flight_bytes -= packet.cost_bytes;
                forgotten = Some(packet.carried);
            }
        }
        let (bytes, cost_bytes) = (cost_bytes, if carried.bound { 0 } else { cost_bytes });
        if carried.bound {
            self.pace.sent(bytes, now);
        }
        if self.in_flight_bytes == 0 {
            self.progress_at = now;
        }
        self.in_flight_bytes += cost_bytes;
        self.packets.push_back(Packet { carried, bytes, cost_bytes, sent_at: now, state: State::InFlight });
        forgotten
    }

    /// Tells `settle` what became of packets, by number. `None` if it acknowledges what was never sent;
    /// else when the newest that it names left, if that is news.
    pub(crate) fn handle_feedback(
        &mut self,
        feedback: &Feedback,
        now: Instant<Local>,
        settle: &mut dyn FnMut(Fate, u64, Carried),
    ) -> Option<Option<Instant<Local>>> {
        let newest = feedback.newest;
        if newest >= self.next_number() {
            return None;
        }
        self.heard_at = now;
        let mut left = None;
        let was_used = self.in_flight_bytes * 2 >= self.window_bytes;
        let mut arrived_bytes = 0;
        for number in self.first.max(newest.saturating_sub(REACH))..=newest {
            let named = number == newest || feedback.earlier >> (newest - number - 1) & 1 == 1;
            let packet = &mut self.packets[(number - self.first) as usize];
            if !named || packet.state == State::Settled {
                continue;
            }
            let back = newest - number;
            let refused = feedback.refused >> back & 1 == 1;
            let was_lost = packet.state == State::Lost;
            if was_lost && packet.carried.bound {
                self.bound_later = (self.bound_later + 1).min(LATER_PACKETS);
            }
            if !was_lost {
                self.in_flight_bytes -= packet.cost_bytes;
                // What was sent before a decrease says nothing of the window after it.
                arrived_bytes += if number < self.decreased_at { 0 } else { packet.cost_bytes };
            }
            if packet.carried.bound {
                self.pace.arrived(packet.bytes);
            }
            packet.state = State::Settled;
            match (refused, was_lost) {
                (false, _) => settle(Fate::Arrived, number, packet.carried),
                (true, false) => settle(Fate::Refused, number, packet.carried),
                // It is being sent again already.
                (true, true) => {}
            }
            if number == newest {
                left = Some(packet.sent_at);
                let sample = now - packet.sent_at - Span::from_ns(feedback.delay_ns.into());
                RoundTrip::measure(&mut self.round_trip, sample.max(Span::ZERO));
                self.pace.measure(sample.max(Span::ZERO), packet.sent_at);
            }
            (self.progress_at, self.doublings) = (now, 0);
        }
        if newest >= self.known.0 {
            self.known = (newest, false);
        }
        self.newest_arrived = self.newest_arrived.max(newest);
        let decreased = self.give_up_overtaken(settle);
        self.give_up_overdue(newest, now, settle);
        if was_used && !decreased {
            self.widen(arrived_bytes);
        }
        self.record_fates();
        self.forget_settled(now);
        self.pace.handle_feedback(now);
        Some(left)
    }

    /// Gives up what the time-out has passed for.
    pub(crate) fn handle_timeout(
        &mut self,
        now: Instant<Local>,
        settle: &mut dyn FnMut(Fate, u64, Carried),
    ) -> bool {
        if self.timeout().is_none_or(|at| now < at) {
            return false;
        }
        let earliest = now - self.patience();
        for (number, packet) in (self.first..).zip(&mut self.packets) {
            if packet.sent_at > earliest {
                break;
            }
            if packet.state == State::InFlight && !packet.carried.bound {
                packet.state = State::Lost;
                self.in_flight_bytes -= packet.cost_bytes;
                settle(Fate::Lost, number, packet.carried);
            }
        }
        self.threshold_bytes = (self.window_bytes / 2).max(self.least_window());
        self.window_bytes = self.least_window();
        self.decreased_at = self.next_number();
        self.doublings = (self.doublings + 1).min(DOUBLINGS_LIMIT);
        self.progress_at = now;
        true
    }

    /// When the time-out passes.
    pub(crate) fn timeout(&self) -> Option<Instant<Local>> {
        (self.in_flight_bytes > 0).then(|| self.progress_at + self.patience())
    }

    pub(crate) fn round_trip(&self) -> Option<RoundTrip> {
        self.round_trip
    }

    /// The newest packet whose fate is known, and whether it was lost.
    pub(crate) fn known(&self) -> (u64, bool) {
        self.known
    }

    /// When the last feedback came.
    pub(crate) fn heard_at(&self) -> Instant<Local> {
        self.heard_at
    }

    /// How fast what has a deadline may leave.
    pub(crate) fn pace(&self) -> &Pace {
        &self.pace
    }

    /// How the channel loses, with what the fates so far leave uncertain.
    pub(crate) fn loss(&self) -> &LossEstimator {
        &self.loss
    }

    /// What the fates so far tell of the channel.
    pub(crate) fn channel(&self) -> Gilbert {
        Gilbert::new(self.loss.share(), self.loss.mean_burst())
    }

    fn patience(&self) -> Span {
        let once = self
            .round_trip
            .map_or(TIMEOUT_INITIAL, |measured| measured.smoothed + measured.variation * 4 + FEEDBACK_DELAY);
        (once.max(TIMEOUT_FLOOR) * (1 << self.doublings)).min(TIMEOUT_LIMIT)
    }

    fn least_window(&self) -> usize {
        2 * self.limits.packet_bytes
    }

    fn widen(&mut self, arrived_bytes: usize) {
        let more = if self.window_bytes < self.threshold_bytes {
            arrived_bytes
        } else {
            self.limits.packet_bytes * arrived_bytes / self.window_bytes
        };
        self.window_bytes = (self.window_bytes + more).min(self.limits.max_bytes).max(self.least_window());
    }

    /// Whether the window was decreased for it.
    fn give_up_overtaken(&mut self, settle: &mut dyn FnMut(Fate, u64, Carried)) -> bool {
        let overtaken = (self.newest_arrived + 1).saturating_sub(self.bound_later);
        let from = self.overtaken.max(self.first);
        let count = overtaken.saturating_sub(from) as usize;
        let place = (from - self.first) as usize;
        let mut newest_lost = None;
        for (number, packet) in (from..).zip(self.packets.iter_mut().skip(place).take(count)) {
            let later = self.newest_arrived - number;
            let is_lost = later >= LATER_PACKETS || packet.carried.bound;
            if packet.state == State::InFlight && is_lost {
                packet.state = State::Lost;
                self.in_flight_bytes -= packet.cost_bytes;
                if packet.carried.bound {
                    self.pace.lost();
                } else {
                    newest_lost = Some(number);
                }
                settle(Fate::Lost, number, packet.carried);
            }
        }
        self.overtaken = self.overtaken.max((self.newest_arrived + 1).saturating_sub(LATER_PACKETS));
        let decrease = newest_lost.is_some_and(|number| number >= self.decreased_at);
        if decrease {
            self.window_bytes = (self.window_bytes / 2).max(self.least_window());
            self.threshold_bytes = self.window_bytes;
            self.decreased_at = self.next_number();
        }
        decrease
    }

    /// Feedback that was said after a packet must have arrived does not name it.
    fn give_up_overdue(
        &mut self,
        newest: u64,
        now: Instant<Local>,
        settle: &mut dyn FnMut(Fate, u64, Carried),
    ) {
        let Some(RoundTrip { smoothed, variation, .. }) = self.round_trip else { return };
        let earliest = now - (smoothed + variation * 4 + OVERDUE_MARGIN);
        let from = (newest + 1).saturating_sub(self.first) as usize;
        for (number, packet) in (self.first..).zip(&mut self.packets).skip(from) {
            if packet.sent_at > earliest {
                break;
            }
            if packet.state == State::InFlight && packet.carried.bound {
                packet.state = State::Lost;
                self.known = self.known.max((number, true));
                self.pace.lost();
                settle(Fate::Lost, number, packet.carried);
            }
        }
    }

    fn record_fates(&mut self) {
        self.recorded = self.recorded.max(self.first);
        while let Some(packet) = self.packets.get((self.recorded - self.first) as usize) {
            if packet.state == State::InFlight {
                break;
            }
            let lost = packet.state == State::Lost;
            let begins = lost && !self.in_burst;
            self.loss.handle_report(u32::from(!lost), u32::from(lost), u32::from(begins));
            (self.in_burst, self.recorded) = (lost, self.recorded + 1);
        }
    }

    fn forget_settled(&mut self, now: Instant<Local>) {
        while let Some(packet) = self.packets.front() {
            let out_of_reach = self.first + REACH < self.newest_arrived;
            let is_stale = packet.carried.bound && packet.sent_at + STALE < now;
            match packet.state {
                State::InFlight if !is_stale => break,
                State::Lost if !out_of_reach => break,
                _ => {}
            }
            self.packets.pop_front();
            self.first += 1;
        }
    }
}

#[cfg(test)]
mod tests;
