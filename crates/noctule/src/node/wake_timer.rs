//! When the node's thread wakes by itself.
//!
//! A thread that receives a datagram or sends one may find that the node's thread must look earlier than it planned: an acknowledgement is due
//! in 2 ms, say. Waking the thread only so that it plans anew costs as much as all the rest, and on the same core it comes
//! before the thread that waits for the sample. So the thread sleeps on a timer, and others set that.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicI64, Ordering};

use noctule_sys::clock::timespec;
use noctule_timebase::Instant;
use rustix::fd::OwnedFd;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

use crate::clock::{self, Raw};

/// Readable from the time on for which it is set. Both ways of setting it are used under the node's lock only.
#[derive(Debug)]
pub(super) struct WakeTimer {
    timer: OwnedFd,
    at_ns: AtomicI64,
}

impl WakeTimer {
    /// One that never rings.
    pub(super) fn new() -> io::Result<WakeTimer> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        Ok(WakeTimer { timer, at_ns: AtomicI64::new(i64::MAX) })
    }

    /// Rings then, and not when it was to ring before.
    pub(super) fn set(&self, at: Instant<Raw>) {
        self.at_ns.store(at.ns(), Ordering::Relaxed);
        // Zero would switch it off. Within a second the two clocks differ by less than a microsecond.
        let left_ns = (at - clock::now()).ns().max(1);
        let once = Itimerspec { it_interval: timespec(0), it_value: timespec(left_ns) };
        // Fails for what is no timer.
        let _ = timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once);
    }

    /// Whether it was to ring by then, and the thread has not set it again.
    pub(super) fn is_due_by(&self, at: Instant<Raw>) -> bool {
        self.at_ns.load(Ordering::Relaxed) <= at.ns()
    }

    /// Rings then at the latest.
    pub(super) fn set_by(&self, at: Instant<Raw>) {
        if at.ns() < self.at_ns.load(Ordering::Relaxed) {
            self.set(at);
        }
    }
}

impl AsFd for WakeTimer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use noctule_timebase::Span;
    use rustix::event::{PollFd, PollFlags, poll};

    use super::*;

    fn rings(wake_timer: &WakeTimer, timeout_ns: i64) -> bool {
        poll(&mut [PollFd::new(wake_timer, PollFlags::IN)], Some(&timespec(timeout_ns))) == Ok(1)
    }

    #[test]
    fn it_rings_at_the_earliest_time_it_was_set_by_and_is_silent_when_set_again() {
        let wake_timer = WakeTimer::new().unwrap();
        let (now, hour) = (clock::now(), Span::from_s(3600));
        wake_timer.set(now + hour);
        assert!(!rings(&wake_timer, 0));
        wake_timer.set_by(now + hour * 2);
        assert!(!wake_timer.is_due_by(now) && wake_timer.is_due_by(now + hour));
        assert_eq!(wake_timer.at_ns.load(Ordering::Relaxed), (now + hour).ns());
        wake_timer.set_by(now + Span::from_us(1));
        assert!(rings(&wake_timer, 60_000_000_000));
        wake_timer.set(now + hour);
        assert!(!rings(&wake_timer, 0));
        // A time that is over is now.
        wake_timer.set_by(now);
        assert!(rings(&wake_timer, 60_000_000_000));
    }
}
