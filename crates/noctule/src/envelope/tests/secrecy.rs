//! Forward secrecy: recorded datagrams that an attacker opens with a swarm key, or with a key and a running robot.

use super::super::link;
use super::super::sending::GENERATION_AGE_MAX;
use super::handshakes::{greet, opened, sealed_for, sealed_for_group, understand_each_other};
use super::*;

fn after(ms: i64, envelopes: [&mut Envelope; 2]) -> Instant<Raw> {
    envelopes.into_iter().for_each(|envelope| envelope.handle_timeout(at(ms)));
    at(ms)
}

/// Both go on to their next generation, and hear of it.
fn next_generation(a: &mut Envelope, b: &mut Envelope, ms: i64) -> i64 {
    let later = ms + GENERATION_AGE_MAX.ns() / 1_000_000 + 1;
    let now = after(later, [&mut *a, &mut *b]);
    greet(a, b, now);
    later
}

/// Whether any key that `envelope` holds, or that follows from the swarm key, opens a datagram that node A has sealed for B or for a group.
fn some_key_opens(envelope: &mut Envelope, bytes: &[u8]) -> bool {
    let members = members(envelope);
    let mut keys = members.derived_keys(*A);
    keys.extend(members.derived_keys(*B));
    keys.extend(members.peers.values().flat_map(|peer| &peer.incoming).flat_map(|incoming| incoming.held()));
    if bytes.starts_with(b"NCTX") {
        let counter = Header::decode(bytes).unwrap().counter;
        keys.iter().any(|key| header::open(key, counter, &mut bytes.to_vec()).is_ok())
    } else {
        let mut near = (0..1_000_u64).filter(|near| near.to_le_bytes()[..3] == bytes[3..6]);
        let opens = |counter: u64, key| link::open(key, counter, (*A, *B), &mut bytes.to_vec()).is_ok();
        near.any(|counter| keys.iter().any(|key| opens(counter, key)))
    }
}

#[test]
fn a_recording_and_the_swarm_key_open_no_samples() {
    let (mut a, mut b) = acquainted();
    let data = [
        sealed_for(&mut a, *B, b"sample").unwrap(),
        sealed_for_group(&mut a, b"stream"),
        sealed_short(&mut a, &mut b, SHORT),
    ];
    let hello = sealed(&mut a, HELLO);
    let mut finder = envelope(9, 7);
    for bytes in &data {
        assert!(!some_key_opens(&mut finder, bytes));
        assert!(opened(&mut finder, bytes, at(1)).is_err());
    }
    // Discovery it opens: names of topics and nodes are not secret for a holder of the key.
    assert!(some_key_opens(&mut finder, &hello));
    // The one that they are for has keys that do, so that the test can fail.
    assert!(data.iter().all(|bytes| some_key_opens(&mut b, bytes)));
}

#[test]
fn the_memory_of_today_does_not_open_the_generation_before_last() {
    let (mut a, mut b) = acquainted();
    let make = |a: &mut Envelope| [sealed_for(a, *B, b"sample").unwrap(), sealed_for_group(a, b"stream")];
    let now = after(0, [&mut a, &mut b]);
    assert!(understand_each_other(&mut a, &mut b, now));
    let long_ago = make(&mut a);
    let ms = next_generation(&mut a, &mut b, 0);
    assert!(understand_each_other(&mut a, &mut b, at(ms)));
    assert!(long_ago.iter().all(|bytes| some_key_opens(&mut b, bytes)), "held for what comes late");
    let before = make(&mut a);
    let ms = next_generation(&mut a, &mut b, ms);
    assert!(!long_ago.iter().any(|bytes| some_key_opens(&mut b, bytes)));
    assert!(before.iter().all(|bytes| some_key_opens(&mut b, bytes)));
    // What is late by less than a generation still arrives, once.
    for bytes in before {
        assert!(opened(&mut b, &bytes, at(ms)).is_ok() && opened(&mut b, &bytes, at(ms)).is_err());
    }
    assert!(understand_each_other(&mut a, &mut b, at(ms)));
}

#[test]
fn of_a_node_that_fell_silent_no_keys_are_kept() {
    let (mut a, mut b) = acquainted();
    let last = sealed_for(&mut a, *B, b"last").unwrap();
    let (recorded, lost) = (sealed(&mut a, HELLO), sealed(&mut a, HELLO));
    assert!(deliver(&recorded, &mut a, &mut b, at(1)).is_ok());
    assert!(some_key_opens(&mut b, &last));
    let mut ms = 0;
    while ms < 61_000 {
        ms += 1_000;
        b.handle_timeout(at(ms));
    }
    assert!(!some_key_opens(&mut b, &last));
    assert_eq!((members(&mut b).peers.len(), members(&mut b).silent.len()), (0, 1));
    assert_eq!(sealed_for(&mut b, *A, b"x"), None, "nor what B seals with for it");
    // An attacker replays what it sealed, and forges: it stays silent.
    assert_eq!(opened(&mut b, &recorded, at(ms)), Err(Refused::Replayed));
    let mut forged = lost.clone();
    forged[HEADER_BYTES] ^= 1;
    assert_eq!(opened(&mut b, &forged, at(ms)), Err(Refused::WrongKey));
    // Its hello is accepted at once, and its samples after a round trip.
    a.handle_timeout(at(ms));
    let hello = sealed(&mut a, HELLO);
    assert!(deliver(&hello, &mut a, &mut b, at(ms)).is_ok());
    assert!(understand_each_other(&mut a, &mut b, at(ms + 1)));
}

#[test]
fn a_node_that_missed_many_generations_asks_again() {
    for generations in [1_u64, 4, 5, 63, 64, 65, 1_000] {
        let (mut a, mut b) = acquainted();
        members(&mut a).sending.skip(generations << 16);
        let data = sealed_for(&mut a, *B, b"data").unwrap();
        assert_eq!(opened(&mut b, &data, at(1_500)).is_ok(), generations <= 4, "{generations}");
        greet(&mut a, &mut b, at(2_000));
        assert!(understand_each_other(&mut a, &mut b, at(2_001)), "{generations}");
    }
}

#[test]
fn forged_datagrams_far_ahead_change_nothing() {
    let (mut a, mut b) = acquainted();
    let mut forged = sealed_for(&mut a, *B, b"data").unwrap();
    for generation in 0..100_u64 {
        forged[24..32].copy_from_slice(&(generation << 16 | 5).to_le_bytes());
        assert!(opened(&mut b, &forged, at(1)).is_err());
    }
    assert!(understand_each_other(&mut a, &mut b, at(2)));
}

#[test]
fn a_member_whose_key_is_removed_reads_nothing_after_the_change_and_nobody_else_misses_a_datagram() {
    let (mut a, mut b) = acquainted();
    let mut captured = envelope(3, 7);
    greet(&mut captured, &mut a, at(0));
    greet(&mut captured, &mut a, at(0));
    assert!(understand_each_other(&mut a, &mut captured, at(1)));
    let mut ms = 1_000;
    for step in [[7, 8].as_slice(), &[8, 7], &[8]] {
        for first in [true, false] {
            if first { &mut a } else { &mut b }.set_keys(&keys(step), at(ms));
            for _ in 0..20 {
                ms += 500;
                let now = after(ms, [&mut a, &mut b]);
                assert!(understand_each_other(&mut a, &mut b, now), "{step:?} {ms} ms");
                // Each a hello a second, which the captured one hears as well.
                let hello = sealed(&mut a, HELLO);
                let _ = deliver(&hello, &mut a, &mut captured, now);
                let again = deliver(&hello, &mut a, &mut b, now);
                assert!(again.is_ok(), "{step:?} {ms} ms {again:?}");
                let hello = sealed(&mut b, HELLO);
                let _ = deliver(&hello, &mut b, &mut a, now);
            }
        }
    }
    let group = sealed_for_group(&mut a, b"group");
    assert!(opened(&mut b, &group, at(ms)).is_ok());
    assert!(opened(&mut captured, &group, at(ms)).is_err());
    assert!(!some_key_opens(&mut captured, &group));
    assert_eq!(sealed_for(&mut a, number(&captured), b"x"), None, "it is a stranger");
    let forged = sealed_for_group(&mut captured, b"forged");
    assert!(opened(&mut a, &forged, at(ms)).is_err());
}
