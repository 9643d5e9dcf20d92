//! What the fates of datagrams tell of a channel.

use crate::gilbert::Gilbert;

/// Datagrams after which an observation has lost two thirds of its weight.
const MEMORY_DATAGRAMS: f64 = 20_000.0;
/// Believed before anything is known: so much loss, in such bursts, with the weight of so many.
const LOSS_PRIOR: f64 = 0.02;
const LOSS_WEIGHT: f64 = 50.0;
const BURST_PRIOR: f64 = 2.0;
const BURST_WEIGHT: f64 = 3.0;

/// Share and length of loss bursts, from the fates of datagrams in the order in which they were sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChannelEstimate {
    datagrams: f64,
    lost: f64,
    bursts: f64,
    was_lost: bool,
}

impl ChannelEstimate {
    pub(crate) fn new() -> ChannelEstimate {
        ChannelEstimate { datagrams: 0.0, lost: 0.0, bursts: 0.0, was_lost: false }
    }

    /// The next datagram arrived, or did not.
    pub(crate) fn record(&mut self, lost: bool) {
        let kept = 1.0 - 1.0 / MEMORY_DATAGRAMS;
        self.datagrams = self.datagrams * kept + 1.0;
        self.lost = self.lost * kept + f64::from(u8::from(lost));
        self.bursts = self.bursts * kept + f64::from(u8::from(lost && !self.was_lost));
        self.was_lost = lost;
    }

    pub(crate) fn model(&self) -> Gilbert {
        let loss = (self.lost + LOSS_PRIOR * LOSS_WEIGHT) / (self.datagrams + LOSS_WEIGHT);
        let burst = (self.lost + BURST_PRIOR * BURST_WEIGHT) / (self.bursts + BURST_WEIGHT);
        Gilbert::new(loss, burst)
    }
}
