//! The schedule of an open loop, kept whatever happens to the messages.

use crate::stamp_clock::StampClock;

/// The sender wakes this long before its turn and spins, because waking takes tens of µs …
const LEAD_NS: i64 = 100_000;

/// Send times at a fixed rate. A late message does not move the ones after it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Schedule {
    first_ns: i64,
    period_ns: f64,
    /// Time before a scheduled send from which it spins, ns: at most a quarter of the period, or it would never sleep.
    pub(crate) lead_ns: i64,
}

impl Schedule {
    pub(crate) fn starting_at(first_ns: i64, rate_hz: f64) -> Self {
        let period_ns = 1e9 / rate_hz;
        Self { first_ns, period_ns, lead_ns: LEAD_NS.min((period_ns / 4.0) as i64) }
    }

    /// When message `number` is due. Computed from the start, so that no rounding adds up.
    pub(crate) fn due_ns(&self, number: u64) -> i64 {
        self.first_ns + (number as f64 * self.period_ns).round() as i64
    }

    /// Sleeps, then spins, until message `number` is due; returns the time it is now.
    pub(crate) fn wait_for(&self, number: u64, clock: &StampClock) -> i64 {
        let due_ns = self.due_ns(number);
        if due_ns - clock.now_ns() > self.lead_ns {
            clock.sleep_until(due_ns - self.lead_ns);
        }
        loop {
            let now_ns = clock.now_ns();
            if now_ns >= due_ns {
                return now_ns;
            }
            std::hint::spin_loop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_does_not_add_up() {
        let schedule = Schedule::starting_at(1_000, 3.0);
        assert_eq!(schedule.due_ns(3_000_000), 1_000 + 1_000_000_000_000_000);
    }

    #[test]
    fn lead_is_at_most_a_quarter_of_the_period() {
        assert_eq!(Schedule::starting_at(0, 10.0).lead_ns, 100_000);
        assert_eq!(Schedule::starting_at(0, 10_000.0).lead_ns, 25_000);
    }
}
