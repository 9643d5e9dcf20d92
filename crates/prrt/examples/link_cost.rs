//! Cost of a link: nanoseconds per sample of 64 bytes, sent by one and received by the other, without sockets.
//!
//! A figure, not a test: run it with `cargo run --release -p noctule-prrt --example link_cost`.

#![allow(clippy::print_stdout)]

use std::hint::black_box;
use std::time::Instant as Stopwatch;

use noctule_prrt::{Arrival, BATCH_LIMIT, Class, Link, LinkConfig, Local, Origin, Outgoing, StreamId};
use noctule_timebase::{Instant, Span};

/// Samples each way in one run.
const SAMPLES: u64 = 100_000;
/// Runs; the quickest is reported, since only disturbances make one slower.
const RUNS: usize = 10;
const WRITER: StreamId = StreamId(1);

fn main() {
    println!("64 bytes, each way in turn       ns per sample");
    println!("best effort                      {:>13.0}", quickest(false, 64));
    println!("reliable, acknowledged by riding {:>13.0}", quickest(true, 64));
    println!("1 MB, each way in turn           us per sample");
    println!("reliable                         {:>13.0}", quickest(true, 1_000_000) / 1e3);
}

fn quickest(reliable: bool, payload_bytes: usize) -> f64 {
    let samples = if payload_bytes > 1_400 { SAMPLES / 1_000 } else { SAMPLES };
    (0..RUNS).map(|_| run(reliable, payload_bytes, samples)).fold(f64::INFINITY, f64::min)
}

fn class(reliable: bool) -> Class {
    if reliable { Class::Reliable } else { Class::BestEffort }
}

/// A round trip takes 20 us by the links' clock, which is not the stopwatch's.
fn run(reliable: bool, payload_bytes: usize, samples: u64) -> f64 {
    let mut now = Instant::<Local>::from_ns(0);
    let mut links = [(); 2].map(|()| {
        let mut link = Link::new(LinkConfig::default(), now);
        link.expect(WRITER, 1 << 20, class(reliable));
        link
    });
    let (payload, mut out) = (vec![7; payload_bytes], Vec::with_capacity(2_000));
    let (mut arrived, mut turn) = (0, 0);
    let start = Stopwatch::now();
    for sequence in 0..samples {
        let (origin, depth, payload) = (Origin::exactly(now.ns()), 8, black_box(&payload[..]));
        let (age, class) = (Span::ZERO, class(reliable));
        let sample = Outgoing { writer: WRITER, sequence, origin, age, class, depth, payload };
        for _ in 0..2 {
            let _ = links[turn].send(&sample, now);
            let wanted = arrived + 1;
            while arrived < wanted {
                now += Span::from_us(10);
                exchange(&mut links, turn, now, (&mut out, &mut arrived));
            }
            turn = 1 - turn;
        }
    }
    let elapsed = start.elapsed().as_nanos() as f64;
    assert_eq!(arrived, 2 * samples);
    elapsed / (2 * samples) as f64
}

/// Everything `from` has to send, in batches, and what the other answers before it sends a sample of its own.
fn exchange(
    links: &mut [Link; 2],
    from: usize,
    now: Instant<Local>,
    (out, arrived): (&mut Vec<u8>, &mut u64),
) {
    let mut quiet = 0;
    for side in [from, 1 - from].into_iter().cycle() {
        let mut sent = 0;
        while sent < BATCH_LIMIT {
            out.clear();
            if !links[side].poll_transmit(now, out) {
                break;
            }
            let taken = links[1 - side].handle_datagram(
                black_box(out),
                Arrival { now, came: now, own_ns: now.ns(), peer_ns: None, ecn: Default::default() },
                &mut |sample| {
                    black_box(sample.payload);
                    *arrived += 1;
                },
            );
            assert!(taken.is_ok(), "{taken:?}");
            sent += 1;
        }
        quiet = if sent == 0 { quiet + 1 } else { 0 };
        if quiet == 2 {
            return;
        }
    }
}
