//! The clock exchange between two processes.

pub mod wire;
