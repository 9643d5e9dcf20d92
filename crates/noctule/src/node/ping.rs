//! One exchange of clocks on demand: how long it takes to a node and back.
//!
//! Every node answers clock exchanges on its socket (`docs/spec/sync.md`), sealed if there is a key. So a
//! ping needs no topic of its own, and its four stamps say more than an echo would: what the way there took,
//! what the way back, and what the other node.

use std::collections::BTreeMap;
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use noctule_discovery::NodeId;
use noctule_sys::random;
use noctule_time_sync::{Exchange, Local, Nonce};
use noctule_timebase::Instant;

use super::Node;
use crate::error::NodeError;
use crate::sync::wire::{Reply, Request};

/// Pings of one node that may be on their way at once.
pub const PINGS_LIMIT: usize = 64;

/// Why a ping has no answer.
#[derive(Debug, thiserror::Error)]
pub enum PingError {
    /// No such node is known, or it has gone.
    #[error("node {node} is not known")]
    Unknown {
        /// Which.
        node: NodeId,
    },
    /// No reply came in time.
    #[error("node {node} did not answer within {} ms", timeout.as_millis())]
    Silent {
        /// Which.
        node: NodeId,
        /// How long was waited.
        timeout: Duration,
    },
    /// [`PINGS_LIMIT`].
    #[error("{PINGS_LIMIT} pings are on their way; wait for one of them")]
    Full,
    /// The request could not be sent.
    #[error("the request cannot be sent: {0}")]
    System(io::Error),
}

/// Pings on their way, by nonce.
#[derive(Debug, Default)]
pub(super) struct Pings(BTreeMap<u64, Pending>);

#[derive(Debug)]
struct Pending {
    node: NodeId,
    t1: Instant<Local>,
    answer: SyncSender<Exchange>,
}

impl Pings {
    /// True if the reply belongs to a ping.
    pub(super) fn handle_reply(&mut self, from: NodeId, reply: &Reply, t4: Instant<Local>) -> bool {
        let is_ours = self.0.get(&reply.nonce.0).is_some_and(|pending| pending.node == from);
        let pending = if is_ours { self.0.remove(&reply.nonce.0) } else { None };
        let Some(Pending { t1, answer, .. }) = pending else { return false };
        // The caller may have stopped waiting.
        let _ = answer.try_send(Exchange { t1, t2: reply.t2, t3: reply.t3, t4 });
        true
    }

    fn begin(&mut self, nonce: Nonce, node: NodeId, t1: Instant<Local>) -> Option<Receiver<Exchange>> {
        if self.0.len() >= PINGS_LIMIT {
            return None;
        }
        let (answer, receiver) = sync_channel(1);
        self.0.insert(nonce.0, Pending { node, t1, answer });
        Some(receiver)
    }
}

impl Node {
    /// Requests the time of another node and waits up to `timeout` for the reply: when the request left (t1)
    /// and the reply arrived (t4) on this node's clock, when the request arrived (t2) and the reply left
    /// (t3) on the other's. `t4 − t1` is the whole trip. On one host (without artificial clocks) both
    /// clocks are the same.
    ///
    /// # Errors
    /// The node is not known or does not answer, or the system does not send.
    pub fn ping(&self, node: NodeId, timeout: Duration) -> Result<Exchange, PingError> {
        if self.shared.is_in_child() {
            return Err(PingError::System(io::Error::other(NodeError::Forked)));
        }
        let nonce = random::secret().map_err(PingError::System)?;
        let nonce = Nonce(u64::from_le_bytes(nonce));
        let answer = {
            let mut state = self.shared.lock();
            let to = state.discovery.locator(node).ok_or(PingError::Unknown { node })?;
            let t1 = self.shared.clock.now();
            let answer = state.pings.begin(nonce, node, t1).ok_or(PingError::Full)?;
            let mut out = Vec::new();
            state.envelope.begin(&mut out);
            out.extend_from_slice(&Request { nonce }.encode());
            if !state.envelope.seal_for(node, &mut out) {
                state.pings.0.remove(&nonce.0);
                return Err(PingError::Unknown { node });
            }
            if let Err(cause) = self.shared.sockets.own.send_to(&out, to) {
                state.pings.0.remove(&nonce.0);
                return Err(PingError::System(cause));
            }
            answer
        };
        answer.recv_timeout(timeout).map_err(|_| {
            self.shared.lock().pings.0.remove(&nonce.0);
            PingError::Silent { node, timeout }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: NodeId = NodeId([7; 16]);

    fn reply(nonce: u64) -> Reply {
        Reply { nonce: Nonce(nonce), t2: Instant::from_ns(2), t3: Instant::from_ns(3) }
    }

    #[test]
    fn a_reply_counts_once_and_only_from_the_node_that_was_asked() {
        let mut pings = Pings::default();
        let answer = pings.begin(Nonce(5), NODE, Instant::from_ns(1)).unwrap();
        assert!(!pings.handle_reply(NodeId([8; 16]), &reply(5), Instant::from_ns(4)));
        assert!(!pings.handle_reply(NODE, &reply(6), Instant::from_ns(4)));
        assert!(pings.handle_reply(NODE, &reply(5), Instant::from_ns(4)));
        assert!(!pings.handle_reply(NODE, &reply(5), Instant::from_ns(4)));
        let exchange = answer.try_recv().unwrap();
        assert_eq!((exchange.t1.ns(), exchange.t4.ns()), (1, 4));
    }

    #[test]
    fn no_more_are_on_their_way_than_the_limit() {
        let mut pings = Pings::default();
        let waiting: Vec<_> = (0..=PINGS_LIMIT as u64)
            .map(|number| pings.begin(Nonce(number), NODE, Instant::from_ns(1)))
            .collect();
        assert!(waiting[..PINGS_LIMIT].iter().all(Option::is_some) && waiting[PINGS_LIMIT].is_none());
    }
}
