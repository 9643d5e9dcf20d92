//! How a loop kept its time.

use serde::Serialize;

/// Counts of a loop with a fixed period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Lateness {
    /// Periods that ran.
    pub periods: u64,
    /// Periods that began more than one period late.
    pub late_periods: u64,
    /// The latest beginning, ns.
    pub worst_ns: i64,
}

impl Lateness {
    /// Counts how late a period began. The period itself is counted by the loop: late ones may be made up.
    pub(crate) fn record(&mut self, late_ns: i64, period_ns: i64) {
        self.worst_ns = self.worst_ns.max(late_ns);
        self.late_periods += u64::from(late_ns > period_ns);
    }

    /// At most one period in a thousand was late: the lab's rule for a valid run.
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
        let mut lateness = Lateness { periods: 1_000, ..Lateness::default() };
        lateness.record(250_000, 250_000);
        assert_eq!(lateness.late_periods, 0, "a period late is not more than a period late");
        lateness.record(250_001, 250_000);
        assert!(lateness.is_valid());
        lateness.record(3_000_000, 250_000);
        assert!(!lateness.is_valid());
        assert_eq!(lateness.to_string(), "1000 periods, 2 of them late (0.20 %), the latest by 3.00 ms");
    }
}
