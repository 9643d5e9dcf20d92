//! Batching: small reliable samples of which many are published wait for each other for a moment, so that several leave together.
//!
//! # Problem
//!
//! A datagram and a system call for each sample cost its sender and its receiver several microseconds, most of them whatever its length. The
//! host is the bottleneck then, not the path, and no window or full queue makes samples wait for each other. To wait for more of them would make each
//! sample older of which no other follows (Nagle's algorithm, RFC 896).
//!
//! # Approach
//!
//! Samples wait only while more than 50,000 a second are published, which a leaky bucket finds out: each sample fills it by the interval that is quick enough to
//! be helped, and time empties it. So a sample that is published by itself, or in a burst of up to some thirty, does not wait, and of a longer burst the last one
//! waits for less than what the others have saved.

use noctule_timebase::{Instant, Span};

use crate::stream::Local;
use crate::wire::SAMPLES_MAX;

/// What each sample fills; to send one by itself takes less.
const INTERVAL: Span = Span::from_us(20);
/// And for each of its datagrams but the first.
const DATAGRAM_INTERVAL: Span = Span::from_us(5);
/// From here on samples wait.
const LEVEL_MIN: Span = Span::from_us(400);
/// For this part of what is above that.
const PARTS: i64 = 8;
/// The longest wait; so many gather within it that their number limits them.
const WAIT_MAX: Span = Span::from_us(100);
/// Shorter is not worth while: the next sample is hardly there.
const WAIT_MIN: Span = Span::from_us(10);
/// Bytes that wait at most, so that one system call sends them in one buffer.
const BYTES_MAX: usize = 60 << 10;
/// Datagrams that they need at most.
const DATAGRAMS_MAX: usize = 44;
/// At most one of so many parts of the history waits: of a short one the publisher would wait for acknowledgements, which costs more.
const HISTORY_PARTS: usize = 8;

/// Of all writers of a link together.
#[derive(Debug, Default)]
pub(super) struct Gathering {
    queued_at: Option<Instant<Local>>,
    /// Of the bucket.
    level: Span,
    /// Samples wait until then.
    until: Option<Instant<Local>>,
    samples: usize,
    bytes: usize,
    /// Samples that waited are to be sent.
    has_gathered: bool,
}

impl Gathering {
    /// A reliable sample was queued, cut into fragments of `datagram_bytes`. `waiting` of its writer, of `depth`, have not begun to be sent, itself
    /// included; `is_alone`: nothing else waits on the link.
    pub(super) fn handle_queued(
        &mut self,
        (bytes, datagram_bytes): (usize, usize),
        (waiting, depth): (usize, usize),
        is_alone: bool,
        now: Instant<Local>,
    ) {
        self.has_gathered = self.until.is_some_and(|until| until <= now);
        let datagrams = (bytes / datagram_bytes.max(1)).min(DATAGRAMS_MAX) as i64;
        let fills = INTERVAL + DATAGRAM_INTERVAL * datagrams;
        let elapsed = self.queued_at.replace(now).map_or(fills, |before| now - before);
        self.level = (self.level + fills - elapsed).clamp(Span::ZERO, LEVEL_MIN + WAIT_MAX * PARTS);
        let wait = (self.level - LEVEL_MIN) / PARTS;
        if is_alone && wait >= WAIT_MIN {
            (self.until, self.samples, self.bytes) = (Some(now + wait), 0, 0);
        }
        (self.samples, self.bytes) = (self.samples + 1, self.bytes + bytes);
        let bytes_max = BYTES_MAX.min(DATAGRAMS_MAX * datagram_bytes);
        // As if the next one were as long.
        let is_full = self.samples >= SAMPLES_MAX || self.bytes + bytes > bytes_max;
        if is_full || waiting * HISTORY_PARTS >= depth {
            self.end();
        }
    }

    /// What waits is sent now.
    pub(super) fn end(&mut self) {
        self.has_gathered |= self.until.take().is_some();
    }

    /// Whether the sample queued last ended the wait of others.
    pub(super) fn has_gathered(&self) -> bool {
        self.has_gathered && self.has_joined()
    }

    /// Until when samples wait.
    pub(super) fn until(&self) -> Option<Instant<Local>> {
        self.until
    }

    /// Whether the sample queued last is not the first that waits.
    pub(super) fn has_joined(&self) -> bool {
        self.samples > 1
    }

    /// Whether samples still wait.
    pub(super) fn is_on(&self, now: Instant<Local>) -> bool {
        self.until.is_some_and(|until| now < until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Publishes `samples` of 64 bytes, one each `interval_us`, each of which leaves at once unless it is to wait, and gives how many waited and the
    /// longest time that one did, µs.
    fn publish(samples: usize, interval_us: i64, depth: usize) -> (usize, i64) {
        let mut gathering = Gathering::default();
        let (mut waiting, mut waited, mut longest) = (Vec::new(), 0, 0);
        for number in 0..samples as i64 {
            let now = Instant::from_ns(1_000_000 + number * interval_us * 1_000);
            waiting.push(now);
            gathering.handle_queued((64, 1_200), (waiting.len(), depth), waiting.len() == 1, now);
            if gathering.is_on(now) {
                waited += 1;
                longest = longest.max((gathering.until().unwrap() - now).ns() / 1_000);
            } else {
                gathering.end();
                waiting.clear();
            }
        }
        (waited, longest)
    }

    #[test]
    fn only_what_is_published_quickly_waits_and_no_longer_than_a_tenth_of_a_millisecond() {
        assert_eq!(publish(10_000, 20, 1_000), (0, 0), "50,000 a second need no help");
        assert_eq!(publish(30, 5, 1_000).0, 0, "a short burst");
        assert_eq!(publish(20, 0, 1_000).0, 0, "a shorter one, whatever its rate");
        let (waited, longest) = publish(100, 5, 1_000);
        assert!(waited > 50 && longest <= 100, "{waited} waited, {longest} us");
        let (waited, longest) = publish(10_000, 1, 1_000);
        assert!(waited > 9_000 && longest == 100, "{waited} waited, {longest} us");
    }

    #[test]
    fn a_short_history_and_much_data_are_not_held_back() {
        assert_eq!(publish(10_000, 1, 2).0, 0, "one that waits would be more than an eighth of the history");
        let mut gathering = Gathering::default();
        for number in 0..1_000 {
            let now = Instant::from_ns(number * 1_000);
            gathering.handle_queued((31 << 10, 61_440), (1, 1_000), true, now);
            assert!(!gathering.is_on(now));
        }
    }
}
