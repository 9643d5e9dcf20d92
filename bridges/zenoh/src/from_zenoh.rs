//! Samples from Zenoh to the bus, on the threads by which Zenoh calls back.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use noctule::{Durability, Format, Node, NodeError, Publisher, SourceTime};
use noctule_bridge::ages::{Now, Stamping};
use noctule_bridge::payload::without_padding;
use noctule_ros_zenoh::attachment::{RosAttachment, SiteAttachment};
use noctule_ros_zenoh::hold::{Held, Hold};
use noctule_ros_zenoh::plan::Route;
use noctule_ros_zenoh::site::{Dated, sample_zid};
use zenoh::sample::{Sample, SampleKind};

use crate::counters::{RouteCounters, count};
use crate::shared::Shared;

/// Longest sample that passes, in bytes.
pub(crate) const SAMPLE_BYTES_MAX: usize = 64 << 20;
/// Longest sample that a topic of the bus is opened for first; a longer one opens it anew for twice as much.
const PAYLOAD_BYTES_FIRST: usize = 256 << 10;
/// HISTORY of a topic that was opened anew: memory is taken by the longest sample.
const DEPTH_LARGE: u32 = 10;
/// HISTORY on the bus of what is not kept for late readers.
const DEPTH: u32 = 32;
/// Samples that the bus's readers on this host may borrow at once.
const BORROWS: u32 = 3;
/// Publishers of one topic whose sequence numbers are followed.
const PUBLISHERS_MAX: usize = 1024;

/// A topic of Zenoh on the bus, whether it is read or not.
pub(crate) struct Outlet {
    route: Arc<Route>,
    pub(crate) counters: Arc<RouteCounters>,
    inside: Mutex<Inside>,
}

struct Inside {
    publisher: Publisher,
    room_bytes: usize,
    payload: Vec<u8>,
    /// The last sequence number by publisher.
    last: BTreeMap<[u8; 16], i64>,
    /// Samples that came from other gateways before their clocks were known.
    hold: Hold,
}

/// Payload and attachment of a sample.
struct Parts {
    bytes: Vec<u8>,
    attachment: Vec<u8>,
}

/// A sample to publish on the bus.
struct Arrived<'a> {
    bytes: &'a [u8],
    source: SourceTime,
    stamping: Stamping,
    gid: [u8; 16],
    sequence: i64,
}

impl Outlet {
    pub(crate) fn open(
        node: &Node,
        route: &Arc<Route>,
        counters: &Arc<RouteCounters>,
    ) -> Result<Outlet, NodeError> {
        let publisher = publisher(node, route, PAYLOAD_BYTES_FIRST)?;
        let inside = Inside {
            publisher,
            room_bytes: PAYLOAD_BYTES_FIRST,
            payload: Vec::new(),
            last: BTreeMap::new(),
            hold: Hold::default(),
        };
        Ok(Outlet { route: Arc::clone(route), counters: Arc::clone(counters), inside: Mutex::new(inside) })
    }

    /// A sample came under ROS 2's key.
    pub(crate) fn handle_ros(&self, shared: &Shared, sample: &Sample) {
        let Some(Parts { bytes, attachment }) = self.parts(sample) else { return };
        let Some(ros) = RosAttachment::decode(&attachment) else { return self.unreadable(shared) };
        if shared.is_site_gid(&ros.gid) {
            // It comes on our own key, too, and with what is proven of its age.
            return count(&self.counters.ignored, 1);
        }
        let has_history = self.route.qos.durability != Durability::Volatile;
        // Tokens name no process, so nothing says whether the writer stamps by this host's clock.
        let (source, stamping) = Now::read(&shared.node).source(Some(ros.stamp_ns), has_history, false);
        let RosAttachment { gid, sequence, .. } = ros;
        self.publish(shared, &mut self.lock(), &Arrived { bytes: &bytes, source, stamping, gid, sequence });
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A sample came from another gateway under our own key. One that comes before that gateway's clock is known waits for it.
    pub(crate) fn handle_site(self: &Arc<Self>, shared: &Shared, sample: &Sample) {
        let Some(Parts { bytes, attachment }) = self.parts(sample) else { return };
        let site = SiteAttachment::decode(&attachment);
        let (Some(site), Some(zid)) = (site, sample_zid(sample.key_expr().as_str())) else {
            return self.unreadable(shared);
        };
        let mut inside = self.lock();
        let was_empty = inside.hold.is_empty();
        inside.hold.push(Held { zid: zid.to_owned(), site, bytes, arrived: shared.node.now() });
        if !self.pass_on(shared, &mut inside) && was_empty {
            shared.clocks.hold(Arc::downgrade(self));
        }
    }

    /// Passes on what waits for clocks that are known by now, or no longer; whether nothing waits any more.
    pub(crate) fn release(&self, shared: &Shared) -> bool {
        self.pass_on(shared, &mut self.lock())
    }

    fn pass_on(&self, shared: &Shared, inside: &mut Inside) -> bool {
        loop {
            let now = shared.node.now();
            let dated = |held: &Held| shared.clocks.source(&held.zid, &held.site, now);
            let Some((Held { site, bytes, arrived, .. }, time)) = inside.hold.pop(now, dated) else {
                return inside.hold.is_empty();
            };
            let (source, stamping) = match time {
                Some(Dated { source: time, bound, sigma }) => {
                    let stamping = bound.map_or(Stamping::Writer, Stamping::OtherGateway);
                    (SourceTime { time, bound, sigma }, stamping)
                }
                None => {
                    count(&self.counters.undated, 1);
                    (SourceTime { time: arrived, bound: None, sigma: None }, Stamping::Arrival)
                }
            };
            let SiteAttachment { gid, sequence, .. } = site;
            self.publish(shared, inside, &Arrived { bytes: &bytes, source, stamping, gid, sequence });
        }
    }

    /// Payload and attachment; `None` of what is no sample.
    fn parts(&self, sample: &Sample) -> Option<Parts> {
        if sample.kind() != SampleKind::Put {
            return None;
        }
        if sample.payload().len() > SAMPLE_BYTES_MAX {
            count(&self.counters.too_large, 1);
            return None;
        }
        // Without an attachment as with one that is none.
        let attachment = sample.attachment().map(|bytes| bytes.to_bytes().into_owned()).unwrap_or_default();
        Some(Parts { bytes: sample.payload().to_bytes().into_owned(), attachment })
    }

    fn publish(&self, shared: &Shared, inside: &mut Inside, arrived: &Arrived<'_>) {
        let Arrived { bytes, source, stamping, gid, sequence } = *arrived;
        let Inside { publisher: topic, room_bytes, payload, last, .. } = inside;
        if !without_padding(bytes, payload) {
            return self.unreadable(shared);
        }
        if payload.len() > *room_bytes {
            let mut route = Route::clone(&self.route);
            route.qos.depth = route.qos.depth.min(DEPTH_LARGE);
            let room = payload.len().next_power_of_two();
            match publisher(&shared.node, &route, room) {
                Ok(wider) => (*topic, *room_bytes) = (wider, room),
                Err(why) => {
                    count(&self.counters.too_large, 1);
                    return shared.notice_once(&format!("topic {}: {why}", route.name.name));
                }
            }
        }
        if let Some(before) = last.get(&gid) {
            let missed = sequence.saturating_sub(*before).saturating_sub(1).max(0);
            count(&self.counters.missed, missed as u64);
        }
        if last.len() >= PUBLISHERS_MAX && !last.contains_key(&gid) {
            last.clear();
        }
        last.insert(gid, sequence);
        self.counters.stamped(stamping);
        match topic.publish_uncertain(payload, source) {
            Ok(()) => self.counters.passed(payload.len()),
            Err(_) => count(&self.counters.too_large, 1),
        }
    }

    fn unreadable(&self, shared: &Shared) {
        count(&self.counters.unreadable, 1);
        count(&shared.malformed, 1);
        shared.notice_once(&format!(
            "topic {}: a sample in Zenoh is none of ROS 2's (its attachment, or its bytes, which are no CDR of version 1); such samples are \
             counted and left out",
            self.route.name.name
        ));
    }
}

fn publisher(node: &Node, route: &Route, payload_bytes_max: usize) -> Result<Publisher, NodeError> {
    let mut qos = route.qos;
    if qos.durability == Durability::Volatile {
        qos.depth = DEPTH.min(qos.depth.max(8));
    }
    let builder = node.publisher(&route.name.name).type_name(&route.name.type_name, route.type_hash);
    let most = u32::try_from(payload_bytes_max).unwrap_or(u32::MAX);
    builder.format(Format::Cdr).qos(qos).payload_bytes_max(most).borrows(BORROWS).open()
}
