//! A recording, read into memory: the same questions as of a running system, for any moment of it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use noctule_record::check::Times;
use noctule_record::ends::{self, End};
use noctule_record::file::{self, FileError, Record};
use noctule_record::observer::MISMATCHES_MAX;
use noctule_record::stamp::Stamp;
use noctule_record::state::{self, Mismatch, SystemState};
use serde_json::{Value, json};

use crate::content::Kind;
use crate::figures::{Figures, deadlines_in, quantile};
use crate::live::{AGE_PATH, BOUND_PATH};
use crate::sample::{ShownSample, ms};
use crate::types::{Types, number_at};

/// Payload of a recording that is shown, bytes.
pub const RECORDING_BYTES_MAX: usize = 2 << 30;
/// Messages of a recording that is shown.
pub const MESSAGES_MAX: usize = 20_000_000;
/// Figures are of the last so many nanoseconds before the moment that is shown.
const WINDOW_NS: i64 = 10_000_000_000;
/// A frame of the sparklines.
const FRAME_NS: i64 = 250_000_000;
/// Messages of a window that percentiles are taken of; of more every n-th.
const WINDOW_MESSAGES_MAX: usize = 4_096;
/// Messages that a curve is made of; of more every n-th.
pub const CURVE_MESSAGES_MAX: usize = 50_000;

/// Names of nodes, and readers of a topic.
const NAMES_MAX: usize = 4_096;
/// Bytes of the system's states that are kept, as they stand in the file; a state each two seconds.
const STATES_BYTES_MAX: usize = 256 << 20;

/// Why a recording cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum RecordedError {
    /// It is no recording, or holds nothing.
    #[error("{path}: {what}")]
    Nothing {
        /// Path of the file.
        path: String,
        /// The fact.
        what: String,
    },
}

/// A message, without its bytes.
#[derive(Clone, Copy, Debug)]
struct Entry {
    log_ns: i64,
    source_ns: Option<i64>,
    bound_ns: Option<i64>,
    publisher: [u8; 8],
    sequence: u64,
    missed: u64,
    /// Missed of this topic up to here.
    missed_before: u64,
    /// Deadlines missed up to here.
    deadline_missed: u64,
    begin: usize,
    length: usize,
}

impl Entry {
    fn age_ns(&self) -> Option<i64> {
        self.source_ns.map(|source_ns| self.log_ns.saturating_sub(source_ns))
    }
}

#[derive(Debug)]
struct Topic {
    name: String,
    type_name: String,
    encoding: String,
    stamp: Option<Stamp>,
    kind: Kind,
    /// QoS in the words of DDS; empty if the file has none.
    qos: String,
    /// Deadline that its publisher offered.
    deadline_ns: Option<i64>,
    /// Nodes that read it.
    readers: Vec<End>,
    /// Messages, in the order of their log times.
    entries: Vec<Entry>,
}

/// Metadata of a channel.
type Metadata = BTreeMap<String, String>;

/// A recording.
#[derive(Debug)]
pub struct Recorded {
    topics: Vec<Topic>,
    types: Types,
    payload: Vec<u8>,
    first_ns: i64,
    last_ns: i64,
    notices: Vec<String>,
    /// Names of nodes, by the first digits of their numbers.
    names: BTreeMap<String, String>,
    /// The system by log time.
    states: Vec<(i64, SystemState)>,
    mismatches: Vec<Mismatch>,
}

/// A definition of a file.
#[derive(Default)]
struct Schema {
    name: String,
    language: String,
    text: Vec<u8>,
}

#[derive(Default)]
struct Reading {
    types: Types,
    schemas: BTreeMap<u16, Schema>,
    /// Place of a channel's topic.
    channels: BTreeMap<u16, usize>,
    topics: Vec<Topic>,
    payload: Vec<u8>,
    messages: usize,
    times: Times,
    names: BTreeMap<String, String>,
    states: Vec<(i64, SystemState)>,
    states_bytes: usize,
}

impl Recorded {
    /// Reads a file. What is damaged at its end is left out, which a notice says.
    ///
    /// # Errors
    /// It cannot be opened, or holds no messages.
    pub fn open(path: &Path, types: Types) -> Result<Recorded, RecordedError> {
        let shown = path.display().to_string();
        let mut reading = Reading { types, ..Reading::default() };
        let result = file::read_path(path, &mut |record| reading.handle(&record));
        let Reading { types, mut topics, payload, messages, mut names, mut states, .. } = reading;
        if messages == 0 {
            let what =
                result.err().map_or_else(|| "it has no messages".to_owned(), |error| error.to_string());
            return Err(RecordedError::Nothing { path: shown, what });
        }
        for topic in &mut topics {
            topic.entries.sort_by_key(|entry| entry.log_ns);
            topic.count();
        }
        states.sort_by_key(|(log_ns, _)| *log_ns);
        join_ends(&mut topics, &mut names, &states);
        let mismatches = mismatches(&states);
        topics.retain(|topic| !topic.entries.is_empty());
        topics.sort_by(|a, b| a.name.cmp(&b.name));
        let ends = |of: fn(&Topic) -> Option<&Entry>| topics.iter().filter_map(of).map(|entry| entry.log_ns);
        let first_ns = ends(|topic| topic.entries.first()).min().unwrap_or(0);
        let last_ns = ends(|topic| topic.entries.last()).max().unwrap_or(0);
        let notices = result.err().map(|error| format!("{shown}: {error}")).into_iter().collect();
        Ok(Recorded { topics, types, payload, first_ns, last_ns, notices, names, states, mismatches })
    }

    /// The definitions that its messages are decoded by.
    pub fn types(&self) -> &Types {
        &self.types
    }

    /// Log times of the first and the last message, ns since 1970.
    pub fn range_ns(&self) -> (i64, i64) {
        (self.first_ns, self.last_ns)
    }

    /// The figures of all topics at a moment.
    pub fn figures(&self, at_ns: i64) -> Vec<(usize, Figures)> {
        self.topics.iter().enumerate().map(|(id, topic)| (id, topic.figures(at_ns))).collect()
    }

    /// Every node's clock and the links at a moment, as the recorder knew them; empty if its file does not say.
    pub fn nodes(&self, at_ns: i64) -> Value {
        let next = self.states.partition_point(|(log_ns, _)| *log_ns <= at_ns);
        // Before the first there is the first.
        let state = self.states.get(next.saturating_sub(1)).map(|(_, state)| state);
        let (nodes, links) =
            state.map(|state| (state.nodes.as_slice(), state.links.as_slice())).unwrap_or_default();
        json!({ "t": "nodes", "nodes": nodes, "links": links, "recorded": !self.states.is_empty() })
    }

    fn topic_named(&self, name: &str) -> Option<&Topic> {
        self.topics.iter().find(|topic| topic.name == name)
    }

    /// Kind of a topic's display.
    pub fn kind(&self, name: &str) -> Option<Kind> {
        self.topic_named(name).map(|topic| topic.kind)
    }

    /// The newest message of a topic at a moment.
    pub fn newest(&self, name: &str, at_ns: i64) -> Option<ShownSample> {
        let topic = self.topic_named(name)?;
        let entry = topic.entries.get(topic.until(at_ns).checked_sub(1)?)?;
        Some(self.sample(topic, entry))
    }

    fn sample(&self, topic: &Topic, entry: &Entry) -> ShownSample {
        ShownSample {
            source_ns: entry.source_ns,
            receive_ns: entry.log_ns,
            bound_ns: entry.bound_ns,
            publisher: self.name(&publisher_number(entry.publisher)),
            route: "file",
            sequence: entry.sequence,
            missed: entry.missed,
            format: topic.encoding.clone(),
            bytes: Arc::from(&self.payload[entry.begin..entry.begin + entry.length]),
            type_name: topic.type_name.clone(),
            type_hash: 0,
        }
    }

    /// A field over the whole recording: ms since 1970, and the value; and of how many messages each point is one.
    pub fn curve(&self, name: &str, path: &str) -> (Vec<[f64; 2]>, usize) {
        let Some(topic) = self.topic_named(name) else { return (Vec::new(), 1) };
        let every = topic.entries.len().div_ceil(CURVE_MESSAGES_MAX).max(1);
        let point = |entry: &Entry| {
            let value = match path {
                AGE_PATH => entry.age_ns().map(ms),
                BOUND_PATH => entry.bound_ns.map(ms),
                path => {
                    self.sample(topic, entry).tree(&self.types).ok().and_then(|tree| number_at(&tree, path))
                }
            };
            Some([ms(entry.source_ns.unwrap_or(entry.log_ns)), value?])
        };
        (topic.entries.iter().step_by(every).filter_map(point).collect(), every)
    }

    /// The name of a node; its number where the file does not have it.
    fn name(&self, number: &str) -> String {
        self.names.get(number).map_or(number, String::as_str).to_owned()
    }

    /// Topics, their types, publishers and readers.
    pub fn catalog(&self) -> Value {
        let topics = self.topics.iter().enumerate().map(|(id, topic)| {
            let mut publishers: Vec<[u8; 8]> = Vec::new();
            for entry in &topic.entries {
                if !publishers.contains(&entry.publisher) && publishers.len() < 64 {
                    publishers.push(entry.publisher);
                }
            }
            let writers = publishers.iter().map(|publisher| {
                let number = publisher_number(*publisher);
                json!({ "node": number, "name": self.name(&number), "qos": topic.qos, "type": topic.type_name })
            });
            let readers = topic.readers.iter().map(|end| {
                json!({ "node": end.number, "name": end.name, "qos": "", "type": topic.type_name })
            });
            json!({
                "id": id, "name": topic.name, "type": topic.type_name, "kind": topic.kind.word(), "live": true,
                "writers": writers.collect::<Vec<_>>(), "readers": readers.collect::<Vec<_>>(),
                "stamp": topic.stamp.map(Stamp::name),
            })
        });
        json!({ "t": "catalog", "topics": topics.collect::<Vec<_>>(), "mismatches": self.mismatches, "notices": self.notices, "left_out": 0 })
    }
}

fn publisher_number(publisher: [u8; 8]) -> String {
    if publisher == [0; 8] {
        return "not recorded".to_owned();
    }
    publisher.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// QoS that was offered, in the words of the live view.
fn qos(metadata: &Metadata) -> String {
    let Some(reliability) = metadata.get("noctule_reliability") else { return String::new() };
    let word = |key: &str| metadata.get(key).map_or("", String::as_str);
    let mut words =
        format!("{reliability} {} keep_last {}", word("noctule_durability"), word("noctule_keep_last"));
    if let Some(deadline_ns) = metadata.get("noctule_deadline_ns").and_then(|ns| ns.parse::<f64>().ok()) {
        words += &format!(" deadline {} ms", deadline_ns / 1e6);
    }
    words
}

/// Publishers and readers that came after the recording of their topic began.
fn join_ends(topics: &mut [Topic], names: &mut BTreeMap<String, String>, states: &[(i64, SystemState)]) {
    let place: BTreeMap<String, usize> =
        topics.iter().enumerate().map(|(place, topic)| (topic.name.clone(), place)).collect();
    for end in states.iter().flat_map(|(_, state)| &state.ends) {
        if names.len() < NAMES_MAX {
            names.entry(end.number.clone()).or_insert_with(|| end.name.clone());
        }
        let Some(topic) = place.get(&end.topic).map(|place| &mut topics[*place]) else { continue };
        let is_new = topic.readers.iter().all(|known| known.number != end.number);
        if !end.publishes && is_new && topic.readers.len() < NAMES_MAX {
            topic.readers.push(End { number: end.number.clone(), name: end.name.clone() });
        }
    }
}

/// All that there were, with the numbers of nodes as samples name them.
fn mismatches(states: &[(i64, SystemState)]) -> Vec<Mismatch> {
    let mut all = Vec::new();
    for one in states.iter().flat_map(|(_, state)| &state.mismatches) {
        let one = Mismatch {
            writer_node: ends::short(&one.writer_node),
            reader_node: ends::short(&one.reader_node),
            ..one.clone()
        };
        if all.len() < MISMATCHES_MAX && !all.contains(&one) {
            all.push(one);
        }
    }
    all
}

impl Topic {
    /// How many entries are not after a moment.
    fn until(&self, at_ns: i64) -> usize {
        self.entries.partition_point(|entry| entry.log_ns <= at_ns)
    }

    /// Computes for each message the counts of missed samples and deadlines up to it.
    fn count(&mut self) {
        let (mut missed, mut deadline_missed, mut before_ns) = (0_u64, 0_u64, None);
        for entry in &mut self.entries {
            missed = missed.saturating_add(entry.missed);
            if let Some(deadline_ns) = self.deadline_ns {
                let gap_ns = before_ns.map_or(0, |before_ns| entry.log_ns.saturating_sub(before_ns));
                let is_late = entry.age_ns().is_some_and(|age_ns| age_ns > deadline_ns);
                deadline_missed += deadlines_in(gap_ns, deadline_ns) + u64::from(is_late);
            }
            before_ns = Some(entry.log_ns);
            (entry.missed_before, entry.deadline_missed) = (missed, deadline_missed);
        }
    }

    fn figures(&self, at_ns: i64) -> Figures {
        let end = self.until(at_ns);
        let begin = self.until(at_ns.saturating_sub(WINDOW_NS));
        let window = &self.entries[begin..end];
        let seconds = (at_ns - (at_ns - WINDOW_NS).max(self.entries[0].log_ns)).max(1) as f64 * 1e-9;
        let every = window.len().div_ceil(WINDOW_MESSAGES_MAX).max(1);
        let mut ages_ns: Vec<i64> = window.iter().step_by(every).filter_map(Entry::age_ns).collect();
        let frame = &self.entries[self.until(at_ns.saturating_sub(FRAME_NS))..end];
        let mut frame_ns: Vec<i64> = frame.iter().filter_map(Entry::age_ns).collect();
        let middle = frame_ns.len() / 2;
        let missed_in = window.iter().map(|entry| entry.missed).sum::<u64>();
        let published = window.len() as u64 + missed_in;
        let bytes: usize = window.iter().map(|entry| entry.length).sum();
        let bound_ns = window.iter().map(|entry| entry.bound_ns).min().flatten();
        Figures {
            rate_hz: window.len() as f64 / seconds,
            p50_ns: quantile(&mut ages_ns, 1, 2),
            p99_ns: quantile(&mut ages_ns, 99, 100),
            max_ns: window.iter().filter_map(Entry::age_ns).max(),
            // Proven of all, or of none.
            bound_ns: bound_ns.and_then(|_| window.iter().filter_map(|entry| entry.bound_ns).max()),
            loss: (published > 0).then(|| missed_in as f64 / published as f64),
            missed: end.checked_sub(1).map_or(0, |last| self.entries[last].missed_before),
            deadline_missed: self
                .deadline_ns
                .map(|_| end.checked_sub(1).map_or(0, |last| self.entries[last].deadline_missed)),
            bytes_per_s: bytes as f64 / seconds,
            samples: end as u64,
            frame_ns: (!frame_ns.is_empty()).then(|| *frame_ns.select_nth_unstable(middle).1),
            frame_max_ns: frame.iter().filter_map(Entry::age_ns).max(),
        }
    }
}

impl Reading {
    fn handle(&mut self, record: &Record<'_>) -> Result<(), FileError> {
        match *record {
            Record::Header { .. } => {}
            Record::Schema { id, name, encoding, text } => {
                if encoding == "ros2msg" {
                    self.types.add_text(name, text);
                }
                let (name, language) = (name.to_owned(), encoding.to_owned());
                self.schemas.insert(id, Schema { name, language, text: text.to_owned() });
            }
            Record::Channel { id, schema, topic, encoding, metadata } => {
                let pairs = file::pairs(metadata).map(|(key, value)| (key.to_owned(), value.to_owned()));
                let metadata = pairs.collect();
                self.channel((id, schema), topic, encoding, &metadata);
            }
            Record::Times(bytes) => self.times.add(bytes),
            Record::State(bytes) => {
                self.states_bytes = self.states_bytes.saturating_add(bytes.len());
                let state = state::decode(bytes).filter(|_| self.states_bytes <= STATES_BYTES_MAX);
                self.states
                    .extend(state.map(|(log_ns, state)| (i64::try_from(log_ns).unwrap_or(i64::MAX), state)));
            }
            Record::Message { channel, sequence, log_ns, publish_ns, payload } => {
                let times = self.times.take(channel, sequence);
                let undeclared = || {
                    FileError::Damaged(
                        format!("a message names channel {channel}, which is not declared").into(),
                    )
                };
                let topic = &mut self.topics[*self.channels.get(&channel).ok_or_else(undeclared)?];
                if self.messages >= MESSAGES_MAX || self.payload.len() + payload.len() > RECORDING_BYTES_MAX {
                    return Err(FileError::TooLarge(format!(
                        "only its first {} messages ({} MB) are shown; cut it with `noctule play FILE --from S --to S` and \
                         `noctule record`",
                        self.messages,
                        self.payload.len() >> 20
                    )));
                }
                self.messages += 1;
                let signed = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
                let source_ns = match &times {
                    Some(times) => times.has_source_time.then(|| signed(publish_ns)),
                    None => topic.stamp.and_then(|stamp| stamp.read_ns(payload)),
                };
                topic.entries.push(Entry {
                    log_ns: signed(log_ns),
                    source_ns,
                    bound_ns: times.and_then(|times| times.bound_ns).map(signed),
                    publisher: times.map_or([0; 8], |times| times.publisher),
                    sequence: times.map_or(u64::from(sequence), |times| times.publisher_sequence),
                    missed: times.map_or(0, |times| times.missed),
                    missed_before: 0,
                    deadline_missed: 0,
                    begin: self.payload.len(),
                    length: payload.len(),
                });
                self.payload.extend_from_slice(payload);
            }
        }
        Ok(())
    }

    fn channel(&mut self, (id, schema): (u16, u16), topic: &str, encoding: &str, metadata: &Metadata) {
        let ends = |key: &str| metadata.get(key).map_or(Vec::new(), |text| ends::read(text));
        let (publishers, readers) = (ends(ends::PUBLISHERS), ends(ends::SUBSCRIBERS));
        let room = NAMES_MAX.saturating_sub(self.names.len());
        let named = publishers.iter().chain(&readers).take(room);
        self.names.extend(named.map(|end| (end.number.clone(), end.name.clone())));
        let none = Schema::default();
        let Schema { name: type_name, language, text } = self.schemas.get(&schema).unwrap_or(&none);
        let place = self.topics.iter().position(|known| known.name == topic).unwrap_or_else(|| {
            let text = String::from_utf8_lossy(text);
            self.topics.push(Topic {
                name: topic.to_owned(),
                type_name: type_name.clone(),
                // Boards and bridges publish CDR without naming it.
                encoding: if encoding == "bytes" { "cdr".to_owned() } else { encoding.to_owned() },
                stamp: Stamp::of(encoding, (type_name, language, &text)).ok(),
                kind: Kind::of(type_name),
                qos: qos(metadata),
                deadline_ns: metadata
                    .get("noctule_deadline_ns")
                    .and_then(|ns| ns.parse().ok())
                    .filter(|ns| *ns > 0),
                readers,
                entries: Vec::new(),
            });
            self.topics.len() - 1
        });
        self.channels.insert(id, place);
    }
}
