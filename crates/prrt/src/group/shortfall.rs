//! The number of repair symbols that a group of receivers needs.
//!
//! Each receiver loses datagrams of its own, independently, with its share `p`. Of the first `n` symbols of a block of `k` a receiver
//! lacks some if it lost more than `n − k`. So at least one lacks some after `n` with `Q(n) = 1 − Π (1 − P[Bin(n, p) > n − k])`,
//! and parity `i`, counted from 0, is needed with `Q(k + i)`; as many as are needed in the mean are `Σ Q(k + i)`: the mean of the
//! largest of several negative binomials (Nonnenmacher, Biersack, Towsley 1998, section III).
//!
//! Losses in bursts scatter more than that. Of Gilbert's channel with the memory λ (`gilbert`) the losses of `n` have the variance
//! `n p (1 − p) D`, `D = (1 + λ) / (1 − λ) − 2 λ (1 − λⁿ) / (n (1 − λ)²)`; the beta-binomial of the same mean and variance
//! replaces the binomial. Its tail is the channel's within a third for bursts of 3 and 10 datagrams, at the cost of a binomial's.

use crate::erasure::PARITY_SYMBOLS_MAX;

/// Terms of a sum this small no longer matter.
const NEGLIGIBLE: f64 = 1e-9;

/// How a receiver loses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Losses {
    /// Share of datagrams lost.
    pub(super) share: f64,
    /// Memory λ of the channel from one datagram to the next; 0: independent.
    pub(super) memory: f64,
}

impl Losses {
    pub(super) fn independent(share: f64) -> Losses {
        Losses { share, memory: 0.0 }
    }

    /// Variance of the losses of `sent` by that of independent ones.
    fn dispersion(&self, sent: usize) -> f64 {
        let (memory, rest, sent) = (self.memory, 1.0 - self.memory, sent as f64);
        (1.0 + memory) / rest - 2.0 * memory * (1.0 - memory.powf(sent)) / (sent * rest * rest)
    }
}

/// The probability that of `sent` more than `spare` are lost.
pub(super) fn loses_more(sent: usize, spare: usize, losses: Losses) -> f64 {
    if spare >= sent {
        return 0.0;
    }
    let loss = losses.share.clamp(0.0, 0.999);
    // Polya's urn: each loss makes the next one likelier, and each arrival the next arrival.
    let correlation = (losses.dispersion(sent) - 1.0).max(0.0) / (sent as f64 - 1.0).max(1.0);
    let added = correlation / (1.0 - correlation.min(0.999));
    let mut term: f64 =
        (0..sent).map(|n| n as f64 * added).map(|more| (1.0 - loss + more) / (1.0 + more)).product();
    let mut within = 0.0;
    for lost in 0..=spare {
        within += term;
        let left = (sent - lost) as f64;
        let odds = (loss + lost as f64 * added) / (1.0 - loss + (left - 1.0) * added);
        term *= odds * left / (lost + 1) as f64;
    }
    (1.0 - within).max(0.0)
}

/// The probability that any of the receivers lacks a symbol when `parity` symbols have followed `data`, if losses are independent.
pub(super) fn somebody_lacks(losses: &[f64], data: usize, parity: usize) -> f64 {
    let lacks = |loss: &f64| loses_more(data + parity, parity, Losses::independent(*loss));
    1.0 - losses.iter().map(|loss| 1.0 - lacks(loss)).product::<f64>()
}

/// The least number of parity symbols after which a receiver lacks something with no more than `share`, if losses are independent.
pub(super) fn parity_for(losses: &[f64], data: usize, share: f64) -> u8 {
    let enough = (0..PARITY_SYMBOLS_MAX).find(|&parity| somebody_lacks(losses, data, parity) <= share);
    enough.unwrap_or(PARITY_SYMBOLS_MAX) as u8
}

/// The least number after which this receiver lacks something with no more than `share`; no more than data: more is refused in the long run
/// ([`PARITY_SHARE_MAX`](super::PARITY_SHARE_MAX)), and would be taken from other blocks.
pub(super) fn parity_alone(losses: Losses, data: usize, share: f64) -> u8 {
    let most = data.min(PARITY_SYMBOLS_MAX);
    (0..most).find(|&parity| loses_more(data + parity, parity, losses) <= share).unwrap_or(most) as u8
}

/// How many parity symbols are needed in the mean until no receiver lacks anything.
pub(super) fn expected(losses: &[f64], data: usize) -> f64 {
    let needed = (0..PARITY_SYMBOLS_MAX).map(|parity| somebody_lacks(losses, data, parity));
    needed.take_while(|share| *share > NEGLIGIBLE).sum()
}

/// How many are to be sent so that a receiver that lacks `lacking` still does with no more than `share`. They leave together, and a burst takes
/// them all: a margin is for losses beside bursts.
pub(super) fn sent_once(lacking: usize, loss: f64, share: f64) -> u8 {
    let losses = Losses::independent(loss);
    let room = PARITY_SYMBOLS_MAX.saturating_sub(lacking);
    let margin = (0..room).find(|&margin| loses_more(lacking + margin, margin, losses) <= share);
    (lacking + margin.unwrap_or(room)).min(PARITY_SYMBOLS_MAX) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_is_that_of_the_binomial() {
        // 1 − 0.95^8 − 8 · 0.05 · 0.95^7
        assert!((loses_more(8, 1, Losses::independent(0.05)) - 0.057_244_7).abs() < 1e-6);
        assert_eq!(
            (loses_more(8, 8, Losses::independent(0.3)), loses_more(0, 0, Losses::independent(0.3))),
            (0.0, 0.0)
        );
        assert!((loses_more(1, 0, Losses::independent(0.3)) - 0.3).abs() < 1e-12);
    }

    /// Probability that Gilbert's channel loses more than `spare` of `sent`, one step after the other.
    fn channel_loses_more(sent: usize, spare: usize, losses: Losses) -> f64 {
        let mut ways = vec![[0.0; 2]; sent + 1];
        (ways[0][0], ways[1][1]) = (1.0 - losses.share, losses.share);
        for _ in 1..sent {
            let mut next = vec![[0.0; 2]; sent + 1];
            for (lost, state) in (0..sent).flat_map(|lost| [(lost, 0), (lost, 1)]) {
                let loses = losses.share + (state as f64 - losses.share) * losses.memory;
                next[lost + 1][1] += ways[lost][state] * loses;
                next[lost][0] += ways[lost][state] * (1.0 - loses);
            }
            ways = next;
        }
        ways[spare + 1..].iter().flatten().sum()
    }

    #[test]
    fn of_bursts_the_tail_is_that_of_gilberts_channel() {
        for (share, mean_burst) in [(0.01, 3.0), (0.05, 3.0), (0.01, 10.0), (0.05, 10.0)] {
            let losses = Losses { share, memory: 1.0 - 1.0 / (mean_burst * (1.0 - share)) };
            for (data, parity) in
                [4, 10, 20].into_iter().flat_map(|data| (0..10).map(move |parity| (data, parity)))
            {
                let channel = channel_loses_more(data + parity, parity, losses);
                let ratio = loses_more(data + parity, parity, losses) / channel;
                assert!((0.75..1.35).contains(&ratio), "{losses:?}, {data} + {parity}: {ratio} of {channel}");
            }
        }
    }

    #[test]
    fn one_receiver_needs_the_negative_binomial() {
        // Mean number of datagrams until 8 have arrived: 8 / 0.95.
        assert!((expected(&[0.05], 8) - (8.0 / 0.95 - 8.0)).abs() < 1e-6);
        assert_eq!(expected(&[0.0; 4], 8), 0.0);
    }

    #[test]
    fn sixteen_receivers_of_five_percent_need_two_and_a_half_for_thirteen() {
        let needed = expected(&[0.05; 16], 13);
        assert!((2.45..2.55).contains(&needed), "{needed}");
        assert_eq!(parity_for(&[0.05; 16], 13, 0.8), 2);
        assert_eq!(parity_for(&[0.05; 2], 13, 0.8), 0);
    }

    #[test]
    fn without_another_round_a_margin_is_sent() {
        assert_eq!(sent_once(1, 0.05, 0.06), 1);
        assert_eq!(sent_once(1, 0.05, 0.01), 2);
        assert_eq!(sent_once(2, 0.999, 1e-3), 127, "a block has no more");
    }
}
