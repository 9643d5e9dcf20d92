//! Where the vehicle is, from inertial samples at once and poses that come late.
//!
//! # Problem
//!
//! A camera's pose arrives tens of milliseconds after the picture was taken. Fused as if it were fresh it
//! pulls the vehicle back by its speed times its age.
//!
//! # Approach
//!
//! As PX4's EKF2: the filter itself runs [`EstimatorConfig::delay`] behind the present, where late poses have already
//! arrived; each is fused at *its own* time, between two inertial samples if need be. A predictor carries
//! the result to the present ([`Estimator::state`]).
//!
//! A pose older than the horizon, from the future, or outside the filter's gate (an outlier) is refused
//! and counted. Refused for [`EstimatorConfig::reset_after`] without pause, the filter was wrong, not the
//! camera: it starts again at the pose.

mod error_state;
mod predictor;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use noctule_timebase::{Instant, Span};

use crate::Board;
use crate::sensors::{ImuModel, ImuSample, Odometry};
use error_state::ErrorState;
pub use error_state::{Covariance, State};
use predictor::{Predictor, Raw};

/// Inertial samples that wait for the horizon; at 200 Hz more than a second.
pub const IMU_QUEUE_MAX: usize = 256;
/// Poses that wait for the horizon.
pub const ODOMETRY_QUEUE_MAX: usize = 64;

/// Configuration of the estimator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EstimatorConfig {
    /// How far the filter is behind the present: the greatest age of a pose that can still be fused.
    pub delay: Span,
    /// How long every pose may be refused before the filter starts again.
    pub reset_after: Span,
    /// Model of the inertial unit's errors.
    pub noise: ImuModel,
    /// Standard deviation of the first position, m, velocity, m/s, and attitude, rad.
    pub initial_std: [f64; 3],
}

impl Default for EstimatorConfig {
    fn default() -> EstimatorConfig {
        EstimatorConfig {
            delay: Span::from_ms(200),
            reset_after: Span::from_s(5),
            noise: ImuModel::CONSUMER,
            initial_std: [0.1, 0.1, 0.02],
        }
    }
}

/// Counts of poses by their fate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EstimatorCounters {
    /// Fused at their own time.
    pub fused: u64,
    /// Not fused: older than the horizon.
    pub too_old: u64,
    /// Not fused: of a time after the present, by more than a tenth of the delay.
    pub from_the_future: u64,
    /// Not fused: outside the filter's gate, an outlier.
    pub rejected: u64,
    /// Not fused: [`ODOMETRY_QUEUE_MAX`].
    pub refused_full: u64,
    /// Starts from a pose after lasting rejection.
    pub resets: u64,
    /// Starts because the clock of the samples jumped.
    pub clock_jumps: u64,
}

/// Estimates position, velocity and attitude at a delayed horizon.
#[derive(Clone, Debug)]
pub struct Estimator {
    config: EstimatorConfig,
    filter: ErrorState,
    /// The filter's instant.
    horizon: Instant<Board>,
    predictor: Predictor,
    samples: VecDeque<(ImuSample, Raw)>,
    /// Poses by time.
    poses: VecDeque<Odometry>,
    last_sample: Option<Instant<Board>>,
    last_fused: Instant<Board>,
    counters: EstimatorCounters,
}

impl Estimator {
    /// Starts at `state`, true at `now`.
    pub fn new(config: EstimatorConfig, state: State, now: Instant<Board>) -> Estimator {
        Estimator {
            config,
            filter: ErrorState::new(state, config.initial_std, config.noise),
            horizon: now,
            predictor: Predictor::new(state),
            samples: VecDeque::with_capacity(IMU_QUEUE_MAX),
            poses: VecDeque::with_capacity(ODOMETRY_QUEUE_MAX),
            last_sample: None,
            last_fused: now,
            counters: EstimatorCounters::default(),
        }
    }

    /// An inertial sample; consecutive ones, in order.
    pub fn handle_imu(&mut self, sample: &ImuSample) {
        if self
            .last_sample
            .is_some_and(|last| (sample.time - last - sample.interval).abs() > self.config.delay)
        {
            self.clock_jumped(sample);
        }
        self.last_sample = Some(sample.time);
        let seconds = sample.interval.as_s_f64();
        let remembered =
            self.predictor.advance(&sample.angular_rate_rad_s, &sample.specific_force_m_s2, seconds);
        if self.samples.len() == IMU_QUEUE_MAX {
            self.advance_horizon();
        }
        self.samples.push_back((*sample, remembered));
        while self.samples.front().is_some_and(|(oldest, _)| sample.time - oldest.time >= self.config.delay) {
            self.advance_horizon();
        }
    }

    /// A pose; it is fused when the horizon reaches its time.
    pub fn handle_odometry(&mut self, pose: &Odometry) {
        let now = self.last_sample.unwrap_or(self.horizon);
        if pose.time <= self.horizon {
            self.counters.too_old += 1;
            // A camera whose clock is wrong for good would otherwise never be fused again.
            self.refuse(pose, now);
        } else if pose.time > now + Span::from_ns(self.config.delay.ns() / 10) {
            self.counters.from_the_future += 1;
        } else if self.poses.len() == ODOMETRY_QUEUE_MAX {
            self.counters.refused_full += 1;
        } else {
            let place = self.poses.partition_point(|earlier| earlier.time <= pose.time);
            self.poses.insert(place, *pose);
        }
    }

    /// The state at the last inertial sample.
    pub fn state(&self) -> &State {
        self.predictor.state()
    }

    /// The filter's own state, its instant and its covariance.
    pub fn delayed(&self) -> (Instant<Board>, &State, &Covariance) {
        (self.horizon, &self.filter.state, &self.filter.covariance)
    }

    /// Counts of poses so far by their fate.
    pub fn counters(&self) -> EstimatorCounters {
        self.counters
    }

    /// The filter takes in the oldest inertial sample and the poses within its interval.
    fn advance_horizon(&mut self) {
        let Some((sample, remembered)) = self.samples.pop_front() else { return };
        let mut left = sample.interval;
        while self.poses.front().is_some_and(|pose| pose.time <= sample.time) {
            let Some(pose) = self.poses.pop_front() else { break };
            // The pose lies inside this interval: up to it, fuse, and on.
            let part = (left - (sample.time - pose.time)).max(Span::from_ns(0));
            self.predict(&sample, part);
            left -= part;
            if self.filter.fuse(&pose) {
                self.counters.fused += 1;
                self.last_fused = pose.time;
            } else {
                self.counters.rejected += 1;
                self.refuse(&pose, pose.time);
            }
        }
        self.predict(&sample, left);
        self.horizon = sample.time;
        self.predictor.follow(&self.filter.state, &remembered, sample.interval.as_s_f64());
    }

    fn predict(&mut self, sample: &ImuSample, part: Span) {
        if part > Span::from_ns(0) {
            let (rate, force) = (&sample.angular_rate_rad_s, &sample.specific_force_m_s2);
            self.filter.predict(rate, force, part.as_s_f64());
        }
    }

    /// A pose was not used; after long enough it is the filter that is wrong.
    fn refuse(&mut self, pose: &Odometry, now: Instant<Board>) {
        if now - self.last_fused < self.config.reset_after {
            return;
        }
        self.counters.resets += 1;
        self.last_fused = now;
        let state = State { position_m: pose.position_m, attitude: pose.attitude, ..self.filter.state };
        let [position, velocity, attitude] = self.config.initial_std;
        let std = [position, velocity.max(1.0), attitude];
        self.filter = ErrorState::new(state, std, self.config.noise);
    }

    /// The controller's clock was set: what waits has times of before.
    fn clock_jumped(&mut self, sample: &ImuSample) {
        self.counters.clock_jumps += 1;
        while !self.samples.is_empty() {
            self.advance_horizon();
        }
        self.poses.clear();
        self.horizon = sample.time - sample.interval;
        self.last_fused = self.horizon;
    }
}
