//! Where specifications come from: a preset, a file, a recording, or the words themselves.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

pub use noctule_netsim::link::PRESETS;
use noctule_netsim::link::{Entry, LinkSpec, Recording, RecordingError, ReplayError, SpecError};
use noctule_timebase::Span;

/// Longest file of a specification or recording.
pub const FILE_BYTES_MAX: u64 = 64 << 20;

/// Why there is no specification.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// It cannot be used.
    #[error("{0}; see docs/spec/link-text.md")]
    Spec(#[from] SpecError),
    /// A file cannot be read.
    #[error("cannot read {path}: {error}; name a specification in TOML", path = .path.display())]
    File {
        /// The name.
        path: PathBuf,
        /// The system's reason.
        error: io::Error,
    },
}

/// Why there is no recording.
#[derive(Debug, thiserror::Error)]
pub enum RecordingFileError {
    /// A file cannot be read.
    #[error("cannot read {path}: {error}; {needed}", path = .path.display())]
    File {
        /// The name.
        path: PathBuf,
        /// The system's reason.
        error: io::Error,
        /// The file or content needed instead.
        needed: &'static str,
    },
    /// A file holds something else.
    #[error("cannot read {path}: {why}", path = .path.display())]
    Content {
        /// The name.
        path: PathBuf,
        /// The error in the content.
        why: ContentError,
    },
    /// The files of a folder are no recording.
    #[error(transparent)]
    Recording(#[from] RecordingError),
}

/// Errors in the content of a recording's file.
#[derive(Debug, thiserror::Error)]
pub enum ContentError {
    /// No CSV.
    #[error(transparent)]
    Csv(#[from] csv::Error),
    /// Other columns.
    #[error("the first line must be at_ns,delay_ns or at_ns,round_trip_ns")]
    Header,
    /// A row of delays.
    #[error("line {line} is not two whole numbers of nanoseconds; correct it")]
    DelayRow {
        /// From 1.
        line: usize,
    },
    /// A row of round trips.
    #[error("line {line} is not row,nanoseconds,index; correct it")]
    RoundTripRow {
        /// From 1.
        line: usize,
    },
    /// Rows that make no recording.
    #[error(transparent)]
    Recording(#[from] RecordingError),
}

/// Reads a specification: a file if it ends in `.toml`, else a line whose first section may be a
/// preset (`wifi_bursty; loss=5%`) or `replay:NAME`, short for `replay=NAME`.
///
/// Recordings are files, relative to the working directory; a folder with `pub.csv` and `sub.csv` is
/// a recording of round trips, taken as two equal ways.
pub fn read(text: &str) -> Result<LinkSpec, SourceError> {
    let mut recordings = |name: &str| recording(Path::new(name)).map_err(ReplayError::unreadable);
    if text.ends_with(".toml") && !text.contains(['=', ';']) {
        let path = Path::new(text);
        let content = limited(path).map_err(|error| SourceError::File { path: path.into(), error })?;
        return Ok(LinkSpec::parse_toml(&content, &mut recordings)?);
    }
    Ok(LinkSpec::parse(&expand(text), &mut recordings)?)
}

/// Presets and `replay:` written out.
pub fn expand(text: &str) -> String {
    let (first, rest) = text.split_once(';').unwrap_or((text, ""));
    let (word, settings) = first.trim().split_once(' ').unwrap_or((first.trim(), ""));
    let preset = PRESETS.iter().find(|(name, _)| *name == word);
    let replay = word.strip_prefix("replay:").map(|name| format!("replay={name}"));
    match preset.map(|(_, spec)| (*spec).to_owned()).or(replay) {
        Some(spec) => format!("{spec}; {settings}; {rest}"),
        None => text.to_owned(),
    }
}

/// Reads a recording: CSV with the header `at_ns,delay_ns` or `at_ns,round_trip_ns` (halved), an empty
/// delay being a loss; or a folder of round trips.
///
/// # Errors
/// A file cannot be read, is too large, or is no recording.
pub fn recording(path: &Path) -> Result<Recording, RecordingFileError> {
    let unreadable = |path: &Path, needed| {
        let path = path.to_owned();
        move |error| RecordingFileError::File { path, error, needed }
    };
    let wrong = |path: &Path| {
        let path = path.to_owned();
        move |why| RecordingFileError::Content { path, why }
    };
    if path.is_dir() {
        let columns = |name: &str| {
            let path = path.join(name);
            let text = limited(&path).map_err(unreadable(&path, "a folder needs pub.csv and sub.csv"))?;
            ping_pong_rows(&text).map_err(wrong(&path))
        };
        return Ok(ping_pong(&columns("pub.csv")?, &columns("sub.csv")?)?);
    }
    let needed = "name a CSV file with the columns at_ns,delay_ns";
    let text = limited(path).map_err(unreadable(path, needed))?;
    delays(&text).map_err(wrong(path))
}

fn delays(text: &str) -> Result<Recording, ContentError> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let halved = match reader.headers()?.iter().collect::<Vec<_>>()[..] {
        ["at_ns", "delay_ns"] => false,
        ["at_ns", "round_trip_ns"] => true,
        _ => return Err(ContentError::Header),
    };
    let mut entries = Vec::new();
    for (number, row) in reader.records().enumerate() {
        let row = row?;
        let whole = |column: usize| row.get(column).and_then(|cell| cell.trim().parse::<i64>().ok());
        let lost = row.get(1).is_some_and(|cell| cell.trim().is_empty());
        let refuse = || ContentError::DelayRow { line: number + 2 };
        let delay = if lost { None } else { Some(Span::from_ns(whole(1).ok_or_else(refuse)?)) };
        entries.push(Entry { at: Span::from_ns(whole(0).ok_or_else(refuse)?), delay });
    }
    let recording = Recording::new(entries)?;
    Ok(if halved { recording.halved() } else { recording })
}

/// One row of a recording of round trips.
struct Row {
    at_ns: i64,
    index: i64,
}

/// The rows of one of its two files.
fn ping_pong_rows(text: &str) -> Result<Vec<Row>, ContentError> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes());
    let mut rows = Vec::new();
    for (number, row) in reader.records().enumerate() {
        let row = row?;
        let whole = |column: usize| row.get(column).and_then(|cell| cell.trim().parse().ok());
        let row = whole(1).zip(whole(2)).map(|(at_ns, index)| Row { at_ns, index });
        rows.push(row.ok_or(ContentError::RoundTripRow { line: number + 1 })?);
    }
    Ok(rows)
}

/// Round trips as two equal ways; what was never answered is lost.
fn ping_pong(sent: &[Row], received: &[Row]) -> Result<Recording, RecordingError> {
    let arrivals: std::collections::HashMap<i64, i64> =
        received.iter().rev().map(|row| (row.index, row.at_ns)).collect();
    let entry = |row: &Row| Entry {
        at: Span::from_ns(row.at_ns),
        delay: arrivals.get(&row.index).map(|ns| Span::from_ns(ns.saturating_sub(row.at_ns))),
    };
    Ok(Recording::new(sent.iter().map(entry).collect())?.halved())
}

fn limited(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let length = File::open(path)?.take(FILE_BYTES_MAX + 1).read_to_string(&mut text)?;
    if length as u64 > FILE_BYTES_MAX {
        return Err(io::Error::other(format!("larger than {} MiB", FILE_BYTES_MAX >> 20)));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_a_link_and_can_be_changed() {
        for (name, _) in PRESETS {
            let plain = read(name).unwrap();
            assert_ne!(plain, LinkSpec::default());
            let changed = read(&format!("{name} loss=7%; b>a: mtu=1000B; @5s: down")).unwrap();
            assert_eq!(changed.a_to_b.initial.delay, plain.a_to_b.initial.delay);
            assert_eq!(changed.a_to_b.initial.loss.billionths(), 70_000_000);
            assert_eq!((changed.b_to_a.initial.mtu_bytes, changed.b_to_a.script.len()), (Some(1_000), 1));
        }
    }

    #[test]
    fn recorded_round_trips_are_played_as_two_halves() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/pingpong/m5atom_udp_wifi");
        let spec = read(&format!("replay:{folder}")).unwrap();
        let replay = spec.b_to_a.initial.replay.unwrap();
        let delays = replay.recording.entries().iter().map(|entry| entry.delay.unwrap().ns());
        // The recording's own figures: 123.242448 ms at most, 3.980342 at least, 2,000 answers.
        assert_eq!(
            (delays.len(), delays.clone().max(), delays.min()),
            (2_000, Some(61_621_224), Some(1_990_171))
        );
    }

    #[test]
    fn a_recording_of_one_way_delays_is_read_or_refused_with_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.csv");
        let with = |text: &str| {
            std::fs::write(&path, text).unwrap();
            recording(&path).map_err(|error| error.to_string())
        };
        let played = with("at_ns,delay_ns\n0,5000\n100,\n200,7000\n").unwrap();
        assert_eq!(played.entries().iter().filter(|entry| entry.delay.is_none()).count(), 1);
        assert_eq!(
            with("at_ns,round_trip_ns\n0,5000\n").unwrap().entries()[0].delay,
            Some(Span::from_ns(2500))
        );
        assert!(with("a,b\n0,1\n").unwrap_err().contains("the first line must be"));
        assert!(with("at_ns,delay_ns\n0,x\n").unwrap_err().contains("line 2"));
        assert!(with("at_ns,delay_ns\n").unwrap_err().contains("without a packet"));
        assert!(recording(Path::new("/no/such")).unwrap_err().to_string().contains("at_ns,delay_ns"));
        assert!(read("replay:/no/such").unwrap_err().to_string().contains("replay=/no/such: cannot read"));
    }

    #[test]
    fn a_file_is_recognised_by_its_extension() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("l.toml");
        std::fs::write(&path, "delay = \"3ms\"\n").unwrap();
        assert_eq!(read(path.to_str().unwrap()).unwrap().b_to_a.initial.delay, Span::from_ms(3));
        assert!(read("/no/such.toml").unwrap_err().to_string().contains("cannot read /no/such.toml"));
        assert!(read("wifi").unwrap_err().to_string().contains("no setting of a link"));
    }
}
