//! Two machines that go on from one memory.

use super::handshakes::{opened, sealed_for, sealed_for_group, understand_each_other};
use super::*;

/// Two copies of node A, the first of which has sealed more, and B, which knows A.
fn copies() -> (Envelope, Envelope, Envelope) {
    let (mut ahead, mut b) = acquainted();
    assert!(understand_each_other(&mut ahead, &mut b, at(1)));
    let behind = envelope(1, 7);
    (ahead, behind, b)
}

/// Carries everything between the two until nothing is left; `seen` gets each datagram.
fn settle(a: &mut Envelope, b: &mut Envelope, now: Instant<Raw>, mut seen: impl FnMut(&[u8])) {
    let [of_a, of_b] = [1, 2].map(|host| SocketAddr::from(([10, 9, 0, host], 7_411)));
    loop {
        let (there, back) = (a.poll_transmit(), b.poll_transmit());
        if there.is_none() && back.is_none() {
            return;
        }
        for (bytes, to, from) in [(there, &mut *b, of_a), (back, &mut *a, of_b)] {
            if let Some((_, mut bytes)) = bytes {
                seen(&bytes);
                assert!(to.open(&mut bytes, from, now).is_err());
            }
        }
    }
}

#[test]
fn of_two_copies_the_one_that_is_behind_ends_when_it_hears_the_other() {
    let (mut ahead, mut behind, mut b) = copies();
    // Nothing to see for the one that is ahead.
    let hello = sealed(&mut behind, HELLO);
    assert!(opened(&mut ahead, &hello, at(2)).is_err() && ahead.poll_transmit().is_none());
    let hello = sealed(&mut ahead, HELLO);
    assert!(opened(&mut behind, &hello, at(2)).is_err() && !behind.is_copied());
    settle(&mut behind, &mut ahead, at(2), |_| {});
    assert!(behind.is_copied() && !ahead.is_copied());
    // It seals nothing any more: an empty datagram is all there is to send.
    assert_eq!((sealed(&mut behind, HELLO).len(), sealed_for_group(&mut behind, b"x").len()), (0, 0));
    assert_eq!(sealed_for(&mut behind, *B, b"x"), None);
    assert!(understand_each_other(&mut ahead, &mut b, at(3)));
}

#[test]
fn a_member_that_lies_and_an_echo_end_nobody() {
    let (mut ahead, mut behind, _) = copies();
    // As a member makes it that has the swarm key and another node's number: with a counter of its choice.
    let hello = sealed(&mut ahead, HELLO);
    let mut other = envelope(3, 7);
    for round in 0..50 {
        let now = at(10 + 100 * round);
        assert!(opened(&mut behind, &hello, now).is_err());
        while let Some((_, challenge)) = behind.poll_transmit() {
            // Handed back, and to a member that has not the secret.
            assert!(opened(&mut behind, &challenge, now).is_err());
            assert!(opened(&mut other, &challenge, now).is_err());
        }
        assert!(other.poll_transmit().is_none_or(|(_, answer)| opened(&mut behind, &answer, now).is_err()));
        assert!(!behind.is_copied());
    }
    // An answer of long ago to another challenge.
    let mut answers = Vec::new();
    members(&mut ahead).sending.skip(1_000);
    let hello = sealed(&mut ahead, HELLO);
    assert!(opened(&mut behind, &hello, at(20_000)).is_err());
    let (_, challenge) = behind.poll_transmit().unwrap();
    assert!(opened(&mut ahead, &challenge, at(20_000)).is_err());
    answers.extend(std::iter::from_fn(|| ahead.poll_transmit()));
    assert_eq!(answers.len(), 1);
    assert!(opened(&mut behind, &hello, at(40_000)).is_err());
    assert!(opened(&mut behind, &answers[0].1, at(40_000)).is_err() && !behind.is_copied());
}

#[test]
fn a_copy_is_asked_again_when_the_challenge_is_lost_and_no_datagram_brings_three_times_its_bytes() {
    let (mut ahead, mut behind, _) = copies();
    for round in 0..5 {
        let hello = sealed(&mut ahead, HELLO);
        assert!(opened(&mut behind, &hello, at(100 * round)).is_err());
        let (_, challenge) = behind.poll_transmit().expect("asked again");
        assert!(challenge.len() <= 3 * hello.len());
        assert_eq!(behind.poll_transmit(), None);
    }
    let hello = sealed(&mut ahead, HELLO);
    assert!(opened(&mut behind, &hello, at(600)).is_err());
    settle(&mut behind, &mut ahead, at(600), |bytes| assert_eq!(bytes.len(), CHALLENGE_BYTES));
    assert!(behind.is_copied());
}
