//! A flight whose truth is known, and the estimator of a flight controller that follows it.
//!
//! # Problem
//!
//! The cost of a wrong time stamp to a robot is not microseconds but metres. To measure it, one needs a
//! vehicle whose true position is known at every instant, sensors with realistic errors, and the kind of
//! estimator that flight controllers run: one that fuses a camera's late pose *at the time it was taken*.
//!
//! # Approach
//!
//! Nothing here reads a clock or touches a socket; the same seed gives the same flight.
//!
//! - [`trajectory`]: a quadrotor on a smooth closed path, with every derivative the sensors need.
//! - [`sensors`]: an inertial unit with noise and wandering biases; a camera that sees its own pose late.
//! - [`estimator`]: error-state Kalman filter on a delayed horizon, with an output predictor that brings
//!   its result to the present, in the spirit of PX4's EKF2.
//! - [`fusion`]: the same poses under several corrections of their stamps, side by side.
//!
//! Frames: world is north-east-down, body is front-right-down, as in PX4. SI units throughout.
#![forbid(unsafe_code)]

pub mod estimator;
pub mod fusion;
pub mod sensors;
pub mod trajectory;

pub use estimator::{Estimator, EstimatorConfig, EstimatorCounters};
pub use fusion::{Companion, Correction, Fusion, FusionResult};
pub use sensors::{Camera, CameraModel, Imu, ImuModel, ImuSample, Odometry};
pub use trajectory::{Kinematics, Trajectory};

/// A vector in metres, metres per second, … as its name says.
pub type Vector = nalgebra::Vector3<f64>;
/// Turns a vector of the body frame into one of the world frame.
pub type Attitude = nalgebra::UnitQuaternion<f64>;

/// Acceleration of free fall in the world frame, m/s².
pub fn gravity_m_s2() -> Vector {
    Vector::new(0.0, 0.0, 9.806_65)
}

/// Clock of the simulation: the truth.
#[derive(Debug)]
pub enum Truth {}

/// Clock of the flight controller.
#[derive(Debug)]
pub enum Board {}
