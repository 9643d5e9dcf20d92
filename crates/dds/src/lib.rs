//! A DDS network, such as ROS 2's, and a Noctule bus, joined topic by topic.
//!
//! # Problem
//!
//! Robots are full of programs that speak DDS and that nobody will rewrite. They should see the bus's topics
//! as their own and the bus theirs, under the same names and types, without anything being compiled for it.
//!
//! # Approach
//!
//! Both sides carry the same bytes: CDR with its encapsulation header. So a sample is copied, and what there is to do
//! is to decide:
//!
//! - [`plan`](plan::plan): from both sides' discovery, which topics to exchange, with which quality of service, and
//!   what does not fit. A pure function.
//! - `cyclone`: the engine, Eclipse Cyclone DDS, without pointers.
//! - `bridge`: the thread that plans. A topic with a writer is announced on the other side at once, and read only while somebody
//!   there reads it (`route`).
//! - [`services`]: requests and replies, which have one asker.
//! - [`ros_variables`]: what ROS 2's discovery variables ask for.
//! - `ros_graph`: ROS 2's list of nodes, both ways.
//! - `from_dds`, `to_dds`: the threads that pass samples, each for many topics. The thread that receives a sample also sends it.
//!
//! No loops: samples of one's own are not taken from either side. Bridges that see each other on both sides
//! (they name their DDS participants in their node's name) exchange nothing of each other's, and all but one stand by.
//!
//! The engine is behind the feature `cyclone`, for it wants a C compiler, cmake and libclang. Why this engine, and figures:
//! `docs/design/gateway.md`. How to use it: `docs/guide/gateway.md`.
#![cfg_attr(not(feature = "cyclone"), forbid(unsafe_code))]

#[cfg(feature = "cyclone")]
mod behind;
#[cfg(feature = "cyclone")]
pub mod bridge;
#[cfg(feature = "cyclone")]
mod counters;
#[cfg(feature = "cyclone")]
pub mod cyclone;
pub mod discovery_info;
#[cfg(feature = "cyclone")]
mod from_dds;
pub mod plan;
#[cfg(feature = "cyclone")]
mod reader_thread;
#[cfg(feature = "cyclone")]
mod ros_graph;
pub mod ros_variables;
#[cfg(feature = "cyclone")]
mod route;
pub mod services;
#[cfg(feature = "cyclone")]
mod shared;
#[cfg(any(feature = "cyclone", test))]
mod sibling_bridges;
#[cfg(feature = "cyclone")]
mod to_dds;
pub mod user_data;

pub use noctule_bridge::{payload, rules};
