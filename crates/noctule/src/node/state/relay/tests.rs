//! Nodes of one host that read a topic of another, simulated: they join, leave and die at random, datagrams are
//! lost, and everything is late. One seed, one course of events.

mod accounted;
mod asked_once;
mod departed;
mod network_back;
mod small_batch;
mod trace;
mod world;

use noctule_discovery::DiscoveryConfig;
use noctule_timebase::Span;

use world::{CALM, NEAR, World, seeds};

#[test]
fn when_nodes_join_leave_or_die_the_rest_get_everything_once_and_the_host_receives_once() {
    for seed in seeds(200) {
        let mut world = World::new(seed);
        for _ in 0..4 {
            world.loss_percent = [0, 5, 20, 40][world.random.below(4) as usize];
            for _ in 0..world.random.below(12) {
                let near = world.near();
                let one = world.random.below(near.len().max(1) as u64) as usize;
                match (world.random.below(6), near.get(one)) {
                    (0, Some(node)) => world.end(*node, true),
                    (1, Some(node)) => world.end(*node, false),
                    (2, Some(node)) if !world.members[node].readers.is_empty() => world.unsubscribe(*node, 0),
                    (3, Some(node)) if world.members[node].readers.len() < 3 => world.subscribe(*node, 8),
                    _ if near.len() < 7 => {
                        let node = world.join(NEAR);
                        let payload_bytes_max = 8 << world.random.below(2);
                        world.subscribe(node, payload_bytes_max);
                    }
                    _ => {}
                }
                for _ in 0..world.random.below(5) {
                    world.publish();
                    let pause = [1000, 300_000, 3_000_000, 60_000_000][world.random.below(4) as usize];
                    world.run(Span::from_ns(pause));
                    if world.random.below(2) == 0 {
                        world.take();
                    }
                }
            }
            world.settle();
        }
    }
}

#[test]
fn readers_that_stay_miss_nothing_while_others_join_and_hand_over() {
    for seed in seeds(200) {
        let mut world = World::new(seed);
        let first = world.join(NEAR);
        world.subscribe(first, 8);
        world.settle();
        for _ in 0..4 {
            let node = world.join(NEAR);
            let payload_bytes_max = 8 << world.random.below(2);
            world.subscribe(node, payload_bytes_max);
            for _ in 0..100 {
                world.publish();
                let pause = 200_000 + world.random.below(10_000_000) as i64;
                world.run(Span::from_ns(pause));
                world.take();
            }
            world.settle();
        }
        for reader in world.members.values().flat_map(|member| &member.readers) {
            assert_eq!(reader.missed, 0, "seed {seed}");
        }
    }
}

#[test]
fn a_reader_in_a_handover_misses_nothing_though_announcements_are_lost() {
    for seed in seeds(200) {
        let mut world = World::new(seed);
        let first = world.join(NEAR);
        world.subscribe(first, 8);
        world.settle();
        (world.loss_percent, world.spares_samples) = (40, true);
        let second = world.join(NEAR);
        world.subscribe(second, 8);
        for _ in 0..300 {
            world.publish();
            let pause = 200_000 + world.random.below(20_000_000) as i64;
            world.run(Span::from_ns(pause));
            world.take();
        }
        assert_eq!(world.members[&first].readers[0].missed, 0, "seed {seed}");
        world.settle();
    }
}

#[test]
fn two_that_did_not_know_each_other_become_one_even_if_nothing_is_published() {
    for seed in seeds(100) {
        let mut world = World::new(seed);
        world.publish();
        world.run(CALM);
        world.loss_percent = 100;
        for _ in 0..3 {
            let node = world.join(NEAR);
            world.subscribe(node, 8);
        }
        world.run(Span::from_s(1));
        world.loss_percent = 0;
        world.run(CALM);
        assert_eq!(world.served().len(), 1, "seed {seed}");
    }
}

/// How long nobody gets anything once the receiver of three has been killed, or stopped; what they get then, they all
/// get once.
fn silence(seed: u64, loss_percent: u64, is_killed: bool) -> Span {
    let mut world = World::new(seed);
    for _ in 0..3 {
        let node = world.join(NEAR);
        world.subscribe(node, 8);
    }
    world.settle();
    (world.loss_percent, world.spares_samples) = (loss_percent, true);
    let receiver = world.served()[0];
    if is_killed {
        world.end(receiver, false);
    } else {
        // Its connections stay, and nobody answers.
        world.members.remove(&receiver);
    }
    let (ended_at, first) = (world.now, world.published + 1);
    while world.members.values().flat_map(|member| &member.readers).any(|reader| reader.last < first) {
        world.publish();
        world.run(Span::from_ms(1));
        world.take();
    }
    let silence = world.now - ended_at;
    world.settle();
    silence
}

#[test]
fn where_the_receiver_dies_the_others_miss_a_few_milliseconds() {
    for seed in seeds(200) {
        let silence = silence(seed, 0, true);
        assert!(silence <= Span::from_ms(5), "seed {seed}: {silence:?}");
    }
}

#[test]
fn where_announcements_of_that_are_lost_the_next_hello_repairs_it() {
    let mut silences: Vec<Span> = seeds(200).map(|seed| silence(seed, 20, true)).collect();
    silences.sort_unstable();
    let (median, worst) = (silences[(silences.len() - 1) / 2], silences[silences.len() - 1]);
    println!("median {median:?}, worst {worst:?}");
    assert!(worst <= Span::from_s(4), "{worst:?}");
    assert!(silences.len() < 100 || median <= Span::from_ms(5), "{median:?}");
}

#[test]
fn a_receiver_that_is_stopped_keeps_the_others_waiting_for_its_lifetime_only() {
    for seed in seeds(50) {
        let silence = silence(seed, 0, false);
        let lifetime = DiscoveryConfig::default().lifetime;
        assert!(silence <= lifetime + Span::from_ms(1100), "seed {seed}: {silence:?}");
    }
}
