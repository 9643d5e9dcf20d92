//! Short datagrams as they leave under a key.

use std::net::SocketAddr;

use super::{Destined, SEND_QUEUE_LIMIT, State};
use crate::notice::Notice;

impl State {
    /// Queues a short datagram, if there is room and the node can open it; a node that misses it asks again.
    pub(in crate::node) fn queue(&mut self, body: &[u8], (node, to): Destined) {
        if self.send_queue.len() >= SEND_QUEUE_LIMIT {
            return;
        }
        let mut out = Vec::new();
        self.envelope.begin(&mut out);
        out.extend_from_slice(body);
        // With a key every sender is known.
        if node.is_none_or(|node| self.envelope.seal_for(node, &mut out)) {
            self.send_reply(to, out);
        }
    }

    /// Sends a sealed answer, if there is room.
    pub(in crate::node) fn send_reply(&mut self, to: SocketAddr, sealed: Vec<u8>) {
        if self.send_queue.len() < SEND_QUEUE_LIMIT {
            self.send_queue.push_back((to, sealed));
        }
    }

    /// Notifies once for each reason why datagrams are not opened.
    pub(super) fn note_refusals(&mut self) {
        while let Some(why) = self.envelope.poll_warning() {
            self.note(Notice::Seal { why });
        }
    }
}
