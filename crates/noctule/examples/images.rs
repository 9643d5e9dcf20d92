//! Images with a deadline, or reliable ones of which the last ten are kept, from one network namespace to another: how many are on time, and
//! how the others were not.
//!
//! `images send PAYLOAD_BYTES RATE_HZ IMAGES DEADLINE_MS` at one end of a link and `images receive PAYLOAD_BYTES IMAGES DEADLINE_MS`
//! at the other, with a deadline of 0 for reliable ones; for instance of `noctule link up NAME --spec "delay=10ms rate=100mbit loss=1%"`. Times are of one machine's clock.

#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::expect_used)] // a measuring program

use std::time::Duration;

use noctule::{Node, Qos, Reliability, clock};
use noctule_sys::clock::{now_ns, sleep_until};
use noctule_timebase::Span;

const TOPIC: &str = "images";
/// Not counted: until the path is known.
const WARM_UP: u64 = 5;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let numbers: Vec<u64> = words.iter().skip(1).map(|word| word.parse().unwrap()).collect();
    match (words.first().map(String::as_str), &numbers[..]) {
        (Some("send"), &[bytes, rate_hz, images, deadline_ms]) => {
            send(bytes, rate_hz, images, qos(deadline_ms))
        }
        (Some("receive"), &[bytes, images, deadline_ms]) => receive(bytes, images, deadline_ms),
        _ => println!(
            "images send PAYLOAD_BYTES RATE_HZ IMAGES DEADLINE_MS | images receive PAYLOAD_BYTES IMAGES DEADLINE_MS"
        ),
    }
}

fn qos(deadline_ms: u64) -> Qos {
    if deadline_ms == 0 {
        return Qos { depth: 10, reliability: Reliability::Reliable, ..Qos::default() };
    }
    let deadline = Some(Span::from_ms(deadline_ms as i64));
    Qos { depth: 16, reliability: Reliability::DeadlineBound, deadline, loss_ppm: 10_000, ..Qos::default() }
}

fn send(bytes: u64, rate_hz: u64, images: u64, qos: Qos) {
    let node = Node::builder("sender").open().unwrap();
    let mut publisher = node.publisher(TOPIC).qos(qos).payload_bytes_max(bytes as u32).open().unwrap();
    while publisher.readers() == 0 {
        sleep_until(now_ns() + 1_000_000);
    }
    let (begin_ns, interval_ns) = (now_ns() + 500_000_000, 1_000_000_000 / rate_hz as i64);
    let mut payload = vec![0xa5; bytes.max(16) as usize];
    let mut copying_ns = Vec::new();
    for image in 0..images + WARM_UP {
        sleep_until(begin_ns + image as i64 * interval_ns);
        let now_ns = clock::now().ns();
        payload[..8].copy_from_slice(&image.to_le_bytes());
        payload[8..16].copy_from_slice(&now_ns.to_le_bytes());
        publisher.publish(&payload).unwrap();
        copying_ns.push(clock::now().ns() - now_ns);
    }
    sleep_until(now_ns() + 1_000_000_000);
    copying_ns.sort_unstable();
    println!(
        "publish took {} us, at most {} us",
        copying_ns[copying_ns.len() / 2] / 1000,
        copying_ns[copying_ns.len() - 1] / 1000
    );
    for (_, counters) in publisher.deadline_counters() {
        println!("{counters:?}, redundancy {:.4}", counters.redundancy());
    }
}

fn receive(bytes: u64, images: u64, deadline_ms: u64) {
    let node = Node::builder("receiver").open().unwrap();
    let mut subscriber = node.subscriber(TOPIC).qos(qos(deadline_ms)).open().unwrap();
    let mut buffer = vec![0; bytes.max(16) as usize];
    let mut latencies_us = Vec::new();
    let mut newest = 0;
    let end_ns = now_ns() + 20_000_000_000 + images as i64 * 110_000_000;
    while newest + 1 < images + WARM_UP && now_ns() < end_ns {
        subscriber.wait(Some(Duration::from_secs(1)));
        while subscriber.take_into(&mut buffer).unwrap().is_some() {
            let now_ns = clock::now().ns();
            let number = |at: usize| i64::from_le_bytes(buffer[at..at + 8].try_into().unwrap());
            newest = number(0) as u64;
            if newest >= WARM_UP {
                latencies_us.push((now_ns - number(8)) / 1000);
            }
        }
    }
    let is_on_time = |us: &i64| deadline_ms == 0 || *us <= deadline_ms as i64 * 1000;
    let on_time = latencies_us.iter().filter(|us| is_on_time(us)).count();
    latencies_us.sort_unstable();
    let at = |share: usize| latencies_us.get(latencies_us.len() * share / 100).copied().unwrap_or(0);
    println!(
        "{on_time} of {images} on time, {} came; p10 {} us, p50 {} us, p90 {} us, p99 {} us, latest {:?} us",
        latencies_us.len(),
        at(10),
        at(50),
        at(90),
        at(99),
        latencies_us.last()
    );
}
