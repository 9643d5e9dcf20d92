//! The lossy link of the design over several seeds: what is late or lost, and what it costs.
//!
//! `cargo run --release -p noctule-prrt --example lossy_cell -- [SAMPLES [FIRST_SEED LAST_SEED [JITTER_US [SLEEP_UNIT_US [WAKE_LATE_US
//! [STALLS_PER_MILLION [STALL_US [BURST_US]]]]]]]]`

#[path = "../tests/lossy/mod.rs"]
mod lossy;

use lossy::{Cell, run};
use noctule_timebase::Span;

#[allow(clippy::print_stdout)] // a table on standard output is what this program is for
fn main() {
    let numbers: Vec<u64> = std::env::args().skip(1).map_while(|text| text.parse().ok()).collect();
    let samples = numbers.first().copied().unwrap_or(200_000);
    let (first, last) = (numbers.get(1).copied().unwrap_or(2), numbers.get(2).copied().unwrap_or(7));
    let span = |place: usize| Span::from_us(numbers.get(place).copied().unwrap_or(0) as i64);
    let stalls = numbers.get(6).copied().unwrap_or(0) as f64 / 1e6;
    let late = Cell { jitter: span(3), sleep_unit: span(4), wake_late: span(5), ..Cell::LOSSY };
    let cell = Cell { stalls, stall: span(7), burst_time: span(8), ..late };
    println!("20 ms round trip, 5 % in bursts of 3, feedback alike, 115 B at 200 Hz, 60 ms, target 1e-4.\n");
    println!(
        "| seed | samples | not in time | residual | redundancy | feedback a sample | wire bytes a payload byte |"
    );
    println!("|---:|---:|---:|---:|---:|---:|---:|");
    let (mut sent, mut failed, mut data, mut extras) = (0, 0, 0, 0);
    let (mut said, mut wire_bytes) = (0.0, 0.0);
    for seed in first..=last {
        let outcome = run(cell, samples, seed);
        let missing = outcome.sent - outcome.on_time;
        let (residual, redundancy) = (outcome.residual(), outcome.redundancy());
        let feedback = outcome.feedback as f64 / outcome.sent as f64;
        let bytes = outcome.wire_bytes as f64 / (outcome.sent * cell.payload_bytes as u64) as f64;
        println!(
            "| {seed} | {samples} | {missing} | {residual:.2e} | {redundancy:.4} | {feedback:.3} | {bytes:.3} |"
        );
        wire_bytes += bytes / (last - first + 1) as f64;
        said += feedback / (last - first + 1) as f64;
        sent += outcome.sent;
        failed += missing;
        data += outcome.sender.bound_data;
        extras += outcome.sender.bound_repeats + outcome.sender.bound_parity;
    }
    let (residual, redundancy) = (failed as f64 / sent as f64, extras as f64 / data as f64);
    println!("| all | {sent} | {failed} | {residual:.2e} | {redundancy:.4} | {said:.3} | {wire_bytes:.3} |");
}
