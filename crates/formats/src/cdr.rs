//! CDR as ROS 2 and DDS use it: plain XCDR version 1, with its four-byte encapsulation header.
//!
//! Written here, not linked: of the crates, `cdr` bounds what it allocates only if the caller names a limit
//! and `cdr-encoding` takes the count of a sequence at its word; neither has had to face hostile input.
//! The rules are few:
//!
//! - Every primitive is aligned to its own size, up to 8, counted from the first byte after the header.
//! - A string is a `u32` count that includes its closing NUL, then the bytes, then the NUL.
//! - A sequence is a `u32` count, then its elements; arrays and structs are their elements alone.
//! - An enum is the `u32` number of its variant; a `bool` is one byte, 0 or 1.
//!
//! Written is little-endian (`00 01 00 00`); read are both byte orders. Up to three bytes of padding at the end are
//! accepted, because RTPS rounds a payload up to a multiple of four.
//!
//! Sources: OMG CORBA 3.4 part 2, 9.3.1–9.3.2 (primitives, strings, sequences); OMG DDS-XTypes 1.3, 7.4.3.2 (plain
//! XCDR1) and 7.6.2.1.2 (encapsulation); OMG DDSI-RTPS 2.5, 10.2 (padding).
//!
//! No place in it: optional members (XCDR1 writes them as parameter lists, which ROS 2 does not have), maps, unions,
//! strings that contain NUL.

use std::borrow::Cow;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::Fault;
use crate::positional::{self, Number, Sink, Source};

/// Representation identifier and options: CDR, little-endian.
const HEADER_LE: [u8; 4] = [0, 1, 0, 0];

/// Most bytes of padding after the last value.
const PADDING_BYTES_MAX: usize = 3;

pub(crate) fn encode<T: Serialize>(value: &T, out: &mut Vec<u8>) -> Result<(), Fault> {
    out.extend_from_slice(&HEADER_LE);
    let start = out.len();
    positional::write(value, &mut Writer { out, start })
}

pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Fault> {
    let (header, body) =
        bytes.split_first_chunk::<4>().ok_or_else(|| fault("it is shorter than its header"))?;
    let big_endian = match header[..2] {
        [0, 0] => true,
        [0, 1] => false,
        _ => {
            let [a, b, ..] = header;
            return Err(Fault(format!(
                "its representation is {a:02x} {b:02x}, not plain CDR (00 00, 00 01)"
            )));
        }
    };
    let mut reader = Reader { body, position: 0, big_endian };
    let value = positional::read(&mut reader)?;
    let left = body.len() - reader.position;
    if left > PADDING_BYTES_MAX {
        return Err(Fault(format!("{left} bytes are left over; the types of the two sides differ")));
    }
    Ok(value)
}

fn fault(what: &str) -> Fault {
    Fault(what.to_owned())
}

#[cold]
fn cut_off() -> Fault {
    fault("it ends in the middle of a value")
}

/// Bytes that lead from `position` to the next multiple of `alignment`, a power of two.
fn padding(position: usize, alignment: usize) -> usize {
    position.wrapping_neg() & (alignment - 1)
}

struct Writer<'a> {
    out: &'a mut Vec<u8>,
    /// Where alignment counts from: the first byte after the header.
    start: usize,
}

impl Sink for Writer<'_> {
    #[inline]
    fn number<N: Number>(&mut self, value: N) -> Result<(), Fault> {
        let position = self.out.len() - self.start;
        self.out.extend_from_slice(&[0; 8][..padding(position, N::BYTES)]);
        value.append_le(self.out);
        Ok(())
    }

    #[inline]
    fn boolean(&mut self, value: bool) -> Result<(), Fault> {
        self.out.push(u8::from(value));
        Ok(())
    }

    fn string(&mut self, value: &str) -> Result<(), Fault> {
        if value.as_bytes().contains(&0) {
            return Err(fault("a string contains NUL, which ends strings here"));
        }
        self.count(value.len() + 1)?;
        self.out.extend_from_slice(value.as_bytes());
        self.out.push(0);
        Ok(())
    }

    fn bytes(&mut self, value: &[u8]) -> Result<(), Fault> {
        self.count(value.len())?;
        self.out.extend_from_slice(value);
        Ok(())
    }

    fn count(&mut self, count: usize) -> Result<(), Fault> {
        let count = u32::try_from(count).map_err(|_| fault("a count does not fit 32 bits"))?;
        self.number(count)
    }

    fn presence(&mut self, _: bool) -> Result<(), Fault> {
        Err(fault("it has no place for an optional value; use a sequence of at most one"))
    }
}

struct Reader<'de> {
    body: &'de [u8],
    position: usize,
    big_endian: bool,
}

impl<'de> Reader<'de> {
    #[inline]
    fn take(&mut self, bytes: usize) -> Result<&'de [u8], Fault> {
        let taken = self.position.checked_add(bytes).and_then(|end| self.body.get(self.position..end));
        let taken = taken.ok_or_else(cut_off)?;
        self.position += bytes;
        Ok(taken)
    }

    fn counted(&mut self) -> Result<&'de [u8], Fault> {
        let count: u32 = self.number()?;
        self.take(count as usize)
    }
}

impl<'de> Source<'de> for Reader<'de> {
    #[inline]
    fn number<N: Number>(&mut self) -> Result<N, Fault> {
        // Padding and value by one comparison: this is what decoding consists of.
        let start = self.position + padding(self.position, N::BYTES);
        let bytes = self.body.get(start..start + N::BYTES).ok_or_else(cut_off)?;
        self.position = start + N::BYTES;
        let number = if self.big_endian { N::from_be(bytes) } else { N::from_le(bytes) };
        number.ok_or_else(cut_off)
    }

    #[inline]
    fn boolean(&mut self) -> Result<bool, Fault> {
        match self.take(1)? {
            [0] => Ok(false),
            [1] => Ok(true),
            other => Err(Fault(format!("a bool is {}, neither 0 nor 1", other[0]))),
        }
    }

    fn string(&mut self) -> Result<Cow<'de, str>, Fault> {
        let text = match self.counted()?.split_last() {
            Some((0, text)) => text,
            Some(_) => return Err(fault("a string does not end with NUL")),
            // Not in the standard, but some writers send an empty string so.
            None => &[],
        };
        if text.contains(&0) {
            return Err(fault("a string contains NUL"));
        }
        std::str::from_utf8(text).map(Cow::Borrowed).map_err(|_| fault("a string is not UTF-8"))
    }

    fn bytes(&mut self) -> Result<Cow<'de, [u8]>, Fault> {
        self.counted().map(Cow::Borrowed)
    }

    fn count(&mut self) -> Result<usize, Fault> {
        let count = self.number::<u32>()? as usize;
        let left = self.body.len() - self.position;
        if count > left {
            return Err(Fault(format!("a sequence says it has {count} elements, with {left} bytes left")));
        }
        Ok(count)
    }

    fn presence(&mut self) -> Result<bool, Fault> {
        Err(fault("it has no place for an optional value"))
    }
}

#[cfg(test)]
mod tests;
