//! The autopilot filter: double exponential smoothing of single-stamp midpoints.
//!
//! This is the filter of the flight-controller paper (its equations 2 to 9 and Algorithm 3) as the
//! running autopilot code behaves, which is not as the paper prints it: `docs/design/time-sync.md`
//! lists each difference, and each way the algorithm fails. It is here to be compared with, and
//! for systems that must agree with an autopilot to the microsecond.
//!
//! With `α` and `β` falling from 0.05 to 0.003 over the first 500 samples:
//!
//! ```text
//! offset ← α·observed + (1 − α)·(offset + skew)            (2)
//! skew   ← β·(offset − previous offset) + (1 − β)·skew     (3)   per sample, not per second
//! p      = 1 − exp(½·(1 − 1/(1 − N/500)))                  (7)
//! α, β   = p·0.003 + (1 − p)·0.05                          (8, 9)
//! ```
//!
//! The filter's own sign is local − remote; [`Estimator::estimate`] turns it round. It uses one
//! remote stamp, `t3`, so the remote side's own time counts half.
//!
//! Arithmetic is IEEE 754 in the precision the originals use, and `exp` is our own, so that C and
//! Rust agree bit for bit as long as the C compiler contracts nothing into fused multiply-adds.

use noctule_timebase::{Instant, Span};

use crate::exchange::{Counters, Drift, Estimate, Estimator, Exchange, Local, Rejection, State};
use crate::exponential::exp_of_negative;

/// Samples after which the gains have reached their final values and the offset is published.
const CONVERGENCE_WINDOW: u32 = 500;
const GAIN_FIRST: f64 = 0.05;
const GAIN_FINAL: f64 = 0.003;

/// The two sets of constants in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmaPreset {
    /// The autopilot's own: microseconds, gates of 10 ms round trip and 100 ms deviation, reset on
    /// the 6th outlier in a row.
    Px4,
    /// The ground side's: nanoseconds, gates of 10 ms and 10 ms, reset on the 11th outlier in a
    /// row, the gain schedule in single precision.
    Mavros,
}

/// The autopilot filter.
#[derive(Clone, Debug)]
pub struct Ema {
    preset: EmaPreset,
    /// Local minus remote, in the preset's unit.
    offset: f64,
    /// Change of `offset` per accepted sample.
    skew: f64,
    /// Accepted samples since the last reset.
    sequence: u32,
    high_deviation_in_a_row: u32,
    last_t4: Option<Instant<Local>>,
    /// Local time between the last two accepted samples.
    interval: Span,
    counters: Counters,
}

impl Ema {
    /// A filter that has seen nothing.
    pub fn new(preset: EmaPreset) -> Ema {
        Ema {
            preset,
            offset: 0.0,
            skew: 0.0,
            sequence: 0,
            high_deviation_in_a_row: 0,
            last_t4: None,
            interval: Span::ZERO,
            counters: Counters::default(),
        }
    }

    /// Whether 500 samples have been accepted since the last reset.
    pub fn converged(&self) -> bool {
        self.sequence >= CONVERGENCE_WINDOW
    }

    /// The offset as the running code applies it: none at all until the filter has converged, which
    /// at 10 Hz takes 50 seconds.
    pub fn applied_offset(&self) -> Span {
        if self.converged() { self.offset_span() } else { Span::ZERO }
    }

    /// The filter's own state: offset (local minus remote) and skew per sample, in microseconds for
    /// the autopilot's preset and nanoseconds for the ground side's.
    pub fn raw(&self) -> (f64, f64) {
        (self.offset, self.skew)
    }

    fn ns_per_unit(&self) -> i64 {
        match self.preset {
            EmaPreset::Px4 => 1_000,
            EmaPreset::Mavros => 1,
        }
    }

    fn offset_span(&self) -> Span {
        // The conversion saturates; the filter's own sign is local − remote.
        Span::from_ns((-self.offset * self.ns_per_unit() as f64) as i64)
    }

    fn deviation_gate(&self) -> (i64, u32) {
        match self.preset {
            EmaPreset::Px4 => (100_000, 5),
            EmaPreset::Mavros => (10_000_000, 10),
        }
    }

    fn gain(&self) -> f64 {
        if self.converged() {
            return GAIN_FINAL;
        }
        match self.preset {
            EmaPreset::Px4 => {
                let progress = f64::from(self.sequence) / f64::from(CONVERGENCE_WINDOW);
                let p = 1.0 - exp_of_negative(0.5 * (1.0 - 1.0 / (1.0 - progress)));
                p * GAIN_FINAL + (1.0 - p) * GAIN_FIRST
            }
            EmaPreset::Mavros => {
                let progress = self.sequence as f32 / CONVERGENCE_WINDOW as f32;
                let exponent = 0.5 * (1.0 - 1.0 / (1.0 - progress));
                let p = 1.0 - exp_of_negative(f64::from(exponent)) as f32;
                f64::from(p * GAIN_FINAL as f32 + (1.0 - p) * GAIN_FIRST as f32)
            }
        }
    }

    fn reset(&mut self) {
        self.sequence = 0;
        self.offset = 0.0;
        self.skew = 0.0;
        self.high_deviation_in_a_row = 0;
        self.counters.relocks = self.counters.relocks.saturating_add(1);
    }

    fn add_sample(&mut self, observed: f64) {
        let gain = self.gain();
        let previous = self.offset;
        if self.sequence == 0 {
            self.offset = observed;
        } else {
            self.offset = gain * observed + (1.0 - gain) * (self.offset + self.skew);
            self.skew = gain * (self.offset - previous) + (1.0 - gain) * self.skew;
        }
        self.sequence = self.sequence.saturating_add(1);
        self.high_deviation_in_a_row = 0;
    }

    fn judge(&mut self, exchange: &Exchange) -> Result<(), Rejection> {
        exchange.check()?;
        // The running code takes a remote stamp of zero or less for "no stamp".
        if exchange.t3.ns() <= 0 {
            return Err(Rejection::OutOfRange);
        }
        let unit = self.ns_per_unit();
        let (sent, remote, now) = (exchange.t1.ns() / unit, exchange.t3.ns() / unit, exchange.t4.ns() / unit);
        // Twice a stamp may need 65 bits; the sum of the two differences does not.
        let observed = ((sent - remote).saturating_add(now - remote)) / 2;
        if now - sent >= 10_000_000 / unit {
            return Err(Rejection::RoundTripTooLong);
        }
        let (gate, in_a_row_limit) = self.deviation_gate();
        let deviation = (self.offset as i64).saturating_sub(observed).saturating_abs();
        if self.converged() && deviation > gate {
            self.high_deviation_in_a_row += 1;
            if self.high_deviation_in_a_row > in_a_row_limit {
                // The sample that causes the reset is itself lost; the next one seeds the filter.
                self.reset();
            }
            return Err(Rejection::Contradiction);
        }
        self.add_sample(observed as f64);
        if let Some(last) = self.last_t4 {
            self.interval = exchange.t4 - last;
        }
        self.last_t4 = Some(exchange.t4);
        Ok(())
    }
}

impl Estimator for Ema {
    fn handle_exchange(&mut self, exchange: &Exchange) -> Result<(), Rejection> {
        let verdict = self.judge(exchange);
        self.counters.count(verdict)
    }

    /// The filter's value as it stands, converged or not (see [`Ema::applied_offset`] for what the
    /// running code makes of it). It is not extrapolated: the running code does not either.
    fn estimate(&self, _now: Instant<Local>) -> Option<Estimate> {
        if self.sequence == 0 {
            return None;
        }
        // Skew is per sample; the only way to a rate is the last interval.
        let interval_ns = self.interval.ns().max(1) as f64;
        let drift = -self.skew * self.ns_per_unit() as f64 / interval_ns * (1u64 << 46) as f64;
        Some(Estimate {
            offset: self.offset_span(),
            drift: Drift::from_2_46(drift as i64),
            bound: None,
            sigma: None,
            state: if self.converged() { State::Locked } else { State::Acquiring },
        })
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}

#[cfg(test)]
mod tests;
