//! The messages of the loop and their topics. Lengths in m, angles in rad, times in ns.
//!
//! Types are generated from `msg/teleop_msgs/msg` by `noctule gen topics.toml --out generated`; a test holds them against it. Endpoints are
//! opened by hand, because their deadlines are arguments of the programs.

pub use generated::teleop_msgs::msg::{ArmState, JointError, JointVoltage, OperatorInput, PoseCommand};

// Endpoints that the generator writes are public, and are not used outside of this module.
#[allow(unreachable_pub)]
#[rustfmt::skip]
#[path = "../generated/rust/mod.rs"]
mod generated;

/// Topic of [`OperatorInput`].
pub const INPUT_TOPIC: &str = "teleop/input";
/// Topic of [`PoseCommand`].
pub const POSE_TOPIC: &str = "teleop/pose";
/// Topic of [`ArmState`].
pub const STATE_TOPIC: &str = "teleop/state";
/// Topic of [`JointError`].
pub const JOINT_ERROR_TOPIC: &str = "teleop/joint/error";
/// Topic of [`JointVoltage`].
pub const JOINT_VOLTAGE_TOPIC: &str = "teleop/joint/voltage";
