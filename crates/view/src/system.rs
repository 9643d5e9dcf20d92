//! Source of a page's data: a running system or a recording.

use crate::live::Live;
use crate::recorded::Recorded;

/// Source of a page's data.
pub enum System {
    /// A running one.
    Live(Box<Live>),
    /// A recording.
    Recorded(Box<Recorded>),
}
