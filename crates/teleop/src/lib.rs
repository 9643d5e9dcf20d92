//! Tele-operation: an operator's hand, an arm that follows it, a page that shows both.
//!
//! # Problem
//!
//! The cost of a late command to an operator is an error of the tool in millimetres: its speed times the command's age. A tool that
//! knows the age can take most of it back. This crate shows both, in virtual time and live.
//!
//! # Approach
//!
//! Three processes over the library: [`master`] turns an operator's device into poses at 1 kHz, [`drive`] runs the arm's
//! controller at 4 kHz, [`page`] shows the arm in browsers and takes one operator's hand from them. Poses are
//! deadline-bound; states go by shared memory; [`recording`] keeps both as MCAP.
//!
//! - [`joint_link`]: a joint's loop that is closed over a network, its motor and its controller a process each.
//! - [`experiment`]: the same loop in virtual time, over links of `noctule-netsim`, with the hand's truth beside it.
#![forbid(unsafe_code)]

pub mod drive;
pub mod experiment;
pub mod joint_link;
pub mod lateness;
pub mod master;
pub mod messages;
pub mod page;
pub mod recording;
