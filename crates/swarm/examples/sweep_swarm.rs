//! What age, loss, number, rate and transport cost a swarm: the table `crates/swarm/sweep.md`. Transports are models.

#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::expect_used)] // a measuring program

use noctule_swarm::{Scenario, Simulation};

/// Nodes, delay in ms, loss, rate in Hz, transport.
type Cell = (u32, u32, f64, f64, &'static str);

const CELLS: &[Cell] = &[
    (30, 0, 0.0, 10.0, "multicast"),
    (30, 200, 0.0, 10.0, "multicast"),
    (30, 500, 0.0, 10.0, "multicast"),
    (30, 200, 0.3, 10.0, "multicast"),
    (30, 200, 0.6, 10.0, "multicast"),
    (30, 200, 0.3, 2.0, "multicast"),
    (30, 200, 0.3, 5.0, "multicast"),
    (30, 200, 0.3, 25.0, "multicast"),
    (30, 200, 0.3, 10.0, "repeated"),
    (10, 200, 0.3, 10.0, "unicast_mesh"),
    (10, 200, 0.3, 10.0, "multicast"),
    (100, 200, 0.3, 10.0, "multicast"),
];
/// Each cell is the sum of these seeds.
const SEEDS: std::ops::Range<u64> = 1..4;

fn main() {
    println!("# What age costs a swarm\n");
    println!(
        "Written by `cargo xtask sweep swarm`. Drones cross a sphere through its middle, 21 m apart at the start, at most 90 s; bursts \
         of 300 ms; sums (collided pairs, near misses) or worst (separation) of {} seeds. Transports are models on the \
         simulated air.\n",
        SEEDS.end - SEEDS.start
    );
    println!(
        "| drones | delay ms | loss | Hz | transport | neighbours | collided pairs | near misses | least m | age p50 ms | age p99 ms | arrived | air | bound left |"
    );
    println!("|---:|---:|---:|---:|---|---|---:|---:|---:|---:|---:|---:|---:|---:|");
    for &(nodes, delay_ms, loss, rate_hz, transport) in CELLS {
        for neighbours in ["hold", "age", "bound"] {
            let text = format!(
                "name = \"sweep\"\n[swarm]\nnodes = {nodes}\nspacing_m = 21.27\nseconds = 90\nneighbours = \"{neighbours}\"\n\
                 [avoid]\nhard_margin_m = 0.2\nsoft_margin_m = 0.5\n[state]\nrate_hz = {rate_hz}\nrate_min_hz = 0.5\ndelay_ms = {delay_ms}\n\
                 transport = \"{transport}\"\n[air]\nloss = {loss}\nburst_ms = 300\n"
            );
            row(&Scenario::parse(&text).expect("a scenario"), (delay_ms, loss, transport, neighbours));
        }
    }
}

fn row(scenario: &Scenario, (delay_ms, loss, transport, neighbours): (u32, f64, &str, &str)) {
    let runs: Vec<_> =
        SEEDS.map(|seed| Simulation::new(scenario.clone(), seed).expect("room on the air").run()).collect();
    let ms = |value: Option<f64>| value.map_or_else(|| "–".into(), |ms| format!("{ms:.0}"));
    let arrived = runs.iter().filter_map(|run| run.finished).sum::<f64>() / runs.len() as f64;
    println!(
        "| {} | {delay_ms} | {:.0} % | {:.1} | {transport} | {neighbours} | {} | {} | {:.2} | {} | {} | {:.0} % | {:.0} % | {} |",
        scenario.nodes,
        100.0 * loss,
        runs[0].rate_hz,
        runs.iter().map(|run| run.collisions).sum::<usize>(),
        runs.iter().map(|run| run.near_misses).sum::<usize>(),
        runs.iter().map(|run| run.min_separation_m).fold(f64::MAX, f64::min),
        ms(runs[0].age_p50_ms),
        ms(runs[0].age_p99_ms),
        100.0 * arrived,
        100.0 * runs[0].air_utilisation,
        runs.iter().map(|run| run.bound_violations).sum::<u64>(),
    );
}
