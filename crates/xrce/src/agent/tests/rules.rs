//! Rules of the protocol of which no conversation was captured.

use super::*;
use crate::objects::OBJECTS_MAX;

const ALREADY_EXISTS: u8 = Status::AlreadyExists as u8;
const MATCHED: u8 = Status::Matched as u8;
const MISMATCH: u8 = Status::Mismatch as u8;
const OK: u8 = Status::Ok as u8;

/// CREATE on best-effort stream 1. Gives the status in its answer.
fn create(bench: &mut Bench, sequence: u16, create: &[u8]) -> u8 {
    let [low, high] = sequence.to_le_bytes();
    let sent = bench.client_says(HERE, &[&[0x81, 1, low, high], create].concat());
    assert_eq!(kinds(&sent), [id::STATUS]);
    sent[0][12]
}

#[test]
fn what_becomes_of_an_object_that_is_there_is_for_the_flags_of_its_creation_to_say() {
    const REUSE: u8 = 2;
    const REPLACE: u8 = 4;
    // Reliable, keep last and transient local, as the writer that is there; and without transient local.
    let (same, other) = ("0B", "03");
    for (flags, qos, status, is_replaced) in [
        (0, same, ALREADY_EXISTS, false),
        (0, other, ALREADY_EXISTS, false),
        (REUSE, same, MATCHED, false),
        (REUSE, other, MISMATCH, false),
        (REPLACE, same, OK, false),
        (REPLACE, other, OK, true),
        (REUSE | REPLACE, same, MATCHED, false),
        (REUSE | REPLACE, other, OK, true),
    ] {
        let mut bench = on_a_slow_line();
        bench.events.clear();
        let writer = [
            vec![id::CREATE, 1 | flags],
            bytes("19 00 00 20 00 15 05 03 00 00 0B 00 00 00 00 12 01 00"),
            bytes(qos),
            bytes("00 00 00 00 00 00 00 13"),
        ];
        assert_eq!(create(&mut bench, 0, &writer.concat()), status, "flags {flags}, qos {qos}");
        let count = |is: fn(&Event) -> bool| bench.events.iter().filter(|event| is(event)).count();
        let closed = count(|event| matches!(event, Event::Closed { .. }));
        let opened = count(|event| matches!(event, Event::Opened(_)));
        assert_eq!((closed, opened), (usize::from(is_replaced), usize::from(is_replaced)), "flags {flags}");
        assert_eq!(bench.agent.counters().refused_full, 0);
    }
}

#[test]
fn a_client_may_have_so_many_objects_and_one_more_is_refused_and_counted() {
    let mut bench = Bench::new();
    bench.client_says(HERE, &bytes(CREATE_CLIENT));
    let participant = "01 01 10 00 00 0A 00 11 01 03 00 00 02 00 00 00 00 00 00 00";
    assert_eq!(create(&mut bench, 0, &bytes(participant)), OK);
    for number in 1..=OBJECTS_MAX as u16 {
        let topic = [
            bytes("01 01 22 00 00 0B"),
            (number << 4 | 2).to_be_bytes().to_vec(),
            bytes(
                "02 03 00 00 14 00 00 00 05 00 00 00 72 74 2F 74 00 00 01 00 02 00 00 00 54 00 00 00 00 11",
            ),
        ];
        let is_full = usize::from(number) == OBJECTS_MAX;
        let expected = if is_full { Status::Resources as u8 } else { OK };
        assert_eq!(create(&mut bench, number, &topic.concat()), expected, "topic {number}");
        assert_eq!(bench.agent.counters().refused_full, u64::from(is_full));
    }
}

#[test]
fn a_session_that_carries_its_key_may_come_from_anywhere_and_is_answered_there() {
    let (key, there) = ([0xAA, 0xAA, 0xBB, 0xBB], ClientAddress::Serial(9));
    let mut bench = Bench::new();
    let mut introduction = bytes(CREATE_CLIENT);
    introduction[20] = 1;
    let sent = bench.client_says(HERE, &introduction);
    assert_eq!(sent[0][..9], [&[1, 0, 0, 0][..], &key, &[id::STATUS_AGENT]].concat());
    let ping = [&[1, 0, 0, 0][..], &key, &bytes("02 01 08 00 00 0A FF FD 02 00 00 00")].concat();
    for place in [HERE, there, there, HERE] {
        bench.agent.handle_datagram(&ping, place, bench.stamp());
        let mut message = Vec::new();
        let transmit = bench.agent.poll_transmit(bench.now, &mut message).unwrap();
        assert_eq!((transmit.to, &message[4..8], message[8]), (place, &key[..], id::INFO));
        assert_eq!(bench.agent.clients().next().map(|client| client.address), Some(place));
    }
}

#[test]
fn what_is_answered_outside_of_a_session_is_of_no_stream() {
    let mut bench = Bench::new();
    let sent = bench.client_says(HERE, &bytes("80 81 05 00 02 01 08 00 00 0A FF FD 02 00 00 00"));
    assert_eq!(sent[0][..5], [0x80, 0, 0, 0, id::INFO]);
}

#[test]
fn a_sample_that_has_to_wait_for_its_pace_comes_when_its_time_has_come() {
    let mut bench = play(include_str!("../../../../../vectors/xrce/subscribe.txt"));
    // Any number on stream 1, one each 500 ms; two are there.
    let wish = "81 01 00 00 08 01 10 00 00 0F 00 16 01 00 00 01 FF FF 00 00 00 00 F4 01";
    assert_eq!(kinds(&bench.client_says(HERE, &bytes(wish))), [id::DATA]);
    assert!(bench.pass(Span::from_us(499_999)).is_empty());
    assert_eq!(kinds(&bench.pass(Span::from_us(1))), [id::DATA]);
}

#[test]
fn a_silent_client_is_asked_after_ten_seconds() {
    let mut bench = Bench::new();
    bench.client_says(HERE, &bytes(CREATE_CLIENT));
    assert!(bench.pass(Span::from_us(9_999_999)).is_empty());
    assert_eq!(bench.pass(Span::from_us(1)).len(), 1);
}
