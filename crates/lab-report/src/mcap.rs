//! Raw samples as MCAP, for Foxglove, PlotJuggler and our own reports.
//!
//! One channel per cell and trial; its metadata names the cell's position in `run.json`, because
//! topics are for people. A message is one arrival, in CDR with a ROS 2 message definition, the
//! pair that both viewers read without plug-ins. Log time is the arrival and publish time the
//! *scheduled* send, so a viewer's own "latency" is ours. Those two fields are unsigned and clamp at
//! zero; the message holds the signed stamps and is what we read back.
//!
//! Within a cell messages are written by arrival, which keeps chunks from overlapping in time;
//! reading restores the order of [`CellSamples`]. LZ4 instead of Zstandard because its C library
//! compiles in two seconds instead of twenty; the files are about a quarter larger.
//!
//! References: MCAP specification (mcap.dev/spec); OMG DDSI-RTPS 2.5 section 10 for CDR.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::path::Path;

use mcap::records::MessageHeader;
use noctule_record::file::{self, FileError, Record};

use super::ReportError;
use noctule_lab::dimensions::Mode;
use noctule_lab::notation;
use noctule_lab::run::{Cell, Run};
use noctule_lab::samples::{CellSamples, Sample};

const SCHEMA_NAME: &str = "noctule/msg/Sample";
const SCHEMA_TEXT: &str = "\
# One arrival of one message at one node. Times are nanoseconds of the source's clock.
uint64 index         # message number within the trial
uint16 node          # node that received it
int64 scheduled_ns   # when it should have been sent
int64 sent_ns        # when it was sent
int64 received_ns    # when it arrived
int64 latency_ns     # received - scheduled
";

/// CDR little-endian header, then the fields, each aligned to its size.
const MESSAGE_BYTES: usize = 4 + 48;
const CELL_KEY: &str = "cell";
const CHUNK_BYTES: u64 = 1 << 20;
/// Samples a file may hold before the reader refuses it: 4 GB of memory.
const SAMPLES_MAX: usize = 100_000_000;

/// Writes the samples of a run; `samples[i]` belongs to `run.cells[i]`.
pub fn write(path: &Path, run: &Run, samples: &[CellSamples]) -> Result<(), ReportError> {
    let unwritable = |source: std::io::Error| ReportError::write(path, source);
    let failed = |error: mcap::McapError| unwritable(std::io::Error::other(error));
    let file = File::create(path).map_err(unwritable)?;
    let mut writer = mcap::WriteOptions::new()
        .compression(Some(mcap::Compression::Lz4))
        .chunk_size(Some(CHUNK_BYTES))
        .library(concat!("noctule-lab ", env!("CARGO_PKG_VERSION")))
        .create(BufWriter::new(file))
        .map_err(failed)?;
    let schema = writer.add_schema(SCHEMA_NAME, "ros2msg", SCHEMA_TEXT.as_bytes()).map_err(failed)?;
    for (position, (cell, samples)) in run.cells.iter().zip(samples).enumerate() {
        let metadata = BTreeMap::from([
            (CELL_KEY.to_owned(), position.to_string()),
            ("experiment".to_owned(), cell.key().to_string()),
            ("trial".to_owned(), cell.trial.to_string()),
            ("valid".to_owned(), cell.valid.to_string()),
        ]);
        let channel_id = writer.add_channel(schema, &topic(cell), "cdr", &metadata).map_err(failed)?;
        for sample in by_arrival(samples) {
            let header = MessageHeader {
                channel_id,
                // Sequence numbers are 32 bits wide and may wrap; `index` has all 64.
                sequence: sample.index as u32,
                log_time: u64::try_from(sample.received_ns).unwrap_or(0),
                publish_time: u64::try_from(sample.scheduled_ns).unwrap_or(0),
            };
            writer.write_to_known_channel(&header, &encode(sample)).map_err(failed)?;
        }
    }
    writer.finish().map_err(failed)?;
    Ok(())
}

/// Fault in a file of samples.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum SampleError {
    /// A channel without a cell.
    #[error("a channel has no metadata named {CELL_KEY:?}")]
    NoCell,
    /// A channel of a run with other cells.
    #[error(
        "a channel belongs to cell {cell:?}, run.json has {cells} cells; both files must come from one run"
    )]
    OtherRun {
        /// Number of the cell, as the channel names it.
        cell: String,
        /// Cells of the run.
        cells: usize,
    },
    /// A message before its channel.
    #[error("a message names channel {0}, which is not declared")]
    Undeclared(u16),
    /// More than [`SAMPLES_MAX`].
    #[error("more than {SAMPLES_MAX} samples")]
    TooMany,
    /// Another encoding.
    #[error("a message is not little-endian CDR")]
    NotCdr,
    /// Bytes of a message.
    #[error("a message has {0} bytes instead of {MESSAGE_BYTES}")]
    Length(usize),
}

/// Reads the samples back for a run of `cells` cells, in the order [`CellSamples`] promises.
pub fn read(path: &Path, cells: usize) -> Result<Vec<CellSamples>, ReportError> {
    let file = File::open(path).map_err(|source| ReportError::read(path, source))?;
    let mut cell_of_channel: HashMap<u16, usize> = HashMap::new();
    let mut samples: Vec<CellSamples> = vec![Vec::new(); cells];
    let (mut total, mut fault) = (0, None);
    let mut take = |record: Record<'_>| {
        match record {
            Record::Channel { id, metadata, .. } => {
                cell_of_channel.insert(id, channel_cell(metadata, cells)?);
            }
            Record::Message { channel, payload, .. } => {
                let cell = cell_of_channel.get(&channel).ok_or(SampleError::Undeclared(channel))?;
                total += 1;
                if total > SAMPLES_MAX {
                    return Err(SampleError::TooMany);
                }
                samples[*cell].push(decode(payload)?);
            }
            _ => {}
        }
        Ok(())
    };
    let result = file::read(BufReader::new(file), &mut |record| {
        take(record).map_err(|reason| {
            fault = Some(reason);
            FileError::Stopped
        })
    });
    if let Err(damage) = result {
        return Err(ReportError::malformed(
            path,
            fault.map_or_else(|| damage.to_string(), |fault| fault.to_string()),
        ));
    }
    for cell in &mut samples {
        cell.sort_by_key(|sample| (sample.node, sample.index));
    }
    Ok(samples)
}

/// `/udp/round_trip/64B/spin/0,1/trial0`
fn topic(cell: &Cell) -> String {
    let mut parts = vec![cell.peer.clone()];
    if cell.link.to_string() != cell.peer {
        parts.push(cell.link.to_string());
    }
    parts.push(match cell.mode {
        Mode::Chain | Mode::FanOut => format!("{}_{}", cell.mode, cell.nodes),
        Mode::RoundTrip | Mode::OneWay => cell.mode.to_string(),
    });
    parts.push(notation::size(cell.payload_bytes));
    parts.extend(cell.key().rate_mhz.map(notation::rate));
    parts.push(cell.wait.to_string());
    parts.push(cell.placement.to_string());
    if cell.format != "raw" {
        parts.push(cell.format.clone());
    }
    parts.push(format!("trial{}", cell.trial));
    parts.retain(|part| !part.is_empty());
    format!("/{}", parts.join("/").replace(' ', ""))
}

fn by_arrival(samples: &[Sample]) -> Vec<&Sample> {
    let mut order: Vec<&Sample> = samples.iter().collect();
    order.sort_by_key(|sample| sample.received_ns);
    order
}

fn channel_cell(metadata: &[u8], cells: usize) -> Result<usize, SampleError> {
    let cell = file::pairs(metadata).find(|(key, _)| *key == CELL_KEY).map(|(_, cell)| cell);
    let cell = cell.ok_or(SampleError::NoCell)?;
    match cell.parse::<usize>() {
        Ok(cell) if cell < cells => Ok(cell),
        _ => Err(SampleError::OtherRun { cell: cell.to_owned(), cells }),
    }
}

fn encode(sample: &Sample) -> [u8; MESSAGE_BYTES] {
    let mut bytes = [0; MESSAGE_BYTES];
    bytes[1] = 1; // CDR_LE
    let body = &mut bytes[4..];
    body[0..8].copy_from_slice(&sample.index.to_le_bytes());
    body[8..10].copy_from_slice(&sample.node.to_le_bytes());
    body[16..24].copy_from_slice(&sample.scheduled_ns.to_le_bytes());
    body[24..32].copy_from_slice(&sample.sent_ns.to_le_bytes());
    body[32..40].copy_from_slice(&sample.received_ns.to_le_bytes());
    body[40..48].copy_from_slice(&sample.latency_ns().to_le_bytes());
    bytes
}

fn decode(bytes: &[u8]) -> Result<Sample, SampleError> {
    let Some(([0, 1, _, _], body)) = bytes.split_first_chunk::<4>() else {
        return Err(SampleError::NotCdr);
    };
    if bytes.len() != MESSAGE_BYTES {
        return Err(SampleError::Length(bytes.len()));
    }
    let word = |at: usize| {
        let mut word = [0; 8];
        word.copy_from_slice(&body[at..at + 8]);
        word
    };
    Ok(Sample {
        index: u64::from_le_bytes(word(0)),
        node: u16::from_le_bytes([body[8], body[9]]),
        scheduled_ns: i64::from_le_bytes(word(16)),
        sent_ns: i64::from_le_bytes(word(24)),
        received_ns: i64::from_le_bytes(word(32)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use noctule_lab::fixture;

    #[test]
    fn samples_come_back_as_they_were_and_in_their_order() {
        let (run, mut samples) = fixture::chain_and_round_trips();
        samples[0].push(Sample {
            index: u64::MAX,
            node: u16::MAX,
            scheduled_ns: i64::MAX,
            sent_ns: i64::MIN,
            received_ns: -1,
        });
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("samples.mcap");
        write(&path, &run, &samples).unwrap();
        assert_eq!(read(&path, run.cells.len()).unwrap(), samples);
    }

    #[test]
    fn a_file_of_another_run_is_refused() {
        let (run, samples) = fixture::chain_and_round_trips();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("samples.mcap");
        write(&path, &run, &samples).unwrap();
        let error = read(&path, 1).unwrap_err().to_string();
        assert!(error.contains("both files must come from one run"), "{error}");
    }

    #[test]
    fn a_damaged_file_is_refused_with_a_sentence_wherever_it_is_cut_or_flipped() {
        let (run, mut samples) = fixture::chain_and_round_trips();
        samples.iter_mut().for_each(|cell| cell.truncate(50));
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("samples.mcap");
        write(&path, &run, &samples).unwrap();
        let whole = std::fs::read(&path).unwrap();
        for cut in [0, 1, 7, 8, 100, whole.len() / 2, whole.len() - 1] {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let error = read(&path, run.cells.len()).unwrap_err().to_string();
            assert!(error.contains("samples.mcap"), "{error}");
        }
        for at in (0..whole.len()).step_by(13) {
            let mut flipped = whole.clone();
            flipped[at] ^= 0xff;
            std::fs::write(&path, &flipped).unwrap();
            // The summary at the end repeats what we have read already; damage there is harmless.
            match read(&path, run.cells.len()) {
                Ok(found) => assert_eq!(found, samples, "byte {at} flipped unseen"),
                Err(error) => assert!(error.to_string().contains("samples.mcap"), "{error}"),
            }
        }
    }

    #[test]
    fn topics_tell_experiments_apart() {
        let (run, _) = fixture::chain_and_round_trips();
        let topics: std::collections::BTreeSet<String> = run.cells.iter().map(topic).collect();
        assert_eq!(topics.len(), run.cells.len());
        assert!(topics.contains("/udp/round_trip/64B/spin/0,1/trial0"), "{topics:?}");
        assert!(topics.contains("/udp/chain_4/128B/100Hz/block/free/trial0"), "{topics:?}");
    }
}
