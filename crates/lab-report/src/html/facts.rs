//! The tables around the results: what was counted, the hops, the machine, the peers' settings.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::columns::{Experiment, Table, WITHHELD};
use noctule_lab::merge::MergedCell;
use noctule_lab::notation::duration;
use noctule_lab::run::Run;

#[derive(Serialize)]
pub(super) struct TableRow {
    label: String,
    full: String,
    valid: bool,
    figures: Vec<String>,
}

pub(super) fn accounts(run: &Run, merged: &[MergedCell], labels: &[&str]) -> Vec<TableRow> {
    let row = |(cell, label): (&MergedCell, &&str)| {
        let experiment = Experiment::of(run, cell);
        TableRow {
            label: (*label).to_owned(),
            full: cell.key.to_string(),
            valid: cell.valid,
            figures: Table::Accounts.columns().map(|column| (column.of)(&experiment).text).collect(),
        }
    };
    merged.iter().zip(labels).map(row).collect()
}

pub(super) fn hops(run: &Run, merged: &[MergedCell], labels: &[&str]) -> Vec<TableRow> {
    let time = |ns: Option<i64>| ns.map_or(WITHHELD.to_owned(), |ns| duration(ns as f64));
    let mut rows = Vec::new();
    for (cell, label) in merged.iter().zip(labels).filter(|(cell, _)| cell.valid) {
        for trial in cell.trials.iter().map(|&trial| &run.cells[trial]) {
            rows.extend(trial.hops.iter().map(|hop| TableRow {
                label: (*label).to_owned(),
                full: String::new(),
                valid: true,
                figures: vec![
                    trial.trial.to_string(),
                    hop.from.to_string(),
                    hop.to.to_string(),
                    time(hop.latency_ns.and_then(|summary| summary.p50)),
                    time(hop.latency_ns.and_then(|summary| summary.p99)),
                    time(hop.latency_ns.map(|summary| summary.max)),
                ],
            }));
        }
    }
    rows
}

pub(super) fn machine(run: &Run) -> Vec<Fact> {
    let host = &run.host;
    let fact = |name: &str, found: &str| Fact {
        name: name.to_owned(),
        found: found.to_owned(),
        warning: found.starts_with(BAD),
    };
    let mut facts = vec![
        fact("processor", &processor(run)),
        fact("kernel", &host.kernel),
        fact("governor", host.governor.as_deref().unwrap_or_default()),
        fact("commit", host.commit.as_deref().unwrap_or_default()),
        fact("sources", host.sources.as_deref().unwrap_or_default()),
    ];
    let found = host.fingerprint.iter().filter(|(check, _)| *check != "governor");
    facts.extend(found.map(|(check, found)| fact(&spelled(check), found)));
    facts.retain(|fact| !fact.found.is_empty());
    facts
}

/// Findings of the doctor that cost latency.
pub(super) fn costs(run: &Run) -> Vec<String> {
    let bad = |(check, found): (&String, &String)| {
        found.strip_prefix(BAD).map(|found| format!("{}: {}", spelled(check), found.trim()))
    };
    run.host.fingerprint.iter().filter_map(bad).collect()
}

/// How the doctor's fingerprint begins what should be mended.
const BAD: &str = "bad:";

#[derive(Serialize)]
pub(super) struct Fact {
    name: String,
    found: String,
    warning: bool,
}

/// The name of a check as people write it.
fn spelled(check: &str) -> String {
    let words: Vec<&str> = check
        .split('_')
        .map(|word| match word {
            "c" => "C",
            "ftdi" => "FTDI",
            "ntp" => "NTP",
            "ptp" => "PTP",
            "rt" => "RT",
            "smt" => "SMT",
            "wifi" => "Wi-Fi",
            word => word,
        })
        .collect();
    words.join(" ").replace("C states", "C-states")
}

/// Model and number of cores, as far as known.
pub(super) fn processor(run: &Run) -> String {
    match run.host.cores {
        0 => run.host.cpu.clone(),
        1 => format!("{}, 1 core", run.host.cpu),
        cores => format!("{}, {cores} cores", run.host.cpu),
    }
}

/// Per peer and link: its version and what it says of itself; values that vary are all given.
pub(super) fn settings(run: &Run) -> Vec<(String, String)> {
    type Values<'a> = BTreeMap<&'a str, Vec<&'a str>>;
    let mut rows: BTreeMap<String, Values> = BTreeMap::new();
    for cell in &run.cells {
        let name = match cell.link.to_string() == cell.peer {
            true => cell.peer.clone(),
            false => format!("{} on {}", cell.peer, cell.link),
        };
        let row = rows.entry(name).or_default();
        let version = run.host.versions.get(&cell.peer).map(|version| ("version", version));
        let settings = cell.settings.iter().map(|(key, value)| (key.as_str(), value));
        for (key, value) in version.into_iter().chain(settings) {
            let values = row.entry(key).or_default();
            if !values.contains(&value.as_str()) {
                values.push(value);
            }
        }
    }
    rows.retain(|_, settings| !settings.is_empty());
    rows.into_iter()
        .map(|(peer, settings)| {
            let settings: Vec<String> =
                settings.iter().map(|(key, values)| format!("{key} {}", values.join(" | "))).collect();
            (peer, settings.join(", "))
        })
        .collect()
}
