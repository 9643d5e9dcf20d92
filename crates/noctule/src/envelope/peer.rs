//! State of another member: its keys, replay windows and handshakes.

use noctule_timebase::{Instant, Span};
use ring::aead::LessSafeKey;

use super::Refused;
use super::chain::Chain;
use super::handshake::{Ask, MESSAGE_BYTES, PUBLIC_BYTES, SenderKeys};
use super::incoming::{Incoming, Keys};
use super::replay::Windows;
use super::secret::Secret;
use super::sending::Sending;
use super::swarm::SwarmId;
use crate::clock::Raw;

/// Of a node that is silent for longer nothing is kept but [`SilentPeers`](super::silent::SilentPeers).
pub(super) const SILENCE_MAX: Span = Span::from_s(60);
/// Time for which old keys of a sender are kept after it announced new ones.
const OLD_KEYS_KEPT: Span = Span::from_s(30);
/// Keys of one sender held at once: those in use, the next, and old ones.
const EPOCHS_LIMIT: usize = 3;
/// Lifetime of a challenge, from its first sending.
pub(super) const CHALLENGE_KEPT: Span = Span::from_s(10);

#[derive(Debug)]
pub(super) struct Peer {
    /// Derived from a swarm key, the one of this number.
    pub(super) key: LessSafeKey,
    pub(super) swarm: SwarmId,
    pub(super) heard: Instant<Raw>,
    /// Once it has answered a challenge.
    pub(super) windows: Option<Windows>,
    /// The swarm key that it has last shown to have.
    pub(super) proved_by: SwarmId,
    pub(super) pending: Option<Pending>,
    /// When the last challenge but repeats was made.
    pub(super) challenged: Option<Instant<Raw>>,
    pub(super) answered: Option<Answered>,
    /// Counter of the newest challenge that was answered.
    pub(super) newest_challenge: u64,
    pub(super) incoming: Vec<Incoming>,
    pub(super) receives_by: Option<Pair>,
    pub(super) sends_by: Option<PairOut>,
}

/// A challenge that is not answered yet.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) seed: Secret,
    pub(super) ask: Ask,
    pub(super) swarm: SwarmId,
    pub(super) message: Vec<u8>,
    pub(super) begun: Instant<Raw>,
    pub(super) sent: Instant<Raw>,
}

/// The last answer, in case that its challenge comes again.
#[derive(Debug)]
pub(super) struct Answered {
    pub(super) ephemeral: [u8; PUBLIC_BYTES],
    pub(super) message: Vec<u8>,
    pub(super) at: Instant<Raw>,
}

/// A secret of two nodes for one direction.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) secret: Secret,
    /// Tells it apart, not 0.
    pub(super) id: u64,
}

impl Pair {
    pub(super) fn new(secret: Secret) -> Pair {
        let id = secret.derive(&[b"id"]).bytes().first_chunk().copied().unwrap_or_default();
        Pair { secret, id: u64::from_le_bytes(id).max(1) }
    }
}

/// The keys for one node: the secret shared with it, and the key that follows for a generation.
#[derive(Debug)]
pub(super) struct PairOut {
    pub(super) pair: Pair,
    /// Epoch and generation of the key.
    of: (u16, u64),
    key: LessSafeKey,
}

impl PairOut {
    pub(super) fn new(secret: Secret, sending: &Sending) -> PairOut {
        let pair = Pair::new(secret);
        let key = sending.chain().node_key(&pair.secret);
        PairOut { pair, of: (sending.epoch(), sending.chain().generation()), key }
    }

    /// The key for the counter that `sending` is at.
    pub(super) fn key(&mut self, sending: &Sending) -> &LessSafeKey {
        let of = (sending.epoch(), sending.chain().generation());
        if self.of != of {
            (self.of, self.key) = (of, sending.chain().node_key(&self.pair.secret));
        }
        &self.key
    }
}

impl Answered {
    pub(super) fn is_to(&self, challenge: &[u8; MESSAGE_BYTES], now: Instant<Raw>) -> bool {
        challenge.starts_with(&self.ephemeral) && now - self.at < CHALLENGE_KEPT
    }
}

impl Peer {
    /// Opens a datagram with keys of one of the epochs that are held, by `open`. If it opens, the keys further on that opened it are kept, and
    /// this counter opens nothing again.
    pub(super) fn open_once<'a>(
        &mut self,
        epoch: usize,
        (counter, now): (u64, Instant<Raw>),
        open: impl FnOnce(&Keys) -> Result<&'a [u8], Refused>,
    ) -> Result<&'a [u8], Refused> {
        let windows = self.windows.as_mut().ok_or(Refused::Unverified)?;
        let incoming = self.incoming.get_mut(epoch).ok_or(Refused::Unverified)?;
        let (ahead, keys) = incoming.for_counter(counter)?;
        let body = open(ahead.as_ref().map_or(keys, Incoming::newest))?;
        if let Some(ahead) = ahead {
            *incoming = ahead;
        }
        if !windows.accept(counter) {
            return Err(Refused::Replayed);
        }
        self.heard = now;
        Ok(body)
    }

    pub(super) fn new((key, swarm): (LessSafeKey, SwarmId), now: Instant<Raw>) -> Peer {
        Peer {
            key,
            swarm,
            heard: now,
            windows: None,
            proved_by: swarm,
            pending: None,
            challenged: None,
            answered: None,
            newest_challenge: 0,
            incoming: Vec::new(),
            receives_by: None,
            sends_by: None,
        }
    }

    pub(super) fn is_verified(&self) -> bool {
        self.windows.is_some()
    }

    /// The numbers of the secrets that are held of this pair.
    pub(super) fn ask(&self) -> Ask {
        Ask {
            receives_by: self.receives_by.as_ref().map_or(0, |pair| pair.id),
            sends_by: self.sends_by.as_ref().map_or(0, |out| out.pair.id),
        }
    }

    pub(super) fn has_epoch(&self, epoch: u16) -> bool {
        self.incoming.iter().any(|incoming| incoming.epoch == epoch)
    }

    /// Goes on with all keys to the generation of a counter. False if there are none that can.
    pub(super) fn follow(&mut self, counter: u64) -> bool {
        self.incoming.retain_mut(|incoming| incoming.follow(counter));
        !self.incoming.is_empty()
    }

    /// Takes the keys that an answer gave.
    pub(super) fn learn(&mut self, keys: SenderKeys, secret: Secret, now: Instant<Raw>) {
        let is_new = keys.is_pair_new || self.receives_by.is_none();
        let mut old = std::mem::take(&mut self.incoming);
        if is_new {
            self.receives_by = Some(Pair::new(secret));
            old.clear();
        }
        let Some(pair) = self.receives_by.as_ref().map(|pair| &pair.secret) else { return };
        for (epoch, secret) in [Some(keys.now), keys.next].into_iter().flatten() {
            // One that is held is further on than an answer that was repeated.
            let held = old.iter().position(|incoming| incoming.epoch == epoch).map(|at| old.swap_remove(at));
            let mut incoming = held
                .unwrap_or_else(|| Incoming::new(epoch, Chain::new(secret, keys.generation), pair.clone()));
            incoming.until = None;
            self.incoming.push(incoming);
        }
        for mut incoming in old {
            incoming.until.get_or_insert(now + OLD_KEYS_KEPT);
            self.incoming.push(incoming);
        }
        self.incoming.truncate(EPOCHS_LIMIT);
    }

    /// Overwrites what is not needed any more.
    pub(super) fn handle_timeout(&mut self, now: Instant<Raw>) {
        self.pending.take_if(|pending| now - pending.begun >= CHALLENGE_KEPT);
        self.answered.take_if(|answered| now - answered.at >= CHALLENGE_KEPT);
        self.incoming.retain(|incoming| incoming.until.is_none_or(|until| now < until));
    }

    pub(super) fn is_silent(&self, now: Instant<Raw>) -> bool {
        now - self.heard >= SILENCE_MAX
    }
}
