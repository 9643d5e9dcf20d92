//! The exponential function from IEEE 754 operations alone.
//!
//! The autopilot filter's gains contain one `exp`. Every C library rounds its own way, so a filter
//! that called it could not be compared bit by bit between a host and a board. This one uses nothing
//! but additions, multiplications and one conversion, each of which IEEE 754 defines to the last bit;
//! it is within one unit in the last place of the exact value over the range used.
//!
//! Method: `x = k·ln 2 + r` with `|r| ≤ ln(2)/2` and ln 2 in two parts (Cody and Waite, "Software
//! Manual for the Elementary Functions", 1980), the Taylor series of `e^r` to degree 13 by Horner,
//! and `2^k` put straight into the exponent field.

const LN_2_HIGH: f64 = 6.931_471_803_691_238e-1;
const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;
const LOG2_E: f64 = core::f64::consts::LOG2_E;

/// `e^x` for `x ≤ 0`; below −700 the answer is 0, above 0 it is 1.
pub(crate) fn exp_of_negative(x: f64) -> f64 {
    if x <= -700.0 || x.is_nan() {
        return 0.0;
    }
    if x >= 0.0 {
        return 1.0;
    }
    // Truncation towards zero of a negative number minus one half: the nearest integer.
    let k = (x * LOG2_E - 0.5) as i32;
    let r = (x - f64::from(k) * LN_2_HIGH) - f64::from(k) * LN_2_LOW;
    let mut sum = 1.0;
    let mut n = 13.0;
    while n >= 1.0 {
        sum = 1.0 + sum * r / n;
        n -= 1.0;
    }
    // −1010 ≤ k ≤ 0: always a normal number.
    sum * f64::from_bits(((1023 + k) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_platform_to_the_last_place_or_two() {
        for i in 0..700_000 {
            let x = -f64::from(i) / 1000.0;
            let ours = exp_of_negative(x);
            let theirs = x.exp();
            assert!((ours - theirs).abs() <= 4.5e-16 * theirs, "exp({x}) = {ours:e}, expected {theirs:e}");
        }
    }

    #[test]
    fn ends_of_the_range_are_zero_and_one() {
        assert_eq!(exp_of_negative(0.0), 1.0);
        assert_eq!(exp_of_negative(3.0), 1.0);
        assert_eq!(exp_of_negative(-700.0), 0.0);
        assert_eq!(exp_of_negative(f64::NEG_INFINITY), 0.0);
        assert_eq!(exp_of_negative(f64::NAN), 0.0);
    }
}
