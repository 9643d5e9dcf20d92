//! Acknowledgement at the receiver (ACK and NACK): which packet numbers arrived, which are missing or refused, and when feedback is sent.
//!
//! Feedback is an acknowledgement as in QUIC (RFC 9000, section 13.2): it names the newest packet number and those missing before
//! it. It goes at once after a gap (a NACK), else after [`ACK_ELICITING_THRESHOLD`] datagrams or the ACK delay ([`MAX_ACK_DELAY`]).

use noctule_timebase::{Instant, Span};

use crate::stream::{Arrival, Ecn, Local};
use crate::wire::{Feedback, Marks};

/// Packet numbers before the newest that feedback names: as far as it can name what was refused.
pub(crate) const ACK_RANGE_PACKETS: u64 = 63;
/// Feedback on reliable datagrams waits this long for a sample to be piggybacked on (RFC 9000, section 13.2.1: max_ack_delay).
pub(crate) const MAX_ACK_DELAY: Span = Span::from_ms(2);
/// Feedback waits no longer after this many datagrams (the Ack-Eliciting Threshold of draft-ietf-quic-ack-frequency).
pub(crate) const ACK_ELICITING_THRESHOLD: u32 = 8;
/// Later packets that must have arrived before a reliable one counts as lost (RFC 9002, section 6.1.1).
pub(crate) const PACKET_THRESHOLD: u64 = 3;

/// How datagrams are marked is reported in so much feedback after the first that could be, in so much after each that was, and always in
/// one of so many.
const REPORTED_FIRST: u32 = 8;
const REPORTED_MARKED: u32 = 3;
const REPORTED_EACH: u32 = 32;

/// Packet numbers that arrived: the newest and the [`ACK_RANGE_PACKETS`] before it.
#[derive(Debug, Default)]
pub(crate) struct AckState {
    newest: Option<(u64, Arrival)>,
    earlier: u64,
    refused: u64,
    /// One that was taken so late that the newest cannot be named with it, and those before it that were, too.
    late: Option<(u64, u64, Arrival)>,
    /// Arrived since the last feedback.
    unacknowledged: u32,
    /// Feedback is to be sent although nothing arrived.
    ack_requested: bool,
    /// What arrived since the last feedback is news that the other side waits for: a gap, a mark, something with a deadline.
    is_urgent: bool,
    feedback_sent_at: Option<Instant<Local>>,
    due: Option<Instant<Local>>,
    ecn: EcnCounts,
}

/// How numbered datagrams were marked that arrived.
#[derive(Debug, Default)]
struct EcnCounts {
    marks: Marks,
    /// One that a queue may mark has arrived: its sender wants to know.
    is_wanted: bool,
    was_marked: bool,
    /// It is reported in so much of the next feedback, and in the one after so many.
    reported: u32,
    pause: u32,
}

impl EcnCounts {
    /// Whether it is to be reported at once: a queue has begun to mark (RFC 9000, section 13.2.1).
    fn record(&mut self, ecn: Ecn) -> bool {
        let is_marked = ecn == Ecn::Marked;
        if is_marked || ecn == Ecn::Capable0 {
            self.marks.capable = self.marks.capable.wrapping_add(1);
            self.reported = if self.is_wanted { self.reported } else { REPORTED_FIRST };
            self.is_wanted = true;
        }
        if is_marked {
            self.marks.marked = self.marks.marked.wrapping_add(1);
            self.reported = self.reported.max(REPORTED_MARKED);
        }
        is_marked && !std::mem::replace(&mut self.was_marked, is_marked)
    }

    /// What the next feedback tells.
    fn marks(&self) -> Option<Marks> {
        (self.is_wanted && (self.reported > 0 || self.pause == 0)).then_some(self.marks)
    }

    fn feedback_sent(&mut self) {
        self.pause = if self.marks().is_some() { REPORTED_EACH } else { self.pause.saturating_sub(1) };
        self.reported = self.reported.saturating_sub(1);
    }
}

impl AckState {
    /// Notes an arrival, and whether it was taken, be it the first of its number or not: a repetition may
    /// mean that feedback was lost. With a deadline: `ack_delay`, how long feedback on it may wait after the feedback before.
    pub(crate) fn record(&mut self, packet: u64, taken: bool, ack_delay: Option<Span>, arrival: Arrival) {
        let now = arrival.now;
        let is_new = self.is_new(packet);
        let begins_marked = is_new && self.ecn.record(arrival.ecn);
        let back = match self.newest {
            Some((newest, _)) if packet <= newest => newest - packet,
            before => {
                if let Some((newest, _)) = before {
                    self.advance(packet - newest);
                }
                self.newest = Some((packet, arrival));
                0
            }
        };
        if (1..=ACK_RANGE_PACKETS).contains(&back) {
            self.earlier |= 1 << (back - 1);
        }
        if back <= ACK_RANGE_PACKETS && !taken {
            self.refused |= 1 << back;
        }
        if back > ACK_RANGE_PACKETS && taken {
            self.record_late(packet, arrival);
        }
        // The three before it: one that is missing is reported at once, until the other side knows it lost.
        let recent = (1 << packet.min(PACKET_THRESHOLD)) - 1;
        let in_order = back == 0 && self.earlier & recent == recent;
        self.unacknowledged += 1;
        let is_news = !in_order || begins_marked;
        self.is_urgent |= is_news || !taken || ack_delay.is_some();
        let wait_until = match ack_delay {
            _ if is_news || self.unacknowledged >= ACK_ELICITING_THRESHOLD => now,
            None => now + MAX_ACK_DELAY,
            Some(ack_delay) => self.feedback_sent_at.map_or(now, |sent| now.max(sent + ack_delay)),
        };
        self.due = Some(self.due.map_or(wait_until, |due| due.min(wait_until)));
    }

    /// Whether no packet of this number arrived before, as far as that is still known.
    fn is_new(&self, packet: u64) -> bool {
        let Some((newest, _)) = self.newest.filter(|(newest, _)| packet <= *newest) else { return true };
        let back = newest - packet;
        back > ACK_RANGE_PACKETS || back > 0 && self.earlier >> (back - 1) & 1 == 0
    }

    /// Several between two datagrams of feedback are named together, if they lie close enough; else the last.
    fn record_late(&mut self, packet: u64, arrival: Arrival) {
        self.late = Some(match self.late {
            Some((newest, earlier, before)) if packet < newest && newest - packet <= ACK_RANGE_PACKETS => {
                (newest, earlier | 1 << (newest - packet - 1), before)
            }
            Some((newest, earlier, _)) if packet > newest && packet - newest <= ACK_RANGE_PACKETS => {
                let ahead = packet - newest;
                (packet, (earlier << ahead | 1 << (ahead - 1)) & !(1 << ACK_RANGE_PACKETS), arrival)
            }
            _ => (packet, 0, arrival),
        });
    }

    /// Makes feedback due at once, because a datagram that should have arrived has not.
    pub(crate) fn request_ack(&mut self, now: Instant<Local>) {
        self.ack_requested = self.newest.is_some();
        if self.ack_requested {
            self.due = Some(self.due.map_or(now, |due| due.min(now)));
        }
    }

    /// The newest number becomes one that is `ahead` higher.
    fn advance(&mut self, ahead: u64) {
        let shift = |bits: u64| if ahead <= ACK_RANGE_PACKETS { bits << ahead } else { 0 };
        self.refused = shift(self.refused);
        self.earlier = shift(self.earlier) | if ahead <= ACK_RANGE_PACKETS { 1 << (ahead - 1) } else { 0 };
        self.earlier &= !(1 << ACK_RANGE_PACKETS);
    }

    /// The feedback to send, if anything arrived since [`feedback_sent`](AckState::feedback_sent).
    pub(crate) fn feedback(&self, now: Instant<Local>) -> Option<Feedback> {
        let newest = self.newest.filter(|_| self.unacknowledged > 0 || self.ack_requested);
        let newest = newest.map(|(newest, arrival)| (newest, self.earlier, self.refused, arrival));
        let late = self.late.map(|(packet, earlier, arrival)| (packet, earlier, 0, arrival));
        let (newest, earlier, refused, arrival) = late.or(newest)?;
        let delay_ns = u32::try_from((now - arrival.came).ns().max(0)).unwrap_or(u32::MAX);
        let marks = self.ecn.marks();
        Some(Feedback { newest, earlier, refused, arrived_ns: arrival.own_ns, delay_ns, marks })
    }

    /// Feedback has been sent. After some on late ones that on the newest is still due.
    pub(crate) fn feedback_sent(&mut self, now: Instant<Local>) {
        self.ecn.feedback_sent();
        if self.late.take().is_some() {
            return;
        }
        if self.unacknowledged > 0 || self.ack_requested {
            self.feedback_sent_at = Some(now);
        }
        (self.unacknowledged, self.ack_requested, self.is_urgent, self.due) = (0, false, false, None);
    }

    /// Whether feedback says more than that reliable datagrams came one after the other.
    pub(crate) fn is_urgent(&self) -> bool {
        self.is_urgent || self.ack_requested
    }

    /// The number of the packet that should come next.
    pub(crate) fn next(&self) -> u64 {
        self.newest.map_or(0, |(newest, _)| newest.saturating_add(1))
    }

    /// When feedback must be sent even if nothing else is.
    pub(crate) fn due(&self) -> Option<Instant<Local>> {
        self.due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Instant<Local> {
        Instant::from_ns(ms * 1_000_000)
    }

    fn record(ack_state: &mut AckState, packet: u64, taken: bool, now: Instant<Local>) {
        ack_state.record(
            packet,
            taken,
            None,
            Arrival { now, came: now, own_ns: 0, peer_ns: None, ecn: Default::default() },
        );
    }

    #[test]
    fn numbers_that_arrive_in_any_order_are_acknowledged_within_reach() {
        let mut ack_state = AckState::default();
        for packet in [5, 3, 70, 71, 6, 4] {
            record(&mut ack_state, packet, true, at(0));
        }
        // 70 is 1 before 71, 6 and 4 are 65 and 67 before it: too far, and named first by feedback of their own.
        let feedback = ack_state.feedback(at(1)).unwrap();
        assert_eq!((feedback.newest, feedback.earlier, feedback.refused), (6, 0b10, 0));
        ack_state.feedback_sent(at(1));
        let feedback = ack_state.feedback(at(1)).unwrap();
        assert_eq!((feedback.newest, feedback.delay_ns), (71, 1_000_000));
        assert_eq!(feedback.earlier, 1);
        record(&mut ack_state, u64::MAX - 1, true, at(1));
        assert_eq!(ack_state.feedback(at(1)).unwrap().earlier, 0);
    }

    #[test]
    fn the_sixty_third_before_the_newest_is_still_there() {
        let mut ack_state = AckState::default();
        record(&mut ack_state, 10, true, at(0));
        record(&mut ack_state, 73, true, at(0));
        assert_eq!(ack_state.feedback(at(0)).unwrap().earlier, 1 << 62);
        record(&mut ack_state, 74, true, at(0));
        assert_eq!(ack_state.feedback(at(0)).unwrap().earlier, 1);
    }

    #[test]
    fn an_acknowledgement_waits_two_milliseconds_or_eight_datagrams_or_not_at_all_after_a_gap() {
        let mut ack_state = AckState::default();
        record(&mut ack_state, 0, true, at(0));
        record(&mut ack_state, 1, true, at(1));
        assert_eq!(ack_state.due(), Some(at(2)));
        (2..7).for_each(|packet| record(&mut ack_state, packet, true, at(1)));
        assert_eq!(ack_state.due(), Some(at(2)));
        record(&mut ack_state, 7, true, at(1));
        assert_eq!(ack_state.due(), Some(at(1)));
        assert!(!ack_state.is_urgent());
        ack_state.feedback_sent(at(1));
        assert_eq!((ack_state.due(), ack_state.feedback(at(2))), (None, None));
        record(&mut ack_state, 9, true, at(3));
        assert_eq!(ack_state.due(), Some(at(3)));
        assert!(ack_state.is_urgent());
        ack_state.feedback_sent(at(3));
        assert!(!ack_state.is_urgent());
    }

    #[test]
    fn what_was_refused_is_named_as_long_as_its_arrival_is() {
        let mut ack_state = AckState::default();
        record(&mut ack_state, 0, false, at(0));
        assert_eq!(ack_state.feedback(at(0)).unwrap().refused, 1);
        record(&mut ack_state, 2, true, at(0));
        record(&mut ack_state, 1, false, at(0));
        let feedback = ack_state.feedback(at(0)).unwrap();
        assert_eq!((feedback.newest, feedback.earlier, feedback.refused), (2, 0b11, 0b110));
        record(&mut ack_state, 64, true, at(0));
        let feedback = ack_state.feedback(at(0)).unwrap();
        assert_eq!((feedback.earlier, feedback.refused), (1 << 61 | 1 << 62, 1 << 63));
        record(&mut ack_state, 65, true, at(0));
        let feedback = ack_state.feedback(at(0)).unwrap();
        assert_eq!((feedback.earlier, feedback.refused), (1 | 1 << 62, 0));
    }
}
