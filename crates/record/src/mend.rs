//! A recording without an end gets one: the index that other readers look for, made of its chunks.
//!
//! A recorder that is killed, or whose disk is full, leaves a file that ends behind its last whole chunk, or in the middle of one. Readers that go
//! through a file from front to back read all of it; most others ask its end where everything is, and refuse it. Only whole chunks are kept; what
//! an unfinished one holds could not be read before either.
//!
//! Reference: the MCAP format specification, sections Records and Summary Section.

mod scan;

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use scan::{Chunk, Found};

use crate::file::{CHANNEL, CHUNK, DATA_END, FOOTER, MESSAGE, SCHEMA};

const MAGIC: [u8; 8] = *b"\x89MCAP0\r\n";
const MESSAGE_INDEX: u8 = 0x07;
const CHUNK_INDEX: u8 = 0x08;
const STATISTICS: u8 = 0x0B;
const SUMMARY_OFFSET: u8 = 0x0E;
/// Opcode and length of a record.
const HEAD_BYTES: u64 = 9;

/// Result of mending a file: its index, and the bytes that were cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mended {
    /// Chunks in the index.
    pub chunks: usize,
    /// Messages in them.
    pub messages: u64,
    /// Bytes behind the last whole chunk that were cut off.
    pub cut_bytes: u64,
}

/// Why a file has not got an end.
#[derive(Debug, thiserror::Error)]
pub enum MendError {
    /// The system refused.
    #[error("{path} cannot be mended: {cause}", path = path.display())]
    System {
        /// The file.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// Its recorder has not ended.
    #[error("{path} is being recorded; stop its recorder, which writes the end itself", path = path.display())]
    Recording {
        /// The file.
        path: PathBuf,
    },
    /// It does not begin as MCAP files do.
    #[error("{path} is no MCAP file; name one that noctule record wrote", path = path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The file is damaged before whole chunks, which would be lost.
    #[error(
        "{path} is damaged at byte {at}, with whole chunks behind it; play what comes before, or recover the rest with mcap's command line tool",
        path = path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Offset of the damage in the file, bytes.
        at: u64,
    },
}

/// Gives a file its end; `None` if it has one.
///
/// # Errors
/// Nothing was changed, but if the system refused to write: then the file ends behind its last whole chunk.
pub fn mend(path: &Path) -> Result<Option<Mended>, MendError> {
    let system = |cause| MendError::System { path: path.to_owned(), cause };
    let file = OpenOptions::new().read(true).write(true).open(path).map_err(system)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(MendError::Recording { path: path.to_owned() }),
        Err(TryLockError::Error(cause)) => return Err(system(cause)),
    }
    let length_bytes = file.metadata().map_err(system)?.len();
    let found = match scan::scan(&mut BufReader::new(&file), length_bytes).map_err(system)? {
        scan::Scanned::Whole => return Ok(None),
        scan::Scanned::Foreign => return Err(MendError::Foreign { path: path.to_owned() }),
        scan::Scanned::Damaged { at } => return Err(MendError::Damaged { path: path.to_owned(), at }),
        scan::Scanned::Cut(found) => found,
    };
    finish(&file, found, length_bytes).map(Some).map_err(system)
}

/// Cuts off what is not whole and writes what is missing.
fn finish(mut file: &File, mut found: Found, length_bytes: u64) -> io::Result<Mended> {
    // The indexes of the last chunk stand directly behind it.
    let mut end = Vec::new();
    if let Some(last) = found.chunks.last_mut().filter(|chunk| !chunk.is_indexed()) {
        found.end = last.start + last.length;
        last.index_offsets.clear();
        for (channel, entries) in &last.entries {
            last.index_offsets.insert(*channel, found.end + end.len() as u64);
            record(&mut end, MESSAGE_INDEX, &message_index(*channel, entries));
        }
        last.index_bytes = end.len() as u64;
    }
    record(&mut end, DATA_END, &0u32.to_le_bytes());
    let start = found.end;
    summary(&mut end, start, &found);
    file.set_len(found.end)?;
    file.seek(SeekFrom::Start(found.end))?;
    file.write_all(&end)?;
    file.sync_all()?;
    Ok(Mended {
        chunks: found.chunks.len(),
        messages: found.messages(),
        cut_bytes: length_bytes.saturating_sub(start),
    })
}

fn record(out: &mut Vec<u8>, kind: u8, body: &[u8]) {
    out.push(kind);
    out.extend((body.len() as u64).to_le_bytes());
    out.extend(body);
}

fn message_index(channel: u16, entries: &[(u64, u64)]) -> Vec<u8> {
    let mut body = channel.to_le_bytes().to_vec();
    body.extend(((entries.len() * 16) as u32).to_le_bytes());
    body.extend(entries.iter().flat_map(|(log_ns, at)| [log_ns.to_le_bytes(), at.to_le_bytes()]).flatten());
    body
}

/// Everything behind the end of the data; `start` is where `out` begins in the file.
fn summary(out: &mut Vec<u8>, start: u64, found: &Found) {
    let at = |out: &Vec<u8>| start + out.len() as u64;
    let summary_start = at(out);
    let mut groups = Vec::new();
    let mut group = |kind, bodies: Vec<Vec<u8>>| {
        let begin = at(out);
        bodies.iter().for_each(|body| record(out, kind, body));
        if !bodies.is_empty() {
            groups.push((kind, begin, at(out) - begin));
        }
    };
    group(SCHEMA, found.schemas.values().cloned().collect());
    group(CHANNEL, found.channels.values().cloned().collect());
    group(STATISTICS, vec![statistics(found)]);
    group(CHUNK_INDEX, found.chunks.iter().map(chunk_index).collect());
    let offsets_start = at(out);
    for (kind, begin, length) in groups {
        let body: Vec<u8> =
            [kind].into_iter().chain(begin.to_le_bytes()).chain(length.to_le_bytes()).collect();
        record(out, SUMMARY_OFFSET, &body);
    }
    let mut footer = [summary_start.to_le_bytes(), offsets_start.to_le_bytes()].concat();
    // No checksum.
    footer.extend(0u32.to_le_bytes());
    record(out, FOOTER, &footer);
    out.extend(MAGIC);
}

fn statistics(found: &Found) -> Vec<u8> {
    let mut body = found.messages().to_le_bytes().to_vec();
    body.extend((found.schemas.len() as u16).to_le_bytes());
    body.extend((found.channels.len() as u32).to_le_bytes());
    // No attachments, no metadata.
    body.extend([0; 8]);
    body.extend((found.chunks.len() as u32).to_le_bytes());
    let (first, last) = found.span_ns();
    body.extend([first.to_le_bytes(), last.to_le_bytes()].concat());
    body.extend(((found.counts.len() * 10) as u32).to_le_bytes());
    for (channel, count) in &found.counts {
        body.extend(channel.to_le_bytes());
        body.extend(count.to_le_bytes());
    }
    body
}

fn chunk_index(chunk: &Chunk) -> Vec<u8> {
    let mut body = Vec::new();
    for number in [chunk.first_ns, chunk.last_ns, chunk.start, chunk.length] {
        body.extend(number.to_le_bytes());
    }
    body.extend(((chunk.index_offsets.len() * 10) as u32).to_le_bytes());
    for (channel, at) in &chunk.index_offsets {
        body.extend(channel.to_le_bytes());
        body.extend(at.to_le_bytes());
    }
    body.extend(chunk.index_bytes.to_le_bytes());
    body.extend((chunk.compression.len() as u32).to_le_bytes());
    body.extend(chunk.compression.bytes());
    body.extend(chunk.compressed_bytes.to_le_bytes());
    body.extend(chunk.uncompressed_bytes.to_le_bytes());
    body
}

#[cfg(test)]
mod tests;
