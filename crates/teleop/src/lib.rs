//! Tele-operation: an operator's hand, an arm that follows it, a page that shows both.
//!
//! # Problem
//!
//! What a late command costs an operator is an error of the tool in millimetres: its speed times the command's age. Who
//! knows the age can take most of it back. This crate shows both, in virtual time and live.
//!
//! # Approach
//!
//! - [`experiment`]: the whole loop in virtual time, over links of `noctule-netsim`, with the hand's truth beside it.
#![forbid(unsafe_code)]

pub mod experiment;
