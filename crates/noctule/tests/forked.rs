//! A fork: in the child the parent's nodes refuse, so no nonce of the seal is used twice and no ring has two writers.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests and what they share

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use noctule::clock::LocalClock;
use noctule::{Node, PublishError, Publisher, ReadError, Subscriber};
use noctule_sys::process::in_child;

const LONG: Duration = Duration::from_secs(30);

fn passes(publisher: &mut Publisher, subscriber: &mut Subscriber, text: &[u8]) {
    publisher.publish(text).unwrap();
    let sample = subscriber.receive(Some(LONG)).unwrap().expect("a reliable sample");
    assert_eq!((sample.to_vec(), sample.info().missed), (text.to_vec(), 0));
}

#[test]
fn a_child_cannot_use_its_parents_nodes_and_the_parent_does_not_notice() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("key");
    std::fs::write(&file, "5a".repeat(32)).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let domain = 3_900 + std::process::id() % 100;
    let node = |clock: &str| {
        let clock: LocalClock = clock.parse().unwrap();
        Node::builder("forked").domain(domain).clock(clock).swarm_key(&file).keep_notices().open().unwrap()
    };
    // One reader by the network, whose datagrams are sealed, and one by shared memory.
    let (parent, far, beside) = (node(""), node("offset=5s"), node(""));
    let reliable = noctule::Reliability::Reliable;
    let mut publisher = parent.publisher("imu").reliability(reliable).open().unwrap();
    let mut subscribers =
        [&far, &beside].map(|node| node.subscriber("imu").reliability(reliable).open().unwrap());
    while publisher.readers() < 2 || subscribers.iter_mut().any(|each| each.publishers() == 0) {
        subscribers[0].wait(Some(Duration::from_millis(5)));
    }
    publisher.publish(b"before").unwrap();
    for subscriber in &mut subscribers {
        assert_eq!(subscriber.receive(Some(LONG)).unwrap().unwrap().to_vec(), b"before");
    }
    let code = in_child(|| {
        let publishes = publisher.publish(b"child");
        let refuses = matches!(publishes, Err(PublishError::Forked { .. }));
        let reads = subscribers[1].take();
        let reads_nothing = reads.is_err_and(|error| error.cause == ReadError::Forked);
        let opens_none =
            parent.publisher("other").open().is_err_and(|error| error.to_string().contains("forked"));
        let own = Node::builder("own").domain(domain).keep_notices().open();
        let has_own = own.is_ok_and(|node| node.publisher("other").open().is_ok());
        drop((publisher, subscribers, parent));
        [refuses, reads_nothing, opens_none, has_own].iter().fold(0, |code, ok| code * 2 + u8::from(*ok))
    });
    assert_eq!(code.unwrap(), 0b1111);
}

#[test]
fn what_the_parent_publishes_after_a_fork_arrives_whatever_the_child_tried() {
    let domain = 3_800 + std::process::id() % 100;
    let node = || Node::builder("forked").domain(domain).keep_notices().open().unwrap();
    let (parent, beside) = (node(), node());
    let mut publisher = parent.publisher("imu").open().unwrap();
    let mut subscriber = beside.subscriber("imu").open().unwrap();
    while publisher.readers() == 0 || subscriber.publishers() == 0 {
        subscriber.wait(Some(Duration::from_millis(5)));
    }
    passes(&mut publisher, &mut subscriber, b"before");
    let code = in_child(|| u8::from(publisher.publish(b"child").is_err()));
    assert_eq!(code.unwrap(), 1);
    passes(&mut publisher, &mut subscriber, b"after");
}

#[test]
fn a_child_is_lent_no_place_in_its_parents_ring_and_gives_back_none_that_its_parent_reads() {
    let domain = 3_700 + std::process::id() % 100;
    let node = || Node::builder("forked").domain(domain).keep_notices().open().unwrap();
    let (parent, beside) = (node(), node());
    let mut publisher = parent.publisher("imu").keep_last(2).open().unwrap();
    let mut subscriber = beside.subscriber("imu").open().unwrap();
    while publisher.readers() == 0 || subscriber.publishers() == 0 {
        subscriber.wait(Some(Duration::from_millis(5)));
    }
    publisher.publish(b"kept").unwrap();
    let mut kept = Some(subscriber.receive(Some(LONG)).unwrap().expect("a sample"));
    let code = in_child(|| {
        drop(kept.take());
        let is_refused = matches!(publisher.loan(4), Err(PublishError::Forked { .. }));
        // None of these looks at what the parent's thread may have locked.
        let waits_for_nothing = publisher.readers() == 0
            && !publisher.wait_for_room(4, LONG)
            && !publisher.wait_for_acknowledgments(LONG);
        2 * u8::from(is_refused) + u8::from(waits_for_nothing)
    });
    assert_eq!(code.unwrap(), 0b11);
    for _ in 0..100 {
        publisher.publish(b"next").unwrap();
    }
    assert_eq!(kept.map(|sample| sample.to_vec()), Some(b"kept".to_vec()));
}
