//! Where everything is in a data region and in a control page (`docs/spec/shared-memory.md`).
//!
//! A reader trusts nothing: it copies the numbers of the header once, checks them against the size
//! of its mapping, and computes every offset from the copies.

use crate::memory::Memory;
use crate::sync::Ordering;

/// The most slots a ring may have.
pub const SLOTS_MAX: u64 = 1 << 16;
/// The longest message: 1 GiB.
pub const PAYLOAD_BYTES_MAX: usize = 1 << 30;
/// The most slots one reader may have pinned at once: what fits in a cache line.
pub const PINS_PER_READER: u32 = 7;
/// Size of a control page.
pub const CONTROL_BYTES: usize = if cfg!(loom) { 256 } else { 4096 };

const MAGIC: u64 = u64::from_le_bytes(*b"noctring");
const VERSION: u64 = 2;

/// Number of the last position published; its low half is the futex. Alone in its pair of lines.
pub(crate) const PUBLISHED: usize = 128;
/// When that was, if the writer keeps it; the writer has the line at hand then.
pub(crate) const WRITTEN: usize = 136;
const SLOTS: usize = 256;

// Within a slot.
pub(crate) const STAMP: usize = 0;
pub(crate) const NUMBER: usize = 8;
pub(crate) const SOURCE_TIME: usize = 16;
/// Length in the low half, the user's word in the high half.
pub(crate) const LENGTH_AND_USER: usize = 24;
const SHORT_PAYLOAD: usize = 32;
const LONG_PAYLOAD: usize = 64;
/// Cache line: the unit that cores exchange.
pub(crate) const LINE_BYTES: usize = 64;
/// Largest message that fits into the line of the stamp.
const SHORT_BYTES_MAX: usize = LONG_PAYLOAD - SHORT_PAYLOAD;

// Within a control page.
/// 0, or one more than the position last published when the reader went to sleep. The writer looks here after each message, so the pair of lines
/// holds nothing that the reader writes while it is awake.
pub(crate) const WAITING: usize = 128;
/// Seven words: positions pinned, 0 for none.
pub(crate) const PINS: usize = 8;
/// Position the reader takes next: for observers, and for a writer that keeps all if the reader is waited for.
pub(crate) const CURSOR: usize = 64;

/// The configuration of a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RingConfig {
    /// How many of the last messages can be read, ≥ 1, whatever is pinned. A reader that lags behind
    /// all of them and moves its pins along at every message costs others some of the oldest, never
    /// the newest.
    pub history: u32,
    /// How many slots all readers together may have pinned; rounding may give more.
    pub pins: u32,
    /// The longest message, up to [`PAYLOAD_BYTES_MAX`].
    pub payload_bytes_max: usize,
    /// Says what the bytes mean; a reader that expects another type is refused.
    pub type_hash: u64,
    /// 4: what lies behind the first four bytes of a message is aligned to 8, so that what follows the header of CDR can be
    /// read and written as a struct. 0: the first byte is.
    pub shift_bytes: usize,
}

/// Why a region cannot be made or read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// Configuration out of limits.
    #[error(
        "a ring of {slots} slots (history, twice the pins, one to write) is not possible; 2 to {SLOTS_MAX} are"
    )]
    Slots {
        /// Slots it would need.
        slots: u64,
    },
    /// Configuration or header out of limits.
    #[error("messages of {payload_bytes_max} bytes do not fit into a ring; up to {PAYLOAD_BYTES_MAX} do")]
    Payload {
        /// The payload that was requested.
        payload_bytes_max: u64,
    },
    /// Not the bytes of a ring.
    #[error("the shared memory holds no ring, or one that is not finished; connect again")]
    NoRing,
    /// Written by another version of this library.
    #[error("the ring has layout version {found}, this program reads {VERSION}; use the same release")]
    Version {
        /// Version found.
        found: u64,
    },
    /// Configuration or header out of limits.
    #[error("messages cannot begin {shift_bytes} bytes behind a multiple of eight; 0 and 4 are possible")]
    Shift {
        /// The shift that was requested.
        shift_bytes: u64,
    },
    /// Header that contradicts itself.
    #[error("the ring's header says {slot_stride_bytes} bytes per slot, which its payload does not need")]
    Stride {
        /// Stride found.
        slot_stride_bytes: u64,
    },
    /// The mapping is smaller than the layout.
    #[error("the shared memory has {length_bytes} bytes, its ring needs {needed_bytes}")]
    TooSmall {
        /// Size of the mapping.
        length_bytes: usize,
        /// Size of the ring.
        needed_bytes: u64,
    },
    /// Memory that must be written is mapped read-only.
    #[error("the shared memory is mapped read-only, but this side writes it")]
    ReadOnly,
    /// Another type of message.
    #[error("the ring carries type {found:016x}, wanted is {wanted:016x}; compare the definitions")]
    Type {
        /// Type hash of the ring.
        found: u64,
        /// Type hash asked for.
        wanted: u64,
    },
}

/// Geometry of a ring, checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    slot_count: u64,
    /// At most `slot_count` − 2: one slot to write, one to keep.
    pins: u64,
    slot_stride_bytes: usize,
    payload_bytes_max: usize,
    type_hash: u64,
    shift_bytes: usize,
}

impl Layout {
    /// Geometry for what is to be held: history, pins and one slot to write, rounded up to a power
    /// of two.
    pub fn of(config: &RingConfig) -> Result<Self, LayoutError> {
        // Pinned slots twice: while they are passed over, positions older by as many hold history.
        let wanted = u64::from(config.history) + 2 * u64::from(config.pins) + 1;
        if config.history == 0 {
            return Err(LayoutError::Slots { slots: wanted });
        }
        // What rounding gives goes to the pins.
        let slots = wanted.next_power_of_two();
        let pins = (slots - 1 - u64::from(config.history)) / 2;
        let sizes = [config.payload_bytes_max as u64, config.shift_bytes as u64];
        Self::checked([slots, pins], sizes, config.type_hash)
    }

    /// Size of the data region in bytes.
    pub fn region_bytes(&self) -> u64 {
        SLOTS as u64 + self.slot_count * self.slot_stride_bytes as u64
    }

    /// Number of slots, a power of two.
    pub fn slot_count(&self) -> u64 {
        self.slot_count
    }

    /// The longest message.
    pub fn payload_bytes_max(&self) -> usize {
        self.payload_bytes_max
    }

    /// The type hash.
    pub fn type_hash(&self) -> u64 {
        self.type_hash
    }

    /// Slots that all readers together may have pinned.
    pub fn pins(&self) -> u32 {
        self.pins as u32
    }

    /// The oldest position that the writer leaves alone after it has published another, whatever is
    /// pinned; what is older must not be pinned any more. The slots of older positions are one more
    /// than there are pins, so one of them is free for the next message.
    #[inline]
    pub(crate) fn oldest(&self, published: u64) -> u64 {
        published.saturating_sub(self.slot_count - 2 - self.pins).max(1)
    }

    pub(crate) fn slot_index(&self, position: u64) -> usize {
        (position & (self.slot_count - 1)) as usize
    }

    /// Byte offset of the slot of a position.
    #[inline(always)]
    pub(crate) fn slot(&self, position: u64) -> usize {
        SLOTS + self.slot_index(position) * self.slot_stride_bytes
    }

    /// Byte offset of a payload within its slot. Short ones share the line of the stamp; long ones
    /// begin a line of their own, as vector instructions like it.
    #[inline(always)]
    pub(crate) fn payload(&self, length_bytes: usize) -> usize {
        let is_short = length_bytes + self.shift_bytes <= SHORT_BYTES_MAX;
        self.shift_bytes + if is_short { SHORT_PAYLOAD } else { LONG_PAYLOAD }
    }

    /// Writes the header; the magic last, so that a header without it is not finished.
    pub(crate) fn write(&self, memory: &Memory) -> Result<(), LayoutError> {
        self.check_size(memory)?;
        let fields = [
            VERSION,
            self.slot_count,
            self.slot_stride_bytes as u64,
            self.payload_bytes_max as u64,
            self.type_hash,
            self.pins,
            self.shift_bytes as u64,
        ];
        for (index, field) in fields.into_iter().enumerate() {
            memory.word(8 + index * 8).store(field, Ordering::Relaxed);
        }
        memory.word(0).store(MAGIC, Ordering::Release);
        Ok(())
    }

    /// Reads and checks a header.
    pub(crate) fn read(memory: &Memory) -> Result<Self, LayoutError> {
        if memory.length_bytes() < SLOTS || memory.word(0).load(Ordering::Acquire) != MAGIC {
            return Err(LayoutError::NoRing);
        }
        let field = |index: usize| memory.word(8 + index * 8).load(Ordering::Relaxed);
        let [found, slots, slot_stride_bytes, payload, type_hash, pins, shift] = std::array::from_fn(field);
        if found != VERSION {
            return Err(LayoutError::Version { found });
        }
        let layout = Self::checked([slots, pins], [payload, shift], type_hash)?;
        if layout.slot_stride_bytes as u64 != slot_stride_bytes {
            return Err(LayoutError::Stride { slot_stride_bytes });
        }
        layout.check_size(memory)?;
        Ok(layout)
    }

    fn checked(
        [slot_count, pins]: [u64; 2],
        [payload, shift]: [u64; 2],
        type_hash: u64,
    ) -> Result<Self, LayoutError> {
        let possible = slot_count.is_power_of_two() && (2..=SLOTS_MAX).contains(&slot_count);
        if !possible || pins > slot_count - 2 {
            return Err(LayoutError::Slots { slots: slot_count });
        }
        let payload_bytes_max = usize::try_from(payload).unwrap_or(usize::MAX);
        if payload_bytes_max > PAYLOAD_BYTES_MAX {
            return Err(LayoutError::Payload { payload_bytes_max: payload });
        }
        let shift_bytes = match shift {
            0 => 0,
            4 => 4,
            shift_bytes => return Err(LayoutError::Shift { shift_bytes }),
        };
        // Pairs of lines, because processors fetch them together.
        let slot_stride_bytes = match payload_bytes_max + shift_bytes {
            0..=SHORT_BYTES_MAX => LONG_PAYLOAD,
            bytes => (LONG_PAYLOAD + bytes).next_multiple_of(128),
        };
        Ok(Self { slot_count, pins, slot_stride_bytes, payload_bytes_max, type_hash, shift_bytes })
    }

    fn check_size(&self, memory: &Memory) -> Result<(), LayoutError> {
        let (length_bytes, needed_bytes) = (memory.length_bytes(), self.region_bytes());
        if (length_bytes as u64) < needed_bytes {
            return Err(LayoutError::TooSmall { length_bytes, needed_bytes });
        }
        Ok(())
    }
}

/// The stamp of a slot: a position and a state, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp(pub(crate) u64);

/// The result of comparing a slot's stamp with the position that a reader expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finding {
    /// It is there.
    Complete,
    /// The writer has not come here yet, or is writing.
    Pending,
    /// The writer passed this slot over; there is no message at this position.
    Skipped,
    /// The writer has been here again; what was expected is gone.
    Overrun,
}

impl Stamp {
    const OPEN: u64 = 1;
    const SKIPPED: u64 = 2;

    pub(crate) fn complete(position: u64) -> Self {
        Self(position << 2)
    }

    pub(crate) fn open(position: u64) -> Self {
        Self(position << 2 | Self::OPEN)
    }

    pub(crate) fn skipped(position: u64) -> Self {
        Self(position << 2 | Self::SKIPPED)
    }

    /// Compares with the position expected in this slot.
    #[inline(always)]
    pub(crate) fn find(self, expected: u64) -> Finding {
        if self == Self::complete(expected) {
            return Finding::Complete;
        }
        match (self.0 >> 2).cmp(&expected) {
            std::cmp::Ordering::Less => Finding::Pending,
            std::cmp::Ordering::Greater => Finding::Overrun,
            std::cmp::Ordering::Equal if self == Self::skipped(expected) => Finding::Skipped,
            std::cmp::Ordering::Equal => Finding::Pending,
        }
    }
}
