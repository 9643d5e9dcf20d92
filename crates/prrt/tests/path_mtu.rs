//! Links over paths that carry datagrams of some length only, and less from some time on. Lengths are of UDP payload.

use noctule_netsim::Random;
use noctule_prrt::{Bound, Class, LinkConfig, Order, Outgoing, StreamId};
use noctule_timebase::Span;

#[allow(dead_code)] // Its samples of any length are not for this.
mod channel;

use channel::{Channel, Pair, origin};

const LIMIT: u32 = 1 << 20;
const WAY: Channel = Channel { delay: Span::from_ms(2), ..Channel::PERFECT };
/// IPv6's least, Ethernet's and jumbo frames, over IPv4.
const PATHS: [usize; 3] = [1_252, 1_472, 8_972];

fn pair(seed: u64, channel: Channel, class: Class) -> Pair {
    let config = LinkConfig {
        datagram_bytes_base: 1_200,
        datagram_bytes_initial: 1_200,
        datagram_bytes_max: 8_972,
        ..LinkConfig::default()
    };
    let mut pair = Pair::new(seed, channel, config);
    for link in &mut pair.links {
        link.expect(StreamId(100), LIMIT, class);
    }
    pair
}

#[test]
fn the_size_that_the_path_carries_is_found_and_its_search_loses_nothing() {
    for mtu_bytes in PATHS {
        let mut pair = pair(1, Channel { mtu_bytes, ..WAY }, Class::Reliable);
        for sequence in 1..=100 {
            pair.send_payload(0, (100, sequence), (true, 100), &[7; 50_000]);
            pair.run(Span::from_ms(100));
        }
        let counters = pair.links[0].counters();
        assert_eq!(pair.links[0].datagram_bytes(), mtu_bytes, "{counters:?}");
        assert_eq!(pair.sequences(1, 100), (1..=100).collect::<Vec<u64>>());
        // Probes that did not pass are no losses.
        assert_eq!((pair.too_long[0], counters.lost_packets, counters.repeated), (0, 0, 0), "{mtu_bytes}");
        assert!(counters.path_probes <= 20, "{counters:?}");
        // Nothing was sent that way.
        assert_eq!(pair.links[1].datagram_bytes(), 1_200);
    }
}

#[test]
fn short_samples_and_an_idle_link_are_no_reason_to_probe() {
    let mut pair = pair(1, WAY, Class::Reliable);
    for sequence in 1..=100 {
        pair.send_payload(0, (100, sequence), (true, 100), &[7; 1_100]);
        pair.run(Span::from_ms(10));
    }
    pair.send_payload(1, (100, 1), (true, 100), &[7; 50_000]);
    pair.run(Span::from_s(5));
    let probes = pair.links[1].counters().path_probes;
    pair.run(Span::from_s(3_600));
    assert_eq!(pair.links[0].counters().path_probes, 0);
    assert_eq!((pair.links[1].counters().path_probes, probes), (probes, 2));
    assert_eq!(pair.links[1].poll_timeout(), None);
}

#[test]
fn reliable_samples_survive_a_path_that_becomes_narrower_each_once_and_in_order() {
    for (seed, loss, after_bytes) in [(1, 0.0, 1_472), (2, 0.05, 1_472), (3, 0.05, 1_200), (4, 0.2, 1_252)] {
        let mut pair = pair(seed, Channel { mtu_bytes: 8_972, loss, ..WAY }, Class::Reliable);
        let mut random = Random::for_part(seed, 1);
        for sequence in 1..=200 {
            if sequence == 100 {
                assert!(pair.links[0].datagram_bytes() > 4_000, "seed {seed}");
                pair.channel.mtu_bytes = after_bytes;
            }
            let length = if random.chance(0.3) { 500 } else { 60_000 };
            pair.send_payload(0, (100, sequence), (true, u32::MAX), &vec![7; length]);
            pair.run(Span::from_ms(50));
        }
        pair.run(Span::from_s(60));
        let counters = pair.links[0].counters();
        let wanted: Vec<u64> = (1..=200).collect();
        assert_eq!(pair.sequences(1, 100), wanted, "seed {seed}: {counters:?}");
        assert!(pair.links[0].datagram_bytes() <= after_bytes, "seed {seed}: {counters:?}");
        assert!(pair.too_long[0] > 0 && counters.path_narrowed > 0, "seed {seed}: {counters:?}");
        assert_eq!(pair.links.each_ref().map(|link| link.held_bytes()), [(0, 0); 2], "seed {seed}");
    }
}

#[test]
fn best_effort_and_deadlines_come_back_when_the_path_becomes_narrower() {
    let bound = Bound { deadline: Span::from_ms(80), loss_target: 1e-3, order: Order::Asap };
    for class in [Class::BestEffort, Class::DeadlineBound(bound)] {
        let mut pair = pair(1, Channel { mtu_bytes: 8_972, ..WAY }, class);
        let payload = vec![7; 60_000];
        for sequence in 1..=600 {
            if sequence == 200 {
                assert_eq!(pair.links[0].datagram_bytes(), 8_972, "{class:?}");
                pair.channel.mtu_bytes = 1_472;
            }
            let (writer, origin, payload) = (StreamId(100), origin(sequence), &payload[..]);
            let sample = Outgoing { writer, sequence, origin, age: Span::ZERO, class, depth: 4, payload };
            pair.links[0].send(&sample, pair.now).expect("there is room");
            pair.run(Span::from_ms(100));
        }
        let sequences = pair.sequences(1, 100);
        let counters = pair.links[0].counters();
        assert!(sequences.ends_with(&(400..=600).collect::<Vec<u64>>()), "{class:?}: {counters:?}");
        assert!(sequences.starts_with(&(1..=199).collect::<Vec<u64>>()), "{class:?}: {counters:?}");
        assert_eq!(pair.links[0].datagram_bytes(), 1_472, "{class:?}");
    }
}

#[test]
fn a_new_path_is_begun_with_what_every_path_carries() {
    let mut pair = pair(1, WAY, Class::Reliable);
    pair.send_payload(0, (100, 1), (true, 1), &[7; 50_000]);
    pair.run(Span::from_s(1));
    assert_eq!(pair.links[0].datagram_bytes(), 8_972);
    pair.channel.mtu_bytes = 1_200;
    pair.links[0].handle_new_path(pair.now);
    pair.send_payload(0, (100, 2), (true, 1), &[7; 50_000]);
    pair.run(Span::from_s(1));
    assert_eq!((pair.sequences(1, 100), pair.too_long[0]), (vec![1, 2], 0));
}
