//! Recorded round trips become a run like any other.
//!
//! The format is that of `microros_latency_eval`: two files without header, one row per message as
//! row number, nanoseconds since the epoch, message index; `PUB.csv` when a message was published,
//! `SUB.csv` when its answer arrived. They are joined on the index. Both stamps are of one clock, so
//! the result is a whole round trip with a clock bound of 0. The recording does not say when a
//! message *should* have been published, so a sender's delays are not in it.
//!
//! A byte order mark, CRLF and blank lines at the end are accepted; anything else that is not the
//! format is refused with file and line.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::cell_statistics::{blocks, late, latencies, reordered};
use crate::dimensions::{Link, Mode};
use crate::host;
use crate::merge::group;
use crate::run::{Cell, Host, Published, Run, SCHEMA, ScenarioRecord};
use crate::samples::{CellSamples, Sample};
use crate::statistics::LatencySummary;
use crate::validity::{Invalid, sentences};

/// Longest file that is read: about 8 million rows.
pub const FILE_BYTES_MAX: u64 = 256 << 20;

/// Why a recording could not be imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// A file could not be read.
    #[error("cannot read {path}: {source}; name the two CSV files of a recording")]
    Read {
        /// Path tried.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A file exceeds [`FILE_BYTES_MAX`].
    #[error("{path} is larger than {} MiB; split the recording", FILE_BYTES_MAX >> 20)]
    TooLarge {
        /// Path tried.
        path: PathBuf,
    },
    /// A file has no row.
    #[error("{path} is empty; a recording has one row per message: row number, nanoseconds, index")]
    Empty {
        /// Path tried.
        path: PathBuf,
    },
    /// A row is not what it should be.
    #[error("{path} line {line}: {fact}")]
    Row {
        /// Path tried.
        path: PathBuf,
        /// Line number from 1.
        line: usize,
        /// The fact and the way out.
        fact: RowError,
    },
}

/// Fault in a row of a recording.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RowError {
    /// A byte that no text has.
    #[error("a NUL byte; the file was cut off while written or is not text")]
    Nul,
    /// No text.
    #[error("not UTF-8 text")]
    NotText,
    /// More fields or fewer.
    #[error("{found} fields instead of 3: row number, nanoseconds, index")]
    Fields {
        /// Number of fields in the row.
        found: usize,
    },
    /// A field is no number.
    #[error("{what} {shown:?} is not a whole number below 2^64; a recording has no header")]
    NotWhole {
        /// The field.
        what: &'static str,
        /// Its beginning.
        shown: String,
    },
    /// A time of more than 63 bits.
    #[error("the time {time} does not fit 63 bits; it must be nanoseconds")]
    TimeTooLarge {
        /// The time, as it was written.
        time: String,
    },
    /// A time that goes back.
    #[error(
        "the time is {back_ns} ns before that of the row above; rows must be in order of time, and the clock must not be set while recording"
    )]
    TimeGoesBack {
        /// Step back in time, ns.
        back_ns: u64,
    },
    /// An index that an earlier row has.
    #[error("index {index} was already published in line {first}; indices must be unique")]
    PublishedTwice {
        /// The index that occurs twice.
        index: u64,
        /// Line of the earlier row.
        first: usize,
    },
    /// An answer without a question.
    #[error("index {index} is not in {published}; both files must be of one recording")]
    NotPublished {
        /// The index without a question.
        index: u64,
        /// The file of the questions.
        published: PathBuf,
    },
}

/// Imports one recording of round trips.
///
/// # Errors
/// If a file cannot be read or is not of the format, or if an answer has no question.
pub fn pingpong(published: &Path, received: &Path) -> Result<(Run, Vec<CellSamples>), ImportError> {
    let sent = parse(published, &read(published)?)?;
    let arrivals = parse(received, &read(received)?)?;
    let joined = join((published, &sent), (received, &arrivals))?;
    let cell = cell(&name(published), &sent, &joined);
    let run = Run {
        schema: SCHEMA,
        host: Host {
            cpu: "recorded elsewhere".to_owned(),
            started_at: sent
                .first()
                .map_or(String::new(), |row| host::rfc3339(Duration::from_nanos(row.time_ns.max(0) as u64))),
            ..Host::default()
        },
        scenario: scenario(published, received),
        partial: false,
        cells: vec![cell],
        skipped: Vec::new(),
        thresholds: Vec::new(),
        interleaving: None,
    };
    Ok((run, vec![joined.samples]))
}

/// The table of a recording, in milliseconds, with the counts above it.
pub fn render(run: &Run) -> String {
    let mut text = String::new();
    for (_, trials) in group(run) {
        for cell in trials.into_iter().map(|trial| &run.cells[trial]) {
            // Writing to a String cannot fail.
            let _ = render_cell(&mut text, cell);
        }
    }
    text
}

fn render_cell(text: &mut String, cell: &Cell) -> std::fmt::Result {
    write!(
        text,
        "{}: {} published, {} received, {} lost, {} duplicated, {} reordered",
        cell.peer,
        cell.sent,
        cell.received,
        cell.lost,
        cell.duplicated,
        cell.reordered.unwrap_or(0)
    )?;
    if let Some(deadline_ns) = cell.deadline_ns {
        let period_ms = deadline_ns as f64 / 1e6;
        write!(text, ", {} later than one period of {period_ms} ms", cell.late)?;
    }
    let Some(summary) = cell.latency_ns else {
        return writeln!(text, "\nFAIL {}", sentences(&cell.why_invalid));
    };
    let ms = |ns: Option<f64>| ns.map_or("–".to_owned(), |ns| format!("{:.6}", ns / 1e6));
    let percentile = |ns: Option<i64>| ms(ns.map(|ns| ns as f64));
    let columns = [
        ("mean", ms(Some(summary.mean))),
        ("max", percentile(Some(summary.max))),
        ("min", percentile(Some(summary.min))),
        ("std", ms(summary.std)),
        ("p50", percentile(summary.p50)),
        ("p95", percentile(summary.p95)),
        ("p99", percentile(summary.p99)),
    ];
    write!(text, "\nround trip [ms]")?;
    for (name, _) in &columns {
        write!(text, "{name:>12}")?;
    }
    write!(text, "\n{:15}", "")?;
    for (_, value) in &columns {
        write!(text, "{value:>12}")?;
    }
    writeln!(text)
}

/// One row of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Row {
    line: usize,
    time_ns: i64,
    index: u64,
}

fn read(path: &Path) -> Result<Vec<u8>, ImportError> {
    let unreadable = |source| ImportError::Read { path: path.to_owned(), source };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        let path = path.to_owned();
        return Err(ImportError::TooLarge { path });
    }
    Ok(bytes)
}

/// Rows in file order; their times never go back.
fn parse(path: &Path, bytes: &[u8]) -> Result<Vec<Row>, ImportError> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let end = bytes.iter().rposition(|byte| !byte.is_ascii_whitespace());
    let Some(end) = end else {
        let path = path.to_owned();
        return Err(ImportError::Empty { path });
    };
    let mut rows: Vec<Row> = Vec::new();
    for (position, line) in bytes[..=end].split(|&byte| byte == b'\n').enumerate() {
        let refuse = |fact| refuse(path, position + 1, fact);
        let row = parse_row(position + 1, line).map_err(refuse)?;
        if let Some(before) = rows.last().filter(|before| before.time_ns > row.time_ns) {
            let back_ns = before.time_ns.abs_diff(row.time_ns);
            return Err(refuse(RowError::TimeGoesBack { back_ns }));
        }
        rows.push(row);
    }
    Ok(rows)
}

fn parse_row(line: usize, bytes: &[u8]) -> Result<Row, RowError> {
    if bytes.contains(&0) {
        return Err(RowError::Nul);
    }
    let text = std::str::from_utf8(bytes).map_err(|_| RowError::NotText)?;
    let fields: Vec<&str> = text.trim().split(',').map(str::trim).collect();
    let &[row, time, index] = fields.as_slice() else {
        let found = match text.trim() {
            "" => 0,
            _ => fields.len(),
        };
        return Err(RowError::Fields { found });
    };
    whole("the row number", row)?;
    let time_ns = whole("the time", time)?;
    let time_ns = i64::try_from(time_ns).map_err(|_| RowError::TimeTooLarge { time: time.to_owned() })?;
    let index = whole("the index", index)?;
    Ok(Row { line, time_ns, index })
}

fn whole(what: &'static str, text: &str) -> Result<u64, RowError> {
    text.parse().map_err(|_| RowError::NotWhole { what, shown: text.chars().take(40).collect() })
}

fn refuse(path: &Path, line: usize, fact: RowError) -> ImportError {
    ImportError::Row { path: path.to_owned(), line, fact }
}

/// Samples of a cell, joined by index from the records of both ends.
struct Joined {
    samples: CellSamples,
    duplicated: u64,
}

fn join(
    (published, sent): (&Path, &[Row]),
    (received, arrivals): (&Path, &[Row]),
) -> Result<Joined, ImportError> {
    let mut position: HashMap<u64, usize> = HashMap::with_capacity(sent.len());
    for (at, row) in sent.iter().enumerate() {
        if let Some(first) = position.insert(row.index, at) {
            let Row { index, line, .. } = *row;
            let first = sent[first].line;
            return Err(refuse(published, line, RowError::PublishedTwice { index, first }));
        }
    }
    let mut first_arrival: Vec<Option<i64>> = vec![None; sent.len()];
    let mut duplicated = 0;
    for row in arrivals {
        let Some(&at) = position.get(&row.index) else {
            let fact = RowError::NotPublished { index: row.index, published: published.to_owned() };
            return Err(refuse(received, row.line, fact));
        };
        match first_arrival[at] {
            Some(_) => duplicated += 1,
            None => first_arrival[at] = Some(row.time_ns),
        }
    }
    let mut samples = Vec::with_capacity(sent.len());
    for (at, (row, arrival)) in sent.iter().zip(first_arrival).enumerate() {
        samples.extend(arrival.map(|received_ns| Sample {
            index: at as u64,
            node: 0,
            scheduled_ns: row.time_ns,
            sent_ns: row.time_ns,
            received_ns,
        }));
    }
    Ok(Joined { samples, duplicated })
}

fn cell(peer: &str, sent: &[Row], joined: &Joined) -> Cell {
    let latencies = latencies(&joined.samples, 0);
    let rate_hz = rate_hz(sent);
    let deadline_ns = rate_hz.map(|hz| (1e9 / hz) as u64);
    let mut why_invalid = Vec::new();
    let negative = latencies.iter().filter(|&&ns| ns < 0).count();
    if negative > 0 {
        why_invalid.push(Invalid::AnswerBeforeQuestion { count: negative, of: latencies.len() });
    }
    let received = joined.samples.len() as u64;
    if received == 0 {
        why_invalid.push(Invalid::NothingAnswered);
    }
    let valid = why_invalid.is_empty();
    Cell {
        format: "cdr".to_owned(),
        // Four 32-bit integers; the recording has nothing else to say about it.
        payload_bytes: 16,
        rate_hz,
        deadline_ns,
        sent: sent.len() as u64,
        received,
        lost: sent.len() as u64 - received,
        late: deadline_ns.map_or(0, |deadline_ns| late(&latencies, deadline_ns)),
        duplicated: joined.duplicated,
        blocks: blocks(&latencies),
        latency_ns: LatencySummary::of(latencies).filter(|_| valid),
        valid,
        why_invalid,
        reordered: Some(reordered(&joined.samples, 0)),
        ..Cell::unmeasured(peer, Link::Between("recorded".into()), Mode::RoundTrip)
    }
}

/// Publishing rate to three digits, from the median interval; `None` for a single message.
fn rate_hz(sent: &[Row]) -> Option<f64> {
    let mut intervals: Vec<i64> = sent.windows(2).map(|pair| pair[1].time_ns - pair[0].time_ns).collect();
    intervals.sort_unstable();
    let median_ns = *intervals.get(intervals.len() / 2)?;
    (median_ns > 0).then(|| format!("{:.2e}", 1e9 / median_ns as f64).parse().ok())?
}

/// The recording's name: its directory, else its file.
fn name(published: &Path) -> String {
    let directory = published.parent().and_then(Path::file_name);
    let name = directory.or(published.file_stem());
    name.map_or("recording".to_owned(), |name| name.to_string_lossy().into_owned())
}

fn scenario(published: &Path, received: &Path) -> ScenarioRecord {
    let source = "microros_latency_eval (kueda12048), README";
    let figure = |what: &str, value: &str| Published {
        what: what.to_owned(),
        value: value.to_owned(),
        source: source.to_owned(),
        ..Published::default()
    };
    ScenarioRecord {
        name: "pingpong".to_owned(),
        description: format!("Round trips recorded in {} and {}.", published.display(), received.display()),
        published: vec![
            figure(
                "micro-ROS over USB serial (M5Atom)",
                "mean 12.830 ms, max 14.971 ms, min 10.838 ms, std 0.987 ms",
            ),
            figure(
                "micro-ROS over Wi-Fi (M5Atom)",
                "mean 5.813 ms, max 123.242 ms, min 3.980 ms, std 4.689 ms",
            ),
            figure(
                "micro-ROS over Ethernet (Teensy 4.1)",
                "mean 1.774 ms, max 2.485 ms, min 0.597 ms, std 0.342 ms",
            ),
        ],
        ..ScenarioRecord::default()
    }
}

#[cfg(test)]
mod tests;
