//! `run.json`: everything one run found, in the form other programs script against.
//!
//! The field names are a contract. Readers must ignore fields they do not know; writers may add
//! fields, never rename or drop one. A quantity that does not apply, or that the samples do not
//! support, is `null`, never zero.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::dimensions::{Link, Mode, Placement, Wait};
use crate::link_record::LinkRecord;
use crate::statistics::LatencySummary;
use crate::validity::Invalid;

/// Version of the `run.json` layout written by this crate.
pub const SCHEMA: u32 = 1;

/// One run of a scenario, or one imported recording.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Layout version, [`SCHEMA`].
    pub schema: u32,
    /// The machine it ran on.
    pub host: Host,
    /// The scenario.
    pub scenario: ScenarioRecord,
    /// True if the run was interrupted: some cells are missing or have fewer trials.
    pub partial: bool,
    /// One entry per cell and trial, in the order measured.
    pub cells: Vec<Cell>,
    /// Cells that were not measured, by name, with the reason and the way to get them.
    #[serde(default)]
    pub skipped: Vec<Skipped>,
    /// Thresholds of the scenario and whether they held.
    #[serde(default)]
    pub thresholds: Vec<ThresholdResult>,
    /// A name shared by runs measured in turns (trial 0 of each, trial 1 of each, …); `null` alone.
    /// Runs that share it are compared trial by trial.
    #[serde(default)]
    pub interleaving: Option<String>,
}

/// The machine and the software on it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// Processor model as the kernel names it.
    pub cpu: String,
    /// Cores this process may run on.
    pub cores: u32,
    /// `uname` release and version.
    pub kernel: String,
    /// Frequency governor, or `null` where the kernel offers none (most guests).
    pub governor: Option<String>,
    /// Versions of Noctule and of each peer measured, by name.
    pub versions: BTreeMap<String, String>,
    /// Commit the lab was built from, with `-dirty` if the tree had changes; `null` outside a checkout.
    pub commit: Option<String>,
    /// Number of the sources the program was built from; `null` where it is not known.
    #[serde(default)]
    pub sources: Option<String>,
    /// The doctor's findings, by check name (`governor`, `c_states`, …).
    pub fingerprint: BTreeMap<String, String>,
    /// When the run started, RFC 3339, UTC.
    #[serde(default)]
    pub started_at: String,
}

/// The scenario as it was run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ScenarioRecord {
    /// Its name, e.g. `quick`.
    pub name: String,
    /// One sentence.
    #[serde(default)]
    pub description: String,
    /// True for the short form (`--smoke`).
    #[serde(default)]
    pub smoke: bool,
    /// The TOML text, so that the run can be repeated from this file alone; empty for imports.
    #[serde(default)]
    pub source: String,
    /// Numbers published elsewhere, to be shown beside ours.
    #[serde(default)]
    pub published: Vec<Published>,
}

/// A number from a paper or a data sheet.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// Name of the measure, e.g. `usb serial (M5Atom) mean`.
    pub what: String,
    /// The number as printed there, with its unit, e.g. `12.830 ms`.
    pub value: String,
    /// Publication with the number.
    pub source: String,
    /// The fact it is shown beside, e.g. `encode_ns`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fact: Option<String>,
    /// Only in cells of this format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// Only in cells of this payload, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_bytes: Option<u64>,
}

/// One peer on one link with one set of parameters, measured once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Middleware under test, e.g. `udp`, `cyclonedds`.
    pub peer: String,
    /// `shm`, `udp`, `tcp`, `unix`, `pty`, `serial`, `link:NAME` or `memory`.
    pub link: Link,
    /// `round_trip`, `one_way`, `chain` or `fan_out`.
    pub mode: Mode,
    /// Number of processes.
    pub nodes: u32,
    /// Chain: per hop, receive to receive, the first from the scheduled send. Fan-out: per receiver. Else empty.
    pub hops: Vec<Hop>,
    /// `spin`, `block` or `hybrid`.
    pub wait: Wait,
    /// Cores of the nodes, e.g. `0,1`, or `free`.
    pub placement: Placement,
    /// Serialization format, `raw` if none.
    pub format: String,
    /// Size of one message.
    pub payload_bytes: u64,
    /// Messages per second in open loop; `null` in closed loop.
    pub rate_hz: Option<f64>,
    /// A message that takes longer is late; `null` in closed loop unless the scenario sets it.
    pub deadline_ns: Option<u64>,
    /// Trial number from 0.
    pub trial: u32,
    /// Measured messages; in a fan-out, deliveries wanted (messages × receivers). `sent = received + lost`.
    pub sent: u64,
    /// Different messages that arrived.
    pub received: u64,
    /// Messages that never arrived.
    pub lost: u64,
    /// Messages that arrived after their deadline; part of `received`.
    pub late: u64,
    /// Further arrivals of messages already received; outside `received`.
    pub duplicated: u64,
    /// Latency from the *scheduled* send; a round trip is the whole trip. `null` if the cell is invalid.
    pub latency_ns: Option<LatencySummary>,
    /// How late the sender itself was; `null` in closed loop.
    pub send_lag_ns: Option<SendLag>,
    /// Proven bound of the clock offset in each latency; 0 on one clock.
    pub clock_bound_ns: u64,
    /// Standard error of the clock offset; 0 on one clock.
    pub clock_sigma_ns: u64,
    /// Processor time of all nodes per message.
    pub cpu_ns_per_message: Option<f64>,
    /// Bytes sent beyond the payload for repair, as a share of the payload; `null` if unknown.
    pub redundancy: Option<f64>,
    /// The physical floor this cell is compared with.
    pub floor: Option<Floor>,
    /// p50 divided by the floor's p50.
    pub ratio_to_floor: Option<f64>,
    /// False if any validity check failed; then there is no summary.
    pub valid: bool,
    /// The failed checks, one sentence each; empty if valid.
    pub why_invalid: Vec<Invalid>,

    /// `may_saturate`: the cell may be invalid without failing the run.
    #[serde(default)]
    pub expect: Option<String>,
    /// True for the built-in floors.
    #[serde(default)]
    pub is_floor: bool,
    /// Settings that the peer reports: QoS, buffers, transport.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// Cost of taking and storing one stamp, measured by the node in this cell.
    #[serde(default)]
    pub recorder_ns: Option<f64>,
    /// p50 and p99 of consecutive tenths of the samples, for comparison of runs.
    #[serde(default)]
    pub blocks: Vec<Block>,
    /// Arrivals in another order than sent; `null` where not applicable.
    #[serde(default)]
    pub reordered: Option<u64>,
    /// Network namespaces the nodes alternate between: 1, 2, or one for each node of an emulated star.
    #[serde(default = "one")]
    pub hosts: u32,
    /// The clock of each host as the scenario says it; empty if all nodes stamp with one clock. Arrivals
    /// on the second host were then translated into the first host's clock.
    #[serde(default)]
    pub clocks: Vec<String>,
    /// Figures that the first node measured by itself, by name; units end the names.
    #[serde(default)]
    pub facts: BTreeMap<String, f64>,
    /// Options the scenario gave the peer.
    #[serde(default)]
    pub options: BTreeMap<String, String>,
    /// Traffic beside it, if any.
    #[serde(default)]
    pub beside: Option<Beside>,
    /// Arrivals per second, at all receivers together, from the first scheduled send to the last arrival.
    #[serde(default)]
    pub received_hz: Option<f64>,
    /// Bytes that all hosts gave to the links between them from warm-up to the end, headers and acknowledgements
    /// included; `null` on one host.
    #[serde(default)]
    pub wire_bytes: Option<u64>,
    /// Messages of the warm-up, which [`Cell::wire_bytes`] contains; `null` without a rate, where they are not counted.
    #[serde(default)]
    pub warm_up_sent: Option<u64>,
    /// Open loop: messages (in a fan-out deliveries) of the schedule, be they sent or not; `null` in closed loop.
    #[serde(default)]
    pub scheduled: Option<u64>,
    /// Open loop: whether the sender kept its schedule. Where that is all that is wrong with an invalid cell, what arrived in
    /// time is a figure nevertheless: a share of [`Cell::scheduled`].
    #[serde(default)]
    pub rate_held: Option<bool>,
    /// Record of the emulated link between the hosts; `null` without one.
    #[serde(default)]
    pub emulated_link: Option<LinkRecord>,
}

/// Traffic of another topic while a cell was measured.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Beside {
    /// Middleware that carried it.
    pub peer: String,
    /// Size of one message.
    pub payload_bytes: u64,
    /// Messages per second that were requested; `null` = back to back.
    pub rate_hz: Option<f64>,
    /// Messages sent.
    pub sent: u64,
    /// Messages that arrived.
    pub received: u64,
    /// Arrivals per second.
    pub received_hz: Option<f64>,
}

fn one() -> u32 {
    1
}

/// One hop of a chain, or one receiver of a fan-out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hop {
    /// Node the latency starts from.
    pub from: u32,
    /// Node that received.
    pub to: u32,
    /// As [`Cell::latency_ns`], over this hop alone.
    pub latency_ns: Option<LatencySummary>,
}

/// Actual minus scheduled send time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SendLag {
    /// Median.
    pub p50: i64,
    /// 99th percentile; `null` with fewer than 10 samples beyond it.
    pub p99: Option<i64>,
    /// Largest.
    pub max: i64,
}

/// A floor cell of the same run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Floor {
    /// Name of the floor peer, e.g. `cache_line`, `futex`, `udp`.
    pub name: String,
    /// Its median over all trials.
    pub p50_ns: i64,
}

/// A tenth of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    /// Number of samples.
    pub count: u64,
    /// Median.
    pub p50_ns: i64,
    /// 99th percentile of the block, however few its samples: only for resampling.
    pub p99_ns: i64,
}

/// A cell that was not measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// Peer name.
    pub peer: String,
    /// Why, and what to do: a sentence.
    pub why: String,
}

/// A threshold of the scenario, judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ThresholdResult {
    /// The threshold in words, e.g. `udp p99 ≤ 200000 ns`.
    pub what: String,
    /// The value found; `null` if no valid cell matched.
    pub found: Option<f64>,
    /// Whether the threshold was kept.
    pub held: bool,
}

/// Why a `run.json` could not be used.
#[derive(Debug, thiserror::Error)]
pub enum RunFileError {
    /// The file could not be read or written.
    #[error("cannot use {path}: {source}; name a directory made by `noctule lab run --out`")]
    Io {
        /// Path tried.
        path: String,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The file is no `run.json`.
    #[error("{path} is not a run.json: {reason}")]
    Malformed {
        /// Path tried.
        path: String,
        /// Position and fact.
        reason: String,
    },
    /// Written by another major layout.
    #[error("{path} has schema {found}, this program reads schema {SCHEMA}; run it again with this version")]
    Schema {
        /// Path tried.
        path: String,
        /// Its schema.
        found: u64,
    },
}

impl Run {
    /// Reads a `run.json`; unknown fields are ignored.
    pub fn read(path: &Path) -> Result<Self, RunFileError> {
        let shown = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|source| RunFileError::Io { path: shown.clone(), source })?;
        let malformed = |error: serde_json::Error| RunFileError::Malformed {
            path: shown.clone(),
            reason: error.to_string(),
        };
        let value: serde_json::Value = serde_json::from_str(&text).map_err(malformed)?;
        match value.get("schema").and_then(serde_json::Value::as_u64) {
            Some(found) if found == u64::from(SCHEMA) => {}
            Some(found) => return Err(RunFileError::Schema { path: shown, found }),
            None => {
                let reason = "it has no number named \"schema\"".to_owned();
                return Err(RunFileError::Malformed { path: shown, reason });
            }
        }
        serde_json::from_value(value).map_err(malformed)
    }

    /// Writes `run.json` by way of a temporary file, so that no half-written one is ever seen.
    pub fn write(&self, path: &Path) -> Result<(), RunFileError> {
        let io = |source| RunFileError::Io { path: path.display().to_string(), source };
        let text = serde_json::to_string_pretty(self).map_err(|error| io(error.into()))?;
        let draft = path.with_extension("json.part");
        std::fs::write(&draft, text + "\n").map_err(io)?;
        std::fs::rename(&draft, path).map_err(io)
    }

    /// True if every cell that must be valid is, every threshold held, and nothing was interrupted.
    pub fn succeeded(&self) -> bool {
        !self.partial
            && self.cells.iter().all(|cell| cell.valid || cell.expect.as_deref() == Some("may_saturate"))
            && self.thresholds.iter().all(|threshold| threshold.held)
    }
}

impl Cell {
    /// Nothing was measured yet, so it is not valid: one trial in closed loop, of raw bytes of no length, between two nodes
    /// that block, on one host and clock and on any core.
    pub fn unmeasured(peer: &str, link: Link, mode: Mode) -> Cell {
        Cell {
            peer: peer.to_owned(),
            link,
            mode,
            nodes: 2,
            hops: vec![],
            wait: Wait::Block,
            placement: Placement::Free,
            format: "raw".to_owned(),
            payload_bytes: 0,
            rate_hz: None,
            deadline_ns: None,
            trial: 0,
            sent: 0,
            received: 0,
            lost: 0,
            late: 0,
            duplicated: 0,
            latency_ns: None,
            send_lag_ns: None,
            clock_bound_ns: 0,
            clock_sigma_ns: 0,
            cpu_ns_per_message: None,
            redundancy: None,
            floor: None,
            ratio_to_floor: None,
            valid: false,
            why_invalid: vec![],
            expect: None,
            is_floor: false,
            settings: Default::default(),
            recorder_ns: None,
            blocks: vec![],
            reordered: None,
            hosts: 1,
            clocks: vec![],
            facts: Default::default(),
            options: Default::default(),
            beside: None,
            received_hz: None,
            wire_bytes: None,
            warm_up_sent: None,
            scheduled: None,
            rate_held: None,
            emulated_link: None,
        }
    }

    /// Number of nodes up to the last one whose stamps share the source's clock: all of them on one
    /// host, or if their clocks were compared; with two hosts in turn, up to the last on the source's.
    pub fn measured_nodes(&self) -> u32 {
        match (self.hosts, self.mode) {
            (2, Mode::Chain) if self.clocks.is_empty() && self.link == Link::veth() => {
                self.nodes.saturating_sub(1) / 2 * 2 + 1
            }
            _ => self.nodes,
        }
    }

    /// The cell is valid but for a sender that did not keep its schedule.
    pub fn is_only_slow(&self) -> bool {
        // A reason that was read back from a file is only a sentence; `rate_held` says then that the rate is one of them.
        let [only] = self.why_invalid.as_slice() else { return false };
        !self.valid
            && self.rate_held == Some(false)
            && (only.is_rate() || matches!(only, Invalid::Recorded(_)))
    }

    /// Identity of the experiment that the cell is a trial of: everything but trial and results.
    ///
    /// Cells of one run with equal keys are trials of one another; cells of two runs with equal
    /// keys are compared.
    pub fn key(&self) -> CellKey {
        CellKey {
            peer: self.peer.clone(),
            link: self.link.clone(),
            mode: self.mode,
            nodes: self.nodes,
            wait: self.wait,
            placement: self.placement.clone(),
            format: self.format.clone(),
            payload_bytes: self.payload_bytes,
            rate_mhz: self.rate_hz.map(|hz| (hz * 1e3).round() as u64),
            clocks: self.clocks.clone(),
            options: self.options.clone(),
            beside: self.beside.as_ref().map(|beside| BesideKey {
                peer: beside.peer.clone(),
                payload_bytes: beside.payload_bytes,
                rate_mhz: beside.rate_hz.map(|hz| (hz * 1e3).round() as u64),
            }),
        }
    }
}

/// Identity of an experiment within a run; see [`Cell::key`]. Orders by peer first.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CellKey {
    /// [`Cell::peer`].
    pub peer: String,
    /// [`Cell::link`].
    pub link: Link,
    /// [`Cell::mode`].
    pub mode: Mode,
    /// [`Cell::nodes`].
    pub nodes: u32,
    /// [`Cell::wait`].
    pub wait: Wait,
    /// [`Cell::placement`].
    pub placement: Placement,
    /// [`Cell::format`].
    pub format: String,
    /// [`Cell::payload_bytes`].
    pub payload_bytes: u64,
    /// [`Cell::rate_hz`] in thousandths of a hertz, so that it can be compared.
    pub rate_mhz: Option<u64>,
    /// [`Cell::clocks`].
    pub clocks: Vec<String>,
    /// [`Cell::options`].
    pub options: BTreeMap<String, String>,
    /// [`Cell::beside`] without its results.
    pub beside: Option<BesideKey>,
}

/// Identity of the traffic of a [`Beside`].
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BesideKey {
    /// [`Beside::peer`].
    pub peer: String,
    /// [`Beside::payload_bytes`].
    pub payload_bytes: u64,
    /// [`Beside::rate_hz`] in thousandths of a hertz.
    pub rate_mhz: Option<u64>,
}
