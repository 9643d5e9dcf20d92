//! Recorded delays and losses, played again.
//!
//! By time, the recording is taken as a sample of the link's delay curve. Radios stall and then
//! drain: packets sent during a stall arrive together at its end, so their delays fall as steeply
//! as time passes. A packet sent between two recorded ones therefore gets a delay between theirs, by
//! straight line; then its arrival lies between theirs too. Repeating the delay of the recorded packet
//! before it would tear the drain apart. A recorded loss lasts until the next recorded packet.

use noctule_timebase::Span;

use super::jitter::DELAY_MAX;

/// Longest recording.
pub const RECORDING_ENTRIES_MAX: usize = 1_000_000;

/// One recorded packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// When it was sent, from the start of the recording.
    pub at: Span,
    /// How long it took; `None` if it was lost.
    pub delay: Option<Span>,
}

/// A recording that can be played: it has a packet, in the order of sending, and sane delays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recording {
    entries: Vec<Entry>,
    length: Span,
}

/// Why a recording cannot be played.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordingError {
    /// No entry.
    #[error("a recording without a packet cannot be played; record at least one")]
    Empty,
    /// More than [`RECORDING_ENTRIES_MAX`].
    #[error("a recording may have {RECORDING_ENTRIES_MAX} packets, not {0}; cut a part out")]
    TooLong(usize),
    /// Not in the order of sending, or before the start.
    #[error("packet {0} of the recording was sent before the one before it; sort by time of sending")]
    Order(usize),
    /// A delay below zero or above an hour.
    #[error("the delay of packet {0} of the recording is not between 0 and one hour; correct it")]
    Delay(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Replayed {
    Lost,
    Delivered(Span),
}

impl From<Entry> for Replayed {
    fn from(entry: Entry) -> Replayed {
        entry.delay.map_or(Replayed::Lost, Replayed::Delivered)
    }
}

impl Recording {
    /// Takes the time of the first entry as the start.
    pub fn new(mut entries: Vec<Entry>) -> Result<Recording, RecordingError> {
        let origin = entries.first().ok_or(RecordingError::Empty)?.at;
        let count = entries.len();
        if count > RECORDING_ENTRIES_MAX {
            return Err(RecordingError::TooLong(count));
        }
        let mut last = Span::ZERO;
        for (number, entry) in entries.iter_mut().enumerate() {
            entry.at -= origin;
            if entry.at < last || entry.at == Span::MAX {
                return Err(RecordingError::Order(number));
            }
            last = entry.at;
            if entry.delay.is_some_and(|delay| delay < Span::ZERO || delay > DELAY_MAX) {
                return Err(RecordingError::Delay(number));
            }
        }
        // The last packet lasts as long as the others on average.
        let spacing = if count > 1 { last / (count as i64 - 1) } else { Span::from_s(1) };
        Ok(Recording { entries, length: last + spacing.max(Span::from_ns(1)) })
    }

    /// The same with every delay halved: a round trip taken as two equal ways.
    #[must_use]
    pub fn halved(mut self) -> Recording {
        for entry in &mut self.entries {
            entry.delay = entry.delay.map(|delay| delay / 2);
        }
        self
    }

    /// Packets recorded.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// After this time it begins anew.
    pub fn length(&self) -> Span {
        self.length
    }

    pub(super) fn entry(&self, index: u64) -> Replayed {
        self.entries[(index % self.entries.len() as u64) as usize].into()
    }

    pub(super) fn at(&self, since_start: Span) -> Replayed {
        let position = Span::from_ns(since_start.ns().rem_euclid(self.length.ns()));
        let after = self.entries.partition_point(|entry| entry.at <= position);
        // The first entry is at zero, so there is always one before.
        let before = self.entries[after.max(1) - 1];
        let next = self.entries.get(after);
        match (before.delay, next.and_then(|entry| entry.delay.map(|delay| (entry.at, delay)))) {
            (Some(from), Some((at, to))) => {
                let (done_ns, whole_ns) = ((position - before.at).ns(), (at - before.at).ns().max(1));
                let change = (to - from).scale(done_ns, whole_ns.unsigned_abs()).unwrap_or(Span::ZERO);
                Replayed::Delivered(from + change)
            }
            _ => before.into(),
        }
    }
}
