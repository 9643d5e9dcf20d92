//! Noctule for programs: what a node says to another, in bytes.
//!
//! Cores decide and never see a socket; this crate is where their decisions become datagrams, and the
//! clock they are stamped with.
#![forbid(unsafe_code)]

pub mod clock;
pub mod envelope;
pub mod swarm_key;
pub mod sync;
