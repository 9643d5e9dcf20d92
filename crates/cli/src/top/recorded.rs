//! `noctule top FILE.mcap`: the same table of a robot that was recorded.

#[cfg(test)]
mod tests;

use std::error::Error;
use std::path::Path;

use noctule_record::ages::{RecordedTopic, Recording};
use noctule_record::stamp::Stamp;
use noctule_timebase::Span;
use serde_json::{Value, json};

use super::{Order, TopArguments};
use crate::Outcome;
use crate::units;

const MEANING: &str = "age = log time of the recorder − stamp of the sender, with the unknown offset of their two clocks in it (± ?)";
const MEANING_OF_SOURCE_TIMES: &str = "age = log time of the recorder − source time in its clock, ± the largest bound of the topic's source times";
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
    let topics = arguments.topics.iter().filter(|name| Path::new(name) != path);
    let wanted: Vec<&str> = topics.map(String::as_str).collect();
    let mut recording = Recording::default();
    let damage = recording.read_path(path, &wanted).err();
    if recording.is_empty()
        && let Some(damage) = &damage
    {
        return Err(format!("{}: {damage}", path.display()).into());
    }
    let rows = rows(&recording, arguments.sort);
    if arguments.json {
        let topics: Vec<Value> = rows.iter().map(Row::as_json).collect();
        let all = json!({ "file": path, "age_is": meanings(&rows).join("; "), "damage": damage.as_ref().map(ToString::to_string), "topics": topics });
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

/// The topics, in the order that was requested.
fn rows(recording: &Recording, order: Order) -> Vec<Row<'_>> {
    let mut rows: Vec<Row<'_>> = recording.topics().map(|(name, topic)| Row { name, topic }).collect();
    let figure: fn(&Row<'_>) -> f64 = match order {
        Order::Name | Order::Loss => |_| 0.0,
        Order::Rate => |row| row.topic.rate_hz().unwrap_or(0.0),
        Order::Age => |row| row.topic.age_ns(1, 2).or(row.topic.oldest_ns()).map_or(f64::MIN, |ns| ns as f64),
        Order::Bytes => |row| row.topic.bytes_per_s().unwrap_or(0.0),
    };
    rows.sort_by(|a, b| figure(b).total_cmp(&figure(a)));
    rows
}

/// Row of the table: one recorded topic.
struct Row<'a> {
    name: &'a str,
    topic: &'a RecordedTopic,
}

impl Row<'_> {
    fn cells(&self) -> [String; 9] {
        let topic = self.topic;
        let bound = topic.bound_ns().and_then(|ns| i64::try_from(ns).ok()).map(Span::from_ns);
        let age = |age_ns: Option<i64>| {
            age_ns.map_or("–".into(), |age_ns| units::with_bound(Span::from_ns(age_ns), bound))
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
            topic.stamp.as_ref().map_or("none", |stamp| stamp.name()).into(),
        ]
    }

    /// Remarks that qualify the row's figures.
    fn notes(&self) -> Vec<String> {
        let topic = self.topic;
        let name = units::printable(self.name);
        let mut notes = Vec::new();
        if let Err(why) = &topic.stamp {
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
            "stamp": topic.stamp.as_ref().ok().map(|stamp| stamp.name()),
            "received": topic.messages,
            "stamped": topic.stamped(),
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
            "bound_ns": topic.bound_ns(),
            "notes": self.notes(),
        })
    }
}

/// The table as text, what it means, and what it does not say.
fn plain(rows: &[Row<'_>]) -> String {
    let heading = HEADINGS.map(str::to_owned).to_vec();
    let cells = rows.iter().map(|row| row.cells().to_vec());
    let mut text = units::columns(&std::iter::once(heading).chain(cells).collect::<Vec<_>>(), &IS_FIGURE);
    let meanings = meanings(rows).into_iter().map(str::to_owned);
    for line in meanings.chain(rows.iter().flat_map(Row::notes)) {
        text += &line;
        text.push('\n');
    }
    text
}

/// Definitions of the ages, one for each kind of stamp that the rows have.
fn meanings(rows: &[Row<'_>]) -> Vec<&'static str> {
    let is_source_time = |row: &Row<'_>| row.topic.stamp == Ok(Stamp::SourceTime);
    let of_source_times = rows.iter().any(is_source_time).then_some(MEANING_OF_SOURCE_TIMES);
    let of_stamps = rows.iter().any(|row| !is_source_time(row)).then_some(MEANING);
    of_source_times.into_iter().chain(of_stamps).collect()
}
