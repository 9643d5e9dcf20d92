//! When a drone may leave its place: not before it knows its neighbours.
//!
//! # Problem
//!
//! Bounds cover neighbours whose states have been received. A drone that leaves while one nearby is still unknown flies as if that
//! one were not there: discovery, the first exchange of clocks and a radio that loses can each take seconds.
//!
//! # Approach
//!
//! It waits until it knows all that it expects. Not all of a large swarm are in range, so it is enough that no new one has appeared
//! nearby for a while, and that nothing else changed: as long as states come whose age is not known, because the first exchange
//! of clocks is still under way, or known drones are lost again, a count that does not grow says nothing. The wait has an end, after which the drone leaves with what it knows and says so: [`Clearance`] is the
//! reason. A drone that has received no other's state while it expects some waits for ever: it has no radio.

use noctule_timebase::{Instant, Span};

use crate::Own;

/// Limits of the wait before take-off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TakeOffLimits {
    /// Time without a new drone nearby, and without any other change, after which all in range are known.
    pub quiet: Span,
    /// No longer than this, if any drone is known.
    pub longest: Span,
}

/// Reason for which a drone may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clearance {
    /// It knows all that it expects.
    Complete,
    /// No new drone has appeared nearby for [`TakeOffLimits::quiet`].
    Quiet,
    /// [`TakeOffLimits::longest`] is over, and still a new drone appeared lately.
    Overdue,
}

impl Clearance {
    /// One word for figures.
    pub fn name(self) -> &'static str {
        match self {
            Clearance::Complete => "complete",
            Clearance::Quiet => "quiet",
            Clearance::Overdue => "overdue",
        }
    }
}

/// The wait of one drone.
#[derive(Clone, Debug)]
pub struct TakeOff {
    limits: TakeOffLimits,
    expected: usize,
    since: Option<Instant<Own>>,
    /// Most that were known nearby at once, and when that or anything else last changed.
    nearby: usize,
    changed: Instant<Own>,
    cleared: Option<(Clearance, Span)>,
}

impl TakeOff {
    /// Take-off of a drone that expects states of `expected` others, if all are in range.
    pub fn new(limits: TakeOffLimits, expected: usize) -> TakeOff {
        TakeOff { limits, expected, since: None, nearby: 0, changed: Instant::MIN, cleared: None }
    }

    /// At `now` so many are known in all, and so many of them near enough to matter. True once the drone may leave, and from then on.
    /// The wait begins with the first call.
    pub fn handle_known(&mut self, now: Instant<Own>, known: usize, nearby: usize) -> bool {
        let since = *self.since.get_or_insert(now);
        if nearby > self.nearby || self.changed == Instant::MIN {
            (self.nearby, self.changed) = (nearby, now);
        }
        if self.cleared.is_none() {
            let waited = now - since;
            let clearance = if known >= self.expected {
                Some(Clearance::Complete)
            } else if known > 0 && now - self.changed >= self.limits.quiet {
                Some(Clearance::Quiet)
            } else {
                (known > 0 && waited >= self.limits.longest).then_some(Clearance::Overdue)
            };
            self.cleared = clearance.map(|clearance| (clearance, waited));
        }
        self.cleared.is_some()
    }

    /// A state came that cannot be used yet, or a known one was lost: which are nearby is not settled.
    pub fn handle_unsettled(&mut self, now: Instant<Own>) {
        self.changed = self.changed.max(now);
    }

    /// Why the drone left, and how long it had waited; `None` while it waits.
    pub fn cleared(&self) -> Option<(Clearance, Span)> {
        self.cleared
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: TakeOffLimits = TakeOffLimits { quiet: Span::from_s(3), longest: Span::from_s(10) };

    /// Take-off of a drone that expects nine others, given how many it knows at each second, all of them nearby: time, s, and reason.
    fn leaves(known: impl Fn(i64) -> usize) -> Option<(i64, Clearance)> {
        let mut takeoff = TakeOff::new(LIMITS, 9);
        let leaves = (0..60).find(|second| {
            let now = Instant::from_ns((second + 5) * 1_000_000_000);
            takeoff.handle_known(now, known(*second), known(*second))
        });
        let cleared = takeoff.cleared();
        assert_eq!(leaves.map(Span::from_s), cleared.map(|(_, waited)| waited));
        leaves.zip(cleared.map(|(clearance, _)| clearance))
    }

    #[test]
    fn a_drone_leaves_when_all_are_known_or_nobody_new_comes_or_at_last() {
        assert_eq!(leaves(|second| (2 * second) as usize), Some((5, Clearance::Complete)));
        assert_eq!(leaves(|second| second.min(4) as usize), Some((7, Clearance::Quiet)));
        assert_eq!(leaves(|second| 1 + second as usize / 2), Some((10, Clearance::Overdue)));
        assert_eq!(leaves(|_| 9), Some((0, Clearance::Complete)));
    }

    #[test]
    fn a_drone_that_hears_no_other_stays() {
        assert_eq!(leaves(|_| 0), None);
        // A drone that comes late is waited for from then on.
        assert_eq!(leaves(|second| usize::from(second >= 8)), Some((10, Clearance::Overdue)));
        let mut takeoff = TakeOff::new(LIMITS, 0);
        assert!(takeoff.handle_known(Instant::from_ns(0), 0, 0), "a lone drone expects no other");
    }

    /// A live swarm of 32 on a channel that lost 30 % left after 12 s knowing two thirds: clocks of the others were not known, and some
    /// of which one state had been received were forgotten again; two pairs collided.
    #[test]
    fn a_count_that_stays_says_nothing_while_others_are_heard_without_an_age() {
        let mut takeoff = TakeOff::new(LIMITS, 9);
        let at = |second: i64| Instant::from_ns(second * 1_000_000_000);
        for second in 0..6 {
            takeoff.handle_unsettled(at(second));
            assert!(!takeoff.handle_known(at(second), 4, 4), "after {second} s");
        }
        assert!(!takeoff.handle_known(at(7), 4, 4));
        assert!(takeoff.handle_known(at(8), 4, 4), "three quiet seconds");
        assert_eq!(takeoff.cleared(), Some((Clearance::Quiet, Span::from_s(8))));
        // The wait has an end all the same.
        let mut takeoff = TakeOff::new(LIMITS, 9);
        let leaves = (0..60).find(|second| {
            takeoff.handle_unsettled(at(*second));
            takeoff.handle_known(at(*second), 4, 4)
        });
        assert_eq!((leaves, takeoff.cleared()), (Some(10), Some((Clearance::Overdue, Span::from_s(10)))));
    }

    #[test]
    fn a_drone_far_away_keeps_no_other_waiting() {
        let mut takeoff = TakeOff::new(LIMITS, 99);
        let at = |second: i64| Instant::from_ns(second * 1_000_000_000);
        assert!(!takeoff.handle_known(at(0), 5, 5));
        assert!(!takeoff.handle_known(at(2), 20, 5));
        assert!(takeoff.handle_known(at(3), 40, 5));
        // It has left for good.
        assert!(takeoff.handle_known(at(4), 0, 0));
        assert_eq!(takeoff.cleared(), Some((Clearance::Quiet, Span::from_s(3))));
    }
}
