//! Subscribers in event loops, loans, stamps of other clocks, notices by a hook, and what a publisher does when it goes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests and what they share

use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

use noctule::clock::LocalClock;
use noctule::{Node, NodeBuilder, Publisher, Reliability, Route, StampClock, Subscriber};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

const LONG: Duration = Duration::from_secs(30);

fn domain(number: u32) -> u32 {
    1_500 + (std::process::id() % 100) * 8 + number
}

fn builder(domain: u32, clock: &str) -> NodeBuilder {
    let clock: LocalClock = clock.parse().unwrap();
    Node::builder("loop").domain(domain).clock(clock).keep_notices()
}

/// Two nodes, on one host or on two.
fn pair(domain: u32, is_far: bool) -> [Node; 2] {
    ["offset=0s", if is_far { "offset=5s" } else { "offset=0s" }]
        .map(|clock| builder(domain, clock).open().unwrap())
}

fn join(publisher: &mut Publisher, subscriber: &mut Subscriber) {
    while publisher.readers() == 0 || subscriber.publishers() == 0 {
        subscriber.wait(Some(Duration::from_millis(5)));
    }
}

/// Whether a subscriber's descriptor becomes readable.
fn is_readable(subscriber: &mut Subscriber, timeout: Duration) -> bool {
    let descriptor = subscriber.descriptor().unwrap();
    let mut polled = [PollFd::new(&descriptor, PollFlags::IN)];
    let timeout = Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: timeout.subsec_nanos().into() };
    poll(&mut polled, Some(&timeout)).unwrap() == 1
}

/// In shared memory and by UDP, for each way to wait: a loop of `wait` and `take` ends when nothing comes any more.
#[test]
fn a_wait_is_false_once_its_time_is_over_and_true_while_a_sample_is_there() {
    let short = Some(Duration::from_millis(3));
    for (number, is_far) in [(5, false), (6, true)] {
        let [from, to] = pair(domain(number), is_far);
        let mut publisher = from.publisher("wait").reliability(Reliability::Reliable).open().unwrap();
        for wait in [noctule::Wait::Block, noctule::Wait::Hybrid, noctule::Wait::Spin] {
            let builder = to.subscriber("wait").reliability(Reliability::Reliable).wait(wait);
            let mut subscriber = builder.open().unwrap();
            join(&mut publisher, &mut subscriber);
            // A publisher's ways to it may still change; that is news, too, and seldom.
            let ends = |subscriber: &mut Subscriber| {
                (0..50).any(|_| {
                    let is_over = !subscriber.wait(short);
                    subscriber.take().unwrap();
                    is_over
                })
            };
            assert!(ends(&mut subscriber), "{wait:?}, far: {is_far}");
            publisher.publish(&[1]).unwrap();
            while subscriber.take().unwrap().is_none() {
                assert!(subscriber.wait(Some(LONG)), "{wait:?}, far: {is_far}");
            }
            assert!(ends(&mut subscriber), "all is taken: {wait:?}, far: {is_far}");
        }
    }
}

#[test]
fn a_descriptor_is_readable_exactly_while_there_is_something_to_take() {
    for (number, is_far) in [(0, false), (1, true)] {
        let [from, to] = pair(domain(number), is_far);
        let mut publisher = from.publisher("poll").reliability(Reliability::Reliable).open().unwrap();
        let mut subscriber = to.subscriber("poll").reliability(Reliability::Reliable).open().unwrap();
        join(&mut publisher, &mut subscriber);
        while subscriber.take().unwrap().is_some() {}
        for round in 0..200_u32 {
            publisher.publish(&round.to_le_bytes()).unwrap();
            publisher.publish(&round.to_le_bytes()).unwrap();
            let mut taken = 0;
            while taken < 2 {
                assert!(is_readable(&mut subscriber, LONG), "round {round}, {taken} taken");
                // One each time: what is left must ring again.
                let sample = subscriber.take().unwrap();
                taken += u32::from(sample.is_some_and(|sample| sample.to_vec() == round.to_le_bytes()));
            }
            assert!(subscriber.take().unwrap().is_none());
            assert!(!is_readable(&mut subscriber, Duration::ZERO), "round {round}");
        }
    }
}

#[test]
fn a_publisher_that_comes_later_rings_too() {
    let [from, to] = pair(domain(2), false);
    let mut subscriber = to.subscriber("later").open().unwrap();
    assert!(is_readable(&mut subscriber, Duration::ZERO), "at first it may have something");
    assert!(subscriber.take().unwrap().is_none());
    let mut publishers: Vec<Publisher> = Vec::new();
    for count in 1..=3 {
        publishers.push(from.publisher("later").open().unwrap());
        while subscriber.publishers() < count {
            assert!(is_readable(&mut subscriber, LONG));
            assert!(subscriber.take().unwrap().is_none());
        }
        for publisher in &mut publishers {
            publisher.publish(b"x").unwrap();
            while subscriber.take().unwrap().is_none() {
                assert!(is_readable(&mut subscriber, LONG));
            }
        }
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// The smallest runtime there is.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let (mut future, mut context) = (pin!(future), Context::from_waker(&waker));
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::park(),
        }
    }
}

#[test]
fn samples_come_to_an_asynchronous_task() {
    let [from, to] = pair(domain(3), false);
    let mut publisher = from.publisher("async").keep_last(600).open().unwrap();
    let mut subscriber = to.subscriber("async").open().unwrap();
    join(&mut publisher, &mut subscriber);
    let mut samples = subscriber.into_samples().unwrap();
    let writer = std::thread::spawn(move || {
        (0..500_u32).for_each(|number| {
            publisher.publish(&number.to_le_bytes()).unwrap();
            std::thread::yield_now();
        });
        publisher
    });
    for number in 0..500_u32 {
        let sample = block_on(samples.next()).unwrap();
        assert_eq!((sample.to_vec(), sample.info().missed), (number.to_le_bytes().to_vec(), 0));
    }
    drop(writer.join().unwrap());
    assert_eq!(samples.into_inner().counters().taken, 500);
}

/// As a program on tokio reads them: two tasks of one thread, each with a stream.
#[cfg(feature = "stream")]
#[test]
fn samples_are_a_stream_for_tokio() {
    use futures_core::Stream;

    async fn next<S: Stream + Unpin>(stream: &mut S) -> Option<S::Item> {
        std::future::poll_fn(|context| pin!(&mut *stream).poll_next(context)).await
    }

    let [from, to] = pair(domain(3), false);
    let mut publisher = from.publisher("stream").keep_last(600).open().unwrap();
    let mut streams = Vec::new();
    for _ in 0..2 {
        let mut subscriber = to.subscriber("stream").open().unwrap();
        join(&mut publisher, &mut subscriber);
        streams.push(subscriber.into_samples().unwrap());
    }
    while publisher.readers() < 2 {
        std::thread::yield_now();
    }
    let writer = std::thread::spawn(move || {
        (0..500_u32).for_each(|number| {
            publisher.publish(&number.to_le_bytes()).unwrap();
            std::thread::yield_now();
        });
        publisher
    });
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let tasks = streams.into_iter().map(|mut stream| {
        runtime.spawn(async move {
            for number in 0..500_u32 {
                let sample = next(&mut stream).await.expect("it never ends").unwrap();
                assert_eq!((sample.to_vec(), sample.info().missed), (number.to_le_bytes().to_vec(), 0));
            }
        })
    });
    let tasks: Vec<_> = tasks.collect();
    tasks.into_iter().for_each(|task| runtime.block_on(task).unwrap());
    drop(writer.join().unwrap());
}

#[test]
fn a_loan_is_published_where_it_lies_and_copied_for_other_hosts() {
    for (number, is_far) in [(4, false), (5, true)] {
        let [from, to] = pair(domain(number), is_far);
        let mut publisher = from.publisher("lent").payload_bytes_max(4_096).open().unwrap();
        let mut subscriber = to.subscriber("lent").open().unwrap();
        join(&mut publisher, &mut subscriber);
        let error = publisher.publish_loan(1, None).unwrap_err();
        assert!(error.to_string().contains("0 are lent"), "{error}");
        assert!(publisher.loan(4_097).is_err());
        let first = publisher.loan(1_000).unwrap();
        assert_eq!(first as usize % 64, 0);
        assert!(publisher.publish_loan(1_001, None).is_err());
        publisher.publish_loan(900, Some(from.now())).unwrap();
        let sample = subscriber.receive(Some(LONG)).unwrap().unwrap();
        assert_eq!((sample.len(), sample.info().route == Route::Udp), (900, is_far));
        // What is published otherwise takes the place of what was lent.
        let _lent = publisher.loan(10).unwrap();
        publisher.publish(b"other").unwrap();
        assert!(publisher.publish_loan(10, None).is_err());
        drop(sample);
        assert_eq!(subscriber.receive(Some(LONG)).unwrap().unwrap().to_vec(), b"other");
    }
}

#[test]
fn what_a_reliable_publisher_wrote_last_arrives_although_it_goes_at_once() {
    let [from, to] = pair(domain(6), true);
    let mut publisher =
        from.publisher("last").reliability(Reliability::Reliable).keep_last(200).linger(LONG).open().unwrap();
    let mut subscriber = to.subscriber("last").reliability(Reliability::Reliable).open().unwrap();
    join(&mut publisher, &mut subscriber);
    (0..100_u32).for_each(|number| publisher.publish(&number.to_le_bytes()).unwrap());
    drop(publisher);
    for number in 0..100_u32 {
        let sample = subscriber.receive(Some(LONG)).unwrap().expect("a sample");
        assert_eq!((sample.to_vec(), sample.info().missed), (number.to_le_bytes().to_vec(), 0));
    }
}

#[test]
fn a_stamp_of_the_wall_clock_is_now_and_tai_is_refused_where_nobody_set_it() {
    let node = builder(domain(7), "offset=3s").open().unwrap();
    for (clock, read) in [
        (StampClock::Monotonic, noctule_sys::clock::now_ns as fn() -> i64),
        (StampClock::Realtime, noctule_sys::clock::realtime_ns),
    ] {
        let (before, stamp_ns, after) = (node.now(), read(), node.now());
        let time = node.source_time_of(clock, stamp_ns).unwrap();
        let bound = time.bound.unwrap();
        assert!(
            time.time + bound >= before && time.time - bound <= after,
            "{time:?}, {before:?} to {after:?}"
        );
    }
    let is_set = noctule_sys::clock::tai_ns() - noctule_sys::clock::realtime_ns() > 1_000_000_000;
    let tai = node.source_time_of(StampClock::Tai, noctule_sys::clock::tai_ns());
    assert_eq!(tai.is_ok(), is_set, "{tai:?}");
    assert!(node.source_time_of(StampClock::Realtime, i64::MIN).unwrap_err().to_string().contains("beyond"));
}

#[test]
fn notices_go_to_the_hook_with_a_word_for_their_kind() {
    let notices = Arc::new(Mutex::new(Vec::new()));
    let list = Arc::clone(&notices);
    let hook = move |notice: &noctule::Notice| list.lock().unwrap().push((notice.kind(), notice.to_string()));
    let node = builder(domain(7), "offset=3s").on_notice(hook).open().unwrap();
    let _publisher = node.publisher("pose").type_name("one", 1).open().unwrap();
    let mut subscriber = node.subscriber("pose").type_name("other", 2).open().unwrap();
    // A notice that there is no key may come before.
    let mismatch = loop {
        let found = notices.lock().unwrap().iter().find(|(kind, _)| *kind == "mismatch").cloned();
        if let Some((_, sentence)) = found {
            break sentence;
        }
        subscriber.wait(Some(Duration::from_millis(5)));
    };
    assert!(mismatch.contains("topic pose"), "{mismatch}");
    assert_eq!(node.poll_notice(), None);
}
