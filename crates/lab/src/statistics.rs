//! Order statistics of latencies, by one rule everywhere.
//!
//! A percentile is a value that was measured: `x[⌊qN⌋]` of the sorted samples, no interpolation. It
//! is given only if at least ten samples lie beyond it, because the extreme few of a run say more
//! about luck than about the system (Hyndman & Fan 1996 list the alternatives; this is the plain
//! empirical one). The mean never stands alone. `std` is the sample standard deviation (N − 1).

use serde::{Deserialize, Serialize};

/// Samples that must lie beyond a percentile for it to be reported.
pub const SAMPLES_BEYOND: usize = 10;

/// Summary of a set of latencies, all in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LatencySummary {
    /// Smallest.
    pub min: i64,
    /// Median; `null` with fewer than [`SAMPLES_BEYOND`] samples beyond it, as every percentile.
    pub p50: Option<i64>,
    /// 90th percentile.
    pub p90: Option<i64>,
    /// 95th percentile.
    pub p95: Option<i64>,
    /// 99th percentile.
    pub p99: Option<i64>,
    /// 99.9th percentile.
    pub p99_9: Option<i64>,
    /// Largest.
    pub max: i64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Sample standard deviation; `null` for a single sample.
    pub std: Option<f64>,
}

impl LatencySummary {
    /// Summarises samples sorted in ascending order; `None` if there are none.
    pub fn of_sorted(sorted: &[i64]) -> Option<Self> {
        let (&min, &max) = (sorted.first()?, sorted.last()?);
        debug_assert!(sorted.is_sorted());
        let count = sorted.len() as f64;
        // Offsets from the minimum keep the sums exact enough for epoch-sized values.
        let mean_offset = sorted.iter().map(|x| x.wrapping_sub(min) as f64).sum::<f64>() / count;
        let std = (sorted.len() > 1).then(|| {
            let squares = sorted.iter().map(|x| (x.wrapping_sub(min) as f64 - mean_offset).powi(2));
            (squares.sum::<f64>() / (count - 1.0)).sqrt()
        });
        Some(Self {
            min,
            p50: percentile(sorted, 0.50),
            p90: percentile(sorted, 0.90),
            p95: percentile(sorted, 0.95),
            p99: percentile(sorted, 0.99),
            p99_9: percentile(sorted, 0.999),
            max,
            mean: min as f64 + mean_offset,
            std,
        })
    }

    /// Sorts and summarises; `None` if there are no samples.
    pub fn of(mut samples: Vec<i64>) -> Option<Self> {
        samples.sort_unstable();
        Self::of_sorted(&samples)
    }

    /// Each figure the median over `trials`, withheld if one of them has none; `None` if there are no trials.
    pub fn medians(trials: &[Self]) -> Option<Self> {
        let of = |pick: fn(&Self) -> Option<i64>| {
            let figures: Option<Vec<f64>> =
                trials.iter().map(|trial| pick(trial).map(|ns| ns as f64)).collect();
            figures.and_then(median).map(|ns| ns.round() as i64)
        };
        let std: Option<Vec<f64>> = trials.iter().map(|trial| trial.std).collect();
        Some(Self {
            min: of(|trial| Some(trial.min))?,
            p50: of(|trial| trial.p50),
            p90: of(|trial| trial.p90),
            p95: of(|trial| trial.p95),
            p99: of(|trial| trial.p99),
            p99_9: of(|trial| trial.p99_9),
            max: of(|trial| Some(trial.max))?,
            mean: median(trials.iter().map(|trial| trial.mean).collect())?,
            std: std.and_then(median),
        })
    }
}

/// The middle value, the mean of the two middle ones of an even number; `None` if there are none.
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    noctule_proto_kit::median(&mut values)
}

/// `x[⌊qN⌋]` of ascending samples, or `None` with fewer than [`SAMPLES_BEYOND`] samples beyond it.
pub fn percentile(sorted: &[i64], q: f64) -> Option<i64> {
    let rank = rank(sorted.len(), q)?;
    (sorted.len() - 1 - rank >= SAMPLES_BEYOND).then(|| sorted[rank])
}

/// `x[⌊qN⌋]` of ascending samples however few they are; `None` only if there are none.
pub fn order_statistic(sorted: &[i64], q: f64) -> Option<i64> {
    rank(sorted.len(), q).map(|rank| sorted[rank])
}

fn rank(count: usize, q: f64) -> Option<usize> {
    let last = count.checked_sub(1)?;
    // 1e-9 absorbs the representation error of products such as 0.999 × 1000.
    Some(((q * count as f64 + 1e-9).floor() as usize).min(last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentile_is_the_sample_at_the_floor_of_q_n() {
        let sorted: Vec<i64> = (0..1000).collect();
        assert_eq!(percentile(&sorted, 0.5), Some(500));
        assert_eq!(percentile(&sorted, 0.9), Some(900));
        assert_eq!(percentile(&sorted, 0.95), Some(950));
    }

    #[test]
    fn percentile_is_withheld_with_fewer_than_ten_samples_beyond_it() {
        let thousand: Vec<i64> = (0..1000).collect();
        assert_eq!(percentile(&thousand, 0.99), None, "rank 990 leaves 9 beyond");
        let more: Vec<i64> = (0..1100).collect();
        assert_eq!(percentile(&more, 0.99), Some(1089));
        assert_eq!(percentile(&more, 0.999), None);
    }

    #[test]
    fn rank_does_not_slip_by_rounding() {
        let sorted: Vec<i64> = (0..100_000).collect();
        assert_eq!(percentile(&sorted, 0.999), Some(99_900));
    }

    #[test]
    fn std_is_the_sample_standard_deviation() {
        let summary = LatencySummary::of(vec![2, 4, 4, 4, 5, 5, 7, 9]).unwrap();
        assert_eq!(summary.mean, 5.0);
        assert!((summary.std.unwrap() - (32.0f64 / 7.0).sqrt()).abs() < 1e-12);
        assert_eq!(summary.p50, None);
    }

    #[test]
    fn the_median_over_trials_is_withheld_where_one_has_no_figure() {
        let trial = |ns: i64, samples| LatencySummary::of(vec![ns; samples]).unwrap();
        let medians = LatencySummary::medians(&[trial(10, 30), trial(40, 30), trial(20, 30)]).unwrap();
        assert_eq!((medians.p50, medians.p99, medians.max), (Some(20), None, 20));
        assert_eq!(LatencySummary::medians(&[trial(10, 30), trial(20, 5)]).unwrap().p50, None);
        assert_eq!(LatencySummary::medians(&[]), None);
        assert_eq!((median(vec![3.0, 1.0]), median(vec![])), (Some(2.0), None));
    }

    #[test]
    fn extremes_of_the_integer_range_do_not_panic() {
        assert!(LatencySummary::of(vec![i64::MIN, 0, i64::MAX]).is_some());
        assert_eq!(LatencySummary::of(vec![]), None);
        assert_eq!(LatencySummary::of(vec![7]).unwrap().std, None);
    }
}
