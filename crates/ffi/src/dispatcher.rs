//! `noctule_dispatcher_*`, `noctule_on_*`, `noctule_spin*` and `noctule_stop`.

use std::ffi::{CString, c_char, c_int, c_void};
use std::sync::{Arc, Mutex};

use noctule::{Dispatcher, Node, Receive, ReceiveError, Sample, SpinResult, Stopper, Subscriber};

use crate::argument;
use crate::failure::{Failure, NOTHING, OK, WOKEN, guard};
use crate::node::close;
use crate::subscriber::{Info, SubscriberHandle};
use crate::wait_set::exclusive;

/// `noctule_dispatcher_t`.
pub struct DispatcherHandle {
    dispatcher: Mutex<Dispatcher<'static>>,
    stopper: Stopper,
}

/// `noctule_callback_t`.
type Callback = unsafe extern "C" fn(context: *mut c_void, info: *const Info);
/// `noctule_error_callback_t`.
type ErrorCallback = unsafe extern "C" fn(context: *mut c_void, sentence: *const c_char);

/// The caller's, which it may use on the thread that spins.
struct Context(*mut c_void);

// SAFETY: the caller's promise: whichever thread spins may use it.
unsafe impl Send for Context {}

impl Context {
    /// As a method, so that a closure takes all of it and not the pointer alone.
    fn pointer(&self) -> *mut c_void {
        self.0
    }
}

/// A subscriber that has been taken over, with its node.
struct Taken {
    subscriber: Subscriber,
    // After the subscriber, whose end it announces.
    _node: Arc<Node>,
}

impl AsMut<Subscriber> for Taken {
    fn as_mut(&mut self) -> &mut Subscriber {
        &mut self.subscriber
    }
}

impl Receive for Taken {
    type Sample = Sample;

    fn take_sample(&mut self) -> Result<Option<Sample>, ReceiveError> {
        self.subscriber.take_sample()
    }
}

/// Makes a dispatcher.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_dispatcher_open(
    wait: c_int,
    dispatcher: *mut *mut DispatcherHandle,
) -> c_int {
    guard(|| {
        // SAFETY: the memory of the caller for the result.
        let handle = unsafe { argument::exclusive(dispatcher, "dispatcher") }?;
        *handle = std::ptr::null_mut();
        let dispatcher = Dispatcher::new(argument::wait(wait)?);
        let stopper = dispatcher.stopper();
        *handle = Box::into_raw(Box::new(DispatcherHandle { dispatcher: Mutex::new(dispatcher), stopper }));
        Ok(OK)
    })
}

/// The error of a second call at the same time.
const IS_SPINNING: &str = "using this dispatcher; register before it spins, and spin on one thread";

/// Registers a callback and takes over the subscriber.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_on_sample(
    dispatcher: *const DispatcherHandle,
    subscriber: *mut SubscriberHandle,
    call: Option<Callback>,
    context: *mut c_void,
) -> c_int {
    guard(|| {
        // SAFETY: null or the caller's handle.
        let handle = unsafe { argument::shared(dispatcher, "dispatcher") }?;
        let call = call.ok_or_else(|| Failure::argument("callback is NULL"))?;
        if subscriber.is_null() {
            return Err(Failure::argument("subscriber is NULL"));
        }
        let mut dispatcher = exclusive(&handle.dispatcher, IS_SPINNING)?;
        // SAFETY: a handle of ours, which the caller gives to us for good. Nothing fails from here on.
        let SubscriberHandle { subscriber, node } = *unsafe { Box::from_raw(subscriber) };
        let context = Context(context);
        dispatcher.on_sample(Taken { subscriber, _node: node }, move |sample: Sample| {
            let info = Info::new(sample.info(), sample.as_ptr());
            // SAFETY: the caller's function and its context; the bytes stay until it returns.
            unsafe { call(context.pointer(), &raw const info) }
        });
        Ok(OK)
    })
}

/// Sets the function that is called with errors.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_on_error(
    dispatcher: *const DispatcherHandle,
    call: Option<ErrorCallback>,
    context: *mut c_void,
) -> c_int {
    guard(|| {
        // SAFETY: null or the caller's handle.
        let handle = unsafe { argument::shared(dispatcher, "dispatcher") }?;
        let call = call.ok_or_else(|| Failure::argument("callback is NULL"))?;
        let context = Context(context);
        exclusive(&handle.dispatcher, IS_SPINNING)?.on_error(move |error| {
            let sentence = CString::new(error.to_string().replace('\0', "")).unwrap_or_default();
            // SAFETY: the caller's function and its context.
            unsafe { call(context.pointer(), sentence.as_ptr()) }
        });
        Ok(OK)
    })
}

/// Calls until it is stopped.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_spin(dispatcher: *const DispatcherHandle) -> c_int {
    guard(|| {
        // SAFETY: null or the caller's handle.
        let handle = unsafe { argument::shared(dispatcher, "dispatcher") }?;
        exclusive(&handle.dispatcher, IS_SPINNING)?.spin();
        Ok(OK)
    })
}

/// Waits, and calls once.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_spin_once(dispatcher: *const DispatcherHandle, timeout_ns: i64) -> c_int {
    guard(|| {
        // SAFETY: null or the caller's handle.
        let handle = unsafe { argument::shared(dispatcher, "dispatcher") }?;
        let timeout = argument::timeout(timeout_ns);
        let spun = exclusive(&handle.dispatcher, IS_SPINNING)?.spin_once(timeout);
        Ok(match spun {
            SpinResult::Called => OK,
            SpinResult::TimedOut => NOTHING,
            SpinResult::Stopped => WOKEN,
        })
    })
}

/// Stops a dispatcher for good.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_stop(dispatcher: *const DispatcherHandle) {
    // SAFETY: null or the caller's handle. Not guarded: it cannot panic, and may run in a signal handler.
    if let Some(handle) = unsafe { dispatcher.as_ref() } {
        handle.stopper.stop();
    }
}

/// Closes a dispatcher and its subscribers.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_dispatcher_close(dispatcher: *mut DispatcherHandle) {
    // SAFETY: null or a handle that the caller gives back.
    unsafe { close(dispatcher) }
}
