//! More published than other hosts can be sent: what is refused, given up and waited for.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests and what they share

use std::time::Duration;

use noctule::clock::LocalClock;
use noctule::{Node, PublishError, Publisher, Reliability, Subscriber};

const LONG: Duration = Duration::from_secs(30);
const PUBLISHED_MAX: u64 = 400;

fn pair(number: u32) -> (Node, Node) {
    let domain = 3300 + (std::process::id() % 40) * 4 + number;
    let node = |name: &str, clock: &str| {
        let clock: LocalClock = clock.parse().unwrap();
        Node::builder(name).domain(domain).clock(clock).keep_notices().open().unwrap()
    };
    (node("far", "offset=5s"), node("near", ""))
}

fn join(publisher: &Publisher, subscriber: &mut Subscriber) {
    while publisher.readers() == 0 || subscriber.publishers() == 0 {
        subscriber.wait(Some(Duration::from_millis(5)));
    }
}

#[test]
fn a_sample_too_long_for_the_network_is_refused_and_nobody_claims_that_it_was_acknowledged() {
    let (far, near) = pair(0);
    let builder = far.publisher("map").reliability(Reliability::Reliable).keep_last(1);
    let mut publisher = builder.payload_bytes_max(70 << 20).open().unwrap();
    let long = vec![7; 38 << 20];
    publisher.publish(&long).unwrap();
    let mut subscriber = near.subscriber("map").reliability(Reliability::Reliable).open().unwrap();
    join(&publisher, &mut subscriber);
    let refused = publisher.publish(&long).unwrap_err();
    let PublishError::TooLongForNetwork { bytes, most_bytes, .. } = refused else { panic!("{refused}") };
    assert!(bytes == long.len() && most_bytes > 30 << 20, "{refused}");
    assert!(!publisher.wait_for_acknowledgments(LONG), "it was refused");
    publisher.publish(&long[..most_bytes]).unwrap();
    assert!(publisher.wait_for_acknowledgments(LONG), "the longest that travels arrives");
    assert_eq!(subscriber.receive(Some(LONG)).unwrap().unwrap().len(), most_bytes);
}

#[test]
fn reliable_samples_given_up_are_counted_on_both_sides_and_noticed() {
    let (far, near) = pair(1);
    let builder = far.publisher("image").reliability(Reliability::Reliable).keep_last(1);
    let mut publisher = builder.payload_bytes_max(8 << 20).open().unwrap();
    let mut subscriber = near.subscriber("image").reliability(Reliability::Reliable).open().unwrap();
    join(&publisher, &mut subscriber);
    // More at once than this machine sends, however fast it is: of those that wait, only the newest is kept.
    let long = vec![7; 8 << 20];
    let mut published = 0;
    while publisher.given_up() == 0 {
        assert!(
            published < PUBLISHED_MAX,
            "all of {published} samples were sent as fast as they were published"
        );
        publisher.publish(&long).unwrap();
        published += 1;
    }
    assert!(!publisher.wait_for_acknowledgments(LONG), "some were given up");
    assert!(publisher.wait_for_acknowledgments(LONG), "nothing since");
    let (mut taken, mut missed) = (0, 0);
    while taken + missed < published {
        let sample = subscriber.receive(Some(LONG)).unwrap().expect("the newest arrives");
        (taken, missed) = (taken + 1, missed + sample.info().missed);
    }
    // What arrived while the one before had not been taken gave way, too: the reader keeps the last.
    assert_eq!(taken + missed, published);
    let given_up = publisher.given_up();
    assert!((1..=missed).contains(&given_up), "{given_up} given up, {missed} missed, {taken} taken");
    let notices: Vec<String> = std::iter::from_fn(|| far.poll_notice()).map(|it| it.to_string()).collect();
    assert!(notices.iter().any(|notice| notice.contains("were given up because the path")), "{notices:?}");
}
