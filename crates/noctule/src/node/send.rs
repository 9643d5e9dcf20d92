//! Threads that send: what a thread does under the lock of the state, and what it gives the kernel after that.

use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, TryLockError};

use noctule_discovery::{EndpointId, NodeId};
use noctule_shm_ring::Origin;
use noctule_timebase::Instant;

use super::Shared;
use super::remote::outgoing;
use super::send_queue::{SendQueue, Sent};
use super::state::State;
use crate::clock::{self, Raw};
use crate::shared_topic::PublishedTopic;

mod progress;

/// A sample up to this leaves whole with a small batch, on any path.
const SHORT_SAMPLE_BYTES: usize = 4 << 10;

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

/// Bytes copied by one call. From 2 KiB on the C library copies with `rep movsb`, which on AMD's Zen 3 is ten times as slow (3 GB/s) where the destination is 1 to 31 bytes
/// ahead of the source modulo 4,096: that of a long `Arc` is always 16 ahead of a long vector.
const COPIED_BYTES: usize = 1 << 10;

/// A copy of a payload, in memory that is there if its length is the same.
fn copied(payload: &[u8], spare: Option<Arc<[u8]>>) -> Arc<[u8]> {
    let Some(mut spare) = spare.filter(|spare| spare.len() == payload.len()) else {
        return Arc::from(payload);
    };
    let Some(bytes) = Arc::get_mut(&mut spare) else { return Arc::from(payload) };
    for (to, from) in bytes.chunks_mut(COPIED_BYTES).zip(payload.chunks(COPIED_BYTES)) {
        to.copy_from_slice(from);
    }
    spare
}

impl Shared {
    /// A sample for readers on other hosts. `spare` is memory that it may take, and then memory for the next one, if there is any.
    pub(crate) fn send(
        &self,
        topic: &PublishedTopic,
        numbered: (u64, Origin),
        payload: &[u8],
        spare: &mut Option<Arc<[u8]>>,
    ) {
        // Copied before the lock is taken, once for all readers.
        let payload = copied(payload, spare.take());
        let effort = Effort::of(payload.len());
        let after = |state: &State, now| match topic.is_reliable() {
            true if state.is_gathering(now) => None,
            true if state.has_gathered() => Some(Effort::OneBatch),
            _ => Some(effort),
        };
        self.work_then(effort, after, |state, now| {
            self.drain_if_stalled(state, now);
            let sample = outgoing(topic, numbered, &payload, self.clock.at(now));
            state.send(topic.id, &sample, &payload, now);
            *spare = state.unacknowledged.take_spare(payload.len());
        });
    }

    /// Runs `work` with the state, then sends what is due. No datagram is sent while the state is locked, and no call waits.
    pub(super) fn work<R>(&self, effort: Effort, work: impl FnOnce(&mut State, Instant<Raw>) -> R) -> R {
        self.work_then(effort, |_, _| Some(effort), work)
    }

    /// As [`work`](Shared::work), with the effort that `after` gives then; with none, nothing is looked for: all that is new can wait, and there is a time at which it
    /// is looked for.
    pub(super) fn work_then<R>(
        &self,
        effort: Effort,
        after: impl FnOnce(&State, Instant<Raw>) -> Option<Effort>,
        work: impl FnOnce(&mut State, Instant<Raw>) -> R,
    ) -> R {
        let send_queue = self.try_outbox();
        let mut state = if effort == Effort::All { self.lock() } else { self.lock_soon() };
        let now = clock::now();
        let result = work(&mut state, now);
        if let Some(mut send_queue) = send_queue {
            let wanted = self.outbox_wanted.load(Ordering::SeqCst);
            let Some(effort) = after(&state, now).or(wanted.then_some(effort)) else {
                self.tell_progress(&mut state);
                return result;
            };
            let more = self.fill(&mut send_queue, (&mut state, now), effort);
            drop(state);
            self.flush(send_queue, more, effort);
        } else {
            // The thread that has it looks for more before it goes, or did so before this.
            self.tell_progress(&mut state);
            drop(state);
            self.outbox_wanted.store(true, Ordering::SeqCst);
            if let Some(mut send_queue) = self.try_outbox() {
                let more = self.fill(&mut send_queue, (&mut self.lock(), clock::now()), effort);
                self.flush(send_queue, more, effort);
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

    fn try_outbox(&self) -> Option<MutexGuard<'_, SendQueue>> {
        match self.send_queue.try_lock() {
            Ok(send_queue) => Some(send_queue),
            // A panic elsewhere must not stop the publishers of the whole process.
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Whether another thread has the outbox, and will look for what is due before it goes. If not, the caller must look at once: a thread that found
    /// the outbox taken by this call has gone on.
    pub(super) fn is_left_to_others(&self) -> bool {
        if self.try_outbox().is_some() {
            return false;
        }
        self.outbox_wanted.store(true, Ordering::SeqCst);
        self.try_outbox().is_none()
    }

    /// Moves what is due into the outbox and sets the time to look again. True if there may be more.
    fn fill(
        &self,
        send_queue: &mut SendQueue,
        (state, now): (&mut State, Instant<Raw>),
        effort: Effort,
    ) -> bool {
        // A store costs more than all else here, and mostly no thread has asked.
        if self.outbox_wanted.load(Ordering::SeqCst) {
            self.outbox_wanted.store(false, Ordering::SeqCst);
        }
        self.sockets.offload.note_acknowledged();
        let is_small = || effort == Effort::SmallBatch || self.state_wanted.load(Ordering::SeqCst) > 0;
        let more = send_queue.fill(state, &self.sockets.own, is_small);
        let mut at = state.poll_timeout(now);
        if let Some(check_at) = send_queue.check_at() {
            at = at.min(check_at);
        }
        self.check_at_ns.store(send_queue.check_at().map_or(i64::MAX, |at| at.ns()), Ordering::Relaxed);
        self.wake_timer.set_by(at);
        self.tell_progress(state);
        more
    }

    /// Sends what is in the outbox, and `more` that is due.
    fn flush<'a>(&'a self, mut send_queue: MutexGuard<'a, SendQueue>, mut more: bool, effort: Effort) {
        let mut may_look = true;
        loop {
            let sent = send_queue.send(&self.sockets);
            let has_more = more | send_queue.wants_more();
            let is_wanted = has_more || self.outbox_wanted.load(Ordering::SeqCst);
            if sent == Sent::Full {
                if let Some(at) = send_queue.check_at() {
                    let state = self.lock();
                    self.check_at_ns.store(at.ns(), Ordering::Relaxed);
                    self.wake_timer.set_by(at);
                    drop(state);
                }
                return;
            }
            if !is_wanted {
                drop(send_queue);
                // A reader may have asked between the look and here.
                if !self.outbox_wanted.load(Ordering::SeqCst) {
                    return;
                }
                let Some(again) = self.try_outbox() else { return };
                send_queue = again;
            }
            // Another thread found the outbox taken. Mostly that is the node's own, which has nothing to send, and one look costs less than to wake it
            // once more.
            let looks = !has_more && std::mem::take(&mut may_look);
            if effort != Effort::All && !looks {
                drop(send_queue);
                // The node's thread goes on, so that the publishing thread need not.
                self.kick();
                return;
            }
            let mut state = self.lock();
            more = self.fill(&mut send_queue, (&mut state, clock::now()), effort);
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
}
