//! ROS 2's hashes of the types that the bus has: nodes of the bus describe their types to nodes that ask, and the hash is computed from that.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use noctule::{KnownEndpoint, Node};
use noctule_codegen::described::Described;
use noctule_codegen::hash::rihs01;

/// A node that describes its types does so within this time; routes wait for it.
const ANSWERED_WITHIN: Duration = Duration::from_millis(100);
/// A type that was not described is asked for again after this time.
const ASK_AGAIN: Duration = Duration::from_secs(30);
/// Types that are requested in one look, so that a bus of silent nodes does not hold up the rest.
const ASKED_AT_ONCE: usize = 8;
/// Types that are kept.
const KEPT_MAX: usize = 4096;

/// By Noctule's hash of a type.
#[derive(Debug, Default)]
pub struct TypeHashes {
    known: BTreeMap<u64, String>,
    asked: BTreeMap<u64, Instant>,
}

impl TypeHashes {
    /// Asks for the types that are new.
    pub fn learn(&mut self, node: &Node, endpoints: &[KnownEndpoint], now: Instant) {
        let mut asked = 0;
        for KnownEndpoint { node: owner, endpoint, .. } in endpoints {
            let hash = endpoint.type_hash;
            let is_due =
                self.asked.get(&hash).is_none_or(|at| now.saturating_duration_since(*at) >= ASK_AGAIN);
            if hash == 0 || self.known.contains_key(&hash) || !is_due || asked == ASKED_AT_ONCE {
                continue;
            }
            if self.asked.len() >= KEPT_MAX || self.known.len() >= KEPT_MAX {
                (self.asked, self.known) = Default::default();
            }
            asked += 1;
            self.asked.insert(hash, now);
            let described = node.type_description(*owner, hash, ANSWERED_WITHIN).ok();
            if let Some(Described { library, name }) = described.and_then(|of| Described::new(&of).ok()) {
                self.known.insert(hash, rihs01(&library, &name));
            }
        }
    }

    /// How long until [`learn`](Self::learn) has a type to ask for; `None`: until there are other endpoints.
    pub fn due(&self, endpoints: &[KnownEndpoint], now: Instant) -> Option<Duration> {
        let hashes = endpoints.iter().map(|known| known.endpoint.type_hash);
        let unknown = hashes.filter(|hash| *hash != 0 && !self.known.contains_key(hash));
        let due = unknown.map(|hash| {
            let asked = self.asked.get(&hash);
            asked.map_or(Duration::ZERO, |at| (*at + ASK_AGAIN).saturating_duration_since(now))
        });
        due.min()
    }

    /// ROS 2's hash as text, by the hash of the bus; of the types described so far.
    pub fn known(&self) -> &BTreeMap<u64, String> {
        &self.known
    }
}
