//! Whether marks of queues come through, by what the receiver counts (RFC 9000, section 13.4.2); and how many there were.
//!
//! Everything that a link sends can be marked until the counts contradict that: a path that clears the bits, or sets them, or drops
//! what has them, would otherwise be taken for one without a queue, or with one that never ends.

use crate::stream::Ecn;
use crate::wire::Marks;

/// Feedback without counts after which they are not expected any more: a receiver that sees the bits tells its counts in one of 32.
const UNREPORTED_MAX: u32 = 256;
/// A path that marks so many in a row marks everything; and one that marks the first so many, which are too few for a queue of ours.
const MARKED_MAX: u64 = 4_096;
const MARKED_FIRST: u64 = 8;
/// Time-outs before anything was counted: what can be marked is dropped.
const TIMEOUTS_MAX: u32 = 3;

/// What is known of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing was counted yet.
    Testing,
    Capable,
    /// The bits do not come through.
    Failed,
}

/// The validation of a path.
#[derive(Debug)]
pub(crate) struct EcnValidation {
    state: State,
    /// The counts reported last, and by the feedback on which packet; `None` where it is not known with which they began.
    reported: Option<Marks>,
    reported_at: u64,
    /// The first packet that was sent on this path, and what was counted of those from it on.
    first: u64,
    counted: u64,
    /// The same that are known to have arrived.
    acknowledged: u64,
    unreported: u32,
    marked_in_a_row: u64,
    timeouts: u32,
}

impl EcnValidation {
    pub(crate) fn new() -> EcnValidation {
        EcnValidation {
            state: State::Testing,
            reported: Some(Marks::default()),
            reported_at: 0,
            first: 0,
            counted: 0,
            acknowledged: 0,
            unreported: 0,
            marked_in_a_row: 0,
            timeouts: 0,
        }
    }

    /// What is sent from now on, beginning with packet `first`, goes another way.
    pub(crate) fn restart(&mut self, first: u64) {
        *self = EcnValidation { reported: None, first, ..EcnValidation::new() };
    }

    /// What datagrams carry.
    pub(crate) fn codepoint(&self) -> Ecn {
        if self.state == State::Failed { Ecn::NotCapable } else { Ecn::Capable0 }
    }

    /// Packet `number` is known to have arrived.
    pub(crate) fn acknowledge(&mut self, number: u64) {
        self.acknowledged += u64::from(number >= self.first);
    }

    /// Nothing was heard for the time-out.
    pub(crate) fn timed_out(&mut self) {
        self.timeouts += 1;
        if self.state == State::Testing && self.counted == 0 && self.timeouts >= TIMEOUTS_MAX {
            self.state = State::Failed;
        }
    }

    /// Feedback on `newest` came, when `next` was the number of the next packet. Gives how many more are marked.
    pub(crate) fn handle_feedback(&mut self, newest: u64, marks: Option<Marks>, next: u64) -> u32 {
        if self.state == State::Failed || newest < self.reported_at.max(self.first) {
            return 0;
        }
        let Some(marks) = marks else {
            self.unreported += 1;
            if self.unreported > UNREPORTED_MAX {
                self.state = State::Failed;
            }
            return 0;
        };
        (self.reported_at, self.unreported) = (newest, 0);
        let Some(before) = self.reported.replace(marks) else {
            self.acknowledged = 0;
            return 0;
        };
        let capable = marks.capable.wrapping_sub(before.capable);
        let marked = marks.marked.wrapping_sub(before.marked);
        self.counted += u64::from(capable);
        let is_cleared = self.counted < self.acknowledged;
        let is_invented = marked > capable || self.counted > next - self.first;
        self.marked_in_a_row = if marked == capable { self.marked_in_a_row + u64::from(marked) } else { 0 };
        let is_first = self.counted == self.marked_in_a_row && self.counted >= MARKED_FIRST;
        if is_cleared || is_invented || is_first || self.marked_in_a_row >= MARKED_MAX {
            self.state = State::Failed;
            return 0;
        }
        self.state = State::Capable;
        u32::from(marked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feedback on sixteen packets each, of which so many were counted and marked.
    fn after(rounds: u64, capable: u16, marked: u16) -> (EcnValidation, u32) {
        let (mut ecn, mut sum) = (EcnValidation::new(), 0);
        for round in 1..=rounds {
            (0..16).for_each(|number| ecn.acknowledge(16 * (round - 1) + number));
            let marks = Marks {
                capable: (round as u16).wrapping_mul(capable),
                marked: (round as u16).wrapping_mul(marked),
            };
            sum += ecn.handle_feedback(16 * round - 1, Some(marks), 16 * round);
        }
        (ecn, sum)
    }

    #[test]
    fn marks_count_where_the_bits_come_through() {
        // Beyond what the counts can hold.
        let (ecn, marked) = after(5_000, 16, 3);
        assert_eq!((ecn.codepoint(), marked), (Ecn::Capable0, 15_000));
    }

    #[test]
    fn a_path_that_clears_or_invents_or_sets_all_bits_is_found_out() {
        for (rounds, capable, marked) in [(1, 0, 0), (1, 15, 0), (1, 17, 0), (2, 16, 17), (1, 16, 16)] {
            let (ecn, _) = after(rounds, capable, marked);
            assert_eq!(ecn.codepoint(), Ecn::NotCapable, "{capable} and {marked} of 16");
        }
        let (mut ecn, _) = after(1, 16, 0);
        for round in 2..=257_u16 {
            assert_eq!(ecn.codepoint(), Ecn::Capable0, "{round}");
            let marks = Marks { capable: 16 * round, marked: 16 * (round - 1) };
            ecn.handle_feedback(u64::from(16 * round - 1), Some(marks), u64::from(16 * round));
        }
        assert_eq!(ecn.codepoint(), Ecn::NotCapable);
    }

    #[test]
    fn a_receiver_that_tells_nothing_and_a_path_that_lets_nothing_through_end_it() {
        let mut silent = EcnValidation::new();
        (0..=UNREPORTED_MAX).for_each(|number| _ = silent.handle_feedback(number.into(), None, 1_000));
        assert_eq!(silent.codepoint(), Ecn::NotCapable);
        let mut dropping = EcnValidation::new();
        (0..TIMEOUTS_MAX).for_each(|_| dropping.timed_out());
        assert_eq!(dropping.codepoint(), Ecn::NotCapable);
        let (mut capable, _) = after(1, 16, 0);
        (0..TIMEOUTS_MAX).for_each(|_| capable.timed_out());
        assert_eq!(capable.codepoint(), Ecn::Capable0);
    }

    #[test]
    fn another_path_is_tried_anew_and_packets_of_the_one_before_do_not_count() {
        let (mut ecn, _) = after(1, 0, 0);
        ecn.restart(20);
        assert_eq!(ecn.codepoint(), Ecn::Capable0);
        (16..24).for_each(|number| ecn.acknowledge(number));
        assert_eq!(ecn.handle_feedback(23, Some(Marks { capable: 4, marked: 1 }), 32), 0);
        (24..32).for_each(|number| ecn.acknowledge(number));
        assert_eq!(ecn.handle_feedback(31, Some(Marks { capable: 12, marked: 3 }), 32), 2);
        assert_eq!(ecn.codepoint(), Ecn::Capable0);
    }
}
