//! Other nodes, their endpoints, and counters of the own node, as the API gives them.

use std::net::SocketAddr;

use noctule_discovery::{Counters, Endpoint, NodeId};

use crate::envelope::RefusedCounters;
use crate::type_descriptions::DescriptionCounters;

/// Counters of what a node's sockets received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeCounters {
    /// Discovery; what no other parser accepted is malformed there.
    pub discovery: Counters,
    /// Datagrams that the seal did not let through, by reason.
    pub refused: RefusedCounters,
    /// Datagrams of a link or of the clock exchange from nodes that are not known.
    pub strangers: u64,
    /// Datagrams of discovery that one member of the swarm sealed in the name of another, and others sealed with a key that more nodes have
    /// than may speak so.
    pub impostors: u64,
    /// Datagrams of streams to a group that break the specification.
    pub malformed_group: u64,
    /// Questions for type descriptions.
    pub descriptions: DescriptionCounters,
}

/// Another node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownNode {
    /// Its number.
    pub id: NodeId,
    /// Its name, for people; it need not be unique.
    pub name: String,
    /// Where its socket is.
    pub address: SocketAddr,
    /// Whether it shares memory with this one.
    pub same_host: bool,
}

/// An endpoint of another node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownEndpoint {
    /// Its node.
    pub node: NodeId,
    /// The node's name.
    pub node_name: String,
    /// Whether the node shares memory with this one.
    pub same_host: bool,
    /// The endpoint: topic, type and QoS.
    pub endpoint: Endpoint,
}
