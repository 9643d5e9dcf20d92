//! The words that every other module here uses.

use std::net::SocketAddr;

pub use noctule_timebase::Local;

/// Where a node's socket is.
pub type Locator = SocketAddr;
