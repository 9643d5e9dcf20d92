//! Guard conditions and waiting.

use std::ffi::c_void;
use std::sync::Arc;
use std::time::Duration;

use noctule_rmw_core::signal::{self, Listener};
use noctule_rmw_core::{Signal, Waitable};

/// Called with what has come.
type Call = extern "C" fn(*const c_void, usize);

/// The caller's pointer that came with a callback.
struct UserData(*const c_void);

// SAFETY: it is handed back and not looked at; its giver set a callback that may be called on other threads.
unsafe impl Send for UserData {}

impl UserData {
    fn call(&self, call: Call, count: usize) {
        call(self.0, count);
    }
}

/// A guard condition.
#[unsafe(no_mangle)]
pub extern "C" fn nrmw_guard_new() -> *mut Waitable {
    Box::into_raw(Box::default())
}

/// # Safety
/// The header's contract.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrmw_guard_free(guard: *mut Waitable) {
    // SAFETY: the header's contract: it came of `nrmw_guard_new` and was not freed.
    drop(unsafe { Box::from_raw(guard) });
}

/// # Safety
/// The header's contract.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrmw_waitable_set(waitable: *const Waitable) {
    // SAFETY: the header's contract.
    unsafe { &*waitable }.set();
}

/// # Safety
/// The header's contract.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrmw_waitable_is_ready(waitable: *const Waitable) -> bool {
    // SAFETY: the header's contract.
    unsafe { &*waitable }.is_ready()
}

/// # Safety
/// The header's contract.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrmw_waitable_clear(waitable: *const Waitable) -> bool {
    // SAFETY: the header's contract.
    unsafe { &*waitable }.clear()
}

/// # Safety
/// The header's contract.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrmw_waitable_listen(
    waitable: *const Waitable,
    call: Option<Call>,
    user_data: *const c_void,
) {
    let listener = call.map(|call| {
        let user_data = UserData(user_data);
        Box::new(move |count| user_data.call(call, count)) as Listener
    });
    // SAFETY: the header's contract.
    unsafe { &*waitable }.listen(listener);
}

/// A new signal, which wakes one thread.
#[unsafe(no_mangle)]
pub extern "C" fn nrmw_signal_new() -> *mut Arc<Signal> {
    Box::into_raw(Box::default())
}

/// # Safety
/// The header's contract.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrmw_signal_free(signal: *mut Arc<Signal>) {
    // SAFETY: the header's contract: it came of `nrmw_signal_new` and was not freed.
    drop(unsafe { Box::from_raw(signal) });
}

/// # Safety
/// The header's contract.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrmw_wait(
    signal: *mut Arc<Signal>,
    waitables: *const *const Waitable,
    count: usize,
    timeout_ns: i64,
) -> bool {
    // SAFETY: the header's contract.
    let waitables: Vec<&Waitable> = (0..count).map(|at| unsafe { &**waitables.add(at) }).collect();
    let timeout = u64::try_from(timeout_ns).ok().map(Duration::from_nanos);
    // SAFETY: the header's contract.
    signal::wait(unsafe { &*signal }, &waitables, timeout)
}
