//! The geometric Jacobian: how fast the flange moves when joints do, and where it cannot move.

use nalgebra::SMatrix;

use crate::dh::Geometry;
use crate::forward::frames;
use crate::{Joints, Vector};

/// Rows: linear velocity of the flange (m/s), then angular velocity (rad/s), in the base frame, per rad/s of each joint.
pub type Jacobian = SMatrix<f64, 6, 6>;

/// The Jacobian at these angles.
pub fn jacobian(geometry: &Geometry, joints_rad: &Joints) -> Jacobian {
    let frames = frames(geometry, joints_rad);
    let tip = frames[6].translation.vector;
    let mut jacobian = Jacobian::zeros();
    for (joint, frame) in frames[..6].iter().enumerate() {
        let axis: Vector = frame.rotation.matrix().column(2).into_owned();
        let arm = tip - frame.translation.vector;
        jacobian.fixed_view_mut::<3, 1>(0, joint).copy_from(&axis.cross(&arm));
        jacobian.fixed_view_mut::<3, 1>(3, joint).copy_from(&axis);
    }
    jacobian
}

/// Its singular values, largest first. Rows of m/s and rad/s are mixed as they are, that is with a length scale of 1 m.
pub fn singular_values(jacobian: &Jacobian) -> Joints {
    let mut values = jacobian.singular_values();
    values.as_mut_slice().sort_by(|a, b| b.total_cmp(a));
    values
}

/// Yoshikawa's manipulability: the product of the singular values, zero in a singular pose.
pub fn manipulability(jacobian: &Jacobian) -> f64 {
    jacobian.determinant().abs()
}

/// Largest over smallest singular value when lengths are measured in `length_scale_m`.
///
/// Metres and radians have no common unit: the number means nothing without the scale. Infinite in a singular pose.
pub fn condition_number(jacobian: &Jacobian, length_scale_m: f64) -> f64 {
    let mut scaled = *jacobian;
    scaled.fixed_view_mut::<3, 6>(0, 0).scale_mut(1.0 / length_scale_m);
    let values = singular_values(&scaled);
    values[0] / values[5]
}
