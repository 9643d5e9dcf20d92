//! Challenges and answers between nodes, over a network that loses, repeats and reorders, and among members that lie.

use super::super::handshake::{self, Ask, Identity, MESSAGE_BYTES, Side};
use super::super::members::ANSWERS_PER_S;
use super::*;

/// A datagram for one node.
pub(super) fn sealed_for(from: &mut Envelope, to: NodeId, body: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    from.begin(&mut out);
    out.extend_from_slice(body);
    from.seal_for(to, &mut out).then_some(out)
}

/// A datagram for a group.
pub(super) fn sealed_for_group(from: &mut Envelope, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    from.begin(&mut out);
    out.extend_from_slice(body);
    from.seal_for_group(&mut out);
    out
}

/// Body of an opened datagram, and the key that opened it.
pub(super) fn opened(
    to: &mut Envelope,
    bytes: &[u8],
    now: Instant<Raw>,
) -> Result<(Vec<u8>, SealedWith), Refused> {
    to.open(&mut bytes.to_vec(), address(*A), now).map(|opened| (opened.body.to_vec(), opened.with))
}

/// Hellos both ways, and what follows from them.
pub(super) fn greet(a: &mut Envelope, b: &mut Envelope, now: Instant<Raw>) {
    let hello = sealed(a, HELLO);
    let _ = deliver(&hello, a, b, now);
    let hello = sealed(b, HELLO);
    let _ = deliver(&hello, b, a, now);
}

/// Whether each opens what the other seals for it and for a group.
pub(super) fn understand_each_other(a: &mut Envelope, b: &mut Envelope, now: Instant<Raw>) -> bool {
    understands(a, b, now) && understands(b, a, now)
}

fn understands(from: &mut Envelope, to: &mut Envelope, now: Instant<Raw>) -> bool {
    let alone = sealed_for(from, number(to), b"alone").map(|bytes| opened(to, &bytes, now));
    let group = opened(to, &sealed_for_group(from, b"group"), now);
    alone == Some(Ok((b"alone".to_vec(), SealedWith::PairKey)))
        && group == Ok((b"group".to_vec(), SealedWith::SenderKey))
}

#[test]
fn the_kind_of_a_datagram_says_which_keys_its_sender_has() {
    let (mut a, mut b) = acquainted();
    assert!(understand_each_other(&mut a, &mut b, at(1)));
    let all = sealed(&mut a, b"all");
    assert_eq!(opened(&mut b, &all, at(1)), Ok((b"all".to_vec(), SealedWith::SwarmKey)));
    let bytes = sealed_for(&mut a, *B, b"x").unwrap();
    assert_eq!(bytes.len(), 1 + OVERHEAD_BYTES, "the length of the seal is what it was");
    let mut other = envelope(3, 7);
    greet(&mut a, &mut other, at(2));
    assert_eq!(opened(&mut other, &bytes, at(3)).ok(), None, "it is for another one");
}

#[test]
fn nothing_is_sealed_for_a_node_that_could_not_open_it() {
    let mut a = envelope(1, 7);
    assert_eq!(sealed_for(&mut a, *B, b"x"), None);
}

#[test]
fn the_state_of_a_handshake_is_its_seed() {
    let [me, other] = [1, 2].map(|byte| Identity::new(Secret::from_bytes([byte; 32])));
    let [swarm, seed] = [3, 4].map(|byte| Secret::from_bytes([byte; 32]));
    let side = Side { me: &me, other: other.number(), pre_shared: &swarm, seed: &seed };
    let challenge = handshake::challenge(side, Ask::default()).unwrap();
    assert_eq!(challenge.len(), MESSAGE_BYTES);
    assert_eq!(handshake::challenge(side, Ask::default()).unwrap(), challenge);
}

#[test]
fn nobody_answers_in_the_name_of_another() {
    let [victim, asker, liar] = [1, 2, 3].map(|byte| Identity::new(Secret::from_bytes([byte; 32])));
    let [swarm, seed] = [4, 5].map(|byte| Secret::from_bytes([byte; 32]));
    let ask = Ask { receives_by: 1, sends_by: 2 };
    let asks = Side { me: &asker, other: victim.number(), pre_shared: &swarm, seed: &seed };
    let challenge = handshake::challenge(asks, ask).unwrap();
    let keys = || members(&mut envelope(9, 7)).sending.sender_keys(true);
    let answer = |me: &Identity, pre_shared: &Secret| {
        let side = Side { me, other: asker.number(), pre_shared, seed: &seed };
        handshake::answer(side, &challenge, |asked| {
            assert_eq!(asked, ask);
            keys()
        })
    };
    let right = answer(&victim, &swarm).unwrap();
    let (learned, same) = handshake::finish(asks, ask, &right.message).unwrap();
    assert_eq!((learned.now.1.bytes(), same.bytes()), (right.keys.now.1.bytes(), right.pair.bytes()));
    // A member has the swarm key and may call itself what it likes; the secret of that number it has not.
    let forged = answer(&liar.under(victim.number()), &swarm).unwrap();
    assert!(handshake::finish(asks, ask, &forged.message).is_none());
    // A node without the swarm key cannot even begin.
    assert!(answer(&victim, &Secret::from_bytes([9; 32])).is_none());
    // Nor challenge in another's name.
    let liar = liar.under(asker.number());
    let forged = handshake::challenge(Side { me: &liar, ..asks }, ask).unwrap();
    let answers = Side { me: &victim, other: asker.number(), pre_shared: &swarm, seed: &seed };
    assert!(handshake::answer(answers, &forged, |_| panic!("answered")).is_none());
}

#[test]
fn nodes_that_challenge_each_other_at_once_need_one_round_trip() {
    let (mut a, mut b) = (envelope(1, 7), envelope(2, 7));
    let hellos = [sealed(&mut a, HELLO), sealed(&mut b, HELLO)];
    let _ = opened(&mut b, &hellos[0], at(0));
    let _ = opened(&mut a, &hellos[1], at(0));
    for _ in 0..2 {
        // Both datagrams of a round cross each other.
        let to_b: Vec<_> = std::iter::from_fn(|| a.poll_transmit()).collect();
        let to_a: Vec<_> = std::iter::from_fn(|| b.poll_transmit()).collect();
        assert_eq!((to_a.len(), to_b.len()), (1, 1), "a challenge, then an answer");
        let _ = opened(&mut b, &to_b[0].1, at(0));
        let _ = opened(&mut a, &to_a[0].1, at(0));
    }
    assert!(a.poll_transmit().is_none() && b.poll_transmit().is_none());
    assert!(understand_each_other(&mut a, &mut b, at(1)));
}

#[test]
fn a_node_that_begins_anew_is_another_one_and_is_understood() {
    let (mut a, mut b) = acquainted();
    let mut again = envelope(4, 7);
    greet(&mut again, &mut b, at(100));
    assert!(understand_each_other(&mut again, &mut b, at(101)));
    assert!(understand_each_other(&mut a, &mut b, at(101)), "the other one is known still");
}

#[test]
fn a_node_that_has_forgotten_another_one_understands_it_again_after_hellos() {
    for a_forgets in [true, false] {
        let (mut a, mut b) = acquainted();
        if a_forgets { &mut a } else { &mut b }.forget_all();
        greet(&mut a, &mut b, at(2_000));
        greet(&mut a, &mut b, at(4_000));
        assert!(understand_each_other(&mut a, &mut b, at(4_001)), "{a_forgets}");
    }
}

#[test]
fn handshakes_and_datagrams_of_the_past_change_nothing() {
    let (mut a, mut b) = (envelope(1, 7), envelope(2, 7));
    let mut recorded = vec![sealed(&mut a, HELLO), sealed(&mut b, HELLO)];
    let _ = opened(&mut b, &recorded[0], at(0));
    for _ in 0..4 {
        while let Some((_, bytes)) = a.poll_transmit() {
            let _ = opened(&mut b, &bytes, at(0));
            recorded.push(bytes);
        }
        while let Some((_, bytes)) = b.poll_transmit() {
            let _ = opened(&mut a, &bytes, at(0));
            recorded.push(bytes);
        }
    }
    let data = sealed_for(&mut a, *B, b"data").unwrap();
    assert!(opened(&mut b, &data, at(1)).is_ok());
    recorded.push(data);
    let hello = sealed(&mut b, HELLO);
    assert!(opened(&mut a, &hello, at(1)).is_ok());
    for s in [1, 5, 15, 300] {
        for bytes in &recorded[2..] {
            assert!(opened(&mut a, bytes, at(s * 1_000)).is_err());
            assert!(opened(&mut b, bytes, at(s * 1_000)).is_err());
        }
        // What they provoke goes wherever the attacker likes.
        for _ in 0..2 {
            let provoked: Vec<_> =
                std::iter::from_fn(|| a.poll_transmit().or_else(|| b.poll_transmit())).collect();
            for (_, bytes) in provoked {
                let _ = opened(&mut a, &bytes, at(s * 1_000));
                let _ = opened(&mut b, &bytes, at(s * 1_000));
            }
        }
        assert!(understand_each_other(&mut a, &mut b, at(s * 1_000 + 1)), "after {s} s");
    }
}

#[test]
fn a_challenge_that_was_held_up_does_not_undo_a_newer_handshake() {
    let (mut a, mut b) = (envelope(1, 7), envelope(2, 7));
    let hello = sealed(&mut a, HELLO);
    let _ = opened(&mut b, &hello, at(0));
    let (_, held_up) = b.poll_transmit().unwrap();
    // It is never answered; after 10 s another one is made.
    let _ = opened(&mut b, &hello, at(11_000));
    let (_, challenge) = b.poll_transmit().unwrap();
    let _ = opened(&mut a, &challenge, at(11_000));
    while let Some((_, bytes)) = a.poll_transmit() {
        let _ = opened(&mut b, &bytes, at(11_000));
    }
    assert_eq!(opened(&mut a, &held_up, at(12_000)), Err(Refused::Replayed));
    let data = sealed_for(&mut a, *B, b"data").unwrap();
    assert!(opened(&mut b, &data, at(12_000)).is_ok());
}

#[test]
fn a_flood_of_challenges_by_members_has_a_limit_for_each_address_and_in_all() {
    let mut b = envelope(2, 7);
    let hello = sealed(&mut b, HELLO);
    let (mut answered, mut by_address) = (0, Vec::new());
    for host in 1..=6_u8 {
        let before = answered;
        for number in 0..ANSWERS_PER_S / 3 {
            let mut seed = [host; 32];
            seed[..4].copy_from_slice(&number.to_le_bytes());
            let mut other = Envelope::new(&keys(&[7]), seed, 1);
            let source = SocketAddr::from(([10, 0, 1, host], 1));
            let _ = other.open(&mut hello.clone(), source, at(0));
            let (_, mut challenge) = other.poll_transmit().unwrap();
            let _ = b.open(&mut challenge, source, at(i64::from(number)));
            let sent = std::iter::from_fn(|| b.poll_transmit());
            answered += sent.filter(|(_, bytes)| bytes[5] == Kind::Answer as u8).count();
        }
        by_address.push(answered - before);
    }
    let most = ANSWERS_PER_S as usize;
    assert_eq!(answered, most);
    assert!(by_address.iter().all(|count| *count <= most / 4), "{by_address:?}");
    assert!(b.counters().of(Refused::Busy) > 0);
}

#[test]
fn a_challenge_that_is_repeated_gets_the_same_answer() {
    let (mut a, mut b) = (envelope(1, 7), envelope(2, 7));
    let hello = sealed(&mut a, HELLO);
    let mut answers = Vec::new();
    for ms in [0, 5, 20, 40] {
        let _ = opened(&mut b, &hello, at(ms));
        while let Some((_, challenge)) = b.poll_transmit() {
            let _ = opened(&mut a, &challenge, at(ms));
            answers.extend(std::iter::from_fn(|| a.poll_transmit()).filter(|(_, bytes)| bytes[5] == 2));
        }
    }
    assert_eq!(answers.len(), 3, "not before 20 ms");
    // The last one alone is enough.
    let (_, last) = answers.pop().unwrap();
    let _ = opened(&mut b, &last, at(41));
    for (_, late) in answers {
        assert!(opened(&mut b, &late, at(42)).is_err());
    }
    let data = sealed_for(&mut a, *B, b"data").unwrap();
    assert!(opened(&mut b, &data, at(43)).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn a_network_that_loses_repeats_and_reorders_only_delays(seed in any::<[u8; 32]>()) {
        let (mut a, mut b) = (envelope(1, 7), envelope(2, 7));
        let mut chance = seed.iter().cycle().map(|byte| byte % 5);
        let mut on_the_way: Vec<(bool, Vec<u8>)> = Vec::new();
        let mut times_opened = std::collections::BTreeMap::new();
        for step in 0..100_i64 {
            let now = at(step * 30);
            for (is_a, from) in [(true, &mut a), (false, &mut b)] {
                let mut sent = vec![sealed(from, HELLO)];
                sent.extend(std::iter::from_fn(|| from.poll_transmit()).map(|(_, bytes)| bytes));
                let to = if is_a { *B } else { *A };
                sent.extend(sealed_for(from, to, &step.to_le_bytes()));
                for bytes in sent {
                    match chance.next() {
                        Some(0 | 1) => {}
                        Some(2) => on_the_way.extend([(is_a, bytes.clone()), (is_a, bytes)]),
                        _ => on_the_way.push((is_a, bytes)),
                    }
                }
            }
            if chance.next() == Some(4) {
                on_the_way.reverse();
            }
            let late = on_the_way.len().min(chance.next().unwrap_or(0) as usize);
            for (from_a, bytes) in on_the_way.drain(late..) {
                let opened = opened(if from_a { &mut b } else { &mut a }, &bytes, now);
                if let Ok((body, SealedWith::PairKey)) = opened {
                    *times_opened.entry((from_a, body)).or_insert(0) += 1;
                }
            }
        }
        prop_assert!(times_opened.values().all(|times| *times == 1));
        greet(&mut a, &mut b, at(8_000));
        greet(&mut a, &mut b, at(10_000));
        prop_assert!(understand_each_other(&mut a, &mut b, at(10_001)));
    }

    #[test]
    fn arbitrary_messages_are_neither_challenges_nor_answers(
        message in proptest::collection::vec(any::<u8>(), 0..250),
    ) {
        let [me, other] = [1, 2].map(|byte| Identity::new(Secret::from_bytes([byte; 32])));
        let seed = Secret::from_bytes([3; 32]);
        let side = Side { me: &me, other: other.number(), pre_shared: &seed, seed: &seed };
        prop_assert!(handshake::answer(side, &message, |_| panic!("answered")).is_none());
        prop_assert!(handshake::finish(side, Ask::default(), &message).is_none());
    }
}
