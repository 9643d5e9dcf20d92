//! Contents of a file, topic by topic, with the ages and bounds that only our recordings have.

use std::collections::{BTreeMap, HashMap};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;

use crate::file::{self, FileError, Record, Take, pairs};
use crate::times::{SampleTimes, decode};

/// Channels of a file: MCAP's own limit.
const CHANNELS_LIMIT: usize = 65_536;
/// Definitions that are kept, of all types together.
const DEFINITION_BYTES_MAX: usize = 64 << 20;
/// Messages whose ages are kept; 8 bytes each.
const AGES_LIMIT: usize = 100_000_000;
/// A percentile needs so many ages beyond it.
const BEYOND: usize = 10;

/// A topic of a file.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RecordedTopic {
    /// Name of the topic.
    pub topic: String,
    /// Name of its type.
    pub type_name: String,
    /// Encoding of its messages.
    pub encoding: String,
    /// Whether the file has the definition of its type.
    pub has_definition: bool,
    /// The definition, if its language is `ros2msg`.
    #[serde(skip)]
    pub ros2msg: Option<Arc<str>>,
    /// Metadata of its channel.
    pub metadata: BTreeMap<String, String>,
    /// Number of messages.
    pub messages: u64,
    /// Payload of all messages, bytes.
    pub bytes: u64,
    /// The longest message.
    pub longest_bytes: u64,
    /// Log time of the first message, ns since 1970.
    pub first_log_ns: u64,
    /// Log time of the last message.
    pub last_log_ns: u64,
    /// Messages with a source time of our own.
    pub with_source_time: u64,
    /// Messages whose source time has a proven bound.
    pub with_bound: u64,
    /// The largest bound, ns.
    pub bound_max_ns: Option<u64>,
    /// Samples that were lost before the recorder.
    pub missed: u64,
    /// Number of publishers.
    pub publishers: u64,
    /// Age p50, p99 and max, ns: log time − source time. `None` where too few are known.
    pub age_p50_ns: Option<i64>,
    /// See [`age_p50_ns`](RecordedTopic::age_p50_ns).
    pub age_p99_ns: Option<i64>,
    /// See [`age_p50_ns`](RecordedTopic::age_p50_ns).
    pub age_max_ns: Option<i64>,
}

/// Contents of a file.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Contents {
    /// Topics, by number of the channel.
    #[serde(skip)]
    pub channels: BTreeMap<u16, RecordedTopic>,
    /// Log time of the earliest message; `None` if there is none.
    pub first_log_ns: Option<u64>,
    /// Log time of the latest message.
    pub last_log_ns: Option<u64>,
    /// Messages whose log time is earlier than that of the one before them.
    pub out_of_order: u64,
}

#[derive(Default)]
struct Reading {
    contents: Contents,
    schemas: HashMap<u16, Schema>,
    definition_bytes: usize,
    times: Times,
    ages_ns: HashMap<u16, Vec<i64>>,
    ages: usize,
    publishers: HashMap<u16, Vec<[u8; 8]>>,
    latest_ns: u64,
}

/// Name of a type, whether it has a definition, and that definition.
type Schema = (String, bool, Option<Arc<str>>);

/// The entries of the [records of times](crate::times) that were read, until their messages come.
#[derive(Debug, Default)]
pub struct Times(HashMap<(u16, u32), SampleTimes>);

impl Times {
    /// Takes the entries of a record; one that is damaged or of another version has none.
    pub fn add(&mut self, record: &[u8]) {
        // Those of the chunk before have been used, or their messages are missing.
        self.0.clear();
        self.0.extend(
            decode(record).into_iter().flatten().map(|entry| ((entry.channel, entry.sequence), entry)),
        );
    }

    /// The entry of a message, once.
    pub fn take(&mut self, channel: u16, sequence: u32) -> Option<SampleTimes> {
        self.0.remove(&(channel, sequence))
    }
}

/// Reads a file to its end, or to its damage.
pub fn contents(file: impl Read) -> (Contents, Result<(), FileError>) {
    contents_by(|take| file::read(file, take))
}

/// Reads a file, or the folder of a bag of rosbag2, to its end or to its damage.
pub fn contents_at(path: &Path) -> (Contents, Result<(), FileError>) {
    contents_by(|take| file::read_path(path, take))
}

fn contents_by(read: impl FnOnce(Take<'_>) -> Result<(), FileError>) -> (Contents, Result<(), FileError>) {
    let mut reading = Reading::default();
    let result = read(&mut |record| reading.handle(&record));
    reading.finish();
    (reading.contents, result)
}

impl Reading {
    fn handle(&mut self, record: &Record<'_>) -> Result<(), FileError> {
        match *record {
            Record::Header { .. } => {}
            Record::Schema { id, name, encoding, text } => {
                let is_kept =
                    encoding == "ros2msg" && self.definition_bytes + text.len() <= DEFINITION_BYTES_MAX;
                let text = std::str::from_utf8(text).ok().filter(|_| is_kept).map(Arc::from);
                self.definition_bytes += text.as_ref().map_or(0, |text: &Arc<str>| text.len());
                self.schemas.insert(id, (name.to_owned(), !encoding.is_empty(), text));
            }
            Record::Channel { id, schema, topic, encoding, metadata } => {
                let known = self.contents.channels.len() < CHANNELS_LIMIT;
                known.then_some(()).ok_or_else(|| FileError::TooLarge("it has too many channels".into()))?;
                let (type_name, has_definition, ros2msg) =
                    self.schemas.get(&schema).cloned().unwrap_or_default();
                let channel = self.contents.channels.entry(id).or_default();
                (channel.topic, channel.encoding) = (topic.to_owned(), encoding.to_owned());
                (channel.type_name, channel.has_definition, channel.ros2msg) =
                    (type_name, has_definition, ros2msg);
                let owned = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
                channel.metadata = pairs(metadata).map(owned).collect();
            }
            Record::Times(bytes) => self.times.add(bytes),
            Record::State(_) => {}
            Record::Message { channel, sequence, log_ns, publish_ns, payload } => {
                let times = self.times.take(channel, sequence);
                self.count(channel, (log_ns, publish_ns), payload.len() as u64, times)?;
            }
        }
        Ok(())
    }

    fn count(
        &mut self,
        id: u16,
        (log_ns, publish_ns): (u64, u64),
        bytes: u64,
        times: Option<SampleTimes>,
    ) -> Result<(), FileError> {
        let undeclared =
            || FileError::Damaged(format!("a message names channel {id}, which is not declared").into());
        let channel = self.contents.channels.get_mut(&id).ok_or_else(undeclared)?;
        if channel.messages == 0 {
            channel.first_log_ns = log_ns;
        }
        channel.messages += 1;
        channel.bytes = channel.bytes.saturating_add(bytes);
        channel.longest_bytes = channel.longest_bytes.max(bytes);
        channel.last_log_ns = channel.last_log_ns.max(log_ns);
        self.contents.first_log_ns =
            Some(self.contents.first_log_ns.map_or(log_ns, |first| first.min(log_ns)));
        self.contents.last_log_ns = self.contents.last_log_ns.max(Some(log_ns));
        self.contents.out_of_order += u64::from(log_ns < self.latest_ns);
        self.latest_ns = self.latest_ns.max(log_ns);
        let Some(times) = times else { return Ok(()) };
        channel.missed = channel.missed.saturating_add(times.missed);
        channel.with_bound += u64::from(times.bound_ns.is_some());
        channel.bound_max_ns = channel.bound_max_ns.max(times.bound_ns);
        let publishers = self.publishers.entry(id).or_default();
        if !publishers.contains(&times.publisher) && publishers.len() < CHANNELS_LIMIT {
            publishers.push(times.publisher);
        }
        if times.has_source_time {
            channel.with_source_time += 1;
            self.ages += 1;
            if self.ages <= AGES_LIMIT {
                let age_ns = i128::from(log_ns) - i128::from(publish_ns);
                self.ages_ns.entry(id).or_default().push(i64::try_from(age_ns).unwrap_or(i64::MAX));
            }
        }
        Ok(())
    }

    fn finish(&mut self) {
        for (id, channel) in &mut self.contents.channels {
            channel.publishers = self.publishers.get(id).map_or(0, |publishers| publishers.len() as u64);
            let Some(ages_ns) = self.ages_ns.get_mut(id) else { continue };
            ages_ns.sort_unstable();
            let quantile = |dividend: usize, divisor: usize| {
                let at = ages_ns.len() * dividend / divisor;
                (ages_ns.len() >= at + BEYOND).then(|| ages_ns[at])
            };
            (channel.age_p50_ns, channel.age_p99_ns) = (quantile(1, 2), quantile(99, 100));
            channel.age_max_ns = ages_ns.last().copied();
        }
    }
}
