//! Which nodes get a new sample, if much waits for nodes of other hosts ([`Unacknowledged`](crate::node::unacknowledged::Unacknowledged)).

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use noctule_discovery::{EndpointId, NodeId};
use noctule_timebase::Instant;

use super::State;
use crate::clock::Raw;
use crate::node::unacknowledged::{Admitted, LOOK_AGAIN, NOTICE_INTERVAL};
use crate::notice::Notice;

impl State {
    /// Which nodes get a sample of so many bytes.
    pub(in crate::node) fn admit(&mut self, bytes: usize) -> Admitted {
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
        drop(budget.take_all_spent());
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
    pub(in crate::node) fn is_admitted(&self, admitted: &Admitted, node: NodeId, bytes: usize) -> bool {
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
    pub(in crate::node) fn keep_unacknowledged(
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
    pub(in crate::node) fn unacknowledged_bytes(&mut self) -> usize {
        self.unacknowledged.sweep(usize::MAX);
        drop(self.unacknowledged.take_all_spent());
        self.unacknowledged.own_bytes = self.remotes.values().map(|remote| remote.own_bytes()).sum();
        self.unacknowledged.bytes()
    }

    /// Memory of what has been acknowledged goes back, also if nothing more is published.
    pub(in crate::node) fn sweep_unacknowledged(&mut self) {
        self.unacknowledged.sweep(usize::MAX);
    }
}
