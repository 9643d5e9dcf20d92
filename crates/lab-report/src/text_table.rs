//! The table at the end of a run, for a terminal.

use crate::fact_table::FactTable;
use noctule_lab::merge::{MergedCell, merge};
use noctule_lab::notation;
use noctule_lab::run::{CellKey, Run};
use noctule_lab::samples::CellSamples;

/// Renders the rows of a run, floors first, and what a reader must know to trust them.
pub fn render(run: &Run, samples: &[CellSamples]) -> String {
    let merged = merge(run, samples);
    let (floors, peers): (Vec<_>, Vec<_>) = merged.iter().partition(|row| row.is_floor);
    let mut lines = vec![HEADINGS.map(String::from).to_vec()];
    lines.extend(floors.iter().chain(&peers).map(|row| cells(row)));
    let mut text = align(&lines, floors.len(), &LEFT);
    text += &facts(run, &merged);
    for row in merged.iter().filter(|row| !row.valid) {
        let verdict = if row.may_saturate { "saturated (as it may)" } else { "FAIL" };
        let key = &row.key;
        let (peer, mode, payload_bytes, wait) = (&key.peer, &key.mode, key.payload_bytes, &key.wait);
        text += &format!("{verdict}: {peer} {mode} {payload_bytes} B {wait} [{}]: ", key.placement);
        text += &format!("{}\n", row.why_invalid.join("; "));
    }
    for row in merged.iter().filter(|row| row.valid && row.clock_bound_ns > 0) {
        let (bound, sigma) = (row.clock_bound_ns as f64, row.clock_sigma_ns as f64);
        let warning = row.clock_warning().map_or(String::new(), |warning| format!(": {warning}"));
        text += &format!(
            "{}: proven within {}, sigma {}{warning}\n",
            row.key,
            notation::duration(bound),
            notation::duration(sigma),
        );
    }
    for skipped in &run.skipped {
        text += &format!("skipped: {}: {}\n", skipped.peer, skipped.why);
    }
    for threshold in &run.thresholds {
        let verdict = if threshold.held { "held" } else { "MISSED" };
        let found = threshold.found.map_or("no valid cell matches".into(), notation::three_digits);
        text += &format!("threshold {verdict}: {} (found {found})\n", threshold.what);
    }
    let recorder: Vec<f64> = run.cells.iter().filter_map(|cell| cell.recorder_ns).collect();
    if !recorder.is_empty() {
        let worst = recorder.iter().copied().fold(0.0, f64::max);
        let mean = recorder.iter().sum::<f64>() / recorder.len() as f64;
        text += &format!(
            "Latency counts from the scheduled send; a round trip is the whole trip. Taking and storing one stamp \
             costs {mean:.0} ns (at most {worst:.0}), part of every figure.\n"
        );
    }
    if run.partial {
        text += "PARTIAL: the run was interrupted; what was measured before is kept.\n";
    }
    text
}

const HEADINGS: [&str; 13] = [
    "peer",
    "link",
    "mode",
    "bytes",
    "Hz",
    "wait",
    "cores",
    "p50",
    "±",
    "p99",
    "max",
    "lost/late",
    "× floor",
];

/// Columns of words are aligned left, the others right.
const LEFT: [bool; 13] =
    [true, true, true, false, false, true, true, false, false, false, false, false, true];

fn cells(row: &MergedCell) -> Vec<String> {
    let key = &row.key;
    let latency = |pick: fn(&noctule_lab::statistics::LatencySummary) -> Option<i64>| match &row.latency_ns {
        Some(latency) => pick(latency).map_or("–".into(), |ns| notation::duration(ns as f64)),
        None if row.may_saturate => "saturated".into(),
        None => "FAIL".into(),
    };
    let mode = match key.nodes {
        2 => key.mode.clone(),
        nodes => format!("{} ({nodes})", key.mode),
    };
    vec![
        experiment(key),
        key.link.clone(),
        mode,
        key.payload_bytes.to_string(),
        key.rate_mhz.map_or("closed".into(), |rate| (rate as f64 / 1e3).to_string()),
        key.wait.clone(),
        key.placement.clone(),
        latency(|latency| latency.p50),
        row.relative_half_spread().map_or(String::new(), |spread| format!("{:.0} %", spread * 100.0)),
        latency(|latency| latency.p99),
        latency(|latency| Some(latency.max)),
        format!("{}/{}", row.lost, row.late),
        match (&row.floor, row.ratio_to_floor) {
            (Some(floor), Some(ratio)) => format!("{ratio:.2} × {}", floor.name),
            _ if row.is_floor => "floor".into(),
            _ => "–".into(),
        },
    ]
}

/// The peer, and what of its experiment has no column.
fn experiment(key: &CellKey) -> String {
    let format = Some(key.format.clone()).filter(|format| !["raw", ""].contains(&format.as_str()));
    let beside = key.beside.as_ref().map(|beside| format!("beside {}", beside.peer));
    let words = [Some(key.peer.clone()), format, notation::options(key), beside];
    words.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// What peers measured by themselves, with what was published beside it; nothing if they did not.
fn facts(run: &Run, merged: &[MergedCell]) -> String {
    let label = |row: &MergedCell| {
        let way = match row.key.mode.as_str() {
            "round_trip" => String::new(),
            mode => format!(" {} {}", mode.replace('_', " "), row.key.wait),
        };
        format!("{} {}{way}", experiment(&row.key), notation::size(row.key.payload_bytes))
    };
    let table = FactTable::of(run, merged, &merged.iter().map(label).collect::<Vec<_>>());
    if table.rows.is_empty() {
        return String::new();
    }
    let mut left = vec![false; table.headings.len()];
    left[0] = true;
    let lines: Vec<Vec<String>> = std::iter::once(table.headings).chain(table.rows).collect();
    let mut text = format!("\n{}", align(&lines, 0, &left));
    for source in &table.sources {
        text += &format!("In brackets: {source}.\n");
    }
    text
}

/// Pads columns; a rule under the headings and one after `ruled_rows` rows.
pub fn align(lines: &[Vec<String>], ruled_rows: usize, left: &[bool]) -> String {
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..left.len()).map(width).collect();
    let rule = "─".repeat(widths.iter().sum::<usize>() + 2 * (widths.len() - 1)) + "\n";
    let mut text = String::new();
    for (number, line) in lines.iter().enumerate() {
        let padded = line.iter().zip(&widths).zip(left).map(|((cell, &width), left)| match left {
            true => format!("{cell:<width$}"),
            false => format!("{cell:>width$}"),
        });
        text += padded.collect::<Vec<_>>().join("  ").trim_end();
        text.push('\n');
        if number == 0 || (number == ruled_rows && ruled_rows + 1 < lines.len()) {
            text += &rule;
        }
    }
    text
}
