//! Samples from the bus to DDS. A few threads, each of which waits for as many topics as the kernel waits for at once; the one that receives
//! a sample also sends it.
//!
//! A reader in DDS that does not keep up holds its writer. The writer is asked again after 1, 2, 4 ... ms, while the thread passes
//! the samples of its other topics and newer samples replace older ones on the bus (KEEP_LAST).

use std::sync::Arc;
use std::time::{Duration, Instant};

use noctule::{Format, Node, NodeError, Ready, Sample, Subscriber, WaitSet};

use crate::counters::{RouteCounters, count};
use crate::cyclone::{DdsError, SAMPLE_BYTES_MAX, Writer};
use crate::plan::Route;
use crate::shared::{RouteError, Shared};
use noctule_bridge::ages::Now;
use noctule_bridge::lane::Lane;
use noctule_bridge::orders::{Order, Orders};
use noctule_bridge::payload::pad;

/// The first pause before a writer that was held is asked again; the next is twice as long.
const PAUSE_FIRST: Duration = Duration::from_millis(1);
/// A sample that readers in DDS have not let through for this long is refused.
const REFUSED_AFTER: Duration = Duration::from_millis(100);

/// Said of a publisher that leaves the format to the library.
const IS_PLAIN: &str = "it does not reach DDS: its publisher on this host leaves its samples as they lie in memory (plain), \
    which DDS cannot read; choose the format cdr where it is published (format = cdr)";
/// Said of one that chose another.
const IS_NO_CDR: &str = "it does not reach DDS: its samples on the bus are no CDR of version 1, which is all that readers \
    in DDS know; choose the format cdr where it is published (format = cdr)";

pub(crate) fn subscriber(node: &Node, route: &Route) -> Result<Subscriber, NodeError> {
    // A writer may use its memory as it is for readers of this host. Such samples are counted as unreadable
    // one by one, which is better than a topic that stays silent.
    let builder = node.subscriber(&route.topic).formats(&[Format::Cdr, Format::Plain]);
    builder.qos(route.qos).open()
}

/// A topic that is read.
pub(crate) struct Passage {
    pub(crate) route: Arc<Route>,
    pub(crate) counters: Arc<RouteCounters>,
    pub(crate) subscriber: Subscriber,
    pub(crate) writer: Arc<Writer>,
}

/// The threads; they end when dropped.
pub(crate) struct ToDds {
    shared: Arc<Shared>,
    lanes: Vec<Lane<Passage>>,
}

impl ToDds {
    pub(crate) fn new(shared: &Arc<Shared>) -> ToDds {
        ToDds { shared: Arc::clone(shared), lanes: Vec::new() }
    }

    pub(crate) fn add(&mut self, number: u32, passage: Passage) -> Result<(), RouteError> {
        let free = self.lanes.iter().position(Lane::has_room);
        let at = match free {
            Some(at) => at,
            None => {
                let shared = Arc::clone(&self.shared);
                self.lanes.push(Lane::start("noctule-dds-out", move |set, orders| {
                    Work { shared, set, orders, moving: Vec::new(), held: Vec::new() }.run();
                })?);
                self.lanes.len() - 1
            }
        };
        self.lanes[at].add(number, passage);
        Ok(())
    }

    /// Leaves off; nothing passes any more when this returns. A thread without topics ends.
    pub(crate) fn stop(&mut self, number: u32) {
        let Some(at) = self.lanes.iter().position(|lane| lane.has(number)) else { return };
        self.lanes[at].stop(number);
        if self.lanes[at].is_empty() {
            self.lanes.swap_remove(at);
        }
    }
}

/// A topic as its thread keeps it.
struct Numbered {
    number: u32,
    passage: Passage,
    /// The sample that is sent, or is held.
    payload: Vec<u8>,
}

impl AsMut<Subscriber> for Numbered {
    fn as_mut(&mut self) -> &mut Subscriber {
        &mut self.passage.subscriber
    }
}

/// A topic whose sample readers in DDS do not let through yet.
struct Held {
    topic: Numbered,
    stamp_ns: i64,
    pause: Duration,
    again: Instant,
    refused: Instant,
}

/// State of the thread that forwards samples to DDS.
struct Work {
    shared: Arc<Shared>,
    set: WaitSet,
    orders: Arc<Orders<Passage>>,
    /// Topics that wait for samples.
    moving: Vec<Numbered>,
    /// Topics that wait for readers.
    held: Vec<Held>,
}

impl Work {
    fn run(&mut self) {
        loop {
            while let Some(order) = self.orders.pop() {
                match order {
                    Order::Start(number, passage) => {
                        self.moving.push(Numbered { number, passage, payload: Vec::new() });
                    }
                    Order::Stop(number, answer) => {
                        self.moving.retain(|topic| topic.number != number);
                        self.held.retain(|held| held.topic.number != number);
                        // No thread may wait any more.
                        let _ = answer.try_send(());
                    }
                    Order::End => return,
                }
            }
            let next = self.held.iter().map(|held| held.again).min();
            let timeout = next.map(|next| next.saturating_duration_since(Instant::now()));
            if let Ready::Sample(at) = self.set.wait(&mut self.moving, timeout)
                && let Some(stamp_ns) = self.moving[at].receive(&self.shared)
                && !self.moving[at].write(&self.shared, stamp_ns)
            {
                let (topic, now) = (self.moving.swap_remove(at), Instant::now());
                let (again, refused) = (now + PAUSE_FIRST, now + REFUSED_AFTER);
                self.held.push(Held { topic, stamp_ns, pause: PAUSE_FIRST, again, refused });
            }
            if next.is_some() {
                self.try_again(Instant::now());
            }
        }
    }

    /// Writes what was held, as far as its time has come.
    fn try_again(&mut self, now: Instant) {
        for mut held in std::mem::take(&mut self.held) {
            if now < held.again {
                self.held.push(held);
            } else if held.topic.write(&self.shared, held.stamp_ns) {
                self.moving.push(held.topic);
            } else if now >= held.refused {
                count(&held.topic.passage.counters.refused, 1);
                self.moving.push(held.topic);
            } else {
                held.pause *= 2;
                held.again = now + held.pause;
                self.held.push(held);
            }
        }
    }
}

impl Numbered {
    /// Takes a sample that is to be written; its time stamp in DDS.
    fn receive(&mut self, shared: &Shared) -> Option<i64> {
        match self.passage.subscriber.take() {
            Ok(sample) => self.passage.prepare(shared, &sample?, &mut self.payload),
            Err(error) => {
                self.passage.notice(shared, &error.to_string());
                None
            }
        }
    }

    /// False if readers do not keep up.
    fn write(&self, shared: &Shared, stamp_ns: i64) -> bool {
        match self.passage.writer.write(&self.payload, stamp_ns) {
            Ok(()) => self.passage.counters.passed(self.payload.len()),
            Err(DdsError::Slow) => return false,
            Err(error) => self.passage.notice(shared, &error.to_string()),
        }
        true
    }
}

impl Passage {
    fn prepare(&self, shared: &Shared, sample: &Sample, payload: &mut Vec<u8>) -> Option<i64> {
        let (info, counters) = (sample.info(), &self.counters);
        // Its own came from DDS.
        if info.publisher == shared.node.id() {
            return None;
        }
        if shared.is_sibling_node(info.publisher) {
            count(&counters.ignored, 1);
            return None;
        }
        count(&counters.missed, info.missed);
        if sample.len() > SAMPLE_BYTES_MAX {
            count(&counters.too_large, 1);
            return None;
        }
        payload.resize(sample.len(), 0);
        sample.copy_to(payload);
        let is_plain = info.format == Some(Format::Plain);
        if is_plain || !pad(payload) {
            count(&counters.unreadable, 1);
            self.notice(shared, if is_plain { IS_PLAIN } else { IS_NO_CDR });
            return None;
        }
        let now = Now::read(&shared.node);
        Some(now.stamp_ns(info.source_time.unwrap_or(info.receive_time)))
    }

    fn notice(&self, shared: &Shared, text: &str) {
        shared.notice_once(&format!("topic {}: {text}", self.route.topic));
    }
}
