//! Two runs compared, cell by cell, with a verdict in words.
//!
//! A change is reported only if the whole interval of the ratio lies beyond [`MINIMUM_EFFECT`]. That is
//! stricter than "the interval excludes 1": a run of eight floors makes sixteen comparisons, and two
//! runs of one machine differ by a per cent or two for reasons nobody can mend. The cost is power:
//! with ten trials and 3 % between trials a change of 12 % is found almost surely, one of 7 % hardly.
//! "No change detected" therefore always comes with the interval.
//!
//! How the interval is made: [`interval`]. Every draw follows from the seed, which is printed.

pub mod interval;

use std::fmt;

use serde::Serialize;

use self::interval::{CONFIDENCE, RESAMPLES, RatioInterval, Trials};
use crate::merge::group;
use crate::notation::three_digits;
use crate::random::Random;
use crate::run::{Block, Cell, CellKey, Run};
use crate::validity::sentences;

/// Smallest change that is reported, as a share.
pub const MINIMUM_EFFECT: f64 = 0.05;
/// Trials each run needs of a cell.
pub const TRIALS_MIN: usize = 3;
/// Blocks each trial needs.
pub const BLOCKS_MIN: usize = 10;
/// Intervals wider than this either way are called so in the verdict.
const WIDE: f64 = 1.2;

/// Result of `lab compare`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// Seed of the resampling.
    pub seed: u64,
    /// Probability that an interval holds the true ratio.
    pub confidence: f64,
    /// Smallest change that is reported, as a share.
    pub minimum_effect: f64,
    /// True if the runs were measured in turns and compared trial by trial.
    pub paired: bool,
    /// Cells of both runs, in the order of A.
    pub cells: Vec<CellComparison>,
    /// Cells that only A has.
    pub only_in_a: Vec<String>,
    /// Cells that only B has.
    pub only_in_b: Vec<String>,
    /// Facts of machine and software in which the runs differ.
    pub differences: Vec<Difference>,
}

/// One cell of both runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CellComparison {
    /// The experiment.
    pub cell: String,
    /// Median.
    pub p50: Effect,
    /// 99th percentile.
    pub p99: Effect,
}

/// A ratio B / A and what it means.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Effect {
    /// Estimate; `null` if the trials allow none.
    pub ratio: Option<f64>,
    /// Lower end of the interval.
    pub low: Option<f64>,
    /// Upper end of the interval.
    pub high: Option<f64>,
    /// The verdict for programs.
    pub change: Change,
    /// The verdict for people.
    pub verdict: String,
}

/// Direction of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// None detected.
    None,
    /// B takes longer.
    Slower,
    /// B takes less time.
    Faster,
    /// The runs do not say.
    Unknown,
}

/// A fact that is not the same in both runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Its name.
    pub what: String,
    /// Value in A.
    pub a: String,
    /// Value in B.
    pub b: String,
}

/// Compares every cell that both runs have.
pub fn compare(a: &Run, b: &Run, seed: u64) -> Comparison {
    compare_with(a, b, seed, RESAMPLES)
}

fn compare_with(a: &Run, b: &Run, seed: u64, resamples: usize) -> Comparison {
    let (groups_a, groups_b) = (group(a), group(b));
    let paired = a.interleaving.is_some() && a.interleaving == b.interleaving;
    let mut random = Random::new(seed);
    let mut cells = Vec::new();
    for (key, trials_a) in &groups_a {
        let Some((_, trials_b)) = groups_b.iter().find(|(other, _)| other == key) else {
            continue;
        };
        let mut sides = Sides::of((a, trials_a), (b, trials_b));
        if paired {
            sides.keep_pairs();
        }
        let mut effect = |figure: Figure| sides.effect(figure, paired, resamples, &mut random);
        cells.push(CellComparison { cell: key.to_string(), p50: effect(P50), p99: effect(P99) });
    }
    let missing = |from: &[(CellKey, Vec<usize>)], of: &[(CellKey, Vec<usize>)]| {
        of.iter()
            .filter(|(key, _)| from.iter().all(|(other, _)| other != key))
            .map(|(key, _)| key.to_string())
            .collect()
    };
    Comparison {
        seed,
        confidence: CONFIDENCE,
        minimum_effect: MINIMUM_EFFECT,
        paired,
        cells,
        only_in_a: missing(&groups_b, &groups_a),
        only_in_b: missing(&groups_a, &groups_b),
        differences: differences(a, b),
    }
}

/// A percentile of trials and their blocks, and how it is called.
#[derive(Clone, Copy)]
struct Figure {
    name: &'static str,
    /// `None` if the trial has too few samples for it.
    of_trial: fn(&Cell) -> Option<i64>,
    of_block: fn(&Block) -> i64,
}

const P50: Figure =
    Figure { name: "p50", of_trial: |cell| cell.latency_ns?.p50, of_block: |block| block.p50_ns };

const P99: Figure =
    Figure { name: "p99", of_trial: |cell| cell.latency_ns?.p99, of_block: |block| block.p99_ns };

impl Figure {
    /// Logarithms of the blocks of a trial, shifted so that their mean is the trial's own figure: the
    /// blocks lend their noise, but a percentile of few samples is not that of many.
    fn logarithms(self, cell: &Cell) -> Vec<f64> {
        let log = |ns: i64| (ns.max(1) as f64).ln();
        let blocks: Vec<f64> = cell.blocks.iter().map(|block| log((self.of_block)(block))).collect();
        let mean = blocks.iter().sum::<f64>() / blocks.len() as f64;
        let shift = (self.of_trial)(cell).map_or(0.0, |ns| log(ns) - mean);
        blocks.into_iter().map(|block| block + shift).collect()
    }
}

/// The trials of one cell in both runs.
struct Sides<'a> {
    a: Vec<&'a Cell>,
    b: Vec<&'a Cell>,
}

impl<'a> Sides<'a> {
    fn of((a, in_a): (&'a Run, &[usize]), (b, in_b): (&'a Run, &[usize])) -> Self {
        Self {
            a: in_a.iter().map(|&trial| &a.cells[trial]).collect(),
            b: in_b.iter().map(|&trial| &b.cells[trial]).collect(),
        }
    }

    /// Keeps the trials that both runs have, in the same order.
    fn keep_pairs(&mut self) {
        let numbers = |cells: &[&Cell]| cells.iter().map(|cell| cell.trial).collect::<Vec<_>>();
        let (in_a, in_b) = (numbers(&self.a), numbers(&self.b));
        self.a.retain(|cell| in_b.contains(&cell.trial));
        self.b.retain(|cell| in_a.contains(&cell.trial));
        self.a.sort_by_key(|cell| cell.trial);
        self.b.sort_by_key(|cell| cell.trial);
    }

    fn effect(&self, figure: Figure, paired: bool, resamples: usize, random: &mut Random) -> Effect {
        if let Some(why_not) = self.why_not(figure) {
            return Effect {
                ratio: None,
                low: None,
                high: None,
                change: Change::Unknown,
                verdict: format!("{}: {why_not}", figure.name),
            };
        }
        let logarithms =
            |cells: &[&Cell]| -> Trials { cells.iter().map(|cell| figure.logarithms(cell)).collect() };
        let (a, b) = (logarithms(&self.a), logarithms(&self.b));
        let interval = match paired {
            true => interval::of_pairs(&a, &b, resamples, random),
            false => interval::of_independent(&a, &b, resamples, random),
        };
        judge(figure.name, interval)
    }

    /// Why the cells cannot be compared, and the way out; `None` if they can.
    fn why_not(&self, figure: Figure) -> Option<String> {
        for (name, side) in [("A", &self.a), ("B", &self.b)] {
            if let Some(cell) = side.iter().find(|cell| !cell.valid) {
                let why = sentences(&cell.why_invalid);
                return Some(format!("not compared, trial {} of {name} is invalid: {why}", cell.trial));
            }
        }
        let (a, b) = (self.a.len(), self.b.len());
        if a.min(b) < TRIALS_MIN {
            return Some(format!(
                "too few trials to say: A has {a}, B has {b}; measure at least {TRIALS_MIN}, better 10"
            ));
        }
        let cells = || self.a.iter().chain(&self.b);
        let blocks = cells().map(|cell| cell.blocks.len()).min().unwrap_or(0);
        if blocks < BLOCKS_MIN {
            return Some(format!(
                "too few blocks to say: a trial has {blocks}, {BLOCKS_MIN} are needed; measure longer"
            ));
        }
        let unsupported = cells().any(|cell| (figure.of_trial)(cell).is_none());
        unsupported.then(|| {
            let name = figure.name;
            format!("too few samples to say: a trial has fewer than ten beyond its {name}; measure longer")
        })
    }
}

fn judge(name: &str, interval: RatioInterval) -> Effect {
    let RatioInterval { ratio, low, high } = interval;
    let bound = 1.0 + MINIMUM_EFFECT;
    let range = |low: f64, high: f64| format!("{}–{}", three_digits(low), three_digits(high));
    let (change, verdict) = if low > bound {
        let times = three_digits(ratio);
        let verdict = format!("B is {times}× slower at {name} ({})", range(low, high));
        (Change::Slower, verdict)
    } else if high < 1.0 / bound {
        let times = three_digits(1.0 / ratio);
        let range = range(1.0 / high, 1.0 / low);
        (Change::Faster, format!("B is {times}× faster at {name} ({range})"))
    } else {
        let range = range(low, high);
        let wide =
            if high > WIDE || low < 1.0 / WIDE { "; the trials vary too much to see less" } else { "" };
        (Change::None, format!("no change detected at {name} ({range}{wide})"))
    };
    Effect { ratio: Some(ratio), low: Some(low), high: Some(high), change, verdict }
}

fn differences(a: &Run, b: &Run) -> Vec<Difference> {
    let facts = |run: &Run| {
        let host = &run.host;
        let mut facts = vec![
            ("processor".to_owned(), host.cpu.clone()),
            ("cores".to_owned(), host.cores.to_string()),
            ("kernel".to_owned(), host.kernel.clone()),
            ("governor".to_owned(), host.governor.clone().unwrap_or_default()),
            ("commit".to_owned(), host.commit.clone().unwrap_or_default()),
            ("scenario".to_owned(), run.scenario.name.clone()),
        ];
        let version = |(peer, version): (&String, &String)| (format!("{peer} version"), version.clone());
        facts.extend(host.versions.iter().map(version));
        let found = |(check, found): (&String, &String)| (check.clone(), found.clone());
        facts.extend(host.fingerprint.iter().map(found));
        facts
    };
    let (in_a, in_b) = (facts(a), facts(b));
    let mut names: Vec<&String> = in_a.iter().map(|(name, _)| name).collect();
    let further = in_b.iter().map(|(name, _)| name);
    names.extend(further.filter(|name| in_a.iter().all(|(other, _)| other != *name)));
    let value = |facts: &[(String, String)], name: &String| {
        let found = facts.iter().find(|(other, _)| other == name);
        found.map_or("–".to_owned(), |(_, value)| value.clone())
    };
    names
        .into_iter()
        .map(|name| Difference { what: name.clone(), a: value(&in_a, name), b: value(&in_b, name) })
        .filter(|difference| difference.a != difference.b && !is_mere_load(difference))
        .collect()
}

/// The load average is never the same twice; it differs if the doctor judges it differently.
fn is_mere_load(difference: &Difference) -> bool {
    let state = |found: &str| found.split(':').next().map(str::to_owned);
    difference.what == "load" && state(&difference.a) == state(&difference.b)
}

/// For the terminal: what differs, a line per figure, and how it was found.
impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for difference in &self.differences {
            let Difference { what, a, b } = difference;
            writeln!(f, "{what} differs: A {a}, B {b}")?;
        }
        for cell in &self.cells {
            writeln!(f, "{}", cell.cell)?;
            writeln!(f, "    {}", cell.p50.verdict)?;
            writeln!(f, "    {}", cell.p99.verdict)?;
        }
        for (name, cells) in [("A", &self.only_in_a), ("B", &self.only_in_b)] {
            for cell in cells {
                writeln!(f, "only in {name}: {cell}")?;
            }
        }
        if self.cells.is_empty() {
            writeln!(f, "the runs have no cell in common")?;
        }
        let how = match self.paired {
            true => "trial by trial, measured in turns",
            false => "trials resampled independently",
        };
        write!(
            f,
            "intervals at {} %, changes below {} % are not reported; {how}; seed {}",
            self.confidence * 100.0,
            self.minimum_effect * 100.0,
            self.seed
        )
    }
}

#[cfg(test)]
mod tests;
