//! `noctule_publisher_*` and `noctule_publish*`.

use std::ffi::{c_char, c_int, c_void};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::Duration;

use noctule::{Node, Publisher, SourceTime};
use noctule_timebase::{Instant, Span};

use crate::argument::{self, QosOptions};
use crate::failure::{Failure, NOTHING, OK, Outcome, guard};
use crate::node::{NodeHandle, close};
use crate::source_time::SourceTimeGiven;

/// `noctule_publisher_t`.
pub struct PublisherHandle {
    /// Never waited for: a second thread is an error, where it would lose samples.
    publisher: Mutex<Publisher>,
    // After the publisher: its thread announces that the publisher has gone.
    _node: Arc<Node>,
}

/// `noctule_publisher_options_t`.
#[repr(C)]
pub struct PublisherOptions {
    type_name: *const c_char,
    type_hash: u64,
    format: *const c_char,
    qos: QosOptions,
    payload_bytes_max: u32,
    borrows: u32,
    /// A C `bool`, which may hold anything if it was not initialised.
    multicast: u8,
    keep_all: u8,
    linger_ns: i64,
}

/// Opens a topic for writing.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_publisher_open(
    node: *const NodeHandle,
    topic: *const c_char,
    options: *const PublisherOptions,
    publisher: *mut *mut PublisherHandle,
) -> c_int {
    // SAFETY: passed on.
    guard(|| unsafe { open(node, topic, options, publisher) })
}

/// # Safety
/// As in the header.
unsafe fn open(
    node: *const NodeHandle,
    topic: *const c_char,
    options: *const PublisherOptions,
    publisher: *mut *mut PublisherHandle,
) -> Outcome {
    // SAFETY: the memory of the caller for the result.
    let handle = unsafe { argument::exclusive(publisher, "publisher") }?;
    *handle = std::ptr::null_mut();
    // SAFETY: null or the caller's handle.
    let node = unsafe { argument::shared(node, "node") }?;
    // SAFETY: the caller's text.
    let mut builder = node.0.publisher(unsafe { argument::text(topic, "topic") }?);
    // SAFETY: null or the caller's options.
    if let Some(options) = unsafe { options.as_ref() } {
        // SAFETY: null or the caller's text.
        if let Some(name) = unsafe { argument::optional_text(options.type_name, "type_name") }? {
            builder = builder.type_name(name, options.type_hash);
        }
        // SAFETY: null or the caller's text.
        if let Some(format) = unsafe { argument::format(options.format) }? {
            builder = builder.format(format);
        }
        let qos = argument::qos(&options.qos)?;
        builder = builder.qos(qos);
        if options.payload_bytes_max > 0 {
            builder = builder.payload_bytes_max(options.payload_bytes_max);
        }
        if options.borrows > 0 {
            builder = builder.borrows(options.borrows);
        }
        builder = builder.multicast(options.multicast != 0);
        if options.keep_all != 0 {
            builder = builder.keep_all(qos.depth);
        }
        if options.linger_ns != 0 {
            builder = builder.linger(argument::timeout(options.linger_ns).unwrap_or_default());
        }
    }
    let publisher = builder.open()?;
    *handle = Box::into_raw(Box::new(PublisherHandle {
        publisher: Mutex::new(publisher),
        _node: Arc::clone(&node.0),
    }));
    Ok(OK)
}

/// The publisher, for one thread at a time.
///
/// # Safety
/// `handle` is null or the caller's.
unsafe fn publisher_of<'a>(handle: *const PublisherHandle) -> Result<MutexGuard<'a, Publisher>, Failure> {
    // SAFETY: the caller's promise.
    let handle = unsafe { argument::shared(handle, "publisher") }?;
    match handle.publisher.try_lock() {
        Ok(publisher) => Ok(publisher),
        // A panic left it whole: what it does is counted before it is done.
        Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => Err(Failure::busy(
            "another thread is using this publisher; open one for each thread, or lock it; nothing was published",
        )),
    }
}

/// `noctule_publisher_counters_t`.
#[repr(C)]
pub struct PublisherCounters {
    published: u64,
    given_up: u64,
    deadline_missed: u64,
    would_block: u64,
    held_up: u64,
}

/// Counts what became of samples.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_publisher_counters(
    publisher: *const PublisherHandle,
    counters: *mut PublisherCounters,
) -> c_int {
    guard(|| {
        // SAFETY: the memory of the caller for the result.
        let counters = unsafe { argument::exclusive(counters, "counters") }?;
        // SAFETY: null or the caller's handle.
        let publisher = unsafe { publisher_of(publisher) }?;
        *counters = PublisherCounters {
            published: publisher.published(),
            given_up: publisher.given_up(),
            deadline_missed: publisher.deadline_missed().total,
            would_block: publisher.would_block(),
            held_up: publisher.held_up(),
        };
        Ok(OK)
    })
}

/// Publishes a copy of some bytes that were true at about `source_time_ns`.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_publish_uncertain(
    publisher: *const PublisherHandle,
    bytes: *const c_void,
    length_bytes: usize,
    source_time: *const SourceTimeGiven,
) -> c_int {
    guard(|| {
        // SAFETY: null or what the caller gives.
        let given = unsafe { argument::shared(source_time, "source_time") }?;
        // SAFETY: null or the caller's handle.
        let mut publisher = unsafe { publisher_of(publisher) }?;
        // SAFETY: the caller's bytes.
        let bytes = unsafe { argument::slice(bytes.cast(), length_bytes, "bytes") }?;
        let width = |ns: i64| (ns >= 0).then(|| Span::from_ns(ns));
        let time = Instant::from_ns(given.time_ns);
        let source = SourceTime { time, bound: width(given.bound_ns), sigma: width(given.sigma_ns) };
        publisher.publish_uncertain(bytes, source)?;
        Ok(OK)
    })
}

/// Lends a place for the next sample.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_loan(
    publisher: *const PublisherHandle,
    length_bytes: usize,
    place: *mut *mut c_void,
) -> c_int {
    guard(|| {
        // SAFETY: the memory of the caller for the result.
        let place = unsafe { argument::exclusive(place, "place") }?;
        *place = std::ptr::null_mut();
        // SAFETY: null or the caller's handle.
        *place = unsafe { publisher_of(publisher) }?.loan(length_bytes)?.cast();
        Ok(OK)
    })
}

/// Publishes what was lent.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_publish_loan(
    publisher: *const PublisherHandle,
    length_bytes: usize,
    source_time_ns: i64,
) -> c_int {
    guard(|| {
        let time = (source_time_ns != i64::MIN).then(|| Instant::from_ns(source_time_ns));
        // SAFETY: null or the caller's handle.
        unsafe { publisher_of(publisher) }?.publish_loan(length_bytes, time)?;
        Ok(OK)
    })
}

/// Takes back what was lent, unpublished.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_drop_loan(publisher: *const PublisherHandle) -> c_int {
    guard(|| {
        // SAFETY: null or the caller's handle.
        unsafe { publisher_of(publisher) }?.drop_loan();
        Ok(OK)
    })
}

/// Publishes a copy of some bytes, true now.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_publish(
    publisher: *const PublisherHandle,
    bytes: *const c_void,
    length_bytes: usize,
) -> c_int {
    guard(|| {
        // SAFETY: null or the caller's handle.
        let mut publisher = unsafe { publisher_of(publisher) }?;
        // SAFETY: the caller's bytes.
        publisher.publish(unsafe { argument::slice(bytes.cast(), length_bytes, "bytes") }?)?;
        Ok(OK)
    })
}

/// Publishes a copy of some bytes that were true at `source_time_ns`.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_publish_at(
    publisher: *const PublisherHandle,
    bytes: *const c_void,
    length_bytes: usize,
    source_time_ns: i64,
) -> c_int {
    guard(|| {
        // SAFETY: null or the caller's handle.
        let mut publisher = unsafe { publisher_of(publisher) }?;
        // SAFETY: the caller's bytes.
        let bytes = unsafe { argument::slice(bytes.cast(), length_bytes, "bytes") }?;
        publisher.publish_at(bytes, Instant::from_ns(source_time_ns))?;
        Ok(OK)
    })
}

/// Waits until a sample can be published with keep all.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_wait_for_room(
    publisher: *const PublisherHandle,
    length_bytes: usize,
    timeout_ns: i64,
) -> c_int {
    guard(|| {
        // SAFETY: null or the caller's handle.
        let mut publisher = unsafe { publisher_of(publisher) }?;
        let timeout = argument::timeout(timeout_ns).unwrap_or(Duration::MAX);
        Ok(if publisher.wait_for_room(length_bytes, timeout) { OK } else { NOTHING })
    })
}

/// Waits until everything was acknowledged.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_wait_for_acknowledgments(
    publisher: *const PublisherHandle,
    timeout_ns: i64,
) -> c_int {
    guard(|| {
        // SAFETY: null or the caller's handle.
        let publisher = unsafe { publisher_of(publisher) }?;
        let timeout = argument::timeout(timeout_ns).unwrap_or(Duration::MAX);
        Ok(if publisher.wait_for_acknowledgments(timeout) { OK } else { NOTHING })
    })
}

/// Counts the readers that are matched now.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_publisher_readers(publisher: *const PublisherHandle) -> c_int {
    guard(|| {
        // SAFETY: null or the caller's handle.
        let readers = unsafe { publisher_of(publisher) }?.readers();
        Ok(c_int::try_from(readers).unwrap_or(c_int::MAX))
    })
}

/// Closes a publisher.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_publisher_close(publisher: *mut PublisherHandle) {
    // SAFETY: null or a handle that the caller gives back.
    unsafe { close(publisher) }
}
