//! Nothing is allocated on the way of a sample once it flows: counted by an allocator that knows its thread.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)] // tests and what they share

use std::time::Duration;

use allocation_counter::measure;
use noctule::clock::LocalClock;
use noctule::{Node, Publisher, Reliability, Subscriber};

const LONG: Duration = Duration::from_secs(30);
/// Rounds before anything is counted: tables and queues have grown by then.
const WARM_UP: u32 = 500;
const ROUNDS: u32 = 500;

fn pair(number: u32, is_far: bool) -> [Node; 2] {
    let domain = 2_600 + (std::process::id() % 100) * 2 + number;
    ["offset=0s", if is_far { "offset=5s" } else { "offset=0s" }].map(|clock| {
        let clock: LocalClock = clock.parse().unwrap();
        Node::builder("counted").domain(domain).clock(clock).keep_notices().open().unwrap()
    })
}

fn open(nodes: &[Node; 2], reliability: Reliability) -> (Publisher, Subscriber) {
    // Of another topic than the stream before: the other host may still count that one's reader, which hears nothing.
    let topic = format!("counted_{reliability}");
    let mut subscriber = nodes[1].subscriber(&topic).reliability(reliability).open().unwrap();
    let publisher = nodes[0].publisher(&topic).reliability(reliability).open().unwrap();
    while publisher.readers() == 0 || subscriber.publishers() == 0 {
        subscriber.wait(Some(Duration::from_millis(5)));
    }
    (publisher, subscriber)
}

/// Allocations of the calling thread while samples are published and received, in each of the two.
fn count((publisher, subscriber): &mut (Publisher, Subscriber), rounds: u32) -> (u64, u64) {
    let (mut publishing, mut receiving) = (0, 0);
    for _ in 0..rounds {
        publishing += measure(|| publisher.publish(&[7; 1_000]).unwrap()).count_total;
        let mut received = false;
        receiving += measure(|| received = subscriber.receive(Some(LONG)).unwrap().is_some()).count_total;
        assert!(received);
    }
    (publishing, receiving)
}

#[test]
fn a_sample_through_shared_memory_allocates_nothing() {
    let nodes = pair(0, false);
    let mut stream = open(&nodes, Reliability::BestEffort);
    count(&mut stream, WARM_UP);
    assert_eq!(count(&mut stream, ROUNDS), (0, 0));
    let (publisher, subscriber) = &mut stream;
    let lent = measure(|| {
        publisher.loan(1_000).unwrap();
        publisher.publish_loan(1_000, None).unwrap();
    });
    assert_eq!(lent.count_total, 0);
    let mut buffer = [0; 1_000];
    assert_eq!(measure(|| _ = subscriber.take_into(&mut buffer).unwrap().unwrap()).count_total, 0);
}

/// By UDP the bytes of a sample are kept once for all its readers, which is one allocation; the tables of the transport are nodes of trees,
/// which come and go.
#[test]
fn a_sample_by_udp_allocates_its_bytes_once_and_little_else() {
    let nodes = pair(1, true);
    for reliability in [Reliability::BestEffort, Reliability::Reliable] {
        let mut stream = open(&nodes, reliability);
        count(&mut stream, WARM_UP);
        let (publishing, receiving) = count(&mut stream, ROUNDS);
        eprintln!(
            "{reliability}: {publishing} allocations in {ROUNDS} samples published, {receiving} received"
        );
        assert!(publishing <= u64::from(2 * ROUNDS), "{publishing}");
        assert!(receiving <= u64::from(ROUNDS), "{receiving}");
    }
}
