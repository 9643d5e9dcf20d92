//! The main table: one row per experiment, with its range drawn beside the figures.

use serde::Serialize;

use super::{WITHHELD, why};
use crate::series::CellSeries;
use noctule_lab::merge::MergedCell;
use noctule_lab::notation::{count, duration, three_digits};
use noctule_lab::statistics::LatencySummary;

/// Position on the common logarithmic axis of the ranges, in per cent.
pub(super) struct RangeAxis {
    low: f64,
    high: f64,
}

#[derive(Serialize)]
pub(super) struct Tick {
    at: f64,
    label: String,
}

#[derive(Serialize)]
struct Range {
    min: f64,
    p50: f64,
    p99: f64,
    max: f64,
    floor: Option<f64>,
}

impl RangeAxis {
    pub(super) fn of(merged: &[MergedCell]) -> Option<Self> {
        let summaries = || merged.iter().filter_map(|cell| cell.latency_ns);
        let low = summaries().map(|summary| summary.min.max(1)).min()? as f64;
        let high = summaries().map(|summary| summary.max.max(2)).max()? as f64;
        Some(Self { low: low.log10() - 0.05, high: high.log10() + 0.05 })
    }

    fn at(&self, ns: f64) -> f64 {
        let share = (ns.max(1.0).log10() - self.low) / (self.high - self.low);
        (share.clamp(0.0, 1.0) * 1e4).round() / 100.0
    }

    pub(super) fn ticks(&self) -> Vec<Tick> {
        let decades = self.low.ceil() as i32..=self.high.floor() as i32;
        let step = (decades.end() - decades.start()) / 5 + 1;
        decades
            .step_by(step as usize)
            .map(|decade| Tick { at: self.at(10f64.powi(decade)), label: duration(10f64.powi(decade)) })
            .collect()
    }

    fn range(&self, summary: &LatencySummary, floor_ns: Option<i64>) -> Option<Range> {
        let p50 = summary.p50?;
        Some(Range {
            min: self.at(summary.min as f64),
            p50: self.at(p50 as f64),
            p99: self.at(summary.p99.unwrap_or(p50) as f64),
            max: self.at(summary.max as f64),
            floor: floor_ns.map(|ns| self.at(ns as f64)),
        })
    }
}

#[derive(Serialize)]
struct Figure {
    text: String,
    sort: String,
    title: Option<String>,
}

#[derive(Serialize)]
pub(super) struct Row {
    peer: String,
    details: Vec<String>,
    full: String,
    class: &'static str,
    colour: usize,
    valid: bool,
    why: String,
    samples: u64,
    samples_text: String,
    figures: Vec<Figure>,
    range: Option<Range>,
}

impl Row {
    pub(super) fn of(
        cell: &MergedCell,
        (series, details): (&CellSeries, Vec<String>),
        axis: Option<&RangeAxis>,
    ) -> Self {
        let floor_ns = cell.floor.as_ref().map(|floor| floor.p50_ns);
        Self {
            peer: series.peer.clone(),
            details,
            full: series.full.clone(),
            class: match (cell.valid, cell.is_floor) {
                (false, _) => "invalid",
                (true, true) => "floor",
                (true, false) => "",
            },
            colour: series.colour,
            valid: cell.valid,
            why: why(cell),
            samples: cell.samples,
            samples_text: match cell.trials.len() {
                1 => count(cell.samples),
                trials => format!("{} in {trials}", count(cell.samples)),
            },
            figures: figures(cell),
            range: axis.and_then(|axis| axis.range(&cell.latency_ns?, floor_ns)),
        }
    }
}

/// The figures of a row in the order of the table's columns.
fn figures(cell: &MergedCell) -> Vec<Figure> {
    let summary = cell.latency_ns;
    let spread = cell.relative_half_spread();
    vec![
        Figure::time(summary.and_then(|s| s.p50)),
        Figure {
            text: spread.map_or(WITHHELD.to_owned(), |x| format!("{:.1} %", x * 100.0)),
            sort: spread.map_or(String::new(), |x| x.to_string()),
            title: cell.p50_spread_ns.map(|(low, high)| {
                let (low, high) = (duration(low as f64), duration(high as f64));
                format!("medians from {low} to {high}")
            }),
        },
        Figure::time(summary.and_then(|s| s.p99)),
        Figure::time(summary.and_then(|s| s.p99_9)),
        Figure::time(summary.map(|s| s.max)),
        Figure::tally(cell.lost, cell.sent),
        Figure::tally(cell.late, cell.received),
        Figure {
            text: cell.ratio_to_floor.map_or(WITHHELD.to_owned(), three_digits),
            sort: cell.ratio_to_floor.map_or(String::new(), |x| x.to_string()),
            title: cell
                .floor
                .as_ref()
                .map(|floor| format!("floor: {}, p50 {}", floor.name, duration(floor.p50_ns as f64))),
        },
    ]
}

impl Figure {
    fn time(ns: Option<i64>) -> Self {
        Self {
            text: ns.map_or(WITHHELD.to_owned(), |ns| duration(ns as f64)),
            sort: ns.map_or(String::new(), |ns| ns.to_string()),
            title: match ns {
                None => Some("fewer than ten samples beyond it".to_owned()),
                Some(_) => None,
            },
        }
    }

    fn tally(n: u64, of: u64) -> Self {
        let share = three_digits(n as f64 * 100.0 / of.max(1) as f64);
        Self {
            text: match n {
                0 => "0".to_owned(),
                n => format!("{} ({share} %)", count(n)),
            },
            sort: n.to_string(),
            title: None,
        }
    }
}
