//! The table of README.md, from `run.json` alone: one row for each middleware's round trip and for each floor that one is
//! compared with, medians over the trials.

use noctule_lab::dimensions::{Mode, Placement};
use noctule_lab::merge::{MergedCell, medians_of_trials};
use noctule_lab::run::Run;

use crate::columns::{Column, Experiment, Table};

/// Renders the table and one sentence on where it was measured; `changed` follows the commit in it.
pub fn render(run: &Run, changed: &str) -> String {
    let merged = medians_of_trials(run);
    let rows: Vec<Experiment> =
        merged.iter().filter(|row| is_shown(row, &merged)).map(|row| Experiment::of(run, row)).collect();
    let columns: Vec<&Column> = Table::Readme.columns().collect();
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let mut text = line(columns.iter().map(|column| column.heading.to_owned()).collect());
    let rule = |column: &&Column| if column.is_word { "---" } else { "---:" }.to_owned();
    text += &format!("|{}|\n", columns.iter().map(rule).collect::<Vec<_>>().join("|"));
    for row in &rows {
        text += &line(columns.iter().map(|column| (column.of)(row).text).collect());
    }
    let trials = rows.iter().map(|row| row.trials.len()).max().unwrap_or(0);
    text + &measured_on(run, trials, changed)
}

/// Round trips between two cores; of floors only those that a round trip is compared with.
fn is_shown(row: &MergedCell, merged: &[MergedCell]) -> bool {
    let is_floor_of = |other: &MergedCell| {
        let floor = other.floor.as_ref().map(|floor| floor.name.as_str());
        floor == Some(&row.key.peer) && other.key.wait == row.key.wait
    };
    let on_several_cores = matches!(&row.key.placement, Placement::Cores(cores) if cores.len() > 1);
    row.key.mode == Mode::RoundTrip && on_several_cores && (!row.is_floor || merged.iter().any(is_floor_of))
}

fn measured_on(run: &Run, trials: usize, changed: &str) -> String {
    let host = &run.host;
    let versions = host.versions.iter().filter(|(name, _)| *name != "noctule");
    let versions: Vec<String> = versions.map(|(name, version)| format!("{name} {version}")).collect();
    let commit = host.commit.as_deref().unwrap_or("that is not known").trim_end_matches("-dirty");
    format!(
        "\nMedians of {trials} trials at commit {commit}{changed}, on {} with {} cores (a virtual machine), {}, {}.\n",
        host.cpu,
        host.cores,
        host.kernel,
        versions.join(", "),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use noctule_lab::fixture;

    #[test]
    fn a_row_is_the_median_of_its_trials_and_a_figure_is_withheld_if_one_has_none() {
        let trial = |trial, ns: i64| {
            let mut trial = fixture::round_trip("dds", trial, &[ns; 30]);
            trial.0.ratio_to_floor = Some(ns as f64 / 100.0);
            trial
        };
        let (mut run, _) = fixture::run(vec![trial(0, 3_000), trial(1, 1_000), trial(2, 2_000)]);
        run.host.cpu = "a processor".into();
        let text = render(&run, " and more");
        let row = "| **dds** | udp, round trip, spin, two cores | 2 µs | – | 20 × futex |";
        assert!(text.contains(row), "{text}");
        assert!(text.contains("3 trials at commit that is not known and more, on a processor"), "{text}");
        run.cells[1].latency_ns = None;
        run.cells[1].valid = false;
        assert!(render(&run, "").contains("| FAIL | FAIL |"), "one trial was not valid");
    }

    #[test]
    fn a_floor_that_nothing_is_compared_with_has_no_row() {
        let floor = |name: &str| {
            let mut floor = fixture::round_trip(name, 0, &[100; 30]);
            (floor.0.is_floor, floor.0.floor) = (true, None);
            floor
        };
        let cells = vec![floor("futex"), floor("tcp"), fixture::round_trip("dds", 0, &[200; 30])];
        let text = render(&fixture::run(cells).0, "");
        assert!(text.contains("| futex |") && !text.contains("| tcp |"), "{text}");
    }
}
