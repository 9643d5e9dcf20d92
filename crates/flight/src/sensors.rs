//! Sensors of the vehicle: inertial measurements at once, a camera's pose late.
//!
//! Inertial errors follow the usual model: white noise given by its density, a bias that starts
//! somewhere and walks (IEEE Std 952; Woodman, "An introduction to inertial navigation", 2007).

use noctule_netsim::Random;
use noctule_timebase::{Instant, Span};

use crate::{Attitude, Board, Trajectory, Truth, Vector};

/// One sample of an inertial unit: the mean over the interval that ends at `time`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ImuSample {
    /// End of the interval, by the flight controller's clock.
    pub time: Instant<Board>,
    /// Length of the interval.
    pub interval: Span,
    /// Body frame, rad/s.
    pub angular_rate_rad_s: Vector,
    /// Body frame, m/s²; everything but gravity.
    pub specific_force_m_s2: Vector,
}

/// A pose from an external source: visual odometry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Odometry {
    /// When it was true, by the flight controller's clock.
    pub time: Instant<Board>,
    /// World frame, m.
    pub position_m: Vector,
    /// Rotation from body to world.
    pub attitude: Attitude,
    /// Standard deviation on each axis, m.
    pub position_std_m: f64,
    /// Standard deviation about each axis, rad.
    pub attitude_std_rad: f64,
}

/// How wrong an inertial unit is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ImuModel {
    /// Noise density of the gyroscope, rad/s/√Hz.
    pub gyro_noise: f64,
    /// Noise density of the accelerometer, m/s²/√Hz.
    pub accel_noise: f64,
    /// Random walk of the gyroscope's bias, rad/s²/√Hz.
    pub gyro_bias_walk: f64,
    /// Random walk of the accelerometer's bias, m/s³/√Hz.
    pub accel_bias_walk: f64,
    /// Standard deviation of the gyroscope's first bias on each axis, rad/s.
    pub gyro_bias_initial: f64,
    /// Standard deviation of the accelerometer's first bias on each axis, m/s².
    pub accel_bias_initial: f64,
}

impl ImuModel {
    /// A consumer MEMS unit on a frame that vibrates: densities about four times the data sheets'
    /// (ICM-20689: 0.006 °/s/√Hz, 150 µg/√Hz).
    pub const CONSUMER: ImuModel = ImuModel {
        gyro_noise: 4e-4,
        accel_noise: 6e-3,
        gyro_bias_walk: 2e-5,
        accel_bias_walk: 3e-4,
        gyro_bias_initial: 5e-3,
        accel_bias_initial: 5e-2,
    };
    /// One without any error.
    pub const PERFECT: ImuModel = ImuModel {
        gyro_noise: 0.0,
        accel_noise: 0.0,
        gyro_bias_walk: 0.0,
        accel_bias_walk: 0.0,
        gyro_bias_initial: 0.0,
        accel_bias_initial: 0.0,
    };
}

/// An inertial unit on a trajectory.
#[derive(Clone, Debug)]
pub struct Imu {
    model: ImuModel,
    random: Random,
    gyro_bias: Vector,
    accel_bias: Vector,
}

impl Imu {
    /// A unit of this kind; `seed` decides all its errors.
    pub fn new(model: ImuModel, seed: u64) -> Imu {
        let mut random = Random::for_part(seed, 1);
        let gyro_bias = model.gyro_bias_initial * normal(&mut random);
        let accel_bias = model.accel_bias_initial * normal(&mut random);
        Imu { model, random, gyro_bias, accel_bias }
    }

    /// Measurement over the `interval` (positive) that ends at `end`; `stamp` is what the
    /// controller's clock shows then. Call it for consecutive intervals.
    pub fn sample(
        &mut self,
        flight: &Trajectory,
        end: Instant<Truth>,
        interval: Span,
        stamp: Instant<Board>,
    ) -> ImuSample {
        let seconds = interval.as_s_f64();
        let (from, middle, to) =
            (flight.at(end - interval), flight.at(end - Span::from_ns(interval.ns() / 2)), flight.at(end));
        let turn = (from.attitude.inverse() * to.attitude).scaled_axis() / seconds;
        // The velocity gained (Simpson's rule), seen by the body as it stands halfway.
        let gained = |at: &crate::Kinematics| at.attitude * at.specific_force_m_s2();
        let force = (gained(&from) + 4.0 * gained(&middle) + gained(&to)) / 6.0;
        let force = middle.attitude.inverse_transform_vector(&force);
        let (white, walk) = (1.0 / seconds.sqrt(), seconds.sqrt());
        self.gyro_bias += self.model.gyro_bias_walk * walk * normal(&mut self.random);
        self.accel_bias += self.model.accel_bias_walk * walk * normal(&mut self.random);
        ImuSample {
            time: stamp,
            interval,
            angular_rate_rad_s: turn
                + self.gyro_bias
                + self.model.gyro_noise * white * normal(&mut self.random),
            specific_force_m_s2: force
                + self.accel_bias
                + self.model.accel_noise * white * normal(&mut self.random),
        }
    }
}

/// How well a camera knows where it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CameraModel {
    /// Standard deviation on each axis, m.
    pub position_std_m: f64,
    /// Standard deviation about each axis, rad.
    pub attitude_std_rad: f64,
}

impl CameraModel {
    /// Visual odometry indoors: 2 cm and half a degree.
    pub const INDOORS: CameraModel = CameraModel { position_std_m: 0.02, attitude_std_rad: 0.009 };
}

/// A camera on a trajectory, whose pose is worked out from each picture.
#[derive(Clone, Debug)]
pub struct Camera {
    model: CameraModel,
    random: Random,
}

impl Camera {
    /// A camera of this kind; `seed` decides all its errors.
    pub fn new(model: CameraModel, seed: u64) -> Camera {
        Camera { model, random: Random::for_part(seed, 2) }
    }

    /// The pose at `time`, with its errors; `stamp` is the time that it carries.
    pub fn pose(&mut self, flight: &Trajectory, time: Instant<Truth>, stamp: Instant<Board>) -> Odometry {
        let truth = flight.at(time);
        let tilt = self.model.attitude_std_rad * normal(&mut self.random);
        Odometry {
            time: stamp,
            position_m: truth.position_m + self.model.position_std_m * normal(&mut self.random),
            attitude: truth.attitude * Attitude::from_scaled_axis(tilt),
            position_std_m: self.model.position_std_m,
            attitude_std_rad: self.model.attitude_std_rad,
        }
    }
}

/// Three independent standard normal numbers.
fn normal(random: &mut Random) -> Vector {
    Vector::from_fn(|_, _| random.normal(1.0))
}
