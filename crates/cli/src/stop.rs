//! The end of a command that runs until it is stopped: Ctrl-C, SIGTERM, or its time is over.

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// A command that blocks elsewhere looks up this often.
pub(crate) const TICK: Duration = Duration::from_millis(100);

/// Tells when to stop, and wakes the threads that wait for that.
pub(crate) struct Stop {
    interrupted: Arc<AtomicBool>,
    woken: UnixStream,
    start: Instant,
    end: Option<Instant>,
}

impl Stop {
    /// From now on signals are caught; a second one ends the process at once.
    pub(crate) fn after(seconds: Option<Duration>) -> io::Result<Stop> {
        let interrupted = crate::sync::interruption()?;
        let (woken, waker) = UnixStream::pair()?;
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            signal_hook::low_level::pipe::register(signal, waker.try_clone()?)?;
        }
        let start = Instant::now();
        Ok(Stop { interrupted, woken, start, end: seconds.map(|seconds| start + seconds) })
    }

    /// Whether the command must end now.
    pub(crate) fn is_due(&self) -> bool {
        self.is_interrupted() || self.end.is_some_and(|end| Instant::now() >= end)
    }

    /// Whether the user has interrupted the command.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// Time since the start.
    pub(crate) fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// Time left, at most [`TICK`]: how long to block elsewhere.
    pub(crate) fn tick(&self) -> Duration {
        self.end.map_or(TICK, |end| end.saturating_duration_since(Instant::now()).min(TICK))
    }

    /// Waits until `at`, or until it is time to stop.
    pub(crate) fn wait_until(&self, at: Instant) {
        let at = self.end.map_or(at, |end| at.min(end));
        while !self.is_interrupted() {
            let left = at.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let Ok(timeout) = Timespec::try_from(left) else { return };
            // Interrupted or not: the flag says why it returned.
            let _ = poll(&mut [PollFd::new(&self.woken, PollFlags::IN)], Some(&timeout));
        }
    }

    /// Waits until it is time to stop.
    pub(crate) fn wait(&self) {
        while !self.is_due() {
            self.wait_until(Instant::now() + Duration::from_secs(3600));
        }
    }
}
