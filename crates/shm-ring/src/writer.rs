//! The writing side.
//!
//! One slot is always *open*: claimed, marked, and known to be pinned by no reader. A message is written
//! into it, completed with one store to its stamp, and the next slot is claimed right away. Marking a
//! slot long before it is written keeps the mark off the way of the message: a spinning reader that
//! polls the stamp would otherwise take the line away between mark and completion. One full fence per
//! message serves both questions that need one: which readers sleep, and what is pinned.

use crate::layout::{
    CURSOR, LENGTH_AND_USER, Layout, LayoutError, NUMBER, PINS, PUBLISHED, RingConfig, SOURCE_TIME, STAMP,
    Stamp, WAITING, WRITTEN,
};
use crate::memory::Memory;
use crate::reader_table::{ATTACHED_MAX, Attached, ReaderId, ReaderTable};
use crate::sync::{Ordering, fence};

/// Metadata of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Origin {
    /// When the content was true, on the writer's `CLOCK_MONOTONIC_RAW`, in nanoseconds.
    pub source_time_ns: i64,
    /// The user's: which of several sources it came from, for example.
    pub user: u32,
}

/// Whether a reader must be woken after a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "call Writer::wake, or readers sleep on"]
pub enum Wake {
    /// No reader sleeps; no system call is needed.
    None,
    /// At least one reader sleeps.
    Readers,
}

/// Why a message was not written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// Longer than the ring was made for.
    #[error(
        "a message of {length_bytes} bytes is longer than the {payload_bytes_max} the topic was opened for"
    )]
    TooLong {
        /// Length of the message.
        length_bytes: usize,
        /// Longest possible.
        payload_bytes_max: usize,
    },
}

/// Counters of a writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WriterCounters {
    /// Messages published.
    pub published: u64,
    /// Slots passed over because a reader had pinned them.
    pub skipped: u64,
    /// Messages after which a reader had to be woken.
    pub woken: u64,
    /// Readers that lost their pins because they moved them in front of the writer.
    pub revoked: u64,
    /// Times that the writer looked at its readers' pins.
    pub looks: u64,
}

/// The one writer of a ring.
#[derive(Debug)]
pub struct Writer {
    memory: Memory,
    layout: Layout,
    reader_table: ReaderTable,
    /// The reader table as last seen.
    readers: Vec<Attached>,
    reader_table_version: u64,
    /// Position of the open slot.
    open: u64,
    /// Per slot, the position of the message it holds, 0 for none.
    held: Vec<u64>,
    /// Of the last message.
    number: u64,
    /// Up to this position there is room for all readers, as last looked.
    room_until: u64,
    /// No position before this can be pinned any more but those in `pinned`.
    settled_until: u64,
    pinned: Vec<u64>,
    counters: WriterCounters,
}

impl Writer {
    /// Makes a ring in memory that is all zero and writable. Its size is [`Layout::region_bytes`].
    pub fn create(memory: Memory, config: &RingConfig) -> Result<Self, LayoutError> {
        let layout = Layout::of(config)?;
        if !memory.is_writable() {
            return Err(LayoutError::ReadOnly);
        }
        layout.write(&memory)?;
        let open = 1;
        memory.word(layout.slot(open) + STAMP).store(Stamp::open(open).0, Ordering::Relaxed);
        fence(Ordering::Release);
        let reader_table = ReaderTable::new(&layout, memory.clone());
        let pinned = Vec::with_capacity(layout.pins() as usize);
        Ok(Self {
            memory,
            layout,
            reader_table,
            readers: Vec::new(),
            reader_table_version: 0,
            open,
            held: vec![0; layout.slot_count() as usize],
            number: 0,
            room_until: 0,
            settled_until: 0,
            pinned,
            counters: WriterCounters::default(),
        })
    }

    /// Where readers are attached and detached, from any thread.
    pub fn reader_table(&self) -> &ReaderTable {
        &self.reader_table
    }

    /// The ring's geometry.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Counters so far.
    pub fn counters(&self) -> WriterCounters {
        self.counters
    }

    /// Leaves out `count` numbers: for a relay that passes on messages of which some were lost, so that readers
    /// count them as missed.
    pub fn skip_numbers(&mut self, count: u64) {
        self.number = self.number.saturating_add(count);
    }

    /// Says that the next message is published at `now_ns` of the host's `CLOCK_MONOTONIC`, for a node that keeps watch
    /// ([`Rhythm`](crate::Rhythm)).
    #[inline]
    pub fn stamp(&self, now_ns: i64) {
        self.memory.word(WRITTEN).store(now_ns as u64, Ordering::Relaxed);
    }

    /// Publishes a copy of `bytes`.
    #[inline]
    pub fn copy_in(&mut self, bytes: &[u8], origin: Origin) -> Result<Wake, WriteError> {
        let offset = self.payload(bytes.len())?;
        self.memory.copy_in(offset, bytes);
        Ok(self.commit(bytes.len(), origin))
    }

    /// Lends the memory of the next message, to be written in place. What it holds before is
    /// unspecified (but initialised: what some message held here).
    pub fn loan(&mut self, length_bytes: usize) -> Result<Loan<'_>, WriteError> {
        let offset = self.payload(length_bytes)?;
        Ok(Loan { writer: self, offset, length_bytes })
    }

    /// Whether no reader that is waited for ([`ReaderTable::attach_waited_for`]) has `depth` messages or more still to read, so that the next
    /// one overwrites none of a history of that depth (history, keep all). Such a reader that has stopped reading keeps the answer at
    /// no until it is detached; other readers have no say.
    pub fn has_room(&mut self, depth: u32) -> bool {
        let depth = u64::from(depth.max(1));
        if self.open < self.room_until && self.reader_table.version() == self.reader_table_version {
            return true;
        }
        self.refresh_readers();
        let cursor = |reader: &Attached| reader.control.word(CURSOR).load(Ordering::Acquire);
        let awaited = self.readers.iter().filter(|reader| reader.is_waited_for);
        let oldest = awaited.map(cursor).min().unwrap_or(self.open).min(self.open);
        self.room_until = oldest.saturating_add(depth);
        if self.open < self.room_until {
            return true;
        }
        (self.messages_from(oldest).count() as u64) < depth
    }

    /// Of the readers that are waited for the one that has most still to read.
    pub fn slowest_reader(&mut self) -> Option<ReaderId> {
        self.refresh_readers();
        let cursor = |reader: &&Attached| reader.control.word(CURSOR).load(Ordering::Acquire);
        self.readers.iter().filter(|reader| reader.is_waited_for).min_by_key(cursor).map(|reader| reader.id)
    }

    /// Positions of the messages from one on. Those that were skipped for a pin hold none.
    fn messages_from(&self, first: u64) -> impl Iterator<Item = u64> {
        let first = first.max(self.open.saturating_sub(self.layout.slot_count()));
        (first..self.open).filter(|position| self.held[self.layout.slot_index(*position)] == *position)
    }

    /// Where the next message goes.
    pub fn position(&self) -> u64 {
        self.open
    }

    /// Messages that wait for a reader; 0 for one that is not attached.
    pub fn unread(&mut self, reader: ReaderId) -> u64 {
        self.refresh_readers();
        self.cursor(reader).map_or(0, |cursor| self.messages_from(cursor).count() as u64)
    }

    /// The position at which a reader has read so far that only `left` of the messages that are there now wait for it. `None`: no more wait now.
    pub fn position_with(&mut self, left: u64, reader: ReaderId) -> Option<u64> {
        self.refresh_readers();
        let cursor = self.cursor(reader)?;
        let to_read =
            self.messages_from(cursor).count().checked_sub(usize::try_from(left).unwrap_or(usize::MAX))?;
        self.messages_from(cursor).nth(to_read.checked_sub(1)?).map(|last| last + 1)
    }

    fn cursor(&self, reader: ReaderId) -> Option<u64> {
        let reader = self.readers.iter().find(|attached| attached.id == reader)?;
        Some(reader.control.word(CURSOR).load(Ordering::Acquire))
    }

    /// Wakes readers that sleep, with one system call, if any does.
    #[cfg(not(loom))]
    #[inline]
    pub fn wake(&self, wake: Wake) {
        if wake == Wake::Readers {
            noctule_sys::shared_memory::futex_wake(self.memory.low_half(PUBLISHED));
        }
    }

    #[inline]
    fn payload(&self, length_bytes: usize) -> Result<usize, WriteError> {
        let payload_bytes_max = self.layout.payload_bytes_max();
        if length_bytes > payload_bytes_max {
            return Err(WriteError::TooLong { length_bytes, payload_bytes_max });
        }
        Ok(self.layout.slot(self.open) + self.layout.payload(length_bytes))
    }

    #[inline]
    fn refresh_readers(&mut self) {
        if self.reader_table.version() != self.reader_table_version {
            (self.reader_table_version, self.readers) = self.reader_table.snapshot();
        }
    }

    /// Completes the open slot, publishes it and claims the next one.
    #[inline]
    fn commit(&mut self, length_bytes: usize, origin: Origin) -> Wake {
        let slot = self.layout.slot(self.open);
        let store = |offset, value| self.memory.word(slot + offset).store(value, Ordering::Relaxed);
        self.counters.published += 1;
        self.number += 1;
        store(NUMBER, self.number);
        store(SOURCE_TIME, origin.source_time_ns as u64);
        store(LENGTH_AND_USER, length_bytes as u64 | u64::from(origin.user) << 32);
        self.memory.word(slot + STAMP).store(Stamp::complete(self.open).0, Ordering::Release);
        self.memory.word(PUBLISHED).store(self.open, Ordering::Release);
        self.held[self.layout.slot_index(self.open)] = self.open;
        // Pairs with the fences of the reader: one that comes, sets a flag or a pin either is seen
        // from here on, or sees what has been published.
        fence(Ordering::SeqCst);
        self.refresh_readers();
        let wake = self.sleepers();
        if wake == Wake::Readers {
            self.counters.woken += 1;
        }
        self.claim();
        wake
    }

    /// Opens the next slot that no reader has pinned. What readers read is newer than all that comes
    /// into question here ([`Layout::oldest`]), so no honest pin is set here any more.
    #[inline]
    fn claim(&mut self) {
        self.open += 1;
        let held = self.held[self.layout.slot_index(self.open)];
        if held != 0 && self.is_pinned(held) {
            self.pass_over_pins();
        }
        let stamp = self.memory.word(self.layout.slot(self.open) + STAMP);
        stamp.store(Stamp::open(self.open).0, Ordering::Relaxed);
        // A reader of anything written from now on finds this mark afterwards.
        fence(Ordering::Release);
    }

    /// Whether a reader has pinned a position that comes into question here, by the last look if that suffices.
    #[inline]
    fn is_pinned(&mut self, position: u64) -> bool {
        if position < self.settled_until && self.pinned.is_empty() {
            return false;
        }
        self.look_at_pins(position)
    }

    /// A pin that is set from now on, before the oldest position of now, is not valid: its reader finds what is published, and gives up. So
    /// one look settles one position more than there are pins, and meanwhile the readers' lines stay with the readers.
    #[inline(never)]
    fn look_at_pins(&mut self, position: u64) -> bool {
        if position < self.settled_until && !self.pinned.contains(&position) {
            return false;
        }
        let Self { readers, pinned, settled_until, layout, counters, open, .. } = self;
        *settled_until = layout.oldest(*open - 1);
        counters.looks += 1;
        pinned.clear();
        for reader in readers {
            // Acquire: what the reader read before it let go happens before we write again.
            let pins = (0..reader.pins as usize)
                .map(|pin| reader.control.word(PINS + pin * 8).load(Ordering::Acquire));
            pinned.extend(pins.filter(|pin| *pin != 0 && *pin < *settled_until));
        }
        pinned.contains(&position)
    }

    /// Whether a reader sleeps that may not know of what is published. Its flag is taken down, so
    /// that it is woken once. A flag that says its reader knew is left alone: taken down now, it would
    /// be missing when the next message comes.
    #[inline]
    fn sleepers(&self) -> Wake {
        let published = self.open;
        let mut wake = Wake::None;
        for reader in &self.readers {
            let waiting = reader.control.word(WAITING);
            let since = waiting.load(Ordering::Relaxed);
            if since != 0 && since <= published {
                let _ = waiting.compare_exchange(since, 0, Ordering::Relaxed, Ordering::Relaxed);
                wake = Wake::Readers;
            }
        }
        wake
    }

    /// Moves on past slots that are pinned, never more than pins were granted. Each is charged to a
    /// reader that has pinned it; one that is charged with more than its own has moved a pin
    /// meanwhile, and loses them all.
    #[cold]
    fn pass_over_pins(&mut self) {
        // A reader has PINS_PER_READER at most.
        let mut charged = [0_u8; ATTACHED_MAX];
        while let Some(reader) = self.pinned_by() {
            if u32::from(charged[reader]) >= self.readers[reader].pins {
                self.reader_table.revoke_pins(&self.readers[reader].control);
                self.readers[reader].pins = 0;
                self.counters.revoked += 1;
                continue;
            }
            charged[reader] += 1;
            let stamp = self.memory.word(self.layout.slot(self.open) + STAMP);
            stamp.store(Stamp::skipped(self.open).0, Ordering::Relaxed);
            self.counters.skipped += 1;
            self.open += 1;
        }
    }

    /// Which reader has pinned what the open slot holds.
    #[inline]
    fn pinned_by(&self) -> Option<usize> {
        let held = self.held[self.layout.slot_index(self.open)];
        let pins = |reader: &Attached| {
            // Acquire: what the reader read before it let go happens before we write again.
            (0..reader.pins as usize)
                .any(|pin| reader.control.word(PINS + pin * 8).load(Ordering::Acquire) == held)
        };
        if held == 0 {
            return None;
        }
        self.readers.iter().position(pins)
    }
}

/// The next message, being written in place. Dropped without [`Self::commit`], nothing is published.
#[derive(Debug)]
pub struct Loan<'a> {
    writer: &'a mut Writer,
    offset: usize,
    length_bytes: usize,
}

impl Loan<'_> {
    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.length_bytes
    }

    /// Whether the message has no bytes.
    pub fn is_empty(&self) -> bool {
        self.length_bytes == 0
    }

    /// First byte. Valid for [`Self::len`] bytes while the loan lives; nothing else writes there, but
    /// readers that were overtaken may be reading (and will notice).
    #[cfg(not(loom))]
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.writer.memory.range(self.offset, self.length_bytes)
    }

    /// Copies `bytes` to the start of the message; the rest of their last word is unspecified.
    ///
    /// # Panics
    /// If `bytes` is longer than the loan.
    pub fn copy_from(&mut self, bytes: &[u8]) {
        assert!(bytes.len() <= self.length_bytes, "bytes fit into the loan");
        self.writer.memory.copy_in(self.offset, bytes);
    }

    /// Copies `bytes` into the message, from `offset` on.
    ///
    /// # Panics
    /// If they do not fit.
    #[cfg(not(loom))]
    pub fn write_at(&mut self, offset: usize, bytes: &[u8]) {
        let inside = offset.checked_add(bytes.len()).is_some_and(|end| end <= self.length_bytes);
        assert!(inside, "part inside the message");
        self.writer.memory.copy_in_part(self.offset + offset, bytes);
    }

    /// Copies what has been written out again.
    ///
    /// # Panics
    /// If `bytes` is longer than the loan.
    pub fn copy_to(&self, bytes: &mut [u8]) {
        assert!(bytes.len() <= self.length_bytes, "bytes of the loan");
        self.writer.memory.copy_out(self.offset, bytes);
    }

    /// Publishes it.
    pub fn commit(self, origin: Origin) -> Wake {
        self.writer.commit(self.length_bytes, origin)
    }
}
