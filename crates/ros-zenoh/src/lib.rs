//! How ROS 2 speaks Zenoh (`rmw_zenoh`, Humble to Lyrical), and what a bridge between that and a Noctule bus exchanges.
//!
//! # Problem
//!
//! Programs of ROS 2 on Zenoh find each other by the names of keys and tokens alone: one wrong sign, and nothing passes, without an error.
//! An attachment of a wrong length ends their process.
//!
//! # Approach
//!
//! Everything that reads, writes or decides is here, without Zenoh, a socket or a clock:
//!
//! - [`key`]: keys of topics and services. [`token`], [`qos`]: the liveliness tokens that are ROS 2's graph. [`attachment`]: what goes
//!   with each sample.
//! - [`graph`]: which nodes and endpoints are there, from the tokens that came and went.
//! - [`plan`](plan::plan), [`services`]: from both sides' endpoints, what to exchange and what cannot be. Pure functions.
//! - [`announce`]: the tokens by which ROS 2 sees nodes and endpoints of the bus.
//! - [`site`]: between two gateways of Noctule: keys of their own, and the exchange by which each knows the other's clock.
//!   [`hold`]: samples that come before that.
//!
//! The program that joins this to Zenoh's own library is `bridges/zenoh`. How to use it: `docs/guide/zenoh.md`.
#![forbid(unsafe_code)]

pub mod announce;
pub mod attachment;
pub mod graph;
pub mod hold;
pub mod key;
pub mod plan;
pub mod qos;
pub mod services;
pub mod site;
pub mod token;
