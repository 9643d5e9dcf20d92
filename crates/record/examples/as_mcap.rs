//! Writes a recording of any kind that is read as MCAP: `as_mcap IN OUT.mcap`.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;

use noctule_record::check::Times;
use noctule_record::file::{self, FileError, Record};
use noctule_record::state;
use noctule_record::times::SampleTimes;
use noctule_record::writer::{Format, Limits, Recording, Stored, Topic};

/// Messages of a chunk.
const CHUNK_MESSAGES: usize = 1_000;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [from, to] = words.as_slice() else { return Err("as_mcap IN OUT.mcap".into()) };
    let mut recording = Recording::create(Path::new(to), Limits::default(), Format::default())?;
    let (mut schemas, mut topics, mut times) = (BTreeMap::new(), BTreeMap::new(), Times::default());
    let mut chunk: Vec<(Stored, Vec<u8>)> = Vec::new();
    file::read_path(Path::new(from), &mut |record| {
        match record {
            Record::Header { .. } => {}
            Record::Schema { id, name, encoding, text } => {
                let text = String::from_utf8_lossy(text).into_owned();
                schemas.insert(id, (name.to_owned(), (encoding.to_owned(), text)));
            }
            Record::Channel { id, schema, topic, encoding, metadata } => {
                let (type_name, definition) = schemas.get(&schema).cloned().unwrap_or_default();
                let metadata = file::pairs(metadata).map(|(key, value)| (key.to_owned(), value.to_owned()));
                let (name, encoding, metadata) = (topic.to_owned(), encoding.to_owned(), metadata.collect());
                let topic = Topic { name, encoding, type_name, definition: Some(definition), metadata };
                topics.insert(id, recording.add_topic(topic));
            }
            Record::Times(bytes) => times.add(bytes),
            Record::State(bytes) => {
                if let Some((log_ns, state)) = state::decode(bytes) {
                    recording.add_state(log_ns, &state);
                }
            }
            Record::Message { channel, sequence, log_ns, publish_ns, payload } => {
                let topic = *topics.get(&channel).ok_or(FileError::Garbled)?;
                let times = times.take(channel, sequence).unwrap_or(unknown());
                chunk.push((Stored { topic, log_ns, publish_ns, times }, payload.to_vec()));
                if chunk.len() == CHUNK_MESSAGES {
                    let written = recording.write(&chunk);
                    written.map_err(|error| FileError::Unreadable(error.to_string()))?;
                    chunk.clear();
                }
            }
        }
        Ok(())
    })?;
    recording.write(&chunk)?;
    Ok(recording.finish()?)
}

/// Of a message of which nothing more is known.
fn unknown() -> SampleTimes {
    SampleTimes {
        channel: 0,
        has_source_time: false,
        sequence: 0,
        publisher: [0; 8],
        publisher_sequence: 0,
        missed: 0,
        bound_ns: None,
        sigma_ns: None,
    }
}
