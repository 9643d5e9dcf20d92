//! Estimation of the path's loss rate and burst length (Gilbert model) from feedback.

use noctule_timebase::{Instant, Span};

use crate::gilbert::LOSS_MAX;
pub use crate::gilbert::LossModel;
use crate::stream::Local;

/// Estimates [`LossModel`] from the fates of packets, in the order in which they were sent.
///
/// Problem: a plan made with too little loss misses its target, and losses are rare: a path has lost three
/// packets in its first second, or none. A mean is then worth little, and one stall changes everything. And bursts of
/// interference or fading last for a time, those of a full queue for some packets; copies are to be spread over time against the
/// one and not against the other.
///
/// Approach: counts, not rates. Packets, losses and bursts are counted with a memory of [`MEMORY_PACKETS`];
/// the prior below is worth a few of each. Losses come in bursts and are not independent evidence, so the
/// uncertainty of the share is that of the number of *bursts*, which is about Poisson: the share used for
/// planning is that of one standard error more bursts than were seen.
/// Beside that the same channel is estimated in time, each packet standing for the time since the one before it. What
/// follows a loss, at the distance at which it follows, decides by likelihood which of the two holds.
#[derive(Clone, Debug)]
pub struct LossEstimator {
    packets: f64,
    lost: f64,
    bursts: f64,
    time: TimedLoss,
    before: Option<(bool, Instant<Local>)>,
}

/// Packets after which a count weighs 1/e; at 200 Hz, 100 s.
pub const MEMORY_PACKETS: f64 = 20_000.0;
/// Prior of a path before it is measured: 1 % lost, in bursts of 2, worth this many packets.
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
        LossEstimator {
            packets: PRIOR_PACKETS,
            lost: PRIOR_LOST,
            bursts: PRIOR_BURSTS,
            time: TimedLoss::new(),
            before: None,
        }
    }

    /// The fate of the next packet in the order of sending.
    pub fn handle_outcome(&mut self, lost: bool, sent_at: Instant<Local>) {
        let kept = (-1.0 / MEMORY_PACKETS).exp();
        let begins = lost && !self.before.is_some_and(|(was_lost, _)| was_lost);
        self.packets = self.packets * kept + 1.0;
        self.lost = self.lost * kept + f64::from(u8::from(lost));
        self.bursts = self.bursts * kept + f64::from(u8::from(begins));
        if let Some((was_lost, before)) = self.before {
            self.time.handle_outcome((was_lost, lost), sent_at - before);
        }
        self.before = Some((lost, sent_at));
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

    /// The model to plan with: one standard error more loss than counted, in bursts of the length counted, in packets or in time,
    /// whichever is the likelier.
    pub fn model(&self) -> LossModel {
        if let Some((share, mean)) = self.time.bursts() {
            // N bursts of exponential length T have 2 · N · T² as the variance of their sum.
            let error = (2.0 * self.bursts).sqrt() * mean.ns() as f64 / self.time.total_ns;
            return LossModel::BurstsInTime { p: (share + error).min(LOSS_MAX), mean };
        }
        let p = self.share() + self.share_error();
        LossModel::Bursts { p: p.min(LOSS_MAX), mean_burst: self.mean_burst() }
    }
}

/// The channel in continuous time: share of time in which it loses, and how long that lasts.
///
/// The memory τ of the channel is one of [`MEMORIES`] candidates, each a third longer than the one before; of
/// each the logarithm of the likelihood of all that followed losses is summed up, fading, and the likeliest is taken. The same
/// of the model in packets follows from two counts.
#[derive(Clone, Debug)]
struct TimedLoss {
    total_ns: f64,
    lost_ns: f64,
    likelihoods: [f64; MEMORIES],
    /// The place of the greatest: it is asked for far more often than there are losses.
    likeliest: usize,
    /// Packets that followed a loss: delivered, lost.
    after_loss: [f64; 2],
    /// Time explains the losses better than packets do.
    is_likelier: bool,
}

/// Candidates from 0.5 ms to 0.9 s: shorter than the time between two packets cannot be distinguished from none, longer than any deadline
/// from an outage.
const MEMORIES: usize = 27;
const MEMORY_SHORTEST: Span = Span::from_us(500);
const MEMORY_RATIO: f64 = 4.0 / 3.0;
/// A packet is weighted with no more time than this: a pause is little evidence.
const STANDS_FOR_MAX: Span = Span::from_ms(100);
/// By so much the one model must be likelier (20 to 1) before the other is left.
const EVIDENCE: f64 = 3.0;

impl TimedLoss {
    fn new() -> TimedLoss {
        TimedLoss {
            total_ns: 0.0,
            lost_ns: 0.0,
            likelihoods: [0.0; MEMORIES],
            likeliest: MEMORIES - 1,
            after_loss: [0.0; 2],
            is_likelier: false,
        }
    }

    fn share(&self) -> f64 {
        if self.total_ns > 0.0 { (self.lost_ns / self.total_ns).clamp(1e-6, LOSS_MAX) } else { 1e-6 }
    }

    fn handle_outcome(&mut self, (was_lost, lost): (bool, bool), pause: Span) {
        let kept = (-1.0 / MEMORY_PACKETS).exp();
        let stands_for = pause.clamp(Span::ZERO, STANDS_FOR_MAX).ns() as f64;
        self.total_ns = self.total_ns * kept + stands_for;
        self.lost_ns = self.lost_ns * kept + if lost { stands_for } else { 0.0 };
        if !was_lost {
            return;
        }
        // Faded by as many packets as usually lie between two losses: exactly when does not matter.
        let share = self.share();
        let kept = (-1.0 / (MEMORY_PACKETS * share)).exp();
        self.after_loss = self.after_loss.map(|count| count * kept);
        self.after_loss[usize::from(lost)] += 1.0;
        for (place, likelihood) in self.likelihoods.iter_mut().enumerate() {
            let remembered = (-(pause.ns().max(0) as f64) / memory_ns(place)).exp();
            let stays = (share + (1.0 - share) * remembered).clamp(1e-3, 1.0 - 1e-3);
            *likelihood = *likelihood * kept + if lost { stays.ln() } else { (1.0 - stays).ln() };
        }
        let all = &self.likelihoods;
        self.likeliest = (0..MEMORIES).max_by(|a, b| all[*a].total_cmp(&all[*b])).unwrap_or(0);
        let advantage = all[self.likeliest] - self.in_packets();
        self.is_likelier = if self.is_likelier { advantage > -EVIDENCE } else { advantage > EVIDENCE };
    }

    /// Logarithm of the likelihood of what followed losses if distance in time does not matter.
    fn in_packets(&self) -> f64 {
        let all: f64 = self.after_loss.iter().sum();
        self.after_loss.iter().filter(|count| **count > 0.0).map(|count| count * (count / all).ln()).sum()
    }

    /// Share of time and mean length of bursts in time, if they are likelier than bursts in packets.
    fn bursts(&self) -> Option<(f64, Span)> {
        self.is_likelier.then(|| {
            let mean_ns = memory_ns(self.likeliest) / (1.0 - self.share());
            (self.share(), Span::from_ns(mean_ns as i64))
        })
    }
}

fn memory_ns(place: usize) -> f64 {
    MEMORY_SHORTEST.ns() as f64 * MEMORY_RATIO.powi(place as i32)
}

#[cfg(test)]
mod tests {
    use noctule_netsim::random::Random;

    use super::*;
    use crate::gilbert::Gilbert;

    /// `reports` of 50 packets each of a Gilbert channel, 5 ms apart.
    fn observe(estimator: &mut LossEstimator, model: LossModel, reports: usize, seed: u64) {
        let pauses_ms = vec![5; reports * 50];
        observe_at(estimator, model, &pauses_ms, seed);
    }

    fn observe_at(estimator: &mut LossEstimator, model: LossModel, pauses_ms: &[i64], seed: u64) {
        let channel = Gilbert::new(&model);
        let mut random = Random::new(seed);
        let (mut lost, mut now) = (false, Instant::from_ns(0));
        for pause_ms in pauses_ms {
            let pause = Span::from_ms(*pause_ms);
            now += pause;
            lost = random.chance(channel.lost_after(1, pause, lost));
            estimator.handle_outcome(lost, now);
        }
    }

    /// Samples each 5 ms, and a copy 1 ms after every tenth.
    fn with_copies(samples: usize) -> Vec<i64> {
        (0..samples).flat_map(|n| if n % 10 == 0 { vec![1, 4] } else { vec![5] }).collect()
    }

    #[test]
    fn bursts_in_time_and_in_packets_are_distinguished_by_what_follows_losses_sooner_and_later() {
        for seed in 1..=10 {
            for mean_ms in [5, 15, 30] {
                let mean = Span::from_ms(mean_ms);
                let mut estimator = LossEstimator::new();
                observe_at(
                    &mut estimator,
                    LossModel::BurstsInTime { p: 0.05, mean },
                    &with_copies(40_000),
                    seed,
                );
                let LossModel::BurstsInTime { p, mean: found } = estimator.model() else {
                    panic!("seed {seed}, {mean_ms} ms: {estimator:?}")
                };
                assert!((0.03..0.09).contains(&p), "seed {seed}: {p}");
                let ratio = found.ns() as f64 / mean.ns() as f64;
                assert!((0.6..1.6).contains(&ratio), "seed {seed}, {mean_ms} ms: {found:?}");
            }
            let mut estimator = LossEstimator::new();
            let in_packets = LossModel::Bursts { p: 0.05, mean_burst: 3.0 };
            observe_at(&mut estimator, in_packets, &with_copies(40_000), seed);
            assert!(matches!(estimator.model(), LossModel::Bursts { .. }), "seed {seed}: {estimator:?}");
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
    fn no_fates_make_the_model_impossible() {
        let mut estimator = LossEstimator::new();
        let mut random = Random::new(3);
        for round in 0..10_000_u64 {
            // In whatever order, all at once or an age apart.
            let lost = if round < 5_000 { round < 2_000 } else { random.chance(0.5) };
            estimator
                .handle_outcome(lost, Instant::from_ns((random.bits() >> (random.bits() % 64)) as i64 / 2));
            let (p, sane) = match estimator.model() {
                LossModel::Bursts { p, mean_burst } => (p, mean_burst >= 1.0 && mean_burst.is_finite()),
                LossModel::BurstsInTime { p, mean } => (p, mean > Span::ZERO),
                LossModel::Independent { p } => (p, false),
            };
            assert!((0.0..=LOSS_MAX).contains(&p) && sane, "{estimator:?}");
        }
    }
}
