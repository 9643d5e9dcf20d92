//! Samples of this node's publishers on their way to other hosts.

use std::ops::Bound;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, TryLockError};
use std::time::Duration;

use noctule_discovery::{Destination, EndpointId, NodeId};
use noctule_prrt::{Class, Outgoing};
use noctule_shm_ring::Origin;
use noctule_sys::clock::now_ns;
use noctule_time_sync::Local;
use noctule_timebase::{Instant, Span};

use super::Shared;
use super::audience::Audience;
use super::marks;
use super::outbox::{Outbox, Sent};
use super::remote::{Remote, outgoing};
use super::sockets::To;
use super::state::{State, discovery_clock};
use crate::clock::{self, Raw};
use crate::deadline::span;
use crate::notice::Notice;
use crate::shared_topic::{Past, PublishedTopic};

/// Datagrams to one node before the next one's turn: enough for one run, few enough for a slow line.
const TURN_DATAGRAMS: u32 = 16;
/// A sample up to this leaves whole with a small batch, on any path.
const SHORT_SAMPLE_BYTES: usize = 4 << 10;
/// A reader that keeps all and takes nothing for so long is worth a notice: longer than a program computes between two samples.
const HELD_UP: Span = Span::from_s(5);
/// A history at best effort is retransmitted after these: announcements are lost now and then, and repeated within a second.
const HISTORY_AGAIN: [Span; 4] =
    [Span::from_ms(10), Span::from_ms(50), Span::from_ms(250), Span::from_ms(1_250)];

/// A history that is to be retransmitted.
#[derive(Clone, Copy, Debug)]
pub(super) struct PastDue {
    at: Instant<Raw>,
    writer: EndpointId,
    node: NodeId,
}

/// How much a thread sends before it leaves the rest to the node's thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effort {
    /// One small batch: the thread is the application's and has published little, what else waits is other topics'.
    SmallBatch,
    /// One batch: the thread is the application's.
    OneBatch,
    /// All that is due.
    All,
}

impl Effort {
    /// Of the thread that publishes so many bytes.
    fn of(payload_bytes: usize) -> Effort {
        if payload_bytes <= SHORT_SAMPLE_BYTES { Effort::SmallBatch } else { Effort::OneBatch }
    }
}

impl Shared {
    /// A sample for readers on other hosts.
    pub(crate) fn send(&self, topic: &PublishedTopic, numbered: (u64, Origin), payload: &[u8]) {
        // Copied before the lock is taken, once for all readers.
        let payload: Arc<[u8]> = Arc::from(payload);
        let sample = outgoing(topic, numbered, &payload, self.clock.now());
        self.work(Effort::of(payload.len()), |state, now| {
            self.relieve(state, now);
            state.send(topic.id, &sample, &payload, now);
        });
    }

    /// Runs `work` with the state, then sends what is due. No datagram is sent while the state is locked, and no call waits.
    pub(super) fn work<R>(&self, effort: Effort, work: impl FnOnce(&mut State, Instant<Raw>) -> R) -> R {
        let outbox = self.try_outbox();
        let mut state = if effort == Effort::All { self.lock() } else { self.lock_soon() };
        let result = work(&mut state, clock::now());
        if let Some(mut outbox) = outbox {
            let more = self.fill(&mut outbox, &mut state, effort);
            drop(state);
            self.flush(outbox, more, effort);
        } else {
            // The thread that has it looks for more before it goes, or did so before this.
            self.tell_progress();
            drop(state);
            self.outbox_wanted.store(true, Ordering::SeqCst);
            if let Some(mut outbox) = self.try_outbox() {
                let more = self.fill(&mut outbox, &mut self.lock(), effort);
                self.flush(outbox, more, effort);
            }
        }
        result
    }

    /// The state, for a thread of the application: the thread that fills the outbox lets it in.
    fn lock_soon(&self) -> MutexGuard<'_, State> {
        if let Ok(state) = self.state.try_lock() {
            return state;
        }
        self.state_wanted.fetch_add(1, Ordering::SeqCst);
        let state = self.lock();
        self.state_wanted.fetch_sub(1, Ordering::SeqCst);
        state
    }

    /// When the outbox must be looked at again.
    pub(super) fn check_at(&self) -> Instant<Raw> {
        Instant::from_ns(self.check_at_ns.load(Ordering::Relaxed))
    }

    fn try_outbox(&self) -> Option<MutexGuard<'_, Outbox>> {
        match self.outbox.try_lock() {
            Ok(outbox) => Some(outbox),
            // A panic elsewhere must not stop the publishers of the whole process.
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Moves what is due into the outbox and sets the time to look again. True if there may be more.
    fn fill(&self, outbox: &mut Outbox, state: &mut State, effort: Effort) -> bool {
        self.outbox_wanted.store(false, Ordering::SeqCst);
        let is_small = || effort == Effort::SmallBatch || self.state_wanted.load(Ordering::SeqCst) > 0;
        let more = outbox.fill(state, &self.sockets.own, is_small);
        let mut at = state.poll_timeout(clock::now());
        if let Some(check_at) = outbox.check_at() {
            at = at.min(check_at);
        }
        self.check_at_ns.store(outbox.check_at().map_or(i64::MAX, |at| at.ns()), Ordering::Relaxed);
        self.alarm.set_by(at);
        self.tell_progress();
        more
    }

    /// Sends what is in the outbox, and `more` that is due.
    fn flush<'a>(&'a self, mut outbox: MutexGuard<'a, Outbox>, mut more: bool, effort: Effort) {
        loop {
            let sent = outbox.send(&self.sockets);
            let is_wanted = more | outbox.wants_more() || self.outbox_wanted.load(Ordering::SeqCst);
            if sent == Sent::Full {
                if let Some(at) = outbox.check_at() {
                    let state = self.lock();
                    self.check_at_ns.store(at.ns(), Ordering::Relaxed);
                    self.alarm.set_by(at);
                    drop(state);
                }
                return;
            }
            if !is_wanted {
                drop(outbox);
                // A reader may have asked between the look and here.
                let is_wanted = self.outbox_wanted.load(Ordering::SeqCst);
                let Some(again) = self.try_outbox().filter(|_| is_wanted) else { return };
                outbox = again;
            }
            if effort != Effort::All {
                drop(outbox);
                // The node's thread goes on, so that the publishing thread need not.
                self.kick();
                return;
            }
            let mut state = self.lock();
            more = self.fill(&mut outbox, &mut state, effort);
        }
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

    /// As [`wait_until_sent`](Shared::wait_until_sent), for an endpoint that goes: not at all if this is the child of a fork or the node has ended, whose
    /// thread is what would go on sending.
    pub(crate) fn linger(&self, writer: EndpointId, timeout: Duration) {
        if !self.is_in_child() && !self.stop.load(Ordering::Acquire) {
            self.wait_until_sent(writer, timeout);
        }
    }

    /// A subscriber of ours that keeps all has read on of what a writer of another host sent.
    #[cold]
    pub(crate) fn read_on(&self, node: NodeId, writer: EndpointId) {
        self.work(Effort::SmallBatch, |state, _| {
            if let Some(remote) = state.remotes.get_mut(&node) {
                remote.grant(writer);
            }
        });
    }

    /// Whether all nodes of other hosts that read a topic have room for a sample, none of the history given up.
    pub(crate) fn has_room(&self, topic: &PublishedTopic, payload_bytes: usize) -> bool {
        self.lock().has_room(topic, payload_bytes)
    }

    /// Waits until something was sent or acknowledged, `timeout_ns` at most; it may also return for no reason.
    pub(crate) fn wait_for_progress(&self, timeout_ns: i64) {
        self.waiting_for_progress.fetch_add(1, Ordering::SeqCst);
        let timeout = Duration::from_nanos(timeout_ns.max(0).unsigned_abs());
        drop(self.progress.wait_timeout(self.lock(), timeout));
        self.waiting_for_progress.fetch_sub(1, Ordering::SeqCst);
    }

    /// Something was acknowledged or sent: threads that wait for that look again.
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
        let admitted = self.admit(payload.len());
        let mut refused = 0;
        for at in 0..self.audiences.get(&writer).map_or(0, |audience| audience.nodes().len()) {
            let Some(node) =
                self.audiences.get(&writer).and_then(|audience| audience.nodes().get(at)).copied()
            else {
                break;
            };
            let is_admitted = self.is_admitted(&admitted, node, payload.len());
            if let Some(remote) = self.remotes.get_mut(&node)
                && remote.is_newer(writer, sample.sequence)
                && !(to_group && self.groups.serves(writer, node))
            {
                if is_admitted {
                    remote.send(sample, payload, now);
                } else {
                    refused += 1;
                }
            }
        }
        self.keep_unacknowledged((writer, refused), payload, now);
        self.count_given_up(now);
    }

    fn has_room(&mut self, topic: &PublishedTopic, payload_bytes: usize) -> bool {
        let admitted = self.admit(payload_bytes);
        let nodes = self.audiences.get(&topic.id).into_iter().flat_map(Audience::nodes);
        let mut remotes = nodes.filter_map(|node| Some((*node, self.remotes.get(node)?)));
        remotes.all(|(node, remote)| {
            remote.has_room(topic.id, payload_bytes, topic.depth)
                && self.is_admitted(&admitted, node, payload_bytes)
        })
    }

    /// The next datagram to send, sealed, with its mark in `dscp`: what keeps nodes together goes first, then samples, nodes in turns; of long samples
    /// without a deadline nothing, if `only_urgent`.
    pub(super) fn poll_transmit(
        &mut self,
        now: Instant<Raw>,
        only_urgent: bool,
        out: &mut Vec<u8>,
    ) -> Option<To> {
        if let Some((to, bytes)) = self.envelope.poll_transmit().or_else(|| self.outbox.pop_front()) {
            *out = bytes;
            self.dscp = 0;
            return Some(To::One(to));
        }
        loop {
            self.envelope.begin(out);
            let begins = out.len();
            if let Some(to) = self.poll_discovery(now, out) {
                self.dscp = marks::dscp(&out[begins..]);
                self.envelope.seal_for_all(out);
                return Some(to);
            }
            if let Some(to) = self.poll_groups(now, out) {
                self.dscp = marks::dscp(&out[begins..]);
                self.envelope.seal_for_group(out);
                return Some(to);
            }
            let to = self.poll_remotes(now, only_urgent, out)?;
            self.dscp = marks::dscp(&out[begins..]);
            // The node that had its turn last. One that cannot open anything yet would only drop it: as good as lost.
            if self.envelope.seal_for(self.turn.0, out) {
                return Some(to);
            }
        }
    }

    fn poll_discovery(&mut self, now: Instant<Raw>, out: &mut Vec<u8>) -> Option<To> {
        let mut body = std::mem::take(&mut self.body);
        let destination = self.discovery.poll_transmit(discovery_clock(now), &mut body);
        out.extend_from_slice(&body);
        self.body = body;
        destination.map(|destination| match destination {
            Destination::One(to) => To::One(to),
            Destination::Everyone => To::Everyone,
        })
    }

    /// The next datagram for a node of another host; after [`TURN_DATAGRAMS`] it is the next node's turn.
    fn poll_remotes(&mut self, now: Instant<Raw>, only_urgent: bool, out: &mut Vec<u8>) -> Option<To> {
        let (first, left) = self.turn;
        let start = if left > 0 { Bound::Included(first) } else { Bound::Excluded(first) };
        let behind = self.remotes.range((start, Bound::Unbounded)).map(|(node, _)| *node).next();
        let mut next = behind;
        let mut has_wrapped = false;
        loop {
            let Some(node) = next else {
                if std::mem::replace(&mut has_wrapped, true) {
                    return None;
                }
                next = self.remotes.keys().next().copied();
                next?;
                continue;
            };
            if let Some(to) = self.poll_remote(node, (now, only_urgent), out) {
                self.turn = if node == first && left > 0 { (node, left - 1) } else { (node, TURN_DATAGRAMS) };
                return Some(to);
            }
            let after = (Bound::Excluded(node), Bound::Unbounded);
            next = self.remotes.range(after).map(|(node, _)| *node).next();
            if has_wrapped && next.is_none_or(|next| behind.is_some_and(|behind| next >= behind)) {
                return None;
            }
        }
    }

    fn poll_remote(
        &mut self,
        node: NodeId,
        (now, only_urgent): (Instant<Raw>, bool),
        out: &mut Vec<u8>,
    ) -> Option<To> {
        let local = self.clock.at(now);
        let remote = self.remotes.get_mut(&node)?;
        // Where it has shown that it receives.
        let locator = self.discovery.locator(node)?;
        if let Some(request) = remote.poll_request(local) {
            out.extend_from_slice(&request.encode());
            return Some(To::One(locator));
        }
        remote.poll_transmit((now, only_urgent), out).then_some(To::One(locator))
    }

    /// Whether a sample of several datagrams waits to be sent.
    pub(super) fn has_long_samples(&self) -> bool {
        self.remotes.values().any(Remote::has_long_samples)
    }

    /// Counts what links gave up, and notes it if it was reliable.
    fn count_given_up(&mut self, now: Instant<Raw>) {
        let mut notices = Vec::new();
        for (node, remote) in &mut self.remotes {
            while let Some((writer, samples)) = remote.poll_given_up() {
                let Some(topic) = self.publishers.get(&writer) else { continue };
                topic.count_given_up(samples);
                if topic.is_reliable()
                    && let Some(samples) = self.overload.count((writer, *node), samples, now)
                {
                    notices.push(Notice::GivenUp { topic: topic.name.clone(), node: *node, samples });
                }
            }
        }
        notices.into_iter().for_each(|notice| self.note(notice));
    }

    /// Notes which of our writers wait for a reader that does not read.
    pub(super) fn note_held_up(&mut self, now: Instant<Raw>) {
        let mut notices = Vec::new();
        for (node, remote) in &mut self.remotes {
            while let Some(writer) = remote.poll_held_up(HELD_UP, now) {
                let topic = self.publishers.get(&writer).map(|topic| topic.name.clone());
                notices.extend(topic.map(|topic| Notice::HeldUp { topic, node: *node, waited: HELD_UP }));
            }
        }
        notices.into_iter().for_each(|notice| self.note(notice));
    }

    /// The history of a writer, for a node that has just come to read it. What is not acknowledged goes several times: the
    /// other node may know this writer later than this one knows the reader, and drops what it does not expect.
    pub(super) fn send_history(&mut self, writer: EndpointId, node: NodeId, now: Instant<Raw>) {
        let Some(topic) = self.publishers.get(&writer).cloned() else { return };
        self.send_past(&topic, node, now);
        if topic.class == Class::BestEffort {
            let again = HISTORY_AGAIN.iter().map(|after| PastDue { at: now + *after, writer, node });
            self.histories.extend(again);
        }
    }

    fn send_past(&mut self, topic: &PublishedTopic, node: NodeId, now: Instant<Raw>) {
        for Past { sequence, origin, bytes } in topic.offer.history(topic.depth) {
            let admitted = self.admit(bytes.len());
            let is_admitted = self.is_admitted(&admitted, node, bytes.len());
            let Some(remote) = self.remotes.get_mut(&node) else { return };
            if remote.is_newer(topic.id, sequence) || topic.class == Class::BestEffort {
                let local = self.clock.at::<Local>(now);
                let payload: Arc<[u8]> = Arc::from(bytes);
                if is_admitted {
                    remote.send(&outgoing(topic, (sequence, origin), &payload, local), &payload, now);
                }
                self.keep_unacknowledged((topic.id, u64::from(!is_admitted)), &payload, now);
            }
        }
    }

    /// Sends the histories that are due again; a node that has them drops them.
    pub(super) fn handle_histories(&mut self, now: Instant<Raw>) {
        let due: Vec<PastDue> = self.histories.extract_if(.., |past| past.at <= now).collect();
        for PastDue { writer, node, .. } in due {
            let is_read = self.audiences.get(&writer).is_some_and(|all| all.nodes().contains(&node));
            if let Some(topic) = self.publishers.get(&writer).filter(|_| is_read).cloned() {
                self.send_past(&topic, node, now);
            }
        }
    }

    /// When a history is due again.
    pub(super) fn poll_histories(&self) -> Option<Instant<Raw>> {
        self.histories.iter().map(|past| past.at).min()
    }

    /// Whether a reader of another host has still to get a sample of a writer, or to acknowledge it.
    pub(super) fn is_sending(&self, writer: EndpointId) -> bool {
        self.remotes.values().any(|remote| remote.is_sending(writer))
    }
}
