//! How the rooms of a node name an endpoint together with its node.

use noctule_discovery::{EndpointId, NodeId};

/// An endpoint of another node, or of this one.
pub(super) type Guid = (NodeId, EndpointId);
