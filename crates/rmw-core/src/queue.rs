//! Queue of samples that a reader has received and not taken yet.

use std::collections::VecDeque;
use std::sync::Mutex;

use crate::signal::{Waitable, lock};

/// Samples that a reader keeps with KEEP_ALL; beyond that the oldest is dropped.
pub const KEEP_ALL_SAMPLES_MAX: usize = 10_000;
/// Bytes that a reader keeps at most, whatever its HISTORY; one sample is always kept.
pub const KEPT_BYTES_MAX: usize = 256 << 20;

/// HISTORY of a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum History {
    /// So many of the newest, at least 1.
    KeepLast(usize),
    /// All, up to [`KEEP_ALL_SAMPLES_MAX`].
    KeepAll,
}

/// A queue of bounded length and size.
#[derive(Debug)]
pub struct Queue<T> {
    waiting: VecDeque<(T, usize)>,
    bytes: usize,
    samples_max: usize,
    bytes_max: usize,
    overwritten: u64,
}

impl<T> Queue<T> {
    /// An empty one.
    pub fn new(history: History) -> Queue<T> {
        let samples_max = match history {
            History::KeepLast(depth) => depth.max(1),
            History::KeepAll => KEEP_ALL_SAMPLES_MAX,
        };
        Queue { waiting: VecDeque::new(), bytes: 0, samples_max, bytes_max: KEPT_BYTES_MAX, overwritten: 0 }
    }

    /// Puts a sample of so many bytes in; tells how many older ones gave way.
    pub fn push(&mut self, sample: T, bytes: usize) -> usize {
        let mut gone = 0;
        while !self.waiting.is_empty()
            && (self.waiting.len() >= self.samples_max || self.bytes + bytes > self.bytes_max)
        {
            self.pop();
            gone += 1;
        }
        self.waiting.push_back((sample, bytes));
        self.bytes += bytes;
        self.overwritten += gone as u64;
        gone
    }

    /// Takes the oldest sample.
    pub fn pop(&mut self) -> Option<T> {
        let (sample, bytes) = self.waiting.pop_front()?;
        self.bytes -= bytes;
        Some(sample)
    }

    /// Samples that gave way before they were taken.
    pub fn overwritten(&self) -> u64 {
        self.overwritten
    }
}

/// A queue that one thread fills and others wait for.
#[derive(Debug)]
pub(crate) struct Inbox<T> {
    queue: Mutex<Queue<T>>,
    waitable: Waitable,
}

impl<T> Inbox<T> {
    pub(crate) fn new(history: History) -> Inbox<T> {
        Inbox { queue: Mutex::new(Queue::new(history)), waitable: Waitable::default() }
    }

    /// Puts something of so many bytes in, and wakes the threads that wait.
    pub(crate) fn push(&self, item: T, bytes: usize) {
        let mut queue = lock(&self.queue);
        queue.push(item, bytes);
        self.waitable.hold(queue.waiting.len());
        drop(queue);
        self.waitable.ring(1);
    }

    /// Takes the oldest sample.
    pub(crate) fn take(&self) -> Option<T> {
        let mut queue = lock(&self.queue);
        let item = queue.pop();
        self.waitable.hold(queue.waiting.len());
        item
    }

    /// Rings when there is something.
    pub(crate) fn waitable(&self) -> &Waitable {
        &self.waitable
    }

    /// Samples that were overwritten before they were taken.
    pub(crate) fn overwritten(&self) -> u64 {
        lock(&self.queue).overwritten()
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// Pushes beside takes; a count that was set after the lock was released failed in each of ten runs.
    const PASSES: usize = 1_000_000;

    #[test]
    fn a_thread_that_has_the_lock_finds_the_count_of_what_is_there() {
        let inbox = Inbox::new(History::KeepAll);
        thread::scope(|scope| {
            scope.spawn(|| (0..PASSES).for_each(|number| inbox.push(number, 0)));
            scope.spawn(|| {
                let mut last = None;
                while last != Some(PASSES - 1) {
                    last = inbox.take().or(last);
                    let queue = lock(&inbox.queue);
                    assert_eq!(inbox.waitable().is_ready(), !queue.waiting.is_empty());
                }
            });
        });
    }

    #[test]
    fn an_inbox_is_ready_as_long_as_something_is_in_it_and_counts_what_gave_way() {
        let inbox = Inbox::new(History::KeepLast(2));
        (1..=3).for_each(|number| inbox.push(number, 1));
        assert_eq!((inbox.take(), inbox.waitable().is_ready()), (Some(2), true));
        assert_eq!((inbox.take(), inbox.waitable().is_ready()), (Some(3), false));
        assert_eq!((inbox.take(), inbox.overwritten()), (None, 1));
    }

    #[test]
    fn the_newest_stay_in_order() {
        let mut queue = Queue::new(History::KeepLast(2));
        assert_eq!((queue.push(1, 10), queue.push(2, 10), queue.push(3, 10)), (0, 0, 1));
        assert_eq!((queue.pop(), queue.pop(), queue.pop()), (Some(2), Some(3), None));
        assert_eq!((queue.overwritten(), queue.bytes), (1, 0));
    }

    #[test]
    fn all_are_kept_up_to_the_limits() {
        let mut queue = Queue::new(History::KeepAll);
        (0..KEEP_ALL_SAMPLES_MAX).for_each(|number| assert_eq!(queue.push(number, 1), 0));
        assert_eq!(queue.push(KEEP_ALL_SAMPLES_MAX, 1), 1);
        let mut queue = Queue::new(History::KeepAll);
        queue.push(1, KEPT_BYTES_MAX - 1);
        assert_eq!(queue.push(2, 1), 0);
        assert_eq!(queue.push(3, KEPT_BYTES_MAX + 1), 2);
        assert_eq!((queue.pop(), queue.pop()), (Some(3), None));
    }
}
