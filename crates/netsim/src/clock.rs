//! Models of a remote clock: fast or slow, breathing with temperature, wandering, slewed, stepping.
//!
//! The local clock is taken as true time; only the difference of two clocks can ever be observed.
//! The relative drift is held constant over intervals of [`KNOT`], so that a limit on it is exact:
//! a clock built with `limit_ppm` never drifts faster, which is the premise of a proven bound.

use noctule_timebase::Span;

use crate::random::Random;

/// Interval over which the relative drift is constant.
pub const KNOT: Span = Span::from_ms(100);

/// Model of a remote clock relative to the local one. Everything adds up.
#[derive(Clone, Debug, PartialEq)]
pub struct ClockModel {
    /// Remote minus local at time zero.
    pub offset: Span,
    /// Constant relative drift in ppm: positive means the remote clock is fast.
    pub drift_ppm: f64,
    /// Temperature: a sine of this amplitude, ppm.
    pub wave_ppm: f64,
    /// Period of that sine, seconds.
    pub wave_period_s: f64,
    /// Random walk of the drift: its standard deviation after one second, in ppm.
    pub walk_ppm: f64,
    /// A slew after boot, ppm.
    pub slew_ppm: f64,
    /// Length of that slew, seconds.
    pub slew_s: f64,
    /// Sudden changes of the offset.
    pub steps: Vec<Step>,
    /// The total drift is clamped to plus or minus this many ppm.
    pub limit_ppm: f64,
}

/// A sudden change of the offset.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// When, in local time.
    pub at: Span,
    /// By how much remote minus local changes.
    pub by: Span,
}

impl Default for ClockModel {
    fn default() -> ClockModel {
        ClockModel {
            offset: Span::ZERO,
            drift_ppm: 0.0,
            wave_ppm: 0.0,
            wave_period_s: 600.0,
            walk_ppm: 0.0,
            slew_ppm: 0.0,
            slew_s: 0.0,
            steps: Vec::new(),
            limit_ppm: f64::INFINITY,
        }
    }
}

/// One realisation of a [`ClockModel`]: a function from local time to the true offset.
#[derive(Clone, Debug)]
pub struct Clock {
    offset: Span,
    steps: Vec<Step>,
    /// Drift in ns per ns from each knot to the next.
    drift: Vec<f64>,
    /// Accumulated offset in nanoseconds at each knot, without steps.
    drifted_ns: Vec<f64>,
}

impl Clock {
    /// Draws a clock for local times from zero to `duration`; later it keeps its last drift.
    pub fn new(model: &ClockModel, duration: Span, random: &mut Random) -> Clock {
        let knot_s = KNOT.as_s_f64();
        let knots = (duration.ns() / KNOT.ns()).max(0) as usize + 1;
        let mut clock = Clock {
            offset: model.offset,
            steps: model.steps.clone(),
            drift: Vec::new(),
            drifted_ns: Vec::new(),
        };
        let (mut walked_ppm, mut drifted_ns) = (0.0, 0.0);
        for knot in 0..knots {
            let middle_s = (knot as f64 + 0.5) * knot_s;
            let wave = libm::sin(core::f64::consts::TAU * middle_s / model.wave_period_s);
            let slew_ppm = if middle_s < model.slew_s { model.slew_ppm } else { 0.0 };
            let drift_ppm = model.drift_ppm + model.wave_ppm * wave + walked_ppm + slew_ppm;
            let drift = drift_ppm.clamp(-model.limit_ppm, model.limit_ppm) * 1e-6;
            clock.drift.push(drift);
            clock.drifted_ns.push(drifted_ns);
            drifted_ns += drift * KNOT.ns() as f64;
            walked_ppm += random.normal(model.walk_ppm * libm::sqrt(knot_s));
        }
        clock
    }

    /// Remote minus local at local time `at`, rounded to the nearest nanosecond.
    pub fn offset_at(&self, at: Span) -> Span {
        let knot = ((at.ns() / KNOT.ns()).max(0) as usize).min(self.drift.len() - 1);
        let since_knot_ns = at.ns() - knot as i64 * KNOT.ns();
        let drifted_ns = self.drifted_ns[knot] + self.drift[knot] * since_knot_ns as f64;
        let stepped = self.steps.iter().filter(|step| step.at <= at).map(|step| step.by).sum::<Span>();
        self.offset + stepped + Span::from_ns(libm::round(drifted_ns) as i64)
    }

    /// Relative drift at local time `at`, in ppm.
    pub fn drift_ppm_at(&self, at: Span) -> f64 {
        let knot = ((at.ns() / KNOT.ns()).max(0) as usize).min(self.drift.len() - 1);
        self.drift[knot] * 1e6
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(model: &ClockModel) -> Clock {
        Clock::new(model, Span::from_s(600), &mut Random::new(7))
    }

    #[test]
    fn a_linear_clock_gains_its_drift_every_second() {
        let clock = clock(&ClockModel { offset: Span::from_s(3), drift_ppm: 50.0, ..ClockModel::default() });
        assert_eq!(clock.offset_at(Span::ZERO), Span::from_s(3));
        assert_eq!(clock.offset_at(Span::from_s(100)), Span::from_s(3) + Span::from_ms(5));
        assert_eq!(clock.offset_at(Span::from_s(700)), Span::from_s(3) + Span::from_ms(35));
    }

    #[test]
    fn a_wave_returns_to_where_it_began_after_a_whole_period() {
        let clock = clock(&ClockModel { wave_ppm: 1.0, wave_period_s: 300.0, ..ClockModel::default() });
        assert!(clock.offset_at(Span::from_s(150)) > Span::from_us(90));
        assert!(clock.offset_at(Span::from_s(300)).abs() < Span::from_ns(100));
    }

    #[test]
    fn a_slewed_clock_runs_normally_once_the_slew_is_over() {
        let clock = clock(&ClockModel { slew_ppm: 1000.0, slew_s: 40.0, ..ClockModel::default() });
        assert_eq!(clock.offset_at(Span::from_s(40)), Span::from_ms(40));
        assert_eq!(clock.offset_at(Span::from_s(600)), Span::from_ms(40));
    }

    #[test]
    fn a_step_happens_at_its_time_and_not_before() {
        let step = Step { at: Span::from_s(300), by: Span::from_ms(-50) };
        let clock = clock(&ClockModel { steps: vec![step], ..ClockModel::default() });
        assert_eq!(clock.offset_at(Span::from_s(300) - Span::from_ns(1)), Span::ZERO);
        assert_eq!(clock.offset_at(Span::from_s(300)), Span::from_ms(-50));
    }

    #[test]
    fn a_limited_clock_never_drifts_faster_than_its_limit() {
        let model = ClockModel {
            drift_ppm: 150.0,
            wave_ppm: 80.0,
            wave_period_s: 37.0,
            walk_ppm: 30.0,
            limit_ppm: 200.0,
            ..ClockModel::default()
        };
        let clock = clock(&model);
        let mut fastest_ppm = 0.0_f64;
        for ms in 0..599_900 {
            let from = clock.offset_at(Span::from_ms(ms));
            let to = clock.offset_at(Span::from_ms(ms + 1));
            fastest_ppm = fastest_ppm.max((to - from).abs().ns() as f64);
        }
        assert!(fastest_ppm <= 201.0, "{fastest_ppm} ns in a millisecond");
        assert!(fastest_ppm >= 199.0, "the limit was never reached, so it was not tested");
    }

    #[test]
    fn a_random_walk_spreads_with_the_root_of_time() {
        let model = ClockModel { walk_ppm: 0.1, ..ClockModel::default() };
        let mut squares = 0.0;
        for seed in 0..400 {
            let clock = Clock::new(&model, Span::from_s(101), &mut Random::new(seed));
            squares += clock.drift_ppm_at(Span::from_s(100)).powi(2);
        }
        let deviation_ppm = (squares / 400.0).sqrt();
        assert!((deviation_ppm - 1.0).abs() < 0.12, "{deviation_ppm} ppm after 100 s, expected 1");
    }
}
