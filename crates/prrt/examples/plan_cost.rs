//! Microseconds that planning takes in each cell of the grid, and how far the fast plan is from the least.

mod grid;

use std::time::Instant;

use noctule_prrt::plan::{exact, fast};

#[allow(clippy::print_stdout)] // figures on standard output are what this program is for
fn main() {
    let mut times_us = Vec::new();
    let mut ratios = Vec::new();
    let mut missed = 0;
    let only_fast = std::env::args().any(|argument| argument == "--fast");
    println!(
        "RTT ms | deadline RTT | rate Hz | bursts | loss | fast µs | exact µs | fast / least redundancy"
    );
    for cell in grid::cells() {
        let started = Instant::now();
        let plan = fast(&cell.demand, &cell.path);
        let fast_us = started.elapsed().as_secs_f64() * 1e6;
        let started = Instant::now();
        // The reference takes minutes in all; `--fast` leaves it out.
        let least = if only_fast { plan } else { exact(&cell.demand, &cell.path) };
        let exact_us = started.elapsed().as_secs_f64() * 1e6;
        let ratio = match (&plan, &least) {
            (Ok(plan), Ok(least)) if least.redundancy > 0.0 => plan.redundancy / least.redundancy,
            (Err(_), Ok(_)) => {
                missed += 1;
                f64::INFINITY
            }
            _ => 1.0,
        };
        times_us.push(fast_us);
        ratios.push(ratio);
        println!(
            "{} | {} | {} | {} | {} | {} | {fast_us:.0} | {exact_us:.0} | {ratio:.4}{}",
            cell.round_trip_ms,
            cell.deadline_round_trips,
            cell.bytes,
            cell.rate_hz,
            cell.bursts,
            cell.loss,
            if least.is_err() { " infeasible" } else { "" }
        );
    }
    times_us.sort_by(f64::total_cmp);
    ratios.sort_by(f64::total_cmp);
    let at = |values: &[f64], share: f64| values[((values.len() - 1) as f64 * share) as usize];
    println!(
        "fast: µs p50 {:.0}, p90 {:.0}, max {:.0}",
        at(&times_us, 0.5),
        at(&times_us, 0.9),
        at(&times_us, 1.0)
    );
    println!(
        "ratio to the least: p50 {:.4}, p90 {:.4}, max {:.4}; missed though feasible: {missed}",
        at(&ratios, 0.5),
        at(&ratios, 0.9),
        at(&ratios, 1.0)
    );
}
