//! Reading an MCAP file from front to back: schemas, channels, messages, and the records that this crate adds.
//! Files of [other recorders](foreign) give the same records.
//!
//! No index is needed: the file of a recorder that was killed has none. A length in the file allocates only as much as
//! there are bytes. The crate `mcap` writes; it is not used for reading, because its version 0.26 ends at damage that a
//! reader can step over. Reference: MCAP specification (mcap.dev/spec).

pub mod foreign;

mod path;

use std::borrow::Cow;
use std::io::{self, Read};

use noctule_proto_kit::{Bytes, Truncated};

use crate::state::STATE_OPCODE;
use crate::times::TIMES_OPCODE;

pub use path::{is_recording, read_path};

/// Longest message or definition. A chunk may be longer, because it is read piece by piece.
const RECORD_BYTES_MAX: u64 = 256 << 20;
/// Longest name of a topic, a type or an encoding.
const NAME_BYTES_MAX: usize = 1024;

const MAGIC: [u8; 8] = *b"\x89MCAP0\r\n";
const HEADER: u8 = 1;
pub(crate) const FOOTER: u8 = 2;
pub(crate) const SCHEMA: u8 = 3;
pub(crate) const CHANNEL: u8 = 4;
pub(crate) const MESSAGE: u8 = 5;
pub(crate) const CHUNK: u8 = 6;
pub(crate) const DATA_END: u8 = 15;

/// Why the rest of a file was not read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// Another kind of file.
    #[error("it does not begin as an MCAP file does, nor as a bag of ROS 1 or ROS 2 or a log of PX4 (ULog)")]
    NotMcap,
    /// It is not there, or may not be read.
    #[error("it cannot be opened: {0}")]
    Unopened(String),
    /// A database where bytes are read from front to back.
    #[error("a bag in SQLite (.db3) cannot be read from front to back; name it by its path")]
    Sqlite,
    /// A folder or a database of something else.
    #[error("{0}")]
    NoBag(&'static str),
    /// A file of a bag that has several.
    #[error("{file}: {cause}")]
    OfBag {
        /// Its name.
        file: String,
        /// The fault in it.
        cause: Box<FileError>,
    },
    /// No end of the file.
    #[error("the file ends in the middle: its recorder was stopped, or the copy is not whole")]
    Cut,
    /// A record contradicts its own length.
    #[error("the file is damaged: a record is shorter than what it holds")]
    Garbled,
    /// A checksum does not fit.
    #[error("the file is damaged: a checksum is another")]
    Checksum,
    /// A chunk in a chunk, a name that is not text, a message of no channel.
    #[error("the file is damaged: {0}")]
    Damaged(Cow<'static, str>),
    /// A compression that is not supported.
    #[error("it is compressed with \"{0}\", which is not supported")]
    Compression(String),
    /// Above a limit of this reader.
    #[error("{0}")]
    TooLarge(String),
    /// The caller has read enough.
    #[error("the reading was stopped")]
    Stopped,
    /// The system or a decompressor failed.
    #[error("the file is damaged or cannot be read: {0}")]
    Unreadable(String),
}

impl From<Truncated> for FileError {
    fn from(_: Truncated) -> FileError {
        FileError::Garbled
    }
}

use FileError::{Cut, Garbled};

/// One record of a file.
#[derive(Debug)]
pub enum Record<'a> {
    /// Profile and library of the writer.
    Header {
        /// `ros2`, `ros1` or empty.
        profile: &'a str,
    },
    /// A definition of a type.
    Schema {
        /// Its number in this file; not 0.
        id: u16,
        /// Name of the type.
        name: &'a str,
        /// Its language, e.g. `ros2msg`.
        encoding: &'a str,
        /// The definition.
        text: &'a [u8],
    },
    /// A topic.
    Channel {
        /// Its number in this file.
        id: u16,
        /// Number of its schema; 0 = none.
        schema: u16,
        /// Name of the topic.
        topic: &'a str,
        /// Encoding of its messages, e.g. `cdr`.
        encoding: &'a str,
        /// Pairs of key and value, as they stand in the file; see [`pairs`].
        metadata: &'a [u8],
    },
    /// A message.
    Message {
        /// Number of its channel.
        channel: u16,
        /// Counts the messages of the channel, if the writer counts.
        sequence: u32,
        /// When it was received, in ns; since 1970 if the writer says no other.
        log_ns: u64,
        /// Publish time, in ns of the same clock.
        publish_ns: u64,
        /// Its bytes.
        payload: &'a [u8],
    },
    /// Times of samples with their bounds: see [`times`](crate::times).
    Times(&'a [u8]),
    /// The system that the recording is of: see [`state`](crate::state).
    State(&'a [u8]),
}

/// Takes one record; an error ends the reading.
pub type Take<'t> = &'t mut dyn FnMut(Record<'_>) -> Result<(), FileError>;

/// Gives record by record to `take`.
///
/// # Errors
/// Why the rest of the file was not read.
pub fn read(mut file: impl Read, take: Take<'_>) -> Result<(), FileError> {
    let beginning = array(&mut file)?;
    if beginning != MAGIC {
        return foreign::read(beginning, file, take);
    }
    let mut crc = crc32fast::Hasher::new();
    crc.update(&MAGIC);
    let mut file = Checksummed { records: &mut file, crc };
    loop {
        let crc = file.crc.clone();
        let Some((kind, length_bytes)) = record_head(&mut file)? else { return Err(Cut) };
        match kind {
            FOOTER => return end(&mut file, length_bytes),
            CHUNK => chunk(&mut (&mut file).take(length_bytes), take)?,
            DATA_END => data_end(&mut (&mut file).take(length_bytes), crc)?,
            _ => record(kind, length_bytes, &mut file, take)?,
        }
    }
}

/// Whether the file is there to its last byte.
fn end(file: &mut impl Read, footer_bytes: u64) -> Result<(), FileError> {
    let is_whole = skip(file, footer_bytes)? == footer_bytes && array(file)? == MAGIC;
    if is_whole { Ok(()) } else { Err(Cut) }
}

/// Whether all before it is what its checksum (0 = none) was made of.
fn data_end(body: &mut impl Read, crc: crc32fast::Hasher) -> Result<(), FileError> {
    let expected = u32::from_le_bytes(array(body)?);
    skip(body, u64::MAX)?;
    if expected != 0 && crc.finalize() != expected { Err(FileError::Checksum) } else { Ok(()) }
}

fn chunk(body: &mut io::Take<&mut impl Read>, take: Take<'_>) -> Result<(), FileError> {
    // Start, end, uncompressed size.
    array::<24>(body)?;
    let crc = u32::from_le_bytes(array(body)?);
    let name_bytes = u32::from_le_bytes(array(body)?) as usize;
    if name_bytes > NAME_BYTES_MAX {
        return Err(Garbled);
    }
    let mut compression = vec![0; name_bytes];
    body.read_exact(&mut compression).map_err(sentence)?;
    let length_bytes = u64::from_le_bytes(array(body)?);
    let mut records = body.by_ref().take(length_bytes);
    let read = match compression.as_slice() {
        b"" => checked(&mut records, crc, take),
        b"lz4" => {
            let decoder = lz4::Decoder::new(&mut records).map_err(sentence);
            decoder.and_then(|mut decoder| checked(&mut decoder, crc, take))
        }
        b"zstd" => {
            let decoder = ruzstd::decoding::StreamingDecoder::new(&mut records);
            let decoder = decoder.map_err(|error| undecodable(&error));
            decoder.and_then(|mut decoder| checked(&mut decoder, crc, take))
        }
        other => {
            let other = String::from_utf8_lossy(other).escape_debug().to_string();
            Err(FileError::Compression(other))
        }
    };
    skip(body, u64::MAX)?;
    // That the file was cut explains whatever else is wrong.
    if body.limit() > 0 { Err(Cut) } else { read }
}

/// The records of a chunk, and whether they are what its checksum (0 = none) was made of.
fn checked(records: &mut dyn Read, crc: u32, take: Take<'_>) -> Result<(), FileError> {
    let mut records = Checksummed { records, crc: crc32fast::Hasher::new() };
    while let Some((kind, length_bytes)) = record_head(&mut records)? {
        if kind == CHUNK {
            return Err(FileError::Damaged("a chunk lies in a chunk".into()));
        }
        record(kind, length_bytes, &mut records, take)?;
    }
    if crc != 0 && records.crc.finalize() != crc {
        return Err(FileError::Checksum);
    }
    Ok(())
}

struct Checksummed<'r> {
    records: &'r mut dyn Read,
    crc: crc32fast::Hasher,
}

impl Read for Checksummed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.records.read(buffer)?;
        self.crc.update(&buffer[..count]);
        Ok(count)
    }
}

/// Kind of a record, and how many bytes follow.
type Head = (u8, u64);

/// The next one, if there is one.
fn record_head(reader: &mut impl Read) -> Result<Option<Head>, FileError> {
    let mut kind = [0];
    match reader.read_exact(&mut kind) {
        Ok(()) => Ok(Some((kind[0], u64::from_le_bytes(array(reader)?)))),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(sentence(error)),
    }
}

fn record(kind: u8, length_bytes: u64, reader: &mut impl Read, take: Take<'_>) -> Result<(), FileError> {
    if !matches!(kind, HEADER | SCHEMA | CHANNEL | MESSAGE | TIMES_OPCODE | STATE_OPCODE) {
        let skipped_bytes = skip(reader, length_bytes)?;
        return if skipped_bytes == length_bytes { Ok(()) } else { Err(Cut) };
    }
    record_length(length_bytes)?;
    let mut body = Vec::new();
    reader.take(length_bytes).read_to_end(&mut body).map_err(sentence)?;
    if (body.len() as u64) < length_bytes {
        return Err(Cut);
    }
    let mut fields = Bytes::new(&body);
    take(match kind {
        HEADER => Record::Header { profile: fields.name()? },
        TIMES_OPCODE => Record::Times(&body),
        STATE_OPCODE => Record::State(&body),
        SCHEMA => Record::Schema {
            id: fields.u16()?,
            name: fields.name()?,
            encoding: fields.name()?,
            text: fields.counted()?,
        },
        CHANNEL => Record::Channel {
            id: fields.u16()?,
            schema: fields.u16()?,
            topic: fields.name()?,
            encoding: fields.name()?,
            metadata: fields.rest(),
        },
        _ => Record::Message {
            channel: fields.u16()?,
            sequence: fields.u32()?,
            log_ns: fields.u64()?,
            publish_ns: fields.u64()?,
            payload: fields.rest(),
        },
    })
}

/// Whether a record is not longer than what is read.
fn record_length(length_bytes: u64) -> Result<(), FileError> {
    if length_bytes > RECORD_BYTES_MAX {
        return Err(FileError::TooLarge(format!(
            "a record says that it has {length_bytes} bytes; {RECORD_BYTES_MAX} are read at most"
        )));
    }
    Ok(())
}

/// The pairs of a [channel's](Record::Channel) metadata; what is damaged ends them.
pub fn pairs(metadata: &[u8]) -> impl Iterator<Item = (&str, &str)> {
    let mut fields = Bytes::new(metadata);
    let length_bytes = fields.u32().unwrap_or(0) as usize;
    let mut fields = Bytes::new(&fields.rest()[..length_bytes.min(fields.rest().len())]);
    std::iter::from_fn(move || {
        let text = |bytes| std::str::from_utf8(bytes).ok();
        Some((text(fields.counted().ok()?)?, text(fields.counted().ok()?)?))
    })
}

/// Texts and bytes with their length before them.
trait Counted<'a> {
    fn counted(&mut self) -> Result<&'a [u8], FileError>;
    fn name(&mut self) -> Result<&'a str, FileError>;
}

impl<'a> Counted<'a> for Bytes<'a> {
    fn counted(&mut self) -> Result<&'a [u8], FileError> {
        let length_bytes = self.u32()? as usize;
        Ok(self.slice(length_bytes)?)
    }

    fn name(&mut self) -> Result<&'a str, FileError> {
        let name = self.counted()?;
        if name.len() > NAME_BYTES_MAX {
            let bytes = name.len();
            return Err(FileError::TooLarge(format!(
                "a name has {bytes} bytes; {NAME_BYTES_MAX} are read at most"
            )));
        }
        std::str::from_utf8(name).map_err(|_| FileError::Damaged("a name is not UTF-8".into()))
    }
}

fn array<const N: usize>(reader: &mut impl Read) -> Result<[u8; N], FileError> {
    let mut bytes = [0; N];
    reader.read_exact(&mut bytes).map_err(sentence)?;
    Ok(bytes)
}

/// Reads over at most so many bytes; how many there were.
fn skip(reader: &mut impl Read, length_bytes: u64) -> Result<u64, FileError> {
    io::copy(&mut reader.take(length_bytes), &mut io::sink()).map_err(sentence)
}

fn sentence(error: io::Error) -> FileError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => Cut,
        _ => undecodable(&error),
    }
}

fn undecodable(error: &dyn std::error::Error) -> FileError {
    FileError::Unreadable(error.to_string())
}
