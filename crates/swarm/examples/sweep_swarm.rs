//! What age, loss, number, rate and transport cost a swarm: the table `crates/swarm/sweep.md`. Transports are models.

#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::expect_used)] // a measuring program

use noctule_swarm::measures::Measures;
use noctule_swarm::{Scenario, Simulation};

/// Nodes, delay in ms, loss, rate in Hz, transport.
type Cell = (u32, u32, f64, f64, &'static str);

/// What age, loss and rate cost.
const AGES: &[Cell] = &[
    (30, 0, 0.0, 10.0, "multicast"),
    (30, 200, 0.0, 10.0, "multicast"),
    (30, 500, 0.0, 10.0, "multicast"),
    (30, 200, 0.3, 10.0, "multicast"),
    (30, 200, 0.6, 10.0, "multicast"),
    (30, 200, 0.3, 2.0, "multicast"),
    (30, 200, 0.3, 5.0, "multicast"),
    (30, 200, 0.3, 25.0, "multicast"),
];
/// How states travel.
const TRANSPORTS: &[Cell] = &[
    (10, 50, 0.3, 10.0, "multicast"),
    (10, 50, 0.3, 10.0, "repeated"),
    (10, 50, 0.3, 10.0, "unicast_mesh"),
    (30, 50, 0.3, 10.0, "multicast"),
    (30, 50, 0.3, 10.0, "repeated"),
    (30, 50, 0.3, 10.0, "unicast_mesh"),
    (100, 50, 0.3, 10.0, "multicast"),
    (100, 50, 0.3, 10.0, "repeated"),
    (100, 50, 0.3, 10.0, "unicast_mesh"),
    (300, 50, 0.3, 10.0, "multicast"),
    (300, 50, 0.3, 10.0, "repeated"),
    (300, 50, 0.3, 10.0, "unicast_mesh"),
    (1000, 50, 0.3, 10.0, "multicast"),
    (1000, 50, 0.3, 10.0, "unicast_mesh"),
];
/// Each cell is the sum of these seeds; of the first alone above [`MANY`] drones.
const SEEDS: std::ops::Range<u64> = 1..4;
const MANY: u32 = 100;
/// A rate never falls below this, Hz: a transport that cannot have it is refused.
const RATE_MIN_HZ: f64 = 1.0;

fn main() {
    println!("# What age costs a swarm, and what transports make of it\n");
    println!(
        "Written by `cargo xtask sweep swarm`; everything is simulated, transports are models on the simulated air (5 GHz, multicast \
         at 24 Mb/s, unicast at 54 with 7 retries), not the products. Drones cross a sphere through its middle, 21 m apart at the start, at most 90 s; \
         losses are bursts of 300 ms. Sums (collided pairs, near misses) or worst (separation) of seeds {} to {}; of seed {} alone above {MANY} \
         drones. Rates fall until 60 % of the air suffice; a transport that then has less than {RATE_MIN_HZ} Hz is refused.\n",
        SEEDS.start,
        SEEDS.end - 1,
        SEEDS.start
    );
    heading("Age, loss and rate");
    for cell in AGES {
        for neighbours in ["hold", "age", "bound"] {
            row(*cell, neighbours);
        }
    }
    heading("Transports");
    for cell in TRANSPORTS {
        let all = ["age", "bound"];
        all[usize::from(cell.0 > MANY)..].iter().for_each(|neighbours| row(*cell, neighbours));
    }
    formation();
}

fn heading(title: &str) {
    println!("\n## {title}\n");
    println!(
        "| drones | delay ms | loss | Hz | transport | neighbours | collided pairs | near misses | least m | age p50 ms | age p99 ms | known | \
         arrived | air busy | B/s a drone | bound left |"
    );
    println!("|---:|---:|---:|---:|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
}

fn scenario((nodes, delay_ms, loss, rate_hz, transport): Cell, neighbours: &str, mission: &str) -> Scenario {
    let text = format!(
        "name = \"sweep\"\n[swarm]\nnodes = {nodes}\nspacing_m = 21.27\nseconds = 90\nneighbours = \"{neighbours}\"\n{mission}\n\
         [avoid]\nhard_margin_m = 0.2\nsoft_margin_m = 0.5\n[state]\nrate_hz = {rate_hz}\nrate_min_hz = {RATE_MIN_HZ}\n\
         delay_ms = {delay_ms}\ntransport = \"{transport}\"\n[air]\nloss = {loss}\nburst_ms = 300\n"
    );
    Scenario::parse(&text).expect("a scenario")
}

fn fly(scenario: &Scenario, nodes: u32) -> Option<Vec<Measures>> {
    let seeds = if nodes > MANY { SEEDS.start..SEEDS.start + 1 } else { SEEDS };
    seeds.map(|seed| Some(Simulation::new(scenario.clone(), seed).ok()?.run())).collect()
}

fn ms(value: Option<f64>) -> String {
    value.map_or_else(|| "–".into(), |ms| format!("{ms:.0}"))
}

fn row(cell: Cell, neighbours: &str) {
    let (nodes, delay_ms, loss, rate_hz, transport) = cell;
    let scenario = scenario(cell, neighbours, "");
    let Some(runs) = fly(&scenario, nodes) else {
        println!(
            "| {nodes} | {delay_ms} | {:.0} % | {rate_hz} | {transport} | {neighbours} | refused: {:.0} % of the air | | | | | | | | | |",
            100.0 * loss,
            100.0 * scenario.air_load(rate_hz)
        );
        return;
    };
    let mean = |of: &dyn Fn(&Measures) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
    println!(
        "| {nodes} | {delay_ms} | {:.0} % | {:.1} | {transport} | {neighbours} | {} | {} | {:.2} | {} | {} | {:.0} % | {:.0} % | {:.0} % | {:.0} | {} |",
        100.0 * loss,
        runs[0].rate_hz,
        runs.iter().map(|run| run.collisions).sum::<usize>(),
        runs.iter().map(|run| run.near_misses).sum::<usize>(),
        runs.iter().map(|run| run.min_separation_m).fold(f64::MAX, f64::min),
        ms(runs[0].age_p50_ms),
        ms(runs[0].age_p99_ms),
        100.0 * mean(&|run| run.known_share),
        100.0 * mean(&|run| run.finished.unwrap_or(0.0)),
        100.0 * mean(&|run| run.air_utilisation),
        mean(&|run| run.bytes_per_drone_s),
        runs.iter().map(|run| run.bound_violations).sum::<u64>(),
    );
}

/// The error of a formation.
fn formation() {
    println!("\n## A wedge of 30, 10 m apart, on a circle at 5 m/s\n");
    println!(
        "| delay ms | transport | neighbours | formation error rms m | at most m | age p50 ms | collided pairs | air busy |"
    );
    println!("|---:|---|---|---:|---:|---:|---:|---:|");
    const MISSION: &str = "mission = \"formation\"\nshape = \"wedge\"\nshape_s = 3600\nspeed_m_s = 5\n";
    for (delay_ms, transport) in
        [(0, "multicast"), (50, "multicast"), (50, "repeated"), (50, "unicast_mesh"), (500, "multicast")]
    {
        for neighbours in ["hold", "age", "bound"] {
            let mut scenario = scenario((30, delay_ms, 0.3, 10.0, transport), neighbours, MISSION);
            if let noctule_swarm::scenario::Mission::Formation { spacing_m, .. } = &mut scenario.mission {
                *spacing_m = 10.0;
            }
            let runs = fly(&scenario, 30).expect("room on the air");
            let mean = |of: &dyn Fn(&Measures) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
            println!(
                "| {delay_ms} | {transport} | {neighbours} | {:.2} | {:.2} | {} | {} | {:.0} % |",
                mean(&|run| run.formation_error_rms_m.unwrap_or(f64::NAN)),
                runs.iter().filter_map(|run| run.formation_error_max_m).fold(0.0, f64::max),
                ms(runs[0].age_p50_ms),
                runs.iter().map(|run| run.collisions).sum::<usize>(),
                100.0 * mean(&|run| run.air_utilisation),
            );
        }
    }
}
