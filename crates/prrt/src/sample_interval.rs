//! The sample interval of a stream, learned: when the next sample is overdue and a NACK is due without any datagram.

use noctule_timebase::{Instant, Span};

use crate::stream::Local;

/// A datagram is missed so much later than expected, in parts of the interval, jitter aside.
const GRACE_PARTS: i64 = 16;
/// At least this much, and more than the uncertainty of a sender's round trip: the report of a loss must be true.
const GRACE_LEAST: Span = Span::from_us(400);
/// Silences reported before something arrives again: what was elicited stays in proportion.
const SILENCES_LIMIT: u32 = 12;
/// They are reported no more often than this, whatever the source times say.
const SILENCE_LEAST: Span = Span::from_us(500);

/// The time between samples, by their source times, and how irregularly they arrive (RFC 3550, section 6.4.1).
#[derive(Debug, Default)]
pub(crate) struct SampleInterval {
    newest: Option<Newest>,
    interval: Option<Span>,
    jitter: Span,
    expected_at: Option<Instant<Local>>,
    /// Reported since something arrived.
    silences: u32,
}

/// The newest sample of which a datagram arrived.
#[derive(Clone, Copy, Debug)]
struct Newest {
    sequence: u64,
    source_time_ns: i64,
    arrived: Instant<Local>,
}

impl SampleInterval {
    /// A datagram of a sample has arrived.
    pub(crate) fn observe(&mut self, sequence: u64, source_time_ns: i64, now: Instant<Local>) {
        if let Some(newest) = self.newest {
            if sequence <= newest.sequence {
                return;
            }
            let samples = (sequence - newest.sequence).min(1 << 32) as i64;
            let apart = Span::from_ns(source_time_ns.saturating_sub(newest.source_time_ns).max(0));
            let interval = apart / samples;
            let smoothed = self.interval.unwrap_or(interval);
            self.interval = Some(smoothed + (interval - smoothed) / 8);
            let irregular = ((now - newest.arrived) - apart).abs();
            self.jitter += (irregular - self.jitter) / 16;
        }
        self.newest = Some(Newest { sequence, source_time_ns, arrived: now });
        self.silences = 0;
        self.expected_at =
            self.interval.map(|interval| now + interval.max(SILENCE_LEAST) + self.grace(interval));
    }

    /// Whether one that was expected by now is not here; then the next is expected in turn, for one deadline.
    pub(crate) fn is_overdue(&mut self, now: Instant<Local>, deadline: Span) -> bool {
        let (Some(expected), Some(interval), Some(newest)) = (self.expected_at, self.interval, self.newest)
        else {
            return false;
        };
        if now < expected {
            return false;
        }
        self.silences += 1;
        let every = interval.max(SILENCE_LEAST);
        // A thread that slept through several reports one.
        let next = if expected + every > now { expected + every } else { now + every };
        // When it is silent for longer, whatever it could help is over.
        let goes_on = next - newest.arrived <= deadline && self.silences < SILENCES_LIMIT;
        self.expected_at = goes_on.then_some(next);
        interval < deadline
    }

    pub(crate) fn expected_at(&self) -> Option<Instant<Local>> {
        self.expected_at
    }

    fn grace(&self, interval: Span) -> Span {
        grace(interval) + self.jitter * 4
    }
}

/// How much later than expected a sample is missed where none comes irregularly.
pub(crate) fn grace(interval: Span) -> Span {
    (interval / GRACE_PARTS).max(GRACE_LEAST)
}
