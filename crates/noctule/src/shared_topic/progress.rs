//! How far a reader that keeps all has read, for the node that fills its ring.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// The position in the ring from which on a reader says that it has read on; clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct Progress(Arc<AtomicU64>);

impl Default for Progress {
    fn default() -> Progress {
        Progress(Arc::new(AtomicU64::new(u64::MAX)))
    }
}

impl Progress {
    /// Asks for a report of the position from this one on. Afterwards look whether it is there: it may have passed unawares.
    pub(crate) fn watch(&self, position: u64) {
        self.0.store(position, Ordering::Relaxed);
        // Pairs with the fence of the reader: it sees this, or its cursor is seen after it.
        fence(Ordering::SeqCst);
    }

    /// No reader waits for it.
    pub(crate) fn rest(&self) {
        self.0.store(u64::MAX, Ordering::Relaxed);
    }

    /// Whether a reader that has stored its cursor is to report it.
    #[inline]
    pub(crate) fn is_due(&self, position: u64) -> bool {
        fence(Ordering::SeqCst);
        position >= self.0.load(Ordering::Relaxed)
    }
}
