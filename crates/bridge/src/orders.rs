//! Orders of the planning thread to a thread that passes samples.

use std::collections::VecDeque;
use std::sync::mpsc::SyncSender;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// A thread that passes samples answers within this time, unless it is gone by a bug.
pub const ANSWERED_WITHIN: Duration = Duration::from_secs(10);

/// An order.
#[derive(Debug)]
pub enum Order<P> {
    /// Pass samples of this route, too, under a number that no other has.
    Start(u32, P),
    /// Leave off, and answer when nothing more passes.
    Stop(u32, SyncSender<()>),
    /// End.
    End,
}

/// Orders that wait; at most as many as there are routes, for each waits for its answer or for the thread's end.
#[derive(Debug)]
pub struct Orders<P>(Mutex<VecDeque<Order<P>>>);

impl<P> Default for Orders<P> {
    fn default() -> Orders<P> {
        Orders(Mutex::default())
    }
}

impl<P> Orders<P> {
    /// Behind those that wait.
    pub fn push(&self, order: Order<P>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_back(order);
    }

    /// The one that waits longest.
    pub fn pop(&self) -> Option<Order<P>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}
