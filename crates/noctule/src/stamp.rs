//! Time stamps of other clocks of this machine, on the clock of a node.
//!
//! # Problem
//!
//! A camera stamps its frames in `CLOCK_MONOTONIC` (V4L2) or in the wall clock, a network card in TAI (PTP). Source times of samples are on the
//! node's clock, which is none of these.
//!
//! # Approach
//!
//! The other clock is read between two readings of the node's, and again if the two were far apart. That gives the distance now, wrong by at most half of
//! what lay between; a stamp of some time ago or ahead is wrong by as much more as the clocks may have drifted since.

use noctule_sys::clock::{now_ns, realtime_ns, tai_ns};
use noctule_time_sync::Local;
use noctule_timebase::{Instant, Span};

use crate::clock::{self, Raw};
use crate::node::Node;
use crate::publisher::SourceTime;

/// A clock of this machine that others stamp in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StampClock {
    /// `CLOCK_MONOTONIC`: V4L2, most drivers.
    Monotonic,
    /// `CLOCK_REALTIME`: the wall clock, kernel stamps of packets. A stamp from before it was stepped is wrong by the step.
    Realtime,
    /// `CLOCK_TAI`: PTP, if a daemon has set the kernel's offset from UTC to TAI.
    Tai,
}

/// Why a stamp cannot be converted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StampError {
    /// The kernel has no distance between TAI and UTC.
    #[error(
        "the kernel does not know TAI; let the daemon that sets the clock tell it (chrony: leapsectz, linuxptp: phc2sys)"
    )]
    NoTai,
    /// The sum does not fit into 63 bits.
    #[error("a stamp of {ns} ns is beyond all clocks of this machine; give nanoseconds")]
    Range {
        /// The stamp.
        ns: i64,
    },
}

/// The kernel slews a clock by at most 500 ppm, and `adjtime` by as much again.
const SLEW_PPM: i64 = 1_000;
/// Readings of which the narrowest counts, unless one is narrow enough.
const READINGS: usize = 8;
const NARROW_NS: i64 = 500;

/// One reading of another clock between two of ours, ns.
type Bracket = (i64, i64, i64);

fn read(other: fn() -> i64) -> Bracket {
    let mut best: Option<Bracket> = None;
    for _ in 0..READINGS {
        let (before, at, after) = (clock::now().ns(), other(), clock::now().ns());
        if best.is_none_or(|(first, _, last)| after - before < last - first) {
            best = Some((before, at, after));
        }
        if after - before <= NARROW_NS {
            break;
        }
    }
    best.unwrap_or_default()
}

/// Reading of the raw clock at a stamp of another clock, and its bound, ns.
fn raw_of((before, at, after): Bracket, stamp_ns: i64) -> Option<(i64, i64)> {
    let distance = stamp_ns.checked_sub(at)?;
    let middle = before + (after - before) / 2;
    // Half of what lay between, a nanosecond for the division, and the drift, rounded up.
    let drift = distance.unsigned_abs().div_ceil(1_000_000 / SLEW_PPM.unsigned_abs());
    let width = (after - before) / 2 + 1;
    Some((middle.checked_add(distance)?, width.checked_add(i64::try_from(drift).ok()?)?))
}

impl Node {
    /// A stamp of another clock of this machine on the node's clock, as a source time: for
    /// [`publish_uncertain`](crate::Publisher::publish_uncertain) or, where its bound does not matter, `publish_at`. About a microsecond.
    ///
    /// The bound holds unless the other clock was stepped between the stamp and now.
    ///
    /// # Errors
    /// TAI that the kernel does not know; a stamp that no clock can show.
    pub fn source_time_of(&self, clock: StampClock, stamp_ns: i64) -> Result<SourceTime, StampError> {
        let other = match clock {
            StampClock::Monotonic => now_ns,
            StampClock::Realtime => realtime_ns,
            StampClock::Tai => {
                // They differ by whole seconds since 1972.
                if (tai_ns() - realtime_ns()).abs() < 1_000_000_000 {
                    return Err(StampError::NoTai);
                }
                tai_ns
            }
        };
        let (raw_ns, width_ns) = raw_of(read(other), stamp_ns).ok_or(StampError::Range { ns: stamp_ns })?;
        let time: Instant<Local> = self.clock().at(Instant::<Raw>::from_ns(raw_ns));
        Ok(SourceTime { time, bound: Some(Span::from_ns(width_ns)), sigma: None })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_stamp_of_now_is_in_the_middle_and_an_old_one_less_certain() {
        assert_eq!(raw_of((1_000, 50_000, 1_100), 50_000), Some((1_050, 51)));
        // A second ago: a thousandth of it more.
        assert_eq!(
            raw_of((2_000_000_000, 7, 2_000_000_100), 7 - 1_000_000_000),
            Some((1_000_000_050, 1_000_051))
        );
        assert_eq!(raw_of((1_000, i64::MIN, 1_100), 1), None);
    }

    proptest! {
        #[test]
        fn the_truth_is_inside_however_the_other_clock_is_slewed(
            gap in 0i64..100_000, at in 0i64..100_000, ppm in -1_000i64..=1_000, age in 0i64..3_600_000_000_000,
        ) {
            // The other clock runs faster by so many ppm and shows 0 when ours shows `before + at`.
            let before = 1_000_000_000_000_000;
            let at = at.min(gap);
            let truth = before + at - age;
            let shown = -(age + age / 1_000_000 * ppm);
            let (raw, width) = raw_of((before, 0, before + gap), shown).unwrap();
            prop_assert!((raw - truth).abs() <= width + age / 1_000_000 + 1, "{} from the truth, {}", raw - truth, width);
        }
    }
}
