//! Writes a complete report from made-up samples: every chart, a failed cell, skipped peers.
//!
//! For working on the page and for its browser test, which must not depend on a machine's mood.
//! `cargo run --release -p noctule-lab-report --example synthetic_report -- DIR [SEED] [MESSAGES]`

use std::collections::BTreeMap;
use std::path::Path;

use noctule_lab::cell_statistics as statistics;
use noctule_lab::dimensions::{Link, Mode, Placement, Wait};
use noctule_lab::random::Random;
use noctule_lab::run::{Cell, Floor, Host, Published, Run, SCHEMA, ScenarioRecord, Skipped, ThresholdResult};
use noctule_lab::samples::{CellSamples, Sample};
use noctule_lab::statistics::LatencySummary;
use noctule_lab_report as report;

const TRIALS: u32 = 3;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().ok_or("usage: synthetic_report DIR [SEED] [MESSAGES]")?;
    let seed = arguments.next().map_or(Ok(1), |text| text.parse())?;
    let messages = arguments.next().map_or(Ok(20_000), |text| text.parse())?;
    let mut maker =
        Maker { random: Random::new(seed), now_ns: 5_000_000_000, cells: Vec::new(), samples: Vec::new() };
    for trial in 0..TRIALS {
        maker.floors(trial, messages);
        maker.peers(trial, messages);
        maker.rates(trial, messages / 10);
        maker.topologies(trial, messages / 10);
    }
    let (run, samples) = maker.finish();
    report::write_all(Path::new(&directory), &run, &samples)?;
    Ok(())
}

/// Parameters of one made-up experiment.
struct Shape<'a> {
    peer: &'a str,
    link: &'a str,
    mode: Mode,
    nodes: u32,
    wait: Wait,
    cores: &'a [u32],
    payload_bytes: u64,
    rate_hz: Option<f64>,
    median_ns: f64,
    messages: u64,
    is_floor: bool,
}

struct Maker {
    random: Random,
    now_ns: i64,
    cells: Vec<Cell>,
    samples: Vec<CellSamples>,
}

impl Maker {
    fn floors(&mut self, trial: u32, messages: u64) {
        let floors = [
            ("cache_line", "memory", Wait::Spin, 64, 120.0),
            ("futex", "memory", Wait::Block, 64, 43_000.0),
            ("memcpy", "memory", Wait::Spin, 1_000_000, 72_000.0),
            ("unix", "unix", Wait::Block, 64, 52_000.0),
            ("udp", "udp", Wait::Block, 64, 48_000.0),
            ("udp", "udp", Wait::Spin, 64, 4_500.0),
            ("tcp", "tcp", Wait::Block, 64, 51_000.0),
            ("pty", "pty", Wait::Block, 64, 52_000.0),
        ];
        for (peer, link, wait, payload_bytes, median_ns) in floors {
            let shape =
                Shape { link, wait, is_floor: true, payload_bytes, ..round_trip(peer, median_ns, messages) };
            self.add(trial, &shape);
        }
    }

    fn peers(&mut self, trial: u32, messages: u64) {
        let peers = [
            ("cyclonedds", "udp", 61_000.0),
            ("fastdds", "udp", 74_000.0),
            ("fastdds", "shm", 66_000.0),
            ("lcm", "udp", 58_000.0),
            ("iceoryx2", "shm", 47_000.0),
            ("zenoh", "tcp", 95_000.0),
        ];
        for (peer, link, median_ns) in peers {
            for payload_bytes in [64u64, 1_024, 65_536, 1_000_000] {
                let copies = if peer == "iceoryx2" { 0.0 } else { 0.3 };
                let shape = Shape {
                    link,
                    payload_bytes,
                    ..round_trip(peer, median_ns + copies * payload_bytes as f64, messages / 4)
                };
                self.add(trial, &shape);
            }
        }
    }

    fn rates(&mut self, trial: u32, messages: u64) {
        for payload_bytes in [64, 1_024, 65_536] {
            for rate_hz in [10.0, 100.0, 1_000.0, 10_000.0] {
                let idle_ns = 40_000.0 / (1.0 + rate_hz / 200.0);
                let shape = Shape {
                    mode: Mode::OneWay,
                    payload_bytes,
                    rate_hz: Some(rate_hz),
                    ..round_trip("cyclonedds", 30_000.0 + idle_ns + 0.2 * payload_bytes as f64, messages)
                };
                self.add(trial, &shape);
            }
        }
    }

    fn topologies(&mut self, trial: u32, messages: u64) {
        for (peer, median_ns) in [("cyclonedds", 34_000.0), ("udp", 26_000.0)] {
            for (mode, nodes) in [(Mode::Chain, 6), (Mode::FanOut, 4)] {
                let shape = Shape {
                    mode,
                    nodes,
                    cores: &[],
                    payload_bytes: 128,
                    rate_hz: Some(100.0),
                    ..round_trip(peer, median_ns, messages)
                };
                self.add(trial, &shape);
            }
        }
    }

    fn add(&mut self, trial: u32, shape: &Shape) {
        let drift = 1.0 + 0.02 * self.random.normal();
        let period_ns = shape.rate_hz.map_or(shape.median_ns as i64 * 2, |hz| (1e9 / hz) as i64);
        let start_ns = self.now_ns;
        let receivers = match shape.mode {
            Mode::RoundTrip => 0..1u16,
            _ => 1..shape.nodes as u16,
        };
        let mut samples = Vec::new();
        for node in receivers {
            let hops = match shape.mode {
                Mode::Chain => f64::from(node),
                _ => 1.0,
            };
            for index in 0..shape.messages {
                let scheduled_ns = start_ns + period_ns * index as i64;
                let latency_ns = shape.median_ns * hops * drift * latency(&mut self.random);
                samples.push(Sample {
                    index,
                    node,
                    scheduled_ns,
                    sent_ns: scheduled_ns + (90.0 * latency(&mut self.random)) as i64,
                    received_ns: scheduled_ns + latency_ns as i64,
                });
            }
        }
        self.now_ns += period_ns * shape.messages as i64 + 50_000_000;
        self.cells.push(cell(trial, shape, &samples));
        self.samples.push(samples);
    }

    fn finish(mut self) -> (Run, Vec<CellSamples>) {
        for cell in &mut self.cells {
            let name = match cell.link {
                Link::SharedMemory => "futex",
                _ => "udp",
            };
            if !cell.is_floor {
                let p50_ns = if name == "futex" { 43_000 } else { 48_000 };
                cell.floor = Some(Floor { name: name.to_owned(), p50_ns });
            }
            if cell.peer == "zenoh" && cell.payload_bytes == 1_000_000 && cell.trial == 1 {
                cell.valid = false;
                cell.latency_ns = None;
                cell.why_invalid = vec!["rate not held: 612 of 1000 messages were sent in time".into()];
            }
        }
        (run(self.cells), self.samples)
    }
}

fn round_trip(peer: &str, median_ns: f64, messages: u64) -> Shape<'_> {
    Shape {
        peer,
        link: "udp",
        mode: Mode::RoundTrip,
        nodes: 2,
        wait: Wait::Block,
        cores: &[0, 1],
        payload_bytes: 64,
        rate_hz: None,
        median_ns,
        messages,
        is_floor: false,
    }
}

fn cell(trial: u32, shape: &Shape, samples: &[Sample]) -> Cell {
    let latencies = statistics::end_to_end(shape.mode, shape.nodes, samples);
    let deadline_ns = shape.rate_hz.map(|hz| (1e9 / hz) as u64);
    Cell {
        nodes: shape.nodes,
        hops: match shape.mode {
            Mode::Chain => statistics::chain_hops(samples, &(1..shape.nodes).collect::<Vec<_>>()),
            Mode::FanOut => statistics::fan_out_hops(samples, shape.nodes),
            _ => Vec::new(),
        },
        wait: shape.wait,
        placement: Placement::on(shape.cores),
        payload_bytes: shape.payload_bytes,
        rate_hz: shape.rate_hz,
        deadline_ns,
        trial,
        sent: latencies.len() as u64,
        received: latencies.len() as u64,
        late: deadline_ns.map_or(0, |deadline| statistics::late(&latencies, deadline)),
        blocks: statistics::blocks(&latencies),
        latency_ns: LatencySummary::of(latencies),
        send_lag_ns: shape
            .rate_hz
            .and_then(|_| statistics::send_lag(samples.iter().map(|s| s.sent_ns - s.scheduled_ns).collect())),
        cpu_ns_per_message: Some(2_300.0),
        valid: true,
        is_floor: shape.is_floor,
        settings: BTreeMap::from([("reliability".to_owned(), "reliable".to_owned())]),
        recorder_ns: Some(24.0),
        reordered: Some(0),
        ..Cell::unmeasured(shape.peer, shape.link.into(), shape.mode)
    }
}

fn run(cells: Vec<Cell>) -> Run {
    let text = |pairs: &[(&str, &str)]| {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect::<BTreeMap<_, _>>()
    };
    Run {
        schema: SCHEMA,
        host: Host {
            cpu: "Synthetic CPU @ 0 GHz".to_owned(),
            cores: 2,
            kernel: "Linux 6.1.0 (made up)".to_owned(),
            governor: None,
            versions: text(&[("noctule", "0.1.0"), ("cyclonedds", "0.10.2")]),
            commit: Some("0123456789ab-dirty".to_owned()),
            sources: Some("0123456789abcdef".to_owned()),
            fingerprint: text(&[
                ("clock_source", "tsc"),
                ("governor", "not offered (guest)"),
                ("virtualisation", "kvm"),
            ]),
            started_at: "2026-01-01T00:00:00Z".to_owned(),
        },
        scenario: ScenarioRecord {
            name: "synthetic".to_owned(),
            description: "Made-up samples that exercise every part of a report <b>&</b>.".to_owned(),
            smoke: false,
            source: "name = \"synthetic\"\n".to_owned(),
            published: vec![Published {
                what: "iceoryx2 64 B one way, other core".to_owned(),
                value: "326 ns".to_owned(),
                source: "iceoryx2 internal/plots, i7-13700H".to_owned(),
                ..Published::default()
            }],
        },
        partial: false,
        cells,
        skipped: vec![Skipped {
            peer: "noctule".to_owned(),
            why: "it is not built; `cargo xtask peers noctule` builds it".to_owned(),
        }],
        thresholds: vec![ThresholdResult {
            what: "udp p99 ≤ 200000 ns".to_owned(),
            found: Some(81_234.0),
            held: true,
        }],
        interleaving: None,
    }
}

/// Around 1, with a second mode and a rare heavy tail, as latencies have.
fn latency(random: &mut Random) -> f64 {
    let body = 1.0 + 0.04 * random.normal().abs();
    match random.uniform() {
        x if x < 0.001 => body + 3.0 / (random.uniform() + 0.02),
        x if x < 0.08 => body * 1.35,
        _ => body,
    }
}
