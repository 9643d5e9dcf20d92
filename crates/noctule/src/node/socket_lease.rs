//! Which thread reads the node's own socket: the thread, or a subscriber that waits for samples of other hosts.
//!
//! A sample that the thread takes in must wake the subscriber, which costs as much as all the rest. So a
//! subscriber that has nothing else to wait for reads the socket itself while it waits (leader and follower,
//! Schmidt et al., PLoP 2000). Between two waits no thread reads; if that lasts, or another subscriber waits
//! as well, or one of another process to which this node hands on, the thread takes the socket back.
//!
//! A subscriber that waits alone takes the socket from the thread without asking: a thread that was asked would find the subscriber asleep,
//! waiting for it to read, and neither could give way. The thread goes on watching the socket until the next datagram, which it leaves to the
//! subscriber. What it was taking in meanwhile the subscriber has not seen, so it ends the subscriber's sleep.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering, fence};

use noctule_timebase::{Instant, Span};

use crate::clock::Raw;

/// The thread reads.
const THREAD: u32 = 0;
/// No thread reads; a subscriber may.
const FREE: u32 = 1;
/// A subscriber reads.
const TAKEN: u32 = 2;
/// A subscriber has been reading for so long that the thread no longer looks: the subscriber says when it stops.
const KEPT: u32 = 3;

/// Time without a read by any subscriber after which a socket goes back to the node's thread.
pub(super) const UNREAD_MAX: Span = Span::from_ms(5);

/// A subscriber that reads on for so long keeps the socket. To wake the thread costs as much as a sample, so what comes more often than this pays
/// for none; and the thread of a node that hears nothing sleeps.
const KEPT_AFTER: Span = Span::from_ms(100);

/// Which thread reads the node's own socket at present.
#[derive(Debug)]
pub(super) struct SocketLease {
    state: AtomicU32,
    /// The thread watches the socket. Only the thread changes it.
    is_watched: AtomicBool,
    /// Subscribers that wait for another to read.
    followers: AtomicU32,
    /// When the last one stopped reading, on the crystal.
    left_ns: AtomicI64,
}

/// Change that the thread has to make to its watch of the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Duty {
    /// As before.
    Keep,
    /// Stop watching it.
    LetGo,
    /// Watch it again.
    TakeBack,
}

impl SocketLease {
    pub(super) fn new() -> SocketLease {
        SocketLease {
            state: AtomicU32::new(THREAD),
            is_watched: AtomicBool::new(true),
            followers: AtomicU32::new(0),
            left_ns: AtomicI64::new(0),
        }
    }

    /// Makes the caller the reader, if no thread reads.
    #[inline]
    pub(super) fn take_free(&self) -> bool {
        self.state.compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Makes the caller the reader in place of the node's thread, not while another waits for that to read. The thread may be about to receive a
    /// datagram: it does so under the node's lock, so the caller acquires that once before it receives, or samples change their order.
    pub(super) fn take_from_thread(&self) -> bool {
        let is_free = self.state.load(Ordering::Relaxed) == THREAD
            && self.followers.load(Ordering::Relaxed) == 0
            && self.state.compare_exchange(THREAD, TAKEN, Ordering::Acquire, Ordering::Relaxed).is_ok();
        if is_free {
            // Before the caller looks for samples; see `is_taken`.
            fence(Ordering::SeqCst);
        }
        is_free
    }

    /// The caller stops reading; true if the thread must be kicked to go on.
    #[inline]
    pub(super) fn leave(&self, now: Instant<Raw>) -> bool {
        self.left_ns.store(now.ns(), Ordering::Relaxed);
        let was_kept = self.state.swap(FREE, Ordering::AcqRel) == KEPT;
        was_kept || self.followers.load(Ordering::Relaxed) > 0
    }

    /// Marks the caller as one that waits for another to read, until [`end_following`](SocketLease::end_following).
    pub(super) fn begin_following(&self) {
        self.followers.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn end_following(&self) {
        self.followers.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether a subscriber is reading, after the caller has put a sample into a ring: either this is true or a subscriber that takes the socket now
    /// finds the sample.
    pub(super) fn is_taken(&self) -> bool {
        fence(Ordering::SeqCst);
        matches!(self.state.load(Ordering::Relaxed), TAKEN | KEPT)
    }

    /// Whether the thread is not the one that reads.
    pub(super) fn is_away(&self) -> bool {
        self.state.load(Ordering::Relaxed) != THREAD
    }

    /// Whether the thread must look again after [`UNREAD_MAX`]: the subscriber may have stopped reading. Else it says so itself.
    pub(super) fn must_look_again(&self, now: Instant<Raw>) -> bool {
        match self.state.load(Ordering::Relaxed) {
            FREE => true,
            TAKEN => {
                let is_long = now - Instant::from_ns(self.left_ns.load(Ordering::Relaxed)) > KEPT_AFTER;
                let kept = || self.state.compare_exchange(TAKEN, KEPT, Ordering::Relaxed, Ordering::Relaxed);
                !is_long || kept().is_err()
            }
            _ => false,
        }
    }

    /// The thread's part, each time round.
    pub(super) fn duty(&self, now: Instant<Raw>) -> Duty {
        let followers = self.followers.load(Ordering::Relaxed) > 0;
        match self.state.load(Ordering::Relaxed) {
            FREE if (followers || self.is_unread(now)) && self.take_back() => {
                let was_watched = self.is_watched.swap(true, Ordering::Relaxed);
                if was_watched { Duty::Keep } else { Duty::TakeBack }
            }
            FREE | TAKEN | KEPT if self.is_watched.swap(false, Ordering::Relaxed) => Duty::LetGo,
            _ => Duty::Keep,
        }
    }

    fn is_unread(&self, now: Instant<Raw>) -> bool {
        now - Instant::from_ns(self.left_ns.load(Ordering::Relaxed)) > UNREAD_MAX
    }

    fn take_back(&self) -> bool {
        self.state.compare_exchange(FREE, THREAD, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Instant<Raw> {
        Instant::from_ns(ms * 1_000_000)
    }

    fn take(lead: &SocketLease) -> bool {
        lead.take_free() || lead.take_from_thread()
    }

    #[test]
    fn a_subscriber_takes_the_socket_when_it_waits_and_the_thread_gets_it_back_after_a_while() {
        let lead = SocketLease::new();
        assert_eq!(lead.duty(at(0)), Duty::Keep);
        assert!(!lead.is_away() && !lead.take_free() && take(&lead) && !take(&lead));
        assert_eq!(lead.duty(at(1)), Duty::LetGo);
        assert_eq!(lead.duty(at(100)), Duty::Keep);
        assert!(!lead.leave(at(100)));
        assert_eq!(lead.duty(at(104)), Duty::Keep);
        assert_eq!(lead.duty(at(106)), Duty::TakeBack);
        assert!(!lead.is_away());
        assert!(take(&lead), "however often it was late");
    }

    #[test]
    fn a_thread_that_still_watches_what_it_takes_back_watches_on() {
        let lead = SocketLease::new();
        assert!(take(&lead) && !lead.leave(at(0)));
        assert_eq!(lead.duty(at(6)), Duty::Keep);
        assert!(!lead.is_away() && take(&lead) && !lead.leave(at(6)));
        assert_eq!(lead.duty(at(7)), Duty::LetGo);
        assert_eq!(lead.duty(at(12)), Duty::TakeBack);
    }

    #[test]
    fn the_thread_looks_again_until_a_subscriber_has_read_for_long_which_then_says_when_it_stops() {
        let lead = SocketLease::new();
        assert!(!lead.must_look_again(at(0)), "its own socket");
        assert!(take(&lead) && !lead.leave(at(1000)));
        assert!(lead.must_look_again(at(1005)) && take(&lead));
        assert_eq!(lead.duty(at(1005)), Duty::LetGo);
        assert!((1010..=1100).step_by(5).all(|ms| lead.must_look_again(at(ms))));
        assert!(!lead.must_look_again(at(1105)) && lead.is_taken() && lead.is_away());
        assert_eq!(lead.duty(at(9000)), Duty::Keep);
        assert!(!take(&lead) && !lead.take_free(), "by another");
        assert!(lead.leave(at(9000)), "the thread sleeps");
        assert!(lead.must_look_again(at(9000)));
        assert_eq!(lead.duty(at(9006)), Duty::TakeBack);
        assert!(take(&lead) && !lead.leave(at(9010)), "once");
    }

    #[test]
    fn with_two_waiting_the_thread_reads() {
        let lead = SocketLease::new();
        assert!(take(&lead));
        assert_eq!(lead.duty(at(0)), Duty::LetGo);
        lead.begin_following();
        assert!(lead.leave(at(1)), "the other would wait in vain");
        assert_eq!(lead.duty(at(1)), Duty::TakeBack);
        assert!(!take(&lead), "as long as another waits");
        lead.end_following();
        assert!(take(&lead));
    }
}
