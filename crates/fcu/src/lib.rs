//! A flight controller that is a process.
//!
//! # Problem
//!
//! The benefit of a bridge between flight controller and companion computer shows only with a controller
//! on the other side: one that sends inertial samples at 200 Hz, takes in poses, has a clock of its own, and
//! flies better or worse by what it makes of their times. Hardware has no truth to compare with.
//!
//! # Approach
//!
//! [`Simulator`] flies the known trajectory of `noctule-flight` in real time. Its sensors feed delayed-horizon
//! estimators, one for each way of correcting a pose's stamp, on identical arrivals. It talks [`Xrce`] through
//! the C client that boards run, or [`Mavlink`], over a serial line or UDP. Its clock is artificial, so
//! the true age of every pose is known, whatever its own estimate says.
//!
//! [`Companion`] is the other side: a camera on the same trajectory whose poses come late, and a node that notes
//! how old inertial samples are. Both take the truth from the same raw clock, `CLOCK_MONOTONIC_RAW`, so they must
//! run on one machine.
#![forbid(unsafe_code)]

mod companion;
mod line;
mod messages;
mod protocol;
mod simulator;

pub use companion::{Companion, CompanionConfig, CompanionReport, Topics};
pub use line::{Line, LineError};
pub use messages::{SensorCombined, VehicleOdometry, pose_message};
pub use protocol::{
    IMU_TOPIC, IMU_TYPE, Mavlink, ODOMETRY_TOPIC, ODOMETRY_TYPE, Pose, Protocol, Traffic, Xrce,
};
pub use simulator::{Ages, Report, Simulator, SimulatorConfig, path};
