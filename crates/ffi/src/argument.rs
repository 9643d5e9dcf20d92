//! What callers pass, made safe to use or refused.

use std::ffi::{CStr, c_char, c_int};
use std::time::Duration;

use noctule::Reliability;

use crate::failure::Failure;

/// What a handle or a result points to.
///
/// # Safety
/// `pointer` is null or valid for `'a`, and nothing else uses it meanwhile.
pub(crate) unsafe fn exclusive<'a, T>(pointer: *mut T, what: &str) -> Result<&'a mut T, Failure> {
    // SAFETY: the caller's promise.
    unsafe { pointer.as_mut() }.ok_or_else(|| null(what))
}

/// As [`exclusive`], for what is only read.
///
/// # Safety
/// `pointer` is null or valid for `'a`, and nothing writes there meanwhile.
pub(crate) unsafe fn shared<'a, T>(pointer: *const T, what: &str) -> Result<&'a T, Failure> {
    // SAFETY: the caller's promise.
    unsafe { pointer.as_ref() }.ok_or_else(|| null(what))
}

/// A text that must be there.
///
/// # Safety
/// `text` is null or ends with a zero byte and stays for `'a`.
pub(crate) unsafe fn text<'a>(text: *const c_char, what: &str) -> Result<&'a str, Failure> {
    // SAFETY: the caller's promise.
    unsafe { optional_text(text, what) }?.ok_or_else(|| null(what))
}

/// A text, or null.
///
/// # Safety
/// As [`text`].
pub(crate) unsafe fn optional_text<'a>(text: *const c_char, what: &str) -> Result<Option<&'a str>, Failure> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: not null, and the caller's promise.
    let text = unsafe { CStr::from_ptr(text) };
    let text = text.to_str().map_err(|_| Failure::argument(format!("{what} is not UTF-8")))?;
    Ok(Some(text))
}

/// An array; null if it is empty.
///
/// # Safety
/// `first` is null or valid for `count` elements during `'a`, and nothing writes there meanwhile.
pub(crate) unsafe fn slice<'a, T>(first: *const T, count: usize, what: &str) -> Result<&'a [T], Failure> {
    if count == 0 {
        return Ok(&[]);
    }
    check_array::<T>(first, count, what)?;
    // SAFETY: not null, aligned, not longer than any array, and the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts(first, count) })
}

/// As [`slice`], to be written.
///
/// # Safety
/// As [`slice`], and nothing else uses it meanwhile.
pub(crate) unsafe fn buffer<'a>(first: *mut u8, count: usize) -> Result<&'a mut [u8], Failure> {
    if count == 0 {
        return Ok(&mut []);
    }
    check_array::<u8>(first, count, "buffer")?;
    // SAFETY: not null, not longer than any array, and the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts_mut(first, count) })
}

fn check_array<T>(first: *const T, count: usize, what: &str) -> Result<(), Failure> {
    if first.is_null() {
        return Err(Failure::argument(format!("{what} is NULL, but is said to have {count} elements")));
    }
    if !first.is_aligned() {
        return Err(Failure::argument(format!("{what} is not aligned to its type")));
    }
    let most = isize::MAX as usize / size_of::<T>();
    if count > most {
        return Err(Failure::argument(format!(
            "{what} is said to have {count} elements; {most} are the most"
        )));
    }
    Ok(())
}

/// A duration in ns of which zero means none.
pub(crate) fn duration(ns: i64, what: &str) -> Result<Option<Duration>, Failure> {
    let ns = u64::try_from(ns)
        .map_err(|_| Failure::argument(format!("{what} is {ns} ns; it must be positive, or 0 for none")))?;
    Ok((ns > 0).then(|| Duration::from_nanos(ns)))
}

/// One of `NOCTULE_BEST_EFFORT` and so on.
pub(crate) fn reliability(code: c_int) -> Result<Reliability, Failure> {
    match code {
        0 => Ok(Reliability::BestEffort),
        1 => Ok(Reliability::DeadlineBound),
        2 => Ok(Reliability::Reliable),
        _ => Err(Failure::argument(format!("no reliability has the number {code}; 0 to 2 are"))),
    }
}

fn null(what: &str) -> Failure {
    Failure::argument(format!("{what} is NULL"))
}
