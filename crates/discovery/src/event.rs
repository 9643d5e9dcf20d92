//! Inputs and outputs of discovery: destinations, events, counters.

use std::sync::Arc;

use crate::endpoint::{Endpoint, EndpointId, Incompatible};
use crate::types::Locator;
use crate::wire::NodeId;

/// The destination of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// To the multicast or broadcast group and to every address of [`Discovery::unicast_peers`](crate::Discovery::unicast_peers).
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
    /// It announced that it leaves.
    Left,
    /// No datagram of it arrived for its lifetime.
    Silent,
    /// Another node has taken its address: it was restarted.
    Restarted,
    /// Its process is known to be dead.
    Died,
    /// The table of nodes was full, and nothing of it matched.
    Displaced,
}

/// A change in the network: nodes, endpoints, matches.
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
    /// A node is reached at another address from now on.
    Moved {
        /// Its number.
        node: NodeId,
        /// Where its data socket is now.
        locator: Locator,
    },
    /// A node has shown that it can also be reached at another address: datagrams from there are its own. What is sent to it goes to its
    /// locator all the same.
    AlsoAt {
        /// Its number.
        node: NodeId,
        /// The other address.
        locator: Locator,
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

/// Counters of discovery. Each saturates.
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
    /// Nodes or pages refused because a limit was reached: in total, or of one address.
    pub refused_full: u64,
    /// Pairs of endpoints that fit and were not matched because one endpoint has too many partners.
    pub refused_matches: u64,
    /// Nodes that matched nothing and were forgotten for others because the table was full.
    pub displaced: u64,
    /// Datagrams in the name of a node from another address than its own.
    pub misplaced: u64,
    /// Path challenges given out for sending.
    pub challenged: u64,
    /// Path responses that do not fit, or came too late.
    pub refused_responses: u64,
    /// Events dropped because they were not fetched.
    pub events_dropped: u64,
}
