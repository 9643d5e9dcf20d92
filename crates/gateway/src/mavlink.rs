//! Autopilots that speak MAVLink: PX4, ArduPilot.
//!
//! - [`frames`]: bytes → frames with a valid checksum.
//! - [`endpoint`]: one side of the link: heartbeats, clocks, answers. Sans-IO.
//! - [`bridge`]: an autopilot on the bus, with the topics that MAVROS has.
//! - [`ros`]: MAVLink's messages as the ones ROS 2 knows, in its frames and units.
//!
//! The messages themselves come from the crate `mavlink`. A user's own dialect is read from its XML at run
//! time; what it defines arrives as [`endpoint::Event::Custom`].

pub mod bridge;
pub mod endpoint;
pub mod frames;
pub mod ros;
