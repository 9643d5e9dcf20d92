//! Which nodes of ROS 2 are behind a bridge. Each bridge publishes the list of its side on the bus, whole at each change; other bridges and
//! `rmw_noctule` show these nodes under their own names.
//!
//! The list names topics and services as the bus does, not endpoints: on the bus those are the bridge's own. Bytes and limits:
//! `docs/spec/nodes-behind.md`.

use std::collections::BTreeMap;

use noctule::{Format, Node, NodeError, NodeId, Reliability, TypedPublisher, TypedSubscriber};
use serde::{Deserialize, Serialize};

/// Topic of the lists.
pub const TOPIC: &str = "nodes_behind";
/// Longest list, in bytes; nodes beyond are left out and counted.
pub const LIST_BYTES_MAX: usize = 1 << 20;
/// Nodes of one list.
pub const NODES_MAX: usize = 4096;
/// Bridges whose lists are kept.
pub const BRIDGES_MAX: usize = 64;
/// Longest namespace or name, in bytes, as in rmw.
const NAME_BYTES_MAX: usize = 255;

noctule::message! {
    /// A node behind a bridge, and what it has by the bus's names.
    #[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    pub struct NodeBehind: "noctule/msg/NodeBehind" {
        /// `/` or `/a/b`.
        pub namespace: String,
        /// Without slashes.
        pub name: String,
        /// Topics.
        pub publishes: Vec<String>,
        /// Topics.
        pub subscribes: Vec<String>,
        /// Services.
        pub serves: Vec<String>,
    }
}

noctule::message! {
    /// All nodes behind a bridge.
    #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct NodesBehind: "noctule/msg/NodesBehind" {
        /// In the order of their names.
        pub nodes: Vec<NodeBehind>,
        /// Nodes that had no room.
        pub left_out: u32,
    }
}

impl NodeBehind {
    /// Bytes in a list, at most.
    fn bytes(&self) -> usize {
        // A count, a NUL, and what aligns the next one.
        let text = |text: &String| text.len() + 8;
        let all = [&self.publishes, &self.subscribes, &self.serves];
        let names = all.iter().map(|names| 8 + names.iter().map(text).sum::<usize>());
        text(&self.namespace) + text(&self.name) + names.sum::<usize>()
    }

    /// Whether ROS 2 allows the names: lists come from a network.
    fn is_named_well(&self) -> bool {
        let fits = |text: &str| text.len() <= NAME_BYTES_MAX;
        let part = |part: &str| {
            part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        };
        let inside = self.namespace.strip_prefix('/');
        let is_namespace = inside.is_some_and(|inside| inside.is_empty() || inside.split('/').all(part));
        is_namespace && part(&self.name) && fits(&self.namespace) && fits(&self.name)
    }
}

impl NodesBehind {
    /// A list of as many of these as have room.
    pub fn of(mut nodes: Vec<NodeBehind>) -> NodesBehind {
        nodes.sort_unstable();
        let (all, mut bytes, mut kept) = (nodes.len(), 64, 0);
        for node in nodes.iter().take(NODES_MAX) {
            bytes += node.bytes();
            if bytes > LIST_BYTES_MAX {
                break;
            }
            kept += 1;
        }
        nodes.truncate(kept);
        NodesBehind { nodes, left_out: u32::try_from(all - kept).unwrap_or(u32::MAX) }
    }
}

/// Publishes lists.
///
/// # Errors
/// As [`PublisherBuilder::open`](noctule::PublisherBuilder::open).
pub fn publisher(node: &Node) -> Result<TypedPublisher<NodesBehind>, NodeError> {
    let builder = node.publisher(TOPIC).format(Format::Cdr).reliability(Reliability::Reliable).keep_last(1);
    builder.transient_local().payload_bytes_max(LIST_BYTES_MAX as u32).typed().open()
}

/// Receives lists of others.
///
/// # Errors
/// As [`SubscriberBuilder::open`](noctule::SubscriberBuilder::open).
pub fn subscriber(node: &Node) -> Result<TypedSubscriber<NodesBehind>, NodeError> {
    let builder = node.subscriber(TOPIC).reliability(Reliability::Reliable).keep_last(BRIDGES_MAX as u32);
    builder.transient_local().ignore_local(true).typed().open()
}

/// The lists of other bridges.
#[derive(Debug, Default)]
pub struct KnownBehind {
    by_bridge: BTreeMap<NodeId, Vec<NodeBehind>>,
    refused: u64,
}

impl KnownBehind {
    /// Keeps the list of a bridge in place of its last one; true if it is another. Nodes with names that ROS 2 does not allow are left out, and of
    /// too many bridges the last ones; both are counted.
    pub fn insert(&mut self, bridge: NodeId, mut list: NodesBehind) -> bool {
        if self.by_bridge.len() >= BRIDGES_MAX && !self.by_bridge.contains_key(&bridge) {
            self.refused += list.nodes.len() as u64;
            return false;
        }
        let all = list.nodes.len();
        list.nodes.truncate(NODES_MAX);
        list.nodes.retain(NodeBehind::is_named_well);
        self.refused += (all - list.nodes.len()) as u64;
        self.by_bridge.get(&bridge) != Some(&list.nodes) && {
            self.by_bridge.insert(bridge, list.nodes);
            true
        }
    }

    /// Takes all lists that have come; true if anything is different now. What cannot be read is counted by the subscriber.
    pub fn take(&mut self, subscriber: &mut TypedSubscriber<NodesBehind>) -> bool {
        let mut is_new = false;
        // As many as its history has.
        for _ in 0..BRIDGES_MAX {
            match subscriber.take() {
                Ok(Some(list)) => is_new |= self.insert(list.info().publisher, list.into_value()),
                Ok(None) => break,
                Err(_) => {}
            }
        }
        is_new
    }

    /// Forgets bridges that are gone; true if there were any.
    pub fn retain(&mut self, is_there: impl Fn(NodeId) -> bool) -> bool {
        let before = self.by_bridge.len();
        self.by_bridge.retain(|bridge, _| is_there(*bridge));
        self.by_bridge.len() != before
    }

    /// Nodes by the bridge that they are behind.
    pub fn by_bridge(&self) -> impl Iterator<Item = (NodeId, &NodeBehind)> {
        self.by_bridge.iter().flat_map(|(bridge, nodes)| nodes.iter().map(|node| (*bridge, node)))
    }

    /// Those behind one bridge.
    pub fn of(&self, bridge: NodeId) -> &[NodeBehind] {
        self.by_bridge.get(&bridge).map_or(&[], Vec::as_slice)
    }

    /// Nodes that were not kept.
    pub fn refused(&self) -> u64 {
        self.refused
    }
}

#[cfg(test)]
mod tests;
