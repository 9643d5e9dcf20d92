//! Sealing and opening every datagram of a swarm that has a key.
//!
//! # Problem
//!
//! Without the key nobody may read, inject, or learn a topic name; and what was recorded may not be
//! played back, not even to a node that has just started and knows nothing of the past.
//!
//! # Approach
//!
//! Every node seals with a key of its own, derived from the swarm key and its number, which is random and new at
//! every start; so a plain counter is a nonce that never repeats (AES-256-GCM by the library `ring`; HKDF, RFC 5869).
//! The counter also shows replays, in a sliding window (RFC 6479). A sender never met before must first
//! answer a challenge with a fresh number; what it sealed before that answer is not believed. A
//! challenge, its answer and what provokes them are of like length: nobody is flooded on another's
//! behalf.
//!
//! Reasons: `docs/design/security.md`. Bytes: `docs/spec/envelope.md`. No sockets here, no clock: `now` is an argument.

mod link;
mod replay;

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use noctule_discovery::NodeId;
use noctule_prrt::datagram::is_short;
use noctule_timebase::{Instant, Span};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, Tag, UnboundKey};
use ring::hkdf::{HKDF_SHA256, Prk, Salt};
use ring::hmac;

use crate::clock::Raw;
use crate::swarm_key::SwarmKey;
use link::LinkIds;
use replay::ReplayWindow;

/// Bytes in front of a sealed datagram.
pub const HEADER_BYTES: usize = 32;
/// Bytes that sealing adds.
pub const OVERHEAD_BYTES: usize = HEADER_BYTES + TAG_BYTES;
/// Bytes of a proof between processes of one host.
pub(crate) const PROOF_BYTES: usize = 32;
/// Senders remembered at once.
pub const SENDERS_LIMIT: usize = 4096;

const TAG_BYTES: usize = 16;
const MAGIC: [u8; 4] = *b"NCTX";
const VERSION: u8 = 1;
const DATAGRAM: u8 = 0;
const CHALLENGE: u8 = 1;
const ANSWER: u8 = 2;
/// Number of the one meant, and the random number.
const CHALLENGE_BYTES: usize = 24;
/// A challenge is repeated no sooner than this.
const CHALLENGE_AGAIN: Span = Span::from_ms(20);
/// Challenges and answers that wait to be sent.
const OUTBOX_LIMIT: usize = 1024;

/// Why a datagram was not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Refused {
    /// It is sealed, and this node has no key.
    #[error("datagrams are sealed with a swarm key, and this node has none; give it the swarm's key file")]
    NoKey,
    /// It is not sealed, and this node has a key.
    #[error(
        "datagrams come without a seal; give their sender the swarm's key file, or keep it off this network"
    )]
    NotSealed,
    /// It does not open: another key, or forged.
    #[error("sealed datagrams do not open; give their sender the same swarm key as this node")]
    WrongKey,
    /// Too short, or of another version.
    #[error("sealed datagrams are too short or of another version; use the same release on all nodes")]
    Malformed,
    /// Opened before, or so old that it cannot be told.
    #[error("a datagram was received before: somebody repeats them")]
    Replayed,
    /// The sender has not yet answered a challenge.
    #[error("a new sender has not yet shown that it is alive")]
    Unverified,
    /// [`SENDERS_LIMIT`].
    #[error("more than 4096 senders are known; the oldest is forgotten")]
    Full,
}

/// How often each [`Refused`] happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RefusedCounters {
    /// In the order of the enum.
    counts: [u64; 7],
}

impl RefusedCounters {
    /// How often `reason` happened.
    pub fn of(&self, reason: Refused) -> u64 {
        self.counts[reason as usize]
    }
}

/// A datagram that may be believed.
#[derive(Debug, PartialEq, Eq)]
pub struct Opened<'a> {
    /// The node that sealed it; `None` without a key, when anybody may claim to be anybody.
    pub from: Option<NodeId>,
    /// What was inside.
    pub body: &'a [u8],
}

/// Seals for one node and opens for it. Without a key everything passes as it is.
#[derive(Debug)]
pub struct Envelope {
    sealed: Option<Sealed>,
    links: LinkIds,
    counters: RefusedCounters,
    warned: [bool; 7],
}

#[derive(Debug)]
struct Sealed {
    me: NodeId,
    /// The first seals, all open; never empty.
    swarms: Vec<Prk>,
    mine: LessSafeKey,
    counter: u64,
    /// Where challenges come from; unpredictable for whoever does not have the key.
    challenges: u64,
    senders: BTreeMap<NodeId, Sender>,
    outbox: VecDeque<(SocketAddr, Vec<u8>)>,
}

#[derive(Debug)]
struct Sender {
    key: LessSafeKey,
    heard: Instant<Raw>,
    trust: Trust,
}

#[derive(Debug)]
enum Trust {
    /// Nothing it sealed before this challenge is believed.
    Challenged {
        number: u64,
        at: Instant<Raw>,
    },
    Verified(ReplayWindow),
}

impl Envelope {
    /// For node `me`. `random` must come from the system's random source.
    pub fn new(me: NodeId, key: Option<&SwarmKey>, random: u64) -> Envelope {
        let sealed = key.map(|key| {
            let swarm = extract(key);
            let mine = sender_key(&swarm, me);
            Sealed {
                me,
                swarms: vec![swarm],
                mine,
                counter: 0,
                challenges: random,
                senders: BTreeMap::new(),
                outbox: VecDeque::new(),
            }
        });
        let links = LinkIds::new(random);
        Envelope { sealed, links, counters: RefusedCounters::default(), warned: [false; 7] }
    }

    /// Seals with the first of these keys from now on, and opens what any of them has sealed. Nothing without a key, or with none given. Whoever
    /// was verified stays so: its counter goes on whatever key it uses.
    pub(crate) fn set_keys(&mut self, keys: &[SwarmKey]) {
        let (Some(sealed), Some(_)) = (&mut self.sealed, keys.first()) else { return };
        sealed.swarms = keys.iter().map(extract).collect();
        sealed.mine = sender_key(&sealed.swarms[0], sealed.me);
        for (id, sender) in &mut sealed.senders {
            // What a key that is gone has sealed must not open.
            sender.key = sender_key(&sealed.swarms[0], *id);
        }
    }

    /// Whether there is a key.
    pub fn is_sealed(&self) -> bool {
        self.sealed.is_some()
    }

    /// Clears `out` and leaves room in front for what [`seal`](Envelope::seal) puts there. Append the
    /// datagram, then seal.
    pub fn begin(&self, out: &mut Vec<u8>) {
        out.clear();
        if self.sealed.is_some() {
            out.resize(HEADER_BYTES, 0);
        }
    }

    /// What sealing adds to a datagram; 0 without a key.
    pub fn overhead_bytes(&self) -> usize {
        if self.sealed.is_some() { OVERHEAD_BYTES } else { 0 }
    }

    /// A number by which a node is to address its link to this one, until [`close_link`](Envelope::close_link). There are
    /// more than nodes are remembered.
    pub(crate) fn open_link(&mut self, node: NodeId) -> u16 {
        self.links.open(node).unwrap_or(u16::MAX)
    }

    /// The link with a node is no more.
    pub(crate) fn close_link(&mut self, node: NodeId) {
        self.links.close(node);
    }

    /// Seals what was appended after [`begin`](Envelope::begin), a datagram of the link to a node. With a short header it is sealed
    /// so that only that node opens it.
    pub(crate) fn seal_for(&mut self, to: NodeId, out: &mut Vec<u8>) {
        match &mut self.sealed {
            Some(sealed) if is_short(&out[HEADER_BYTES..]) => {
                sealed.counter += 1;
                link::seal(&sealed.mine, sealed.counter, (sealed.me, to), out);
            }
            _ => self.seal(out),
        }
    }

    /// Seals what was appended after [`begin`](Envelope::begin).
    pub fn seal(&mut self, out: &mut Vec<u8>) {
        if let Some(sealed) = &mut self.sealed {
            sealed.seal(DATAGRAM, out);
        }
    }

    /// Opens a datagram in place. Afterwards call [`poll_transmit`](Envelope::poll_transmit) until it
    /// gives nothing: an unknown sender is asked to show itself.
    ///
    /// # Errors
    /// Why it cannot be believed; counted.
    pub fn open<'a>(
        &mut self,
        bytes: &'a mut [u8],
        source: SocketAddr,
        now: Instant<Raw>,
    ) -> Result<Opened<'a>, Refused> {
        let is_short = is_short(bytes);
        let looks_sealed = bytes.starts_with(&MAGIC) || is_short && self.sealed.is_some();
        let result = match &mut self.sealed {
            None if looks_sealed => Err(Refused::NoKey),
            None => return Ok(Opened { from: None, body: bytes }),
            Some(_) if !looks_sealed => Err(Refused::NotSealed),
            Some(sealed) if is_short => {
                let from = self.links.node(bytes).ok_or(Refused::Unverified);
                from.and_then(|from| sealed.open_short(bytes, from, now))
            }
            Some(sealed) => sealed.open(bytes, (source, now)),
        };
        result.inspect_err(|reason| {
            let count = &mut self.counters.counts[*reason as usize];
            *count = count.saturating_add(1);
        })
    }

    /// The next challenge or answer to send, sealed already.
    pub fn poll_transmit(&mut self) -> Option<(SocketAddr, Vec<u8>)> {
        self.sealed.as_mut()?.outbox.pop_front()
    }

    /// A reason that somebody should be told of, once: keys that do not fit.
    pub fn poll_warning(&mut self) -> Option<Refused> {
        let worth_telling = [Refused::NoKey, Refused::NotSealed, Refused::WrongKey, Refused::Malformed];
        let new = |reason: &Refused| self.counters.of(*reason) > 0 && !self.warned[*reason as usize];
        let reason = worth_telling.into_iter().find(new)?;
        self.warned[reason as usize] = true;
        Some(reason)
    }

    /// Proof that node `of` says `what` to another process of its host. Zeros without a key.
    pub(crate) fn proof(&self, of: NodeId, what: &[&[u8]]) -> [u8; PROOF_BYTES] {
        let Some(sealed) = &self.sealed else { return [0; PROOF_BYTES] };
        let tag = hmac::sign(&proof_key(&sealed.swarms[0], of), &what.concat());
        tag.as_ref().first_chunk().copied().unwrap_or_default()
    }

    /// Whether a proof is right; every one is without a key.
    pub(crate) fn is_proven(&self, of: NodeId, what: &[&[u8]], proof: &[u8; PROOF_BYTES]) -> bool {
        let verify = |swarm: &Prk| hmac::verify(&proof_key(swarm, of), &what.concat(), proof).is_ok();
        self.sealed.as_ref().is_none_or(|sealed| sealed.swarms.iter().any(verify))
    }

    /// What was refused so far.
    pub fn counters(&self) -> RefusedCounters {
        self.counters
    }
}

/// Where a datagram came from, and when.
type Arrival = (SocketAddr, Instant<Raw>);
/// What a header says: kind, sender, counter.
type Numbers = (u8, NodeId, u64);

impl Sealed {
    fn seal(&mut self, kind: u8, out: &mut Vec<u8>) {
        self.counter += 1;
        let header = header(kind, self.me, self.counter);
        out[..HEADER_BYTES].copy_from_slice(&header);
        let body = &mut out[HEADER_BYTES..];
        // Fails only for bodies of 64 GiB and more.
        if let Ok(tag) = self.mine.seal_in_place_separate_tag(nonce(self.counter), Aad::from(header), body) {
            out.extend_from_slice(tag.as_ref());
        } else {
            out.clear();
        }
    }

    fn open<'a>(&mut self, bytes: &'a mut [u8], arrival: Arrival) -> Result<Opened<'a>, Refused> {
        let now = arrival.1;
        let (kind, from, counter) = take_apart(bytes)?;
        if from == self.me {
            // Our own, come back by multicast: without news, and not worth a window.
            return Err(Refused::Replayed);
        }
        let known = self.senders.remove(&from);
        let new = known.is_none();
        let challenge = Trust::Challenged { number: 0, at: now - CHALLENGE_AGAIN };
        let mut sender = known.unwrap_or_else(|| Sender {
            key: sender_key(&self.swarms[0], from),
            heard: now,
            trust: challenge,
        });
        if self.swarms.len() > 1 {
            choose_key(&self.swarms, &mut sender, (from, counter), bytes);
        }
        let opened = open_in_place(&sender.key, counter, bytes);
        if opened.is_err() && new {
            // Not authenticated: nothing is kept of it.
            return Err(Refused::WrongKey);
        }
        let result = match opened {
            Err(refused) => Err(refused),
            Ok(body) => {
                sender.heard = now;
                self.admit(&mut sender, (kind, from, counter), body, arrival).map(|()| body)
            }
        };
        if new && self.senders.len() >= SENDERS_LIMIT {
            self.forget_one();
        }
        self.senders.insert(from, sender);
        result.map(|body| Opened { from: Some(from), body })
    }

    /// Opens a datagram of a link with a short header.
    fn open_short<'a>(
        &mut self,
        bytes: &'a mut [u8],
        from: NodeId,
        now: Instant<Raw>,
    ) -> Result<Opened<'a>, Refused> {
        let sender = self.senders.get_mut(&from).ok_or(Refused::Unverified)?;
        let Trust::Verified(window) = &mut sender.trust else { return Err(Refused::Unverified) };
        let counter = link::counter(bytes, window.newest()).ok_or(Refused::Malformed)?;
        let pair = (from, self.me);
        if self.swarms.len() > 1 {
            let opens = |key: &LessSafeKey| link::open(key, counter, pair, &mut bytes.to_vec()).is_ok();
            if !opens(&sender.key)
                && let Some(key) = self.swarms.iter().map(|swarm| sender_key(swarm, from)).find(opens)
            {
                sender.key = key;
            }
        }
        let body = link::open(&sender.key, counter, pair, bytes)?;
        if !window.accept(counter) {
            return Err(Refused::Replayed);
        }
        sender.heard = now;
        Ok(Opened { from: Some(from), body })
    }

    /// Decides on an authenticated body: `Ok` only for a datagram of a verified sender, seen first now.
    fn admit(
        &mut self,
        sender: &mut Sender,
        (kind, from, counter): Numbers,
        body: &[u8],
        (source, now): Arrival,
    ) -> Result<(), Refused> {
        match kind {
            CHALLENGE => {
                // Answered whoever asks: a repeated challenge costs an answer of its own length.
                let number = numbered(body, self.me)?;
                self.post(ANSWER, (from, number), source);
            }
            ANSWER => {
                let number = numbered(body, self.me)?;
                if matches!(sender.trust, Trust::Challenged { number: wanted, .. } if wanted == number && number != 0)
                {
                    sender.trust = Trust::Verified(ReplayWindow::starting_at(counter));
                }
                return Err(Refused::Unverified);
            }
            _ => {}
        }
        match &mut sender.trust {
            Trust::Verified(window) => match (window.accept(counter), kind) {
                (true, DATAGRAM) => Ok(()),
                (true, _) => Err(Refused::Unverified),
                (false, _) => Err(Refused::Replayed),
            },
            Trust::Challenged { number, at } => {
                if now - *at >= CHALLENGE_AGAIN {
                    (*number, *at) = (self.fresh_number(), now);
                    self.post(CHALLENGE, (from, *number), source);
                }
                Err(Refused::Unverified)
            }
        }
    }

    fn post(&mut self, kind: u8, (to, number): (NodeId, u64), at: SocketAddr) {
        if self.outbox.len() >= OUTBOX_LIMIT {
            return;
        }
        let mut out = vec![0; HEADER_BYTES];
        out.extend_from_slice(&to.0);
        out.extend_from_slice(&number.to_le_bytes());
        self.seal(kind, &mut out);
        self.outbox.push_back((at, out));
    }

    /// Never zero. Unpredictable as far as the seed is: a challenge travels sealed anyway.
    fn fresh_number(&mut self) -> u64 {
        self.challenges = self.challenges.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.challenges;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)).max(1)
    }

    /// The sender that was silent longest; one that never showed itself before one that did.
    fn forget_one(&mut self) {
        let rank = |sender: &Sender| (matches!(sender.trust, Trust::Verified(_)), sender.heard);
        let oldest = self.senders.iter().min_by_key(|(_, sender)| rank(sender)).map(|(id, _)| *id);
        if let Some(id) = oldest {
            self.senders.remove(&id);
        }
    }
}

fn extract(key: &SwarmKey) -> Prk {
    Salt::new(HKDF_SHA256, b"noctule swarm 1").extract(&key.0)
}

/// While the swarm changes its key: the key of a sender is the one that opens its newest datagram. Tried on copies, for what does not open is
/// destroyed.
fn choose_key(swarms: &[Prk], sender: &mut Sender, (from, counter): (NodeId, u64), bytes: &[u8]) {
    let opens = |key: &LessSafeKey| open_in_place(key, counter, &mut bytes.to_vec()).is_ok();
    if !opens(&sender.key)
        && let Some(key) = swarms.iter().map(|swarm| sender_key(swarm, from)).find(opens)
    {
        sender.key = key;
    }
}

fn header(kind: u8, from: NodeId, counter: u64) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..4].copy_from_slice(&MAGIC);
    header[4] = VERSION;
    header[5] = kind;
    header[8..24].copy_from_slice(&from.0);
    header[24..].copy_from_slice(&counter.to_le_bytes());
    header
}

fn take_apart(bytes: &[u8]) -> Result<(u8, NodeId, u64), Refused> {
    let header = bytes.first_chunk::<HEADER_BYTES>().ok_or(Refused::Malformed)?;
    let whole = bytes.len() >= OVERHEAD_BYTES;
    let [version, kind, zero, zero_too] = [header[4], header[5], header[6], header[7]];
    if !whole || version != VERSION || kind > ANSWER || (zero, zero_too) != (0, 0) {
        return Err(Refused::Malformed);
    }
    let (mut from, mut counter) = ([0; 16], [0; 8]);
    from.copy_from_slice(&header[8..24]);
    counter.copy_from_slice(&header[24..]);
    Ok((kind, NodeId(from), u64::from_le_bytes(counter)))
}

fn open_in_place<'a>(key: &LessSafeKey, counter: u64, bytes: &'a mut [u8]) -> Result<&'a [u8], Refused> {
    let (header, rest) = bytes.split_at_mut(HEADER_BYTES);
    let (body, tag) = rest.split_at_mut(rest.len() - TAG_BYTES);
    let tag = Tag::try_from(&*tag).map_err(|_| Refused::Malformed)?;
    key.open_in_place_separate_tag(nonce(counter), Aad::from(&*header), tag, body, 0..)
        .map(|body| &*body)
        .map_err(|_| Refused::WrongKey)
}

fn numbered(body: &[u8], me: NodeId) -> Result<u64, Refused> {
    let body: &[u8; CHALLENGE_BYTES] = body.try_into().map_err(|_| Refused::Malformed)?;
    let (to, number) = body.split_at(16);
    if to != me.0 {
        return Err(Refused::Unverified);
    }
    Ok(u64::from_le_bytes(number.try_into().map_err(|_| Refused::Malformed)?))
}

fn nonce(counter: u64) -> Nonce {
    let mut bytes = [0; NONCE_LEN];
    bytes[..8].copy_from_slice(&counter.to_le_bytes());
    Nonce::assume_unique_for_key(bytes)
}

fn proof_key(swarm: &Prk, of: NodeId) -> hmac::Key {
    let mut key = [0; PROOF_BYTES];
    // Neither fails: the length is that of one hash.
    let info: [&[u8]; 2] = [b"local", &of.0];
    let _ = swarm.expand(&info, hmac::HMAC_SHA256).map(|expanded| expanded.fill(&mut key));
    hmac::Key::new(hmac::HMAC_SHA256, &key)
}

fn sender_key(swarm: &Prk, sender: NodeId) -> LessSafeKey {
    let info: [&[u8]; 2] = [b"sender", &sender.0];
    let expanded = swarm.expand(&info, &AES_256_GCM);
    // Only a length beyond 255 hashes can fail, and the length is that of the key.
    let key = expanded.map(UnboundKey::from);
    #[allow(clippy::expect_used)] // see above
    LessSafeKey::new(key.expect("32 bytes are less than 255 hashes"))
}

#[cfg(test)]
mod tests;
