//! Values as a plain sequence of primitives in the order of their definition, without names.
//!
//! CDR and CSV differ in how a number or a string looks, and in nothing else: both write the fields of a
//! type one after the other and put a count before what varies in length. So serde's data model is walked
//! here once, and a format says only how its primitives look ([`Sink`], [`Source`]).
//!
//! Values that have no place in such a sequence are refused by a sentence: maps, enums that carry values, 128-bit
//! integers, Rust's four-byte `char`.

mod reader;
mod writer;

use std::borrow::Cow;
use std::str::FromStr;

pub(crate) use reader::read;
pub(crate) use writer::write;

use crate::error::Fault;

/// How deep values may nest. Recursive types would otherwise let a small input use up the stack.
pub(crate) const DEPTH_MAX: u32 = 128;

/// Destination of primitives.
pub(crate) trait Sink {
    fn number<N: Number>(&mut self, value: N) -> Result<(), Fault>;
    fn boolean(&mut self, value: bool) -> Result<(), Fault>;
    fn string(&mut self, value: &str) -> Result<(), Fault>;
    fn bytes(&mut self, value: &[u8]) -> Result<(), Fault>;
    /// The count in front of a sequence.
    fn count(&mut self, count: usize) -> Result<(), Fault>;
    /// Whether an optional value follows.
    fn presence(&mut self, present: bool) -> Result<(), Fault>;
}

/// Where primitives come from. Nothing that it returns is larger than its input.
pub(crate) trait Source<'de> {
    fn number<N: Number>(&mut self) -> Result<N, Fault>;
    fn boolean(&mut self) -> Result<bool, Fault>;
    fn string(&mut self) -> Result<Cow<'de, str>, Fault>;
    fn bytes(&mut self) -> Result<Cow<'de, [u8]>, Fault>;
    /// The count in front of a sequence: at most the number of primitives that can still follow, taking
    /// every element for at least one.
    fn count(&mut self) -> Result<usize, Fault>;
    fn presence(&mut self) -> Result<bool, Fault>;
}

/// Numbers of the data model. As text they are read by [`FromStr`].
pub(crate) trait Number: Copy + FromStr {
    /// Size, and in CDR alignment, in bytes.
    const BYTES: usize;
    /// Appends the little-endian bytes.
    fn append_le(self, out: &mut Vec<u8>);
    /// Reads exactly [`Self::BYTES`] bytes.
    fn from_le(bytes: &[u8]) -> Option<Self>;
    /// Likewise, most significant byte first.
    fn from_be(bytes: &[u8]) -> Option<Self>;
    /// The shortest digits that lead back to the same number.
    #[cfg(feature = "csv")]
    fn with_text<R>(self, use_text: impl FnOnce(&str) -> R) -> R;
}

macro_rules! numbers {
    ($($buffer:path: $($type:ty)*),*) => {$($(
        impl Number for $type {
            const BYTES: usize = size_of::<Self>();
            #[inline]
            fn append_le(self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
            #[inline]
            fn from_le(bytes: &[u8]) -> Option<Self> {
                bytes.try_into().ok().map(Self::from_le_bytes)
            }
            #[inline]
            fn from_be(bytes: &[u8]) -> Option<Self> {
                bytes.try_into().ok().map(Self::from_be_bytes)
            }
            #[cfg(feature = "csv")]
            fn with_text<R>(self, use_text: impl FnOnce(&str) -> R) -> R {
                // The standard library's formatting takes several times as long.
                use_text(<$buffer>::new().format(self))
            }
        }
    )*)*};
}

numbers! { itoa::Buffer: i8 i16 i32 i64 u8 u16 u32 u64, zmij::Buffer: f32 f64 }
