//! The worked example of `docs/spec/envelope.md`, whose bytes were computed by another program (Python's `cryptography`).

use super::super::chain::Chain;
use super::super::handshake::{self, Ask, Identity, SenderKeys, Side};
use super::super::peer::Pair;
use super::super::swarm::Swarm;
use super::*;

const A_NUMBER: &str = "1a92f23852dc908d97316a3b13578281";
const B_NUMBER: &str = "cfa570c653bd212b10a9cb551fd7a1b4";
const CHALLENGE: &str = "ac01b2209e86354fb853237b5de0f4fab13c7fcbf433a61c019369617fecf10b406332643cd96c3950edfa27\
         860b8b68845b61262c8dce45148de4b925f4bfb64535689827eb7b56e2c1dca79a403f30f360802eab9d1e14\
         8bed101fce07676269477789794a29a74fee308aa7a6e7e7603859dacc4c8f452e90a2d1a486f25675a264e2\
         2a848f00d4c93c21d835f6a73a01d18605cfcf98d7b4030fb9aac1a653b5a0e31a54c9c290d9e92279c51c6a";
const ANSWER: &str = "50a61409b1ddd0325e9b16b700e719e9772c07000b1bd7786e907c653d20495d5ec18d41b347f952893798c7\
         467194c6923fc82c7422925cd1a552382d338e38c55174cc12950323d93c42fe1454ac98c1c2f98fbe4c8b9a\
         015c047cb0f7c8336f3caa85b3acf5734ded9e9dea83250b18b47275102da7d28924bbf9f0f789f351bf2921\
         90aba2b8bb89fd54b8a8c3967394334423e0b9ad8334e4ee260182138a4e162629fb57d0060e7354ecf1d10e";
const PAIR: &str = "dc52672cf0930be15c52d8c5bc82a2ad638e2f1336b1f61af406cdd49432c9e2";
const PAIR_ID: [u8; 8] = [210, 105, 248, 136, 9, 114, 56, 89];
const GENERATION_8: &str = "7f1eb9db9092774568a3e2508fc9b24a5d5bf812c76e9d3e670d187b4b223ef5";
const SEALED: &str = "4e435458020409001a92f23852dc908d97316a3b135782810000080000000000df02de3c13cacd7c785103da\
         927cf7dcce4bbc4ca2cf";
const DERIVED_SEALED: &str = "4e435458020009001a92f23852dc908d97316a3b135782810100000000000000b064c0066e24ccaa24816ed6\
         aecb0b7f3fccd9108f";

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn secret(byte: u8) -> Secret {
    Secret::from_bytes([byte; 32])
}

#[test]
fn challenge_answer_and_keys_are_those_of_the_worked_example() {
    let [a, b] = [1, 2].map(|byte| Identity::new(secret(byte)));
    assert_eq!([hex(&a.number().0), hex(&b.number().0)], [A_NUMBER, B_NUMBER]);
    let (swarm, ask) = (secret(3), Ask { receives_by: 1, sends_by: 2 });
    let asks = Side { me: &a, other: b.number(), pre_shared: &swarm, seed: &secret(4) };
    let challenge = handshake::challenge(asks, ask).unwrap();
    assert_eq!(hex(&challenge), CHALLENGE);
    let answers = Side { me: &b, other: a.number(), pre_shared: &swarm, seed: &secret(5) };
    let sender_keys = |asked| {
        assert_eq!(asked, ask);
        let next = Some((10, secret(8)));
        SenderKeys { is_pair_new: true, generation: 7, now: (9, secret(6)), next }
    };
    let handshake::Answer { message: answer, pair, .. } =
        handshake::answer(answers, &challenge, sender_keys).unwrap();
    assert_eq!((hex(&answer).as_str(), hex(pair.bytes()).as_str()), (ANSWER, PAIR));
    let (keys, same) = handshake::finish(asks, ask, &answer).unwrap();
    assert_eq!((keys.is_pair_new, keys.generation, same.bytes()), (true, 7, pair.bytes()));
    assert_eq!((keys.now.0, keys.now.1.bytes()), (9, &[6; 32]));
    assert!(keys.next.is_some_and(|(epoch, secret)| epoch == 10 && secret.bytes() == &[8; 32]));
    assert_eq!(Pair::new(same).id, u64::from_le_bytes(PAIR_ID));

    let mut chain = Chain::new(secret(6), 7);
    chain.advance_to(8);
    assert_eq!(hex(chain.secret().bytes()), GENERATION_8);
    let header = Header { kind: Kind::Node, epoch: 9, from: a.number(), counter: 8 << 16 };
    let mut out = [[0; HEADER_BYTES].as_slice(), b"sample"].concat();
    header::seal(&chain.node_key(&pair), &header, &mut out);
    assert_eq!(hex(&out), SEALED);
}

#[test]
fn what_is_for_all_members_is_sealed_as_in_the_worked_example() {
    let a = Identity::new(secret(1));
    let swarm = Swarm::new(&SwarmKey::from_bytes([7; 32]));
    let header = Header { kind: Kind::Open, epoch: 9, from: a.number(), counter: 1 };
    let mut out = [[0; HEADER_BYTES].as_slice(), b"hello"].concat();
    header::seal(&swarm.sender_key(a.number()), &header, &mut out);
    assert_eq!(hex(&out), DERIVED_SEALED);
}
