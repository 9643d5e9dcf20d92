//! Whether another node has this node's secret: a copy of its machine, by a live clone or an old snapshot.
//!
//! # Problem
//!
//! Two copies go on with one number, one counter and the same keys, so each nonce is used twice. No load and no clock tells a copied process
//! that it is one; what it hears does.
//!
//! # Approach
//!
//! A datagram of discovery under this node's own number, with a counter that this node has not reached, was made by a copy that is
//! ahead, or by a member that lies (a replay is behind). So it is challenged like an unknown node. Only a node that has this node's secret can answer, and this
//! node answers no challenge that it has made itself, so no node can hand one back. The node that has the answer is the copy that is behind:
//! it seals and opens nothing any more. The other goes on.

use super::handshake::{self, Ask, Side};
use super::header::{self, Header, Kind};
use super::members::{Arrival, Members, addressed};

impl Members {
    /// Takes a datagram under this node's own number; nothing of it is trusted.
    pub(super) fn handle_own(&mut self, header: &Header, bytes: &[u8], arrival: Arrival) {
        let is_news = match header.kind {
            Kind::Open => header.counter > self.sending.counter(),
            Kind::Challenge | Kind::Answer => true,
            Kind::Group | Kind::Node => false,
        };
        if !is_news {
            return;
        }
        let number = self.number();
        let opened = self.swarms.iter().enumerate().find_map(|(at, swarm)| {
            let mut copy = bytes.to_vec();
            let body = header::open(&swarm.sender_key(number), header.counter, &mut copy).ok()?;
            Some((at, body.to_vec()))
        });
        let Some((swarm, body)) = opened else { return };
        match header.kind {
            Kind::Open => self.challenge_copy(arrival),
            Kind::Challenge => self.answer_copy(swarm, &body, arrival),
            _ => self.finish_copy(&body, arrival),
        }
    }

    fn challenge_copy(&mut self, arrival: Arrival) {
        let mut pending = self.copy.take();
        self.challenge_by(&mut pending, (self.number(), Ask::default(), true), arrival);
        self.copy = pending;
    }

    fn answer_copy(&mut self, swarm: usize, body: &[u8], arrival: Arrival) {
        let Ok(message) = addressed(body, self.number()) else { return };
        let is_ours = self.copy.as_ref().is_some_and(|pending| pending.message == message);
        if is_ours || !self.answers.take(arrival.source.ip(), arrival.now) {
            return;
        }
        let seed = self.random.draw();
        let pre_shared = &self.swarms[swarm].pre_shared;
        let side = Side { me: &self.me, other: self.number(), pre_shared, seed: &seed };
        let answer = handshake::answer(side, message, |_| self.sending.sender_keys(false));
        if let Some(answer) = answer {
            self.post(Kind::Answer, (self.number(), &answer.message), arrival.source);
        }
    }

    fn finish_copy(&mut self, body: &[u8], arrival: Arrival) {
        let Ok(message) = addressed(body, self.number()) else { return };
        let Some(pending) = &self.copy else { return };
        let Some(swarm) = self.swarms.iter().find(|swarm| swarm.id == pending.swarm) else { return };
        if !self.answers.take(arrival.source.ip(), arrival.now) {
            return;
        }
        let (pre_shared, seed) = (&swarm.pre_shared, &pending.seed);
        let side = Side { me: &self.me, other: self.me.number(), pre_shared, seed };
        if handshake::finish(side, pending.ask, message).is_some() {
            self.is_copied = true;
            self.outbox.clear();
        }
    }
}
