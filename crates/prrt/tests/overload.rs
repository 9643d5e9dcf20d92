//! Writers that offer more than the path carries: what it carries arrives, whole, and the rest is counted.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests and what they share

use noctule_prrt::{Class, Link, LinkConfig, Origin, Outgoing, SendError, StreamId};
use noctule_timebase::{Instant, Span};

#[allow(dead_code)] // not every test uses all of it
mod channel;

use channel::{Channel, Pair};

const CAMERA: u32 = 100;
/// 50 Mbit/s for datagrams of 1,400 bytes, and 100 of them in front of it.
const SLOW: Channel = Channel { bottleneck: Some((224_000, 100)), ..Channel::PERFECT };

fn camera(seed: u64) -> Pair {
    let config = LinkConfig { queue_bytes_max: 128 << 20, ..LinkConfig::default() };
    let mut pair = Pair::new(seed, SLOW, config);
    pair.links[1].expect(StreamId(CAMERA), 2 << 20, Class::Reliable);
    pair
}

/// 81 pictures of 1 MB at 10 Hz; those that arrived until then.
fn publish_pictures(depth: u32) -> (Pair, u64) {
    let mut pair = camera(1);
    let picture = vec![7; 1_000_000];
    for sequence in 1..=81 {
        pair.send_payload(0, (CAMERA, sequence), (true, depth), &picture);
        pair.run(Span::from_ms(100));
    }
    let in_time = pair.delivered[1].len() as u64;
    (pair, in_time)
}

#[test]
fn a_reliable_camera_that_offers_more_than_the_path_carries_gets_what_it_carries() {
    // As many as if nothing were ever given up, which the queue has room for.
    let (_, carried) = publish_pictures(81);
    for depth in [1, 8] {
        let (mut pair, in_time) = publish_pictures(depth);
        println!("depth {depth}: {in_time} of 81 arrived while they were published, {carried} without limit");
        assert!(carried >= 16 && in_time + 1 >= carried, "depth {depth}: {in_time} of {carried}");
        pair.run(Span::from_s(20));
        let (sequences, given_up) = (pair.sequences(1, CAMERA), pair.links[0].counters().given_up);
        assert_eq!(sequences.first(), Some(&1), "the one that has begun is not given up");
        assert_eq!(sequences.last(), Some(&81), "the newest is not given up");
        let missed: u64 = pair.delivered[1].iter().map(|sample| sample.missed).sum();
        assert_eq!((missed, missed + sequences.len() as u64), (given_up, 81), "depth {depth}");
        assert_eq!(pair.links[0].poll_given_up(), Some((StreamId(CAMERA), given_up)));
        assert_eq!(pair.links[0].poll_given_up(), None);
        assert_eq!(pair.links[0].held_bytes().0, 0);
    }
}

#[test]
fn of_a_quick_writer_that_loses_datagrams_every_sample_that_has_begun_arrives() {
    // 1 kHz, 20 ms there and back: twenty are on their way, the history keeps eight.
    for seed in 1..=5 {
        let channel = Channel { loss: 0.05, delay: Span::from_ms(10), ..Channel::PERFECT };
        let mut pair = Pair::new(seed, channel, LinkConfig::default());
        pair.links[1].expect(StreamId(CAMERA), 64, Class::Reliable);
        for sequence in 1..=2_000 {
            pair.send_payload(0, (CAMERA, sequence), (true, 8), &[7; 64]);
            pair.run(Span::from_ms(1));
        }
        pair.run(Span::from_s(1));
        let given_up = pair.links[0].counters().given_up;
        let arrived = pair.sequences(1, CAMERA).len() as u64;
        println!("seed {seed}: {arrived} of 2,000, {given_up} given up");
        assert_eq!(arrived + given_up, 2_000, "seed {seed}");
        assert!(arrived >= 1_990, "seed {seed}: {arrived}");
    }
}

fn sample(sequence: u64, payload: &[u8], depth: u32) -> Outgoing<'_> {
    let (writer, origin, age) = (StreamId(CAMERA), Origin::exactly(0), Span::ZERO);
    Outgoing { writer, sequence, origin, age, class: Class::Reliable, depth, payload }
}

#[test]
fn what_cannot_be_queued_is_refused_in_words() {
    let config = LinkConfig { queue_bytes_max: 64 << 20, ..LinkConfig::default() };
    let now = Instant::from_ns(0);
    let mut link = Link::new(config, now);
    let most_bytes = config.sample_bytes_max();
    let payload = vec![0; most_bytes + 1];
    assert_eq!(link.send(&sample(1, &payload, 8), now), Err(SendError::TooLong));
    assert_eq!(link.send(&sample(2, &payload[1..], 8), now), Ok(()));
    let mut out = Vec::new();
    assert!(link.poll_transmit(now, &mut out), "it has begun");
    assert_eq!(link.send(&sample(3, &payload[1..], 8), now), Err(SendError::Full));
    assert_eq!((link.counters().refused_too_long, link.counters().refused_full), (1, 1));
    assert_eq!(link.poll_given_up(), Some((StreamId(CAMERA), 1)));
}

#[test]
fn with_keep_all_there_is_room_until_so_many_are_unacknowledged() {
    let mut pair = camera(1);
    let has_room = |pair: &Pair| pair.links[0].has_room(StreamId(CAMERA), 100, 3);
    for sequence in 1..=3 {
        assert!(has_room(&pair), "sample {sequence}");
        pair.send_payload(0, (CAMERA, sequence), (true, 3), &[7; 100]);
    }
    assert!(!has_room(&pair));
    pair.run(Span::from_ms(10));
    assert!(has_room(&pair), "all are acknowledged");
    assert_eq!(pair.links[0].counters().given_up, 0);
}

#[test]
fn while_the_line_is_behind_what_is_small_goes_ahead_of_what_is_long() {
    let now = Instant::from_ns(0);
    let mut link = Link::new(LinkConfig::default(), now);
    let long = vec![7; 100_000];
    let best_effort = |writer, sequence, payload| {
        let (class, writer) = (Class::BestEffort, StreamId(writer));
        Outgoing { class, writer, ..sample(sequence, payload, 1) }
    };
    link.send(&best_effort(1, 1, &long), now).unwrap();
    link.send(&best_effort(2, 1, &[7; 64]), now).unwrap();
    link.send(&best_effort(3, 1, &[7; 64]), now).unwrap();
    let (mut out, mut lengths) = (Vec::new(), Vec::new());
    while link.poll_transmit_urgent(now, &mut out) {
        lengths.push(out.len());
        out.clear();
    }
    assert!(lengths.len() == 2 && lengths.iter().all(|length| *length < 200), "{lengths:?}");
    assert_eq!(link.poll_timeout(), None, "it is the host that knows when its line is ready");
    let mut long_ones = 0;
    while link.poll_transmit(now, &mut out) {
        long_ones += 1;
    }
    assert!(long_ones > 70, "{long_ones}");
}
