//! Benchmarks against programs outside the workspace, round by round in turn.

use std::collections::BTreeMap;
use std::fs;

use noctule_proto_kit::median;

use crate::shell;

mod comparison;

/// A floor cell of the lab, and the C program's arguments for the same bounce.
struct Floor {
    peer: &'static str,
    wait: &'static str,
    placement: &'static str,
    arguments: &'static str,
}

const fn floor(
    peer: &'static str,
    wait: &'static str,
    placement: &'static str,
    arguments: &'static str,
) -> Floor {
    Floor { peer, wait, placement, arguments }
}

const FLOORS: [Floor; 12] = [
    floor("cache_line", "spin", "0,1", "cache_line 0 1 200000"),
    floor("futex", "block", "1", "futex 1 1 20000"),
    floor("futex", "block", "0,1", "futex 0 1 5000"),
    floor("eventfd", "block", "1", "eventfd 1 1 20000"),
    floor("eventfd", "block", "0,1", "eventfd 0 1 5000"),
    floor("udp", "spin", "0,1", "udp_spin 0 1 20000"),
    floor("udp", "block", "1", "udp_block 1 1 20000"),
    floor("udp", "block", "0,1", "udp_block 0 1 5000"),
    floor("unix", "block", "0,1", "unix_block 0 1 5000"),
    floor("tcp", "block", "0,1", "tcp_block 0 1 5000"),
    floor("pty", "block", "1", "pty_block 1 1 10000"),
    floor("pty", "block", "0,1", "pty_block 0 1 5000"),
];

const ROUNDS: usize = 10;

/// Runs the benchmark of that name and prints its table.
pub fn run(name: &str) -> Result<(), String> {
    shell::run("cargo build --release --quiet")?;
    match name {
        "floors" => floors(),
        "unchanged" => comparison::unchanged(),
        "slowed" => comparison::slowed(),
        other => {
            Err(format!("no benchmark is called \"{other}\"; there are floors, unchanged, slowed and sync"))
        }
    }
}

/// The clock exchange between two processes, idle and busy, with the kernel's stamps and without.
pub fn sync(seconds: u32, out: &str) -> Result<(), String> {
    shell::run("cargo build --release --quiet")?;
    shell::run(&format!(
        "cargo run --release --quiet -p noctule-clock-lab --example bench_sync -- target/release/noctule {seconds} {out}"
    ))
}

fn floors() -> Result<(), String> {
    let build = "target/benchmarks";
    shell::run(&format!(
        "mkdir -p {build} && cc -O2 -std=gnu11 -o {build}/floors benchmarks/floors/floors.c"
    ))?;
    let mut ours: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    let mut theirs: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for round in 0..ROUNDS {
        println!("round {} of {ROUNDS}", round + 1);
        let lab = format!("target/release/noctule lab run benchmarks/floors/floors.toml --out {build}/out");
        shell::output(&lab).ok_or("the lab's floors were not valid; is the machine busy?")?;
        let run =
            fs::read_to_string(shell::root().join(build).join("out/run.json")).map_err(|e| e.to_string())?;
        let run: serde_json::Value = serde_json::from_str(&run).map_err(|e| e.to_string())?;
        for (number, floor) in FLOORS.iter().enumerate() {
            ours.entry(number).or_default().push(median_of(&run, floor)?);
            let arguments = floor.arguments;
            let printed = shell::output(&format!("timeout 60 {build}/floors {arguments}"));
            let ns = printed.and_then(|text| text.parse().ok());
            theirs.entry(number).or_default().push(ns.ok_or(format!("`floors {arguments}` failed"))?);
        }
    }
    println!(
        "\n| floor | wait | cores | lab ns | C ns | ratio (median of {ROUNDS}) | range |\n|---|---|---|---|---|---|---|"
    );
    for (number, Floor { peer, wait, placement, .. }) in FLOORS.iter().enumerate() {
        let (ours, theirs) = (&ours[&number], &theirs[&number]);
        let mut ratios: Vec<f64> = ours.iter().zip(theirs).map(|(a, b)| a / b).collect();
        // There is one of each round.
        let middle = |values: &mut [f64]| median(values).unwrap_or(f64::NAN);
        let (middle_ours, middle_theirs) = (middle(&mut ours.clone()), middle(&mut theirs.clone()));
        let ratio = middle(&mut ratios);
        let (low, high) = (ratios[0], ratios[ratios.len() - 1]);
        println!(
            "| {peer} | {wait} | {placement} | {middle_ours:.0} | {middle_theirs:.0} | {ratio:.3} | {low:.2}–{high:.2} |"
        );
    }
    Ok(())
}

fn median_of(run: &serde_json::Value, floor: &Floor) -> Result<f64, String> {
    let Floor { peer, wait, placement, .. } = floor;
    let cells = run["cells"].as_array().ok_or("run.json has no cells")?;
    let is = |cell: &&serde_json::Value| {
        cell["peer"] == *peer && cell["wait"] == *wait && cell["placement"] == *placement
    };
    let p50 = cells.iter().find(is).and_then(|cell| cell["latency_ns"]["p50"].as_f64());
    p50.ok_or_else(|| format!("no figure for {peer} {wait} [{placement}]"))
}
