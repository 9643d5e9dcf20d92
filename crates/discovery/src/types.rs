//! The words that every other module here uses.

use std::net::SocketAddr;

/// Marker of the clock that `now` is read from: any monotonic clock of this node.
pub enum Local {}

/// Where a node's socket is.
pub type Locator = SocketAddr;
