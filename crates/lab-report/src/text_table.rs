//! The table at the end of a run, for a terminal.

use crate::columns::{Experiment, Table, peer};
use crate::fact_table::FactTable;
use noctule_lab::dimensions::Mode;
use noctule_lab::merge::{MergedCell, merge};
use noctule_lab::run::Run;
use noctule_lab::samples::CellSamples;
use noctule_lab::{labels, notation};

/// Renders the rows of a run, floors first, and what a reader must know to trust them.
pub fn render(run: &Run, samples: &[CellSamples]) -> String {
    let merged = merge(run, samples);
    let (floors, peers): (Vec<_>, Vec<_>) = merged.iter().partition(|row| row.is_floor);
    let columns = Table::Terminal.columns();
    let cells = |row: &&MergedCell| {
        let row = Experiment::of(run, row);
        columns.clone().map(|column| (column.of)(&row).text).collect::<Vec<_>>()
    };
    let headings = columns.clone().map(|column| column.heading.to_owned()).collect();
    let mut lines = vec![headings];
    lines.extend(floors.iter().chain(&peers).map(cells));
    let left: Vec<bool> = columns.clone().map(|column| column.is_word).collect();
    let mut text = align(&lines, floors.len(), &left);
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

/// Table of the figures that peers measured by themselves, with published ones beside; empty if there are none.
fn facts(run: &Run, merged: &[MergedCell]) -> String {
    let label = |row: &MergedCell| {
        let way = match row.key.mode {
            Mode::RoundTrip => String::new(),
            mode => format!(" {} {}", labels::in_words(mode), row.key.wait),
        };
        format!("{} {}{way}", peer(&row.key), notation::size(row.key.payload_bytes))
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
