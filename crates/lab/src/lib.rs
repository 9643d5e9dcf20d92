//! The instrument of the Noctule latency lab: experiments, statistics, comparison. It links nothing that it measures.
//!
//! The way of a run: [`scenario`] says what to measure, [`plan`] turns it into cells, [`engine`] runs
//! them with the peers of [`peer_registry`], a judge holds every count against every other, [`session`]
//! joins it all into a [`run`] with its raw [`samples`], of which the crate `lab-report` makes files.
//! [`statistics`] and [`cell_statistics`] are the rules from samples to figures, [`merge`] joins trials.

mod busy_cores;
pub mod cell_statistics;
pub mod clock_pair;
mod clock_translation;
pub mod compare;
pub mod comparison_floor;
pub mod engine;
pub mod fixture;
pub mod host;
pub mod import;
mod judge;
pub mod link_record;
pub mod merge;
pub mod network;
mod node_process;
pub mod notation;
pub mod peer_manifest;
pub mod peer_registry;
mod peer_session;
pub mod peers;
pub mod plan;
pub mod random;
pub mod run;
pub mod samples;
pub mod scenario;
mod serial_line;
pub mod session;
pub mod statistics;
pub mod trace;
mod trial;
