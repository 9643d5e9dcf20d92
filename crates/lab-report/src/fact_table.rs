//! Figures beside latency as a table: what peers measured by themselves ([`Cell::facts`]), how much went through where
//! as much was sent as would go, what it cost, with published figures beside them.
//!
//! One row per experiment that has any; a figure is the median of its trials, but a figure of deadlines or of the wire counts
//! all messages of all trials: a bad trial must not vanish behind two good ones. A figure published for the same fact,
//! format and payload stands in brackets after it.

use std::collections::BTreeMap;

use serde::Serialize;

use noctule_lab::dimensions::Mode;
use noctule_lab::merge::{Arrival, MergedCell};
use noctule_lab::notation::{self, duration, size, three_digits};
use noctule_lab::run::{Cell, Run};
use noctule_lab::statistics::median;

const ON_TIME: &str = "on time";
const P99: &str = "p99 of sent";
const P99_9: &str = "p99.9 of sent";
const DELIVERED: &str = "delivered";
const WIRE_PER_PAYLOAD: &str = "wire per payload";

/// Facts in the order of a message's way, then what is known of it afterwards; others follow by name.
const FIRST: [&str; 9] = [
    "encode_ns",
    "transfer_ns",
    "decode_ns",
    "encoded_bytes",
    ON_TIME,
    P99,
    P99_9,
    WIRE_PER_PAYLOAD,
    DELIVERED,
];

/// Figures of one cell: facts of its peer, and measures that only some experiments give a column.
fn figures(cell: &Cell) -> BTreeMap<String, f64> {
    let mut figures = cell.facts.clone();
    let mut add =
        |name: &str, figure: Option<f64>| figures.extend(figure.map(|figure| (name.to_owned(), figure)));
    if cell.rate_hz.is_none() && cell.mode != Mode::RoundTrip {
        add("messages_per_s", cell.received_hz);
        add("throughput_bytes_per_s", cell.received_hz.map(|hz| hz * cell.payload_bytes as f64));
        add("processor_per_message_ns", cell.cpu_ns_per_message);
    }
    if let Some(beside) = &cell.beside {
        add("beside_bytes_per_s", beside.received_hz.map(|hz| hz * beside.payload_bytes as f64));
    }
    add("redundancy_share", cell.redundancy);
    figures
}

/// Figures, as text, that are computed over all trials together: of messages across an emulated link, which share had arrived when.
fn pooled(run: &Run, row: &MergedCell) -> BTreeMap<&'static str, String> {
    let mut pooled = BTreeMap::new();
    if row.key.link.is_between_hosts() && trials(run, row).iter().all(|cell| cell.deadline_ns.is_some()) {
        pooled.extend(row.on_time().map(|share| (ON_TIME, format!("{:.3} %", share * 100.0))));
        let words = |arrival| match arrival {
            Arrival::Within(ns) => duration(ns as f64),
            Arrival::Never => "never".into(),
            Arrival::TooFew => "–".into(),
        };
        pooled.extend(row.of_sent.iter().flat_map(|of| [(P99, words(of.p99)), (P99_9, words(of.p99_9))]));
    }
    // How much goes through says nothing without how much of it is lost.
    let trials = valid_trials(run, row);
    let is_back_to_back = |cell: &&Cell| cell.rate_hz.is_none() && cell.mode != Mode::RoundTrip;
    let sent: u64 = trials.iter().map(|cell| cell.sent).sum();
    if sent > 0 && trials.iter().all(|cell| is_back_to_back(cell) && cell.received_hz.is_some()) {
        let received: u64 = trials.iter().map(|cell| cell.received).sum();
        // Never rounded up to all.
        let percent = 100.0 * received as f64 / sent as f64;
        let percent = if received < sent { percent.min(99.999) } else { percent };
        pooled.insert(DELIVERED, format!("{percent:.3} %"));
    }
    pooled.extend(
        wire_per_payload(&valid_trials(run, row)).map(|ratio| (WIRE_PER_PAYLOAD, three_digits(ratio))),
    );
    pooled
}

/// Bytes on the wire per byte of payload offered, both with the warm-up; `None` where one of them is not known, or where
/// other traffic flowed beside.
fn wire_per_payload(trials: &[&Cell]) -> Option<f64> {
    let (mut wire_bytes, mut payload_bytes) = (0, 0);
    for cell in trials.iter().filter(|cell| cell.beside.is_none()) {
        let fan = if cell.mode == Mode::FanOut { u64::from(cell.nodes.max(2) - 1) } else { 1 };
        wire_bytes += cell.wire_bytes?;
        payload_bytes += (cell.sent / fan + cell.warm_up_sent?) * cell.payload_bytes;
    }
    (payload_bytes > 0).then(|| wire_bytes as f64 / payload_bytes as f64)
}

/// A table of words, ready to be shown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct FactTable {
    /// Headings of the columns; the first is the experiment.
    pub headings: Vec<String>,
    /// Rows, as wide as the headings.
    pub rows: Vec<Vec<String>>,
    /// Where the figures in brackets stand.
    pub sources: Vec<String>,
}

impl FactTable {
    /// The facts of a run; `labels[i]` names `merged[i]`. Empty if no valid cell has any.
    pub fn of(run: &Run, merged: &[MergedCell], labels: &[impl AsRef<str>]) -> Self {
        let with_facts =
            |row: &&(&MergedCell, &str)| (row.0.valid || row.0.is_only_slow) && !names(run, row.0).is_empty();
        let labelled: Vec<(&MergedCell, &str)> =
            merged.iter().zip(labels.iter().map(AsRef::as_ref)).collect();
        let chosen: Vec<(&MergedCell, &str)> = labelled.iter().filter(with_facts).copied().collect();
        let mut names: Vec<String> = chosen.iter().flat_map(|(row, _)| names(run, row)).collect();
        let rank = |name: &str| FIRST.iter().position(|first| *first == name).unwrap_or(FIRST.len());
        names.sort_unstable_by(|a, b| (rank(a), a).cmp(&(rank(b), b)));
        names.dedup();
        if names.is_empty() {
            return Self::default();
        }
        let mut sources: Vec<String> = Vec::new();
        let rows = chosen.iter().map(|(row, label)| {
            let figures = names.iter().map(|name| figure(run, row, name, &mut sources));
            std::iter::once((*label).to_owned()).chain(figures.collect::<Vec<_>>()).collect()
        });
        let rows = rows.collect();
        let headings = std::iter::once("experiment".to_owned()).chain(names.iter().map(|name| heading(name)));
        Self { headings: headings.collect(), rows, sources }
    }
}

/// Names of the columns in which a row has a figure.
fn names(run: &Run, row: &MergedCell) -> Vec<String> {
    let of_trials = valid_trials(run, row).first().map(|cell| figures(cell)).unwrap_or_default();
    of_trials.into_keys().chain(pooled(run, row).into_keys().map(str::to_owned)).collect()
}

fn trials<'a>(run: &'a Run, row: &MergedCell) -> Vec<&'a Cell> {
    row.trials.iter().map(|&trial| &run.cells[trial]).collect()
}

/// Those whose own figures count: if one is not valid, none.
fn valid_trials<'a>(run: &'a Run, row: &MergedCell) -> Vec<&'a Cell> {
    if row.valid { trials(run, row) } else { Vec::new() }
}

/// The name without its unit, which stands with every figure.
fn heading(name: &str) -> String {
    let units = ["_ns", "_bytes_per_s", "_bytes", "_share"];
    units.iter().find_map(|unit| name.strip_suffix(unit)).unwrap_or(name).replace('_', " ")
}

fn figure(run: &Run, row: &MergedCell, name: &str, sources: &mut Vec<String>) -> String {
    if let Some(words) = pooled(run, row).remove(name) {
        return words;
    }
    let values = valid_trials(run, row).into_iter().filter_map(|cell| figures(cell).get(name).copied());
    let Some(median) = median(values.collect()) else { return "–".into() };
    let own = match name {
        _ if name.ends_with("_ns") => duration(median),
        _ if name.ends_with("_bytes_per_s") => format!("{} MB/s", three_digits(median / 1e6)),
        _ if name.ends_with("_share") => format!("{:.3} %", median * 100.0),
        _ if name == "messages_per_s" => notation::count(median.max(0.0) as u64),
        _ if name.ends_with("_bytes") => size(median.max(0.0) as u64),
        _ => three_digits(median),
    };
    let beside = run.scenario.published.iter().find(|published| {
        published.fact.as_deref() == Some(name)
            && published.format.as_ref().is_none_or(|format| *format == row.key.format)
            && published.payload_bytes.is_none_or(|bytes| bytes == row.key.payload_bytes)
    });
    let Some(published) = beside else { return own };
    if !sources.contains(&published.source) {
        sources.push(published.source.clone());
    }
    format!("{own} ({})", published.value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use noctule_lab::dimensions::Mode;
    use noctule_lab::fixture;
    use noctule_lab::merge::merge;
    use noctule_lab::run::Published;

    fn cell(trial: u32, facts: &[(&str, f64)]) -> (Cell, noctule_lab::samples::CellSamples) {
        let (mut cell, samples) = fixture::round_trip("formats_rust", trial, &[1_000; 100]);
        cell.format = "json".into();
        cell.payload_bytes = 1024;
        cell.facts = facts.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        (cell, samples)
    }

    fn table(cells: Vec<(Cell, noctule_lab::samples::CellSamples)>, published: Vec<Published>) -> FactTable {
        let (mut run, samples) = fixture::run(cells);
        run.scenario.published = published;
        let merged = merge(&run, &samples);
        let labels: Vec<String> = merged.iter().map(|row| row.key.peer.clone()).collect();
        FactTable::of(&run, &merged, &labels)
    }

    #[test]
    fn a_fact_is_the_median_of_its_trials_with_the_published_figure_beside_it() {
        let cells = [300.0, 100.0, 200.0].iter().zip(0..).map(|(&ns, trial)| {
            cell(
                trial,
                &[("decode_ns", 5_000.0), ("encode_ns", ns), ("encoded_bytes", 3739.0), ("zeal", 1.5)],
            )
        });
        let published = |format: &str, payload_bytes| Published {
            what: "JSON".into(),
            value: "0.644 ms".into(),
            source: "paper".into(),
            fact: Some("encode_ns".into()),
            format: Some(format.into()),
            payload_bytes: Some(payload_bytes),
        };
        let others = vec![published("yaml", 1024), published("json", 5120), published("json", 1024)];
        let table = table(cells.collect(), others);
        assert_eq!(table.headings, ["experiment", "encode", "decode", "encoded", "zeal"]);
        assert_eq!(table.rows, [["formats_rust", "200 ns (0.644 ms)", "5 µs", "3739 B", "1.5"]]);
        assert_eq!(table.sources, ["paper"]);
    }

    #[test]
    fn of_an_even_number_of_trials_the_mean_of_the_two_in_the_middle_counts() {
        let cells = [900.0, 100.0, 300.0, 200.0].iter().zip(0..);
        let table = table(cells.map(|(&ns, trial)| cell(trial, &[("encode_ns", ns)])).collect(), vec![]);
        assert_eq!(table.rows, [["formats_rust", "250 ns"]]);
    }

    #[test]
    fn across_a_link_every_message_of_every_trial_counts_and_the_warm_up_as_payload_too() {
        let trial = |trial, lost, wire_bytes| {
            let (mut cell, mut samples) = fixture::round_trip("srt", trial, &(1..=5_000).collect::<Vec<_>>());
            (cell.link, cell.mode, cell.payload_bytes) = ("link:loss=5%".into(), Mode::OneWay, 100);
            (cell.deadline_ns, cell.warm_up_sent, cell.wire_bytes) = (Some(1), Some(10), Some(wire_bytes));
            (cell.sent, cell.lost, cell.late) = (5_000 + lost, lost, 20);
            samples.iter_mut().for_each(|sample| sample.node = 1);
            (cell, samples)
        };
        let mut run = vec![trial(0, 10, 550_000), trial(1, 10, 550_000), trial(2, 60, 710_000)];
        let table = |run: &[(Cell, noctule_lab::samples::CellSamples)]| table(run.to_vec(), vec![]);
        let found = table(&run);
        assert_eq!(found.headings[1..], [ON_TIME, P99, P99_9, WIRE_PER_PAYLOAD]);
        // 1 − (80 + 60) / 15,080; payload 100 × (15,080 + 30).
        assert_eq!(found.rows[0][1..], ["99.072 %", "4.98 µs", "never", "1.2"]);
        run[0].0.warm_up_sent = None;
        assert_eq!(table(&run).headings[1..], [ON_TIME, P99, P99_9], "half a ratio is none");
    }

    #[test]
    fn a_peer_that_does_not_hold_the_rate_still_says_how_much_was_on_time_and_nothing_else() {
        let (mut cell, samples) = fixture::round_trip("tcp", 0, &(1..=20).collect::<Vec<_>>());
        (cell.link, cell.mode, cell.deadline_ns) = ("link:loss=1%".into(), Mode::OneWay, Some(1));
        (cell.sent, cell.lost, cell.late, cell.scheduled) = (20, 0, 15, Some(200));
        (cell.warm_up_sent, cell.wire_bytes, cell.redundancy) = (Some(0), Some(20), Some(0.5));
        (cell.valid, cell.rate_held) = (false, Some(false));
        cell.why_invalid = vec!["the rate was not held: 20 of 200 messages were sent".into()];
        let found = table(vec![(cell.clone(), samples.clone())], vec![]);
        assert_eq!(found.headings[1..], [ON_TIME]);
        assert_eq!(found.rows[0][1..], ["2.500 %"]);
        cell.why_invalid.push("peers disagree".into());
        assert_eq!(table(vec![(cell, samples)], vec![]), FactTable::default());
    }

    #[test]
    fn what_goes_through_stands_beside_what_does_not() {
        let trial = |trial, lost| {
            let (mut cell, samples) = fixture::round_trip("noctule", trial, &(1..=20).collect::<Vec<_>>());
            (cell.mode, cell.rate_hz, cell.received_hz) = (Mode::OneWay, None, Some(1e3));
            (cell.sent, cell.received, cell.lost) = (20 + lost, 20, lost);
            (cell, samples)
        };
        let found = table(vec![trial(0, 0), trial(1, 10)], vec![]);
        let place = found.headings.iter().position(|heading| heading == DELIVERED).unwrap();
        assert_eq!(found.rows[0][place], "80.000 %");
    }

    #[test]
    fn a_run_without_facts_has_no_table_and_an_invalid_cell_no_row() {
        assert_eq!(table(vec![cell(0, &[])], vec![]), FactTable::default());
        let mut bad = cell(0, &[("encode_ns", 1.0)]);
        bad.0.valid = false;
        assert_eq!(table(vec![bad], vec![]), FactTable::default());
    }
}
