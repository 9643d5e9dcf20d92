//! The Noctule latency lab: experiments, peers, statistics, reports.
//!
//! [`run`] is what a run leaves behind, [`samples`] the raw material, [`statistics`] and
//! [`cell_statistics`] the rules by which one becomes the other, [`merge`] joins the trials.

pub mod cell_statistics;
pub mod compare;
#[cfg(test)]
mod fixture;
pub mod import;
pub mod merge;
pub mod notation;
pub mod random;
pub mod report;
pub mod run;
pub mod samples;
pub mod statistics;
