//! From the delayed horizon to the present.
//!
//! The filter knows best what was true a fifth of a second ago; control needs now. The predictor runs
//! ahead with every inertial sample and remembers its results. When the filter arrives at one of those
//! instants, the difference is fed to *everything* remembered, so that no correction is made twice while
//! it is on its way through the delay. After Khosravian et al., "Recursive attitude estimation in the
//! presence of multi-rate and multi-delay vector measurements" (2015), as in PX4's EKF2.
//!
//! Remembered states are stored without the corrections made until then; their sum is kept apart. So a
//! correction costs the same for one remembered state as for forty.

use super::error_state::State;
use crate::{Attitude, Vector};

/// Time within which the predictor follows the filter, s (PX4: `EKF2_TAU_VEL`, `EKF2_TAU_POS`: 0.25).
const FOLLOW_S: f64 = 0.25;

/// A state without corrections.
#[derive(Clone, Copy, Debug)]
pub(super) struct Raw {
    position: Vector,
    velocity: Vector,
    attitude: Attitude,
}

/// Carries the delayed estimate to the present by the inertial samples since.
#[derive(Clone, Debug)]
pub(super) struct Predictor {
    now: State,
    position: Vector,
    velocity: Vector,
    /// Rotation from the world as it was taken for to the world as it is.
    attitude: Attitude,
}

impl Predictor {
    pub(super) fn new(state: State) -> Predictor {
        Predictor {
            now: state,
            position: Vector::zeros(),
            velocity: Vector::zeros(),
            attitude: Attitude::identity(),
        }
    }

    /// The state at the last inertial sample.
    pub(super) fn state(&self) -> &State {
        &self.now
    }

    /// An inertial sample; gives what to remember of its instant.
    pub(super) fn advance(&mut self, rate: &Vector, force: &Vector, seconds: f64) -> Raw {
        self.now = self.now.moved(rate, force, seconds);
        Raw {
            position: self.now.position_m - self.position,
            velocity: self.now.velocity_m_s - self.velocity,
            attitude: self.attitude.inverse() * self.now.attitude,
        }
    }

    /// The filter has reached the time of `remembered`, `seconds` after its last state.
    pub(super) fn follow(&mut self, filter: &State, remembered: &Raw, seconds: f64) {
        let gain = (seconds / FOLLOW_S).min(1.0);
        let position = (filter.position_m - remembered.position - self.position) * gain;
        let velocity = (filter.velocity_m_s - remembered.velocity - self.velocity) * gain;
        let said = self.attitude * remembered.attitude;
        let turn = Attitude::from_scaled_axis((filter.attitude * said.inverse()).scaled_axis() * gain);
        self.position += position;
        self.velocity += velocity;
        self.attitude = turn * self.attitude;
        self.now = State {
            position_m: self.now.position_m + position,
            velocity_m_s: self.now.velocity_m_s + velocity,
            attitude: turn * self.now.attitude,
            gyro_bias_rad_s: filter.gyro_bias_rad_s,
            accel_bias_m_s2: filter.accel_bias_m_s2,
        };
    }
}
