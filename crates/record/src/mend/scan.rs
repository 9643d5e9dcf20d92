//! Finds the whole chunks of a file, from front to back.

use std::collections::BTreeMap;
use std::io::{self, Read, Seek, SeekFrom};

use super::{CHANNEL, CHUNK, DATA_END, FOOTER, HEAD_BYTES, MAGIC, MESSAGE, MESSAGE_INDEX, SCHEMA};

/// Longest chunk that is read, compressed and not.
const CHUNK_BYTES_MAX: u64 = 256 << 20;

/// Log time and place in the chunk of each message, by channel.
type Entries = BTreeMap<u16, Vec<(u64, u64)>>;

/// A whole chunk.
#[derive(Debug)]
pub(super) struct Chunk {
    /// Where its record begins, and how long it is.
    pub(super) start: u64,
    pub(super) length: u64,
    pub(super) first_ns: u64,
    pub(super) last_ns: u64,
    pub(super) compression: String,
    pub(super) compressed_bytes: u64,
    pub(super) uncompressed_bytes: u64,
    /// Only the last chunk's are kept.
    pub(super) entries: Entries,
    /// Channels with messages.
    channels: usize,
    /// Where the index of each channel stands behind it.
    pub(super) index_offsets: BTreeMap<u16, u64>,
    pub(super) index_bytes: u64,
}

impl Chunk {
    /// Whether all indexes are there.
    pub(super) fn is_indexed(&self) -> bool {
        self.index_offsets.len() == self.channels
    }
}

/// The whole part of a file without an end.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Offset behind the last whole record.
    pub(super) end: u64,
    pub(super) chunks: Vec<Chunk>,
    /// Bodies of records, by their numbers.
    pub(super) schemas: BTreeMap<u16, Vec<u8>>,
    pub(super) channels: BTreeMap<u16, Vec<u8>>,
    /// Messages of each channel.
    pub(super) counts: BTreeMap<u16, u64>,
}

impl Found {
    pub(super) fn messages(&self) -> u64 {
        self.counts.values().sum()
    }

    /// Log times of the first and the last message; 0 without one.
    pub(super) fn span_ns(&self) -> (u64, u64) {
        let with_messages = || self.chunks.iter().filter(|chunk| chunk.channels > 0);
        let first = with_messages().map(|chunk| chunk.first_ns).min();
        (first.unwrap_or(0), with_messages().map(|chunk| chunk.last_ns).max().unwrap_or(0))
    }
}

/// State of a file.
#[derive(Debug)]
pub(super) enum Scanned {
    /// It has its end.
    Whole,
    /// It is no MCAP.
    Foreign,
    /// A chunk that cannot be read, and whole ones behind it.
    Damaged { at: u64 },
    /// It has no end.
    Cut(Found),
}

/// Reads a file of this length.
pub(super) fn scan(file: &mut (impl Read + Seek), length_bytes: u64) -> io::Result<Scanned> {
    let mut magic = [0; 8];
    if length_bytes < 8 || file.read_exact(&mut magic).is_err() || magic != MAGIC {
        return Ok(Scanned::Foreign);
    }
    let mut found = Found { end: 8, ..Found::default() };
    let (mut at, mut is_behind_data, mut damage) = (8, false, None);
    while at + HEAD_BYTES <= length_bytes {
        let mut head = [0; HEAD_BYTES as usize];
        file.read_exact(&mut head)?;
        let [kind, length @ ..] = head;
        let body_bytes = u64::from_le_bytes(length);
        let behind = at.saturating_add(HEAD_BYTES).saturating_add(body_bytes);
        // A file system may have recorded a file's new length and not yet its content: then zeros follow.
        if kind == 0 || behind > length_bytes {
            break;
        }
        match kind {
            FOOTER => {
                file.seek(SeekFrom::Start(behind))?;
                let is_whole = file.read_exact(&mut magic).is_ok() && magic == MAGIC;
                if is_whole {
                    return Ok(Scanned::Whole);
                }
                break;
            }
            // The records behind it are not complete, or the footer would follow.
            DATA_END => is_behind_data = true,
            CHUNK if !is_behind_data => match chunk(file, body_bytes, &mut found)? {
                Some(read) => {
                    if let Some(at) = damage {
                        return Ok(Scanned::Damaged { at });
                    }
                    found.chunks.push(Chunk { start: at, length: HEAD_BYTES + body_bytes, ..read });
                }
                None => damage = damage.or(Some(at)),
            },
            SCHEMA | CHANNEL | MESSAGE | MESSAGE_INDEX if !is_behind_data && damage.is_none() => {
                let mut body = Vec::new();
                file.by_ref().take(body_bytes.min(CHUNK_BYTES_MAX)).read_to_end(&mut body)?;
                found.small(kind, body, (at, behind));
            }
            _ => {}
        }
        file.seek(SeekFrom::Start(behind))?;
        at = behind;
        if !is_behind_data && damage.is_none() {
            found.end = behind;
        }
    }
    Ok(Scanned::Cut(found))
}

impl Found {
    /// A record that is no chunk, from `at` to `behind`.
    fn small(&mut self, kind: u8, body: Vec<u8>, (at, behind): (u64, u64)) {
        let Some(number) = body.first_chunk().map(|two| u16::from_le_bytes(*two)) else { return };
        match kind {
            SCHEMA => drop(self.schemas.insert(number, body)),
            CHANNEL => drop(self.channels.insert(number, body)),
            MESSAGE => *self.counts.entry(number).or_default() += 1,
            _ => {
                if let Some(chunk) = self.chunks.last_mut() {
                    chunk.index_offsets.insert(number, at);
                    chunk.index_bytes = behind - (chunk.start + chunk.length);
                }
            }
        }
    }
}

/// Reads a chunk's body; `None` if it is damaged. What it defines and counts is added.
fn chunk(file: &mut impl Read, body_bytes: u64, found: &mut Found) -> io::Result<Option<Chunk>> {
    if body_bytes > CHUNK_BYTES_MAX {
        return Ok(None);
    }
    let mut body = Vec::new();
    file.take(body_bytes).read_to_end(&mut body)?;
    let mut fields = Fields(&body);
    let Some((first_ns, last_ns, uncompressed_bytes)) =
        fields.u64().zip(fields.u64()).zip(fields.u64()).map(flat)
    else {
        return Ok(None);
    };
    let Some((crc, compression)) = fields.u32().zip(fields.text()) else { return Ok(None) };
    let Some(compressed_bytes) = fields.u64().filter(|bytes| *bytes == fields.0.len() as u64) else {
        return Ok(None);
    };
    let mut records = Vec::new();
    let limit = CHUNK_BYTES_MAX.min(uncompressed_bytes);
    let read = match compression.as_str() {
        "" => fields.0.take(limit).read_to_end(&mut records),
        "lz4" => {
            lz4::Decoder::new(fields.0).and_then(|decoder| decoder.take(limit).read_to_end(&mut records))
        }
        "zstd" => match ruzstd::decoding::StreamingDecoder::new(fields.0) {
            Ok(decoder) => decoder.take(limit).read_to_end(&mut records),
            Err(_) => return Ok(None),
        },
        _ => return Ok(None),
    };
    let is_whole = read.is_ok() && records.len() as u64 == uncompressed_bytes;
    if !is_whole || (crc != 0 && crc32fast::hash(&records) != crc) {
        return Ok(None);
    }
    let Some(inside) = inside(&records) else { return Ok(None) };
    let Inside { schemas, channels, entries } = inside;
    found.schemas.extend(schemas);
    found.channels.extend(channels);
    for (channel, entries) in &entries {
        *found.counts.entry(*channel).or_default() += entries.len() as u64;
    }
    if let Some(before) = found.chunks.last_mut() {
        before.entries.clear();
    }
    Ok(Some(Chunk {
        start: 0,
        length: 0,
        first_ns,
        last_ns,
        compression,
        compressed_bytes,
        uncompressed_bytes,
        channels: entries.len(),
        entries,
        index_offsets: BTreeMap::new(),
        index_bytes: 0,
    }))
}

fn flat(((one, two), three): ((u64, u64), u64)) -> (u64, u64, u64) {
    (one, two, three)
}

#[derive(Default)]
struct Inside {
    schemas: BTreeMap<u16, Vec<u8>>,
    channels: BTreeMap<u16, Vec<u8>>,
    entries: Entries,
}

/// The records of a chunk; `None` if one contradicts its length.
fn inside(records: &[u8]) -> Option<Inside> {
    let mut inside = Inside::default();
    let mut fields = Fields(records);
    while !fields.0.is_empty() {
        let at = (records.len() - fields.0.len()) as u64;
        let kind = fields.bytes(1)?[0];
        let length = usize::try_from(fields.u64()?).ok()?;
        let body = fields.bytes(length)?;
        let number = || body.first_chunk().map(|two| u16::from_le_bytes(*two));
        match kind {
            SCHEMA => drop(inside.schemas.insert(number()?, body.to_vec())),
            CHANNEL => drop(inside.channels.insert(number()?, body.to_vec())),
            // Channel, sequence, log time.
            MESSAGE => {
                let log_ns = u64::from_le_bytes(*body.get(6..)?.first_chunk()?);
                inside.entries.entry(number()?).or_default().push((log_ns, at));
            }
            _ => {}
        }
    }
    Some(inside)
}

/// The bytes of a record that are not read yet.
struct Fields<'b>(&'b [u8]);

impl<'b> Fields<'b> {
    fn bytes(&mut self, count: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn u32(&mut self) -> Option<u32> {
        self.bytes(4)?.first_chunk().map(|four| u32::from_le_bytes(*four))
    }

    fn u64(&mut self) -> Option<u64> {
        self.bytes(8)?.first_chunk().map(|eight| u64::from_le_bytes(*eight))
    }

    fn text(&mut self) -> Option<String> {
        let length = self.u32()? as usize;
        String::from_utf8(self.bytes(length)?.to_vec()).ok()
    }
}
