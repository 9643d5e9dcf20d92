//! How one subscriber waits: it spins, sleeps on its rings, or reads the socket meanwhile.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant as Timer};

use noctule_sys::clock::now_ns;
use noctule_sys::shared_memory::{WAIT_ANY_MAX, futex_wait, futex_wait_any};

use super::{Source, Subscriber, Wait};
use crate::deadline::span;

/// Polls this long before it sleeps, in [`Wait::Hybrid`].
pub(super) const HYBRID_SPIN: Duration = Duration::from_micros(50);

/// Between two looks where the kernel cannot wait for all publishers at once.
pub(super) const LOOK_AGAIN: Duration = Duration::from_millis(1);

impl Subscriber {
    /// Waits up to `timeout` until there is a sample to take or a publisher came or went; false when the time is over. With
    /// `None` it may also return for no reason.
    pub fn wait(&mut self, timeout: Option<Duration>) -> bool {
        let mut end = None;
        while !self.has_news() {
            if !self.wait_until(timeout, &mut end) {
                return false;
            }
            if timeout.is_none() {
                break;
            }
        }
        true
    }

    /// One wait within `timeout`, which counts from the first call with the same `end`.
    pub(super) fn wait_until(&mut self, timeout: Option<Duration>, end: &mut Option<Timer>) -> bool {
        let Some(left) = left(timeout, end) else { return false };
        if self.shared.is_in_child() {
            return false;
        }
        if self.wait == Wait::Spin {
            if self.sources.list.iter().any(Source::is_on_socket) {
                self.shared.try_receive(&mut self.datagram);
            }
            std::hint::spin_loop();
        } else if self.wait == Wait::Block || !self.spin_for(HYBRID_SPIN) {
            self.block(left);
        }
        true
    }

    /// True as soon as there is something to look at.
    fn spin_for(&mut self, duration: Duration) -> bool {
        let end = Timer::now() + duration;
        let is_remote = self.sources.list.iter().any(Source::is_on_socket);
        while Timer::now() < end {
            if is_remote {
                self.shared.try_receive(&mut self.datagram);
            }
            let changed = self.topic.version.load(Ordering::Acquire) != self.version;
            if changed || self.sources.list.iter_mut().any(|source| source.reader.is_ready()) {
                return true;
            }
        }
        false
    }

    /// Sleeps until there is something to look at; reads the socket meanwhile if all comes from there.
    fn block(&mut self, timeout: Option<Duration>) {
        if !self.sources.list.iter().any(Source::is_on_socket) {
            return self.sleep(timeout);
        }
        let shared = Arc::clone(&self.shared);
        if self.sources.list.iter().all(Source::is_on_socket) {
            let Subscriber { topic, sources, datagram, version, .. } = self;
            let is_done = || {
                let changed = topic.version.load(Ordering::Acquire) != *version;
                changed || sources.list.iter_mut().any(|source| source.reader.is_ready())
            };
            if shared.receive_or_follow(timeout, datagram, is_done) {
                return;
            }
        }
        shared.follow(|| self.sleep(timeout));
    }

    /// Sleeps on the rings and on changes of the sources.
    fn sleep(&mut self, timeout: Option<Duration>) {
        match &mut self.sources.list[..] {
            [] => return futex_wait(&self.topic.version, self.version, timeout),
            [only] => {
                if let Some(expected) = only.reader.begin_wait() {
                    // A change after this look wakes again and again, see `is_behind`.
                    if self.topic.version.load(Ordering::Acquire) == self.version {
                        futex_wait(only.reader.futex_word(), expected, timeout);
                    }
                    only.reader.end_wait();
                }
                return;
            }
            _ => {}
        }
        let mut announced = 0;
        for source in &mut self.sources.list {
            announced += usize::from(source.announce_sleep());
        }
        if announced == self.sources.list.len() {
            let until_ns = timeout.map(|timeout| now_ns().saturating_add(span(timeout).ns()));
            // An array, for nothing is allocated on the way of a sample.
            let mut words = [(&self.topic.version, self.version); WAIT_ANY_MAX];
            let rings = self.sources.list.iter().map(|source| (source.reader.futex_word(), source.sleeps_on));
            words[1..].iter_mut().zip(rings).for_each(|(word, ring)| *word = ring);
            let words = words.get(..announced + 1);
            // More publishers than the kernel waits for at once, or an old kernel: look again soon.
            if words.is_none_or(|words| futex_wait_any(words, until_ns).is_err()) {
                futex_wait(&self.topic.version, self.version, Some(LOOK_AGAIN));
            }
        }
        self.sources.list.iter_mut().for_each(|source| source.reader.end_wait());
    }
}

/// Rest of `timeout`, which counts from the first call with the same `end`; `None` if it is over.
pub(super) fn left(timeout: Option<Duration>, end: &mut Option<Timer>) -> Option<Option<Duration>> {
    let Some(timeout) = timeout else { return Some(None) };
    let now = Timer::now();
    // So far away that the clock cannot represent it: for ever.
    let Some(this_end) = end.or_else(|| now.checked_add(timeout)) else { return Some(None) };
    *end = Some(this_end);
    this_end.checked_duration_since(now).filter(|left| !left.is_zero()).map(Some)
}
