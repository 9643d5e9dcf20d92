use super::*;

const SIZES: Sizes = Sizes { base_bytes: 1_200, initial_bytes: 1_200, max_bytes: 8_972, envelope_bytes: 0 };

fn at(ms: i64) -> Instant<Local> {
    Instant::from_ns(ms * 1_000_000)
}

/// Searches on a path that carries so much, samples of a megabyte all the time. Gives the size found and the probes sent.
fn search(path_bytes: usize, sizes: Sizes) -> (usize, usize) {
    let mut mtu = PathMtu::new(sizes, at(0));
    let mut probes = 0;
    for ms in 0..9_000 {
        mtu.demand(1_000_000, at(ms));
        if let Some(bytes) = mtu.poll_probe(ms as u64, at(ms)) {
            probes += 1;
            assert!(bytes <= sizes.max_bytes && bytes > mtu.datagram_bytes());
            if bytes <= path_bytes {
                mtu.arrived(ms as u64, bytes, at(ms));
            } else {
                mtu.lost((ms as u64, bytes), at(ms), Span::ZERO, at(ms));
            }
        }
    }
    (mtu.datagram_bytes(), probes)
}

#[test]
fn well_known_paths_are_found_with_few_probes() {
    for (path_bytes, found_bytes, probes_max) in
        [(9_216, 8_972, 2), (8_972, 8_972, 2), (1_464, 1_392, 4), (1_252, 1_252, 7), (1_472, 1_472, 20)]
    {
        let (found, probes) = search(path_bytes, SIZES);
        assert_eq!(found, found_bytes);
        assert!(probes <= probes_max, "{path_bytes}: {probes} probes");
    }
    assert_eq!(search(1_472, Sizes { max_bytes: 1_424, envelope_bytes: 48, ..SIZES }), (1_424, 1));
}

#[test]
fn of_any_path_at_least_eight_ninths_are_used() {
    for path_bytes in (1_200..9_000).step_by(37) {
        let (found, probes) = search(path_bytes, SIZES);
        assert!(found <= path_bytes && found * 9 >= path_bytes.min(8_972) * 8, "{path_bytes}: {found}");
        assert!(probes <= 24, "{path_bytes}: {probes} probes");
    }
}

#[test]
fn without_long_samples_nothing_is_probed_and_no_time_out_stays() {
    let mut mtu = PathMtu::new(SIZES, at(0));
    for ms in 0..100 {
        mtu.demand(1_200, at(ms));
        assert_eq!((mtu.poll_probe(0, at(ms)), mtu.timeout()), (None, None));
    }
    mtu.demand(1_201, at(100));
    assert_eq!(mtu.timeout(), Some(at(0)));
    assert_eq!((mtu.poll_probe(0, at(1_101)), mtu.timeout()), (None, None));
}

#[test]
fn a_sample_that_fits_into_one_datagram_asks_for_no_longer_one() {
    let mut mtu = PathMtu::new(SIZES, at(0));
    mtu.demand(1_400, at(0));
    assert_eq!(mtu.poll_probe(0, at(0)), Some(1_472));
    mtu.arrived(0, 1_472, at(1));
    // What had asked is served; the demand for more ends with it.
    mtu.demand(1_400, at(1_100));
    assert_eq!(mtu.poll_probe(1, at(1_100)), None);
}

#[test]
fn a_silence_does_not_make_a_size_too_long() {
    let mut mtu = PathMtu::new(SIZES, at(0));
    let mut number = 0;
    for ms in 0..60_000 {
        mtu.handle_timeout(at(ms));
        mtu.demand(100_000, at(ms));
        number += u64::from(mtu.poll_probe(number, at(ms)).is_some());
    }
    assert!((30..80).contains(&number), "{number} probes in a minute of silence");
    // Then the path is there again.
    for ms in 60_000..64_000 {
        mtu.handle_timeout(at(ms));
        mtu.demand(100_000, at(ms));
        if let Some(bytes) = mtu.poll_probe(number, at(ms)) {
            mtu.arrived(number, bytes, at(ms));
            number += 1;
        }
    }
    assert_eq!(mtu.datagram_bytes(), 8_972);
}

#[test]
fn longer_datagrams_lost_in_a_row_are_a_black_hole_and_short_ones_are_not() {
    let grown = || PathMtu::new(Sizes { initial_bytes: 1_472, ..SIZES }, at(0));
    let mut mtu = grown();
    for packet in 0..100 {
        mtu.lost((packet, 1_200), at(packet as i64 * 10), Span::from_ms(20), at(2_000));
    }
    assert_eq!(mtu.datagram_bytes(), 1_472);
    for packet in 0..100 {
        mtu.lost((packet, 1_472), at(packet as i64 * 10), Span::from_ms(20), at(2_000));
        if packet % 7 == 6 {
            mtu.arrived(packet, 1_472, at(2_000));
        }
    }
    assert_eq!(mtu.datagram_bytes(), 1_472);
    // A burst is short.
    for packet in 0..100 {
        mtu.lost((packet, 1_472), at(0), Span::from_ms(20), at(2_000));
    }
    assert_eq!(mtu.datagram_bytes(), 1_472);
    mtu.lost((100, 1_472), at(60), Span::from_ms(20), at(2_000));
    assert_eq!(mtu.datagram_bytes(), 1_200);
}

#[test]
fn a_host_that_refuses_a_length_says_so_once() {
    let mut mtu = PathMtu::new(SIZES, at(0));
    mtu.demand(100_000, at(0));
    assert_eq!(mtu.poll_probe(0, at(0)), Some(1_472));
    mtu.arrived(0, 1_472, at(1));
    for bytes in [8_972, 4_052, 2_276] {
        assert_eq!(mtu.poll_probe(1, at(1)), Some(bytes));
        mtu.handle_too_long(bytes, at(1));
    }
    // Its line becomes narrower while it is in use.
    mtu.handle_too_long(1_400, at(2));
    assert_eq!(mtu.datagram_bytes(), 1_200);
    mtu.demand(100_000, at(200));
    assert_eq!(mtu.poll_probe(2, at(200)), Some(1_392));
}

#[test]
fn after_ten_minutes_a_longer_size_is_tried_again() {
    let mut mtu = PathMtu::new(Sizes { max_bytes: 1_472, ..SIZES }, at(0));
    for ms in [0, 700_000] {
        for packet in 0..3 {
            let now = at(ms + 200 * packet);
            mtu.demand(100_000, now);
            let bytes = mtu.poll_probe(packet as u64, now).unwrap();
            assert_eq!(bytes, 1_472);
            mtu.lost((packet as u64, bytes), now, Span::ZERO, now);
        }
        // The rest of this search finds nothing either.
        for packet in 10..100 {
            let now = at(ms + 1_000 + 200 * packet);
            mtu.demand(100_000, now);
            if let Some(bytes) = mtu.poll_probe(packet as u64, now) {
                mtu.lost((packet as u64, bytes), now, Span::ZERO, now);
            }
        }
    }
}
