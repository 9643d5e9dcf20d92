//! What threads of the application wait for, of nodes of other hosts.

use noctule_discovery::EndpointId;

/// What a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Awaited {
    /// Room for a sample of so many bytes.
    Room(EndpointId, usize),
    /// Nothing of a writer is to be sent or acknowledged.
    Sent(EndpointId),
}

/// The threads that wait; one entry each.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    pub(super) awaited: Vec<Awaited>,
    /// How often they were woken.
    #[cfg(test)]
    pub(super) woken: u64,
}

impl Waiters {
    /// One of them waits no longer.
    pub(super) fn end(&mut self, awaited: Awaited) {
        if let Some(at) = self.awaited.iter().position(|other| *other == awaited) {
            self.awaited.swap_remove(at);
        }
    }
}
