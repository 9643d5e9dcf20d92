//! Fixed-point arithmetic that C99 on a 32-bit processor computes to the same bit.
//!
//! Three operations carry the whole `bounded` estimator: multiply-and-shift through 128 bits,
//! shift-and-divide by 64-bit division only, and the integer root. Each saturates, each rounds
//! towards zero, so that a twin in another language needs no knowledge of a rounding mode.

/// `a·b / 2^shift`, rounded towards zero, saturated to ±`i64::MAX`. `shift` is at most 63.
pub(crate) fn mul_shift(a: i64, b: i64, shift: u32) -> i64 {
    let magnitude = (u128::from(a.unsigned_abs()) * u128::from(b.unsigned_abs())) >> shift;
    let magnitude = if magnitude > i64::MAX as u128 { i64::MAX } else { magnitude as i64 };
    if (a < 0) != (b < 0) { -magnitude } else { magnitude }
}

/// `numerator·2^shift / denominator`, rounded towards zero to at least 31 significant bits,
/// saturated to ±`i64::MAX`. A denominator of zero or less saturates too.
///
/// The denominator is first brought down to 32 bits and the numerator up to 63, so that one 64-bit
/// division suffices: a Cortex-M3 has no wider one.
pub(crate) fn div_shift(numerator: i64, denominator: i64, shift: u32) -> i64 {
    if numerator == 0 {
        return 0;
    }
    let negative = numerator < 0;
    let saturated = if negative { -i64::MAX } else { i64::MAX };
    if denominator <= 0 {
        return saturated;
    }
    let up = numerator.unsigned_abs().leading_zeros();
    let down = 32_u32.saturating_sub(denominator.leading_zeros());
    let quotient = (numerator.unsigned_abs() << up) / (denominator as u64 >> down);
    // quotient = numerator·2^up·2^down / denominator; what is missing is 2^(shift − up − down).
    let missing = i64::from(shift) - i64::from(up) - i64::from(down);
    let magnitude = if missing <= -64 {
        0
    } else if missing <= 0 {
        quotient >> -missing
    } else if missing >= i64::from(quotient.leading_zeros()) {
        return saturated;
    } else {
        quotient << missing
    };
    if magnitude > i64::MAX as u64 {
        return saturated;
    }
    if negative { -(magnitude as i64) } else { magnitude as i64 }
}

/// The square of a value, saturated.
pub(crate) fn square_shift(a: i64, shift: u32) -> i64 {
    mul_shift(a, a, shift)
}

/// The largest integer whose square is at most `square`; zero for negative input.
pub(crate) fn root(square: i64) -> i64 {
    if square <= 0 { 0 } else { (square as u64).isqrt() as i64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn multiplication_is_exact_up_to_rounding_towards_zero(a: i64, b: i64, shift in 0_u32..64) {
            let exact = i128::from(a) * i128::from(b) / (1_i128 << shift);
            let expected = exact.clamp(-i128::from(i64::MAX), i128::from(i64::MAX));
            prop_assert_eq!(i128::from(mul_shift(a, b, shift)), expected);
        }

        #[test]
        fn division_keeps_31_significant_bits(numerator: i64, denominator in 1..i64::MAX, shift in 0_u32..64) {
            let exact = i128::from(numerator) * (1_i128 << shift) / i128::from(denominator);
            let expected = exact.clamp(-i128::from(i64::MAX), i128::from(i64::MAX));
            let tolerance = (expected.abs() >> 30) + 1;
            let got = i128::from(div_shift(numerator, denominator, shift));
            prop_assert!((got - expected).abs() <= tolerance, "{} expected {}", got, expected);
        }

        #[test]
        fn root_is_the_largest_whose_square_fits(square in 0..i64::MAX) {
            let r = i128::from(root(square));
            prop_assert!(r * r <= i128::from(square) && (r + 1) * (r + 1) > i128::from(square));
        }
    }

    #[test]
    fn ends_of_the_range_saturate() {
        assert_eq!(mul_shift(i64::MIN, i64::MIN, 0), i64::MAX);
        assert_eq!(mul_shift(i64::MIN, i64::MAX, 0), -i64::MAX);
        assert_eq!(div_shift(i64::MIN, 1, 63), -i64::MAX);
        assert_eq!(div_shift(1, 0, 0), i64::MAX);
        assert_eq!(div_shift(-1, -5, 0), -i64::MAX);
        assert_eq!(root(-1), 0);
    }
}
