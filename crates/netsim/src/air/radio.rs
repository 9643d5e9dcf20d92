//! What a receiver gets of a transmission: path loss, shadowing, fading, frame errors, fades that last.
//!
//! Path loss is log-distance with a normal shadowing per pair (Rappaport, "Wireless Communications", 2002, section 4.9);
//! air to air the exponent is 2.0 to 2.7. A frame's fading is Rice's, coherent over the frame and drawn anew for the
//! next. Frame errors follow a logistic curve in the signal to interference and noise ratio that goes through the
//! standard's point: 10 % of 1,000 bytes lost at the sensitivity. Bursts of loss are a chain of Gilbert and Elliott in
//! time for each direction of each pair.

use noctule_timebase::{Instant, Span};

use super::rate::{Band, Rate};
use crate::Truth;
use crate::random::Random;

/// Thermal noise of 20 MHz, −101 dBm, and a noise figure of 9 dB.
pub const NOISE_DBM: f64 = -92.0;
/// Decibels of the ratio over which the logistic curve falls by a factor e in its odds: 1 / 1.5.
const SLOPE_PER_DB: f64 = 1.5;
/// With this much to spare, no fade of a Rice channel with a direct path matters; it is not drawn.
const FADE_IGNORED_DB: f64 = 25.0;
/// Length of the table of fades.
const FADES: usize = 1 << 14;

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
    fades_db: Vec<f32>,
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
        let fades_db = fades(spec.rice_k);
        let positions_m = vec![[0.0; 3]; nodes];
        Radio { spec, band, nodes, positions_m, shadowing_db, states, random, fades_db }
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
        let loss_per_decade_db = 5.0 * self.spec.exponent;
        let at_first_metre_dbm = self.spec.power_dbm - self.band.first_metre_db();
        let shadowing_db = &self.shadowing_db[from * self.nodes..][..self.nodes];
        let level = |(there, shadow_db): (&[f64; 3], &f32)| {
            let squares = [0, 1, 2].map(|axis| (there[axis] - here[axis]) * (there[axis] - here[axis]));
            let square_m2 = (squares[0] + squares[1] + squares[2]).max(1.0);
            (at_first_metre_dbm - loss_per_decade_db * libm::log10(square_m2)) as f32 + shadow_db
        };
        self.positions_m.iter().zip(shadowing_db).map(level).collect()
    }

    /// Draws what becomes of a frame that arrives with `level_dbm` while others arrive with `interference_mw` together.
    pub(super) fn fate(
        &mut self,
        now: Instant<Truth>,
        (from, to): (usize, usize),
        (rate, mac_bytes): (Rate, u32),
        (level_dbm, interference_mw): (f64, f64),
    ) -> Fate {
        let margin_db = level_dbm - rate.sensitivity_dbm();
        if margin_db < -FADE_IGNORED_DB {
            return Fate::Weak;
        }
        let clear = interference_mw == 0.0;
        let faded_db = match self.fades_db.is_empty() || clear && margin_db > FADE_IGNORED_DB {
            true => 0.0,
            false => f64::from(self.fades_db[self.random.bits() as usize % FADES]),
        };
        let alone_db = margin_db + faded_db;
        let draw = self.random.unit();
        if draw > frame_success(alone_db, mac_bytes) {
            return Fate::Weak;
        }
        if !clear {
            let noise_mw = libm::pow(10.0, NOISE_DBM / 10.0);
            let raised_db = 10.0 * libm::log10((noise_mw + interference_mw) / noise_mw);
            if draw > frame_success(alone_db - raised_db, mac_bytes) {
                return Fate::Collided;
            }
        }
        if self.is_bad(now, from, to) { Fate::Burst } else { Fate::Received }
    }

    fn is_bad(&mut self, now: Instant<Truth>, from: usize, to: usize) -> bool {
        let Some(bursts) = self.spec.bursts else { return false };
        let state = &mut self.states[from * self.nodes + to];
        let pause_s = (now - state.drawn).as_s_f64().max(0.0);
        let relaxation_s = bursts.mean.as_s_f64() * (1.0 - bursts.loss);
        let kept = if relaxation_s > 0.0 { libm::exp(-pause_s / relaxation_s) } else { 0.0 };
        let before = if state.bad { 1.0 } else { 0.0 };
        let bad = self.random.unit() <= bursts.loss + (before - bursts.loss) * kept && bursts.loss > 0.0;
        *state = BurstState { bad, drawn: now };
        bad
    }
}

/// Probability that a frame is received `margin_db` above its rate's sensitivity.
pub(super) fn frame_success(margin_db: f64, mac_bytes: u32) -> f64 {
    // Beyond this it differs from 1 by less than a double can say, for any length of a frame.
    if margin_db > 30.0 {
        return 1.0;
    }
    // Odds of 9 for a kilobyte at no margin; a part of it has that part of the odds against it.
    let against = libm::exp(-(SLOPE_PER_DB * margin_db + 2.197_224_577_336_22));
    1.0 / (1.0 + against * f64::from(mac_bytes) / 1000.0)
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

/// Equally likely fades of a Rice channel, dB, drawn once and the same for all seeds: a table is ten times as fast as
/// two normal numbers, and what it lacks is rarer than one frame in its length.
fn fades(rice_k: Option<f64>) -> Vec<f32> {
    let Some(k) = rice_k else { return Vec::new() };
    let mut random = Random::new(0xfade);
    let direct = libm::sqrt(k / (k + 1.0));
    let deviation = libm::sqrt(0.5 / (k + 1.0));
    let mut fade = || {
        let (real, imaginary) = (direct + random.normal(deviation), random.normal(deviation));
        10.0 * libm::log10((real * real + imaginary * imaginary).max(1e-12))
    };
    (0..FADES).map(|_| fade() as f32).collect()
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

    #[test]
    fn a_tenth_is_lost_at_the_sensitivity_and_nearly_nothing_above() {
        assert!((frame_success(0.0, 1000) - 0.9).abs() < 1e-9);
        assert!(frame_success(5.0, 1000) > 0.999);
        assert!(frame_success(-5.0, 1000) < 0.01);
        assert!(frame_success(0.0, 100) > frame_success(0.0, 1000));
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
            let powers: Vec<f64> =
                fades(Some(k)).iter().map(|db| libm::pow(10.0, f64::from(*db) / 10.0)).collect();
            let mean = powers.iter().sum::<f64>() / FADES as f64;
            // Rayleigh's power is exponential: 1 − e^(−0.1) of it is below a tenth of the mean.
            let deep = powers.iter().filter(|power| **power < 0.1).count() as f64 / FADES as f64;
            assert!((mean - 1.0).abs() < 0.02, "{mean}");
            assert!(k > 0.0 || (deep - 0.0952).abs() < 0.006, "{deep}");
        }
    }
}
