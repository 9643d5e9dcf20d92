//! One run from scenario to results: plan, measure, compare with floors, judge thresholds.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::directory::Directory;
use crate::engine::{Engine, EngineError, Measured, Observer, Settings};
use crate::merge::{MergedCell, merge};
use crate::plan::{Choice, Plan};
use crate::run::{Cell, Run, SCHEMA, ScenarioRecord, ThresholdResult};
use crate::samples::CellSamples;
use crate::scenario::{ScenarioError, ScenarioFile, Threshold};
use crate::{comparison_floor, doctor, host};

/// Why a scenario could not be run.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// Something in the file.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// Something about the machine.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The processor set cannot be read.
    #[error("cannot read which cores this process may use: {0}")]
    Cores(std::io::Error),
    /// Nothing is left to measure.
    #[error("nothing to measure: {0}")]
    Empty(String),
}

/// Runs a scenario with the peers of `directory`.
pub fn run(
    file: &ScenarioFile,
    directory: &Directory,
    choice: &Choice,
    interrupted: Arc<AtomicBool>,
    observer: &mut dyn Observer,
) -> Result<(Run, Vec<CellSamples>), SessionError> {
    let cores = noctule_sys::scheduling::allowed_cores().map_err(SessionError::Cores)?;
    let plan = Plan::expand(file, directory, &cores, choice)?;
    if plan.cells.is_empty() {
        let why: Vec<String> = plan.skipped.iter().map(|s| format!("{} {}", s.peer, s.why)).collect();
        let why = if why.is_empty() { "no cell matches the peers chosen".into() } else { why.join("; ") };
        return Err(SessionError::Empty(why));
    }
    let settings = Settings {
        priority: file.scenario.priority,
        lock_memory: file.scenario.lock_memory,
        reply_timeout_ms: file.scenario.reply_timeout_ms,
    };
    let mut host = host::describe();
    host.fingerprint = doctor::fingerprint(&doctor::examine());
    for cell in &plan.cells {
        if let Some(entry) = directory.entries.get(&cell.peer).filter(|entry| !entry.is_floor) {
            host.versions.insert(cell.peer.clone(), entry.description.version.clone());
        }
    }
    let mut engine = Engine::new(directory, settings, interrupted)?;
    let Measured { mut cells, samples, interrupted } = engine.measure(&plan, observer)?;
    comparison_floor::assign(&mut cells);
    let mut run = Run {
        schema: SCHEMA,
        host,
        scenario: ScenarioRecord {
            name: file.scenario.name.clone(),
            description: file.scenario.description.clone(),
            smoke: choice.smoke,
            source: file.source.clone(),
            published: file.scenario.published.clone(),
        },
        partial: interrupted,
        cells,
        skipped: plan.skipped,
        thresholds: vec![],
    };
    let merged = merge(&run, &samples);
    run.thresholds =
        file.scenario.thresholds.iter().map(|threshold| judge(threshold.get_ref(), &run, &merged)).collect();
    Ok((run, samples))
}

/// A threshold holds if the worst matching row is within it; a threshold that matches nothing does
/// not hold, or a misspelt one would pass for ever.
fn judge(threshold: &Threshold, run: &Run, merged: &[MergedCell]) -> ThresholdResult {
    let matches = |row: &&MergedCell| {
        let key = &row.key;
        let is =
            |wanted: &Option<String>, found: &String| wanted.as_ref().is_none_or(|wanted| wanted == found);
        is(&threshold.peer, &key.peer)
            && is(&threshold.mode, &key.mode)
            && is(&threshold.wait, &key.wait)
            && is(&threshold.placement, &key.placement)
            && threshold.payload_bytes.is_none_or(|wanted| wanted == key.payload_bytes)
    };
    let rows: Vec<&MergedCell> = merged.iter().filter(matches).collect();
    let values: Option<Vec<f64>> = rows.iter().map(|row| statistic(&threshold.statistic, row)).collect();
    let found = values.and_then(|values| values.into_iter().reduce(f64::max));
    let held = found.is_some_and(|found| found <= threshold.max) && !run.partial;
    let unit = match threshold.statistic.as_str() {
        "loss" | "late" | "ratio_to_floor" => "",
        _ => " µs",
    };
    let filters = [&threshold.peer, &threshold.mode, &threshold.wait, &threshold.placement];
    let filters: Vec<&str> = filters.into_iter().flatten().map(String::as_str).collect();
    let what = format!("{} {} ≤ {}{unit}", filters.join(" "), threshold.statistic, threshold.max);
    ThresholdResult { what: what.trim().to_owned(), found, held }
}

/// Latencies in µs, loss and late as shares of the messages sent.
fn statistic(name: &str, row: &MergedCell) -> Option<f64> {
    let latency = row.latency_ns?;
    let share = |count: u64| (row.sent > 0).then(|| count as f64 / row.sent as f64);
    let us = |ns: Option<i64>| ns.map(|ns| ns as f64 / 1e3);
    match name {
        "p50" => us(latency.p50),
        "p90" => us(latency.p90),
        "p95" => us(latency.p95),
        "p99" => us(latency.p99),
        "p99_9" => us(latency.p99_9),
        "max" => us(Some(latency.max)),
        "mean" => Some(latency.mean / 1e3),
        "loss" => share(row.lost),
        "late" => share(row.late),
        "ratio_to_floor" => row.ratio_to_floor,
        _ => None,
    }
}

/// Trials that failed validity although nothing said they may, for the end of a report.
pub fn unexpected_failures(run: &Run) -> impl Iterator<Item = &Cell> {
    run.cells.iter().filter(|cell| !cell.valid && cell.expect.as_deref() != Some("may_saturate"))
}
