//! Commands of a node's state to its thread about other processes of this host, which take system calls.

use std::sync::Arc;

use noctule_discovery::{Endpoint, EndpointId, NodeId};
use noctule_shm_ring::ReaderId;

use super::guid::Guid;

/// One order to the node's thread.
#[derive(Debug)]
pub(super) enum Command {
    /// Get the ring of a writer, of any node, from a node of this host for one of our readers.
    Attach { via: NodeId, writer: (NodeId, Arc<Endpoint>), reader: EndpointId },
    /// Let go of it.
    Release { via: NodeId, writer: Guid, reader: EndpointId },
    /// Announce to the readers that this node relays a writer of another host to that it is not received here any more.
    End { writer: Guid },
    /// The node is gone, and its connection with it.
    Forget { node: NodeId },
    /// Say whose a reader of one of our writers' rings is, for which that writer waits.
    NameReader { writer: EndpointId, reader: ReaderId },
    /// Listen to these channels, a bit each, and no others.
    Listen { channels: u16 },
}
