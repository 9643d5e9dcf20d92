//! Forward kinematics: from joint angles to poses.

use nalgebra::{Matrix3, Translation3, UnitQuaternion};

use crate::dh::{Geometry, TWIST_SINES};
use crate::{Joints, Pose, Rotation, Vector};

/// The frame of one joint in the frame before it.
pub(crate) fn link(geometry: &Geometry, joint: usize, angle_rad: f64) -> Pose {
    let (s, c) = angle_rad.sin_cos();
    let (a, d) = (geometry.a_m()[joint], geometry.d_m()[joint]);
    let sine = TWIST_SINES[joint];
    let cosine = 1.0 - sine.abs();
    #[rustfmt::skip]
    let rotation = Matrix3::new(
        c, -s * cosine,  s * sine,
        s,  c * cosine, -c * sine,
        0.0,      sine,    cosine,
    );
    Pose::from_parts(Translation3::new(a * c, a * s, d), Rotation::from_matrix_unchecked(rotation))
}

/// The base and the six joint frames; the last one is the flange.
pub fn frames(geometry: &Geometry, joints_rad: &Joints) -> [Pose; 7] {
    let mut frames = [Pose::identity(); 7];
    for joint in 0..6 {
        frames[joint + 1] = frames[joint] * link(geometry, joint, joints_rad[joint]);
    }
    frames
}

/// The flange in the base frame.
pub fn flange(geometry: &Geometry, joints_rad: &Joints) -> Pose {
    frames(geometry, joints_rad)[6]
}

/// A pose of seven numbers: x, y, z in m and a quaternion x, y, z, w.
///
/// `None` if a number is not finite or the quaternion's length is not within 1 % of one: what is further away
/// is rather a mistake than a rounding.
pub fn pose_of(numbers: [f64; 7]) -> Option<Pose> {
    let [x, y, z, qx, qy, qz, qw] = numbers;
    let quaternion = nalgebra::Quaternion::new(qw, qx, qy, qz);
    let is_unit = (quaternion.norm() - 1.0).abs() < 0.01;
    (numbers.iter().all(|number| number.is_finite()) && is_unit).then(|| {
        let rotation = UnitQuaternion::from_quaternion(quaternion).to_rotation_matrix();
        Pose::from_parts(Translation3::new(x, y, z), rotation)
    })
}

/// The same pose in the manual's base frame, given it in ROS's `base_link`.
pub fn from_base_link(pose: &Pose) -> Pose {
    let turn = Rotation::from_axis_angle(&Vector::z_axis(), std::f64::consts::PI);
    Pose::from_parts(Translation3::identity(), turn) * pose
}

/// A rotation about fixed-order moving axes x, then y, then z: the seed's "XYZ Euler" angles.
pub fn rotation_xyz(x_rad: f64, y_rad: f64, z_rad: f64) -> Rotation {
    let about = |axis: &nalgebra::Unit<Vector>, angle: f64| Rotation::from_axis_angle(axis, angle);
    about(&Vector::x_axis(), x_rad) * about(&Vector::y_axis(), y_rad) * about(&Vector::z_axis(), z_rad)
}
