//! Watch over the publishers of a topic with a DEADLINE, while its subscriber does something else.

use noctule_discovery::{EndpointId, NodeId};
use noctule_shm_ring::Rhythm;

use super::Change;
use crate::clock;

/// When the publishers of a topic last wrote.
#[derive(Debug, Default)]
pub(super) struct DeadlineWatches {
    sources: Vec<(NodeId, EndpointId, Rhythm)>,
    /// The last sample of those that are gone.
    gone_ns: i64,
}

impl DeadlineWatches {
    /// On the crystal; 0 for never.
    pub(super) fn newest_ns(&self) -> i64 {
        self.sources.iter().map(|(.., rhythm)| rhythm.written_ns()).fold(self.gone_ns, i64::max)
    }

    /// A source came or went.
    pub(super) fn change(&mut self, change: &Change) {
        let is_meant = |source: &(NodeId, EndpointId, Rhythm)| match change {
            Change::Came(_) => false,
            Change::Went(node, writer) => (source.0, source.1) == (*node, *writer),
            Change::NodeWent(node) => source.0 == *node,
        };
        // Never in the future, as which a broken publisher may leave it.
        self.gone_ns = self.newest_ns().min(clock::now().ns());
        self.sources.retain(|source| !is_meant(source));
        if let Change::Came(source) = change {
            self.sources.push((source.node, source.writer, source.reader.rhythm()));
        }
    }
}
