//! Loss detection (RFC 9002, section 6; RACK, RFC 8985): packet threshold and time threshold; when a packet's fate is recorded and forgotten.

use noctule_timebase::{Instant, Span};

use super::{
    Carried, Kind, OVERDUE_MARGIN, OVERDUE_VARIATIONS, PacketOutcome, STALE, SentPackets, State,
    TIMEOUT_VARIATIONS,
};
use crate::ack_state::{ACK_RANGE_PACKETS, PACKET_THRESHOLD};
use crate::gilbert::Departure;
use crate::loss::LossEstimator;
use crate::round_trip::RoundTrip;
use crate::stream::Local;
use crate::trace::LossRule;

impl SentPackets {
    /// Where the path reorders, a packet that was overtaken has still as much time as others took (RFC 8985): each
    /// retransmission in vain costs as much as a loss.
    pub(super) fn declare_lost_by_packets(
        &mut self,
        came: Instant<Local>,
        now: Instant<Local>,
        settle: &mut dyn FnMut(PacketOutcome, u64, Carried),
    ) {
        let overtaken = (self.newest_arrived + 1).saturating_sub(self.later);
        let from = self.overtaken.max(self.first);
        let mut waiting = None;
        for number in from..overtaken {
            let packet = &self.packets[(number - self.first) as usize];
            let waits = packet.state == State::InFlight
                && self.reordering > OVERDUE_MARGIN
                && came - packet.sent_at < self.smoothed() + self.reordering;
            if waits {
                waiting = waiting.or(Some(number));
                continue;
            }
            let place = (number - self.first) as usize;
            self.give_up((place, LossRule::PacketThreshold), now, settle);
        }
        let overtaken = (self.newest_arrived + 1).saturating_sub(PACKET_THRESHOLD);
        self.overtaken = self.overtaken.max(waiting.map_or(overtaken, |waiting| waiting.min(overtaken)));
    }

    /// Feedback that was sent after a packet must have arrived does not name it. What this host left lying was sent earlier; and what the other
    /// side's thread has not read yet is not lost: its newest lay there for a time.
    pub(super) fn declare_lost_by_time(
        &mut self,
        newest: u64,
        (came, [bound_lies, reliable_lies]): (Instant<Local>, [Span; 2]),
        now: Instant<Local>,
        settle: &mut dyn FnMut(PacketOutcome, u64, Carried),
    ) {
        let Some(RoundTrip { smoothed, variation, .. }) = self.round_trip else { return };
        let [bound, reliable] = [OVERDUE_VARIATIONS, TIMEOUT_VARIATIONS]
            .map(|variations| came - (smoothed + variation * variations + OVERDUE_MARGIN));
        // Those too that wait for a second or third later one: time tells as well (RFC 8985).
        let from = self.overtaken.min(newest + 1).saturating_sub(self.first) as usize;
        for place in from..self.packets.len() {
            let packet = &self.packets[place];
            if packet.sent_at > bound {
                break;
            }
            let is_symbol = packet.carried.kind == Kind::Symbol;
            let is_reordered = came - packet.sent_at < smoothed + self.reordering;
            let latest = if is_symbol { bound - bound_lies } else { reliable - reliable_lies };
            if packet.sent_at > latest || is_reordered {
                continue;
            }
            let departure = Departure { packet: self.first + place as u64, sent_at: packet.sent_at };
            if self.give_up((place, LossRule::TimeThreshold), now, settle)
                && departure.packet >= self.known.0.packet
            {
                self.known = (departure, true);
            }
        }
    }

    /// Gives up the packet at this place. False if its fate was known, or says nothing of the channel.
    fn give_up(
        &mut self,
        (place, rule): (usize, LossRule),
        now: Instant<Local>,
        settle: &mut dyn FnMut(PacketOutcome, u64, Carried),
    ) -> bool {
        let (number, next, round_trip) = (self.first + place as u64, self.next_number(), self.smoothed());
        let later = self.newest_arrived.saturating_sub(number);
        let Some(packet) = self.packets.get_mut(place).filter(|packet| packet.state == State::InFlight)
        else {
            return false;
        };
        packet.state = if later > ACK_RANGE_PACKETS { State::Unreportable } else { State::Lost };
        self.in_flight_bytes -= packet.cost_bytes;
        if packet.state == State::Lost {
            self.path_mtu.lost((number, packet.bytes), packet.sent_at, round_trip, now);
        }
        match packet.carried.kind {
            Kind::Fragment { .. } | Kind::Samples { .. } => {
                // Feedback that was lost is no sign that too much was sent.
                if packet.state == State::Lost {
                    self.window.lost(number, next, now);
                }
            }
            Kind::Symbol => self.pace.lost(packet.sent_at, now),
            Kind::Probe => return false,
        }
        settle(PacketOutcome::Lost(rule), number, packet.carried);
        true
    }

    pub(super) fn record_outcomes(&mut self, now: Instant<Local>) {
        self.recorded = self.recorded.max(self.first);
        let round = self.round_trip.map_or(STALE, |trip| trip.smoothed + trip.variation * TIMEOUT_VARIATIONS);
        let certain_before = now - round * 2;
        while let Some(packet) = self.packets.get((self.recorded - self.first) as usize) {
            if packet.carried.kind == Kind::Probe {
                self.recorded += 1;
                continue;
            }
            // What was overtaken may still arrive, and is not a loss then.
            let is_certain = packet.state != State::Lost
                || self.recorded + ACK_RANGE_PACKETS < self.newest_arrived
                || packet.sent_at < certain_before;
            if packet.state == State::InFlight || !is_certain {
                break;
            }
            self.recorded += 1;
            if packet.state == State::Unreportable {
                continue;
            }
            self.loss.handle_outcome(packet.state == State::Lost, packet.sent_at);
        }
        if self.pace.poll_futile_repairs() {
            // The losses were our own doing.
            self.loss = LossEstimator::new();
        }
    }

    pub(super) fn forget_settled(&mut self, now: Instant<Local>) {
        while let Some(packet) = self.packets.front() {
            let out_of_reach = self.first + ACK_RANGE_PACKETS < self.newest_arrived;
            let is_recorded = self.first < self.recorded;
            let is_stale = !packet.carried.is_reliable() && packet.sent_at + STALE < now;
            match packet.state {
                State::InFlight if !is_stale => break,
                State::Lost | State::Unreportable if !out_of_reach => break,
                _ if !is_recorded && packet.state != State::InFlight => break,
                _ => {}
            }
            self.packets.pop_front();
            self.first += 1;
        }
    }
}
