//! Averages of the rate limit: of a rate over time, and of losses over epochs.

use noctule_timebase::{Instant, Span};

use crate::stream::Local;

/// Memory of the offered and of the sent rate.
const RATE_OVER: Span = Span::from_ms(500);
/// Epochs over which losses are averaged: of the first ones each counts as one of so many at least, for chance losses come in lumps.
const LOSS_OVER: f64 = 32.0;
const LOSS_OVER_LEAST: f64 = 4.0;

/// Bytes a second over about [`RATE_OVER`], without the half of what came last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rate {
    latest_bytes_per_s: f64,
    pub(super) bytes_per_s: f64,
    at: Instant<Local>,
}

/// Share of packets lost over the last epochs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LossMean {
    pub(super) share: f64,
    epochs: f64,
}

impl LossMean {
    pub(super) fn add(&mut self, share: f64) {
        self.epochs = (self.epochs + 1.0).min(LOSS_OVER);
        self.share += (share - self.share) / self.epochs.max(LOSS_OVER_LEAST);
    }
}

impl Rate {
    pub(super) fn new(now: Instant<Local>) -> Rate {
        Rate { latest_bytes_per_s: 0.0, bytes_per_s: 0.0, at: now }
    }

    pub(super) fn add(&mut self, bytes: usize, now: Instant<Local>) {
        let over = RATE_OVER.as_s_f64();
        let more = bytes as f64 / over;
        self.latest_bytes_per_s = self.latest_bytes_per_s * (-(now - self.at).as_s_f64() / over).exp() + more;
        self.bytes_per_s = self.latest_bytes_per_s - more / 2.0;
        self.at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_losses_is_known_after_a_few_epochs_and_one_alone_says_little() {
        let mut mean = LossMean::default();
        mean.add(0.2);
        assert!(mean.share < 0.06, "{}", mean.share);
        (0..20).for_each(|_| mean.add(0.2));
        assert!((mean.share - 0.2).abs() < 0.05, "{}", mean.share);
    }
}
