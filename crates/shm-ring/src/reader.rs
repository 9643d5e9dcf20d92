//! The reading side.
//!
//! A reader has a position it expects next and looks at the stamp of that position's slot, nothing
//! else, until the message is there. Everything it reads may be wrong or change under it: lengths are
//! checked, loops are bounded, and a message counts only if its stamp is the same before and after.

use std::mem;

use noctule_sys::fork_guard::ForkGuard;

use crate::borrowed::{Borrowed, Pin};
use crate::layout::{
    CONTROL_BYTES, CURSOR, Finding, Layout, LayoutError, PINS_PER_READER, PUBLISHED, Stamp, WAITING,
};
use crate::memory::Memory;
use crate::rhythm::Rhythm;
use crate::sync::{Arc, AtomicU32, Ordering, fence};
use crate::view::{Found, POSITION_MAX, Sample, Shared, StartAt};

/// How often a reader that is overtaken while it reads tries again within one call.
const ATTEMPTS_MAX: u64 = 8;
/// The longest message that is on its way to this core before it is known to be complete: eight lines, for which a core has room beside
/// its own work.
const AHEAD_BYTES_MAX: usize = 512;

/// Why nothing was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The reader was opened before a fork, by the parent. Not found out here, but by the owner of the reader.
    #[error(
        "this process was forked from the one that opened the reader, or its machine was copied, and the node goes on there; open it anew"
    )]
    Forked,
    /// The message stays; call again with a longer buffer.
    #[error("the message has {length_bytes} bytes, the buffer {buffer_bytes}")]
    BufferTooSmall {
        /// Length of the message.
        length_bytes: usize,
        /// Length of the buffer.
        buffer_bytes: usize,
    },
    /// The message stays; let go of a sample first.
    #[error("all {pins} samples this reader may borrow at once are borrowed; drop one, or ask for more")]
    Pins {
        /// How many it may borrow.
        pins: u32,
    },
    /// The writer is broken or hostile. The message is passed over.
    #[error("the writer says {length_bytes} bytes where {payload_bytes_max} are the most; stop reading it")]
    Corrupt {
        /// Length found.
        length_bytes: usize,
        /// Longest possible.
        payload_bytes_max: usize,
    },
}

/// Counters of a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReaderCounters {
    /// Messages read.
    pub read: u64,
    /// Messages missed, as [`Sample::missed`].
    pub missed: u64,
    /// Messages that were overwritten while they were being read, and not delivered.
    pub overtaken: u64,
    /// Messages with an impossible length.
    pub corrupt: u64,
}

/// One reader of a ring.
#[derive(Debug)]
pub struct Reader {
    shared: Arc<Shared>,
    /// Position expected.
    next: u64,
    /// Number expected, 0 if not known yet.
    next_number: u64,
    /// Bytes of the next message to have on their way while it is waited for: as many as the last had, 0 if that was long.
    ahead_bytes: usize,
    counters: ReaderCounters,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum View {
    Queue,
    Latest,
}

impl Reader {
    /// Opens a ring through its data region, which may be mapped read-only, and this reader's own
    /// control page. `pins` is how many samples it may borrow at once, as granted by the writer.
    pub fn open(
        data: Memory,
        control: Memory,
        pins: u32,
        type_hash: u64,
        start: StartAt,
    ) -> Result<Self, LayoutError> {
        let layout = Layout::read(&data)?;
        if layout.type_hash() != type_hash {
            return Err(LayoutError::Type { found: layout.type_hash(), wanted: type_hash });
        }
        if control.length_bytes() < CONTROL_BYTES {
            let (length_bytes, needed_bytes) = (control.length_bytes(), CONTROL_BYTES as u64);
            return Err(LayoutError::TooSmall { length_bytes, needed_bytes });
        }
        if !control.is_writable() {
            return Err(LayoutError::ReadOnly);
        }
        let pins = pins.min(PINS_PER_READER);
        let guard = ForkGuard::new().ok();
        let shared = Shared { data, layout, control, pins, pins_used: AtomicU32::new(0), guard };
        let (next, next_number) = shared.start(start);
        let counters = ReaderCounters::default();
        // History is to be read, too.
        shared.control.word(CURSOR).store(next, Ordering::Release);
        Ok(Self { shared: Arc::new(shared), next, next_number, ahead_bytes: 0, counters })
    }

    /// The ring's geometry.
    pub fn layout(&self) -> &Layout {
        &self.shared.layout
    }

    /// Counters so far.
    pub fn counters(&self) -> ReaderCounters {
        self.counters
    }

    /// Copies the next message, in order, to the start of `buffer`. `None`: not there yet.
    #[inline]
    pub fn take_next(&mut self, buffer: &mut [u8]) -> Result<Option<Sample>, ReadError> {
        self.take(View::Queue, buffer)
    }

    /// Copies the newest message to the start of `buffer`, passing over older ones. `None`: nothing
    /// new.
    #[inline]
    pub fn take_latest(&mut self, buffer: &mut [u8]) -> Result<Option<Sample>, ReadError> {
        self.take(View::Latest, buffer)
    }

    /// Lends the next message, in order, where it lies. `None`: not there yet.
    pub fn borrow_next(&mut self) -> Result<Option<Borrowed>, ReadError> {
        self.borrow(View::Queue)
    }

    /// Lends the newest message, passing over older ones. `None`: nothing new.
    pub fn borrow_latest(&mut self) -> Result<Option<Borrowed>, ReadError> {
        self.borrow(View::Latest)
    }

    /// Whether `sample`, which was read last, was followed by `depth` messages or more, so that a history of that depth does
    /// not hold it. Then it counts as missed, and the oldest message of the history is next. Looks at a few messages, however deep the
    /// history is.
    pub fn pass_over(&mut self, sample: &Sample, depth: u32) -> bool {
        let (newest, position) = (self.shared.published(), self.next - 1);
        let depth = u64::from(depth.max(1));
        if newest < position + depth {
            return false;
        }
        // Positions that were skipped hold no message, so the distance alone is no sign.
        let Some(last) = self.shared.number_at(newest) else { return false };
        if last.saturating_sub(sample.number) < depth {
            return false;
        }
        let oldest = self.shared.position_of(last + 1 - depth, newest + 1 - depth, newest);
        if oldest <= position {
            return false;
        }
        self.next = oldest;
        self.next_number = sample.number - sample.missed;
        self.counters.read -= 1;
        self.counters.missed -= sample.missed;
        true
    }

    /// Position of the message that is read next, or of one before it that is left out.
    pub fn position(&self) -> u64 {
        self.next
    }

    /// Whether there is a message to take.
    #[inline]
    pub fn is_ready(&mut self) -> bool {
        self.find(View::Queue).is_some()
    }

    /// Number of the message that would be taken next; `None` if there is none, or it is being overwritten.
    pub fn next_number(&mut self) -> Option<u64> {
        let position = self.find(View::Queue)?;
        self.shared.number_after(position).checked_sub(1)
    }

    /// Goes back to the oldest message that is still there. Gives the number expected before; `None` if it was not
    /// known.
    pub fn rewind(&mut self) -> Option<u64> {
        let expected = self.next_number;
        (self.next, self.next_number) = self.shared.start(StartAt::Oldest);
        self.shared.control.word(CURSOR).store(self.next, Ordering::Release);
        (expected > 0).then_some(expected)
    }

    /// Announces that this reader is going to sleep. `Some(expected)`: sleep while the futex word
    /// holds that value, then call [`Self::end_wait`]. `None`: there is something to look at.
    pub fn begin_wait(&mut self) -> Option<u32> {
        if self.find(View::Queue).is_some() {
            return None;
        }
        let shared = &*self.shared;
        let published = shared.data.word(PUBLISHED);
        let seen = published.load(Ordering::Acquire);
        // Says what this reader knows, so that a writer that is behind leaves the flag up.
        shared.control.word(WAITING).store(seen.wrapping_add(1).max(1), Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let pending = shared.stamp(self.next).find(self.next) == Finding::Pending;
        if !pending || published.load(Ordering::Relaxed) != seen {
            self.end_wait();
            return None;
        }
        Some(seen as u32)
    }

    /// Takes back the announcement.
    pub fn end_wait(&mut self) {
        // A store would do. The model checker does not know that a writer's exchange of the old flag
        // must come before it; of a swap it knows.
        self.shared.control.word(WAITING).swap(0, Ordering::Relaxed);
    }

    /// Sleeps until there is a message, the time is over, or for no reason. Without a timeout the
    /// kernel sets no timer, which would cost 0.3 µs.
    #[cfg(not(loom))]
    pub fn block(&mut self, timeout: Option<std::time::Duration>) {
        if let Some(expected) = self.begin_wait() {
            noctule_sys::shared_memory::futex_wait(self.futex_word(), expected, timeout);
            self.end_wait();
        }
    }

    /// The word to sleep on, for threads that wait for several rings. It lies in memory that may be
    /// mapped read-only: do not store to it.
    #[cfg(not(loom))]
    pub fn futex_word(&self) -> &AtomicU32 {
        self.shared.data.low_half(PUBLISHED)
    }

    /// Wakes this reader from another thread, for an event that the ring does not show: the writer's end.
    #[cfg(not(loom))]
    pub fn alarm(&self) -> Alarm {
        Alarm(self.shared.data.clone())
    }

    /// Keeps watch over the writer from another thread.
    pub fn rhythm(&self) -> Rhythm {
        Rhythm(self.shared.data.clone())
    }

    #[inline]
    fn take(&mut self, view: View, buffer: &mut [u8]) -> Result<Option<Sample>, ReadError> {
        for attempt in 0..ATTEMPTS_MAX {
            let Some(position) = self.find(view) else { return Ok(None) };
            let stamp = Stamp::complete(position);
            let found = self.shared.header(position);
            let length_bytes = found.length_bytes;
            let fits = length_bytes <= buffer.len().min(self.shared.layout.payload_bytes_max());
            if fits {
                let offset = self.shared.layout.slot(position) + self.shared.layout.payload(length_bytes);
                self.shared.data.copy_out(offset, &mut buffer[..length_bytes]);
            }
            // What was read before the fence is older than what the stamp says after it.
            fence(Ordering::Acquire);
            if self.shared.stamp_relaxed(position) != stamp {
                self.overtaken(view, attempt);
                continue;
            }
            if !fits {
                return Err(self.unfit(length_bytes, buffer.len()));
            }
            return Ok(Some(self.accept(position, &found)));
        }
        Ok(None)
    }

    fn borrow(&mut self, view: View) -> Result<Option<Borrowed>, ReadError> {
        for attempt in 0..ATTEMPTS_MAX {
            let Some(position) = self.find(view) else { return Ok(None) };
            let Some(pin) = Pin::new(&self.shared, position) else {
                return Err(ReadError::Pins { pins: self.shared.pins });
            };
            // The stamp would not show it: the writer may have passed the pin before it was set, and open
            // the slot later. What is not too old now, it had not passed.
            if position < self.shared.layout.oldest(self.shared.published()) {
                self.overtaken(view, attempt);
                continue;
            }
            // From here on an honest writer leaves the slot alone until the pin is dropped.
            let found = self.shared.header(position);
            if found.length_bytes > self.shared.layout.payload_bytes_max() {
                return Err(self.unfit(found.length_bytes, usize::MAX));
            }
            let sample = self.accept(position, &found);
            let offset = self.shared.layout.slot(position) + self.shared.layout.payload(sample.length_bytes);
            return Ok(Some(Borrowed { pin, sample, offset }));
        }
        Ok(None)
    }

    /// Position of the message to read, whose slot was marked complete. Goes past what was skipped
    /// or overwritten.
    #[inline]
    fn find(&mut self, view: View) -> Option<u64> {
        let mut newest_known = view == View::Queue;
        // A writer can skip at most all slots in a row; and what claims more is invalid.
        for _ in 0..self.shared.layout.slot_count() + ATTEMPTS_MAX {
            match self.shared.stamp(self.next).find(self.next) {
                Finding::Complete if newest_known => return Some(self.next),
                Finding::Complete => {
                    self.next = self.next.max(self.shared.published());
                    newest_known = true;
                }
                Finding::Pending => {
                    self.shared.fetch_ahead(self.next, self.ahead_bytes);
                    return None;
                }
                Finding::Skipped => self.next += 1,
                Finding::Overrun => self.jump(view, 0),
            }
        }
        None
    }

    /// Goes on behind what was overwritten: in order, with the oldest message that may be left, and
    /// further ahead with every failed attempt to read it; or with the newest.
    #[cold]
    fn jump(&mut self, view: View, attempt: u64) {
        let published = self.shared.published();
        let goal = match view {
            View::Queue => {
                let oldest = self.shared.layout.oldest(published);
                oldest + (published - oldest.min(published)) * attempt / ATTEMPTS_MAX
            }
            View::Latest => published,
        };
        self.next = goal.max(self.next + 1).min(POSITION_MAX);
    }

    #[cold]
    fn overtaken(&mut self, view: View, attempt: u64) {
        self.counters.overtaken += 1;
        self.jump(view, attempt);
    }

    #[cold]
    fn unfit(&mut self, length_bytes: usize, buffer_bytes: usize) -> ReadError {
        let payload_bytes_max = self.shared.layout.payload_bytes_max();
        if length_bytes <= payload_bytes_max {
            return ReadError::BufferTooSmall { length_bytes, buffer_bytes };
        }
        self.counters.corrupt += 1;
        self.next += 1;
        ReadError::Corrupt { length_bytes, payload_bytes_max }
    }

    #[inline]
    fn accept(&mut self, position: u64, found: &Found) -> Sample {
        self.next = position + 1;
        self.ahead_bytes = if found.length_bytes <= AHEAD_BYTES_MAX { found.length_bytes } else { 0 };
        let missed = match mem::replace(&mut self.next_number, found.number.wrapping_add(1)) {
            0 => 0,
            expected => found.number.saturating_sub(expected),
        };
        self.counters.read += 1;
        self.counters.missed = self.counters.missed.saturating_add(missed);
        self.shared.control.word(CURSOR).store(self.next, Ordering::Relaxed);
        Sample { number: found.number, origin: found.origin, length_bytes: found.length_bytes, missed }
    }
}

/// Wakes all that sleep on a ring, see [`Reader::alarm`].
#[cfg(not(loom))]
#[derive(Debug)]
pub struct Alarm(Memory);

#[cfg(not(loom))]
impl Alarm {
    /// Wakes them; they find nothing new and must look further. The kernel allows it on memory that
    /// is mapped read-only.
    pub fn wake(&self) {
        noctule_sys::shared_memory::futex_wake(self.0.low_half(PUBLISHED));
    }

    /// The word that changes with every message; see [`Reader::begin_wait`].
    pub fn futex_word(&self) -> &AtomicU32 {
        self.0.low_half(PUBLISHED)
    }
}
