//! Messages that are written where their readers will read them.
//!
//! The library lends one place at a time, in the ring's open slot, and whatever is published meanwhile would be written there. So a second loan
//! is a place in this process's memory, copied once when it is published. A publisher that publishes something else while its slot
//! is lent opens anew, keeps the old ring until the loan is back, and lends no slot again: one that is used in both ways gains little by it.

use std::collections::BTreeMap;

use noctule::Publisher;

/// Loans of one publisher that may be out at once.
pub(crate) const LOANS_MAX: usize = 256;
/// Alignment of the data behind the CDR header, in bytes.
pub(crate) const ALIGNMENT: usize = 8;
/// Bytes of that header.
pub(crate) const HEADER_BYTES: usize = 4;

/// Loans of one publisher, each named by the address of its first byte.
#[derive(Debug, Default)]
pub(crate) struct Loans {
    /// The loan in the open slot of the publisher.
    pub(crate) slot: Option<usize>,
    /// The loan in the open slot of a publisher that another has replaced, and that publisher.
    earlier: Option<(usize, Publisher)>,
    /// Loans in this process's memory.
    copied: BTreeMap<usize, Vec<u8>>,
    /// Something else was published while a slot was lent.
    pub(crate) is_mixed: bool,
}

impl Loans {
    pub(crate) fn is_slot_lent(&self) -> bool {
        self.slot.is_some()
    }

    /// Another publisher has taken this one's place; gives it back if nothing in it is lent.
    pub(crate) fn replaced(&mut self, before: Publisher) -> Option<Publisher> {
        let Some(place) = self.slot.take() else { return Some(before) };
        self.is_mixed = true;
        self.earlier = Some((place, before));
        None
    }

    /// A publisher that was kept for what is lent in it.
    pub(crate) fn into_earlier(self) -> Option<Publisher> {
        self.earlier.map(|(_, publisher)| publisher)
    }

    pub(crate) fn count(&self) -> usize {
        self.copied.len() + usize::from(self.slot.is_some()) + usize::from(self.earlier.is_some())
    }

    pub(crate) fn is_out(&self, place: usize) -> bool {
        self.copied.contains_key(&place) || self.earlier.as_ref().is_some_and(|(lent, _)| *lent == place)
    }

    /// A place in this process's memory, which stays where it is.
    pub(crate) fn copied(&mut self, length: usize) -> *mut u8 {
        let mut bytes = vec![0; length + 2 * ALIGNMENT];
        let start = bytes.as_ptr().align_offset(ALIGNMENT) + ALIGNMENT - HEADER_BYTES;
        let first = bytes[start..].as_mut_ptr();
        self.copied.insert(first.addr(), bytes);
        first
    }

    /// Takes a loan back that is not in the open slot: whether it was out, and the publisher that was kept for it.
    pub(crate) fn take_back(&mut self, place: usize) -> (bool, Option<Publisher>) {
        let earlier = self.earlier.take_if(|(lent, _)| *lent == place).map(|(_, publisher)| publisher);
        let is_out = earlier.is_some() || self.copied.remove(&place).is_some();
        (is_out, earlier)
    }
}
