//! A thread that holds a lock of the node holds up no sample: held here are, of both nodes, the locks that a node's thread and the publishers of
//! other topics take, which are the state's and the outbox's. In shared memory neither is waited for, by publishing, lending or taking. By UDP a
//! sample goes into the state, so that lock is waited for, and nobody calls the kernel to send while holding it; the outbox's, under which
//! datagrams are sent, is not.

use std::sync::mpsc;
use std::time::Duration;

use super::Node;
use super::changes::Seen;
use crate::{Reliability, Wait};

#[test]
fn samples_in_shared_memory_wait_for_no_lock_of_another_thread() {
    let domain = 900 + std::process::id() % 100;
    let open = || Node::builder("census").domain(domain).keep_notices().open().unwrap();
    let (from, to) = (open(), open());
    let mut publisher = from.publisher("t").reliability(Reliability::Reliable).keep_last(64).open().unwrap();
    let mut subscriber =
        to.subscriber("t").reliability(Reliability::Reliable).wait(Wait::Hybrid).open().unwrap();
    while publisher.readers() == 0 || subscriber.publishers() == 0 {
        subscriber.wait(Some(Duration::from_millis(5)));
    }
    // The first sample fetches the ring, and the first taken makes the histogram.
    publisher.publish(b"first").unwrap();
    assert!(subscriber.receive(Some(Duration::from_secs(30))).unwrap().is_some());

    let states = [&from, &to].map(|node| node.shared.lock());
    let outboxes = [&from, &to].map(|node| node.shared.send_queue.lock().unwrap());
    let (done, is_done) = mpsc::channel();
    let worker = std::thread::spawn(move || {
        let mut taken = 0;
        for number in 0..1_000_u32 {
            publisher.publish(&number.to_le_bytes()).unwrap();
            publisher.loan(8).unwrap();
            publisher.publish_loan(8, None).unwrap();
            publisher.publish_in_place(4, |place| place.write_at(0, &number.to_le_bytes())).unwrap();
            while taken < 3 * (number + 1) {
                taken += u32::from(subscriber.receive(Some(Duration::from_secs(30))).unwrap().is_some());
            }
        }
        done.send(taken).unwrap();
        (publisher, subscriber)
    });
    // Far longer than it takes: a lock that is waited for would never come.
    let taken = is_done.recv_timeout(Duration::from_secs(120));
    drop((states, outboxes));
    drop(worker.join().unwrap());
    assert_eq!(taken, Ok(3_000));
}

#[test]
fn a_sample_by_udp_does_not_wait_for_the_thread_that_sends() {
    let domain = 700 + std::process::id() % 100;
    let open = |clock: &str| {
        Node::builder("census").domain(domain).clock(clock.parse().unwrap()).keep_notices().open().unwrap()
    };
    let (from, to) = (open("offset=5s"), open("offset=0s"));
    let mut publisher = from.publisher("t").reliability(Reliability::Reliable).keep_last(64).open().unwrap();
    let mut subscriber = to.subscriber("t").reliability(Reliability::Reliable).open().unwrap();
    while publisher.readers() == 0 || subscriber.publishers() == 0 {
        subscriber.wait(Some(Duration::from_millis(5)));
    }
    publisher.publish(b"first").unwrap();
    assert!(subscriber.receive(Some(Duration::from_secs(30))).unwrap().is_some());
    let send_queue = from.shared.send_queue.lock().unwrap();
    let (done, is_done) = mpsc::channel();
    let worker = std::thread::spawn(move || {
        (0..50_u32).for_each(|number| publisher.publish(&number.to_le_bytes()).unwrap());
        done.send(()).unwrap();
        publisher
    });
    // Far longer than it takes: a lock that is waited for would never come.
    let published = is_done.recv_timeout(Duration::from_secs(120));
    assert!(from.shared.is_left_to_others(), "the node's thread would busy-wait");
    // Its holder looks once more before it goes.
    drop(send_queue);
    from.shared.kick();
    let _publisher = worker.join().unwrap();
    assert_eq!(published, Ok(()));
    for number in 0..50_u32 {
        let sample = subscriber.receive(Some(Duration::from_secs(30))).unwrap().expect("a sample");
        assert_eq!(sample.to_vec(), number.to_le_bytes());
    }
}

#[test]
fn a_reader_that_keeps_all_and_has_read_all_reports_it_only_when_that_makes_enough_room() {
    let domain = 700 + std::process::id() % 100;
    let open = |clock: &str| {
        Node::builder("census").domain(domain).clock(clock.parse().unwrap()).keep_notices().open().unwrap()
    };
    let (from, to) = (open("offset=5s"), open("offset=0s"));
    let mut publisher =
        from.publisher("kept").reliability(Reliability::Reliable).keep_all(64).open().unwrap();
    let mut subscriber = to.subscriber("kept").reliability(Reliability::Reliable).open().unwrap();
    while publisher.readers() == 0 || subscriber.publishers() == 0 {
        subscriber.wait(Some(Duration::from_millis(5)));
    }
    publisher.publish(b"first").unwrap();
    assert!(subscriber.receive(Some(Duration::from_secs(30))).unwrap().is_some());
    // Less than a quarter of the history.
    (0..8_u8).for_each(|number| publisher.publish(&[number]).unwrap());
    assert!(publisher.wait_for_acknowledgments(Duration::from_secs(30)), "they lie in the ring");

    let state = to.shared.lock();
    let (done, is_done) = mpsc::channel();
    let worker = std::thread::spawn(move || {
        let taken = (0..8).filter(|_| subscriber.take().unwrap().is_some()).count();
        done.send(taken).unwrap();
        subscriber
    });
    // Far longer than it takes: a reader that reports progress waits for the lock.
    let taken = is_done.recv_timeout(Duration::from_secs(20));
    drop(state);
    drop(worker.join().unwrap());
    assert_eq!(taken, Ok(8));
}

#[test]
fn whether_the_view_has_changed_is_seen_without_a_lock() {
    let domain = 900 + std::process::id() % 100;
    let (called, calls) = mpsc::channel();
    let node = Node::builder("watched").domain(domain).keep_notices();
    let node = node.on_change(move || _ = called.send(())).open().unwrap();
    // It has changed at least once: by this.
    let publisher = node.publisher("looked at").open().unwrap();
    calls.recv_timeout(Duration::from_secs(30)).unwrap();

    let state = node.shared.lock();
    let shared = std::sync::Arc::clone(&node.shared);
    let (done, is_done) = mpsc::channel();
    let looker = std::thread::spawn(move || {
        let mut seen = Seen::default();
        (0..1_000).for_each(|_| seen.follow(&shared));
        done.send(()).unwrap();
    });
    let looked = is_done.recv_timeout(Duration::from_secs(120));
    // One by the looker, and one by the node's own thread if it had just passed the lock.
    let called = calls.try_iter().count();
    drop(state);
    looker.join().unwrap();
    assert_eq!(looked, Ok(()));
    assert!((1..=2).contains(&called), "{called} calls of a thousand looks");
    drop(publisher);
}

#[test]
fn a_publisher_that_waits_for_room_is_not_woken_by_acknowledgements_that_make_none() {
    let domain = 500 + std::process::id() % 100;
    let open = |clock: &str| {
        Node::builder("census").domain(domain).clock(clock.parse().unwrap()).keep_notices().open().unwrap()
    };
    let (from, to) = (open("offset=5s"), open("offset=0s"));
    let topic = |name| {
        let publisher = from.publisher(name).reliability(Reliability::Reliable).keep_all(4).open().unwrap();
        (publisher, to.subscriber(name).reliability(Reliability::Reliable).open().unwrap())
    };
    let ((mut full, mut unread), (mut beside, mut heard)) = (topic("full"), topic("beside"));
    while full.readers() == 0 || beside.readers() == 0 || unread.publishers() == 0 || heard.publishers() == 0
    {
        heard.wait(Some(Duration::from_millis(5)));
    }
    while full.wait_for_room(1, Duration::from_millis(300)) {
        full.publish(&[0]).unwrap();
    }
    let waits = |wanted: usize| {
        while from.shared.lock().waiters.awaited.len() != wanted {
            std::thread::yield_now();
        }
    };
    let worker = std::thread::spawn(move || full.wait_for_room(1, Duration::from_secs(120)));
    waits(1);
    let woken = from.shared.lock().waiters.woken;
    for number in 0..50_u32 {
        beside.publish(&number.to_le_bytes()).unwrap();
        assert!(heard.receive(Some(Duration::from_secs(30))).unwrap().is_some());
        // Nobody waits for this but by looking.
        while !beside.wait_for_acknowledgments(Duration::ZERO) {
            std::thread::yield_now();
        }
    }
    let more = from.shared.lock().waiters.woken - woken;
    assert_eq!(more, 0, "50 samples were acknowledged, and none made room");
    waits(1);
    while unread.take().unwrap().is_some() {}
    assert!(worker.join().unwrap(), "there is room");
    assert!(from.shared.lock().waiters.woken > woken);
}
