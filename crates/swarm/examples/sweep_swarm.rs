//! The cost of age, loss, range, number, rate and transport to a swarm: the table `crates/swarm/sweep.md`. Transports are models.

#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::expect_used)] // a measuring program

use noctule_netsim::air::{Band, RadioSpec, Rate};
use noctule_swarm::measures::Measures;
use noctule_swarm::{Scenario, Simulation};

/// One line of a table.
#[derive(Clone, Copy)]
struct Cell {
    nodes: u32,
    delay_ms: u32,
    loss: f64,
    rate_hz: f64,
    power_dbm: f64,
    transport: &'static str,
}

/// Base cell, from which the others differ in one parameter or two.
const USUAL: Cell =
    Cell { nodes: 30, delay_ms: 50, loss: 0.3, rate_hz: 10.0, power_dbm: 20.0, transport: "multicast" };
const TRANSPORTS: [&str; 3] = ["multicast", "repeated", "unicast_mesh"];
const WAYS: [&str; 3] = ["hold", "age", "bound"];
/// Cells for the cost of age, loss and rate: delay in ms, loss, Hz.
const AGES: [(u32, f64, f64); 8] = [
    (0, 0.0, 10.0),
    (200, 0.0, 10.0),
    (500, 0.0, 10.0),
    (200, 0.3, 10.0),
    (200, 0.6, 10.0),
    (200, 0.3, 2.0),
    (200, 0.3, 5.0),
    (200, 0.3, 25.0),
];
const LOSSES: [f64; 3] = [0.0, 0.3, 0.6];
const RATES_HZ: [f64; 4] = [2.0, 5.0, 20.0, 50.0];
const POWERS_DBM: [f64; 4] = [20.0, 10.0, 0.0, -10.0];
const NUMBERS: [u32; 5] = [10, 30, 100, 300, 1000];
/// Each cell is the sum of these seeds; of the first alone above [`MANY`] drones.
const SEEDS: std::ops::Range<u64> = 1..4;
const MANY: u32 = 100;
/// A rate never falls below this, Hz: a transport that cannot have it is refused.
const RATE_MIN_HZ: f64 = 1.0;

fn main() {
    println!("# What age costs a swarm, and what transports make of it\n");
    println!(
        "Written by `cargo xtask sweep swarm`; everything is simulated, transports are models on the simulated air (5 GHz, multicast \
         at 24 Mb/s, unicast at 54 with 7 retries; *repeated* sends each state twice within its period), not the products. Drones \
         cross a sphere through its middle, 21 m apart at the start, at most 90 s; losses are bursts of 300 ms. Sums (collided pairs, near \
         misses) or worst (separation) of seeds {} to {}; of seed {} alone above {MANY} drones. Rates fall until 60 % of the air \
         suffice; a transport that then has less than {RATE_MIN_HZ} Hz is refused. *Range* is the distance at which a state arrives at the \
         sensitivity of its rate, without shadowing and fading.\n",
        SEEDS.start,
        SEEDS.end - 1,
        SEEDS.start
    );
    heading("Age, loss and rate");
    for (delay_ms, loss, rate_hz) in AGES {
        WAYS.iter().for_each(|way| row(Cell { delay_ms, loss, rate_hz, ..USUAL }, way));
    }
    formation();
    heading("Transports over loss");
    for (loss, transport) in LOSSES.into_iter().flat_map(|loss| TRANSPORTS.map(|name| (loss, name))) {
        WAYS[1..].iter().for_each(|way| row(Cell { loss, transport, ..USUAL }, way));
    }
    heading("Transports over rate");
    for (rate_hz, transport) in RATES_HZ.into_iter().flat_map(|rate| TRANSPORTS.map(|name| (rate, name))) {
        row(Cell { rate_hz, transport, ..USUAL }, "bound");
    }
    heading("Transports over range");
    for (power_dbm, transport) in
        POWERS_DBM.into_iter().flat_map(|power| TRANSPORTS.map(|name| (power, name)))
    {
        WAYS[1..].iter().for_each(|way| row(Cell { power_dbm, transport, ..USUAL }, way));
    }
    heading("Transports over number");
    for (nodes, transport) in NUMBERS.into_iter().flat_map(|nodes| TRANSPORTS.map(|name| (nodes, name))) {
        let ways = &WAYS[1 + usize::from(nodes > MANY)..];
        ways.iter().for_each(|way| row(Cell { nodes, transport, ..USUAL }, way));
    }
}

fn heading(title: &str) {
    println!("\n## {title}\n");
    println!(
        "| drones | delay ms | loss | range m | Hz | transport | neighbours | collided pairs | near misses | least m | age p50 ms | age p99 ms | \
         known | arrived | air busy | B/s a drone | bound left |"
    );
    println!("|---:|---:|---:|---:|---:|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
}

fn scenario(cell: Cell, neighbours: &str, mission: &str) -> Scenario {
    let Cell { nodes, delay_ms, loss, rate_hz, power_dbm, transport } = cell;
    let text = format!(
        "name = \"sweep\"\n[swarm]\nnodes = {nodes}\nspacing_m = 21.27\nseconds = 90\nneighbours = \"{neighbours}\"\n{mission}\n\
         [avoid]\nhard_margin_m = 0.2\nsoft_margin_m = 0.5\n[state]\nrate_hz = {rate_hz}\nrate_min_hz = {RATE_MIN_HZ}\n\
         delay_ms = {delay_ms}\ntransport = \"{transport}\"\n[air]\nloss = {loss}\nburst_ms = 300\npower_dbm = {power_dbm}\n"
    );
    Scenario::parse(&text).expect("a scenario")
}

/// Of a cell's states at the rate of its transport, m.
fn range_m(cell: Cell) -> f64 {
    let rate = if cell.transport == "unicast_mesh" { Rate::Mbps54 } else { Rate::Mbps24 };
    let radio = RadioSpec { power_dbm: cell.power_dbm, ..RadioSpec::default() };
    radio.range_m(Band::Ghz5, rate.sensitivity_dbm())
}

fn fly(scenario: &Scenario, nodes: u32) -> Option<Vec<Measures>> {
    let seeds = if nodes > MANY { SEEDS.start..SEEDS.start + 1 } else { SEEDS };
    seeds.map(|seed| Some(Simulation::new(scenario.clone(), seed).ok()?.run())).collect()
}

fn ms(value: Option<f64>) -> String {
    value.map_or_else(|| "–".into(), |ms| format!("{ms:.0}"))
}

fn row(cell: Cell, neighbours: &str) {
    let Cell { nodes, delay_ms, loss, rate_hz, transport, .. } = cell;
    let scenario = scenario(cell, neighbours, "");
    let start = format!("| {nodes} | {delay_ms} | {:.0} % | {:.0} |", 100.0 * loss, range_m(cell));
    let Some(runs) = fly(&scenario, nodes) else {
        let load = 100.0 * scenario.air_load(rate_hz);
        println!(
            "{start} {rate_hz} | {transport} | {neighbours} | refused: {load:.0} % of the air | | | | | | | | | |"
        );
        return;
    };
    let mean = |of: &dyn Fn(&Measures) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
    println!(
        "{start} {:.1} | {transport} | {neighbours} | {} | {} | {:.2} | {} | {} | {:.0} % | {:.0} % | {:.0} % | {:.0} | {} |",
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
        for neighbours in WAYS {
            let mut scenario = scenario(Cell { delay_ms, transport, ..USUAL }, neighbours, MISSION);
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
