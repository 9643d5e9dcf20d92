//! Publishers and subscriptions.

use std::ffi::{c_char, c_int};
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use noctule_rmw_core::status::{KINDS, Kind, Status, Statuses};
use noctule_rmw_core::writer::{Topic, WriteError};
use noctule_rmw_core::{Reader, Waitable, Writer};

use crate::text::{Error, given, report};
use crate::{Message, NodeHandle, QualityOf, give};

/// A publisher.
pub struct WriterHandle(Arc<Writer>);
/// A subscription.
pub struct ReaderHandle(Arc<Reader>);

/// As in the header.
#[repr(C)]
pub struct TopicOf {
    name: *const c_char,
    type_name: *const c_char,
    type_hash: u64,
    rihs01: *const u8,
    quality: QualityOf,
    bytes_max: u64,
    is_plain: bool,
}

/// As in the header.
#[repr(C)]
pub struct StatusOf {
    total: u64,
    total_change: u64,
    current: u64,
    current_change: i64,
    policy: u32,
}

/// # Safety
/// 32 bytes or null.
pub(crate) unsafe fn hash(bytes: *const u8) -> Option<[u8; 32]> {
    // SAFETY: the caller's word.
    (!bytes.is_null()).then(|| unsafe { *bytes.cast::<[u8; 32]>() })
}

/// # Safety
/// The header's contract.
unsafe fn topic<R>(of: *const TopicOf, open: impl FnOnce(&Topic<'_>) -> R) -> R {
    // SAFETY: the header's contract.
    let (of, name, type_name, rihs01) =
        unsafe { (&*of, given((*of).name), given((*of).type_name), hash((*of).rihs01)) };
    open(&Topic {
        name: &name,
        type_name: &type_name,
        type_hash: of.type_hash,
        rihs01,
        quality: of.quality.quality(),
        bytes_max: of.bytes_max as usize,
        is_plain: of.is_plain,
    })
}

fn kind(number: u32) -> Kind {
    KINDS.get(number as usize).copied().unwrap_or(Kind::Matched)
}

fn event(statuses: &Statuses, number: u32) -> *const Waitable {
    ptr::from_ref(statuses.waitable(kind(number)))
}

fn status(statuses: &Statuses, number: u32) -> StatusOf {
    let Status { total, total_change, current, current_change, policy } = statuses.take(kind(number));
    StatusOf { total, total_change, current, current_change, policy }
}

/// # Safety
/// The header's contract.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrmw_writer_open(
    node: *mut NodeHandle,
    of: *const TopicOf,
    error: *mut Error,
) -> *mut WriterHandle {
    // SAFETY: the header's contract.
    let opened = unsafe { topic(of, |topic| Writer::open(&(*node).0, topic)) };
    match opened {
        Ok(writer) => Box::into_raw(Box::new(WriterHandle(writer))),
        Err(why) => {
            // SAFETY: the header's contract.
            unsafe { report(error, &why) };
            ptr::null_mut()
        }
    }
}

/// # Safety
/// The header's contract.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrmw_writer_free(writer: *mut WriterHandle) {
    // SAFETY: the header's contract: it came of `nrmw_writer_open` and was not freed.
    unsafe { Box::from_raw(writer) }.0.close();
}

/// # Safety
/// The header's contract.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrmw_writer_publish(
    writer: *mut WriterHandle,
    bytes: *const u8,
    length: usize,
    error: *mut Error,
) -> c_int {
    // SAFETY: the header's contract.
    let (writer, bytes) = unsafe { (&*writer, std::slice::from_raw_parts(bytes, length)) };
    // SAFETY: the header's contract.
    unsafe { published(writer.0.publish(bytes), error) }
}

/// # Safety
/// The header's contract of `error`.
unsafe fn published(done: Result<(), WriteError>, error: *mut Error) -> c_int {
    let Err(why) = done else { return 0 };
    // SAFETY: the caller's word.
    unsafe { report(error, &why) };
    if matches!(why, WriteError::TimedOut { .. }) { 1 } else { 2 }
}

/// # Safety
/// The header's contract.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrmw_writer_lend(
    writer: *mut WriterHandle,
    length: usize,
    error: *mut Error,
) -> *mut u8 {
    // SAFETY: the header's contract.
    match unsafe { &*writer }.0.lend(length) {
        Ok(place) => place,
        Err(why) => {
            // SAFETY: the header's contract.
            unsafe { report(error, &why) };
            ptr::null_mut()
        }
    }
}

/// # Safety
/// The header's contract.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrmw_writer_publish_lent(
    writer: *mut WriterHandle,
    place: *const u8,
    length: usize,
    error: *mut Error,
) -> c_int {
    // SAFETY: the header's contract: the place is of `nrmw_writer_lend`, and nobody writes there any more.
    let (writer, bytes) = unsafe { (&*writer, std::slice::from_raw_parts(place, length)) };
    // SAFETY: the header's contract.
    unsafe { published(writer.0.publish_lent(place.addr(), bytes), error) }
}

/// # Safety
/// The header's contract.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrmw_writer_give_back(writer: *mut WriterHandle, place: *const u8) -> bool {
    // SAFETY: the header's contract; the place is not looked at.
    unsafe { &*writer }.0.give_back(place.addr())
}

/// # Safety
/// The header's contract.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrmw_writer_matched(writer: *const WriterHandle) -> usize {
    // SAFETY: the header's contract.
    unsafe { &*writer }.0.matched()
}

/// # Safety
/// The header's contract.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrmw_writer_gid(writer: *const WriterHandle, gid: *mut [u8; 16]) {
    // SAFETY: the header's contract.
    unsafe { *gid = (*writer).0.gid().0 };
}

/// # Safety
/// The header's contract.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrmw_writer_event(writer: *mut WriterHandle, number: u32) -> *const Waitable {
    // SAFETY: the header's contract.
    event(unsafe { &*writer }.0.statuses(), number)
}

/// # Safety
/// The header's contract.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrmw_writer_status(writer: *mut WriterHandle, number: u32) -> StatusOf {
    // SAFETY: the header's contract.
    status(unsafe { &*writer }.0.statuses(), number)
}

/// # Safety
/// The header's contract.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrmw_writer_wait_for_acknowledgments(
    writer: *mut WriterHandle,
    timeout_ns: i64,
) -> bool {
    let timeout = u64::try_from(timeout_ns).ok().map(Duration::from_nanos);
    // SAFETY: the header's contract.
    unsafe { &*writer }.0.wait_for_acknowledgments(timeout)
}

/// # Safety
/// The header's contract.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrmw_reader_open(
    node: *mut NodeHandle,
    of: *const TopicOf,
    ignores_own: bool,
    error: *mut Error,
) -> *mut ReaderHandle {
    // SAFETY: the header's contract.
    let opened = unsafe { topic(of, |topic| Reader::open(&(*node).0, topic, ignores_own)) };
    match opened {
        Ok(reader) => Box::into_raw(Box::new(ReaderHandle(reader))),
        Err(why) => {
            // SAFETY: the header's contract.
            unsafe { report(error, &why) };
            ptr::null_mut()
        }
    }
}

/// # Safety
/// The header's contract.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrmw_reader_free(reader: *mut ReaderHandle) {
    // SAFETY: the header's contract: it came of `nrmw_reader_open` and was not freed.
    unsafe { Box::from_raw(reader) }.0.close();
}

/// # Safety
/// The header's contract.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrmw_reader_take(reader: *mut ReaderHandle, message: *mut Message) -> bool {
    // SAFETY: the header's contract.
    unsafe { give((*reader).0.take().map(Message::of_taken), message) }
}

/// # Safety
/// The header's contract.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrmw_reader_matched(reader: *const ReaderHandle) -> usize {
    // SAFETY: the header's contract.
    unsafe { &*reader }.0.matched()
}

/// # Safety
/// The header's contract.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrmw_reader_gid(reader: *const ReaderHandle, gid: *mut [u8; 16]) {
    // SAFETY: the header's contract.
    unsafe { *gid = (*reader).0.gid().0 };
}

/// # Safety
/// The header's contract.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrmw_reader_waitable(reader: *mut ReaderHandle) -> *const Waitable {
    // SAFETY: the header's contract.
    ptr::from_ref(unsafe { &*reader }.0.waitable())
}

/// # Safety
/// The header's contract.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrmw_reader_event(reader: *mut ReaderHandle, number: u32) -> *const Waitable {
    // SAFETY: the header's contract.
    event(unsafe { &*reader }.0.statuses(), number)
}

/// # Safety
/// The header's contract.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrmw_reader_status(reader: *mut ReaderHandle, number: u32) -> StatusOf {
    // SAFETY: the header's contract.
    status(unsafe { &*reader }.0.statuses(), number)
}
