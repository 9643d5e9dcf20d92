//! When did a datagram arrive? From the kernel's stamp to the local clock, never too early.
//!
//! # Problem
//!
//! The kernel stamps a datagram before it wakes a thread, tens of microseconds earlier than the program
//! can. But it stamps in `CLOCK_REALTIME`, which may be stepped at any moment, and a bound must
//! not depend on that.
//!
//! # Approach
//!
//! An arrival may only be stamped too late, never too early: then `t3 − t4 ≤ offset ≤ t2 − t1` still
//! holds. So every uncertainty of the conversion is added to the stamp.
//!
//! `CLOCK_REALTIME − CLOCK_MONOTONIC` changes by steps alone: both are slewed alike. It is read
//! before a datagram arrives and after; the smaller of the two differences, at the low end of its
//! bracket, gives the latest moment that the stamp can mean, even if the wall clock was stepped once
//! between the two. From `CLOCK_MONOTONIC` to the crystal it is then only the time since the arrival
//! that counts, at a rate which differs by no more than [`SLEW_LIMIT_PPM`].
//!
//! A stamp that does not fit (the differences disagree, it lies before the first reading or after the
//! second) is invalid: the program's own reading is used instead, and counted.
//!
//! The derivation, and what it is worth: `docs/design/time-sync.md`.

use noctule_sys::clock::{ThreeClocks, three_clocks};
use noctule_timebase::{Instant, Span};

use crate::clock::Raw;

/// The kernel slews its clocks against the crystal by no more than this: 500 ppm of frequency and
/// 500 ppm of `adjtime`. A premise: a daemon that changes the kernel's tick can do more. Where more is
/// seen since the datagram before, stamps are not used.
pub const SLEW_LIMIT_PPM: i64 = 1_000;

/// How arrivals were stamped. Each saturates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArrivalCounters {
    /// By the kernel.
    pub kernel: u32,
    /// By this program, because the kernel gave no stamp or was not asked to.
    pub unstamped: u32,
    /// By this program, because the kernel's stamp was invalid.
    pub implausible: u32,
}

/// Converts stamps of one socket, datagram by datagram.
#[derive(Debug)]
pub struct Arrivals {
    before: ThreeClocks,
    counters: ArrivalCounters,
}

impl Default for Arrivals {
    fn default() -> Arrivals {
        Arrivals::new()
    }
}

impl Arrivals {
    /// For a socket that stamps from now on.
    pub fn new() -> Arrivals {
        Arrivals { before: three_clocks(), counters: ArrivalCounters::default() }
    }

    /// How arrivals were stamped so far.
    pub fn counters(&self) -> ArrivalCounters {
        self.counters
    }

    /// When the datagram arrived that was received just now, by the kernel's stamp if it has a
    /// valid one.
    pub fn handle(&mut self, stamp_realtime_ns: Option<i64>) -> Instant<Raw> {
        let after = three_clocks();
        let converted = stamp_realtime_ns.map(|stamp_ns| latest_raw_ns(stamp_ns, &self.before, &after));
        self.before = after;
        let (raw_ns, counter) = match converted {
            Some(Some(raw_ns)) => (raw_ns, &mut self.counters.kernel),
            Some(None) => (after.raw_before_ns, &mut self.counters.implausible),
            None => (after.raw_before_ns, &mut self.counters.unstamped),
        };
        *counter = counter.saturating_add(1);
        Instant::from_ns(raw_ns)
    }
}

/// A datagram that seems to have lain in its socket for longer did not: more likely the wall clock was stepped.
const WAIT_MOST: Span = Span::from_s(1);

/// When the datagram came that is taken in `now`, when the wall clock says `realtime_ns`. For what needs no proof: one reading of a
/// clock, and wrong for a datagram that the wall clock was stepped behind.
pub(crate) fn came(stamp_realtime_ns: Option<i64>, realtime_ns: i64, now: Instant<Raw>) -> Instant<Raw> {
    let waited = Span::from_ns(stamp_realtime_ns.map_or(0, |stamp_ns| realtime_ns.saturating_sub(stamp_ns)));
    if (Span::ZERO..=WAIT_MOST).contains(&waited) { now - waited } else { now }
}

/// The latest reading of the crystal at which the kernel can have taken the stamp, which is never
/// later than `after`; `None` if the stamp is invalid.
fn latest_raw_ns(stamp_ns: i64, before: &ThreeClocks, after: &ThreeClocks) -> Option<i64> {
    // Wall clock minus CLOCK_MONOTONIC: at least, at most.
    let wall = |clocks: &ThreeClocks| {
        let least = clocks.realtime_ns.checked_sub(clocks.monotonic_after_ns)?;
        let most = clocks.realtime_ns.checked_sub(clocks.monotonic_before_ns)?;
        Some((least, most))
    };
    let ((least_before, most_before), (least_after, most_after)) = (wall(before)?, wall(after)?);
    let stepped = least_before > most_after || least_after > most_before;
    let elapsed_ns = after.raw_after_ns.checked_sub(before.raw_before_ns)?;
    let elapsed_monotonic_ns = after.monotonic_before_ns.checked_sub(before.monotonic_after_ns)?;
    let brackets_ns =
        (before.raw_after_ns - before.raw_before_ns) + (after.raw_after_ns - after.raw_before_ns);
    let slewed_ns = elapsed_monotonic_ns.checked_sub(elapsed_ns)?.checked_abs()?;
    if stepped || slewed_ns > brackets_ns.saturating_add(slack_ns(elapsed_ns)) {
        return None;
    }
    // The same moment on CLOCK_MONOTONIC.
    let earliest_ns = stamp_ns.checked_sub(most_before.max(most_after))?;
    let latest_ns = stamp_ns.checked_sub(least_before.min(least_after))?;
    // Before the first reading steps were not watched for; after the second it is in the future.
    if earliest_ns < before.monotonic_after_ns || earliest_ns > after.monotonic_before_ns {
        return None;
    }
    let age_ns = (after.monotonic_before_ns - latest_ns).max(0);
    let raw_ns = after.raw_after_ns - age_ns + slack_ns(age_ns);
    // Whatever the kernel says, it arrived before the program had it.
    Some(raw_ns.min(after.raw_before_ns))
}

/// The most that `elapsed_ns` can differ between two clocks of the kernel, rounded up.
fn slack_ns(elapsed_ns: i64) -> i64 {
    elapsed_ns / (1_000_000 / SLEW_LIMIT_PPM) + 1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_lay_in_its_socket_came_before_unless_that_would_be_absurd() {
        let (now, realtime_ns) = (Instant::<Raw>::from_ns(7_000_000_000), 1_700_000_000_000_000_000);
        let lay = |waited_ns: i64| (now - came(Some(realtime_ns - waited_ns), realtime_ns, now)).ns();
        assert_eq!([0, 40_000, 50_000_000, 1_000_000_000].map(lay), [0, 40_000, 50_000_000, 1_000_000_000]);
        assert_eq!([-1, 1_000_000_001, i64::MAX, i64::MIN / 2].map(lay), [0; 4]);
        assert_eq!(came(None, realtime_ns, now), now);
    }

    /// A kernel whose monotonic clock runs `slew_ppm` fast and whose wall clock is stepped once.
    #[derive(Clone, Copy, Debug)]
    struct Kernel {
        slew_ppm: i64,
        step_at_ns: i64,
        step_by_ns: i64,
    }

    impl Kernel {
        fn monotonic_ns(&self, raw_ns: i64) -> i64 {
            77_000 + raw_ns + raw_ns * self.slew_ppm / 1_000_000
        }

        fn realtime_ns(&self, raw_ns: i64) -> i64 {
            let stepped_ns = if raw_ns >= self.step_at_ns { self.step_by_ns } else { 0 };
            1_763_000_000_000_000_000 + self.monotonic_ns(raw_ns) + stepped_ns
        }

        /// Five readings, `gap_ns` apart.
        fn three_clocks(&self, raw_ns: i64, gap_ns: i64) -> ThreeClocks {
            ThreeClocks {
                raw_before_ns: raw_ns,
                monotonic_before_ns: self.monotonic_ns(raw_ns + gap_ns),
                realtime_ns: self.realtime_ns(raw_ns + 2 * gap_ns),
                monotonic_after_ns: self.monotonic_ns(raw_ns + 3 * gap_ns),
                raw_after_ns: raw_ns + 4 * gap_ns,
            }
        }
    }

    const STEADY: Kernel = Kernel { slew_ppm: 20, step_at_ns: i64::MAX, step_by_ns: 0 };

    /// A datagram of 50 µs ago, after an idle second.
    fn converted(kernel: &Kernel) -> Option<i64> {
        let (before, after) = (kernel.three_clocks(0, 25), kernel.three_clocks(1_000_050_000, 25));
        latest_raw_ns(kernel.realtime_ns(1_000_000_000), &before, &after)
    }

    #[test]
    fn a_steady_clock_gives_the_moment_within_the_brackets() {
        let late_ns = converted(&STEADY).unwrap() - 1_000_000_000;
        assert!((0..=250).contains(&late_ns), "{late_ns}");
    }

    #[test]
    fn a_step_of_the_wall_clock_either_way_is_seen() {
        for step_by_ns in [-20_000_000, -1_000, 1_000, 20_000_000] {
            for step_at_ns in [500_000_000, 1_000_010_000] {
                assert_eq!(converted(&Kernel { step_at_ns, step_by_ns, ..STEADY }), None);
            }
        }
    }

    #[test]
    fn a_clock_slewed_beyond_the_premise_is_not_used() {
        assert_eq!(converted(&Kernel { slew_ppm: 2_000, ..STEADY }), None);
        assert_eq!(converted(&Kernel { slew_ppm: -50_000, ..STEADY }), None);
    }

    #[test]
    fn a_stamp_from_before_the_first_reading_or_from_the_future_is_invalid() {
        let (before, after) = (STEADY.three_clocks(1_000, 25), STEADY.three_clocks(90_000, 25));
        let converted = |raw_ns| latest_raw_ns(STEADY.realtime_ns(raw_ns), &before, &after);
        assert_eq!(converted(500), None);
        assert_eq!(converted(95_000), None);
        assert!(converted(50_000).is_some());
        for stamp_ns in [i64::MIN, 0, i64::MAX] {
            assert_eq!(latest_raw_ns(stamp_ns, &before, &after), None);
        }
    }

    #[test]
    fn a_real_datagram_is_stamped_before_it_was_read() {
        let mut arrivals = Arrivals::new();
        let now = three_clocks();
        let arrived = arrivals.handle(Some(now.realtime_ns));
        assert!(arrived.ns() <= noctule_sys::clock::raw_ns());
        arrivals.handle(None);
        arrivals.handle(Some(0));
        let counters = arrivals.counters();
        assert_eq!((counters.unstamped, counters.implausible), (1, 1));
        assert_eq!(counters.kernel, 1);
    }

    proptest! {
        #[test]
        fn no_single_step_at_any_moment_makes_a_stamp_too_early(
            slew_ppm in -SLEW_LIMIT_PPM..=SLEW_LIMIT_PPM,
            step_at_ns in -1_000_000_i64..2_000_000,
            step_by_ns in prop_oneof![-500_i64..500, -100_000_i64..100_000, any::<i32>().prop_map(i64::from)],
            gaps_ns in (1_i64..2_000, 1_i64..2_000),
            arrived_ns in -100_000_i64..1_000_000,
            waited_ns in 0_i64..100_000,
        ) {
            let kernel = Kernel { slew_ppm, step_at_ns, step_by_ns };
            let before = kernel.three_clocks(0, gaps_ns.0);
            let after = kernel.three_clocks(arrived_ns.max(10_000) + waited_ns, gaps_ns.1);
            if let Some(latest_ns) = latest_raw_ns(kernel.realtime_ns(arrived_ns), &before, &after) {
                prop_assert!(latest_ns >= arrived_ns, "{} ns too early", arrived_ns - latest_ns);
                prop_assert!(latest_ns <= after.raw_before_ns);
            }
        }
    }
}
