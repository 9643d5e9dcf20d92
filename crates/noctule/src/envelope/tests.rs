use std::sync::LazyLock;

use proptest::prelude::*;

use super::header::{Header, Kind};
use super::members::CHALLENGE_BYTES;
use super::*;

mod copies;
mod handshakes;
mod secrecy;
mod vectors;

/// Of the node with the seed 1; its number has nothing to do with its key.
static A: LazyLock<NodeId> = LazyLock::new(|| number(&envelope(1, 7)));
static B: LazyLock<NodeId> = LazyLock::new(|| number(&envelope(2, 7)));

fn at(ms: i64) -> Instant<Raw> {
    Instant::from_ns(ms * 1_000_000)
}

fn address(node: NodeId) -> SocketAddr {
    ([10, 0, 0, node.0[0]], 7411).into()
}

fn envelope(seed: u8, key: u8) -> Envelope {
    Envelope::new(&keys(&[key]), [seed; 32], 42)
}

fn number(envelope: &Envelope) -> NodeId {
    envelope.number().unwrap()
}

impl Envelope {
    fn forget_all(&mut self) {
        members(self).peers.clear();
    }
}

fn members(envelope: &mut Envelope) -> &mut Members {
    envelope.members.as_mut().unwrap()
}

/// As long as a hello of discovery is.
const HELLO: &[u8] = &[b'h'; 56];

fn sealed(envelope: &mut Envelope, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    envelope.begin(&mut out);
    out.extend_from_slice(body);
    envelope.seal_for_all(&mut out);
    out
}

/// Opens a copy at `to` and carries what that provokes back and forth until nothing is left.
fn deliver(
    bytes: &[u8],
    from: &mut Envelope,
    to: &mut Envelope,
    now: Instant<Raw>,
) -> Result<Vec<u8>, Refused> {
    let opened = to.open(&mut bytes.to_vec(), address(number(from)), now).map(|opened| opened.body.to_vec());
    loop {
        let (back, forth) = (to.poll_transmit(), from.poll_transmit());
        if back.is_none() && forth.is_none() {
            return opened;
        }
        if let Some((_, mut bytes)) = back {
            assert_eq!(from.open(&mut bytes, address(number(to)), now), Err(Refused::Unverified));
        }
        if let Some((_, mut bytes)) = forth {
            assert_eq!(to.open(&mut bytes, address(number(from)), now), Err(Refused::Unverified));
        }
    }
}

fn acquainted() -> (Envelope, Envelope) {
    let (mut a, mut b) = (envelope(1, 7), envelope(2, 7));
    let hello = sealed(&mut a, HELLO);
    assert_eq!(deliver(&hello, &mut a, &mut b, at(0)), Err(Refused::Unverified));
    (a, b)
}

#[test]
fn after_one_challenge_each_way_both_sides_understand_each_other() {
    let (mut a, mut b) = acquainted();
    let there = sealed(&mut a, b"there");
    assert_eq!(deliver(&there, &mut a, &mut b, at(1)), Ok(b"there".to_vec()));
    let back = sealed(&mut b, b"back");
    assert_eq!(deliver(&back, &mut b, &mut a, at(1)), Ok(b"back".to_vec()));
}

#[test]
fn nothing_of_the_content_shows() {
    let mut a = envelope(1, 7);
    let bytes = sealed(&mut a, b"/robot/arm/command");
    assert_eq!(bytes.len(), 18 + OVERHEAD_BYTES);
    assert!(!bytes.windows(5).any(|window| window == b"robot"));
    let again = sealed(&mut a, b"/robot/arm/command");
    assert_ne!(bytes[HEADER_BYTES..], again[HEADER_BYTES..], "a nonce was used twice");
}

#[test]
fn a_replayed_datagram_is_refused() {
    let (mut a, mut b) = acquainted();
    let first = sealed(&mut a, b"open the gripper");
    assert!(deliver(&first, &mut a, &mut b, at(1)).is_ok());
    assert_eq!(deliver(&first, &mut a, &mut b, at(2)), Err(Refused::Replayed));
    assert_eq!(b.counters().of(Refused::Replayed), 1);
}

#[test]
fn a_node_that_starts_later_does_not_accept_recorded_datagrams() {
    let (mut a, mut b) = acquainted();
    let recorded = sealed(&mut a, b"open the gripper");
    assert!(deliver(&recorded, &mut a, &mut b, at(1)).is_ok());
    let mut newcomer = envelope(3, 7);
    // A is gone; an attacker replays its datagrams, as often as it likes.
    for ms in 0..1000 {
        assert_eq!(newcomer.open(&mut recorded.clone(), address(*A), at(ms)), Err(Refused::Unverified));
    }
    // Even with A alive, what it sealed before it answered the newcomer is not accepted.
    let hello = sealed(&mut a, HELLO);
    let _ = deliver(&hello, &mut a, &mut newcomer, at(2000));
    assert_eq!(deliver(&recorded, &mut a, &mut newcomer, at(2001)), Err(Refused::Replayed));
}

#[test]
fn a_recorded_answer_does_not_satisfy_another_challenge() {
    let (mut a, mut b) = (envelope(1, 7), envelope(2, 7));
    let hello = sealed(&mut a, HELLO);
    let _ = b.open(&mut hello.clone(), address(*A), at(0));
    let (_, mut challenge) = b.poll_transmit().unwrap();
    let _ = a.open(&mut challenge, address(*B), at(0));
    let answers: Vec<_> = std::iter::from_fn(|| a.poll_transmit()).collect();
    // The same number, another challenge: as after a restart by which a secret was kept.
    let mut restarted = envelope(2, 7);
    members(&mut restarted).skip_random();
    let _ = restarted.open(&mut hello.clone(), address(*A), at(0));
    for (_, answer) in &answers {
        let _ = restarted.open(&mut answer.clone(), address(*A), at(1));
    }
    let later = sealed(&mut a, b"later");
    assert_eq!(restarted.open(&mut later.clone(), address(*A), at(2)), Err(Refused::Unverified));
    // It does satisfy the one that it is an answer to.
    for (_, answer) in &answers {
        let _ = b.open(&mut answer.clone(), address(*A), at(1));
    }
    assert!(b.open(&mut later.clone(), address(*A), at(2)).is_ok());
}

#[test]
fn wrong_missing_and_superfluous_keys_are_counted_and_reported_once() {
    let mut wrong = envelope(1, 8);
    let mut none = Envelope::new(&[], [1; 32], 1);
    let mut b = envelope(2, 7);
    for _ in 0..3 {
        let mut bytes = sealed(&mut wrong, HELLO);
        assert_eq!(b.open(&mut bytes, address(*A), at(0)), Err(Refused::WrongKey));
        let mut bytes = sealed(&mut none, HELLO);
        assert_eq!(b.open(&mut bytes, address(*A), at(0)), Err(Refused::NotSealed));
        let mut bytes = sealed(&mut b, HELLO);
        assert_eq!(none.open(&mut bytes, address(*B), at(0)), Err(Refused::NoKey));
    }
    assert_eq!((b.poll_warning(), b.poll_warning()), (Some(Refused::NotSealed), Some(Refused::WrongKey)));
    assert_eq!(
        (b.poll_warning(), none.poll_warning(), none.poll_warning()),
        (None, Some(Refused::NoKey), None)
    );
    assert_eq!(b.counters().of(Refused::WrongKey), 3);
    assert!(b.poll_transmit().is_none(), "nothing is sent to a node without the key");
}

#[test]
fn every_flipped_bit_is_noticed() {
    let (mut a, mut b) = acquainted();
    let bytes = sealed(&mut a, b"payload");
    for bit in 0..bytes.len() * 8 {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(b.open(&mut damaged, address(*A), at(1)).is_err(), "bit {bit}");
    }
    assert!(b.open(&mut bytes.clone(), address(*A), at(1)).is_ok());
}

#[test]
fn what_an_attacker_provokes_is_no_longer_than_three_times_what_it_cost() {
    let mut a = envelope(1, 7);
    for bytes in [1, CHALLENGE_BYTES / 3 - OVERHEAD_BYTES - 1, 56, 1_200] {
        let mut b = envelope(2, 7);
        // Recorded, and played from a forged address.
        let recorded = sealed(&mut a, &vec![0; bytes]);
        let mut elicited = 0;
        for _ in 0..100 {
            let _ = b.open(&mut recorded.clone(), address(*A), at(5));
            elicited += std::iter::from_fn(|| b.poll_transmit()).map(|(_, bytes)| bytes.len()).sum::<usize>();
        }
        assert!(elicited <= 3 * recorded.len(), "{elicited} bytes for 100 times {}", recorded.len());
        assert_eq!(elicited > 0, bytes >= 56, "{bytes}");
    }
}

#[test]
fn senders_beyond_the_limit_push_out_those_never_verified() {
    let (mut a, mut b) = acquainted();
    for number in 0..SENDERS_LIMIT as u64 + 50 {
        let mut seed = [9; 32];
        seed[..8].copy_from_slice(&number.to_le_bytes());
        let mut other = Envelope::new(&keys(&[7]), seed, 1);
        let mut bytes = sealed(&mut other, HELLO);
        let _ = b.open(&mut bytes, address(*A), at(10));
        while b.poll_transmit().is_some() {}
    }
    assert_eq!(members(&mut b).peers.len(), SENDERS_LIMIT);
    let there = sealed(&mut a, b"still known");
    assert!(deliver(&there, &mut a, &mut b, at(11)).is_ok());
}

#[test]
fn those_that_fell_silent_are_pushed_out_before_those_that_are_heard() {
    let (mut a, mut b) = acquainted();
    let all = members(&mut b);
    let known = all.peers.remove(&*A).unwrap();
    for number in 0..SENDERS_LIMIT as u64 - 1 {
        let mut id = [0xff; 16];
        id[..8].copy_from_slice(&number.to_le_bytes());
        all.silent.add(NodeId(id), &known);
    }
    all.peers.insert(*A, known);
    for number in [1, 2] {
        let mut other = envelope(2 + number, 7);
        let hello = sealed(&mut other, HELLO);
        assert_eq!(deliver(&hello, &mut other, &mut b, at(10)), Err(Refused::Unverified));
        let all = members(&mut b);
        let count = (all.peers.len(), all.silent.len());
        assert_eq!(count, (1 + number as usize, SENDERS_LIMIT - 1 - number as usize));
    }
    let there = sealed(&mut a, b"still known");
    assert!(deliver(&there, &mut a, &mut b, at(11)).is_ok());
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(
        kind in 0u8..7,
        rest in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        let mut bytes = b"NCTX\x02".to_vec();
        bytes.push(kind);
        bytes.extend(rest);
        prop_assert!(envelope(2, 7).open(&mut bytes, address(*A), at(0)).is_err());
    }
}

fn keys(bytes: &[u8]) -> Vec<SwarmKey> {
    bytes.iter().map(|byte| SwarmKey::from_bytes([*byte; 32])).collect()
}

#[test]
fn a_key_is_changed_in_three_steps_and_nothing_is_lost_on_the_way() {
    let (mut a, mut b) = acquainted();
    // One node after the other in each step, and both talk in between.
    for step in [[7, 8].as_slice(), &[8, 7], &[8]] {
        for first in [true, false] {
            if first { &mut a } else { &mut b }.set_keys(&keys(step), at(2));
            for body in [b"one".as_slice(), b"two"] {
                let there = sealed(&mut a, body);
                assert_eq!(deliver(&there, &mut a, &mut b, at(2)), Ok(body.to_vec()), "{step:?}");
                let back = sealed(&mut b, body);
                assert_eq!(deliver(&back, &mut b, &mut a, at(2)), Ok(body.to_vec()), "{step:?}");
            }
        }
    }
}

#[test]
fn what_a_key_has_sealed_that_is_gone_does_not_open_nor_prove_anything() {
    let (mut a, mut b) = acquainted();
    let recorded = sealed(&mut a, b"yesterday");
    b.set_keys(&keys(&[8]), at(0));
    assert_eq!(deliver(&recorded, &mut a, &mut b, at(1)), Err(Refused::WrongKey));
    let mut lost_drone = envelope(9, 7);
    let hello = sealed(&mut lost_drone, HELLO);
    assert_eq!(deliver(&hello, &mut lost_drone, &mut b, at(1)), Err(Refused::WrongKey));
    assert!(!b.is_proven(*A, &[b"ask"], &a.proof(*A, &[b"ask"])));
    b.set_keys(&keys(&[8, 7]), at(0));
    assert!(b.is_proven(*A, &[b"ask"], &a.proof(*A, &[b"ask"])));
    assert!(!b.is_proven(*A, &[b"ask"], &a.proof(*B, &[b"ask"])), "a proof is of one node");
}

/// The smallest that a link sends.
const SHORT: &[u8] = &[0xa0, 5, 0, 1, 2, 3, 4, 5, 6];

/// A link of `a` and `b`, and a datagram of it by `a`.
fn sealed_short(a: &mut Envelope, b: &mut Envelope, body: &[u8]) -> Vec<u8> {
    let id = b.open_link(*A);
    let mut out = Vec::new();
    a.begin(&mut out);
    out.extend_from_slice(body);
    out[HEADER_BYTES + 1..HEADER_BYTES + 3].copy_from_slice(&id.to_le_bytes());
    assert!(a.seal_for(*B, &mut out));
    out
}

#[test]
fn a_short_header_is_sealed_in_nineteen_bytes_more_and_opens_once() {
    let (mut a, mut b) = acquainted();
    let bytes = sealed_short(&mut a, &mut b, SHORT);
    assert_eq!(bytes.len(), SHORT.len() + 19);
    assert!(!bytes.windows(3).any(|window| window == &SHORT[4..7]), "it shows");
    let opened =
        b.open(&mut bytes.clone(), address(*A), at(1)).map(|opened| (opened.from, opened.body.to_vec()));
    let (from, body) = opened.unwrap();
    assert_eq!((from, body[0], &body[3..]), (Some(*A), SHORT[0], &SHORT[3..]));
    assert_eq!(b.open(&mut bytes.clone(), address(*A), at(1)), Err(Refused::Replayed));
    for bit in 0..bytes.len() * 8 {
        let mut forged = sealed_short(&mut a, &mut b, SHORT);
        forged[bit / 8] ^= 1 << (bit % 8);
        assert!(b.open(&mut forged, address(*A), at(1)).is_err(), "bit {bit}");
        assert!(b.open(&mut forged[..bit / 8], address(*A), at(1)).is_err(), "{} bytes", bit / 8);
    }
}

#[test]
fn a_short_header_counts_on_across_what_went_to_others() {
    let (mut a, mut b) = acquainted();
    for _ in 0..3 {
        members(&mut a).sending.skip((1 << 18) - 2);
        let bytes = sealed_short(&mut a, &mut b, SHORT);
        assert!(b.open(&mut bytes.clone(), address(*A), at(1)).is_ok());
    }
    // Beyond that a datagram with a long header is needed, such as a hello.
    members(&mut a).sending.skip(1 << 21);
    let bytes = sealed_short(&mut a, &mut b, SHORT);
    assert_eq!(b.open(&mut bytes.clone(), address(*A), at(1)), Err(Refused::Unverified));
    let hello = sealed(&mut a, HELLO);
    assert!(b.open(&mut hello.clone(), address(*A), at(1)).is_ok());
    let bytes = sealed_short(&mut a, &mut b, SHORT);
    assert!(b.open(&mut bytes.clone(), address(*A), at(1)).is_ok());
}

#[test]
fn a_short_header_opens_with_its_receiver_only_and_not_before_its_sender_is_known() {
    let (mut a, mut b) = acquainted();
    let id = envelope(3, 7).open_link(*A);
    let bytes = sealed_short(&mut a, &mut b, SHORT);
    let mut other = envelope(3, 7);
    assert_eq!(other.open_link(*A), id, "of the same random number");
    assert_eq!(other.open(&mut bytes.clone(), address(*A), at(1)), Err(Refused::Unverified));
    let hello = sealed(&mut a, HELLO);
    assert_eq!(deliver(&hello, &mut a, &mut other, at(1)), Err(Refused::Unverified));
    assert_eq!(other.open(&mut bytes.clone(), address(*A), at(2)), Err(Refused::WrongKey));
    b.close_link(*A);
    assert_eq!(b.open(&mut bytes.clone(), address(*A), at(2)), Err(Refused::Unverified));
}

#[test]
fn what_a_short_header_seals_opens_while_the_swarm_changes_its_key() {
    let (mut a, mut b) = acquainted();
    let keys = [8, 7].map(|key| SwarmKey::from_bytes([key; 32]));
    b.set_keys(&keys, at(1));
    for round in 0..2 {
        let bytes = sealed_short(&mut a, &mut b, SHORT);
        assert!(b.open(&mut bytes.clone(), address(*A), at(1)).is_ok(), "round {round}");
        a.set_keys(&keys, at(1));
    }
}
