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
//! The writer's node sends to no node of this host that has not asked, and only to a reader that discovery has matched. Bytes:
//! `docs/spec/shared-memory.md`, section 4.

use std::collections::{BTreeMap, BTreeSet};

use noctule_discovery::{EndpointId, NodeId};
use noctule_timebase::{Instant, Span};

use super::guid::Guid;
use crate::clock::Raw;

/// Magic and version.
const HEAD: [u8; 5] = *b"NCTF\x01";
const ASK: u8 = 1;
const ANSWER: u8 = 2;
/// A question is repeated after this, doubled each time up to [`ASK_AGAIN_MAX`].
const ASK_AGAIN: Span = Span::from_ms(20);
/// The longest time between two questions.
const ASK_AGAIN_MAX: Span = Span::from_s(1);

/// A question or an answer of two nodes of a host about samples by UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Message {
    /// "Send", or "I do".
    pub(super) is_answer: bool,
    /// Of the node that the question goes to.
    pub(super) writer: EndpointId,
    /// Of the node that asks.
    pub(super) reader: EndpointId,
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
    readers: BTreeMap<(EndpointId, Guid), Asking>,
    /// Reported fallbacks: by node and topic, once.
    noted: BTreeSet<(NodeId, String)>,
}

/// When to send the next question, and how long to wait after that; `None` once it has been answered.
type Asking = Option<(Instant<Raw>, Span)>;

impl Fallback {
    /// A reader is to get a writer's samples by UDP. False if it does already.
    pub(super) fn begin(&mut self, reader: EndpointId, writer: Guid, now: Instant<Raw>) -> bool {
        let is_new = !self.readers.contains_key(&(reader, writer));
        if is_new {
            self.readers.insert((reader, writer), Some((now, ASK_AGAIN)));
        }
        is_new
    }

    /// Whether a reader gets a writer's samples by UDP.
    pub(super) fn has(&self, reader: EndpointId, writer: Guid) -> bool {
        self.readers.contains_key(&(reader, writer))
    }

    /// The writer's node sends.
    pub(super) fn handle_answer(&mut self, reader: EndpointId, writer: Guid) {
        if let Some(asking) = self.readers.get_mut(&(reader, writer)) {
            *asking = None;
        }
    }

    /// The two have parted. False if the reader did not get its samples by UDP.
    pub(super) fn end(&mut self, reader: EndpointId, writer: Guid) -> bool {
        self.readers.remove(&(reader, writer)).is_some()
    }

    /// Whether a topic of a node is to be reported: once.
    pub(super) fn is_news(&mut self, node: NodeId, topic: &str) -> bool {
        self.noted.insert((node, topic.to_owned()))
    }

    /// Questions that are due; each is due again later.
    pub(super) fn poll(&mut self, now: Instant<Raw>) -> Vec<(EndpointId, Guid)> {
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
