//! Secrets of 32 bytes: what is derived from them, and where new ones come from.

use std::fmt;

use ring::aead::{AES_256_GCM, LessSafeKey, UnboundKey};
use ring::hkdf::{HKDF_SHA256, Prk};
use zeroize::Zeroizing;

/// Of a secret.
pub(super) const SECRET_BYTES: usize = 32;

/// 32 bytes, overwritten when they are dropped. Never printed.
#[derive(Clone)]
pub(super) struct Secret(Zeroizing<[u8; SECRET_BYTES]>);

impl Secret {
    pub(super) fn from_bytes(bytes: [u8; SECRET_BYTES]) -> Secret {
        Secret(Zeroizing::new(bytes))
    }

    pub(super) fn bytes(&self) -> &[u8; SECRET_BYTES] {
        &self.0
    }

    /// HKDF-Expand (RFC 5869) with this as the pseudorandom key. Nothing of this secret can be learned from what is derived.
    pub(super) fn derive(&self, info: &[&[u8]]) -> Secret {
        let key = Prk::new_less_safe(HKDF_SHA256, self.0.as_slice());
        expand(&key, info)
    }

    /// The key of AES-256-GCM with these bytes.
    pub(super) fn cipher_key(&self) -> LessSafeKey {
        let key = UnboundKey::new(&AES_256_GCM, self.0.as_slice());
        #[allow(clippy::expect_used)] // only another length can fail
        LessSafeKey::new(key.expect("AES-256 has keys of 32 bytes"))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// HKDF-Expand.
pub(super) fn expand(key: &Prk, info: &[&[u8]]) -> Secret {
    let mut bytes = Zeroizing::new([0; SECRET_BYTES]);
    let filled = key.expand(info, HKDF_SHA256).and_then(|expanded| expanded.fill(bytes.as_mut_slice()));
    #[allow(clippy::expect_used)] // only a length beyond 255 hashes can fail
    filled.expect("32 bytes are less than 255 hashes");
    Secret(bytes)
}

/// Random secrets from one seed. What was drawn cannot be computed from what is left (fast key erasure).
#[derive(Debug)]
pub(super) struct Random {
    state: Secret,
}

impl Random {
    pub(super) fn new(seed: Secret) -> Random {
        Random { state: seed }
    }

    pub(super) fn draw(&mut self) -> Secret {
        let drawn = self.state.derive(&[b"draw"]);
        self.state = self.state.derive(&[b"next"]);
        drawn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_drawn_never_repeats_and_is_never_printed() {
        let mut random = Random::new(Secret::from_bytes([1; 32]));
        let drawn: std::collections::BTreeSet<[u8; 32]> = (0..100).map(|_| *random.draw().bytes()).collect();
        assert_eq!(drawn.len(), 100);
        assert_eq!(format!("{random:?}"), "Random { state: Secret(…) }");
    }
}
