//! The Noctule latency lab: experiments, peers, statistics, reports.
//!
//! [`run`] is what a run leaves behind, [`samples`] the raw material, [`statistics`] the rules by
//! which one becomes the other.

pub mod floors;
pub mod run;
pub mod samples;
pub mod statistics;
