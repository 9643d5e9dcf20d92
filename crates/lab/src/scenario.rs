//! A scenario: an experiment written down, one TOML file.
//!
//! A file lists groups of cells; every key of a group may be a list, and the group has all
//! combinations. Faults are reported with file, line and column. What a scenario may hold is the
//! types below; `docs/guide/scenarios.md` explains them by example.

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::path::Path;

use noctule_link_emulator::source;
use noctule_local_clock::LocalClock;
use noctule_peer::Touch;
use serde::Deserialize;
use toml::Spanned;

use crate::dimensions::{Link, Mode, PlacementWish, UnknownWord, Wait};
use crate::run::Published;

/// A scenario file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// One word, for tables and file names.
    pub name: String,
    /// The question of the experiment, in a sentence.
    #[serde(default)]
    pub description: String,
    /// How often every cell is measured, interleaved with all others, in fresh processes.
    #[serde(default = "three")]
    pub trials: u32,
    /// How long one trial of one cell sends, at most.
    #[serde(default = "quarter")]
    pub seconds: f64,
    /// How many messages one trial of one cell sends, at most.
    #[serde(default = "ten_thousand")]
    pub messages: u64,
    /// How long to warm up before measuring, at most.
    #[serde(default = "tenth")]
    pub warm_up_seconds: f64,
    /// In a closed loop, a reply later than this counts as lost.
    #[serde(default = "second_in_ms")]
    pub reply_timeout_ms: u64,
    /// SCHED_FIFO priority of all nodes; 0 = ordinary scheduling.
    #[serde(default)]
    pub priority: u32,
    /// Lock all memory of all nodes.
    #[serde(default)]
    pub lock_memory: bool,
    /// The experiments.
    pub cells: Vec<Spanned<Group>>,
    /// Conditions for exit code 0.
    #[serde(default)]
    pub thresholds: Vec<Spanned<Threshold>>,
    /// Numbers published elsewhere, shown beside ours.
    #[serde(default)]
    pub published: Vec<Published>,
    /// An arm of `noctule teleop` follows the arrivals of each one-way cell afterwards, in virtual time.
    #[serde(default)]
    pub arm: bool,
    /// How the short form differs.
    #[serde(default)]
    pub smoke: Smoke,
}

/// All combinations of the listed values.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// Peers, by name.
    pub peer: Many<String>,
    /// Links; default: the first the peer offers. `link:SPEC`: by UDP or TCP across an emulated link
    /// between hosts, in a fan-out one for each node.
    link: Option<Many<String>>,
    /// `round_trip`, `one_way`, `chain`, `fan_out`.
    #[serde(default = "round_trip")]
    mode: Many<String>,
    /// Number of processes; default 2.
    #[serde(default = "two")]
    pub nodes: Many<u32>,
    /// 16 … 4,194,304.
    #[serde(default = "sixty_four")]
    pub payload_bytes: Many<u64>,
    /// Messages per second; 0 or absent = closed loop (round trip) or back to back (others).
    #[serde(default = "closed")]
    pub rate_hz: Many<f64>,
    /// `spin`, `block`, `hybrid`.
    #[serde(default = "block")]
    wait: Many<String>,
    /// `split` (neighbouring nodes on different cores), `same` (all on the last core), `free`, or a
    /// list of cores such as `"0,1"`, used in turn.
    #[serde(default = "split")]
    placement: Many<String>,
    /// Serialization format.
    #[serde(default = "raw")]
    pub format: Many<String>,
    /// `header` or `full`: how much of a payload is written and read.
    #[serde(default = "header")]
    touch: String,
    /// 1, or 2: nodes alternate between two network namespaces joined by a veth pair.
    #[serde(default = "one")]
    pub hosts: u32,
    /// The clock of each host, e.g. `["", "offset=3s,ppm=50"]`: needs `hosts = 2`. Empty: all nodes
    /// stamp with the machine's clock.
    #[serde(default)]
    pub clocks: Vec<String>,
    /// Traffic of another topic of the same middleware that flows while a cell is measured.
    pub beside: Option<Traffic>,
    /// A message slower than this is late; default: one period.
    pub deadline_us: Option<f64>,
    /// `may_saturate`: the cell may be invalid without failing the run.
    pub expect: Option<String>,
    /// Free options for the peer. `baud`, `ftdi` and `noise` make a serial line; `load` and `priority` are the
    /// lab's.
    #[serde(default)]
    pub options: BTreeMap<String, Many<OptionValue>>,
    /// Overrides [`Scenario::seconds`].
    pub seconds: Option<f64>,
    /// Overrides [`Scenario::messages`].
    pub messages: Option<u64>,
    /// Overrides [`Scenario::trials`].
    pub trials: Option<u32>,
    /// The words of the group, parsed.
    #[serde(skip)]
    pub dimensions: Dimensions,
}

/// Values of a group's words, parsed.
#[derive(Debug, Clone, Default)]
pub struct Dimensions {
    /// Values of `mode`.
    pub modes: Vec<Mode>,
    /// Values of `link`; `None`: the first the peer offers.
    pub links: Option<Vec<Link>>,
    /// Values of `wait`.
    pub waits: Vec<Wait>,
    /// Values of `placement`.
    pub placements: Vec<PlacementWish>,
    /// Value of `touch`.
    pub touch: Touch,
}

/// Messages from one process to another, with the link, wait and placement of their group.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Traffic {
    /// Another peer, which then has no options but those below; default: the group's, with its options.
    pub peer: Option<String>,
    /// Options beside or instead of the group's.
    #[serde(default)]
    pub options: BTreeMap<String, String>,
    /// As [`Group::payload_bytes`].
    pub payload_bytes: u64,
    /// Messages per second; 0 or absent = back to back.
    #[serde(default)]
    pub rate_hz: f64,
}

/// A bound on one statistic of the cells that match.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Threshold {
    /// Only cells of this peer.
    pub peer: Option<String>,
    /// Only cells of this mode.
    pub mode: Option<String>,
    /// Only cells with this payload.
    pub payload_bytes: Option<u64>,
    /// Only cells with this wait.
    pub wait: Option<String>,
    /// Only cells with this placement, as in the group.
    pub placement: Option<String>,
    /// Only cells with these options, and perhaps others.
    #[serde(default)]
    pub options: BTreeMap<String, String>,
    /// `p50`, `p90`, `p95`, `p99`, `p99_9`, `max`, `mean`, `loss`, `late`, `missed` (lost or late), `ratio_to_floor`.
    pub statistic: String,
    /// Largest value allowed; latencies in microseconds, loss, late and missed as shares of 1.
    pub max: f64,
}

/// Changes for `--smoke`: fewer trials, shorter, and only the listed values of a key. A group none of
/// whose values is listed is left out.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Smoke {
    /// Replaces the number of trials.
    pub trials: Option<u32>,
    /// Replaces the seconds of every cell.
    pub seconds: Option<f64>,
    /// Replaces the messages of every cell.
    pub messages: Option<u64>,
    /// Keeps only these payloads.
    pub payload_bytes: Option<Vec<u64>>,
    /// Keeps only these rates.
    pub rate_hz: Option<Vec<f64>>,
    /// Keeps only these numbers of nodes.
    pub nodes: Option<Vec<u32>>,
    /// Keeps only these peers.
    pub peer: Option<Vec<String>>,
    /// Of an option that a group has, keeps only these values.
    #[serde(default)]
    pub options: BTreeMap<String, Many<OptionValue>>,
}

/// The value of an option: text, or a number or truth value that is passed on as text.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged, expecting = "expected a text or a number")]
pub enum OptionValue {
    /// A text, as it is written.
    Text(String),
    /// A whole number.
    Whole(i64),
    /// Another number.
    Number(f64),
    /// `true` or `false`.
    Truth(bool),
}

impl Display for OptionValue {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => out.write_str(text),
            Self::Whole(number) => write!(out, "{number}"),
            Self::Number(number) => write!(out, "{number}"),
            Self::Truth(truth) => write!(out, "{truth}"),
        }
    }
}

/// One value or a list of values.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged, expecting = "expected a value or a list of values of the right type")]
pub enum Many<T> {
    /// A single value.
    One(T),
    /// Several.
    List(Vec<T>),
}

impl<T> Many<T> {
    /// The values, in order.
    pub fn values(&self) -> &[T] {
        match self {
            Self::One(value) => std::slice::from_ref(value),
            Self::List(values) => values,
        }
    }
}

/// Why a scenario could not be used.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The file could not be read.
    #[error(
        "cannot read the scenario {path}: {source}; `noctule lab run` takes a file such as scenarios/quick.toml"
    )]
    Io {
        /// Path tried.
        path: String,
        /// The system's reason.
        source: std::io::Error,
    },
    /// It is not what a scenario is made of.
    #[error("{path}:{line}:{column}: {what}")]
    Invalid {
        /// Path of the file.
        path: String,
        /// Line, from 1.
        line: usize,
        /// Column in bytes, from 1.
        column: usize,
        /// The fact and the way out.
        what: String,
    },
}

/// A scenario with its text, so that later faults can still point to their line.
#[derive(Debug, Clone)]
pub struct ScenarioFile {
    /// The parsed scenario.
    pub scenario: Scenario,
    /// Its text.
    pub source: String,
    path: String,
}

impl ScenarioFile {
    /// Reads and checks a scenario file.
    pub fn read(path: &Path) -> Result<Self, ScenarioError> {
        let shown = path.display().to_string();
        match std::fs::read_to_string(path) {
            Ok(source) => Self::parse(&shown, source),
            Err(source) => Err(ScenarioError::Io { path: shown, source }),
        }
    }

    /// Checks the text of a scenario; `path` is for messages only.
    pub fn parse(path: &str, source: String) -> Result<Self, ScenarioError> {
        let scenario: Scenario = toml::from_str(&source).map_err(|error: toml::de::Error| {
            let offset = error.span().map_or(0, |span| span.start);
            invalid(path, &source, offset, error.message().replace('\n', " "))
        })?;
        let mut file = Self { scenario, source, path: path.to_owned() };
        let dimensions = file.check()?;
        for (group, dimensions) in file.scenario.cells.iter_mut().zip(dimensions) {
            group.get_mut().dimensions = dimensions;
        }
        Ok(file)
    }

    /// Whether any cell has this option with this value.
    pub fn has_option(&self, name: &str, value: &str) -> bool {
        let groups = self.scenario.cells.iter().filter_map(|group| group.get_ref().options.get(name));
        groups.flat_map(Many::values).any(|one| one.to_string() == value)
    }

    /// A fault at a byte offset of the text.
    pub fn fault(&self, offset: usize, what: impl Into<String>) -> ScenarioError {
        invalid(&self.path, &self.source, offset, what.into())
    }

    /// Parsed dimensions of each group, or the scenario's first fault.
    fn check(&self) -> Result<Vec<Dimensions>, ScenarioError> {
        let scenario = &self.scenario;
        let positive = |what: &str, value: f64| match value > 0.0 && value <= 86_400.0 {
            true => Ok(()),
            false => Err(self.fault(0, format!("{what} = {value} is not between 0 and 86400"))),
        };
        positive("seconds", scenario.seconds)?;
        positive("trials", scenario.trials.into())?;
        if scenario.priority > 99 {
            return Err(self.fault(0, format!("priority = {} is not between 0 and 99", scenario.priority)));
        }
        if scenario.messages == 0 || scenario.messages > noctule_peer::SLOTS_MAX as u64 {
            let largest = noctule_peer::SLOTS_MAX;
            return Err(
                self.fault(0, format!("messages = {} is not between 1 and {largest}", scenario.messages))
            );
        }
        if scenario.name.is_empty() || scenario.name.contains(['/', ' ', '\\']) {
            return Err(self.fault(0, format!("name = \"{}\" is not one word", scenario.name)));
        }
        if scenario.cells.is_empty() {
            return Err(self.fault(0, "there is no [[cells]] section; a scenario needs at least one"));
        }
        let mut dimensions = Vec::new();
        for group in &scenario.cells {
            let modes = &group.get_ref().mode;
            if scenario.arm && modes.values().iter().any(|mode| mode != "one_way") {
                let start = group.span().start;
                return Err(
                    self.fault(start, "arm = true needs mode = \"one_way\" in every cell: poses go one way")
                );
            }
            dimensions.push(self.check_group(group)?);
        }
        for threshold in &scenario.thresholds {
            let statistic = &threshold.get_ref().statistic;
            if !STATISTICS.contains(&statistic.as_str()) {
                let what = format!("statistic = \"{statistic}\" is none of {}", STATISTICS.join(", "));
                return Err(self.fault(threshold.span().start, what));
            }
        }
        Ok(dimensions)
    }

    fn check_group(&self, group: &Spanned<Group>) -> Result<Dimensions, ScenarioError> {
        let start = group.span().start;
        let group = group.get_ref();
        let one_of = |key: &str, values: &[String], known: &[&str]| match values
            .iter()
            .find(|value| !known.contains(&value.as_str()))
        {
            Some(value) => {
                let what = format!("{key} = \"{value}\" is none of {}", known.join(", "));
                Err(self.fault(start, what))
            }
            None => Ok(()),
        };
        let within = |key: &str, value: f64, low: f64, high: f64| match (low..=high).contains(&value) {
            true => Ok(()),
            false => Err(self.fault(start, format!("{key} = {value} is not between {low} and {high}"))),
        };
        let unknown = |error: UnknownWord| self.fault(start, error.to_string());
        let modes = parsed(&group.mode, |word| word.parse()).map_err(unknown)?;
        let waits = parsed(&group.wait, Wait::wanted).map_err(unknown)?;
        let touch = group.touch.parse().map_err(|()| {
            self.fault(start, format!("touch = \"{}\" is none of header, full", group.touch))
        })?;
        one_of("expect", group.expect.as_slice(), &["may_saturate"])?;
        for &payload_bytes in group.payload_bytes.values() {
            within("payload_bytes", payload_bytes as f64, 16.0, 4_194_304.0)?;
        }
        for &rate_hz in group.rate_hz.values() {
            within("rate_hz", rate_hz, 0.0, 10_000_000.0)?;
        }
        for &nodes in group.nodes.values() {
            within("nodes", nodes.into(), 1.0, 64.0)?;
        }
        if let Some(beside) = &group.beside {
            within("beside.payload_bytes", beside.payload_bytes as f64, 16.0, 4_194_304.0)?;
            within("beside.rate_hz", beside.rate_hz, 0.0, 1_000_000.0)?;
        }
        within("hosts", group.hosts.into(), 1.0, 2.0)?;
        let links: Option<Vec<Link>> = group
            .link
            .as_ref()
            .map(|links| links.values().iter().map(|word| Link::from(word.as_str())).collect());
        let is_line = links.as_ref().is_some_and(|links| links.iter().all(|link| *link == Link::Serial));
        if !group.clocks.is_empty() && (!(group.hosts == 2 || is_line) || group.clocks.len() != 2) {
            let what = "clocks needs hosts = 2, or link = \"serial\", and a clock for each side, such as clocks = [\"\", \"offset=3s,ppm=50\"]";
            return Err(self.fault(start, what));
        }
        for link in links.iter().flatten() {
            if let Link::Between(spec) = link {
                self.check_emulated(start, group, spec)?;
            }
        }
        for clock in &group.clocks {
            if let Err(error) = clock.parse::<LocalClock>() {
                return Err(self.fault(start, format!("clocks: {error}")));
            }
        }
        let placements = parsed(&group.placement, |word| word.parse()).map_err(unknown)?;
        Ok(Dimensions { modes, links, waits, placements, touch })
    }

    fn check_emulated(&self, start: usize, group: &Group, spec: &str) -> Result<(), ScenarioError> {
        if group.hosts != 1 || !group.clocks.is_empty() {
            let what = "an emulated link brings hosts of its own, on one clock; leave out hosts and clocks";
            return Err(self.fault(start, what));
        }
        match source::read(spec) {
            Ok(_) => Ok(()),
            Err(error) => Err(self.fault(start, format!("link = \"link:{spec}\": {error}"))),
        }
    }
}

fn parsed<T>(
    words: &Many<String>,
    parse: impl Fn(&str) -> Result<T, UnknownWord>,
) -> Result<Vec<T>, UnknownWord> {
    words.values().iter().map(|word| parse(word)).collect()
}

/// Statistics that a threshold may bound.
const STATISTICS: [&str; 11] =
    ["p50", "p90", "p95", "p99", "p99_9", "max", "mean", "loss", "late", "missed", "ratio_to_floor"];

fn invalid(path: &str, source: &str, offset: usize, what: String) -> ScenarioError {
    let before = source.as_bytes().get(..offset).unwrap_or(source.as_bytes());
    let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
    let column = before.iter().rev().take_while(|&&byte| byte != b'\n').count() + 1;
    ScenarioError::Invalid { path: path.to_owned(), line, column, what }
}

fn three() -> u32 {
    3
}
fn one() -> u32 {
    1
}
fn quarter() -> f64 {
    0.25
}
fn tenth() -> f64 {
    0.1
}
fn ten_thousand() -> u64 {
    10_000
}
fn second_in_ms() -> u64 {
    1000
}
fn round_trip() -> Many<String> {
    Many::One("round_trip".into())
}
fn two() -> Many<u32> {
    Many::One(2)
}
fn sixty_four() -> Many<u64> {
    Many::One(64)
}
fn closed() -> Many<f64> {
    Many::One(0.0)
}
fn block() -> Many<String> {
    Many::One("block".into())
}
fn split() -> Many<String> {
    Many::One("split".into())
}
fn raw() -> Many<String> {
    Many::One("raw".into())
}
fn header() -> String {
    "header".into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> String {
        ScenarioFile::parse("s.toml", text.to_owned()).unwrap_err().to_string()
    }

    #[test]
    fn the_smallest_scenario_has_defaults_for_everything_else() {
        let text = "name = \"x\"\n[[cells]]\npeer = \"udp\"\n";
        let file = ScenarioFile::parse("s.toml", text.into()).unwrap();
        let group = file.scenario.cells[0].get_ref();
        assert_eq!(group.payload_bytes.values(), [64]);
        assert_eq!(group.dimensions.waits, [Wait::Block]);
        assert_eq!((file.scenario.trials, file.scenario.messages), (3, 10_000));
    }

    #[test]
    fn faults_name_file_line_and_the_way_out() {
        assert!(
            fault("name = \"x\"\n\n[[cells]]\npeer = \"udp\"\npayload = 3\n")
                .starts_with("s.toml:5:1: unknown field `payload`")
        );
        assert!(
            fault("name = \"x\"\n[[cells]]\npeer = 3\n")
                .starts_with("s.toml:3:8: expected a value or a list")
        );
        assert!(fault("name = \"x\"\n[[cells]\n").starts_with("s.toml:2:"));
        assert!(fault("name = \"x\"\n").starts_with("s.toml:1:1: missing field `cells`"));
        let text = fault("name = \"x\"\n\n[[cells]]\npeer = \"udp\"\nwait = \"sleep\"\n");
        assert_eq!(text, "s.toml:3:1: wait = \"sleep\" is none of spin, block, hybrid");
        let text = fault("name = \"x\"\n[[cells]]\npeer = \"udp\"\npayload_bytes = [64, 8]\n");
        assert_eq!(text, "s.toml:2:1: payload_bytes = 8 is not between 16 and 4194304");
        let clocks = |keys: &str| fault(&format!("name = \"x\"\n[[cells]]\npeer = \"udp\"\n{keys}\n"));
        assert!(
            clocks("clocks = [\"\", \"\"]")
                .contains("clocks needs hosts = 2, or link = \"serial\", and a clock for each side")
        );
        assert!(clocks("hosts = 2\nclocks = [\"\"]").contains("clocks needs hosts = 2"));
        assert!(clocks("hosts = 2\nclocks = [\"\", \"ppm=x\"]").contains("clocks: ppm=x is no rate"));
        let link = |keys: &str| fault(&format!("name = \"x\"\n[[cells]]\npeer = \"udp\"\n{keys}\n"));
        assert!(link("link = \"link:delay=2\"").starts_with("s.toml:2:1: link = \"link:delay=2\": "));
        assert!(link("link = [\"udp\", \"link:replay:/no/such\"]").contains("replay=/no/such: cannot read"));
        assert!(link("link = \"link:delay=2ms\"\nhosts = 2").contains("brings hosts of its own"));
        let text = fault("name = \"x\"\n[[cells]]\npeer = \"udp\"\nplacement = \"left\"\n");
        assert!(text.contains("placement = \"left\" is none of split, same, free"));
        assert!(fault("name = \"x\"\ntrials = 0\n[[cells]]\npeer = \"udp\"\n").contains("trials = 0"));
        let threshold =
            "name = \"x\"\n[[cells]]\npeer = \"udp\"\n[[thresholds]]\nstatistic = \"p98\"\nmax = 1\n";
        assert!(fault(threshold).starts_with("s.toml:4:1: statistic = \"p98\" is none of p50"));
    }

    #[test]
    fn missing_file_is_one_sentence() {
        let error = ScenarioFile::read(Path::new("/nonexistent/s.toml")).unwrap_err();
        assert!(error.to_string().starts_with("cannot read the scenario /nonexistent/s.toml: No such file"));
    }
}
