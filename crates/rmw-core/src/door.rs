//! Where the lanes of a hub get their orders, and what they have to serve.
//!
//! A lane is a thread that waits for as many rings as the kernel waits for at once. One that has more gives some of its tasks to a new one:
//! otherwise it would have to look at all of them again and again.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::thread::{JoinHandle, ThreadId};
use std::time::Duration;

use noctule::request::RequestId;
use noctule::{Subscriber, Waker};

use crate::signal::lock;
use crate::status::Statuses;

/// Something that receives.
pub(crate) trait Task: AsMut<Subscriber> + Send {
    /// Takes what is there. False: its node goes on in another process, or on another machine, and nothing comes here any more.
    fn drain(&mut self) -> bool;

    /// Partners may have come or gone.
    fn look(&mut self);

    /// Does what is due though nothing came; false as for [`drain`](Task::drain).
    fn tend(&mut self) -> bool {
        true
    }

    /// When something is due though nothing comes.
    fn next_due(&self) -> Option<Duration> {
        None
    }

    /// Sends a request.
    fn request(&mut self, _sequence: i64, _bytes: &[u8]) {}

    /// Answers one.
    fn reply(&mut self, _id: RequestId, _bytes: &[u8]) {}

    /// Its events, if it has any.
    fn statuses(&self) -> Option<&Statuses> {
        None
    }
}

/// Lanes of one context; beyond, a lane looks at its tasks again and again.
const LANES_MAX: usize = 64;

/// Starts a lane, the first or another.
pub(crate) type Start =
    Box<dyn Fn(Arc<Door>, usize) -> io::Result<(Arc<LaneDoor>, JoinHandle<()>)> + Send + Sync>;

/// A task and its number.
pub(crate) struct Numbered {
    pub(crate) number: u64,
    pub(crate) task: Box<dyn Task>,
}

/// Where one lane gets its orders.
pub(crate) struct LaneDoor {
    /// `None`: the lane has ended.
    orders: Mutex<Option<VecDeque<Order>>>,
    must_look: AtomicBool,
    waker: Waker,
    thread: OnceLock<ThreadId>,
}

pub(crate) enum Order {
    Add(Numbered),
    Remove(u64, Sender<()>),
    Request { number: u64, sequence: i64, bytes: Vec<u8> },
    Reply { number: u64, id: RequestId, bytes: Vec<u8> },
    Stop,
}

impl Order {
    /// The task that it is for.
    fn number(&self) -> Option<u64> {
        match self {
            Order::Add(Numbered { number, .. })
            | Order::Remove(number, _)
            | Order::Request { number, .. }
            | Order::Reply { number, .. } => Some(*number),
            Order::Stop => None,
        }
    }
}

impl LaneDoor {
    pub(crate) fn new(waker: Waker) -> LaneDoor {
        LaneDoor {
            orders: Mutex::new(Some(VecDeque::new())),
            must_look: AtomicBool::new(false),
            waker,
            thread: OnceLock::new(),
        }
    }

    /// The thread behind it.
    pub(crate) fn set_thread(&self, thread: ThreadId) {
        let _ = self.thread.set(thread);
    }

    /// The next order.
    pub(crate) fn next(&self) -> Option<Order> {
        lock(&self.orders).as_mut().and_then(VecDeque::pop_front)
    }

    /// The lane has ended: orders are refused from now on.
    pub(crate) fn shut(&self) {
        let left = lock(&self.orders).take();
        // Not under the lock: what is dropped may give orders.
        drop(left);
    }

    /// Whether partners may have come or gone since the last time.
    pub(crate) fn takes_look(&self) -> bool {
        self.must_look.swap(false, Ordering::AcqRel)
    }

    fn look(&self) {
        if !self.must_look.swap(true, Ordering::AcqRel) {
            self.waker.wake();
        }
    }

    /// Gives the order back if the lane has ended. A thread that waits for its result is released when it is dropped.
    fn order(&self, order: Order) -> Option<Order> {
        match &mut *lock(&self.orders) {
            Some(orders) => orders.push_back(order),
            None => return Some(order),
        }
        self.waker.wake();
        None
    }

    fn is_current(&self) -> bool {
        self.thread.get() == Some(&std::thread::current().id())
    }
}

/// Where the lanes of a context get their orders.
pub(crate) struct Door {
    own: Weak<Door>,
    start: Start,
    lanes: Mutex<Lanes>,
}

#[derive(Default)]
struct Lanes {
    open: Vec<Lane>,
    /// The lane of each task.
    homes: BTreeMap<u64, usize>,
    has_ended: bool,
}

struct Lane {
    door: Arc<LaneDoor>,
    thread: Option<JoinHandle<()>>,
    tasks: usize,
}

impl Lanes {
    /// To the lane of its task. Gives back an order whose lane has ended: it must be dropped without the lock, for that may give orders.
    fn order(&mut self, order: Order) -> Option<Order> {
        let home = order.number().and_then(|number| self.homes.get(&number).copied());
        match home.and_then(|at| self.open.get(at)).filter(|_| !self.has_ended) {
            Some(lane) => lane.door.order(order),
            None => Some(order),
        }
    }

    fn settle(&mut self, task: Numbered, at: usize) -> Option<Order> {
        self.homes.insert(task.number, at);
        self.open[at].tasks += 1;
        self.order(Order::Add(task))
    }

    fn leave(&mut self, number: u64) {
        if let Some(at) = self.homes.remove(&number) {
            self.open[at].tasks -= 1;
        }
    }
}

impl Door {
    /// With its first lane.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(crate) fn open(start: Start) -> io::Result<Arc<Door>> {
        let door = Arc::new_cyclic(|own| Door { own: own.clone(), start, lanes: Mutex::default() });
        door.start_lane(&mut lock(&door.lanes))?;
        Ok(door)
    }

    fn start_lane(&self, lanes: &mut Lanes) -> io::Result<usize> {
        let own = self.own.upgrade().filter(|_| lanes.open.len() < LANES_MAX && !lanes.has_ended);
        let own = own.ok_or(io::ErrorKind::QuotaExceeded)?;
        let at = lanes.open.len();
        let (door, thread) = (self.start)(own, at)?;
        lanes.open.push(Lane { door, thread: Some(thread), tasks: 0 });
        Ok(at)
    }

    /// To the lane that has the fewest tasks.
    pub(crate) fn add(&self, number: u64, task: Box<dyn Task>) {
        let mut lanes = lock(&self.lanes);
        let at = (0..lanes.open.len()).min_by_key(|at| lanes.open[*at].tasks).unwrap_or_default();
        let refused = lanes.settle(Numbered { number, task }, at);
        drop(lanes);
        drop(refused);
        self.look();
    }

    /// Gives tasks of a lane to a new one; gives them back if there is none.
    pub(crate) fn divide(&self, surplus: Vec<Numbered>) -> Vec<Numbered> {
        let mut lanes = lock(&self.lanes);
        let Ok(at) = self.start_lane(&mut lanes) else { return surplus };
        let mut refused = Vec::new();
        for task in surplus {
            lanes.leave(task.number);
            refused.extend(lanes.settle(task, at));
        }
        lanes.open[at].door.look();
        drop(lanes);
        drop(refused);
        Vec::new()
    }

    /// Returns when it is closed: then nothing comes from it any more.
    pub(crate) fn remove(&self, number: u64) {
        let (done, wait) = channel();
        self.order(Order::Remove(number, done));
        // A lane waits for none: the other one might wait for it.
        if !self.is_lane() {
            // The lane may have ended with its context.
            let _ = wait.recv();
        }
    }

    /// A task is in no lane any more.
    pub(crate) fn forget(&self, number: u64) {
        lock(&self.lanes).leave(number);
    }

    pub(crate) fn request(&self, number: u64, sequence: i64, bytes: Vec<u8>) {
        self.order(Order::Request { number, sequence, bytes });
    }

    pub(crate) fn reply(&self, number: u64, id: RequestId, bytes: Vec<u8>) {
        self.order(Order::Reply { number, id, bytes });
    }

    /// Partners may have come or gone.
    pub(crate) fn look(&self) {
        lock(&self.lanes).open.iter().for_each(|lane| lane.door.look());
    }

    /// To the lane that has its task now; what is for a task that is gone is dropped, which a thread that waits for it learns.
    pub(crate) fn order(&self, order: Order) {
        let refused = lock(&self.lanes).order(order);
        drop(refused);
    }

    /// Ends all lanes, and waits for them unless it is one itself.
    pub(crate) fn end(&self) {
        let mut lanes = lock(&self.lanes);
        lanes.has_ended = true;
        let refused: Vec<_> = lanes.open.iter().map(|lane| lane.door.order(Order::Stop)).collect();
        let threads: Vec<_> = lanes.open.iter_mut().filter_map(|lane| lane.thread.take()).collect();
        drop(lanes);
        drop(refused);
        let own = std::thread::current().id();
        for thread in threads.into_iter().filter(|thread| thread.thread().id() != own) {
            // It panics only by a bug, which has been printed then.
            let _ = thread.join();
        }
    }

    /// How many lanes there are.
    #[cfg(test)]
    pub(crate) fn lanes(&self) -> usize {
        lock(&self.lanes).open.len()
    }

    fn is_lane(&self) -> bool {
        lock(&self.lanes).open.iter().any(|lane| lane.door.is_current())
    }
}

impl fmt::Debug for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Door")
    }
}
