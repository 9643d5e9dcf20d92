//! A signed length of time in nanoseconds.

use core::fmt;
use core::iter::Sum;
use core::ops::{Add, AddAssign, Div, Mul, Neg, Sub, SubAssign};

/// A signed length of time in integer nanoseconds; the difference of two instants of one clock.
///
/// Operators saturate at [`Span::MIN`] and [`Span::MAX`] (about 292 years).
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    ns: i64,
}

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span { ns: 0 };
    /// The longest span.
    pub const MAX: Span = Span { ns: i64::MAX };
    /// The longest span backwards.
    pub const MIN: Span = Span { ns: i64::MIN };

    /// A span of `ns` nanoseconds.
    pub const fn from_ns(ns: i64) -> Span {
        Span { ns }
    }

    /// A span of `us` microseconds; saturates.
    pub const fn from_us(us: i64) -> Span {
        Span { ns: us.saturating_mul(1_000) }
    }

    /// A span of `ms` milliseconds; saturates.
    pub const fn from_ms(ms: i64) -> Span {
        Span { ns: ms.saturating_mul(1_000_000) }
    }

    /// A span of `s` seconds; saturates.
    pub const fn from_s(s: i64) -> Span {
        Span { ns: s.saturating_mul(1_000_000_000) }
    }

    /// The span of `ticks` periods of a counter running at `rate_hz`, rounded towards minus infinity
    /// as a clock reading is; saturates. A rate of zero gives `None`.
    pub const fn from_ticks(ticks: i64, rate_hz: u64) -> Option<Span> {
        if rate_hz == 0 {
            return None;
        }
        // |ticks| * 1e9 < 2^63 * 2^30: always inside 128 bits.
        let ns = (ticks as i128 * 1_000_000_000).div_euclid(rate_hz as i128);
        Some(Span { ns: saturate(ns) })
    }

    /// Whole periods of a counter at `rate_hz` that fit into this span, rounded towards minus
    /// infinity; saturates.
    pub const fn to_ticks(self, rate_hz: u64) -> i64 {
        saturate((self.ns as i128 * rate_hz as i128).div_euclid(1_000_000_000))
    }

    /// The time that `bytes` take on a serial line of `baud` bits per second with 10 bits per byte
    /// (start, eight data, stop), rounded down so that a bound which subtracts it stays proven.
    /// Saturates; a rate of zero gives `None`.
    pub const fn from_serial_bytes(bytes: u32, baud: u32) -> Option<Span> {
        if baud == 0 {
            return None;
        }
        Some(Span { ns: saturate(bytes as i128 * 10 * 1_000_000_000 / baud as i128) })
    }

    /// Nanoseconds.
    pub const fn ns(self) -> i64 {
        self.ns
    }

    /// Seconds, for printing and statistics only: beyond 104 days a `f64` no longer holds every
    /// nanosecond.
    pub const fn as_s_f64(self) -> f64 {
        self.ns as f64 / 1e9
    }

    /// The length regardless of direction; `MIN` becomes `MAX`.
    pub const fn abs(self) -> Span {
        Span { ns: self.ns.saturating_abs() }
    }

    /// Sum, or `None` where it does not fit.
    pub const fn checked_add(self, other: Span) -> Option<Span> {
        match self.ns.checked_add(other.ns) {
            Some(ns) => Some(Span { ns }),
            None => None,
        }
    }

    /// Difference, or `None` where it does not fit.
    pub const fn checked_sub(self, other: Span) -> Option<Span> {
        match self.ns.checked_sub(other.ns) {
            Some(ns) => Some(Span { ns }),
            None => None,
        }
    }

    /// This span times `numerator / denominator` through 128 bits, rounded towards minus infinity;
    /// saturates. A denominator of zero gives `None`.
    pub const fn scale(self, numerator: i64, denominator: u64) -> Option<Span> {
        if denominator == 0 {
            return None;
        }
        Some(Span { ns: saturate((self.ns as i128 * numerator as i128).div_euclid(denominator as i128)) })
    }
}

const fn saturate(ns: i128) -> i64 {
    if ns > i64::MAX as i128 {
        i64::MAX
    } else if ns < i64::MIN as i128 {
        i64::MIN
    } else {
        ns as i64
    }
}

impl Add for Span {
    type Output = Span;
    fn add(self, other: Span) -> Span {
        Span { ns: self.ns.saturating_add(other.ns) }
    }
}

impl Sub for Span {
    type Output = Span;
    fn sub(self, other: Span) -> Span {
        Span { ns: self.ns.saturating_sub(other.ns) }
    }
}

impl AddAssign for Span {
    fn add_assign(&mut self, other: Span) {
        *self = *self + other;
    }
}

impl SubAssign for Span {
    fn sub_assign(&mut self, other: Span) {
        *self = *self - other;
    }
}

impl Neg for Span {
    type Output = Span;
    fn neg(self) -> Span {
        Span { ns: self.ns.saturating_neg() }
    }
}

impl Mul<i64> for Span {
    type Output = Span;
    fn mul(self, factor: i64) -> Span {
        Span { ns: self.ns.saturating_mul(factor) }
    }
}

impl Div<i64> for Span {
    type Output = Span;
    /// Rounds towards zero; saturates (`MIN / -1`).
    ///
    /// # Panics
    /// When `divisor` is zero, as integer division does.
    // By a constant, as nearly always, it is a shift or a multiplication; a call of its own is a division.
    #[inline]
    fn div(self, divisor: i64) -> Span {
        Span { ns: self.ns.saturating_div(divisor) }
    }
}

impl Sum for Span {
    fn sum<I: Iterator<Item = Span>>(spans: I) -> Span {
        spans.fold(Span::ZERO, Add::add)
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Span {
    /// Nanoseconds as they are, with the unit: exact, and sortable by eye in a log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ns", self.ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_saturate_at_both_ends() {
        assert_eq!(Span::MAX + Span::from_ns(1), Span::MAX);
        assert_eq!(Span::MIN - Span::from_ns(1), Span::MIN);
        assert_eq!(-Span::MIN, Span::MAX);
        assert_eq!(Span::MIN.abs(), Span::MAX);
        assert_eq!(Span::MAX * 2, Span::MAX);
        assert_eq!(Span::MIN / -1, Span::MAX);
        assert_eq!(Span::from_s(i64::MAX), Span::MAX);
        assert_eq!(Span::from_s(i64::MIN), Span::MIN);
    }

    #[test]
    fn checked_arithmetic_says_when_it_does_not_fit() {
        assert_eq!(Span::MAX.checked_add(Span::from_ns(1)), None);
        assert_eq!(Span::MIN.checked_sub(Span::from_ns(1)), None);
        assert_eq!(Span::MAX.checked_add(Span::MIN), Some(Span::from_ns(-1)));
    }

    #[test]
    fn counter_conversions_do_not_overflow_at_three_gigahertz() {
        let one_day_ticks = 3_000_000_000_i64 * 86_400;
        assert_eq!(Span::from_ticks(one_day_ticks, 3_000_000_000), Some(Span::from_s(86_400)));
        assert_eq!(Span::from_s(86_400).to_ticks(3_000_000_000), one_day_ticks);
        assert_eq!(Span::from_ticks(i64::MAX, 1), Some(Span::MAX));
        assert_eq!(Span::from_ticks(i64::MIN, 1), Some(Span::MIN));
        assert_eq!(Span::MAX.to_ticks(u64::MAX), i64::MAX);
        assert_eq!(Span::from_ticks(1, 0), None);
    }

    #[test]
    fn counter_conversions_round_towards_the_past_on_both_sides_of_zero() {
        assert_eq!(Span::from_ticks(1, 3), Some(Span::from_ns(333_333_333)));
        assert_eq!(Span::from_ticks(-1, 3), Some(Span::from_ns(-333_333_334)));
        assert_eq!(Span::from_ns(-1).to_ticks(1_000), -1);
    }

    #[test]
    fn wire_time_of_a_serial_line_is_ten_bits_a_byte_rounded_down() {
        assert_eq!(Span::from_serial_bytes(115, 921_600), Some(Span::from_ns(1_247_829)));
        assert_eq!(Span::from_serial_bytes(1, 0), None);
        assert_eq!(Span::from_serial_bytes(u32::MAX, 1), Some(Span::MAX));
    }

    #[test]
    fn scaling_goes_through_128_bits() {
        assert_eq!(Span::MAX.scale(1_000_000, 1_000_000), Some(Span::MAX));
        assert_eq!(Span::MAX.scale(2, 1), Some(Span::MAX));
        assert_eq!(Span::from_s(100).scale(200, 1_000_000), Some(Span::from_ms(20)));
        assert_eq!(Span::from_s(1).scale(1, 0), None);
    }
}
