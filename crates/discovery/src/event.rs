//! What comes in and what comes out: ways, events, counters.

use std::sync::Arc;

use crate::discovery::Locator;
use crate::endpoint::{Endpoint, EndpointId, Incompatible};
use crate::wire::NodeId;

/// To whom a datagram goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// To the multicast or broadcast group and to every address of [`Discovery::unicast_peers`].
    Everyone,
    /// To this address.
    One(Locator),
}

/// How a datagram came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    /// On the group's socket.
    Group,
    /// On the node's own socket.
    Unicast,
}

/// Why a node is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It said so.
    Left,
    /// Nothing was heard of it for its lifetime.
    Silent,
    /// Another node has taken its address: it was restarted.
    Restarted,
    /// Its process is known to be dead.
    Died,
}

/// What has become known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A node is there.
    Joined {
        /// Its number.
        node: NodeId,
        /// Where its data socket is.
        locator: Locator,
        /// It shares memory with this one.
        same_host: bool,
        /// Its name for people.
        name: String,
    },
    /// A node is gone; its endpoints have been reported as [`Event::Unmatched`] before.
    Gone {
        /// Its number.
        node: NodeId,
        /// Why.
        reason: Reason,
    },
    /// One of our endpoints has found a partner.
    Matched {
        /// Ours.
        local: EndpointId,
        /// The partner's node.
        node: NodeId,
        /// The partner.
        remote: Arc<Endpoint>,
    },
    /// The partner is gone.
    Unmatched {
        /// Ours.
        local: EndpointId,
        /// The partner's node.
        node: NodeId,
        /// The partner.
        remote: EndpointId,
    },
    /// A partner, a reader, is relayed now, or no longer.
    Changed {
        /// Ours.
        local: EndpointId,
        /// The partner's node.
        node: NodeId,
        /// The partner.
        remote: Arc<Endpoint>,
    },
    /// A reader of another node beside one of ours, on the same topic, has come, gone or changed.
    Beside {
        /// Ours, a reader.
        local: EndpointId,
    },
    /// An endpoint of the same topic does not fit to ours. Reported once for a pair; the other node
    /// reports the same.
    Mismatched {
        /// Ours.
        local: EndpointId,
        /// The other node.
        node: NodeId,
        /// The other's description.
        remote: Arc<Endpoint>,
        /// Why.
        why: Incompatible,
    },
}

/// What came and went. Each saturates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Datagrams taken in.
    pub received: u64,
    /// Datagrams that break the specification.
    pub malformed: u64,
    /// Datagrams of another domain.
    pub other_domain: u64,
    /// Datagrams given out for sending.
    pub sent: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Nodes or pages not taken in because a limit was reached.
    pub refused_full: u64,
    /// Events dropped because nobody fetched them.
    pub events_dropped: u64,
}
