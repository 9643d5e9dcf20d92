//! The keys of a sender, one after the other: of each the next can be computed, and none before it.

use ring::aead::LessSafeKey;

use super::secret::Secret;

/// Counters of one generation: 2^16.
const GENERATION_BITS: u32 = 16;

/// The generation that a counter belongs to.
pub(super) fn generation(counter: u64) -> u64 {
    counter >> GENERATION_BITS
}

/// The first counter of a generation.
pub(super) fn first_counter(generation: u64) -> u64 {
    generation << GENERATION_BITS
}

/// The secret of one generation of a sender.
#[derive(Clone, Debug)]
pub(super) struct Chain {
    secret: Secret,
    generation: u64,
}

impl Chain {
    pub(super) fn new(secret: Secret, generation: u64) -> Chain {
        Chain { secret, generation }
    }

    pub(super) fn secret(&self) -> &Secret {
        &self.secret
    }

    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    /// Goes on to a generation; the secrets before it are overwritten. Not back.
    pub(super) fn advance_to(&mut self, generation: u64) {
        while self.generation < generation {
            self.secret = self.secret.derive(&[b"next"]);
            self.generation += 1;
        }
    }

    /// The key of datagrams to a group.
    pub(super) fn group_key(&self) -> LessSafeKey {
        self.secret.derive(&[b"group"]).cipher_key()
    }

    /// The key of datagrams to the one node that shares `pair` with the sender.
    pub(super) fn node_key(&self, pair: &Secret) -> LessSafeKey {
        self.secret.derive(&[b"node", pair.bytes()]).cipher_key()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generation_follows_from_the_one_before() {
        let mut one = Chain::new(Secret::from_bytes([3; 32]), 5);
        let mut other = one.clone();
        one.advance_to(8);
        (6..=8).for_each(|generation| other.advance_to(generation));
        assert_eq!((one.generation(), one.secret().bytes()), (8, other.secret().bytes()));
        one.advance_to(2);
        assert_eq!(one.generation(), 8, "not back");
        assert_eq!((generation(first_counter(8)), generation(first_counter(8) - 1)), (8, 7));
    }
}
