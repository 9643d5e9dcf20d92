//! The lossy link of the design between hosts whose threads stall now and then: what is late or lost, and what it costs.
//!
//! `cargo run --release -p noctule-prrt --example thread_stalls -- [SAMPLES [FIRST_SEED LAST_SEED]]`

#[path = "../tests/lossy/mod.rs"]
mod lossy;

use lossy::{Cell, ThreadStalls, run};

#[allow(clippy::print_stdout)] // a table on standard output is what this program is for
fn main() {
    let numbers: Vec<u64> = std::env::args().skip(1).map_while(|text| text.parse().ok()).collect();
    let samples = numbers.first().copied().unwrap_or(60_000);
    let (first, last) = (numbers.get(1).copied().unwrap_or(1), numbers.get(2).copied().unwrap_or(10));
    println!("| stalled thread | not in time | residual | sender assumes failed | redundancy |");
    println!("|---|---:|---:|---:|---:|");
    let busy = Some(ThreadStalls::BUSY);
    for (stalled, thread_stalls, writer_stalls) in [
        ("none", [None, None], false),
        ("sender", [busy, None], false),
        ("sender with its application", [busy, None], true),
        ("receiver", [None, busy], false),
        ("both", [busy, busy], false),
        ("both, and the application", [busy, busy], true),
    ] {
        let cell = Cell { thread_stalls, writer_stalls, ..Cell::LOSSY };
        let (mut sent, mut failed, mut assumed, mut data, mut extras) = (0, 0, 0, 0, 0);
        for seed in first..=last {
            let outcome = run(cell, samples, seed);
            sent += outcome.sent;
            failed += outcome.sent - outcome.on_time;
            assumed += outcome.sender.bound_failed;
            data += outcome.sender.bound_data;
            extras += outcome.sender.bound_repeats + outcome.sender.bound_parity;
        }
        let (residual, redundancy) = (failed as f64 / sent as f64, extras as f64 / data as f64);
        println!("| {stalled} | {failed} of {sent} | {residual:.2e} | {assumed} | {redundancy:.4} |");
    }
}
