//! The midpoint of the fastest of the last eight exchanges: NTP's clock filter.
//!
//! Mills, RFC 5905 section 10, without its dispersion bookkeeping: the sample with the least round
//! trip of eight wins. Its age is not corrected, so drift shows.

use noctule_timebase::Instant;

use crate::exchange::{Counters, Estimate, Estimator, Exchange, Local, Rejection};
use crate::last_sample::midpoint_estimate;

const WINDOW: usize = 8;

/// The midpoint of the fastest of the last eight exchanges, for comparison.
#[derive(Clone, Debug, Default)]
pub struct MinimumOf8 {
    window: [Option<Exchange>; WINDOW],
    next: usize,
    counters: Counters,
}

impl Estimator for MinimumOf8 {
    fn handle_exchange(&mut self, exchange: &Exchange) -> Result<(), Rejection> {
        let verdict = exchange.check();
        if verdict.is_ok() {
            self.window[self.next] = Some(*exchange);
            self.next = (self.next + 1) % WINDOW;
        }
        self.counters.count(verdict)
    }

    fn estimate(&self, _now: Instant<Local>) -> Option<Estimate> {
        let fastest = self.window.iter().flatten().min_by_key(|exchange| exchange.round_trip())?;
        Some(midpoint_estimate(fastest))
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fastest_of_eight_wins_and_is_forgotten_with_the_ninth() {
        let mut filter = MinimumOf8::default();
        let at = |t1: i64, back: i64| Exchange::from_ns(t1, t1 + 100, t1 + 100, t1 + 100 + back);
        filter.handle_exchange(&at(0, 100)).unwrap();
        for i in 1..8 {
            filter.handle_exchange(&at(i * 1_000, 500)).unwrap();
            assert_eq!(filter.estimate(Instant::from_ns(0)).unwrap().offset.ns(), 0);
        }
        filter.handle_exchange(&at(8_000, 500)).unwrap();
        assert_eq!(filter.estimate(Instant::from_ns(0)).unwrap().offset.ns(), -200);
    }
}
