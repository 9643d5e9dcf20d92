//! One topic, one way, with a thread of its own: who receives a sample also sends it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use noctule::{Format, Node, NodeError, Publisher, Sample, Subscriber};

use crate::ages::{Now, Stamping};
use crate::bridge::{BridgeError, Shared};
use crate::cyclone::{DdsError, Participant, Reader, SAMPLE_BYTES_MAX, Taken, Writer};
use crate::payload::{pad, without_padding};
use crate::plan::{Direction, Route, dds_names};
use crate::user_data::user_data;

/// A thread that waits for samples looks this often whether it should end.
const LOOK: Duration = Duration::from_millis(200);
/// Longest sample that a topic of the bus is opened for, in bytes; a longer one opens it anew for twice as much.
const PAYLOAD_BYTES_FIRST: usize = 256 << 10;
/// HISTORY of a topic that was opened anew: ROS 2's default, for memory is taken by the longest sample.
const DEPTH_LARGE: u32 = 10;
/// Samples that the bus's readers on this host may borrow at once.
const BORROWS: u32 = 3;

/// Said of a publisher that leaves the format to the library.
const IS_PLAIN: &str = "it does not reach DDS: its publisher on this host leaves its samples as they lie in memory (plain), \
    which DDS cannot read; choose the format cdr where it is published (format = cdr)";
/// Said of one that chose another.
const IS_NO_CDR: &str = "it does not reach DDS: its samples on the bus are no CDR of version 1, which is all that readers \
    in DDS know; choose the format cdr where it is published (format = cdr)";

/// What went through a route and what did not.
#[derive(Debug, Default)]
struct Counters {
    samples: AtomicU64,
    bytes: AtomicU64,
    unreadable: AtomicU64,
    refused: AtomicU64,
    too_large: AtomicU64,
    missed: AtomicU64,
    ignored: AtomicU64,
    stamping: Mutex<Stamping>,
}

/// What there is to say about a route.
#[derive(Clone, Debug)]
pub struct RouteStatus {
    /// Which topic, which way, how.
    pub route: Route,
    /// Samples that went through.
    pub samples: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Samples in another encoding than CDR of version 1.
    pub unreadable: u64,
    /// Samples that readers in DDS were too slow for.
    pub refused: u64,
    /// Samples longer than [`SAMPLE_BYTES_MAX`].
    pub too_large: u64,
    /// Samples that newer ones replaced before this route came to them (KEEP_LAST); from the bus, also those lost on the
    /// way to this host.
    pub missed: u64,
    /// Samples of other bridges between the same networks.
    pub ignored: u64,
    /// How samples from DDS are dated.
    pub stamping: Stamping,
}

/// A route at work; ends when dropped.
#[derive(Debug)]
pub(crate) struct OpenRoute {
    route: Route,
    counters: Arc<Counters>,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl OpenRoute {
    pub(crate) fn open(route: &Route, shared: &Arc<Shared>) -> Result<OpenRoute, BridgeError> {
        let (counters, ended) = (Arc::new(Counters::default()), Arc::new(AtomicBool::new(false)));
        let passage = Passage {
            route: route.clone(),
            shared: Arc::clone(shared),
            counters: Arc::clone(&counters),
            ended: Arc::clone(&ended),
        };
        let names = dds_names(route);
        let names = (names.0.as_str(), names.1.as_str());
        let user_data = user_data(route.rihs01.as_deref());
        let participant: &Participant = &shared.participant;
        let builder = thread::Builder::new().name("noctule-dds".to_owned());
        let thread = match route.direction {
            Direction::FromDds => {
                let publisher = publisher(&shared.node, route, PAYLOAD_BYTES_FIRST)?;
                let reader = participant.reader(names, &route.qos, &user_data)?;
                builder.spawn(move || passage.pass_from_dds(reader, publisher))
            }
            Direction::ToDds => {
                let writer = participant.writer(names, &route.qos, &user_data)?;
                let subscriber = subscriber(&shared.node, route)?;
                builder.spawn(move || passage.pass_to_dds(subscriber, &writer))
            }
        };
        let thread = Some(thread.map_err(BridgeError::System)?);
        Ok(OpenRoute { route: route.clone(), counters, ended, thread })
    }

    pub(crate) fn route(&self) -> &Route {
        &self.route
    }

    /// Tells the thread to end, which dropping waits for.
    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    pub(crate) fn status(&self) -> RouteStatus {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let c = &self.counters;
        RouteStatus {
            route: self.route.clone(),
            samples: of(&c.samples),
            bytes: of(&c.bytes),
            unreadable: of(&c.unreadable),
            refused: of(&c.refused),
            too_large: of(&c.too_large),
            missed: of(&c.missed),
            ignored: of(&c.ignored),
            stamping: *c.stamping.lock().unwrap_or_else(PoisonError::into_inner),
        }
    }
}

impl Drop for OpenRoute {
    fn drop(&mut self) {
        self.end();
        if let Some(thread) = self.thread.take() {
            // It panics only by a bug, which has been printed then.
            let _ = thread.join();
        }
    }
}

fn publisher(node: &Node, route: &Route, payload_bytes_max: usize) -> Result<Publisher, NodeError> {
    let builder = node.publisher(&route.topic).type_name(&route.type_name, route.type_hash);
    let most = u32::try_from(payload_bytes_max).unwrap_or(u32::MAX);
    builder.format(Format::Cdr).qos(route.qos).payload_bytes_max(most).borrows(BORROWS).open()
}

fn subscriber(node: &Node, route: &Route) -> Result<Subscriber, NodeError> {
    // A writer may use its memory as it is for readers of this host. Such samples are named as unreadable
    // one by one, which is better than a topic that stays silent.
    let builder = node.subscriber(&route.topic).formats(&[Format::Cdr, Format::Plain]);
    builder.qos(route.qos).open()
}

/// What a route's thread works with.
struct Passage {
    route: Route,
    shared: Arc<Shared>,
    counters: Arc<Counters>,
    ended: Arc<AtomicBool>,
}

impl Passage {
    fn is_over(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    fn pass_from_dds(&self, mut reader: Reader, mut publisher: Publisher) {
        let mut room_bytes = PAYLOAD_BYTES_FIRST;
        let mut payload = Vec::new();
        while !self.is_over() {
            reader.wait(LOOK);
            let mut taken = 1;
            while taken > 0 && !self.is_over() {
                let result = reader.take(|sample| {
                    if sample.bytes.len() > room_bytes && sample.bytes.len() <= SAMPLE_BYTES_MAX {
                        room_bytes = sample.bytes.len().next_power_of_two();
                        self.make_room(&mut publisher, room_bytes);
                    }
                    self.publish(&mut publisher, &sample, &mut payload);
                });
                taken = result.unwrap_or_else(|error| {
                    self.notice(&error.to_string());
                    0
                });
                self.counters.missed.store(reader.overwritten(), Ordering::Relaxed);
            }
        }
    }

    /// Opens the topic of the bus anew, for longer samples.
    fn make_room(&self, old: &mut Publisher, room_bytes: usize) {
        let mut route = self.route.clone();
        route.qos.depth = route.qos.depth.min(DEPTH_LARGE);
        match publisher(&self.shared.node, &route, room_bytes) {
            Ok(larger) => *old = larger,
            Err(error) => self.notice(&error.to_string()),
        }
    }

    fn publish(&self, publisher: &mut Publisher, sample: &Taken<'_>, payload: &mut Vec<u8>) {
        let is_here = match sample.participant {
            Some(participant) if self.shared.is_sibling_participant(&participant) => {
                return count(&self.counters.ignored, 1);
            }
            Some(participant) => self.shared.is_here(&participant),
            None => false,
        };
        if !without_padding(sample.bytes, payload) {
            count(&self.counters.unreadable, 1);
            return self
                .notice("its samples in DDS are no CDR of version 1, which is all that the bus knows");
        }
        let has_history = self.route.qos.durability != noctule::Durability::Volatile;
        let now = Now::read(&self.shared.node);
        let (source, stamping) = now.source(Some(sample.stamp_ns), has_history, is_here);
        *self.counters.stamping.lock().unwrap_or_else(PoisonError::into_inner) = stamping;
        match publisher.publish_uncertain(payload, source) {
            Ok(()) => self.passed(payload.len()),
            Err(_) => count(&self.counters.too_large, 1),
        }
    }

    fn pass_to_dds(&self, mut subscriber: Subscriber, writer: &Writer) {
        let mut payload = Vec::new();
        while !self.is_over() {
            match subscriber.receive(Some(LOOK)) {
                Ok(None) => {}
                Ok(Some(sample)) => self.write(writer, &sample, &mut payload),
                Err(error) => self.notice(&error.to_string()),
            }
        }
    }

    fn write(&self, writer: &Writer, sample: &Sample, payload: &mut Vec<u8>) {
        let info = sample.info();
        // Its own came from DDS.
        if info.publisher == self.shared.node.id() {
            return;
        }
        if self.shared.is_sibling_node(info.publisher) {
            return count(&self.counters.ignored, 1);
        }
        count(&self.counters.missed, info.missed);
        if sample.len() > SAMPLE_BYTES_MAX {
            return count(&self.counters.too_large, 1);
        }
        payload.resize(sample.len(), 0);
        sample.copy_to(payload);
        if info.format == Some(Format::Plain) {
            count(&self.counters.unreadable, 1);
            return self.notice(IS_PLAIN);
        }
        if !pad(payload) {
            count(&self.counters.unreadable, 1);
            return self.notice(IS_NO_CDR);
        }
        let now = Now::read(&self.shared.node);
        let stamp_ns = now.stamp_ns(info.source_time.unwrap_or(info.receive_time));
        match writer.write(payload, stamp_ns) {
            Ok(()) => self.passed(payload.len()),
            Err(DdsError::Slow) => count(&self.counters.refused, 1),
            Err(error) => self.notice(&error.to_string()),
        }
    }

    fn passed(&self, bytes: usize) {
        count(&self.counters.samples, 1);
        count(&self.counters.bytes, bytes as u64);
    }

    fn notice(&self, text: &str) {
        self.shared.notice_once(&format!("topic {}: {text}", self.route.topic));
    }
}

fn count(counter: &AtomicU64, by: u64) {
    counter.fetch_add(by, Ordering::Relaxed);
}
