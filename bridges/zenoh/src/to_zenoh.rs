//! Samples from the bus to Zenoh. A few threads, each of which waits for as many topics as the kernel waits for at once; the one that receives
//! a sample also sends it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use noctule::{Format, Node, NodeError, NodeId, Ready, Sample, Subscriber, WaitSet};
use noctule_bridge::ages::Now;
use noctule_bridge::lane::Lane;
use noctule_bridge::orders::{Order, Orders};
use noctule_bridge::payload::without_padding;
use noctule_ros_zenoh::attachment::{RosAttachment, SiteAttachment};
use noctule_ros_zenoh::plan::Route;
use noctule_ros_zenoh::site::sample_key;
use noctule_ros_zenoh::token::gid_of;
use zenoh::Wait;
use zenoh_ext::AdvancedPublisher;

use crate::counters::{RouteCounters, count};
use crate::engine;
use crate::from_zenoh::SAMPLE_BYTES_MAX;
use crate::shared::{RouteError, Shared};

/// Publishers of one topic on the bus that are distinguished; beyond, they are counted from the start.
const PUBLISHERS_MAX: usize = 1024;

/// Of a publisher on the bus that leaves its samples as they are, or has chosen another format.
const IS_NO_CDR: &str = "it does not reach Zenoh: its samples on the bus are no CDR of version 1, which is all that programs of ROS 2 \
    know; choose the format cdr where it is published (format = cdr)";

pub(crate) fn subscriber(node: &Node, route: &Route) -> Result<Subscriber, NodeError> {
    // Samples that lie in memory as they are (plain) are counted as unreadable, which is better than a topic that stays silent.
    let builder = node.subscriber(&route.name.name).formats(&[Format::Cdr, Format::Plain]);
    builder.qos(route.qos).open()
}

/// Identities by which ROS 2 knows the publishers of the bus.
type Gids = BTreeMap<NodeId, [u8; 16]>;

/// A topic of the bus in Zenoh, whether it is read or not: one publisher for each key.
pub(crate) struct Writer {
    /// With the number of each publisher on the bus, by which ROS 2 knows it.
    ros: Vec<(String, AdvancedPublisher<'static>)>,
    site: AdvancedPublisher<'static>,
    /// Identities by hash.
    gids: Mutex<BTreeMap<String, Gids>>,
}

impl Writer {
    pub(crate) fn open(shared: &Shared, route: &Route) -> Result<Writer, RouteError> {
        let Shared { session, zid, domain, .. } = shared;
        let one = |hash: &String| -> Result<_, RouteError> {
            let key = route.name.key(*domain, hash);
            Ok((hash.clone(), engine::publisher(session, key, &route.qos)?))
        };
        let ros = route.hashes.iter().map(one).collect::<Result<Vec<_>, _>>()?;
        let first = route.hashes.first().map(String::as_str).unwrap_or_default();
        let site = engine::publisher(session, sample_key(*domain, zid, &route.name, first), &route.qos)?;
        Ok(Writer { ros, site, gids: Mutex::default() })
    }

    /// The numbers of publishers on the bus, from their tokens.
    pub(crate) fn set_gids(&self, gids: BTreeMap<String, Gids>) {
        *self.gids.lock().unwrap_or_else(PoisonError::into_inner) = gids;
    }

    fn gid(&self, hash: &str, publisher: NodeId, shared: &Shared) -> [u8; 16] {
        let gids = self.gids.lock().unwrap_or_else(PoisonError::into_inner);
        let known = gids.get(hash).and_then(|of_hash| of_hash.get(&publisher)).copied();
        // Its token comes within one look, or has just gone: then a number of its own, but no other's.
        known.unwrap_or_else(|| gid_of(&format!("{}/{publisher}/{}", shared.zid, self.site.key_expr())))
    }
}

/// A topic that is read.
pub(crate) struct Passage {
    pub(crate) route: Arc<Route>,
    pub(crate) counters: Arc<RouteCounters>,
    pub(crate) subscriber: Subscriber,
    pub(crate) writer: Arc<Writer>,
    /// The last sequence number by publisher on the bus.
    pub(crate) sequences: BTreeMap<NodeId, i64>,
}

/// The threads; they end when dropped.
pub(crate) struct ToZenoh {
    shared: Arc<Shared>,
    lanes: Vec<Lane<Passage>>,
}

impl ToZenoh {
    pub(crate) fn new(shared: &Arc<Shared>) -> ToZenoh {
        ToZenoh { shared: Arc::clone(shared), lanes: Vec::new() }
    }

    pub(crate) fn add(&mut self, number: u32, passage: Passage) -> Result<(), RouteError> {
        let at = match self.lanes.iter().position(Lane::has_room) {
            Some(at) => at,
            None => {
                let shared = Arc::clone(&self.shared);
                let work = move |set, orders| Work { shared, set, orders, topics: Vec::new() }.run();
                self.lanes.push(Lane::start("noctule-zen-out", work)?);
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
    payload: Vec<u8>,
}

impl AsMut<Subscriber> for Numbered {
    fn as_mut(&mut self) -> &mut Subscriber {
        &mut self.passage.subscriber
    }
}

/// State of the thread that forwards samples to Zenoh.
struct Work {
    shared: Arc<Shared>,
    set: WaitSet,
    orders: Arc<Orders<Passage>>,
    topics: Vec<Numbered>,
}

impl Work {
    fn run(&mut self) {
        loop {
            while let Some(order) = self.orders.pop() {
                match order {
                    Order::Start(number, passage) => {
                        self.topics.push(Numbered { number, passage, payload: Vec::new() });
                    }
                    Order::Stop(number, answer) => {
                        self.topics.retain(|topic| topic.number != number);
                        // No thread may wait any more.
                        let _ = answer.try_send(());
                    }
                    Order::End => return,
                }
            }
            if let Ready::Sample(at) = self.set.wait(&mut self.topics, None) {
                self.topics[at].pass(&self.shared);
            }
        }
    }
}

impl Numbered {
    fn pass(&mut self, shared: &Shared) {
        let Numbered { passage, payload, .. } = self;
        let Passage { subscriber, route, .. } = passage;
        match subscriber.take() {
            Ok(Some(sample)) => {
                payload.resize(sample.len().min(SAMPLE_BYTES_MAX + 1), 0);
                let info = *sample.info();
                let is_whole = sample.len() <= SAMPLE_BYTES_MAX;
                if is_whole {
                    sample.copy_to(payload);
                }
                drop::<Sample>(sample);
                passage.send(shared, &info, is_whole.then_some(payload));
            }
            Ok(None) => {}
            Err(error) => shared.notice_once(&format!("topic {}: {error}", route.name.name)),
        }
    }
}

impl Passage {
    fn send(&mut self, shared: &Shared, info: &noctule::SampleInfo, payload: Option<&mut Vec<u8>>) {
        // Its own came from Zenoh.
        if info.publisher == shared.node.id() {
            return;
        }
        count(&self.counters.missed, info.missed);
        let Some(payload) = payload else { return count(&self.counters.too_large, 1) };
        let mut bytes = Vec::with_capacity(payload.len());
        if info.format == Some(Format::Plain) || !without_padding(payload, &mut bytes) {
            count(&self.counters.unreadable, 1);
            return shared.notice_once(&format!("topic {}: {IS_NO_CDR}", self.route.name.name));
        }
        if self.sequences.len() >= PUBLISHERS_MAX && !self.sequences.contains_key(&info.publisher) {
            self.sequences.clear();
        }
        // ROS 2's readers see from a gap how many are missing.
        let sequence = self.sequences.entry(info.publisher).or_default();
        *sequence = sequence.saturating_add_unsigned(info.missed).saturating_add(1);
        let sequence = *sequence;
        let now = Now::read(&shared.node);
        let source = info.source_time.unwrap_or(info.receive_time);
        let stamp_ns = now.stamp_ns(source);
        let length = bytes.len();
        let bytes = zenoh::bytes::ZBytes::from(bytes);
        let mut is_taken = true;
        for (hash, publisher) in &self.writer.ros {
            let gid = self.writer.gid(hash, info.publisher, shared);
            let ros = RosAttachment { sequence, stamp_ns, gid }.encode();
            is_taken &= publisher.put(bytes.clone()).attachment(ros).wait().is_ok();
        }
        let gid = self.writer.gid("", info.publisher, shared);
        // Without a source time nothing is proven but that it was there when it came.
        let bound = info.bound.filter(|_| info.source_time.is_some());
        let site =
            SiteAttachment { sequence, source_ns: source.ns(), bound, sigma: info.sigma, gid }.encode();
        is_taken &= self.writer.site.put(bytes).attachment(site).wait().is_ok();
        match is_taken {
            true => self.counters.passed(length),
            false => count(&self.counters.refused, 1),
        }
    }
}
