//! Arguments of callers, made safe to use or refused.

use std::ffi::{CStr, CString, c_char, c_int};
use std::sync::OnceLock;
use std::time::Duration;

use noctule::{Durability, Format, Qos, Reliability, Wait};
use noctule_timebase::Span;

use crate::failure::Failure;

/// The object behind a handle or a result.
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

/// Time to wait; negative is for ever.
pub(crate) fn timeout(ns: i64) -> Option<Duration> {
    u64::try_from(ns).ok().map(Duration::from_nanos)
}

/// `noctule_qos_t`.
#[repr(C)]
pub(crate) struct QosOptions {
    reliability: c_int,
    pub(crate) keep_last: u32,
    /// A C `bool`, which may hold anything if it was not initialised.
    transient_local: u8,
    deadline_ns: i64,
    lifespan_ns: i64,
    tolerable_loss_ppm: u32,
}

/// Of which zero is the default.
pub(crate) fn qos(options: &QosOptions) -> Result<Qos, Failure> {
    let reliability = match options.reliability {
        0 => Reliability::BestEffort,
        1 => Reliability::DeadlineBound,
        2 => Reliability::Reliable,
        code => {
            return Err(Failure::argument(format!("no reliability has the number {code}; 0 to 2 are")));
        }
    };
    let by_default = Qos::default();
    Ok(Qos {
        reliability,
        durability: match options.transient_local {
            0 => Durability::Volatile,
            _ => Durability::TransientLocal,
        },
        depth: if options.keep_last > 0 { options.keep_last } else { by_default.depth },
        deadline: span(options.deadline_ns, "deadline_ns")?,
        lifespan: span(options.lifespan_ns, "lifespan_ns")?,
        loss_ppm: match options.tolerable_loss_ppm {
            0 => by_default.loss_ppm,
            1..=1_000_000 => options.tolerable_loss_ppm,
            more => {
                return Err(Failure::argument(format!(
                    "tolerable_loss_ppm is {more}; at most 1000000 is all"
                )));
            }
        },
        ..by_default
    })
}

/// A duration in ns of which zero means none.
fn span(ns: i64, what: &str) -> Result<Option<Span>, Failure> {
    if ns < 0 {
        return Err(Failure::argument(format!("{what} is {ns} ns; it must be positive, or 0 for none")));
    }
    Ok((ns > 0).then(|| Span::from_ns(ns)))
}

/// One of `NOCTULE_WAIT_BLOCK` and so on.
pub(crate) fn wait(code: c_int) -> Result<Wait, Failure> {
    match code {
        0 => Ok(Wait::Block),
        1 => Ok(Wait::Spin),
        2 => Ok(Wait::Hybrid),
        _ => Err(Failure::argument(format!("no way to wait has the number {code}; 0 to 2 are"))),
    }
}

/// The name of a format, or null for none.
///
/// # Safety
/// As [`text`].
pub(crate) unsafe fn format(name: *const c_char) -> Result<Option<Format>, Failure> {
    // SAFETY: passed on.
    let name = unsafe { optional_text(name, "format") }?;
    let parsed = name.map(str::parse::<Format>).transpose();
    parsed.map_err(|error| Failure::argument(error.to_string()))
}

/// The name of a format as C reads it; null for none.
pub(crate) fn format_name(format: Option<Format>) -> *const c_char {
    static NAMES: OnceLock<[CString; Format::ALL.len()]> = OnceLock::new();
    let Some(format) = format else { return std::ptr::null() };
    // No name contains a zero byte, and numbers begin with 1.
    let names =
        NAMES.get_or_init(|| Format::ALL.map(|format| CString::new(format.name()).unwrap_or_default()));
    names[usize::from(format.id()) - 1].as_ptr()
}

fn null(what: &str) -> Failure {
    Failure::argument(format!("{what} is NULL"))
}
