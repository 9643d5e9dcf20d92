//! A network that marks packets (ECN, RFC 3168) in place of dropping them: the mark of a sender's datagrams, what its receiver sees of
//! them and what comes back, through real sockets.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)] // tests and what they share

use std::time::Duration;

use noctule::Reliability;

mod hosts;

const DOMAIN: u32 = 47;
const SAMPLES: u64 = 40;
const PAYLOAD_BYTES: usize = 100_000;

#[test]
fn marks_of_the_network_come_back_to_the_sender_and_cost_no_sample() {
    let Some((a, b)) = hosts::pair() else { return };
    // One in eight of those that say that they may be marked.
    if !a.nft("one in eight", "ip ecn ect0 numgen inc mod 8 0 ip ecn set ce") {
        return;
    }
    let (far, near) = (a.node("far", |it| it.domain(DOMAIN)), b.node("near", |it| it.domain(DOMAIN)));
    let builder = far.publisher("pictures").payload_bytes_max(PAYLOAD_BYTES as u32).keep_last(SAMPLES as u32);
    let mut publisher = builder.reliability(Reliability::Reliable).open().unwrap();
    let builder = near.subscriber("pictures").keep_last(SAMPLES as u32);
    let mut subscriber = builder.reliability(Reliability::Reliable).open().unwrap();
    while publisher.readers() == 0 || subscriber.publishers() == 0 {
        subscriber.wait(Some(Duration::from_millis(5)));
    }
    for sample in 0..SAMPLES {
        publisher.publish(&[sample as u8; PAYLOAD_BYTES]).unwrap();
        let received = subscriber.receive(None).unwrap().unwrap();
        assert_eq!(received.to_vec(), vec![sample as u8; PAYLOAD_BYTES]);
    }
    let counters = far.link_counters(near.id()).unwrap();
    let (sent, marked) = (counters.sent_datagrams, counters.marked_packets);
    eprintln!("{marked} of {sent} marked");
    // Feedback on the last ones may not have come yet, and what holds nodes together is not marked.
    assert!(marked > sent / 16 && marked <= sent / 4, "{marked} of {sent} marked");
}
