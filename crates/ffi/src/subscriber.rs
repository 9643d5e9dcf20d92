//! `noctule_subscriber_*`, `noctule_take*`, `noctule_receive` and `noctule_sample_release`.

use std::ffi::{c_char, c_int, c_void};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::Duration;

use noctule::{Node, Route, Sample, SampleInfo, Subscriber, SubscriberStatistics, TakeError};
use noctule_timebase::Span;

use crate::argument::{self, QosOptions};
use crate::failure::{Failure, NOTHING, OK, Outcome, guard};
use crate::node::{NodeHandle, close};

/// `noctule_subscriber_t`.
pub struct SubscriberHandle {
    pub(crate) subscriber: Subscriber,
    // After the subscriber: its thread announces that the subscriber has gone.
    pub(crate) node: Arc<Node>,
}

/// `noctule_sample_t`.
pub struct SampleHandle {
    /// Kept, not used: its memory stays as long as it lives.
    _sample: Sample,
}

/// `noctule_subscriber_options_t`.
#[repr(C)]
pub struct SubscriberOptions {
    type_name: *const c_char,
    type_hash: u64,
    format: *const c_char,
    qos: QosOptions,
    wait: c_int,
    borrows: u32,
    /// A C `bool`, which may hold anything if it was not initialised.
    keep_all: u8,
    ignore_local: u8,
}

/// `noctule_sample_info_t`.
#[repr(C)]
pub struct Info {
    bytes: *const c_void,
    length_bytes: usize,
    sequence: u64,
    missed: u64,
    source_time_ns: i64,
    receive_time_ns: i64,
    age_ns: i64,
    bound_ns: i64,
    sigma_ns: i64,
    format: *const c_char,
    publisher: [u8; 16],
    endpoint: u32,
    route: c_int,
}

impl Info {
    pub(crate) fn new(info: &SampleInfo, bytes: *const u8) -> Info {
        Info {
            bytes: bytes.cast(),
            length_bytes: info.length_bytes,
            sequence: info.sequence,
            missed: info.missed,
            source_time_ns: info.source_time.map_or(i64::MIN, |time| time.ns()),
            receive_time_ns: info.receive_time.ns(),
            age_ns: info.age().map_or(i64::MIN, |age| age.span.ns()),
            bound_ns: info.bound.map_or(-1, Span::ns),
            sigma_ns: info.sigma.map_or(-1, Span::ns),
            format: argument::format_name(info.format),
            publisher: info.publisher.0,
            endpoint: info.endpoint.0,
            route: match info.route {
                Route::SharedMemory => 0,
                Route::Udp => 1,
            },
        }
    }
}

/// `noctule_statistics_t`.
#[repr(C)]
pub struct Statistics {
    taken: u64,
    missed: u64,
    expired: u64,
    late: u64,
    deadline_missed: u64,
    bytes: u64,
    aged: u64,
    age_p50_ns: i64,
    age_p90_ns: i64,
    age_p99_ns: i64,
    age_p99_9_ns: i64,
    age_max_ns: i64,
    bound_ns: i64,
}

impl From<SubscriberStatistics> for Statistics {
    fn from(from: SubscriberStatistics) -> Statistics {
        let age = |age: Option<Span>| age.map_or(i64::MIN, Span::ns);
        Statistics {
            taken: from.counters.taken,
            missed: from.counters.missed,
            expired: from.counters.expired,
            late: from.counters.late,
            deadline_missed: from.deadline_missed,
            bytes: from.counters.bytes,
            aged: from.aged,
            age_p50_ns: age(from.age_p50),
            age_p90_ns: age(from.age_p90),
            age_p99_ns: age(from.age_p99),
            age_p99_9_ns: age(from.age_p99_9),
            age_max_ns: age(from.age_max),
            bound_ns: from.bound.map_or(-1, Span::ns),
        }
    }
}

/// Opens a topic for reading.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_subscriber_open(
    node: *const NodeHandle,
    topic: *const c_char,
    options: *const SubscriberOptions,
    subscriber: *mut *mut SubscriberHandle,
) -> c_int {
    // SAFETY: passed on.
    guard(|| unsafe { open(node, topic, options, subscriber) })
}

/// # Safety
/// As in the header.
unsafe fn open(
    node: *const NodeHandle,
    topic: *const c_char,
    options: *const SubscriberOptions,
    subscriber: *mut *mut SubscriberHandle,
) -> Outcome {
    // SAFETY: the memory of the caller for the result.
    let handle = unsafe { argument::exclusive(subscriber, "subscriber") }?;
    *handle = std::ptr::null_mut();
    // SAFETY: null or the caller's handle.
    let node = unsafe { argument::shared(node, "node") }?;
    // SAFETY: the caller's text.
    let mut builder = node.0.subscriber(unsafe { argument::text(topic, "topic") }?);
    // SAFETY: null or the caller's options.
    if let Some(options) = unsafe { options.as_ref() } {
        // SAFETY: null or the caller's text.
        if let Some(name) = unsafe { argument::optional_text(options.type_name, "type_name") }? {
            builder = builder.type_name(name, options.type_hash);
        }
        // SAFETY: null or the caller's text.
        if let Some(format) = unsafe { argument::format(options.format) }? {
            builder = builder.formats(&[format]);
        }
        let qos = argument::qos(&options.qos)?;
        builder = builder.qos(qos);
        if options.keep_all != 0 {
            builder = builder.keep_all(qos.depth);
        } else if options.qos.keep_last > 0 {
            builder = builder.keep_last(qos.depth);
        }
        builder = builder.ignore_local(options.ignore_local != 0);
        if options.borrows > BORROWS_MAX {
            return Err(Failure::argument(format!(
                "borrows is {}; 1 to {BORROWS_MAX} are possible, or 0 for the default",
                options.borrows
            )));
        }
        if options.borrows > 0 {
            builder = builder.borrows(options.borrows);
        }
        builder = builder.wait(argument::wait(options.wait)?);
    }
    let subscriber = builder.open()?;
    *handle = Box::into_raw(Box::new(SubscriberHandle { subscriber, node: Arc::clone(&node.0) }));
    Ok(OK)
}

/// Most samples of one publisher that a subscriber may hold at once.
const BORROWS_MAX: u32 = 7;

/// Borrows the next sample, if there is one.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_take(
    subscriber: *mut SubscriberHandle,
    sample: *mut *mut SampleHandle,
    info: *mut Info,
) -> c_int {
    // SAFETY: passed on.
    guard(|| unsafe { receive(subscriber, Some(Duration::ZERO), sample, info) })
}

/// Borrows the newest sample, if there is one, and passes over older ones.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_take_latest(
    subscriber: *mut SubscriberHandle,
    sample: *mut *mut SampleHandle,
    info: *mut Info,
) -> c_int {
    // SAFETY: passed on.
    guard(|| unsafe { take_with(subscriber, Subscriber::take_latest, sample, info) })
}

/// Borrows the next sample and waits for it.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_receive(
    subscriber: *mut SubscriberHandle,
    timeout_ns: i64,
    sample: *mut *mut SampleHandle,
    info: *mut Info,
) -> c_int {
    // SAFETY: passed on.
    guard(|| unsafe { receive(subscriber, argument::timeout(timeout_ns), sample, info) })
}

/// # Safety
/// As in the header.
unsafe fn receive(
    subscriber: *mut SubscriberHandle,
    timeout: Option<Duration>,
    sample: *mut *mut SampleHandle,
    info: *mut Info,
) -> Outcome {
    // SAFETY: passed on.
    unsafe { take_with(subscriber, |subscriber| subscriber.receive(timeout), sample, info) }
}

/// # Safety
/// As in the header.
unsafe fn take_with(
    subscriber: *mut SubscriberHandle,
    take: impl FnOnce(&mut Subscriber) -> Result<Option<Sample>, TakeError>,
    sample: *mut *mut SampleHandle,
    info: *mut Info,
) -> Outcome {
    // SAFETY: the memory of the caller for the result.
    let handle = unsafe { argument::exclusive(sample, "sample") }?;
    *handle = std::ptr::null_mut();
    // SAFETY: the memory of the caller for the result.
    let info = unsafe { argument::exclusive(info, "info") }?;
    // SAFETY: null or the caller's handle, which no other thread uses meanwhile.
    let SubscriberHandle { subscriber, .. } = unsafe { argument::exclusive(subscriber, "subscriber") }?;
    let Some(sample) = take(subscriber)? else { return Ok(NOTHING) };
    *info = Info::new(sample.info(), sample.as_ptr());
    *handle = Box::into_raw(Box::new(SampleHandle { _sample: sample }));
    Ok(OK)
}

/// Copies the next sample, if there is one.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_take_into(
    subscriber: *mut SubscriberHandle,
    buffer: *mut c_void,
    buffer_bytes: usize,
    info: *mut Info,
) -> c_int {
    guard(|| {
        // SAFETY: the memory of the caller for the result.
        let info = unsafe { argument::exclusive(info, "info") }?;
        // SAFETY: null or the caller's handle, which no other thread uses meanwhile.
        let SubscriberHandle { subscriber, .. } = unsafe { argument::exclusive(subscriber, "subscriber") }?;
        // SAFETY: the caller's buffer.
        let buffer = unsafe { argument::buffer(buffer.cast(), buffer_bytes) }?;
        let Some(found) = subscriber.take_into(buffer)? else { return Ok(NOTHING) };
        *info = Info::new(&found, buffer.as_ptr());
        Ok(OK)
    })
}

/// Counts the publishers that are matched now.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_subscriber_publishers(subscriber: *mut SubscriberHandle) -> c_int {
    guard(|| {
        // SAFETY: null or the caller's handle, which no other thread uses meanwhile.
        let SubscriberHandle { subscriber, .. } = unsafe { argument::exclusive(subscriber, "subscriber") }?;
        Ok(c_int::try_from(subscriber.publishers()).unwrap_or(c_int::MAX))
    })
}

/// A descriptor to poll.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_subscriber_descriptor(subscriber: *mut SubscriberHandle) -> c_int {
    guard(|| {
        // SAFETY: null or the caller's handle, which no other thread uses meanwhile.
        let SubscriberHandle { subscriber, .. } = unsafe { argument::exclusive(subscriber, "subscriber") }?;
        let descriptor = subscriber.descriptor();
        descriptor.map(|descriptor| descriptor.as_raw_fd()).map_err(|error| {
            Failure::system(format!("a descriptor to poll, or its thread, cannot be had: {error}"))
        })
    })
}

/// Statistics of the topic since the subscriber was opened.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_subscriber_statistics(
    subscriber: *const SubscriberHandle,
    statistics: *mut Statistics,
) -> c_int {
    guard(|| {
        // SAFETY: the memory of the caller for the result.
        let statistics = unsafe { argument::exclusive(statistics, "statistics") }?;
        // SAFETY: null or the caller's handle, which no other thread uses meanwhile.
        let handle = unsafe { argument::shared(subscriber, "subscriber") }?;
        *statistics = handle.subscriber.statistics().into();
        Ok(OK)
    })
}

/// Gives a sample back.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_sample_release(sample: *mut SampleHandle) {
    // SAFETY: null or a handle that the caller gives back.
    unsafe { close(sample) }
}

/// Closes a subscriber.
///
/// # Safety
/// As in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_subscriber_close(subscriber: *mut SubscriberHandle) {
    // SAFETY: null or a handle that the caller gives back.
    unsafe { close(subscriber) }
}
