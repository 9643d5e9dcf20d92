//! Counters of the sender of a stream with a deadline.

/// Counters of a stream with a deadline, to one other node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SentCounters {
    /// Samples.
    pub samples: u64,
    /// Datagrams that carried them, each counted once.
    pub datagrams: u64,
    /// Datagrams retransmitted.
    pub repeats: u64,
    /// Parity datagrams.
    pub parity: u64,
    /// Samples not known to have arrived in time.
    pub failed: u64,
    /// Samples not sent because their deadline had passed before.
    pub expired: u64,
}

impl SentCounters {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: SentCounters) -> SentCounters {
        SentCounters {
            samples: self.samples + other.samples,
            datagrams: self.datagrams + other.datagrams,
            repeats: self.repeats + other.repeats,
            parity: self.parity + other.parity,
            failed: self.failed + other.failed,
            expired: self.expired + other.expired,
        }
    }

    /// Datagrams sent beyond those that carry each sample once, per one of those; 0 before the first.
    pub fn redundancy(&self) -> f64 {
        if self.datagrams == 0 { 0.0 } else { (self.repeats + self.parity) as f64 / self.datagrams as f64 }
    }
}
