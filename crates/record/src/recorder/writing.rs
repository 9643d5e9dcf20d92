//! The thread that writes: chunks by size and time, alarms, full disks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant as Timer};

use noctule::{Durability, Endpoint, EndpointKind, Format, Node};
use noctule_sys::clock::realtime_ns;

use super::{Definitions, LOOK, Shared, Taken, encoding, lock};
use crate::alarms::{Alarms, FIRED_MAX, Seen};
use crate::ends;
use crate::observer::Observer;
use crate::state::TopicEnd;
use crate::writer::{Recording, Stored, Topic, WriteError};

/// A chunk is written when it has so many bytes, or after [`CHUNK_EVERY`].
const CHUNK_BYTES: usize = 4 << 20;
/// Half of the second that a power cut may cost.
const CHUNK_EVERY: Duration = Duration::from_millis(400);
/// After a full disk, another file is tried this often.
const FULL_RETRY: Duration = Duration::from_secs(1);
/// The system's state is written this often.
const STATE_EVERY: Duration = Duration::from_secs(2);
/// Every so many states have all publishers and readers, so that a file that is cut out of the recording knows them.
const STATES_PER_WHOLE: u64 = 30;
/// A topic in one format.
type Channel = (Arc<str>, Option<Format>);

/// The thread that writes.
pub(super) struct Writing {
    pub(super) node: Arc<Node>,
    pub(super) shared: Arc<Shared>,
    pub(super) recording: Recording,
    pub(super) definitions: Definitions,
    pub(super) alarms: Alarms,
    pub(super) topics: BTreeMap<Channel, usize>,
    pub(super) observing: Observing,
}

/// The system around the samples.
pub(super) struct Observing {
    observer: Observer,
    /// Publishers and readers that the recording has.
    written: BTreeSet<TopicEnd>,
    states: u64,
    due: Timer,
}

impl Observing {
    pub(super) fn start(node: &Arc<Node>) -> Observing {
        let observer = Observer::start(node, "the recorder");
        Observing { observer, written: BTreeSet::new(), states: 0, due: Timer::now() }
    }

    /// Gives the recording the system's state if that is due.
    fn look(&mut self, recording: &mut Recording) {
        if self.due > Timer::now() {
            return;
        }
        self.due = Timer::now() + STATE_EVERY;
        if self.states.is_multiple_of(STATES_PER_WHOLE) {
            self.written.clear();
        }
        self.states += 1;
        recording
            .add_state(u64::try_from(realtime_ns()).unwrap_or(0), &self.observer.state(&mut self.written));
    }
}

impl Writing {
    pub(super) fn run(mut self) -> Result<(), WriteError> {
        let result = self.write_all();
        // After an error no thread empties the queue.
        self.shared.queue.close();
        result
    }

    fn write_all(&mut self) -> Result<(), WriteError> {
        let mut chunk: Vec<(Stored, Vec<u8>)> = Vec::new();
        let (mut chunk_bytes, mut begun, mut synced) = (0, Timer::now(), Timer::now());
        let mut full_since: Option<Timer> = None;
        let mut keeps = 0;
        loop {
            let wait = CHUNK_EVERY.saturating_sub(begun.elapsed()).min(LOOK);
            let taken = self.shared.queue.take(CHUNK_BYTES - chunk_bytes, wait);
            let is_over = taken.is_none();
            if taken.as_ref().is_some_and(Vec::is_empty) && !self.alarms.is_empty() {
                // Nothing waits: what is not here has not come.
                self.alarms.handle_time(u64::try_from(realtime_ns()).unwrap_or(0));
            }
            for (taken, payload) in taken.into_iter().flatten() {
                chunk_bytes = (chunk_bytes + payload.len()).min(CHUNK_BYTES);
                self.see(&taken);
                let topic = self.topic(&taken);
                chunk.push((Stored { topic, ..taken.stored }, payload));
            }
            self.tell_fired();
            let asked = self.shared.keeps.load(Ordering::Relaxed);
            let is_due = chunk_bytes >= CHUNK_BYTES || begun.elapsed() >= CHUNK_EVERY;
            if is_over || is_due || asked != keeps {
                let may_try = full_since.is_none_or(|since| since.elapsed() >= FULL_RETRY) || is_over;
                full_since = self.write(&chunk, may_try, full_since)?;
                self.shared.queue.recycle(chunk.drain(..).map(|(_, payload)| payload));
                (chunk_bytes, begun) = (0, Timer::now());
                if synced.elapsed() >= CHUNK_EVERY {
                    self.recording.sync()?;
                    synced = Timer::now();
                }
            }
            if asked != keeps {
                keeps = asked;
                without_index(self.recording.keep_files())?;
            }
            if is_over {
                return without_index(self.recording.finish());
            }
        }
    }

    fn see(&mut self, taken: &Taken) {
        if self.alarms.is_empty() {
            return;
        }
        let Stored { log_ns, publish_ns, times, .. } = taken.stored;
        let source_ns = times.has_source_time.then_some(publish_ns);
        self.alarms.handle_sample(Seen { topic: &taken.topic, log_ns, source_ns, bound_ns: times.bound_ns });
    }

    /// An alarm keeps what has led to it.
    fn tell_fired(&mut self) {
        while let Some(alarm) = self.alarms.poll_fired() {
            let mut fired = lock(&self.shared.fired);
            if fired.len() < FIRED_MAX {
                fired.push_back(alarm.clone());
            }
            self.shared.keeps.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Writes a chunk if the disk may have room; returns since when it has none.
    fn write(
        &mut self,
        chunk: &[(Stored, Vec<u8>)],
        may_try: bool,
        full_since: Option<Timer>,
    ) -> Result<Option<Timer>, WriteError> {
        self.observing.look(&mut self.recording);
        let kept = if may_try { self.write_what_fits(chunk) } else { Ok(0) };
        let kept_count = *kept.as_ref().unwrap_or(&0);
        self.uncount(&chunk[kept_count..]);
        kept?;
        let (messages, bytes) = self.recording.written();
        self.shared.written_messages.store(messages, Ordering::Relaxed);
        self.shared.written_bytes.store(bytes, Ordering::Relaxed);
        let is_full = kept_count < chunk.len() || (!may_try && full_since.is_some());
        self.shared.is_disk_full.store(is_full, Ordering::Relaxed);
        let is_new = may_try && is_full;
        Ok(if is_new { Some(Timer::now()) } else { full_since.filter(|_| is_full) })
    }

    /// Writes as many messages from the front of a chunk as the disk has room for, to a factor of two, and says how many.
    fn write_what_fits(&mut self, chunk: &[(Stored, Vec<u8>)]) -> Result<usize, WriteError> {
        let mut count = chunk.len();
        while count > 0 {
            match self.recording.write(&chunk[..count]) {
                Ok(()) => return Ok(count),
                Err(WriteError::Full { .. }) => count /= 2,
                Err(error) => return Err(error),
            }
        }
        Ok(0)
    }

    /// A chunk is not in the file.
    fn uncount(&self, chunk: &[(Stored, Vec<u8>)]) {
        let names: BTreeMap<usize, &Arc<str>> =
            self.topics.iter().map(|((name, _), index)| (*index, name)).collect();
        let known = |stored: &Stored| names.get(&stored.topic).map_or("", |name| &***name);
        self.shared.uncount(chunk.iter().map(|(stored, payload)| (known(stored), payload.len())));
    }

    fn topic(&mut self, taken: &Taken) -> usize {
        let key = (Arc::clone(&taken.topic), taken.format);
        if let Some(index) = self.topics.get(&key) {
            return *index;
        }
        let qos = taken.endpoint.qos;
        let type_name = taken.endpoint.type_name.clone();
        let mut metadata: BTreeMap<String, String> = [
            ("noctule_reliability", qos.reliability.to_string()),
            ("noctule_durability", qos.durability.to_string()),
            ("noctule_keep_last", qos.depth.to_string()),
            ("noctule_type_hash", format!("{:016x}", taken.endpoint.type_hash)),
        ]
        .map(|(key, value)| (key.to_owned(), value))
        .into();
        if let Some(deadline) = qos.deadline {
            metadata.insert("noctule_deadline_ns".into(), deadline.ns().to_string());
        }
        metadata.insert("offered_qos_profiles".into(), ros_qos(&taken.endpoint));
        for (key, kind) in
            [(ends::PUBLISHERS, EndpointKind::Writer), (ends::SUBSCRIBERS, EndpointKind::Reader)]
        {
            metadata.insert(key.into(), ends::text(&self.node, &taken.endpoint, kind));
        }
        let definition = (self.definitions)(&self.node, taken.publisher, &taken.endpoint);
        // A description that was fetched a moment ago is known without another request.
        let known = self.node.type_description(taken.publisher, taken.endpoint.type_hash, Duration::ZERO);
        if let Ok(description) = known {
            metadata.insert("noctule_type_description".into(), description.text().to_owned());
        }
        let topic = Topic {
            name: taken.topic.to_string(),
            encoding: encoding(taken.format).to_owned(),
            definition,
            type_name,
            metadata,
        };
        let index = self.recording.add_topic(topic);
        self.topics.insert(key, index);
        index
    }
}

/// A full disk at the end of a file costs its index only: the chunks are whole.
fn without_index(ended: Result<(), WriteError>) -> Result<(), WriteError> {
    match ended {
        Err(WriteError::Full { .. }) => Ok(()),
        ended => ended,
    }
}

/// QoS as rosbag2 writes it: YAML with the numbers of rmw's enumerations of ROS 2 Humble and earlier, which later ones read.
fn ros_qos(endpoint: &Endpoint) -> String {
    let reliability = if endpoint.qos.reliability == noctule::Reliability::Reliable { 1 } else { 2 };
    let durability = if endpoint.qos.durability == Durability::TransientLocal { 1 } else { 2 };
    let infinite = "sec: 9223372036\n    nsec: 854775807";
    format!(
        "- history: 1\n  depth: {}\n  reliability: {reliability}\n  durability: {durability}\n  deadline:\n    {infinite}\n  \
         lifespan:\n    {infinite}\n  liveliness: 1\n  liveliness_lease_duration:\n    {infinite}\n  \
         avoid_ros_namespace_conventions: false",
        endpoint.qos.depth
    )
}
