//! A channel that loses in bursts: two states, one step per datagram.
//!
//! In the bad state everything is lost, in the good one nothing (Gilbert, "Capacity of a burst-noise channel",
//! BSTJ 1960, with his h = 0). The state after `n` steps leans towards the long-run share of losses by λⁿ.
//! Independent losses are the case λ = 0.

/// The largest share of lost datagrams that is told from all of them.
pub(crate) const LOSS_MAX: f64 = 0.999;

/// How one direction of a path loses datagrams.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LossModel {
    /// Each is lost with probability `p`, whatever became of those before.
    Independent {
        /// Share of lost datagrams, 0 to 1.
        p: f64,
    },
    /// They are lost in runs.
    Bursts {
        /// Share of lost datagrams, 0 to 1.
        p: f64,
        /// Mean number lost in a row; less than independent losses have, 1 / (1 − p), counts as that.
        mean_burst: f64,
    },
}

/// The chain of one direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Gilbert {
    /// Long-run share of datagrams lost.
    pub(crate) loss: f64,
    /// Probability that the datagram after a delivered one is lost.
    pub(crate) begins: f64,
    /// Probability that the datagram after a lost one is delivered.
    pub(crate) ends: f64,
}

/// What may become of some datagrams of which enough or too few arrive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Shortfall {
    /// Probability that too few arrive.
    pub(crate) probability: f64,
    /// Datagrams lost on average, counting 0 where enough arrive.
    pub(crate) lost: f64,
}

impl Gilbert {
    pub(crate) fn new(model: &LossModel) -> Gilbert {
        let (loss, mean_burst) = match *model {
            LossModel::Independent { p } => (p, 1.0),
            LossModel::Bursts { p, mean_burst } => (p, mean_burst),
        };
        // Not a number counts as no loss; a link that loses everything as one that loses almost everything.
        let loss = if loss.is_nan() { 0.0 } else { loss.clamp(0.0, LOSS_MAX) };
        let ends = 1.0 / mean_burst.max(1.0 / (1.0 - loss));
        Gilbert { loss, begins: loss * ends / (1.0 - loss), ends }
    }

    /// Probability that a datagram is lost `steps` after one that was lost, or was not.
    pub(crate) fn lost_after(&self, steps: u64, was_lost: bool) -> f64 {
        let memory = (1.0 - self.begins - self.ends).max(0.0);
        let remembered = memory.powi(steps.min(10_000) as i32);
        let from = if was_lost { 1.0 } else { 0.0 };
        self.loss + (from - self.loss) * remembered
    }

    /// What becomes of some datagrams of which `needed` must arrive, if the one before them was lost or not as
    /// `known` says. Each has its number, in rising order, and how probable it is that nothing would have been
    /// heard of it by now, had it arrived: 1 if it is too early for that.
    pub(crate) fn shortfall(&self, sent: &[(u64, f64)], needed: usize, known: (u64, bool)) -> Shortfall {
        // Weight of so many losses so far, by the fate of the last datagram: [arrived, lost].
        let mut ways = vec![[0.0; 2]; (sent.len() + 1).saturating_sub(needed)];
        // The same of all that has failed already, and its losses.
        let (mut failed, mut failed_lost) = ([0.0; 2], [0.0; 2]);
        ways.first_mut().unwrap_or(&mut failed)[usize::from(known.1)] = 1.0;
        let mut before = known.0;
        for &(number, silence) in sent {
            let steps = number.saturating_sub(before).max(1);
            let after = [self.lost_after(steps, false), self.lost_after(steps, true)];
            before = number;
            let step = |way: [f64; 2]| {
                let lost = way[0] * after[0] + way[1] * after[1];
                [(way[0] + way[1] - lost) * silence, lost]
            };
            let mut carried = 0.0;
            for way in &mut ways {
                let [arrived, lost] = step(*way);
                *way = [arrived, carried];
                carried = lost;
            }
            // What comes after too many losses still makes the silence more or less probable.
            (failed, failed_lost) = (step(failed), step(failed_lost));
            failed_lost[1] += failed[1] + carried * ways.len() as f64;
            failed[1] += carried;
        }
        let failing: f64 = failed.iter().sum();
        let all = failing + ways.iter().flatten().sum::<f64>();
        if all <= 0.0 {
            // Nothing of the kind can have happened: the channel is not what it is believed to be.
            return Shortfall { probability: 1.0, lost: sent.len() as f64 };
        }
        Shortfall { probability: failing / all, lost: failed_lost.iter().sum::<f64>() / all }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bursts(p: f64, mean_burst: f64) -> Gilbert {
        Gilbert::new(&LossModel::Bursts { p, mean_burst })
    }

    #[test]
    fn losses_have_their_share_and_their_length() {
        let channel = bursts(0.05, 3.0);
        assert!((channel.lost_after(1, true) - 2.0 / 3.0).abs() < 1e-9);
        assert!((channel.lost_after(1, false) - 0.05 / 0.95 / 3.0).abs() < 1e-9);
        assert!((channel.lost_after(1_000, true) - 0.05).abs() < 1e-9);
        let independent = bursts(0.1, 1.0);
        assert!((independent.lost_after(1, true) - 0.1).abs() < 1e-9);
    }

    /// None of which should have been heard of.
    fn unheard(numbers: &[u64]) -> Vec<(u64, f64)> {
        numbers.iter().map(|number| (*number, 1.0)).collect()
    }

    #[test]
    fn of_independent_datagrams_the_shortfall_is_binomial() {
        let channel = bursts(0.1, 1.0);
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} is not {b}");
        close(channel.shortfall(&unheard(&[1, 2, 3]), 1, (0, false)).probability, 0.001);
        close(channel.shortfall(&unheard(&[1, 2, 3]), 3, (0, true)).probability, 1.0 - 0.729);
        close(channel.shortfall(&unheard(&[1, 2, 3]), 2, (0, false)).probability, 3.0 * 0.01 * 0.9 + 0.001);
        close(channel.shortfall(&unheard(&[1]), 2, (0, false)).probability, 1.0);
        close(channel.shortfall(&[], 0, (0, false)).probability, 0.0);
    }

    #[test]
    fn losses_beyond_what_may_fail_are_counted() {
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} is not {b}");
        let channel = bursts(0.1, 1.0);
        // Two of three must arrive: two losses in three ways, or three.
        close(channel.shortfall(&unheard(&[1, 2, 3]), 2, (0, false)).lost, 2.0 * 3.0 * 0.009 + 3.0 * 0.001);
        // More must arrive than were sent.
        close(channel.shortfall(&unheard(&[1, 2]), 3, (0, true)).lost, 0.2);
        close(channel.shortfall(&unheard(&[1, 2]), 0, (0, true)).lost, 0.0);
    }

    #[test]
    fn copies_in_one_burst_share_its_fate() {
        let channel = bursts(0.05, 3.0);
        let near = channel.shortfall(&unheard(&[10, 11]), 1, (0, false)).probability;
        let far = channel.shortfall(&unheard(&[10, 30]), 1, (0, false)).probability;
        assert!(near > 10.0 * far, "{near}, {far}");
    }

    #[test]
    fn silence_about_what_should_have_been_heard_of_makes_its_loss_probable() {
        let channel = bursts(0.05, 1.0);
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} is not {b}");
        close(channel.shortfall(&[(1, 0.05)], 1, (0, false)).probability, 0.05 / (0.05 + 0.95 * 0.05));
        close(channel.shortfall(&[(1, 0.0)], 1, (0, false)).probability, 1.0);
    }
}
