//! Messages that are written where their readers will read them.
//!
//! The library lends one place at a time, in the ring's open slot, and whatever is published meanwhile would be written there. So a second loan
//! is a place in this process's memory, copied once when it is published. A publisher that publishes something else while its slot
//! is lent opens anew, keeps the old ring until the loan is back, and lends no slot again: one that is used in both ways gains little by it.

use std::collections::BTreeMap;
use std::time::Instant as Timer;

use noctule::{PublishError, Publisher};

use crate::signal::lock;
use crate::writer::{ROOM_SLICE, ROOM_WITHIN, WriteError, Writer};

/// Loans of one publisher that may be out at once.
pub const LOANS_MAX: usize = 256;
/// What lies behind the header of CDR is aligned to this.
const ALIGNMENT: usize = 8;
/// Bytes of that header.
const HEADER_BYTES: usize = 4;

/// What is lent of one publisher. A place is named by the address of its first byte.
#[derive(Debug, Default)]
pub(crate) struct Loans {
    /// In the open slot of the publisher.
    slot: Option<usize>,
    /// In the open slot of a publisher that another has taken the place of.
    earlier: Option<(usize, Publisher)>,
    /// In this process's memory.
    copied: BTreeMap<usize, Vec<u8>>,
    /// Something else was published while a slot was lent.
    is_mixed: bool,
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

    fn count(&self) -> usize {
        self.copied.len() + usize::from(self.slot.is_some()) + usize::from(self.earlier.is_some())
    }

    fn is_out(&self, place: usize) -> bool {
        self.copied.contains_key(&place) || self.earlier.as_ref().is_some_and(|(lent, _)| *lent == place)
    }

    /// A place in this process's memory, which stays where it is.
    fn copied(&mut self, length: usize) -> *mut u8 {
        let mut bytes = vec![0; length + 2 * ALIGNMENT];
        let start = bytes.as_ptr().align_offset(ALIGNMENT) + ALIGNMENT - HEADER_BYTES;
        let first = bytes[start..].as_mut_ptr();
        self.copied.insert(first.addr(), bytes);
        first
    }

    /// Takes a loan back that is not in the open slot: whether it was out, and the publisher that was kept for it.
    fn take_back(&mut self, place: usize) -> (bool, Option<Publisher>) {
        let earlier = self.earlier.take_if(|(lent, _)| *lent == place).map(|(_, publisher)| publisher);
        let is_out = earlier.is_some() || self.copied.remove(&place).is_some();
        (is_out, earlier)
    }
}

impl Writer {
    /// Lends a place for a message of so many bytes with its header, in shared memory if it can be: what lies behind the header's four
    /// bytes is aligned to 8. It is valid for writing until it is published, given back, or the publisher is closed; what it holds
    /// is unspecified.
    ///
    /// # Errors
    /// Too many are out, it is too long, or the publisher was closed.
    pub fn lend(&self, length: usize) -> Result<*mut u8, WriteError> {
        let mut inner = lock(&self.inner);
        if inner.loans.count() >= LOANS_MAX {
            return Err(WriteError::TooManyLoans { topic: self.name().to_owned() });
        }
        if inner.loans.is_mixed || inner.loans.is_slot_lent() {
            return Ok(inner.loans.copied(length));
        }
        self.make_room(&mut inner, length)?;
        let Some(publisher) = &mut inner.publisher else { return Err(self.closed()) };
        let first = publisher.loan(length)?;
        if (first.addr() + HEADER_BYTES).is_multiple_of(ALIGNMENT) {
            inner.loans.slot = Some(first.addr());
            return Ok(first);
        }
        publisher.drop_loan();
        Ok(inner.loans.copied(length))
    }

    /// Publishes what was written to a place that was lent: `bytes` are what lies there. Whether that succeeds or not, it is given back.
    ///
    /// # Errors
    /// As [`publish`](Writer::publish); nothing was lent there.
    pub fn publish_lent(&self, place: usize, bytes: &[u8]) -> Result<(), WriteError> {
        let end = Timer::now() + ROOM_WITHIN;
        loop {
            let mut inner = lock(&self.inner);
            if inner.loans.slot != Some(place) {
                break;
            }
            let now = self.now();
            let Some(publisher) = &mut inner.publisher else { return Err(self.closed()) };
            let published = publisher.publish_loan(bytes.len(), Some(now));
            if matches!(published, Err(PublishError::WouldBlock { .. })) && Timer::now() < end {
                publisher.wait_for_room(bytes.len(), ROOM_SLICE);
                continue;
            }
            publisher.drop_loan();
            inner.loans.slot = None;
            published.map_err(|error| match error {
                PublishError::WouldBlock { topic } => WriteError::TimedOut { topic },
                error => error.into(),
            })?;
            self.remember(&mut inner, now, bytes);
            return Ok(());
        }
        let is_lent = lock(&self.inner).loans.is_out(place);
        let published = if is_lent {
            self.publish(bytes)
        } else {
            Err(WriteError::NotLent { topic: self.name().to_owned() })
        };
        self.give_back(place);
        published
    }

    /// Takes a loan back, unpublished; false: nothing was lent there.
    pub fn give_back(&self, place: usize) -> bool {
        let mut inner = lock(&self.inner);
        if inner.loans.slot == Some(place) {
            inner.loans.slot = None;
            if let Some(publisher) = &mut inner.publisher {
                publisher.drop_loan();
            }
            return true;
        }
        let (is_out, earlier) = inner.loans.take_back(place);
        drop(inner);
        // It may wait until what was published is sent.
        if let Some(publisher) = earlier {
            self.forget(publisher);
        }
        is_out
    }
}
