//! Keys derived from a swarm key, which every member can compute.

use noctule_discovery::NodeId;
use ring::aead::LessSafeKey;
use ring::hkdf::{HKDF_SHA256, Prk, Salt};
use ring::hmac;

use super::PROOF_BYTES;
use super::secret::{Secret, expand};
use crate::swarm_key::SwarmKey;

/// Tells swarm keys apart.
pub(super) type SwarmId = [u8; 8];

/// One key of the swarm.
#[derive(Debug)]
pub(super) struct Swarm {
    key: Prk,
    pub(super) id: SwarmId,
    /// For challenges and answers.
    pub(super) pre_shared: Secret,
}

impl Swarm {
    pub(super) fn new(key: &SwarmKey) -> Swarm {
        let key = Salt::new(HKDF_SHA256, b"noctule swarm 2").extract(&key.0);
        let id = expand(&key, &[b"id"]).bytes().first_chunk().copied().unwrap_or_default();
        let pre_shared = expand(&key, &[b"handshake"]);
        Swarm { key, id, pre_shared }
    }

    /// The key of datagrams to nodes that do not know the sender yet.
    pub(super) fn sender_key(&self, sender: NodeId) -> LessSafeKey {
        expand(&self.key, &[b"sender", &sender.0]).cipher_key()
    }

    /// For proofs between processes of one host.
    pub(super) fn proof_key(&self, of: NodeId) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, expand(&self.key, &[b"local", &of.0]).bytes())
    }
}

/// The proof of a node about something.
pub(super) fn proof(swarm: &Swarm, of: NodeId, what: &[&[u8]]) -> [u8; PROOF_BYTES] {
    let tag = hmac::sign(&swarm.proof_key(of), &what.concat());
    tag.as_ref().first_chunk().copied().unwrap_or_default()
}
