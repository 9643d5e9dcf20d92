//! State kept of members that fell silent.
//!
//! On a robot that runs for days that is every process of its swarm that was ever started, so it is little: enough that what a node sealed
//! before is not taken again, and that a datagram of it is accepted at once when its link is back.

use std::collections::BTreeMap;

use noctule_discovery::NodeId;
use noctule_timebase::Instant;
use ring::aead::LessSafeKey;

use super::peer::Peer;
use super::replay::Windows;
use super::swarm::SwarmId;
use crate::clock::Raw;

/// A node that has proved its number, and sends no more.
#[derive(Clone, Copy, Debug)]
struct Silent {
    heard: Instant<Raw>,
    /// The highest counter accepted.
    newest: u64,
    newest_challenge: u64,
    proved_by: SwarmId,
}

/// All of them; how many there may be is the limit of all senders together.
#[derive(Debug, Default)]
pub(super) struct SilentPeers {
    nodes: BTreeMap<NodeId, Silent>,
}

impl SilentPeers {
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Keeps what is needed of a node; nothing of one that never showed itself.
    pub(super) fn add(&mut self, node: NodeId, peer: &Peer) {
        if let Some(windows) = &peer.windows {
            let Peer { heard, newest_challenge, proved_by, .. } = *peer;
            self.nodes.insert(node, Silent { heard, newest: windows.newest(), newest_challenge, proved_by });
        }
    }

    /// The node when a datagram of it arrives again, or for the first time, with the key that its datagrams are opened with.
    pub(super) fn peer(&self, node: NodeId, key: (LessSafeKey, SwarmId), now: Instant<Raw>) -> Peer {
        let peer = Peer::new(key, now);
        match self.nodes.get(&node) {
            None => peer,
            Some(Silent { newest, newest_challenge, proved_by, .. }) => Peer {
                windows: Some(Windows::starting_at(*newest)),
                newest_challenge: *newest_challenge,
                proved_by: *proved_by,
                ..peer
            },
        }
    }

    /// A datagram of it has arrived. Whether it was one of them.
    pub(super) fn remove(&mut self, node: NodeId) -> bool {
        self.nodes.remove(&node).is_some()
    }

    /// Forgets the one that has been silent longest; false if there is none.
    pub(super) fn forget_one(&mut self) -> bool {
        let oldest = self.nodes.iter().min_by_key(|(_, silent)| silent.heard).map(|(node, _)| *node);
        oldest.is_some_and(|node| self.remove(node))
    }

    /// Forgets those that have last shown another swarm key.
    pub(super) fn retain_proved_by(&mut self, is_kept: impl Fn(SwarmId) -> bool) {
        self.nodes.retain(|_, silent| is_kept(silent.proved_by));
    }
}
