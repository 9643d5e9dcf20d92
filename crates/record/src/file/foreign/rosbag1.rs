//! Bags of ROS 1, version 2.0, from front to back: a bag that was not closed has no index.
//!
//! Reference: wiki.ros.org/Bags/Format/2.0. A connection becomes a channel with the encoding `ros1` and a schema in `ros1msg`; messages
//! stay as they are. Log time and publish time are both the time at which the recorder received the message.

use std::collections::HashMap;
use std::io::Read;

use crate::file::{FileError, Record, Take, array, record_length, skip};

use super::{bytes, metadata};

/// Version behind the first eight bytes of the file.
const VERSION: [u8; 5] = *b"V2.0\n";
/// Longest header of a record.
const HEADER_BYTES_MAX: u64 = 1 << 20;
const MESSAGE: u8 = 2;
const CHUNK: u8 = 5;
const CONNECTION: u8 = 7;

/// The connections that were read.
#[derive(Default)]
struct Bag {
    /// Messages so far, by connection.
    messages: HashMap<u32, u32>,
}

/// Reads what follows `#ROSBAG `.
///
/// # Errors
/// Why the rest of the file was not read.
pub fn read(mut file: impl Read, take: Take<'_>) -> Result<(), FileError> {
    if array(&mut file)? != VERSION {
        return Err(FileError::Damaged(
            "it is a bag of ROS 1, but not of version 2.0; `rosbag migrate` converts it".into(),
        ));
    }
    take(Record::Header { profile: "ros1" })?;
    let mut bag = Bag::default();
    while let Some(header) = header(&mut file)? {
        let data_bytes = u64::from(u32::from_le_bytes(array(&mut file)?));
        let fields = Fields(&header);
        match fields.one("op") {
            Some(CHUNK) => bag.chunk(&fields, &mut (&mut file).take(data_bytes), take)?,
            kind => bag.record(kind, &fields, (&mut file, data_bytes), take)?,
        }
    }
    Ok(())
}

impl Bag {
    fn chunk(
        &mut self,
        fields: &Fields<'_>,
        body: &mut std::io::Take<&mut impl Read>,
        take: Take<'_>,
    ) -> Result<(), FileError> {
        let read = match fields.get("compression") {
            Some(b"none") => self.records(body, take),
            Some(b"bz2") => self.records(&mut bzip2::read::BzDecoder::new(&mut *body), take),
            Some(b"lz4") => match lz4::Decoder::new(&mut *body) {
                Ok(mut decoder) => self.records(&mut decoder, take),
                Err(error) => Err(crate::file::sentence(error)),
            },
            other => {
                let other = String::from_utf8_lossy(other.unwrap_or_default()).escape_debug().to_string();
                Err(FileError::Compression(other))
            }
        };
        if read == Err(FileError::Stopped) {
            return read;
        }
        skip(body, u64::MAX)?;
        // That the file was cut explains whatever else is wrong.
        if body.limit() > 0 { Err(FileError::Cut) } else { read }
    }

    fn records(&mut self, records: &mut dyn Read, take: Take<'_>) -> Result<(), FileError> {
        let mut records = records;
        while let Some(header) = header(&mut records)? {
            let data_bytes = u64::from(u32::from_le_bytes(array(&mut records)?));
            let fields = Fields(&header);
            match fields.one("op") {
                Some(CHUNK) => return Err(FileError::Damaged("a chunk lies in a chunk".into())),
                kind => self.record(kind, &fields, (&mut records, data_bytes), take)?,
            }
        }
        Ok(())
    }

    fn record(
        &mut self,
        kind: Option<u8>,
        fields: &Fields<'_>,
        (reader, data_bytes): (&mut impl Read, u64),
        take: Take<'_>,
    ) -> Result<(), FileError> {
        if !matches!(kind, Some(MESSAGE | CONNECTION)) {
            let skipped_bytes = skip(reader, data_bytes)?;
            return if skipped_bytes == data_bytes { Ok(()) } else { Err(FileError::Cut) };
        }
        record_length(data_bytes)?;
        let data = bytes(reader, data_bytes)?;
        let connection = fields.word("conn").ok_or(FileError::Garbled)?;
        if kind == Some(CONNECTION) {
            self.connection(connection, fields, &data, take)
        } else {
            self.message(connection, fields, &data, take)
        }
    }

    fn connection(
        &mut self,
        connection: u32,
        fields: &Fields<'_>,
        data: &[u8],
        take: Take<'_>,
    ) -> Result<(), FileError> {
        if self.messages.contains_key(&connection) {
            // Repeated in each chunk that has messages of it, and at the end.
            return Ok(());
        }
        let id = channel(connection)?;
        let more = Fields(data);
        let text = |bytes: Option<&'_ [u8]>| String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned();
        let (topic, type_name) = (text(fields.get("topic")), text(more.get("type")));
        take(Record::Schema {
            id: id + 1,
            name: &type_name,
            encoding: "ros1msg",
            text: more.get("message_definition").unwrap_or_default(),
        })?;
        let caller = text(more.get("callerid"));
        let is_latched = more.get("latching") == Some(b"1");
        let durability = if is_latched { "transient_local" } else { "volatile" };
        let pairs =
            [("callerid", &*caller), ("noctule_reliability", "reliable"), ("noctule_durability", durability)];
        take(Record::Channel {
            id,
            schema: id + 1,
            topic: &topic,
            encoding: "ros1",
            metadata: &metadata(&pairs),
        })?;
        self.messages.insert(connection, 0);
        Ok(())
    }

    fn message(
        &mut self,
        connection: u32,
        fields: &Fields<'_>,
        data: &[u8],
        take: Take<'_>,
    ) -> Result<(), FileError> {
        let undeclared = || {
            FileError::Damaged(
                format!("a message names connection {connection}, which is not declared").into(),
            )
        };
        let sequence = self.messages.get_mut(&connection).ok_or_else(undeclared)?;
        let time = fields.get("time").and_then(|bytes| bytes.first_chunk::<8>()).ok_or(FileError::Garbled)?;
        let word =
            |at: usize| u64::from(u32::from_le_bytes([time[at], time[at + 1], time[at + 2], time[at + 3]]));
        let log_ns = word(0) * 1_000_000_000 + word(4);
        take(Record::Message {
            channel: channel(connection)?,
            sequence: *sequence,
            log_ns,
            publish_ns: log_ns,
            payload: data,
        })?;
        *sequence = sequence.wrapping_add(1);
        Ok(())
    }
}

/// The channel of a connection; its schema has the next number.
fn channel(connection: u32) -> Result<u16, FileError> {
    let too_many =
        || FileError::TooLarge(format!("it has a connection {connection}; 65,534 are read at most"));
    u16::try_from(connection).ok().filter(|id| *id < u16::MAX).ok_or_else(too_many)
}

/// The fields of the next record; `None` at the end.
fn header(reader: &mut impl Read) -> Result<Option<Vec<u8>>, FileError> {
    let mut first = [0];
    if reader.read(&mut first).map_err(crate::file::sentence)? == 0 {
        return Ok(None);
    }
    let rest: [u8; 3] = array(reader)?;
    let length_bytes = u64::from(u32::from_le_bytes([first[0], rest[0], rest[1], rest[2]]));
    if length_bytes > HEADER_BYTES_MAX {
        return Err(FileError::TooLarge(format!(
            "the header of a record has {length_bytes} bytes; {HEADER_BYTES_MAX} are read at most"
        )));
    }
    bytes(reader, length_bytes).map(Some)
}

/// Fields `name=value`, each with its length before it.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn get(&self, name: &str) -> Option<&'a [u8]> {
        let mut rest = self.0;
        loop {
            let (length, behind) = rest.split_first_chunk::<4>()?;
            let (field, behind) = behind.split_at_checked(u32::from_le_bytes(*length) as usize)?;
            rest = behind;
            if let Some(value) =
                field.strip_prefix(name.as_bytes()).and_then(|value| value.strip_prefix(b"="))
            {
                return Some(value);
            }
        }
    }

    fn one(&self, name: &str) -> Option<u8> {
        self.get(name).and_then(|value| value.first().copied())
    }

    fn word(&self, name: &str) -> Option<u32> {
        self.get(name)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
    }
}

#[cfg(test)]
mod tests;
