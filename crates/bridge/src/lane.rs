//! A thread that passes what comes by the bus for many routes: topics or services.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread::{self, JoinHandle};

use noctule::{Wait, WaitSet, Waker};

use crate::orders::{ANSWERED_WITHIN, Order, Orders};

/// Routes of one thread: the kernel waits for 128 words at once, one for each route and each of its publishers.
const ROUTES_PER_THREAD: usize = 31;

/// One thread and the numbers of its routes; it ends when dropped.
#[derive(Debug)]
pub struct Lane<P> {
    numbers: BTreeSet<u32>,
    waker: Waker,
    orders: Arc<Orders<P>>,
    thread: Option<JoinHandle<()>>,
}

impl<P: Send + 'static> Lane<P> {
    /// Starts the thread: `work` does what it is ordered to until that is to end, and is woken from waits in its set by new orders.
    ///
    /// # Errors
    /// The system gives no more threads.
    pub fn start(
        name: &str,
        work: impl FnOnce(WaitSet, Arc<Orders<P>>) + Send + 'static,
    ) -> io::Result<Lane<P>> {
        let set = WaitSet::new(Wait::Block);
        let (waker, orders) = (set.waker(), Arc::<Orders<P>>::default());
        let theirs = Arc::clone(&orders);
        let thread = thread::Builder::new().name(name.to_owned());
        let thread = thread.spawn(move || work(set, theirs))?;
        Ok(Lane { numbers: BTreeSet::new(), waker, orders, thread: Some(thread) })
    }

    /// Whether it can take one more route.
    pub fn has_room(&self) -> bool {
        self.numbers.len() < ROUTES_PER_THREAD
    }

    /// Whether it has no routes.
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// Whether it has the route of this number.
    pub fn has(&self, number: u32) -> bool {
        self.numbers.contains(&number)
    }

    /// Handle that wakes the thread.
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Begins with a route, under a number that no other has.
    pub fn add(&mut self, number: u32, passed: P) {
        self.numbers.insert(number);
        self.order(Order::Start(number, passed));
    }

    /// Leaves off; nothing passes any more when this returns.
    pub fn stop(&mut self, number: u32) {
        let (answer, answered) = sync_channel(1);
        self.order(Order::Stop(number, answer));
        // Late only by a bug, which has been printed then.
        let _ = answered.recv_timeout(ANSWERED_WITHIN);
        self.numbers.remove(&number);
    }
}

impl<P> Lane<P> {
    fn order(&self, order: Order<P>) {
        self.orders.push(order);
        self.waker.wake();
    }
}

impl<P> Drop for Lane<P> {
    fn drop(&mut self) {
        self.order(Order::End);
        if let Some(thread) = self.thread.take() {
            // It panics only by a bug, which has been printed then.
            let _ = thread.join();
        }
    }
}
