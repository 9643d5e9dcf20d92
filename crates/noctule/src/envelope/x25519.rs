//! X25519 (RFC 7748) for handshakes: the function of `curve25519-dalek`, and private keys that are overwritten when they are dropped.

use curve25519_dalek::montgomery::MontgomeryPoint;
use snow::Error;
use snow::types::{Dh, Random};

use super::secret::{SECRET_BYTES, Secret};

/// A key pair.
pub(super) struct KeyPair {
    private: Secret,
    public: [u8; SECRET_BYTES],
}

impl KeyPair {
    /// To be set or generated.
    pub(super) fn none() -> KeyPair {
        KeyPair { private: Secret::from_bytes([0; SECRET_BYTES]), public: [0; SECRET_BYTES] }
    }

    pub(super) fn new(private: Secret) -> KeyPair {
        let public = MontgomeryPoint::mul_base_clamped(*private.bytes()).to_bytes();
        KeyPair { private, public }
    }
}

impl Dh for KeyPair {
    fn name(&self) -> &'static str {
        "25519"
    }

    fn pub_len(&self) -> usize {
        SECRET_BYTES
    }

    fn priv_len(&self) -> usize {
        SECRET_BYTES
    }

    fn set(&mut self, private: &[u8]) {
        if let Ok(private) = private.try_into() {
            *self = KeyPair::new(Secret::from_bytes(private));
        }
    }

    fn generate(&mut self, random: &mut dyn Random) -> Result<(), Error> {
        let mut private = [0; SECRET_BYTES];
        random.try_fill_bytes(&mut private)?;
        *self = KeyPair::new(Secret::from_bytes(private));
        Ok(())
    }

    fn pubkey(&self) -> &[u8] {
        &self.public
    }

    fn privkey(&self) -> &[u8] {
        self.private.bytes()
    }

    /// Refuses points of small order, whose product is public.
    fn dh(&self, public: &[u8], out: &mut [u8]) -> Result<(), Error> {
        let public = *public.first_chunk::<SECRET_BYTES>().ok_or(Error::Dh)?;
        let shared = MontgomeryPoint(public).mul_clamped(*self.private.bytes()).to_bytes();
        let out = out.get_mut(..SECRET_BYTES).ok_or(Error::Dh)?;
        out.copy_from_slice(&shared);
        if shared == [0; SECRET_BYTES] { Err(Error::Dh) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(digits: &str) -> [u8; 32] {
        let digit = |at: usize| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).unwrap();
        std::array::from_fn(digit)
    }

    #[test]
    fn a_key_pair_of_rfc_7748_section_6_1_agrees_with_another_one() {
        let private = "5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb";
        let [one, other] = [bytes(private), [1; 32]].map(|private| KeyPair::new(Secret::from_bytes(private)));
        assert_eq!(one.public, bytes("de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f"));
        let mut shared = [[0; 32]; 2];
        one.dh(&other.public, &mut shared[0]).unwrap();
        other.dh(&one.public, &mut shared[1]).unwrap();
        assert_eq!(shared[0], shared[1]);
        assert!(one.dh(&[0; 32], &mut [0; 32]).is_err(), "a point of small order");
    }
}
