//! Publishers and subscribers on one host: found by discovery, joined by shared memory.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests and what they share

use std::time::Duration;

use noctule::{Node, Notice, Publisher, Reliability, Subscriber, SubscriberStatistics};
use noctule_timebase::Span;

/// Tests of one machine run at the same time; each has a domain of its own.
fn domain() -> u32 {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    1000 + (std::process::id() % 400) * 10 + NEXT.fetch_add(1, Ordering::Relaxed)
}

fn pair(domain: u32) -> (Node, Node) {
    let node = |name| Node::builder(name).domain(domain).keep_notices().open().unwrap();
    (node("a"), node("b"))
}

/// Publishes again and again until the subscriber has something: no fixed times.
fn until_received(publisher: &mut Publisher, subscriber: &mut Subscriber, bytes: &[u8]) -> noctule::Sample {
    for _ in 0..1000 {
        publisher.publish(bytes).unwrap();
        if let Some(sample) = subscriber.receive(Some(Duration::from_millis(20))).unwrap() {
            return sample;
        }
    }
    panic!("nothing was received");
}

#[test]
fn two_nodes_find_each_other_and_every_sample_knows_its_age() {
    let (a, b) = pair(domain());
    let mut publisher = a.publisher("imu").open().unwrap();
    let mut subscriber = b.subscriber("imu").open().unwrap();
    let sample = until_received(&mut publisher, &mut subscriber, b"sample");
    assert_eq!(sample.to_vec(), b"sample");
    let age = sample.age().unwrap();
    assert!(age.span >= Span::ZERO, "{age:?}");
    assert_eq!((age.bound, age.sigma), (Some(Span::ZERO), Some(Span::ZERO)));
}

#[test]
fn publisher_and_subscriber_of_one_node_find_each_other() {
    let node = Node::builder("alone").domain(domain()).open().unwrap();
    let mut subscriber = node.subscriber("loop").open().unwrap();
    let mut publisher = node.publisher("loop").open().unwrap();
    assert_eq!(until_received(&mut publisher, &mut subscriber, b"x").to_vec(), b"x");
}

#[test]
fn a_sample_stays_as_it_is_when_its_subscriber_and_its_node_are_closed() {
    let domain = domain();
    let (a, b) = pair(domain);
    let mut publisher =
        a.publisher("kept").reliability(Reliability::Reliable).keep_all(8).borrows(3).open().unwrap();
    let mut subscriber = b.subscriber("kept").reliability(Reliability::Reliable).open().unwrap();
    let kept = until_received(&mut publisher, &mut subscriber, b"kept");
    let publish_many = |publisher: &mut Publisher| {
        for _ in 0..100 {
            // What has gone holds up no writer.
            publisher.publish(b"next").unwrap();
        }
    };
    drop(subscriber);
    while publisher.readers() > 0 {
        std::thread::yield_now();
    }
    publish_many(&mut publisher);
    assert_eq!(kept.to_vec(), b"kept");
    drop(b);
    while !a.nodes().is_empty() {
        std::thread::yield_now();
    }
    publish_many(&mut publisher);
    assert_eq!(kept.to_vec(), b"kept");
    // It gives its place back: with three of them held, one more would have none.
    drop(kept);
    let c = Node::builder("c").domain(domain).keep_notices().open().unwrap();
    let mut subscriber = c.subscriber("kept").reliability(Reliability::Reliable).borrows(3).open().unwrap();
    let mut held = vec![until_received(&mut publisher, &mut subscriber, b"held")];
    while held.len() < 3 {
        publisher.publish(b"held").unwrap();
        held.push(subscriber.receive(None).unwrap().unwrap());
    }
    assert!(held.iter().all(|sample| sample.to_vec() == b"held"));
}

#[test]
fn the_first_sample_after_a_reader_counts_reaches_it() {
    let (a, b) = pair(domain());
    let mut publisher = a.publisher("once").keep_last(1).open().unwrap();
    for round in 0..20u8 {
        let mut subscriber = b.subscriber("once").open().unwrap();
        while publisher.readers() == 0 {
            std::thread::yield_now();
        }
        publisher.publish(&[round]).unwrap();
        let sample = subscriber.receive(Some(Duration::from_secs(20))).unwrap().expect("the one sample");
        assert_eq!((sample.to_vec(), sample.info().missed), (vec![round], 0));
        drop((sample, subscriber));
        while publisher.readers() > 0 {
            std::thread::yield_now();
        }
    }
}

#[test]
fn samples_come_in_order_and_what_was_overwritten_is_counted() {
    let (a, b) = pair(domain());
    let mut publisher = a.publisher("count").keep_last(4).open().unwrap();
    let mut subscriber = b.subscriber("count").open().unwrap();
    drop(until_received(&mut publisher, &mut subscriber, b"0"));
    while subscriber.take().unwrap().is_some() {}
    for number in 0..100u32 {
        publisher.publish(&number.to_le_bytes()).unwrap();
    }
    let (mut last, mut taken, mut missed) = (None, 0, 0);
    while let Some(sample) = subscriber.take().unwrap() {
        let number = u32::from_le_bytes(sample.to_vec().try_into().unwrap());
        assert!(last < Some(number));
        (last, taken, missed) = (Some(number), taken + 1, missed + sample.info().missed);
    }
    assert_eq!(last, Some(99));
    assert!(taken >= 4, "keep_last(4), got {taken}");
    assert_eq!(taken + missed, 100);
}

#[test]
fn a_late_joiner_of_a_transient_local_topic_gets_the_history() {
    let (a, b) = pair(domain());
    let mut publisher = a.publisher("map").keep_last(3).transient_local().open().unwrap();
    for number in 0..10u8 {
        publisher.publish(&[number]).unwrap();
    }
    let mut subscriber = b.subscriber("map").transient_local().borrows(1).open().unwrap();
    let mut numbers = Vec::new();
    while numbers.len() < 3 {
        let sample = subscriber.receive(Some(Duration::from_secs(20))).unwrap().expect("the history");
        numbers.push(sample.to_vec()[0]);
    }
    assert_eq!(numbers[numbers.len() - 3..], [7, 8, 9]);
}

#[test]
fn a_mismatch_is_reported_on_both_sides() {
    let (a, b) = pair(domain());
    let _publisher = a.publisher("imu").open().unwrap();
    let mut subscriber = b.subscriber("imu").reliability(Reliability::Reliable).open().unwrap();
    for node in [&a, &b] {
        let notice = loop {
            match node.poll_notice() {
                // Where the machine has a network.
                Some(Notice::NoKey { .. }) => {}
                Some(notice) => break notice,
                None => _ = subscriber.wait(Some(Duration::from_millis(5))),
            }
        };
        assert!(matches!(&notice, Notice::Mismatch { topic, .. } if topic == "imu"), "{notice}");
        assert!(notice.to_string().contains("requests reliable"), "{notice}");
    }
}

#[test]
fn a_closed_publisher_is_noticed_and_another_takes_over() {
    let (a, b) = pair(domain());
    let mut subscriber = b.subscriber("imu").open().unwrap();
    for round in 0..3u8 {
        let mut publisher = a.publisher("imu").open().unwrap();
        let sample = loop {
            let sample = until_received(&mut publisher, &mut subscriber, &[round]).to_vec();
            if sample == [round] {
                break sample;
            }
        };
        assert_eq!(sample, [round]);
        drop(publisher);
    }
    while subscriber.publishers() > 0 {
        subscriber.wait(Some(Duration::from_millis(5)));
    }
}

#[test]
fn bad_names_and_sizes_are_refused_with_a_sentence() {
    let node = Node::builder("n").domain(domain()).open().unwrap();
    let sentence = |error: noctule::NodeError| error.to_string();
    assert!(sentence(node.publisher("").open().unwrap_err()).contains("no name"));
    assert!(sentence(node.publisher("t").keep_last(0).open().unwrap_err()).contains("history"));
    assert!(sentence(Node::builder("n").domain(9999).open().unwrap_err()).contains("domain 9999"));
    assert!(sentence(Node::builder("n").static_peer("nowhere").open().unwrap_err()).contains("192.168.1.7"));
    let mut publisher = node.publisher("t").payload_bytes_max(4).open().unwrap();
    let error = publisher.publish(&[0; 5]).unwrap_err();
    assert!(error.to_string().contains("payload_bytes_max"), "{error}");
}

#[test]
fn more_readers_than_may_borrow_all_receive() {
    let (a, b) = pair(domain());
    let mut publisher = a.publisher("shared").borrows(3).keep_last(16).open().unwrap();
    let mut subscribers: Vec<_> = (0..20).map(|_| b.subscriber("shared").open().unwrap()).collect();
    for subscriber in &mut subscribers {
        while subscriber.publishers() == 0 {
            subscriber.wait(Some(Duration::from_millis(5)));
        }
    }
    publisher.publish(b"to all").unwrap();
    let held: Vec<_> = subscribers
        .iter_mut()
        .map(|subscriber| subscriber.receive(Some(Duration::from_secs(20))).unwrap().expect("a sample"))
        .collect();
    assert!(held.iter().all(|sample| sample.to_vec() == b"to all"));
}

#[test]
fn a_publisher_closed_in_the_same_node_is_noticed() {
    let node = Node::builder("alone").domain(domain()).open().unwrap();
    let mut subscriber = node.subscriber("loop").open().unwrap();
    let mut publisher = node.publisher("loop").open().unwrap();
    drop(until_received(&mut publisher, &mut subscriber, b"x"));
    drop(publisher);
    while subscriber.publishers() > 0 {
        subscriber.wait(Some(Duration::from_millis(5)));
    }
}

#[test]
fn a_subscriber_left_with_one_silent_publisher_still_hears_of_a_new_one() {
    let (a, b) = pair(domain());
    let mut subscriber = b.subscriber("imu").open().unwrap();
    let (silent, leaving) = (a.publisher("imu").open().unwrap(), a.publisher("imu").open().unwrap());
    while subscriber.publishers() < 2 {
        subscriber.wait(Some(Duration::from_millis(5)));
    }
    drop(leaving);
    while subscriber.publishers() > 1 {
        subscriber.wait(Some(Duration::from_millis(5)));
    }
    assert!(subscriber.take().unwrap().is_none());
    // From here on it sleeps on the silent one's ring without a time-out of its own.
    let new = std::thread::spawn(move || {
        let mut publisher = a.publisher("imu").open().unwrap();
        while publisher.readers() == 0 {
            std::thread::yield_now();
        }
        for _ in 0..100_000 {
            publisher.publish(b"new").unwrap();
        }
        (a, publisher)
    });
    let sample = loop {
        if let Some(sample) = subscriber.receive(None).unwrap() {
            break sample;
        }
    };
    assert_eq!(sample.to_vec(), b"new");
    drop((silent, new.join().unwrap()));
}

#[test]
fn a_subscriber_keeps_counts_and_ages_of_its_topic() {
    let (a, b) = pair(domain());
    let mut publisher = a.publisher("imu").keep_last(64).deadline(Duration::from_millis(10)).open().unwrap();
    let builder = b.subscriber("imu").deadline(Duration::from_millis(10)).lifespan(Duration::from_secs(60));
    let mut subscriber = builder.open().unwrap();
    assert_eq!(subscriber.statistics(), SubscriberStatistics::default());
    drop(until_received(&mut publisher, &mut subscriber, b"sample"));
    while subscriber.take().unwrap().is_some() {}
    let before = subscriber.statistics();
    let now = a.now();
    let age = |ms| now - Span::from_ms(ms);
    // In time, late, and too old to be taken.
    for (ms, count) in [(0, 25), (1000, 25), (100_000, 5)] {
        (0..count).for_each(|_| publisher.publish_at(b"sample", age(ms)).unwrap());
    }
    while subscriber.take().unwrap().is_some() {}
    let after = subscriber.statistics();
    let (was, is) = (before.counters, after.counters);
    assert_eq!((is.taken - was.taken, is.expired - was.expired), (50, 5));
    assert_eq!(is.bytes - was.bytes, 300);
    assert!(is.late - was.late >= 25, "{after:?}");
    assert_eq!((after.aged, after.bound), (is.taken, Some(Span::ZERO)));
    assert!(after.age_max >= Some(Span::from_ms(1000)) && after.age_p50.is_some(), "{after:?}");
    assert_eq!(subscriber.ages().len(), after.aged);
}

#[test]
fn what_is_missed_before_samples_that_are_too_old_is_counted() {
    let (a, b) = pair(domain());
    let mut publisher = a.publisher("imu").keep_last(4).lifespan(Duration::from_secs(3)).open().unwrap();
    let mut subscriber = b.subscriber("imu").open().unwrap();
    drop(until_received(&mut publisher, &mut subscriber, b"sample"));
    while subscriber.take().unwrap().is_some() {}
    let was = subscriber.statistics().counters;
    // Of nine old ones the history holds the last three beside the young one.
    let old = a.now() - Span::from_ms(10_000);
    (0..9).for_each(|_| publisher.publish_at(b"old", old).unwrap());
    publisher.publish(b"young").unwrap();
    let sample = subscriber.take().unwrap().unwrap();
    assert_eq!((sample.to_vec(), sample.info().missed), (b"young".to_vec(), 6));
    let is = subscriber.statistics().counters;
    assert_eq!((is.taken - was.taken, is.expired - was.expired, is.missed - was.missed), (1, 3, 6));
}

#[test]
fn a_subscriber_takes_no_sample_older_than_the_lifespan_of_its_publisher() {
    let (a, b) = pair(domain());
    let mut publisher = a.publisher("imu").keep_last(64).lifespan(Duration::from_secs(3)).open().unwrap();
    let mut default = b.subscriber("imu").open().unwrap();
    let mut shorter = b.subscriber("imu").lifespan(Duration::from_secs(1)).open().unwrap();
    let mut longer = b.subscriber("imu").lifespan(Duration::from_secs(100)).open().unwrap();
    for subscriber in [&mut default, &mut shorter, &mut longer] {
        drop(until_received(&mut publisher, subscriber, b"sample"));
    }
    let all = [&mut default, &mut shorter, &mut longer].map(|subscriber| {
        while subscriber.take().unwrap().is_some() {}
        subscriber
    });
    let now = a.now();
    for age_ms in [0, 2_000, 10_000] {
        publisher.publish_at(b"sample", now - Span::from_ms(age_ms)).unwrap();
    }
    let taken = all.map(|subscriber| {
        let before = subscriber.statistics().counters.expired;
        let taken = std::iter::from_fn(|| subscriber.take().unwrap().map(drop)).count();
        (taken, subscriber.statistics().counters.expired - before)
    });
    assert_eq!(taken, [(2, 1), (1, 2), (2, 1)]);
}
