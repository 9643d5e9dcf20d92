//! A UR5 arm as a state machine: kinematics, motion profile, joint loop, validator, control analysis.
//!
//! # Problem
//!
//! An operator's hand moves; commands reach the arm late, sometimes not at all. What a late command costs shows only
//! with an arm behind it: inverse kinematics with all its branches, limits of velocity, acceleration and jerk, a joint
//! loop with a phase margin, and checks that stop the arm before it does harm.
//!
//! # Approach
//!
//! Nothing here reads a clock or opens anything; `now` is an argument.
//!
//! - [`dh`], [`forward`], [`jacobian`], [`inverse`]: closed-form kinematics of the UR family.
//! - [`select`]: one of up to eight solutions, with limits and hysteresis.
//! - [`profile`], [`trapezoid`]: from a goal to a motion that joints can follow.
//! - [`joint_loop`], [`motor`], [`pid`]: the loop of one joint, at a fixed rate.
//! - [`validate`], [`capsules`]: rules that each 250 µs must hold, with a name and a counter.
//! - [`controller`]: commands with ages in, joint states out; ramps to standstill when commands are too old.
//! - [`hand`]: synthetic operators with a known truth.
//! - [`analysis`]: margins, poles and step response of the loop that really runs.
//!
//! Frames: the base frame is the one of the manufacturer's manual ("Base"); ROS's `base_link` is turned against it by
//! π about z ([`forward::from_base_link`]). Angles in rad, lengths in m, times in s unless the name says otherwise.
//!
//! This is a demonstration of messaging, not a medical device. The motor model is that of a small DC motor, not of a
//! UR5 joint, whose constants are not published; acceleration and jerk limits are ours for the same reason.
#![forbid(unsafe_code)]

pub mod analysis;
pub mod capsules;
mod clock;
pub mod controller;
pub mod dh;
pub mod forward;
pub mod hand;
pub mod inverse;
pub mod jacobian;
pub mod joint_loop;
pub mod motor;
pub mod pid;
pub mod profile;
pub mod select;
pub mod trapezoid;
pub mod validate;

/// Six values, one for each joint from the base to the wrist; rad, rad/s, … as the name of the variable says.
pub type Joints = nalgebra::SVector<f64, 6>;
/// Where a frame is: position in m and rotation, in the base frame.
pub type Pose = nalgebra::IsometryMatrix3<f64>;
/// A vector of space.
pub type Vector = nalgebra::Vector3<f64>;
/// A rotation of space.
pub type Rotation = nalgebra::Rotation3<f64>;

/// Where the arm waits, rad: over the middle of the window, with the tool level, far from singular poses.
pub const HOME_RAD: Joints = Joints::new(
    -2.704_450_110_688,
    -0.463_555_421_738,
    1.836_794_909_085,
    -1.374_372_672_138,
    2.098_729_654_536,
    2.918_677_300_491,
);

/// The same angle in (−π, π].
pub fn wrapped(angle_rad: f64) -> f64 {
    use std::f64::consts::{PI, TAU};
    let turned = angle_rad.rem_euclid(TAU);
    if turned > PI { turned - TAU } else { turned }
}
