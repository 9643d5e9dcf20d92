//! A pulse that ends blocking system calls, so that they need no timeout of their own.
//!
//! A timeout costs every single wait a timer: about 0.3 µs for a futex, twice per round trip, which
//! on one core is a quarter of the whole. An interval timer of the process costs one signal per
//! period instead, whatever happens in between.

use std::io;
use std::time::Duration;

/// From now on, SIGALRM arrives every `period` and ends a blocking system call with `EINTR`. For
/// single-threaded programs that own the signal; everything that blocks must expect `EINTR`.
pub fn interrupt_every(period: Duration) -> io::Result<()> {
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: sigaction is a plain C struct for which all zeros is a valid value.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // No SA_RESTART: interrupted calls are to return.
    action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as libc::sighandler_t;
    // SAFETY: the handler does nothing, so it is safe at any point; `action` outlives the call.
    if unsafe { libc::sigaction(libc::SIGALRM, &action, std::ptr::null_mut()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let period = libc::timeval {
        tv_sec: period.as_secs() as libc::time_t,
        tv_usec: period.subsec_micros() as libc::suseconds_t,
    };
    let timer = libc::itimerval { it_interval: period, it_value: period };
    // SAFETY: `timer` is initialised and outlives the call; the old value is not requested.
    if unsafe { libc::setitimer(libc::ITIMER_REAL, &timer, std::ptr::null_mut()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
