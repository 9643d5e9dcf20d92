//! Samples that were given up because a path carries less than is published.
//!
//! Readers see the gap in the numbers and count it as missed; the publisher's side reports it in a notice, at once and then
//! at most once in [`NOTICE_INTERVAL`] for each topic and reader's node.

use std::collections::BTreeMap;

use noctule_discovery::{EndpointId, NodeId};
use noctule_timebase::{Instant, Span};

use crate::clock::Raw;

/// Between two notices on one topic and node: often enough to be seen, seldom enough not to fill a log.
const NOTICE_INTERVAL: Span = Span::from_s(5);

/// Counts samples given up for lack of capacity, and decides when the user is notified.
#[derive(Debug, Default)]
pub(super) struct Overload {
    paths: BTreeMap<(EndpointId, NodeId), Path>,
}

#[derive(Debug)]
struct Path {
    given_up: u64,
    noticed_at: Option<Instant<Raw>>,
}

impl Overload {
    /// So many samples of a writer were given up on the path to a node. Gives the number since the last notice, if
    /// another is due.
    pub(super) fn count(
        &mut self,
        path: (EndpointId, NodeId),
        samples: u64,
        now: Instant<Raw>,
    ) -> Option<u64> {
        let path = self.paths.entry(path).or_insert(Path { given_up: 0, noticed_at: None });
        path.given_up += samples;
        if path.noticed_at.is_some_and(|at| now - at < NOTICE_INTERVAL) {
            return None;
        }
        path.noticed_at = Some(now);
        Some(std::mem::take(&mut path.given_up))
    }

    /// A writer is no more.
    pub(super) fn close(&mut self, writer: EndpointId) {
        self.paths.retain(|(known, _), _| *known != writer);
    }

    /// A node is gone.
    pub(super) fn forget(&mut self, node: NodeId) {
        self.paths.retain(|(_, known), _| *known != node);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_is_due_at_once_and_then_every_five_seconds() {
        let mut overload = Overload::default();
        let at = |ms: i64| Instant::from_ns(ms * 1_000_000);
        let (writer, node) = (EndpointId(1), NodeId([1; 16]));
        assert_eq!(overload.count((writer, node), 2, at(0)), Some(2));
        assert_eq!(overload.count((writer, node), 1, at(10)), None);
        assert_eq!(overload.count((writer, NodeId([2; 16])), 1, at(10)), Some(1));
        assert_eq!(overload.count((writer, node), 4, at(5_000)), Some(5));
        overload.forget(node);
        assert_eq!(overload.count((writer, node), 1, at(5_001)), Some(1));
        overload.close(writer);
        assert!(overload.paths.is_empty());
    }
}
