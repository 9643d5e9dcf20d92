//! A swarm whose drones know how old their neighbours' states are.
//!
//! # Problem
//!
//! A drone avoids others by their states, which it receives over a radio that is shared, delays and loses. A state held
//! as it came is wrong by speed × age; one that is extrapolated by its age is wrong by what the other may have done since.
//! Neither number is visible to a rule that takes positions for facts.
//!
//! # Approach
//!
//! Nothing here reads a clock or touches a socket: one core runs in a simulation of a thousand drones and on a robot.
//!
//! - [`vehicle`]: a quadrotor that follows velocity commands with limited acceleration.
//! - [`state`]: the message drones send, 80 bytes (`docs/spec/swarm-state.md`).
//! - [`neighbours`]: the last state of each neighbour, brought to the present, with a radius in which the neighbour
//!   provably is.
//! - [`avoid`]: a velocity near the wanted one that keeps that radius free; [`linear`] is its solver.
//! - [`rate`]: how many states a second the channel has room for.
//! - [`takeoff`]: when a drone knows enough of its neighbours to leave its place.
//! - [`formation`], [`flock`]: where to go together. [`mission`]: goals, obstacles, wind.
//! - [`scenario`], [`simulation`], [`measures`]: a swarm on one air in virtual time, and what it did.
//!
//! World frame, SI units.
#![forbid(unsafe_code)]

pub mod avoid;
pub mod flock;
pub mod formation;
pub mod linear;
pub mod measures;
pub mod mission;
pub mod neighbours;
pub mod rate;
pub mod scenario;
pub mod simulation;
pub mod state;
pub mod takeoff;
pub mod vehicle;

pub use neighbours::{Estimate, Knowledge, Neighbours};
pub use scenario::Scenario;
pub use simulation::Simulation;
pub use state::State;
pub use vehicle::{Limits, Vehicle};

/// A vector in metres, metres per second, … as its name says.
pub type Vector = nalgebra::Vector3<f64>;

/// Clock of the drone whose decision it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Own {}
