//! Benefit of synchronisation: the same poses, fused under several corrections at once.
//!
//! A companion computer stamps a pose in its own clock. The flight controller must say when that was in
//! *its* clock before it can fuse the pose. Here one controller does so in several ways side by side, each
//! with an estimator of its own, on identical sensors, arrivals and exchanges: what differs between the
//! position errors is the correction alone.

use noctule_time_sync::{AnyEstimator, BoundedConfig, Estimator as _, EstimatorKind, Exchange};
use noctule_timebase::{Instant, Span};

use crate::estimator::{Estimator, EstimatorConfig, EstimatorCounters, State};
use crate::sensors::{ImuSample, Odometry};
use crate::{Board, Trajectory, Truth, Vector};

/// Clock of the companion computer.
#[derive(Debug)]
pub enum Companion {}

/// How a pose's stamp is brought into the controller's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Correction {
    /// Not at all: a pose is taken to be of the moment at which it arrived.
    Uncorrected,
    /// Correction by the autopilot's exponential filter.
    Ema,
    /// Correction by the proven interval and the filter inside it.
    Bounded,
    /// Correction by the truth, which no real controller has: the rest is the sensors' own error.
    Exact,
}

impl Correction {
    /// All of them, in the order of the tables.
    pub const ALL: [Correction; 4] =
        [Correction::Uncorrected, Correction::Ema, Correction::Bounded, Correction::Exact];

    /// Its name in tables: `uncorrected`, `ema`, `bounded`, `exact`.
    pub const fn name(self) -> &'static str {
        match self {
            Correction::Uncorrected => "uncorrected",
            Correction::Ema => "ema",
            Correction::Bounded => "bounded",
            Correction::Exact => "exact",
        }
    }

    fn clock(self) -> Option<AnyEstimator> {
        let kind = match self {
            Correction::Uncorrected | Correction::Exact => return None,
            Correction::Ema => EstimatorKind::Ema,
            Correction::Bounded => EstimatorKind::Bounded,
        };
        Some(kind.build(BoundedConfig::default()))
    }
}

/// A pose as it came in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arrival {
    /// The pose; its own `time` is not looked at.
    pub pose: Odometry,
    /// When it was true, by the companion's clock.
    pub stamp: Instant<Companion>,
    /// Time of arrival.
    pub arrived: Instant<Board>,
    /// When it was true, by the controller's clock: the truth.
    pub exact: Instant<Board>,
}

/// How far one correction was from the truth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FusionResult {
    /// The correction.
    pub correction: Correction,
    /// Root mean square of the distance between estimated and true position at the present, m; `None`
    /// before the first sample that counts.
    pub position_rms_m: Option<f64>,
    /// The greatest such distance, m.
    pub position_max_m: f64,
    /// Poses that could not be given a time because the clock was not known yet.
    pub without_clock: u64,
    /// Counts of the other poses by their fate.
    pub counters: EstimatorCounters,
}

/// One correction and its result.
#[derive(Clone, Debug)]
struct Lane {
    correction: Correction,
    clock: Option<AnyEstimator>,
    estimator: Estimator,
    squares: f64,
    count: u64,
    max_m: f64,
    without_clock: u64,
}

/// A controller that fuses under several corrections at once.
#[derive(Clone, Debug)]
pub struct Fusion {
    lanes: Vec<Lane>,
    counts_from: Instant<Board>,
}

impl Fusion {
    /// Starts on `path` at `start`, which the controller's clock calls `now`. Errors count from `warm_up`
    /// later on.
    pub fn new(
        path: &Trajectory,
        start: Instant<Truth>,
        now: Instant<Board>,
        warm_up: Span,
        corrections: &[Correction],
    ) -> Fusion {
        let truth = path.at(start);
        let state = State {
            position_m: truth.position_m,
            velocity_m_s: truth.velocity_m_s,
            attitude: truth.attitude,
            gyro_bias_rad_s: Vector::zeros(),
            accel_bias_m_s2: Vector::zeros(),
        };
        let lane = |correction: &Correction| Lane {
            correction: *correction,
            clock: correction.clock(),
            estimator: Estimator::new(EstimatorConfig::default(), state, now),
            squares: 0.0,
            count: 0,
            max_m: 0.0,
            without_clock: 0,
        };
        Fusion { lanes: corrections.iter().map(lane).collect(), counts_from: now + warm_up }
    }

    /// An exchange of clocks with the companion, asked by the controller (whose clock is the local one).
    pub fn handle_exchange(&mut self, exchange: &Exchange) {
        for clock in self.lanes.iter_mut().filter_map(|lane| lane.clock.as_mut()) {
            // The verdict on an exchange shows in the clock's later estimates.
            let _ = clock.handle_exchange(exchange);
        }
    }

    /// An inertial sample and where the vehicle truly was at its end.
    pub fn handle_imu(&mut self, sample: &ImuSample, true_position_m: &Vector) {
        for lane in &mut self.lanes {
            lane.estimator.handle_imu(sample);
            if sample.time >= self.counts_from {
                let error_m = (lane.estimator.state().position_m - true_position_m).norm();
                lane.squares += error_m * error_m;
                lane.count += 1;
                lane.max_m = lane.max_m.max(error_m);
            }
        }
    }

    /// A pose from the companion.
    pub fn handle_pose(&mut self, arrival: &Arrival) {
        for lane in &mut self.lanes {
            let time = match (&lane.clock, lane.correction) {
                (Some(clock), _) => {
                    let now = arrival.arrived.translate(Span::ZERO);
                    clock.estimate(now).map(|known| arrival.stamp.translate(-known.offset))
                }
                (None, Correction::Exact) => Some(arrival.exact),
                (None, _) => Some(arrival.arrived),
            };
            match time {
                Some(time) => lane.estimator.handle_odometry(&Odometry { time, ..arrival.pose }),
                None => lane.without_clock += 1,
            }
        }
    }

    /// Result of each correction, in the order in which they were named.
    pub fn results(&self) -> Vec<FusionResult> {
        let result = |lane: &Lane| FusionResult {
            correction: lane.correction,
            position_rms_m: (lane.count > 0).then(|| (lane.squares / lane.count as f64).sqrt()),
            position_max_m: lane.max_m,
            without_clock: lane.without_clock,
            counters: lane.estimator.counters(),
        };
        self.lanes.iter().map(result).collect()
    }
}

#[cfg(test)]
mod tests;
