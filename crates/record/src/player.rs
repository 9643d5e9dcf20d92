//! Publishing a recording again, at its own times.
//!
//! Samples are published in the order of the file. When each is due is decided by [`Schedule`]; waiting is the caller's, so that a
//! player can be paused, stepped, and tested without time passing.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use noctule::{Durability, Format, Node, NodeError, PublishError, Publisher, Qos, Reliability, SourceTime};
use noctule_timebase::Span;

use crate::check::{Contents, RecordedTopic, Times};
use crate::file::{self, FileError, Record};
use crate::schedule::{Due, Schedule};

/// The shortest longest sample that a topic is opened for, bytes.
const PAYLOAD_BYTES_LEAST: u64 = 64;

/// How source times are set when samples are published again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ages {
    /// A sample is as old as it was when it was recorded, with the same bound.
    Preserved,
    /// A sample is true now.
    Renewed,
}

/// Topics to play, their new names, and how their source times are set.
#[derive(Clone, Debug)]
pub struct Selection {
    /// Names of topics in the file; empty: all.
    pub topics: Vec<String>,
    /// Topics that get another name: from, to.
    pub remap: BTreeMap<String, String>,
    /// How source times are set.
    pub ages: Ages,
}

/// Why a play did not begin or ended.
#[derive(Debug, thiserror::Error)]
pub enum PlayError {
    /// The file cannot be read.
    #[error("{0}")]
    File(#[from] FileError),
    /// A topic that the file does not have.
    #[error("the file has no topic {topic}; it has {known}")]
    NoTopic {
        /// Name of the topic that is not there.
        topic: String,
        /// Names of the file's topics.
        known: String,
    },
    /// Two topics would be one, and readers of it could read only one of the types.
    #[error(
        "--remap gives {one} and {other} the name {topic}, and they are of the types {one_type} and {other_type}; name them apart"
    )]
    Mixed {
        /// The name that both would have.
        topic: String,
        /// One topic of the file.
        one: String,
        /// Its type.
        one_type: String,
        /// Another topic of the file.
        other: String,
        /// Its type.
        other_type: String,
    },
    /// The file has no message of the selected topics.
    #[error("the file has no message of these topics")]
    Empty,
    /// A topic cannot be opened.
    #[error("{topic} cannot be published: {cause}")]
    Open {
        /// Name of the topic.
        topic: String,
        /// The library's error.
        cause: NodeError,
    },
    /// A sample cannot be published.
    #[error("a sample of {topic} cannot be published: {cause}")]
    Publish {
        /// Name of the topic.
        topic: String,
        /// The library's error.
        cause: PublishError,
    },
}

/// How many samples were published, by topic.
pub type Played = BTreeMap<String, u64>;

/// Waits until a message is due, so many nanoseconds after the play began; false ends the play.
pub type WaitUntil<'w> = &'w mut dyn FnMut(u64) -> bool;

/// Publishers for the topics of a file.
#[derive(Debug)]
pub struct Player<'n> {
    node: &'n Node,
    publishers: HashMap<u16, Publisher>,
    ages: Ages,
    played: Played,
}

impl<'n> Player<'n> {
    /// Opens a publisher for each channel that is to be played, with the QoS it was recorded with.
    ///
    /// # Errors
    /// A topic that is not there or cannot be opened; nothing to play.
    pub fn open(node: &'n Node, contents: &Contents, selection: &Selection) -> Result<Player<'n>, PlayError> {
        let channels = contents.channels.iter().filter(|(_, channel)| channel.messages > 0);
        let known: Vec<&str> = channels.clone().map(|(_, channel)| channel.topic.as_str()).collect();
        let named = selection.topics.iter().chain(selection.remap.keys());
        if let Some(topic) = named.into_iter().find(|topic| !known.contains(&topic.as_str())) {
            return Err(PlayError::NoTopic { topic: topic.clone(), known: known.join(", ") });
        }
        let is_wanted = |topic: &String| selection.topics.is_empty() || selection.topics.contains(topic);
        let mut publishers = HashMap::new();
        let mut names: HashMap<&String, &RecordedTopic> = HashMap::new();
        for (id, channel) in channels {
            if is_wanted(&channel.topic) {
                let topic = selection.remap.get(&channel.topic).unwrap_or(&channel.topic);
                apart(topic, names.entry(topic).or_insert(channel), channel)?;
                let opened = open(node, topic, channel);
                let failed = |cause| PlayError::Open { topic: topic.clone(), cause };
                publishers.insert(*id, opened.map_err(failed)?);
            }
        }
        if publishers.is_empty() {
            return Err(PlayError::Empty);
        }
        Ok(Player { node, publishers, ages: selection.ages, played: Played::new() })
    }

    /// Topics of which at least one reader is there, and all topics.
    pub fn matched(&self) -> (usize, usize) {
        let matched = self.publishers.values().filter(|publisher| publisher.readers() > 0);
        (matched.count(), self.publishers.len())
    }

    /// Topics that it publishes, sorted.
    pub fn topics(&self) -> BTreeSet<&str> {
        self.publishers.values().map(Publisher::topic).collect()
    }

    /// Plays the file, or the folder of a bag of rosbag2, once.
    ///
    /// # Errors
    /// Damage of the file, or a sample that cannot be published. What comes before was published.
    pub fn play(
        &mut self,
        path: &Path,
        schedule: &Schedule,
        wait_until: WaitUntil<'_>,
    ) -> Result<(), PlayError> {
        let played = &mut self.played;
        let mut times = Times::default();
        let mut failure = None;
        let result = file::read_path(path, &mut |record| {
            let (channel, sequence, log_ns, publish_ns, payload) = match record {
                Record::Times(bytes) => {
                    times.add(bytes);
                    return Ok(());
                }
                Record::Message { channel, sequence, log_ns, publish_ns, payload } => {
                    (channel, sequence, log_ns, publish_ns, payload)
                }
                _ => return Ok(()),
            };
            let entry = times.take(channel, sequence);
            let Some(publisher) = self.publishers.get_mut(&channel) else { return Ok(()) };
            let Due::At(due_ns) = schedule.due(log_ns) else { return Ok(()) };
            if !wait_until(due_ns) {
                return Err(FileError::Stopped);
            }
            let now = self.node.now();
            let age = i64::try_from(log_ns).unwrap_or(0) - i64::try_from(publish_ns).unwrap_or(0);
            let width = |ns: Option<u64>| ns.and_then(|ns| i64::try_from(ns).ok()).map(Span::from_ns);
            let source = match (self.ages, entry) {
                (Ages::Renewed, _) => {
                    SourceTime { time: now, bound: Some(Span::ZERO), sigma: Some(Span::ZERO) }
                }
                (Ages::Preserved, Some(entry)) => SourceTime {
                    time: now - Span::from_ns(age),
                    bound: width(entry.bound_ns),
                    sigma: width(entry.sigma_ns),
                },
                // Another recorder's publish time, if it has one, is of an unknown clock.
                (Ages::Preserved, None) => SourceTime { time: now, bound: None, sigma: None },
            };
            if let Err(cause) = publisher.publish_uncertain(payload, source) {
                failure = Some(PlayError::Publish { topic: publisher.topic().to_owned(), cause });
                return Err(FileError::Stopped);
            }
            *played.entry(publisher.topic().to_owned()).or_default() += 1;
            Ok(())
        });
        match (failure, result) {
            (Some(failure), _) => Err(failure),
            (None, Ok(()) | Err(FileError::Stopped)) => Ok(()),
            (None, Err(damage)) => Err(damage.into()),
        }
    }

    /// Counts of published samples, over all plays.
    pub fn played(&self) -> &Played {
        &self.played
    }

    /// Waits until readers have acknowledged what is reliable, and says whether they have.
    pub fn wait_for_acknowledgments(&self, timeout: std::time::Duration) -> bool {
        let end = std::time::Instant::now() + timeout;
        self.publishers.values().all(|publisher| {
            publisher.wait_for_acknowledgments(end.saturating_duration_since(std::time::Instant::now()))
        })
    }
}

/// Refuses two topics of different types under one name. One topic of the file may have had several types.
fn apart(topic: &str, one: &RecordedTopic, other: &RecordedTopic) -> Result<(), PlayError> {
    if one.topic == other.topic || one.type_name == other.type_name {
        return Ok(());
    }
    let names = |of: &RecordedTopic| (of.topic.clone(), of.type_name.clone());
    let ((one, one_type), (other, other_type)) = (names(one), names(other));
    Err(PlayError::Mixed { topic: topic.to_owned(), one, one_type, other, other_type })
}

fn open(node: &Node, topic: &str, channel: &RecordedTopic) -> Result<Publisher, NodeError> {
    let hash = channel.metadata.get("noctule_type_hash");
    let hash = hash.and_then(|digits| u64::from_str_radix(digits, 16).ok()).unwrap_or(0);
    let name = if channel.type_name.is_empty() { "bytes" } else { &channel.type_name };
    if let Some(text) = channel.metadata.get("noctule_type_description") {
        // A description that is none, or for which there is no room, costs readers the fields and not the samples.
        let _ = node.describe(text);
    }
    let longest_bytes = channel.longest_bytes.max(PAYLOAD_BYTES_LEAST);
    let mut builder = node
        .publisher(topic)
        .type_name(name, hash)
        .qos(qos(&channel.metadata))
        .payload_bytes_max(u32::try_from(longest_bytes).unwrap_or(u32::MAX));
    if let Some(format) = format(&channel.encoding) {
        builder = builder.format(format);
    }
    builder.open()
}

/// The format that MCAP's word names; `None` for bytes of no format of ours.
fn format(encoding: &str) -> Option<Format> {
    if encoding == "flatbuffer" { Some(Format::FlatBuffers) } else { encoding.parse().ok() }
}

/// QoS of a channel: in our own words, else in rosbag2's YAML.
fn qos(metadata: &BTreeMap<String, String>) -> Qos {
    let ours = |key: &str| metadata.get(key).map(String::as_str);
    let ros = ours("offered_qos_profiles").unwrap_or_default();
    let ros_says = |words: &[&str]| words.iter().any(|word| ros.contains(word));
    let deadline = ours("noctule_deadline_ns").and_then(|ns| ns.parse().ok()).map(Span::from_ns);
    let reliability = match ours("noctule_reliability").map(str::parse) {
        // Without a deadline nothing is bound by one.
        Some(Ok(Reliability::DeadlineBound)) if deadline.is_none() => Reliability::BestEffort,
        Some(said) => said.unwrap_or_default(),
        None if ros_says(&["reliability: 1", "reliability: reliable"]) => Reliability::Reliable,
        None => Reliability::BestEffort,
    };
    let durability = match ours("noctule_durability").map(str::parse) {
        Some(said) => said.unwrap_or_default(),
        None if ros_says(&["durability: 1", "durability: transient_local"]) => Durability::TransientLocal,
        None => Durability::Volatile,
    };
    let depth = ours("noctule_keep_last").and_then(|depth| depth.parse().ok());
    let depth = depth.unwrap_or(Qos::default().depth);
    Qos { reliability, durability, depth, deadline, ..Qos::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_types_do_not_get_one_name() {
        let of = |topic: &str, type_name: &str| RecordedTopic {
            topic: topic.to_owned(),
            type_name: type_name.to_owned(),
            ..RecordedTopic::default()
        };
        assert!(apart("/a", &of("/x", "p/msg/X"), &of("/y", "p/msg/X")).is_ok());
        assert!(apart("/x", &of("/x", "p/msg/X"), &of("/x", "p/msg/Y")).is_ok());
        let refused = apart("/a", &of("/x", "p/msg/X"), &of("/y", "p/msg/Y")).unwrap_err().to_string();
        assert!(refused.contains("/x and /y the name /a") && refused.contains("p/msg/Y"), "{refused}");
    }

    #[test]
    fn qos_is_read_in_our_words_and_in_those_of_rosbag2() {
        let of = |pairs: &[(&str, &str)]| {
            qos(&pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect())
        };
        let plain = of(&[]);
        assert_eq!((plain.reliability, plain.durability), (Reliability::BestEffort, Durability::Volatile));
        let ours = of(&[
            ("noctule_reliability", "reliable"),
            ("noctule_durability", "transient_local"),
            ("noctule_keep_last", "3"),
        ]);
        assert_eq!(
            (ours.reliability, ours.durability, ours.depth),
            (Reliability::Reliable, Durability::TransientLocal, 3)
        );
        for words in
            ["reliability: 1\n  durability: 1", "reliability: reliable\n  durability: transient_local"]
        {
            let ros = of(&[("offered_qos_profiles", words)]);
            assert_eq!(
                (ros.reliability, ros.durability),
                (Reliability::Reliable, Durability::TransientLocal)
            );
        }
        assert_eq!(of(&[("noctule_reliability", "deadline_bound")]).reliability, Reliability::BestEffort);
        let bound = of(&[("noctule_reliability", "deadline_bound"), ("noctule_deadline_ns", "60000000")]);
        assert_eq!(
            (bound.reliability, bound.deadline),
            (Reliability::DeadlineBound, Some(Span::from_ms(60)))
        );
    }
}
