//! Garbage at the full rate of loopback at the sockets of both nodes: real traffic goes on, and counters show what came.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)] // tests and what they share

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use noctule::clock::LocalClock;
use noctule::{Node, Reliability};

/// Length of the flood.
const DATAGRAMS: u32 = 200_000;
/// Samples that must come, one by one, before it has passed.
const SAMPLES: u64 = 200;

fn node(name: &str, clock: &str) -> Node {
    let clock: LocalClock = clock.parse().unwrap();
    let domain = 2600 + std::process::id() % 300;
    Node::builder(name).domain(domain).clock(clock).keep_notices().open().unwrap()
}

/// xorshift64.
fn next(random: &mut u64) -> u64 {
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    *random
}

/// Noise in turn with what begins like ours: of discovery, of a link, of the clock exchange.
fn garbage(random: &mut u64) -> Vec<u8> {
    const BEGINNINGS: [&[u8]; 5] = [b"", b"NCTD\x01", b"NCTM\x04\x08", b"NCTS\x01\x02", b"\x90\x01\0"];
    let length = (next(random) % 1400) as usize;
    let mut bytes: Vec<u8> = (0..length).map(|_| next(random) as u8).collect();
    let beginning = BEGINNINGS[next(random) as usize % BEGINNINGS.len()];
    let common = beginning.len().min(length);
    bytes[..common].copy_from_slice(&beginning[..common]);
    bytes
}

fn flood(targets: &[SocketAddr]) -> u32 {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut random = 1;
    println!("seed {random}");
    let noise: Vec<Vec<u8>> = (0..512).map(|_| garbage(&mut random)).collect();
    let mut sent = 0;
    while sent < DATAGRAMS {
        for target in targets {
            sent += u32::from(socket.send_to(&noise[sent as usize % noise.len()], target).is_ok());
        }
    }
    sent
}

#[test]
fn garbage_at_full_rate_does_not_stop_reliable_samples_and_is_counted() {
    let (far, near) = (node("far", "offset=1s"), node("near", "offset=0s"));
    let builder = far.publisher("plan").reliability(Reliability::Reliable);
    let mut publisher = builder.open().unwrap();
    let mut subscriber = near.subscriber("plan").reliability(Reliability::Reliable).open().unwrap();
    while publisher.readers() == 0 || subscriber.publishers() == 0 {
        subscriber.wait(Some(Duration::from_millis(5)));
    }
    let loopback = |port| SocketAddr::from(([127, 0, 0, 1], port));
    let targets: Vec<SocketAddr> = [&far, &near]
        .iter()
        .flat_map(|node| node.nodes())
        .map(|known| loopback(known.address.port()))
        .collect();
    assert_eq!(targets.len(), 2);
    let mut number = 0u64;
    let sent = std::thread::scope(|scope| {
        let flooder = scope.spawn(|| flood(&targets));
        while !flooder.is_finished() {
            publisher.publish(&number.to_le_bytes()).unwrap();
            let sample = subscriber.receive(Some(Duration::from_secs(60))).unwrap().expect("a sample");
            assert_eq!((sample.to_vec(), sample.info().missed), (number.to_le_bytes().to_vec(), 0));
            number += 1;
        }
        flooder.join().unwrap()
    });
    assert!(number >= SAMPLES, "only {number} samples came beside {sent} datagrams of garbage");
    let (counters, others) = (near.counters(), far.counters());
    println!("{sent} datagrams of garbage beside {number} samples; {counters:?}");
    for counters in [counters, others] {
        assert!(counters.discovery.malformed > 0 && counters.strangers > 0, "{counters:?}");
        assert!(counters.discovery.malformed + counters.strangers <= u64::from(sent), "{counters:?}");
    }
    assert_eq!((near.nodes().len(), far.nodes().len()), (1, 1), "garbage is no node");
}
