//! Two links over channels that lose, double, reorder and damage, in a deterministic simulation.

use noctule_netsim::Random;
use noctule_prrt::{
    Bound, Class, Link, LinkConfig, Order, Origin, Outgoing, SAMPLE_OVERHEAD_BYTES, StreamId,
};
use noctule_timebase::{Instant, Span};

mod channel;

use channel::{Channel, Pair, at};

const ALL: u32 = u32::MAX;
const LIMIT: u32 = 1 << 20;
const BAD: Channel = Channel {
    loss: 0.2,
    duplication: 0.05,
    wrong_length: 0.05,
    delay: Span::from_ms(1),
    jitter: Span::from_ms(2),
    bottleneck: None,
    mtu_bytes: usize::MAX,
};

/// A pair that expects writer 1 reliable and writer 2 at best effort, both ways.
fn pair(seed: u64, channel: Channel) -> Pair {
    let mut pair = Pair::new(seed, channel, LinkConfig::default());
    for link in &mut pair.links {
        link.expect(StreamId(1), LIMIT, Class::Reliable);
        link.expect(StreamId(2), LIMIT, Class::BestEffort);
    }
    pair
}

#[test]
fn reliable_samples_arrive_in_order_each_once_over_a_bad_channel() {
    for seed in 0..60 {
        let mut pair = pair(seed, BAD);
        let mut random = Random::for_part(seed, 1);
        for sequence in 1..=100 {
            for side in 0..2 {
                pair.send(side, (1, sequence), true, ALL);
                pair.send(side, (2, sequence), false, ALL);
            }
            pair.run(Span::from_ns((random.bits() % 2_000_000) as i64));
        }
        pair.run(Span::from_s(20));
        for side in 0..2 {
            let wanted: Vec<u64> = (1..=100).collect();
            assert_eq!(pair.sequences(side, 1), wanted, "seed {seed}, side {side}");
            let newest_wins = pair.sequences(side, 2);
            assert!(newest_wins.is_sorted_by(|a, b| a < b), "seed {seed}: {newest_wins:?}");
            assert!(newest_wins.len() > 20, "seed {seed}: {} of 100", newest_wins.len());
            let counters = pair.links[side].counters();
            assert!(counters.malformed > 0 && counters.duplicates > 0, "seed {seed}: {counters:?}");
            assert_eq!(pair.links[side].held_bytes().0, 0, "seed {seed}: something is still queued");
        }
    }
}

#[test]
fn of_a_writer_that_is_too_fast_the_newest_samples_arrive_and_the_gaps_are_counted() {
    for seed in 0..60 {
        let mut pair = pair(seed, Channel { bottleneck: Some((500_000, 50)), ..BAD });
        for sequence in 1..=400 {
            pair.send(0, (1, sequence), true, 4);
            pair.run(Span::from_ms(1));
        }
        pair.run(Span::from_s(20));
        let sequences = pair.sequences(1, 1);
        assert!(sequences.is_sorted_by(|a, b| a < b), "seed {seed}: {sequences:?}");
        assert!(sequences.ends_with(&[397, 398, 399, 400]), "seed {seed}: {sequences:?}");
        let missed: u64 = pair.delivered[1].iter().map(|sample| sample.missed).sum();
        let first = sequences[0];
        assert_eq!(missed + sequences.len() as u64, 401 - first, "seed {seed}");
        let given_up = pair.links[0].counters().given_up;
        assert!(given_up > 100 && 400 - given_up <= sequences.len() as u64, "seed {seed}: {given_up}");
        // Four wait; besides there are those that are being sent, which the bottleneck's queue of 50 datagrams limits.
        assert!(pair.held_bytes_max.0 <= 16 * (12_000 + SAMPLE_OVERHEAD_BYTES), "{:?}", pair.held_bytes_max);
    }
}

#[test]
fn a_megabyte_crosses_a_socket_buffer_of_two_hundred_kilobytes() {
    // 200 KiB hold 88 datagrams of 2,304 bytes, the kernel's reckoning; 1 Gbit/s takes 11 µs for each.
    let narrow = Channel { bottleneck: Some((11_000, 88)), ..Channel::PERFECT };
    for (seed, loss, limit_ms) in [(1, 0.0, 60), (2, 0.01, 400)] {
        let mut pair = pair(seed, Channel { loss, ..narrow });
        for link in &mut pair.links {
            link.expect(StreamId(100), LIMIT, Class::Reliable);
        }
        let start = pair.now;
        pair.send_payload(0, (100, 1), (true, 1), &vec![7; 1_000_000]);
        pair.run(Span::from_s(5));
        assert_eq!(pair.sequences(1, 100), [1], "loss {loss}");
        let took = pair.delivered[1][0].at - start;
        let counters = pair.links[0].counters();
        let dropped = pair.dropped_at_bottleneck;
        println!("seed {seed}, loss {loss}: {took}, {} sent, {dropped} dropped", counters.sent_datagrams);
        assert!(took < Span::from_ms(limit_ms), "loss {loss}: {took}, {counters:?}");
        assert_eq!(pair.links[1].held_bytes().1, 0);
    }
}

#[test]
fn a_small_sample_does_not_wait_for_a_large_one_of_another_writer() {
    let narrow = Channel { bottleneck: Some((11_000, 1_000)), ..Channel::PERFECT };
    let mut pair = pair(1, narrow);
    pair.links[1].expect(StreamId(100), LIMIT, Class::Reliable);
    pair.send_payload(0, (100, 1), (true, 1), &vec![7; 1_000_000]);
    pair.send(0, (1, 1), true, 1);
    pair.run(Span::from_s(1));
    let order: Vec<u32> = pair.delivered[1].iter().map(|sample| sample.writer).collect();
    assert_eq!(order, [1, 100]);
}

#[test]
fn an_acknowledgement_rides_on_a_sample_and_goes_alone_after_two_milliseconds() {
    let mut pair = pair(1, Channel::PERFECT);
    for sequence in 1..=100 {
        pair.send(0, (1, sequence), true, ALL);
        pair.run(Span::from_us(300));
        pair.send(1, (2, sequence), false, ALL);
        pair.run(Span::from_us(300));
    }
    let answers = pair.links[1].counters().sent_datagrams;
    let samples: u64 =
        (1..=100).map(|sequence| channel::payload(2, sequence).len().div_ceil(1_300).max(1) as u64).sum();
    // A sample of more than eight fragments is acknowledged on the way.
    assert!(answers - samples < 20, "{answers} datagrams for {samples}");
    assert_eq!(pair.links[0].held_bytes().0, 0);
    pair.send(0, (1, 101), true, ALL);
    let sent = pair.now;
    pair.run(Span::from_ms(3));
    assert_eq!(pair.links[0].held_bytes().0, 0);
    assert_eq!(pair.links[0].poll_timeout(), None);
    assert!(pair.now - sent < Span::from_ms(10), "no time-out was needed");
    assert_eq!(pair.links[0].counters().repeated, 0);
    let round_trip = pair.links[0].round_trip().unwrap();
    assert_eq!(round_trip, Span::from_us(100), "twice the way, without the waiting");
}

#[test]
fn a_writer_is_sending_until_its_last_reliable_sample_is_acknowledged() {
    let mut pair = pair(1, Channel::PERFECT);
    let is_sending = |pair: &Pair| [1, 2].map(|writer| pair.links[0].is_sending(StreamId(writer)));
    assert_eq!(is_sending(&pair), [false, false]);
    pair.send(0, (1, 1), true, ALL);
    pair.send(0, (2, 1), false, ALL);
    // Both are on the way; at best effort that is all there is.
    assert_eq!(is_sending(&pair), [true, false]);
    pair.run(Span::from_ms(5));
    assert_eq!(is_sending(&pair), [false, false]);
}

#[test]
fn a_reliable_sample_waits_for_its_reader_without_filling_the_line() {
    let mut pair = Pair::new(1, Channel::PERFECT, LinkConfig::default());
    pair.links[1].expect(StreamId(2), LIMIT, Class::Reliable);
    for sequence in 1..=1_000 {
        pair.send(0, (1, sequence), true, 8);
        pair.send(0, (2, sequence), true, 8);
        pair.run(Span::from_ms(1));
    }
    let repeated = pair.links[0].counters().repeated;
    pair.links[1].expect(StreamId(1), LIMIT, Class::Reliable);
    pair.run(Span::from_s(2));
    assert_eq!(pair.sequences(1, 1), (993..=1_000).collect::<Vec<u64>>());
    let together = pair.sequences(1, 2).len();
    assert!(together > 900, "{together} of 1,000: the other writer was held up");
    assert!(repeated < 20_000, "{repeated} fragments in a second");
}

#[test]
fn a_peer_that_is_gone_costs_a_bounded_queue_and_a_few_datagrams_a_second() {
    let config = LinkConfig { queue_bytes_max: 100_000, ..LinkConfig::default() };
    let mut pair = Pair::new(1, Channel { loss: 1.0, ..Channel::PERFECT }, config);
    for sequence in 1..=1_000 {
        pair.send_payload(0, (100, sequence), (true, ALL), &[0; 1_000]);
        pair.send_payload(0, (101, sequence), (true, ALL), &[0; 1_000]);
        pair.send_payload(0, (102, sequence), (true, ALL), &[0; 200_000]);
    }
    assert!(pair.held_bytes_max.0 <= 100_000);
    let counters = pair.links[0].counters();
    assert_eq!(counters.refused_full, 1_000, "{counters:?}");
    assert!(counters.given_up > 1_800, "{counters:?}");
    pair.run(Span::from_s(10));
    let before = pair.links[0].counters().sent_datagrams;
    pair.run(Span::from_s(10));
    let a_second = (pair.links[0].counters().sent_datagrams - before) / 10;
    assert!((1..=4).contains(&a_second), "{a_second} datagrams a second");
}

#[test]
fn a_writer_that_stops_leaves_nothing_behind() {
    let mut pair = pair(1, Channel { loss: 1.0, ..Channel::PERFECT });
    pair.send(0, (1, 1), true, ALL);
    pair.send(0, (1, 2), true, ALL);
    pair.links[0].stop(StreamId(1));
    assert_eq!((pair.links[0].held_bytes().0, pair.links[0].counters().given_up), (0, 2));
    pair.channel = Channel::PERFECT;
    pair.send(0, (1, 3), true, ALL);
    pair.run(Span::from_s(2));
    assert_eq!(pair.sequences(1, 1), [3]);
    assert_eq!(pair.links[0].poll_timeout(), None);
}

#[test]
fn datagrams_of_another_life_are_dropped() {
    let mut old = pair(1, Channel::PERFECT);
    let config = LinkConfig { session: 7, ..LinkConfig::default() };
    old.links[1] = Link::new(config, old.now);
    old.links[1].expect(StreamId(100), LIMIT, Class::Reliable);
    old.send_payload(0, (100, 1), (true, ALL), b"old");
    old.run(Span::from_ms(5));
    assert!(old.delivered[1].is_empty());
    assert_eq!((old.links[1].counters().other_session, old.links[1].counters().sent_datagrams), (1, 0));
}

#[test]
fn a_sample_of_too_many_fragments_is_refused_and_counted() {
    let config = LinkConfig { datagram_bytes_max: 0, queue_bytes_max: 1 << 30, ..LinkConfig::default() };
    let mut pair = Pair::new(1, Channel::PERFECT, config);
    // The shortest datagram there may be carries 425 bytes.
    pair.send_payload(0, (100, 1), (true, 1), &vec![0; 65_535 * 425 + 1]);
    assert_eq!(pair.links[0].counters().refused_too_long, 1);
    pair.links[1].expect(StreamId(100), u32::MAX, Class::Reliable);
    pair.send_payload(0, (100, 2), (true, 1), &[0; 426]);
    pair.run(Span::from_ms(5));
    assert_eq!((pair.sequences(1, 100), pair.links[0].counters().sent_datagrams), (vec![2], 2));
}

#[test]
fn a_change_of_reliability_starts_afresh() {
    let mut pair = pair(1, Channel { loss: 1.0, ..Channel::PERFECT });
    pair.send(0, (1, 1), true, ALL);
    pair.channel = Channel::PERFECT;
    pair.links[1].expect(StreamId(1), LIMIT, Class::BestEffort);
    pair.send(0, (1, 2), false, ALL);
    pair.run(Span::from_s(1));
    assert_eq!(pair.sequences(1, 1), [2]);
    pair.links[1].expect(StreamId(1), LIMIT, Class::Reliable);
    pair.send(0, (1, 3), true, ALL);
    pair.run(Span::from_s(1));
    assert_eq!(pair.sequences(1, 1), [2, 3]);
    assert_eq!(pair.links[0].held_bytes().0, 0);
}

#[test]
fn a_whole_sample_is_taken_in_without_an_allocation_and_sent_with_one() {
    let mut pair = pair(1, Channel::PERFECT);
    let [left, right] = &mut pair.links;
    let (payload, mut out) = ([7; 64], Vec::with_capacity(2_000));
    let (mut sent, mut taken, mut arrived) = (0, 0, 0);
    for round in 0..2_000u64 {
        let now = pair.now + Span::from_us(100 * round as i64);
        for (from, to, reliable) in [(0, 1, true), (1, 0, round % 2 == 0)] {
            let links = [&mut *left, &mut *right];
            let [from, to] = if from < to {
                links
            } else {
                let [a, b] = links;
                [b, a]
            };
            let writer = StreamId(if reliable { 1 } else { 2 });
            let sample = Outgoing {
                writer,
                sequence: round,
                origin: Origin::exactly(0),
                age: Span::ZERO,
                class: if reliable { Class::Reliable } else { Class::BestEffort },
                depth: 8,
                payload: &payload,
            };
            out.clear();
            let sending = allocation_counter::measure(|| {
                from.send(&sample, now).unwrap();
                assert!(from.poll_transmit(now, &mut out));
            });
            let taking = allocation_counter::measure(|| {
                to.handle_datagram(&out, at(now), &mut |_| arrived += 1).unwrap();
            });
            // Queues grow to their usual length first.
            if round >= 100 {
                sent += sending.count_total;
                taken += taking.count_total;
            }
        }
    }
    assert_eq!((arrived, taken, sent), (4_000, 0, 2 * 1_900));
}

#[test]
fn no_sample_is_lost_that_was_sent_before_its_reader_was_there() {
    for seed in 0..10 {
        let mut pair = Pair::new(seed, BAD, LinkConfig::default());
        pair.links[1].expect(StreamId(2), LIMIT, Class::Reliable);
        for sequence in 1..=200 {
            pair.send(0, (2, sequence), true, ALL);
            pair.send(0, (1, sequence), true, ALL);
            pair.run(Span::from_us(100));
        }
        pair.links[1].expect(StreamId(1), LIMIT, Class::Reliable);
        pair.run(Span::from_s(30));
        let wanted: Vec<u64> = (1..=200).collect();
        assert_eq!(pair.sequences(1, 2), wanted, "seed {seed}");
        assert_eq!(pair.sequences(1, 1), wanted, "seed {seed}");
    }
}

#[test]
fn what_was_given_up_for_lost_and_arrives_late_is_not_retransmitted() {
    let mut pair = pair(1, Channel::PERFECT);
    let now = pair.now;
    let [left, right] = &mut pair.links;
    let (writer, payload) = (StreamId(1), vec![7; 6 * 1_300]);
    let (age, class, payload) = (Span::ZERO, Class::Reliable, &payload[..]);
    let sample = Outgoing { writer, sequence: 1, origin: Origin::exactly(0), age, class, depth: 1, payload };
    left.send(&sample, now).unwrap();
    let mut fragments = vec![Vec::new(); 6];
    for fragment in &mut fragments {
        assert!(left.poll_transmit(now, fragment));
    }
    let (mut lengths, mut answer) = (Vec::new(), Vec::new());
    for fragment in [1, 2, 3, 4, 0] {
        let taken = right.handle_datagram(&fragments[fragment], at(now), &mut |_| {});
        assert_eq!(taken, Ok(()));
        answer.clear();
        if right.poll_transmit(now, &mut answer) {
            assert_eq!(left.handle_datagram(&answer, at(now), &mut |_| {}), Ok(()));
        }
    }
    assert_eq!(left.counters().lost_packets, 1);
    assert!(!left.poll_transmit(now, &mut Vec::new()));
    assert_eq!(left.counters().repeated, 0);
    let taken =
        right.handle_datagram(&fragments[5], at(now), &mut |sample| lengths.push(sample.payload.len()));
    assert_eq!((taken, lengths), (Ok(()), vec![6 * 1_300]));
}

#[test]
fn of_a_writer_with_a_deadline_that_is_forgotten_nothing_is_held_and_nothing_is_delivered() {
    let (now, writer) = (Instant::from_ns(1_000_000_000), StreamId(1));
    let bound = Bound { deadline: Span::from_ms(100), loss_target: 1e-3, order: Order::Asap };
    let class = Class::DeadlineBound(bound);
    let [mut from, mut to] = [1, 2].map(|id| Link::new(LinkConfig { id, ..LinkConfig::default() }, now));
    to.expect(writer, LIMIT, class);
    let (origin, age, payload) = (Origin::exactly(now.ns()), Span::ZERO, &[7; 5_000]);
    from.send(&Outgoing { writer, sequence: 1, origin, age, class, depth: 8, payload }, now).unwrap();
    let (mut datagrams, mut out) = (Vec::new(), Vec::new());
    while from.poll_transmit(now, &mut out) {
        datagrams.push(std::mem::take(&mut out));
    }
    let mut delivered = 0;
    to.handle_datagram(&datagrams[0], at(now), &mut |_| delivered += 1).unwrap();
    assert!(to.held_bytes().1 > 0, "a fragment waits for the others");
    to.forget(writer);
    assert_eq!(to.held_bytes().1, 0);
    for datagram in &datagrams[1..] {
        to.handle_datagram(datagram, at(now), &mut |_| delivered += 1).unwrap();
    }
    assert_eq!((delivered, to.held_bytes().1), (0, 0));
    assert!(to.counters().unexpected > 0);
}
