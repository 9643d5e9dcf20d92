//! Made-up runs for the tests of everything that reads a run, here and in other crates.

use crate::cell_statistics;
use crate::run::{Cell, Floor, Host, Run, SCHEMA, ScenarioRecord};
use crate::samples::{CellSamples, Sample};
use crate::statistics::LatencySummary;

/// A valid closed-loop round trip of 64 bytes whose latencies are given.
pub fn round_trip(peer: &str, trial: u32, latencies: &[i64]) -> (Cell, CellSamples) {
    let received = latencies.len() as u64;
    let cell = Cell {
        wait: "spin".to_owned(),
        placement: "0,1".to_owned(),
        payload_bytes: 64,
        trial,
        sent: received + 1,
        received,
        lost: 1,
        latency_ns: LatencySummary::of(latencies.to_vec()),
        floor: Some(Floor { name: "futex".to_owned(), p50_ns: 100 }),
        valid: true,
        blocks: cell_statistics::blocks(latencies),
        ..Cell::unmeasured(peer, "udp", "round_trip")
    };
    let sample = |(index, latency): (usize, &i64)| Sample {
        index: index as u64,
        node: 0,
        scheduled_ns: 1_000 + 10_000 * index as i64,
        sent_ns: 1_000 + 10_000 * index as i64,
        received_ns: 1_000 + 10_000 * index as i64 + latency,
    };
    (cell, latencies.iter().enumerate().map(sample).collect())
}

/// A run of the given cells.
pub fn run(cells: Vec<(Cell, CellSamples)>) -> (Run, Vec<CellSamples>) {
    let (cells, samples) = cells.into_iter().unzip();
    let run = Run {
        schema: SCHEMA,
        host: Host::default(),
        scenario: ScenarioRecord::default(),
        partial: false,
        cells,
        skipped: vec![],
        thresholds: vec![],
        interleaving: None,
    };
    (run, samples)
}

/// Two trials of one round trip and a chain of four at 100 Hz, 2,000 messages each.
pub fn chain_and_round_trips() -> (Run, Vec<CellSamples>) {
    // A multiplicative walk visits every residue once: spread-out values without a generator.
    let latencies: Vec<i64> = (0..2000).map(|i| 40_000 + i * 7919 % 2000).collect();
    let mut chain = round_trip("udp", 0, &latencies);
    chain.0.mode = "chain".to_owned();
    chain.0.nodes = 4;
    chain.0.wait = "block".to_owned();
    chain.0.placement = "free".to_owned();
    chain.0.payload_bytes = 128;
    chain.0.rate_hz = Some(100.0);
    let first_hop = std::mem::take(&mut chain.1);
    for node in 1..4u16 {
        chain.1.extend(first_hop.iter().map(|sample| Sample {
            node,
            received_ns: sample.received_ns + 30_000 * i64::from(node - 1),
            ..*sample
        }));
    }
    chain.0.hops = cell_statistics::chain_hops(&chain.1, &[1, 2, 3]);
    run(vec![round_trip("udp", 0, &latencies), round_trip("udp", 1, &latencies), chain])
}
