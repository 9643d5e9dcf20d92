//! A file descriptor that is readable while a subscriber may have a sample: for poll, epoll and the event loops over them.
//!
//! Samples come through shared memory, of which the kernel knows nothing, and publishers must not pay for readers that use an event
//! loop. So a thread of the subscriber sleeps on the rings in its place, and writes to an eventfd. It is started with the descriptor, and
//! only sleeps while the subscriber has nothing to take.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Waker;
use std::thread::JoinHandle;

use noctule_shm_ring::Alarm;
use noctule_sys::shared_memory::{WAIT_ANY_MAX, futex_wait, futex_wait_any, futex_wake};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;

use super::Subscriber;
use super::waiting::LOOK_AGAIN;
use crate::node::Shared;
use crate::shared_topic::SubscribedTopic;

/// A file descriptor that becomes readable with the next sample.
#[derive(Debug)]
pub(super) struct Readiness {
    order: Arc<Order>,
    thread: Option<JoinHandle<()>>,
    /// While a bell sleeps for a subscriber, the node's thread reads the socket.
    node: Arc<Shared>,
    /// Looks that [`arm`](Subscriber::arm) has asked for since the subscriber last had nothing.
    looks: u32,
}

/// Order to the thread.
#[derive(Debug)]
struct Order {
    /// Counts orders, under the lock of `what`; the thread sleeps on it, too.
    version: AtomicU32,
    what: Mutex<What>,
    event: OwnedFd,
    /// Of a task that waits.
    waker: Mutex<Option<Waker>>,
}

#[derive(Debug)]
enum What {
    Rest,
    /// Sleep until one of these words has another value.
    Watch(Vec<(Alarm, u32)>, u32),
    End,
}

impl Readiness {
    fn new(topic: Arc<SubscribedTopic>, node: Arc<Shared>) -> io::Result<Readiness> {
        // Readable at first: the subscriber may have something.
        let event = eventfd(1, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let (version, waker) = (AtomicU32::new(0), Mutex::new(None));
        let order = Arc::new(Order { version, what: Mutex::new(What::Rest), event, waker });
        let its_order = Arc::clone(&order);
        let thread = std::thread::Builder::new().name("noctule-bell".into());
        let thread = thread.spawn(move || watch(&its_order, &topic.version))?;
        node.begin_following();
        Ok(Readiness { order, thread: Some(thread), node, looks: 0 })
    }

    pub(super) fn set_waker(&self, waker: &Waker) {
        *self.order.waker.lock().unwrap_or_else(PoisonError::into_inner) = Some(waker.clone());
    }
}

impl Order {
    fn give(&self, what: What) {
        let mut order = self.what.lock().unwrap_or_else(PoisonError::into_inner);
        *order = what;
        // With the order: a thread that took an order with the version before it would drop it as an old one.
        self.version.fetch_add(1, Ordering::Release);
        drop(order);
        futex_wake(&self.version);
    }

    /// Takes the order, with the version that it has as long as no other comes.
    fn next(&self) -> (What, u32) {
        let mut order = self.what.lock().unwrap_or_else(PoisonError::into_inner);
        (std::mem::replace(&mut *order, What::Rest), self.version.load(Ordering::Acquire))
    }

    fn ring(&self) {
        let _ = rustix::io::write(&self.event, &1u64.to_ne_bytes());
        let waker = self.waker.lock().unwrap_or_else(PoisonError::into_inner).take();
        waker.into_iter().for_each(Waker::wake);
    }

    fn clear(&self) {
        // Nothing to read means that it is clear.
        let _ = rustix::io::read(&self.event, &mut [0; 8]);
    }
}

impl Drop for Readiness {
    fn drop(&mut self) {
        self.order.give(What::End);
        if let Some(thread) = self.thread.take() {
            // It panics only by a bug, which has been printed then.
            let _ = thread.join();
        }
        self.node.end_following();
    }
}

/// The thread: sleeps in place of a subscriber.
fn watch(order: &Order, topic: &AtomicU32) {
    loop {
        let (what, version) = order.next();
        match what {
            What::End => return,
            What::Rest => futex_wait(&order.version, version, None),
            What::Watch(rings, topic_version) => {
                let words = [(&order.version, version), (topic, topic_version)];
                let rings = rings.iter().map(|(alarm, expected)| (alarm.futex_word(), *expected));
                let words: Vec<(&AtomicU32, u32)> = words.into_iter().chain(rings).collect();
                let has_changed =
                    |(word, expected): &(&AtomicU32, u32)| word.load(Ordering::Acquire) != *expected;
                while !words.iter().any(has_changed) {
                    // More publishers than the kernel waits for at once, or an old kernel: look again soon.
                    if words.len() > WAIT_ANY_MAX || futex_wait_any(&words, None).is_err() {
                        futex_wait(&order.version, version, Some(LOOK_AGAIN));
                    }
                }
                if words[1..].iter().any(has_changed) {
                    order.ring();
                }
            }
        }
    }
}

/// A subscriber that was left with something to take is looked at so often before it is left to its descriptor.
const LOOKS: u32 = 2;

impl Subscriber {
    /// A file descriptor that is readable while there may be a sample, for poll and epoll. When it is, take until
    /// [`take`](Subscriber::take) gives nothing, which makes it wait for the next; only the subscriber reads from it. The first call
    /// starts a thread, which sleeps as long as nothing comes. It is closed with the subscriber.
    ///
    /// # Errors
    /// The system gives no descriptor or no thread.
    pub fn descriptor(&mut self) -> io::Result<BorrowedFd<'_>> {
        let readiness = self.readiness()?;
        Ok(readiness.order.event.as_fd())
    }

    pub(super) fn readiness(&mut self) -> io::Result<&mut Readiness> {
        if self.readiness.is_none() {
            self.readiness = Some(Readiness::new(Arc::clone(&self.topic), Arc::clone(&self.shared))?);
        }
        self.readiness.as_mut().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Nothing is there to take: leaves the waiting to the bell. True if something has come meanwhile.
    #[cold]
    pub(super) fn arm(&mut self) -> bool {
        let Some(readiness) = &mut self.readiness else { return false };
        readiness.order.clear();
        let mut rings = Vec::with_capacity(self.sources.list.len());
        // One that follows another is not read yet.
        for source in self.sources.list.iter_mut().filter(|source| !source.is_next()) {
            match source.reader.begin_wait() {
                Some(expected) => rings.push((source.reader.alarm(), expected)),
                None => break,
            }
        }
        let has_all = rings.len() == self.sources.list.iter().filter(|source| !source.is_next()).count();
        let has_changed = self.topic.version.load(Ordering::Acquire) != self.version;
        if has_all && !has_changed {
            readiness.looks = 0;
            readiness.order.give(What::Watch(rings, self.version));
            return false;
        }
        // What is left after the next sample must ring again.
        readiness.order.ring();
        readiness.looks += 1;
        let looks_again = readiness.looks < LOOKS;
        readiness.looks *= u32::from(looks_again);
        if has_changed {
            self.take_changes();
        }
        looks_again
    }
}

#[cfg(test)]
mod tests {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    use super::*;

    /// The next order often comes while the thread goes back for it: none may be lost there.
    #[test]
    fn an_order_that_comes_while_the_thread_goes_back_for_it_is_obeyed() {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).expect("a descriptor");
        let (version, waker, what) = (AtomicU32::new(0), Mutex::new(None), Mutex::new(What::Rest));
        let order = Order { version, what, event, waker };
        let topic = AtomicU32::new(0);
        let timeout = Timespec { tv_sec: 10, tv_nsec: 0 };
        std::thread::scope(|scope| {
            scope.spawn(|| watch(&order, &topic));
            let is_obeyed = (0..100_000).all(|round| {
                order.clear();
                order.give(What::Watch(Vec::new(), round));
                topic.fetch_add(1, Ordering::Release);
                futex_wake(&topic);
                // Looks first, as it comes back quicker than the thread then.
                (0..2_000).any(|_| rustix::io::read(&order.event, &mut [0; 8]).is_ok())
                    || poll(&mut [PollFd::new(&order.event, PollFlags::IN)], Some(&timeout)) == Ok(1)
            });
            order.give(What::End);
            assert!(is_obeyed, "a thread that was to watch sleeps");
        });
    }
}
