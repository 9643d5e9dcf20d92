//! Many seeds of one scenario: `soak_swarm SCENARIO.toml FIRST COUNT [hold|age|bound|perfect] [nodes]`. Prints each seed that
//! collides and, at the end, sums of all. Exit code 1 if any collided or left its bound.

#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::expect_used)] // a measuring program

use std::process::ExitCode;
use std::time::Instant;

use noctule_swarm::{Scenario, Simulation, scenario};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, first, count, more @ ..] = &arguments[..] else {
        println!("soak_swarm SCENARIO.toml FIRST COUNT [hold|age|bound|perfect] [nodes]");
        return ExitCode::from(2);
    };
    let mut flown = Scenario::parse(&std::fs::read_to_string(file).unwrap()).unwrap();
    if let Some(word) = more.first() {
        match word.as_str() {
            "perfect" => flown.air = None,
            _ => flown.states.knowledge = scenario::knowledge(word).unwrap(),
        }
    }
    if let Some(nodes) = more.get(1) {
        flown.nodes = nodes.parse().unwrap();
    }
    let first: u64 = first.parse().unwrap();
    let count: u64 = count.parse().unwrap();
    let (mut collisions, mut colliding, mut violations, mut checked) = (0, 0_u64, 0, 0_u64);
    let (mut least_m, mut finish_s, mut unfinished) = (f64::MAX, Vec::new(), 0_u64);
    let start = Instant::now();
    for seed in first..first + count {
        let measures = Simulation::new(flown.clone(), seed).unwrap().run();
        if measures.collisions > 0 {
            println!("seed {seed}: {} pairs, {:.3} m", measures.collisions, measures.min_separation_m);
            colliding += 1;
        }
        collisions += measures.collisions;
        violations += measures.bound_violations;
        checked += measures.bounds_checked;
        least_m = least_m.min(measures.min_separation_m);
        match measures.time_to_finish_s {
            Some(seconds) => finish_s.push(seconds),
            None => unfinished += 1,
        }
        if count == 1 {
            println!("{measures:#?}");
        }
    }
    finish_s.sort_by(f64::total_cmp);
    let median = finish_s.get(finish_s.len() / 2).copied().unwrap_or(f64::NAN);
    println!(
        "{}, {}, {} drones, seeds {first} to {}: {collisions} pairs in {colliding} runs; least {least_m:.3} m; \
         {violations} of {checked} bounds left; finished in {median:.1} s at the median, {unfinished} runs did not; {:.2} s a run",
        flown.name,
        more.first().map_or("as in the scenario", String::as_str),
        flown.nodes,
        first + count - 1,
        start.elapsed().as_secs_f64() / count as f64,
    );
    ExitCode::from(u8::from(collisions > 0 || violations > 0))
}
