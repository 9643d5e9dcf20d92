//! Every cell of the grid: what the transport does there, simulated from its first datagram on, beside the model's plan and
//! its least.
//!
//! `cargo xtask sweep prrt` writes it to `crates/prrt/sweep.md`; `-- SAMPLES SEED` for others than 400,000 from seed 2.

mod grid;
#[path = "../tests/lossy/mod.rs"]
mod lossy;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use lossy::Outcome;
use noctule_prrt::plan::{Infeasible, Plan, exact, fast};

const SAMPLES: u64 = 400_000;
const SEED: u64 = 2;
const LOSS_TARGET: f64 = 1e-4;
/// Redundancy may be so many times the model's least: where losses are independent, and in bursts.
const COSTLY: [f64; 2] = [1.3, 1.6];
/// Of this redundancy a ratio says nothing: the datagrams before anything is known of the path.
const NEGLIGIBLE: f64 = 0.005;

#[allow(clippy::print_stdout)] // a table on standard output is what this program is for
fn main() {
    let mut numbers = std::env::args().skip(1).map_while(|text| text.parse().ok());
    let (samples, seed) = (numbers.next().unwrap_or(SAMPLES), numbers.next().unwrap_or(SEED));
    println!(
        "Loss target 1e-4, feedback lossy alike, bursts of mean 3 packets, at most 4 extras per datagram. Simulated: {samples} samples a"
    );
    println!("cell, seed {seed}. What is simulated is the transport, which does not follow the plan.\n");
    println!(
        "Plan: extras @ ms after the first datagram, m = of those reported missing, u = never heard of."
    );
    println!(
        "met: residual at most the target and redundancy at most {} (bursts {}) times the model's least. recognised: the sender says",
        COSTLY[0], COSTLY[1]
    );
    println!("at the end that it is infeasible, with what could be had.\n");
    println!(
        "| message | RTT ms | deadline ms | loss % | bursts | capacity | plan | its redundancy | model's least | residual | redundancy | verdict |"
    );
    println!("|---|---:|---:|---:|---|---:|---|---:|---:|---:|---:|---|");
    let (cells, next) = (grid::cells(), AtomicUsize::new(0));
    let rows = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some((number, cell)) =
                    cells.iter().enumerate().nth(next.fetch_add(1, Ordering::Relaxed))
                {
                    let row = row(cell, samples, seed);
                    rows.lock().unwrap_or_else(PoisonError::into_inner).insert(number, row);
                }
            });
        }
    });
    let rows = rows.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut counts = BTreeMap::new();
    for (row, verdict) in rows.values() {
        println!("{row}");
        *counts.entry(verdict).or_insert(0) += 1;
    }
    println!("\n{counts:?}");
}

/// A line of the table, and the verdict in it.
fn row(cell: &grid::Cell, samples: u64, seed: u64) -> (String, &'static str) {
    let least = exact(&cell.demand, &cell.path).map(|plan| plan.redundancy);
    let outcome = lossy::run(simulated(cell), samples, seed);
    let verdict = verdict(&outcome, least.as_ref().ok().copied(), cell.bursts);
    let begin = format!(
        "| {} B, {} Hz | {} | {} | {:.0} | {} | {:.4} ",
        cell.bytes,
        cell.rate_hz,
        cell.round_trip_ms,
        cell.deadline_round_trips * cell.round_trip_ms as f64,
        cell.loss * 100.0,
        if cell.bursts { "3" } else { "no" },
        1.0 / (1.0 - cell.loss) - 1.0,
    );
    let plan = match (fast(&cell.demand, &cell.path), least) {
        (Ok(plan), Ok(least)) => format!("| {} | {:.4} | {least:.4} ", shape(&plan), plan.redundancy),
        (Err(why), Ok(least)) => format!("| missed: {why} | | {least:.4} "),
        (_, Err(why)) => format!("| {} | | infeasible ", instead(&why)),
    };
    let (residual, redundancy) = (outcome.residual(), outcome.redundancy());
    (format!("{begin}{plan}| {residual:.1e} | {redundancy:.4} | {verdict} |"), verdict)
}

fn verdict(outcome: &Outcome, least: Option<f64>, bursts: bool) -> &'static str {
    let is_met = outcome.residual() <= LOSS_TARGET;
    let bearable = least.map_or(f64::INFINITY, |least| (least * COSTLY[usize::from(bursts)]).max(NEGLIGIBLE));
    match (is_met, outcome.ends_infeasible, least) {
        (true, true, _) => "met, but called infeasible",
        (true, false, _) if outcome.redundancy() > bearable => "met, costly",
        (true, false, _) => "met",
        (false, true, None) => "recognised",
        (false, true, Some(_)) => "called infeasible",
        // Failures come in lumps: two standard errors of blocks of 20.
        (false, false, Some(_)) if outcome.residual() <= LOSS_TARGET * 1.5 => "missed within chance",
        (false, false, _) => "missed",
    }
}

/// The same cell for the transport.
fn simulated(cell: &grid::Cell) -> lossy::Cell {
    lossy::Cell {
        loss: cell.loss,
        burst: if cell.bursts { 3.0 } else { 1.0 },
        round_trip: cell.path.round_trip,
        jitter: cell.path.round_trip_jitter / 2,
        deadline: cell.demand.deadline,
        interval: cell.demand.interval,
        payload_bytes: cell.bytes as usize,
        ..lossy::Cell::LOSSY
    }
}

fn shape(plan: &Plan) -> String {
    let mut words = vec![format!("k={}", plan.block)];
    if plan.proactive > 0 {
        words.push(format!("{} at once", plan.proactive));
    }
    for (extras, timing) in plan.rounds.iter().zip(&plan.spread).filter(|(extras, _)| **extras > 0) {
        use noctule_prrt::plan::Trigger;
        let of = match timing.trigger {
            Trigger::Unacknowledged => "",
            Trigger::Missing => "m",
            Trigger::Unheard => "u",
        };
        words.push(format!("{extras}{of} @ {:.1}", timing.at.as_s_f64() * 1e3));
    }
    words.join(", ")
}

fn instead(why: &Infeasible) -> String {
    let (Infeasible::BelowDelay { feasible, .. } | Infeasible::BeyondCapacity { feasible }) = why;
    let deadline =
        feasible.deadline.map_or("none".into(), |deadline| format!("{:.1} ms", deadline.as_s_f64() * 1e3));
    let target = feasible.loss_target.map_or("none".into(), |target| format!("{target:.1e}"));
    format!("infeasible; deadline {deadline} or target {target} would do")
}
