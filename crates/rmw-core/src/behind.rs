//! Nodes of ROS 2 behind bridges of the bus: in the graph under their own names, with what the bridge has open for them.

use noctule::{EndpointKind, KnownEndpoint};
use noctule_bridge::behind::{KnownBehind, NodeBehind, TOPIC};
use noctule_bridge::names::service_end;

use crate::graph::NodeName;

/// Whether an endpoint is none of ROS 2's, but of bridges among each other.
pub(crate) fn is_list(known: &KnownEndpoint) -> bool {
    known.endpoint.topic == TOPIC
}

/// All nodes behind bridges.
pub(crate) fn nodes(behind: &KnownBehind) -> impl Iterator<Item = NodeName> {
    behind.by_bridge().map(|(_, node)| name(node))
}

/// The nodes that an endpoint of a bridge stands for; none if it is the bridge's own, or no bridge's.
pub(crate) fn stands_for(behind: &KnownBehind, known: &KnownEndpoint) -> Vec<NodeName> {
    let is_writer = known.endpoint.kind == EndpointKind::Writer;
    let topic = &known.endpoint.topic;
    let has = |node: &&NodeBehind| match service_end(topic) {
        // A server reads requests and writes replies.
        Some((service, is_reply)) => is_reply == is_writer && node.serves.contains(&service),
        None if is_writer => node.publishes.contains(topic),
        None => node.subscribes.contains(topic),
    };
    behind.of(known.node).iter().filter(has).map(name).collect()
}

fn name(node: &NodeBehind) -> NodeName {
    NodeName { namespace: node.namespace.clone(), name: node.name.clone(), enclave: "/".to_owned() }
}
