//! Readers of this host that shared memory refuses: their samples come by UDP, as if the writer were on another host.
//!
//! # Problem
//!
//! A ring has its 256 readers, a process runs as another user, or one of both has no file descriptor left. The reader's node learns why; the
//! writer's node need not know of it at all. No reader may be left without samples for that.
//!
//! # Approach
//!
//! The reader's node makes ready to receive, then asks the writer's node for samples by UDP, again and again until that says that it sends.
//! The writer's node sends to nobody of this host who has not asked, and only to a reader that discovery has matched. Bytes:
//! `docs/spec/shared-memory.md`, section 4.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::atomic::Ordering;

use noctule_discovery::{Durability, Endpoint, EndpointId, NodeId};
use noctule_timebase::{Instant, Span};

use super::audience::Shift;
use super::state::{Partner, State};
use crate::clock::Raw;
use crate::notice::Notice;

/// Magic and version.
const HEAD: [u8; 5] = *b"NCTF\x01";
const ASK: u8 = 1;
const ANSWER: u8 = 2;
/// A question is repeated after this, doubled each time …
const ASK_AGAIN: Span = Span::from_ms(20);
/// … up to this.
const ASK_AGAIN_MAX: Span = Span::from_s(1);

/// What two nodes of a host say to each other about samples by UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Message {
    /// "Send", or "I do".
    is_answer: bool,
    /// Of the node that is asked.
    writer: EndpointId,
    /// Of the node that asks.
    reader: EndpointId,
}

impl Message {
    pub(super) fn encode(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..5].copy_from_slice(&HEAD);
        bytes[5] = if self.is_answer { ANSWER } else { ASK };
        bytes[8..12].copy_from_slice(&self.writer.0.to_le_bytes());
        bytes[12..].copy_from_slice(&self.reader.0.to_le_bytes());
        bytes
    }

    /// `None` for what breaks the specification.
    pub(super) fn decode(bytes: &[u8]) -> Option<Message> {
        let bytes: &[u8; 16] = bytes.try_into().ok()?;
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let is_answer = bytes[5] == ANSWER;
        let is_right = bytes[..5] == HEAD && (is_answer || bytes[5] == ASK) && bytes[6..8] == [0, 0];
        is_right.then_some(Message { is_answer, writer: EndpointId(word(8)), reader: EndpointId(word(12)) })
    }
}

/// Our readers that read writers of this host by UDP.
#[derive(Debug, Default)]
pub(super) struct Fallback {
    readers: BTreeMap<(EndpointId, Partner), Asking>,
    /// What has been told: by node and topic, once.
    noted: BTreeSet<(NodeId, String)>,
}

/// When to ask next, and how long to wait after that; `None` once it has been answered.
type Asking = Option<(Instant<Raw>, Span)>;

impl Fallback {
    /// What is due to be asked; each is due again later.
    fn poll(&mut self, now: Instant<Raw>) -> Vec<(EndpointId, Partner)> {
        let mut due = Vec::new();
        for (pair, asking) in &mut self.readers {
            if let Some((at, pause)) = asking
                && *at <= now
            {
                (*at, *pause) = (now + *pause, (*pause * 2).min(ASK_AGAIN_MAX));
                due.push(*pair);
            }
        }
        due
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant<Raw>> {
        self.readers.values().flatten().map(|(at, _)| *at).min()
    }

    /// A node is gone: if it comes back, that is another one.
    pub(super) fn forget(&mut self, node: NodeId) {
        self.noted.retain(|(known, _)| *known != node);
    }
}

impl State {
    /// Shared memory refuses one of our readers a writer of this host, as `refusal` says: its samples are to come by UDP. If that cannot
    /// be either, the user gets to know the refusal.
    pub(super) fn fall_back(
        &mut self,
        (reader, node): (EndpointId, NodeId),
        writer: &Endpoint,
        refusal: Notice,
        now: Instant<Raw>,
    ) {
        let partner = (node, writer.id);
        if node == self.me || !self.discovery.is_here(node) {
            return self.note(refusal);
        }
        let is_matched = self.partners.get(&reader).is_some_and(|partners| partners.contains(&partner));
        let Some(topic) = self.subscribers.get(&reader).cloned().filter(|_| is_matched) else { return };
        if self.fallback.readers.contains_key(&(reader, partner)) {
            return;
        }
        let room = self.check_room_for_ring(node, writer.id);
        if room.and_then(|()| self.remote(node, now).subscribe(node, writer, &topic)).is_err() {
            return self.note(refusal);
        }
        self.fallback.readers.insert((reader, partner), Some((now, ASK_AGAIN)));
        if self.fallback.noted.insert((node, writer.topic.clone())) {
            self.note(Notice::ByUdp { refusal: Box::new(refusal) });
        }
        self.ask_for_udp(now);
    }

    /// A reader and a writer have parted.
    pub(super) fn end_fallback(&mut self, reader: EndpointId, writer: Partner) {
        if self.fallback.readers.remove(&(reader, writer)).is_some() {
            self.unsubscribe(reader, writer);
        }
    }

    /// Asks what is due to be asked.
    pub(super) fn ask_for_udp(&mut self, now: Instant<Raw>) {
        for (reader, (node, writer)) in self.fallback.poll(now) {
            if let Some(locator) = self.discovery.locator(node) {
                self.queue(&Message { is_answer: false, writer, reader }.encode(), locator);
            }
        }
    }

    /// A message from a node of this host, sealed by `sealed_by` if there is a key.
    pub(super) fn handle_fallback(
        &mut self,
        body: &[u8],
        (sealed_by, source): (Option<NodeId>, SocketAddr),
        now: Instant<Raw>,
    ) {
        let sender = sealed_by.or_else(|| self.node_at(source));
        let (Some(node), Some(message)) = (sender, Message::decode(body)) else {
            return self.count_stranger();
        };
        let Message { is_answer, writer, reader } = message;
        if is_answer {
            if let Some(asking) = self.fallback.readers.get_mut(&(reader, (node, writer))) {
                *asking = None;
            }
        } else if self.serve_by_udp(writer, (node, reader), now)
            && let Some(locator) = self.discovery.locator(node)
        {
            // Where it has shown that it receives.
            self.queue(&Message { is_answer: true, ..message }.encode(), locator);
        }
    }

    /// Sends samples of a writer to a reader of this host, too. False if they do not match: not yet, or not any more.
    fn serve_by_udp(&mut self, writer: EndpointId, (node, reader): Partner, now: Instant<Raw>) -> bool {
        let is_matched = self.partners.get(&writer).is_some_and(|all| all.contains(&(node, reader)));
        let Some(topic) = self.publishers.get(&writer).filter(|_| is_matched).cloned() else { return false };
        let Some(endpoint) = self.discovery.remote(writer, (node, reader)).cloned() else { return false };
        if !self.discovery.is_here(node)
            || self.audiences.get(&writer).is_some_and(|all| all.serves((node, reader)))
        {
            return self.discovery.is_here(node);
        }
        topic.remote_readers.fetch_add(1, Ordering::SeqCst);
        let shift = self.audiences.entry(writer).or_default().insert((node, reader), false);
        if shift == Shift::Came {
            _ = self.remote(node, now);
        }
        if endpoint.qos.durability == Durability::TransientLocal {
            self.send_history(writer, node, now);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn messages_have_the_bytes_of_the_specification() {
        let ask = Message { is_answer: false, writer: EndpointId(7), reader: EndpointId(0x0102) };
        assert_eq!(&ask.encode(), b"NCTF\x01\x01\0\0\x07\0\0\0\x02\x01\0\0");
        let answer = Message { is_answer: true, ..ask };
        assert_eq!(&answer.encode(), b"NCTF\x01\x02\0\0\x07\0\0\0\x02\x01\0\0");
    }

    #[test]
    fn a_question_is_repeated_ever_more_seldom_until_it_is_answered() {
        let mut fallback = Fallback::default();
        let pair = (EndpointId(1), (NodeId([2; 16]), EndpointId(3)));
        let at = |ms: i64| Instant::from_ns(ms * 1_000_000);
        fallback.readers.insert(pair, Some((at(0), ASK_AGAIN)));
        let mut asked = Vec::new();
        for ms in 0..4_000 {
            if fallback.poll_timeout().is_some_and(|due| due <= at(ms)) {
                assert_eq!(fallback.poll(at(ms)), [pair]);
                asked.push(ms);
            }
        }
        assert_eq!(asked, [0, 20, 60, 140, 300, 620, 1_260, 2_260, 3_260]);
        fallback.readers.insert(pair, None);
        assert_eq!((fallback.poll_timeout(), fallback.poll(at(9_000)).len()), (None, 0));
    }

    proptest! {
        #[test]
        fn what_is_read_comes_back_as_it_was(kind in 0u8..4, rest in proptest::collection::vec(any::<u8>(), 0..20)) {
            let mut bytes = b"NCTF\x01".to_vec();
            bytes.push(kind);
            bytes.extend([0, 0]);
            bytes.extend(rest);
            if let Some(message) = Message::decode(&bytes) {
                prop_assert_eq!(message.encode().to_vec(), bytes);
            } else {
                prop_assert!(bytes.len() != 16 || kind == 0 || kind > 2);
            }
        }
    }
}
