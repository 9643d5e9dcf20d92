//! A reader's mapping of a ring, and the messages in it by their positions.

use noctule_sys::fork_guard::ForkGuard;

use crate::layout::{LENGTH_AND_USER, LINE_BYTES, Layout, NUMBER, PUBLISHED, SOURCE_TIME, STAMP, Stamp};
use crate::memory::Memory;
use crate::sync::{AtomicU32, Ordering, fence};
use crate::writer::Origin;

/// Positions beyond are made up by a hostile writer; no honest one gets so far in a thousand years.
pub(crate) const POSITION_MAX: u64 = 1 << 56;

/// Where a new reader begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartAt {
    /// With the oldest message that is still there.
    Oldest,
    /// With the last so many messages, as far as they are still there.
    Last(u32),
    /// With the newest message, if there is one.
    Newest,
    /// With the first message published from now on.
    Next,
    /// With the message at `position`, the first published after the writer let this reader in
    /// ([`ReaderTable::next_position`](crate::ReaderTable::next_position)), and before it with the last `history`
    /// messages of then, as far as they are still there.
    From {
        /// As the writer announced it; one that is not there yet is ignored.
        position: u64,
        /// How many messages before it.
        history: u32,
    },
}

/// A message without its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Messages of one ring are numbered from 1, without gaps.
    pub number: u64,
    /// Its writer's metadata: source time and user's word.
    pub origin: Origin,
    /// Length in bytes.
    pub length_bytes: usize,
    /// Messages between the one read before and this one: overwritten before they were read, or
    /// passed over by reading the latest.
    pub missed: u64,
}

/// Header of a message, as found.
pub(crate) struct Found {
    pub(crate) number: u64,
    pub(crate) origin: Origin,
    pub(crate) length_bytes: usize,
}

/// State that a reader shares with the samples that it lends.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) data: Memory,
    pub(crate) layout: Layout,
    pub(crate) control: Memory,
    pub(crate) pins: u32,
    /// Which pins are in use, bit by bit. Kept here and not read from the control page, which the
    /// writer could have changed.
    pub(crate) pins_used: AtomicU32,
    /// The control page is its parent's in the child of a fork.
    pub(crate) guard: Option<ForkGuard>,
}

impl Shared {
    #[inline(always)]
    pub(crate) fn stamp(&self, position: u64) -> Stamp {
        Stamp(self.data.word(self.layout.slot(position) + STAMP).load(Ordering::Acquire))
    }

    #[inline(always)]
    pub(crate) fn stamp_relaxed(&self, position: u64) -> Stamp {
        Stamp(self.data.word(self.layout.slot(position) + STAMP).load(Ordering::Relaxed))
    }

    /// Has the lines on their way in which a message of so many bytes will be, beside that of the stamp. A reader that polls the stamp alone
    /// begins to fetch them when it finds the message complete: one trip between cores after the other instead of both at once.
    #[inline(always)]
    pub(crate) fn fetch_ahead(&self, position: u64, length_bytes: usize) {
        let start = self.layout.payload(length_bytes);
        let slot = self.layout.slot(position);
        // What shares the line of the stamp has been fetched with it.
        for offset in (LINE_BYTES..start + length_bytes).step_by(LINE_BYTES) {
            self.data.fetch_ahead(slot + offset);
        }
    }

    pub(crate) fn published(&self) -> u64 {
        self.data.word(PUBLISHED).load(Ordering::Acquire).min(POSITION_MAX)
    }

    #[inline(always)]
    pub(crate) fn header(&self, position: u64) -> Found {
        let slot = self.layout.slot(position);
        let load = |offset| self.data.word(slot + offset).load(Ordering::Relaxed);
        let length_and_user = load(LENGTH_AND_USER);
        Found {
            number: load(NUMBER),
            origin: Origin { source_time_ns: load(SOURCE_TIME) as i64, user: (length_and_user >> 32) as u32 },
            length_bytes: length_and_user as u32 as usize,
        }
    }

    /// Position to begin with, and the number expected there if that can be known.
    pub(crate) fn start(&self, start: StartAt) -> (u64, u64) {
        let newest = self.published();
        match start {
            StartAt::Oldest => (self.layout.oldest(newest), 0),
            StartAt::Last(count) => {
                (self.before(newest, newest + 1, count.max(1)).unwrap_or(newest.max(1)), 0)
            }
            StartAt::Newest => (newest.max(1), 0),
            StartAt::Next => (newest + 1, self.number_after(newest)),
            StartAt::From { position, history } => {
                let position = position.clamp(1, newest + 1);
                match self.before(newest, position, history) {
                    Some(older) => (older, 0),
                    None => (position, self.number_after(position - 1)),
                }
            }
        }
    }

    /// The oldest of the last `count` messages before `position` that are still there.
    pub(crate) fn before(&self, newest: u64, position: u64, count: u32) -> Option<u64> {
        // Positions that were passed over hold no message.
        let there = |position: &u64| self.stamp(*position) == Stamp::complete(*position);
        (self.layout.oldest(newest)..position).rev().filter(there).take(count as usize).last()
    }

    /// Number of the message at a position; `None` if there is none, or not any more.
    pub(crate) fn number_at(&self, position: u64) -> Option<u64> {
        let complete = Stamp::complete(position);
        if self.stamp(position) != complete {
            return None;
        }
        let number = self.header(position).number;
        // What was read before the fence is older than what the stamp says after it.
        fence(Ordering::Acquire);
        (self.stamp_relaxed(position) == complete).then_some(number)
    }

    /// Position of the message with this number, which is `last_possible` or before it, as numbers have no gaps and positions may be
    /// skipped; of the oldest message that is left, if that one is gone.
    pub(crate) fn position_of(&self, number: u64, last_possible: u64, newest: u64) -> u64 {
        let oldest = self.layout.oldest(newest);
        let mut position = last_possible;
        while position > oldest {
            match self.number_at(position) {
                // No number is smaller, unless a hostile writer made it up.
                Some(found) if found <= number => return position,
                Some(found) => position = position.saturating_sub(found - number),
                None => position -= 1,
            }
        }
        oldest
    }

    /// One more than the number of a message, if it is still there.
    pub(crate) fn number_after(&self, position: u64) -> u64 {
        match position {
            0 => 1,
            _ => self.number_at(position).map_or(0, |number| number.wrapping_add(1)),
        }
    }
}
