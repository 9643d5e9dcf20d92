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
use std::io::{BufWriter, Read, Seek, SeekFrom};
use std::path::Path;

use mcap::records::{MessageHeader, Record};
use mcap::sans_io::linear_reader::{LinearReadEvent, LinearReader, LinearReaderOptions};

use super::ReportError;
use crate::notation;
use crate::run::{Cell, Run};
use crate::samples::{CellSamples, Sample};

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
/// Longest record a reader accepts, and so the most it allocates for one.
const RECORD_BYTES_MAX: usize = 64 << 20;
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

/// Reads the samples back for a run of `cells` cells, in the order [`CellSamples`] promises.
pub fn read(path: &Path, cells: usize) -> Result<Vec<CellSamples>, ReportError> {
    let malformed = |reason: String| ReportError::malformed(path, reason);
    let mut file = File::open(path).map_err(|source| ReportError::read(path, source))?;
    refuse_plain_chunks(&mut file).map_err(|source| ReportError::read(path, source))?;
    let options = LinearReaderOptions::default()
        .with_record_length_limit(RECORD_BYTES_MAX)
        .with_validate_chunk_crcs(true)
        .with_validate_data_section_crc(true);
    let mut reader = LinearReader::new_with_options(options);
    let mut cell_of_channel: HashMap<u16, usize> = HashMap::new();
    let mut samples: Vec<CellSamples> = vec![Vec::new(); cells];
    let mut total = 0;
    while let Some(event) = reader.next_event() {
        match event.map_err(|error| malformed(error.to_string()))? {
            LinearReadEvent::ReadRequest(wanted) => {
                let read =
                    file.read(reader.insert(wanted)).map_err(|source| ReportError::read(path, source))?;
                reader.notify_read(read);
            }
            LinearReadEvent::Record { opcode, data } => {
                match mcap::parse_record(opcode, data).map_err(|error| malformed(error.to_string()))? {
                    Record::Channel(channel) => {
                        let cell = channel_cell(&channel.metadata, cells).map_err(malformed)?;
                        cell_of_channel.insert(channel.id, cell);
                    }
                    Record::Message { header, data } => {
                        let cell = cell_of_channel.get(&header.channel_id).ok_or_else(|| {
                            malformed(format!(
                                "a message names channel {}, which is not declared",
                                header.channel_id
                            ))
                        })?;
                        total += 1;
                        if total > SAMPLES_MAX {
                            return Err(malformed(format!("more than {SAMPLES_MAX} samples")));
                        }
                        samples[*cell].push(decode(&data).map_err(malformed)?);
                    }
                    _ => {}
                }
            }
        }
    }
    for cell in &mut samples {
        cell.sort_by_key(|sample| (sample.node, sample.index));
    }
    Ok(samples)
}

/// We write only compressed chunks; the reader below subtracts with overflow (mcap 0.26) on a record
/// that is longer than its uncompressed chunk.
fn refuse_plain_chunks(file: &mut File) -> std::io::Result<()> {
    const MAGIC_BYTES: u64 = 8;
    const CHUNK: u8 = 6;
    /// Start, end, size, checksum; then the length of the compression's name.
    const CHUNK_FIELDS_BYTES: usize = 8 + 8 + 8 + 4;
    let length_bytes = file.metadata()?.len();
    let mut position = MAGIC_BYTES;
    let mut head = [0; 9 + CHUNK_FIELDS_BYTES + 4];
    while length_bytes.saturating_sub(position) >= head.len() as u64 {
        file.seek(SeekFrom::Start(position))?;
        file.read_exact(&mut head)?;
        let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        if head[0] == CHUNK && word(9 + CHUNK_FIELDS_BYTES) == 0 {
            return Err(std::io::Error::other(
                "a chunk is not compressed, so this is not a file of the lab's",
            ));
        }
        let record_bytes = u64::from(word(1)) | u64::from(word(5)) << 32;
        position = position.saturating_add(9).saturating_add(record_bytes);
    }
    file.seek(SeekFrom::Start(0))?;
    Ok(())
}

/// `/udp/round_trip/64B/spin/0,1/trial0`
fn topic(cell: &Cell) -> String {
    let mut parts = vec![cell.peer.clone()];
    if cell.link != cell.peer {
        parts.push(cell.link.clone());
    }
    parts.push(match cell.mode.as_str() {
        "chain" | "fan_out" => format!("{}_{}", cell.mode, cell.nodes),
        mode => mode.to_owned(),
    });
    parts.push(notation::size(cell.payload_bytes));
    parts.extend(cell.key().rate_mhz.map(notation::rate));
    parts.push(cell.wait.clone());
    parts.push(cell.placement.clone());
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

fn channel_cell(metadata: &BTreeMap<String, String>, cells: usize) -> Result<usize, String> {
    let cell =
        metadata.get(CELL_KEY).ok_or_else(|| format!("a channel has no metadata named {CELL_KEY:?}"))?;
    match cell.parse::<usize>() {
        Ok(cell) if cell < cells => Ok(cell),
        _ => Err(format!(
            "a channel belongs to cell {cell:?}, run.json has {cells} cells; both files must come from one run"
        )),
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

fn decode(bytes: &[u8]) -> Result<Sample, String> {
    let Some(([0, 1, _, _], body)) = bytes.split_first_chunk::<4>() else {
        return Err("a message is not little-endian CDR".to_owned());
    };
    if bytes.len() != MESSAGE_BYTES {
        return Err(format!("a message has {} bytes instead of {MESSAGE_BYTES}", bytes.len()));
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
    use crate::fixture;

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
