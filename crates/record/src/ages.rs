//! Rates and ages of the topics of a recorded robot, from an MCAP file.
//!
//! An age is the recorder's log time minus the stamp that the sender put into the message. Those are two
//! clocks: their offset is part of every age and nothing in the file bounds it, but a stamp later than its log
//! time proves that its clock is ahead. Recordings of `noctule record` hold source times in the recorder's
//! clock, and their bounds.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::io::Read;
use std::path::Path;

use crate::check::Times;
use crate::file::{self, FileError, Record, Take};
use crate::stamp::{NoStamp, Stamp};
use crate::times::SampleTimes;

/// Topics of a file.
const TOPICS_LIMIT: usize = 4096;
/// Messages of a file; each keeps 8 bytes.
const MESSAGES_LIMIT: u64 = 100_000_000;
/// A percentile needs so many messages beyond it.
const BEYOND: usize = 10;
/// A median age above this is no age.
const ONE_DAY_NS: u64 = 86_400_000_000_000;
/// Of a definition this much is kept: the first field stands there, behind the comments.
const TEXT_BYTES_MAX: usize = 8 << 10;

/// Topics of a file, with rates and ages.
#[derive(Debug, Default)]
pub struct Recording {
    /// Definitions by number, of which channels name one.
    definitions: HashMap<u16, Definition>,
    /// Channels by number; `None` is not wanted.
    channels: HashMap<u16, Option<Channel>>,
    topics: BTreeMap<String, RecordedTopic>,
    messages: u64,
    /// Source times, which only our own recordings have.
    times: Times,
}

#[derive(Debug)]
struct Channel {
    topic: String,
    stamp: Option<Stamp>,
}

#[derive(Debug, Default)]
struct Definition {
    name: String,
    language: String,
    /// Only as much as the first field needs.
    text: String,
}

/// All messages of one topic.
#[derive(Debug)]
pub struct RecordedTopic {
    /// Name of its type; empty if the file has no definition.
    pub type_name: String,
    /// How its stamps are found, or why not.
    pub stamp: Result<Stamp, NoStamp>,
    /// Number of messages.
    pub messages: u64,
    /// Payload of all messages, bytes.
    pub bytes: u64,
    /// Stamps of zero: never set.
    pub unset: u64,
    /// Messages in which no stamp is where it should be.
    pub unreadable: u64,
    /// Ages whose error has no proven limit: all but those of source times that have one.
    unproven: u64,
    bound_max_ns: u64,
    /// Log time of the first message, ns.
    first_ns: u64,
    last_ns: u64,
    /// Ages, in order once the file is read.
    ages_ns: Vec<i64>,
}

impl Recording {
    /// Reads the topics that are wanted, all if none is named. What comes before damage is there in any case.
    ///
    /// # Errors
    /// Why the rest was not read, in one sentence.
    pub fn read(&mut self, file: impl Read, wanted: &[&str]) -> Result<(), FileError> {
        self.read_by(wanted, |take| file::read(file, take))
    }

    /// The same of a file, or of the folder of a bag of rosbag2.
    ///
    /// # Errors
    /// As [`Recording::read`].
    pub fn read_path(&mut self, path: &Path, wanted: &[&str]) -> Result<(), FileError> {
        self.read_by(wanted, |take| file::read_path(path, take))
    }

    fn read_by(
        &mut self,
        wanted: &[&str],
        read: impl FnOnce(Take<'_>) -> Result<(), FileError>,
    ) -> Result<(), FileError> {
        let result = read(&mut |record| match record {
            Record::Schema { id, name, encoding, text } => {
                let text = String::from_utf8_lossy(&text[..text.len().min(TEXT_BYTES_MAX)]);
                let (name, language) = (name.to_owned(), encoding.to_owned());
                self.definitions.insert(id, Definition { name, language, text: text.into_owned() });
                Ok(())
            }
            Record::Channel { id, schema, topic, encoding, .. } => {
                let is_wanted = wanted.is_empty() || wanted.contains(&topic);
                let channel = is_wanted.then(|| self.open(topic, schema, encoding)).transpose()?;
                self.channels.insert(id, channel);
                Ok(())
            }
            Record::Message { channel, sequence, log_ns, publish_ns, payload } => {
                let times = self.times.take(channel, sequence).filter(|times| times.has_source_time);
                self.count(channel, (log_ns, publish_ns, times), payload)
            }
            Record::Times(bytes) => {
                self.times.add(bytes);
                Ok(())
            }
            Record::Header { .. } | Record::State(_) => Ok(()),
        });
        self.topics.values_mut().for_each(|topic| topic.ages_ns.sort_unstable());
        result
    }

    /// Those of which there are messages, by name.
    pub fn topics(&self) -> impl Iterator<Item = (&str, &RecordedTopic)> {
        let topics = self.topics.iter().filter(|(_, topic)| topic.messages > 0);
        topics.map(|(name, topic)| (name.as_str(), topic))
    }

    /// Whether the file does not even declare a topic that is wanted.
    pub fn is_empty(&self) -> bool {
        self.topics.is_empty()
    }

    fn open(&mut self, topic: &str, schema: u16, encoding: &str) -> Result<Channel, FileError> {
        if !self.topics.contains_key(topic) && self.topics.len() >= TOPICS_LIMIT {
            let text = format!("it holds more than {TOPICS_LIMIT} topics; name those that matter");
            return Err(FileError::TooLarge(text));
        }
        let none = Definition::default();
        let definition = self.definitions.get(&schema).unwrap_or(&none);
        let stamp = Stamp::of(encoding, (&definition.name, &definition.language, &definition.text));
        let channel = Channel { topic: topic.to_owned(), stamp: stamp.as_ref().ok().copied() };
        let type_name = definition.name.clone();
        match self.topics.get_mut(topic) {
            // The summary at the end of a file declares its channels once more.
            Some(known) if known.stamp == Ok(Stamp::SourceTime) => known.type_name = type_name,
            Some(known) => (known.type_name, known.stamp) = (type_name, stamp),
            None => {
                self.topics.insert(topic.to_owned(), RecordedTopic::new(type_name, stamp));
            }
        }
        Ok(channel)
    }

    fn count(
        &mut self,
        channel: u16,
        (log_ns, publish_ns, times): (u64, u64, Option<SampleTimes>),
        payload: &[u8],
    ) -> Result<(), FileError> {
        let channel = self.channels.get(&channel).ok_or_else(|| {
            FileError::Damaged(format!("a message names channel {channel}, which is not declared").into())
        })?;
        let Some(Channel { topic, stamp }) = channel else { return Ok(()) };
        let Some(topic) = self.topics.get_mut(topic) else { return Ok(()) };
        self.messages += 1;
        if self.messages > MESSAGES_LIMIT {
            let text = format!("it holds more than {MESSAGES_LIMIT} messages; name the topics that matter");
            return Err(FileError::TooLarge(text));
        }
        topic.count(log_ns, payload);
        match times {
            Some(times) => {
                topic.stamp = Ok(Stamp::SourceTime);
                topic.count_source_time(log_ns, publish_ns, times.bound_ns);
            }
            None => topic.count_stamp(log_ns, payload, *stamp),
        }
        Ok(())
    }
}

impl RecordedTopic {
    fn new(type_name: String, stamp: Result<Stamp, NoStamp>) -> RecordedTopic {
        RecordedTopic {
            type_name,
            stamp,
            messages: 0,
            bytes: 0,
            unset: 0,
            unreadable: 0,
            unproven: 0,
            bound_max_ns: 0,
            first_ns: 0,
            last_ns: 0,
            ages_ns: Vec::new(),
        }
    }

    fn count(&mut self, log_ns: u64, payload: &[u8]) {
        self.first_ns = if self.messages == 0 { log_ns } else { self.first_ns.min(log_ns) };
        self.last_ns = self.last_ns.max(log_ns);
        self.messages += 1;
        self.bytes = self.bytes.saturating_add(payload.len() as u64);
    }

    fn count_source_time(&mut self, log_ns: u64, source_ns: u64, bound_ns: Option<u64>) {
        self.count_age(log_ns, source_ns.into());
        match bound_ns {
            Some(bound_ns) => self.bound_max_ns = self.bound_max_ns.max(bound_ns),
            None => self.unproven += 1,
        }
    }

    fn count_stamp(&mut self, log_ns: u64, payload: &[u8], stamp: Option<Stamp>) {
        let Some(stamp) = stamp else { return };
        match stamp.read_ns(payload) {
            None => self.unreadable += 1,
            Some(0) if stamp != Stamp::Scheduled => self.unset += 1,
            Some(stamp_ns) => {
                self.unproven += 1;
                self.count_age(log_ns, stamp_ns.into());
            }
        }
    }

    fn count_age(&mut self, log_ns: u64, from_ns: i128) {
        let age_ns = i128::from(log_ns) - from_ns;
        self.ages_ns.push(i64::try_from(age_ns).unwrap_or(i64::MAX));
    }

    /// No age is further from the truth than this, ns; `None` if that is not proven of all of them.
    pub fn bound_ns(&self) -> Option<u64> {
        (self.unproven == 0 && !self.ages_ns.is_empty()).then_some(self.bound_max_ns)
    }

    /// Time between the first and the last message, by the log.
    pub fn duration_s(&self) -> f64 {
        self.last_ns.saturating_sub(self.first_ns) as f64 / 1e9
    }

    /// Rate by the intervals between messages.
    pub fn rate_hz(&self) -> Option<f64> {
        (self.duration_s() > 0.0).then(|| (self.messages - 1) as f64 / self.duration_s())
    }

    /// Payload per second.
    pub fn bytes_per_s(&self) -> Option<f64> {
        self.rate_hz().map(|rate_hz| rate_hz * self.bytes as f64 / self.messages as f64)
    }

    /// Messages with a stamp, whatever it counts from.
    pub fn stamped(&self) -> usize {
        self.ages_ns.len()
    }

    /// Stamps and log do not count from one beginning: their differences are no ages.
    pub fn is_of_another_time(&self) -> bool {
        let median_ns = self.ages_ns.get(self.ages_ns.len() / 2);
        median_ns.is_some_and(|median_ns| median_ns.unsigned_abs() > ONE_DAY_NS)
    }

    /// Ages in order; none if stamps are of another time.
    pub fn ages_ns(&self) -> &[i64] {
        if self.is_of_another_time() { &[] } else { &self.ages_ns }
    }

    /// `x[⌊qN⌋]` of the sorted ages with `q = dividend / divisor` below 1, if enough lie beyond.
    pub fn age_ns(&self, dividend: usize, divisor: usize) -> Option<i64> {
        let ages_ns = self.ages_ns();
        let at = ages_ns.len() * dividend / divisor;
        (ages_ns.len() >= at + BEYOND).then(|| ages_ns[at])
    }

    /// The largest age.
    pub fn oldest_ns(&self) -> Option<i64> {
        self.ages_ns().last().copied()
    }

    /// Stamps later than their log time.
    pub fn ahead(&self) -> usize {
        self.ages_ns().partition_point(|age_ns| *age_ns < 0)
    }
}
