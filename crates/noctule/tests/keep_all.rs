//! A topic that keeps all, between two hosts: over a line that carries less than is published, and to readers that read less.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)] // tests and what they share

use std::time::Duration;

use noctule::clock::LocalClock;
use noctule::{Node, PublishError, Publisher, Reliability, Subscriber, SubscriberBuilder};

mod hosts;

const SAMPLES: u32 = 600;
const SAMPLE_BYTES: usize = 3_000;
const LONG: Duration = Duration::from_secs(60);

#[test]
fn a_line_that_is_full_holds_up_the_publisher_and_nothing_is_lost() {
    let Some(hosts) = hosts::pair() else { return };
    hosts.0.limit(5);
    let far = hosts.0.node("far", |builder| builder.domain(43));
    let near = hosts.1.node("near", |builder| builder.domain(43));
    let reliable = Reliability::Reliable;
    let mut publisher = far.publisher("rows").reliability(reliable).keep_all(16).open().unwrap();
    // All of them, so that a reader that this machine keeps waiting overruns none.
    let mut subscriber = near.subscriber("rows").reliability(reliable).keep_last(SAMPLES).open().unwrap();
    while publisher.readers() == 0 || subscriber.publishers() == 0 {
        subscriber.wait(Some(Duration::from_millis(5)));
    }
    let mut held_up = 0;
    for number in 0..SAMPLES {
        let mut bytes = [0; SAMPLE_BYTES];
        bytes[..4].copy_from_slice(&number.to_le_bytes());
        while let Err(error) = publisher.publish(&bytes) {
            assert!(matches!(error, PublishError::WouldBlock { .. }), "{error}");
            held_up += 1;
            assert!(publisher.wait_for_room(SAMPLE_BYTES, LONG), "there is never room");
        }
    }
    assert!(publisher.wait_for_acknowledgments(LONG), "all is acknowledged");
    assert!(held_up > 0 && publisher.given_up() == 0, "{held_up} times held up, {}", publisher.given_up());
    eprintln!("{SAMPLES} samples, held up {held_up} times");
    for expected in 0..SAMPLES {
        let sample = subscriber.receive(Some(LONG)).unwrap().expect("nothing is lost");
        let bytes = sample.to_vec();
        assert_eq!((bytes.len(), &bytes[..4]), (SAMPLE_BYTES, expected.to_le_bytes().as_slice()));
        assert_eq!(sample.info().missed, 0);
    }
}

/// A reader's name, its QoS, and how many samples then wait at it.
type Reader = (&'static str, fn(SubscriberBuilder) -> SubscriberBuilder, u32);

const DEPTH: u32 = 16;
const READERS: [Reader; 3] = [
    ("a reader that asks for no history has the publisher's", |builder| builder, DEPTH),
    ("one that keeps less than the publisher", |builder| builder.keep_all(4), 4),
    ("one that keeps more", |builder| builder.keep_all(40), 40),
];

fn nodes(number: u32) -> (Node, Node) {
    let domain = 3500 + (std::process::id() % 40) * 4 + number;
    let node = |name: &str, clock: &str| {
        let clock: LocalClock = clock.parse().unwrap();
        Node::builder(name).domain(domain).clock(clock).keep_notices().open().unwrap()
    };
    // Of different clocks, so they count as different hosts.
    (node("far", "offset=5s"), node("near", ""))
}

fn topic(far: &Node, near: &Node, name: &str, reader: &Reader) -> (Publisher, Subscriber) {
    let reliable = Reliability::Reliable;
    let publisher = far.publisher(name).reliability(reliable).keep_all(DEPTH).open().unwrap();
    let mut subscriber = reader.1(near.subscriber(name).reliability(reliable)).open().unwrap();
    while publisher.readers() == 0 || subscriber.publishers() == 0 {
        subscriber.wait(Some(Duration::from_millis(5)));
    }
    (publisher, subscriber)
}

/// Publishes numbers from `next` on until there has been no room for a while.
fn fill(publisher: &mut Publisher, next: &mut u32) {
    while publisher.wait_for_room(4, Duration::from_millis(300)) {
        publisher.publish(&next.to_le_bytes()).unwrap();
        *next += 1;
    }
    assert!(matches!(publisher.publish(&[0; 4]), Err(PublishError::WouldBlock { .. })));
}

fn expect(subscriber: &mut Subscriber, number: u32, what: &str) {
    let sample = subscriber.receive(Some(LONG)).unwrap().expect("nothing is lost");
    assert_eq!((sample.to_vec(), sample.info().missed), (number.to_le_bytes().to_vec(), 0), "{what}");
}

#[test]
fn a_reader_of_another_host_that_reads_slowly_loses_nothing() {
    let (far, near) = nodes(0);
    for reader in &READERS {
        let (what, _, kept) = *reader;
        // A topic for each: the reader before may not be known to have gone.
        let (mut publisher, mut subscriber) = topic(&far, &near, &format!("rows{kept}"), reader);
        let (mut beside, mut heard) = topic(&far, &near, &format!("beside{kept}"), reader);
        let (mut next, mut read) = (0, 0);
        fill(&mut publisher, &mut next);
        assert_eq!(next, kept + DEPTH, "{what}: so many wait at the reader, and so many here");
        for number in 0..100u32 {
            while beside.publish(&number.to_le_bytes()).is_err() {
                assert!(beside.wait_for_room(4, LONG), "{what}: another topic goes on");
            }
            expect(&mut heard, number, what);
        }
        while read < 500 {
            expect(&mut subscriber, read, what);
            read += 1;
            // When all is read there is room as soon as that is acknowledged.
            let timeout = if read == next { LONG } else { Duration::ZERO };
            while publisher.wait_for_room(4, timeout) {
                publisher.publish(&next.to_le_bytes()).unwrap();
                next += 1;
                if timeout > Duration::ZERO {
                    break;
                }
            }
        }
        fill(&mut publisher, &mut next);
        (read..next).for_each(|number| expect(&mut subscriber, number, what));
        assert!(publisher.wait_for_acknowledgments(LONG), "{what}");
        assert_eq!((publisher.given_up(), subscriber.counters().missed), (0, 0), "{what}");
    }
}

#[test]
fn of_several_readers_of_a_node_the_slowest_that_keeps_all_counts() {
    let (far, near) = nodes(1);
    let (mut publisher, mut slow) = topic(&far, &near, "rows", &READERS[0]);
    let reliable = Reliability::Reliable;
    let mut quick = near.subscriber("rows").reliability(reliable).open().unwrap();
    let mut last = near.subscriber("rows").reliability(reliable).keep_last(1).open().unwrap();
    let mut any = near.subscriber("rows").open().unwrap();
    for subscriber in [&mut quick, &mut last, &mut any] {
        while subscriber.publishers() == 0 {
            subscriber.wait(Some(Duration::from_millis(5)));
        }
    }
    let mut next = 0;
    fill(&mut publisher, &mut next);
    assert_eq!(next, 2 * DEPTH);
    (0..DEPTH).for_each(|number| expect(&mut quick, number, "the quick one"));
    assert!(!publisher.wait_for_room(4, Duration::from_millis(50)), "the slow one has read nothing");
    (0..DEPTH).for_each(|number| expect(&mut slow, number, "the slow one"));
    // It goes; those that keep the last, and those that request no reliability, hold up no publisher.
    drop(slow);
    (DEPTH..2 * DEPTH).for_each(|number| expect(&mut quick, number, "the quick one"));
    drop(quick);
    for _ in 0..100 {
        while publisher.publish(&next.to_le_bytes()).is_err() {
            assert!(publisher.wait_for_room(4, LONG), "no reader is waited for");
        }
        next += 1;
    }
    assert!(publisher.wait_for_acknowledgments(LONG));
    assert_eq!(last.receive(Some(LONG)).unwrap().unwrap().to_vec(), (next - 1).to_le_bytes());
    assert!(any.receive(Some(LONG)).unwrap().is_some());
}

#[test]
fn a_reader_that_never_reads_is_named_and_releases_its_publisher_when_it_goes() {
    let (far, near) = nodes(2);
    let (mut publisher, subscriber) = topic(&far, &near, "rows", &READERS[0]);
    let mut next = 0;
    fill(&mut publisher, &mut next);
    let notices = || std::iter::from_fn(|| far.poll_notice()).map(|it| it.to_string());
    while !notices().any(|notice| notice.contains("rows") && notice.contains("has read nothing for 5 s")) {
        assert!(!publisher.wait_for_room(4, Duration::from_millis(100)), "it is held up");
    }
    drop(subscriber);
    assert!(publisher.wait_for_room(4, LONG), "no reader is left");
    publisher.publish(&[0; 4]).unwrap();
}

#[test]
fn a_reader_of_the_same_host_that_never_reads_is_named_with_its_process() {
    let domain = 3900 + std::process::id() % 40;
    let node = |name: &str| Node::builder(name).domain(domain).keep_notices().open().unwrap();
    let (far, near) = (node("far"), node("near"));
    let (mut publisher, subscriber) = topic(&far, &near, "rows", &READERS[0]);
    let mut next = 0;
    fill(&mut publisher, &mut next);
    let process = format!("(process {} of this host)", std::process::id());
    let notices = || std::iter::from_fn(|| far.poll_notice()).map(|it| it.to_string());
    let is_meant = |notice: &String| {
        ["rows", &near.id().to_string(), &process, "has read nothing for 5 s"]
            .iter()
            .all(|part| notice.contains(part))
    };
    while notices().filter(is_meant).count() == 0 {
        assert!(!publisher.wait_for_room(4, Duration::from_millis(100)), "it is held up");
    }
    assert_eq!(publisher.held_up(), 1);
    drop(subscriber);
    assert!(publisher.wait_for_room(4, LONG), "no reader is left");
    publisher.publish(&[0; 4]).unwrap();
}

#[test]
fn of_a_publisher_that_keeps_the_last_a_reader_that_keeps_all_gets_what_is_not_replaced() {
    let (far, near) = nodes(3);
    let reliable = Reliability::Reliable;
    let mut publisher = far.publisher("rows").reliability(reliable).keep_last(4).open().unwrap();
    let mut subscriber = near.subscriber("rows").reliability(reliable).keep_all(8).open().unwrap();
    while publisher.readers() == 0 || subscriber.publishers() == 0 {
        subscriber.wait(Some(Duration::from_millis(5)));
    }
    for number in 0..8u32 {
        publisher.publish(&number.to_le_bytes()).unwrap();
        assert!(publisher.wait_for_acknowledgments(LONG), "there is room for eight");
    }
    (8..100u32).for_each(|number| publisher.publish(&number.to_le_bytes()).unwrap());
    (0..8).for_each(|number| expect(&mut subscriber, number, "what it had room for"));
    let (mut taken, mut missed, mut newest) = (8, 0, 0);
    while newest < 99 {
        let sample = subscriber.receive(Some(LONG)).unwrap().expect("the newest come");
        (taken, missed) = (taken + 1, missed + sample.info().missed);
        newest = u32::from_le_bytes(sample.to_vec().try_into().unwrap());
    }
    assert_eq!((taken + missed, missed), (100, publisher.given_up()));
}
