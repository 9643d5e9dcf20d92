//! Challenge and answer: the two messages of `Noise_IXpsk0_25519_AESGCM_SHA256`.
//!
//! The node that challenges learns that the other is alive now and is the node whose number it has, and gets its keys, which only
//! these two nodes can read, and no other holder of the swarm key. A node's number is the hash of its public key, so no other node can answer in
//! its name.
//!
//! Pure functions of their arguments. The state of a handshake is its seed: the same seed gives the same bytes, so a challenge can be
//! repeated, and nothing else is kept until the answer comes.

use noctule_discovery::NodeId;
use ring::digest::{SHA256, digest};
use snow::params::{CipherChoice, DHChoice, HashChoice};
use snow::resolvers::{CryptoResolver, RingResolver};
use snow::types::{Cipher, Dh, Hash, Random};
use snow::{Builder, Error, HandshakeState};

use super::secret::{SECRET_BYTES, Secret};
use super::x25519::KeyPair;

const PATTERN: &str = "Noise_IXpsk0_25519_AESGCM_SHA256";
/// The first part of the prologue; the numbers of the nodes that challenges and answers follow.
const PROTOCOL: &[u8] = b"noctule envelope 2";
/// Of a public key.
pub(super) const PUBLIC_BYTES: usize = 32;
/// Payload of a handshake message, beside public keys; unused bytes are zero.
const PAYLOAD_BYTES: usize = 80;
const TAG_BYTES: usize = 16;
/// Of a challenge and of an answer: an ephemeral key, a static one with its tag, the payload with its tag.
pub(super) const MESSAGE_BYTES: usize = 2 * PUBLIC_BYTES + PAYLOAD_BYTES + 2 * TAG_BYTES;

/// The key pair of a node, new at every start; its number is the hash of the public key.
#[derive(Debug)]
pub(super) struct Identity {
    secret: Secret,
    number: NodeId,
}

impl Identity {
    pub(super) fn new(secret: Secret) -> Identity {
        let number = number(KeyPair::new(secret.clone()).pubkey());
        Identity { secret, number }
    }

    pub(super) fn number(&self) -> NodeId {
        self.number
    }

    /// The same secret under another node's number.
    #[cfg(test)]
    pub(super) fn under(&self, number: NodeId) -> Identity {
        Identity { secret: self.secret.clone(), number }
    }
}

/// The number of the node with a public key: the first half of its SHA-256.
fn number(public: &[u8]) -> NodeId {
    let hash = digest(&SHA256, public);
    NodeId(hash.as_ref().first_chunk().copied().unwrap_or_default())
}

/// One side of a handshake.
#[derive(Clone, Copy, Debug)]
pub(super) struct Side<'a> {
    pub(super) me: &'a Identity,
    pub(super) other: NodeId,
    /// Derived from the swarm key.
    pub(super) pre_shared: &'a Secret,
    /// Of this handshake alone.
    pub(super) seed: &'a Secret,
}

/// The content of a challenge: which secrets of the pair this node holds, by their number, 0 for none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ask {
    /// For what it receives from the other node.
    pub(super) receives_by: u64,
    /// For what it sends to the other node.
    pub(super) sends_by: u64,
}

/// The content of an answer: the keys of the sender that answers.
#[derive(Clone, Debug)]
pub(super) struct SenderKeys {
    /// The secret of the pair that this handshake has made is to be used, not one from before.
    pub(super) is_pair_new: bool,
    pub(super) generation: u64,
    /// Number and secret of the key that it seals with now.
    pub(super) now: (u16, Secret),
    /// The same of the next key, if it is near.
    pub(super) next: Option<(u16, Secret)>,
}

/// The result of answering a challenge.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) message: Vec<u8>,
    pub(super) keys: SenderKeys,
    /// The secret of the pair for what this node sends.
    pub(super) pair: Secret,
}

/// The bytes of a challenge.
pub(super) fn challenge(side: Side<'_>, ask: Ask) -> Option<Vec<u8>> {
    begin(side, ask).map(|(_, message)| message)
}

/// Answers the challenge `message`. `None`
/// for what is not a challenge of that node to this one.
pub(super) fn answer(
    side: Side<'_>,
    message: &[u8],
    sender_keys: impl FnOnce(Ask) -> SenderKeys,
) -> Option<Answer> {
    let mut state = build(side, false)?;
    let mut payload = [0; PAYLOAD_BYTES];
    // No Diffie-Hellman before these tags, under the swarm's key, were right.
    let length = state.read_message(message, &mut payload).ok()?;
    let is_named = state.get_remote_static().is_some_and(|public| number(public) == side.other);
    if length != PAYLOAD_BYTES || !is_named {
        return None;
    }
    let keys = sender_keys(Ask::decode(&payload)?);
    let mut out = vec![0; MESSAGE_BYTES];
    let length = state.write_message(keys.encode().as_slice(), &mut out).ok()?;
    out.truncate(length);
    Some(Answer { message: out, keys, pair: pair(&mut state) })
}

/// Opens the answer to the challenge of the same side and `ask`: the keys of its sender, and the secret of the pair for what the other node sends.
pub(super) fn finish(side: Side<'_>, ask: Ask, message: &[u8]) -> Option<(SenderKeys, Secret)> {
    let (mut state, _) = begin(side, ask)?;
    let mut payload = zeroize::Zeroizing::new([0; PAYLOAD_BYTES]);
    let length = state.read_message(message, payload.as_mut_slice()).ok()?;
    let is_named = state.get_remote_static().is_some_and(|public| number(public) == side.other);
    if length != PAYLOAD_BYTES || !is_named {
        return None;
    }
    Some((SenderKeys::decode(&payload)?, pair(&mut state)))
}

fn begin(side: Side<'_>, ask: Ask) -> Option<(HandshakeState, Vec<u8>)> {
    let mut state = build(side, true)?;
    let mut out = vec![0; MESSAGE_BYTES];
    let length = state.write_message(&ask.encode(), &mut out).ok()?;
    out.truncate(length);
    Some((state, out))
}

fn build(side: Side<'_>, initiates: bool) -> Option<HandshakeState> {
    let (challenger, responder) =
        if initiates { (side.me.number, side.other) } else { (side.other, side.me.number) };
    let prologue = [PROTOCOL, &challenger.0, &responder.0].concat();
    let resolver = Resolver { seed: side.seed.clone() };
    let builder = Builder::with_resolver(PATTERN.parse().ok()?, Box::new(resolver));
    let builder =
        builder.local_private_key(side.me.secret.bytes()).ok()?.psk(0, side.pre_shared.bytes()).ok()?;
    let builder = builder.prologue(&prologue).ok()?;
    if initiates { builder.build_initiator().ok() } else { builder.build_responder().ok() }
}

/// The secret for what the one that answers sends to the one that challenged.
fn pair(state: &mut HandshakeState) -> Secret {
    let (_, of_responder) = state.dangerously_get_raw_split();
    Secret::from_bytes(of_responder).derive(&[b"pair"])
}

impl Ask {
    fn encode(self) -> [u8; PAYLOAD_BYTES] {
        let mut bytes = [0; PAYLOAD_BYTES];
        bytes[..8].copy_from_slice(&self.receives_by.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.sends_by.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8; PAYLOAD_BYTES]) -> Option<Ask> {
        let receives_by = u64::from_le_bytes(*bytes.first_chunk()?);
        let sends_by = u64::from_le_bytes(*bytes[8..].first_chunk()?);
        bytes[16..].iter().all(|byte| *byte == 0).then_some(Ask { receives_by, sends_by })
    }
}

impl SenderKeys {
    fn encode(&self) -> zeroize::Zeroizing<[u8; PAYLOAD_BYTES]> {
        let mut bytes = zeroize::Zeroizing::new([0; PAYLOAD_BYTES]);
        bytes[0] = u8::from(self.is_pair_new);
        bytes[1] = u8::from(self.next.is_some());
        bytes[2..4].copy_from_slice(&self.now.0.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.generation.to_le_bytes());
        bytes[16..48].copy_from_slice(self.now.1.bytes());
        if let Some((epoch, secret)) = &self.next {
            bytes[4..6].copy_from_slice(&epoch.to_le_bytes());
            bytes[48..].copy_from_slice(secret.bytes());
        }
        bytes
    }

    fn decode(bytes: &[u8; PAYLOAD_BYTES]) -> Option<SenderKeys> {
        let epoch = |at: usize| Some(u16::from_le_bytes(*bytes[at..].first_chunk()?));
        let secret = |at: usize| Some(Secret::from_bytes(*bytes[at..].first_chunk::<SECRET_BYTES>()?));
        if bytes[0] > 1 || bytes[1] > 1 || bytes[6..8] != [0, 0] {
            return None;
        }
        let next = if bytes[1] == 1 { Some((epoch(4)?, secret(48)?)) } else { None };
        Some(SenderKeys {
            is_pair_new: bytes[0] == 1,
            generation: u64::from_le_bytes(*bytes[8..].first_chunk()?),
            now: (epoch(2)?, secret(16)?),
            next,
        })
    }
}

/// X25519 of `curve25519-dalek`, the rest of `ring`, and the seed for the one ephemeral key that a side draws.
struct Resolver {
    seed: Secret,
}

impl CryptoResolver for Resolver {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        Some(Box::new(Seeded { seed: Some(self.seed.clone()) }))
    }

    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        (*choice == DHChoice::Curve25519).then(|| -> Box<dyn Dh> { Box::new(KeyPair::none()) })
    }

    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        RingResolver.resolve_hash(choice)
    }

    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        RingResolver.resolve_cipher(choice)
    }
}

/// Gives its seed once.
struct Seeded {
    seed: Option<Secret>,
}

impl Random for Seeded {
    fn try_fill_bytes(&mut self, destination: &mut [u8]) -> Result<(), Error> {
        let seed = self.seed.take().filter(|_| destination.len() == SECRET_BYTES).ok_or(Error::Rng)?;
        destination.copy_from_slice(seed.bytes());
        Ok(())
    }
}
