//! Messages with a deadline over datagrams that are lost.
#![forbid(unsafe_code)]

pub mod erasure;
pub mod loss;
mod outcome;
pub mod plan;
