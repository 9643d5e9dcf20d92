//! Requests to a node of this host.

use std::sync::Arc;

use noctule_discovery::{Endpoint, EndpointId, NodeId};

use crate::node::guid::Guid;
use crate::node::ring_handshake::Packet;

/// A writer and its node.
pub(super) type Described = (NodeId, Arc<Endpoint>);

/// Request of one of our readers for a writer's ring.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) reader: EndpointId,
    pub(super) writer: Described,
    pub(super) ask: Packet,
    /// Drawn for this question; the answer proves that it is one to it.
    pub(super) number: u64,
    /// The reader has not let go of it meanwhile.
    pub(super) is_wanted: bool,
}

impl Question {
    pub(super) fn is_about(&self, writer: Guid, reader: EndpointId) -> bool {
        self.is_wanted && self.reader == reader && (self.writer.0, self.writer.1.id) == writer
    }
}
