//! Lends places for messages.

use std::time::Instant as Timer;

use noctule::PublishError;

use super::{ROOM_SLICE, ROOM_WITHIN, WriteError, Writer};
use crate::loans::{ALIGNMENT, HEADER_BYTES, LOANS_MAX};
use crate::signal::lock;

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
