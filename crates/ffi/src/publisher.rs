//! `noctule_publisher_*` and `noctule_publish*`.

use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;
use std::time::Duration;

use noctule::{Node, Publisher};
use noctule_timebase::Instant;

use crate::argument::{self, QosOptions};
use crate::failure::{NOTHING, OK, Outcome, guard};
use crate::node::{NodeHandle, close};

/// `noctule_publisher_t`.
pub struct PublisherHandle {
    publisher: Publisher,
    // After the publisher: its thread tells the others that the publisher has gone.
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
}

/// Opens a topic for writing.
///
/// # Safety
/// As the header says.
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
/// As the header says.
unsafe fn open(
    node: *const NodeHandle,
    topic: *const c_char,
    options: *const PublisherOptions,
    publisher: *mut *mut PublisherHandle,
) -> Outcome {
    // SAFETY: where the caller wants the result.
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
    }
    let publisher = builder.open()?;
    *handle = Box::into_raw(Box::new(PublisherHandle { publisher, _node: Arc::clone(&node.0) }));
    Ok(OK)
}

/// Publishes a copy of some bytes, true now.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_publish(
    publisher: *mut PublisherHandle,
    bytes: *const c_void,
    length_bytes: usize,
) -> c_int {
    guard(|| {
        // SAFETY: null or the caller's handle, which no other thread uses meanwhile.
        let PublisherHandle { publisher, .. } = unsafe { argument::exclusive(publisher, "publisher") }?;
        // SAFETY: the caller's bytes.
        publisher.publish(unsafe { argument::slice(bytes.cast(), length_bytes, "bytes") }?)?;
        Ok(OK)
    })
}

/// Publishes a copy of some bytes that were true at `source_time_ns`.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_publish_at(
    publisher: *mut PublisherHandle,
    bytes: *const c_void,
    length_bytes: usize,
    source_time_ns: i64,
) -> c_int {
    guard(|| {
        // SAFETY: null or the caller's handle, which no other thread uses meanwhile.
        let PublisherHandle { publisher, .. } = unsafe { argument::exclusive(publisher, "publisher") }?;
        // SAFETY: the caller's bytes.
        let bytes = unsafe { argument::slice(bytes.cast(), length_bytes, "bytes") }?;
        publisher.publish_at(bytes, Instant::from_ns(source_time_ns))?;
        Ok(OK)
    })
}

/// Waits until a sample can be published with keep all.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_wait_for_room(
    publisher: *mut PublisherHandle,
    length_bytes: usize,
    timeout_ns: i64,
) -> c_int {
    guard(|| {
        // SAFETY: null or the caller's handle, which no other thread uses meanwhile.
        let PublisherHandle { publisher, .. } = unsafe { argument::exclusive(publisher, "publisher") }?;
        let timeout = argument::timeout(timeout_ns).unwrap_or(Duration::MAX);
        Ok(if publisher.wait_for_room(length_bytes, timeout) { OK } else { NOTHING })
    })
}

/// Waits until everything was acknowledged.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_wait_for_acknowledgments(
    publisher: *const PublisherHandle,
    timeout_ns: i64,
) -> c_int {
    guard(|| {
        // SAFETY: null or the caller's handle.
        let PublisherHandle { publisher, .. } = unsafe { argument::shared(publisher, "publisher") }?;
        let timeout = argument::timeout(timeout_ns).unwrap_or(Duration::MAX);
        Ok(if publisher.wait_for_acknowledgments(timeout) { OK } else { NOTHING })
    })
}

/// Counts the readers that are matched now.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_publisher_readers(publisher: *const PublisherHandle) -> c_int {
    guard(|| {
        // SAFETY: null or the caller's handle.
        let readers = unsafe { argument::shared(publisher, "publisher") }?.publisher.readers();
        Ok(c_int::try_from(readers).unwrap_or(c_int::MAX))
    })
}

/// Closes a publisher.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn noctule_publisher_close(publisher: *mut PublisherHandle) {
    // SAFETY: null or a handle that the caller gives back.
    unsafe { close(publisher) }
}
