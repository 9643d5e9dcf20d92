//! A message lent to a reader where it lies.

use noctule_sys::fork_guard::ForkGuard;

use crate::layout::PINS;
use crate::sync::{Arc, Ordering, fence};
use crate::view::{Sample, Shared};

/// A position the writer keeps for us, until dropped.
#[derive(Debug)]
pub(crate) struct Pin {
    shared: Arc<Shared>,
    index: u32,
}

impl Pin {
    /// `None` if all are in use. The caller checks the stamp afterwards: pinned is what was still
    /// complete then.
    pub(crate) fn new(shared: &Arc<Shared>, position: u64) -> Option<Self> {
        let index = shared.pins_used.load(Ordering::Acquire).trailing_ones();
        if index >= shared.pins {
            return None;
        }
        // Only the reader sets bits, so the bit is still clear; samples dropped elsewhere clear theirs.
        shared.pins_used.fetch_or(1 << index, Ordering::Relaxed);
        // Release: what was read under this pin's former position happens before a thread sees the new.
        shared.control.word(PINS + index as usize * 8).store(position, Ordering::Release);
        fence(Ordering::SeqCst);
        Some(Self { shared: Arc::clone(shared), index })
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        if self.shared.guard.is_some_and(ForkGuard::is_in_child) {
            // The parent still has the sample.
            return;
        }
        self.shared.control.word(PINS + self.index as usize * 8).store(0, Ordering::Release);
        self.shared.pins_used.fetch_and(!(1 << self.index), Ordering::Release);
    }
}

/// A message lent where it lies; the writer goes round it until this is dropped. Outlives its reader.
#[derive(Debug)]
pub struct Borrowed {
    pub(crate) pin: Pin,
    pub(crate) sample: Sample,
    /// Where in the data region its first byte is.
    pub(crate) offset: usize,
}

impl Borrowed {
    /// Metadata of the message.
    pub fn sample(&self) -> &Sample {
        &self.sample
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.sample.length_bytes
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies the message out.
    ///
    /// # Panics
    /// If `buffer` is shorter than the message.
    pub fn copy_to(&self, buffer: &mut [u8]) {
        self.pin.shared.data.copy_out(self.offset, &mut buffer[..self.len()]);
    }

    /// Copies a part of the message out: as many bytes as `buffer` is long, from `offset` on.
    ///
    /// # Panics
    /// If the part is not inside the message.
    #[cfg(not(loom))]
    pub fn read_at(&self, offset: usize, buffer: &mut [u8]) {
        let inside = offset.checked_add(buffer.len()).is_some_and(|end| end <= self.len());
        assert!(inside, "part inside the message");
        self.pin.shared.data.peek(self.offset + offset, buffer);
    }

    /// First byte; valid for reads of [`Self::len`] bytes while this lives. Aligned to 8 bytes, to 64
    /// if the message is longer than 32.
    #[cfg(not(loom))]
    pub fn as_ptr(&self) -> *const u8 {
        self.pin.shared.data.range(self.offset, self.len())
    }

    /// The message as a slice.
    ///
    /// # Safety
    /// The writer must keep to the protocol while the slice lives, that is, leave a pinned slot
    /// alone. It is another process: this is a statement about whose programs the user runs, and
    /// what a Rust reference to changing memory does otherwise is undefined.
    #[cfg(not(loom))]
    pub unsafe fn as_slice(&self) -> &[u8] {
        // SAFETY: in the mapping and alive (`range`); unchanged by the caller's promise.
        unsafe { std::slice::from_raw_parts(self.as_ptr(), self.len()) }
    }
}
