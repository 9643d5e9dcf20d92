//! Sealing and opening every datagram of a swarm that has a key.
//!
//! # Problem
//!
//! Without the key no attacker may read, inject, or learn a topic name; and what was recorded may not be
//! played back, not even to a node that has just started and knows nothing of the past.
//!
//! # Approach
//!
//! Every node draws a key pair and keys to seal with at its start; its number is the hash of its public key. A sender never met before
//! must answer a challenge: the two messages of a Noise handshake, in which the swarm key is the pre-shared one. The answer shows
//! that the sender is alive now, is the node that it says, and carries its keys; what it sealed before is not accepted.
//! A challenge, its answer and what provokes them are of like length: no address is flooded on another's behalf.
//!
//! A datagram for one node is sealed with a key of the two; one for a group with a key of the sender; discovery, which must be understood by
//! a node that does not know the sender, with a key derived from the swarm key. The keys of a sender go on from one generation to
//! the next and cannot be turned back: an attacker that finds them opens little of the past (AES-256-GCM and HKDF by the library `ring`, Noise by `snow`).
//! One plain counter is the nonce of all of them. It also shows replays, in a sliding window (RFC 6479).
//!
//! Reasons: `docs/design/security.md`. Bytes: `docs/spec/envelope.md`. No sockets here, no clock, no random source: `now` and a seed are arguments.

mod budget;
mod chain;
mod copies;
mod handshake;
mod header;
mod incoming;
mod link;
mod members;
mod peer;
mod replay;
mod secret;
mod sending;
mod silent;
mod swarm;
mod x25519;

use std::net::SocketAddr;

use noctule_discovery::NodeId;
use noctule_prrt::datagram::is_short;
use noctule_timebase::Instant;

use crate::clock::Raw;
use crate::swarm_key::SwarmKey;
use link::LinkIds;
use members::{Arrival, Members};
use secret::Secret;

/// Bytes in front of a sealed datagram.
pub const HEADER_BYTES: usize = 32;
/// Bytes that sealing adds.
pub const OVERHEAD_BYTES: usize = HEADER_BYTES + TAG_BYTES;
/// Bytes of a proof between processes of one host.
pub(crate) const PROOF_BYTES: usize = 32;
/// Senders remembered at once.
pub const SENDERS_LIMIT: usize = 4096;

const TAG_BYTES: usize = 16;
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
    /// Opened before, or so old that this is unknown.
    #[error("a datagram was received before: somebody repeats them")]
    Replayed,
    /// The sender has not yet answered a challenge.
    #[error("a new sender has not yet shown that it is alive")]
    Unverified,
    /// [`SENDERS_LIMIT`].
    #[error("more than 4096 senders are known; the oldest is forgotten")]
    Full,
    /// More challenges than this node answers in a second.
    #[error("more challenges come in a second than this node answers; their senders try again")]
    Busy,
}

/// How often each [`Refused`] happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RefusedCounters {
    /// In the order of the enum.
    counts: [u64; 8],
}

impl RefusedCounters {
    /// How often `reason` happened.
    pub fn of(&self, reason: Refused) -> u64 {
        self.counts[reason as usize]
    }
}

/// Which nodes can have made a datagram, from the most to the fewest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SealedWith {
    /// Every member of the swarm, in any member's name: the key follows from the swarm key.
    SwarmKey,
    /// The sender, and members that have its key for groups.
    SenderKey,
    /// The sender alone: the key is known to it and this node.
    PairKey,
}

/// An authenticated datagram.
#[derive(Debug, PartialEq, Eq)]
pub struct Opened<'a> {
    /// The node that sealed it; `None` without a key, when any node may claim any number.
    pub from: Option<NodeId>,
    /// The opened content.
    pub body: &'a [u8],
    /// Without a key [`SealedWith::PairKey`]: then nothing is requested.
    pub with: SealedWith,
}

/// Seals for one node and opens for it. Without a key everything passes as it is.
#[derive(Debug)]
pub struct Envelope {
    members: Option<Members>,
    links: LinkIds,
    counters: RefusedCounters,
    warned: [bool; 8],
}

impl Envelope {
    /// With the swarm's keys, the first of which seals; none: without a seal. `seed` must come from the system's random source, `link_seed` need not
    /// be secret.
    pub fn new(keys: &[SwarmKey], seed: [u8; 32], link_seed: u64) -> Envelope {
        let members = Members::new(keys, Secret::from_bytes(seed));
        let links = LinkIds::new(link_seed);
        Envelope { members, links, counters: RefusedCounters::default(), warned: [false; 8] }
    }

    /// The number that a node with a key must have: the hash of its public key. `None` without a key.
    pub fn number(&self) -> Option<NodeId> {
        self.members.as_ref().map(Members::number)
    }

    /// Seals with the first of these keys from now on, and opens what any of them has sealed. Nothing without a key, or with none given. If an
    /// old one is not among them, the keys of this node are drawn anew, and a node that has not shown a new one in time is unknown again.
    pub(crate) fn set_keys(&mut self, keys: &[SwarmKey], now: Instant<Raw>) {
        if let Some(members) = &mut self.members {
            members.set_keys(keys, now);
        }
    }

    /// Time has passed: keys go on to their next generation. To be called once a second or more often.
    pub fn handle_timeout(&mut self, now: Instant<Raw>) {
        if let Some(members) = &mut self.members {
            members.handle_timeout(now);
        }
    }

    /// Whether another node has shown to have this node's secret: a copy of this machine that has sealed more. Nothing is sealed or opened any more.
    pub(crate) fn is_copied(&self) -> bool {
        self.members.as_ref().is_some_and(Members::is_copied)
    }

    /// Whether there is a key.
    pub fn is_sealed(&self) -> bool {
        self.members.is_some()
    }

    /// Clears `out` and leaves room in front for what sealing puts there. Append the
    /// datagram, then seal.
    pub fn begin(&self, out: &mut Vec<u8>) {
        out.clear();
        if self.members.is_some() {
            out.resize(HEADER_BYTES, 0);
        }
    }

    /// Bytes that sealing adds to a datagram; 0 without a key.
    pub fn overhead_bytes(&self) -> usize {
        if self.members.is_some() { OVERHEAD_BYTES } else { 0 }
    }

    /// A number by which a node is to address its link to this one, until `close_link`. There are
    /// more than nodes are remembered.
    pub fn open_link(&mut self, node: NodeId) -> u16 {
        self.links.open(node).unwrap_or(u16::MAX)
    }

    /// The link with a node is no more.
    pub(crate) fn close_link(&mut self, node: NodeId) {
        self.links.close(node);
    }

    /// Seals what was appended after [`begin`](Envelope::begin) so that every member can open it, whether it knows this node or not: discovery
    /// and nothing else.
    pub fn seal_for_all(&mut self, out: &mut Vec<u8>) {
        if let Some(members) = &mut self.members {
            members.seal_with_swarm_key(header::Kind::Open, out);
        }
    }

    /// Seals what was appended after [`begin`](Envelope::begin) for the nodes that know this one.
    pub fn seal_for_group(&mut self, out: &mut Vec<u8>) {
        if let Some(members) = &mut self.members {
            members.seal_for_group(out);
        }
    }

    /// Seals what was appended after [`begin`](Envelope::begin) so that only that node opens it. False if it has not challenged this one yet
    /// and could not: nothing may be sent.
    #[must_use]
    pub fn seal_for(&mut self, to: NodeId, out: &mut Vec<u8>) -> bool {
        self.members.as_mut().is_none_or(|members| members.seal_for_node(to, out))
    }

    /// Seals with the key that follows from the swarm key, under any kind: what a member that lies can send. For fuzzing.
    #[doc(hidden)]
    pub fn seal_as(&mut self, kind: u8, out: &mut Vec<u8>) {
        if let (Some(members), Some(kind)) = (&mut self.members, header::Kind::of(kind)) {
            members.seal_with_swarm_key(kind, out);
        }
    }

    /// Opens a datagram in place. Afterwards call [`poll_transmit`](Envelope::poll_transmit) until it
    /// gives nothing: an unknown sender is asked to show itself.
    ///
    /// # Errors
    /// Why it is not authenticated; counted.
    pub fn open<'a>(
        &mut self,
        bytes: &'a mut [u8],
        source: SocketAddr,
        now: Instant<Raw>,
    ) -> Result<Opened<'a>, Refused> {
        let is_short = is_short(bytes);
        let looks_sealed = bytes.starts_with(&header::MAGIC) || is_short && self.members.is_some();
        let arrival = Arrival { source, now, bytes: bytes.len() };
        let result = match &mut self.members {
            None if looks_sealed => Err(Refused::NoKey),
            None => return Ok(Opened { from: None, body: bytes, with: SealedWith::PairKey }),
            Some(_) if !looks_sealed => Err(Refused::NotSealed),
            Some(members) if is_short => {
                let from = self.links.node(bytes).ok_or(Refused::Unverified);
                from.and_then(|from| members.open_short(bytes, from, now))
            }
            Some(members) => members.open(bytes, arrival),
        };
        result.inspect_err(|reason| {
            let count = &mut self.counters.counts[*reason as usize];
            *count = count.saturating_add(1);
        })
    }

    /// The next challenge or answer to send, sealed already.
    pub fn poll_transmit(&mut self) -> Option<(SocketAddr, Vec<u8>)> {
        self.members.as_mut()?.poll_transmit()
    }

    /// A reason that the application should get as a notice, once: keys that do not fit.
    pub fn poll_warning(&mut self) -> Option<Refused> {
        let worth_telling = [Refused::NoKey, Refused::NotSealed, Refused::WrongKey, Refused::Malformed];
        let new = |reason: &Refused| self.counters.of(*reason) > 0 && !self.warned[*reason as usize];
        let reason = worth_telling.into_iter().find(new)?;
        self.warned[reason as usize] = true;
        Some(reason)
    }

    /// Proof that node `of` says `what` to another process of its host. Zeros without a key.
    pub(crate) fn proof(&self, of: NodeId, what: &[&[u8]]) -> [u8; PROOF_BYTES] {
        self.members.as_ref().map_or([0; PROOF_BYTES], |members| members.proof(of, what))
    }

    /// Whether a proof is right; every one is without a key.
    pub(crate) fn is_proven(&self, of: NodeId, what: &[&[u8]], proof: &[u8; PROOF_BYTES]) -> bool {
        self.members.as_ref().is_none_or(|members| members.is_proven(of, what, proof))
    }

    /// Counters of refused datagrams.
    pub fn counters(&self) -> RefusedCounters {
        self.counters
    }
}

#[cfg(test)]
mod tests;
