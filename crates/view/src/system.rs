//! What pages look at: a running system or a recording.

use crate::live::Live;
use crate::recorded::Recorded;

/// What pages look at.
pub enum System {
    /// A running one.
    Live(Box<Live>),
    /// A recording.
    Recorded(Box<Recorded>),
}
