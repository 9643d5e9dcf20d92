//! Quantiles of recent delays (one-way delay, acknowledgement), by which retransmissions are timed.
//!
//! A mean and its variation say little of the slow ones, which are those that repairs are timed by: four variations above the mean no
//! delay that is spread evenly ever takes.

use noctule_timebase::Span;

/// Delays remembered: at 200 Hz somewhat more than half a second, so that a longer route is learned within that.
const REMEMBERED: usize = 128;
/// Quantiles kept ready, at (i + ½) / 16: the highest is exceeded by one delay in 32.
const QUANTILES: usize = 16;
/// Delays after which they are computed anew, if they are asked for: what is sent without a deadline asks for none.
const COMPUTED_EVERY: usize = 8;

/// The last delays and their quantiles.
#[derive(Clone, Debug)]
pub(crate) struct DelayTable {
    delays: [Span; REMEMBERED],
    /// Delays measured so far, and those that the quantiles are of.
    measured: usize,
    computed: usize,
    quantiles: Quantiles,
}

/// Quantiles of a delay, rising.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Quantiles([Span; QUANTILES]);

impl DelayTable {
    pub(crate) fn new() -> DelayTable {
        DelayTable {
            delays: [Span::ZERO; REMEMBERED],
            measured: 0,
            computed: 0,
            quantiles: Quantiles::all(Span::ZERO),
        }
    }

    pub(crate) fn measure(&mut self, delay: Span) {
        self.delays[self.measured % REMEMBERED] = delay;
        self.measured += 1;
    }

    /// `None` before the first delay. The last seven delays may be missing, but for the first few.
    pub(crate) fn quantiles(&mut self) -> Option<Quantiles> {
        let is_new = self.measured / COMPUTED_EVERY > self.computed / COMPUTED_EVERY;
        if is_new || self.computed < self.measured.min(COMPUTED_EVERY) {
            self.compute();
        }
        (self.measured > 0).then_some(self.quantiles)
    }

    /// Delays that the quantiles are of; 0 if they were never asked for.
    #[cfg(test)]
    pub(crate) fn computed(&self) -> usize {
        self.computed
    }

    fn compute(&mut self) {
        let mut sorted = self.delays;
        let known = &mut sorted[..self.measured.min(REMEMBERED)];
        known.sort_unstable();
        let at = |place: usize| known[(2 * place + 1) * known.len() / (2 * QUANTILES)];
        self.quantiles = Quantiles(std::array::from_fn(at));
        self.computed = self.measured;
    }
}

impl Quantiles {
    /// Always the same delay.
    pub(crate) fn all(delay: Span) -> Quantiles {
        Quantiles([delay; QUANTILES])
    }

    /// Quantile that one delay in 32 exceeds.
    pub(crate) fn highest(&self) -> Span {
        self.0[QUANTILES - 1]
    }

    /// Share of delays that are no longer than this, 0 to 1.
    pub(crate) fn share_within(&self, delay: Span) -> f64 {
        self.0.partition_point(|quantile| *quantile <= delay) as f64 / QUANTILES as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_what_was_measured_last() {
        let mut table = DelayTable::new();
        assert!(table.quantiles().is_none());
        table.measure(Span::from_ms(500));
        assert_eq!(table.quantiles().unwrap().highest(), Span::from_ms(500));
        (0..1_280).for_each(|n| table.measure(Span::from_us(n * 37 % 128)));
        let quantiles = table.quantiles().unwrap();
        assert_eq!(quantiles.highest(), Span::from_us(124));
        assert_eq!(quantiles.share_within(Span::from_us(63)), 0.5);
        assert_eq!(quantiles.share_within(Span::from_us(3)), 0.0);
        assert_eq!(quantiles.share_within(Span::from_us(124)), 1.0);
    }

    #[test]
    fn quantiles_are_computed_when_asked_for_and_once_in_eight_delays() {
        let mut table = DelayTable::new();
        (0..1_000).for_each(|n| table.measure(Span::from_us(n)));
        assert_eq!(table.computed(), 0);
        let mut computed = 0;
        for n in 0..800 {
            table.measure(Span::from_us(n));
            let before = table.computed();
            assert!(table.quantiles().is_some() && table.quantiles().is_some());
            computed += u32::from(table.computed() != before);
            assert!(table.measured - table.computed() < COMPUTED_EVERY);
        }
        assert_eq!(computed, 101);
    }
}
