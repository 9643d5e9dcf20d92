//! Notifies that the view of the system has changed, for programs that keep a picture of it.

use std::fmt;
use std::sync::Arc;

use super::{NodeBuilder, Shared};

/// The user's callback for changes.
#[derive(Clone)]
pub(super) struct ChangeHook(Arc<dyn Fn() + Send + Sync>);

impl NodeBuilder {
    /// Calls `hook` after other nodes or their endpoints have come, changed or gone, and after a publisher or a subscriber of this node was joined
    /// with a partner or parted from one; once for several changes that come together. It is called on the node's thread: it must not wait, and
    /// does not call the node. Default: nobody is called.
    pub fn on_change(mut self, hook: impl Fn() + Send + Sync + 'static) -> Self {
        self.on_change = Some(ChangeHook(Arc::new(hook)));
        self
    }
}

impl fmt::Debug for ChangeHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ChangeHook")
    }
}

/// How many changes were seen at the last look.
#[derive(Debug, Default)]
pub(super) struct Seen(u64);

impl Seen {
    /// Calls the hook, if there is one and something has changed. Locks nothing.
    pub(super) fn follow(&mut self, shared: &Shared) {
        let Some(ChangeHook(hook)) = &shared.on_change else { return };
        let so_far = shared.changes.so_far();
        if so_far != self.0 {
            self.0 = so_far;
            hook();
        }
    }
}
