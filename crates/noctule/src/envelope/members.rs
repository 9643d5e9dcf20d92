//! The members of a swarm with a key: this one, and the others as far as their datagrams arrived.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use noctule_discovery::NodeId;
use noctule_prrt::datagram::is_short;
use noctule_timebase::{Instant, Span};
use ring::aead::LessSafeKey;
use ring::hmac;

use super::budget::Budget;
use super::handshake::{self, Answer, Ask, Identity, MESSAGE_BYTES, Side};
use super::header::{self, Header, Kind};
use super::incoming::Incoming;
use super::peer::{Answered, CHALLENGE_KEPT, PairOut, Peer, Pending};
use super::replay::Windows;
use super::secret::{Random, Secret};
use super::sending::{SWITCH_AFTER, Sending};
use super::silent::SilentPeers;
use super::swarm::{self, Swarm, SwarmId};
use super::{HEADER_BYTES, OVERHEAD_BYTES, Opened, PROOF_BYTES, Refused, SENDERS_LIMIT, SealedWith, link};
use crate::clock::Raw;
use crate::swarm_key::SwarmKey;

/// A challenge is repeated no sooner than this.
const CHALLENGE_AGAIN: Span = Span::from_ms(20);
/// Another challenge to a node that has answered one, no sooner than this.
const CHALLENGE_ANEW: Span = Span::from_s(1);
/// Of a challenge and of an answer, seal included.
pub(super) const CHALLENGE_BYTES: usize = OVERHEAD_BYTES + NUMBER_BYTES + MESSAGE_BYTES;
/// No address is sent more than so many times what was sent in its name.
const AMPLIFICATION_MAX: usize = 3;
const NUMBER_BYTES: usize = 16;
/// Challenges made in a second.
pub(super) const CHALLENGES_PER_S: u32 = 1_024;
/// Challenges answered and answers opened in a second.
pub(super) const ANSWERS_PER_S: u32 = 512;
/// Challenges and answers that wait to be sent.
const OUTBOX_LIMIT: usize = 1024;
/// Old keys are looked for once in this time.
const SWEEP_EVERY: Span = Span::from_s(1);

#[derive(Debug)]
pub(super) struct Members {
    pub(super) me: Identity,
    pub(super) random: Random,
    /// The first seals, all open; never empty.
    pub(super) swarms: Vec<Swarm>,
    /// Derived from the first of them.
    mine: LessSafeKey,
    pub(super) sending: Sending,
    /// Members whose datagrams arrive. With the silent ones no more than [`SENDERS_LIMIT`].
    pub(super) peers: BTreeMap<NodeId, Box<Peer>>,
    pub(super) silent: SilentPeers,
    challenges: Budget,
    pub(super) answers: Budget,
    /// When those are forgotten that have only shown a swarm key that is gone.
    purge_at: Option<Instant<Raw>>,
    sweep_at: Option<Instant<Raw>>,
    pub(super) outbox: VecDeque<(SocketAddr, Vec<u8>)>,
    /// A challenge to the node that seals under this node's number.
    pub(super) copy: Option<Pending>,
    pub(super) is_copied: bool,
}

/// How a datagram came.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) source: SocketAddr,
    pub(super) now: Instant<Raw>,
    pub(super) bytes: usize,
}

impl Members {
    /// `None` without a key.
    pub(super) fn new(keys: &[SwarmKey], seed: Secret) -> Option<Members> {
        let swarms: Vec<Swarm> = keys.iter().map(Swarm::new).collect();
        let mut random = Random::new(seed);
        let me = Identity::new(random.draw());
        let mine = swarms.first()?.sender_key(me.number());
        let sending = Sending::new(random.draw());
        Some(Members {
            me,
            random,
            swarms,
            mine,
            sending,
            peers: BTreeMap::new(),
            silent: SilentPeers::default(),
            challenges: Budget::new(CHALLENGES_PER_S),
            answers: Budget::new(ANSWERS_PER_S),
            purge_at: None,
            sweep_at: None,
            outbox: VecDeque::new(),
            copy: None,
            is_copied: false,
        })
    }

    pub(super) fn number(&self) -> NodeId {
        self.me.number()
    }

    /// Whether a copy of this node was met that goes on in its place.
    pub(super) fn is_copied(&self) -> bool {
        self.is_copied
    }

    /// Seals with the first of these keys from now on. If one of the old ones is not among them, its holders are to learn nothing more:
    /// the keys of this sender are drawn anew.
    pub(super) fn set_keys(&mut self, keys: &[SwarmKey], now: Instant<Raw>) {
        let swarms: Vec<Swarm> = keys.iter().map(Swarm::new).collect();
        let Some(first) = swarms.first() else { return };
        self.mine = first.sender_key(self.me.number());
        for (id, peer) in &mut self.peers {
            // What a key that is gone has sealed must not open.
            (peer.key, peer.swarm) = (first.sender_key(*id), first.id);
        }
        let is_kept = |old: &Swarm| swarms.iter().any(|new| new.id == old.id);
        if !self.swarms.iter().all(is_kept) {
            self.sending.replace(self.random.draw(), now);
            self.purge_at = Some(now + SWITCH_AFTER);
        }
        self.swarms = swarms;
    }

    /// Time has passed: keys grow old.
    pub(super) fn handle_timeout(&mut self, now: Instant<Raw>) {
        self.sending.handle_timeout(now);
        if self.purge_at.take_if(|at| *at <= now).is_some() {
            let is_kept = |id: SwarmId| self.swarms.iter().any(|swarm| swarm.id == id);
            self.peers.retain(|_, peer| is_kept(peer.proved_by));
            self.silent.retain_proved_by(is_kept);
        }
        if self.sweep_at.is_none_or(|at| at <= now) {
            self.sweep_at = Some(now + SWEEP_EVERY);
            self.peers.values_mut().for_each(|peer| peer.handle_timeout(now));
            self.peers.retain(|node, peer| {
                let is_silent = peer.is_silent(now);
                if is_silent {
                    self.silent.add(*node, peer);
                }
                !is_silent
            });
        }
    }

    pub(super) fn poll_transmit(&mut self) -> Option<(SocketAddr, Vec<u8>)> {
        self.outbox.pop_front()
    }

    /// For all that have this sender's key.
    pub(super) fn seal_for_group(&mut self, out: &mut Vec<u8>) {
        if self.is_copied {
            return out.clear();
        }
        let counter = self.sending.next_counter();
        let header =
            Header { kind: Kind::Group, epoch: self.sending.epoch(), from: self.me.number(), counter };
        header::seal(self.sending.group_key(), &header, out);
    }

    /// For one node. False if that has not challenged this one yet, so that it could not open anything.
    pub(super) fn seal_for_node(&mut self, to: NodeId, out: &mut Vec<u8>) -> bool {
        if self.is_copied {
            return false;
        }
        let Some(pair) = self.peers.get_mut(&to).and_then(|peer| peer.sends_by.as_mut()) else {
            return false;
        };
        let counter = self.sending.next_counter();
        let from = self.me.number();
        let key = pair.key(&self.sending);
        if is_short(&out[HEADER_BYTES..]) {
            link::seal(key, counter, (from, to), out);
        } else {
            let header = Header { kind: Kind::Node, epoch: self.sending.epoch(), from, counter };
            header::seal(key, &header, out);
        }
        true
    }

    /// For every member, known or not.
    pub(super) fn seal_with_swarm_key(&mut self, kind: Kind, out: &mut Vec<u8>) {
        if self.is_copied {
            return out.clear();
        }
        let counter = self.sending.next_counter();
        let epoch = if kind == Kind::Open { self.sending.newest_epoch() } else { 0 };
        header::seal(&self.mine, &Header { kind, epoch, from: self.me.number(), counter }, out);
    }

    /// Opens a datagram with a long header.
    pub(super) fn open<'a>(&mut self, bytes: &'a mut [u8], arrival: Arrival) -> Result<Opened<'a>, Refused> {
        let header = Header::decode(bytes)?;
        if self.is_copied {
            return Err(Refused::Unverified);
        }
        if header.from == self.me.number() {
            // Our own, come back by multicast: without news, and not worth a window. Or a copy's.
            self.handle_own(&header, bytes, arrival);
            return Err(Refused::Replayed);
        }
        match header.kind {
            Kind::Open | Kind::Challenge | Kind::Answer => self.open_with_swarm_key(&header, bytes, arrival),
            Kind::Group | Kind::Node => self.open_with_sender_key(&header, bytes, arrival.now),
        }
    }

    fn open_with_swarm_key<'a>(
        &mut self,
        header: &Header,
        bytes: &'a mut [u8],
        arrival: Arrival,
    ) -> Result<Opened<'a>, Refused> {
        let from = header.from;
        let known = self.peers.remove(&from);
        let is_new = known.is_none();
        let first = &self.swarms[0];
        let mut peer = known.unwrap_or_else(|| {
            Box::new(self.silent.peer(from, (first.sender_key(from), first.id), arrival.now))
        });
        if self.swarms.len() > 1 {
            choose_key(&self.swarms, &mut peer, header, bytes);
        }
        let opened = header::open(&peer.key, header.counter, bytes);
        if opened.is_err() && is_new {
            // Not authenticated: nothing is kept of it.
            return Err(Refused::WrongKey);
        }
        let result = opened.and_then(|body| {
            let admitted = self.admit(&mut peer, header, body, arrival);
            peer.heard = arrival.now;
            admitted.map(|()| Opened { from: Some(from), body, with: SealedWith::SwarmKey })
        });
        if is_new && !self.silent.remove(from) && self.peers.len() + self.silent.len() >= SENDERS_LIMIT {
            self.forget_one();
        }
        self.peers.insert(from, peer);
        result
    }

    fn open_with_sender_key<'a>(
        &mut self,
        header: &Header,
        bytes: &'a mut [u8],
        now: Instant<Raw>,
    ) -> Result<Opened<'a>, Refused> {
        let peer: &mut Peer = self.peers.get_mut(&header.from).ok_or(Refused::Unverified)?;
        let epoch = peer.incoming.iter().position(|incoming| incoming.epoch == header.epoch);
        let epoch = epoch.ok_or(Refused::Unverified)?;
        let is_for_us = header.kind == Kind::Node;
        let body = peer.open_once(epoch, (header.counter, now), |keys| {
            let key = if is_for_us { &keys.node } else { &keys.group };
            header::open(key, header.counter, bytes)
        })?;
        let with = if is_for_us { SealedWith::PairKey } else { SealedWith::SenderKey };
        Ok(Opened { from: Some(header.from), body, with })
    }

    /// Opens a datagram of a link with a short header.
    pub(super) fn open_short<'a>(
        &mut self,
        bytes: &'a mut [u8],
        from: NodeId,
        now: Instant<Raw>,
    ) -> Result<Opened<'a>, Refused> {
        if self.is_copied {
            return Err(Refused::Unverified);
        }
        let pair = (from, self.me.number());
        let peer: &mut Peer = self.peers.get_mut(&from).ok_or(Refused::Unverified)?;
        let windows = peer.windows.as_ref().ok_or(Refused::Unverified)?;
        let counter = link::counter(bytes, windows.newest()).ok_or(Refused::Malformed)?;
        let mut chosen = 0;
        if peer.incoming.len() > 1 {
            // The header does not say which keys. Tried on copies, for what does not open is destroyed.
            let opens = |incoming: &Incoming| {
                incoming.for_counter(counter).is_ok_and(|(ahead, keys)| {
                    let keys = ahead.as_ref().map_or(keys, Incoming::newest);
                    link::open(&keys.node, counter, pair, &mut bytes.to_vec()).is_ok()
                })
            };
            chosen = peer.incoming.iter().position(opens).ok_or(Refused::WrongKey)?;
        }
        let body =
            peer.open_once(chosen, (counter, now), |keys| link::open(&keys.node, counter, pair, bytes))?;
        Ok(Opened { from: Some(from), body, with: SealedWith::PairKey })
    }

    /// Decides on an authenticated body: `Ok` only for a datagram of a verified sender, seen first now.
    fn admit(
        &mut self,
        peer: &mut Peer,
        header: &Header,
        body: &[u8],
        arrival: Arrival,
    ) -> Result<(), Refused> {
        if let Some(windows) = &mut peer.windows
            && !windows.accept(header.counter)
        {
            return Err(Refused::Replayed);
        }
        match header.kind {
            Kind::Answer => {
                self.finish(peer, header, body, arrival)?;
                return Err(Refused::Unverified);
            }
            Kind::Challenge => self.answer(peer, header, body, arrival)?,
            _ => {}
        }
        if !peer.is_verified() {
            self.challenge(peer, header.from, arrival);
            return Err(Refused::Unverified);
        }
        let is_followed = peer.follow(header.counter);
        let has_newest = header.kind != Kind::Open || peer.has_epoch(header.epoch);
        if !is_followed || !has_newest || peer.proved_by != self.swarms[0].id {
            self.challenge(peer, header.from, arrival);
        }
        if header.kind == Kind::Open { Ok(()) } else { Err(Refused::Unverified) }
    }

    fn challenge(&mut self, peer: &mut Peer, to: NodeId, arrival: Arrival) {
        let is_early = peer.challenged.is_some_and(|at| arrival.now - at < CHALLENGE_ANEW);
        let may_begin = !(peer.is_verified() && is_early);
        let ask = peer.ask();
        if self.challenge_by(&mut peer.pending, (to, ask, may_begin), arrival) {
            peer.challenged = Some(arrival.now);
        }
    }

    /// Challenges a node, at most every [`CHALLENGE_AGAIN`], with the same bytes until they are old, and with others only if that `may_begin`.
    /// Whether it did with others.
    pub(super) fn challenge_by(
        &mut self,
        pending: &mut Option<Pending>,
        (to, ask, may_begin): (NodeId, Ask, bool),
        Arrival { source, now, bytes }: Arrival,
    ) -> bool {
        if bytes * AMPLIFICATION_MAX < CHALLENGE_BYTES {
            return false;
        }
        let swarm = &self.swarms[0];
        pending.take_if(|pending| now - pending.begun >= CHALLENGE_KEPT || pending.swarm != swarm.id);
        if let Some(pending) = pending {
            if now - pending.sent >= CHALLENGE_AGAIN {
                pending.sent = now;
                self.post(Kind::Challenge, (to, &pending.message), source);
            }
            return false;
        }
        if !may_begin || !self.challenges.take(source.ip(), now) {
            return false;
        }
        let seed = self.random.draw();
        let side = Side { me: &self.me, other: to, pre_shared: &swarm.pre_shared, seed: &seed };
        let Some(message) = handshake::challenge(side, ask) else { return false };
        let swarm = swarm.id;
        self.post(Kind::Challenge, (to, &message), source);
        *pending = Some(Pending { seed, ask, swarm, message, begun: now, sent: now });
        true
    }

    /// Answers a challenge of any sender: the answer is as long, and the same if the challenge is.
    fn answer(
        &mut self,
        peer: &mut Peer,
        header: &Header,
        body: &[u8],
        arrival: Arrival,
    ) -> Result<(), Refused> {
        let (from, Arrival { source, now, .. }) = (header.from, arrival);
        let message = addressed(body, self.me.number())?;
        if header.counter <= peer.newest_challenge {
            // Held up on the way: the challenger has asked anew since, and its secret of the pair is of that handshake.
            return Err(Refused::Replayed);
        }
        peer.newest_challenge = header.counter;
        if let Some(answered) = &peer.answered
            && answered.is_to(message, now)
        {
            self.post(Kind::Answer, (from, &answered.message), source);
            return Ok(());
        }
        let swarm = self.swarms.iter().find(|swarm| swarm.id == peer.swarm).ok_or(Refused::WrongKey)?;
        if !self.answers.take(source.ip(), now) {
            return Err(Refused::Busy);
        }
        let seed = self.random.draw();
        let side = Side { me: &self.me, other: from, pre_shared: &swarm.pre_shared, seed: &seed };
        let held = peer.ask();
        let mut asked = Ask::default();
        let answer = handshake::answer(side, message, |ask| {
            asked = ask;
            self.sending.sender_keys(held.sends_by == 0 || held.sends_by != ask.receives_by)
        });
        let Answer { message: out, keys, pair } = answer.ok_or(Refused::Unverified)?;
        if keys.is_pair_new {
            peer.sends_by = Some(PairOut::new(pair, &self.sending));
        }
        self.post(Kind::Answer, (from, &out), source);
        let ephemeral = message.first_chunk().copied().unwrap_or_default();
        peer.answered = Some(Answered { ephemeral, message: out, at: now });
        if peer.is_verified() && asked.sends_by != held.receives_by {
            // It has forgotten this node, or only one of both has the newest secret of the pair.
            self.challenge(peer, from, arrival);
        }
        Ok(())
    }

    /// Opens the answer to a challenge: its sender is verified, and its keys are known.
    fn finish(
        &mut self,
        peer: &mut Peer,
        header: &Header,
        body: &[u8],
        arrival: Arrival,
    ) -> Result<(), Refused> {
        let message = addressed(body, self.me.number())?;
        let pending = peer.pending.as_ref().ok_or(Refused::Unverified)?;
        let swarm = self.swarms.iter().find(|swarm| swarm.id == pending.swarm).ok_or(Refused::Unverified)?;
        if !self.answers.take(arrival.source.ip(), arrival.now) {
            return Err(Refused::Busy);
        }
        let side =
            Side { me: &self.me, other: header.from, pre_shared: &swarm.pre_shared, seed: &pending.seed };
        let (keys, pair) = handshake::finish(side, pending.ask, message).ok_or(Refused::Unverified)?;
        peer.learn(keys, pair, arrival.now);
        peer.proved_by = swarm.id;
        peer.pending = None;
        _ = peer.windows.get_or_insert_with(|| Windows::starting_at(header.counter));
        _ = peer.follow(header.counter);
        Ok(())
    }

    pub(super) fn post(&mut self, kind: Kind, (to, message): (NodeId, &[u8]), at: SocketAddr) {
        if self.is_copied || self.outbox.len() >= OUTBOX_LIMIT {
            return;
        }
        let mut out = vec![0; HEADER_BYTES];
        out.extend_from_slice(&to.0);
        out.extend_from_slice(message);
        self.seal_with_swarm_key(kind, &mut out);
        self.outbox.push_back((at, out));
    }

    /// The sender that was silent longest; one that never showed itself before one that did.
    fn forget_one(&mut self) {
        let rank = |peer: &Peer| (peer.is_verified(), peer.heard);
        let oldest = self.peers.iter().map(|(id, peer)| (rank(peer), *id)).min();
        match oldest {
            Some(((is_verified, _), id)) if !is_verified || !self.silent.forget_one() => {
                self.peers.remove(&id);
            }
            Some(_) => {}
            None => _ = self.silent.forget_one(),
        }
    }

    pub(super) fn proof(&self, of: NodeId, what: &[&[u8]]) -> [u8; PROOF_BYTES] {
        swarm::proof(&self.swarms[0], of, what)
    }

    pub(super) fn is_proven(&self, of: NodeId, what: &[&[u8]], proof: &[u8; PROOF_BYTES]) -> bool {
        let verify = |swarm: &Swarm| hmac::verify(&swarm.proof_key(of), &what.concat(), proof).is_ok();
        self.swarms.iter().any(verify)
    }
}

#[cfg(test)]
impl Members {
    /// Skips a random number, so that later draws differ.
    pub(super) fn skip_random(&mut self) {
        _ = self.random.draw();
    }

    /// The keys of this node derived from the first swarm key, which any member can compute.
    pub(super) fn derived_keys(&self, of: NodeId) -> Vec<LessSafeKey> {
        let swarm = &self.swarms[0];
        let secret = &swarm.pre_shared;
        vec![
            swarm.sender_key(of),
            secret.cipher_key(),
            secret.derive(&[b"group"]).cipher_key(),
            secret.derive(&[b"next"]).cipher_key(),
        ]
    }
}

/// While the swarm changes its key: the key of a sender is the one that opens its newest datagram. Tried on copies, for what does not open is
/// destroyed.
fn choose_key(swarms: &[Swarm], peer: &mut Peer, header: &Header, bytes: &[u8]) {
    let opens = |key: &LessSafeKey| header::open(key, header.counter, &mut bytes.to_vec()).is_ok();
    if opens(&peer.key) {
        return;
    }
    let keys = swarms.iter().map(|swarm| (swarm.sender_key(header.from), swarm.id));
    if let Some(found) = keys.into_iter().find(|(key, _)| opens(key)) {
        (peer.key, peer.swarm) = found;
    }
}

/// The message of a challenge or an answer to this node.
pub(super) fn addressed(body: &[u8], me: NodeId) -> Result<&[u8; MESSAGE_BYTES], Refused> {
    let (to, message) = body.split_at_checked(NUMBER_BYTES).ok_or(Refused::Malformed)?;
    let message = message.try_into().map_err(|_| Refused::Malformed)?;
    if to == me.0 { Ok(message) } else { Err(Refused::Unverified) }
}
