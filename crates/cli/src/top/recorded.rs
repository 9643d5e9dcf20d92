//! `noctule top FILE.mcap`: the same table of a robot that was recorded.
//!
//! An age is the recorder's log time minus the stamp that the sender put into the message. Those are two
//! clocks, unless the file says nothing else: their offset is part of every age and nothing in the file
//! bounds it. What can be told is told: a stamp later than its log time proves that its clock is ahead.

mod file;
mod stamp;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use noctule_timebase::Span;
use serde_json::{Value, json};

use super::{Order, TopArguments};
use crate::Outcome;
use crate::units;
use file::Record;
use stamp::Stamp;

/// Topics of a file.
const TOPICS_LIMIT: usize = 4096;
/// Messages of a file; each keeps 8 bytes.
const MESSAGES_LIMIT: u64 = 100_000_000;
/// A percentile needs so many messages beyond it.
const BEYOND: usize = 10;
/// A median age above this is no age.
const ONE_DAY_NS: u64 = 86_400_000_000_000;

const MEANING: &str = "age = log time of the recorder − stamp of the sender, with the unknown offset of their two clocks in it (± ?)";
const HEADINGS: [&str; 9] =
    ["topic", "messages", "rate", "age p50", "age p99", "oldest", "ahead", "bytes/s", "stamp"];
const IS_FIGURE: [bool; 9] = [false, true, true, true, true, true, true, true, false];

pub(super) fn run(path: &Path, arguments: &TopArguments) -> Result<Outcome, Box<dyn Error>> {
    if arguments.seconds.is_some() {
        return Err("--seconds is how long to watch a robot that runs; a file is read whole".into());
    }
    if arguments.sort == Order::Loss {
        return Err("a file does not tell what was lost before it; sort by name, rate, age or bytes".into());
    }
    let opened = File::open(path).map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
    let wanted: Vec<&String> = arguments.topics.iter().filter(|name| Path::new(name) != path).collect();
    let mut recording = Recording::default();
    let damage = recording.read(BufReader::new(opened), &wanted).err();
    if recording.topics.is_empty()
        && let Some(damage) = &damage
    {
        return Err(format!("{}: {damage}", path.display()).into());
    }
    let rows = recording.rows(arguments.sort);
    if arguments.json {
        let topics: Vec<Value> = rows.iter().map(Row::as_json).collect();
        let all = json!({ "file": path, "age_is": MEANING, "damage": damage, "topics": topics });
        anstream::println!("{}", serde_json::to_string_pretty(&all)?);
    } else if !rows.is_empty() {
        anstream::print!("{}", plain(&rows));
    }
    if let Some(damage) = damage {
        anstream::eprintln!("noctule: {}: {damage}; the figures are of what comes before", path.display());
        return Ok(Outcome::NotValid);
    }
    if rows.is_empty() {
        anstream::eprintln!("noctule: {} holds no message of these topics", path.display());
        return Ok(Outcome::NotValid);
    }
    Ok(Outcome::Done)
}

/// What a file told.
#[derive(Default)]
struct Recording {
    /// By number, of which channels name one.
    definitions: HashMap<u16, Definition>,
    /// By number; `None` is not wanted.
    channels: HashMap<u16, Option<Channel>>,
    topics: BTreeMap<String, Topic>,
    messages: u64,
}

struct Channel {
    topic: String,
    stamp: Option<Stamp>,
}

struct Definition {
    name: String,
    language: String,
    /// Only as much as the first field needs.
    text: String,
}

/// Of a definition this much is kept: the first field stands there, behind the comments.
const TEXT_BYTES_MAX: usize = 8 << 10;

/// All messages of one topic.
#[derive(Default)]
struct Topic {
    type_name: String,
    /// How its stamps are found, or why not.
    stamp: Option<Result<Stamp, String>>,
    messages: u64,
    bytes: u64,
    /// Of the log.
    first_ns: u64,
    last_ns: u64,
    ages_ns: Vec<i64>,
    /// Stamps of zero: never set.
    unset: u64,
    /// Messages in which no stamp is where it should be.
    unreadable: u64,
}

impl Recording {
    /// Reads the topics that are wanted, all if none is named.
    ///
    /// # Errors
    /// Why the rest was not read.
    fn read(&mut self, file: impl Read, wanted: &[&String]) -> Result<(), String> {
        file::read(file, &mut |record| match record {
            Record::Schema { id, name, encoding, text } => {
                let text = String::from_utf8_lossy(&text[..text.len().min(TEXT_BYTES_MAX)]);
                let (name, language) = (name.to_owned(), encoding.to_owned());
                self.definitions.insert(id, Definition { name, language, text: text.into_owned() });
                Ok(())
            }
            Record::Channel { id, schema, topic, encoding } => {
                let is_wanted = wanted.is_empty() || wanted.iter().any(|name| *name == topic);
                let channel = is_wanted.then(|| self.open(topic, schema, encoding)).transpose()?;
                self.channels.insert(id, channel);
                Ok(())
            }
            Record::Message { channel, log_ns, payload } => self.count(channel, log_ns, payload),
        })
    }

    fn open(&mut self, topic: &str, schema: u16, encoding: &str) -> Result<Channel, String> {
        if !self.topics.contains_key(topic) && self.topics.len() >= TOPICS_LIMIT {
            return Err(format!("it holds more than {TOPICS_LIMIT} topics; name those that matter"));
        }
        let none = Definition { name: String::new(), language: String::new(), text: String::new() };
        let definition = self.definitions.get(&schema).unwrap_or(&none);
        let stamp = Stamp::of(encoding, (&definition.name, &definition.language, &definition.text));
        let known = self.topics.entry(topic.to_owned()).or_default();
        known.type_name.clone_from(&definition.name);
        let channel = Channel { topic: topic.to_owned(), stamp: stamp.as_ref().ok().copied() };
        known.stamp = Some(stamp);
        Ok(channel)
    }

    fn count(&mut self, channel: u16, log_ns: u64, payload: &[u8]) -> Result<(), String> {
        let channel = self.channels.get(&channel).ok_or_else(|| {
            format!("the file is damaged: a message names channel {channel}, which is not declared")
        })?;
        let Some(Channel { topic, stamp }) = channel else { return Ok(()) };
        let Some(topic) = self.topics.get_mut(topic) else { return Ok(()) };
        self.messages += 1;
        if self.messages > MESSAGES_LIMIT {
            return Err(format!("it holds more than {MESSAGES_LIMIT} messages; name the topics that matter"));
        }
        topic.first_ns = if topic.messages == 0 { log_ns } else { topic.first_ns.min(log_ns) };
        topic.last_ns = topic.last_ns.max(log_ns);
        topic.messages += 1;
        topic.bytes = topic.bytes.saturating_add(payload.len() as u64);
        let Some(stamp) = stamp else { return Ok(()) };
        match stamp.read_ns(payload) {
            None => topic.unreadable += 1,
            Some(0) if *stamp != Stamp::Scheduled => topic.unset += 1,
            Some(stamp_ns) => {
                let age_ns = i128::from(log_ns) - i128::from(stamp_ns);
                topic.ages_ns.push(i64::try_from(age_ns).unwrap_or(i64::MAX));
            }
        }
        Ok(())
    }

    fn rows(&mut self, order: Order) -> Vec<Row<'_>> {
        self.topics.values_mut().for_each(|topic| topic.ages_ns.sort_unstable());
        let topics = self.topics.iter().filter(|(_, topic)| topic.messages > 0);
        let mut rows: Vec<Row<'_>> = topics.map(|(name, topic)| Row { name, topic }).collect();
        let figure: fn(&Row<'_>) -> f64 = match order {
            Order::Name | Order::Loss => |_| 0.0,
            Order::Rate => |row| row.topic.rate_hz().unwrap_or(0.0),
            Order::Age => {
                |row| row.topic.age_ns(1, 2).or(row.topic.oldest_ns()).map_or(f64::MIN, |ns| ns as f64)
            }
            Order::Bytes => |row| row.topic.bytes_per_s().unwrap_or(0.0),
        };
        rows.sort_by(|a, b| figure(b).total_cmp(&figure(a)));
        rows
    }
}

impl Topic {
    fn duration_s(&self) -> f64 {
        self.last_ns.saturating_sub(self.first_ns) as f64 / 1e9
    }

    /// Of the intervals between messages.
    fn rate_hz(&self) -> Option<f64> {
        (self.duration_s() > 0.0).then(|| (self.messages - 1) as f64 / self.duration_s())
    }

    fn bytes_per_s(&self) -> Option<f64> {
        self.rate_hz().map(|rate_hz| rate_hz * self.bytes as f64 / self.messages as f64)
    }

    /// Stamps and log do not count from one beginning: their differences are no ages.
    fn is_of_another_time(&self) -> bool {
        let median_ns = self.ages_ns.get(self.ages_ns.len() / 2);
        median_ns.is_some_and(|median_ns| median_ns.unsigned_abs() > ONE_DAY_NS)
    }

    /// In order.
    fn ages_ns(&self) -> &[i64] {
        if self.is_of_another_time() { &[] } else { &self.ages_ns }
    }

    /// `x[⌊qN⌋]` of the sorted ages, if enough lie beyond.
    fn age_ns(&self, dividend: usize, divisor: usize) -> Option<i64> {
        let ages_ns = self.ages_ns();
        let at = ages_ns.len() * dividend / divisor;
        (ages_ns.len() >= at + BEYOND).then(|| ages_ns[at])
    }

    fn oldest_ns(&self) -> Option<i64> {
        self.ages_ns().last().copied()
    }

    /// Stamps later than their log time.
    fn ahead(&self) -> usize {
        self.ages_ns().partition_point(|age_ns| *age_ns < 0)
    }
}

/// What is shown of a topic.
struct Row<'a> {
    name: &'a str,
    topic: &'a Topic,
}

impl Row<'_> {
    fn cells(&self) -> [String; 9] {
        let topic = self.topic;
        let age = |age_ns: Option<i64>| {
            age_ns.map_or("–".into(), |age_ns| units::with_bound(Span::from_ns(age_ns), None))
        };
        let is_stamped = !topic.ages_ns().is_empty();
        [
            units::printable(self.name),
            topic.messages.to_string(),
            topic.rate_hz().map_or("–".into(), |rate_hz| format!("{rate_hz:.1} Hz")),
            age(topic.age_ns(1, 2)),
            age(topic.age_ns(99, 100)),
            age(topic.oldest_ns()),
            if is_stamped { topic.ahead().to_string() } else { "–".into() },
            topic.bytes_per_s().map_or("–".into(), units::bytes),
            topic
                .stamp
                .as_ref()
                .and_then(|stamp| stamp.as_ref().ok())
                .map_or("none", |stamp| stamp.name())
                .into(),
        ]
    }

    /// What the figures do not say.
    fn notes(&self) -> Vec<String> {
        let topic = self.topic;
        let name = units::printable(self.name);
        let mut notes = Vec::new();
        if let Some(Err(why)) = &topic.stamp {
            let type_name = match topic.type_name.as_str() {
                "" => "untyped".into(),
                type_name => units::printable(type_name),
            };
            notes.push(format!("{name}: no age: {type_name} {why}"));
        }
        if topic.unset > 0 {
            notes.push(format!("{name}: {} of {} stamps are zero: never set", topic.unset, topic.messages));
        }
        if topic.unreadable > 0 {
            notes.push(format!("{name}: {} of {} messages have no stamp", topic.unreadable, topic.messages));
        }
        if topic.is_of_another_time() {
            notes.push(format!(
                "{name}: no age: stamps and log do not count from one beginning (simulated time, or time since a start)"
            ));
        }
        if topic.ahead() > 0 {
            notes.push(format!(
                "{name}: {} of {} stamps are later than the log, by up to {}: the clock of the stamps is ahead of the recorder's by at least that",
                topic.ahead(),
                topic.ages_ns().len(),
                units::time(Span::from_ns(topic.ages_ns()[0].saturating_neg()))
            ));
        }
        notes
    }

    fn as_json(&self) -> Value {
        let topic = self.topic;
        json!({
            "topic": self.name,
            "type": topic.type_name,
            "stamp": topic.stamp.as_ref().and_then(|stamp| stamp.as_ref().ok()).map(|stamp| stamp.name()),
            "received": topic.messages,
            "stamped": topic.ages_ns.len(),
            "unset": topic.unset,
            "unreadable": topic.unreadable,
            "ahead": topic.ahead(),
            "duration_s": topic.duration_s(),
            "rate_hz": topic.rate_hz(),
            "bytes_per_s": topic.bytes_per_s(),
            "age_ns": {
                "p50": topic.age_ns(1, 2), "p99": topic.age_ns(99, 100), "max": topic.oldest_ns(),
                "min": topic.ages_ns().first(),
            },
            "bound_ns": Value::Null,
            "notes": self.notes(),
        })
    }
}

/// The table as text, what it means, and what it does not say.
fn plain(rows: &[Row<'_>]) -> String {
    let heading = HEADINGS.map(str::to_owned).to_vec();
    let cells = rows.iter().map(|row| row.cells().to_vec());
    let mut text = units::columns(&std::iter::once(heading).chain(cells).collect::<Vec<_>>(), &IS_FIGURE);
    text += MEANING;
    text.push('\n');
    for note in rows.iter().flat_map(Row::notes) {
        text += &note;
        text.push('\n');
    }
    text
}
