//! Where nodes of other hosts are reached, once they have shown that they are there.
//!
//! # Problem
//!
//! A node moves from one network to another and announces its new address. Whoever forges such an announcement would
//! have a camera's stream sent to a victim that never asked for it.
//!
//! # Approach
//!
//! As in RFC 9000, sections 8.2 and 9: what is new is only asked, with a number that cannot be guessed, and samples go
//! where they went until the answer comes from there. The question is a request of the clock exchange, which every node
//! answers with as many bytes; it is smaller than the announcement, and rare, so nothing is amplified. Without a swarm key anybody
//! may still claim to be anybody, but only at an address where it hears.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use noctule_discovery::NodeId;
use noctule_time_sync::Nonce;
use noctule_timebase::{Instant, Span};
use ring::hmac;

use crate::clock::Raw;

/// Questions to addresses that a node has announced, at most one in this time.
const ASK_AGAIN: Span = Span::from_ms(200);

/// See the module.
#[derive(Debug)]
pub(super) struct Addresses {
    key: hmac::Key,
    asked: u64,
    paths: BTreeMap<NodeId, Path>,
}

#[derive(Debug)]
struct Path {
    believed: SocketAddr,
    announced: SocketAddr,
    question: Option<(SocketAddr, Nonce)>,
    asked_at: Option<Instant<Raw>>,
}

impl Addresses {
    /// `secret` is known to nobody else.
    pub(super) fn new(secret: &[u8]) -> Addresses {
        Addresses { key: hmac::Key::new(hmac::HMAC_SHA256, secret), asked: 0, paths: BTreeMap::new() }
    }

    /// Where samples for a node go that announces this address.
    pub(super) fn route(&mut self, node: NodeId, announced: SocketAddr) -> SocketAddr {
        let path = self.paths.entry(node).or_insert(Path {
            believed: announced,
            announced,
            question: None,
            asked_at: None,
        });
        path.announced = announced;
        path.believed
    }

    /// The next question, and where it goes.
    pub(super) fn poll_question(&mut self, node: NodeId, now: Instant<Raw>) -> Option<(SocketAddr, Nonce)> {
        let path = self.paths.get_mut(&node)?;
        let is_early = path.asked_at.is_some_and(|asked| now - asked < ASK_AGAIN);
        if path.announced == path.believed || is_early {
            return None;
        }
        self.asked += 1;
        let tag = hmac::sign(&self.key, &self.asked.to_le_bytes());
        let number = tag.as_ref().first_chunk::<8>().map(|bytes| u64::from_le_bytes(*bytes))?;
        path.asked_at = Some(now);
        path.question = Some((path.announced, Nonce(number)));
        path.question
    }

    /// An answer came from an address, sealed by a node if there is a key. Gives the node that has shown itself there.
    pub(super) fn handle_answer(
        &mut self,
        sealed_by: Option<NodeId>,
        source: SocketAddr,
        nonce: Nonce,
    ) -> Option<NodeId> {
        let (node, path) = self.paths.iter_mut().find(|(_, path)| path.question == Some((source, nonce)))?;
        if sealed_by.is_some_and(|sealed_by| sealed_by != *node) {
            return None;
        }
        path.believed = source;
        path.question = None;
        Some(*node)
    }

    /// The node is gone.
    pub(super) fn forget(&mut self, node: NodeId) {
        self.paths.remove(&node);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: NodeId = NodeId([7; 16]);

    fn at(ms: i64) -> Instant<Raw> {
        Instant::from_ns(ms * 1_000_000)
    }

    fn address(last: u8) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, last], 7_401))
    }

    fn moved() -> (Addresses, Nonce) {
        let mut addresses = Addresses::new(&[3; 16]);
        assert_eq!(addresses.route(NODE, address(1)), address(1));
        assert_eq!(addresses.poll_question(NODE, at(0)), None);
        assert_eq!(addresses.route(NODE, address(2)), address(1));
        let (to, nonce) = addresses.poll_question(NODE, at(0)).unwrap();
        assert_eq!(to, address(2));
        (addresses, nonce)
    }

    #[test]
    fn samples_follow_to_a_new_address_once_it_has_answered() {
        let (mut addresses, nonce) = moved();
        assert_eq!(addresses.handle_answer(None, address(2), nonce), Some(NODE));
        assert_eq!(addresses.route(NODE, address(2)), address(2));
        assert_eq!(addresses.poll_question(NODE, at(1_000)), None);
        // The answer is good once.
        assert_eq!(addresses.handle_answer(None, address(2), nonce), None);
    }

    #[test]
    fn an_answer_from_elsewhere_or_by_another_node_or_with_another_number_moves_nothing() {
        let (mut addresses, nonce) = moved();
        assert_eq!(addresses.handle_answer(None, address(3), nonce), None);
        assert_eq!(addresses.handle_answer(None, address(2), Nonce(nonce.0 ^ 1)), None);
        assert_eq!(addresses.handle_answer(Some(NodeId([8; 16])), address(2), nonce), None);
        assert_eq!(addresses.route(NODE, address(2)), address(1));
    }

    #[test]
    fn forged_announcements_elicit_five_questions_a_second_and_no_sample_whatever_they_say() {
        let (mut addresses, _) = moved();
        let mut questions = Vec::new();
        for ms in 1..=1_000 {
            assert_eq!(addresses.route(NODE, address((ms % 200) as u8 + 10)), address(1));
            questions.extend(addresses.poll_question(NODE, at(ms)));
        }
        assert_eq!(questions.len(), 5);
        questions.dedup_by_key(|(_, nonce)| nonce.0);
        assert_eq!(questions.len(), 5, "a number was used twice");
    }

    #[test]
    fn a_node_that_comes_back_to_its_old_address_is_not_asked() {
        let (mut addresses, _) = moved();
        assert_eq!(addresses.route(NODE, address(1)), address(1));
        assert_eq!(addresses.poll_question(NODE, at(1_000)), None);
        addresses.forget(NODE);
        assert_eq!(addresses.route(NODE, address(5)), address(5));
    }
}
