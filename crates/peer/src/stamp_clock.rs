//! The clock a node stamps with: the machine's, or an artificial one (spec section 3).
//!
//! The loop itself always runs on a clock of the machine; only what is written into messages and
//! records is what the artificial clock shows. A step must not move the schedule, nor end a wait.

use noctule_local_clock::LocalClock;
use noctule_sys::clock;
use noctule_timebase::Instant;

/// Marker of what a node's clock shows.
enum Shown {}

/// The clock that a node stamps with. The default is `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, Default)]
pub(crate) struct StampClock {
    artificial: Option<LocalClock>,
}

impl StampClock {
    /// `None`: `CLOCK_MONOTONIC`. Otherwise a clock over `CLOCK_MONOTONIC_RAW`.
    pub(crate) fn new(artificial: Option<LocalClock>) -> Self {
        Self { artificial }
    }

    /// Now on the machine's clock under this one.
    #[inline]
    pub(crate) fn now_ns(&self) -> i64 {
        match self.artificial {
            None => clock::now_ns(),
            Some(_) => clock::raw_ns(),
        }
    }

    /// Reading of this clock when the machine's shows `at_ns`.
    #[inline]
    pub(crate) fn shown_ns(&self, at_ns: i64) -> i64 {
        match &self.artificial {
            None => at_ns,
            Some(artificial) => artificial.at::<Shown>(Instant::from_ns(at_ns)).ns(),
        }
    }

    /// Sleeps until the machine's clock under this one shows about `at_ns`.
    pub(crate) fn sleep_until(&self, at_ns: i64) {
        match self.artificial {
            None => clock::sleep_until(at_ns),
            // CLOCK_MONOTONIC_RAW cannot be slept on. The two differ by what NTP slews meanwhile.
            Some(_) => clock::sleep_until(clock::now_ns() + (at_ns - clock::raw_ns())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_artificial_clock_changes_what_is_shown_and_not_what_is_waited_for() {
        let own = StampClock::default();
        assert_eq!(own.shown_ns(7), 7);
        let ahead = StampClock::new(Some("offset=5s,step=1s@10ns,since=0".parse().unwrap()));
        assert_eq!(ahead.shown_ns(7), 5_000_000_007);
        assert_eq!(ahead.shown_ns(10), 6_000_000_010);
        let before_ns = ahead.now_ns();
        assert!(before_ns >= clock::raw_ns() - 1_000_000_000_000 && ahead.now_ns() >= before_ns);
        ahead.sleep_until(before_ns - 1);
    }
}
