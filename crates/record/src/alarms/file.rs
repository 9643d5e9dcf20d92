//! Judges a recording by alarms, as they would have fired live.

use std::collections::HashMap;
use std::path::Path;

use serde::Serialize;

use super::{Alarms, Condition, Seen};
use crate::check::Times;
use crate::file::{self, FileError, Record};
use crate::stamp::Stamp;

/// Result of one alarm over a whole recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Judged {
    /// The alarm as a sentence's beginning.
    pub alarm: String,
    /// Times it fired.
    pub times: u64,
    /// When it fired first, ns after the first message.
    pub first_after_ns: Option<u64>,
    /// Why it could not fire, if so: the file lacks what it needs.
    pub unknown: Option<&'static str>,
}

/// A channel of the file.
struct Channel {
    topic: String,
    stamp: Option<Stamp>,
}

/// Language and beginning of a definition, and the name of its type.
#[derive(Default)]
struct Definition {
    name: String,
    language: String,
    text: String,
}

/// Hands the messages of a recording to the alarms, in the order of the file. Source times are those of our own recordings, and of
/// others the stamps in the messages.
///
/// # Errors
/// Damage in the file; the alarms are judged by what comes before.
pub fn judge(path: &Path, mut alarms: Alarms) -> (Vec<Judged>, Result<(), FileError>) {
    let (mut definitions, mut channels) = (HashMap::new(), HashMap::new());
    let (mut times, mut first_ns) = (Times::default(), None);
    let read = file::read_path(path, &mut |record| {
        match record {
            Record::Header { .. } => {}
            Record::Schema { id, name, encoding, text } => {
                let text = String::from_utf8_lossy(text).into_owned();
                let (name, language) = (name.to_owned(), encoding.to_owned());
                definitions.insert(id, Definition { name, language, text });
            }
            Record::Channel { id, schema, topic, encoding, .. } => {
                let none = Definition::default();
                let Definition { name, language, text } = definitions.get(&schema).unwrap_or(&none);
                let stamp = Stamp::of(encoding, (name, language, text)).ok();
                channels.insert(id, Channel { topic: topic.to_owned(), stamp });
            }
            Record::Times(bytes) => times.add(bytes),
            Record::State(_) => {}
            Record::Message { channel, sequence, log_ns, publish_ns, payload } => {
                let entry = times.take(channel, sequence);
                let Some(channel) = channels.get(&channel) else { return Ok(()) };
                first_ns.get_or_insert(log_ns);
                let stamped = || channel.stamp.and_then(|stamp| stamp.read_ns(payload));
                let source_ns = match &entry {
                    Some(entry) => entry.has_source_time.then_some(publish_ns),
                    None => stamped().and_then(|ns| u64::try_from(ns).ok()),
                };
                let bound_ns = entry.and_then(|entry| entry.bound_ns);
                alarms.handle_sample(Seen { topic: &channel.topic, log_ns, source_ns, bound_ns });
                while alarms.poll_fired().is_some() {}
            }
        }
        Ok(())
    });
    let first_ns = first_ns.unwrap_or(0);
    let judged = alarms.watches.iter().map(|watch| Judged {
        alarm: watch.alarm.to_string(),
        times: watch.times,
        first_after_ns: watch.first_ns.map(|ns| ns.saturating_sub(first_ns)),
        unknown: (!watch.is_judged).then_some(match watch.alarm.condition {
            Condition::AgeAbove(_) => "the file has no sample of it whose source time is known",
            Condition::BoundAbove(_) => "the file has no sample of it",
            Condition::RateBelow(_) => "the file is shorter than that",
        }),
    });
    (judged.collect(), read)
}
