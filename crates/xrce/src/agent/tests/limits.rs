//! Limits on a client, its requests and its messages, at the limit and one beyond it.

use super::*;
use crate::outbound::PIECES_MAX;
use crate::session::STREAMS_MAX;

/// A client whose reader gets, on `stream`, as many samples as there are. Two of them are there already.
fn reading_on(stream: u8) -> Bench {
    let mut bench = play(include_str!("../../../../../vectors/xrce/subscribe.txt"));
    let wish = [
        bytes("81 01 00 00 08 01 10 00 00 0F 00 16"),
        vec![stream],
        bytes("00 00 01 FF FF 00 00 00 00 00 00"),
    ];
    assert_eq!(kinds(&bench.client_says(HERE, &wish.concat())), [id::DATA; 2]);
    bench
}

#[test]
fn a_client_may_have_sixteen_properties() {
    for (properties, clients) in [(PROPERTIES_MAX, 1), (PROPERTIES_MAX + 1, 0)] {
        let mut message = bytes("80 00 00 00 00 01 00 00 58 52 43 45 01 00 01 0F AA AA BB BB 81 01 00 00");
        message.extend(properties.to_le_bytes());
        (0..properties)
            .for_each(|_| message.extend(bytes("04 00 00 00 61 62 63 00 04 00 00 00 64 65 66 00")));
        message.extend(bytes("FC 01"));
        let payload_bytes = u16::try_from(message.len() - 8).unwrap();
        message[6..8].copy_from_slice(&payload_bytes.to_le_bytes());
        let mut bench = Bench::new();
        bench.client_says(HERE, &message);
        assert_eq!(bench.agent.clients().count(), clients, "{properties} properties");
        assert_eq!(bench.agent.counters().malformed, 1 - clients as u64);
    }
}

#[test]
fn a_client_may_be_served_on_eight_streams_of_each_kind() {
    // Its answers go by stream 0x80 already.
    for streams in [1u8.., 0x80..] {
        let mut bench = play(include_str!("../../../../../vectors/xrce/subscribe.txt"));
        let reader = bench.readers[0].object;
        for (number, stream) in (0u8..).zip(streams).take(STREAMS_MAX + 1) {
            // One sample.
            let wish =
                [vec![0x81, 0x80, 6 + number, 0], bytes("08 01 08 00 00 0F 00 16"), vec![stream, 0, 0, 0]];
            let mut sent = bench.client_says(HERE, &wish.concat());
            sent.extend(bench.sample(reader, &[number; 4]));
            let delivered = sent.iter().filter(|message| message[4] == id::DATA).map(|message| message[1]);
            let refused = sent.iter().filter(|message| message[4] == id::STATUS).map(|message| message[12]);
            let (delivered, refused): (Vec<u8>, Vec<u8>) = (delivered.collect(), refused.collect());
            let has_room = usize::from(number) < STREAMS_MAX;
            let expected =
                if has_room { (vec![stream], vec![]) } else { (vec![], vec![Status::Resources as u8]) };
            assert_eq!((delivered, refused), expected, "stream {stream:#x}");
        }
    }
}

#[test]
fn a_sample_may_have_as_many_pieces_as_an_acknowledgement_can_name() {
    // Messages of 508 bytes: 500 of a sample with its header of 8 in each of 16.
    for (bytes, undeliverable) in [(16 * 500 - 8, 0), (16 * 500 - 7, 1)] {
        let mut bench = reading_on(0x80);
        let reader = bench.readers[0].object;
        bench.client_says(HERE, &self::bytes("81 00 00 00 0A 01 05 00 08 00 00 00 80"));
        let sent = bench.sample(reader, &vec![7; bytes]);
        let expected: &[u8] = if undeliverable == 0 { &[id::FRAGMENT] } else { &[] };
        assert_eq!((&kinds(&sent)[..], bench.agent.counters().undeliverable), (expected, undeliverable));
    }
}

#[test]
fn a_client_of_ours_may_be_sent_a_sample_in_a_thousand_pieces_and_one_more_is_named() {
    // Its messages have 508 bytes: 500 of a sample with its header of 8 in each.
    for (bytes, is_delivered) in [(8_001, true), (PIECES_MAX * 500 - 8, true), (PIECES_MAX * 500 - 7, false)]
    {
        let mut bench = on_a_slow_line();
        let mut whole = Vec::new();
        let mut sent = bench.sample(ObjectId([0, 0x16]), &vec![7; bytes]);
        let first = sent.first().map_or(0, |message| u16::from_le_bytes([message[2], message[3]]));
        let mut next = first;
        while !sent.is_empty() {
            assert!(sent.len() <= 4, "no more than it may hold");
            for message in &sent {
                assert_eq!((message[4], [message[2], message[3]]), (id::FRAGMENT, next.to_le_bytes()));
                whole.extend_from_slice(&message[8..]);
                next += 1;
            }
            let acknack =
                [self::bytes("81 00 00 00 0A 01 05 00"), next.to_le_bytes().to_vec(), vec![0, 0, 0x80]];
            sent = bench.client_says(HERE, &acknack.concat());
        }
        let expected = if is_delivered { bytes + 8 } else { 0 };
        assert_eq!((whole.len(), bench.agent.counters().undeliverable), (expected, u64::from(!is_delivered)));
        bench.drain();
        let is_named = bench.events.iter().any(|event| matches!(event, Event::Undeliverable { .. }));
        assert_eq!(is_named, !is_delivered);
    }
}

#[test]
fn a_sample_without_room_on_its_stream_waits_for_an_acknowledgement_and_not_for_a_time() {
    let mut bench = reading_on(0x80);
    let reader = bench.readers[0].object;
    let sent: Vec<_> = (0..5).flat_map(|number| bench.sample(reader, &[number; 4])).collect();
    assert_eq!(kinds(&sent), [id::DATA; 2], "four are on the way");
    let at = bench.agent.poll_timeout().unwrap();
    assert!(at - bench.now >= Span::from_ms(10), "the next thing to do is to ask the client, not at {at:?}");
    let sent = bench.client_says(HERE, &bytes("81 00 00 00 0A 01 05 00 09 00 00 00 80"));
    assert_eq!(kinds(&sent), [id::DATA; 3]);
}

#[test]
fn only_leave_may_be_taken_without_a_session() {
    let mut bench = Bench::new();
    let delete = |object: &str| bytes(&format!("80 00 00 00 03 01 04 00 00 02 {object}"));
    assert_eq!(kinds(&bench.client_says(HERE, &delete("FF FE"))), [id::STATUS]);
    assert!(bench.client_says(HERE, &delete("00 11")).is_empty());
    assert_eq!(bench.agent.counters().unknown_session, 1);
}

#[test]
fn a_sample_in_pieces_is_published_whole_and_pieces_of_pieces_are_refused() {
    let mut bench = on_a_slow_line();
    let published = |bench: &Bench| {
        let body = |event: &Event| match event {
            Event::Published { sample, .. } => Some(sample.body.to_vec()),
            _ => None,
        };
        bench.events.iter().filter_map(body).collect::<Vec<_>>()
    };
    bench.client_says(HERE, &bytes("81 80 07 00 0D 01 08 00 07 01 08 00 00 20 00 15"));
    assert!(published(&bench).is_empty());
    bench.client_says(HERE, &bytes("81 80 08 00 0D 03 04 00 01 02 03 04"));
    assert_eq!((published(&bench), bench.agent.counters().malformed), (vec![vec![1, 2, 3, 4]], 0));
    // A piece, the last, of which the whole is a piece.
    bench.client_says(HERE, &bytes("81 80 09 00 0D 03 08 00 0D 03 04 00 01 02 03 04"));
    assert_eq!((published(&bench).len(), bench.agent.counters().malformed), (1, 1));
}

#[test]
fn messages_of_a_client_are_counted_in_both_directions() {
    let mut bench = Bench::new();
    bench.client_says(HERE, &bytes(CREATE_CLIENT));
    for number in 1..=3 {
        assert_eq!(
            bench.client_says(HERE, &bytes("81 00 00 00 02 01 08 00 00 0A FF FD 02 00 00 00")).len(),
            1
        );
        let figures = bench.agent.clients().next().unwrap();
        assert_eq!((figures.messages_in, figures.messages_out), (number, number));
    }
}
