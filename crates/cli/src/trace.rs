//! `noctule trace`: what a file of `NOCTULE_TRACE` says of samples and decisions, in sentences.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use noctule_prrt::trace::{Event, SCHEMA};
use noctule_qlog::{Field, Schema};
use serde_json::Value;

use crate::Outcome;

/// Begins every record of a file (RFC 7464).
const RECORD_SEPARATOR: u8 = 0x1e;
/// A longer record is none of ours.
const RECORD_BYTES_MAX: u64 = 64 << 10;
/// Digits of a node's number in a file.
const NODE_DIGITS: usize = 32;
/// Writers that are listed.
const WRITERS_MAX: usize = 4_096;
/// Samples of one writer that are listed as worth a look.
const SAMPLES_MAX: usize = 8;
/// Lines of a story; what follows is counted.
const LINES_MAX: usize = 1_000_000;
/// Schemas whose events are sentences and nothing more; those of links (`prrt`) are also counted for each writer.
const SCHEMAS: &[Schema] =
    &[noctule_discovery::trace::SCHEMA, noctule_prrt::group::trace::SCHEMA, noctule::RELAY_TRACE_SCHEMA];

#[derive(clap::Args)]
pub(crate) struct TraceArguments {
    /// Files that programs wrote with NOCTULE_TRACE=FILE
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Follow the sample with this sequence number
    #[arg(long, value_name = "SEQUENCE")]
    sample: Option<u64>,
    /// Only of the writer with this number
    #[arg(long, value_name = "NUMBER")]
    writer: Option<u32>,
    /// Print every event of one kind, in the order of time
    #[arg(long, value_name = "KIND", conflicts_with_all = ["sample", "writer"], value_parser = ["discovery", "group", "prrt", "relay"])]
    of: Option<String>,
    /// Only lines that contain this: a node's number, a topic, a word
    #[arg(long, value_name = "TEXT", requires = "of")]
    about: Option<String>,
}

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
enum TraceError {
    #[error("cannot read {path}: {cause}; name a file that a program wrote with NOCTULE_TRACE=FILE")]
    Read { path: PathBuf, cause: std::io::Error },
    #[error("{path}, record {record}: {fact}; name a file that a program wrote with NOCTULE_TRACE=FILE")]
    Malformed { path: PathBuf, record: u64, fact: &'static str },
}

/// A record of a file.
#[derive(Debug, Clone, PartialEq)]
enum Record {
    /// The first: what times count from, milliseconds since 1970.
    Header {
        reference_ms: f64,
    },
    Event {
        time_ms: f64,
        link: String,
        event: Event,
    },
    Topic {
        link: String,
        writer: u32,
        topic: String,
    },
    /// Of a core that is no link: whom it is about, and what it says.
    Decision {
        time_ms: f64,
        kind: &'static str,
        group: String,
        name: String,
        sentence: String,
    },
    Dropped {
        link: String,
        events: u64,
    },
    /// The event's schema is not ours.
    Foreign,
}

/// A writer: its node as the file names it, and its number there.
type Writer = (String, u32);

/// Counts of one writer over all files.
#[derive(Debug, Default)]
struct Account {
    topic: Option<String>,
    sent: u64,
    repairs: u64,
    lost: u64,
    given_up: u64,
    delivered: u64,
    missed: u64,
    /// Samples of which something was lost, given up or missed, the first of them.
    unusual: Vec<u64>,
}

impl Account {
    fn count(&mut self, event: &Event) {
        let is_unusual = match event {
            Event::Sent { why, bytes, .. } if why.word() == "first" => {
                // One datagram may have an event for each of several samples.
                self.sent += u64::from(*bytes > 0);
                false
            }
            Event::Sent { .. } => {
                self.repairs += 1;
                false
            }
            Event::Lost { .. } => {
                self.lost += 1;
                true
            }
            Event::GivenUp { .. } => {
                self.given_up += 1;
                true
            }
            Event::Delivered { .. } => {
                self.delivered += 1;
                false
            }
            Event::Missed { samples, .. } => {
                self.missed += samples;
                true
            }
            _ => false,
        };
        let sequence = event.sample().map(|(_, sequence)| sequence);
        if let Some(sequence) = sequence.filter(|_| is_unusual)
            && self.unusual.len() < SAMPLES_MAX
            && !self.unusual.contains(&sequence)
        {
            self.unusual.push(sequence);
        }
    }
}

/// Reads the files, then prints one sample's way, the events of one kind or an account of all.
pub(crate) fn run(arguments: &TraceArguments) -> Result<Outcome, Box<dyn Error>> {
    if let Some(kind) = &arguments.of {
        return list(arguments, kind);
    }
    let mut accounts: BTreeMap<Writer, Account> = BTreeMap::new();
    let mut story: Vec<(f64, String, Event)> = Vec::new();
    let mut decisions: BTreeMap<(&'static str, String), u64> = BTreeMap::new();
    let mut dropped = 0;
    for path in &arguments.files {
        let mut reference_ms = 0.0;
        read(path, &mut |record| match record {
            Record::Header { reference_ms: header } => reference_ms = header,
            Record::Decision { kind, name, .. } => *decisions.entry((kind, name)).or_default() += 1,
            Record::Topic { link, writer, topic } => {
                let key = (other(&link).to_owned(), writer);
                if accounts.len() < WRITERS_MAX || accounts.contains_key(&key) {
                    accounts.entry(key).or_default().topic = Some(topic);
                }
            }
            Record::Event { time_ms, link, event } => {
                let Some(part) = event.part().filter(|part| is_wanted(arguments, part.writer.0)) else {
                    return;
                };
                let key = (writing_node(&link, &event).to_owned(), part.writer.0);
                if accounts.len() < WRITERS_MAX || accounts.contains_key(&key) {
                    accounts.entry(key).or_default().count(&event);
                }
                if part.sequence.is_some() && part.sequence == arguments.sample {
                    story.push((reference_ms + time_ms, link, event));
                }
            }
            Record::Dropped { events, .. } => dropped += events,
            Record::Foreign => {}
        })?;
    }
    match arguments.sample {
        Some(sequence) if story.is_empty() => {
            anstream::eprintln!(
                "The files say nothing of a sample {sequence}; without --sample they are summed up."
            );
            return Ok(Outcome::NotValid);
        }
        Some(_) => anstream::print!("{}", tell(&mut story)),
        None if accounts.is_empty() && !decisions.is_empty() => {
            anstream::print!("{}", sum_up_decisions(&decisions));
        }
        None => anstream::print!("{}{}", sum_up(&accounts), sum_up_decisions(&decisions)),
    }
    say_dropped(dropped);
    Ok(Outcome::Done)
}

fn say_dropped(events: u64) {
    if events > 0 {
        anstream::println!("{events} events are missing: the disk was too slow for them.");
    }
}

/// Prints every event of one kind that the arguments ask for.
fn list(arguments: &TraceArguments, kind: &str) -> Result<Outcome, Box<dyn Error>> {
    let mut story: Vec<(f64, String, String)> = Vec::new();
    let (mut dropped, mut cut) = (0, 0_u64);
    for path in &arguments.files {
        let mut reference_ms = 0.0;
        read(path, &mut |record| {
            let (time_ms, group, sentence) = match record {
                Record::Header { reference_ms: header } => return reference_ms = header,
                Record::Dropped { events, .. } => return dropped += events,
                Record::Decision { time_ms, kind: its, group, sentence, .. } if its == kind => {
                    (time_ms, group, sentence)
                }
                Record::Event { time_ms, link, event } if kind == SCHEMA => {
                    (time_ms, link, event.to_string())
                }
                _ => return,
            };
            let about = arguments.about.as_deref().unwrap_or_default();
            if !(group.contains(about) || sentence.contains(about)) {
                return;
            }
            if story.len() < LINES_MAX {
                story.push((reference_ms + time_ms, group, sentence));
            } else {
                cut += 1;
            }
        })?;
    }
    if story.is_empty() {
        anstream::eprintln!("The files hold no such event; without --of they are summed up.");
        return Ok(Outcome::NotValid);
    }
    anstream::print!("{}", tell(&mut story));
    if cut > 0 {
        anstream::println!("{cut} events more are not shown; narrow them with --about.");
    }
    say_dropped(dropped);
    Ok(Outcome::Done)
}

fn is_wanted(arguments: &TraceArguments, writer: u32) -> bool {
    arguments.writer.is_none_or(|wanted| wanted == writer)
}

/// The sentences of a story in the order of time, with milliseconds since the first.
fn tell<S: std::fmt::Display>(story: &mut [(f64, String, S)]) -> String {
    story.sort_by(|(a, ..), (b, ..)| a.total_cmp(b));
    let began = story.first().map_or(0.0, |(at, ..)| *at);
    let mut text = String::new();
    for (at, link, event) in story {
        let event = shorten(&event.to_string());
        let sentence = format!("{:>+10.3} ms  {}  {event}", *at - began, shorten(link));
        text += &sentence;
        text.push('\n');
    }
    text
}

/// A text with the first eight of the 32 digits of each node's number.
fn shorten(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|next: char| !next.is_ascii_hexdigit()).unwrap_or(rest.len());
        let (number, behind) = rest.split_at(digits);
        out += if number.len() == NODE_DIGITS { &number[..8] } else { number };
        let next = behind.find(|next: char| next.is_ascii_hexdigit()).unwrap_or(behind.len());
        out += &behind[..next];
        rest = &behind[next..];
    }
    out
}

/// How many events of each name there are, a line for each kind.
fn sum_up_decisions(decisions: &BTreeMap<(&'static str, String), u64>) -> String {
    let mut text = String::new();
    for schema in SCHEMAS {
        let of_schema = decisions.iter().filter(|((kind, _), _)| *kind == schema.name);
        let names: Vec<String> = of_schema.map(|((_, name), count)| format!("{count} {name}")).collect();
        if !names.is_empty() {
            text += &format!("{}: {}\n  look at --of {}\n", schema.name, names.join(", "), schema.name);
        }
    }
    text
}

fn sum_up(accounts: &BTreeMap<Writer, Account>) -> String {
    let mut text = String::new();
    for ((node, writer), account) in accounts {
        let topic = account.topic.as_ref().map_or(String::new(), |topic| format!(" ({topic})"));
        let Account { sent, repairs, lost, given_up, delivered, missed, unusual, .. } = account;
        text += &format!(
            "writer {writer} of node {node}{topic}: {sent} datagrams sent, {repairs} repairs, {lost} declared lost, \
             {given_up} samples given up; {delivered} samples delivered, {missed} missed their deadline\n"
        );
        if !unusual.is_empty() {
            let samples: Vec<String> = unusual.iter().map(ToString::to_string).collect();
            text += &format!("  look at --writer {writer} --sample {}\n", samples.join(", "));
        }
    }
    if text.is_empty() {
        text += "The files hold no event of a sample.\n";
    }
    text
}

/// The node that wrote what an event is about: the file's own for what it sent, the other for what it received.
fn writing_node<'a>(link: &'a str, event: &Event) -> &'a str {
    match event {
        Event::Received { .. }
        | Event::Discarded { .. }
        | Event::Recovered { .. }
        | Event::Delivered { .. }
        | Event::Missed { .. } => other(link),
        _ => link.split_once('→').map_or(link, |(me, _)| me),
    }
}

fn other(link: &str) -> &str {
    link.split_once('→').map_or(link, |(_, other)| other)
}

/// Hands each record of a file to `take`. The last may be cut off: the program was ended while it wrote.
fn read(path: &Path, take: &mut dyn FnMut(Record)) -> Result<(), TraceError> {
    let unreadable = |cause| TraceError::Read { path: path.to_owned(), cause };
    let mut file = BufReader::new(File::open(path).map_err(unreadable)?);
    let mut bytes = Vec::new();
    for number in 0.. {
        bytes.clear();
        let limit = RECORD_BYTES_MAX + 1;
        let length =
            file.by_ref().take(limit).read_until(RECORD_SEPARATOR, &mut bytes).map_err(unreadable)?;
        let is_last = bytes.last() != Some(&RECORD_SEPARATOR);
        if length == 0 {
            break;
        }
        let malformed = |fact| TraceError::Malformed { path: path.to_owned(), record: number, fact };
        if length as u64 == limit && is_last {
            return Err(malformed("it is longer than a record of a trace"));
        }
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim_matches(|end: char| end.is_whitespace() || end == char::from(RECORD_SEPARATOR));
        match parse(text) {
            // The word before the first separator.
            _ if text.is_empty() => {}
            Ok(record) => take(record),
            Err(_) if is_last && number > 1 => {}
            Err(fact) => return Err(malformed(fact)),
        }
    }
    Ok(())
}

/// One record without its separator.
fn parse(text: &str) -> Result<Record, &'static str> {
    let value: Value = serde_json::from_str(text).map_err(|_| "it is no JSON text")?;
    if let Some(version) = value.get("qlog_version") {
        let reference = value.pointer("/trace/common_fields/reference_time").and_then(Value::as_f64);
        return match (version.as_str(), reference) {
            (Some("0.3"), Some(reference_ms)) => Ok(Record::Header { reference_ms }),
            _ => Err("its header is not one of qlog 0.3 with a reference time"),
        };
    }
    let name = value.get("name").and_then(Value::as_str).ok_or("it has no name")?;
    let Some((schema, name)) = name.split_once(':') else { return Ok(Record::Foreign) };
    let decisions = SCHEMAS.iter().find(|known| known.name == schema);
    if schema != SCHEMA && decisions.is_none() {
        return Ok(Record::Foreign);
    }
    let time_ms = value.get("time").and_then(Value::as_f64).ok_or("it has no time")?;
    let link = value.get("group_id").and_then(Value::as_str).ok_or("it has no group_id")?.to_owned();
    let data = value.get("data").ok_or("it has no data")?;
    let number = |key: &str| data.get(key).and_then(Value::as_u64);
    match name {
        "writer_matched" => {
            let writer = number("writer").and_then(|number| u32::try_from(number).ok());
            let topic = data.get("topic").and_then(Value::as_str);
            let (writer, topic) = writer.zip(topic).ok_or("it has no writer and topic")?;
            Ok(Record::Topic { link, writer, topic: topic.to_owned() })
        }
        "events_dropped" => {
            Ok(Record::Dropped { link, events: number("events").ok_or("it has no number of events")? })
        }
        _ => {
            let field = |key: &str| match data.get(key)? {
                Value::Number(number) => number.as_u64().map(Field::Number),
                Value::String(word) => Some(Field::Word(word.as_str())),
                Value::Bool(flag) => Some(Field::Flag(*flag)),
                _ => None,
            };
            if let Some(schema) = decisions {
                let sentence = schema.sentence(name, &field).ok_or("its name and fields are no event's")?;
                let (kind, name) = (schema.name, name.to_owned());
                return Ok(Record::Decision { time_ms, kind, group: link, name, sentence });
            }
            let event = Event::of_fields(name, &field).ok_or("its name and fields are no event's")?;
            Ok(Record::Event { time_ms, link, event })
        }
    }
}

#[cfg(test)]
mod tests {
    use noctule_prrt::StreamId;
    use noctule_prrt::trace::{LossRule, Part, Sending};
    use noctule_qlog::text;

    use super::*;

    fn part(sequence: u64) -> Part {
        Part { writer: StreamId(3), sequence: Some(sequence), part: 0 }
    }

    /// Sample 42 is lost, retransmitted and delivered; the file of both sides in one.
    fn file() -> String {
        let mut text = text::header("process 1", 1000.0);
        let topic = [("writer", Field::Number(3)), ("topic", Field::Word("/pose"))];
        text::record_fields(&mut text, 0.0, (SCHEMA, "writer_matched"), "b→a", &topic);
        let sent = |packet, why| Event::Sent { packet: Some(packet), part: part(42), bytes: 131, why };
        let events = [
            (5.0, "a→b", sent(17, Sending::First)),
            (25.5, "a→b", Event::Lost { packet: 17, part: part(42), rule: LossRule::PacketThreshold }),
            (25.6, "a→b", sent(19, Sending::Retransmission)),
            (35.25, "b→a", Event::Delivered { part: part(42) }),
            (36.0, "b→a", Event::Delivered { part: part(43) }),
        ];
        for (at, link, event) in events {
            text::record(&mut text, at, link, &event);
        }
        text
    }

    fn records(text: &str) -> Result<Vec<Record>, TraceError> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("trace");
        std::fs::write(&path, text).unwrap();
        let mut records = Vec::new();
        read(&path, &mut |record| records.push(record))?;
        Ok(records)
    }

    #[test]
    fn the_way_of_a_sample_is_described_in_sentences_in_the_order_of_time() {
        let mut story: Vec<(f64, String, Event)> = records(&file())
            .unwrap()
            .into_iter()
            .filter_map(|record| match record {
                Record::Event { time_ms, link, event } => Some((time_ms, link, event)),
                _ => None,
            })
            .filter(|(.., event)| event.sample() == Some((StreamId(3), 42)))
            .rev()
            .collect();
        let text = tell(&mut story);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4);
        assert_eq!(lines[0].trim_start().split("  ").next(), Some("+0.000 ms"));
        assert!(
            lines[1].contains("+20.500 ms  a→b  packet 17 is declared lost (sample 42 of writer 3)"),
            "{text}"
        );
        assert!(lines[1].contains("later packets"), "{text}");
        assert!(lines[3].contains("+30.250 ms  b→a  sample 42 of writer 3 is delivered"), "{text}");
    }

    #[test]
    fn a_decision_is_a_sentence_with_short_numbers_of_nodes() {
        let mut file = text::header("process 1", 0.0);
        let (me, other) = ("65cc088d6e486095054a5b0f747ec4b8", "873acd92873acd92873acd92873acd92");
        let event = noctule_discovery::trace::Event::Gone {
            node: noctule_discovery::NodeId([0x87; 16]),
            silent_ms: 3_100,
            trigger: noctule_discovery::trace::Departure::Silent,
        };
        text::record(&mut file, 12.5, me, &event);
        let all = records(&file).unwrap();
        let [_, Record::Decision { time_ms, kind: "discovery", group, name, sentence }] = all.as_slice()
        else {
            panic!("{all:?}");
        };
        let line = tell(&mut [(*time_ms, group.clone(), sentence.clone())]);
        assert_eq!(
            line.trim(),
            "+0.000 ms  65cc088d  node 87878787 is gone, 3100 ms after its last hello: it was not heard for its lifetime"
        );
        let counts = BTreeMap::from([(("discovery", name.clone()), 3)]);
        assert_eq!(sum_up_decisions(&counts), "discovery: 3 node_gone\n  look at --of discovery\n");
        assert_eq!(shorten(&format!("{me}→{other} group 3, abc")), "65cc088d→873acd92 group 3, abc");
    }

    #[test]
    fn the_guide_names_every_event_with_its_sentence_and_every_reason() {
        let guide = include_str!("../../../docs/guide/trace.md");
        for schema in SCHEMAS {
            let (_, table) = guide.split_once(&format!("| name, after `{}:` |", schema.name)).unwrap();
            let table = table.split("\n\n").next().unwrap();
            for (name, sentence) in schema.sentences {
                let has_both = |row: &str| {
                    row.starts_with(&format!("| `{name}` |")) && row.ends_with(&format!("| {sentence} |"))
                };
                assert!(table.lines().any(has_both), "{}: {name}", schema.name);
            }
            for (word, _) in schema.reasons.iter().copied().flatten() {
                assert!(table.contains(&format!("`{word}`")), "{}: {word}", schema.name);
            }
        }
    }

    #[test]
    fn both_ends_of_a_way_are_one_writer_of_one_node() {
        let event = Event::Delivered { part: part(42) };
        assert_eq!((writing_node("b→a", &event), other("b→a")), ("a", "a"));
        let event = Event::Lost { packet: 1, part: part(42), rule: LossRule::Timeout };
        assert_eq!(writing_node("a→b", &event), "a");
        let mut account = Account { topic: Some("/pose".into()), ..Account::default() };
        account.count(&event);
        let text = sum_up(&BTreeMap::from([(("a".to_owned(), 3), account)]));
        assert!(
            text.contains("writer 3 of node a (/pose)") && text.contains("--writer 3 --sample 42"),
            "{text}"
        );
    }

    #[test]
    fn a_file_may_end_anywhere_but_is_nothing_else() {
        let whole = file();
        let all = records(&whole).unwrap();
        assert_eq!(all.len(), 7);
        let header = text::header("process 1", 1000.0).len();
        for length in (header + 2..whole.len()).filter(|length| whole.is_char_boundary(*length)) {
            let cut = records(&whole[..length]).unwrap();
            assert!(all.starts_with(&cut), "cut after {length} bytes");
        }
        let error = records("\u{1e}{\"name\":1}\n").unwrap_err().to_string();
        assert!(error.contains("record 1: it has no name; name a file"), "{error}");
        let long = "x".repeat(RECORD_BYTES_MAX as usize + 2);
        assert!(records(&long).unwrap_err().to_string().contains("longer than a record"));
        assert!(records("").unwrap().is_empty());
        let missing = read(Path::new("/nowhere/at/all"), &mut |_| {}).unwrap_err().to_string();
        assert!(missing.contains("cannot read /nowhere/at/all"), "{missing}");
    }
}
