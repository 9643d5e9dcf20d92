//! MAVLink's messages as the ones ROS 2 knows.
//!
//! MAVLink's autopilots count in north-east-down and front-right-down, ROS in east-north-up and
//! front-left-up (REP 103). Both changes are half turns, so nothing is lost on the way there and back.
//! Topic names, types and units are MAVROS's, so that what reads its topics reads ours. Types are generated from `msg` by
//! `noctule gen topics.toml --out generated`; a test holds them against it.

use mavlink::dialects::common::{
    HIGHRES_IMU_DATA, MavEstimatorType, MavFrame, ODOMETRY_DATA, RAW_IMU_DATA, VISION_POSITION_ESTIMATE_DATA,
};

pub use generated::builtin_interfaces::msg::Time;
pub use generated::geometry_msgs::msg::{
    Point, Pose, PoseStamped, PoseWithCovariance, Quaternion, Twist, TwistWithCovariance, Vector3,
};
pub use generated::nav_msgs::msg::Odometry;
pub use generated::sensor_msgs::msg::Imu;
pub use generated::std_msgs::msg::Header;

// Types that the generator writes are public, and some of them are not used outside of this module.
#[allow(unreachable_pub)]
#[rustfmt::skip]
#[path = "../../generated/rust/mod.rs"]
mod generated;

/// Standard gravity, for accelerations given in thousandths of it, m/s².
const MILLI_G_M_S2: f64 = 9.806_65e-3;
const MILLIRADIAN: f64 = 1e-3;

impl Time {
    /// From nanoseconds; seconds that do not fit 32 bits are cut to them, as ROS 2 does.
    pub fn from_ns(ns: i64) -> Time {
        Time { sec: ns.div_euclid(1_000_000_000) as i32, nanosec: ns.rem_euclid(1_000_000_000) as u32 }
    }

    /// In nanoseconds.
    pub fn ns(&self) -> i64 {
        i64::from(self.sec) * 1_000_000_000 + i64::from(self.nanosec)
    }
}

/// `sensor_msgs/Imu` of a HIGHRES_IMU; `stamp` is its time in the reader's clock.
pub fn imu_from_highres(imu: &HIGHRES_IMU_DATA, stamp: Time) -> Imu {
    let gyro = [imu.xgyro, imu.ygyro, imu.zgyro].map(f64::from);
    let accel = [imu.xacc, imu.yacc, imu.zacc].map(f64::from);
    inertial(gyro, accel, stamp)
}

/// `sensor_msgs/Imu` of a RAW_IMU, in the units ArduPilot gives it: thousandths of g and of rad/s.
pub fn imu_from_raw(imu: &RAW_IMU_DATA, stamp: Time) -> Imu {
    let gyro = [imu.xgyro, imu.ygyro, imu.zgyro].map(|value| f64::from(value) * MILLIRADIAN);
    let accel = [imu.xacc, imu.yacc, imu.zacc].map(|value| f64::from(value) * MILLI_G_M_S2);
    inertial(gyro, accel, stamp)
}

fn inertial(gyro: [f64; 3], accel: [f64; 3], stamp: Time) -> Imu {
    let mut orientation_covariance = [0.0; 9];
    orientation_covariance[0] = -1.0;
    Imu {
        header: Header { stamp, frame_id: "base_link".to_owned() },
        orientation_covariance,
        angular_velocity: body(gyro),
        linear_acceleration: body(accel),
        ..Imu::default()
    }
}

/// VISION_POSITION_ESTIMATE of a pose that was true at `time_usec` of our clock.
pub fn vision_from_pose(pose: &Pose, time_usec: u64) -> VISION_POSITION_ESTIMATE_DATA {
    let [x, y, z] = world_array(&pose.position).map(|value| value as f32);
    let [roll, pitch, yaw] = euler(turned(attitude(&pose.orientation), HALF_TURN_WORLD, HALF_TURN_BODY));
    let mut estimate = VISION_POSITION_ESTIMATE_DATA { usec: time_usec, x, y, z, ..Default::default() };
    (estimate.roll, estimate.pitch, estimate.yaw) = (roll as f32, pitch as f32, yaw as f32);
    // Not a number in the first place: unknown.
    estimate.covariance[0] = f32::NAN;
    estimate
}

/// ODOMETRY of `nav_msgs/Odometry` that was true at `time_usec` of our clock.
///
/// ROS's odometry frame does not point north; MAVLink calls such a frame LOCAL_FRD.
pub fn odometry_to_mavlink(odometry: &Odometry, time_usec: u64) -> ODOMETRY_DATA {
    let Pose { position, orientation } = &odometry.pose.pose;
    let [x, y, z] = world_array(position).map(|value| value as f32);
    let q = turned(attitude(orientation), HALF_TURN_WORLD, HALF_TURN_BODY).map(|value| value as f32);
    let Twist { linear, angular } = &odometry.twist.twist;
    let [vx, vy, vz] = body_array(linear).map(|value| value as f32);
    let [rollspeed, pitchspeed, yawspeed] = body_array(angular).map(|value| value as f32);
    ODOMETRY_DATA {
        time_usec,
        x,
        y,
        z,
        q,
        vx,
        vy,
        vz,
        rollspeed,
        pitchspeed,
        yawspeed,
        pose_covariance: packed(&odometry.pose.covariance, [1, 0, 2], [1.0, 1.0, -1.0]),
        velocity_covariance: packed(&odometry.twist.covariance, [0, 1, 2], [1.0, -1.0, -1.0]),
        frame_id: MavFrame::MAV_FRAME_LOCAL_FRD,
        child_frame_id: MavFrame::MAV_FRAME_BODY_FRD,
        reset_counter: 0,
        estimator_type: MavEstimatorType::MAV_ESTIMATOR_TYPE_VISION,
        quality: 0,
    }
}

/// `nav_msgs/Odometry` of an ODOMETRY; covariances are left unknown.
pub fn odometry_from_mavlink(odometry: &ODOMETRY_DATA, stamp: Time) -> Odometry {
    let position = world([odometry.x, odometry.y, odometry.z].map(f64::from));
    let [w, x, y, z] = turned(odometry.q.map(f64::from), HALF_TURN_WORLD, HALF_TURN_BODY);
    let linear = body([odometry.vx, odometry.vy, odometry.vz].map(f64::from));
    let angular = body([odometry.rollspeed, odometry.pitchspeed, odometry.yawspeed].map(f64::from));
    let pose = Pose { position, orientation: Quaternion { x, y, z, w } };
    Odometry {
        header: Header { stamp, frame_id: "odom".to_owned() },
        child_frame_id: "base_link".to_owned(),
        pose: PoseWithCovariance { pose, ..Default::default() },
        twist: TwistWithCovariance { twist: Twist { linear, angular }, ..Default::default() },
    }
}

/// Real part first.
type Attitude = [f64; 4];

/// East-north-up ⇄ north-east-down: half a turn about the axis between east and north.
const HALF_TURN_WORLD: Attitude =
    [0.0, core::f64::consts::FRAC_1_SQRT_2, core::f64::consts::FRAC_1_SQRT_2, 0.0];
/// Front-left-up ⇄ front-right-down: half a turn about the front.
const HALF_TURN_BODY: Attitude = [0.0, 1.0, 0.0, 0.0];

fn attitude(q: &Quaternion) -> Attitude {
    [q.w, q.x, q.y, q.z]
}

/// The same attitude between the other world and the other body; a half turn is its own way back.
fn turned(q: Attitude, world: Attitude, body: Attitude) -> Attitude {
    let [w, x, y, z] = product(product(world, q), body);
    // Two half turns are −1, which is the same attitude; the real part is kept positive.
    if w < 0.0 { [-w, -x, -y, -z] } else { [w, x, y, z] }
}

/// Hamilton's product.
fn product(a: Attitude, b: Attitude) -> Attitude {
    [
        a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3],
        a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
        a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1],
        a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0],
    ]
}

/// Roll, pitch and yaw in rad (rotations about z, then y, then x).
fn euler([w, x, y, z]: Attitude) -> [f64; 3] {
    let roll = (2.0 * (w * x + y * z)).atan2(1.0 - 2.0 * (x * x + y * y));
    let pitch = (2.0 * (w * y - z * x)).clamp(-1.0, 1.0).asin();
    let yaw = (2.0 * (w * z + x * y)).atan2(1.0 - 2.0 * (y * y + z * z));
    [roll, pitch, yaw]
}

/// A vector of the other body frame; its own inverse.
fn body([x, y, z]: [f64; 3]) -> Vector3 {
    Vector3 { x, y: -y, z: -z }
}

fn body_array(vector: &Vector3) -> [f64; 3] {
    [vector.x, -vector.y, -vector.z]
}

/// A point of the other world frame; its own inverse.
fn world([x, y, z]: [f64; 3]) -> Point {
    Point { x: y, y: x, z: -z }
}

fn world_array(point: &Point) -> [f64; 3] {
    [point.y, point.x, -point.z]
}

/// Rows, and columns, of a covariance.
const AXES: usize = 6;

/// The upper triangle, row by row, of a covariance whose axes are exchanged and turned round; not a
/// number in the first place if it is unknown.
fn packed(covariance: &[f64; AXES * AXES], axes: [usize; 3], signs: [f64; 3]) -> [f32; 21] {
    let mut triangle = [0.0; 21];
    if covariance[0] <= 0.0 {
        triangle[0] = f32::NAN;
        return triangle;
    }
    let axis = |index: usize| (axes[index % 3] + index / 3 * 3, signs[index % 3]);
    let places = (0..AXES).flat_map(|row| (row..AXES).map(move |column| (row, column)));
    for (value, (row, column)) in triangle.iter_mut().zip(places) {
        let ((from_row, row_sign), (from_column, column_sign)) = (axis(row), axis(column));
        *value = (row_sign * column_sign * covariance[from_row * AXES + from_column]) as f32;
    }
    triangle
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn close(a: &[f64], b: &[f64]) -> bool {
        a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-5)
    }

    #[test]
    fn a_vehicle_that_looks_north_points_along_y_in_ros() {
        // North and level in MAVLink's frames: no rotation.
        let odometry =
            ODOMETRY_DATA { q: [1.0, 0.0, 0.0, 0.0], x: 2.0, z: -1.0, vx: 3.0, ..Default::default() };
        let ros = odometry_from_mavlink(&odometry, Time::default());
        let q = ros.pose.pose.orientation;
        let half = core::f64::consts::FRAC_1_SQRT_2;
        assert!(close(&[q.w, q.x, q.y, q.z], &[half, 0.0, 0.0, half]), "{q:?}");
        let p = ros.pose.pose.position;
        assert!(close(&[p.x, p.y, p.z], &[0.0, 2.0, 1.0]), "{p:?}");
        assert!(close(&[ros.twist.twist.linear.x], &[3.0]));
    }

    #[test]
    fn a_vehicle_at_rest_feels_gravity_upwards_in_ros() {
        let imu =
            imu_from_raw(&RAW_IMU_DATA { zacc: -1000, xgyro: 500, ..Default::default() }, Time::default());
        assert!(close(&[imu.linear_acceleration.z, imu.angular_velocity.x], &[9.806_65, 0.5]));
        assert_eq!(imu.orientation_covariance[0], -1.0);
    }

    #[test]
    fn variances_follow_their_axes() {
        let mut odometry = Odometry::default();
        for axis in 0..AXES {
            odometry.pose.covariance[axis * AXES + axis] = axis as f64 + 1.0;
        }
        odometry.pose.covariance[2] = 0.5;
        let sent = odometry_to_mavlink(&odometry, 1).pose_covariance;
        // East's variance is now the second on the diagonal, north's the first.
        assert_eq!([sent[0], sent[6], sent[11], sent[15]], [2.0, 1.0, 3.0, 5.0]);
        // East with up is now east with down.
        assert_eq!(sent[7], -0.5);
        assert!(odometry_to_mavlink(&Odometry::default(), 1).velocity_covariance[0].is_nan());
    }

    #[test]
    fn definitions_are_those_of_ros_2() {
        let known = include_str!("../../../../vectors/rihs01.json");
        let known: std::collections::BTreeMap<String, String> = serde_json::from_str(known).unwrap();
        for (name, hash) in [
            ("geometry_msgs/msg/PoseStamped", PoseStamped::RIHS01),
            ("nav_msgs/msg/Odometry", Odometry::RIHS01),
            ("sensor_msgs/msg/Imu", Imu::RIHS01),
        ] {
            assert_eq!(known[name], hash, "{name}");
        }
    }

    #[test]
    fn negative_times_are_before_the_epoch() {
        assert_eq!(Time::from_ns(-1), Time { sec: -1, nanosec: 999_999_999 });
        assert_eq!(Time::from_ns(-1).ns(), -1);
    }

    proptest! {
        #[test]
        fn there_and_back_is_the_same_pose(
            q in prop::array::uniform4(-1.0f64..1.0), p in prop::array::uniform3(-100.0f64..100.0),
        ) {
            let norm = q.iter().map(|value| value * value).sum::<f64>().sqrt();
            prop_assume!(norm > 0.1);
            let [w, x, y, z] = q.map(|value| value / norm);
            let pose = Pose {
                position: Point { x: p[0], y: p[1], z: p[2] },
                orientation: Quaternion { x, y, z, w },
            };
            let ros = Odometry { pose: PoseWithCovariance { pose: pose.clone(), ..Default::default() }, ..Default::default() };
            let back = odometry_from_mavlink(&odometry_to_mavlink(&ros, 1), Time::default()).pose.pose;
            prop_assert!((back.position.x - p[0]).abs() + (back.position.y - p[1]).abs() < 1e-4);
            let o = &back.orientation;
            let same = w * o.w + x * o.x + y * o.y + z * o.z;
            prop_assert!((same.abs() - 1.0).abs() < 1e-5, "{pose:?} {back:?}");
        }

        #[test]
        fn vision_says_the_same_attitude_as_odometry(yaw in -3.0f64..3.0) {
            let orientation = Quaternion { z: (yaw / 2.0).sin(), w: (yaw / 2.0).cos(), x: 0.0, y: 0.0 };
            let sent = vision_from_pose(&Pose { orientation, ..Default::default() }, 1);
            // Yaw from north clockwise, where ROS counts from east anticlockwise.
            let expected = core::f64::consts::FRAC_PI_2 - yaw;
            let turn = (f64::from(sent.yaw) - expected).rem_euclid(core::f64::consts::TAU);
            prop_assert!(turn.min(core::f64::consts::TAU - turn) < 1e-5, "{} {expected}", sent.yaw);
            prop_assert!(sent.roll.abs() < 1e-5 && sent.pitch.abs() < 1e-5);
        }
    }
}
