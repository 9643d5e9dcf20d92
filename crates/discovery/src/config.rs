//! Identity of a node, and the intervals and limits of its discovery.

use noctule_timebase::Span;

use crate::wire::NodeId;

/// The identity of a node: number, name, host, data port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Random, drawn at every start.
    pub id: NodeId,
    /// For people; longer than 64 bytes is cut at a character.
    pub name: String,
    /// Nodes with the same number share memory.
    pub host: u64,
    /// UDP port of the node's own socket.
    pub port: u16,
}

/// The rhythm, and what it may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiscoveryConfig {
    /// Nodes of different domains do not see each other. Default 0.
    pub domain: u32,
    /// The port of a host that passes a datagram on to all nodes there, if there is such a port. Default none.
    pub well_known_port: Option<u16>,
    /// Between two hellos in the long run; each is shifted by up to a tenth. Default 1 s.
    pub interval: Span,
    /// How long a node counts as present after its last hello; it is probed before it is given up. In a swarm
    /// of 16 and more a twelfth longer for each doubling. Default 5 s.
    pub lifetime: Span,
    /// Bytes per second for all that is not the regular hello. Default 16 KiB/s.
    pub budget_bytes_per_s: u32,
    /// That budget can be saved up to this. Default 128 KiB.
    pub budget_saved_bytes: u32,
}

impl Default for DiscoveryConfig {
    fn default() -> DiscoveryConfig {
        DiscoveryConfig {
            domain: 0,
            well_known_port: None,
            interval: Span::from_s(1),
            lifetime: Span::from_s(5),
            budget_bytes_per_s: 16 << 10,
            budget_saved_bytes: 128 << 10,
        }
    }
}
