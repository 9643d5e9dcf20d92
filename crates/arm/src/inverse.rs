//! Inverse kinematics in closed form: every real solution, and a reason for each one that is missing.
//!
//! Angles 5 come from the rotation by atan2 rather than from a position by acos, so that they are exact at the wrist
//! singularity, too, and exist whenever angle 1 does. What can be missing is a shoulder (two values of angle 1) or,
//! for a shoulder and a wrist, the elbow's pair.

use std::f64::consts::FRAC_PI_2;

use serde::Serialize;

use crate::dh::Geometry;
use crate::forward::link;
use crate::{Joints, Pose, wrapped};

/// Arguments of acos beyond one by less than this are rounding, and are clamped.
const ROUNDING: f64 = 1e-9;
/// Below this sine of angle 5, axes 4 and 6 are parallel and angle 6 is free. A solution with another angle 6 than the pose's is wrong
/// by as much, so it is far below the 1e-9 m that the controller allows.
const WRIST_SINGULAR_SINE: f64 = 1e-10;

/// Which of the eight solutions: the signs of the three terms that have two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Branch {
    /// Sign of the acos term of angle 1.
    pub shoulder_positive: bool,
    /// Sign of angle 5.
    pub wrist_positive: bool,
    /// Sign of angle 3.
    pub elbow_positive: bool,
}

impl Branch {
    /// All eight, in the order of [`Inverse::solutions`].
    pub const ALL: [Branch; 8] = {
        let mut all = [Branch { shoulder_positive: true, wrist_positive: true, elbow_positive: true }; 8];
        let mut index = 0;
        while index < 8 {
            all[index].shoulder_positive = index & 4 == 0;
            all[index].wrist_positive = index & 2 == 0;
            all[index].elbow_positive = index & 1 == 0;
            index += 1;
        }
        all
    };

    /// Its place in [`Branch::ALL`].
    pub fn index(self) -> usize {
        usize::from(!self.shoulder_positive) * 4
            + usize::from(!self.wrist_positive) * 2
            + usize::from(!self.elbow_positive)
    }
}

impl std::fmt::Display for Branch {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sign = |positive| if positive { '+' } else { '-' };
        let Branch { shoulder_positive, wrist_positive, elbow_positive } = *self;
        write!(out, "{}{}{}", sign(shoulder_positive), sign(wrist_positive), sign(elbow_positive))
    }
}

/// One solution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Solution {
    /// Branch, one of eight.
    pub branch: Branch,
    /// Angles, rad, each in (−π, π].
    pub joints_rad: Joints,
    /// Axes 4 and 6 are parallel: angle 6 is the reference's, and angle 4 follows from it.
    pub is_wrist_singular: bool,
}

/// Why a solution does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The wrist would have to be inside the cylinder about the base axis that the shoulder's offset leaves free.
    #[error(
        "the wrist is {by_m:.4} m inside the cylinder about the base axis that the shoulder cannot reach"
    )]
    InsideCylinder {
        /// Depth inside the cylinder, m.
        by_m: f64,
    },
    /// Upper arm and forearm together are too short.
    #[error("the wrist is {by_m:.4} m out of reach of the stretched arm")]
    OutOfReach {
        /// Distance beyond the reach, m.
        by_m: f64,
    },
    /// The folded arm is still too long.
    #[error("the wrist is {by_m:.4} m too near to the shoulder for the folded arm")]
    TooNear {
        /// Distance below the least reach, m.
        by_m: f64,
    },
    /// A number of the pose is not finite.
    #[error("the pose contains a number that is not finite")]
    NotFinite,
}

/// A solution that does not exist.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Missing {
    /// Branch, one of eight.
    pub branch: Branch,
    /// Why the solution does not exist.
    pub reason: Reason,
}

/// Result of [`inverse`]: solutions and missing ones are eight together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inverse {
    found: [Option<Solution>; 8],
    missing: [Option<Reason>; 8],
}

impl Inverse {
    /// The solutions, in the order of [`Branch::ALL`].
    pub fn solutions(&self) -> impl Iterator<Item = Solution> {
        self.found.iter().flatten().copied()
    }

    /// The solution of a branch.
    pub fn solution(&self, branch: Branch) -> Option<Solution> {
        self.found[branch.index()]
    }

    /// The missing solutions with their reasons, in the order of [`Branch::ALL`].
    pub fn missing(&self) -> impl Iterator<Item = Missing> {
        let reasons = Branch::ALL.into_iter().zip(self.missing);
        reasons.filter_map(|(branch, reason)| reason.map(|reason| Missing { branch, reason }))
    }

    fn miss(&mut self, reason: Reason, applies: impl Fn(Branch) -> bool) {
        for branch in Branch::ALL.into_iter().filter(|branch| applies(*branch)) {
            self.missing[branch.index()] = Some(reason);
        }
    }
}

/// All solutions for a flange pose in the base frame. `reference_rad` gives angle 6 where it is free.
pub fn inverse(geometry: &Geometry, flange: &Pose, reference_rad: &Joints) -> Inverse {
    let mut result = Inverse::default();
    if !flange.to_homogeneous().iter().all(|number| number.is_finite()) {
        result.miss(Reason::NotFinite, |_| true);
        return result;
    }
    let wrist = flange.translation.vector - flange.rotation.matrix().column(2) * geometry.d6_m;
    let radius_m = wrist.x.hypot(wrist.y);
    let Some(offset) = arc_cosine(geometry.d4_m, radius_m) else {
        result.miss(Reason::InsideCylinder { by_m: geometry.d4_m.abs() - radius_m }, |_| true);
        return result;
    };
    let bearing = wrist.y.atan2(wrist.x) + FRAC_PI_2;
    for shoulder_positive in [true, false] {
        let theta_1 = if shoulder_positive { bearing + offset } else { bearing - offset };
        for wrist_positive in [true, false] {
            let search = Search { geometry, flange, theta_1, reference_6: reference_rad[5] };
            search.elbows(shoulder_positive, wrist_positive, &mut result);
        }
    }
    result
}

/// acos(part / whole), with rounding clamped; `None` beyond.
fn arc_cosine(part: f64, whole: f64) -> Option<f64> {
    let ratio = part / whole;
    (ratio.abs() <= 1.0 + ROUNDING).then(|| ratio.clamp(-1.0, 1.0).acos())
}

/// The search behind one shoulder.
struct Search<'a> {
    geometry: &'a Geometry,
    flange: &'a Pose,
    theta_1: f64,
    reference_6: f64,
}

impl Search<'_> {
    fn elbows(&self, shoulder_positive: bool, wrist_positive: bool, result: &mut Inverse) {
        let geometry = self.geometry;
        let (theta_5, theta_6, is_wrist_singular) = self.wrist_angles(wrist_positive);
        // The frame of joint 4, seen from that of joint 1: joints 2, 3 and 4 turn in its x–y plane.
        let hand = link(geometry, 4, theta_5) * link(geometry, 5, theta_6);
        let planar = link(geometry, 0, self.theta_1).inverse() * self.flange * hand.inverse();
        let (x, y) = (planar.translation.x, planar.translation.y);
        let (a2, a3) = (geometry.a2_m, geometry.a3_m);
        let distance_m = x.hypot(y);
        let Some(bend) = arc_cosine(distance_m * distance_m - a2 * a2 - a3 * a3, 2.0 * a2 * a3) else {
            let (longest_m, shortest_m) = (a2.abs() + a3.abs(), (a2.abs() - a3.abs()).abs());
            let reason = if distance_m > longest_m {
                Reason::OutOfReach { by_m: distance_m - longest_m }
            } else {
                Reason::TooNear { by_m: shortest_m - distance_m }
            };
            let here = |branch: Branch| {
                branch.shoulder_positive == shoulder_positive && branch.wrist_positive == wrist_positive
            };
            result.miss(reason, here);
            return;
        };
        let along = planar.rotation.matrix().column(0).into_owned();
        let sum_234 = along.y.atan2(along.x);
        for elbow_positive in [true, false] {
            let theta_3 = if elbow_positive { bend } else { -bend };
            let theta_2 = y.atan2(x) - (a3 * theta_3.sin()).atan2(a2 + a3 * theta_3.cos());
            let theta_4 = sum_234 - theta_2 - theta_3;
            let angles = [self.theta_1, theta_2, theta_3, theta_4, theta_5, theta_6].map(wrapped);
            let branch = Branch { shoulder_positive, wrist_positive, elbow_positive };
            let joints_rad = Joints::from(angles);
            result.found[branch.index()] = Some(Solution { branch, joints_rad, is_wrist_singular });
        }
    }

    /// Angles 5 and 6, and whether angle 6 is free.
    fn wrist_angles(&self, wrist_positive: bool) -> (f64, f64, bool) {
        // The shoulder's axis (s1, −c1, 0) in the flange's frame is (s5 c6, −s5 s6, c5).
        let (s1, c1) = self.theta_1.sin_cos();
        let axis = self.flange.rotation.inverse() * crate::Vector::new(s1, -c1, 0.0);
        let sine = axis.x.hypot(axis.y);
        let sign = if wrist_positive { 1.0 } else { -1.0 };
        let theta_5 = (sign * sine).atan2(axis.z);
        if sine < WRIST_SINGULAR_SINE {
            return (theta_5, self.reference_6, true);
        }
        (theta_5, (-sign * axis.y).atan2(sign * axis.x), false)
    }
}
