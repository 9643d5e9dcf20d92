//! The keys of another node, as far as this one needs them to open what it sends.

use noctule_timebase::Instant;
use ring::aead::LessSafeKey;

use super::Refused;
use super::chain::{Chain, generation};
use super::secret::Secret;
use crate::clock::Raw;

/// Generations that a datagram may be ahead of the newest known if only a member can have made its header.
pub(super) const STEPS_MAX: u64 = 64;
/// Generations that any other datagram may be ahead: a hello a second keeps both sides together, and forged datagrams are not to
/// make this node compute.
pub(super) const STEPS_MAX_UNPROVEN: u64 = 4;

/// A candidate for opening a datagram: the keys further on, or those that are held.
type Candidate<'a> = (Option<Incoming>, &'a Keys);

/// The keys of one generation.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    pub(super) group: LessSafeKey,
    pub(super) node: LessSafeKey,
}

/// The keys of one epoch of a sender: the newest generation seen and the one before.
#[derive(Clone, Debug)]
pub(super) struct Incoming {
    pub(super) epoch: u16,
    chain: Chain,
    pair: Secret,
    now: Keys,
    before: Option<Keys>,
    /// Forgotten then: the sender has newer keys.
    pub(super) until: Option<Instant<Raw>>,
}

impl Incoming {
    pub(super) fn new(epoch: u16, chain: Chain, pair: Secret) -> Incoming {
        let now = keys(&chain, &pair);
        Incoming { epoch, chain, pair, now, before: None, until: None }
    }

    /// The keys for a counter, and what is to be kept instead of this once they have opened something.
    ///
    /// # Errors
    /// Too old: [`Refused::Replayed`]. Too far ahead: [`Refused::Unverified`].
    pub(super) fn for_counter(&self, counter: u64) -> Result<Candidate<'_>, Refused> {
        let (wanted, newest) = (generation(counter), self.chain.generation());
        if wanted == newest {
            return Ok((None, &self.now));
        }
        if wanted > newest {
            let ahead = self.moved_to(wanted, STEPS_MAX_UNPROVEN).ok_or(Refused::Unverified)?;
            return Ok((Some(ahead), &self.now));
        }
        let before = self.before.as_ref().filter(|_| wanted + 1 == newest);
        before.map(|keys| (None, keys)).ok_or(Refused::Replayed)
    }

    /// The keys of the newest generation.
    pub(super) fn newest(&self) -> &Keys {
        &self.now
    }

    /// Follows a sender to the generation of a counter that it has shown. False if that is further than [`STEPS_MAX`].
    pub(super) fn follow(&mut self, counter: u64) -> bool {
        let wanted = generation(counter);
        if wanted <= self.chain.generation() {
            return true;
        }
        let Some(ahead) = self.moved_to(wanted, STEPS_MAX) else { return false };
        *self = ahead;
        true
    }

    fn moved_to(&self, wanted: u64, steps_max: u64) -> Option<Incoming> {
        if wanted - self.chain.generation() > steps_max {
            return None;
        }
        let mut chain = self.chain.clone();
        chain.advance_to(wanted - 1);
        let before = keys(&chain, &self.pair);
        chain.advance_to(wanted);
        let now = keys(&chain, &self.pair);
        let pair = self.pair.clone();
        Some(Incoming { epoch: self.epoch, chain, pair, now, before: Some(before), until: self.until })
    }
}

fn keys(chain: &Chain, pair: &Secret) -> Keys {
    Keys { group: chain.group_key(), node: chain.node_key(pair) }
}

#[cfg(test)]
impl Incoming {
    /// All keys that are held, and that follow from what is held.
    pub(super) fn held(&self) -> Vec<LessSafeKey> {
        let mut all = vec![self.now.clone()];
        all.extend(self.before.clone());
        all.extend(self.moved_to(self.chain.generation() + 1, STEPS_MAX).map(|ahead| ahead.now));
        all.into_iter().flat_map(|keys| [keys.group, keys.node]).collect()
    }
}
