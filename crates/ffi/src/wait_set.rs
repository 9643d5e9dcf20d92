//! `noctule_wait_set_*`, `noctule_wait` and `noctule_wake`.

use std::ffi::c_int;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use noctule::{Ready, Subscriber, WaitSet, Waker};

use crate::argument;
use crate::failure::{Failure, NOTHING, OK, Outcome, WOKEN, guard};
use crate::node::close;
use crate::subscriber::SubscriberHandle;

/// `noctule_wait_set_t`.
pub struct WaitSetHandle {
    waiting: Mutex<Waiting>,
    waker: Waker,
}

struct Waiting {
    set: WaitSet,
    /// Those of the last call, so that they are checked once and nothing is allocated.
    given: Vec<Given>,
}

/// A subscriber of the caller.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Given(*mut SubscriberHandle);

impl AsMut<Subscriber> for Given {
    fn as_mut(&mut self) -> &mut Subscriber {
        // SAFETY: checked not to be null and to be there once; the caller's handle, which no other thread uses
        // during the call, and after it no thread comes here.
        unsafe { &mut (*self.0).subscriber }
    }
}

/// Makes a wait set.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_wait_set_open(wait: c_int, set: *mut *mut WaitSetHandle) -> c_int {
    guard(|| {
        // SAFETY: the memory of the caller for the result.
        let handle = unsafe { argument::exclusive(set, "set") }?;
        *handle = std::ptr::null_mut();
        let set = WaitSet::new(argument::wait(wait)?);
        let waker = set.waker();
        let waiting = Mutex::new(Waiting { set, given: Vec::new() });
        *handle = Box::into_raw(Box::new(WaitSetHandle { waiting, waker }));
        Ok(OK)
    })
}

/// Waits for many subscribers at once.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_wait(
    set: *const WaitSetHandle,
    subscribers: *const *mut SubscriberHandle,
    count: usize,
    timeout_ns: i64,
    ready: *mut usize,
) -> c_int {
    // SAFETY: passed on.
    guard(|| unsafe { wait(set, (subscribers, count), timeout_ns, ready) })
}

/// # Safety
/// As in the header.
unsafe fn wait(
    set: *const WaitSetHandle,
    (subscribers, count): (*const *mut SubscriberHandle, usize),
    timeout_ns: i64,
    ready: *mut usize,
) -> Outcome {
    // SAFETY: the memory of the caller for the result.
    let ready = unsafe { argument::exclusive(ready, "ready") }?;
    // SAFETY: null or the caller's handle.
    let handle = unsafe { argument::shared(set, "set") }?;
    // SAFETY: the caller's array.
    let subscribers = unsafe { argument::slice(subscribers, count, "subscribers") }?;
    let mut waiting = exclusive(&handle.waiting, "waiting with this set; open one for each thread")?;
    let Waiting { set, given } = &mut *waiting;
    if !given.iter().map(|given| given.0).eq(subscribers.iter().copied()) {
        given.clear();
        for (at, subscriber) in subscribers.iter().enumerate() {
            if subscriber.is_null() || subscribers[..at].contains(subscriber) {
                given.clear();
                let why = if subscriber.is_null() { "is NULL" } else { "is there twice" };
                return Err(Failure::argument(format!("subscribers[{at}] {why}")));
            }
            given.push(Given(*subscriber));
        }
    }
    match set.wait(given, argument::timeout(timeout_ns)) {
        Ready::Sample(which) => {
            *ready = which;
            Ok(OK)
        }
        Ready::TimedOut => Ok(NOTHING),
        Ready::Woken => Ok(WOKEN),
    }
}

/// Locks what only one thread may use at a time. What a panic has left is as good as new: it is decided anew each time.
pub(crate) fn exclusive<'a, T>(mutex: &'a Mutex<T>, does: &str) -> Result<MutexGuard<'a, T>, Failure> {
    match mutex.try_lock() {
        Ok(locked) => Ok(locked),
        Err(TryLockError::Poisoned(poisoned)) => Ok(PoisonError::into_inner(poisoned)),
        Err(TryLockError::WouldBlock) => Err(Failure::argument(format!("another call is {does}"))),
    }
}

/// Ends a wait.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_wake(set: *const WaitSetHandle) {
    // SAFETY: null or the caller's handle. Not guarded: it cannot panic, and may run in a signal handler.
    if let Some(handle) = unsafe { set.as_ref() } {
        handle.waker.wake();
    }
}

/// Closes a wait set.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_wait_set_close(set: *mut WaitSetHandle) {
    // SAFETY: null or a handle that the caller gives back.
    unsafe { close(set) }
}
