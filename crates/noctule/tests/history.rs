//! Histories: of what depth, the newest alone, all of it, and for late joiners.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests and what they share

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use noctule::clock::LocalClock;
use noctule::{Node, PublishError, Publisher, Reliability, Subscriber};

const LONG: Duration = Duration::from_secs(30);

/// Two nodes of one host, or of two hosts: then their clocks differ.
fn pair(number: u32, hosts: u32) -> (Node, Node) {
    let domain = 3500 + (std::process::id() % 40) * 13 + number;
    let node = |name: &str, clock: &str| {
        let clock: LocalClock = clock.parse().unwrap();
        Node::builder(name).domain(domain).clock(clock).keep_notices().open().unwrap()
    };
    (node("far", if hosts > 1 { "offset=5s" } else { "" }), node("near", ""))
}

fn join(publisher: &Publisher, subscriber: &mut Subscriber) {
    while publisher.readers() == 0 || subscriber.publishers() == 0 {
        subscriber.wait(Some(Duration::from_millis(5)));
    }
}

/// Joins them and takes a first sample: what came before is not missed.
fn begin(publisher: &mut Publisher, subscriber: &mut Subscriber) {
    join(publisher, subscriber);
    publisher.publish(&[0]).unwrap();
    assert_eq!(subscriber.receive(Some(LONG)).unwrap().expect("the first").to_vec(), [0]);
}

fn take_all(subscriber: &mut Subscriber) -> (Vec<u8>, u64) {
    let (mut taken, mut missed) = (Vec::new(), 0);
    while let Some(sample) = subscriber.take().unwrap() {
        taken.push(sample.to_vec()[0]);
        missed += sample.info().missed;
    }
    (taken, missed)
}

/// Waits until the last of the samples has come, without taking any.
fn until_all_came(far: &Node, near: &Node, publisher: &Publisher, samples: u64) {
    assert!(publisher.wait_for_acknowledgments(LONG));
    while far.id() != near.id() && near.link_counters(far.id()).is_some_and(|link| link.delivered < samples) {
        std::thread::yield_now();
    }
}

#[test]
fn keep_last_is_the_depth_on_both_sides_on_one_host_and_between_two() {
    for hosts in [1, 2] {
        for (number, writer, reader, depth) in
            [(0, 8, None, 8), (1, 8, Some(3), 3), (2, 3, Some(100), 3), (3, 1, None, 1)]
        {
            // On one host there is one ring, the publisher's; what comes from another goes into the subscriber's own.
            let depth = if hosts == 2 { reader.map_or(depth, |own| own.min(40).into()) } else { depth };
            let (far, near) = pair(number, hosts);
            let reliable = Reliability::Reliable;
            let mut publisher = far.publisher("t").reliability(reliable).keep_last(writer).open().unwrap();
            let builder = near.subscriber("t").reliability(reliable);
            let builder = if let Some(depth) = reader { builder.keep_last(depth) } else { builder };
            let mut subscriber = builder.open().unwrap();
            begin(&mut publisher, &mut subscriber);
            for number in 1..=40 {
                publisher.publish(&[number; 2_000]).unwrap();
                assert!(publisher.wait_for_acknowledgments(LONG));
            }
            until_all_came(&far, &near, &publisher, 41);
            let last: Vec<u8> = (41 - depth as u8..=40).collect();
            assert_eq!(take_all(&mut subscriber), (last, 40 - depth), "{hosts} hosts, {writer}, {reader:?}");
        }
    }
}

#[test]
fn the_latest_sample_is_the_one_published_last() {
    for hosts in [1, 2] {
        let (far, near) = pair(4, hosts);
        let reliable = Reliability::Reliable;
        let mut publisher = far.publisher("t").reliability(reliable).open().unwrap();
        let mut subscriber = near.subscriber("t").reliability(reliable).open().unwrap();
        begin(&mut publisher, &mut subscriber);
        assert!(subscriber.take_latest().unwrap().is_none());
        for round in 0..5u8 {
            for number in 1..=7 {
                publisher.publish(&[10 * round + number]).unwrap();
            }
            until_all_came(&far, &near, &publisher, 1 + 7 * (u64::from(round) + 1));
            let latest = subscriber.take_latest().unwrap().expect("seven came");
            assert_eq!((latest.to_vec(), latest.info().missed), (vec![10 * round + 7], 6), "{hosts} hosts");
            drop(latest);
            assert!(subscriber.take_latest().unwrap().is_none() && subscriber.take().unwrap().is_none());
        }
    }
}

/// A publisher runs ahead as it likes; whatever its reader does meanwhile, `take_latest` gives nothing that is older than what was published last
/// before the call.
#[test]
fn the_latest_sample_is_never_older_than_what_was_published_before_the_call() {
    let (far, near) = pair(9, 1);
    let mut publisher = far.publisher("t").keep_last(4).open().unwrap();
    let mut subscriber = near.subscriber("t").open().unwrap();
    join(&publisher, &mut subscriber);
    let (published, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    let wait_until = |count: u64| {
        while published.load(Ordering::Acquire) < count {
            std::thread::yield_now();
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut number = 0_u64;
            while !is_over.load(Ordering::Relaxed) {
                number += 1;
                publisher.publish(&number.to_le_bytes()).unwrap();
                published.store(number, Ordering::Release);
            }
        });
        let (mut newest, mut missed, mut taken) = (0, 0, 0);
        for round in 0..300_u64 {
            // Nothing, one sample, less than the ring, many times the ring; now and then some are taken one by one.
            let before = published.load(Ordering::Acquire) + [0, 1, 3, 500][round as usize % 4];
            wait_until(before);
            for _ in 0..round % 3 {
                let Some(sample) = subscriber.take().unwrap() else { break };
                newest = u64::from_le_bytes(sample.to_vec().try_into().unwrap());
                (missed, taken) = (missed + sample.info().missed, taken + 1);
            }
            let before = before.max(published.load(Ordering::Acquire));
            if let Some(sample) = subscriber.take_latest().unwrap() {
                let number = u64::from_le_bytes(sample.to_vec().try_into().unwrap());
                assert!(number > newest, "{number} after {newest}");
                (newest, missed, taken) = (number, missed + sample.info().missed, taken + 1);
            }
            assert!(newest >= before, "round {round}: {newest}, and {before} were published before");
            assert_eq!(taken + missed, newest, "round {round}");
        }
        is_over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn of_several_publishers_the_latest_sample_is_the_one_that_was_true_last() {
    let (far, near) = pair(5, 1);
    let mut publishers = [far.publisher("t").open().unwrap(), near.publisher("t").open().unwrap()];
    let mut subscriber = near.subscriber("t").open().unwrap();
    publishers.iter().for_each(|publisher| {
        while publisher.readers() == 0 || subscriber.publishers() < 2 {
            subscriber.wait(Some(Duration::from_millis(5)));
        }
    });
    for (at, number) in [(0, 1), (1, 2), (0, 3), (1, 4), (0, 5)] {
        publishers[at].publish(&[number]).unwrap();
    }
    assert_eq!(subscriber.take_latest().unwrap().expect("five came").to_vec(), [5]);
    assert!(subscriber.take_latest().unwrap().is_none());
}

#[test]
fn with_keep_all_a_publisher_is_held_up_and_nothing_is_lost() {
    let (far, near) = pair(6, 1);
    let reliable = Reliability::Reliable;
    let mut publisher = far.publisher("t").reliability(reliable).keep_all(16).open().unwrap();
    let mut subscriber = near.subscriber("t").reliability(reliable).open().unwrap();
    join(&publisher, &mut subscriber);
    let (mut held_up, mut taken) = (0, 0u16);
    for number in 0..2_000u16 {
        while let Err(error) = publisher.publish(&number.to_le_bytes()) {
            assert!(matches!(error, PublishError::WouldBlock { .. }), "{error}");
            held_up += 1;
            while let Some(sample) = subscriber.take().unwrap() {
                assert_eq!((sample.to_vec(), sample.info().missed), (taken.to_le_bytes().to_vec(), 0));
                taken += 1;
            }
            assert!(publisher.wait_for_room(2, LONG));
        }
    }
    assert_eq!((held_up, publisher.published()), (2_000 / 16 - 1, 2_000));
    assert_eq!(publisher.would_block(), held_up);
    while let Some(sample) = subscriber.take().unwrap() {
        assert_eq!(sample.to_vec(), taken.to_le_bytes());
        taken += 1;
    }
    assert_eq!(taken, 2_000);
}

#[test]
fn readers_of_its_host_that_keep_the_last_or_request_no_reliability_do_not_hold_up_a_publisher_that_keeps_all()
 {
    const SAMPLES: u32 = 1_000;
    let (far, near) = pair(12, 1);
    let reliable = Reliability::Reliable;
    let mut publisher = far.publisher("t").reliability(reliable).keep_all(16).open().unwrap();
    let mut live = near.subscriber("t").reliability(reliable).keep_all(16).open().unwrap();
    // Of the publisher's own node, too.
    let idle = [
        near.subscriber("t"),
        far.subscriber("t"),
        near.subscriber("t").keep_all(16),
        near.subscriber("t").reliability(reliable).keep_last(4),
        far.subscriber("t").reliability(reliable).keep_last(1),
    ];
    let mut idle = idle.map(|builder| builder.open().unwrap());
    let mut all: Vec<&mut Subscriber> = idle.iter_mut().chain([&mut live]).collect();
    while publisher.readers() < all.len() || all.iter_mut().any(|subscriber| subscriber.publishers() == 0) {
        all[0].wait(Some(Duration::from_millis(1)));
    }
    // From the first on, so that what is missed later is counted.
    publisher.publish(&0_u32.to_le_bytes()).unwrap();
    all.iter_mut().for_each(|subscriber| assert!(subscriber.receive(Some(LONG)).unwrap().is_some()));
    for number in 1..SAMPLES {
        publisher.publish(&number.to_le_bytes()).expect("the reader that keeps all has read all");
        let sample = live.receive(Some(LONG)).unwrap().expect("every sample");
        assert_eq!((sample.to_vec(), sample.info().missed), (number.to_le_bytes().to_vec(), 0));
    }
    for (at, subscriber) in idle.iter_mut().enumerate() {
        while subscriber.take().unwrap().is_some() {}
        let counters = subscriber.counters();
        assert!(counters.missed >= u64::from(SAMPLES) - 100, "{at}: {counters:?}");
        assert_eq!(counters.taken + counters.missed, u64::from(SAMPLES), "{at}: {counters:?}");
    }
    // And the reader that keeps all still does.
    let mut next = 0;
    while publisher.publish(&[0]).is_ok() {
        next += 1;
    }
    assert_eq!((next, publisher.would_block()), (16, 1));
}

#[test]
fn with_keep_all_everything_reaches_another_host() {
    let (far, near) = pair(11, 2);
    let reliable = Reliability::Reliable;
    let mut publisher = far.publisher("t").reliability(reliable).keep_all(16).open().unwrap();
    let mut subscriber = near.subscriber("t").reliability(reliable).open().unwrap();
    begin(&mut publisher, &mut subscriber);
    let (mut held_up, mut taken, mut missed) = (0, 0, 0);
    for _ in 0..2_000 {
        while let Err(error) = publisher.publish(&[7; 3_000]) {
            assert!(matches!(error, PublishError::WouldBlock { .. }), "{error}");
            held_up += 1;
            // Read as late as can be.
            while let Some(sample) = subscriber.take().unwrap() {
                (taken, missed) = (taken + 1, missed + sample.info().missed);
            }
            assert!(publisher.wait_for_room(3_000, LONG));
        }
    }
    while taken < 2_000 {
        let Some(sample) = subscriber.receive(Some(LONG)).unwrap() else {
            panic!("{taken} taken, {missed} missed, {:?}", near.link_counters(far.id()));
        };
        (taken, missed) = (taken + 1, missed + sample.info().missed);
    }
    assert!(publisher.wait_for_acknowledgments(LONG), "nothing was given up");
    assert!(held_up > 0, "it was never held up");
    assert_eq!((missed, publisher.given_up()), (0, 0));
    // A limit alone is the shortest datagram of a link, and no other protocol's.
    assert_eq!([&near, &far].map(|node| node.counters().discovery.malformed), [0, 0]);
}

#[test]
fn a_reader_that_is_gone_no_longer_holds_up_its_publisher() {
    let (far, near) = pair(7, 1);
    let reliable = Reliability::Reliable;
    let mut publisher = far.publisher("t").reliability(reliable).keep_all(4).open().unwrap();
    let mut subscriber = near.subscriber("t").reliability(reliable).open().unwrap();
    join(&publisher, &mut subscriber);
    let refused = loop {
        if let Err(refused) = publisher.publish(b"x") {
            break refused.to_string();
        }
    };
    assert!(refused.contains("publish again later"), "{refused}");
    assert!(!publisher.wait_for_room(1, Duration::from_millis(2)));
    drop(subscriber);
    assert!(publisher.wait_for_room(1, LONG));
    publisher.publish(b"x").unwrap();
}

#[test]
fn late_joiners_get_the_history_at_best_effort_too_on_any_host() {
    for (hosts, reliability) in
        [(1, Reliability::BestEffort), (2, Reliability::BestEffort), (2, Reliability::Reliable)]
    {
        for number in 8..11 {
            let (far, near) = pair(number, hosts);
            let mut publisher = far.publisher("t").reliability(reliability).transient_local().open().unwrap();
            (1..=5).for_each(|number| publisher.publish(&[number]).unwrap());
            let builder = near.subscriber("t").reliability(reliability).transient_local();
            let mut subscriber = builder.open().unwrap();
            for expected in 1..=5 {
                let sample = subscriber.receive(Some(LONG)).unwrap().expect("the history comes first");
                assert_eq!(sample.to_vec(), [expected], "{hosts} hosts, {reliability:?}");
            }
            publisher.publish(&[6]).unwrap();
            let sample = subscriber.receive(Some(LONG)).unwrap().expect("what is new comes then");
            assert_eq!((sample.to_vec(), sample.info().missed), (vec![6], 0));
        }
    }
}
