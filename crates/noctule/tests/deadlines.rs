//! A missed deadline is reported on both sides, whatever way the samples take.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests and what they share

use std::time::Duration;

use noctule::clock::LocalClock;
use noctule::{EndpointKind, Node, Notice, Publisher, Subscriber};

const PERIOD: Duration = Duration::from_millis(20);

fn nodes(domain: u32, clock: &str) -> (Node, Node) {
    let clock: LocalClock = clock.parse().unwrap();
    let domain = 3000 + (std::process::id() % 400) * 4 + domain;
    let node = |name, clock| Node::builder(name).domain(domain).clock(clock).keep_notices().open().unwrap();
    (node("a", clock), node("b", LocalClock::default()))
}

fn joined(a: &Node, b: &Node) -> (Publisher, Subscriber) {
    let publisher = a.publisher("imu").deadline(PERIOD).open().unwrap();
    let mut subscriber = b.subscriber("imu").deadline(2 * PERIOD).open().unwrap();
    while publisher.readers() == 0 || subscriber.publishers() == 0 {
        subscriber.wait(Some(Duration::from_millis(5)));
    }
    (publisher, subscriber)
}

/// The next notice of a missed deadline.
fn next_missed(node: &Node, subscriber: &mut Subscriber) -> (EndpointKind, String) {
    loop {
        match node.poll_notice() {
            Some(notice @ Notice::DeadlineMissed { kind, .. }) => return (kind, notice.to_string()),
            Some(_) => {}
            None => _ = subscriber.wait(Some(Duration::from_millis(5))),
        }
    }
}

fn a_stall_is_reported_on_both_sides(domain: u32, clock: &str) {
    let (a, b) = nodes(domain, clock);
    let (mut publisher, mut subscriber) = joined(&a, &b);
    // Before the first sample no deadline runs.
    assert_eq!((publisher.deadline_missed().total, subscriber.deadline_missed().total), (0, 0));
    while subscriber.take().unwrap().is_none() {
        publisher.publish(b"first").unwrap();
        subscriber.wait(Some(Duration::from_millis(5)));
    }
    let (kind, words) = next_missed(&a, &mut subscriber);
    assert!(kind == EndpointKind::Writer && words.contains("nothing was published for 20 ms"), "{words}");
    let (kind, words) = next_missed(&b, &mut subscriber);
    assert!(kind == EndpointKind::Reader && words.contains("nothing was received for 40 ms"), "{words}");
    let before = subscriber.deadline_missed();
    assert!(before.total > 0 && before.last <= Some(b.now()), "{before:?}");
    assert!(publisher.deadline_missed().last <= Some(a.now()));
    // It goes on counting, and statistics say the same.
    while subscriber.statistics().deadline_missed <= before.total {
        subscriber.wait(Some(Duration::from_millis(5)));
    }
    // A publisher that is gone delivers no less late.
    drop(publisher);
    while subscriber.publishers() > 0 {
        subscriber.wait(Some(Duration::from_millis(5)));
    }
    let then = subscriber.deadline_missed().total;
    while subscriber.deadline_missed().total <= then {
        subscriber.wait(Some(Duration::from_millis(5)));
    }
}

#[test]
fn a_stall_is_reported_on_both_sides_through_shared_memory() {
    a_stall_is_reported_on_both_sides(0, "");
}

#[test]
fn a_stall_is_reported_on_both_sides_of_a_network() {
    a_stall_is_reported_on_both_sides(1, "offset=5s,ppm=50");
}

#[test]
fn a_deadline_that_is_kept_or_not_begun_is_not_missed() {
    let (a, b) = nodes(2, "");
    let mut publisher = a.publisher("imu").deadline(Duration::from_secs(3600)).open().unwrap();
    let mut subscriber = b.subscriber("imu").deadline(Duration::from_secs(3600)).open().unwrap();
    let mut silent = b.subscriber("other").deadline(PERIOD).open().unwrap();
    while subscriber.take().unwrap().is_none() {
        publisher.publish(b"sample").unwrap();
        silent.wait(Some(PERIOD));
    }
    assert_eq!((publisher.deadline_missed().total, publisher.deadline_missed().last), (0, None));
    assert_eq!((subscriber.deadline_missed().total, silent.deadline_missed().total), (0, 0));
}
