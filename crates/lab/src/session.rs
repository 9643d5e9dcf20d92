//! One run from scenario to results: plan, measure, compare with floors, judge thresholds.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::engine::{Engine, EngineError, Measured, Observer, Settings};
use crate::merge::{MergedCell, merge};
use crate::peer_registry::PeerRegistry;
use crate::plan::{Choice, Plan};
use crate::run::{Host, Run, SCHEMA, ScenarioRecord, Skipped, ThresholdResult};
use crate::samples::CellSamples;
use crate::scenario::{ScenarioError, ScenarioFile, Threshold};
use crate::{comparison_floor, host};

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

/// A scenario and what the user chose beside it.
#[derive(Debug, Clone)]
pub struct Request {
    /// The scenario.
    pub file: ScenarioFile,
    /// Peers and length.
    pub choice: Choice,
}

/// A run and its raw samples.
pub type Results = (Run, Vec<CellSamples>);

/// Runs one scenario, or several in turns, trial by trial, so that they can be compared in pairs. The
/// machine-wide settings (priority, memory lock, reply timeout) are those of the first.
pub fn run(
    requests: &[Request],
    registry: &PeerRegistry,
    interrupted: Arc<AtomicBool>,
    observer: &mut dyn Observer,
) -> Result<Vec<Results>, SessionError> {
    let cores = noctule_sys::scheduling::allowed_cores().map_err(SessionError::Cores)?;
    let plans = requests
        .iter()
        .map(|request| plan(request, registry, &cores))
        .collect::<Result<Vec<Plan>, SessionError>>()?;
    let settings = requests.first().map_or(Settings::default(), |request| Settings {
        priority: request.file.scenario.priority,
        lock_memory: request.file.scenario.lock_memory,
        reply_timeout_ms: request.file.scenario.reply_timeout_ms,
    });
    let mut host = host::describe();
    host.fingerprint = noctule_doctor::fingerprint(&noctule_doctor::examine());
    let measured = Engine::new(registry, settings, interrupted)?.measure(&plans, observer)?;
    // Which runs were measured in turns with each other: a word no other run has.
    let interleaving = (requests.len() > 1).then(|| format!("{}-{}", host.started_at, std::process::id()));
    let results = requests.iter().zip(plans).zip(measured).map(|((request, plan), measured)| {
        let mut host = host.clone();
        for cell in &plan.cells {
            if let Some(entry) = registry.entries.get(&cell.peer).filter(|entry| !entry.is_floor) {
                host.versions.insert(cell.peer.clone(), entry.description.version.clone());
            }
        }
        conclude(request, host, plan.skipped, measured, interleaving.clone())
    });
    Ok(results.collect())
}

fn plan(request: &Request, registry: &PeerRegistry, cores: &[u32]) -> Result<Plan, SessionError> {
    let plan = Plan::expand(&request.file, registry, cores, &request.choice)?;
    if !plan.cells.is_empty() {
        return Ok(plan);
    }
    let why: Vec<String> = plan.skipped.iter().map(|s| format!("{}: {}", s.peer, s.why)).collect();
    let why = if why.is_empty() { "no cell matches the peers chosen".into() } else { why.join("; ") };
    Err(SessionError::Empty(why))
}

fn conclude(
    request: &Request,
    host: Host,
    skipped: Vec<Skipped>,
    measured: Measured,
    interleaving: Option<String>,
) -> Results {
    let Measured { mut cells, samples, interrupted } = measured;
    comparison_floor::assign(&mut cells);
    let scenario = &request.file.scenario;
    let mut run = Run {
        schema: SCHEMA,
        host,
        scenario: ScenarioRecord {
            name: scenario.name.clone(),
            description: scenario.description.clone(),
            smoke: request.choice.smoke,
            source: request.file.source.clone(),
            published: scenario.published.clone(),
        },
        partial: interrupted,
        cells,
        skipped,
        thresholds: vec![],
        interleaving,
    };
    let merged = merge(&run, &samples);
    run.thresholds =
        scenario.thresholds.iter().map(|threshold| judge(threshold.get_ref(), &run, &merged)).collect();
    (run, samples)
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
            && threshold.options.iter().all(|(name, value)| key.options.get(name) == Some(value))
            && threshold.payload_bytes.is_none_or(|wanted| wanted == key.payload_bytes)
    };
    let rows: Vec<&MergedCell> = merged.iter().filter(matches).collect();
    let values: Option<Vec<f64>> = rows.iter().map(|row| statistic(&threshold.statistic, row)).collect();
    let found = values.and_then(|values| values.into_iter().reduce(f64::max));
    let held = found.is_some_and(|found| found <= threshold.max) && !run.partial;
    let unit = match threshold.statistic.as_str() {
        "loss" | "late" | "missed" | "ratio_to_floor" => "",
        _ => " µs",
    };
    let filters = [&threshold.peer, &threshold.mode, &threshold.wait, &threshold.placement];
    let options = threshold.options.values();
    let filters: Vec<&str> = filters.into_iter().flatten().chain(options).map(String::as_str).collect();
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
        "missed" => share(row.lost + row.late),
        "ratio_to_floor" => row.ratio_to_floor,
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn a_threshold_may_ask_for_some_options_of_a_peer_and_not_for_others() {
        let with = |trial, reliability: &str, lost| {
            let (mut cell, samples) = fixture::round_trip("noctule", trial, &[1_000; 100]);
            cell.options.insert("reliability".into(), reliability.into());
            (cell.sent, cell.lost) = (100 + lost, lost);
            (cell, samples)
        };
        let (run, samples) = fixture::run(vec![
            with(0, "reliable", 60),
            with(1, "deadline_bound", 0),
            with(2, "best_effort", 5),
        ]);
        let merged = merge(&run, &samples);
        let found = |options: &str| {
            let text = format!("peer = \"noctule\"\nstatistic = \"missed\"\nmax = 0.1\n{options}");
            let result = judge(&toml::from_str(&text).unwrap(), &run, &merged);
            (result.what, result.found, result.held)
        };
        let bound = found("options = { reliability = \"deadline_bound\" }");
        assert_eq!(bound, ("noctule deadline_bound missed ≤ 0.1".to_owned(), Some(0.0), true));
        assert_eq!(found("").1, Some(0.375), "the worst of all");
        assert!(!found("options = { reliability = \"none\" }").2);
    }
}
