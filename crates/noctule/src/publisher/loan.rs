//! Samples that are written where they will be read, in two steps: for languages that cannot hand over a closure.

use noctule_time_sync::Local;
use noctule_timebase::Instant;

use super::{Publisher, exactly};
use crate::error::PublishError;

/// Longer samples lie at a multiple of this, as in a ring.
const ALIGNMENT: usize = 64;

/// A place that was lent and not published yet.
#[derive(Debug)]
pub(super) enum Lent {
    /// In shared memory: so many bytes of the ring's open slot.
    Ring(usize),
    /// In this process: so many bytes of the buffer, from an offset on.
    Heap(usize, usize),
}

impl Publisher {
    /// A place of `length_bytes` for the next sample, which [`publish_loan`](Publisher::publish_loan) publishes: in shared memory if all
    /// readers are on this host, so that nothing is copied. Gives its first byte, which stays valid for writes of that length until the
    /// loan is published or [dropped](Publisher::drop_loan), or the publisher is; what it holds is unspecified. Aligned to 8 bytes, to 64 if
    /// there are more than 32, or [behind its first four](super::PublisherBuilder::aligned_behind_header). A loan that is out is lent again, with another length. In Rust use [`publish_in_place`](Publisher::publish_in_place).
    ///
    /// # Errors
    /// Longer than the topic allows, or in the child of a fork.
    pub fn loan(&mut self, length_bytes: usize) -> Result<*mut u8, PublishError> {
        if self.shared.is_in_child() {
            // The next place in the ring is its parent's next place.
            return Err(PublishError::Forked { topic: self.topic.name.clone() });
        }
        let (is_read_here, is_read_elsewhere) = self.readers_where();
        self.check_length(length_bytes, is_read_elsewhere)?;
        if is_read_here
            && !is_read_elsewhere
            && let Some(writer) = &mut self.writer
            && let Ok(mut loan) = writer.loan(length_bytes)
        {
            let first = loan.as_mut_ptr();
            self.lent = Some(Lent::Ring(length_bytes));
            return Ok(first);
        }
        // Its place in memory must not change while it is lent.
        let room_bytes = length_bytes + ALIGNMENT + self.shift_bytes;
        self.buffer.resize(room_bytes.max(self.buffer.len()), 0);
        let start = self.buffer.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT) + self.shift_bytes;
        self.lent = Some(Lent::Heap(start, length_bytes));
        Ok(self.buffer[start..].as_mut_ptr())
    }

    /// Publishes the first `length_bytes` of what was lent, true at `source_time`, or now.
    ///
    /// # Errors
    /// As [`publish`](Publisher::publish); then the loan is still out. Nothing was lent, or less.
    pub fn publish_loan(
        &mut self,
        length_bytes: usize,
        source_time: Option<Instant<Local>>,
    ) -> Result<(), PublishError> {
        let lent_bytes = match self.lent {
            Some(Lent::Ring(bytes) | Lent::Heap(_, bytes)) => bytes,
            None => 0,
        };
        if self.lent.is_none() || length_bytes > lent_bytes {
            let topic = self.topic.name.clone();
            return Err(PublishError::NotLent { topic, bytes: length_bytes, lent_bytes });
        }
        let origin = exactly(source_time.unwrap_or_else(|| self.shared.clock.now()));
        let lent = self.lent.take();
        let published = match lent {
            Some(Lent::Heap(start, _)) => {
                let buffer = std::mem::take(&mut self.buffer);
                let bytes = &buffer[start..start + length_bytes];
                let published = self.put(Some(bytes), Some(bytes), origin);
                self.buffer = buffer;
                published
            }
            _ => self.publish_ring_loan((length_bytes, lent_bytes), origin),
        };
        if published.is_err() {
            self.lent = lent;
        }
        published
    }

    /// Takes back what was lent, unpublished.
    pub fn drop_loan(&mut self) {
        self.lent = None;
    }

    fn publish_ring_loan(
        &mut self,
        (length_bytes, lent_bytes): (usize, usize),
        origin: noctule_shm_ring::Origin,
    ) -> Result<(), PublishError> {
        if self.topic.remote_readers.load(std::sync::atomic::Ordering::Relaxed) > 0 {
            // One has come meanwhile: the bytes are needed twice.
            let mut bytes = vec![0; length_bytes];
            if let Some(writer) = &mut self.writer
                && let Ok(loan) = writer.loan(lent_bytes)
            {
                loan.copy_to(&mut bytes);
            }
            return self.put(Some(&bytes), Some(&bytes), origin);
        }
        if self.shared.is_in_child() {
            return Err(PublishError::Forked { topic: self.topic.name.clone() });
        }
        if self.keeps_all && !self.has_room(None) {
            return Err(self.would_have_blocked());
        }
        self.count();
        if let Some(writer) = &mut self.writer {
            moved(writer, length_bytes, lent_bytes);
        }
        // Its length was checked when it was lent, so this does not fail.
        if let Some(writer) = &mut self.writer
            && let Ok(loan) = writer.loan(length_bytes)
        {
            let wake = loan.commit(origin);
            writer.wake(wake);
        }
        Ok(())
    }
}

/// A short sample lies nearer to the start of its slot than a longer one: what was written to a long loan goes where a reader
/// looks for the short sample that it became.
fn moved(writer: &mut noctule_shm_ring::Writer, length_bytes: usize, lent_bytes: usize) {
    let place =
        |writer: &mut noctule_shm_ring::Writer, bytes| writer.loan(bytes).map(|mut loan| loan.as_mut_ptr());
    if place(writer, length_bytes) == place(writer, lent_bytes) {
        return;
    }
    // Samples up to the alignment: none longer is short.
    let mut bytes = [0; ALIGNMENT];
    let Some(bytes) = bytes.get_mut(..length_bytes) else { return };
    if let Ok(loan) = writer.loan(lent_bytes) {
        loan.copy_to(bytes);
    }
    if let Ok(mut loan) = writer.loan(length_bytes) {
        loan.copy_from(bytes);
    }
}
