//! Every scenario against every estimator: the committed table.

use std::fmt::Write;

use noctule_netsim::{ClockModel, SCENARIOS, Scenario, round_trips};
use noctule_time_sync::{BoundedConfig, EstimatorKind};

use super::accuracy::{Accuracy, judge};
use super::replay::replay;
use noctule_lab::trace::TraceRow;

/// Seeds 1 to this one.
pub const SEEDS: u64 = 10;

/// How `bounded` is configured for a scenario: in G the clock is slewed at 1000 ppm, and the limit
/// on drift is the premise of the bound.
fn config(scenario: &str) -> BoundedConfig {
    let max_drift_ppm = if scenario == "G" { 1_100 } else { BoundedConfig::default().max_drift_ppm };
    BoundedConfig { max_drift_ppm, ..BoundedConfig::default() }
}

/// One estimator on one scenario under one seed.
pub fn run(scenario: &str, estimator: EstimatorKind, seed: u64) -> Option<Accuracy> {
    let rows: Vec<TraceRow> =
        round_trips(&Scenario::named(scenario)?, seed).into_iter().map(TraceRow::from).collect();
    let mut estimator = estimator.build(config(scenario));
    Some(judge(&rows, &replay(&rows, &mut estimator)))
}

/// The table as Markdown. Medians over the seeds; worst error is the worst of all, violations the sum.
pub fn table() -> String {
    let mut text = String::from(HEAD);
    for name in SCENARIOS {
        let title = Scenario::named(name).map_or("", |scenario| scenario.title);
        let _ = writeln!(text, "\n## {name}: {title}\n\n{COLUMNS}");
        for estimator in EstimatorKind::ALL {
            let runs: Vec<Accuracy> = (1..=SEEDS).filter_map(|seed| run(name, estimator, seed)).collect();
            let _ = writeln!(text, "{}", row(estimator, &runs));
        }
    }
    text
}

/// Looks for a seed under which the truth leaves the bound of `bounded`, and returns those found.
///
/// Each seed is run three times, with clocks that drift up to the configured limit: over one of the
/// named scenarios in turn; over a path drawn at random without steps; and over the same path with up
/// to three steps of any size, the bound proven from the last exchange alone.
pub fn soak(seeds: std::ops::Range<u64>) -> Vec<(u64, Accuracy)> {
    let steady = BoundedConfig::default();
    let stepped = BoundedConfig { distrust_past: true, ..steady };
    let mut found = Vec::new();
    for seed in seeds {
        let drawn = Scenario::drawn(seed, f64::from(steady.max_drift_ppm));
        let mut without_steps = drawn.clone();
        without_steps.clock.steps.clear();
        let (named, premise) = named_with_any_drift(seed);
        for (scenario, config) in [(named, premise), (without_steps, steady), (drawn, stepped)] {
            let rows: Vec<TraceRow> = round_trips(&scenario, seed).into_iter().map(TraceRow::from).collect();
            let mut estimator = EstimatorKind::Bounded.build(config);
            let accuracy = judge(&rows, &replay(&rows, &mut estimator));
            if accuracy.bound_violations != Some(0) {
                found.push((seed, accuracy));
            }
        }
    }
    found
}

/// One of the named scenarios in turn with the drift of the scenario drawn from the same seed, within
/// the limit that `bounded` is configured with.
fn named_with_any_drift(seed: u64) -> (Scenario, BoundedConfig) {
    let name = SCENARIOS[(seed % SCENARIOS.len() as u64) as usize];
    let premise = config(name);
    let limit_ppm = f64::from(premise.max_drift_ppm);
    let drawn = Scenario::drawn(seed, limit_ppm);
    let mut scenario = Scenario::named(name).unwrap_or_else(|| drawn.clone());
    scenario.clock = ClockModel {
        offset: scenario.clock.offset,
        steps: scenario.clock.steps,
        slew_ppm: scenario.clock.slew_ppm,
        slew_s: scenario.clock.slew_s,
        ..drawn.clock
    };
    (scenario, premise)
}

const HEAD: &str = "# Clock estimators on simulated round trips

Written by `cargo xtask sweep time-sync`; do not edit. Ten minutes, seeds 1 to 10, models of
`crates/netsim/src/scenario.rs`. Each figure is the median over the seeds, but for the worst error
(worst of all) and the violations (sum over all). Errors count from 60 s after the start and after
each step; µs and seconds; `never` means never in at least half of the runs, `–` that the estimator
has no such figure. `≤ 2σ` is the share of errors within two sigma; an honest sigma of a normal error
gives 95. Bounds of G are proven for 1100 ppm, all others for 200 ppm.
";

const COLUMNS: &str = "\
| estimator    | rms µs | worst µs | to 100 µs s | re-lock s | drift ppm | violations | bound µs | sigma µs | ≤ 2σ % | rejected |
|--------------|-------:|---------:|------------:|----------:|----------:|-----------:|---------:|---------:|-------:|---------:|";

fn row(estimator: EstimatorKind, runs: &[Accuracy]) -> String {
    let us = |value: fn(&Accuracy) -> Option<f64>| figure(runs, value, 1e3, 1, "–");
    let worst_ns = runs.iter().filter_map(|run| run.max_error_ns).fold(0.0, f64::max);
    let violations: u64 = runs.iter().filter_map(|run| run.bound_violations).sum();
    let proves = runs.iter().any(|run| run.bound_violations.is_some());
    let stepped = runs.iter().any(|run| run.relock_after_step_s.is_some());
    format!(
        "| {estimator:<12} | {:>6} | {:>8.1} | {:>11} | {:>9} | {:>9} | {:>10} | {:>8} | {:>8} | {:>6} | {:>8} |",
        us(|run| run.rms_error_ns),
        worst_ns / 1e3,
        figure(runs, |run| run.time_to_100us_s, 1.0, 1, "never"),
        if stepped { figure(runs, |run| run.relock_after_step_s, 1.0, 1, "never") } else { "–".into() },
        figure(runs, |run| run.drift_error_ppm, 1.0, 3, "–"),
        if proves { violations.to_string() } else { "–".into() },
        us(|run| run.mean_bound_ns),
        us(|run| run.mean_sigma_ns),
        figure(runs, |run| run.within_2_sigma, 0.01, 0, "–"),
        figure(runs, |run| Some(f64::from(run.rejected)), 1.0, 0, "–"),
    )
}

/// The median of a figure over the runs; a run without it counts as infinitely bad.
fn figure(
    runs: &[Accuracy],
    value: fn(&Accuracy) -> Option<f64>,
    unit: f64,
    digits: usize,
    none: &str,
) -> String {
    let mut values: Vec<f64> = runs.iter().map(|run| value(run).unwrap_or(f64::INFINITY)).collect();
    values.sort_by(f64::total_cmp);
    match values.get(values.len() / 2) {
        Some(median) if median.is_finite() => format!("{:.digits$}", median / unit),
        _ => none.into(),
    }
}
