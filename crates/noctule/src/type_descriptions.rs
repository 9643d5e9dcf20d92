//! Descriptions of this node's types, for other nodes that ask; and those that others answered.
//!
//! # Problem
//!
//! A tool that shows samples as fields needs the definition of their type. Discovery carries a name and a hash.
//!
//! # Approach
//!
//! - A description is requested by its hash, which the asking node computes again from the text: a wrong or a forged answer is
//!   recognised by itself, and any node that has the type may answer.
//! - Only nodes that discovery knows are answered, at their proven address, each at a limited rate: a reply is longer
//!   than its request.
//! - Sans-IO: datagrams in, datagrams out, `now` is an argument. Bytes: `docs/spec/type-description.md`.

pub(crate) mod wire;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use noctule_discovery::NodeId;
use noctule_formats::TypeDescription;
use noctule_timebase::Instant;

use crate::clock::Raw;
use crate::link_report::LINK_BYTES;
use wire::{Datagram, PART_BYTES_MAX, Reply, Request, Subject};

/// Most types that one node describes.
pub const DESCRIBED_TYPES_MAX: usize = 4096;
/// Most bytes of all its descriptions.
pub const DESCRIBED_BYTES_MAX: usize = 16 << 20;
/// Descriptions of other nodes that are kept; the oldest goes first.
const LEARNED_MAX: usize = 1024;
/// Questions of this node that may be open at once.
pub(crate) const QUESTIONS_MAX: usize = 64;
/// Replies that one node gets at once, and per second after that.
const REPLIES_BURST: u32 = 256;
const NS_PER_REPLY: i64 = 1_000_000_000 / REPLIES_BURST as i64;

/// Counters of datagrams about type descriptions, and of descriptions. Each saturates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DescriptionCounters {
    /// Requests answered.
    pub answered: u64,
    /// Requests of a node that had asked too often, left unanswered.
    pub limited: u64,
    /// Datagrams of nodes that are not known.
    pub strangers: u64,
    /// Datagrams that break the specification, or answer nothing that was asked.
    pub malformed: u64,
    /// Types of this node that are not described: there are too many, or the text is none of that hash.
    pub not_kept: u64,
}

/// The definitions of this node's types, and the answers of others.
#[derive(Debug, Default)]
pub(crate) struct Descriptions {
    own: BTreeMap<u64, Arc<TypeDescription>>,
    own_bytes: usize,
    learned: BTreeMap<u64, Arc<TypeDescription>>,
    learned_order: VecDeque<u64>,
    questions: BTreeMap<u64, Question>,
    budgets: BTreeMap<NodeId, Budget>,
    counters: DescriptionCounters,
}

#[derive(Debug)]
struct Question {
    node: NodeId,
    about: (Subject, u64),
    answer: SyncSender<Part>,
}

/// A part of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) total_bytes: u32,
    pub(crate) offset: u32,
    pub(crate) bytes: Vec<u8>,
}

/// The links of a node from a number on, as many as fit into a reply, [`LINK_BYTES`] each; and how many it has in all.
pub(crate) type LinksFrom<'a> = &'a dyn Fn(usize) -> (Vec<u8>, usize);

/// Replies that a node may still get.
#[derive(Debug)]
struct Budget {
    replies: u32,
    since: Instant<Raw>,
}

impl Budget {
    fn take(&mut self, now: Instant<Raw>) -> bool {
        let earned = (now - self.since).ns().max(0) / NS_PER_REPLY;
        if earned > 0 {
            self.replies = u32::try_from(earned).unwrap_or(u32::MAX).saturating_add(self.replies);
            self.replies = self.replies.min(REPLIES_BURST);
            self.since = now;
        }
        let has_one = self.replies > 0;
        self.replies = self.replies.saturating_sub(1);
        has_one
    }
}

fn count(counter: &mut u64) {
    *counter = counter.saturating_add(1);
}

impl Descriptions {
    /// Whether a type of this node is described.
    pub(crate) fn has_own(&self, hash: u64) -> bool {
        self.own.contains_key(&hash)
    }

    /// Describes a type of this node. False if there is no room.
    pub(crate) fn add(&mut self, description: TypeDescription) -> bool {
        if self.has_own(description.hash()) {
            return true;
        }
        let bytes = self.own_bytes + description.text().len();
        if self.own.len() >= DESCRIBED_TYPES_MAX || bytes > DESCRIBED_BYTES_MAX {
            self.count_not_kept();
            return false;
        }
        self.own_bytes = bytes;
        self.own.insert(description.hash(), Arc::new(description));
        true
    }

    pub(crate) fn count_not_kept(&mut self) {
        count(&mut self.counters.not_kept);
    }

    /// A description that is known here, of this node's own types or of others'.
    pub(crate) fn known(&self, hash: u64) -> Option<Arc<TypeDescription>> {
        self.own.get(&hash).or_else(|| self.learned.get(&hash)).cloned()
    }

    /// Keeps what another node answered.
    pub(crate) fn learn(&mut self, description: Arc<TypeDescription>) {
        let hash = description.hash();
        if self.learned.insert(hash, description).is_some() {
            return;
        }
        self.learned_order.push_back(hash);
        if self.learned_order.len() > LEARNED_MAX
            && let Some(oldest) = self.learned_order.pop_front()
        {
            self.learned.remove(&oldest);
        }
    }

    /// A datagram of another node, if it is known. What is given back goes to that node.
    pub(crate) fn handle_datagram(
        &mut self,
        bytes: &[u8],
        (from, now): (Option<NodeId>, Instant<Raw>),
        links: LinksFrom<'_>,
        out: &mut Vec<u8>,
    ) -> bool {
        let Some(from) = from else {
            count(&mut self.counters.strangers);
            return false;
        };
        match wire::decode(bytes) {
            Some(Datagram::Request(request)) => {
                let may = self.may_answer(from, now);
                if may {
                    self.answer(request, links, out);
                }
                may
            }
            Some(Datagram::Reply(reply)) => {
                if !self.handle_reply(&reply, from) {
                    count(&mut self.counters.malformed);
                }
                false
            }
            None => {
                count(&mut self.counters.malformed);
                false
            }
        }
    }

    fn may_answer(&mut self, from: NodeId, now: Instant<Raw>) -> bool {
        let budget = self.budgets.entry(from).or_insert(Budget { replies: REPLIES_BURST, since: now });
        if !budget.take(now) {
            count(&mut self.counters.limited);
            return false;
        }
        count(&mut self.counters.answered);
        true
    }

    fn answer(&self, request: Request, links: LinksFrom<'_>, out: &mut Vec<u8>) {
        let Request { about, nonce, hash, offset } = request;
        if about == Subject::Links {
            let (part, in_all) = links(offset as usize);
            debug_assert!(part.len().is_multiple_of(LINK_BYTES) && part.len() <= PART_BYTES_MAX);
            let (total_bytes, offset) = (in_all as u32, offset.min(in_all as u32));
            Reply { about, nonce, hash, total_bytes, offset, part: &part }.encode(out);
            return;
        }
        let text = self.own.get(&request.hash).map_or(&[][..], |of| of.text().as_bytes());
        let start = (offset as usize).min(text.len());
        let end = (start + PART_BYTES_MAX).min(text.len());
        // At most `DESCRIPTION_BYTES_MAX`.
        let (total_bytes, offset) = (text.len() as u32, start as u32);
        Reply { about, nonce, hash, total_bytes, offset, part: &text[start..end] }.encode(out);
    }

    fn handle_reply(&mut self, reply: &Reply<'_>, from: NodeId) -> bool {
        let question = self.questions.get(&reply.nonce);
        let Some(question) = question.filter(|of| of.node == from && of.about == (reply.about, reply.hash))
        else {
            return false;
        };
        let part = Part { total_bytes: reply.total_bytes, offset: reply.offset, bytes: reply.part.to_vec() };
        // A second copy finds the first still there, or no call that waits.
        let _ = question.answer.try_send(part);
        true
    }

    /// Opens a question; `None` if [`QUESTIONS_MAX`] are open.
    pub(crate) fn begin(
        &mut self,
        nonce: u64,
        node: NodeId,
        about: (Subject, u64),
    ) -> Option<Receiver<Part>> {
        if self.questions.len() >= QUESTIONS_MAX {
            return None;
        }
        let (answer, receiver) = sync_channel(1);
        self.questions.insert(nonce, Question { node, about, answer });
        Some(receiver)
    }

    /// No call waits for the answer any more.
    pub(crate) fn end(&mut self, nonce: u64) {
        self.questions.remove(&nonce);
    }

    /// A node has gone.
    pub(crate) fn forget(&mut self, node: NodeId) {
        self.budgets.remove(&node);
    }

    pub(crate) fn counters(&self) -> DescriptionCounters {
        self.counters
    }
}

#[cfg(test)]
mod tests {
    use noctule_timebase::Span;

    use super::*;

    const NODE: NodeId = NodeId([7; 16]);
    const OTHER: NodeId = NodeId([8; 16]);
    const TYPE: Subject = Subject::Type;

    /// Twenty links, the number of each in its bytes.
    fn links(from: usize) -> (Vec<u8>, usize) {
        let few = (from.min(20)..20).take(PART_BYTES_MAX / LINK_BYTES);
        (few.flat_map(|number| [number as u8; LINK_BYTES]).collect(), 20)
    }

    fn described(fields: usize) -> TypeDescription {
        let lines: String = (0..fields).map(|n| format!(" float64 field_{n}\n")).collect();
        TypeDescription::parse(&format!("struct a/A\n{lines}")).unwrap()
    }

    fn at(ms: i64) -> Instant<Raw> {
        Instant::from_ns(0) + Span::from_ms(ms)
    }

    fn ask(descriptions: &mut Descriptions, hash: u64, offset: u32, ms: i64) -> Option<Vec<u8>> {
        let (mut request, mut out) = (Vec::new(), Vec::new());
        Request { about: TYPE, nonce: 5, hash, offset }.encode(&mut request);
        descriptions.handle_datagram(&request, (Some(NODE), at(ms)), &links, &mut out).then_some(out)
    }

    #[test]
    fn parts_of_an_answer_make_the_text_and_other_types_are_not_there() {
        let mut descriptions = Descriptions::default();
        let description = described(100);
        let (hash, text) = (description.hash(), description.text().to_owned());
        assert!(descriptions.add(description));
        let mut read = String::new();
        while read.len() < text.len() {
            let out = ask(&mut descriptions, hash, read.len() as u32, 0).unwrap();
            let Some(Datagram::Reply(reply)) = wire::decode(&out) else { panic!("no reply") };
            assert_eq!((reply.nonce, reply.total_bytes as usize), (5, text.len()));
            read += std::str::from_utf8(reply.part).unwrap();
        }
        assert_eq!(read, text);
        let out = ask(&mut descriptions, hash ^ 1, 0, 0).unwrap();
        assert!(matches!(wire::decode(&out), Some(Datagram::Reply(reply)) if reply.total_bytes == 0));
        let beyond = ask(&mut descriptions, hash, u32::MAX, 0).unwrap();
        assert!(matches!(wire::decode(&beyond), Some(Datagram::Reply(reply)) if reply.part.is_empty()));
    }

    #[test]
    fn a_node_that_asks_too_often_is_not_answered_and_others_are() {
        let mut descriptions = Descriptions::default();
        let answered = (0..1000).filter(|_| ask(&mut descriptions, 1, 0, 0).is_some()).count();
        assert_eq!(answered, REPLIES_BURST as usize);
        assert_eq!(descriptions.counters().limited, 1000 - u64::from(REPLIES_BURST));
        let mut request = Vec::new();
        Request { about: TYPE, nonce: 5, hash: 1, offset: 0 }.encode(&mut request);
        assert!(descriptions.handle_datagram(&request, (Some(OTHER), at(0)), &links, &mut Vec::new()));
        let later = (0..1000).filter(|_| ask(&mut descriptions, 1, 0, 500).is_some()).count();
        assert_eq!(later, REPLIES_BURST as usize / 2);
        assert!(!descriptions.handle_datagram(&request, (None, at(9000)), &links, &mut Vec::new()));
        assert_eq!(descriptions.counters().strangers, 1);
    }

    #[test]
    fn an_answer_counts_only_from_the_node_that_was_asked_about_the_type_that_was_asked() {
        let mut descriptions = Descriptions::default();
        let answer = descriptions.begin(5, NODE, (TYPE, 9)).unwrap();
        let reply = |hash| {
            let mut out = Vec::new();
            Reply { about: TYPE, nonce: 5, hash, total_bytes: 1, offset: 0, part: b"x" }.encode(&mut out);
            out
        };
        let handle = |descriptions: &mut Descriptions, bytes: &[u8], from| {
            descriptions.handle_datagram(bytes, (Some(from), at(0)), &links, &mut Vec::new());
        };
        handle(&mut descriptions, &reply(9), OTHER);
        handle(&mut descriptions, &reply(8), NODE);
        let mut of_links = Vec::new();
        Reply { about: Subject::Links, nonce: 5, hash: 0, total_bytes: 0, offset: 0, part: b"" }
            .encode(&mut of_links);
        handle(&mut descriptions, &of_links, NODE);
        assert!(answer.try_recv().is_err());
        handle(&mut descriptions, &reply(9), NODE);
        assert_eq!(answer.try_recv().unwrap().bytes, b"x");
        descriptions.end(5);
        handle(&mut descriptions, &reply(9), NODE);
        assert_eq!(descriptions.counters().malformed, 4);
    }

    #[test]
    fn links_come_in_parts_of_whole_links() {
        let mut descriptions = Descriptions::default();
        let mut numbers = Vec::new();
        for offset in [0, 16, 20, u32::MAX] {
            let (mut request, mut out) = (Vec::new(), Vec::new());
            Request { about: Subject::Links, nonce: 5, hash: 0, offset }.encode(&mut request);
            assert!(descriptions.handle_datagram(&request, (Some(NODE), at(0)), &links, &mut out));
            let Some(Datagram::Reply(reply)) = wire::decode(&out) else { panic!("no reply") };
            assert_eq!((reply.about, reply.total_bytes), (Subject::Links, 20));
            numbers.extend(reply.part.chunks(LINK_BYTES).map(|link| link[0]));
        }
        assert_eq!(numbers, (0..20).collect::<Vec<u8>>());
    }

    #[test]
    fn every_table_has_an_end() {
        let mut descriptions = Descriptions::default();
        let numbered = |n: usize| TypeDescription::parse(&format!("struct a/A{n}\n uint8 x\n")).unwrap();
        assert!((0..DESCRIBED_TYPES_MAX).all(|n| descriptions.add(numbered(n))));
        assert!(!descriptions.add(numbered(DESCRIBED_TYPES_MAX)));
        assert!(descriptions.add(numbered(0)), "what is there needs no room");
        assert_eq!(descriptions.counters().not_kept, 1);
        (0..=LEARNED_MAX).for_each(|n| descriptions.learn(Arc::new(numbered(DESCRIBED_TYPES_MAX + n))));
        assert_eq!(descriptions.learned.len(), LEARNED_MAX);
        assert_eq!(descriptions.known(numbered(DESCRIBED_TYPES_MAX).hash()), None);
        let questions: Vec<_> =
            (0..=QUESTIONS_MAX as u64).map(|n| descriptions.begin(n, NODE, (TYPE, 1))).collect();
        assert!(questions[..QUESTIONS_MAX].iter().all(Option::is_some) && questions[QUESTIONS_MAX].is_none());
    }
}
