//! Clocks of this process. Drivers and measuring programs only: cores take `now` as an argument.

use std::io;

use rustix::thread::ClockId as SleepClock;
use rustix::time::{ClockId, DynamicClockId, Timespec, clock_gettime, clock_gettime_dynamic};

/// Now on `CLOCK_MONOTONIC`, in nanoseconds since an arbitrary point before boot of this kernel.
///
/// Equal in all processes of one kernel, so stamps of two processes may be subtracted. Read through
/// the vDSO: about 20 ns, no system call.
#[inline]
pub fn now_ns() -> i64 {
    nanoseconds(clock_gettime(ClockId::Monotonic))
}

/// Now on `CLOCK_MONOTONIC_RAW`, in nanoseconds since an arbitrary point before boot of this kernel.
///
/// The raw clock, the uncorrected oscillator: NTP neither steps nor slews it, so a limit on its drift is physics. It cannot
/// be slept on. The same cost as [`now_ns`].
#[inline]
pub fn raw_ns() -> i64 {
    nanoseconds(clock_gettime(ClockId::MonotonicRaw))
}

/// Now on `CLOCK_REALTIME`, in nanoseconds since 1970: what the kernel stamps datagrams in. It may be stepped. The same cost as
/// [`now_ns`].
#[inline]
pub fn realtime_ns() -> i64 {
    nanoseconds(clock_gettime(ClockId::Realtime))
}

/// Now on `CLOCK_TAI`, in nanoseconds since 1970 without leap seconds; the same as [`realtime_ns`] where the kernel is not configured with how far they
/// are apart. A system call on some kernels.
pub fn tai_ns() -> i64 {
    clock_gettime_dynamic(DynamicClockId::Tai).map_or_else(|_| realtime_ns(), nanoseconds)
}

/// One moment on three clocks, each in nanoseconds: the outer readings bracket the inner ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreeClocks {
    /// `CLOCK_MONOTONIC_RAW` before all others.
    pub raw_before_ns: i64,
    /// `CLOCK_MONOTONIC` before the wall clock.
    pub monotonic_before_ns: i64,
    /// `CLOCK_REALTIME`.
    pub realtime_ns: i64,
    /// `CLOCK_MONOTONIC` after the wall clock.
    pub monotonic_after_ns: i64,
    /// `CLOCK_MONOTONIC_RAW` after all others.
    pub raw_after_ns: i64,
}

/// Reads all three clocks; about 100 ns, more if the thread is interrupted between two of them.
pub fn three_clocks() -> ThreeClocks {
    ThreeClocks {
        raw_before_ns: raw_ns(),
        monotonic_before_ns: now_ns(),
        realtime_ns: realtime_ns(),
        monotonic_after_ns: now_ns(),
        raw_after_ns: raw_ns(),
    }
}

/// Processor time used by all threads of this process, in nanoseconds. Costs a system call.
pub fn process_cpu_ns() -> i64 {
    nanoseconds(clock_gettime(ClockId::ProcessCPUTime))
}

/// Processor time used by the calling thread, in nanoseconds. Costs a system call.
pub fn thread_cpu_ns() -> i64 {
    nanoseconds(clock_gettime(ClockId::ThreadCPUTime))
}

/// Sleeps until `CLOCK_MONOTONIC` reads `at_ns`; returns at once if it already does.
///
/// Absolute, so that being interrupted or preempted before the call does not lengthen the sleep.
pub fn sleep_until(at_ns: i64) {
    let at = timespec(at_ns.max(0));
    while let Err(error) = rustix::thread::clock_nanosleep_absolute(SleepClock::Monotonic, &at) {
        if error != rustix::io::Errno::INTR {
            // EINVAL cannot happen for a normalised timespec; returning early is the safe answer.
            debug_assert!(false, "clock_nanosleep: {}", io::Error::from(error));
            return;
        }
    }
}

/// Whether something (NTP, PTP) keeps `CLOCK_REALTIME` synchronised, and the kernel's estimate of its
/// largest error in microseconds. `adjtimex(2)`, reading only.
pub fn synchronisation() -> io::Result<(bool, i64)> {
    // SAFETY: timex is a plain C struct for which all zeros is a valid value; modes = 0 changes nothing.
    let mut timex: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: `timex` is valid for the call.
    let state = unsafe { libc::adjtimex(&mut timex) };
    if state < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok((timex.status & libc::STA_UNSYNC == 0, timex.maxerror as i64))
}

/// Nanoseconds as the kernel's pair of seconds and nanoseconds; `duration_ns` ≥ 0.
pub fn timespec(duration_ns: i64) -> Timespec {
    Timespec { tv_sec: duration_ns / 1_000_000_000, tv_nsec: (duration_ns % 1_000_000_000) as _ }
}

fn nanoseconds(time: Timespec) -> i64 {
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}
