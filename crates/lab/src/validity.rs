//! Why a cell is not valid: one value for each check that can fail. The sentence of a reason is its `Display` and nothing else;
//! no other code reads it.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::notation::duration;

/// A check that failed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Invalid {
    /// The trial did not complete; the fault of a node or of what is around it.
    #[error("{0}")]
    Failed(String),
    /// As a `run.json` has it, whose sentences are for people.
    #[error("{0}")]
    Recorded(String),
    /// A check of the traffic beside the cell.
    #[error("beside it: {0}")]
    Background(Box<Invalid>),
    /// A node's count is not that of its own table.
    #[error("node {node} says {what}={said}, its record holds {found}")]
    Count {
        /// Number of the node.
        node: usize,
        /// Name of the count.
        what: &'static str,
        /// The node's word for it.
        said: String,
        /// The count in its table.
        found: u64,
    },
    /// A node had no room for samples.
    #[error("the recorder of node {node} dropped {samples} samples")]
    RecorderDropped {
        /// Number of the node.
        node: usize,
        /// Samples dropped.
        samples: f64,
    },
    /// A node does not say whether it had room.
    #[error("node {node} does not say how many samples its recorder dropped")]
    RecorderUnknown {
        /// Number of the node.
        node: usize,
    },
    /// A node received what no message is.
    #[error("node {node} received {messages} messages that were truncated, torn or never sent")]
    Unexpected {
        /// Number of the node.
        node: usize,
        /// Messages of that kind.
        messages: f64,
    },
    /// A node received what the node before it did not send.
    #[error("peers disagree: node {node} received {messages} messages that node {before} never sent")]
    NeverSent {
        /// Number of the node.
        node: usize,
        /// Number of the sender.
        before: usize,
        /// Messages that were never sent.
        messages: usize,
    },
    /// Open loop: not everything was sent.
    #[error("the rate was not held: {sent} of {messages} messages were sent")]
    NotAllSent {
        /// Messages sent.
        sent: u64,
        /// Messages of the schedule.
        messages: u64,
    },
    /// Open loop: everything was sent, but too slowly.
    #[error(
        "the rate was not held: {rate_hz} Hz were asked for, {held_hz:.0} Hz achieved (the last messages left {:.1} ms late)",
        lag_ns / 1e6
    )]
    TooSlow {
        /// Messages per second that were requested.
        rate_hz: f64,
        /// Messages per second that were achieved.
        held_hz: f64,
        /// How late the last messages left.
        lag_ns: f64,
    },
    /// More bytes arrived than can have crossed the link.
    #[error(
        "the messages took another way than the link: it saw {wire_bytes} B, what arrived has {least_bytes} B, so switch off \
         the peer's shared memory"
    )]
    AnotherWay {
        /// Bytes that the link carried.
        wire_bytes: u64,
        /// Payload that arrived.
        least_bytes: u64,
    },
    /// Arrivals before their sending.
    #[error(
        "{count} of {of} latencies are negative (down to {worst_ns} ns): a clock or a stamp of {peer} is wrong"
    )]
    Negative {
        /// Negative latencies.
        count: usize,
        /// Latencies in all.
        of: usize,
        /// The least of them.
        worst_ns: i64,
        /// The peer that stamped.
        peer: String,
    },
    /// Nothing was received at all.
    #[error("nothing arrived: {sent} messages were sent, none received")]
    NothingArrived {
        /// Messages sent.
        sent: u64,
    },
    /// The link emulator handed packets over later than its model says.
    #[error(
        "the link emulator was late: {share} of its packets more than {:.1} ms ({} ms are tolerated), so give the machine less \
         to do",
        *late_ns as f64 / 1e6, limit_ns / 1_000_000
    )]
    EmulatorLate {
        /// Share of the packets, as text.
        share: &'static str,
        /// Lateness at that share, ns.
        late_ns: u64,
        /// The limit.
        limit_ns: u64,
    },
    /// The link emulator dropped packets for want of room.
    #[error("the link emulator overflowed: {packets} packets {what}, so offer less at once")]
    EmulatorOverflow {
        /// Packets dropped.
        packets: u64,
        /// Their fate, as text.
        what: &'static str,
    },
    /// The emulated serial line was late itself.
    #[error(
        "the emulated line was late itself: one byte in a hundred by more than {} µs{}",
        late_ns / 1000,
        if *real_time { "" } else { "; run as root, so that it has priority" }
    )]
    LineLate {
        /// 99th percentile of its lateness.
        late_ns: u64,
        /// Whether it ran with priority.
        real_time: bool,
    },
    /// Arrivals while no bound of the sender's clock was proven.
    #[error("{arrivals} of {of} arrivals came while nothing was proven of the sender's clock")]
    NoClockBound {
        /// Arrivals without a proven bound.
        arrivals: u64,
        /// Arrivals in all.
        of: u64,
    },
    /// Latencies outside the bound of the clocks.
    #[error(
        "{latencies} of {of} latencies are wrong by more than their clock bound (the worst by {}): a clock was stepped between \
         an exchange and an arrival",
        duration(*worst_ns as f64)
    )]
    ClockBoundWrong {
        /// Latencies outside the bound.
        latencies: u64,
        /// Latencies in all.
        of: u64,
        /// The largest error.
        worst_ns: i64,
    },
    /// An imported recording has answers before their questions.
    #[error(
        "{count} of {of} answers came before their question; the clock was set while recording, or the files are of two \
         recordings"
    )]
    AnswerBeforeQuestion {
        /// Answers before their question.
        count: usize,
        /// Answers in all.
        of: usize,
    },
    /// An imported recording has no answers.
    #[error("no message was answered")]
    NothingAnswered,
}

impl Invalid {
    /// Whether the sender did not keep its schedule.
    pub fn is_rate(&self) -> bool {
        matches!(self, Self::NotAllSent { .. } | Self::TooSlow { .. })
    }

    /// Whether the lab's own links, lines or comparison of clocks failed, and not the peer.
    pub fn is_of_the_lab(&self) -> bool {
        matches!(
            self,
            Self::EmulatorLate { .. }
                | Self::EmulatorOverflow { .. }
                | Self::LineLate { .. }
                | Self::NoClockBound { .. }
                | Self::ClockBoundWrong { .. }
        )
    }
}

/// All reasons as one text: `A; B`.
pub fn sentences(reasons: &[Invalid]) -> String {
    reasons.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

impl From<&str> for Invalid {
    fn from(sentence: &str) -> Self {
        Self::Recorded(sentence.to_owned())
    }
}

impl Serialize for Invalid {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Invalid {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::Recorded(String::deserialize(deserializer)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_its_sentence_in_a_file_and_a_recorded_reason_again() {
        let reason = Invalid::Background(Box::new(Invalid::NotAllSent { sent: 40, messages: 100 }));
        let text = serde_json::to_string(&reason).unwrap();
        assert_eq!(text, "\"beside it: the rate was not held: 40 of 100 messages were sent\"");
        let again: Invalid = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_string(&again).unwrap(), text);
        assert!(
            !reason.is_rate() && !again.is_rate(),
            "it is the rate of the traffic beside, not of the cell"
        );
    }

    #[test]
    fn the_faults_of_the_lab_are_not_those_of_a_peer() {
        assert!(Invalid::LineLate { late_ns: 250_000, real_time: false }.is_of_the_lab());
        assert!(Invalid::NoClockBound { arrivals: 1, of: 2 }.is_of_the_lab());
        assert!(!Invalid::NothingArrived { sent: 3 }.is_of_the_lab());
        let said =
            sentences(&[Invalid::LineLate { late_ns: 250_000, real_time: false }, Invalid::NothingAnswered]);
        assert_eq!(
            said,
            "the emulated line was late itself: one byte in a hundred by more than 250 µs; run as root, so that it has \
             priority; no message was answered"
        );
    }
}
