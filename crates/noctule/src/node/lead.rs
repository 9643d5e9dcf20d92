//! Which thread reads the node's own socket: the thread, or a subscriber that waits for samples of other hosts.
//!
//! A sample that the thread takes in must wake the subscriber, which costs as much as all the rest. So a
//! subscriber that has nothing else to wait for reads the socket itself while it waits (leader and follower,
//! Schmidt et al., PLoP 2000). Between two waits no thread reads; if that lasts, or another subscriber waits
//! as well, or one of another process to which this node hands on, the thread takes the socket back.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};

use noctule_timebase::{Instant, Span};

use crate::clock::Raw;

/// The thread reads.
const THREAD: u32 = 0;
/// No thread reads; a subscriber may.
const FREE: u32 = 1;
/// A subscriber reads.
const TAKEN: u32 = 2;

/// Time without a read by any subscriber after which a socket goes back to the node's thread.
pub(super) const UNREAD_MAX: Span = Span::from_ms(5);

/// Which thread reads the node's own socket at present.
#[derive(Debug)]
pub(super) struct Lead {
    state: AtomicU32,
    /// A subscriber would like to read.
    wanted: AtomicBool,
    /// Subscribers that wait for another to read.
    followers: AtomicU32,
    /// When the last one stopped reading, on the crystal.
    left_ns: AtomicI64,
}

/// What the thread is to do about the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Duty {
    /// As before.
    Keep,
    /// Stop watching it.
    LetGo,
    /// Watch it again.
    TakeBack,
}

impl Lead {
    pub(super) fn new() -> Lead {
        Lead {
            state: AtomicU32::new(THREAD),
            wanted: AtomicBool::new(false),
            followers: AtomicU32::new(0),
            left_ns: AtomicI64::new(0),
        }
    }

    /// Makes the caller the reader, if it can be.
    #[inline]
    pub(super) fn take(&self) -> bool {
        self.state.compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Asks the thread for the socket; true if it must be kicked for that.
    pub(super) fn want(&self) -> bool {
        self.state.load(Ordering::Relaxed) == THREAD
            && self.followers.load(Ordering::Relaxed) == 0
            && !self.wanted.swap(true, Ordering::Relaxed)
    }

    /// The caller stops reading; true if the thread must be kicked to go on.
    #[inline]
    pub(super) fn leave(&self, now: Instant<Raw>) -> bool {
        self.left_ns.store(now.ns(), Ordering::Relaxed);
        self.state.store(FREE, Ordering::Release);
        self.followers.load(Ordering::Relaxed) > 0
    }

    /// Marks the caller as one that waits for another to read, until [`end_following`](Lead::end_following).
    pub(super) fn begin_following(&self) {
        self.followers.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn end_following(&self) {
        self.followers.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether a subscriber is reading.
    pub(super) fn is_taken(&self) -> bool {
        self.state.load(Ordering::Relaxed) == TAKEN
    }

    /// Whether the thread must look again soon.
    pub(super) fn is_away(&self) -> bool {
        self.state.load(Ordering::Relaxed) != THREAD
    }

    /// The thread's part, each time round.
    pub(super) fn duty(&self, now: Instant<Raw>) -> Duty {
        let followers = self.followers.load(Ordering::Relaxed) > 0;
        match self.state.load(Ordering::Relaxed) {
            THREAD if self.wanted.swap(false, Ordering::Relaxed) && !followers => {
                self.left_ns.store(now.ns(), Ordering::Relaxed);
                self.state.store(FREE, Ordering::Release);
                Duty::LetGo
            }
            FREE => {
                let alone = now - Instant::from_ns(self.left_ns.load(Ordering::Relaxed)) > UNREAD_MAX;
                let back = (alone || followers)
                    && self
                        .state
                        .compare_exchange(FREE, THREAD, Ordering::Acquire, Ordering::Relaxed)
                        .is_ok();
                if back { Duty::TakeBack } else { Duty::Keep }
            }
            _ => Duty::Keep,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Instant<Raw> {
        Instant::from_ns(ms * 1_000_000)
    }

    #[test]
    fn a_subscriber_gets_the_socket_when_it_asks_and_the_thread_gets_it_back_after_a_while() {
        let lead = Lead::new();
        assert!(!lead.take() && lead.want() && !lead.want());
        assert_eq!(lead.duty(at(0)), Duty::LetGo);
        assert!(lead.take() && !lead.take());
        assert_eq!(lead.duty(at(100)), Duty::Keep);
        assert!(!lead.leave(at(100)));
        assert_eq!(lead.duty(at(104)), Duty::Keep);
        assert_eq!(lead.duty(at(106)), Duty::TakeBack);
        assert!(!lead.is_away());
    }

    #[test]
    fn with_two_waiting_the_thread_reads() {
        let lead = Lead::new();
        assert!(lead.want());
        assert_eq!(lead.duty(at(0)), Duty::LetGo);
        assert!(lead.take());
        lead.begin_following();
        assert!(lead.leave(at(1)), "the other would wait in vain");
        assert_eq!(lead.duty(at(1)), Duty::TakeBack);
        assert!(!lead.want(), "as long as another waits");
        lead.end_following();
        assert!(lead.want());
    }
}
