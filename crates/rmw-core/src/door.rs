//! Where the hub gets its orders, and what it has to serve.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, OnceLock};
use std::thread::ThreadId;
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

/// Where the hub gets its orders.
pub(crate) struct Door {
    /// `None`: the hub has ended.
    orders: Mutex<Option<VecDeque<Order>>>,
    must_look: AtomicBool,
    waker: Waker,
    thread: OnceLock<ThreadId>,
}

pub(crate) enum Order {
    Add(u64, Box<dyn Task>),
    Remove(u64, Sender<()>),
    Request { number: u64, sequence: i64, bytes: Vec<u8> },
    Reply { number: u64, id: RequestId, bytes: Vec<u8> },
    Stop,
}

impl Door {
    pub(crate) fn new(waker: Waker) -> Door {
        Door {
            orders: Mutex::new(Some(VecDeque::new())),
            must_look: AtomicBool::new(false),
            waker,
            thread: OnceLock::new(),
        }
    }

    /// The thread behind it.
    pub(crate) fn set_hub(&self, thread: ThreadId) {
        let _ = self.thread.set(thread);
    }

    /// The next order.
    pub(crate) fn next(&self) -> Option<Order> {
        lock(&self.orders).as_mut().and_then(VecDeque::pop_front)
    }

    /// Closes the queue when the hub ends: later orders are dropped.
    pub(crate) fn shut(&self) {
        *lock(&self.orders) = None;
    }

    /// Whether partners may have come or gone since the last time.
    pub(crate) fn takes_look(&self) -> bool {
        self.must_look.swap(false, Ordering::AcqRel)
    }

    pub(crate) fn add(&self, number: u64, task: Box<dyn Task>) {
        self.order(Order::Add(number, task));
        self.look();
    }

    /// Returns when it is closed: then nothing comes from it any more.
    pub(crate) fn remove(&self, number: u64) {
        let (done, wait) = channel();
        self.order(Order::Remove(number, done));
        if !self.is_hub() {
            // The hub may have ended with its context.
            let _ = wait.recv();
        }
    }

    pub(crate) fn request(&self, number: u64, sequence: i64, bytes: Vec<u8>) {
        self.order(Order::Request { number, sequence, bytes });
    }

    pub(crate) fn reply(&self, number: u64, id: RequestId, bytes: Vec<u8>) {
        self.order(Order::Reply { number, id, bytes });
    }

    /// Partners may have come or gone.
    pub(crate) fn look(&self) {
        if !self.must_look.swap(true, Ordering::AcqRel) {
            self.waker.wake();
        }
    }

    pub(crate) fn order(&self, order: Order) {
        // An order after the end is dropped; a thread that waits for its result sees that.
        if let Some(orders) = &mut *lock(&self.orders) {
            orders.push_back(order);
        }
        self.waker.wake();
    }

    pub(crate) fn is_hub(&self) -> bool {
        self.thread.get() == Some(&std::thread::current().id())
    }
}

impl fmt::Debug for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Door")
    }
}
