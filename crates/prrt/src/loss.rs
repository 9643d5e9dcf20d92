//! Loss of packets in bursts: the model, and its estimate from what the receiver reports.

/// The largest share of lost packets the models distinguish.
const LOSS_MAX: f64 = 0.999;

/// How one direction of a path loses packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LossModel {
    /// Each packet is lost with probability `p`, whatever became of those before.
    Independent {
        /// Share of lost packets, 0 to 1.
        p: f64,
    },
    /// A Gilbert chain that advances with each packet (E. N. Gilbert, "Capacity of a burst-noise channel",
    /// Bell System Technical Journal 39, 1960; with a bad state that loses everything).
    Bursts {
        /// Share of lost packets, 0 to 1.
        p: f64,
        /// Mean number of packets lost in a row, at least 1.
        mean_burst: f64,
    },
}

/// The two-state chain of one direction, advanced per packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gilbert {
    /// Long-run share of lost packets.
    pub(crate) loss: f64,
    /// Probability that the packet after a delivered one is lost.
    pub(crate) begins: f64,
    /// Probability that the packet after a lost one is delivered.
    pub(crate) ends: f64,
}

impl Gilbert {
    pub(crate) fn new(model: &LossModel) -> Gilbert {
        let (loss, mean_burst) = match *model {
            LossModel::Independent { p } => (p, None),
            LossModel::Bursts { p, mean_burst } => (p, Some(mean_burst)),
        };
        // Not a number counts as no loss; a link that loses everything as one that loses almost everything.
        let loss = if loss.is_nan() { 0.0 } else { loss.clamp(0.0, LOSS_MAX) };
        let mean_burst = match mean_burst {
            None => 1.0 / (1.0 - loss),
            // No burst is shorter than one, nor are the gaps between bursts.
            Some(mean_burst) => mean_burst.max(1.0).max(loss / (1.0 - loss)),
        };
        let ends = 1.0 / mean_burst;
        Gilbert { loss, begins: loss * ends / (1.0 - loss), ends }
    }
}
