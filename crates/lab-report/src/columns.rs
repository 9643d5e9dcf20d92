//! The columns of a run's tables, each written once.
//!
//! The table for a terminal, the page's results and its accounting, README's table and the list of columns in
//! `docs/spec/run-json.md` are made from [`COLUMNS`]; a new column is one entry there. A table shows its columns in the
//! order of the list.

use noctule_lab::dimensions::{Mode, Placement};
use noctule_lab::labels;
use noctule_lab::merge::MergedCell;
use noctule_lab::notation::{count, duration, three_digits};
use noctule_lab::run::{Cell, CellKey, Run};
use noctule_lab::statistics::LatencySummary;
use serde::Serialize;

/// Text in place of a figure that the samples do not support.
pub const WITHHELD: &str = "–";

/// A table that people read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    /// At the end of a run, in a terminal.
    Terminal,
    /// The results of `report.html`.
    Page,
    /// The accounting of every experiment in `report.html`.
    Accounts,
    /// The table in README.md.
    Readme,
}

impl Table {
    /// Its columns, from the left.
    pub fn columns(self) -> impl Iterator<Item = &'static Column> + Clone {
        COLUMNS.iter().filter(move |column| column.tables.contains(&self))
    }

    fn name(self) -> &'static str {
        match self {
            Self::Terminal => "terminal",
            Self::Page => "page",
            Self::Accounts => "accounting",
            Self::Readme => "README",
        }
    }
}

/// One experiment: its trials merged, and each of them.
#[derive(Debug, Clone)]
pub struct Experiment<'a> {
    /// The trials together.
    pub merged: &'a MergedCell,
    /// The trials in the order measured.
    pub trials: Vec<&'a Cell>,
}

impl<'a> Experiment<'a> {
    /// `merged` is a row of `run`.
    pub fn of(run: &'a Run, merged: &'a MergedCell) -> Self {
        Self { merged, trials: merged.trials.iter().filter_map(|&trial| run.cells.get(trial)).collect() }
    }

    fn latency(&self, pick: impl Fn(&LatencySummary) -> Option<i64>) -> Figure {
        let Some(summary) = &self.merged.latency_ns else {
            let word = match (self.merged.valid, self.merged.may_saturate) {
                (true, _) => WITHHELD,
                (false, true) => "saturated",
                (false, false) => "FAIL",
            };
            return Figure::word(word);
        };
        let title = "fewer than ten samples beyond it";
        match pick(summary) {
            Some(ns) => Figure { text: duration(ns as f64), sort: ns.to_string(), title: None },
            None => Figure { title: Some(title.to_owned()), ..Figure::withheld() },
        }
    }

    /// The largest over the trials that have one, nanoseconds.
    fn worst(&self, of_trial: impl Fn(&Cell) -> Option<f64>) -> Figure {
        let worst = self.trials.iter().filter_map(|cell| of_trial(cell)).max_by(f64::total_cmp);
        worst.map_or_else(Figure::withheld, |ns| Figure {
            text: duration(ns),
            sort: ns.to_string(),
            title: None,
        })
    }
}

/// Contents of one cell of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Figure {
    /// The text that is shown.
    pub text: String,
    /// The page sorts by it, as a number if it is one; empty sorts last.
    pub sort: String,
    /// The page shows it under the pointer.
    pub title: Option<String>,
}

impl Figure {
    fn word(text: impl ToString) -> Self {
        let text = text.to_string();
        Self { sort: text.clone(), text, title: None }
    }

    fn withheld() -> Self {
        Self { text: WITHHELD.to_owned(), sort: String::new(), title: None }
    }

    fn count(n: u64) -> Self {
        Self { text: count(n), sort: n.to_string(), title: None }
    }

    /// `n` and its share of `all`.
    fn share(n: u64, all: u64) -> Self {
        let share = three_digits(n as f64 * 100.0 / all.max(1) as f64);
        let text = if n == 0 { "0".to_owned() } else { format!("{} ({share} %)", count(n)) };
        Self { text, sort: n.to_string(), title: None }
    }
}

/// One column.
#[derive(Debug)]
pub struct Column {
    /// Its head.
    pub heading: &'static str,
    /// Its meaning: the tool tip of the page and the text of the specification.
    pub meaning: &'static str,
    /// Fields of a cell of `run.json` that it is made of.
    pub fields: &'static [&'static str],
    /// Aligned left, as words are; figures are aligned right.
    pub is_word: bool,
    /// False if it needs a summary, which an invalid experiment has not.
    pub is_known_if_invalid: bool,
    /// Tables that show it.
    pub tables: &'static [Table],
    /// Its figure of one experiment.
    pub of: fn(&Experiment<'_>) -> Figure,
}

const WORD: Column = Column {
    heading: "",
    meaning: "",
    fields: &[],
    is_word: true,
    is_known_if_invalid: true,
    tables: &[Table::Terminal],
    of: |_| Figure::withheld(),
};
const COUNT: Column = Column { is_word: false, tables: &[Table::Accounts], ..WORD };
const TIME: Column = Column { is_known_if_invalid: false, ..COUNT };

/// Every column, in the order in which tables show them.
pub const COLUMNS: [Column; 27] = [
    Column {
        heading: "peer",
        meaning: "the middleware; in a terminal with its format and options, and what flowed beside it",
        fields: &["peer", "format", "options", "beside"],
        of: |row| Figure::word(peer(&row.merged.key)),
        ..WORD
    },
    Column {
        heading: "peer",
        meaning: "the middleware, bold if it is no floor",
        fields: &["peer", "is_floor"],
        tables: &[Table::Readme],
        of: |row| {
            Figure::word(if row.merged.is_floor {
                row.merged.key.peer.clone()
            } else {
                format!("**{}**", row.merged.key.peer)
            })
        },
        ..WORD
    },
    Column {
        heading: "experiment",
        meaning: "link, mode, rate, wait, and on how many cores",
        fields: &["link", "mode", "rate_hz", "wait", "placement"],
        tables: &[Table::Readme],
        of: |row| Figure::word(experiment(&row.merged.key)),
        ..WORD
    },
    Column {
        heading: "link",
        meaning: "what carries the messages",
        fields: &["link"],
        of: |row| Figure::word(&row.merged.key.link),
        ..WORD
    },
    Column {
        heading: "mode",
        meaning: "which node sends to which; the number of nodes if it is not two",
        fields: &["mode", "nodes"],
        of: |row| Figure::word(mode(&row.merged.key)),
        ..WORD
    },
    Column {
        heading: "bytes",
        meaning: "size of one message",
        fields: &["payload_bytes"],
        of: |row| Figure::word(row.merged.key.payload_bytes),
        is_word: false,
        ..WORD
    },
    Column {
        heading: "Hz",
        meaning: "messages per second; `closed`: the next is sent when the one before has arrived",
        fields: &["rate_hz"],
        of: |row| {
            Figure::word(
                row.merged.key.rate_mhz.map_or("closed".into(), |mhz| (mhz as f64 / 1e3).to_string()),
            )
        },
        is_word: false,
        ..WORD
    },
    Column {
        heading: "wait",
        meaning: "how a node waits for a message",
        fields: &["wait"],
        of: |row| Figure::word(row.merged.key.wait),
        ..WORD
    },
    Column {
        heading: "cores",
        meaning: "cores of the nodes in turn, or `free`",
        fields: &["placement"],
        of: |row| Figure::word(&row.merged.key.placement),
        ..WORD
    },
    Column {
        heading: "samples",
        meaning: "latencies of all trials, and the number of trials",
        fields: &["received", "trial"],
        tables: &[Table::Page],
        of: |row| {
            let samples = Figure::count(row.merged.samples);
            match row.merged.trials.len() {
                1 => samples,
                trials => Figure { text: format!("{} in {trials}", samples.text), ..samples },
            }
        },
        ..COUNT
    },
    Column {
        heading: "p50",
        meaning: "median latency from the scheduled send; a round trip is the whole trip",
        fields: &["latency_ns"],
        tables: &[Table::Terminal, Table::Page, Table::Readme],
        of: |row| row.latency(|latency| latency.p50),
        ..TIME
    },
    Column {
        heading: "±",
        meaning: "half the range of the trials' medians, as a share of p50",
        fields: &["latency_ns"],
        tables: &[Table::Terminal, Table::Page],
        of: spread,
        ..TIME
    },
    Column {
        heading: "p99",
        meaning: "99th percentile of the latency",
        fields: &["latency_ns"],
        tables: &[Table::Terminal, Table::Page, Table::Readme],
        of: |row| row.latency(|latency| latency.p99),
        ..TIME
    },
    Column {
        heading: "p99.9",
        meaning: "99.9th percentile of the latency",
        fields: &["latency_ns"],
        tables: &[Table::Page],
        of: |row| row.latency(|latency| latency.p99_9),
        ..TIME
    },
    Column {
        heading: "max",
        meaning: "largest latency",
        fields: &["latency_ns"],
        tables: &[Table::Terminal, Table::Page],
        of: |row| row.latency(|latency| Some(latency.max)),
        ..TIME
    },
    Column {
        heading: "trials",
        meaning: "how often the experiment was run",
        fields: &["trial"],
        of: |row| Figure::count(row.trials.len() as u64),
        ..COUNT
    },
    Column {
        heading: "sent",
        meaning: "messages sent; in a fan-out deliveries wanted",
        fields: &["sent"],
        of: |row| Figure::count(row.merged.sent),
        ..COUNT
    },
    Column {
        heading: "received",
        meaning: "messages that arrived, each counted once",
        fields: &["received"],
        of: |row| Figure::count(row.merged.received),
        ..COUNT
    },
    Column {
        heading: "lost",
        meaning: "messages that never arrived, and their share of those sent",
        fields: &["lost", "sent"],
        tables: &[Table::Terminal, Table::Page, Table::Accounts],
        of: |row| Figure::share(row.merged.lost, row.merged.sent),
        ..COUNT
    },
    Column {
        heading: "late",
        meaning: "messages that arrived after their deadline, and their share of those received",
        fields: &["late", "received", "deadline_ns"],
        tables: &[Table::Terminal, Table::Page, Table::Accounts],
        of: |row| Figure::share(row.merged.late, row.merged.received),
        ..COUNT
    },
    Column {
        heading: "duplicated",
        meaning: "further arrivals of messages already received",
        fields: &["duplicated"],
        of: |row| Figure::count(row.merged.duplicated),
        ..COUNT
    },
    Column {
        heading: "reordered",
        meaning: "arrivals in another order than sent",
        fields: &["reordered"],
        of: |row| {
            let mut known = row.trials.iter().filter_map(|cell| cell.reordered).peekable();
            let is_known = known.peek().is_some();
            if is_known { Figure::count(known.sum()) } else { Figure::withheld() }
        },
        ..COUNT
    },
    Column {
        heading: "lag p99 / max",
        meaning: "how late the sender itself was, in the worst trial; part of every open-loop latency",
        fields: &["send_lag_ns"],
        of: |row| {
            let p99 = row.worst(|cell| cell.send_lag_ns?.p99.map(|ns| ns as f64));
            let max = row.worst(|cell| cell.send_lag_ns.map(|lag| lag.max as f64));
            Figure { text: format!("{} / {}", p99.text, max.text), ..max }
        },
        ..COUNT
    },
    Column {
        heading: "CPU per message",
        meaning: "processor time of all nodes per message, in the worst trial",
        fields: &["cpu_ns_per_message"],
        of: |row| row.worst(|cell| cell.cpu_ns_per_message),
        ..COUNT
    },
    Column {
        heading: "clock bound / sigma",
        meaning: "error of the clock offset, proven and likely, in the worst trial; 0 on one clock",
        fields: &["clock_bound_ns", "clock_sigma_ns"],
        of: |row| {
            let bound = row.worst(|cell| Some(cell.clock_bound_ns as f64));
            let sigma = row.worst(|cell| Some(cell.clock_sigma_ns as f64));
            Figure { text: format!("{} / {}", bound.text, sigma.text), ..bound }
        },
        ..COUNT
    },
    Column {
        heading: "recorder",
        meaning: "cost of taking and storing one stamp, in the worst trial",
        fields: &["recorder_ns"],
        of: |row| row.worst(|cell| cell.recorder_ns),
        ..COUNT
    },
    Column {
        heading: "× floor",
        meaning: "p50 divided by that of the floor, and which floor",
        fields: &["ratio_to_floor", "floor", "is_floor"],
        is_word: true,
        tables: &[Table::Terminal, Table::Page, Table::Readme],
        of: times_floor,
        ..TIME
    },
];

fn spread(row: &Experiment<'_>) -> Figure {
    let title = row
        .merged
        .p50_spread_ns
        .map(|(low, high)| format!("medians from {} to {}", duration(low as f64), duration(high as f64)));
    match row.merged.relative_half_spread() {
        Some(share) => Figure { text: format!("{:.1} %", share * 100.0), sort: share.to_string(), title },
        None => Figure { title, ..Figure::withheld() },
    }
}

fn times_floor(row: &Experiment<'_>) -> Figure {
    match (&row.merged.floor, row.merged.ratio_to_floor) {
        (Some(floor), Some(ratio)) => Figure {
            text: format!("{} × {}", three_digits(ratio), floor.name),
            sort: ratio.to_string(),
            title: Some(format!("floor: {}, p50 {}", floor.name, duration(floor.p50_ns as f64))),
        },
        _ if row.merged.is_floor => Figure { text: "floor".into(), ..Figure::withheld() },
        _ => Figure::withheld(),
    }
}

/// The peer, and what of its experiment has no column in a terminal.
pub fn peer(key: &CellKey) -> String {
    let format = Some(key.format.clone()).filter(|format| !["raw", ""].contains(&format.as_str()));
    let beside = key.beside.as_ref().map(|beside| format!("beside {}", beside.peer));
    let words = [Some(key.peer.clone()), format, labels::options(key), beside];
    words.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn mode(key: &CellKey) -> String {
    match key.nodes {
        2 => key.mode.to_string(),
        nodes => format!("{} ({nodes})", key.mode),
    }
}

fn experiment(key: &CellKey) -> String {
    let mode = match key.mode {
        Mode::Chain | Mode::FanOut => format!("{} of {}", labels::in_words(key.mode), key.nodes),
        mode => labels::in_words(mode),
    };
    let rate = key.rate_mhz.map_or(String::new(), |mhz| format!(" at {} Hz", mhz as f64 / 1e3));
    let cores = match &key.placement {
        Placement::Cores(cores) if cores.len() == 1 => "one core".to_owned(),
        Placement::Cores(cores) if cores.len() == 2 => "two cores".to_owned(),
        Placement::Cores(cores) => format!("{} cores", cores.len()),
        Placement::Free | Placement::Unknown => "any core".to_owned(),
    };
    format!("{}, {mode}{rate}, {}, {cores}", key.link, key.wait)
}

/// The list of columns as a table in Markdown, for `docs/spec/run-json.md`.
pub fn documentation() -> String {
    let mut text = "| column | shown in | made of | meaning |\n|---|---|---|---|\n".to_owned();
    for column in &COLUMNS {
        let tables: Vec<&str> = column.tables.iter().map(|table| table.name()).collect();
        let fields: Vec<String> = column.fields.iter().map(|field| format!("`{field}`")).collect();
        let (heading, meaning) = (column.heading, column.meaning);
        text += &format!("| {heading} | {} | {} | {meaning} |\n", tables.join(", "), fields.join(" "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use noctule_lab::fixture;
    use noctule_lab::merge::merge;

    const SPECIFICATION: &str = include_str!("../../../docs/spec/run-json.md");

    #[test]
    fn the_specification_lists_the_columns_as_they_are() {
        let (_, rest) = SPECIFICATION.split_once("<!-- columns -->\n").expect("it marks the list");
        let (listed, _) = rest.split_once("<!-- end of columns -->").expect("it marks the list's end");
        let made = documentation();
        assert!(
            listed == made,
            "docs/spec/run-json.md lists other columns; between its marks belongs\n{made}"
        );
    }

    #[test]
    fn every_column_is_made_of_fields_that_a_cell_has_and_the_specification_names() {
        let (run, _) = fixture::chain_and_round_trips();
        let cell = serde_json::to_value(&run.cells[0]).unwrap();
        for column in &COLUMNS {
            assert!(!column.fields.is_empty() && !column.tables.is_empty(), "{}", column.heading);
            for field in column.fields {
                assert!(cell.get(field).is_some(), "{}: a cell has no {field}", column.heading);
            }
        }
        let (_, of_cell) = SPECIFICATION.split_once("A cell:").unwrap();
        for field in cell.as_object().unwrap().keys() {
            assert!(
                of_cell.contains(&format!("`{field}`")),
                "docs/spec/run-json.md does not describe {field}"
            );
        }
    }

    #[test]
    fn a_table_has_no_heading_twice() {
        for table in [Table::Terminal, Table::Page, Table::Accounts, Table::Readme] {
            let mut headings: Vec<&str> = table.columns().map(|column| column.heading).collect();
            let columns = headings.len();
            headings.sort_unstable();
            headings.dedup();
            assert!(columns > 3 && headings.len() == columns, "{table:?}: {headings:?}");
        }
    }

    #[test]
    fn an_invalid_experiment_has_counts_but_no_latency() {
        let (mut run, samples) = fixture::chain_and_round_trips();
        run.cells[2].valid = false;
        run.cells[2].latency_ns = None;
        let merged = merge(&run, &samples);
        let row = Experiment::of(&run, &merged[1]);
        for column in &COLUMNS {
            let text = (column.of)(&row).text;
            let has_latency = column.fields.contains(&"latency_ns");
            assert_eq!(text == "FAIL" || has_latency && text == WITHHELD, has_latency, "{}", column.heading);
        }
    }
}
