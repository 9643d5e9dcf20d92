//! Raw samples: what every figure in a report can be traced back to.

/// One arrival of one message at one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Message number within the trial, from 0.
    pub index: u64,
    /// Node that received it. Chain: 1 … nodes − 1. Fan-out: the receiver. Round trip: 0. One way: 1.
    pub node: u16,
    /// When it should have been sent, on the source's clock.
    pub scheduled_ns: i64,
    /// When the source did send it, on the source's clock.
    pub sent_ns: i64,
    /// When this node received it.
    pub received_ns: i64,
}

impl Sample {
    /// Time from the scheduled send to this arrival.
    pub fn latency_ns(&self) -> i64 {
        self.received_ns.saturating_sub(self.scheduled_ns)
    }
}

/// The samples of one cell and trial, ordered by node, then index. `samples[i]` of a run belongs to
/// `cells[i]` of its `run.json`; it is empty if the cell produced none.
pub type CellSamples = Vec<Sample>;
