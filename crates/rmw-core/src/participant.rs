//! A node of a context, and what all nodes of a context have open.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use noctule::{
    EndpointId, EndpointKind, KnownEndpoint, Node, NodeId, ReadError, ReceiveError, Subscriber,
    TypedSubscriber,
};
use noctule_bridge::behind::{KnownBehind, NodesBehind, subscriber};

use crate::behind;
use crate::door::{Door, Task};
use crate::gid::Gid;
use crate::graph::{Entry, NodeName, Way};
use crate::names;
use crate::quality::Quality;
use crate::signal::{Waitable, lock};
use crate::status::Statuses;

/// A publisher, as the hub looks after it.
pub(crate) trait Watched: Send + Sync {
    /// Looks at its readers and its deadline; false if it is busy and must be looked at again.
    fn refresh(&self) -> bool;

    /// DEADLINE that it offers.
    fn deadline(&self) -> Option<Duration>;

    /// Its events.
    fn statuses(&self) -> &Statuses;
}

/// One node of a context.
#[derive(Debug)]
pub struct Participant {
    pub(crate) node: Node,
    pub(crate) name: NodeName,
    pub(crate) graph: Waitable,
    /// Set when the library says that something has changed.
    pub(crate) news: Arc<Waitable>,
    pub(crate) door: Arc<Door>,
    pub(crate) registry: Arc<Registry>,
}

type WeakWriter = Weak<dyn Watched>;
type Names = BTreeMap<(NodeId, EndpointId), Gid>;

/// Participants, endpoints and writers that this context has open.
#[derive(Default)]
pub(crate) struct Registry {
    pub(crate) participants: Mutex<Vec<Weak<Participant>>>,
    pub(crate) own: Mutex<BTreeMap<u64, Entry>>,
    pub(crate) writers: Mutex<BTreeMap<u64, WeakWriter>>,
    /// Publishers of this context that were opened anew keep the identity they began with.
    renamed: Mutex<Names>,
    /// Nodes behind bridges.
    pub(crate) behind: Mutex<KnownBehind>,
    /// The node that receives the lists of these, and the number of that task.
    pub(crate) listener: Mutex<Option<(NodeId, u64)>>,
    last: AtomicU64,
}

impl Participant {
    /// Its name.
    pub fn name(&self) -> &NodeName {
        &self.name
    }

    /// Rings when the graph has changed.
    pub fn graph(&self) -> &Waitable {
        &self.graph
    }

    /// Tells other nodes what a type is made of; gives its hash, 0 if the text is no description.
    pub fn describe(&self, text: &str) -> u64 {
        self.node.describe(text).unwrap_or(0)
    }

    /// Receives the lists of bridges from now on, if no node of the context does.
    ///
    /// Without it programs work all the same: only nodes behind bridges have no names.
    pub(crate) fn listen(&self) {
        let mut listener = lock(&self.registry.listener);
        if listener.is_some() {
            return;
        }
        if let Ok(subscriber) = subscriber(&self.node) {
            let number = self.registry.number();
            *listener = Some((self.node.id(), number));
            let registry = Arc::clone(&self.registry);
            self.door.add(number, Box::new(Lists { subscriber, registry }));
        }
    }

    /// If it received the lists, another does from now on.
    fn leave(&self) {
        let mine = lock(&self.registry.listener).take_if(|(node, _)| *node == self.node.id());
        if let Some((_, number)) = mine {
            self.door.remove(number);
            if let Some(next) = self.registry.participants().first() {
                next.listen();
            }
        }
    }

    /// Graph entry of an endpoint of this node.
    pub(crate) fn entry(
        &self,
        way: Way,
        topic: &str,
        (type_name, type_hash): (&str, u64),
        gid: Gid,
    ) -> Entry {
        Entry {
            node: self.name.clone(),
            way,
            topic: topic.to_owned(),
            type_name: type_name.to_owned(),
            type_hash,
            rihs01: None,
            quality: Quality::of(&noctule::Qos::default()),
            gid,
        }
    }
}

impl Drop for Participant {
    fn drop(&mut self) {
        self.leave();
        self.door.look();
    }
}

impl Registry {
    /// A number for something that the hub has.
    pub(crate) fn number(&self) -> u64 {
        self.last.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(crate) fn participants(&self) -> Vec<Arc<Participant>> {
        let mut participants = lock(&self.participants);
        participants.retain(|participant| participant.strong_count() > 0);
        participants.iter().filter_map(Weak::upgrade).collect()
    }

    /// Rings every node's graph.
    pub(crate) fn ring(&self) {
        self.participants().iter().for_each(|participant| participant.graph.set());
    }

    /// Shows one more endpoint, or two.
    pub(crate) fn show(&self, entries: impl IntoIterator<Item = (u64, Entry)>) {
        lock(&self.own).extend(entries);
        self.ring();
    }

    /// Shows them no more.
    pub(crate) fn hide(&self, numbers: &[u64]) {
        let mut own = lock(&self.own);
        numbers.iter().for_each(|number| drop(own.remove(number)));
        drop(own);
        self.ring();
    }

    pub(crate) fn rename(&self, endpoint: (NodeId, EndpointId), gid: Gid) {
        lock(&self.renamed).insert(endpoint, gid);
    }

    pub(crate) fn forget_name(&self, endpoint: (NodeId, EndpointId)) {
        lock(&self.renamed).remove(&endpoint);
    }

    pub(crate) fn gid(&self, node: NodeId, endpoint: EndpointId) -> Gid {
        lock(&self.renamed).get(&(node, endpoint)).copied().unwrap_or(Gid::of(node, endpoint))
    }

    /// Whether a node is of this context.
    pub(crate) fn is_own(&self, node: NodeId) -> bool {
        self.participants().iter().any(|own| own.node.id() == node)
    }

    /// Endpoints that other contexts and processes have open.
    pub(crate) fn known(&self) -> Vec<KnownEndpoint> {
        let participants = self.participants();
        let Some(viewer) = participants.first() else { return Vec::new() };
        let is_own = |id: NodeId| participants.iter().any(|own| own.node.id() == id);
        let mut known = viewer.node.endpoints();
        known.retain(|known| !is_own(known.node));
        known
    }

    /// The same, as ROS 2 sees it.
    pub(crate) fn others(&self) -> Vec<Entry> {
        self.known().iter().filter(|known| !behind::is_list(known)).map(entry).collect()
    }

    /// Everything; what a bridge has open for nodes behind it is theirs.
    pub(crate) fn entries(&self) -> Vec<Entry> {
        let others = self.known();
        let mut entries: Vec<Entry> = lock(&self.own).values().cloned().collect();
        let behind = lock(&self.behind);
        for known in others.iter().filter(|known| !behind::is_list(known)) {
            let nodes = behind::stands_for(&behind, known);
            if nodes.is_empty() {
                entries.push(entry(known));
            }
            entries.extend(nodes.into_iter().map(|node| Entry { node, ..entry(known) }));
        }
        entries
    }

    pub(crate) fn nodes(&self) -> Vec<NodeName> {
        let participants = self.participants();
        let mut nodes: Vec<NodeName> = participants.iter().map(|own| own.name.clone()).collect();
        let Some(viewer) = participants.first() else { return nodes };
        let is_own = |id: NodeId| participants.iter().any(|own| own.node.id() == id);
        let others = viewer.node.nodes().into_iter().filter(|other| !is_own(other.id));
        nodes.extend(others.map(|other| node_name(&other.name)));
        nodes.extend(behind::nodes(&lock(&self.behind)));
        nodes
    }
}

fn node_name(bus: &str) -> NodeName {
    let (namespace, name) = names::split(bus);
    NodeName { namespace, name, enclave: "/".to_owned() }
}

fn entry(known: &KnownEndpoint) -> Entry {
    let endpoint = &known.endpoint;
    Entry {
        node: node_name(&known.node_name),
        way: match endpoint.kind {
            EndpointKind::Writer => Way::Writes,
            EndpointKind::Reader => Way::Reads,
        },
        topic: endpoint.topic.clone(),
        type_name: endpoint.type_name.clone(),
        type_hash: endpoint.type_hash,
        rihs01: None,
        quality: match endpoint.kind {
            EndpointKind::Writer => Quality::of(&endpoint.qos),
            EndpointKind::Reader => Quality::of_reader(&endpoint.qos),
        },
        gid: Gid::of(known.node, endpoint.id),
    }
}

/// Receives the lists of bridges for all nodes of the context, as long as its node is there.
struct Lists {
    subscriber: TypedSubscriber<NodesBehind>,
    registry: Arc<Registry>,
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
        behind.retain(|bridge| there.iter().any(|known| known.node == bridge && behind::is_list(known)));
    }
}

impl AsMut<Subscriber> for Lists {
    fn as_mut(&mut self) -> &mut Subscriber {
        self.subscriber.as_mut()
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Registry")
    }
}
