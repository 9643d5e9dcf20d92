//! A channel that loses in bursts: two states, one step per datagram.
//!
//! In the bad state everything is lost, in the good one nothing (Gilbert, "Capacity of a burst-noise channel",
//! BSTJ 1960, with his h = 0). The state after `n` steps leans towards the long-run share of losses by λⁿ.
//! Independent losses are the case λ = 0.

/// What is believed of a channel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Gilbert {
    /// Long-run share of datagrams lost, above 0 and below 1.
    pub(crate) loss: f64,
    /// λ: what is left of the knowledge of a state after one datagram; 0 or more and below 1.
    pub(crate) memory: f64,
}

impl Gilbert {
    /// Of a share of losses and their mean number in a row.
    pub(crate) fn new(loss: f64, mean_burst: f64) -> Gilbert {
        let loss = loss.clamp(1e-6, 0.95);
        // Independent losses come in runs of 1 / (1 − loss); shorter ones are not modelled.
        let ends = 1.0 / mean_burst.max(1.0 / (1.0 - loss));
        let begins = ends * loss / (1.0 - loss);
        Gilbert { loss, memory: (1.0 - ends - begins).clamp(0.0, 0.999) }
    }

    /// Probability that a datagram is lost `steps` after one that was lost, or was not.
    pub(crate) fn lost_after(&self, steps: u64, was_lost: bool) -> f64 {
        let remembered = self.memory.powi(steps.min(1_000) as i32);
        let from = if was_lost { 1.0 } else { 0.0 };
        self.loss + (from - self.loss) * remembered
    }

    /// Probability that fewer than `needed` of some datagrams arrive, if the one before them was lost or not as
    /// `known` says. Each has its number, in rising order, and how probable it is that nothing would have been
    /// heard of it by now, had it arrived: 1 if it is too early for that.
    pub(crate) fn shortfall(&self, sent: &[(u64, f64)], needed: usize, known: (u64, bool)) -> f64 {
        if needed == 0 {
            return 0.0;
        }
        if sent.len() < needed {
            return 1.0;
        }
        // Weight of so many losses so far, by the fate of the last datagram: [arrived, lost].
        let mut ways = vec![[0.0; 2]; sent.len() - needed + 1];
        ways[0][usize::from(known.1)] = 1.0;
        let (mut before, mut failed, mut succeeding) = (known.0, [0.0; 2], 1.0);
        for &(number, silence) in sent {
            let steps = number.saturating_sub(before).max(1);
            let after = [self.lost_after(steps, false), self.lost_after(steps, true)];
            before = number;
            let step = |way: [f64; 2]| {
                let lost = way[0] * after[0] + way[1] * after[1];
                [(way[0] + way[1] - lost) * silence, lost]
            };
            let mut carried = 0.0;
            succeeding = 0.0;
            for way in &mut ways {
                let [arrived, lost] = step(*way);
                *way = [arrived, carried];
                succeeding += arrived + carried;
                carried = lost;
            }
            // Too many are lost already; what comes then still makes the silence more or less probable.
            failed = step(failed);
            failed[1] += carried;
        }
        let failing = failed[0] + failed[1];
        failing / (failing + succeeding)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_have_their_share_and_their_length() {
        let channel = Gilbert::new(0.05, 3.0);
        assert!((channel.lost_after(1, true) - 2.0 / 3.0).abs() < 1e-9);
        assert!((channel.lost_after(1, false) - 0.05 / 0.95 / 3.0).abs() < 1e-9);
        assert!((channel.lost_after(1_000, true) - 0.05).abs() < 1e-9);
        let independent = Gilbert::new(0.1, 1.0);
        assert!((independent.lost_after(1, true) - 0.1).abs() < 1e-9);
    }

    /// None of which should have been heard of.
    fn unheard(numbers: &[u64]) -> Vec<(u64, f64)> {
        numbers.iter().map(|number| (*number, 1.0)).collect()
    }

    #[test]
    fn of_independent_datagrams_the_shortfall_is_binomial() {
        let channel = Gilbert::new(0.1, 1.0);
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} is not {b}");
        close(channel.shortfall(&unheard(&[1, 2, 3]), 1, (0, false)), 0.001);
        close(channel.shortfall(&unheard(&[1, 2, 3]), 3, (0, true)), 1.0 - 0.729);
        close(channel.shortfall(&unheard(&[1, 2, 3]), 2, (0, false)), 3.0 * 0.01 * 0.9 + 0.001);
        close(channel.shortfall(&unheard(&[1]), 2, (0, false)), 1.0);
        close(channel.shortfall(&[], 0, (0, false)), 0.0);
    }

    #[test]
    fn copies_in_one_burst_share_its_fate() {
        let channel = Gilbert::new(0.05, 3.0);
        let near = channel.shortfall(&unheard(&[10, 11]), 1, (0, false));
        let far = channel.shortfall(&unheard(&[10, 30]), 1, (0, false));
        assert!(near > 10.0 * far, "{near}, {far}");
    }

    #[test]
    fn silence_about_what_should_have_been_heard_of_makes_its_loss_probable() {
        let channel = Gilbert::new(0.05, 1.0);
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} is not {b}");
        close(channel.shortfall(&[(1, 0.05)], 1, (0, false)), 0.05 / (0.05 + 0.95 * 0.05));
        close(channel.shortfall(&[(1, 0.0)], 1, (0, false)), 1.0);
    }
}
