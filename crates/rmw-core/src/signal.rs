//! Waiting for many things from many threads.
//!
//! A [`Waitable`] counts things that have come and that no thread has taken yet. A thread that waits has a [`Signal`] and leaves
//! it at each of its waitables before it looks, so that nothing between the look and the sleep is lost; a waitable may have
//! any number of them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Called with how many things have come.
pub type Listener = Box<dyn Fn(usize) + Send>;

/// Wakes one thread.
#[derive(Debug, Default)]
pub struct Signal {
    is_raised: Mutex<bool>,
    raised: Condvar,
}

/// Something that can be waited for.
#[derive(Default)]
pub struct Waitable {
    pending: AtomicUsize,
    waiting: Mutex<Vec<Arc<Signal>>>,
    notified: Mutex<Notified>,
}

#[derive(Default)]
struct Notified {
    listener: Option<Listener>,
    /// Came while there was no listener.
    unheard: usize,
}

impl Signal {
    fn raise(&self) {
        *lock(&self.is_raised) = true;
        self.raised.notify_one();
    }

    /// Sleeps until it is raised; `None` sleeps for ever. False when the time is over.
    fn sleep(&self, until: Option<Instant>) -> bool {
        let mut is_raised = lock(&self.is_raised);
        while !*is_raised {
            let Some(until) = until else {
                is_raised = self.raised.wait(is_raised).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let woken = self.raised.wait_timeout(is_raised, left);
            is_raised = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        *is_raised = false;
        true
    }
}

impl Waitable {
    /// Something is there, however much of it.
    pub fn set(&self) {
        self.pending.store(1, Ordering::Release);
        self.ring(1);
    }

    /// So many things are there now. Their owner calls it under the lock that guards them, so that the number is always theirs; after an
    /// arrival [`ring`](Waitable::ring) follows without that lock, for a listener may take.
    pub(crate) fn hold(&self, count: usize) {
        self.pending.store(count, Ordering::Release);
    }

    /// Whether something was there; now nothing is.
    pub fn clear(&self) -> bool {
        self.pending.swap(0, Ordering::AcqRel) > 0
    }

    /// Whether its count is not zero.
    pub fn is_ready(&self) -> bool {
        self.pending.load(Ordering::Acquire) > 0
    }

    /// Calls `listener` with what comes from now on, and at once with what came while there was no listener. `None`: no listener.
    pub fn listen(&self, listener: Option<Listener>) {
        let mut notified = lock(&self.notified);
        if let Some(listener) = &listener
            && notified.unheard > 0
        {
            listener(std::mem::take(&mut notified.unheard));
        }
        notified.listener = listener;
    }

    /// Wakes the threads that wait: so many things have come.
    pub(crate) fn ring(&self, count: usize) {
        for signal in &*lock(&self.waiting) {
            signal.raise();
        }
        let mut notified = lock(&self.notified);
        match &notified.listener {
            Some(listener) => listener(count),
            None => notified.unheard = notified.unheard.saturating_add(count),
        }
    }
}

/// Waits until one of `waitables` is ready, at most for `timeout`; `None` waits for ever. False when the time is over.
pub fn wait(signal: &Arc<Signal>, waitables: &[&Waitable], timeout: Option<Duration>) -> bool {
    let is_ready = || waitables.iter().any(|waitable| waitable.is_ready());
    if is_ready() {
        return true;
    }
    let until = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    if timeout == Some(Duration::ZERO) {
        return false;
    }
    *lock(&signal.is_raised) = false;
    waitables.iter().for_each(|waitable| lock(&waitable.waiting).push(Arc::clone(signal)));
    let found = loop {
        if is_ready() {
            break true;
        }
        if !signal.sleep(until) {
            break is_ready();
        }
    };
    for waitable in waitables {
        lock(&waitable.waiting).retain(|waiting| !Arc::ptr_eq(waiting, signal));
    }
    found
}

impl std::fmt::Debug for Waitable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Waitable").field("pending", &self.pending).finish_non_exhaustive()
    }
}

/// A panic elsewhere must not stop the rest of the process.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    #[test]
    fn what_is_there_is_found_at_once_and_stays_until_it_is_taken() {
        let signal = Arc::default();
        let (one, two) = (Waitable::default(), Waitable::default());
        assert!(!wait(&signal, &[&one, &two], Some(Duration::ZERO)));
        two.hold(2);
        assert!(wait(&signal, &[&one, &two], None) && !one.is_ready());
        two.hold(1);
        assert!(wait(&signal, &[&one, &two], None));
        two.hold(0);
        assert!(!wait(&signal, &[&one, &two], Some(Duration::from_millis(1))));
        one.set();
        one.set();
        assert!(one.clear() && !one.clear());
    }

    #[test]
    fn two_threads_that_wait_for_the_same_are_both_woken() {
        let shared = Arc::new(Waitable::default());
        let (send, woken) = mpsc::channel();
        for _ in 0..2 {
            let (shared, send) = (Arc::clone(&shared), send.clone());
            thread::spawn(move || send.send(wait(&Arc::default(), &[&shared], None)));
        }
        shared.set();
        assert_eq!(woken.recv(), Ok(true));
        assert_eq!(woken.recv(), Ok(true));
        assert!(lock(&shared.waiting).is_empty());
    }

    #[test]
    fn a_listener_hears_what_came_before_it_listened() {
        let waitable = Waitable::default();
        waitable.ring(3);
        waitable.ring(1);
        let (send, heard) = mpsc::channel();
        waitable.listen(Some(Box::new(move |count| _ = send.send(count))));
        waitable.ring(2);
        waitable.listen(None);
        waitable.ring(1);
        assert_eq!(heard.iter().collect::<Vec<_>>(), [4, 2]);
    }
}
