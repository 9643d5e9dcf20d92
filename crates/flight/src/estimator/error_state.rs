//! The error-state Kalman filter: where it was, how it moved, what its sensors get wrong, and how sure.
//!
//! Sources: J. Solà, "Quaternion kinematics for the error-state Kalman filter" (arXiv:1711.02508, 2017):
//! nominal state 5.2, error state with local angular errors 5.3, prediction (269), observation and
//! injection of the error 6.1–6.3. The covariance is updated in Joseph's form, which keeps it positive.
//! Error states in this order: position, velocity, attitude, gyroscope's bias, accelerometer's bias.

use nalgebra::{Matrix3, SMatrix, SVector};

use super::Odometry;
use crate::sensors::ImuModel;
use crate::{Attitude, Vector, gravity_m_s2};

/// Covariance of the error: 15 × 15, SI units.
pub type Covariance = SMatrix<f64, 15, 15>;

const POSITION: usize = 0;
const VELOCITY: usize = 3;
const ATTITUDE: usize = 6;
const GYRO_BIAS: usize = 9;
const ACCEL_BIAS: usize = 12;

/// The 99.99 % quantile of χ² with six degrees of freedom: what is farther off is an outlier.
const GATE: f64 = 27.86;

/// The nominal state of the filter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct State {
    /// World frame, m.
    pub position_m: Vector,
    /// World frame, m/s.
    pub velocity_m_s: Vector,
    /// Rotation from body to world.
    pub attitude: Attitude,
    /// Body frame, rad/s.
    pub gyro_bias_rad_s: Vector,
    /// Body frame, m/s².
    pub accel_bias_m_s2: Vector,
}

impl State {
    /// Moved on by `seconds` of these mean rates, biases taken off.
    pub(super) fn moved(&self, rate: &Vector, force: &Vector, seconds: f64) -> State {
        let turn = (rate - self.gyro_bias_rad_s) * seconds;
        let halfway = self.attitude * Attitude::from_scaled_axis(turn / 2.0);
        let acceleration = halfway * (force - self.accel_bias_m_s2) + gravity_m_s2();
        let velocity_m_s = self.velocity_m_s + acceleration * seconds;
        State {
            position_m: self.position_m + (self.velocity_m_s + velocity_m_s) * (seconds / 2.0),
            velocity_m_s,
            attitude: self.attitude * Attitude::from_scaled_axis(turn),
            ..*self
        }
    }
}

/// State and covariance at one instant.
#[derive(Clone, Debug)]
pub(super) struct ErrorState {
    pub(super) state: State,
    pub(super) covariance: Covariance,
    noise: ImuModel,
}

impl ErrorState {
    /// Starts at `state`, known to within these standard deviations (m, m/s, rad) and the biases of
    /// `noise`.
    pub(super) fn new(state: State, std: [f64; 3], noise: ImuModel) -> ErrorState {
        let mut covariance = Covariance::zeros();
        let [position, velocity, attitude] = std;
        let blocks = [
            (POSITION, position),
            (VELOCITY, velocity),
            (ATTITUDE, attitude),
            (GYRO_BIAS, noise.gyro_bias_initial),
            (ACCEL_BIAS, noise.accel_bias_initial),
        ];
        for (block, std) in blocks {
            covariance.fixed_view_mut::<3, 3>(block, block).fill_diagonal(std * std);
        }
        ErrorState { state, covariance, noise }
    }

    /// `seconds` pass with these mean rates.
    pub(super) fn predict(&mut self, rate: &Vector, force: &Vector, seconds: f64) {
        let force_body = force - self.state.accel_bias_m_s2;
        let turn = (rate - self.state.gyro_bias_rad_s) * seconds;
        let rotation = self.state.attitude.to_rotation_matrix().into_inner();
        let mut step = Covariance::identity();
        let mut set = |row, column, block: Matrix3<f64>| {
            step.fixed_view_mut::<3, 3>(row, column).copy_from(&block);
        };
        set(POSITION, VELOCITY, Matrix3::identity() * seconds);
        set(VELOCITY, ATTITUDE, -rotation * force_body.cross_matrix() * seconds);
        set(VELOCITY, ACCEL_BIAS, -rotation * seconds);
        set(ATTITUDE, ATTITUDE, Attitude::from_scaled_axis(-turn).to_rotation_matrix().into_inner());
        set(ATTITUDE, GYRO_BIAS, -Matrix3::identity() * seconds);
        self.covariance = step * self.covariance * step.transpose();
        let noises = [
            (VELOCITY, self.noise.accel_noise),
            (ATTITUDE, self.noise.gyro_noise),
            (GYRO_BIAS, self.noise.gyro_bias_walk),
            (ACCEL_BIAS, self.noise.accel_bias_walk),
        ];
        for (block, density) in noises {
            for axis in block..block + 3 {
                self.covariance[(axis, axis)] += density * density * seconds;
            }
        }
        self.state = self.state.moved(rate, force, seconds);
    }

    /// Corrects the state by a pose of the same instant; false if the pose cannot be true.
    pub(super) fn fuse(&mut self, pose: &Odometry) -> bool {
        let mut innovation = SVector::<f64, 6>::zeros();
        innovation.fixed_rows_mut::<3>(0).copy_from(&(pose.position_m - self.state.position_m));
        let tilt = (self.state.attitude.inverse() * pose.attitude).scaled_axis();
        innovation.fixed_rows_mut::<3>(3).copy_from(&tilt);
        let mut observes = SMatrix::<f64, 6, 15>::zeros();
        observes.fixed_view_mut::<3, 3>(0, POSITION).fill_with_identity();
        observes.fixed_view_mut::<3, 3>(3, ATTITUDE).fill_with_identity();
        let mut noise = SMatrix::<f64, 6, 6>::zeros();
        noise.fixed_view_mut::<3, 3>(0, 0).fill_diagonal(pose.position_std_m.powi(2));
        noise.fixed_view_mut::<3, 3>(3, 3).fill_diagonal(pose.attitude_std_rad.powi(2));

        let spread = observes * self.covariance * observes.transpose() + noise;
        let Some(inverse) = spread.try_inverse() else { return false };
        let distance = innovation.dot(&(inverse * innovation));
        // Written so that a pose that is not a number is refused, too.
        if !matches!(distance.partial_cmp(&GATE), Some(core::cmp::Ordering::Less)) {
            return false;
        }
        let gain = self.covariance * observes.transpose() * inverse;
        let keep = Covariance::identity() - gain * observes;
        self.covariance = keep * self.covariance * keep.transpose() + gain * noise * gain.transpose();
        self.inject(&(gain * innovation));
        true
    }

    fn inject(&mut self, error: &SVector<f64, 15>) {
        let part = |at| -> Vector { error.fixed_rows::<3>(at).into_owned() };
        self.state.position_m += part(POSITION);
        self.state.velocity_m_s += part(VELOCITY);
        self.state.attitude *= Attitude::from_scaled_axis(part(ATTITUDE));
        self.state.gyro_bias_rad_s += part(GYRO_BIAS);
        self.state.accel_bias_m_s2 += part(ACCEL_BIAS);
    }
}
