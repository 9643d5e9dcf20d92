//! The messages of the loop. Lengths in m, angles in rad, times in ns.

use noctule::message;
use serde::{Deserialize, Serialize};

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

message! {
    /// Where an input device is, as a page or a device reports it: at its own rate.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    pub struct OperatorInput: "teleop/OperatorInput" {
        /// Who; another number after each reconnection.
        pub operator: u64,
        /// Of the hand, m, relative to wherever it began.
        pub position_m: [f64; 3],
        /// The dead man's switch is held.
        pub clutch: bool,
        /// Metres of the arm per metre of the hand.
        pub scale: f64,
        /// How wrong the source time may be, ns: half of the round trip by which the browser's clock is known.
        pub bound_ns: i64,
    }
}

message! {
    /// A pose that the hand had at the sample's source time.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    pub struct PoseCommand: "teleop/PoseCommand" {
        /// Counts from 1.
        pub sequence: u64,
        /// As in the input.
        pub operator: u64,
        /// Of the hand, m.
        pub position_m: [f64; 3],
        /// Of the hand: x, y, z, w.
        pub orientation: [f64; 4],
        /// Of the hand, m/s.
        pub linear_velocity_m_s: [f64; 3],
        /// Of the hand, rad/s.
        pub angular_velocity_rad_s: [f64; 3],
        /// The dead man's switch is held.
        pub clutch: bool,
        /// Metres of the arm per metre of the hand.
        pub scale: f64,
        /// How wrong the source time may be before the network, ns.
        pub bound_ns: i64,
    }
}

message! {
    /// The arm, after a period of its loop.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    pub struct ArmState: "teleop/ArmState" {
        /// Counts from 1.
        pub sequence: u64,
        /// 0 idle, 1 engaged, 2 releasing, 3 stopping, 4 stopped.
        pub mode: u8,
        /// The rule that stopped it, as an index of `noctule_arm::validate::Rule::ALL`; −1 none.
        pub rule: i8,
        /// Measured, rad.
        pub joints_rad: [f64; 6],
        /// Measured, rad/s.
        pub velocity_rad_s: [f64; 6],
        /// V.
        pub voltage_v: [f64; 6],
        /// Of the flange, m.
        pub position_m: [f64; 3],
        /// Of the flange: x, y, z, w.
        pub orientation: [f64; 4],
        /// Where the operator wants the flange, m.
        pub goal_m: [f64; 3],
        /// Of the newest command; −1 without one.
        pub command_age_ns: i64,
        /// Its bound; −1 if nothing is proven.
        pub command_bound_ns: i64,
        /// Index of the solution's branch; −1 none.
        pub branch: i8,
        /// Smallest singular value of the Jacobian.
        pub sigma_min: f64,
        /// Changes of the branch.
        pub flips: u64,
        /// Commands taken in.
        pub commands: u64,
        /// Commands that the network or the host lost.
        pub missed: u64,
        /// Commands that were overtaken.
        pub outdated: u64,
        /// Periods of the loop that ran.
        pub periods: u64,
        /// Periods that began more than one period late.
        pub late_periods: u64,
        /// The latest beginning of a period since the last state, ns.
        pub lateness_ns: i64,
        /// How often each rule was broken, in the order of `Rule::ALL`.
        pub rules: [u64; 18],
    }
}

message! {
    /// What a joint's motor sends to the controller of its loop at the other end of a network.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    pub struct JointError: "teleop/JointError" {
        /// Counts periods of the loop from 0.
        pub period: u64,
        /// Input of the controller, in units of the speed signal.
        pub error: f64,
    }
}

message! {
    /// The answer to it.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    pub struct JointVoltage: "teleop/JointVoltage" {
        /// Of the error that it answers.
        pub period: u64,
        /// V.
        pub voltage_v: f64,
    }
}
