//! The last four-stamp midpoint and nothing else: what the simplest clients do by default.

use noctule_timebase::Instant;

use crate::exchange::{Counters, Drift, Estimate, Estimator, Exchange, Local, Rejection, State};

/// The midpoint of the last exchange, for comparison: every jitter goes straight through.
#[derive(Clone, Debug, Default)]
pub struct LastSample {
    last: Option<Exchange>,
    counters: Counters,
}

impl Estimator for LastSample {
    fn handle_exchange(&mut self, exchange: &Exchange) -> Result<(), Rejection> {
        let verdict = exchange.check();
        if verdict.is_ok() {
            self.last = Some(*exchange);
        }
        self.counters.count(verdict)
    }

    fn estimate(&self, _now: Instant<Local>) -> Option<Estimate> {
        self.last.map(|last| midpoint_estimate(&last))
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}

/// The estimate of a method without a filter: a midpoint, no drift, no standard error.
pub(crate) fn midpoint_estimate(exchange: &Exchange) -> Estimate {
    Estimate {
        offset: exchange.midpoint(),
        drift: Drift::default(),
        bound: None,
        sigma: None,
        state: State::Locked,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimate_is_the_midpoint_of_the_last_exchange() {
        let mut last = LastSample::default();
        assert_eq!(last.estimate(Instant::from_ns(0)), None);
        last.handle_exchange(&Exchange::from_ns(0, 1_100, 1_200, 500)).unwrap();
        // Forward 100, back 300 with offset 1,000: the midpoint is 100 too low.
        assert_eq!(last.estimate(Instant::from_ns(500)).unwrap().offset.ns(), 900);
    }

    #[test]
    fn an_exchange_that_went_back_in_time_changes_nothing() {
        let mut last = LastSample::default();
        assert_eq!(last.handle_exchange(&Exchange::from_ns(10, 0, 0, 9)), Err(Rejection::ClockWentBack));
        assert_eq!(last.estimate(Instant::from_ns(9)), None);
        assert_eq!(last.counters().rejected(), 1);
    }
}
