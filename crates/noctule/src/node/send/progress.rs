//! Publishers that wait until nodes of other hosts have room for a sample, or have acknowledged all.
//!
//! A thread that wakes costs several microseconds, and a long sample is acknowledged a few dozen datagrams at a time: a publisher is woken when what it waits for is
//! so, not whenever something was acknowledged.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

use noctule_discovery::EndpointId;
use noctule_sys::clock::now_ns;

use super::Effort;
use crate::deadline::span;
use crate::node::Shared;
use crate::node::remote::Remote;
use crate::node::state::State;
use crate::node::waiters::Awaited;
use crate::shared_topic::PublishedTopic;

impl State {
    fn is_so(&mut self, awaited: Awaited) -> bool {
        match awaited {
            Awaited::Room(writer, bytes) => {
                // A publisher that has gone waits no longer.
                let topic = self.publishers.get(&writer).cloned();
                topic.is_none_or(|topic| self.has_room(&topic, bytes))
            }
            Awaited::Sent(writer) => !self.is_sending(writer),
        }
    }

    fn has_progressed(&mut self) -> bool {
        (0..self.waiters.awaited.len()).any(|at| self.is_so(self.waiters.awaited[at]))
    }
}

impl Shared {
    /// Waits until no node of another host has still to be sent samples of a writer or to acknowledge them; false if `timeout`
    /// was over first.
    pub(crate) fn wait_until_sent(&self, writer: EndpointId, timeout: Duration) -> bool {
        self.work(Effort::OneBatch, |state, _| state.remotes.values_mut().for_each(Remote::flush));
        self.wait_until(Awaited::Sent(writer), timeout)
    }

    /// As [`wait_until_sent`](Shared::wait_until_sent), for an endpoint that goes: not at all if this is the child of a fork or the node has ended, whose
    /// thread is what would go on sending.
    pub(crate) fn linger(&self, writer: EndpointId, timeout: Duration) {
        if !self.is_in_child() && !self.stop.load(Ordering::Acquire) {
            self.wait_until_sent(writer, timeout);
        }
    }

    /// Whether all nodes of other hosts that read a topic have room for a sample, none of the history given up.
    pub(crate) fn has_room(&self, topic: &PublishedTopic, payload_bytes: usize) -> bool {
        self.lock().has_room(topic, payload_bytes)
    }

    /// Waits until they have; false if `timeout` was over first.
    pub(crate) fn wait_for_room(&self, writer: EndpointId, payload_bytes: usize, timeout: Duration) -> bool {
        self.wait_until(Awaited::Room(writer, payload_bytes), timeout)
    }

    fn wait_until(&self, awaited: Awaited, timeout: Duration) -> bool {
        let end_ns = now_ns().saturating_add(span(timeout).ns());
        let mut state = self.lock();
        if state.is_so(awaited) {
            return true;
        }
        state.waiters.awaited.push(awaited);
        let is_so = loop {
            let left_ns = end_ns.saturating_sub(now_ns());
            if left_ns <= 0 {
                break false;
            }
            let left = Duration::from_nanos(left_ns.unsigned_abs());
            // A panic elsewhere must not stop the publishers of the whole process.
            (state, _) = self.progress.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner);
            if state.is_so(awaited) {
                break true;
            }
        };
        state.waiters.end(awaited);
        is_so
    }

    /// Something was sent or acknowledged: threads look again if what one of them waits for is so.
    pub(super) fn tell_progress(&self, state: &mut State) {
        if !state.waiters.awaited.is_empty() && state.has_progressed() {
            #[cfg(test)]
            {
                state.waiters.woken += 1;
            }
            self.progress.notify_all();
        }
    }
}
