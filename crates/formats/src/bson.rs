//! BSON.
//!
//! By `bson` (MIT), MongoDB's own. A document of BSON is a map, so a value that is not a struct cannot be written;
//! 32-bit floats become 64-bit ones; unsigned numbers above 2⁶³ − 1 have no place; every element of an array carries its
//! number as text. The crate does not limit how deep documents nest, so it is counted here first, in one pass over types
//! and lengths.
//! Source: bsonspec.org, version 1.1.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::Fault;
use crate::positional::DEPTH_MAX;

pub(crate) fn encode<T: Serialize>(value: &T, out: &mut Vec<u8>) -> Result<(), Fault> {
    bson::serialize_to_buffer(value, out).map_err(Fault::of)
}

pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Fault> {
    check_depth(bytes)?;
    bson::deserialize_from_slice(bytes).map_err(Fault::of)
}

/// Walks through all elements without looking at values, so that nothing deep or cut off reaches the recursion.
fn check_depth(bytes: &[u8]) -> Result<(), Fault> {
    let broken = || Fault("its lengths do not add up".into());
    let mut walk = Walk { bytes, position: 0 };
    let mut ends = vec![walk.document_end().filter(|&end| end == bytes.len()).ok_or_else(broken)?];
    while let Some(&end) = ends.last() {
        let kind = walk.byte().ok_or_else(broken)?;
        if kind == 0 {
            if walk.position != end {
                return Err(broken());
            }
            ends.pop();
            continue;
        }
        walk.name().ok_or_else(broken)?;
        if kind == 3 || kind == 4 {
            if ends.len() == DEPTH_MAX as usize {
                return Err(Fault(format!("it nests deeper than {DEPTH_MAX}")));
            }
            ends.push(walk.document_end().filter(|&inner| inner < end).ok_or_else(broken)?);
        } else {
            walk.value(kind).filter(|_| walk.position < end).ok_or_else(broken)?;
        }
    }
    Ok(())
}

struct Walk<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl Walk<'_> {
    fn skip(&mut self, count: usize) -> Option<()> {
        self.position = self.position.checked_add(count).filter(|&to| to <= self.bytes.len())?;
        Some(())
    }

    fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.position)?;
        self.position += 1;
        Some(byte)
    }

    fn length(&mut self) -> Option<usize> {
        let bytes = self.bytes.get(self.position..)?.first_chunk::<4>()?;
        self.position += 4;
        usize::try_from(i32::from_le_bytes(*bytes)).ok()
    }

    fn name(&mut self) -> Option<()> {
        let rest = self.bytes.get(self.position..)?;
        self.skip(rest.iter().position(|&byte| byte == 0)? + 1)
    }

    /// Enters a document; its length counts from its own first byte.
    fn document_end(&mut self) -> Option<usize> {
        let start = self.position;
        start.checked_add(self.length()?).filter(|&end| end > self.position && end <= self.bytes.len())
    }

    /// Skips a value that is no document.
    fn value(&mut self, kind: u8) -> Option<()> {
        let count = match kind {
            0x01 | 0x09 | 0x11 | 0x12 => 8,
            0x02 | 0x0d | 0x0e => self.length()?,
            0x05 => self.length()?.checked_add(1)?,
            0x06 | 0x0a | 0x7f | 0xff => 0,
            0x07 => 12,
            0x08 => 1,
            0x0b => {
                self.name()?;
                return self.name();
            }
            0x0c => self.length()?.checked_add(12)?,
            // Code with scope: its length counts itself. What is inside never is a field of ours.
            0x0f => self.length()?.checked_sub(4)?,
            0x10 => 4,
            0x13 => 16,
            _ => return None,
        };
        self.skip(count)
    }
}
