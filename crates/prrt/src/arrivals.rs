//! Which reliable datagrams have arrived, and when to say so.

use noctule_timebase::{Instant, Span};

use crate::link::Local;
use crate::wire::Acknowledgement;

/// Packet numbers before the newest that an acknowledgement names: as far as it can say what was refused.
pub(crate) const REACH: u64 = 63;
/// An acknowledgement waits this long for a sample to ride on.
pub(crate) const ACKNOWLEDGEMENT_DELAY: Span = Span::from_ms(2);
/// Later packets that must have arrived before one counts as lost (RFC 9002, section 6.1.1).
pub(crate) const LATER_PACKETS: u64 = 3;
/// After this many datagrams it waits no longer.
const UNSAID_LIMIT: u32 = 8;

/// Packet numbers that arrived: the newest and the [`REACH`] before it.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    newest: Option<(u64, Instant<Local>)>,
    earlier: u64,
    refused: u64,
    /// Arrived since the last acknowledgement.
    unsaid: u32,
    due: Option<Instant<Local>>,
}

impl Arrivals {
    /// Notes an arrival and whether it was taken, be it the first of its number or not: a repetition may
    /// mean that an acknowledgement was lost.
    pub(crate) fn record(&mut self, packet: u64, taken: bool, now: Instant<Local>) {
        let back = match self.newest {
            Some((newest, _)) if packet <= newest => newest - packet,
            before => {
                if let Some((newest, _)) = before {
                    self.advance(packet - newest);
                }
                self.newest = Some((packet, now));
                0
            }
        };
        if (1..=REACH).contains(&back) {
            self.earlier |= 1 << (back - 1);
        }
        if back <= REACH && !taken {
            self.refused |= 1 << back;
        }
        // The three before it: one that is missing is told at once, until the other side knows it lost.
        let recent = (1 << packet.min(LATER_PACKETS)) - 1;
        let in_order = back == 0 && self.earlier & recent == recent;
        self.unsaid += 1;
        let patience =
            if in_order && self.unsaid < UNSAID_LIMIT { ACKNOWLEDGEMENT_DELAY } else { Span::ZERO };
        self.due = Some(self.due.map_or(now + patience, |due| due.min(now + patience)));
    }

    /// The newest number becomes one that is `ahead` higher.
    fn advance(&mut self, ahead: u64) {
        let shift = |bits: u64| if ahead <= REACH { bits << ahead } else { 0 };
        self.refused = shift(self.refused);
        self.earlier = shift(self.earlier) | if ahead <= REACH { 1 << (ahead - 1) } else { 0 };
        self.earlier &= !(1 << REACH);
    }

    /// What there is to acknowledge, if anything arrived since [`said`](Arrivals::said).
    pub(crate) fn acknowledgement(&self, now: Instant<Local>) -> Option<Acknowledgement> {
        let (newest, at) = self.newest.filter(|_| self.unsaid > 0)?;
        let delay_ns = u32::try_from((now - at).ns().max(0)).unwrap_or(u32::MAX);
        Some(Acknowledgement { newest, earlier: self.earlier, refused: self.refused, delay_ns })
    }

    /// An acknowledgement has been sent.
    pub(crate) fn said(&mut self) {
        (self.unsaid, self.due) = (0, None);
    }

    /// When an acknowledgement must be sent even if nothing else is.
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

    #[test]
    fn numbers_that_arrive_in_any_order_are_acknowledged_within_reach() {
        let mut arrivals = Arrivals::default();
        for packet in [5, 3, 70, 71, 6, 4] {
            arrivals.record(packet, true, at(0));
        }
        let said = arrivals.acknowledgement(at(1)).unwrap();
        assert_eq!((said.newest, said.delay_ns), (71, 1_000_000));
        // 70 is 1 before 71, 6 and 5 are 65 and 66 before it: too far.
        assert_eq!(said.earlier, 1);
        arrivals.record(u64::MAX - 1, true, at(1));
        assert_eq!(arrivals.acknowledgement(at(1)).unwrap().earlier, 0);
    }

    #[test]
    fn the_sixty_third_before_the_newest_is_still_there() {
        let mut arrivals = Arrivals::default();
        arrivals.record(10, true, at(0));
        arrivals.record(73, true, at(0));
        assert_eq!(arrivals.acknowledgement(at(0)).unwrap().earlier, 1 << 62);
        arrivals.record(74, true, at(0));
        assert_eq!(arrivals.acknowledgement(at(0)).unwrap().earlier, 1);
    }

    #[test]
    fn an_acknowledgement_waits_two_milliseconds_or_eight_datagrams_or_not_at_all_after_a_gap() {
        let mut arrivals = Arrivals::default();
        arrivals.record(0, true, at(0));
        arrivals.record(1, true, at(1));
        assert_eq!(arrivals.due(), Some(at(2)));
        (2..7).for_each(|packet| arrivals.record(packet, true, at(1)));
        assert_eq!(arrivals.due(), Some(at(2)));
        arrivals.record(7, true, at(1));
        assert_eq!(arrivals.due(), Some(at(1)));
        arrivals.said();
        assert_eq!((arrivals.due(), arrivals.acknowledgement(at(2))), (None, None));
        arrivals.record(9, true, at(3));
        assert_eq!(arrivals.due(), Some(at(3)));
    }

    #[test]
    fn what_was_refused_is_named_as_long_as_its_arrival_is() {
        let mut arrivals = Arrivals::default();
        arrivals.record(0, false, at(0));
        assert_eq!(arrivals.acknowledgement(at(0)).unwrap().refused, 1);
        arrivals.record(2, true, at(0));
        arrivals.record(1, false, at(0));
        let said = arrivals.acknowledgement(at(0)).unwrap();
        assert_eq!((said.newest, said.earlier, said.refused), (2, 0b11, 0b110));
        arrivals.record(64, true, at(0));
        let said = arrivals.acknowledgement(at(0)).unwrap();
        assert_eq!((said.earlier, said.refused), (1 << 61 | 1 << 62, 1 << 63));
        arrivals.record(65, true, at(0));
        let said = arrivals.acknowledgement(at(0)).unwrap();
        assert_eq!((said.earlier, said.refused), (1 | 1 << 62, 0));
    }
}
