//! The residual loss that a deadline permits, in a closed form: block size and verdict.
//!
//! # Problem
//!
//! Whether a path can keep a loss target decides whether repairs are worth their bandwidth, and an application wants to know what
//! would be possible instead. Searching schedules for it takes milliseconds; the runtime has microseconds.
//!
//! # Approach
//!
//! Redundancy is bounded by [`REDUNDANCY_MAX`]. Copies that go as far apart as the deadline allows are the best that repetition
//! can do: the loss that they leave is a product of as many steps of the channel as there are copies. Without time for an
//! acknowledgement samples share parity: the longest block whose parity still arrives within the first sample's deadline needs the least, and what it
//! cannot outlive is a burst as long as all of its parity. The repair rule itself decides how much of this is sent.

use noctule_timebase::Span;
use thiserror::Error;

use crate::gilbert::Gilbert;

/// Repair packets per data packet on average beyond which a loss target counts as infeasible.
const REDUNDANCY_MAX: u64 = 4;
/// Copies of one lost sample at most, if only those that were lost are copied: more than bursts of any path worth repairing need.
const COPIES_MAX: u64 = 32;
/// Samples of a block at most: longer ones save less than a hundredth of the parity.
const BLOCK_MAX: i64 = 64;
/// Time that both ends need to notice and to answer.
const REACTION: Span = Span::from_us(300);
/// Factors of the deadline that are tried for what would be possible instead.
const LONGER: [i64; 4] = [2, 3, 5, 8];
/// Steps of the channel that one verdict computes at most.
#[cfg(test)]
const EVALUATIONS_MAX: u32 = COPIES_MAX as u32 * (1 + LONGER.len() as u32);

/// Alternatives that would be possible; each alone suffices.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Feasible {
    /// With this deadline the loss target can be met; `None` if no deadline that was tried helps.
    pub deadline: Option<Span>,
    /// With the demanded deadline this loss target can be met; `None` below the path's delay.
    pub loss_target: Option<f64>,
}

/// The demand cannot be met.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum Infeasible {
    /// Not even a sample that is not lost arrives in time.
    #[error("the deadline is shorter than the path's delay; at least {} µs are needed", .delay.ns() / 1_000)]
    BelowDelay {
        /// The shortest deadline that can be kept at all.
        delay: Span,
        /// Alternatives that would be possible.
        feasible: Feasible,
    },
    /// Samples arrive in time, but too many are lost for the target, whatever is spent.
    #[error("the path loses too much, or bears too little, for this loss target at this deadline; {:.1e} is the least", .feasible.loss_target.unwrap_or(1.0))]
    BeyondCapacity {
        /// Alternatives that would be possible.
        feasible: Feasible,
    },
}

/// Input of the closed form: requirements of a stream, and state of its path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question {
    pub(crate) deadline: Span,
    /// Share of samples that may miss it, 0 to 1.
    pub(crate) loss_target: f64,
    /// Time between samples.
    pub(crate) interval: Span,
    /// Delay from sender to receiver that can be relied on.
    pub(crate) one_way: Span,
    /// From sending a datagram to the acknowledgement, as far as can be relied on.
    pub(crate) round: Span,
    pub(crate) channel: Gilbert,
}

/// The answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResidualLoss {
    /// Samples that share parity; 1: each is repaired by itself.
    pub(crate) block: u8,
    pub(crate) verdict: Result<(), Infeasible>,
    /// Steps of the channel that were computed.
    #[cfg(test)]
    evaluations: u32,
}

#[cfg(test)]
impl ResidualLoss {
    pub(crate) fn infeasible(why: Infeasible) -> ResidualLoss {
        ResidualLoss { block: 1, verdict: Err(why), evaluations: 0 }
    }
}

impl Question {
    pub(crate) fn answer(&self) -> ResidualLoss {
        let mut evaluations = 0;
        let least = self.least_loss(self.deadline, &mut evaluations);
        let verdict = if least.is_some_and(|least| least <= self.loss_target) {
            Ok(())
        } else {
            let delay = self.delay();
            let longer = LONGER.map(|factor| self.deadline.max(delay) * factor);
            let deadline = longer.into_iter().find(|deadline| {
                self.least_loss(*deadline, &mut evaluations).is_some_and(|least| least <= self.loss_target)
            });
            let feasible = Feasible { deadline, loss_target: least };
            Err(match least {
                None => Infeasible::BelowDelay { delay, feasible },
                Some(_) => Infeasible::BeyondCapacity { feasible },
            })
        };
        ResidualLoss {
            block: self.block(self.deadline),
            verdict,
            #[cfg(test)]
            evaluations,
        }
    }

    fn delay(&self) -> Span {
        self.one_way.max(Span::ZERO) + REACTION
    }

    /// A lost sample is found lost, and retransmitted, in time.
    fn has_time_for_news(&self, deadline: Span) -> bool {
        self.one_way + self.round + REACTION <= deadline
    }

    fn block(&self, deadline: Span) -> u8 {
        let left = deadline - self.delay();
        if self.has_time_for_news(deadline) || left <= Span::ZERO {
            return 1;
        }
        // Bursts in time are outlived by parity later than the burst: half of the time is kept for that.
        let filling = if self.channel.is_timed() { left / 2 } else { left };
        let interval = self.interval.ns().max(1);
        // The block closes half an interval after its last sample was due; a quarter more is jitter and parity's own time.
        ((filling.ns() + interval / 4) / interval).clamp(1, BLOCK_MAX) as u8
    }

    /// The loss that the most redundancy leaves; `None` if nothing arrives in time.
    fn least_loss(&self, deadline: Span, evaluations: &mut u32) -> Option<f64> {
        let window = deadline - self.delay();
        if window < Span::ZERO {
            return None;
        }
        let block = u64::from(self.block(deadline));
        if block > 1 && !self.channel.is_timed() {
            *evaluations += 1;
            let outlasting = (1.0 - self.channel.ends).powi((block * REDUNDANCY_MAX) as i32);
            return Some(self.channel.loss * outlasting);
        }
        let copies = if self.has_time_for_news(deadline) { COPIES_MAX } else { REDUNDANCY_MAX };
        let between = window / copies as i64;
        let samples_between = (between.ns() / self.interval.ns().max(1)).clamp(0, 1 << 20) as u64;
        let mut left = self.channel.loss;
        for _ in 0..copies {
            *evaluations += 1;
            left *= self.channel.lost_after(1 + samples_between, between, true);
        }
        Some(left)
    }
}

#[cfg(test)]
mod tests {
    use noctule_netsim::random::Random;

    use super::*;
    use crate::gilbert::LossModel;

    fn question(deadline_ms: i64, model: LossModel) -> Question {
        Question {
            deadline: Span::from_ms(deadline_ms),
            loss_target: 1e-4,
            interval: Span::from_ms(5),
            one_way: Span::from_ms(10),
            round: Span::from_ms(20),
            channel: Gilbert::new(&model),
        }
    }

    const BURSTS: LossModel = LossModel::Bursts { p: 0.05, mean_burst: 3.0 };

    #[test]
    fn with_time_for_news_samples_are_alone_and_without_it_they_share_what_the_deadline_leaves() {
        assert_eq!(question(60, BURSTS).answer().block, 1);
        assert_eq!(question(31, BURSTS).answer().block, 1);
        // 28 − 10.3 ms are three intervals and a half.
        assert_eq!(question(28, BURSTS).answer().block, 3);
        let quick = Question { interval: Span::from_us(500), ..question(28, BURSTS) };
        assert_eq!(quick.answer().block, 35);
        let quicker = Question { interval: Span::from_us(5), ..quick };
        assert_eq!(quicker.answer().block, 64);
    }

    #[test]
    fn bursts_in_packets_are_outlived_and_bursts_in_time_only_by_a_longer_deadline() {
        assert!(question(60, BURSTS).answer().verdict.is_ok());
        let in_time = LossModel::BurstsInTime { p: 0.05, mean: Span::from_ms(15) };
        let Err(Infeasible::BeyondCapacity { feasible }) = question(60, in_time).answer().verdict else {
            panic!("15 ms are not outlived in 50")
        };
        // e^(−50 / 15) of one in twenty; copies are not everywhere.
        let least = feasible.loss_target.unwrap();
        assert!((1.5e-3..4e-3).contains(&least), "{least:.2e}");
        assert_eq!(feasible.deadline, Some(Span::from_ms(120)));
        assert!(question(120, in_time).answer().verdict.is_ok());
    }

    #[test]
    fn below_the_delay_nothing_arrives_and_the_shortest_deadline_is_named() {
        let Err(Infeasible::BelowDelay { delay, feasible }) = question(9, BURSTS).answer().verdict else {
            panic!("9 of 10 ms")
        };
        assert_eq!((delay, feasible.loss_target), (Span::from_us(10_300), None));
        assert!(feasible.deadline.is_some_and(|deadline| deadline > delay));
    }

    /// In operations, for the time depends on the machine: a step of the channel is an exponential or a power, some 50 ns.
    #[test]
    fn a_verdict_costs_few_operations_whatever_is_asked() {
        let mut random = Random::new(7);
        for round in 0..20_000 {
            let mut span = || Span::from_ns((random.bits() >> (random.bits() % 64)) as i64);
            let [deadline, interval, one_way, round_trip, mean] = [(); 5].map(|()| span());
            let p = random.uniform(-0.5, 1.5);
            let model = match random.bits() % 3 {
                0 => LossModel::Independent { p },
                1 => LossModel::Bursts { p, mean_burst: random.uniform(-1.0, 1e6) },
                _ => LossModel::BurstsInTime { p, mean },
            };
            let channel = Gilbert::new(&model);
            let reach =
                Question { deadline, loss_target: 1e-4, interval, one_way, round: round_trip, channel }
                    .answer();
            assert!(reach.evaluations <= EVALUATIONS_MAX, "seed 7, round {round}: {reach:?}");
            assert!((1..=64).contains(&reach.block), "seed 7, round {round}: {reach:?}");
        }
    }
}
