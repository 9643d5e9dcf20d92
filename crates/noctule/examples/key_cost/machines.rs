//! The seal without sockets.

use std::hint::black_box;
use std::net::SocketAddr;
use std::time::Instant as Wall;

use noctule::NodeId;
use noctule::clock::Raw;
use noctule::envelope::{Envelope, HEADER_BYTES};
use noctule::swarm_key::SwarmKey;
use noctule_timebase::Instant;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, Tag, UnboundKey};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};

use super::Round;

/// One datagram, one datagram, and 46 of them.
pub(super) const PAYLOADS: [usize; 3] = [64, 1024, 65_536];
/// Payload of one datagram of a link on Ethernet, under a seal.
const FRAGMENT_BYTES: usize = 1_450;
const SAMPLES: usize = 200;
const ADDRESS: ([u8; 4], u16) = ([10, 0, 0, 1], 7_000);

/// Behind a short header: content, number of the link, fields of a sample.
const FIELDS: [u8; 15] = [0x90, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];

fn at(round: usize) -> Instant<Raw> {
    // Each round in a second of its own: handshakes in a second are limited.
    Instant::from_ns(round as i64 * 2_000_000_000)
}

fn envelope(seed: usize) -> Envelope {
    let mut random = [0; 32];
    random[..8].copy_from_slice(&seed.to_le_bytes());
    Envelope::new(&[SwarmKey::from_bytes([7; 32])], random, seed as u64)
}

fn us_since(begin: Wall) -> f64 {
    begin.elapsed().as_secs_f64() * 1e6
}

/// The next datagram that waits in `from`, opened by `to`; the time that opening took, answers that it provoked included.
fn carry(from: &mut Envelope, to: &mut Envelope, now: Instant<Raw>) -> Option<f64> {
    let (_, mut bytes) = from.poll_transmit()?;
    let begin = Wall::now();
    let _ = black_box(to.open(&mut bytes, SocketAddr::from(ADDRESS), now));
    Some(us_since(begin))
}

fn acquainted(seed: usize, now: Instant<Raw>) -> ((Envelope, Envelope), [f64; 3]) {
    let (mut a, mut b) = (envelope(2 * seed), envelope(2 * seed + 1));
    let mut hello = Vec::new();
    a.begin(&mut hello);
    hello.extend_from_slice(&[b'h'; 56]);
    a.seal_for_all(&mut hello);
    let begin = Wall::now();
    let _ = b.open(&mut hello, SocketAddr::from(ADDRESS), now);
    let challenge = us_since(begin);
    // A answers, and as it does not know B either, challenges as well; B opens the answer, then answers.
    carry(&mut b, &mut a, now).expect("a challenge");
    let finish = carry(&mut a, &mut b, now).expect("an answer");
    let answer = carry(&mut a, &mut b, now).expect("a challenge");
    carry(&mut b, &mut a, now).expect("an answer");
    ((a, b), [challenge, answer, finish])
}

/// Each node does all three once for each other node.
pub(super) fn handshake(round: usize) -> Round {
    let (_, [challenge, answer, finish]) = acquainted(round, at(round));
    let sum = challenge + answer + finish;
    let steps = [
        ("make a challenge", challenge),
        ("answer one", answer),
        ("open the answer", finish),
        ("all three: each node, for each other node", sum),
    ];
    steps.map(|(name, figure)| (name.to_owned(), figure)).to_vec()
}

/// The fragments of a sample as datagrams before they are sealed.
fn fragments(payload_bytes: usize) -> Vec<Vec<u8>> {
    let fragment = |bytes: usize| [FIELDS.as_slice(), &vec![7; bytes]].concat();
    let (whole, rest) = (payload_bytes / FRAGMENT_BYTES, payload_bytes % FRAGMENT_BYTES);
    let mut fragments: Vec<Vec<u8>> = (0..whole).map(|_| fragment(FRAGMENT_BYTES)).collect();
    fragments.extend((rest > 0).then(|| fragment(rest)));
    fragments
}

/// Of one sample, all its datagrams.
pub(super) fn sample(payload_bytes: usize, round: usize) -> Round {
    let now = at(round);
    let ((mut sealing, mut opening), _) = acquainted(round, now);
    let fragments = fragments(payload_bytes);
    let (plain_out, plain_in) = through(&fragments, &mut Envelope::new(&[], [0; 32], 0), None, now);
    let (cipher_out, cipher_in) = through_cipher(&fragments);
    let (sealed_out, sealed_in) = through(&fragments, &mut sealing, Some(&mut opening), now);
    let figures = [
        ("out, no key", plain_out),
        ("out, AES-256-GCM of ring alone", cipher_out),
        ("out, sealed", sealed_out),
        ("in, no key", plain_in),
        ("in, AES-256-GCM of ring alone", cipher_in),
        ("in, sealed", sealed_in),
    ];
    figures.map(|(name, figure)| (format!("{name} ({} datagrams)", fragments.len()), figure)).to_vec()
}

/// Empty, with room for a datagram in memory that was written before: what the kernel takes to find it is no cost of a key.
fn buffers(count: usize) -> Vec<Vec<u8>> {
    let mut buffers: Vec<Vec<u8>> = (0..count).map(|_| vec![1; 2_000]).collect();
    buffers.iter_mut().for_each(Vec::clear);
    buffers
}

/// Without a key a datagram is opened by the node that sealed it.
fn through(
    fragments: &[Vec<u8>],
    sealing: &mut Envelope,
    mut opening: Option<&mut Envelope>,
    now: Instant<Raw>,
) -> (f64, f64) {
    let from = sealing.number().unwrap_or(NodeId([0; 16]));
    let to = opening.as_ref().and_then(|opening| opening.number()).unwrap_or(from);
    let link = opening.as_mut().map_or(0, |opening| opening.open_link(from));
    let mut sent = buffers(fragments.len() * SAMPLES);
    let front = if sealing.is_sealed() { HEADER_BYTES } else { 0 };
    let begin = Wall::now();
    for (out, fragment) in sent.iter_mut().zip(fragments.iter().cycle()) {
        sealing.begin(out);
        out.extend_from_slice(fragment);
        out[front + 1..front + 3].copy_from_slice(&link.to_le_bytes());
        assert!(sealing.seal_for(to, out));
    }
    let out_us = us_since(begin) / SAMPLES as f64;
    let opening = opening.unwrap_or(sealing);
    let begin = Wall::now();
    for bytes in &mut sent {
        assert!(opening.open(black_box(bytes), SocketAddr::from(ADDRESS), now).is_ok());
    }
    (out_us, us_since(begin) / SAMPLES as f64)
}

/// The same bytes and as many associated ones, with one key and counters for nonces.
fn through_cipher(fragments: &[Vec<u8>]) -> (f64, f64) {
    const ASSOCIATED: [u8; 38] = [1; 38];
    let key = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &[3; 32]).expect("32 bytes"));
    let nonce = |counter: usize| {
        let mut bytes = [0; 12];
        bytes[..8].copy_from_slice(&counter.to_le_bytes());
        Nonce::assume_unique_for_key(bytes)
    };
    let mut sent = buffers(fragments.len() * SAMPLES);
    let begin = Wall::now();
    for (counter, (out, fragment)) in sent.iter_mut().zip(fragments.iter().cycle()).enumerate() {
        out.extend_from_slice(fragment);
        let tag = key.seal_in_place_separate_tag(nonce(counter), Aad::from(ASSOCIATED), &mut out[3..]);
        out.extend_from_slice(tag.expect("short").as_ref());
    }
    let out_us = us_since(begin) / SAMPLES as f64;
    let begin = Wall::now();
    for (counter, bytes) in sent.iter_mut().enumerate() {
        let end = bytes.len() - 16;
        let (front, tag) = bytes.split_at_mut(end);
        let tag = Tag::try_from(&*tag).expect("16 bytes");
        let opened =
            key.open_in_place_separate_tag(nonce(counter), Aad::from(ASSOCIATED), tag, &mut front[3..], 0..);
        assert!(black_box(opened).is_ok());
    }
    (out_us, us_since(begin) / SAMPLES as f64)
}

/// Of one datagram: what it would cost that members cannot forge what goes to a group.
pub(super) fn signature(_round: usize) -> Round {
    let pair = Ed25519KeyPair::from_seed_unchecked(&[5; 32]).expect("32 bytes");
    let public = UnparsedPublicKey::new(&ED25519, pair.public_key().as_ref().to_vec());
    let message = black_box(vec![7; FRAGMENT_BYTES]);
    let begin = Wall::now();
    let signatures: Vec<_> = (0..SAMPLES).map(|_| pair.sign(&message)).collect();
    let sign_us = us_since(begin) / SAMPLES as f64;
    let begin = Wall::now();
    for signature in &signatures {
        assert!(public.verify(&message, signature.as_ref()).is_ok());
    }
    let verify_us = us_since(begin) / SAMPLES as f64;
    vec![("sign, Ed25519 of ring".to_owned(), sign_us), ("verify".to_owned(), verify_us)]
}
