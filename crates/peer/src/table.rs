//! The record table: one slot per measured message (spec section 4).

use std::fs;
use std::io::{self, Write};
use std::path::Path;

const MAGIC: &[u8; 8] = b"NOCTREC1";
const HEADER_BYTES: usize = 32;
const SLOT_BYTES: usize = 32;

/// Most slots a table may have: 2²⁴ messages, half a gibibyte.
pub const SLOTS_MAX: usize = 1 << 24;

/// Record of one message at one node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Slot {
    /// When it should have been sent, on the source's clock.
    pub scheduled_ns: i64,
    /// When this node sent it; 0 if it did not.
    pub sent_ns: i64,
    /// When this node first received it; 0 if it did not.
    pub received_ns: i64,
    /// Number of arrivals.
    pub arrivals: u64,
}

/// Slots for messages 0 … `messages` − 1, allocated and touched before measuring.
#[derive(Debug)]
pub struct Table {
    slots: Vec<Slot>,
    /// Measured messages that had no slot.
    pub(crate) overrun: u64,
}

/// Why a record file could not be used.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// It could not be read.
    #[error("cannot read the record file: {0}")]
    Io(#[from] io::Error),
    /// It is not what section 4 of the specification describes.
    #[error("the record file is malformed: {0}")]
    Malformed(&'static str),
}

impl Table {
    /// A table of zeroed slots, every page touched; at most [`SLOTS_MAX`].
    pub fn new(messages: usize) -> Self {
        // Written, not only allocated: fresh zero pages would fault on first use, while measuring.
        let touched = Slot { arrivals: 1, ..Slot::default() };
        let mut slots = vec![touched; messages.min(SLOTS_MAX)];
        slots.fill(Slot::default());
        Self { slots, overrun: 0 }
    }

    /// A table that already holds what was seen, e.g. in a test or a converter.
    pub fn from_slots(slots: Vec<Slot>) -> Self {
        Self { slots, overrun: 0 }
    }

    /// All slots, by message index.
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// The slot of a message; a message without one is counted as overrun.
    #[inline]
    pub(crate) fn slot(&mut self, index: u64) -> Option<&mut Slot> {
        let slot = usize::try_from(index).ok().and_then(|index| self.slots.get_mut(index));
        if slot.is_none() {
            self.overrun += 1;
        }
        slot
    }

    /// Number of messages this node sent.
    pub fn sent(&self) -> u64 {
        self.slots.iter().filter(|slot| slot.sent_ns != 0).count() as u64
    }

    /// Number of different messages this node received.
    pub fn received(&self) -> u64 {
        self.slots.iter().filter(|slot| slot.arrivals != 0).count() as u64
    }

    /// Number of further arrivals.
    pub fn duplicated(&self) -> u64 {
        self.slots.iter().fold(0, |sum, slot| sum.saturating_add(slot.arrivals.saturating_sub(1)))
    }

    /// Writes the record file.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let mut out = io::BufWriter::with_capacity(1 << 18, fs::File::create(path)?);
        out.write_all(MAGIC)?;
        out.write_all(&(self.slots.len() as u64).to_le_bytes())?;
        out.write_all(&[0; 16])?;
        for slot in &self.slots {
            out.write_all(&slot.scheduled_ns.to_le_bytes())?;
            out.write_all(&slot.sent_ns.to_le_bytes())?;
            out.write_all(&slot.received_ns.to_le_bytes())?;
            out.write_all(&slot.arrivals.to_le_bytes())?;
        }
        out.flush()
    }

    /// Reads a record file written by a peer, which is not trusted: size and form are checked before
    /// anything is allocated by what it says.
    pub fn read(path: &Path) -> Result<Self, TableError> {
        let limit = HEADER_BYTES + SLOTS_MAX * SLOT_BYTES;
        if fs::metadata(path)?.len() > limit as u64 {
            return Err(TableError::Malformed("it is larger than the largest table"));
        }
        Self::parse(&fs::read(path)?)
    }

    /// Reads the bytes of a record file.
    pub fn parse(bytes: &[u8]) -> Result<Self, TableError> {
        let header = bytes.first_chunk::<HEADER_BYTES>();
        let header = header.ok_or(TableError::Malformed("it is shorter than its header"))?;
        if !header.starts_with(MAGIC) {
            return Err(TableError::Malformed("it does not begin with NOCTREC1"));
        }
        let (slots, rest) = bytes[HEADER_BYTES..].as_chunks::<SLOT_BYTES>();
        if !rest.is_empty() || word(header, 1) != slots.len() as u64 {
            return Err(TableError::Malformed("its length does not match its number of slots"));
        }
        let read = |slot: &[u8; SLOT_BYTES]| Slot {
            scheduled_ns: word(slot, 0) as i64,
            sent_ns: word(slot, 1) as i64,
            received_ns: word(slot, 2) as i64,
            arrivals: word(slot, 3),
        };
        Ok(Self { slots: slots.iter().map(read).collect(), overrun: 0 })
    }
}

/// The `number`th little-endian 64-bit word.
fn word(bytes: &[u8; 32], number: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[number * 8..number * 8 + 8]);
    u64::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_survives_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("node0.rec");
        let mut table = Table::new(3);
        *table.slot(1).unwrap() = Slot { scheduled_ns: -1, sent_ns: 2, received_ns: 3, arrivals: 2 };
        table.write(&path).unwrap();
        let read = Table::read(&path).unwrap();
        assert_eq!(read.slots(), table.slots());
        assert_eq!((read.sent(), read.received(), read.duplicated()), (1, 1, 1));
    }

    #[test]
    fn message_without_a_slot_is_counted() {
        let mut table = Table::new(2);
        assert!(table.slot(2).is_none());
        assert!(table.slot(u64::MAX).is_none());
        assert_eq!(table.overrun, 2);
    }

    #[test]
    fn malformed_files_are_refused_without_trusting_their_count() {
        let mut bytes = MAGIC.to_vec();
        assert!(Table::parse(&bytes).is_err());
        bytes.extend(u64::MAX.to_le_bytes());
        bytes.extend([0; 16]);
        assert!(Table::parse(&bytes).is_err(), "count says 2^64 − 1, file holds none");
        bytes[8..16].copy_from_slice(&0u64.to_le_bytes());
        assert!(Table::parse(&bytes).is_ok());
        bytes.extend([0; 31]);
        assert!(Table::parse(&bytes).is_err());
        bytes[0] = b'X';
        assert!(Table::parse(&bytes).is_err());
    }
}
