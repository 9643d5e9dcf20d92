//! The number of repair symbols that a group of receivers needs.
//!
//! Each receiver loses datagrams of its own, independently, with its share `p`. Of the first `n` symbols of a block of `k` a receiver
//! lacks some if it lost more than `n − k`. So at least one lacks some after `n` with `Q(n) = 1 − Π (1 − P[Bin(n, p) > n − k])`,
//! and parity `i`, counted from 0, is needed with `Q(k + i)`; as many as are needed in the mean are `Σ Q(k + i)`: the mean of the
//! largest of several negative binomials (Nonnenmacher, Biersack, Towsley 1998, section III).

use crate::erasure::PARITY_SYMBOLS_MAX;

/// Terms of a sum this small no longer matter.
const NEGLIGIBLE: f64 = 1e-9;

/// The probability that of `sent` more than `spare` are lost, each with `loss`.
pub(super) fn loses_more(sent: usize, spare: usize, loss: f64) -> f64 {
    if spare >= sent {
        return 0.0;
    }
    let loss = loss.clamp(0.0, 0.999);
    let mut term = (1.0 - loss).powi(sent as i32);
    let mut within = 0.0;
    for lost in 0..=spare {
        within += term;
        term *= loss / (1.0 - loss) * (sent - lost) as f64 / (lost + 1) as f64;
    }
    (1.0 - within).max(0.0)
}

/// The probability that any of the receivers lacks a symbol when `parity` symbols have followed `data`.
pub(super) fn somebody_lacks(losses: &[f64], data: usize, parity: usize) -> f64 {
    1.0 - losses.iter().map(|loss| 1.0 - loses_more(data + parity, parity, *loss)).product::<f64>()
}

/// The least number of parity symbols after which a receiver lacks something with no more than `share`.
pub(super) fn parity_for(losses: &[f64], data: usize, share: f64) -> u8 {
    let enough = (0..PARITY_SYMBOLS_MAX).find(|&parity| somebody_lacks(losses, data, parity) <= share);
    enough.unwrap_or(PARITY_SYMBOLS_MAX) as u8
}

/// How many parity symbols are needed in the mean until no receiver lacks anything.
pub(super) fn expected(losses: &[f64], data: usize) -> f64 {
    let needed = (0..PARITY_SYMBOLS_MAX).map(|parity| somebody_lacks(losses, data, parity));
    needed.take_while(|share| *share > NEGLIGIBLE).sum()
}

/// How many are to be sent so that a receiver that lacks `lacking` still does with no more than `share`.
pub(super) fn sent_once(lacking: usize, loss: f64, share: f64) -> u8 {
    let room = PARITY_SYMBOLS_MAX.saturating_sub(lacking);
    let margin = (0..room).find(|&margin| loses_more(lacking + margin, margin, loss) <= share);
    (lacking + margin.unwrap_or(room)).min(PARITY_SYMBOLS_MAX) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_is_that_of_the_binomial() {
        // 1 − 0.95^8 − 8 · 0.05 · 0.95^7
        assert!((loses_more(8, 1, 0.05) - 0.057_244_7).abs() < 1e-6);
        assert_eq!((loses_more(8, 8, 0.3), loses_more(0, 0, 0.3)), (0.0, 0.0));
        assert!((loses_more(1, 0, 0.3) - 0.3).abs() < 1e-12);
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
