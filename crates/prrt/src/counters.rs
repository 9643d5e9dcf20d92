//! Counters of a link.

/// Counters of a link: datagrams, samples, losses, repairs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Datagrams given out for sending.
    pub sent_datagrams: u64,
    /// Their bytes, without what an envelope adds.
    pub sent_bytes: u64,
    /// Of those, the ones that only asked whether the path carries their length.
    pub path_probes: u64,
    /// Times that the path was found to carry less than before.
    pub path_narrowed: u64,
    /// Fragments retransmitted.
    pub repeated: u64,
    /// Reliable datagrams given up for lost.
    pub lost_packets: u64,
    /// Retransmission time-outs: times without any feedback for the whole of it.
    pub timeouts: u64,
    /// Numbered datagrams that a queue on the way has marked in place of dropping them (ECN).
    pub marked_packets: u64,
    /// Samples dropped before they were sent or acknowledged, for a newer one of their writer or because
    /// the writer stopped.
    pub given_up: u64,
    /// Samples not queued: [`LinkConfig::queue_bytes_max`](crate::LinkConfig::queue_bytes_max).
    pub refused_full: u64,
    /// Samples not queued: more than 32,767 fragments.
    pub refused_too_long: u64,
    /// Datagrams taken in.
    pub received_datagrams: u64,
    /// Datagrams that break the specification.
    pub malformed: u64,
    /// Datagrams of another session.
    pub other_session: u64,
    /// Feedback on what was never sent.
    pub impossible_feedback: u64,
    /// Feedback not sent because it would have been more than three times what came.
    pub feedback_withheld: u64,
    /// Fragments of writers that are not expected, or expected to be of the other reliability.
    pub unexpected: u64,
    /// Fragments of samples longer than the writer may write.
    pub too_long: u64,
    /// Fragments that contradict an earlier one of their sample.
    pub inconsistent: u64,
    /// Fragments that had arrived before.
    pub duplicates: u64,
    /// Best-effort fragments of samples older than one delivered, or of that one again.
    pub late: u64,
    /// Samples of which some fragments arrived, dropped: a newer one was first, the sender gave them up, or
    /// room was needed.
    pub incomplete: u64,
    /// Fragments not taken because a limit of what may be held was reached.
    pub held_full: u64,
    /// Fragments not taken because the reader of their writer had no room for more ([`Link::grant`](crate::Link::grant)).
    pub beyond_limit: u64,
    /// Samples delivered.
    pub delivered: u64,
    /// Samples with a deadline given out for sending.
    pub bound_samples: u64,
    /// Their datagrams, each counted once.
    pub bound_data: u64,
    /// Datagrams retransmitted for them.
    pub bound_repeats: u64,
    /// Parity datagrams sent for them.
    pub bound_parity: u64,
    /// Times that one more of either was wanted, but more than their share had been sent.
    pub extras_refused: u64,
    /// Of those samples, the ones not known to have arrived in time.
    pub bound_failed: u64,
    /// Samples not sent because their deadline had passed.
    pub expired: u64,
    /// Datagrams dropped because they came after their deadline.
    pub after_deadline: u64,
    /// Samples with a deadline that did not come in time.
    pub bound_missed: u64,
    /// Samples delivered thanks to a datagram retransmitted.
    pub repaired_by_repeat: u64,
    /// Fragments recovered from parity.
    pub repaired_by_parity: u64,
}
