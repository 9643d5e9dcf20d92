//! Both ends of a local topic in one process, each with its own mapping.

use std::thread;
use std::time::Duration;

use super::*;

const CONFIG: RingConfig = RingConfig { history: 8, pins: 6, payload_bytes_max: 256, type_hash: 1 };
const INTEREST: Interest =
    Interest { type_hash: 1, pins: 2, start: StartAt::Next, access: Access { group: None } };

fn address(name: &str) -> String {
    format!("noctule-test/{}/local/{name}", std::process::id())
}

fn publisher(name: &str) -> Publisher {
    Publisher::open(&address(name), name, &CONFIG, Access::default()).unwrap()
}

fn subscriber(name: &str) -> Subscriber {
    Subscriber::connect(&address(name), name, &INTEREST).unwrap()
}

/// Reads the next message, sleeping for it.
fn take(subscriber: &mut Subscriber, waiting: Waiting) -> Vec<u8> {
    let mut buffer = [0; 256];
    loop {
        if let Some(sample) = subscriber.take_next(&mut buffer).unwrap() {
            return buffer[..sample.length_bytes].to_vec();
        }
        subscriber.wait(waiting, None);
    }
}

#[test]
fn a_message_wakes_a_reader_that_sleeps_on_read_only_memory() {
    let mut publisher = publisher("sleeper");
    let mut forth = subscriber("sleeper");
    let mut back = Publisher::open(&address("back"), "back", &CONFIG, Access::default()).unwrap();
    let mut answers = Subscriber::connect(&address("back"), "back", &INTEREST).unwrap();
    let echo = thread::spawn(move || {
        for _ in 0..200 {
            let message = take(&mut forth, Waiting::Block);
            back.publish(&message, Origin::default()).unwrap();
        }
    });
    for round in 0..200u32 {
        publisher.publish(&round.to_le_bytes(), Origin::default()).unwrap();
        let waiting = match round % 3 {
            0 => Waiting::Block,
            1 => Waiting::Hybrid(Duration::from_micros(20)),
            _ => Waiting::Spin,
        };
        assert_eq!(take(&mut answers, waiting), round.to_le_bytes());
    }
    echo.join().unwrap();
}

#[test]
fn what_does_not_fit_is_refused_in_words() {
    let publisher = publisher("refusals");
    let connect = |topic: &str, interest| {
        Subscriber::connect(&address("refusals"), topic, &interest).unwrap_err().to_string()
    };
    let wrong_type = connect("refusals", Interest { type_hash: 2, ..INTEREST });
    assert!(wrong_type.contains("wanted is 0000000000000002"), "{wrong_type}");
    let wrong_topic = connect("other", INTEREST);
    assert!(wrong_topic.contains("not \"other\""), "{wrong_topic}");
    let too_many = connect("refusals", Interest { pins: 8, ..INTEREST });
    assert!(too_many.contains("raise the writer's `pins`"), "{too_many}");
    let nobody = Subscriber::connect(&address("nobody"), "x", &INTEREST).unwrap_err();
    assert!(matches!(nobody, LocalError::NobodyThere(_)), "{nobody}");
    let taken = Publisher::open(&address("refusals"), "x", &CONFIG, Access::default()).unwrap_err();
    assert!(taken.to_string().starts_with("cannot listen"), "{taken}");
    assert_eq!(publisher.readers(), 0);
}

#[test]
fn the_sixty_fifth_reader_is_refused_and_let_in_when_one_has_gone() {
    let interest = Interest { pins: 0, ..INTEREST };
    let publisher = publisher("crowd");
    let connect = || Subscriber::connect(&address("crowd"), "crowd", &interest);
    let mut readers: Vec<_> = (0..64).map(|_| connect().unwrap()).collect();
    assert!(connect().unwrap_err().to_string().contains("has its 64 readers"));
    assert_eq!(publisher.readers(), 64);
    readers.pop();
    // The connection's end reaches the writer's thread before the next connection does.
    readers.push(connect().unwrap());
}

#[test]
fn the_end_of_the_publisher_wakes_its_readers() {
    let mut publisher = publisher("end");
    let mut first = subscriber("end");
    let mut second = subscriber("end");
    publisher.publish(b"last", Origin::default()).unwrap();
    assert_eq!(take(&mut first, Waiting::Block), b"last");
    let spinning = thread::spawn(move || {
        take(&mut second, Waiting::Spin);
        while !second.publisher_is_gone() {
            second.wait(Waiting::Spin, None);
        }
    });
    let sleeping = thread::spawn(move || {
        while !first.publisher_is_gone() {
            first.wait(Waiting::Block, None);
        }
    });
    drop(publisher);
    sleeping.join().unwrap();
    spinning.join().unwrap();
}

#[test]
fn one_wait_serves_several_topics() {
    let mut publishers: Vec<_> = (0..3).map(|index| publisher(&format!("set {index}"))).collect();
    let mut set: Vec<_> = (0..3).map(|index| subscriber(&format!("set {index}"))).collect();
    let reading = thread::spawn(move || {
        let mut heard = Vec::new();
        while heard.len() < 30 {
            let mut all: Vec<_> = set.iter_mut().collect();
            wait_any(&mut all, None).unwrap();
            for subscriber in &mut set {
                while let Some(sample) = subscriber.take_next(&mut [0; 256]).unwrap() {
                    assert_eq!(sample.missed, 0);
                    heard.push(sample.number);
                }
            }
        }
    });
    // No more at a time than a ring keeps, unread.
    for round in 0..30 {
        publishers[round % 3].publish(b"x", Origin::default()).unwrap();
        if round % 3 == 2 {
            thread::yield_now();
        }
    }
    // Ten each: a ring of 16 slots cannot lose them.
    reading.join().unwrap();
    let mut none: [&mut Subscriber; 0] = [];
    assert_eq!(wait_any(&mut none, None).unwrap_err().kind(), std::io::ErrorKind::InvalidInput);
}

#[test]
fn waits_end_by_themselves_when_a_time_is_given() {
    let _publisher = publisher("patience");
    let mut subscriber = subscriber("patience");
    let short = Some(Duration::from_millis(2));
    for waiting in [Waiting::Spin, Waiting::Block, Waiting::Hybrid(Duration::from_millis(1))] {
        subscriber.wait(waiting, short);
    }
    wait_any(&mut [&mut subscriber], short).unwrap();
    assert!(!subscriber.publisher_is_gone());
}
