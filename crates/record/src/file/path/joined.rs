//! Several files as one: each numbers its schemas and channels anew.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::file::{FileError, Record, Take};
use crate::times::{SampleTimes, decode, encode};

/// A channel: its topic, the encoding of its messages, and its schema in the whole.
type Channel = (String, String, u16);

/// Numbers of the whole, by what stands behind them.
#[derive(Default)]
pub(super) struct Joined {
    /// Schemas by a hash of name, language and text.
    schemas: HashMap<u64, u16>,
    channels: HashMap<Channel, u16>,
    /// Schema of the file that is read → schema of the whole.
    schema_of_file: HashMap<u16, u16>,
    channel_of_file: HashMap<u16, u16>,
}

impl Joined {
    pub(super) fn begin_file(&mut self) {
        self.schema_of_file.clear();
        self.channel_of_file.clear();
    }

    /// Gives a record on, under the numbers of the whole; a schema or channel that an earlier file had is not repeated.
    pub(super) fn pass(&mut self, record: &Record<'_>, take: Take<'_>) -> Result<(), FileError> {
        match *record {
            Record::Header { profile } => take(Record::Header { profile }),
            Record::Schema { id, name, encoding, text } => {
                let mut hasher = DefaultHasher::new();
                (name, encoding, text).hash(&mut hasher);
                // 0 means none.
                let next = number(self.schemas.len() + 1)?;
                let whole = *self.schemas.entry(hasher.finish()).or_insert(next);
                self.schema_of_file.insert(id, whole);
                if whole == next { take(Record::Schema { id: whole, name, encoding, text }) } else { Ok(()) }
            }
            Record::Channel { id, schema, topic, encoding, metadata } => {
                let schema = self.schema_of_file.get(&schema).copied().unwrap_or(0);
                let next = number(self.channels.len())?;
                let key = (topic.to_owned(), encoding.to_owned(), schema);
                let whole = *self.channels.entry(key).or_insert(next);
                self.channel_of_file.insert(id, whole);
                if whole != next {
                    return Ok(());
                }
                take(Record::Channel { id: whole, schema, topic, encoding, metadata })
            }
            Record::Message { channel, sequence, log_ns, publish_ns, payload } => {
                let undeclared = || {
                    FileError::Damaged(
                        format!("a message names channel {channel}, which is not declared").into(),
                    )
                };
                let channel = *self.channel_of_file.get(&channel).ok_or_else(undeclared)?;
                take(Record::Message { channel, sequence, log_ns, publish_ns, payload })
            }
            Record::Times(bytes) => {
                let known = |entry: SampleTimes| {
                    let channel = *self.channel_of_file.get(&entry.channel)?;
                    Some(SampleTimes { channel, ..entry })
                };
                let entries: Vec<_> = decode(bytes).into_iter().flatten().filter_map(known).collect();
                take(Record::Times(&encode(&entries)))
            }
            Record::State(bytes) => take(Record::State(bytes)),
        }
    }
}

fn number(count: usize) -> Result<u16, FileError> {
    let too_many = |_| FileError::TooLarge("it has more than 65,535 channels or definitions".into());
    u16::try_from(count).map_err(too_many)
}
