//! Loss and RTT while the congestion window is not full: a path that is limited by the application, not by our queue.

use noctule_timebase::{Instant, Span};

use crate::stream::Local;

/// The delivery rate is one of at least this long: a burst says less.
const RATE_OVER: Span = Span::from_ms(500);
/// The highest of one to two of these is known, as with the floor of the round trip.
const RATE_MEMORY: Span = Span::from_s(10);
/// Rounds over which an unusual delay fades.
const DELAY_FADES: i64 = 64;

/// A round that is over, by what the window knows of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Over {
    pub(super) is_full: bool,
    pub(super) cost_bytes: usize,
    /// Its shortest round trip, above the floor.
    pub(super) queue: Span,
}

/// The path while it is not filled.
#[derive(Debug)]
pub(super) struct Unfilled {
    /// Since when no round was full, and the bytes that arrived meanwhile.
    began: Instant<Local>,
    cost_bytes: usize,
    rates_bytes_per_s: [f64; 2],
    since: Instant<Local>,
    delay: Span,
}

impl Unfilled {
    pub(super) fn new(now: Instant<Local>) -> Unfilled {
        Unfilled { began: now, cost_bytes: 0, rates_bytes_per_s: [0.0; 2], since: now, delay: Span::ZERO }
    }

    pub(super) fn handle_round(&mut self, round: Over, now: Instant<Local>) {
        if now - self.since > RATE_MEMORY {
            (self.rates_bytes_per_s, self.since) = ([0.0, self.rates_bytes_per_s[0]], now);
        }
        self.delay = self.delay - self.delay / DELAY_FADES;
        if round.is_full {
            (self.began, self.cost_bytes) = (now, 0);
            return;
        }
        self.delays(round.queue);
        self.cost_bytes += round.cost_bytes;
        let length = now - self.began;
        if length >= RATE_OVER {
            let rate = self.cost_bytes as f64 / length.as_s_f64();
            self.rates_bytes_per_s[0] = self.rates_bytes_per_s[0].max(rate);
            (self.began, self.cost_bytes) = (now, 0);
        }
    }

    /// A round trip was so much above the floor, and no queue of ours.
    pub(super) fn delays(&mut self, delay: Span) {
        self.delay = self.delay.max(delay);
    }

    /// Highest delivery rate lately; 0 if the window was never long enough not full.
    pub(super) fn bytes_per_s(&self) -> f64 {
        self.rates_bytes_per_s[0].max(self.rates_bytes_per_s[1])
    }

    /// The shortest round trip of a round may be so long above the floor without a queue of ours.
    pub(super) fn delay(&self) -> Span {
        self.delay
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_rounds_that_did_not_fill_the_window_count() {
        let at = |ms: i64| Instant::from_ns(ms * 1_000_000);
        let mut path = Unfilled::new(at(0));
        let round = |is_full, queue_ms| Over { is_full, cost_bytes: 1_000, queue: Span::from_ms(queue_ms) };
        for number in 1..=50 {
            path.handle_round(round(true, 80), at(20 * number));
        }
        assert_eq!((path.bytes_per_s(), path.delay()), (0.0, Span::ZERO));
        for number in 51..=100 {
            path.handle_round(round(false, 5), at(20 * number));
        }
        assert!((path.bytes_per_s() - 50_000.0).abs() < 1_000.0, "{}", path.bytes_per_s());
        assert_eq!(path.delay(), Span::from_ms(5));
        path.handle_round(round(true, 80), at(13_000));
        assert!(path.bytes_per_s() > 0.0);
        path.handle_round(round(true, 80), at(24_000));
        assert_eq!(path.bytes_per_s(), 0.0);
    }
}
