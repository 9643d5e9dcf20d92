//! The counter of this node and the keys that it seals with.

use noctule_timebase::{Instant, Span};
use ring::aead::LessSafeKey;

use super::chain::{Chain, first_counter, generation};
use super::handshake::SenderKeys;
use super::secret::Secret;
use crate::clock::Raw;

/// The longest that a generation of keys is used.
pub(super) const GENERATION_AGE_MAX: Span = Span::from_s(30);
/// Time from announcing new keys to sealing with them: a few hellos.
pub(super) const SWITCH_AFTER: Span = Span::from_s(5);

/// The counter, the keys in use, and those that follow after a member has lost its key.
#[derive(Debug)]
pub(super) struct Sending {
    counter: u64,
    /// Since when the generation is what it is.
    since: Option<(u64, Instant<Raw>)>,
    epoch: u16,
    chain: Chain,
    group: LessSafeKey,
    next: Option<Next>,
}

#[derive(Debug)]
struct Next {
    at: Instant<Raw>,
    epoch: u16,
    chain: Chain,
}

impl Sending {
    pub(super) fn new(secret: Secret) -> Sending {
        let chain = Chain::new(secret, 0);
        let group = chain.group_key();
        Sending { counter: 0, since: None, epoch: 0, chain, group, next: None }
    }

    /// Never the same twice.
    pub(super) fn next_counter(&mut self) -> u64 {
        self.counter += 1;
        self.follow();
        self.counter
    }

    /// The newest that was used.
    pub(super) fn counter(&self) -> u64 {
        self.counter
    }

    /// The key of streams to groups now.
    pub(super) fn group_key(&self) -> &LessSafeKey {
        &self.group
    }

    pub(super) fn chain(&self) -> &Chain {
        &self.chain
    }

    /// Of the keys in use.
    pub(super) fn epoch(&self) -> u16 {
        self.epoch
    }

    /// Of the newest keys, used or not yet.
    pub(super) fn newest_epoch(&self) -> u16 {
        self.next.as_ref().map_or(self.epoch, |next| next.epoch)
    }

    /// The keys that a node which has challenged is to know.
    pub(super) fn sender_keys(&self, is_pair_new: bool) -> SenderKeys {
        SenderKeys {
            is_pair_new,
            generation: self.chain.generation(),
            now: (self.epoch, self.chain.secret().clone()),
            next: self.next.as_ref().map(|next| (next.epoch, next.chain.secret().clone())),
        }
    }

    /// Keys that do not follow from those before; used after [`SWITCH_AFTER`].
    pub(super) fn replace(&mut self, secret: Secret, now: Instant<Raw>) {
        let chain = Chain::new(secret, self.chain.generation());
        let epoch = self.newest_epoch().wrapping_add(1);
        self.next = Some(Next { at: now + SWITCH_AFTER, epoch, chain });
    }

    /// Goes on to the next generation if this one is old, and to new keys if it is time.
    pub(super) fn handle_timeout(&mut self, now: Instant<Raw>) {
        match self.since {
            Some((known, since)) if known == self.chain.generation() => {
                if now - since >= GENERATION_AGE_MAX {
                    self.counter = first_counter(known + 1);
                    self.follow();
                    self.since = Some((self.chain.generation(), now));
                }
            }
            _ => self.since = Some((self.chain.generation(), now)),
        }
        if let Some(next) = self.next.take_if(|next| next.at <= now) {
            (self.epoch, self.chain) = (next.epoch, next.chain);
            self.group = self.chain.group_key();
        }
    }

    fn follow(&mut self) {
        let generation = generation(self.counter);
        if generation > self.chain.generation() {
            self.chain.advance_to(generation);
            self.group = self.chain.group_key();
            if let Some(next) = &mut self.next {
                next.chain.advance_to(generation);
            }
        }
    }
}

#[cfg(test)]
impl Sending {
    pub(super) fn skip(&mut self, counters: u64) {
        self.counter += counters;
    }
}
