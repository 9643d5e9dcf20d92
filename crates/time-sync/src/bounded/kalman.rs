//! A Kalman filter of offset and drift, and a bank of three of them.
//!
//! State: offset θ and drift d with θ' = d and d a random walk (two-state clock model, Zucca and
//! Tavella, IEEE Trans. UFFC 52(2), 2005, eq. 1 without its aging term and with white noise on d
//! only). Measurement: θ with variance R. Time is an argument; intervals may be irregular, so loss
//! and rate changes cost information but no error.
//!
//! How fast a crystal wanders is not known in advance: one on a desk needs a filter two orders of
//! magnitude slower than one beside a motor. So three filters run with wander 100 times apart in
//! power, fed the same measurements, and the one whose predictions have lately been nearest is
//! selected (predictive least squares; Rissanen, IMA J. Math. Control Inf. 3, 1986).
//!
//! Fixed point, all `i64`: offsets in 2^-16 ns relative to an anchor, time in ticks of 2^30 ns (so
//! no division by a billion anywhere), drift in 2^-16 ns per tick, which makes one unit 2^-46.

use crate::fixed::{div_shift, mul_shift, square_shift};

/// Fraction bits of an offset and of a drift.
pub(crate) const OFFSET_BITS: u32 = 16;
/// Fraction bits of a variance in ns².
pub(crate) const VARIANCE_BITS: u32 = 8;
/// Fraction bits of a time in ticks of 2^30 ns: 2^-20 of one is 1.02 µs.
const TICK_BITS: u32 = 20;

/// Largest variances: 67 ms and about 1950 ppm. Products below stay within 64 bits.
const P00_MAX: i64 = 1 << 60;
const P01_MAX: i64 = 1 << 59;
const P11_MAX: i64 = 1 << 58;
/// Smallest variances: 1 ns and 1e-6 ppm. A filter that knows everything learns nothing.
const P00_MIN: i64 = 1 << VARIANCE_BITS;
const P11_MIN: i64 = 1;
/// Largest drift, about 15,600 ppm: over the longest gap it still fits beside the anchor.
const DRIFT_MAX: i64 = 1 << 40;

/// No clock changes its rate by more than this, about 2,000 ppm; what looks faster is a step.
const RATE_MAX: i64 = 1 << 37;
/// Wander of the drift of the three filters: 0.003, 0.03 and 0.3 ppm after one second, as variance
/// per tick in (2^-16)·(ns/tick)².
const WANDER: [i64; 3] = [730_000, 73_000_000, 7_300_000_000];

/// One filter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kalman {
    /// 2^-16 ns.
    offset: i64,
    /// 2^-16 ns per tick.
    drift: i64,
    /// 2^-8 ns².
    p00: i64,
    /// 2^-12 ns²/tick.
    p01: i64,
    /// 2^-16 (ns/tick)².
    p11: i64,
}

/// Converts a local interval to ticks with [`TICK_BITS`] fraction bits.
fn ticks(elapsed_ns: i64) -> i64 {
    elapsed_ns >> (30 - TICK_BITS)
}

impl Kalman {
    /// The expected offset after `elapsed_ns`, which may be negative.
    fn offset_after(&self, elapsed_ns: i64) -> i64 {
        self.offset.saturating_add(mul_shift(self.drift, ticks(elapsed_ns), TICK_BITS))
    }

    /// The offset's variance after `elapsed_ns`.
    fn variance_after(&self, elapsed_ns: i64) -> i64 {
        let t = ticks(elapsed_ns);
        let p11_t = mul_shift(self.p11, t, TICK_BITS);
        self.p00
            .saturating_add(mul_shift(self.p01, t, TICK_BITS + 3))
            .saturating_add(mul_shift(p11_t, t, TICK_BITS + 8))
            .clamp(P00_MIN, P00_MAX)
    }

    fn predict(&mut self, elapsed_ns: i64, wander: i64) {
        let t = ticks(elapsed_ns);
        self.offset = self.offset_after(elapsed_ns);
        self.p00 = self.variance_after(elapsed_ns);
        let p11_t = mul_shift(self.p11, t, TICK_BITS);
        self.p01 = self.p01.saturating_add(p11_t >> 4).clamp(-P01_MAX, P01_MAX);
        self.p11 = self.p11.saturating_add(mul_shift(wander, t, TICK_BITS)).min(P11_MAX);
    }

    fn update(&mut self, innovation: i64, variance: i64) {
        let total = self.p00.saturating_add(variance);
        // Gains: a ratio with 30 fraction bits, and 1/tick with 20.
        let k0 = div_shift(self.p00, total, 30);
        let k1 = div_shift(self.p01, total, TICK_BITS - 4);
        self.offset = self.offset.saturating_add(mul_shift(k0, innovation, 30));
        let drift = self.drift.saturating_add(mul_shift(k1, innovation, TICK_BITS));
        self.drift = drift.clamp(-DRIFT_MAX, DRIFT_MAX);
        self.p11 = self.p11.saturating_sub(mul_shift(k1, self.p01, TICK_BITS - 4)).max(P11_MIN);
        self.p01 = self.p01.saturating_sub(mul_shift(k0, self.p01, 30));
        self.p00 = mul_shift(k0, variance, 30).max(P00_MIN);
    }
}

/// Three filters of different wander, one of them selected.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bank {
    filters: [Kalman; 3],
    /// Recent mean of innovation² / measurement variance, 2^-8, each capped.
    scores: [i64; 3],
    active: usize,
    /// Local time of the state.
    at_ns: i64,
    /// Factor on measurement variances, 2^-8, learnt from the innovations.
    noise_scale: i64,
}

/// One measurement of the offset.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measurement {
    /// Local time it belongs to.
    pub(crate) at_ns: i64,
    /// 2^-16 ns from the anchor.
    pub(crate) offset: i64,
    /// 2^-8 ns², as the block's own shape suggests it.
    pub(crate) variance: i64,
    /// Error in 2^-16 ns that queueing alone can explain, however unlikely.
    pub(crate) explained: i64,
}

const ONE: i64 = 256;

impl Bank {
    /// Starts from one measurement and no knowledge of the drift but its standard deviation.
    pub(crate) fn new(first: &Measurement, drift_deviation: i64) -> Bank {
        let filter = Kalman {
            offset: first.offset,
            drift: 0,
            p00: first.variance.clamp(P00_MIN, P00_MAX),
            p01: 0,
            p11: drift_variance(drift_deviation),
        };
        Bank { filters: [filter; 3], scores: [ONE; 3], active: 0, at_ns: first.at_ns, noise_scale: ONE }
    }

    fn selected(&self) -> &Kalman {
        &self.filters[self.active]
    }

    /// The offset expected at local time `at_ns`, in 2^-16 ns from the anchor.
    pub(crate) fn offset_at(&self, at_ns: i64) -> i64 {
        self.selected().offset_after(at_ns.saturating_sub(self.at_ns))
    }

    /// Its variance in 2^-8 ns².
    pub(crate) fn variance_at(&self, at_ns: i64) -> i64 {
        self.selected().variance_after(at_ns.saturating_sub(self.at_ns).max(0))
    }

    /// The drift in parts per 2^46.
    pub(crate) fn drift(&self) -> i64 {
        self.selected().drift
    }

    /// Its standard deviation in parts per 2^46.
    pub(crate) fn drift_deviation(&self) -> i64 {
        // The root of 2^-16 units has 8 fraction bits; 8 more make parts per 2^46.
        crate::fixed::root(self.selected().p11) << 8
    }

    /// Corrects all offsets by what has turned out to be an error common to past measurements.
    pub(crate) fn shift(&mut self, offset: i64) {
        for filter in &mut self.filters {
            filter.offset = filter.offset.saturating_add(offset);
        }
    }

    /// Moves the anchor up by `ns`.
    pub(crate) fn move_anchor(&mut self, ns: i64) {
        for filter in &mut self.filters {
            filter.offset = filter.offset.saturating_sub(ns << OFFSET_BITS);
        }
    }

    /// Takes in a measurement. True when it lies so far from the prediction (five standard
    /// deviations beyond what queueing can explain) that the clock must have changed its rate: the
    /// filters then open up.
    pub(crate) fn update(&mut self, measured: &Measurement) -> bool {
        let elapsed_ns = measured.at_ns.saturating_sub(self.at_ns).max(0);
        for (filter, wander) in self.filters.iter_mut().zip(WANDER) {
            filter.predict(elapsed_ns, wander);
        }
        self.at_ns = measured.at_ns;
        let variance = mul_shift(measured.variance, self.noise_scale, 8).clamp(P00_MIN, P00_MAX);

        let selected = self.selected();
        let innovation = measured.offset.saturating_sub(selected.offset);
        let squared = square_shift(innovation, 2 * OFFSET_BITS - VARIANCE_BITS);
        let total = selected.p00.saturating_add(variance);
        let beyond = innovation.saturating_abs().saturating_sub(measured.explained).max(0);
        let moved = square_shift(beyond, 2 * OFFSET_BITS - VARIANCE_BITS) > total.saturating_mul(25);
        if moved {
            self.open(innovation, elapsed_ns);
        } else {
            let surprise = div_shift(squared, total, 8).min(8 * ONE);
            let step = mul_shift(surprise - ONE, self.noise_scale, 12);
            self.noise_scale = (self.noise_scale + step).clamp(ONE / 16, ONE * 64);
        }
        for (filter, score) in self.filters.iter_mut().zip(&mut self.scores) {
            let innovation = measured.offset.saturating_sub(filter.offset);
            let squared = square_shift(innovation, 2 * OFFSET_BITS - VARIANCE_BITS);
            *score += (div_shift(squared, variance, 8).min(64 * ONE) - *score) >> 4;
            filter.update(innovation, variance);
        }
        self.choose();
        moved
    }

    /// Accepts that the clock has moved by `jump` within `elapsed_ns` in a way the filters did not
    /// allow for: variances grow to cover it, what is known stays.
    fn open(&mut self, jump: i64, elapsed_ns: i64) {
        let rate = div_shift(jump, ticks(elapsed_ns).max(1), TICK_BITS).clamp(-RATE_MAX, RATE_MAX);
        for filter in &mut self.filters {
            let p00 = square_shift(jump, 2 * OFFSET_BITS - VARIANCE_BITS);
            filter.p00 = filter.p00.saturating_add(p00).min(P00_MAX);
            filter.p11 = filter.p11.saturating_add(drift_variance(rate)).min(P11_MAX);
        }
    }

    /// Sets the offset anew after a step, keeps the drift, and adds to its uncertainty.
    pub(crate) fn relock(&mut self, measured: &Measurement, drift_deviation: i64) {
        let selected = *self.selected();
        for filter in &mut self.filters {
            *filter = Kalman {
                offset: measured.offset,
                drift: selected.drift,
                p00: measured.variance.clamp(P00_MIN, P00_MAX),
                p01: 0,
                p11: selected.p11.saturating_add(drift_variance(drift_deviation)).min(P11_MAX),
            };
        }
        self.at_ns = measured.at_ns;
    }

    /// A livelier filter is selected only when it predicts clearly better: by a quarter.
    fn choose(&mut self) {
        let mut best = 0;
        for i in 1..self.filters.len() {
            if self.scores[i] < self.scores[best] - self.scores[best] / 4 {
                best = i;
            }
        }
        self.active = best;
    }
}

/// The variance in filter units of a drift's standard deviation in parts per 2^46.
fn drift_variance(deviation: i64) -> i64 {
    square_shift(deviation, OFFSET_BITS).clamp(P11_MIN, P11_MAX)
}
