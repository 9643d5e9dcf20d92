//! The grid of loss, bursts, round trip and deadline: what the transport does in each cell, simulated from its first datagram on.
//!
//! `cargo xtask sweep prrt` writes it to `crates/prrt/sweep.md`; `-- SAMPLES SEED` for others than 400,000 from seed 2.

#[path = "../tests/lossy/mod.rs"]
mod lossy;

use lossy::{Cell, run};
use noctule_timebase::Span;

#[allow(clippy::print_stdout)] // a table on standard output is what this program is for
fn main() {
    let mut numbers = std::env::args().skip(1).map_while(|text| text.parse().ok());
    let (samples, seed) = (numbers.next().unwrap_or(400_000), numbers.next().unwrap_or(2));
    println!(
        "Loss target 1e-4, feedback lossy alike, bursts of mean 3 packets. {samples} samples a cell, seed {seed}.\n"
    );
    println!(
        "| message | RTT ms | deadline ms | loss % | bursts | capacity | residual | redundancy | verdict |"
    );
    println!("|---|---:|---:|---:|---|---:|---:|---:|---|");
    for (payload_bytes, rate_hz) in [(115, 200), (1200, 1000)] {
        for round_trip_ms in [2, 20, 100] {
            for deadline_tenths in [15, 30, 60] {
                for (burst, percent) in [1.0, 3.0].into_iter().flat_map(|b| [0, 1, 5, 10, 20].map(|p| (b, p)))
                {
                    let cell = Cell {
                        loss: f64::from(percent) / 100.0,
                        burst,
                        round_trip: Span::from_ms(round_trip_ms),
                        jitter: Span::from_us(round_trip_ms * 5),
                        deadline: Span::from_us(round_trip_ms * deadline_tenths * 100),
                        interval: Span::from_ns(1_000_000_000 / rate_hz),
                        payload_bytes,
                        ..Cell::LOSSY
                    };
                    println!("| {payload_bytes} B, {rate_hz} Hz {}", row(cell, samples, seed));
                }
            }
        }
    }
}

fn row(cell: Cell, samples: u64, seed: u64) -> String {
    let outcome = run(cell, samples, seed);
    let ms = |span: Span| span.as_s_f64() * 1e3;
    let verdict = match (outcome.residual() <= cell.loss_target, outcome.ends_infeasible) {
        (true, false) => "met",
        (true, true) => "met, but called infeasible",
        (false, true) => "called infeasible",
        (false, false) => "missed",
    };
    format!(
        "| {} | {} | {:.0} | {} | {:.4} | {:.1e} | {:.4} | {verdict} |",
        ms(cell.round_trip),
        ms(cell.deadline),
        cell.loss * 100.0,
        if cell.burst > 1.0 { "3" } else { "no" },
        1.0 / (1.0 - cell.loss) - 1.0,
        outcome.residual(),
        outcome.redundancy(),
    )
}
