//! Arithmetic in GF(2⁸) modulo x⁸ + x⁴ + x³ + x² + 1 (0x11d).
//!
//! Single products go through logarithms. Whole symbols are multiplied without tables: a product with a
//! constant is linear in the bits of the other factor, so it is eight masked sums, which the compiler turns
//! into the widest vector instructions there are. A table of 256 products is half as fast at 1,200 bytes and
//! a third at 115, where filling it costs more than using it (`docs/design/prrt.md`).

const POLYNOMIAL: u16 = 0x11d;

/// Powers of the generator, twice over, so that a sum of two logarithms needs no modulo.
const POWER: [u8; 510] = {
    let mut power = [0; 510];
    let mut value = 1_u16;
    let mut exponent = 0;
    while exponent < 255 {
        power[exponent] = value as u8;
        power[exponent + 255] = value as u8;
        value <<= 1;
        if value & 0x100 != 0 {
            value ^= POLYNOMIAL;
        }
        exponent += 1;
    }
    power
};

/// Exponents of the generator; the entry of zero, which has none, is never used.
const LOGARITHM: [u8; 256] = {
    let mut logarithm = [0; 256];
    let mut exponent = 0;
    while exponent < 255 {
        logarithm[POWER[exponent] as usize] = exponent as u8;
        exponent += 1;
    }
    logarithm
};

pub(super) fn product(a: u8, b: u8) -> u8 {
    if a == 0 || b == 0 {
        return 0;
    }
    POWER[usize::from(LOGARITHM[usize::from(a)]) + usize::from(LOGARITHM[usize::from(b)])]
}

/// `a / b`; the divisor must not be zero, and in a Cauchy matrix none is.
pub(super) fn quotient(a: u8, b: u8) -> u8 {
    debug_assert_ne!(b, 0);
    if a == 0 {
        return 0;
    }
    POWER[usize::from(LOGARITHM[usize::from(a)]) + 255 - usize::from(LOGARITHM[usize::from(b)])]
}

/// Adds `factor · source` to `sum`, byte by byte, over the shorter of the two.
pub(super) fn add_product(sum: &mut [u8], source: &[u8], factor: u8) {
    if factor == 1 {
        for (sum, byte) in sum.iter_mut().zip(source) {
            *sum ^= byte;
        }
        return;
    }
    let of_bit: [u8; 8] = core::array::from_fn(|bit| product(factor, 1 << bit));
    for (sum, &byte) in sum.iter_mut().zip(source) {
        let mut value = 0;
        for (bit, term) in of_bit.iter().enumerate() {
            // The bit, moved to the sign and spread over the byte, as a mask.
            value ^= term & ((byte << (7 - bit)) as i8 >> 7) as u8;
        }
        *sum ^= value;
    }
}

/// Multiplies every byte by `factor`.
pub(super) fn scale(bytes: &mut [u8], factor: u8) {
    for byte in bytes {
        *byte = product(*byte, factor);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_those_of_long_multiplication() {
        for a in 0..=255_u8 {
            for b in 0..=255_u8 {
                let mut long = 0_u16;
                for bit in (0..8).rev() {
                    long <<= 1;
                    if long & 0x100 != 0 {
                        long ^= POLYNOMIAL;
                    }
                    if b >> bit & 1 == 1 {
                        long ^= u16::from(a);
                    }
                }
                assert_eq!(u16::from(product(a, b)), long, "{a} · {b}");
                if b != 0 {
                    assert_eq!(product(quotient(a, b), b), a);
                }
            }
        }
    }

    #[test]
    fn a_symbol_times_a_factor_is_each_byte_times_the_factor() {
        let source: Vec<u8> = (0..=255).collect();
        for factor in 0..=255 {
            let mut sum = vec![0x5a; 256];
            add_product(&mut sum, &source, factor);
            let expected: Vec<u8> = source.iter().map(|&byte| 0x5a ^ product(byte, factor)).collect();
            assert_eq!(sum, expected);
        }
    }
}
