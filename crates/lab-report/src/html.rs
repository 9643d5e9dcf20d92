//! `report.html`: one file that opens anywhere, without a network, and can be shown to a colleague.
//!
//! This module decides the contents; the templates `web/page.html` and `web/report.html` where it stands, `web/report.css`
//! how it looks, `web/report.js` which charts are drawn from [`Charts`], `web/plot.js` how. Tables are complete
//! without JavaScript. Chart material is embedded as JSON with `<` escaped, so that no name of a peer
//! can end the script element; everything else goes through the template's HTML escaping.

mod facts;
mod heat;
mod results;

use std::path::Path;

use minijinja::{Environment, context};
use serde::Serialize;

use self::results::{RangeAxis, Row};
use super::series::{BINS_PER_DECADE, Charts};
use super::{ReportError, page};
use crate::columns::Table;
use crate::fact_table::FactTable;
use noctule_lab::labels;
use noctule_lab::merge::MergedCell;
use noctule_lab::notation::{count, three_digits};
use noctule_lab::run::{CellKey, Run};

/// Writes the report of a run from its merged cells and chart material.
///
/// # Errors
/// If the file cannot be written.
pub fn write(path: &Path, run: &Run, merged: &[MergedCell], charts: &Charts) -> Result<(), ReportError> {
    let page = render(run, merged, charts)
        .map_err(|error| ReportError::write(path, std::io::Error::other(error)))?;
    std::fs::write(path, page).map_err(|source| ReportError::write(path, source))
}

fn render(run: &Run, merged: &[MergedCell], charts: &Charts) -> Result<String, minijinja::Error> {
    let mut environment = Environment::new();
    environment.add_template("page.html", page::FRAME)?;
    environment.add_template("report.html", include_str!("web/report.html"))?;
    let axis = RangeAxis::of(merged);
    let labels: Vec<&str> = charts.cells.iter().map(|cell| cell.label.as_str()).collect();
    let keys: Vec<CellKey> = merged.iter().map(|cell| cell.key.clone()).collect();
    let rows: Vec<Row> = merged
        .iter()
        .zip(charts.cells.iter())
        .zip(labels::distinguishing(&keys))
        .map(|((cell, series), details)| Row::of(run, cell, (series, details), axis.as_ref()))
        .collect();
    environment.get_template("report.html")?.render(context! {
        title => format!("Latency lab: {}", run.scenario.name),
        subtitle => subtitle(run),
        description => run.scenario.description,
        verdict => Verdict::of(run, merged, &labels),
        table_note => table_note(merged),
        ticks => axis.as_ref().map(RangeAxis::ticks),
        columns => Table::Page.columns().map(|column| context! {
            heading => column.heading, meaning => column.meaning,
        }).collect::<Vec<_>>(),
        rows,
        skipped => run.skipped,
        thresholds => run.thresholds.iter().map(|threshold| context! {
            what => threshold.what,
            held => threshold.held,
            found => threshold.found.map_or("no valid cell".to_owned(), three_digits),
        }).collect::<Vec<_>>(),
        facts => FactTable::of(run, merged, &labels),
        published => run.scenario.published.iter().filter(|figure| figure.fact.is_none()).collect::<Vec<_>>(),
        charts => chart_list(charts),
        maps => heat::maps(&charts.heat_maps),
        machine => format!("{}.", facts::processor(run)),
        account_columns => Table::Accounts.columns().map(|column| context! {
            heading => column.heading, meaning => column.meaning,
        }).collect::<Vec<_>>(),
        accounts => facts::accounts(run, merged, &labels),
        hops => facts::hops(run, merged, &labels),
        environment => facts::machine(run),
        settings => facts::settings(run),
        source => run.scenario.source,
        version => env!("CARGO_PKG_VERSION"),
        material => material(charts),
        vendor_css => page::UPLOT_STYLE,
        vendor_js => page::UPLOT_SCRIPT,
        css => page::STYLE,
        plot_js => page::PLOT_SCRIPT,
        js => include_str!("web/report.js"),
    })
}

/// The charts as JSON that can stand inside a script element.
fn material(charts: &Charts) -> String {
    #[derive(Serialize)]
    struct Material<'a> {
        bins_per_decade: f64,
        #[serde(flatten)]
        charts: &'a Charts,
    }
    let material = Material { bins_per_decade: BINS_PER_DECADE, charts };
    // Plain structs of numbers and strings always serialize.
    let json = serde_json::to_string(&material).unwrap_or_default();
    json.replace('<', "\\u003c")
}

fn subtitle(run: &Run) -> String {
    let host = &run.host;
    let mut facts = vec![host.started_at.clone(), host.cpu.clone(), host.kernel.clone()];
    facts.extend(host.commit.as_ref().map(|commit| format!("commit {commit}")));
    if run.scenario.smoke {
        facts.push("short form".to_owned());
    }
    facts.retain(|fact| !fact.is_empty());
    facts.join(" · ")
}

#[derive(Serialize)]
struct Verdict {
    kind: &'static str,
    word: &'static str,
    sentence: String,
    reasons: Vec<String>,
    /// Settings of the machine that cost latency, whether cells are valid or not.
    costs: Vec<String>,
    /// Latencies between two clocks that are not known well enough to be taken at face value.
    clocks: Vec<String>,
}

impl Verdict {
    fn of(run: &Run, merged: &[MergedCell], labels: &[&str]) -> Self {
        let failed = merged.iter().zip(labels).filter(|(cell, _)| !cell.valid);
        let mut reasons: Vec<String> = Vec::new();
        let mut failures = 0;
        for (cell, label) in failed {
            let expected = if cell.may_saturate {
                " (expected: may saturate)"
            } else {
                failures += 1;
                ""
            };
            reasons.push(format!("{label}{expected}: {}", why(cell)));
        }
        for threshold in run.thresholds.iter().filter(|threshold| !threshold.held) {
            failures += 1;
            reasons.push(format!("threshold not held: {}", threshold.what));
        }
        let trials = merged.iter().map(|cell| cell.trials.len()).max().unwrap_or(0);
        let received: u64 = merged.iter().map(|cell| cell.received).sum();
        let lost: u64 = merged.iter().map(|cell| cell.lost).sum();
        let lost = if lost == 0 { "none lost".to_owned() } else { format!("{} lost", count(lost)) };
        let trials = match trials {
            0 | 1 => String::new(),
            trials => format!(", up to {trials} trials each"),
        };
        let extent = format!(
            "{}{trials}, {} received, {lost}.",
            counted(merged.len() as u64, "experiment"),
            counted(received, "message")
        );
        let (kind, word, sentence) = if failures > 0 {
            let checks = counted(failures, "check");
            let sentence = format!("{checks} failed; those figures are withheld. {extent}");
            ("fail", "FAIL", sentence)
        } else if run.partial {
            let sentence = format!("The run was interrupted; this is what had been measured. {extent}");
            ("partial", "PARTIAL", sentence)
        } else {
            ("valid", "Valid.", extent)
        };
        let warned = merged.iter().zip(labels).filter(|(cell, _)| cell.valid);
        let clocks =
            warned.filter_map(|(cell, label)| Some(format!("{label}: {}", cell.clock_warning()?))).collect();
        Self { kind, word, sentence, reasons, costs: facts::costs(run), clocks }
    }
}

fn why(cell: &MergedCell) -> String {
    let reasons = cell.why_invalid.join("; ");
    match cell.trials.len() {
        1 => reasons,
        trials => format!("{reasons} ({} of {trials} trials)", cell.invalid_trials),
    }
}

fn table_note(merged: &[MergedCell]) -> String {
    let trials = merged.iter().map(|cell| cell.trials.len()).max().unwrap_or(0);
    let spread = match trials {
        0 | 1 => String::new(),
        _ => format!(
            "Percentiles of the pooled samples of all trials; ± is half the range of the medians of up to {trials} trials. "
        ),
    };
    format!(
        "{spread}The bar spans p50 to p99 on a line from min to max, on a logarithmic axis; a dotted mark \
         is the floor's p50. Checked experiments are drawn below."
    )
}

fn counted(n: u64, singular: &str) -> String {
    let ending = if n == 1 { "" } else { "s" };
    format!("{} {singular}{ending}", count(n))
}

#[derive(Serialize)]
struct ChartEntry {
    id: &'static str,
    title: &'static str,
    caption: &'static str,
    /// Points the script has to draw if every experiment is shown.
    points: usize,
}

/// The charts that have material, in the order of the page.
fn chart_list(charts: &Charts) -> Vec<ChartEntry> {
    let cells = |points: fn(&super::series::CellSeries) -> usize| charts.cells.iter().map(points).sum();
    let sweep = |parameter: &str| {
        let of = charts.sweeps.iter().filter(|sweep| sweep.parameter == parameter);
        of.map(|sweep| sweep.points.len()).sum()
    };
    let chart = |id, title, caption, points| ChartEntry { id, title, caption, points };
    let mut list = vec![
        chart(
            "curve",
            "Percentiles",
            "How bad the worst get. Lines end where fewer than ten samples lie beyond; rings mark the largest. Drag to zoom, double-click to return.",
            cells(|cell| cell.curve.len() + usize::from(cell.max.is_some())),
        ),
        chart(
            "histogram",
            "Distribution",
            "Where latencies cluster. Two hills are two states of the machine.",
            cells(|cell| cell.histogram.counts.iter().filter(|count| **count > 0).count()),
        ),
        chart(
            "dots",
            "Latency over time",
            "Stalls, bursts and drift. At most 2,000 dots per experiment; the largest of every interval is always among them.",
            cells(|cell| cell.trials.iter().map(|trial| trial.time_us.len()).sum()),
        ),
        chart(
            "cumulative",
            "Along the chain",
            "Latency from the scheduled send up to each node: line p50, band up to p99.",
            cells(|cell| cell.cumulative.len() + usize::from(!cell.cumulative.is_empty())),
        ),
        chart(
            "sweep_payload",
            "Latency by payload",
            "Families that differ only in payload.",
            sweep("payload_bytes"),
        ),
        chart(
            "sweep_rate",
            "Latency by rate",
            "Families that differ only in rate. A fall to the right is the price of idling.",
            sweep("rate_hz"),
        ),
        chart(
            "heat_map",
            "Payload × rate",
            "Darker is slower, on a logarithmic scale from the fastest to the slowest of the map.",
            heat::painted(&charts.heat_maps),
        ),
    ];
    list.retain(|chart| chart.points > 0);
    list
}

#[cfg(test)]
mod tests;
