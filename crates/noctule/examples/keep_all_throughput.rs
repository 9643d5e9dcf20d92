//! Throughput from one host to another when no sample is lost: reliable, keep all, between two network namespaces.
//!
//! `keep_all_throughput send PAYLOAD_BYTES SECONDS DEPTH` at one end of a link and `keep_all_throughput receive PAYLOAD_BYTES SECONDS DEPTH` at the other. Times are of one machine's clock.

#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::expect_used)] // a measuring program

use std::time::Duration;

use noctule::{Node, Reliability};
use noctule_sys::clock::{now_ns, sleep_until};

const TOPIC: &str = "keep_all_throughput";
/// The time of publishing, in front.
const HEAD_BYTES: usize = 8;
/// After so long nothing more comes.
const SILENCE: Duration = Duration::from_secs(2);
/// For the first sample, and for room.
const PATIENCE: Duration = Duration::from_secs(10);

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let numbers: Vec<usize> = words.iter().skip(1).map(|word| word.parse().unwrap()).collect();
    match (words.first().map(String::as_str), &numbers[..]) {
        (Some("send"), &[bytes, seconds, depth]) => send(bytes.max(HEAD_BYTES), seconds, depth as u32),
        (Some("receive"), &[bytes, _, depth]) => receive(bytes.max(HEAD_BYTES), depth as u32),
        _ => println!(
            "keep_all_throughput send PAYLOAD_BYTES SECONDS DEPTH | keep_all_throughput receive PAYLOAD_BYTES SECONDS DEPTH"
        ),
    }
}

fn send(bytes: usize, seconds: usize, depth: u32) {
    let node = Node::builder("sender").open().unwrap();
    let builder = node.publisher(TOPIC).reliability(Reliability::Reliable).keep_all(depth);
    let mut publisher = builder.payload_bytes_max(bytes as u32).open().unwrap();
    while publisher.readers() == 0 {
        sleep_until(now_ns() + 1_000_000);
    }
    sleep_until(now_ns() + 300_000_000);
    let mut payload = vec![0xa5; bytes];
    let (begin_ns, mut samples, mut longest_ns) = (now_ns(), 0_u64, 0);
    while now_ns() - begin_ns < seconds as i64 * 1_000_000_000 {
        let now = now_ns();
        payload[..HEAD_BYTES].copy_from_slice(&now.to_le_bytes());
        while publisher.publish(&payload).is_err() {
            assert!(publisher.wait_for_room(bytes, PATIENCE), "the reader leaves no room");
        }
        longest_ns = longest_ns.max(now_ns() - now);
        samples += 1;
    }
    let took_ms = (now_ns() - begin_ns) / 1_000_000;
    publisher.wait_for_acknowledgments(PATIENCE);
    let links = node.nodes().into_iter().filter_map(|known| node.link_counters(known.id));
    let (sent, retransmitted) =
        links.fold((0, 0), |(sent, again), link| (sent + link.sent_datagrams, again + link.repeated));
    println!(
        "{samples} published in {took_ms} ms, one within {} us at most; {sent} datagrams, {retransmitted} of them retransmissions",
        longest_ns / 1_000
    );
    sleep_until(now_ns() + 300_000_000);
}

fn receive(bytes: usize, depth: u32) {
    let node = Node::builder("receiver").open().unwrap();
    let builder = node.subscriber(TOPIC).reliability(Reliability::Reliable).keep_all(depth);
    let mut subscriber = builder.open().unwrap();
    let (mut arrivals_ns, mut ages_ns, mut payload) = (Vec::new(), Vec::new(), vec![0; bytes]);
    let mut within = PATIENCE;
    while let Some(sample) = subscriber.receive(Some(within)).unwrap() {
        sample.copy_to(&mut payload);
        let now = now_ns();
        arrivals_ns.push(now);
        ages_ns.push(now - i64::from_le_bytes(*payload.first_chunk().unwrap()));
        within = SILENCE;
    }
    let took_ns =
        arrivals_ns.last().zip(arrivals_ns.first()).map_or(1, |(last, first)| (last - first).max(1));
    let pause_ns = arrivals_ns.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0);
    ages_ns.sort_unstable();
    let rate = (arrivals_ns.len() as f64 * 1e9 / took_ns as f64) as u64;
    let at = |share: usize| ages_ns.get(ages_ns.len() * share / 100).map_or(0, |age| age / 1_000);
    println!(
        "{} came, {rate} a second, {} us at most between two; p50 {} us, p99 {} us",
        arrivals_ns.len(),
        pause_ns / 1_000,
        at(50),
        at(99)
    );
}
