//! Logs of PX4 (ULog), from front to back.
//!
//! Reference: docs.px4.io/main/en/dev_log/ulog_file_format.html. A logged message becomes a channel `/NAME`, or `/NAME_1` and so on for its other
//! instances, in CDR with a definition in `ros2msg`: the fields in the order of the log, without their padding. Log time is the field
//! `timestamp`, since the start of the board. Where there is a `timestamp_sample`, that is the source time, of the same clock. Parameters,
//! texts and drop-outs of the logger are not read.

mod layout;

use std::collections::HashMap;
use std::io::Read;

use crate::file::{FileError, Record, Take, array, skip};
use crate::times::{SampleTimes, encode};

use super::{bytes, metadata};
use layout::{Formats, Layout};

const FLAGS: u8 = b'B';
const FORMAT: u8 = b'F';
const ADDED: u8 = b'A';
const DATA: u8 = b'D';
/// The first eight bytes, and the time at which the log began.
const HEADER_BYTES: u64 = 16;
/// Version, or the first bit of the flags that a reader must know: data was appended.
const KNOWN_FLAG: u8 = 1;

/// A logged message of one instance.
struct Logged {
    layout: Layout,
    messages: u32,
}

#[derive(Default)]
struct Log {
    formats: Formats,
    /// Logged messages by number in the log, which is the channel's.
    logged: HashMap<u16, Logged>,
    schemas: u16,
    /// Where appended data begin; 0 = there are none.
    appended_at: u64,
}

/// Reads what follows the first eight bytes.
///
/// # Errors
/// Why the rest of the file was not read.
pub fn read(mut file: impl Read, take: Take<'_>) -> Result<(), FileError> {
    array::<8>(&mut file)?;
    take(Record::Header { profile: "ulog" })?;
    let (mut log, mut at) = (Log::default(), HEADER_BYTES);
    let mut first = [0];
    while file.read(&mut first).map_err(crate::file::sentence)? > 0 {
        let rest: [u8; 2] = array(&mut file)?;
        let length_bytes = u64::from(u16::from_le_bytes([first[0], rest[0]]));
        let end = at + 3 + length_bytes;
        if at < log.appended_at && end > log.appended_at {
            // The logger stopped in the middle of a message; what the board wrote at its restart follows.
            skip(&mut file, log.appended_at.saturating_sub(at + 3))?;
            at = log.appended_at.max(at + 3);
            continue;
        }
        let body = bytes(&mut file, length_bytes)?;
        log.handle(rest[1], &body, take)?;
        at = end;
    }
    Ok(())
}

impl Log {
    fn handle(&mut self, kind: u8, body: &[u8], take: Take<'_>) -> Result<(), FileError> {
        match kind {
            FLAGS => self.flags(body),
            FORMAT => self.formats.add(body),
            ADDED => self.added(body, take),
            DATA => self.data(body, take),
            // Parameters, texts, drop-outs, and kinds that are newer than this reader.
            _ => Ok(()),
        }
    }

    fn flags(&mut self, body: &[u8]) -> Result<(), FileError> {
        let incompatible = body.get(8..16).ok_or(FileError::Garbled)?;
        if incompatible[0] & !KNOWN_FLAG != 0 || incompatible[1..] != [0; 7] {
            return Err(FileError::TooLarge(
                "this log uses a later version of ULog than is read here".into(),
            ));
        }
        let offset = body.get(16..24).and_then(|bytes| bytes.first_chunk()).ok_or(FileError::Garbled)?;
        self.appended_at = u64::from_le_bytes(*offset);
        Ok(())
    }

    fn added(&mut self, body: &[u8], take: Take<'_>) -> Result<(), FileError> {
        let (head, name) = body.split_first_chunk::<3>().ok_or(FileError::Garbled)?;
        let (instance, id) = (head[0], u16::from_le_bytes([head[1], head[2]]));
        let name = std::str::from_utf8(name).map_err(|_| FileError::Damaged("a name is not UTF-8".into()))?;
        if self.logged.contains_key(&id) {
            return Err(FileError::Damaged(format!("message {id} is declared twice").into()));
        }
        let layout = self.formats.layout(name)?;
        let too_many = || FileError::TooLarge("it has more than 65,535 messages".into());
        self.schemas = self.schemas.checked_add(1).ok_or_else(too_many)?;
        take(Record::Schema {
            id: self.schemas,
            name: &layout.type_name,
            encoding: "ros2msg",
            text: layout.definition.as_bytes(),
        })?;
        let topic = if instance == 0 { format!("/{name}") } else { format!("/{name}_{instance}") };
        let metadata = metadata(&[("ulog_message", name)]);
        take(Record::Channel {
            id,
            schema: self.schemas,
            topic: &topic,
            encoding: "cdr",
            metadata: &metadata,
        })?;
        self.logged.insert(id, Logged { layout, messages: 0 });
        Ok(())
    }

    fn data(&mut self, body: &[u8], take: Take<'_>) -> Result<(), FileError> {
        let (id, packed) = body.split_first_chunk().ok_or(FileError::Garbled)?;
        let channel = u16::from_le_bytes(*id);
        let undeclared =
            || FileError::Damaged(format!("data name message {channel}, which is not declared").into());
        let logged = self.logged.get_mut(&channel).ok_or_else(undeclared)?;
        let payload = logged.layout.cdr(packed).ok_or(FileError::Garbled)?;
        let time_ns = |at: Option<usize>| {
            let us = u64::from_le_bytes(*packed.get(at?..)?.first_chunk()?);
            (us > 0).then_some(us.saturating_mul(1_000))
        };
        let log_ns = time_ns(logged.layout.timestamp_at).unwrap_or(0);
        let source_ns = time_ns(logged.layout.sample_timestamp_at);
        let sequence = logged.messages;
        logged.messages = sequence.wrapping_add(1);
        if source_ns.is_some() {
            take(Record::Times(&encode(&[times(channel, sequence)])))?;
        }
        let publish_ns = source_ns.unwrap_or(log_ns);
        take(Record::Message { channel, sequence, log_ns, publish_ns, payload: &payload })
    }
}

/// The board says when it sampled; nothing proves how exactly.
fn times(channel: u16, sequence: u32) -> SampleTimes {
    SampleTimes {
        channel,
        has_source_time: true,
        sequence,
        publisher: [0; 8],
        publisher_sequence: u64::from(sequence) + 1,
        missed: 0,
        bound_ns: None,
        sigma_ns: None,
    }
}

#[cfg(test)]
mod tests;
