//! The readers of a ring: the writer's side of the control pages.
//!
//! Readers come and go through another thread than the one that publishes. The list is behind a
//! lock; a version beside it, which the writer reads after its fence, shows whether to look.

use crate::layout::{CONTROL_BYTES, CURSOR, Layout, LayoutError, PINS, PINS_PER_READER, PUBLISHED};
use crate::memory::Memory;
use crate::sync::{Arc, AtomicU64, Mutex, Ordering};

/// The most readers of one ring: `/tf` and `/clock` of a large robot. The writer looks at each of them after every message.
pub const READERS_MAX: usize = 256;

/// The most readers of one ring in the writer's own process beyond [`READERS_MAX`]: no other process can take their places.
pub const OWN_READERS_MAX: usize = 1024;

/// The same and one that reads the history for a moment.
pub(crate) const ATTACHED_MAX: usize = READERS_MAX + OWN_READERS_MAX + 1;

/// Names an attached reader; never used twice for one ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReaderId(u64);

/// Why a reader cannot be attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AttachError {
    /// [`READERS_MAX`] reached.
    #[error("the topic has its {READERS_MAX} readers; share one reader among the threads of a process")]
    Readers,
    /// [`OWN_READERS_MAX`] reached, too.
    #[error(
        "the topic has its {OWN_READERS_MAX} readers in the publisher's process; share one reader among threads"
    )]
    OwnReaders,
    /// No slots to spare for pins.
    #[error("{wanted} samples to borrow at once are not to be had, {left} are; raise the writer's `pins`")]
    Pins {
        /// Pins asked for.
        wanted: u32,
        /// Pins left.
        left: u32,
    },
    /// Not memory for a control page.
    #[error("control page: {0}")]
    Control(LayoutError),
}

/// The readers of one ring; clones are the same list.
#[derive(Debug, Clone)]
pub struct ReaderTable(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    version: AtomicU64,
    data: Memory,
    pins_max: u32,
    list: Mutex<List>,
}

#[derive(Debug, Default)]
struct List {
    attached: Vec<Attached>,
    next_id: u64,
}

/// A reader as the writer sees it.
#[derive(Debug, Clone)]
pub(crate) struct Attached {
    pub(crate) id: ReaderId,
    pub(crate) control: Memory,
    /// Words of the control page that count as pins; whatever stands behind them is ignored.
    pub(crate) pins: u32,
    /// A writer that keeps all publishes nothing that this reader has no room for.
    pub(crate) is_waited_for: bool,
    /// It reads no more, but has still borrowed something.
    is_gone: bool,
}

impl Attached {
    fn has_borrowed(&self) -> bool {
        let pin = |pin: usize| self.control.word(PINS + pin * 8).load(Ordering::Acquire);
        (0..self.pins as usize).any(|at| pin(at) != 0)
    }
}

impl ReaderTable {
    pub(crate) fn new(layout: &Layout, data: Memory) -> Self {
        let list = Mutex::new(List::default());
        Self(Arc::new(Shared { version: AtomicU64::new(0), data, pins_max: layout.pins(), list }))
    }

    /// The position at or after which everything lies that is published from now on: where a reader that
    /// was just attached begins ([`StartAt::From`](crate::StartAt::From)).
    pub fn next_position(&self) -> u64 {
        self.0.data.word(PUBLISHED).load(Ordering::Acquire) + 1
    }

    /// Makes the writer heed a control page from its next message on. Call it before the reader is
    /// notified that it may read: what happens after the reader knows, the writer sees. It never holds the writer up: what it
    /// does not read in time is overwritten, and it counts that as missed.
    ///
    /// # Errors
    /// No room for another reader or its pins, or no memory for a control page.
    pub fn attach(&self, control: Memory, pins: u32) -> Result<ReaderId, AttachError> {
        self.add(READERS_MAX, control, pins, false)
    }

    /// As [`attach`](ReaderTable::attach) or, for one that is waited for, [`attach_waited_for`](ReaderTable::attach_waited_for), for a reader in the
    /// writer's own process: [`OWN_READERS_MAX`] more than of others.
    ///
    /// # Errors
    /// As of `attach`.
    pub fn attach_own(
        &self,
        control: Memory,
        pins: u32,
        is_waited_for: bool,
    ) -> Result<ReaderId, AttachError> {
        let attached = self.add(READERS_MAX + OWN_READERS_MAX, control, pins, is_waited_for);
        attached.map_err(|error| if error == AttachError::Readers { AttachError::OwnReaders } else { error })
    }

    /// As [`attach`](ReaderTable::attach), for a reader that loses nothing: [`Writer::has_room`](crate::Writer::has_room) counts it, so a writer
    /// that keeps all waits for it.
    ///
    /// # Errors
    /// As of `attach`.
    pub fn attach_waited_for(&self, control: Memory, pins: u32) -> Result<ReaderId, AttachError> {
        self.add(READERS_MAX, control, pins, true)
    }

    /// As [`attach`](ReaderTable::attach), for the writer's own process, which reads for a moment and pins nothing: one more than
    /// there may be readers.
    ///
    /// # Errors
    /// As of `attach`.
    pub fn attach_extra(&self, control: Memory) -> Result<ReaderId, AttachError> {
        self.add(ATTACHED_MAX, control, 0, false)
    }

    fn add(
        &self,
        readers_max: usize,
        control: Memory,
        pins: u32,
        is_waited_for: bool,
    ) -> Result<ReaderId, AttachError> {
        if control.length_bytes() < CONTROL_BYTES {
            let (length_bytes, needed_bytes) = (control.length_bytes(), CONTROL_BYTES as u64);
            return Err(AttachError::Control(LayoutError::TooSmall { length_bytes, needed_bytes }));
        }
        if !control.is_writable() {
            return Err(AttachError::Control(LayoutError::ReadOnly));
        }
        let mut list = self.lock();
        list.attached.retain(|reader| !reader.is_gone || reader.has_borrowed());
        if list.attached.len() >= readers_max {
            return Err(AttachError::Readers);
        }
        let granted: u32 = list.attached.iter().map(|reader| reader.pins).sum();
        let left = self.0.pins_max.saturating_sub(granted).min(PINS_PER_READER);
        if pins > left {
            return Err(AttachError::Pins { wanted: pins, left });
        }
        let id = ReaderId(list.next_id);
        list.next_id += 1;
        // Until it has read something, it has to read what comes from now on.
        control.word(CURSOR).store(self.next_position(), Ordering::Release);
        list.attached.push(Attached { id, control, pins, is_waited_for, is_gone: false });
        self.0.version.fetch_add(1, Ordering::Release);
        Ok(id)
    }

    /// Forgets a reader that has gone, with all its pins.
    pub fn detach(&self, id: ReaderId) {
        let mut list = self.lock();
        list.attached.retain(|reader| reader.id != id);
        self.0.version.fetch_add(1, Ordering::Release);
    }

    /// A reader reads no more: it is waited for no more, and forgotten once nothing of it is borrowed. False if something still is; then call
    /// it again some time, or [`detach`](ReaderTable::detach) when its process has gone.
    pub fn release(&self, id: ReaderId) -> bool {
        let mut list = self.lock();
        if let Some(reader) = list.attached.iter_mut().find(|reader| reader.id == id) {
            (reader.is_waited_for, reader.is_gone) = (false, true);
        }
        list.attached.retain(|reader| !reader.is_gone || reader.has_borrowed());
        let is_forgotten = list.attached.iter().all(|reader| reader.id != id);
        self.0.version.fetch_add(1, Ordering::Release);
        is_forgotten
    }

    /// How many readers there are.
    pub fn len(&self) -> usize {
        self.lock().attached.iter().filter(|reader| !reader.is_gone).count()
    }

    /// Whether no reader is attached.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes a reader's pins away for good: no honest reader moves them in front of the writer.
    pub(crate) fn revoke_pins(&self, control: &Memory) {
        let mut list = self.lock();
        let same = |reader: &&mut Attached| std::ptr::eq(reader.control.word(0), control.word(0));
        if let Some(reader) = list.attached.iter_mut().find(same) {
            reader.pins = 0;
        }
        self.0.version.fetch_add(1, Ordering::Release);
    }

    #[inline]
    pub(crate) fn version(&self) -> u64 {
        self.0.version.load(Ordering::Acquire)
    }

    /// The list and the version it belongs to.
    pub(crate) fn snapshot(&self) -> (u64, Vec<Attached>) {
        let list = self.lock();
        (self.version(), list.attached.clone())
    }

    #[cfg(not(loom))]
    fn lock(&self) -> std::sync::MutexGuard<'_, List> {
        // A panic while the list was held cannot leave it half changed.
        self.0.list.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    #[cfg(loom)]
    fn lock(&self) -> loom::sync::MutexGuard<'_, List> {
        self.0.list.lock().unwrap()
    }
}
