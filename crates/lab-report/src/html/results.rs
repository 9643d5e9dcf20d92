//! The main table: one row per experiment, with its range drawn beside the figures.

use serde::Serialize;

use super::why;
use crate::columns::{Experiment, Figure, Table};
use crate::series::CellSeries;
use noctule_lab::merge::MergedCell;
use noctule_lab::notation::duration;
use noctule_lab::run::Run;
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
pub(super) struct Row {
    peer: String,
    details: Vec<String>,
    full: String,
    class: &'static str,
    colour: usize,
    valid: bool,
    why: String,
    /// Figures of the table's columns; of an invalid experiment those up to the first that needs a summary.
    figures: Vec<Figure>,
    /// Columns without a figure, where the reason stands.
    withheld: usize,
    range: Option<Range>,
}

impl Row {
    pub(super) fn of(
        run: &Run,
        cell: &MergedCell,
        (series, details): (&CellSeries, Vec<String>),
        axis: Option<&RangeAxis>,
    ) -> Self {
        let experiment = Experiment::of(run, cell);
        let columns = Table::Page.columns().take_while(|column| cell.valid || column.is_known_if_invalid);
        let figures: Vec<Figure> = columns.map(|column| (column.of)(&experiment)).collect();
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
            withheld: Table::Page.columns().count() - figures.len(),
            figures,
            range: axis.and_then(|axis| axis.range(&cell.latency_ns?, floor_ns)),
        }
    }
}
