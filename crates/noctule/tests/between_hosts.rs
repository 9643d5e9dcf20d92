//! Nodes with different clocks, which therefore count as different hosts: samples go by UDP, and every
//! age must be right although no two clocks agree.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests and what they share

use std::time::Duration;

use noctule::clock::{self, LocalClock};
use noctule::{Node, PingError, Reliability, Route, Sample, SourceTime, Subscriber};
use noctule_timebase::Span;

fn domain() -> u32 {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    500 + (std::process::id() % 40) * 10 + NEXT.fetch_add(1, Ordering::Relaxed)
}

fn node(name: &str, domain: u32, clock: &str) -> Node {
    let clock: LocalClock = clock.parse().unwrap();
    Node::builder(name).domain(domain).clock(clock).keep_notices().open().unwrap()
}

fn receive(subscriber: &mut Subscriber) -> Option<Sample> {
    subscriber.receive(Some(Duration::from_millis(20))).unwrap()
}

#[test]
fn the_age_of_a_sample_is_within_its_bound_of_the_truth() {
    let domain = domain();
    let (far, near) = (node("far", domain, "offset=5s,ppm=50"), node("near", domain, ""));
    let mut publisher = far.publisher("imu").open().unwrap();
    let mut subscriber = near.subscriber("imu").open().unwrap();
    let mut bounded = 0;
    while bounded < 50 {
        // However long this thread is kept waiting, the source time was read between these two.
        let (before, source_time, after) = (clock::now(), far.now(), clock::now());
        let bytes = [before.ns().to_le_bytes(), after.ns().to_le_bytes()].concat();
        publisher.publish_at(&bytes, source_time).unwrap();
        let Some(sample) = receive(&mut subscriber) else { continue };
        let bytes = sample.to_vec();
        let [before_ns, after_ns] =
            [0, 8].map(|at| i64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()));
        let Some(age) = sample.age() else { continue };
        let Some(bound) = age.bound else { continue };
        let [most_ns, least_ns] = [before_ns, after_ns].map(|at| sample.info().receive_time.ns() - at);
        assert!(age.span.ns() - bound.ns() <= most_ns, "{age:?}, true {least_ns} to {most_ns}");
        assert!(age.span.ns() + bound.ns() >= least_ns, "{age:?}, true {least_ns} to {most_ns}");
        bounded += 1;
    }
    let known = near.clock_of(far.id()).unwrap();
    // 50 ppm of what has passed since the clocks began: less than a second in hours.
    assert!(
        (known.offset - Span::from_s(5)).ns().abs() < 1_000_000_000 && known.bound.is_some(),
        "{known:?}"
    );
    let path = near.path_to(far.id()).unwrap();
    assert!((0.0..=1.0).contains(&path.loss), "{path:?}");
    assert!(near.clock_of(near.id()).is_none() && near.path_to(near.id()).is_none());
}

/// The age interval of the sample contains the age of one `old` that is known to within `width`.
fn check(sample: &Sample, (old, width): (Span, Span)) {
    let info = sample.info();
    let age = info.age().unwrap();
    // What is not known of the other clock comes on top: little, on however busy a machine, beside what could be confused with what is added.
    let clocks = age.bound.map_or(Span::from_s(20), |bound| bound - width);
    assert!(clocks >= Span::ZERO && clocks <= Span::from_s(20), "{age:?}");
    assert!(age.span >= old - clocks && age.span <= old + Span::from_s(60), "{age:?}");
    assert!(age.sigma.is_none_or(|sigma| sigma >= width / 2), "{age:?}");
}

#[test]
fn what_a_publisher_does_not_know_of_a_source_time_reaches_other_hosts_too() {
    let domain = domain();
    let (far, near) = (node("far", domain, "offset=5s,ppm=50"), node("near", domain, ""));
    let reliable = Reliability::Reliable;
    let mut publisher = far.publisher("board").reliability(reliable).transient_local().open().unwrap();
    let (old, width) = (Span::from_s(100), Span::from_s(2));
    let board = |bound: Option<Span>| SourceTime {
        time: far.now() - old,
        bound,
        sigma: bound.map(|bound| bound / 2),
    };
    publisher.publish_uncertain(b"of the history", board(Some(width))).unwrap();
    let builder = near.subscriber("board").reliability(reliable).transient_local();
    let mut subscriber = builder.open().unwrap();
    let mut receive = |payload: &[u8], look: &mut dyn FnMut(&Sample)| {
        let sample = subscriber.receive(Some(Duration::from_secs(20))).unwrap().expect("a reliable sample");
        assert_eq!(sample.to_vec(), payload);
        look(&sample);
    };
    receive(b"of the history", &mut |sample| {
        // The other clock may not be known yet.
        if sample.age().is_some() {
            check(sample, (old, width));
        }
    });
    let mut proven = 0;
    // Cut into fragments it is the same.
    let long = vec![7; 50_000];
    while proven < 5 {
        publisher.publish_uncertain(&long, board(Some(width))).unwrap();
        receive(&long, &mut |sample| {
            if sample.age().is_some_and(|age| age.bound.is_some()) {
                check(sample, (old, width));
                proven += 1;
            }
        });
    }
    publisher.publish_uncertain(b"unknown", board(None)).unwrap();
    receive(b"unknown", &mut |sample| {
        let age = sample.age().unwrap();
        assert_eq!((age.bound, age.sigma), (None, None), "the clock is known, the time is not");
    });
}

#[test]
fn deadline_bound_samples_arrive_in_time_and_are_counted_on_both_sides() {
    let domain = domain();
    let (far, near) = (node("far", domain, "offset=3s"), node("near", domain, ""));
    // Far longer than a busy machine keeps a thread waiting.
    let deadline = Duration::from_secs(20);
    let builder = far.publisher("command").reliability(Reliability::DeadlineBound);
    let mut publisher = builder.deadline(deadline).tolerable_loss(1e-5).open().unwrap();
    let builder = near.subscriber("command").reliability(Reliability::DeadlineBound);
    let mut subscriber = builder.open().unwrap();
    while publisher.readers() == 0 || subscriber.publishers() == 0 {
        subscriber.wait(Some(Duration::from_millis(5)));
    }
    for number in 0..200u8 {
        publisher.publish(&[number]).unwrap();
        let sample = subscriber.receive(Some(Duration::from_secs(20))).unwrap();
        let sample = sample.unwrap_or_else(|| {
            let sides = (publisher.deadline_counters(), subscriber.deadline_counters());
            panic!("sample {number} did not come in time: {sides:?}, and now {:?}", subscriber.take())
        });
        assert_eq!((sample.to_vec(), sample.info().missed), (vec![number], 0));
    }
    assert!(publisher.wait_for_acknowledgments(Duration::from_secs(20)));
    let [(to, sent)] = publisher.deadline_counters()[..] else { panic!("one reader") };
    let [(from, received)] = subscriber.deadline_counters()[..] else { panic!("one writer") };
    assert_eq!((to, from), (near.id(), far.id()));
    assert_eq!((sent.samples, received.on_time, sent.failed, received.missed), (200, 200, 0, 0));
    let unbound = far.publisher("none").reliability(Reliability::DeadlineBound).open();
    assert!(unbound.unwrap_err().to_string().contains("no deadline"));
}

#[test]
fn reliable_samples_of_any_size_arrive_once_and_in_order() {
    let domain = domain();
    let (far, near) = (node("far", domain, "offset=1s"), node("near", domain, ""));
    let sizes = [1, 100, 1_400, 5_000, 200_000, 1_000_000];
    let mut publisher = far
        .publisher("image")
        .reliability(Reliability::Reliable)
        .payload_bytes_max(1 << 20)
        .keep_last(64)
        .open()
        .unwrap();
    let mut subscriber = near.subscriber("image").reliability(Reliability::Reliable).open().unwrap();
    while publisher.readers() == 0 || subscriber.publishers() == 0 {
        subscriber.wait(Some(Duration::from_millis(5)));
    }
    for (number, size) in (0u8..).zip(sizes) {
        publisher.publish(&vec![number; size]).unwrap();
    }
    for (number, size) in (0u8..).zip(sizes) {
        let sample = subscriber.receive(Some(Duration::from_secs(20))).unwrap().expect("a reliable sample");
        assert_eq!(sample.to_vec(), vec![number; size]);
        assert_eq!(sample.info().missed, 0);
        assert_eq!((sample.info().publisher, sample.info().route), (far.id(), Route::Udp));
    }
    assert!(publisher.wait_for_acknowledgments(Duration::from_secs(20)));
}

/// Datagrams of another topic arrive all the time at the socket that the waiting thread reads.
#[test]
fn a_wait_ends_while_datagrams_for_others_arrive() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let domain = domain();
    let (far, near) = (node("far", domain, "offset=5s"), node("near", domain, ""));
    let mut other = far.publisher("other").reliability(Reliability::Reliable).open().unwrap();
    let _silent = far.publisher("silent").open().unwrap();
    let mut reader = near.subscriber("other").reliability(Reliability::Reliable).open().unwrap();
    let mut subscriber = near.subscriber("silent").open().unwrap();
    while other.readers() == 0 || subscriber.publishers() == 0 {
        subscriber.wait(Some(Duration::from_millis(5)));
    }
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let sending = scope.spawn(|| {
            // Two hundred times as long as the wait; then it ends in any case.
            let begun = std::time::Instant::now();
            while !is_over.load(Ordering::Relaxed) && begun.elapsed() < Duration::from_secs(20) {
                other.publish(b"for another").unwrap();
                // One at a time: the waiting thread has nothing to catch up with.
                while reader.take().unwrap().is_none() {
                    std::thread::yield_now();
                }
            }
            is_over.load(Ordering::Relaxed)
        });
        assert!(subscriber.receive(Some(Duration::from_millis(100))).unwrap().is_none());
        is_over.store(true, Ordering::Relaxed);
        assert!(sending.join().unwrap(), "the wait ended with the datagrams, and not with its time");
    });
}

#[test]
fn a_ping_proves_an_interval_that_holds_the_true_offset() {
    let domain = domain();
    let (far, near) = (node("far", domain, "offset=5s"), node("near", domain, ""));
    let idle = near.subscriber("unheard").open().unwrap();
    while near.nodes().is_empty() {
        let _ = near.poll_notice();
        std::thread::yield_now();
    }
    let known = near.nodes().remove(0);
    assert_eq!((known.id, known.name.as_str(), known.same_host), (far.id(), "far", false));
    for _ in 0..20 {
        let exchange = near.ping(far.id(), Duration::from_secs(20)).unwrap();
        let (least_ns, most_ns) = (exchange.offset_at_least().ns(), exchange.offset_at_most().ns());
        assert!(least_ns <= 5_000_000_000 && 5_000_000_000 <= most_ns, "{exchange:?}");
        assert!(exchange.t4 - exchange.t1 >= exchange.t3 - exchange.t2, "{exchange:?}");
    }
    drop(idle);
    assert!(matches!(far.ping(far.id(), Duration::ZERO), Err(PingError::Unknown { .. })));
}

#[test]
fn a_late_joiner_of_another_host_gets_the_history() {
    let domain = domain();
    let (far, near) = (node("far", domain, "offset=1s"), node("near", domain, ""));
    let builder = far.publisher("map").transient_local().reliability(Reliability::Reliable).keep_last(3);
    let mut publisher = builder.open().unwrap();
    (0..10u8).for_each(|number| publisher.publish(&[number]).unwrap());
    let builder = near.subscriber("map").transient_local().reliability(Reliability::Reliable);
    let mut subscriber = builder.open().unwrap();
    for number in 7..10u8 {
        let sample = subscriber.receive(Some(Duration::from_secs(20))).unwrap().expect("the history");
        assert_eq!(sample.to_vec(), [number]);
    }
    publisher.publish(&[10]).unwrap();
    let sample = subscriber.receive(Some(Duration::from_secs(20))).unwrap().expect("what came after");
    assert_eq!(sample.to_vec(), [10]);
}

#[test]
fn with_one_key_nodes_talk_and_with_another_they_say_why_not() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let key = |name: &str, digits: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, digits.repeat(32)).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        path
    };
    let (right, wrong) = (key("right", "ab"), key("wrong", "cd"));
    let domain = domain();
    let keyed = |name: &str, key: &std::path::Path, clock: &str| {
        let clock: LocalClock = clock.parse().unwrap();
        Node::builder(name).domain(domain).clock(clock).swarm_key(key).keep_notices().open().unwrap()
    };
    let (a, b, c) =
        (keyed("a", &right, ""), keyed("b", &right, "offset=1s"), keyed("c", &wrong, "offset=2s"));
    let mut publisher = a.publisher("secret").open().unwrap();
    let mut insider = b.subscriber("secret").open().unwrap();
    let mut outsider = c.subscriber("secret").open().unwrap();
    let sample = loop {
        publisher.publish(b"plan").unwrap();
        if let Some(sample) = receive(&mut insider) {
            break sample;
        }
    };
    assert_eq!(sample.to_vec(), b"plan");
    let notice = loop {
        if let Some(notice) = c.poll_notice() {
            break notice.to_string();
        }
        outsider.wait(Some(Duration::from_millis(5)));
    };
    assert!(notice.contains("same swarm key"), "{notice}");
    assert!(outsider.take().unwrap().is_none() && c.endpoints().is_empty());
}

/// Rings in this process that are longer than any other test's: more than a GiB.
fn huge_rings() -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let length = |line: &str| {
        let (from, to) = line.split_whitespace().next()?.split_once('-')?;
        Some(usize::from_str_radix(to, 16).ok()? - usize::from_str_radix(from, 16).ok()?)
    };
    let is_huge = |line: &&str| line.contains("memfd:noctule") && length(line) > Some(1 << 30);
    maps.lines().filter(is_huge).count()
}

#[test]
fn a_closed_subscriber_leaves_no_memory_of_its_remote_topic() {
    // Never touched, so they take no memory.
    const SAMPLE_BYTES: u32 = 100 << 20;
    let domain = domain();
    let (far, near) = (node("far", domain, "offset=1s"), node("near", domain, ""));
    let builder = far.publisher("large").payload_bytes_max(SAMPLE_BYTES);
    let mut publisher = builder.keep_last(1).borrows(1).open().unwrap();
    for _ in 0..3 {
        let mut subscriber = near.subscriber("large").open().unwrap();
        while publisher.publish(b"x").is_ok() && receive(&mut subscriber).is_none() {}
        assert!(huge_rings() > 0);
        drop(subscriber);
        assert_eq!(huge_rings(), 0);
    }
}
