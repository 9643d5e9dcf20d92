//! Writing samples into MCAP files: chunks, segments, full disks. No node and no thread.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mcap::records::MessageHeader;
use mcap::write::PrivateRecordOptions;
use mcap::{Compression, McapError, WriteOptions};

use crate::block_buffer::BLOCK_BYTES;
use crate::staged::Staged;
use crate::state::{self, STATE_OPCODE, SystemState};
use crate::times::{SampleTimes, TIMES_OPCODE, encode};
use crate::unnamed;

/// Opcode of a record that only fills a block; readers step over it.
pub const PADDING_OPCODE: u8 = 0xA7;
/// Opcode and length of a record.
const RECORD_HEAD_BYTES: usize = 9;
/// Chunks from this on are written past the page cache. Smaller ones would grow by much for the block that they must fill.
const DIRECT_LEAST_BYTES: usize = 1 << 20;

/// A file's index says of each chunk where the messages of each channel are, and waits in memory for the end of the file, some 20 bytes
/// an entry. Another file begins when it has so many: with 240 topics after two hours.
const INDEX_ENTRIES_MAX: usize = 1 << 22;

/// Why a recording could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The system refused.
    #[error("{path} cannot be written: {cause}", path = path.display())]
    System {
        /// The file.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// The disk is full; what was committed before is whole.
    #[error("the disk of {path} is full; make room, or record fewer topics", path = path.display())]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// The file exists.
    #[error("{path} exists; name another file, or remove it", path = path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// MCAP cannot hold it, e.g. more than 65,535 channels.
    #[error("{path}: {cause}", path = path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// MCAP's error.
        cause: McapError,
    },
}

/// A topic in a recording, in one format.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topic {
    /// Its name.
    pub name: String,
    /// Encoding of its messages in MCAP's words.
    pub encoding: String,
    /// Name of its type; may be empty.
    pub type_name: String,
    /// Language and text of the type's definition; `None` if it is not known.
    pub definition: Option<(String, String)>,
    /// Quality of service and the like, for players.
    pub metadata: BTreeMap<String, String>,
}

/// One sample to be written. Its channel and its sequence in [`SampleTimes`] are set by the writer.
#[derive(Debug)]
pub struct Stored {
    /// Index of the topic, as [`Recording::add_topic`] gave it.
    pub topic: usize,
    /// When the recorder received it, ns since 1970.
    pub log_ns: u64,
    /// Its source time, ns since 1970, or `log_ns` if that is not known.
    pub publish_ns: u64,
    /// Its bound and its counts.
    pub times: SampleTimes,
}

/// When to begin another file, and what to keep.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// Begin another file when this one has so many bytes.
    pub segment_bytes: Option<u64>,
    /// Begin another file when the messages in this one span so many nanoseconds.
    pub segment_ns: Option<u64>,
    /// Remove the oldest files of this recording when the newer ones span at least so many nanoseconds.
    pub keep_ns: Option<u64>,
}

/// Compression of a file.
#[derive(Clone, Copy, Debug, Default)]
pub struct Format {
    /// LZ4 for chunks. About 0.5 GB/s a core, see `benchmarks/record/README.md`.
    pub lz4: bool,
}

/// A recording in the making: one file, or several one after the other.
#[derive(Debug)]
pub struct Recording {
    path: PathBuf,
    limits: Limits,
    format: Format,
    topics: Vec<Topic>,
    /// Sequence of the next message of each topic, over all files.
    sequences: Vec<u32>,
    segment: Option<Segment>,
    /// Content of the state record that goes with the next chunk.
    state: Option<Vec<u8>>,
    /// Files that have been finished, oldest first, with the log time of their last message; those that are not removed any more
    /// are left out.
    finished: VecDeque<(PathBuf, u64)>,
    /// Files begun so far.
    segments: u32,
    messages: u64,
    bytes: u64,
    index_entries_max: usize,
}

/// One file.
struct Segment {
    path: PathBuf,
    writer: mcap::Writer<Shared>,
    staged: Shared,
    /// Channel in this file, by topic.
    channels: HashMap<usize, u16>,
    index_entries: usize,
    first_log_ns: Option<u64>,
    last_log_ns: u64,
}

impl std::fmt::Debug for Segment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Segment").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Recording {
    /// Begins a recording. The file is made at once, so that a wrong path fails now.
    ///
    /// # Errors
    /// The file exists or cannot be made.
    pub fn create(path: &Path, limits: Limits, format: Format) -> Result<Recording, WriteError> {
        let mut recording = Recording {
            path: path.to_owned(),
            limits,
            format,
            topics: Vec::new(),
            sequences: Vec::new(),
            segment: None,
            state: None,
            finished: VecDeque::new(),
            segments: 0,
            messages: 0,
            bytes: 0,
            index_entries_max: INDEX_ENTRIES_MAX,
        };
        recording.segment = Some(recording.begin()?);
        Ok(recording)
    }

    /// Adds a topic; messages name it by the index that this returns.
    pub fn add_topic(&mut self, topic: Topic) -> usize {
        self.topics.push(topic);
        self.sequences.push(0);
        self.topics.len() - 1
    }

    /// Adds what is known of the system, ns since 1970; it goes with the next chunk, the newest only.
    pub fn add_state(&mut self, log_ns: u64, state: &SystemState) {
        self.state = Some(state::encode(log_ns, state));
    }

    /// Writes a chunk and gives it to the file as a whole.
    ///
    /// # Errors
    /// [`WriteError::Full`] ends this file behind its last whole chunk; the next call tries another file. Others are final.
    pub fn write(&mut self, chunk: &[(Stored, Vec<u8>)]) -> Result<(), WriteError> {
        if chunk.is_empty() {
            return Ok(());
        }
        let mut segment = match self.segment.take() {
            Some(segment) if !self.is_long(&segment) => segment,
            Some(segment) => {
                self.finish_segment(segment)?;
                self.begin()?
            }
            None => self.begin()?,
        };
        let had_messages = segment.first_log_ns.is_some();
        let sequences = self.sequences.clone();
        let chunk_bytes: usize = chunk.iter().map(|(_, payload)| payload.len()).sum();
        let fills_blocks = chunk_bytes >= DIRECT_LEAST_BYTES && segment.staged.lock().is_direct();
        let begun = if fills_blocks { segment.fill_block() } else { Ok(()) };
        let written = begun
            .and_then(|()| self.write_chunk(&mut segment, chunk))
            .and_then(|()| if fills_blocks { segment.fill_block() } else { segment.commit() });
        if let Err(error) = written {
            // The segment is not put back: its file ends behind its last commit. One without messages is not worth keeping.
            self.sequences = sequences;
            if !had_messages && matches!(error, WriteError::Full { .. }) {
                self.abandon(&segment.path);
            }
            return Err(error);
        }
        self.segment = Some(segment);
        self.messages += chunk.len() as u64;
        self.bytes += chunk.iter().map(|(_, payload)| payload.len() as u64).sum::<u64>();
        Ok(())
    }

    /// Waits until the disk has all chunks.
    ///
    /// # Errors
    /// The system's.
    pub fn sync(&mut self) -> Result<(), WriteError> {
        let Some(segment) = &self.segment else { return Ok(()) };
        segment.staged.lock().sync().map_err(|cause| at(&segment.path, cause))
    }

    /// The files there are now are not removed any more, however old they become.
    ///
    /// # Errors
    /// As [`Recording::write`].
    pub fn keep_files(&mut self) -> Result<(), WriteError> {
        if let Some(segment) = self.segment.take() {
            self.finish_segment(segment)?;
        }
        self.finished.clear();
        Ok(())
    }

    /// Writes index and statistics.
    ///
    /// # Errors
    /// As [`Recording::write`].
    pub fn finish(&mut self) -> Result<(), WriteError> {
        match self.segment.take() {
            Some(segment) => self.finish_segment(segment),
            None => Ok(()),
        }
    }

    /// Messages and bytes of payload in whole chunks.
    pub fn written(&self) -> (u64, u64) {
        (self.messages, self.bytes)
    }

    fn begin(&mut self) -> Result<Segment, WriteError> {
        let path = segment_path(&self.path, self.segments);
        let new = unnamed::create(&path).map_err(|cause| at(&path, cause))?;
        let staged = Shared(Arc::new(Mutex::new(Staged::new(new))));
        let options = WriteOptions::new()
            .profile("ros2")
            .library("noctule")
            .chunk_size(None)
            .calculate_data_section_crc(false)
            .compression(self.format.lz4.then_some(Compression::Lz4));
        let writer = options.create(staged.clone());
        let writer = writer.map_err(|cause| WriteError::Format { path: path.clone(), cause })?;
        let (channels, index_entries) = (HashMap::new(), 0);
        let mut segment =
            Segment { path, writer, staged, channels, index_entries, first_log_ns: None, last_log_ns: 0 };
        if let Err(error) = segment.commit() {
            segment.staged.lock().give_up(&segment.path);
            return Err(error);
        }
        let named = segment.staged.lock().name(&segment.path);
        named.map_err(|cause| at(&segment.path, cause))?;
        self.segments += 1;
        Ok(segment)
    }

    /// Removes a file that holds no message, so that a disk that stays full does not fill with them.
    fn abandon(&mut self, path: &Path) {
        // If it cannot be removed, the next file has the next number.
        if std::fs::remove_file(path).is_ok() {
            self.segments -= 1;
        }
    }

    fn is_long(&self, segment: &Segment) -> bool {
        let Some(first_ns) = segment.first_log_ns else { return false };
        let span_ns = segment.last_log_ns.saturating_sub(first_ns);
        let length_bytes = segment.staged.lock().len_bytes();
        // The excess is removed by whole files: eight of them keep it small.
        let kept_ns = self.limits.keep_ns.map(|ns| ns / 8);
        let spans = self.limits.segment_ns.into_iter().chain(kept_ns).min();
        segment.index_entries >= self.index_entries_max
            || spans.is_some_and(|limit_ns| span_ns >= limit_ns)
            || self.limits.segment_bytes.is_some_and(|limit_bytes| length_bytes >= limit_bytes)
    }

    fn write_chunk(&mut self, segment: &mut Segment, chunk: &[(Stored, Vec<u8>)]) -> Result<(), WriteError> {
        let Segment { path, writer, channels, .. } = segment;
        let failed = |cause| WriteError::Format { path: path.clone(), cause };
        let mut times = Vec::with_capacity(chunk.len());
        for (stored, _) in chunk {
            let channel = match channels.get(&stored.topic) {
                Some(channel) => *channel,
                None => {
                    let channel = open_channel(writer, &self.topics[stored.topic]).map_err(failed)?;
                    channels.insert(stored.topic, channel);
                    channel
                }
            };
            let next = &mut self.sequences[stored.topic];
            times.push(SampleTimes { channel, sequence: *next, ..stored.times });
            *next = next.wrapping_add(1);
        }
        let in_chunk = PrivateRecordOptions::IncludeInChunks.into();
        if let Some(state) = self.state.take() {
            writer.write_private_record(STATE_OPCODE, &state, in_chunk).map_err(failed)?;
        }
        writer.write_private_record(TIMES_OPCODE, &encode(&times), in_chunk).map_err(failed)?;
        for ((stored, payload), times) in chunk.iter().zip(&times) {
            let header = MessageHeader {
                channel_id: times.channel,
                sequence: times.sequence,
                log_time: stored.log_ns,
                publish_time: stored.publish_ns,
            };
            writer.write_to_known_channel(&header, payload).map_err(failed)?;
            segment.first_log_ns.get_or_insert(stored.log_ns);
            segment.last_log_ns = segment.last_log_ns.max(stored.log_ns);
        }
        let of_chunk: BTreeSet<u16> = times.iter().map(|times| times.channel).collect();
        segment.index_entries += of_chunk.len();
        Ok(())
    }

    fn finish_segment(&mut self, mut segment: Segment) -> Result<(), WriteError> {
        segment.writer.finish().map_err(|cause| WriteError::Format { path: segment.path.clone(), cause })?;
        let mut staged = segment.staged.lock();
        staged.commit().and_then(|()| staged.sync()).map_err(|cause| at(&segment.path, cause))?;
        drop(staged);
        self.finished.push_back((segment.path.clone(), segment.last_log_ns));
        if let Some(keep_ns) = self.limits.keep_ns {
            let is_old = |ended_ns: u64| segment.last_log_ns.saturating_sub(ended_ns) >= keep_ns;
            while self.finished.front().is_some_and(|(_, ended_ns)| is_old(*ended_ns)) {
                let Some((path, _)) = self.finished.pop_front() else { break };
                // Another process may have removed it.
                let _ = std::fs::remove_file(path);
            }
        }
        Ok(())
    }
}

impl Segment {
    /// Ends the chunk, fills its last block, and gives it to the file.
    fn fill_block(&mut self) -> Result<(), WriteError> {
        let failed = |path: &Path, cause| WriteError::Format { path: path.to_owned(), cause };
        self.writer.flush().map_err(|cause| failed(&self.path, cause))?;
        let lacking_bytes = self.staged.lock().lacking_bytes();
        if lacking_bytes > 0 {
            // Padding that is too short for a record goes on to the end of the next block.
            let enough = lacking_bytes.checked_sub(RECORD_HEAD_BYTES);
            let zeros = vec![0; enough.unwrap_or(lacking_bytes + BLOCK_BYTES - RECORD_HEAD_BYTES)];
            let written = self.writer.write_private_record(PADDING_OPCODE, &zeros, Default::default());
            written.map_err(|cause| failed(&self.path, cause))?;
        }
        self.commit()
    }

    /// Ends the chunk and gives it to the file.
    fn commit(&mut self) -> Result<(), WriteError> {
        self.writer.flush().map_err(|cause| WriteError::Format { path: self.path.clone(), cause })?;
        self.staged.lock().commit().map_err(|cause| at(&self.path, cause))
    }
}

fn open_channel(writer: &mut mcap::Writer<Shared>, topic: &Topic) -> Result<u16, McapError> {
    let schema = match &topic.definition {
        Some((language, text)) => writer.add_schema(&topic.type_name, language, text.as_bytes())?,
        // A name alone is worth keeping; an encoding without a name says that there is no definition.
        None if !topic.type_name.is_empty() => writer.add_schema(&topic.type_name, "", b"")?,
        None => 0,
    };
    writer.add_channel(schema, &topic.name, &topic.encoding, &topic.metadata)
}

/// `a.mcap`, `a.1.mcap`, `a.2.mcap` …
fn segment_path(path: &Path, number: u32) -> PathBuf {
    match number {
        0 => path.to_owned(),
        _ => path.with_extension(format!("{number}.mcap")),
    }
}

fn at(path: &Path, cause: io::Error) -> WriteError {
    let path = path.to_owned();
    match cause.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => WriteError::Full { path },
        io::ErrorKind::AlreadyExists => WriteError::Exists { path },
        _ => WriteError::System { path, cause },
    }
}

/// The staged file, which the MCAP writer owns while this module commits it.
#[derive(Clone, Debug)]
struct Shared(Arc<Mutex<Staged>>);

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Staged> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.lock().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for Shared {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.lock().seek(to)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::BufReader;

    use super::*;
    use crate::check::contents;

    fn sample(topic: usize, log_ns: u64, payload_bytes: usize) -> (Stored, Vec<u8>) {
        let times = SampleTimes {
            channel: 0,
            has_source_time: true,
            sequence: 0,
            publisher: [1; 8],
            publisher_sequence: log_ns,
            missed: 0,
            bound_ns: Some(0),
            sigma_ns: None,
        };
        (Stored { topic, log_ns, publish_ns: log_ns, times }, vec![log_ns as u8; payload_bytes])
    }

    fn messages(path: &Path) -> u64 {
        let (found, result) = contents(BufReader::new(File::open(path).unwrap()));
        result.unwrap();
        found.channels.values().map(|topic| topic.messages).sum()
    }

    /// Large chunks fill blocks, small ones do not, and both are in one file in their order. On a file system without direct writes none does.
    #[test]
    fn chunks_of_all_sizes_are_one_file_with_an_index() {
        let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        for lz4 in [false, true] {
            let path = directory.path().join(format!("{lz4}.mcap"));
            let mut recording = Recording::create(&path, Limits::default(), Format { lz4 }).unwrap();
            let topic =
                recording.add_topic(Topic { name: "/a".into(), encoding: "cdr".into(), ..Topic::default() });
            let is_direct = recording.segment.as_ref().unwrap().staged.lock().is_direct();
            for (at, payload_bytes) in
                [10, 3_000_000, 1 << 20, 7, 100, 5_000_000, 4_083].into_iter().enumerate()
            {
                recording.write(&[sample(topic, at as u64, payload_bytes)]).unwrap();
                let length = std::fs::metadata(&path).unwrap().len();
                let fills = is_direct && payload_bytes >= DIRECT_LEAST_BYTES;
                assert!(
                    !fills || length.is_multiple_of(BLOCK_BYTES as u64),
                    "{length} bytes after {payload_bytes}"
                );
            }
            recording.finish().unwrap();
            assert_eq!(messages(&path), 7);
            // The crate's own reader goes by the index, through each chunk.
            let bytes = std::fs::read(&path).unwrap();
            let read: Vec<_> = mcap::MessageStream::new(&bytes).unwrap().map(Result::unwrap).collect();
            assert_eq!(read.iter().map(|one| one.log_time).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5, 6]);
            assert!(read.iter().all(|one| one.data.iter().all(|byte| u64::from(*byte) == one.log_time)));
            let summary = mcap::Summary::read(&bytes).unwrap().unwrap();
            assert_eq!((summary.chunk_indexes.len(), summary.stats.as_ref().unwrap().message_count), (7, 7));
            for index in &summary.chunk_indexes {
                assert_eq!(summary.stream_chunk(&bytes, index).unwrap().map(Result::unwrap).count(), 1);
            }
        }
    }

    #[test]
    fn another_file_begins_before_the_index_of_one_is_too_long() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.mcap");
        let mut recording = Recording::create(&path, Limits::default(), Format::default()).unwrap();
        recording.index_entries_max = 4;
        let topic = |name: &str| Topic { name: name.into(), encoding: "cdr".into(), ..Topic::default() };
        let (a, b) = (recording.add_topic(topic("/a")), recording.add_topic(topic("/b")));
        for at in 0..3 {
            recording.write(&[sample(a, at, 10), sample(b, at, 10), sample(a, at, 10)]).unwrap();
        }
        recording.finish().unwrap();
        assert_eq!([messages(&path), messages(&directory.path().join("a.1.mcap"))], [6, 3]);
    }
}
