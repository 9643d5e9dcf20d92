//! Waiting for many topics at once, and callbacks.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests and what they share

use std::sync::mpsc::channel;
use std::time::Duration;

use noctule::clock::LocalClock;
use noctule::formats::uav_state::Waypoint;
use noctule::{
    DispatchError, Dispatcher, Node, Publisher, Ready, ReceiveError, Sample, SpinResult, Subscriber, Wait,
    WaitSet,
};

const LONG: Option<Duration> = Some(Duration::from_secs(20));

fn domain() -> u32 {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    4000 + (std::process::id() % 45) * 20 + NEXT.fetch_add(1, Ordering::Relaxed)
}

fn node(name: &str, domain: u32, clock: &str) -> Node {
    let clock: LocalClock = clock.parse().unwrap();
    Node::builder(name).domain(domain).clock(clock).keep_notices().open().unwrap()
}

/// A pair that has met, and of which nothing is left to read.
fn joined(a: &Node, b: &Node, topic: &str) -> (Publisher, Subscriber) {
    let mut publisher = a.publisher(topic).keep_last(64).open().unwrap();
    let mut subscriber = b.subscriber(topic).open().unwrap();
    for _ in 0..1000 {
        publisher.publish(b"hello").unwrap();
        if subscriber.receive(Some(Duration::from_millis(20))).unwrap().is_some() {
            while subscriber.take().unwrap().is_some() {}
            return (publisher, subscriber);
        }
    }
    panic!("nothing was received");
}

#[test]
fn each_way_of_waiting_finds_the_topic_that_has_a_sample() {
    let domain = domain();
    let (a, b, far) = (node("a", domain, ""), node("b", domain, ""), node("far", domain, "offset=1s"));
    // Through shared memory, from another host, and both at once.
    for publishing in [[&a, &a], [&far, &far], [&a, &far]] {
        for wait in [Wait::Block, Wait::Hybrid, Wait::Spin] {
            let (mut one, mut first) = joined(publishing[0], &b, "one");
            let (mut two, mut second) = joined(publishing[1], &b, "two");
            let mut set = WaitSet::new(wait);
            for expected in [0, 1, 0] {
                let publisher = if expected == 0 { &mut one } else { &mut two };
                publisher.publish(b"now").unwrap();
                let ready = loop {
                    let ready = set.wait(&mut [&mut first, &mut second], LONG);
                    let Ready::Sample(which) = ready else { break ready };
                    let subscriber = if which == 0 { &mut first } else { &mut second };
                    // What was still under way when they met does not count.
                    match subscriber.take().unwrap() {
                        Some(sample) if sample.to_vec() == b"now" => break ready,
                        _ => {}
                    }
                };
                assert_eq!(ready, Ready::Sample(expected), "{wait:?}");
            }
        }
    }
}

#[test]
fn a_sample_that_comes_while_the_set_sleeps_wakes_it() {
    let domain = domain();
    for clock in ["", "offset=1s"] {
        let (a, b) = (node("a", domain, clock), node("b", domain, ""));
        let (_quiet, mut first) = joined(&a, &b, "quiet");
        let (mut publisher, mut second) = joined(&a, &b, "imu");
        let (ask, asked) = channel();
        let answering = std::thread::spawn(move || {
            while asked.recv().is_ok() {
                publisher.publish(b"answer").unwrap();
            }
        });
        let mut set = WaitSet::new(Wait::Block);
        for _ in 0..200 {
            ask.send(()).unwrap();
            let sample = loop {
                assert_eq!(set.wait(&mut [&mut first, &mut second], LONG), Ready::Sample(1));
                if let Some(sample) = second.take().unwrap() {
                    break sample;
                }
            };
            drop(sample);
        }
        drop(ask);
        answering.join().unwrap();
    }
}

#[test]
fn a_busy_topic_does_not_keep_the_others_from_being_served() {
    let node = node("alone", domain(), "");
    let topics = ["a", "b", "c"].map(|topic| joined(&node, &node, topic));
    let (mut publishers, mut subscribers): (Vec<_>, Vec<_>) = topics.into_iter().unzip();
    let mut set = WaitSet::new(Wait::Block);
    let mut served = [0; 3];
    for _ in 0..300 {
        // All always have something.
        publishers.iter_mut().for_each(|publisher| publisher.publish(b"x").unwrap());
        let Ready::Sample(which) = set.wait(&mut subscribers, LONG) else { panic!("there are samples") };
        drop(subscribers[which].take().unwrap().unwrap());
        served[which] += 1;
    }
    assert_eq!(served, [100; 3]);
}

#[test]
fn a_waker_ends_the_wait_that_is_under_way_or_the_next_one() {
    let domain = domain();
    for clock in ["", "offset=1s"] {
        let (a, b) = (node("a", domain, clock), node("b", domain, ""));
        let (_publisher, mut subscriber) = joined(&a, &b, "imu");
        for wait in [Wait::Block, Wait::Hybrid, Wait::Spin] {
            let mut set = WaitSet::new(wait);
            let waker = set.waker();
            waker.wake();
            let mut subscribers = [&mut subscriber];
            let mut ready = || loop {
                match set.wait(&mut subscribers, LONG) {
                    // Under way when they met.
                    Ready::Sample(_) => drop(subscribers[0].take().unwrap()),
                    ready => break ready,
                }
            };
            assert_eq!(ready(), Ready::Woken, "{wait:?}");
            for _ in 0..50 {
                let waker = waker.clone();
                let other = std::thread::spawn(move || waker.wake());
                assert_eq!(ready(), Ready::Woken, "{wait:?}");
                other.join().unwrap();
            }
            assert_eq!(
                set.wait(&mut subscribers, Some(Duration::from_millis(1))),
                Ready::TimedOut,
                "{wait:?}"
            );
        }
    }
}

#[test]
fn more_topics_than_the_kernel_waits_for_at_once_are_all_heard() {
    let node = node("many", domain(), "");
    let topics = (0..150).map(|number| joined(&node, &node, &format!("topic_{number}")));
    let (mut publishers, mut subscribers): (Vec<_>, Vec<_>) = topics.unzip();
    let mut set = WaitSet::new(Wait::Block);
    for which in [149, 0, 77] {
        publishers[which].publish(b"x").unwrap();
        assert_eq!(set.wait(&mut subscribers, LONG), Ready::Sample(which));
        drop(subscribers[which].take().unwrap().unwrap());
    }
    let waker = set.waker();
    let other = std::thread::spawn(move || waker.wake());
    assert_eq!(set.wait(&mut subscribers, LONG), Ready::Woken);
    other.join().unwrap();
}

#[test]
fn a_publisher_that_comes_while_the_set_waits_is_heard() {
    let domain = domain();
    let (a, b) = (node("a", domain, ""), node("b", domain, ""));
    let mut subscribers = [b.subscriber("late").open().unwrap(), b.subscriber("never").open().unwrap()];
    let (stop, stopped) = channel::<()>();
    let publishing = std::thread::spawn(move || {
        let mut publisher = a.publisher("late").open().unwrap();
        while stopped.try_recv().is_err() {
            publisher.publish(b"x").unwrap();
            std::thread::yield_now();
        }
    });
    let mut set = WaitSet::new(Wait::Block);
    assert_eq!(set.wait(&mut subscribers, None), Ready::Sample(0));
    stop.send(()).unwrap();
    publishing.join().unwrap();
}

#[test]
fn nothing_is_allocated_by_a_wait() {
    let node = node("alone", domain(), "");
    let (mut publisher, mut subscriber) = joined(&node, &node, "imu");
    let mut set = WaitSet::new(Wait::Block);
    let mut round = || {
        publisher.publish(b"x").unwrap();
        let mut subscribers = [&mut subscriber];
        assert_eq!(set.wait(&mut subscribers, LONG), Ready::Sample(0));
        let mut buffer = [0; 64];
        assert!(subscribers[0].take_into(&mut buffer).unwrap().is_some());
        assert_eq!(set.wait(&mut subscribers, Some(Duration::from_micros(10))), Ready::TimedOut);
    };
    round();
    assert_eq!(allocation_counter::measure(round).count_total, 0);
}

#[test]
fn callbacks_run_on_the_thread_that_spins_until_another_stops_it() {
    let node = node("alone", domain(), "");
    let (mut bytes, subscriber) = joined(&node, &node, "bytes");
    let mut values = node.publisher("goal").typed::<Waypoint>().open().unwrap();
    let goals = node.subscriber("goal").typed::<Waypoint>().open().unwrap();
    let (called, calls) = channel();
    let mut dispatcher = Dispatcher::new(Wait::Block);
    let here = std::thread::current().id();
    let say = called.clone();
    dispatcher.on_sample(subscriber, move |sample| {
        assert_eq!(std::thread::current().id(), here);
        say.send(("bytes", sample.len() as f64)).unwrap();
    });
    dispatcher.on_sample(goals, move |goal| called.send(("goal", goal.latitude_deg)).unwrap());
    let stopper = dispatcher.stopper();
    let other = std::thread::spawn(move || {
        let goal = Waypoint { latitude_deg: 47.0, longitude_deg: 11.0, altitude_m: 600.0, speed_m_s: 5.0 };
        let mut heard = [false; 2];
        while heard != [true; 2] {
            bytes.publish(b"four").unwrap();
            values.publish(&goal).unwrap();
            while let Ok(call) = calls.recv_timeout(Duration::from_millis(20)) {
                assert!(call == ("bytes", 4.0) || call == ("goal", 47.0), "{call:?}");
                heard[usize::from(call.0 == "goal")] = true;
            }
        }
        stopper.stop();
        (bytes, values, calls)
    });
    dispatcher.spin();
    assert_eq!(dispatcher.spin_once(None), SpinResult::Stopped, "for good");
    drop(other.join().unwrap());
}

#[test]
fn a_callback_that_panics_is_named_and_the_others_go_on() {
    let node = node("alone", domain(), "");
    let (mut bad, panicking) = joined(&node, &node, "bad");
    let (mut good, counting) = joined(&node, &node, "good");
    let (mut errors, mut count) = (Vec::new(), 0);
    let mut dispatcher = Dispatcher::new(Wait::Block);
    dispatcher.on_error(|error| errors.push(error.clone()));
    dispatcher.on_sample(panicking, |_| panic!("on purpose"));
    dispatcher.on_sample(counting, |_| count += 1);
    bad.publish(b"x").unwrap();
    assert_eq!(dispatcher.spin_once(LONG), SpinResult::Called);
    assert_eq!(dispatcher.callbacks(), 1);
    for _ in 0..3 {
        bad.publish(b"x").unwrap();
        good.publish(b"x").unwrap();
        assert_eq!(dispatcher.spin_once(LONG), SpinResult::Called);
    }
    assert_eq!(dispatcher.spin_once(Some(Duration::ZERO)), SpinResult::TimedOut);
    drop(dispatcher);
    assert_eq!(errors, [DispatchError::Panicked { topic: "bad".into(), message: "on purpose".into() }]);
    assert!(errors[0].to_string().contains("topic bad: the callback panicked (on purpose)"));
    assert_eq!(count, 3);
}

#[test]
fn a_callback_that_keeps_all_it_may_causes_one_error_and_goes_on_when_it_lets_go() {
    let node = node("alone", domain(), "");
    let (mut publisher, subscriber) = joined(&node, &node, "kept");
    let (keep, kept) = channel::<Sample>();
    let (tell, errors) = channel();
    let mut dispatcher = Dispatcher::new(Wait::Block);
    dispatcher.on_sample(subscriber, move |sample| keep.send(sample).unwrap());
    dispatcher.on_error(move |error| tell.send(error.clone()).unwrap());
    publisher.publish(b"1").unwrap();
    publisher.publish(b"2").unwrap();
    for _ in 0..5 {
        assert_eq!(dispatcher.spin_once(LONG), SpinResult::Called);
    }
    let errors: Vec<DispatchError> = errors.try_iter().collect();
    assert!(matches!(&errors[..], [DispatchError::Receive(ReceiveError::Take(_))]), "{errors:?}");
    drop(kept.recv().unwrap());
    assert_eq!(dispatcher.spin_once(LONG), SpinResult::Called);
    assert_eq!(kept.recv().unwrap().to_vec(), b"2");
}

#[test]
fn a_dispatcher_without_callbacks_does_not_spin() {
    Dispatcher::new(Wait::Block).spin();
}
