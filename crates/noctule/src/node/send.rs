//! Samples of this node's publishers on their way to other hosts.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use noctule_discovery::{EndpointId, NodeId};
use noctule_prrt::Outgoing;
use noctule_shm_ring::Origin;
use noctule_sys::clock::now_ns;
use noctule_time_sync::Local;
use noctule_timebase::Instant;

use super::Shared;
use super::audience::Audience;
use super::offer::Past;
use super::remote::outgoing;
use super::state::State;
use crate::clock::{self, Raw};
use crate::notice::Notice;
use crate::publisher::{PublishedTopic, span};

impl Shared {
    /// A sample for readers on other hosts.
    pub(crate) fn send(&self, topic: &PublishedTopic, numbered: (u64, Origin), payload: &[u8]) {
        // Copied before the lock is taken, once for all readers.
        let payload: Arc<[u8]> = Arc::from(payload);
        let sample = outgoing(topic, numbered, &payload, self.clock.now());
        let mut state = self.lock();
        let now = clock::now();
        self.relieve(&mut state, now);
        state.send(topic.id, &sample, &payload, now);
        self.transmit(&mut state);
        self.alarm.set_by(state.poll_timeout(now));
    }

    /// Waits until no node of another host has still to be sent samples of a writer or to acknowledge them; false if `timeout`
    /// was over first.
    pub(crate) fn wait_until_sent(&self, writer: EndpointId, timeout: Duration) -> bool {
        let end_ns = now_ns().saturating_add(span(timeout).ns());
        self.waiting_for_progress.fetch_add(1, Ordering::SeqCst);
        let mut state = self.lock();
        let is_sent = loop {
            if !state.is_sending(writer) {
                break true;
            }
            let left_ns = end_ns.saturating_sub(now_ns());
            if left_ns <= 0 {
                break false;
            }
            let left = Duration::from_nanos(left_ns.unsigned_abs());
            state = match self.progress.wait_timeout(state, left) {
                Ok((state, _)) => state,
                // A panic elsewhere must not stop the publishers of the whole process.
                Err(poisoned) => poisoned.into_inner().0,
            };
        };
        drop(state);
        self.waiting_for_progress.fetch_sub(1, Ordering::SeqCst);
        is_sent
    }

    /// Something was acknowledged or sent: whoever waits for that looks again.
    pub(super) fn tell_progress(&self) {
        if self.waiting_for_progress.load(Ordering::SeqCst) > 0 {
            self.progress.notify_all();
        }
    }
}

impl State {
    /// A sample of one of our publishers for the nodes of other hosts that read it; `payload` holds its bytes.
    pub(super) fn send(
        &mut self,
        writer: EndpointId,
        sample: &Outgoing<'_>,
        payload: &Arc<[u8]>,
        now: Instant<Raw>,
    ) {
        let to_group = self.groups.send(writer, sample, now);
        for node in self.audiences.get(&writer).into_iter().flat_map(Audience::nodes) {
            if let Some(remote) = self.remotes.get_mut(node)
                && remote.is_newer(writer, sample.sequence)
                && !(to_group && self.groups.serves(writer, *node))
            {
                remote.send(sample, payload, now);
            }
        }
        self.count_given_up(now);
    }

    /// Counts what links gave up, and notes it if it was reliable.
    fn count_given_up(&mut self, now: Instant<Raw>) {
        let mut notices = Vec::new();
        for (node, remote) in &mut self.remotes {
            while let Some((writer, samples)) = remote.poll_given_up() {
                let Some(topic) = self.publishers.get(&writer) else { continue };
                topic.given_up.fetch_add(samples, Ordering::Relaxed);
                topic.undelivered.fetch_add(samples, Ordering::Relaxed);
                if topic.is_reliable()
                    && let Some(samples) = self.overload.count((writer, *node), samples, now)
                {
                    notices.push(Notice::GivenUp { topic: topic.name.clone(), node: *node, samples });
                }
            }
        }
        notices.into_iter().for_each(|notice| self.note(notice));
    }

    /// The history of a writer, for a node that has just come to read it.
    pub(super) fn send_history(&mut self, writer: EndpointId, node: NodeId, now: Instant<Raw>) {
        let Some(topic) = self.publishers.get(&writer).cloned() else { return };
        let Some(remote) = self.remotes.get_mut(&node) else { return };
        for Past { sequence, origin, bytes } in topic.offer.history(topic.depth) {
            if remote.is_newer(writer, sequence) {
                let local = self.clock.at::<Local>(now);
                let payload: Arc<[u8]> = Arc::from(bytes);
                remote.send(&outgoing(&topic, (sequence, origin), &payload, local), &payload, now);
            }
        }
    }

    /// Whether a reader of another host has still to get a sample of a writer, or to acknowledge it.
    pub(super) fn is_sending(&self, writer: EndpointId) -> bool {
        self.remotes.values().any(|remote| remote.is_sending(writer))
    }
}
