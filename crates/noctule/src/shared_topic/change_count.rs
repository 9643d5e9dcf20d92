//! That something has changed in what a program may keep a picture of: counted, so that who looks need not lock anything.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts changes of one node's view of the system: nodes, endpoints, who is joined with whom. Clones are the same count.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChangeCount(Arc<AtomicU64>);

impl ChangeCount {
    /// Something has changed, and can be seen by who sees this.
    pub(crate) fn count(&self) {
        self.0.fetch_add(1, Ordering::Release);
    }

    /// Changes so far.
    pub(crate) fn so_far(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}
