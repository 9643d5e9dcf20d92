//! Which publisher a sample is from, and which subscribers hear those of the own node.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests and what they share

use std::collections::BTreeMap;
use std::time::Duration;

use noctule::clock::LocalClock;
use noctule::{EndpointKind, Node};

const LONG: Duration = Duration::from_secs(30);

/// On one host, or on two: those of different clocks count as that.
fn pair(number: u32, hosts: u32) -> (Node, Node) {
    let domain = 3700 + (std::process::id() % 40) * 4 + number;
    let node = |name: &str, clock: &str| {
        let clock: LocalClock = clock.parse().unwrap();
        Node::builder(name).domain(domain).clock(clock).keep_notices().open().unwrap()
    };
    (node("far", if hosts == 2 { "offset=5s" } else { "" }), node("near", ""))
}

#[test]
fn a_sample_names_its_publisher_as_discovery_does() {
    for hosts in [1, 2] {
        let (far, near) = pair(hosts, hosts);
        let mut publishers = ["a", "b"].map(|_| far.publisher("t").open().unwrap());
        let mut subscriber = near.subscriber("t").open().unwrap();
        while publishers.iter().any(|publisher| publisher.readers() == 0) || subscriber.publishers() < 2 {
            subscriber.wait(Some(Duration::from_millis(5)));
        }
        let mut endpoints = BTreeMap::new();
        for number in 0..6 {
            publishers[number % 2].publish(&[number as u8 % 2]).unwrap();
            let sample = subscriber.receive(Some(LONG)).unwrap().expect("it comes");
            let info = *sample.info();
            assert_eq!((info.publisher, info.sequence), (far.id(), 1 + number as u64 / 2), "{hosts} hosts");
            assert_eq!(*endpoints.entry(sample.to_vec()).or_insert(info.endpoint), info.endpoint);
        }
        let known: Vec<_> = near.endpoints().into_iter().map(|known| known.endpoint).collect();
        let mut writers: Vec<_> =
            known.iter().filter(|end| end.kind == EndpointKind::Writer && end.topic == "t").collect();
        writers.sort_by_key(|end| end.id);
        assert_eq!(endpoints.into_values().collect::<Vec<_>>(), [writers[0].id, writers[1].id]);
    }
}

#[test]
fn a_subscriber_that_ignores_its_own_node_hears_all_others() {
    let (far, near) = pair(0, 1);
    // Whichever of the two is there first.
    let mut early = near.publisher("t").open().unwrap();
    let mut subscriber = near.subscriber("t").ignore_local(true).open().unwrap();
    let mut all = near.subscriber("t").open().unwrap();
    let mut late = near.publisher("t").open().unwrap();
    let mut other = far.publisher("t").open().unwrap();
    while subscriber.publishers() == 0
        || all.publishers() < 3
        || [&early, &late].iter().any(|publisher| publisher.readers() != 1)
        || other.readers() != 2
    {
        all.wait(Some(Duration::from_millis(5)));
    }
    early.publish(b"early").unwrap();
    late.publish(b"late").unwrap();
    other.publish(b"other").unwrap();
    assert_eq!(subscriber.receive(Some(LONG)).unwrap().unwrap().to_vec(), b"other");
    let mut heard: Vec<_> = (0..3).map(|_| all.receive(Some(LONG)).unwrap().unwrap().to_vec()).collect();
    heard.sort();
    assert_eq!(heard, [&b"early"[..], b"late", b"other"]);
    assert_eq!((subscriber.publishers(), subscriber.take().unwrap().is_none()), (1, true));
}
