//! Short datagrams as they leave under a key, and what a datagram may carry by the key that it was sealed with.

use std::net::SocketAddr;

use super::{Destined, SEND_QUEUE_LIMIT, State};
use crate::envelope::SealedWith;
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

/// Discovery may come from every member; streams to a group from any holder of the sender's key; all else only from the sender itself.
pub(super) fn is_fit(with: SealedWith, body: &[u8]) -> bool {
    let needed = match body.first_chunk::<4>() {
        Some(b"NCTG") => SealedWith::SenderKey,
        Some(b"NCTM" | b"NCTS" | b"NCTQ" | b"NCTF" | [super::SHORT_HEADER..=u8::MAX, ..]) => {
            SealedWith::PairKey
        }
        _ => SealedWith::SwarmKey,
    };
    with >= needed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_can_have_sealed_too_is_no_sample_of_a_link() {
        let carried: [(&[u8], SealedWith); 7] = [
            (b"NCTD", SealedWith::SwarmKey),
            (b"NCTG", SealedWith::SenderKey),
            (b"NCTM", SealedWith::PairKey),
            (b"NCTS", SealedWith::PairKey),
            (b"NCTQ", SealedWith::PairKey),
            (b"NCTF", SealedWith::PairKey),
            (&[0xa0, 5, 0, 1], SealedWith::PairKey),
        ];
        for (body, needed) in carried {
            for with in [SealedWith::SwarmKey, SealedWith::SenderKey, SealedWith::PairKey] {
                assert_eq!(is_fit(with, body), with >= needed, "{with:?} {body:?}");
            }
        }
    }
}
