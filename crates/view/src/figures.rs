//! The figures of one topic for one moment, as a row of numbers.

use serde_json::{Value, json};

use crate::sample::ms;

/// Ages of one frame that are kept for its median; of more the older ones are replaced.
pub const FRAME_AGES_MAX: usize = 256;
/// A percentile needs so many ages beyond it, as everywhere in the house.
const BEYOND: usize = 10;

/// Figures over a window, and of the last frame.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// Samples a second.
    pub rate_hz: f64,
    /// Median age over the window, ns; `None` if too few are known.
    pub p50_ns: Option<i64>,
    /// 99th percentile.
    pub p99_ns: Option<i64>,
    /// The largest.
    pub max_ns: Option<i64>,
    /// No age is further from the truth; `None` if that is not proven of all.
    pub bound_ns: Option<i64>,
    /// Share of samples missing over the window.
    pub loss: Option<f64>,
    /// Samples missing since the view began.
    pub missed: u64,
    /// Periods of the deadline that the publisher offers without a sample, and samples older than it; `None` without a deadline.
    pub deadline_missed: Option<u64>,
    /// Bytes a second.
    pub bytes_per_s: f64,
    /// Samples since the view began.
    pub samples: u64,
    /// Median age of the last frame.
    pub frame_ns: Option<i64>,
    /// The largest age of the last frame.
    pub frame_max_ns: Option<i64>,
}

/// Whole deadlines that end within the time between two samples.
pub(crate) fn deadlines_in(gap_ns: i64, deadline_ns: i64) -> u64 {
    let whole = gap_ns.saturating_sub(1).max(0).checked_div(deadline_ns);
    whole.and_then(|count| u64::try_from(count).ok()).unwrap_or(0)
}

impl Figures {
    /// Figures in the order that `web/view/topics.js` reads.
    pub fn row(&self, id: usize) -> Value {
        let short = |value: f64| (value * 100.0).round() / 100.0;
        json!([
            id,
            short(self.rate_hz),
            self.p50_ns.map(ms),
            self.p99_ns.map(ms),
            self.max_ns.map(ms),
            self.bound_ns.map(ms),
            self.loss.map(|loss| (loss * 1e6).round() / 1e6),
            self.missed,
            self.deadline_missed,
            short(self.bytes_per_s),
            self.samples,
            self.frame_ns.map(ms),
            self.frame_max_ns.map(ms),
        ])
    }
}

/// The `dividend`/`divisor` quantile of ages, which are reordered; `None` if fewer than ten lie beyond it.
pub fn quantile(ages_ns: &mut [i64], dividend: usize, divisor: usize) -> Option<i64> {
    let at = ages_ns.len() * dividend / divisor;
    (ages_ns.len() >= at + BEYOND).then(|| *ages_ns.select_nth_unstable(at).1)
}

/// The ages of a frame.
#[derive(Clone, Debug, Default)]
pub struct FrameAges {
    ages_ns: Vec<i64>,
    count: usize,
    max_ns: Option<i64>,
}

impl FrameAges {
    /// One sample more.
    pub fn add(&mut self, age_ns: i64) {
        self.max_ns = self.max_ns.max(Some(age_ns));
        match self.ages_ns.len() < FRAME_AGES_MAX {
            true => self.ages_ns.push(age_ns),
            false => self.ages_ns[self.count % FRAME_AGES_MAX] = age_ns,
        }
        self.count += 1;
    }

    /// Median and maximum; begins the next frame.
    pub fn take(&mut self) -> (Option<i64>, Option<i64>) {
        let middle = self.ages_ns.len() / 2;
        let median = (!self.ages_ns.is_empty()).then(|| *self.ages_ns.select_nth_unstable(middle).1);
        let max_ns = self.max_ns.take();
        self.ages_ns.clear();
        self.count = 0;
        (median, max_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_has_a_median_a_maximum_and_a_limit() {
        let mut frame = FrameAges::default();
        assert_eq!(frame.take(), (None, None));
        (0..10 * FRAME_AGES_MAX as i64).for_each(|age_ns| frame.add(age_ns));
        assert!(frame.ages_ns.len() == FRAME_AGES_MAX);
        let (median, max) = frame.take();
        assert!(median > Some(8 * FRAME_AGES_MAX as i64), "{median:?}");
        assert_eq!(max, Some(10 * FRAME_AGES_MAX as i64 - 1));
        assert_eq!(frame.take(), (None, None));
    }

    #[test]
    fn a_quantile_needs_ages_beyond_it() {
        let mut ages: Vec<i64> = (0..1_000).rev().collect();
        assert_eq!(quantile(&mut ages, 1, 2), Some(500));
        assert_eq!(quantile(&mut ages, 99, 100), Some(990));
        assert_eq!(quantile(&mut ages[..500], 99, 100), None);
    }
}
