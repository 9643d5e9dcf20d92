//! Data series of the charts, computed once for the page and for the pictures.
//!
//! Every chart is made from raw samples of valid experiments. Reduction never hides the worst: a
//! percentile curve stops where fewer than ten samples lie beyond but keeps the maximum as a point of
//! its own, and of the dots over time the largest of every interval is always drawn.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use noctule_lab::cell_statistics::{end_to_end_samples, latencies};
use noctule_lab::dimensions::Mode;
use noctule_lab::merge::{MergedCell, pool};
use noctule_lab::run::{Block, CellKey, Floor, Run};
use noctule_lab::samples::{CellSamples, Sample};
use noctule_lab::statistics::{SAMPLES_BEYOND, order_statistic, percentile};
use noctule_lab::{labels, notation};

/// Dots over time drawn per experiment, all its trials together.
pub const DOTS_MAX: usize = 2_000;
/// Dots of a whole run: they are most of a page, which must open at once.
pub const DOTS_TOTAL_MAX: usize = 100_000;
/// Histogram bins per decade: each is 5.9 % wide.
pub const BINS_PER_DECADE: f64 = 40.0;
/// Points of a percentile curve per nine.
const CURVE_POINTS_PER_NINE: usize = 20;
/// Distinct colours; peers beyond share them.
pub const COLOURS: usize = 8;

/// Everything the charts of one run draw.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Charts {
    /// One entry per experiment, in the order of the merged cells.
    pub cells: Vec<CellSeries>,
    /// Latency against payload or rate, one per family with at least three steps.
    pub sweeps: Vec<Sweep>,
    /// Payload × rate, one per family with at least two of each.
    pub heat_maps: Vec<HeatMap>,
}

/// The series of one experiment; empty if it was not valid.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CellSeries {
    /// Shortest label that distinguishes it from the others of the run.
    pub label: String,
    /// The peer, and its other properties for labels that distinguish it from a few of the others.
    pub peer: String,
    /// See [`labels::properties`].
    pub properties: [Option<String>; labels::PROPERTIES],
    /// Every property.
    pub full: String,
    /// Experiments of one group can be compared: same mode, payload and rate.
    pub group: String,
    /// Number of its colour, below [`COLOURS`].
    pub colour: usize,
    /// True for the built-in floors.
    pub is_floor: bool,
    /// The floor it is compared with.
    pub floor: Option<Floor>,
    /// Latencies pooled.
    pub samples: u64,
    /// Percentile curve: nines (−log₁₀(1 − q)) and nanoseconds.
    pub curve: Vec<(f64, i64)>,
    /// The largest latency, at log₁₀ N nines; `None` without samples.
    pub max: Option<(f64, i64)>,
    /// Counts per bin of [`BINS_PER_DECADE`].
    pub histogram: Histogram,
    /// Latency over time.
    pub trials: Vec<TrialDots>,
    /// Chain only: latency from the scheduled send to each node.
    pub cumulative: Vec<CumulativeHop>,
}

/// Counts of latencies in bins of equal width in the logarithm.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Histogram {
    /// Bin *k* counts latencies from 10^(k/40) ns up to the next; this is the *k* of the first count.
    pub first_bin: i32,
    /// One count per bin.
    pub counts: Vec<u64>,
}

/// Dots of one trial.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrialDots {
    /// Trial number.
    pub trial: u32,
    /// Start of the trial, seconds from the first of the run.
    pub start_s: f64,
    /// Samples there were.
    pub samples: usize,
    /// Scheduled send, microseconds from the start of the trial.
    pub time_us: Vec<i64>,
    /// Latency in nanoseconds, one per time.
    pub latency_ns: Vec<i64>,
    /// Tenths of the trial: the chart's table.
    pub blocks: Vec<Block>,
}

/// Latency from the scheduled send of a chain's first node up to one of the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CumulativeHop {
    /// Number of the node.
    pub node: u32,
    /// Median.
    pub p50_ns: i64,
    /// 99th percentile; `null` with fewer than 10 samples beyond it.
    pub p99_ns: Option<i64>,
}

/// Latency of one family of experiments against the one parameter in which they differ.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sweep {
    /// The family.
    pub label: String,
    /// `payload_bytes` or `rate_hz`.
    pub parameter: &'static str,
    /// Number of its peer's colour.
    pub colour: usize,
    /// True for the built-in floors.
    pub is_floor: bool,
    /// Latencies pooled, of all its experiments.
    pub samples: u64,
    /// Ascending in the parameter.
    pub points: Vec<SweepPoint>,
}

/// One experiment of a sweep.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SweepPoint {
    /// Payload in bytes or rate in hertz.
    pub x: f64,
    /// Median.
    pub p50_ns: i64,
    /// 99th percentile; `null` with fewer than 10 samples beyond it.
    pub p99_ns: Option<i64>,
}

/// Latency of one family over payload and rate.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HeatMap {
    /// The family.
    pub label: String,
    /// Latencies pooled, of all its experiments.
    pub samples: u64,
    /// Rows, ascending.
    pub payload_bytes: Vec<u64>,
    /// Columns, ascending.
    pub rate_hz: Vec<f64>,
    /// `p50_ns[row][column]`; `null` where not measured or not valid.
    pub p50_ns: Vec<Vec<Option<i64>>>,
    /// `p99_ns[row][column]`.
    pub p99_ns: Vec<Vec<Option<i64>>>,
}

impl Charts {
    /// Computes the material of every chart.
    pub fn of(run: &Run, merged: &[MergedCell], samples: &[CellSamples]) -> Self {
        let keys: Vec<CellKey> = merged.iter().map(|cell| cell.key.clone()).collect();
        let labels = labels::short_labels(&keys);
        let colours = colours(merged);
        let origin_ns = samples.iter().filter_map(|cell| start_ns(cell)).min();
        let dots_max = DOTS_MAX.min(DOTS_TOTAL_MAX / merged.len().max(1));
        let shared = (origin_ns.unwrap_or(0), dots_max);
        let cells = merged
            .iter()
            .zip(labels)
            .zip(&colours)
            .map(|((cell, label), &colour)| cell_series(run, samples, (cell, label, colour), shared))
            .collect();
        let mut sweeps = sweeps(merged, &colours, "payload_bytes", |key| {
            Some(std::mem::take(&mut key.payload_bytes) as f64)
        });
        sweeps.extend(self::sweeps(merged, &colours, "rate_hz", |key| {
            key.rate_mhz.take().map(|mhz| mhz as f64 / 1e3)
        }));
        Self { cells, sweeps, heat_maps: heat_maps(merged) }
    }
}

/// Colour by peer, so that a peer is recognised across charts. Peers under test choose their colours
/// before the floors do.
fn colours(merged: &[MergedCell]) -> Vec<usize> {
    let mut peers: Vec<&str> = Vec::new();
    for floors in [false, true] {
        for cell in merged.iter().filter(|cell| cell.is_floor == floors) {
            if !peers.contains(&cell.key.peer.as_str()) {
                peers.push(&cell.key.peer);
            }
        }
    }
    merged
        .iter()
        .map(|cell| {
            let peer = peers.iter().position(|peer| *peer == cell.key.peer);
            peer.unwrap_or(0) % COLOURS
        })
        .collect()
}

fn cell_series(
    run: &Run,
    samples: &[CellSamples],
    (cell, label, colour): (&MergedCell, String, usize),
    (origin_ns, dots_max): (i64, usize),
) -> CellSeries {
    let mut series = CellSeries {
        label,
        peer: cell.key.peer.clone(),
        properties: labels::properties(&cell.key),
        full: cell.key.to_string(),
        group: group(&cell.key),
        colour,
        is_floor: cell.is_floor,
        floor: cell.floor.clone(),
        samples: cell.samples,
        curve: Vec::new(),
        max: None,
        histogram: Histogram::default(),
        trials: Vec::new(),
        cumulative: Vec::new(),
    };
    if !cell.valid {
        return series;
    }
    let mut pooled = pool(run, samples, &cell.trials);
    pooled.sort_unstable();
    series.curve = curve(&pooled);
    series.max = pooled.last().map(|&max| ((pooled.len() as f64).log10(), max));
    series.histogram = histogram(&pooled);
    let dots_max = dots_max / cell.trials.len();
    for &trial in &cell.trials {
        let Some(own) = samples.get(trial).filter(|own| !own.is_empty()) else {
            continue;
        };
        let recorded = &run.cells[trial];
        let arrivals = end_to_end_samples(recorded.mode, recorded.measured_nodes(), own);
        let mut dots = trial_dots(&arrivals, dots_max);
        dots.trial = recorded.trial;
        dots.blocks.clone_from(&recorded.blocks);
        dots.start_s = start_ns(own).map_or(0.0, |start| (start - origin_ns) as f64 / 1e9);
        series.trials.push(dots);
    }
    if cell.key.mode == Mode::Chain {
        series.cumulative = cumulative(samples, cell);
    }
    series
}

fn group(key: &CellKey) -> String {
    let mut group = format!("{}, {}", labels::in_words(key.mode), notation::size(key.payload_bytes));
    if let Some(rate_mhz) = key.rate_mhz {
        group = format!("{group}, {}", notation::rate(rate_mhz));
    }
    group
}

fn start_ns(samples: &[Sample]) -> Option<i64> {
    samples.iter().map(|sample| sample.scheduled_ns).min()
}

/// Ascending latencies to a percentile curve over nines.
pub fn curve(sorted: &[i64]) -> Vec<(f64, i64)> {
    let Some(drawn_up_to) = sorted.len().checked_sub(1 + SAMPLES_BEYOND) else {
        return Vec::new();
    };
    let nines_max = (sorted.len() as f64).log10();
    let steps = (nines_max * CURVE_POINTS_PER_NINE as f64) as usize;
    let median = std::f64::consts::LOG10_2;
    let mut nines: Vec<f64> = (0..=steps).map(|step| step as f64 / CURVE_POINTS_PER_NINE as f64).collect();
    nines.push(median);
    nines.sort_by(f64::total_cmp);
    nines
        .into_iter()
        .filter_map(|nines| {
            let q = 1.0 - 10f64.powf(-nines);
            let rank = (q * sorted.len() as f64 + 1e-9) as usize;
            (rank <= drawn_up_to).then(|| Some((nines, order_statistic(sorted, q)?)))?
        })
        .collect()
}

/// Counts ascending latencies; what is below 1 ns falls into the bin of 1 ns.
fn histogram(sorted: &[i64]) -> Histogram {
    let bin = |ns: i64| ((ns.max(1) as f64).log10() * BINS_PER_DECADE + 1e-9).floor() as i32;
    let (Some(&min), Some(&max)) = (sorted.first(), sorted.last()) else {
        return Histogram::default();
    };
    let first_bin = bin(min);
    let mut counts = vec![0; (bin(max) - first_bin + 1) as usize];
    for &latency in sorted {
        counts[(bin(latency) - first_bin) as usize] += 1;
    }
    Histogram { first_bin, counts }
}

/// Thins arrivals to `dots_max`: of each interval the largest and the one in its middle.
fn trial_dots(arrivals: &[&Sample], dots_max: usize) -> TrialDots {
    let start_ns = arrivals.iter().map(|sample| sample.scheduled_ns).min();
    let mut chosen: Vec<&Sample> = Vec::new();
    if arrivals.len() <= dots_max {
        chosen.extend(arrivals);
    } else {
        let intervals = (dots_max / 2).max(1);
        let bound = |interval: usize| interval * arrivals.len() / intervals;
        for interval in 0..intervals {
            let members = &arrivals[bound(interval)..bound(interval + 1)];
            let middle = members.len() / 2;
            let largest = (0..members.len()).max_by_key(|&at| members[at].latency_ns());
            let picks: BTreeSet<usize> = largest.into_iter().chain([middle]).collect();
            chosen.extend(picks.into_iter().map(|at| members[at]));
        }
    }
    TrialDots {
        trial: 0,
        start_s: 0.0,
        samples: arrivals.len(),
        time_us: chosen.iter().map(|sample| (sample.scheduled_ns - start_ns.unwrap_or(0)) / 1_000).collect(),
        latency_ns: chosen.iter().map(|sample| sample.latency_ns()).collect(),
        blocks: Vec::new(),
    }
}

fn cumulative(samples: &[CellSamples], cell: &MergedCell) -> Vec<CumulativeHop> {
    (1..cell.key.nodes)
        .filter_map(|node| {
            let mut pooled: Vec<i64> = cell
                .trials
                .iter()
                .filter_map(|&trial| samples.get(trial))
                .flat_map(|own| latencies(own, u16::try_from(node).unwrap_or(u16::MAX)))
                .collect();
            pooled.sort_unstable();
            Some(CumulativeHop {
                node,
                p50_ns: percentile(&pooled, 0.50)?,
                p99_ns: percentile(&pooled, 0.99),
            })
        })
        .collect()
}

/// Families that differ in nothing but the parameter that `take` removes from their keys.
fn sweeps(
    merged: &[MergedCell],
    colours: &[usize],
    parameter: &'static str,
    take: impl Fn(&mut CellKey) -> Option<f64>,
) -> Vec<Sweep> {
    let mut families: Vec<(CellKey, Sweep)> = Vec::new();
    for (cell, &colour) in merged.iter().zip(colours) {
        let mut key = cell.key.clone();
        let (Some(x), Some(latency)) = (take(&mut key), cell.latency_ns) else {
            continue;
        };
        let Some(p50_ns) = latency.p50 else { continue };
        let point = SweepPoint { x, p50_ns, p99_ns: latency.p99 };
        match families.iter_mut().find(|(family, _)| *family == key) {
            Some((_, sweep)) => {
                sweep.points.push(point);
                sweep.samples += cell.samples;
            }
            None => families.push((
                key,
                Sweep {
                    label: String::new(),
                    parameter,
                    colour,
                    is_floor: cell.is_floor,
                    samples: cell.samples,
                    points: vec![point],
                },
            )),
        }
    }
    families.retain(|(_, sweep)| sweep.points.len() >= 3);
    let keys: Vec<CellKey> = families.iter().map(|(key, _)| key.clone()).collect();
    let labels = labels::short_labels(&keys);
    families
        .into_iter()
        .zip(labels)
        .map(|((_, mut sweep), label)| {
            sweep.points.sort_by(|a, b| a.x.total_cmp(&b.x));
            Sweep { label, ..sweep }
        })
        .collect()
}

fn heat_maps(merged: &[MergedCell]) -> Vec<HeatMap> {
    let mut families: BTreeMap<CellKey, Vec<&MergedCell>> = BTreeMap::new();
    for cell in merged.iter().filter(|cell| cell.key.rate_mhz.is_some()) {
        let mut key = cell.key.clone();
        key.payload_bytes = 0;
        key.rate_mhz = None;
        families.entry(key).or_default().push(cell);
    }
    let axes = |cells: &[&MergedCell]| {
        let payloads: BTreeSet<u64> = cells.iter().map(|cell| cell.key.payload_bytes).collect();
        let rates: BTreeSet<u64> = cells.iter().filter_map(|cell| cell.key.rate_mhz).collect();
        (payloads, rates)
    };
    families.retain(|_, cells| {
        let (payloads, rates) = axes(cells);
        payloads.len() >= 2 && rates.len() >= 2
    });
    let keys: Vec<CellKey> = families.keys().cloned().collect();
    let labels = labels::short_labels(&keys);
    families
        .into_values()
        .zip(labels)
        .map(|(cells, label)| {
            let (payloads, rates) = axes(&cells);
            let grid = |figure: fn(&MergedCell) -> Option<i64>| {
                let at = |payload: u64, rate: u64| {
                    cells
                        .iter()
                        .find(|cell| cell.key.payload_bytes == payload && cell.key.rate_mhz == Some(rate))
                        .and_then(|cell| figure(cell))
                };
                payloads
                    .iter()
                    .map(|&payload| rates.iter().map(|&rate| at(payload, rate)).collect())
                    .collect()
            };
            HeatMap {
                label,
                samples: cells.iter().map(|cell| cell.samples).sum(),
                p50_ns: grid(|cell| cell.latency_ns?.p50),
                p99_ns: grid(|cell| cell.latency_ns?.p99),
                payload_bytes: payloads.into_iter().collect(),
                rate_hz: rates.into_iter().map(|mhz| mhz as f64 / 1e3).collect(),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests;
