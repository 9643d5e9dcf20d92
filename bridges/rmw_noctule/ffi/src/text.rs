//! Text across the border.

use std::borrow::Cow;
use std::ffi::{CStr, CString, c_char};
use std::fmt::Display;

/// As in the header.
#[repr(C)]
pub struct Error {
    text: [c_char; 512],
}

/// A text of C.
///
/// # Safety
/// It ends with a zero and lives as long as the result.
pub(crate) unsafe fn given<'a>(text: *const c_char) -> Cow<'a, str> {
    // SAFETY: the caller's word.
    unsafe { CStr::from_ptr(text) }.to_string_lossy()
}

/// A text for C; what follows a zero is cut.
pub(crate) fn owned(text: &str) -> CString {
    let end = text.find('\0').unwrap_or(text.len());
    CString::new(&text[..end]).unwrap_or_default()
}

/// Writes why something failed.
///
/// # Safety
/// `error` is valid for writing.
pub(crate) unsafe fn report(error: *mut Error, why: &dyn Display) {
    let why = why.to_string();
    // SAFETY: the caller's word.
    let text = unsafe { &mut (*error).text };
    let bytes = why.bytes().take(text.len() - 1).chain([0]);
    text.iter_mut().zip(bytes).for_each(|(place, byte)| *place = byte as c_char);
}
