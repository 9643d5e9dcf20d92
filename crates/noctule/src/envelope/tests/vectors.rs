//! The worked example of `docs/spec/envelope.md`, read from the page; another program computed its bytes.

use super::super::chain::Chain;
use super::super::handshake::{self, Ask, Identity, SenderKeys, Side};
use super::super::peer::Pair;
use super::super::swarm::Swarm;
use super::*;

const PAGE: &str = include_str!("../../../../../docs/spec/envelope.md");

/// The hexadecimal digits below the line of the worked example that begins so.
fn worked(label: &str) -> String {
    let example = PAGE.split_once("## Worked example").unwrap().1.split("```").nth(1).unwrap();
    let below = example.lines().skip_while(|line| !line.starts_with(label)).skip(1);
    below.take_while(|line| line.bytes().all(|digit| digit.is_ascii_hexdigit())).collect()
}

/// The numbers of challenger and responder, which the example's text names.
fn numbers() -> Vec<&'static str> {
    let text = PAGE.split_once("## Worked example").unwrap().1.split_once("Node numbers: `").unwrap().1;
    text.split('`').step_by(2).take(2).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn secret(byte: u8) -> Secret {
    Secret::from_bytes([byte; 32])
}

#[test]
fn challenge_answer_and_keys_are_those_of_the_worked_example() {
    let [a, b] = [1, 2].map(|byte| Identity::new(secret(byte)));
    assert_eq!(vec![hex(&a.number().0), hex(&b.number().0)], numbers());
    let (swarm, ask) = (secret(3), Ask { receives_by: 1, sends_by: 2 });
    let asks = Side { me: &a, other: b.number(), pre_shared: &swarm, seed: &secret(4) };
    let challenge = handshake::challenge(asks, ask).unwrap();
    assert_eq!(hex(&challenge), worked("challenge"));
    let answers = Side { me: &b, other: a.number(), pre_shared: &swarm, seed: &secret(5) };
    let sender_keys = |asked| {
        assert_eq!(asked, ask);
        let next = Some((10, secret(8)));
        SenderKeys { is_pair_new: true, generation: 7, now: (9, secret(6)), next }
    };
    let handshake::Answer { message: answer, pair, .. } =
        handshake::answer(answers, &challenge, sender_keys).unwrap();
    assert_eq!((hex(&answer), hex(pair.bytes())), (worked("answer"), worked("P")));
    let (keys, same) = handshake::finish(asks, ask, &answer).unwrap();
    assert_eq!((keys.is_pair_new, keys.generation, same.bytes()), (true, 7, pair.bytes()));
    assert_eq!((keys.now.0, keys.now.1.bytes()), (9, &[6; 32]));
    assert!(keys.next.is_some_and(|(epoch, secret)| epoch == 10 && secret.bytes() == &[8; 32]));
    assert_eq!(hex(&Pair::new(same).id.to_le_bytes()), worked("number of P"));

    let mut chain = Chain::new(secret(6), 7);
    chain.advance_to(8);
    assert_eq!(hex(chain.secret().bytes()), worked("C₈"));
    let header = Header { kind: Kind::Node, epoch: 9, from: a.number(), counter: 8 << 16 };
    let mut out = [[0; HEADER_BYTES].as_slice(), b"sample"].concat();
    header::seal(&chain.node_key(&pair), &header, &mut out);
    assert_eq!(hex(&out), worked("\"sample\""));
}

#[test]
fn what_is_for_all_members_is_sealed_as_in_the_worked_example() {
    let a = Identity::new(secret(1));
    let swarm = Swarm::new(&SwarmKey::from_bytes([7; 32]));
    let header = Header { kind: Kind::Open, epoch: 9, from: a.number(), counter: 1 };
    let mut out = [[0; HEADER_BYTES].as_slice(), b"hello"].concat();
    header::seal(&swarm.sender_key(a.number()), &header, &mut out);
    assert_eq!(hex(&out), worked("\"hello\""));
}
