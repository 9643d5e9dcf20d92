//! The clock that the controller reads.

/// The clock of the process that controls.
#[derive(Debug)]
pub enum Controlling {}
