//! An interval for the ratio of two medians (or tails) measured in trials of blocks.
//!
//! The problem: a latency measured again is not the same again. Trials of one program differ by a few
//! per cent (placement of pages, timers, neighbours of a guest), far more than the thousands of
//! samples within a trial suggest. Treating samples as independent finds changes everywhere.
//!
//! The approach: the estimate is the difference of the means, over trials, of the logarithm of each
//! trial's figure. Blocks, shifted to average to their trial's figure, carry the noise within it. It
//! is resampled in two levels, trials first, then blocks
//! within each chosen trial (hierarchical bootstrap; Davison & Hinkley 1997 section 3.8), so that the
//! variation between trials is in the interval. Percentile intervals of few trials are too narrow:
//! the resampled variance is that of a sample of *n* divided by *n*, and normal tails stand in for
//! Student's. Both are corrected by stretching the interval around the estimate by
//! √(n / (n − 1)) · t(df) / z, df after Welch & Satterthwaite, or *n* − 1 for pairs. (The same
//! correction as in Hesterberg 2015, "What teachers should know about the bootstrap", section 4.2.)
//! The second level counts the noise within trials twice, which errs on the careful side.
//!
//! Runs measured in turns are compared pair by pair of trials: what drifts slowly hits both of a pair
//! and cancels.

use crate::random::Random;

/// Probability that the interval holds the truth.
pub const CONFIDENCE: f64 = 0.995;
/// Resamples drawn; 25 lie beyond each end.
pub const RESAMPLES: usize = 10_000;

/// Figures of one side: per trial, natural logarithms of blocks whose mean is that of the trial.
pub(super) type Trials = Vec<Vec<f64>>;

/// Ratio B / A with its interval at [`CONFIDENCE`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RatioInterval {
    /// Geometric mean over trials.
    pub(super) ratio: f64,
    /// Lower end.
    pub(super) low: f64,
    /// Upper end.
    pub(super) high: f64,
}

/// Resamples both sides independently. Each needs at least two trials, each trial a block.
pub(super) fn of_independent(a: &Trials, b: &Trials, resamples: usize, random: &mut Random) -> RatioInterval {
    let estimate = mean_of_means(b) - mean_of_means(a);
    let draws = (0..resamples).map(|_| resampled_mean(b, random) - resampled_mean(a, random)).collect();
    let (freedom, smaller) = (welch_satterthwaite(a, b), a.len().min(b.len()));
    stretched(estimate, draws, freedom, smaller)
}

/// Resamples pairs of trials; `a[i]` was measured next to `b[i]`. Needs at least two pairs.
pub(super) fn of_pairs(a: &Trials, b: &Trials, resamples: usize, random: &mut Random) -> RatioInterval {
    let pairs = a.len().min(b.len());
    let estimate = mean_of_means(&b[..pairs]) - mean_of_means(&a[..pairs]);
    let draws = (0..resamples)
        .map(|_| {
            let difference = |random: &mut Random| {
                let pair = random.below(pairs);
                resampled(&b[pair], random) - resampled(&a[pair], random)
            };
            (0..pairs).map(|_| difference(random)).sum::<f64>() / pairs as f64
        })
        .collect();
    stretched(estimate, draws, pairs - 1, pairs)
}

fn stretched(estimate: f64, mut draws: Vec<f64>, freedom: usize, trials: usize) -> RatioInterval {
    draws.sort_by(f64::total_cmp);
    let beyond = (draws.len() as f64 * (1.0 - CONFIDENCE) / 2.0) as usize;
    let trials = trials as f64;
    let stretch = (trials / (trials - 1.0)).sqrt() * student(freedom) / NORMAL;
    let end = |draw: f64| (estimate + (draw - estimate) * stretch).exp();
    RatioInterval {
        ratio: estimate.exp(),
        low: end(draws[beyond]),
        high: end(draws[draws.len() - 1 - beyond]),
    }
}

fn resampled_mean(trials: &Trials, random: &mut Random) -> f64 {
    let draw = |random: &mut Random| {
        let trial = random.below(trials.len());
        resampled(&trials[trial], random)
    };
    (0..trials.len()).map(|_| draw(random)).sum::<f64>() / trials.len() as f64
}

fn resampled(blocks: &[f64], random: &mut Random) -> f64 {
    let sum: f64 = (0..blocks.len()).map(|_| blocks[random.below(blocks.len())]).sum();
    sum / blocks.len() as f64
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn mean_of_means(trials: &[Vec<f64>]) -> f64 {
    trials.iter().map(|blocks| mean(blocks)).sum::<f64>() / trials.len() as f64
}

/// Degrees of freedom of the difference of two means (Welch 1947), rounded down.
fn welch_satterthwaite(a: &Trials, b: &Trials) -> usize {
    let part = |trials: &Trials| {
        let means: Vec<f64> = trials.iter().map(|blocks| mean(blocks)).collect();
        let centre = mean(&means);
        let squares: f64 = means.iter().map(|x| (x - centre).powi(2)).sum();
        let freedom = (trials.len() - 1) as f64;
        (squares / freedom / trials.len() as f64, freedom)
    };
    let ((va, fa), (vb, fb)) = (part(a), part(b));
    let freedom = (va + vb).powi(2) / (va * va / fa + vb * vb / fb);
    // Trials without any variation: 0 / 0.
    let freedom = if freedom.is_finite() { freedom } else { fa + fb };
    (freedom as usize).max(1)
}

/// Quantile 0.9975 of the standard normal distribution.
const NORMAL: f64 = 2.807;

/// Quantile 0.9975 of Student's distribution with 1 … 30 degrees of freedom.
const STUDENT: [f64; 30] = [
    127.321, 14.089, 7.453, 5.598, 4.773, 4.317, 4.029, 3.833, 3.690, 3.581, 3.497, 3.428, 3.372, 3.326,
    3.286, 3.252, 3.222, 3.197, 3.174, 3.153, 3.135, 3.119, 3.104, 3.091, 3.078, 3.067, 3.057, 3.047, 3.038,
    3.030,
];

/// Beyond 30 degrees of freedom that of 30 serves: at most 8 % too wide.
fn student(freedom: usize) -> f64 {
    STUDENT[freedom.clamp(1, STUDENT.len()) - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Trials with between-trial and within-trial standard deviations, in logarithms.
    fn trials(count: usize, between: f64, within: f64, random: &mut Random) -> Trials {
        (0..count)
            .map(|_| {
                let level = between * random.normal();
                (0..10).map(|_| level + within * random.normal()).collect()
            })
            .collect()
    }

    #[test]
    fn the_interval_holds_the_truth_as_often_as_it_promises_even_with_five_trials() {
        for count in [5, 10] {
            let mut random = Random::new(7);
            let held = (0..400)
                .filter(|_| {
                    let a = trials(count, 0.03, 0.01, &mut random);
                    let b = trials(count, 0.03, 0.01, &mut random);
                    let interval = of_independent(&a, &b, 800, &mut random);
                    interval.low <= 1.0 && 1.0 <= interval.high
                })
                .count();
            // 99.5 % of 400 is 398; fewer than 393 has a probability below 1 %.
            assert!(held >= 393, "{count} trials: {held} of 400");
        }
    }

    #[test]
    fn pairs_cancel_what_drifts_slowly() {
        let mut random = Random::new(8);
        let (mut a, mut b) = (Trials::new(), Trials::new());
        for _ in 0..10 {
            let drift = 0.2 * random.normal();
            let side = |shift: f64, random: &mut Random| -> Vec<f64> {
                (0..10).map(|_| drift + shift + 0.01 * random.normal()).collect()
            };
            a.push(side(0.0, &mut random));
            b.push(side(0.1, &mut random));
        }
        let paired = of_pairs(&a, &b, 2_000, &mut random);
        let independent = of_independent(&a, &b, 2_000, &mut random);
        assert!(paired.low > 1.05 && paired.high < 1.16, "{paired:?}");
        assert!(independent.low < 1.0 && independent.high > 1.2, "{independent:?}");
        assert!((paired.ratio - independent.ratio).abs() < 1e-12);
    }

    #[test]
    fn trials_without_variation_give_a_point() {
        let a = vec![vec![1.0; 10]; 3];
        let b = vec![vec![1.5; 10]; 3];
        let interval = of_independent(&a, &b, 500, &mut Random::new(1));
        for end in [interval.ratio, interval.low, interval.high] {
            assert!((end - 0.5f64.exp()).abs() < 1e-12);
        }
    }
}
