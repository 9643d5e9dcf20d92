//! Samples from DDS to the bus: one thread, which waits for the readers of all topics at once and takes from each that has
//! something in turn.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use noctule::{Durability, Format, Node, NodeError, Publisher};

use crate::ages::Now;
use crate::counters::{Counters, count};
use crate::cyclone::{Reader, ReaderSet, SAMPLE_BYTES_MAX, Taken};
use crate::orders::{ANSWERED_WITHIN, Order, Orders};
use crate::payload::without_padding;
use crate::plan::Route;
use crate::shared::{RouteError, Shared};

/// The wait ends at the latest after this time; orders end it at once.
const WAIT: Duration = Duration::from_secs(3600);
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
    pub(crate) counters: Arc<Counters>,
    pub(crate) reader: Reader,
    pub(crate) outlet: Arc<Mutex<Outlet>>,
}

/// The thread; ends when dropped.
pub(crate) struct FromDds {
    set: Arc<ReaderSet>,
    orders: Arc<Orders<Passage>>,
    thread: Option<JoinHandle<()>>,
}

impl FromDds {
    pub(crate) fn start(shared: &Arc<Shared>) -> Result<FromDds, RouteError> {
        let set = Arc::new(shared.participant.reader_set()?);
        let orders = Arc::<Orders<Passage>>::default();
        let mut work = Work {
            shared: Arc::clone(shared),
            set: Arc::clone(&set),
            orders: Arc::clone(&orders),
            passages: BTreeMap::new(),
            payload: Vec::new(),
        };
        let thread = thread::Builder::new().name("noctule-dds-in".to_owned());
        let thread = thread.spawn(move || work.run()).map_err(RouteError::System)?;
        Ok(FromDds { set, orders, thread: Some(thread) })
    }

    pub(crate) fn add(&self, number: u32, passage: Passage) {
        self.orders.push(Order::Start(number, passage));
        self.set.wake();
    }

    /// Leaves off; nothing passes any more when this returns.
    pub(crate) fn stop(&self, number: u32) {
        let (answer, answered) = sync_channel(1);
        self.orders.push(Order::Stop(number, answer));
        self.set.wake();
        // Late only by a bug, which has been printed then.
        let _ = answered.recv_timeout(ANSWERED_WITHIN);
    }
}

impl Drop for FromDds {
    fn drop(&mut self) {
        self.orders.push(Order::End);
        self.set.wake();
        if let Some(thread) = self.thread.take() {
            // It panics only by a bug, which has been printed then.
            let _ = thread.join();
        }
    }
}

/// What the thread works with.
struct Work {
    shared: Arc<Shared>,
    set: Arc<ReaderSet>,
    orders: Arc<Orders<Passage>>,
    passages: BTreeMap<u32, Passage>,
    payload: Vec<u8>,
}

impl Work {
    fn run(&mut self) {
        let mut ready = Vec::new();
        loop {
            self.set.wait(self.passages.len(), WAIT, &mut ready);
            while let Some(order) = self.orders.pop() {
                match order {
                    Order::Start(number, passage) => match self.set.add(&passage.reader, number) {
                        Ok(()) => _ = self.passages.insert(number, passage),
                        Err(error) => passage.notice(&self.shared, &error.to_string()),
                    },
                    Order::Stop(number, answer) => {
                        self.passages.remove(&number);
                        // Nobody may wait any more.
                        let _ = answer.try_send(());
                    }
                    Order::End => return,
                }
            }
            for number in &ready {
                if let Some(passage) = self.passages.get_mut(number) {
                    passage.pass(&self.shared, &mut self.payload);
                }
            }
        }
    }
}

impl Passage {
    /// Hands on what is there, up to as much as is taken at once: then it is another's turn.
    fn pass(&mut self, shared: &Shared, payload: &mut Vec<u8>) {
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
    (shared, route, counters): (&Shared, &Route, &Counters),
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
