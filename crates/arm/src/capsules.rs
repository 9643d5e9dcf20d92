//! The arm's body as capsules, and whether two of them that are no neighbours touch.
//!
//! Radii are those of the manufacturer's ROS description (`physical_parameters.yaml`).

use crate::dh::Geometry;
use crate::forward::frames;
use crate::{Joints, Vector};

/// A segment with a thickness.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Capsule {
    /// Part of the arm.
    pub name: &'static str,
    /// One end, m, base frame.
    pub from_m: Vector,
    /// Other end, m, base frame.
    pub to_m: Vector,
    /// Radius, m.
    pub radius_m: f64,
}

/// Upper arm and forearm lie beside the plane of the joints' axes, m along the shoulder's axis. Source: as the radii.
const UPPER_ARM_OFFSET_M: f64 = 0.135_85;
const FOREARM_OFFSET_M: f64 = 0.016_15;

/// The body: base, shoulder, upper arm, forearm, three wrists.
pub fn capsules(geometry: &Geometry, joints_rad: &Joints) -> [Capsule; 7] {
    let frames = frames(geometry, joints_rad);
    let at = |frame: usize| frames[frame].translation.vector;
    let beside = frames[1].rotation.matrix().column(2).into_owned();
    let (upper, fore) = (beside * UPPER_ARM_OFFSET_M, beside * FOREARM_OFFSET_M);
    let wrist_1 = at(3) + beside * geometry.d4_m;
    let capsule = |name, from_m, to_m, radius_m| Capsule { name, from_m, to_m, radius_m };
    [
        capsule("base", Vector::zeros(), at(1), 0.060),
        capsule("shoulder", at(1), at(1) + upper, 0.060),
        capsule("upper arm", at(1) + upper, at(2) + upper, 0.054),
        capsule("forearm", at(2) + fore, at(3) + fore, 0.040),
        capsule("first wrist", at(3) + fore, wrist_1, 0.045),
        capsule("second wrist", wrist_1, at(5), 0.045),
        capsule("third wrist", at(5), at(6), 0.045),
    ]
}

/// Pairs that can touch; neighbours always do.
const PAIRS: [(usize, usize); 10] =
    [(0, 3), (0, 4), (0, 5), (0, 6), (1, 3), (1, 4), (1, 5), (1, 6), (2, 5), (2, 6)];

/// The pair that is nearest to touching: its names, and the free space in m, negative when it overlaps.
pub fn nearest_pair(capsules: &[Capsule; 7]) -> (&'static str, &'static str, f64) {
    let free = |(a, b): (usize, usize)| {
        let (a, b) = (&capsules[a], &capsules[b]);
        (a.name, b.name, distance(a, b) - a.radius_m - b.radius_m)
    };
    let all = PAIRS.into_iter().map(free);
    all.min_by(|a, b| a.2.total_cmp(&b.2)).unwrap_or(("", "", f64::INFINITY))
}

/// Least distance of two segments.
fn distance(one: &Capsule, other: &Capsule) -> f64 {
    let (d1, d2) = (one.to_m - one.from_m, other.to_m - other.from_m);
    let between = one.from_m - other.from_m;
    let (a, e, f) = (d1.norm_squared(), d2.norm_squared(), d2.dot(&between));
    let (b, c) = (d1.dot(&d2), d1.dot(&between));
    let parallel = a * e - b * b;
    let s = if parallel > 1e-12 { ((b * f - c * e) / parallel).clamp(0.0, 1.0) } else { 0.0 };
    let t = if e > 1e-12 { ((b * s + f) / e).clamp(0.0, 1.0) } else { 0.0 };
    // Once more for the point found on the other one: it may be an end, or the other one a point.
    let s = if a > 1e-12 { ((b * t - c) / a).clamp(0.0, 1.0) } else { 0.0 };
    ((one.from_m + d1 * s) - (other.from_m + d2 * t)).norm()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_of_segments() {
        let segment = |from: [f64; 3], to: [f64; 3]| Capsule {
            name: "",
            from_m: Vector::from(from),
            to_m: Vector::from(to),
            radius_m: 0.0,
        };
        let x = segment([0.0; 3], [1.0, 0.0, 0.0]);
        assert_eq!(distance(&x, &segment([0.5, -1.0, 2.0], [0.5, 1.0, 2.0])), 2.0, "crossing");
        assert_eq!(distance(&x, &segment([0.0, 3.0, 0.0], [1.0, 3.0, 0.0])), 3.0, "parallel");
        assert_eq!(distance(&x, &segment([2.0, 0.0, 0.0], [3.0, 0.0, 0.0])), 1.0, "end to end");
        assert_eq!(distance(&x, &segment([0.2, 0.7, 0.0], [0.2, 0.7, 0.0])), 0.7, "a point");
    }

    #[test]
    fn a_stretched_arm_is_free_and_a_folded_one_is_not() {
        let geometry = Geometry::default();
        let upright = Joints::from([0.0, -1.57, 0.0, -1.57, 0.0, 0.0]);
        assert!(nearest_pair(&capsules(&geometry, &upright)).2 > 0.0);
        // The forearm folded back onto the upper arm puts the wrist into the shoulder.
        let folded = Joints::from([0.0, -1.57, 3.0, 0.0, 0.0, 0.0]);
        let (one, other, free_m) = nearest_pair(&capsules(&geometry, &folded));
        assert!(free_m < 0.0, "{one} and {other}: {free_m}");
    }
}
