//! Bytes that wait for nodes of other hosts to be sent or acknowledged, of all of them together.
//!
//! # Problem
//!
//! A reliable sample is kept for each reader until that has acknowledged it. Each link has a limit, but a stranger can open as many links
//! as there is room for nodes, and acknowledge nothing.
//!
//! # Approach
//!
//! Links share the bytes of a sample, so bytes are counted once however many links hold them. Above half of the limit only nodes of an
//! address that holds less than a quarter get new samples, so that nobody who has one address only can starve the others; at the limit none.
//! What a node does not get counts as given up: `missed` at its reader, and a notice.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;

use noctule_discovery::{EndpointId, NodeId};
use noctule_timebase::{Instant, Span};

use super::state::State;
use crate::clock::Raw;
use crate::notice::Notice;

/// Bytes of samples that one node keeps for nodes of other hosts, unless it is set up otherwise: 256 MiB, four times what one link may hold.
pub const UNACKNOWLEDGED_BYTES_DEFAULT: usize = 256 << 20;
/// Samples looked at each time another is published: whether some link still holds them.
const SWEEP: usize = 8;
/// Samples published between two looks at what links hold for themselves.
const LOOK_AGAIN: u32 = 64;
/// Between two notices.
const NOTICE_INTERVAL: Span = Span::from_s(60);

/// See the module.
#[derive(Debug)]
pub(super) struct Unacknowledged {
    limit_bytes: usize,
    /// What links shared when it was published.
    payloads: VecDeque<Arc<[u8]>>,
    payload_bytes: usize,
    /// What links hold each for itself, when it was last looked at.
    own_bytes: usize,
    until_look: u32,
    /// Samples of a node that it did not get, since the last notice.
    refused: u64,
    noted_at: Option<Instant<Raw>>,
}

/// Who gets a new sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Admitted {
    /// Every node.
    All,
    /// Nodes of addresses that hold less than a quarter of the limit; what each holds.
    Small(BTreeMap<IpAddr, usize>),
    /// No node.
    None,
}

impl Unacknowledged {
    pub(super) fn new(limit_bytes: usize) -> Unacknowledged {
        Unacknowledged {
            limit_bytes,
            payloads: VecDeque::new(),
            payload_bytes: 0,
            own_bytes: 0,
            until_look: 0,
            refused: 0,
            noted_at: None,
        }
    }

    /// Bytes kept, as far as is known without a look at every sample: never fewer than there are.
    pub(super) fn bytes(&self) -> usize {
        self.payload_bytes + self.own_bytes
    }

    /// Counts a sample that links may have kept.
    fn keep(&mut self, payload: &Arc<[u8]>) {
        // The caller has one.
        if Arc::strong_count(payload) > 1 {
            self.payload_bytes += payload.len();
            self.payloads.push_back(Arc::clone(payload));
        }
        self.sweep(SWEEP);
    }

    /// Forgets those of the oldest `samples` that no link holds any more.
    fn sweep(&mut self, samples: usize) {
        for _ in 0..samples.min(self.payloads.len()) {
            let Some(oldest) = self.payloads.pop_front() else { return };
            if Arc::strong_count(&oldest) > 1 {
                self.payloads.push_back(oldest);
            } else {
                self.payload_bytes -= oldest.len();
            }
        }
    }

    fn has_room(&self, bytes: usize, share: usize) -> bool {
        self.bytes() + bytes <= self.limit_bytes / share
    }
}

impl State {
    /// Who gets a sample of so many bytes.
    pub(super) fn admit(&mut self, bytes: usize) -> Admitted {
        let budget = &mut self.unacknowledged;
        budget.until_look = budget.until_look.saturating_sub(1);
        if budget.until_look == 0 || !budget.has_room(bytes, 2) {
            budget.until_look = LOOK_AGAIN;
            budget.own_bytes = self.remotes.values().map(|remote| remote.own_bytes()).sum();
        }
        if budget.has_room(bytes, 2) {
            return Admitted::All;
        }
        budget.sweep(usize::MAX);
        if budget.has_room(bytes, 2) {
            return Admitted::All;
        }
        if !budget.has_room(bytes, 1) {
            return Admitted::None;
        }
        let mut held: BTreeMap<IpAddr, usize> = BTreeMap::new();
        for (node, remote) in &self.remotes {
            if let Some(locator) = self.discovery.locator(*node) {
                *held.entry(locator.ip().to_canonical()).or_default() += remote.queue_bytes();
            }
        }
        Admitted::Small(held)
    }

    /// Whether a node is among those that get a sample of so many bytes.
    pub(super) fn is_admitted(&self, admitted: &Admitted, node: NodeId, bytes: usize) -> bool {
        match admitted {
            Admitted::All => true,
            Admitted::None => false,
            Admitted::Small(held) => {
                let address = self.discovery.locator(node).map(|locator| locator.ip().to_canonical());
                let held = address.and_then(|address| held.get(&address)).copied().unwrap_or(0);
                held + bytes <= self.unacknowledged.limit_bytes / 4
            }
        }
    }

    /// A sample went to links, and `refused` nodes did not get it.
    pub(super) fn keep_unacknowledged(
        &mut self,
        (writer, refused): (EndpointId, u64),
        payload: &Arc<[u8]>,
        now: Instant<Raw>,
    ) {
        self.unacknowledged.keep(payload);
        if refused == 0 {
            return;
        }
        if let Some(topic) = self.publishers.get(&writer) {
            topic.count_given_up(refused);
        }
        let budget = &mut self.unacknowledged;
        budget.refused += refused;
        if budget.noted_at.is_none_or(|at| now - at >= NOTICE_INTERVAL) {
            budget.noted_at = Some(now);
            let (samples, limit_bytes) = (std::mem::take(&mut budget.refused), budget.limit_bytes);
            self.note(Notice::Unacknowledged { samples, limit_bytes });
        }
    }

    /// See [`Node::unacknowledged_bytes`](crate::Node::unacknowledged_bytes).
    pub(super) fn unacknowledged_bytes(&mut self) -> usize {
        self.unacknowledged.sweep(usize::MAX);
        self.unacknowledged.own_bytes = self.remotes.values().map(|remote| remote.own_bytes()).sum();
        self.unacknowledged.bytes()
    }

    /// Memory of what has been acknowledged goes back, also if nothing more is published.
    pub(super) fn sweep_unacknowledged(&mut self) {
        self.unacknowledged.sweep(usize::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_counts_once_and_as_long_as_a_link_holds_it() {
        let mut budget = Unacknowledged::new(1_000);
        let payload: Arc<[u8]> = Arc::from([7; 100]);
        budget.keep(&payload);
        assert_eq!(budget.bytes(), 0, "no link took it");
        let links = vec![Arc::clone(&payload); 300];
        budget.keep(&payload);
        drop(payload);
        assert_eq!(budget.bytes(), 100);
        assert!(budget.has_room(400, 2) && !budget.has_room(401, 2) && budget.has_room(900, 1));
        let later: Arc<[u8]> = Arc::from([7; 50]);
        let still = Arc::clone(&later);
        budget.keep(&later);
        drop((links, later));
        budget.sweep(usize::MAX);
        assert_eq!((budget.bytes(), budget.payloads.len()), (50, 1));
        drop(still);
        budget.sweep(usize::MAX);
        assert_eq!((budget.bytes(), budget.payloads.len()), (0, 0));
    }
}
