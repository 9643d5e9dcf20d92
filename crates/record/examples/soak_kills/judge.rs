//! Judges a recording whose recorder was killed: which samples are in its files.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use noctule_record::check::Times;
use noctule_record::file::{self, FileError, Record};

use crate::trial::{Outcome, TrialError};

/// The samples of a topic, over all files.
#[derive(Debug, Default)]
struct Seen {
    messages: u64,
    /// The number in the payload of the last sample.
    last: Option<u64>,
}

/// Reads all files of a folder. Copies them to the folder of `keep`, with what was found, for other readers.
///
/// # Errors
/// A file does not open, is damaged before its end, or lacks samples in the middle.
pub(crate) fn judge(
    folder: &Path,
    ended_ns: u64,
    matched_ns: Option<u64>,
    keep: Option<(&Path, u64)>,
) -> Result<Outcome, TrialError> {
    let files = files(folder)?;
    let mut topics: BTreeMap<String, Seen> = BTreeMap::new();
    let mut last_log_ns = None;
    for (index, path) in files.iter().enumerate() {
        let before: BTreeMap<String, u64> =
            topics.iter().map(|(name, seen)| (name.clone(), seen.messages)).collect();
        let result = read(path, &mut topics, &mut last_log_ns);
        let is_last = index + 1 == files.len();
        match result {
            Ok(()) => {}
            Err(FileError::Cut) if is_last => {}
            Err(cause) => return Err(TrialError::File { path: path.clone(), cause }),
        }
        if let Some((folder, number)) = keep {
            let here = |name: &str, seen: &Seen| seen.messages - before.get(name).copied().unwrap_or(0);
            let counts: BTreeMap<&String, u64> =
                topics.iter().map(|(name, seen)| (name, here(name, seen))).collect();
            let name = format!("{number}_{index}");
            let json = serde_json::to_string(&counts)?;
            let copied = std::fs::copy(path, folder.join(format!("{name}.mcap")));
            let written = copied.and_then(|_| std::fs::write(folder.join(format!("{name}.json")), json));
            written?;
        }
    }
    let since_ns = last_log_ns.max(matched_ns);
    Ok(Outcome {
        files: files.len(),
        messages: topics.values().map(|seen| seen.messages).sum(),
        lost_ns: since_ns.map(|since_ns| ended_ns.saturating_sub(since_ns)),
    })
}

/// In the order in which they were written: `a.mcap`, `a.1.mcap` …
fn files(folder: &Path) -> Result<Vec<PathBuf>, TrialError> {
    let listed = std::fs::read_dir(folder)?;
    let paths = listed.flatten().map(|entry| entry.path());
    let mut paths: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|end| end == "mcap")).collect();
    let number = |path: &PathBuf| {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        stem.split_once('.').and_then(|(_, number)| number.parse::<u64>().ok()).unwrap_or(0)
    };
    paths.sort_by_key(number);
    Ok(paths)
}

fn read(
    path: &Path,
    topics: &mut BTreeMap<String, Seen>,
    last_log_ns: &mut Option<u64>,
) -> Result<(), FileError> {
    let opened = File::open(path).map_err(|error| FileError::Unreadable(error.to_string()))?;
    let (mut times, mut channels) = (Times::default(), BTreeMap::new());
    file::read(BufReader::new(opened), &mut |record| {
        match record {
            Record::Channel { id, topic, .. } => {
                channels.insert(id, topic.to_owned());
            }
            Record::Times(bytes) => times.add(bytes),
            Record::Message { channel, sequence, log_ns, payload, .. } => {
                let damaged = |what: String| FileError::Damaged(what.into());
                let topic = channels.get(&channel).ok_or_else(|| damaged("no channel".into()))?;
                let entry = times.take(channel, sequence).ok_or_else(|| damaged("no times".into()))?;
                let number = payload.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
                let number = number.ok_or_else(|| damaged("a payload is too short".into()))?;
                let seen = topics.entry(topic.clone()).or_default();
                if seen.last.is_some_and(|last| last + 1 + entry.missed != number) {
                    return Err(damaged(format!(
                        "{topic}: {number} follows {:?}, {} missed",
                        seen.last, entry.missed
                    )));
                }
                seen.last = Some(number);
                seen.messages += 1;
                *last_log_ns = (*last_log_ns).max(Some(log_ns));
            }
            _ => {}
        }
        Ok(())
    })
}
