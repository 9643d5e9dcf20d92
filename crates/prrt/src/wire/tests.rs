use proptest::prelude::*;

use super::*;
use crate::specification::{example, example_lines};

const PAYLOAD: &[u8] = &[7; 10];
/// 1.0 s, by the sender's clock.
const CLOCK_NS: i64 = 1_000_000_000;
const REFERENCE: Reference = Reference { packet: 0x0a_0000, clock_ns: CLOCK_NS + 5, own_packet: 0x0b_0000 };
const OPENING: Opening =
    Opening { session: 0x0403_0201, own_id: 0x0605, other_id: 0x0807, clock_ns: CLOCK_NS, next_packet: 6 };
const SHORT: Head = Head::Short(0x0605);

/// A sample of 10 bytes, taken 1 µs ago.
fn sample() -> Fragment<'static> {
    Fragment {
        writer: StreamId(3),
        total_bytes: 10,
        sequence: 300,
        origin: Origin::exactly(CLOCK_NS - 1_000),
        index: 0,
        count: 1,
        service: Service::Reliable(Numbers { packet: 0x0a_0b0c, position: 299, behind: 4 }),
        payload: PAYLOAD,
    }
}

/// The second of three fragments of a sample of 28 bytes: 10, 10 and 8.
fn fragment() -> Fragment<'static> {
    Fragment { total_bytes: 28, index: 1, count: 3, ..sample() }
}

fn loaded(fragment: Fragment<'_>) -> Datagram<'_> {
    Datagram { head: SHORT, feedback: None, load: Some(Load::Fragment(fragment)) }
}

fn bytes_of(datagram: &Datagram<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    datagram.encode(CLOCK_NS, &mut bytes);
    bytes
}

fn decode(bytes: &[u8]) -> Result<Datagram<'_>, Malformed> {
    Datagram::decode(bytes, &REFERENCE)
}

/// Whether a fragment can be read again.
fn decoded(fragment: Fragment<'_>) -> Result<(), Malformed> {
    decode(&bytes_of(&loaded(fragment))).map(|_| ())
}

#[test]
fn a_reliable_sample_has_the_bytes_of_the_specification() {
    let bytes = bytes_of(&loaded(sample()));
    assert_eq!(bytes, example("Reliable sample"));
    assert_eq!(bytes.len(), 15 + PAYLOAD.len());
    assert_eq!(decode(&bytes), Ok(loaded(sample())));
}

#[test]
fn the_last_fragment_of_a_reliable_sample_is_as_long_as_the_others() {
    let last = Fragment { index: 2, payload: &PAYLOAD[..8], ..fragment() };
    let bytes = bytes_of(&loaded(last));
    assert_eq!(bytes, example("Last fragment of a reliable sample"));
    assert_eq!(bytes.len(), bytes_of(&loaded(fragment())).len());
    assert_eq!(decode(&bytes), Ok(loaded(last)));
    assert_eq!(decode(&bytes[..bytes.len() - 1]), Err(Malformed::Length));
    let longer = [&bytes[..], &[0]].concat();
    assert_eq!(decode(&longer), Err(Malformed::Length));
    let mut other = bytes.clone();
    other[bytes.len() - 2] = 1;
    assert_eq!(decode(&other), Err(Malformed::Value));
    let best_effort = bytes_of(&loaded(Fragment { service: Service::BestEffort, ..last }));
    assert!(best_effort.ends_with(&PAYLOAD[..8]), "of others no datagram is longer than it must be");
}

/// The first sample, one that is 2 µs younger, and an empty one 1 ns before that.
fn body() -> Body {
    let mut body = Body::default();
    for (back_ns, payload) in [(1_000, PAYLOAD), (-1_000, &PAYLOAD[..2]), (-999, &[])] {
        assert!(body.push(CLOCK_NS - back_ns, payload, 100));
    }
    body
}

fn samples(body: &Body) -> Datagram<'_> {
    let Fragment { writer, sequence, origin, service: Service::Reliable(numbers), .. } = sample() else {
        unreachable!("it is reliable")
    };
    let samples =
        Samples { writer, numbers, sequence, source_time_ns: origin.source_time_ns, body: body.bytes() };
    Datagram { load: Some(Load::Samples(samples)), ..loaded(sample()) }
}

#[test]
fn several_samples_have_the_bytes_of_the_specification() {
    let body = body();
    let bytes = bytes_of(&samples(&body));
    assert_eq!(bytes, example("Several samples"));
    let Ok(Datagram { load: Some(Load::Samples(read)), .. }) = decode(&bytes) else { panic!("not read") };
    let found: Vec<_> = read.fragments().collect();
    let wanted = |place: u32, back_ns: i64, length: usize| Fragment {
        sequence: 300 + u64::from(place),
        origin: Origin::exactly(CLOCK_NS - back_ns),
        total_bytes: length as u32,
        payload: &PAYLOAD[..length],
        service: Service::Reliable(Numbers {
            packet: 0x0a_0b0c,
            position: 299 + u64::from(place),
            behind: 4 + place,
        }),
        ..sample()
    };
    assert_eq!(found, [wanted(0, 1_000, 10), wanted(1, -1_000, 2), wanted(2, -999, 0)]);
}

#[test]
fn several_samples_are_whole_two_or_more_and_no_more_than_64() {
    let body = body();
    let bytes = bytes_of(&samples(&body));
    for length in 15..bytes.len() {
        let read = decode(&bytes[..length]).map(|_| ());
        let wanted = match length {
            31 => Ok(()),
            // One sample has a form of its own.
            15 | 26 => Err(Malformed::Value),
            _ => Err(Malformed::Length),
        };
        assert_eq!(read, wanted, "{length} of {} bytes", bytes.len());
    }
    let mut many = Body::default();
    while many.push(CLOCK_NS, &[], usize::MAX) {}
    assert_eq!(many.count(), SAMPLES_MAX);
    let mut bytes = bytes_of(&samples(&many));
    assert!(decode(&bytes).is_ok());
    bytes.extend([0, 0]);
    assert_eq!(decode(&bytes).map(|_| ()), Err(Malformed::Value), "one more");
    let mut narrow = Body::default();
    assert!(narrow.push(CLOCK_NS, PAYLOAD, 16) && !narrow.push(CLOCK_NS, PAYLOAD, 16));
    assert!(narrow.push(CLOCK_NS, &PAYLOAD[..3], 16), "what does not fit leaves no trace");
    assert!(!narrow.push(i64::MIN, &[], usize::MAX), "too far to be said");
}

#[test]
fn the_long_header_has_the_bytes_of_the_specification() {
    let service = Service::BestEffort;
    let datagram = Datagram { head: Head::Long(OPENING), ..loaded(Fragment { service, ..sample() }) };
    let bytes = bytes_of(&datagram);
    assert_eq!(bytes, example("Long header"));
    assert_eq!(bytes.len(), head::LONG_BYTES + 8 + PAYLOAD.len());
    // It needs no reference.
    assert_eq!(Datagram::decode(&bytes, &Reference::default()), Ok(datagram));
}

#[test]
fn a_fragment_and_the_error_of_a_source_time_stand_behind_the_time() {
    let origin = Origin { source_time_ns: -2, source_error: 0x0403_0201 };
    let service = Service::BestEffort;
    let datagram = loaded(Fragment { origin, service, ..fragment() });
    let mut clock_far = Vec::new();
    datagram.encode(i64::MAX, &mut clock_far);
    let mut wanted = vec![0x8f, 5, 6, 3, 0xac, 2];
    wanted.extend([0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]); // all of the source time
    wanted.extend([28, 1, 3, 1, 2, 3, 4]);
    wanted.extend(PAYLOAD);
    assert_eq!(clock_far, wanted);
    assert_eq!(decode(&wanted), Ok(datagram));
    let error = wanted.len() - PAYLOAD.len() - 4;
    wanted[error..error + 4].fill(0);
    assert_eq!(decode(&wanted), Err(Malformed::Value), "there is one way to say that it is exact");
}

#[test]
fn feedback_names_what_is_missing_or_all() {
    let acknowledges = |feedback| Datagram { head: SHORT, feedback: Some(feedback), load: None };
    let earlier = ((1 << 63) - 1) & !(1 << 1) & !(1 << 3) & !(1 << 62);
    let few = Feedback { newest: 0x0a_ffff, earlier, refused: 0, arrived_ns: 0, delay_ns: 1000, marks: None };
    let wanted = example("Feedback");
    assert_eq!(bytes_of(&acknowledges(few)), wanted);
    assert_eq!(decode(&wanted), Ok(acknowledges(few)));
    let many = Feedback {
        newest: 0x0b_0000,
        earlier: 3,
        refused: 0b101,
        arrived_ns: i64::MIN,
        delay_ns: 0,
        marks: None,
    };
    let wanted = example("Feedback with bits");
    assert_eq!(bytes_of(&acknowledges(many)), wanted);
    assert_eq!(decode(&wanted), Ok(acknowledges(many)));
    let marked = Feedback { earlier: (1 << 63) - 1, marks: Some(Marks { capable: 770, marked: 5 }), ..few };
    let wanted = example("Feedback with marks");
    assert_eq!(bytes_of(&acknowledges(marked)), wanted);
    assert_eq!(decode(&wanted), Ok(acknowledges(marked)));
    let last = wanted.len() - 1;
    assert_eq!(decode(&wanted[..last]), Err(Malformed::Length));
}

const PLACE: Place = Place { packet: 0x0a_0006, block: 9, symbol: 2, symbols: 5, attempt: 1, ack_soon: true };

#[test]
fn a_datagram_with_a_deadline_names_its_place_in_its_block() {
    let bytes = bytes_of(&loaded(Fragment { service: Service::Bound(PLACE), ..fragment() }));
    assert_eq!(bytes, example("Fragment with a deadline"));
    let fragment = Fragment { service: Service::Bound(PLACE), ..fragment() };
    assert_eq!(decode(&bytes), Ok(loaded(fragment)));
    let symbol = example("Data symbol");
    let mut encoded = Vec::new();
    fragment.encode_symbol(&mut encoded);
    assert_eq!(encoded, symbol);
    assert_eq!(Fragment::decode_symbol(StreamId(3), PLACE, &symbol), Ok(fragment));
}

#[test]
fn the_only_symbol_of_its_block_needs_a_byte_for_its_place() {
    let place = Place { block: 0, symbol: 0, symbols: 1, attempt: 2, ..PLACE };
    let datagram = loaded(Fragment { service: Service::Bound(place), ..sample() });
    let bytes = bytes_of(&datagram);
    assert_eq!(bytes, example("Sample alone in its block"));
    assert_eq!(decode(&bytes), Ok(datagram));
    let often = loaded(Fragment { service: Service::Bound(Place { attempt: 200, ..place }), ..sample() });
    assert_eq!(decode(&bytes_of(&often)), Ok(often), "more than seven bits");
}

#[test]
fn parity_has_the_bytes_of_the_specification_and_places_that_cannot_be_are_refused() {
    let place = Place { symbol: 129, ..PLACE };
    let parity = |place| Datagram {
        load: Some(Load::Parity(Parity { writer: StreamId(3), place, symbol: &[8, 9] })),
        feedback: None,
        head: SHORT,
    };
    let bytes = bytes_of(&parity(place));
    assert_eq!(bytes, example("Parity"));
    assert_eq!(decode(&bytes), Ok(parity(place)));
    for impossible in [
        Place { symbol: 127, ..place },
        Place { symbol: 255, ..place },
        Place { symbols: 0, ..place },
        Place { symbols: 129, ..place },
    ] {
        assert_eq!(decode(&bytes_of(&parity(impossible))), Err(Malformed::Value), "{impossible:?}");
    }
    for impossible in [Place { symbol: 5, ..PLACE }, Place { symbol: 128, symbols: 0, ..PLACE }] {
        let refused = decoded(Fragment { service: Service::Bound(impossible), ..sample() });
        assert_eq!(refused, Err(Malformed::Value), "{impossible:?}");
    }
}

#[test]
fn a_probe_is_a_number_and_zeros() {
    let probe = Load::Probe(Probe { packet: 0x0a_0006, zeros: 3 });
    let probe = Datagram { head: SHORT, feedback: None, load: Some(probe) };
    let mut bytes = bytes_of(&probe);
    assert_eq!(bytes, [0xb0, 5, 6, 6, 0, 0x0a, 0, 0, 0]);
    assert_eq!(decode(&bytes), Ok(probe));
    assert_eq!(decode(&bytes[..5]), Err(Malformed::Length));
    bytes[8] = 1;
    assert_eq!(decode(&bytes), Err(Malformed::Value));
}

#[test]
fn flow_control_is_a_writer_and_a_position() {
    let datagram = |load| Datagram { head: SHORT, feedback: None, load: Some(load) };
    let limit = datagram(Load::Limit(Limit { writer: StreamId(3), position: 300 }));
    let bytes = bytes_of(&limit);
    let wanted = example_lines("Flow control");
    assert_eq!((&bytes, decode(&bytes)), (&wanted[0], Ok(limit)));
    let blocked = |oldest| datagram(Load::Blocked(Blocked { writer: StreamId(3), oldest }));
    let bytes = bytes_of(&blocked(284));
    assert_eq!((&bytes, decode(&bytes)), (&wanted[1], Ok(blocked(284))));
    assert_eq!(decode(&[&bytes[..], &[0]].concat()), Err(Malformed::Length));
    assert_eq!(decode(&bytes[..4]), Err(Malformed::Length));
    assert_eq!(decode(&bytes_of(&blocked(u64::MAX))), Err(Malformed::Value), "no position");
    let all = datagram(Load::Limit(Limit { writer: StreamId(3), position: u64::MAX }));
    assert_eq!(decode(&bytes_of(&all)), Ok(all));
}

#[test]
fn a_datagram_that_ends_early_is_refused() {
    let feedback =
        Some(Feedback { newest: 9, earlier: 0, refused: 1, arrived_ns: 0, delay_ns: 0, marks: None });
    for head in [SHORT, Head::Long(OPENING)] {
        let bytes = bytes_of(&Datagram { head, feedback, ..loaded(fragment()) });
        for length in 0..bytes.len() {
            assert_eq!(decode(&bytes[..length]), Err(Malformed::Length), "{length} bytes");
        }
        let mut bare = bytes_of(&Datagram { head, feedback, load: None });
        bare.push(0);
        assert_eq!(decode(&bare), Err(Malformed::Length));
    }
}

#[test]
fn each_rule_has_its_reason() {
    let feedback =
        Some(Feedback { newest: 9, earlier: 0x1ff, refused: 1, arrived_ns: 0, delay_ns: 0, marks: None });
    let long = bytes_of(&Datagram { head: Head::Long(OPENING), feedback, ..loaded(fragment()) });
    let short = bytes_of(&Datagram { feedback, ..loaded(fragment()) });
    type Case<'a> = (&'a [u8], usize, u8, Malformed);
    let cases: [Case<'_>; 12] = [
        (&long, 0, b'X', Malformed::Magic),
        (&long, 4, 2, Malformed::Version),
        (&long, 5, 0xd1, Malformed::Value),  // the bit of the short header
        (&long, 6, 0, Malformed::Value),     // with the next: a link without a number
        (&short, 0, 0x80, Malformed::Value), // neither
        (&short, 0, 0x84, Malformed::Value), // the tag of a sample, without one
        (&short, 0, 0xbb, Malformed::Value), // a tag that flow control does not have
        (&short, 3, 0x40, Malformed::Value), // an unknown flag of feedback
        (&short, 3, 0x0f, Malformed::Value), // all named, although none is missing
        (&short, 14, 8, Malformed::Value),   // refuses number −2
        (&short, 30, 3, Malformed::Value),   // fragment 3 of 3
        (&short, 31, 1, Malformed::Value),   // fragment 1 of 1
    ];
    for (bytes, at, byte, reason) in cases {
        let mut bytes = bytes.to_vec();
        bytes[at] = byte;
        bytes[7] = if at == 6 { 0 } else { bytes[7] };
        assert_eq!(decode(&bytes).map(|_| ()), Err(reason), "byte {at} = {byte}");
    }
    let opening = Datagram { head: Head::Long(OPENING), feedback: None, load: None };
    assert_eq!(decode(&bytes_of(&opening)), Ok(opening), "an opening says enough");
}

#[test]
fn numbers_that_could_not_be_counted_on_from_are_refused() {
    let numbers = |position, behind| {
        let service = Service::Reliable(Numbers { packet: 0x0a_0000, position, behind });
        decoded(Fragment { service, ..sample() })
    };
    assert_eq!(numbers(4, 4), Ok(()));
    assert_eq!(numbers(u64::MAX - 1, 400_000), Ok(()));
    assert_eq!(numbers(3, 4), Err(Malformed::Value));
    assert_eq!(numbers(u64::MAX, 9), Err(Malformed::Value));
    assert_eq!(decoded(Fragment { sequence: u64::MAX, ..sample() }), Err(Malformed::Value));
}

#[test]
fn more_fragments_than_a_sample_has_bytes_for_are_refused() {
    let fragment = |total_bytes, index, count, payload| {
        decoded(Fragment { total_bytes, index, count, payload, ..sample() })
    };
    assert_eq!(fragment(0, 0, 1, &[]), Ok(()));
    assert_eq!(fragment(0, 0, 2, &[]), Err(Malformed::Value));
    // Five bytes in fragments of two: three fragments, never four.
    assert_eq!(fragment(5, 2, 3, &[1]), Ok(()));
    assert_eq!(fragment(5, 3, 4, &[]), Err(Malformed::Value));
    assert_eq!(fragment(u32::MAX, 0, FRAGMENTS_MAX, &[]), Err(Malformed::Length));
    assert_eq!(fragment(u32::MAX, 0, FRAGMENTS_MAX + 1, &[]), Err(Malformed::Value));
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_refused_or_mean_what_they_are_encoded_to(
        tail in proptest::collection::vec(any::<u8>(), 0..120),
        (content, framed) in (any::<u8>(), any::<bool>()),
    ) {
        let mut bytes = if framed { vec![b'N', b'C', b'T', b'M', 4, content] } else { vec![content | 128] };
        bytes.extend(tail);
        if let Ok(datagram) = decode(&bytes) {
            let mut again = Vec::new();
            datagram.encode(CLOCK_NS, &mut again);
            // Not the same bytes: a time may be whole although its low bytes would do.
            if let Head::Short(_) = datagram.head {
                prop_assert_eq!(decode(&again), Ok(datagram));
            }
        }
    }

    #[test]
    fn every_fragment_of_every_sample_comes_back(
        (total, count) in (0usize..5_000).prop_flat_map(|total| (Just(total), 1..=total.clamp(1, 40))),
        reliable in any::<Option<(u32, u32, u32)>>(),
        (source_error, sequence, source_ns) in any::<(u32, u32, i64)>(),
    ) {
        let origin = Origin { source_error, source_time_ns: source_ns };
        let sample: Vec<u8> = (0..total).map(|byte| byte as u8).collect();
        let fragment_bytes = total.div_ceil(count).max(1);
        let count = total.div_ceil(fragment_bytes).max(1);
        let service = match reliable {
            None => Service::Bound(PLACE),
            Some((packet, oldest, behind)) => Service::Reliable(Numbers {
                packet: u64::from(packet % (1 << 23)),
                position: u64::from(oldest) + u64::from(behind),
                behind,
            }),
        };
        let mut together = Vec::new();
        for index in 0..count {
            let payload = &sample[index * fragment_bytes..((index + 1) * fragment_bytes).min(total)];
            let (index, count, total_bytes) = (index as u16, count as u16, total as u32);
            let sequence = u64::from(sequence);
            let datagram = loaded(Fragment { total_bytes, index, count, origin, sequence, service, payload, ..fragment() });
            let bytes = bytes_of(&datagram);
            prop_assert!(bytes.len() <= HEADER_BYTES_MAX + fragment_bytes);
            prop_assert_eq!(decode(&bytes), Ok(datagram));
            if let Some(Load::Fragment(fragment)) = datagram.load {
                prop_assert_eq!(fragment.start(), together.len());
            }
            together.extend_from_slice(payload);
        }
        prop_assert_eq!(together, sample);
    }

    #[test]
    fn several_samples_come_back_one_by_one(
        ahead_ns in proptest::collection::vec(-(1i64 << 37)..(1 << 37), 2..=SAMPLES_MAX),
        (sequence, behind, length) in (1u64..1 << 60, any::<u32>(), 0usize..200),
    ) {
        let numbers = Numbers { packet: 0x0a_0000, position: sequence + u64::from(behind), behind: behind >> 1 };
        let pattern: Vec<u8> = (0..200).collect();
        let payload = |place: usize| &pattern[..(length + 7 * place) % 200];
        let mut body = Body::default();
        for (place, ahead_ns) in ahead_ns.iter().enumerate() {
            prop_assert!(body.push(CLOCK_NS + ahead_ns, payload(place), usize::MAX));
        }
        let first = Samples {
            writer: StreamId(behind),
            numbers,
            sequence,
            source_time_ns: CLOCK_NS + ahead_ns[0],
            body: body.bytes(),
        };
        let bytes = bytes_of(&Datagram { load: Some(Load::Samples(first)), ..loaded(sample()) });
        let Ok(Datagram { load: Some(Load::Samples(read)), .. }) = decode(&bytes) else {
            return Err(TestCaseError::fail("not read"));
        };
        let found: Vec<_> = read.fragments().collect();
        prop_assert_eq!(found.len(), ahead_ns.len());
        for (place, (fragment, ahead_ns)) in found.into_iter().zip(ahead_ns).enumerate() {
            let later = place as u64;
            let Service::Reliable(own) = fragment.service else { return Err(TestCaseError::fail("reliable")) };
            prop_assert_eq!((own.position, own.oldest()), (numbers.position + later, numbers.oldest()));
            prop_assert_eq!((fragment.sequence, fragment.payload), (sequence + later, payload(place)));
            prop_assert_eq!(fragment.origin, Origin::exactly(CLOCK_NS + ahead_ns));
        }
    }

    #[test]
    fn arbitrary_bodies_of_several_samples_are_refused_or_mean_what_they_are_encoded_to(
        tail in proptest::collection::vec(prop_oneof![0u8..12, any::<u8>()], 0..120),
    ) {
        let mut bytes = example("Several samples")[..15].to_vec();
        bytes.extend(tail);
        if let Ok(datagram) = decode(&bytes) {
            let again = bytes_of(&datagram);
            prop_assert_eq!(decode(&again), Ok(datagram));
            let Some(Load::Samples(samples)) = datagram.load else { return Err(TestCaseError::fail("several")) };
            prop_assert!((2..=SAMPLES_MAX).contains(&samples.fragments().count()));
        }
    }

    #[test]
    fn all_feedback_comes_back(
        (back, missing, refused) in (0u64..1 << 20, any::<[u64; 3]>(), any::<u64>()),
        (arrived_ns, delay_ns) in any::<(i64, u32)>(),
    ) {
        let newest = REFERENCE.own_packet.saturating_sub(back);
        let possible = (1u64 << newest.min(63)) - 1;
        // Few missing as often as many.
        let missing = if back & 1 == 0 { missing[0] } else { missing.iter().fold(!0, |all, each| all & each) };
        let earlier = possible & !missing;
        let feedback = Feedback { newest, earlier, refused: refused & (earlier << 1 | 1), arrived_ns, delay_ns, marks: None };
        let datagram = Datagram { head: SHORT, feedback: Some(feedback), load: None };
        let bytes = bytes_of(&datagram);
        prop_assert!(bytes.len() <= 3 + FEEDBACK_BYTES_MAX);
        prop_assert_eq!(decode(&bytes), Ok(datagram));
    }
}
