//! How a loop kept its time.

use serde::Serialize;

/// Counts of a loop with a fixed period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Lateness {
    /// Periods that were due.
    pub periods: u64,
    /// Periods that began more than one period late, or were left out after a stall.
    pub late_periods: u64,
    /// The latest beginning, ns.
    pub worst_ns: i64,
}

impl Lateness {
    /// Counts the period that was due `late_ns` ago, and those that have become due since: a loop that slept through ten of them
    /// begins nine of them late, and not one. Returns how many are due besides the first.
    pub(crate) fn record(&mut self, late_ns: i64, period_ns: i64) -> i64 {
        let late_ns = late_ns.max(0);
        let behind = late_ns / period_ns;
        self.worst_ns = self.worst_ns.max(late_ns);
        self.periods += 1 + behind as u64;
        // The one that was due first is `late_ns` late, each later one a period less.
        self.late_periods += (late_ns - 1).max(0) as u64 / period_ns as u64;
        behind
    }

    /// Whether at most one period in a thousand was late: the lab's rule for a valid run.
    pub fn is_valid(&self) -> bool {
        self.late_periods * 1_000 <= self.periods
    }
}

impl std::fmt::Display for Lateness {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Lateness { periods, late_periods, worst_ns } = self;
        let share = 100.0 * *late_periods as f64 / (*periods).max(1) as f64;
        let worst_ms = *worst_ns as f64 * 1e-6;
        write!(
            out,
            "{periods} periods, {late_periods} of them late ({share:.2} %), the latest by {worst_ms:.2} ms"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_late_period_in_a_thousand_is_valid_and_two_are_not() {
        let mut lateness = Lateness { periods: 997, ..Lateness::default() };
        assert_eq!(lateness.record(250_000, 250_000), 1);
        assert_eq!(lateness.late_periods, 0, "a period late is not more than a period late");
        assert_eq!(lateness.record(250_001, 250_000), 1);
        assert!(lateness.is_valid(), "{lateness}");
        lateness.record(250_001, 250_000);
        assert!(!lateness.is_valid());
        assert_eq!(lateness.to_string(), "1003 periods, 2 of them late (0.20 %), the latest by 0.25 ms");
    }

    #[test]
    fn every_period_that_a_stall_held_up_is_late() {
        let mut lateness = Lateness::default();
        // Due at 0, 1, 2 … ms; the loop wakes at 20.5 ms: the first one is 20.5 ms late, the last one half a millisecond.
        assert_eq!(lateness.record(20_500_000, 1_000_000), 20);
        assert_eq!((lateness.periods, lateness.late_periods), (21, 20));
        // A loop that is early is not late.
        assert_eq!(lateness.record(-3, 1_000_000), 0);
        assert_eq!((lateness.periods, lateness.late_periods, lateness.worst_ns), (22, 20, 20_500_000));
    }
}
