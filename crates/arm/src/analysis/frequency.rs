//! Figures of a frequency response: crossings, margins, peak of the sensitivity, bandwidth.

use serde::Serialize;

use super::Value;

/// Where the search starts, rad/s.
const LOWEST_RAD_S: f64 = 1e-2;
/// Points of the grid on which crossings are looked for; each is then bisected.
const GRID: usize = 6_000;

/// A response that can be asked at any angular frequency.
pub type Response<'a> = &'a dyn Fn(f64) -> Value;

/// A crossing of the response with the unit circle or the negative real axis.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Crossing {
    /// Angular frequency, rad/s.
    pub omega_rad_s: f64,
    /// Phase margin in degrees at a gain crossing; gain margin in dB at a phase crossing. A negative gain margin
    /// says how far the gain may fall.
    pub margin: f64,
}

/// Margins of an open loop.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Margins {
    /// All crossings of |L| = 1 with their phase margins in degrees, by frequency.
    pub gain_crossings: Vec<Crossing>,
    /// All crossings of −180° with their gain margins in dB, by frequency.
    pub phase_crossings: Vec<Crossing>,
    /// Extra delay that makes the loop unstable, ms: the least over all gain crossings. `None` without a crossing.
    pub delay_margin_ms: Option<f64>,
    /// Largest |1 / (1 + L)|.
    pub ms: f64,
    /// Where the closed loop has fallen by 3 dB for the first time, Hz.
    pub bandwidth_hz: Option<f64>,
}

impl Margins {
    /// The least phase margin in degrees, and where.
    pub fn phase(&self) -> Option<Crossing> {
        self.gain_crossings.iter().copied().min_by(|a, b| a.margin.abs().total_cmp(&b.margin.abs()))
    }
}

/// The margins of an open loop up to `highest_rad_s`.
pub fn margins(open_loop: Response<'_>, highest_rad_s: f64) -> Margins {
    let grid: Vec<f64> = (0..=GRID)
        .map(|index| LOWEST_RAD_S * (highest_rad_s / LOWEST_RAD_S).powf(index as f64 / GRID as f64))
        .collect();
    let gain = |omega: f64| open_loop(omega).norm() - 1.0;
    let gain_crossings = roots(&grid, &gain, &|_| true)
        .into_iter()
        .map(|omega_rad_s| Crossing { omega_rad_s, margin: phase_margin_deg(open_loop(omega_rad_s)) })
        .collect::<Vec<_>>();
    let imaginary = |omega: f64| open_loop(omega).im;
    let phase_crossings = roots(&grid, &imaginary, &|omega| open_loop(omega).re < 0.0)
        .into_iter()
        // At half of the sampling rate the response is real by construction: no crossing.
        .filter(|omega| *omega < highest_rad_s * (1.0 - 1e-9))
        .map(|omega_rad_s| {
            let margin = -20.0 * open_loop(omega_rad_s).norm().log10();
            Crossing { omega_rad_s, margin }
        })
        .collect();
    let delay_margin_ms = gain_crossings
        .iter()
        .map(|crossing| crossing.margin.rem_euclid(360.0).to_radians() / crossing.omega_rad_s * 1e3)
        .min_by(f64::total_cmp);
    let sensitivity = |omega: f64| (Value::from(1.0) + open_loop(omega)).inv().norm();
    let fallen = |omega: f64| {
        let value = open_loop(omega);
        (value / (Value::from(1.0) + value)).norm() - 0.5_f64.sqrt()
    };
    let bandwidth_hz = roots(&grid, &fallen, &|_| true).first().map(|omega| omega / std::f64::consts::TAU);
    Margins { gain_crossings, phase_crossings, delay_margin_ms, ms: peak(&grid, &sensitivity), bandwidth_hz }
}

/// Degrees that the phase may fall until −180°.
fn phase_margin_deg(value: Value) -> f64 {
    let margin = value.arg().to_degrees() + 180.0;
    if margin > 180.0 { margin - 360.0 } else { margin }
}

/// Zeros of a function, bracketed by the grid and bisected.
fn roots(grid: &[f64], function: &dyn Fn(f64) -> f64, counts: &dyn Fn(f64) -> bool) -> Vec<f64> {
    let values: Vec<f64> = grid.iter().map(|omega| function(*omega)).collect();
    let brackets = grid.windows(2).zip(values.windows(2));
    let changing = brackets.filter(|(_, ends)| ends[0].signum() != ends[1].signum());
    changing
        .map(|(ends, values)| bisect(ends[0], ends[1], values[0], function))
        .filter(|omega| counts(*omega))
        .collect()
}

fn bisect(mut low: f64, mut high: f64, at_low: f64, function: &dyn Fn(f64) -> f64) -> f64 {
    for _ in 0..200 {
        let middle = (low + high) / 2.0;
        if middle <= low || middle >= high {
            break;
        }
        if function(middle).signum() == at_low.signum() { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

/// The largest value of a function, refined between the grid's points by golden section.
fn peak(grid: &[f64], function: &dyn Fn(f64) -> f64) -> f64 {
    let best = (0..grid.len()).max_by(|a, b| function(grid[*a]).total_cmp(&function(grid[*b]))).unwrap_or(0);
    let mut low = grid[best.saturating_sub(1)];
    let mut high = grid[(best + 1).min(grid.len() - 1)];
    let share = (5.0_f64.sqrt() - 1.0) / 2.0;
    for _ in 0..80 {
        let (left, right) = (high - share * (high - low), low + share * (high - low));
        if function(left) > function(right) { high = right } else { low = left }
    }
    function((low + high) / 2.0)
}
