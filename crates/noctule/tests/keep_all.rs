//! A topic that keeps all, over a line between two hosts that carries less than is published.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)] // tests and what they share

use std::time::Duration;

use noctule::{PublishError, Reliability};

mod hosts;

const SAMPLES: u32 = 600;
const SAMPLE_BYTES: usize = 3_000;
const LONG: Duration = Duration::from_secs(60);

#[test]
fn a_line_that_is_full_holds_up_the_publisher_and_nothing_is_lost() {
    let Some(hosts) = hosts::pair() else { return };
    hosts.0.limit(5);
    let far = hosts.0.node("far", |builder| builder.domain(43));
    let near = hosts.1.node("near", |builder| builder.domain(43));
    let reliable = Reliability::Reliable;
    let mut publisher = far.publisher("rows").reliability(reliable).keep_all(16).open().unwrap();
    // All of them, so that a reader that this machine keeps waiting overruns none.
    let mut subscriber = near.subscriber("rows").reliability(reliable).keep_last(SAMPLES).open().unwrap();
    while publisher.readers() == 0 || subscriber.publishers() == 0 {
        subscriber.wait(Some(Duration::from_millis(5)));
    }
    let mut held_up = 0;
    for number in 0..SAMPLES {
        let mut bytes = [0; SAMPLE_BYTES];
        bytes[..4].copy_from_slice(&number.to_le_bytes());
        while let Err(error) = publisher.publish(&bytes) {
            assert!(matches!(error, PublishError::WouldBlock { .. }), "{error}");
            held_up += 1;
            assert!(publisher.wait_for_room(SAMPLE_BYTES, LONG), "there is never room");
        }
    }
    assert!(publisher.wait_for_acknowledgments(LONG), "all is acknowledged");
    assert!(held_up > 0 && publisher.given_up() == 0, "{held_up} times held up, {}", publisher.given_up());
    eprintln!("{SAMPLES} samples, held up {held_up} times");
    for expected in 0..SAMPLES {
        let sample = subscriber.receive(Some(LONG)).unwrap().expect("nothing is lost");
        let bytes = sample.to_vec();
        assert_eq!((bytes.len(), &bytes[..4]), (SAMPLE_BYTES, expected.to_le_bytes().as_slice()));
        assert_eq!(sample.info().missed, 0);
    }
}
