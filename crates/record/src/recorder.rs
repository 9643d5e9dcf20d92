//! Recording the topics of a running system: a thread for each topic that takes samples, one that writes.
//!
//! Every subscriber is best effort and of any type, so a recorder never holds a publisher back. What the recorder does not keep is counted
//! by where it was lost: before it (`missed`), for want of room in its queue (`left_out`), or because the disk was full (`not_written`).

mod writing;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant as Timer};

use noctule::{
    Durability, Endpoint, EndpointKind, Format, Node, NodeError, NodeId, Sample, SampleInfo, Subscriber,
};
use noctule_sys::clock::realtime_ns;
use noctule_timebase::Span;
use serde::Serialize;

use crate::alarms::{Alarm, Alarms};
use crate::queue::{Queue, Refused};
use crate::times::SampleTimes;
use crate::writer::{Recording, Stored, WriteError};

use writing::{Observing, Writing};

/// Topics recorded at once, a thread each.
pub const TOPICS_LIMIT: usize = 2048;
/// A thread that waits for samples looks this often whether it is still needed.
const LOOK: Duration = Duration::from_millis(200);
/// Time-out of the request for a type's description, before its topic is read; a node that does not answer is not asked again.
const DESCRIBED_WITHIN: Duration = Duration::from_millis(50);
/// Nodes that did not answer.
const SILENT_MAX: usize = 256;
/// The robot's threads run before the recorder's: the scheduler gives them ten times the weight; see `benchmarks/record`.
const NICE: i32 = 10;
/// And once they run, they are interrupted after so long for a thread of the robot's that wakes; by default it would wait for 3 ms.
const SLICE_NS: u64 = 100_000;
/// The wall clock is read anew this often.
const WALL_CLOCK_EVERY_NS: i64 = 1_000_000_000;

/// Topics to record, and the size of the queue.
#[derive(Clone, Debug)]
pub struct Selection {
    /// Names of topics; a name that ends in `*` matches all that begin with what is before it. Empty: all topics.
    pub topics: Vec<String>,
    /// Room for samples that wait for the disk, bytes.
    pub queue_bytes_max: usize,
}

impl Selection {
    fn wants(&self, topic: &str) -> bool {
        let fits = |wanted: &String| match wanted.strip_suffix('*') {
            Some(beginning) => topic.starts_with(beginning),
            None => topic == wanted,
        };
        self.topics.is_empty() || self.topics.iter().any(fits)
    }
}

/// Finds the definition of the type of an endpoint of another node: its language (e.g. `ros2msg`) and its text. It is asked by the
/// thread that writes, once for each topic and format, and must not take long.
pub type Definitions = Box<dyn FnMut(&Node, NodeId, &Endpoint) -> Option<(String, String)> + Send>;

/// Counts of a topic's samples by their fate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TopicCount {
    /// In the file, or on the way there.
    pub recorded: u64,
    /// Lost between the publisher and the recorder.
    pub missed: u64,
    /// Not recorded because the queue was full: the disk is too slow.
    pub left_out: u64,
    /// Taken, but not recorded because the disk was full or refused to be written.
    pub not_written: u64,
    /// Payload bytes recorded.
    pub bytes: u64,
}

/// Counts of samples, by topic.
pub type Counts = BTreeMap<String, TopicCount>;

/// A recording that runs.
#[derive(Debug)]
pub struct Recorder {
    node: Arc<Node>,
    selection: Selection,
    shared: Arc<Shared>,
    takers: BTreeMap<String, JoinHandle<()>>,
    /// Topics that could not be opened, each reported once.
    refused: BTreeSet<String>,
    /// Nodes that do not say what their types are made of.
    silent: BTreeSet<NodeId>,
    writer: Option<JoinHandle<Result<(), WriteError>>>,
}

#[derive(Debug)]
struct Shared {
    queue: Queue<Taken>,
    counts: Mutex<Counts>,
    stop: AtomicBool,
    is_disk_full: AtomicBool,
    /// Requests to keep the files there are, counted.
    keeps: AtomicU64,
    written_messages: AtomicU64,
    written_bytes: AtomicU64,
    clock: Mutex<Option<WallClock>>,
    fired: Mutex<VecDeque<Alarm>>,
}

/// A sample on its way to the file.
#[derive(Debug)]
struct Taken {
    topic: Arc<str>,
    format: Option<Format>,
    publisher: NodeId,
    endpoint: Arc<Endpoint>,
    stored: Stored,
}

/// The wall clock minus the node's clock.
#[derive(Clone, Copy, Debug)]
struct WallClock {
    offset_ns: i64,
    read_ns: i64,
}

impl Recorder {
    /// Begins to write into `recording` what `selection` names. When one of `alarms` fires, the files there are
    /// [are kept](Recorder::keep_files).
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(
        node: Node,
        recording: Recording,
        selection: Selection,
        definitions: Definitions,
        alarms: Alarms,
    ) -> Result<Recorder, NodeError> {
        let shared = Arc::new(Shared {
            queue: Queue::new(selection.queue_bytes_max),
            counts: Mutex::new(BTreeMap::new()),
            stop: AtomicBool::new(false),
            is_disk_full: AtomicBool::new(false),
            keeps: AtomicU64::new(0),
            written_messages: AtomicU64::new(0),
            written_bytes: AtomicU64::new(0),
            clock: Mutex::new(None),
            fired: Mutex::new(VecDeque::new()),
        });
        let node = Arc::new(node);
        let writing = Writing {
            node: Arc::clone(&node),
            shared: Arc::clone(&shared),
            recording,
            definitions,
            alarms,
            topics: BTreeMap::new(),
            observing: Observing::start(&node),
        };
        let writer = start_thread("noctule-record", move || writing.run())?;
        let (takers, refused, silent) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
        Ok(Recorder { node, selection, shared, takers, refused, silent, writer: Some(writer) })
    }

    /// Opens the topics that have appeared. Call it a few times a second. Returns a sentence for each topic that cannot be recorded, once.
    pub fn look(&mut self) -> Vec<String> {
        let mut sentences = Vec::new();
        for known in self.node.endpoints() {
            let endpoint = known.endpoint;
            let is_new =
                !self.takers.contains_key(&endpoint.topic) && !self.refused.contains(&endpoint.topic);
            if endpoint.kind != EndpointKind::Writer || !is_new || !self.selection.wants(&endpoint.topic) {
                continue;
            }
            let topic = endpoint.topic.clone();
            self.ask(known.node, endpoint.type_hash);
            let opened = if self.takers.len() < TOPICS_LIMIT {
                self.open(endpoint).map_err(|error| error.to_string())
            } else {
                Err(format!("{TOPICS_LIMIT} topics are recorded already; name those that matter"))
            };
            if let Err(why) = opened {
                sentences.push(format!("{topic} is not recorded: {why}"));
                self.refused.insert(topic);
            }
        }
        sentences
    }

    /// A publisher may go as soon as its sample has a reader: what its type is made of is asked before, and kept by the node.
    fn ask(&mut self, owner: NodeId, type_hash: u64) {
        if type_hash == 0 || self.silent.contains(&owner) {
            return;
        }
        let started = Timer::now();
        let answer = self.node.type_description(owner, type_hash, DESCRIBED_WITHIN);
        if answer.is_err() && started.elapsed() >= DESCRIBED_WITHIN && self.silent.len() < SILENT_MAX {
            self.silent.insert(owner);
        }
    }

    /// The files written so far are kept, whatever the limit on their age.
    pub fn keep_files(&self) {
        self.shared.keeps.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts of samples so far, by topic.
    pub fn counts(&self) -> Counts {
        lock(&self.shared.counts).clone()
    }

    /// Messages and payload bytes in whole chunks of files.
    pub fn written(&self) -> (u64, u64) {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (load(&self.shared.written_messages), load(&self.shared.written_bytes))
    }

    /// Whether the disk was full when last tried.
    pub fn is_disk_full(&self) -> bool {
        self.shared.is_disk_full.load(Ordering::Relaxed)
    }

    /// Whether the writer has ended by an error, which [`finish`](Recorder::finish) returns.
    pub fn has_failed(&self) -> bool {
        self.writer.as_ref().is_some_and(JoinHandle::is_finished)
    }

    /// An alarm that has fired.
    pub fn poll_alarm(&self) -> Option<Alarm> {
        lock(&self.shared.fired).pop_front()
    }

    /// Notices of the node.
    pub fn poll_notice(&self) -> Option<noctule::Notice> {
        self.node.poll_notice()
    }

    /// Takes no more samples, writes those that wait, and ends the file. Returns what became of the samples, and the error
    /// that the writer ended by; samples that still waited for it count as not written then.
    pub fn finish(mut self) -> (Counts, Result<(), WriteError>) {
        let result = self.end();
        (self.counts(), result)
    }

    fn end(&mut self) -> Result<(), WriteError> {
        self.shared.stop.store(true, Ordering::Release);
        for (_, taker) in std::mem::take(&mut self.takers) {
            // A thread panics only by a bug, which has been printed then.
            let _ = taker.join();
        }
        self.shared.queue.close();
        let result = self.writer.take().and_then(|writer| writer.join().ok()).unwrap_or(Ok(()));
        // A writer that ended by an error has left these; no thread adds to them any more.
        while let Some(waiting) = self.shared.queue.take(usize::MAX, Duration::ZERO) {
            let waiting = waiting.iter().map(|(taken, payload)| (&*taken.topic, payload.len()));
            self.shared.uncount(waiting);
        }
        result
    }

    fn open(&mut self, endpoint: Endpoint) -> Result<(), NodeError> {
        let mut builder = self.node.subscriber(&endpoint.topic);
        if endpoint.qos.durability == Durability::TransientLocal {
            builder = builder.transient_local();
        }
        let subscriber = builder.open()?;
        let topic: Arc<str> = endpoint.topic.as_str().into();
        lock(&self.shared.counts).entry(topic.to_string()).or_default();
        let taking = Taking {
            node: Arc::clone(&self.node),
            shared: Arc::clone(&self.shared),
            endpoint: Arc::new(endpoint),
            topic: Arc::clone(&topic),
        };
        let thread = start_thread("noctule-take", move || taking.run(subscriber))?;
        self.takers.insert(topic.to_string(), thread);
        Ok(())
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // A caller that wants the result calls `finish`.
        let _ = self.end();
    }
}

fn start_thread<T: Send + 'static>(
    name: &str,
    run: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, NodeError> {
    let failed = |cause: io::Error| NodeError::System { what: "no thread for the recorder", cause };
    let yielding = move || {
        // Where it is refused, the recorder competes as any other process does.
        let _ = noctule_sys::scheduling::set_batch(NICE, SLICE_NS);
        run()
    };
    std::thread::Builder::new().name(name.into()).spawn(yielding).map_err(failed)
}

/// The thread that takes the samples of one topic.
struct Taking {
    node: Arc<Node>,
    shared: Arc<Shared>,
    endpoint: Arc<Endpoint>,
    topic: Arc<str>,
}

impl Taking {
    fn run(&self, mut subscriber: Subscriber) {
        while !self.shared.stop.load(Ordering::Acquire) {
            // A corrupt sample is skipped; it shows as missed.
            if let Ok(Some(sample)) = subscriber.receive(Some(LOOK)) {
                self.keep(&sample);
            }
        }
        while let Ok(Some(sample)) = subscriber.take() {
            self.keep(&sample);
        }
    }

    fn keep(&self, sample: &Sample) {
        let info = sample.info();
        let buffer = self.shared.queue.reserve(sample.len());
        let mut counts = lock(&self.shared.counts);
        let count = counts.entry(self.topic.to_string()).or_default();
        count.missed += info.missed;
        let mut buffer = match buffer {
            Ok(buffer) => buffer,
            Err(Refused::Full) => {
                count.left_out += 1;
                return;
            }
            Err(Refused::Closed) => {
                count.not_written += 1;
                return;
            }
        };
        count.recorded += 1;
        count.bytes += sample.len() as u64;
        drop(counts);
        sample.copy_to(&mut buffer);
        let stored = self.stored(info);
        let (topic, endpoint) = (Arc::clone(&self.topic), Arc::clone(&self.endpoint));
        let (format, publisher) = (info.format, info.publisher);
        self.shared.queue.push(Taken { topic, format, publisher, endpoint, stored }, buffer);
    }

    fn stored(&self, info: &SampleInfo) -> Stored {
        let offset_ns = self.shared.wall_clock(&self.node).offset_ns;
        let wall_ns = |ns: i64| u64::try_from(ns.saturating_add(offset_ns)).unwrap_or(0);
        let log_ns = wall_ns(info.receive_time.ns());
        let width = |span: Option<Span>| span.and_then(|span| u64::try_from(span.ns()).ok());
        let mut publisher = [0; 8];
        publisher.copy_from_slice(&info.publisher.0[..8]);
        Stored {
            topic: 0,
            log_ns,
            publish_ns: info.source_time.map_or(log_ns, |time| wall_ns(time.ns())),
            times: SampleTimes {
                channel: 0,
                has_source_time: info.source_time.is_some(),
                sequence: 0,
                publisher,
                publisher_sequence: info.sequence,
                missed: info.missed,
                bound_ns: info.source_time.and(width(info.bound)),
                sigma_ns: info.source_time.and(width(info.sigma)),
            },
        }
    }
}

impl Shared {
    /// Samples that were counted as recorded, by topic and payload bytes, are not in the file.
    fn uncount<'s>(&self, samples: impl Iterator<Item = (&'s str, usize)>) {
        let mut counts = lock(&self.counts);
        for (topic, bytes) in samples {
            let Some(count) = counts.get_mut(topic) else { continue };
            count.recorded -= 1;
            count.not_written += 1;
            count.bytes -= bytes as u64;
        }
    }

    /// Log and publish time of a sample use one offset, so that their difference is the age to the nanosecond.
    fn wall_clock(&self, node: &Node) -> WallClock {
        let mut clock = lock(&self.clock);
        let now_ns = node.now().ns();
        match *clock {
            Some(known) if now_ns - known.read_ns < WALL_CLOCK_EVERY_NS => known,
            _ => {
                let (before, wall_ns, after) = (node.now(), realtime_ns(), node.now());
                let middle_ns = before.ns() + (after - before).ns() / 2;
                *clock.insert(WallClock { offset_ns: wall_ns - middle_ns, read_ns: after.ns() })
            }
        }
    }
}

/// MCAP's word for a format (registry of message encodings), or ours where it has none.
pub fn encoding(format: Option<Format>) -> &'static str {
    match format {
        None => "bytes",
        Some(Format::FlatBuffers) => "flatbuffer",
        Some(format) => format.name(),
    }
}

/// A count is whole even if the thread that counted has panicked.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_are_chosen_by_name_or_by_their_beginning() {
        let selection = |topics: &[&str]| Selection {
            topics: topics.iter().map(|topic| (*topic).to_owned()).collect(),
            queue_bytes_max: 0,
        };
        assert!(selection(&[]).wants("/imu"));
        assert!(selection(&["/imu"]).wants("/imu") && !selection(&["/imu"]).wants("/imu/raw"));
        assert!(selection(&["/cam*"]).wants("/camera/image") && !selection(&["/cam*"]).wants("/imu"));
    }
}
