//! The pseudo-random generator and the distributions the models draw from.
//!
//! xoshiro256++ (Blackman and Vigna, "Scrambled linear pseudorandom number generators", ACM TOMS
//! 2021), its state filled by SplitMix64 as its authors recommend. Thirty lines of our own rather
//! than a library, because a library may change its algorithm between versions and every committed
//! table here hangs on the sequence. Not for secrets.

use noctule_proto_kit::SplitMix64;

/// A seeded sequence of random numbers, the same in every version and on every platform.
#[derive(Clone, Debug)]
pub struct Random {
    state: [u64; 4],
}

impl Random {
    /// The sequence of `seed`.
    pub fn new(seed: u64) -> Random {
        let mut filler = SplitMix64::new(seed);
        Random { state: [(); 4].map(|()| filler.bits()) }
    }

    /// An independent sequence for a named part of a simulation, so that adding a draw in one part
    /// does not shift the draws of every other.
    pub fn for_part(seed: u64, part: u64) -> Random {
        Random::new(seed ^ SplitMix64::new(part).bits())
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        let s = &mut self.state;
        let output = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let shifted = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= shifted;
        s[3] = s[3].rotate_left(45);
        output
    }

    /// Uniform in (0, 1]: never zero, so its logarithm is finite.
    pub fn unit(&mut self) -> f64 {
        ((self.bits() >> 11) + 1) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform in (`from`, `to`].
    pub fn uniform(&mut self, from: f64, to: f64) -> f64 {
        from + (to - from) * self.unit()
    }

    /// True with the given probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() <= probability
    }

    /// Exponentially distributed with the given mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log(self.unit())
    }

    /// Gamma distributed with shape 2: the sum of two exponentials of mean `scale`.
    pub fn gamma2(&mut self, scale: f64) -> f64 {
        -scale * libm::log(self.unit() * self.unit())
    }

    /// Normally distributed around zero (Box and Muller 1958, one of the pair).
    pub fn normal(&mut self, deviation: f64) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(self.unit()));
        deviation * radius * libm::cos(core::f64::consts::TAU * self.unit())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn xoshiro_gives_its_published_sequence() {
        // Outputs for state {1, 2, 3, 4}, as printed with the reference implementation.
        let mut random = Random { state: [1, 2, 3, 4] };
        let outputs = [(); 4].map(|()| random.bits());
        assert_eq!(outputs, [41_943_041, 58_720_359, 3_588_806_011_781_223, 3_591_011_842_654_386]);
    }

    #[test]
    fn distributions_have_their_mean_and_variance() {
        let mut random = Random::new(1);
        let count = 200_000;
        let mut check = |mean: f64, variance: f64, draw: &mut dyn FnMut(&mut Random) -> f64| {
            let draws: Vec<f64> = (0..count).map(|_| draw(&mut random)).collect();
            let m = draws.iter().sum::<f64>() / count as f64;
            let v = draws.iter().map(|d| (d - m) * (d - m)).sum::<f64>() / count as f64;
            assert!((m - mean).abs() < 0.02 * variance.sqrt(), "mean {m}, expected {mean}");
            assert!((v / variance - 1.0).abs() < 0.05, "variance {v}, expected {variance}");
        };
        check(0.5, 1.0 / 12.0, &mut |r| r.unit());
        check(3.0, 9.0, &mut |r| r.exponential(3.0));
        check(4.0, 8.0, &mut |r| r.gamma2(2.0));
        check(0.0, 4.0, &mut |r| r.normal(2.0));
    }
}
