//! What the model says of every cell of the grid: the plan, what it costs and leaves lost, and the least.
//!
//! `cargo xtask sweep prrt` writes it to `crates/prrt/sweep.md`.

mod grid;
#[path = "../tests/lossy/mod.rs"]
mod lossy;

use noctule_prrt::plan::{Infeasible, Plan, exact, fast};

/// Samples of each simulated cell.
const SAMPLES: u64 = 100_000;

#[allow(clippy::print_stdout)] // a table on standard output is what this program is for
fn main() {
    println!(
        "Loss target 1e-4, feedback lossy alike, bursts of mean 3 packets, at most 4 extras per datagram."
    );
    println!(
        "Round: extras @ ms after the first datagram, m = of those reported missing, u = never heard of.\n"
    );
    println!(
        "| message | RTT ms | deadline ms | loss % | bursts | plan | residual | redundancy | model's least | capacity | simulated: residual | redundancy | reported infeasible |"
    );
    println!("|---|---:|---:|---:|---|---|---:|---:|---:|---:|---:|---:|---|");
    for cell in grid::cells() {
        let deadline_ms = cell.deadline_round_trips * cell.round_trip_ms as f64;
        print!(
            "| {} B, {} Hz | {} | {deadline_ms} | {:.0} | {} ",
            cell.bytes,
            cell.rate_hz,
            cell.round_trip_ms,
            cell.loss * 100.0,
            if cell.bursts { "3" } else { "no" },
        );
        let capacity = 1.0 / (1.0 - cell.loss) - 1.0;
        match (fast(&cell.demand, &cell.path), exact(&cell.demand, &cell.path)) {
            (Ok(plan), Ok(least)) => print!(
                "| {} | {:.1e} | {:.4} | {:.4} | {capacity:.4} |",
                shape(&plan),
                plan.residual_loss,
                plan.redundancy,
                least.redundancy
            ),
            (Err(why), Ok(least)) => {
                print!("| missed: {why} | | | {:.4} | {capacity:.4} |", least.redundancy);
            }
            (_, Err(why)) => print!("| {} | | | infeasible | {capacity:.4} |", instead(&why)),
        }
        let outcome = lossy::run(simulated(&cell), SAMPLES, 1);
        println!(
            " {:.1e} | {:.4} | {} |",
            outcome.residual(),
            outcome.redundancy(),
            if outcome.ends_infeasible { "yes" } else { "" }
        );
    }
}

/// The same cell for the transport itself, from its first datagram on.
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
