//! Says that the view of the system has changed, for programs that keep a picture of it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::state::State;
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

/// The state at the last look.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    generation: u64,
    /// Of each publisher, in the order of their numbers.
    readers: Vec<usize>,
    /// Of each subscriber.
    versions: Vec<u32>,
}

impl Seen {
    fn of(state: &State) -> Seen {
        let readers = state.publishers.keys().map(|id| state.readers_of(*id));
        let versions = state.subscribers.values().map(|topic| topic.version.load(Ordering::Acquire));
        Seen {
            generation: state.discovery.generation(),
            readers: readers.collect(),
            versions: versions.collect(),
        }
    }

    /// Calls the hook, if there is one and something has changed.
    pub(super) fn follow(&mut self, shared: &Shared) {
        let Some(ChangeHook(hook)) = &shared.on_change else { return };
        let now = Seen::of(&shared.lock());
        if now != *self {
            *self = now;
            hook();
        }
    }
}
