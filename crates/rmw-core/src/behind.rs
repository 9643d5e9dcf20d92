//! Nodes of ROS 2 behind bridges of the bus: in the graph under their own names, with what the bridge has open for them.

use std::sync::Arc;

use noctule::{EndpointKind, KnownEndpoint, ReadError, ReceiveError, Subscriber, TypedSubscriber};
use noctule_bridge::behind::{KnownBehind, NodeBehind, NodesBehind, TOPIC, subscriber};
use noctule_bridge::names::service_end;

use crate::door::Task;
use crate::graph::NodeName;
use crate::participant::{Participant, Registry};
use crate::signal::lock;

/// Receives the lists for all nodes of the context, as long as its node is there.
struct Lists {
    subscriber: TypedSubscriber<NodesBehind>,
    registry: Arc<Registry>,
}

/// Has this node receive the lists of bridges, if none of its context does.
///
/// Without it programs work all the same: only nodes behind bridges have no names.
pub(crate) fn listen(participant: &Participant) {
    let registry = &participant.registry;
    let mut listener = lock(&registry.listener);
    if listener.is_some() {
        return;
    }
    if let Ok(subscriber) = subscriber(&participant.node) {
        let number = registry.number();
        *listener = Some((participant.node.id(), number));
        let task = Lists { subscriber, registry: Arc::clone(registry) };
        participant.door.add(number, Box::new(task));
    }
}

/// A node of the context goes: if it received the lists, another does from now on.
pub(crate) fn leave(participant: &Participant) {
    let registry = &participant.registry;
    let mine = lock(&registry.listener).take_if(|(node, _)| *node == participant.node.id());
    if let Some((_, number)) = mine {
        participant.door.remove(number);
        if let Some(next) = registry.participants().first() {
            listen(next);
        }
    }
}

impl Task for Lists {
    fn drain(&mut self) -> bool {
        let mut is_new = false;
        loop {
            match self.subscriber.take() {
                Ok(Some(list)) => {
                    is_new |= lock(&self.registry.behind).insert(list.info().publisher, list.into_value());
                }
                Ok(None) => break,
                Err(ReceiveError::Take(error)) if error.cause == ReadError::Forked => return false,
                // The library has counted it; the next one may be of another bridge.
                Err(_) => {}
            }
        }
        if is_new {
            self.registry.ring();
        }
        true
    }

    fn look(&mut self) {
        let mut behind = lock(&self.registry.behind);
        // Read after the lists were taken: whose list is here has been in discovery.
        let there = self.registry.known();
        behind.retain(|bridge| there.iter().any(|known| known.node == bridge && is_list(known)));
    }
}

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

impl AsMut<Subscriber> for Lists {
    fn as_mut(&mut self) -> &mut Subscriber {
        self.subscriber.as_mut()
    }
}
