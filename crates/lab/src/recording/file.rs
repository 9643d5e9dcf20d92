//! The records of an MCAP file that matter here, in the order of the file: definitions, channels, messages.
//!
//! It is read from front to back and needs no index: the file of a recorder that was killed has none. A
//! length is believed only as far as bytes are there. Reference: MCAP specification (mcap.dev/spec).

use std::io::{self, Read};

/// Longest message or definition. A chunk may be longer, because it is read piece by piece.
const RECORD_BYTES_MAX: u64 = 256 << 20;
/// Longest name of a topic, a type or an encoding.
const NAME_BYTES_MAX: usize = 1024;

const MAGIC: [u8; 8] = *b"\x89MCAP0\r\n";
const FOOTER: u8 = 2;
const SCHEMA: u8 = 3;
const CHANNEL: u8 = 4;
const MESSAGE: u8 = 5;
const CHUNK: u8 = 6;

const CUT: &str = "the file ends in the middle: its recorder was stopped, or the copy is not whole";
const GARBLED: &str = "the file is damaged: a record is shorter than what it holds";

/// What a file says.
pub(super) enum Record<'a> {
    Schema { id: u16, name: &'a str, encoding: &'a str, text: &'a [u8] },
    Channel { id: u16, schema: u16, topic: &'a str, encoding: &'a str },
    Message { channel: u16, log_ns: u64, payload: &'a [u8] },
}

/// Takes one record; an error ends the reading.
pub(super) type Take<'t> = &'t mut dyn FnMut(Record<'_>) -> Result<(), String>;

/// Hands on record by record.
///
/// # Errors
/// Why the rest of the file was not read, in one sentence.
pub(super) fn read(mut file: impl Read, take: Take<'_>) -> Result<(), String> {
    if array(&mut file)? != MAGIC {
        return Err("it does not begin as an MCAP file does; a ROS 1 .bag or a .db3 can be converted with the mcap tool".into());
    }
    while let Some((kind, length_bytes)) = record_head(&mut file)? {
        match kind {
            FOOTER => return Ok(()),
            CHUNK => chunk(&mut (&mut file).take(length_bytes), take)?,
            _ => record(kind, length_bytes, &mut file, take)?,
        }
    }
    Err(CUT.into())
}

fn chunk(body: &mut io::Take<&mut impl Read>, take: Take<'_>) -> Result<(), String> {
    // Start, end, uncompressed size.
    array::<24>(body)?;
    let crc = u32::from_le_bytes(array(body)?);
    let name_bytes = u32::from_le_bytes(array(body)?) as usize;
    if name_bytes > NAME_BYTES_MAX {
        return Err(GARBLED.into());
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
            Err(format!("a chunk is compressed with \"{other}\", not with lz4 or zstd"))
        }
    };
    skip(body, u64::MAX)?;
    // That the file was cut explains whatever else is wrong.
    if body.limit() > 0 { Err(CUT.into()) } else { read }
}

/// The records of a chunk, and whether they are what its checksum (0 = none) was made of.
fn checked(records: &mut dyn Read, crc: u32, take: Take<'_>) -> Result<(), String> {
    let mut records = Checksummed { records, crc: crc32fast::Hasher::new() };
    while let Some((kind, length_bytes)) = record_head(&mut records)? {
        if kind == CHUNK {
            return Err("the file is damaged: a chunk lies in a chunk".into());
        }
        record(kind, length_bytes, &mut records, take)?;
    }
    if crc != 0 && records.crc.finalize() != crc {
        return Err("the file is damaged: the checksum of a chunk is another".into());
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
fn record_head(reader: &mut impl Read) -> Result<Option<Head>, String> {
    let mut kind = [0];
    match reader.read_exact(&mut kind) {
        Ok(()) => Ok(Some((kind[0], u64::from_le_bytes(array(reader)?)))),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(sentence(error)),
    }
}

fn record(kind: u8, length_bytes: u64, reader: &mut impl Read, take: Take<'_>) -> Result<(), String> {
    if !matches!(kind, SCHEMA | CHANNEL | MESSAGE) {
        let skipped_bytes = skip(reader, length_bytes)?;
        return if skipped_bytes == length_bytes { Ok(()) } else { Err(CUT.into()) };
    }
    if length_bytes > RECORD_BYTES_MAX {
        return Err(format!(
            "a record says that it has {length_bytes} bytes; {RECORD_BYTES_MAX} are read at most"
        ));
    }
    let mut body = Vec::new();
    reader.take(length_bytes).read_to_end(&mut body).map_err(sentence)?;
    if (body.len() as u64) < length_bytes {
        return Err(CUT.into());
    }
    let mut fields = Fields { rest: &body };
    take(match kind {
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
        },
        _ => {
            let channel = fields.u16()?;
            let _sequence = fields.take::<4>()?;
            let log_ns = u64::from_le_bytes(fields.take()?);
            let _publish_time = fields.take::<8>()?;
            Record::Message { channel, log_ns, payload: fields.rest }
        }
    })
}

struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let (head, rest) = self.rest.split_first_chunk::<N>().ok_or(GARBLED)?;
        self.rest = rest;
        Ok(*head)
    }

    fn u16(&mut self) -> Result<u16, String> {
        Ok(u16::from_le_bytes(self.take()?))
    }

    fn counted(&mut self) -> Result<&'a [u8], String> {
        let length_bytes = u32::from_le_bytes(self.take()?) as usize;
        let (head, rest) = self.rest.split_at_checked(length_bytes).ok_or(GARBLED)?;
        self.rest = rest;
        Ok(head)
    }

    fn name(&mut self) -> Result<&'a str, String> {
        let name = self.counted()?;
        if name.len() > NAME_BYTES_MAX {
            return Err(format!("a name has {} bytes; {NAME_BYTES_MAX} are read at most", name.len()));
        }
        std::str::from_utf8(name).map_err(|_| "the file is damaged: a name is not UTF-8".into())
    }
}

fn array<const N: usize>(reader: &mut impl Read) -> Result<[u8; N], String> {
    let mut bytes = [0; N];
    reader.read_exact(&mut bytes).map_err(sentence)?;
    Ok(bytes)
}

/// Reads over at most so many bytes; how many there were.
fn skip(reader: &mut impl Read, length_bytes: u64) -> Result<u64, String> {
    io::copy(&mut reader.take(length_bytes), &mut io::sink()).map_err(sentence)
}

fn sentence(error: io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => CUT.into(),
        _ => undecodable(&error),
    }
}

fn undecodable(error: &dyn std::error::Error) -> String {
    format!("the file is damaged or cannot be read: {error}")
}
