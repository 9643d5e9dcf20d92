//! Histories at best effort that are retransmitted, because the first copy may have come too early.
//!
//! A node that has just come to read a writer may learn of the writer later than the writer's node learns of the reader, and drops what it
//! does not expect. What is not acknowledged therefore goes several times; a node that has it drops it.

use noctule_discovery::{EndpointId, NodeId};
use noctule_timebase::{Instant, Span};

use crate::clock::Raw;

/// After these times: announcements are lost now and then, and repeated within a second.
const RETRANSMIT_AFTER: [Span; 4] =
    [Span::from_ms(10), Span::from_ms(50), Span::from_ms(250), Span::from_ms(1_250)];

/// Histories that are to be retransmitted.
#[derive(Debug, Default)]
pub(super) struct Histories(Vec<Scheduled>);

/// One retransmission.
#[derive(Clone, Copy, Debug)]
struct Scheduled {
    at: Instant<Raw>,
    writer: EndpointId,
    node: NodeId,
}

impl Histories {
    /// The history of a writer was sent to a node, which acknowledges nothing.
    pub(super) fn schedule(&mut self, writer: EndpointId, node: NodeId, now: Instant<Raw>) {
        self.0.extend(RETRANSMIT_AFTER.iter().map(|after| Scheduled { at: now + *after, writer, node }));
    }

    /// Takes those that are due.
    pub(super) fn take_due(&mut self, now: Instant<Raw>) -> Vec<(EndpointId, NodeId)> {
        self.0.extract_if(.., |one| one.at <= now).map(|one| (one.writer, one.node)).collect()
    }

    /// When the next is due.
    pub(super) fn poll_timeout(&self) -> Option<Instant<Raw>> {
        self.0.iter().map(|one| one.at).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_is_retransmitted_four_times_within_two_seconds() {
        let (writer, node, start) = (EndpointId(1), NodeId([7; 16]), Instant::from_ns(0));
        let mut histories = Histories::default();
        histories.schedule(writer, node, start);
        assert!(histories.take_due(start).is_empty());
        for after in RETRANSMIT_AFTER {
            assert_eq!(histories.poll_timeout(), Some(start + after));
            assert_eq!(histories.take_due(start + after), [(writer, node)]);
        }
        assert_eq!(histories.poll_timeout(), None);
    }
}
