//! Common parts of the bridges between a Noctule bus and other networks.
//!
//! # Problem
//!
//! The bridge to DDS and the one to Zenoh speak to different engines, but decide and count alike: which topics pass by their names, how old
//! is a sample that carries a time of day, which thread waits for which topics of the bus.
//!
//! # Approach
//!
//! - [`behind`]: the nodes of ROS 2 behind each bridge, as bridges announce them to each other.
//! - [`counters`]: of routes and services, for each bridge's report.
//! - [`names`]: of topics, types and nodes on the bus and in DDS and ROS 2.
//! - [`rules`]: which topics are exchanged, by name.
//! - [`ages`]: a time of day at another program → a time of the node's clock, and what is proven of it.
//! - [`offers`]: what several writers offer together.
//! - [`payload`]: CDR with and without padding.
//! - [`printable()`]: text from a network on a terminal.
//! - [`requests`]: how long the bus is given for a request that names no deadline.
//! - [`type_hashes`]: ROS 2's hashes of the types that nodes of the bus describe.
//! - [`lane`], [`orders`]: threads that each wait for many topics of the bus.
#![forbid(unsafe_code)]

pub mod ages;
pub mod behind;
pub mod counters;
pub mod lane;
pub mod names;
pub mod offers;
pub mod orders;
pub mod payload;
mod printable;
pub mod requests;
pub mod rules;
pub mod type_hashes;

pub use printable::printable;
