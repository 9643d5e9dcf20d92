//! The two messages of the loop, as PX4 defines them (`px4_msgs`): inertial samples out, poses in. Times are in µs of
//! the clock of the program that sends them. Types are generated from `msg` by `noctule gen topics.toml --out generated`; a test holds them against it.

use noctule_flight::sensors::Odometry;
use noctule_flight::{Attitude, ImuSample, Vector};
use noctule_timebase::Instant;

pub use generated::px4_msgs::msg::{SensorCombined, VehicleOdometry};

// Types that the generator writes are public, and some of them are not used outside of this module.
#[allow(unreachable_pub)]
#[rustfmt::skip]
#[path = "../generated/rust/mod.rs"]
mod generated;

impl SensorCombined {
    /// The message of a sample.
    pub fn new(sample: &ImuSample) -> SensorCombined {
        let interval_us = (sample.interval.ns() / 1_000) as u32;
        SensorCombined {
            timestamp: (sample.time.ns() / 1_000) as u64,
            gyro_rad: floats(&sample.angular_rate_rad_s),
            gyro_integral_dt: interval_us,
            accelerometer_m_s2: floats(&sample.specific_force_m_s2),
            accelerometer_integral_dt: interval_us,
            ..SensorCombined::default()
        }
    }
}

/// The message of a pose that was true at `sample_us`, sent at `sent_us`.
pub fn pose_message(pose: &Odometry, sample_us: u64, sent_us: u64) -> VehicleOdometry {
    let q = pose.attitude.quaternion();
    VehicleOdometry {
        timestamp: sent_us,
        timestamp_sample: sample_us,
        pose_frame: VehicleOdometry::POSE_FRAME_NED,
        position: floats(&pose.position_m),
        q: [q.w, q.i, q.j, q.k].map(|value| value as f32),
        velocity_frame: VehicleOdometry::VELOCITY_FRAME_NED,
        velocity: [f32::NAN; 3],
        angular_velocity: [f32::NAN; 3],
        position_variance: [(pose.position_std_m * pose.position_std_m) as f32; 3],
        orientation_variance: [(pose.attitude_std_rad * pose.attitude_std_rad) as f32; 3],
        velocity_variance: [f32::NAN; 3],
        reset_counter: 0,
        quality: 0,
    }
}

impl VehicleOdometry {
    /// The pose; its time is left open.
    pub fn pose(&self) -> Odometry {
        let [x, y, z] = self.position.map(f64::from);
        Odometry {
            time: Instant::from_ns(0),
            position_m: Vector::new(x, y, z),
            attitude: attitude(self.q),
            position_std_m: f64::from(self.position_variance[0]).sqrt(),
            attitude_std_rad: f64::from(self.orientation_variance[0]).sqrt(),
        }
    }
}

/// A unit quaternion of four numbers, real part first.
pub(crate) fn attitude(q: [f32; 4]) -> Attitude {
    let [w, i, j, k] = q.map(f64::from);
    Attitude::new_normalize([i, j, k, w].into())
}

fn floats(vector: &Vector) -> [f32; 3] {
    [vector.x, vector.y, vector.z].map(|value| value as f32)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use noctule_formats::{decode_cdr, encode_cdr};

    use super::*;

    #[test]
    fn definitions_are_those_of_px4() {
        let known = include_str!("../../../vectors/rihs01.json");
        for hash in [SensorCombined::RIHS01, VehicleOdometry::RIHS01] {
            assert!(known.contains(hash), "{hash}");
        }
    }

    #[test]
    fn messages_are_as_long_as_the_autopilots() {
        let mut bytes = Vec::new();
        encode_cdr(&SensorCombined::default(), &mut bytes).unwrap();
        assert_eq!(bytes.len(), 4 + 48);
        bytes.clear();
        encode_cdr(&VehicleOdometry::default(), &mut bytes).unwrap();
        assert_eq!(bytes.len(), 4 + 114);
    }

    #[test]
    fn a_pose_survives_its_message() {
        let pose = Odometry {
            time: Instant::from_ns(0),
            position_m: Vector::new(1.0, -2.0, 3.5),
            attitude: Attitude::from_euler_angles(0.1, -0.2, 2.0),
            position_std_m: 0.5,
            attitude_std_rad: 0.25,
        };
        let mut bytes = Vec::new();
        encode_cdr(&pose_message(&pose, 7, 9), &mut bytes).unwrap();
        let read: VehicleOdometry = decode_cdr(&bytes).unwrap();
        assert_eq!((read.timestamp_sample, read.timestamp), (7, 9));
        let back = read.pose();
        assert!((back.position_m - pose.position_m).norm() < 1e-6);
        assert!(back.attitude.angle_to(&pose.attitude) < 1e-6);
        assert_eq!((back.position_std_m, back.attitude_std_rad), (0.5, 0.25));
    }
}
