//! Swarms of real state machines in a deterministic simulation.

use noctule_discovery::{Endpoint, EndpointKind, Reason, Reliability};
use noctule_timebase::Span;

mod swarm;

use swarm::{Swarm, endpoint};

fn writer(topic: &str) -> Endpoint {
    endpoint(EndpointKind::Writer, topic)
}

fn reader(topic: &str) -> Endpoint {
    endpoint(EndpointKind::Reader, topic)
}

#[test]
fn writer_and_reader_find_each_other_at_once() {
    let mut swarm = Swarm::new(1);
    let (a, b) = (swarm.start("a"), swarm.start("b"));
    swarm.add(a, writer("imu"));
    swarm.add(b, reader("imu"));
    swarm.run(Span::from_ms(50));
    assert_eq!((swarm.matches(a), swarm.matches(b)), (1, 1));
}

#[test]
fn an_endpoint_added_later_is_announced_without_waiting_for_the_next_hello() {
    let mut swarm = Swarm::new(2);
    let (a, b) = (swarm.start("a"), swarm.start("b"));
    swarm.add(b, reader("late"));
    swarm.run(Span::from_s(5));
    swarm.add(a, writer("late"));
    swarm.run(Span::from_ms(40));
    assert_eq!((swarm.matches(a), swarm.matches(b)), (1, 1));
}

#[test]
fn a_mismatch_is_named_on_both_sides_and_once() {
    let mut swarm = Swarm::new(3);
    let (a, b) = (swarm.start("a"), swarm.start("b"));
    swarm.add(a, writer("imu"));
    let mut demanding = reader("imu");
    demanding.qos.reliability = Reliability::Reliable;
    swarm.add(b, demanding);
    swarm.run(Span::from_s(5));
    let expected = "the writer offers best_effort, the reader requests reliable; offer more or request less";
    assert_eq!(swarm.mismatches(a), [expected]);
    assert_eq!(swarm.mismatches(b), [expected]);
}

#[test]
fn goodbye_is_heard_and_silence_is_noticed_after_the_lifetime() {
    let mut swarm = Swarm::new(4);
    let (a, b, c) = (swarm.start("a"), swarm.start("b"), swarm.start("c"));
    swarm.add(a, writer("imu"));
    swarm.add(b, reader("imu"));
    swarm.run(Span::from_s(2));
    swarm.leave(b);
    swarm.run(Span::from_ms(10));
    assert_eq!(swarm.matches(a), 0);
    assert_eq!(swarm.gone(a), [Reason::Left]);
    swarm.kill(c);
    swarm.run(Span::from_s(3));
    assert_eq!(swarm.gone(a), [Reason::Left]);
    swarm.run(Span::from_s(3));
    assert_eq!(swarm.gone(a), [Reason::Left, Reason::Silent]);
}

#[test]
fn a_restarted_node_replaces_itself_at_once() {
    let mut swarm = Swarm::new(5);
    let (a, b) = (swarm.start("a"), swarm.start("b"));
    swarm.add(a, writer("imu"));
    swarm.add(b, reader("imu"));
    swarm.run(Span::from_s(2));
    swarm.restart(b);
    swarm.add(b, reader("imu"));
    swarm.run(Span::from_ms(50));
    assert_eq!(swarm.gone(a), [Reason::Restarted]);
    assert_eq!((swarm.matches(a), swarm.matches(b)), (1, 1));
}

#[test]
fn a_thousand_topics_of_one_node_arrive_although_a_fifth_is_lost() {
    let mut swarm = Swarm::new(6);
    swarm.loss = 0.2;
    let (a, b) = (swarm.start("a"), swarm.start("b"));
    for number in 0..1000 {
        swarm.add(a, writer(&format!("topic_{number}")));
        swarm.add(b, reader(&format!("topic_{number}")));
    }
    swarm.run(Span::from_s(20));
    assert_eq!((swarm.matches(a), swarm.matches(b)), (1000, 1000));
}

#[test]
fn removing_an_endpoint_ends_its_matches_on_both_sides() {
    let mut swarm = Swarm::new(7);
    let (a, b) = (swarm.start("a"), swarm.start("b"));
    let id = swarm.add(a, writer("imu"));
    swarm.add(b, reader("imu"));
    swarm.run(Span::from_ms(50));
    swarm.remove(a, id);
    swarm.run(Span::from_ms(50));
    assert_eq!((swarm.matches(a), swarm.matches(b)), (0, 0));
}

#[test]
fn a_node_that_only_unicast_reaches_is_answered_by_unicast() {
    let mut swarm = Swarm::new(8);
    swarm.multicast = false;
    let a = swarm.start("a");
    let b = swarm.start_with_peers("b", vec![Swarm::locator(a)]);
    swarm.add(a, writer("imu"));
    swarm.add(b, reader("imu"));
    swarm.run(Span::from_ms(500));
    assert_eq!((swarm.matches(a), swarm.matches(b)), (1, 1));
}

#[test]
fn nobody_is_given_up_because_hellos_were_lost() {
    let mut swarm = Swarm::new(11);
    swarm.loss = 0.2;
    let nodes: Vec<_> = (0..20).map(|_| swarm.start("n")).collect();
    swarm.run(Span::from_s(300));
    let gone: usize = nodes.iter().map(|node| swarm.gone(*node).len()).sum();
    // 114,000 intervals of a second between pairs; without asking about 900 would end in a departure.
    assert!(gone <= 3, "{gone} departures of nodes that were there");
}

#[test]
fn other_domains_are_not_seen() {
    let mut swarm = Swarm::new(9);
    let a = swarm.start("a");
    swarm.domain = 1;
    let b = swarm.start("b");
    swarm.add(a, writer("imu"));
    swarm.add(b, reader("imu"));
    swarm.run(Span::from_s(3));
    assert_eq!(swarm.matches(a), 0);
    assert!(swarm.counters(a).other_domain > 0);
}

#[test]
fn bytes_per_second_do_not_grow_with_the_swarm() {
    let steady_bytes_per_s = |nodes: usize, loss: f64| {
        let mut swarm = Swarm::new(10);
        swarm.loss = loss;
        let all: Vec<_> = (0..nodes).map(|_| swarm.start("n")).collect();
        all.iter().for_each(|node| {
            swarm.add(*node, writer("state"));
        });
        let sent = |swarm: &Swarm| all.iter().map(|node| swarm.counters(*node).sent_bytes).sum::<u64>();
        swarm.run(Span::from_s(5));
        let before = sent(&swarm);
        swarm.run(Span::from_s(20));
        (sent(&swarm) - before) as f64 / (20.0 * nodes as f64)
    };
    for (loss, growth) in [(0.0, 0.1), (0.2, 0.3)] {
        let (few, many) = (steady_bytes_per_s(5, loss), steady_bytes_per_s(60, loss));
        assert!((many / few - 1.0).abs() < growth, "{few} against {many} bytes per second, {loss} lost");
    }
}
