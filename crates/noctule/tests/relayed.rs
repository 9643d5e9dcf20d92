//! A host receives each sample of the network once: one of its nodes receives and relays to the others,
//! and another takes its place when it goes. Nodes with different clocks count as different hosts.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests and what they share

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use noctule::clock;
use noctule::{
    EndpointKind, Node, Publisher, PublisherBuilder, Reliability, Sample, Subscriber, SubscriberBuilder,
};

const ROLE: &str = "NOCTULE_RELAYED_ROLE";
const TIMEOUT: Option<Duration> = Some(Duration::from_secs(20));

fn domain() -> u32 {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    100 + (std::process::id() % 40) * 10 + NEXT.fetch_add(1, Ordering::Relaxed)
}

fn far(domain: u32) -> Node {
    Node::builder("far").domain(domain).clock("offset=5s".parse().unwrap()).keep_notices().open().unwrap()
}

fn near(domain: u32) -> Node {
    Node::builder("near").domain(domain).keep_notices().open().unwrap()
}

fn reliable(builder: PublisherBuilder) -> Publisher {
    builder.reliability(Reliability::Reliable).keep_last(256).open().unwrap()
}

fn reliable_reader(builder: SubscriberBuilder) -> Subscriber {
    builder.reliability(Reliability::Reliable).open().unwrap()
}

fn number(sample: &Sample) -> u64 {
    u64::from_le_bytes(sample.to_vec()[..8].try_into().unwrap())
}

/// Publishes its number, and two times between which the source time was read, however long this thread is kept waiting.
fn publish(node: &Node, publisher: &mut Publisher) {
    let number = publisher.published() + 1;
    let (before, source_time, after) = (clock::now(), node.now(), clock::now());
    let bytes = [number.to_le_bytes(), before.ns().to_le_bytes(), after.ns().to_le_bytes()].concat();
    publisher.publish_at(&bytes, source_time).unwrap();
}

/// Datagrams sent so far to each of the nodes.
fn sent(from: &Node, to: &[&Node]) -> Vec<u64> {
    let counted = |node: &&Node| from.link_counters(node.id()).map_or(0, |counters| counters.sent_datagrams);
    to.iter().map(counted).collect()
}

/// Publishes until all subscribers get it from one node, and takes what came.
fn until_one_receives(from: &Node, publisher: &mut Publisher, to: &mut [(Node, Subscriber)]) -> usize {
    loop {
        let nodes: Vec<&Node> = to.iter().map(|(node, _)| node).collect();
        let before = sent(from, &nodes);
        publish(from, publisher);
        let after = sent(from, &nodes);
        let wanted = publisher.published();
        let mut all = true;
        for (_, subscriber) in to.iter_mut() {
            let mut newest = 0;
            while newest < wanted
                && let Some(sample) = subscriber.receive(Some(Duration::from_millis(20))).unwrap()
            {
                newest = number(&sample);
            }
            all &= newest == wanted;
        }
        let served: Vec<usize> = (0..before.len()).filter(|at| after[*at] > before[*at]).collect();
        if let ([only], true) = (&served[..], all) {
            return *only;
        }
    }
}

#[test]
fn three_readers_of_a_host_cost_the_writer_one_datagram_a_sample() {
    const SAMPLES: u64 = 100;
    let domain = domain();
    let writer = far(domain);
    let mut publisher = writer.publisher("imu").keep_last(256).open().unwrap();
    let mut readers: Vec<(Node, Subscriber)> = (0..3)
        .map(|_| {
            let node = near(domain);
            let subscriber = node.subscriber("imu").open().unwrap();
            (node, subscriber)
        })
        .collect();
    let receiver = until_one_receives(&writer, &mut publisher, &mut readers);
    assert_eq!(publisher.readers(), 3);
    // The clock of the writer is known, and so is every age.
    for (_, subscriber) in &mut readers {
        let is_bounded = |sample: Sample| sample.age().and_then(|age| age.bound).is_some();
        while subscriber
            .receive(Some(Duration::from_millis(20)))
            .unwrap()
            .is_none_or(|sample| !is_bounded(sample))
        {
            publish(&writer, &mut publisher);
        }
        while subscriber.take().unwrap().is_some() {}
    }
    for (_, subscriber) in &mut readers {
        while subscriber.take().unwrap().is_some() {}
    }
    let nodes: Vec<&Node> = readers.iter().map(|(node, _)| node).collect();
    let before: u64 = sent(&writer, &nodes).iter().sum();
    let (first, relayed): (_, Vec<u64>) = (
        publisher.published(),
        readers.iter().map(|(_, subscriber)| subscriber.counters().relayed).collect(),
    );
    (0..SAMPLES).for_each(|_| publish(&writer, &mut publisher));
    assert_eq!(sent(&writer, &nodes).iter().sum::<u64>() - before, SAMPLES);
    for (at, (_, subscriber)) in readers.iter_mut().enumerate() {
        let before = subscriber.counters();
        let mut newest = 0;
        while newest < first + SAMPLES {
            let sample = subscriber.receive(TIMEOUT).unwrap().expect("a sample");
            newest = number(&sample);
            let bytes = sample.to_vec();
            let true_ns = |at: usize| {
                let read_ns = i64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
                sample.info().receive_time.ns() - read_ns
            };
            let (most_ns, least_ns) = (true_ns(8), true_ns(16));
            let age = sample.age().unwrap();
            let bound_ns = age.bound.unwrap().ns();
            assert!(age.span.ns() - bound_ns <= most_ns, "{age:?}, true {least_ns} to {most_ns}");
            assert!(age.span.ns() + bound_ns >= least_ns, "{age:?}, true {least_ns} to {most_ns}");
            assert_eq!(sample.info().publisher, writer.id());
        }
        let taken = subscriber.counters().taken - before.taken;
        let handed_on = subscriber.counters().relayed - relayed[at];
        assert_eq!(handed_on, if at == receiver { 0 } else { taken });
    }
}

#[test]
fn a_reader_that_requests_reliability_depends_on_no_other_process() {
    let domain = domain();
    let writer = far(domain);
    let mut publisher = reliable(writer.publisher("command"));
    let mut readers: Vec<(Node, Subscriber)> = (0..2)
        .map(|_| {
            let node = near(domain);
            let subscriber = reliable_reader(node.subscriber("command"));
            (node, subscriber)
        })
        .collect();
    while publisher.readers() != 2 || readers.iter_mut().any(|(_, subscriber)| subscriber.publishers() != 1) {
        std::thread::yield_now();
    }
    for wanted in 1..=20 {
        publish(&writer, &mut publisher);
        for (_, subscriber) in &mut readers {
            let sample = subscriber.receive(TIMEOUT).unwrap().expect("a sample");
            assert_eq!((number(&sample), sample.info().missed), (wanted, 0));
        }
    }
    let nodes: Vec<&Node> = readers.iter().map(|(node, _)| node).collect();
    assert!(sent(&writer, &nodes).iter().all(|datagrams| *datagrams >= 20));
    assert!(readers.iter().all(|(_, subscriber)| subscriber.counters().relayed == 0));
}

#[test]
fn one_that_comes_late_gets_the_history_from_the_node_that_received_it() {
    let domain = domain();
    let writer = far(domain);
    let mut publisher = reliable(writer.publisher("map").transient_local());
    (0..10).for_each(|_| publish(&writer, &mut publisher));
    let first = near(domain);
    let mut has_it = first.subscriber("map").transient_local().open().unwrap();
    for wanted in 1..=10 {
        assert_eq!(number(&has_it.receive(TIMEOUT).unwrap().expect("the history")), wanted);
    }
    let late = near(domain);
    // A node that comes later and knows of a receiver is relayed from the beginning.
    while !knows_a_receiver(&late) {
        std::thread::yield_now();
    }
    let mut subscriber = late.subscriber("map").transient_local().open().unwrap();
    for wanted in 1..=10 {
        assert_eq!(number(&subscriber.receive(TIMEOUT).unwrap().expect("the history")), wanted);
    }
    assert_eq!(subscriber.counters().relayed, 10);
    assert_eq!(sent(&writer, &[&late]), [0]);
}

/// Whether a node knows of another host, and of a reader on its own.
fn knows_a_receiver(node: &Node) -> bool {
    let far = node.nodes().iter().any(|other| !other.same_host);
    far && node.endpoints().iter().any(|known| known.same_host && known.endpoint.kind == EndpointKind::Reader)
}

/// Not a test by itself: a node that receives, and hands on, until it is killed.
#[test]
fn role_of_a_started_process() {
    let Ok(domain) = std::env::var(ROLE) else { return };
    let node = near(domain.parse().unwrap());
    let mut subscriber = node.subscriber("camera").open().unwrap();
    let parent = std::os::unix::process::parent_id();
    // It outlives no test that failed.
    while std::os::unix::process::parent_id() == parent {
        subscriber.receive(Some(Duration::from_millis(100))).unwrap();
    }
}

fn start(domain: u32) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "role_of_a_started_process", "--nocapture"]).env(ROLE, domain.to_string());
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

#[test]
fn where_the_receiving_process_is_killed_another_goes_on() {
    if std::env::var(ROLE).is_ok() {
        return;
    }
    let domain = domain();
    let writer = far(domain);
    let mut publisher = writer.publisher("camera").keep_last(256).open().unwrap();
    let mut child = start(domain);
    let nodes: Vec<Node> = (0..2).map(|_| near(domain)).collect();
    while publisher.readers() == 0 || !nodes.iter().all(knows_a_receiver) {
        std::thread::yield_now();
    }
    let mut readers: Vec<(Node, Subscriber)> = nodes
        .into_iter()
        .map(|node| {
            let subscriber = node.subscriber("camera").open().unwrap();
            (node, subscriber)
        })
        .collect();
    while readers.iter_mut().any(|(_, subscriber)| subscriber.publishers() == 0) {
        std::thread::yield_now();
    }
    let mut newest = [0, 0];
    for _ in 0..20 {
        publish(&writer, &mut publisher);
        for (newest, (_, subscriber)) in newest.iter_mut().zip(&mut readers) {
            let sample = subscriber.receive(TIMEOUT).unwrap().expect("a sample");
            assert_eq!((number(&sample), sample.info().missed), (publisher.published(), 0));
            *newest = number(&sample);
        }
    }
    let nodes: Vec<&Node> = readers.iter().map(|(node, _)| node).collect();
    assert_eq!(sent(&writer, &nodes), [0, 0]);
    child.kill().unwrap();
    child.wait().unwrap();
    // What is published until another receives is lost; nothing comes twice.
    let killed_at = publisher.published();
    while newest.iter().any(|newest| *newest < killed_at + 10) {
        publish(&writer, &mut publisher);
        for (newest, (_, subscriber)) in newest.iter_mut().zip(&mut readers) {
            if let Some(sample) = subscriber.receive(Some(Duration::from_millis(10))).unwrap() {
                assert_eq!(sample.info().missed, number(&sample) - *newest - 1);
                *newest = number(&sample);
            }
        }
    }
    let last = until_one_receives(&writer, &mut publisher, &mut readers);
    assert!(readers[1 - last].1.counters().relayed > 0);
}
