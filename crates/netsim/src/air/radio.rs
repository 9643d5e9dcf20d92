//! Reception of a transmission: path loss, shadowing, fading, frame errors, fades that last.
//!
//! Path loss is log-distance with a normal shadowing per pair (Rappaport, "Wireless Communications", 2002, section 4.9);
//! air to air the exponent is 2.0 to 2.7. A frame's fading is Rice's, coherent over the frame and drawn anew for the
//! next. Frame errors follow a logistic curve in the signal to interference and noise ratio that goes through the
//! standard's point: 10 % of 1,000 bytes lost at the sensitivity. Bursts of loss are a chain of Gilbert and Elliott in
//! time for each direction of each pair.
//!
//! A thousand stations draw millions of fates a second, so both draws of a fate, fade and error, are one look into a table of
//! margins ([`needs`]), and decibels come from a table, too ([`Decibels`]).

use noctule_timebase::{Instant, Span};

use super::rate::{Band, Rate};
use crate::Truth;
use crate::random::Random;

/// Thermal noise of 20 MHz, −101 dBm, and a noise figure of 9 dB.
pub const NOISE_DBM: f64 = -92.0;
/// Decibels of the ratio over which the logistic curve falls by a factor e in its odds: 1 / 1.5.
const SLOPE_PER_DB: f64 = 1.5;
/// Natural logarithm of the odds of a kilobyte at no margin, 9.
const ODDS_AT_SENSITIVITY: f64 = 2.197_224_577_336_22;
/// Length of the table of margins.
const NEEDS: usize = 1 << 15;

/// Signals between stations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RadioSpec {
    /// Radiated power, dBm.
    pub power_dbm: f64,
    /// Exponent of the path loss; 2 is free space.
    pub exponent: f64,
    /// Standard deviation of the shadowing of a pair, dB.
    pub shadowing_db: f64,
    /// Power of the direct path over that of all others; `None`: no fading. 0 is Rayleigh's.
    pub rice_k: Option<f64>,
    /// A station takes the medium for busy from this level on, dBm.
    pub carrier_sense_dbm: f64,
    /// Loss that no distance explains.
    pub bursts: Option<Bursts>,
}

/// Loss in bursts: a bad state loses everything.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bursts {
    /// Share of the time a direction is bad: 0 to below 1.
    pub loss: f64,
    /// Mean length of a bad time.
    pub mean: Span,
}

impl Default for RadioSpec {
    /// 20 dBm, exponent 2.3, 3 dB of shadowing, a direct path 6 times the rest, −82 dBm, no bursts.
    fn default() -> RadioSpec {
        RadioSpec {
            power_dbm: 20.0,
            exponent: 2.3,
            shadowing_db: 3.0,
            rice_k: Some(6.0),
            carrier_sense_dbm: -82.0,
            bursts: None,
        }
    }
}

impl RadioSpec {
    /// Distance at which the mean received level is `level_dbm`, without shadowing, m.
    pub fn range_m(&self, band: Band, level_dbm: f64) -> f64 {
        let budget_db = self.power_dbm - level_dbm - band.first_metre_db();
        libm::pow(10.0, budget_db / (10.0 * self.exponent))
    }
}

/// The channels between all stations.
#[derive(Debug)]
pub(super) struct Radio {
    spec: RadioSpec,
    band: Band,
    nodes: usize,
    positions_m: Vec<[f64; 3]>,
    /// By pair, the same both ways.
    shadowing_db: Vec<f32>,
    /// By direction.
    states: Vec<BurstState>,
    random: Random,
    needs_db: Vec<f32>,
    decibels: Decibels,
    noise_mw: f64,
}

#[derive(Clone, Copy, Debug)]
struct BurstState {
    bad: bool,
    drawn: Instant<Truth>,
}

/// How a frame fared at a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Received,
    /// Too weak for its rate.
    Weak,
    /// It would have been received without the other transmissions.
    Collided,
    /// In a bad time of its direction.
    Burst,
}

impl Radio {
    pub(super) fn new(spec: RadioSpec, band: Band, nodes: usize, seed: u64) -> Radio {
        let mut draw = Random::for_part(seed, 1);
        let mut shadowing_db = vec![0.0; nodes * nodes];
        let mut states = Vec::new();
        let start = Instant::from_ns(0);
        for a in 0..nodes {
            for b in a + 1..nodes {
                let db = draw.normal(spec.shadowing_db) as f32;
                (shadowing_db[a * nodes + b], shadowing_db[b * nodes + a]) = (db, db);
            }
        }
        if let Some(bursts) = spec.bursts {
            let mut draw = Random::for_part(seed, 2);
            states = (0..nodes * nodes)
                .map(|_| BurstState { bad: draw.chance(bursts.loss), drawn: start })
                .collect();
        }
        let random = Random::for_part(seed, 3);
        let needs_db = needs(spec.rice_k);
        let positions_m = vec![[0.0; 3]; nodes];
        let (decibels, noise_mw) = (Decibels::new(), libm::pow(10.0, NOISE_DBM / 10.0));
        Radio { spec, band, nodes, positions_m, shadowing_db, states, random, needs_db, decibels, noise_mw }
    }

    pub(super) fn set_position(&mut self, node: usize, position_m: [f64; 3]) {
        self.positions_m[node] = position_m;
    }

    pub(super) fn carrier_sense_dbm(&self) -> f64 {
        self.spec.carrier_sense_dbm
    }

    /// Mean received level at every station, dBm.
    pub(super) fn levels_dbm(&self, from: usize) -> Vec<f32> {
        let here = self.positions_m[from];
        let loss_per_db = 0.5 * self.spec.exponent;
        let at_first_metre_dbm = self.spec.power_dbm - self.band.first_metre_db();
        let shadowing_db = &self.shadowing_db[from * self.nodes..][..self.nodes];
        let level = |(there, shadow_db): (&[f64; 3], &f32)| {
            let squares = [0, 1, 2].map(|axis| (there[axis] - here[axis]) * (there[axis] - here[axis]));
            let square_m2 = (squares[0] + squares[1] + squares[2]).max(1.0);
            (at_first_metre_dbm - loss_per_db * self.decibels.of(square_m2)) as f32 + shadow_db
        };
        self.positions_m.iter().zip(shadowing_db).map(level).collect()
    }

    /// Draws what becomes of a frame that would reach `least_dbm` ([`least_dbm`]) for nothing to spare, and arrives with
    /// `level_dbm` while others arrive with `interference_mw` together.
    pub(super) fn fate(
        &mut self,
        now: Instant<Truth>,
        (from, to): (usize, usize),
        least_dbm: f64,
        (level_dbm, interference_mw): (f64, f64),
    ) -> Fate {
        let spare_db = level_dbm - least_dbm - f64::from(self.needs_db[self.random.bits() as usize % NEEDS]);
        if spare_db < 0.0 {
            return Fate::Weak;
        }
        if interference_mw > 0.0 && spare_db < self.decibels.of(1.0 + interference_mw / self.noise_mw) {
            return Fate::Collided;
        }
        if self.is_bad(now, from, to) { Fate::Burst } else { Fate::Received }
    }

    fn is_bad(&mut self, now: Instant<Truth>, from: usize, to: usize) -> bool {
        let Some(bursts) = self.spec.bursts else { return false };
        let state = &mut self.states[from * self.nodes + to];
        let draw = self.random.unit();
        // What it was before only pulls towards itself: most draws are decided without it.
        let bad = match (state.bad, draw <= bursts.loss) {
            (true, true) => bursts.loss > 0.0,
            (false, false) => false,
            (was_bad, _) => {
                let pause_s = (now - state.drawn).as_s_f64().max(0.0);
                let relaxation_s = bursts.mean.as_s_f64() * (1.0 - bursts.loss);
                let kept = if relaxation_s > 0.0 { libm::exp(-pause_s / relaxation_s) } else { 0.0 };
                let before = if was_bad { 1.0 } else { 0.0 };
                draw <= bursts.loss + (before - bursts.loss) * kept && bursts.loss > 0.0
            }
        };
        *state = BurstState { bad, drawn: now };
        bad
    }
}

/// The level at which a frame of `mac_bytes` is lost with 10 %, dBm: a part of a kilobyte has that part of its odds against it.
pub(super) fn least_dbm(rate: Rate, mac_bytes: u32) -> f64 {
    rate.sensitivity_dbm() + libm::log(f64::from(mac_bytes.max(1)) / 1000.0) / SLOPE_PER_DB
}

/// Equally likely margins above [`least_dbm`] that a frame needs, dB: the logistic curve's quantiles, each less a fade that was
/// drawn for it. Drawn once and the same for all seeds; what the table lacks is rarer than one frame in its length.
fn needs(rice_k: Option<f64>) -> Vec<f32> {
    let mut random = Random::new(0xfade);
    (0..NEEDS)
        .map(|step| {
            let share = (step as f64 + 0.5) / NEEDS as f64;
            let odds = libm::log(share / (1.0 - share));
            let fade_db = rice_k.map_or(0.0, |k| fade_db(k, &mut random));
            ((odds - ODDS_AT_SENSITIVITY) / SLOPE_PER_DB - fade_db) as f32
        })
        .collect()
}

/// A fade of a Rice channel, dB.
fn fade_db(k: f64, random: &mut Random) -> f64 {
    let (direct, deviation) = (libm::sqrt(k / (k + 1.0)), libm::sqrt(0.5 / (k + 1.0)));
    let (real, imaginary) = (direct + random.normal(deviation), random.normal(deviation));
    10.0 * libm::log10((real * real + imaginary * imaginary).max(1e-12))
}

/// Ratios as decibels, within 0.001 dB.
#[derive(Debug)]
struct Decibels(Vec<f32>);

impl Decibels {
    const STEP_BITS: u32 = 12;

    fn new() -> Decibels {
        let steps = f64::from(1 << Self::STEP_BITS);
        let of_mantissa = |step: u32| 10.0 * libm::log10(1.0 + (f64::from(step) + 0.5) / steps);
        Decibels((0..1 << Self::STEP_BITS).map(|step| of_mantissa(step) as f32).collect())
    }

    /// Of a normal positive number or infinity, which is more than 3,000 dB.
    fn of(&self, ratio: f64) -> f64 {
        let bits = ratio.to_bits();
        let exponent = (bits >> 52) as i32 - 1023;
        let step = (bits >> (52 - Self::STEP_BITS)) as usize % (1 << Self::STEP_BITS);
        f64::from(exponent) * (10.0 * core::f64::consts::LOG10_2) + f64::from(self.0[step])
    }
}

/// Power of levels in steps of a quarter of a decibel from −150 to 50 dBm, mW.
#[derive(Debug)]
pub(super) struct Powers(Vec<f64>);

impl Powers {
    pub(super) fn new() -> Powers {
        Powers((0..=800).map(|step| libm::pow(10.0, (f64::from(step) / 4.0 - 150.0) / 10.0)).collect())
    }

    pub(super) fn mw(&self, level_dbm: f32) -> f64 {
        let step = ((f64::from(level_dbm) + 150.0) * 4.0).clamp(0.0, 800.0);
        self.0[(step + 0.5) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_those_of_the_model() {
        let at = |exponent, band| RadioSpec { exponent, ..RadioSpec::default() }.range_m(band, -82.0);
        for (exponent, band, range_m) in [
            (2.3, Band::Ghz2, 487.0),
            (2.7, Band::Ghz2, 195.0),
            (2.3, Band::Ghz5, 252.0),
            (2.7, Band::Ghz5, 111.0),
        ] {
            assert!((at(exponent, band) - range_m).abs() < 1.0, "{} m", at(exponent, band));
        }
    }

    /// Probability that a frame is received `margin_db` above its rate's sensitivity.
    fn frame_success(margin_db: f64, mac_bytes: u32) -> f64 {
        let against = libm::exp(-(SLOPE_PER_DB * margin_db + ODDS_AT_SENSITIVITY));
        1.0 / (1.0 + against * f64::from(mac_bytes) / 1000.0)
    }

    #[test]
    fn a_tenth_is_lost_at_the_sensitivity_and_everywhere_what_the_curve_says() {
        assert!((frame_success(0.0, 1000) - 0.9).abs() < 1e-9);
        let spec = RadioSpec { rice_k: None, ..RadioSpec::default() };
        let mut radio = Radio::new(spec, Band::Ghz5, 2, 1);
        let rate = Rate::Mbps24;
        for (margin_db, mac_bytes) in [(0.0, 1000), (-3.0, 1000), (2.0, 1500), (-1.0, 144), (5.0, 1000)] {
            let levels = (rate.sensitivity_dbm() + margin_db, 0.0);
            let least = least_dbm(rate, mac_bytes);
            let draws = 200_000;
            let received = (0..draws)
                .filter(|_| radio.fate(Instant::from_ns(0), (0, 1), least, levels) == Fate::Received)
                .count();
            let (share, expected) = (received as f64 / f64::from(draws), frame_success(margin_db, mac_bytes));
            assert!((share - expected).abs() < 0.005, "{margin_db} dB, {mac_bytes}: {share}, {expected}");
        }
    }

    #[test]
    fn decibels_are_those_of_the_logarithm() {
        let decibels = Decibels::new();
        let mut random = Random::new(4);
        for _ in 0..10_000 {
            let exact_db = random.uniform(-100.0, 200.0);
            let of_table = decibels.of(libm::pow(10.0, exact_db / 10.0));
            assert!((of_table - exact_db).abs() < 1e-3, "{of_table} {exact_db}");
        }
        assert!(decibels.of(f64::INFINITY) > 3_000.0);
    }

    #[test]
    fn bursts_have_the_share_and_the_length_that_were_asked_for() {
        let bursts = Bursts { loss: 0.3, mean: Span::from_ms(400) };
        let spec = RadioSpec { bursts: Some(bursts), rice_k: None, ..RadioSpec::default() };
        let (mut bad, mut ends) = (0, 0);
        let (steps, seeds) = (400_000, 5);
        for seed in 0..seeds {
            let mut radio = Radio::new(spec, Band::Ghz5, 2, seed);
            let mut was_bad = false;
            for step in 0..steps {
                let is_bad = radio.is_bad(Instant::from_ns(step * 10_000_000), 0, 1);
                bad += i64::from(is_bad);
                ends += i64::from(was_bad && !is_bad);
                was_bad = is_bad;
            }
        }
        let (share, mean_ms) = (bad as f64 / (steps * seeds as i64) as f64, bad as f64 * 10.0 / ends as f64);
        assert!((share - 0.3).abs() < 0.01, "{share}");
        // In steps of 10 ms a state is seen for a step longer than it is.
        assert!((mean_ms - 405.0).abs() < 15.0, "{mean_ms}");
    }

    #[test]
    fn fading_keeps_the_mean_power() {
        for k in [0.0, 6.0, 100.0] {
            let (mut random, draws) = (Random::new(0xfade), 1 << 14);
            let powers: Vec<f64> =
                (0..draws).map(|_| libm::pow(10.0, fade_db(k, &mut random) / 10.0)).collect();
            let mean = powers.iter().sum::<f64>() / f64::from(draws);
            // Rayleigh's power is exponential: 1 − e^(−0.1) of it is below a tenth of the mean.
            let deep = powers.iter().filter(|power| **power < 0.1).count() as f64 / f64::from(draws);
            assert!((mean - 1.0).abs() < 0.02, "{mean}");
            assert!(k > 0.0 || (deep - 0.0952).abs() < 0.006, "{deep}");
        }
    }
}
