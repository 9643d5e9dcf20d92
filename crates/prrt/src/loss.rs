//! Loss of packets in bursts, estimated from what the receiver reports.

use crate::gilbert::LOSS_MAX;
pub use crate::gilbert::LossModel;

/// Estimates [`LossModel`] from runs of lost and of delivered packets, as receivers report them.
///
/// Problem: a plan made with too little loss misses its target, and losses are rare: a path has lost three
/// packets in its first second, or none. A mean is then worth little, and one stall changes everything.
///
/// Approach: counts, not rates. Packets, losses and bursts are counted with a memory of [`MEMORY_PACKETS`];
/// the prior below is worth a few of each. Losses come in bursts and are not independent evidence, so the
/// uncertainty of the share is that of the number of *bursts*, which is about Poisson: the share used for
/// planning is that of one standard error more bursts than were seen.
#[derive(Clone, Debug)]
pub struct LossEstimator {
    packets: f64,
    lost: f64,
    bursts: f64,
}

/// Packets after which a count weighs 1/e; at 200 Hz, 100 s.
pub const MEMORY_PACKETS: f64 = 20_000.0;
/// What is assumed of a path nobody has measured: 1 % lost, in bursts of 2, worth this many packets.
const PRIOR_PACKETS: f64 = 400.0;
const PRIOR_LOST: f64 = 4.0;
const PRIOR_BURSTS: f64 = 2.0;

impl Default for LossEstimator {
    fn default() -> LossEstimator {
        LossEstimator::new()
    }
}

impl LossEstimator {
    /// Of a path of which nothing is known.
    pub fn new() -> LossEstimator {
        LossEstimator { packets: PRIOR_PACKETS, lost: PRIOR_LOST, bursts: PRIOR_BURSTS }
    }

    /// A report about packets not reported before: `delivered` and `lost`, of which `bursts` is the number of
    /// runs of losses that *began*. What cannot be (more bursts than losses) is taken as the nearest that can.
    pub fn handle_report(&mut self, delivered: u32, lost: u32, bursts: u32) {
        let packets = f64::from(delivered) + f64::from(lost);
        let kept = (-packets / MEMORY_PACKETS).exp();
        self.packets = self.packets * kept + packets;
        self.lost = self.lost * kept + f64::from(lost);
        self.bursts = self.bursts * kept + f64::from(bursts.min(lost));
    }

    /// Share of lost packets, as counted: 0 to 1.
    pub fn share(&self) -> f64 {
        (self.lost / self.packets).clamp(0.0, LOSS_MAX)
    }

    /// Mean packets lost in a row, as counted: at least 1.
    pub fn mean_burst(&self) -> f64 {
        if self.bursts > 0.0 { (self.lost / self.bursts).max(1.0) } else { 1.0 }
    }

    /// Standard error of [`share`](LossEstimator::share) from the number of bursts it rests on.
    ///
    /// Of N Poisson bursts of geometric length with mean L, the losses have variance N · E\[length²\] =
    /// N · (2L² − L).
    pub fn share_error(&self) -> f64 {
        let length = self.mean_burst();
        (self.bursts * (2.0 * length * length - length)).sqrt() / self.packets
    }

    /// What to plan with: one standard error more loss than counted, in bursts of the length counted.
    pub fn model(&self) -> LossModel {
        let p = self.share() + self.share_error();
        LossModel::Bursts { p: p.min(LOSS_MAX), mean_burst: self.mean_burst() }
    }
}

#[cfg(test)]
mod tests {
    use noctule_netsim::random::Random;

    use super::*;
    use crate::gilbert::Gilbert;

    /// `reports` of 50 packets each of a Gilbert channel.
    fn observe(estimator: &mut LossEstimator, model: LossModel, reports: usize, seed: u64) {
        let channel = Gilbert::new(&model);
        let mut random = Random::new(seed);
        let mut in_burst = false;
        for _ in 0..reports {
            let (mut delivered, mut lost, mut bursts) = (0, 0, 0);
            for _ in 0..50 {
                let lost_now =
                    if in_burst { !random.chance(channel.ends) } else { random.chance(channel.begins) };
                bursts += u32::from(lost_now && !in_burst);
                lost += u32::from(lost_now);
                delivered += u32::from(!lost_now);
                in_burst = lost_now;
            }
            estimator.handle_report(delivered, lost, bursts);
        }
    }

    #[test]
    fn the_estimate_covers_the_truth_and_is_not_far_above_it() {
        for seed in 1..=20 {
            for (p, mean_burst) in [(0.01, 1.0), (0.05, 3.0), (0.2, 3.0)] {
                let mut estimator = LossEstimator::new();
                observe(&mut estimator, LossModel::Bursts { p, mean_burst }, 2_000, seed);
                let error = estimator.share_error();
                assert!((estimator.share() - p).abs() < 4.0 * error, "seed {seed}: {estimator:?}");
                assert!(error < 0.12 * p, "seed {seed}: {error}");
                assert!(
                    (estimator.mean_burst() / mean_burst - 1.0).abs() < 0.25,
                    "seed {seed}: {estimator:?}"
                );
            }
        }
    }

    #[test]
    fn the_standard_error_is_the_scatter_of_independent_estimates() {
        let model = LossModel::Bursts { p: 0.05, mean_burst: 3.0 };
        let estimates: Vec<LossEstimator> = (0..400)
            .map(|seed| {
                let mut estimator = LossEstimator::new();
                observe(&mut estimator, model, 100, seed);
                estimator
            })
            .collect();
        let mean = estimates.iter().map(LossEstimator::share).sum::<f64>() / 400.0;
        let scatter = (estimates.iter().map(|one| (one.share() - mean).powi(2)).sum::<f64>() / 399.0).sqrt();
        let claimed = estimates.iter().map(LossEstimator::share_error).sum::<f64>() / 400.0;
        assert!((0.8..1.25).contains(&(claimed / scatter)), "claimed {claimed}, scatter {scatter}");
    }

    #[test]
    fn a_path_nobody_measured_is_planned_with_the_prior_and_soon_with_what_it_does() {
        let mut estimator = LossEstimator::new();
        let LossModel::Bursts { p: cold, .. } = estimator.model() else { panic!() };
        assert!((0.01..0.03).contains(&cold), "{cold}");
        observe(&mut estimator, LossModel::Independent { p: 0.0 }, 400, 1);
        let LossModel::Bursts { p: clean, .. } = estimator.model() else { panic!() };
        assert!(clean < 0.000_5, "{clean}");
    }

    #[test]
    fn a_change_is_followed_within_the_memory() {
        let mut estimator = LossEstimator::new();
        observe(&mut estimator, LossModel::Bursts { p: 0.2, mean_burst: 3.0 }, 2_000, 1);
        observe(&mut estimator, LossModel::Independent { p: 0.0 }, 1_200, 2);
        assert!(estimator.share() < 0.02, "{estimator:?}");
    }

    #[test]
    fn no_report_makes_the_model_impossible() {
        let mut estimator = LossEstimator::new();
        for (delivered, lost, bursts) in [(0, 0, 9), (0, u32::MAX, 1), (0, 5, 500), (u32::MAX, 0, u32::MAX)] {
            estimator.handle_report(delivered, lost, bursts);
            let LossModel::Bursts { p, mean_burst } = estimator.model() else { panic!() };
            assert!((0.0..=LOSS_MAX).contains(&p) && mean_burst >= 1.0 && mean_burst.is_finite());
        }
    }
}
