//! Proven bounds: intervals that causality puts around the offset.
//!
//! In real time the four events of an exchange follow each other. Let θ(x) be the offset (remote −
//! local) when the local clock shows x, and let it change by at most ρ per local nanosecond.
//!
//! The request arrives at some local time x ≥ t1, and there θ(x) = t2 − x. Carried on to t4:
//!
//! ```text
//! θ(t4) ≤ t2 − x + ρ·(t4 − x) ≤ t2 − t1 + ρ·(t4 − t1)          largest at x = t1
//! ```
//!
//! The reply leaves at some local time y ≤ t4, and there θ(y) = t3 − y. Carried on to t4:
//!
//! ```text
//! θ(t4) ≥ t3 − y − ρ·(t4 − y) ≥ t3 − t4                        smallest at y = t4, as ρ < 1
//! ```
//!
//! So the lower side needs no widening within the exchange. A clock that counts in steps of q shows
//! up to q too little: a coarse remote clock makes t2 small, which raises the upper side by q; a
//! coarse local clock makes t4 small, which lowers the lower side by its q.
//!
//! Intervals of several exchanges all hold, so their intersection does, each widened by ρ times its
//! age. Because all widen at the same rate, the running intersection is one interval: no list is
//! kept. It forgets after one to two [`BUCKET`]s all the same, so that a clock that drifts a little
//! faster than the configured limit is excluded by a little for a moment instead of more and more.
//!
//! Known wire time moves t1 later and t4 earlier before any of this.

use noctule_timebase::Span;

use crate::bounded::BoundedConfig;
use crate::exchange::Exchange;
use crate::fixed::mul_shift;

/// How long an exchange takes part in the intersection: between one and two of these.
pub(crate) const BUCKET: Span = Span::from_s(4);

/// An interval of offsets in nanoseconds, ends included. Empty when `lo_ns > hi_ns`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interval {
    pub(crate) lo_ns: i64,
    pub(crate) hi_ns: i64,
}

impl Interval {
    pub(crate) const EVERYTHING: Interval = Interval { lo_ns: i64::MIN, hi_ns: i64::MAX };

    /// The interval that one exchange proves for the offset at its `t4`.
    pub(crate) fn of(exchange: &Exchange, config: &BoundedConfig, drift_2_46: i64) -> Interval {
        let (at_least, at_most) = edges(exchange, config);
        let within = Interval { lo_ns: at_least, hi_ns: at_most };
        let moved_ns = moved_ns((exchange.t4 - exchange.t1).ns(), drift_2_46);
        Interval {
            lo_ns: within.lo_ns.saturating_sub(config.local_resolution.ns()),
            hi_ns: within.hi_ns.saturating_add(config.remote_resolution.ns()).saturating_add(moved_ns),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lo_ns > self.hi_ns
    }

    pub(crate) fn intersect(&self, other: &Interval) -> Interval {
        Interval { lo_ns: self.lo_ns.max(other.lo_ns), hi_ns: self.hi_ns.min(other.hi_ns) }
    }

    /// The same knowledge `elapsed_ns` later or earlier.
    pub(crate) fn widen(&self, elapsed_ns: i64, drift_2_46: i64) -> Interval {
        if elapsed_ns == 0 {
            return *self;
        }
        let moved_ns = moved_ns(elapsed_ns.saturating_abs(), drift_2_46);
        Interval { lo_ns: self.lo_ns.saturating_sub(moved_ns), hi_ns: self.hi_ns.saturating_add(moved_ns) }
    }

    /// The value inside the interval nearest to `ns`; an empty interval gives its lower end.
    pub(crate) fn nearest(&self, ns: i64) -> i64 {
        ns.min(self.hi_ns).max(self.lo_ns)
    }

    /// How far from `ns` the farther end is.
    pub(crate) fn reach_from(&self, ns: i64) -> i64 {
        self.hi_ns.saturating_sub(ns).max(ns.saturating_sub(self.lo_ns))
    }
}

/// The two raw edges of an exchange with the known wire time taken out: offset at least, at most.
pub(crate) fn edges(exchange: &Exchange, config: &BoundedConfig) -> (i64, i64) {
    (
        exchange.offset_at_least().ns().saturating_add(config.wire_back.ns()),
        exchange.offset_at_most().ns().saturating_sub(config.wire_forward.ns()),
    )
}

/// The most the offset can have moved in `elapsed_ns`, rounded up.
fn moved_ns(elapsed_ns: i64, drift_2_46: i64) -> i64 {
    mul_shift(elapsed_ns, drift_2_46, 46).saturating_add(1)
}

/// The intersection of recent intervals, in two buckets of which the older is dropped whole.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    recent: Interval,
    older: Interval,
    /// Age of the recent bucket.
    age_ns: i64,
}

impl Window {
    pub(crate) fn new(first: Interval) -> Window {
        Window { recent: first, older: Interval::EVERYTHING, age_ns: 0 }
    }

    /// Lets time pass.
    pub(crate) fn advance(&mut self, elapsed_ns: i64, drift_2_46: i64) {
        self.recent = self.recent.widen(elapsed_ns, drift_2_46);
        self.older = self.older.widen(elapsed_ns, drift_2_46);
        self.age_ns = self.age_ns.saturating_add(elapsed_ns);
        if self.age_ns >= BUCKET.ns() {
            self.older = self.recent;
            self.recent = Interval::EVERYTHING;
            self.age_ns = 0;
        }
    }

    /// Takes in another proven interval of the present moment.
    pub(crate) fn add(&mut self, interval: &Interval) {
        self.recent = self.recent.intersect(interval);
    }

    /// Everything proven about the present moment.
    pub(crate) fn interval(&self) -> Interval {
        self.recent.intersect(&self.older)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PPM: i64 = 70_368_745;

    #[test]
    fn one_exchange_proves_what_its_two_delays_allow() {
        // Offset 1,000 ns, 100 there, 300 back.
        let exchange = Exchange::from_ns(0, 1_100, 1_200, 500);
        let exact = BoundedConfig {
            local_resolution: Span::ZERO,
            remote_resolution: Span::ZERO,
            ..BoundedConfig::default()
        };
        // The upper side carries one nanosecond for rounding the movement up.
        assert_eq!(Interval::of(&exchange, &exact, 0), Interval { lo_ns: 700, hi_ns: 1_101 });
        let coarse = BoundedConfig { remote_resolution: Span::from_us(1), ..exact };
        assert_eq!(Interval::of(&exchange, &coarse, 0), Interval { lo_ns: 700, hi_ns: 2_101 });
    }

    #[test]
    fn known_wire_time_narrows_both_sides() {
        let exchange = Exchange::from_ns(0, 1_100, 1_200, 500);
        let config = BoundedConfig {
            wire_forward: Span::from_ns(80),
            wire_back: Span::from_ns(280),
            local_resolution: Span::ZERO,
            remote_resolution: Span::ZERO,
            ..BoundedConfig::default()
        };
        assert_eq!(Interval::of(&exchange, &config, 0), Interval { lo_ns: 980, hi_ns: 1_021 });
    }

    #[test]
    fn an_interval_widens_by_the_drift_limit_in_either_direction_of_time() {
        let interval = Interval { lo_ns: -5, hi_ns: 5 };
        let wider = Interval { lo_ns: -5 - 200_001, hi_ns: 5 + 200_001 };
        assert_eq!(interval.widen(1_000_000_000, 200 * PPM), wider);
        assert_eq!(interval.widen(-1_000_000_000, 200 * PPM), wider);
        assert_eq!(Interval::EVERYTHING.widen(i64::MIN, i64::MAX), Interval::EVERYTHING);
    }

    #[test]
    fn the_window_forgets_after_two_buckets() {
        let mut window = Window::new(Interval { lo_ns: -1, hi_ns: 1 });
        let wide = Interval { lo_ns: -1_000_000_000, hi_ns: 1_000_000_000 };
        window.advance(BUCKET.ns(), PPM);
        window.add(&wide);
        assert_eq!(window.interval(), Interval { lo_ns: -1 - 4_001, hi_ns: 1 + 4_001 });
        window.advance(BUCKET.ns(), PPM);
        assert!(window.interval().hi_ns > 1_000_000_000);
    }
}
