//! The Noctule latency lab: experiments, peers, statistics, reports.
//!
//! The way of a run: [`scenario`] says what to measure, [`plan`] turns it into cells, [`engine`] runs
//! them with the peers of [`directory`], a judge holds every count against every other, [`session`]
//! joins it all into a [`run`] with its raw [`samples`], and [`report`] makes files of them.
//! [`statistics`] and [`cell_statistics`] are the rules from samples to figures, [`merge`] joins trials.

mod board_peers;
pub mod built_in;
mod busy_cores;
pub mod cell_statistics;
mod clock_pair;
mod clock_translation;
pub mod compare;
pub mod comparison_floor;
pub mod engine;
pub mod fact_table;
#[cfg(test)]
mod fixture;
pub mod floors;
mod formats_peer;
pub mod host;
pub mod import;
mod judge;
mod library_peer;
pub mod link_record;
pub mod merge;
mod network;
mod node_process;
pub mod notation;
pub mod peer_manifest;
pub mod peer_registry;
mod peer_session;
pub mod peers;
pub mod plan;
pub mod random;
pub mod report;
pub mod run;
pub mod samples;
pub mod scenario;
mod serial_line;
pub mod session;
pub mod statistics;
pub mod sync;
pub mod text_table;
pub mod trace;
mod trial;

pub use board_peers::DDS_BRIDGE;
