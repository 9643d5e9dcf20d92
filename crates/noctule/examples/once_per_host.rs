//! Cost of the readers of one host to a writer of another: datagrams for a sample, and the latency of each reader.
//!
//! `unshare -rn sh -c 'ip link set lo up; once_per_host READERS SAMPLES RATE_HZ PAYLOAD_BYTES BUSY_MS'`; each reader is a process of
//! its own, this program again, and does nothing for `BUSY_MS` after each sample. Datagrams are counted by the kernel, of all
//! processes of the namespace, discovery and clock exchange included. Times are of one machine's clock.

#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::expect_used)] // a measuring program

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use noctule::{Node, clock};
use noctule_sys::clock::{now_ns, sleep_until};

const TOPIC: &str = "camera";
const DOMAIN: u32 = 77;

fn main() {
    let arguments: Vec<u64> = std::env::args().skip(1).map(|argument| argument.parse().unwrap()).collect();
    match arguments[..] {
        [samples, busy_ms] => read(samples, Duration::from_millis(busy_ms)),
        [readers, samples, rate_hz, payload_bytes, busy_ms] => {
            write(readers, (samples, rate_hz), payload_bytes as usize, busy_ms);
        }
        _ => println!("once_per_host READERS SAMPLES RATE_HZ PAYLOAD_BYTES BUSY_MS"),
    }
}

/// Says what its latencies were.
fn read(samples: u64, busy: Duration) {
    let node = Node::builder("reader").domain(DOMAIN).open().unwrap();
    let mut subscriber = node.subscriber(TOPIC).open().unwrap();
    let mut latencies_us = Vec::new();
    let mut newest = 0;
    while newest < samples {
        let Some(sample) = subscriber.receive(Some(Duration::from_secs(2))).unwrap() else { break };
        let now_ns = clock::now().ns();
        let bytes = sample.to_vec();
        let number = |at: usize| i64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        newest = number(0) as u64;
        if newest == 0 {
            continue;
        }
        latencies_us.push((now_ns - number(8)) / 1000);
        sleep(busy);
    }
    latencies_us.sort_unstable();
    let percentile = |share: usize| latencies_us.get(latencies_us.len() * share / 100).copied().unwrap_or(0);
    let counters = format!("{:?}", subscriber.counters());
    println!("{} | {} | {} | {counters}", latencies_us.len(), percentile(50), percentile(99));
}

fn write(readers: u64, (samples, rate_hz): (u64, u64), payload_bytes: usize, busy_ms: u64) {
    let node = Node::builder("writer").domain(DOMAIN).clock("offset=5s".parse().unwrap()).open().unwrap();
    let mut publisher =
        node.publisher(TOPIC).keep_last(256).payload_bytes_max(payload_bytes as u32).open().unwrap();
    let mut payload = vec![0; payload_bytes.max(16)];
    let mut publish = |number: u64| {
        payload[..8].copy_from_slice(&number.to_le_bytes());
        payload[8..16].copy_from_slice(&clock::now().ns().to_le_bytes());
        publisher.publish(&payload).unwrap();
    };
    let mut children = Vec::new();
    for _ in 0..readers {
        let mut command = Command::new(std::env::current_exe().unwrap());
        let child = command.args([samples.to_string(), busy_ms.to_string()]).stdout(Stdio::piped());
        let mut child = child.spawn().unwrap();
        children.push((BufReader::new(child.stdout.take().unwrap()).lines(), child));
    }
    // Every reader is there, and has settled where it gets its samples from.
    for _ in 0..300 {
        publish(0);
        sleep(Duration::from_millis(10));
    }
    let before = datagrams();
    let start = Instant::now();
    for number in 1..=samples {
        let due = Duration::from_nanos(number * 1_000_000_000 / rate_hz);
        sleep(due.saturating_sub(start.elapsed()));
        publish(number);
    }
    let sent = datagrams() - before;
    println!(
        "{readers} readers: {sent} datagrams for {samples} samples of {payload_bytes} B at {rate_hz} Hz"
    );
    println!("taken | p50 µs | p99 µs | counters");
    for (lines, mut child) in children {
        lines.map_while(Result::ok).for_each(|line| println!("{line}"));
        child.wait().unwrap();
    }
}

fn sleep(duration: Duration) {
    sleep_until(now_ns() + duration.as_nanos() as i64);
}

/// Sent by all processes of this network namespace so far.
fn datagrams() -> u64 {
    let text = std::fs::read_to_string("/proc/net/snmp").unwrap();
    let mut lines = text.lines().filter(|line| line.starts_with("Udp:"));
    let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
    let at = names.split(' ').position(|name| name == "OutDatagrams").unwrap();
    values.split(' ').nth(at).unwrap().parse().unwrap()
}
