//! Reaction of a node to changes of its own network and of other nodes' addresses, and to strangers that fill its tables.

use std::net::SocketAddr;

use noctule_discovery::{EndpointId, NodeId};
use noctule_timebase::{Instant, Span};

use super::{State, discovery_clock};
use crate::clock::Raw;
use crate::notice::Notice;
use crate::shared_topic::RingError;

/// A limit that goes on being reached is reported again after this time.
const REPORT_AGAIN: Span = Span::from_s(60);

/// When a limit was last reported.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LimitWatch {
    refused: u64,
    reported_at: Option<Instant<Raw>>,
}

/// Descriptors that rings of other hosts' writers leave to the rest of the process, and the most that they take.
const DESCRIPTORS_LEFT: usize = 256;
const RINGS_MAX: usize = 8192;
/// Rings of writers of this host that are read by UDP: eight processes of 240 topics.
const RINGS_HERE_MAX: usize = 2048;

/// Rings of other hosts' writers that this process can have: at most half of its descriptors if those are few.
pub(super) fn rings_max() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let limit = limit.map_or(RINGS_MAX, |limit| usize::try_from(limit).unwrap_or(RINGS_MAX));
    limit.saturating_sub(DESCRIPTORS_LEFT).max(limit / 2).min(RINGS_MAX)
}

/// Addresses of one node that datagrams are taken from.
const ADDRESSES_LIMIT: usize = 8;

impl State {
    /// Another node is reached at another address.
    pub(super) fn handle_move(&mut self, node: NodeId, locator: SocketAddr, now: Instant<Raw>) {
        self.add_address(node, locator);
        if let Some(remote) = self.remotes.get_mut(&node) {
            remote.handle_new_path(now);
        }
    }

    /// Datagrams from there are this node's. Addresses before are kept, as far as there is room: what is under way from them is its own,
    /// too, and a node on several networks sends from each.
    pub(super) fn add_address(&mut self, node: NodeId, locator: SocketAddr) {
        let others =
            self.by_address.iter().filter(|(address, known)| **known == node && **address != locator);
        let excess: Vec<SocketAddr> = others.map(|(address, _)| *address).skip(ADDRESSES_LIMIT - 1).collect();
        for address in excess {
            self.by_address.remove(&address);
        }
        self.by_address.insert(locator, node);
    }

    /// Whether a writer whose samples come by UDP may have a ring here. One of another host takes a descriptor; one of this host, whose
    /// readers have mostly come to that because there was none left, takes none.
    ///
    /// # Errors
    /// There are as many already as descriptors allow, or [`RINGS_HERE_MAX`].
    pub(in crate::node) fn check_room_for_ring(
        &self,
        node: NodeId,
        writer: EndpointId,
    ) -> Result<(), RingError> {
        if self.remotes.get(&node).is_some_and(|remote| remote.writers().any(|known| known == writer)) {
            return Ok(());
        }
        let address = |node: &NodeId| self.discovery.locator(*node).map(|locator| locator.ip());
        let is_here = self.discovery.is_here(node);
        let here = address(&node);
        let (mut total, mut of_address) = (0, 0);
        for (other, remote) in &self.remotes {
            if self.discovery.is_here(*other) == is_here {
                let rings = remote.writers().count();
                total += rings;
                of_address += if address(other) == here { rings } else { 0 };
            }
        }
        if is_here {
            return if total < RINGS_HERE_MAX { Ok(()) } else { Err(RingError::TooManyHere { total }) };
        }
        let most = self.rings_max;
        if total < most && of_address < most - most / 4 {
            return Ok(());
        }
        Err(RingError::TooMany { total, of_address })
    }

    /// Notifies that nodes, pages or matches were refused, once a minute at most.
    pub(super) fn note_limits(&mut self, now: Instant<Raw>) {
        let counters = self.discovery.counters();
        let refused = counters.refused_full + counters.refused_matches + counters.displaced;
        let is_new = refused > self.limits.refused;
        if is_new && self.limits.reported_at.is_none_or(|reported_at| now - reported_at >= REPORT_AGAIN) {
            let more = refused - self.limits.refused;
            self.limits = LimitWatch { refused, reported_at: Some(now) };
            self.note(Notice::Full { refused: more });
        }
    }

    /// An interface or an address of this host has come or gone.
    pub(in crate::node) fn handle_network_change(&mut self, now: Instant<Raw>) {
        self.discovery.handle_network_change(discovery_clock(now));
    }

    /// Datagrams leave this host by an interface: one notice if they are not sealed.
    pub(in crate::node) fn warn_without_key(&mut self, interface: String) {
        if !self.envelope.is_sealed() && !std::mem::replace(&mut self.warned_without_key, true) {
            self.note(Notice::NoKey { interface });
        }
    }
}
