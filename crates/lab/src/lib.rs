//! The Noctule latency lab: experiments, peers, statistics, reports.
//!
//! [`run`] is what a run leaves behind, [`samples`] the raw material, [`statistics`] and
//! [`cell_statistics`] the rules by which one becomes the other, [`merge`] joins the trials.

pub mod cell_statistics;
pub mod comparison_floor;
pub mod directory;
pub mod engine;
pub mod floors;
pub mod host;
mod judge;
pub mod merge;
mod network;
mod node_process;
pub mod plan;
pub mod run;
pub mod samples;
pub mod scenario;
pub mod session;
pub mod statistics;
pub mod text_table;
