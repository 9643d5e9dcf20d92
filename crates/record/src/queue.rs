//! The queue between the threads that take samples and the one that writes them, limited in bytes.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Buffers of at least this are kept for the next samples of about their size: the memory of large ones is not fetched anew each time.
const SPARE_LEAST_BYTES: usize = 64 << 10;
/// So much is kept in them. A buffer that is much larger than its payload would be memory that is not counted.
const SPARE_LIMIT_BYTES: usize = 32 << 20;
/// Memory that an item needs beside its payload, in bytes, as it is counted.
const ITEM_BYTES: usize = 128;

/// A sample's description and its payload.
pub(crate) type Item<T> = (T, Vec<u8>);

/// Why there is no room for a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// So many bytes wait already.
    Full,
    /// The queue was closed.
    Closed,
}

/// A queue of `T`, each with a payload.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    inside: Mutex<Inside<T>>,
    filled: Condvar,
    bytes_max: usize,
}

#[derive(Debug)]
struct Inside<T> {
    items: VecDeque<Item<T>>,
    bytes: usize,
    spare: Vec<Vec<u8>>,
    spare_bytes: usize,
    is_closed: bool,
}

impl<T> Inside<T> {
    /// A buffer that is at most twice as long as the payload.
    fn spare_for(&mut self, payload_bytes: usize) -> Option<Vec<u8>> {
        let fits =
            |buffer: &Vec<u8>| (payload_bytes..=payload_bytes.saturating_mul(2)).contains(&buffer.capacity());
        let at = self.spare.iter().rposition(fits)?;
        let buffer = self.spare.swap_remove(at);
        self.spare_bytes -= buffer.capacity();
        Some(buffer)
    }
}

impl<T> Queue<T> {
    /// A queue of at most so many bytes, payloads and bookkeeping together.
    pub(crate) fn new(bytes_max: usize) -> Queue<T> {
        let inside =
            Inside { items: VecDeque::new(), bytes: 0, spare: Vec::new(), spare_bytes: 0, is_closed: false };
        Queue { inside: Mutex::new(inside), filled: Condvar::new(), bytes_max }
    }

    /// Reserves room for a payload and returns a buffer for it. The room is taken until [`push`](Queue::push), so that many
    /// threads cannot exceed the limit together.
    ///
    /// # Errors
    /// The queue is full, or the writer has ended.
    pub(crate) fn reserve(&self, payload_bytes: usize) -> Result<Vec<u8>, Refused> {
        let mut inside = self.lock();
        if inside.is_closed {
            return Err(Refused::Closed);
        }
        let bytes = inside.bytes + payload_bytes + ITEM_BYTES;
        if bytes > self.bytes_max {
            return Err(Refused::Full);
        }
        inside.bytes = bytes;
        let spare = inside.spare_for(payload_bytes);
        drop(inside);
        let Some(mut buffer) = spare else { return Ok(vec![0; payload_bytes]) };
        buffer.resize(payload_bytes, 0);
        Ok(buffer)
    }

    /// Puts a payload that [`reserve`](Queue::reserve) made room for.
    pub(crate) fn push(&self, item: T, payload: Vec<u8>) {
        self.lock().items.push_back((item, payload));
        self.filled.notify_one();
    }

    /// Takes items of up to `bytes_max` in all, at least one if there is one, waiting up to `timeout` for the first;
    /// `None` when the queue is closed and empty.
    pub(crate) fn take(&self, bytes_max: usize, timeout: Duration) -> Option<Vec<Item<T>>> {
        let end = Instant::now() + timeout;
        let mut inside = self.lock();
        while inside.items.is_empty() && !inside.is_closed {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Some(Vec::new());
            }
            inside = self.filled.wait_timeout(inside, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        if inside.items.is_empty() {
            return None;
        }
        let mut bytes = 0;
        let count = inside.items.iter().take_while(|(_, payload)| {
            let fits = bytes == 0 || bytes + payload.len() + ITEM_BYTES <= bytes_max;
            bytes += payload.len() + ITEM_BYTES;
            fits
        });
        let count = count.count();
        Some(inside.items.drain(..count).collect())
    }

    /// Gives the room and the buffers of items back.
    pub(crate) fn recycle(&self, payloads: impl Iterator<Item = Vec<u8>>) {
        let mut inside = self.lock();
        for payload in payloads {
            inside.bytes -= payload.len() + ITEM_BYTES;
            let bytes = payload.capacity();
            if bytes >= SPARE_LEAST_BYTES && inside.spare_bytes + bytes <= SPARE_LIMIT_BYTES {
                inside.spare_bytes += bytes;
                inside.spare.push(payload);
            }
        }
    }

    /// No more items come.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.filled.notify_all();
    }

    /// A push is whole even if a thread has panicked.
    fn lock(&self) -> MutexGuard<'_, Inside<T>> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_refuses_until_room_is_given_back() {
        let queue = Queue::new(2 * (100 + ITEM_BYTES));
        for item in 0..2 {
            let buffer = queue.reserve(100).unwrap();
            queue.push(item, buffer);
        }
        assert_eq!(queue.reserve(0), Err(Refused::Full));
        let taken = queue.take(usize::MAX, Duration::ZERO).unwrap();
        assert_eq!(taken.iter().map(|(item, _)| *item).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(queue.reserve(0), Err(Refused::Full), "what is being written still counts");
        queue.recycle(taken.into_iter().map(|(_, payload)| payload));
        assert!(queue.reserve(200).is_ok());
    }

    #[test]
    fn buffers_are_used_again_for_payloads_of_their_size_only() {
        let queue = Queue::new(1 << 30);
        let large: Vec<Vec<u8>> = (0..40).map(|_| queue.reserve(1 << 20).unwrap()).collect();
        let beginning = large[31].as_ptr();
        queue.recycle(large.into_iter());
        let spare = |queue: &Queue<()>| {
            let inside = queue.lock();
            (inside.spare.len(), inside.spare_bytes)
        };
        assert_eq!(spare(&queue), (32, SPARE_LIMIT_BYTES));
        let small = queue.reserve(100).unwrap();
        assert!(small.capacity() < 1000);
        let again = queue.reserve(1 << 20).unwrap();
        assert_eq!((again.as_ptr(), again.len(), spare(&queue).0), (beginning, 1 << 20, 31));
        queue.recycle([small, again].into_iter());
        assert_eq!((spare(&queue), queue.lock().bytes), ((32, SPARE_LIMIT_BYTES), 0));
    }

    #[test]
    fn a_closed_queue_ends_after_its_last_item() {
        let queue = Queue::new(10_000);
        let buffer = queue.reserve(10).unwrap();
        queue.push('a', buffer);
        queue.close();
        assert_eq!(queue.reserve(1), Err(Refused::Closed));
        assert_eq!(queue.take(1, Duration::ZERO).unwrap().len(), 1);
        assert!(queue.take(1, Duration::ZERO).is_none());
    }
}
