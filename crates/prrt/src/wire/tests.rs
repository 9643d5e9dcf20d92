use proptest::prelude::*;

use super::*;

const PAYLOAD: &[u8] = &[7; 10];

/// The second of three pieces of a sample of 28 bytes: 10, 10 and 8.
fn fragment() -> Fragment<'static> {
    Fragment {
        writer: StreamId(3),
        total_bytes: 28,
        sequence: 5,
        origin: Origin::exactly(-2),
        index: 1,
        count: 3,
        service: Service::Reliable(Numbers { packet: 6, position: 9, behind: 4 }),
        payload: PAYLOAD,
    }
}

fn datagram() -> Datagram<'static> {
    let feedback = Some(Feedback { newest: 2, earlier: 3, refused: 4, arrived_ns: 5, delay_ns: 1000 });
    Datagram { session: 0x0403_0201, feedback, load: Some(Load::Fragment(fragment())) }
}

/// Whether a fragment can be read again.
fn decoded(fragment: Fragment<'_>) -> Result<(), Malformed> {
    let load = Some(Load::Fragment(fragment));
    Datagram::decode(&bytes_of(&Datagram { load, ..datagram() })).map(|_| ())
}

fn bytes_of(datagram: &Datagram<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    datagram.encode(&mut bytes);
    bytes
}

#[test]
fn a_datagram_has_the_bytes_of_the_specification() {
    let bytes = bytes_of(&datagram());
    let mut wanted = b"NCTM\x02\x0f\0\0\x01\x02\x03\x04".to_vec();
    wanted.extend([2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0]);
    wanted.extend([5, 0, 0, 0, 0, 0, 0, 0, 0xe8, 3, 0, 0]); // when, and how long ago
    wanted.extend([4, 0, 0, 0, 0, 0, 0, 0]); // refused, of the feedback
    wanted.extend([3, 0, 0, 0, 28, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0]); // writer, total, sequence
    wanted.extend([0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0, 3, 0]); // source time, piece
    wanted.extend([6, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0]); // numbers
    assert_eq!(wanted.len() + 4, HEADER_BYTES_MAX);
    wanted.extend(PAYLOAD);
    assert_eq!(bytes, wanted);
    assert_eq!(Datagram::decode(&bytes), Ok(datagram()));
}

#[test]
fn the_error_of_a_source_time_stands_between_the_piece_and_the_numbers() {
    let origin = Origin { source_time_ns: -2, source_error: 0x0403_0201 };
    let uncertain = Datagram { load: Some(Load::Fragment(Fragment { origin, ..fragment() })), ..datagram() };
    let (exact, bytes) = (bytes_of(&datagram()), bytes_of(&uncertain));
    assert_eq!(bytes.len(), HEADER_BYTES_MAX + PAYLOAD.len());
    let numbers = exact.len() - PAYLOAD.len() - NUMBERS_BYTES;
    let mut wanted = exact[..numbers].to_vec();
    wanted[numbers - 1] |= 0x80; // in the count
    wanted.extend([1, 2, 3, 4]);
    wanted.extend(&exact[numbers..]);
    assert_eq!(bytes, wanted);
    assert_eq!(Datagram::decode(&bytes), Ok(uncertain));
    wanted[numbers..numbers + 4].fill(0);
    assert_eq!(Datagram::decode(&wanted), Err(Malformed::Value), "there is one way to say that it is exact");
}

const PLACE: Place = Place { packet: 6, block: 9, symbol: 2, symbols: 5, attempt: 1, ack_soon: false };

#[test]
fn a_datagram_with_a_deadline_names_its_place_in_its_block() {
    let load = Some(Load::Fragment(Fragment { service: Service::Bound(PLACE), ..fragment() }));
    let bytes = bytes_of(&Datagram { load, feedback: None, ..datagram() });
    let mut wanted = b"NCTM\x02\x12\0\0\x01\x02\x03\x04".to_vec();
    wanted.extend([3, 0, 0, 0, 28, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0]); // writer, total, sequence
    wanted.extend([0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0, 3, 0]); // source time, piece
    wanted.extend([6, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 2, 5, 1, 0]); // place
    wanted.extend(PAYLOAD);
    assert_eq!(bytes, wanted);
    let symbol = &bytes[16..40];
    let again = [symbol, PAYLOAD].concat();
    let fragment = Fragment { service: Service::Bound(PLACE), ..fragment() };
    assert_eq!(Fragment::decode_symbol(StreamId(3), PLACE, &again), Ok(fragment));
}

#[test]
fn parity_has_the_bytes_of_the_specification_and_places_that_cannot_be_are_refused() {
    let place = Place { symbol: 129, ..PLACE };
    let parity = |place| Datagram {
        load: Some(Load::Parity(Parity { writer: StreamId(3), place, symbol: &[8, 9] })),
        feedback: None,
        session: 1,
    };
    let bytes = bytes_of(&parity(place));
    let mut wanted = b"NCTM\x02\x20\0\0\x01\0\0\0\x03\0\0\0".to_vec();
    wanted.extend([6, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 129, 5, 1, 0, 2, 0, 8, 9]);
    assert_eq!(bytes, wanted);
    assert_eq!(Datagram::decode(&bytes), Ok(parity(place)));
    for impossible in [
        Place { symbol: 127, ..place },
        Place { symbol: 255, ..place },
        Place { symbols: 0, ..place },
        Place { symbols: 129, ..place },
        Place { packet: u64::MAX, ..place },
    ] {
        let bytes = bytes_of(&parity(impossible));
        assert_eq!(Datagram::decode(&bytes), Err(Malformed::Value), "{impossible:?}");
    }
    for impossible in [Place { symbol: 5, ..PLACE }, Place { symbol: 128, symbols: 0, ..PLACE }] {
        let refused = decoded(Fragment { service: Service::Bound(impossible), ..fragment() });
        assert_eq!(refused, Err(Malformed::Value), "{impossible:?}");
    }
}

#[test]
fn a_probe_is_a_number_and_zeros() {
    let probe =
        |packet| Datagram { session: 1, feedback: None, load: Some(Load::Probe(Probe { packet, zeros: 3 })) };
    let mut bytes = bytes_of(&probe(6));
    assert_eq!(bytes, b"NCTM\x02\x40\0\0\x01\0\0\0\x06\0\0\0\0\0\0\0\0\0\0");
    assert_eq!(Datagram::decode(&bytes), Ok(probe(6)));
    assert_eq!(Datagram::decode(&bytes[..19]), Err(Malformed::Length));
    assert_eq!(Datagram::decode(&bytes_of(&probe(u64::MAX))), Err(Malformed::Value));
    bytes[22] = 1;
    assert_eq!(Datagram::decode(&bytes), Err(Malformed::Value));
}

#[test]
fn a_datagram_of_any_other_length_is_refused() {
    let mut bytes = bytes_of(&datagram());
    for length in 0..bytes.len() {
        assert_eq!(Datagram::decode(&bytes[..length]), Err(Malformed::Length), "{length} bytes");
    }
    bytes.push(0);
    assert_eq!(Datagram::decode(&bytes), Err(Malformed::Length));
    let mut bare = bytes_of(&Datagram { load: None, ..datagram() });
    bare.push(0);
    assert_eq!(Datagram::decode(&bare), Err(Malformed::Length));
}

#[test]
fn each_rule_has_its_reason() {
    let cases: [(usize, u8, Malformed); 14] = [
        (0, b'X', Malformed::Magic),
        (4, 1, Malformed::Version),
        (5, 0, Malformed::Value),  // neither
        (5, 4, Malformed::Value),  // reliable without a sample
        (5, 8, Malformed::Value),  // refuses without an feedback
        (5, 16, Malformed::Value), // bound without a sample
        (5, 34, Malformed::Value), // a sample and parity
        (5, 66, Malformed::Value), // a sample and a probe
        (5, 128, Malformed::Value),
        (7, 1, Malformed::Value),
        (40, 0, Malformed::Value), // refuses nothing
        (40, 8, Malformed::Value), // refuses number −1
        (20, 4, Malformed::Value), // acknowledges number −1
        (72, 3, Malformed::Value), // piece 3 of 3
    ];
    for (at, byte, reason) in cases {
        let mut bytes = bytes_of(&datagram());
        bytes[at] = byte;
        assert_eq!(Datagram::decode(&bytes), Err(reason), "byte {at} = {byte}");
    }
}

#[test]
fn numbers_that_could_not_be_counted_on_from_are_refused() {
    let numbers = |packet, position, behind| {
        let service = Service::Reliable(Numbers { packet, position, behind });
        decoded(Fragment { service, ..fragment() })
    };
    assert_eq!(numbers(0, 4, 4), Ok(()));
    assert_eq!(numbers(0, 3, 4), Err(Malformed::Value));
    assert_eq!(numbers(u64::MAX, 9, 4), Err(Malformed::Value));
    assert_eq!(numbers(0, u64::MAX, 4), Err(Malformed::Value));
    assert_eq!(decoded(Fragment { sequence: u64::MAX, ..fragment() }), Err(Malformed::Value));
}

#[test]
fn more_pieces_than_a_sample_has_bytes_for_are_refused() {
    let piece = |total_bytes, index, count, payload| {
        decoded(Fragment { total_bytes, index, count, payload, ..fragment() })
    };
    assert_eq!(piece(0, 0, 1, &[]), Ok(()));
    assert_eq!(piece(0, 0, 2, &[]), Err(Malformed::Value));
    // Five bytes in pieces of two: three pieces, never four.
    assert_eq!(piece(5, 2, 3, &[1]), Ok(()));
    assert_eq!(piece(5, 3, 4, &[]), Err(Malformed::Value));
    assert_eq!(piece(u32::MAX, 0, PIECES_MAX, &[]), Err(Malformed::Length));
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_refused_or_encode_to_themselves(
        tail in proptest::collection::vec(any::<u8>(), 0..120),
        content in 0u8..80,
        framed in any::<bool>(),
    ) {
        let mut bytes = if framed { vec![b'N', b'C', b'T', b'M', 2, content, 0, 0] } else { Vec::new() };
        bytes.extend(tail);
        if let Ok(datagram) = Datagram::decode(&bytes) {
            prop_assert_eq!(bytes_of(&datagram), bytes);
        }
    }

    #[test]
    fn every_piece_of_every_sample_comes_back(
        (total, count) in (0usize..5_000).prop_flat_map(|total| (Just(total), 1..=total.clamp(1, 40))),
        reliable in any::<Option<(u32, u32, u32)>>(),
        (session, source_error) in any::<(u32, u32)>(),
    ) {
        let origin = Origin { source_error, ..fragment().origin };
        let sample: Vec<u8> = (0..total).map(|byte| byte as u8).collect();
        let piece = total.div_ceil(count).max(1);
        let count = total.div_ceil(piece).max(1);
        let service = match reliable {
            None => Service::Bound(PLACE),
            Some((packet, oldest, behind)) => Service::Reliable(Numbers {
                packet: packet.into(),
                position: u64::from(oldest) + u64::from(behind),
                behind,
            }),
        };
        let mut together = Vec::new();
        for index in 0..count {
            let payload = &sample[index * piece..((index + 1) * piece).min(total)];
            let (index, count) = (index as u16, count as u16);
            let total_bytes = total as u32;
            let fragment = Fragment { total_bytes, index, count, origin, service, payload, ..fragment() };
            let datagram = Datagram { session, feedback: None, load: Some(Load::Fragment(fragment)) };
            let bytes = bytes_of(&datagram);
            prop_assert_eq!(Datagram::decode(&bytes), Ok(datagram));
            prop_assert_eq!(fragment.start(), together.len());
            together.extend_from_slice(payload);
        }
        prop_assert_eq!(together, sample);
    }
}
