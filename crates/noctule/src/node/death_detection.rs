//! Nodes of this host whose connection to us has ended: dead, or closed by another process?
//!
//! The end of a connection shows at once that a process has died. But any process that may connect can speak in the name of a node and
//! hang up. So a node counts as dead only when its own listening socket is gone as well. A process that is being killed closes its sockets
//! one after the other, so a node that is still there is asked again a few times.

use std::collections::BTreeMap;

use noctule_discovery::NodeId;
use noctule_timebase::{Instant, Span};

use crate::clock::Raw;

/// After which times a suspect is looked at again; then it is alive.
const LOOK_AGAIN_MS: [i64; 4] = [1, 5, 20, 100];

/// Nodes of this host whose connection has ended and that are not known to be gone.
#[derive(Debug, Default)]
pub(super) struct DeathDetection(BTreeMap<NodeId, Suspect>);

#[derive(Debug)]
struct Suspect {
    looked: usize,
    at: Instant<Raw>,
}

impl DeathDetection {
    /// A connection of a node has ended; it is looked at with the next [`poll`](DeathDetection::poll).
    pub(super) fn add(&mut self, node: NodeId, now: Instant<Raw>) {
        self.0.insert(node, Suspect { looked: 0, at: now });
    }

    /// A node that is dead, as `is_listening` says of its socket. Call until there is none.
    pub(super) fn poll(
        &mut self,
        now: Instant<Raw>,
        mut is_listening: impl FnMut(NodeId) -> bool,
    ) -> Option<NodeId> {
        loop {
            let (&node, suspect) = self.0.iter_mut().find(|(_, suspect)| suspect.at <= now)?;
            if !is_listening(node) {
                self.0.remove(&node);
                return Some(node);
            }
            match LOOK_AGAIN_MS.get(suspect.looked) {
                Some(ms) => {
                    suspect.looked += 1;
                    suspect.at = now + Span::from_ms(*ms);
                }
                None => _ = self.0.remove(&node),
            }
        }
    }

    /// When to look again.
    pub(super) fn poll_timeout(&self) -> Option<Instant<Raw>> {
        self.0.values().map(|suspect| suspect.at).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: NodeId = NodeId([7; 16]);

    fn at(ms: i64) -> Instant<Raw> {
        Instant::from_ns(ms * 1_000_000)
    }

    #[test]
    fn a_node_that_listens_no_more_is_dead_at_once_or_a_little_later() {
        let mut death_detection = DeathDetection::default();
        death_detection.add(NODE, at(0));
        assert_eq!(death_detection.poll(at(0), |_| false), Some(NODE));
        death_detection.add(NODE, at(10));
        assert_eq!(death_detection.poll(at(10), |_| true), None);
        assert_eq!(death_detection.poll_timeout(), Some(at(11)));
        assert_eq!(death_detection.poll(at(11), |_| false), Some(NODE));
        assert_eq!(death_detection.poll_timeout(), None);
    }

    #[test]
    fn a_node_that_goes_on_listening_is_alive_whatever_others_say_in_its_name() {
        let mut death_detection = DeathDetection::default();
        let mut looks = 0;
        death_detection.add(NODE, at(0));
        for ms in 0..1_000 {
            let dead = death_detection.poll(at(ms), |_| {
                looks += 1;
                true
            });
            assert_eq!(dead, None);
        }
        assert_eq!((looks, death_detection.poll_timeout()), (1 + LOOK_AGAIN_MS.len(), None));
    }
}
