//! Noctule for programs: what a node says to another, in bytes.
//!
//! Cores decide and never see a socket; this crate is where their decisions become datagrams.
#![forbid(unsafe_code)]

pub mod local;
pub mod sync;
