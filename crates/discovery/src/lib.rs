//! Which nodes are there, and which publish what.
//!
//! # Problem
//!
//! Discovery that talks pairwise grows with the square of the swarm and drowns a radio link; discovery
//! that only multicasts is silent where an access point eats multicast; and a topic that stays quiet
//! because two sides disagree about reliability costs an afternoon.
//!
//! # Approach
//!
//! - Every node sends a small *hello* once a second: constant bytes per second per node, however many
//!   others there are. It carries a digest of what the node offers, not the offer itself.
//! - The offer (its *catalogue* of endpoints) travels in numbered pages, sent once on change. A node that finds that the digest does
//!   not match what it holds asks for what changed since it last matched; the answer goes to everyone,
//!   delayed a little so that one answer serves all that ask, and is paid from a token bucket.
//! - A newcomer's hello asks the others to say theirs early, spread over a time that grows with the
//!   number of nodes known.
//! - Matching is computed on both sides from the same two descriptions, so both can name a mismatch.
//!
//! [`Discovery`] is the state machine: `handle_*` in, `poll_*` out, `now` an argument. Drain order
//! after any `handle_*`: [`poll_event`](Discovery::poll_event) until `None`,
//! [`poll_transmit`](Discovery::poll_transmit) until `None`, then sleep until
//! [`poll_timeout`](Discovery::poll_timeout).
//!
//! Every byte: `docs/spec/discovery.md`.
#![forbid(unsafe_code)]

mod catalogue;
mod config;
mod discovery;
mod endpoint;
mod event;
mod neighbour;
mod path;
mod relay;
mod shares;
mod token_bucket;
pub mod trace;
mod types;
mod wire;

pub use config::{DiscoveryConfig, Identity};
pub use discovery::{Discovery, MATCHES_LIMIT, MATCHES_PER_NODE_LIMIT, NODES_LIMIT, STATIC_PEERS_LIMIT};
pub use endpoint::{
    Durability, Endpoint, EndpointId, EndpointKind, Incompatible, NAME_BYTES_MAX, NameError, Qos,
    Reliability, UnknownQosWord, incompatible,
};
pub use event::{Counters, Destination, Event, Reason, Via};
pub use relay::{can_be_handed_on, stands_for};
pub use shares::{NODES_PER_ADDRESS_LIMIT, PAGES_PER_ADDRESS_LIMIT};
pub use types::{Local, Locator};
pub use wire::{DATAGRAM_BYTES_MAX, Malformed, NODE_NAME_BYTES_MAX, NodeId, PAGES_LIMIT, domain, sender};

/// The wire format alone, for tools and fuzzing.
pub mod datagram {
    pub use crate::wire::{Body, Datagram, Hello, Page, PageSet};
}
