//! Samples from DDS to the bus: what the thread of their readers does with a topic's.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use noctule::{Durability, Format, Node, NodeError, Publisher};

use crate::counters::{RouteCounters, count};
use crate::cyclone::{Reader, SAMPLE_BYTES_MAX, Taken};
use crate::plan::Route;
use crate::reader_thread::Intake;
use crate::shared::Shared;
use noctule_bridge::ages::Now;
use noctule_bridge::payload::without_padding;

/// Longest sample that a topic of the bus is opened for, in bytes; a longer one opens it anew for twice as much.
const PAYLOAD_BYTES_FIRST: usize = 256 << 10;
/// HISTORY of a topic that was opened anew: ROS 2's default, for memory is taken by the longest sample.
const DEPTH_LARGE: u32 = 10;
/// Samples that the bus's readers on this host may borrow at once.
const BORROWS: u32 = 3;

/// A topic of DDS on the bus, whether it is read or not.
#[derive(Debug)]
pub(crate) struct Outlet {
    publisher: Publisher,
    room_bytes: usize,
}

impl Outlet {
    pub(crate) fn open(node: &Node, route: &Route) -> Result<Outlet, NodeError> {
        let publisher = publisher(node, route, PAYLOAD_BYTES_FIRST)?;
        Ok(Outlet { publisher, room_bytes: PAYLOAD_BYTES_FIRST })
    }

    /// Opens the topic anew for samples of this length, if need be.
    fn make_room(&mut self, node: &Node, route: &Route, bytes: usize) -> Result<(), NodeError> {
        if bytes <= self.room_bytes || bytes > SAMPLE_BYTES_MAX {
            return Ok(());
        }
        let mut route = route.clone();
        route.qos.depth = route.qos.depth.min(DEPTH_LARGE);
        self.room_bytes = bytes.next_power_of_two();
        self.publisher = publisher(node, &route, self.room_bytes)?;
        Ok(())
    }
}

fn publisher(node: &Node, route: &Route, payload_bytes_max: usize) -> Result<Publisher, NodeError> {
    let builder = node.publisher(&route.topic).type_name(&route.type_name, route.type_hash);
    let most = u32::try_from(payload_bytes_max).unwrap_or(u32::MAX);
    builder.format(Format::Cdr).qos(route.offered()).payload_bytes_max(most).borrows(BORROWS).open()
}

/// A topic that is read.
pub(crate) struct Passage {
    pub(crate) route: Arc<Route>,
    pub(crate) counters: Arc<RouteCounters>,
    pub(crate) reader: Reader,
    pub(crate) outlet: Arc<Mutex<Outlet>>,
}

impl Intake for Passage {
    fn reader(&self) -> &Reader {
        &self.reader
    }

    fn take(&mut self, _number: u32, shared: &Shared, payload: &mut Vec<u8>) {
        let Passage { route, counters, reader, outlet } = self;
        let before = reader.overwritten();
        let mut outlet = lock(outlet);
        let mut failed = None;
        let taken = reader.take(|sample| {
            if let Err(error) = outlet.make_room(&shared.node, route, sample.bytes.len()) {
                failed = Some(error.to_string());
            }
            if let Err(what) = publish((shared, route, counters), &mut outlet.publisher, &sample, payload) {
                failed = Some(what.to_owned());
            }
        });
        counters.missed.fetch_add(reader.overwritten() - before, Ordering::Relaxed);
        if let Some(what) = taken.err().map(|error| error.to_string()).or(failed) {
            drop(outlet);
            self.notice(shared, &what);
        }
    }

    fn notice(&self, shared: &Shared, text: &str) {
        shared.notice_once(&format!("topic {}: {text}", self.route.topic));
    }
}

fn publish(
    (shared, route, counters): (&Shared, &Route, &RouteCounters),
    publisher: &mut Publisher,
    sample: &Taken<'_>,
    payload: &mut Vec<u8>,
) -> Result<(), &'static str> {
    let is_here = match sample.participant {
        Some(participant) if shared.is_sibling_participant(&participant) => {
            count(&counters.ignored, 1);
            return Ok(());
        }
        Some(participant) => shared.is_here(&participant),
        None => false,
    };
    if !without_padding(sample.bytes, payload) {
        count(&counters.unreadable, 1);
        return Err("its samples in DDS are no CDR of version 1, which is all that the bus knows");
    }
    let has_history = route.qos.durability != Durability::Volatile;
    let now = Now::read(&shared.node);
    let (source, stamping) = now.source(Some(sample.stamp_ns), has_history, is_here);
    counters.stamped(stamping);
    match publisher.publish_uncertain(payload, source) {
        Ok(()) => counters.passed(payload.len()),
        Err(_) => count(&counters.too_large, 1),
    }
    Ok(())
}

fn lock(outlet: &Mutex<Outlet>) -> MutexGuard<'_, Outlet> {
    outlet.lock().unwrap_or_else(PoisonError::into_inner)
}
