//! A context of ROS 2: its nodes, what they have open, and the hub that serves them.

use std::collections::BTreeMap;
use std::fmt;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Instant as Timer;

use noctule::{EndpointId, EndpointKind, KnownEndpoint, Node, NodeError, NodeId, Notice};
use noctule_bridge::type_hashes::TypeHashes;

use crate::gid::Gid;
use crate::graph::{Entry, NodeName, Way};
use crate::hub::{Door, Hub};
use crate::names;
use crate::quality::Quality;
use crate::signal::{Waitable, lock};
use crate::writer::Writer;

/// Called with each notice of a node; true: a warning, false: for those who look closely.
pub type Notify = Arc<dyn Fn(bool, &str) + Send + Sync>;

/// How the nodes of a context are opened.
#[derive(Clone)]
pub struct Settings {
    /// `ROS_DOMAIN_ID`.
    pub domain: u32,
    /// Only nodes of this host.
    pub localhost: bool,
    /// Addresses of other hosts, as `ROS_STATIC_PEERS` has them.
    pub peers: Vec<String>,
    /// Of this process.
    pub enclave: String,
    /// Where notices go.
    pub notify: Notify,
}

/// One context.
#[derive(Debug)]
pub struct Context {
    settings: Settings,
    hub: Hub,
    registry: Arc<Registry>,
    hashes: Mutex<TypeHashes>,
}

/// One node of a context.
#[derive(Debug)]
pub struct Participant {
    pub(crate) node: Node,
    name: NodeName,
    graph: Waitable,
    /// Set when the library says that something has changed.
    pub(crate) news: Arc<Waitable>,
    pub(crate) door: Arc<Door>,
    pub(crate) registry: Arc<Registry>,
}

type Names = BTreeMap<(NodeId, EndpointId), Gid>;

/// What this context has open, beside the nodes themselves.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    participants: Mutex<Vec<Weak<Participant>>>,
    pub(crate) own: Mutex<BTreeMap<u64, Entry>>,
    pub(crate) writers: Mutex<BTreeMap<u64, Weak<Writer>>>,
    /// Publishers of this context that were opened anew keep the identity they began with.
    renamed: Mutex<Names>,
    last: AtomicU64,
}

impl Context {
    /// A context without nodes.
    ///
    /// # Errors
    /// The hub's thread cannot be started.
    pub fn new(settings: Settings) -> std::io::Result<Context> {
        let registry = Arc::new(Registry::default());
        let hub = Hub::start(Arc::clone(&registry))?;
        Ok(Context { settings, hub, registry, hashes: Mutex::default() })
    }

    /// Opens a node.
    ///
    /// # Errors
    /// As [`NodeBuilder::open`](noctule::NodeBuilder::open).
    pub fn open(&self, namespace: &str, name: &str) -> Result<Arc<Participant>, NodeError> {
        let (door, notify) = (Arc::clone(self.hub.door()), Arc::clone(&self.settings.notify));
        let news = Arc::new(Waitable::default());
        let changed = Arc::clone(&news);
        let bus_name = names::on_bus(&names::full_name(namespace, name));
        let mut builder = Node::builder(&bus_name)
            .domain(self.settings.domain)
            .on_change(move || {
                changed.set();
                door.look();
            })
            .on_notice(move |notice| notify(is_warning(notice), &notice.to_string()));
        if self.settings.localhost {
            builder = builder.interface(Ipv4Addr::LOCALHOST);
        }
        for peer in &self.settings.peers {
            builder = builder.static_peer(peer);
        }
        let name = NodeName {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            enclave: self.settings.enclave.clone(),
        };
        let (door, registry) = (Arc::clone(self.hub.door()), Arc::clone(&self.registry));
        let node = builder.open()?;
        let participant =
            Arc::new(Participant { node, name, graph: Waitable::default(), news, door, registry });
        lock(&self.registry.participants).push(Arc::downgrade(&participant));
        self.hub.door().look();
        Ok(participant)
    }

    /// Every end of every topic that this context has or knows of.
    pub fn entries(&self) -> Vec<Entry> {
        self.registry.entries()
    }

    /// Every node.
    pub fn nodes(&self) -> Vec<NodeName> {
        self.registry.nodes()
    }

    /// The same entries, with ROS 2's hashes of their types as far as the nodes that have them answer within 100 ms each.
    pub fn with_hashes(&self, mut entries: Vec<Entry>) -> Vec<Entry> {
        let Some(viewer) = self.registry.participants().into_iter().next() else { return entries };
        let is_missing = |hash: u64| {
            hash != 0 && entries.iter().any(|entry| entry.rihs01.is_none() && entry.type_hash == hash)
        };
        let mut asked = viewer.node.endpoints();
        asked.retain(|known| is_missing(known.endpoint.type_hash));
        let mut hashes = lock(&self.hashes);
        hashes.learn(&viewer.node, &asked, Timer::now());
        for entry in entries.iter_mut().filter(|entry| entry.rihs01.is_none()) {
            entry.rihs01 = hashes.known().get(&entry.type_hash).and_then(|text| rihs01(text));
        }
        entries
    }
}

/// The bytes of `RIHS01_` and 64 hexadecimal digits.
fn rihs01(text: &str) -> Option<[u8; 32]> {
    let digits = text.strip_prefix("RIHS01_").filter(|digits| digits.len() == 64 && digits.is_ascii())?;
    let mut bytes = [0; 32];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(digits.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(bytes)
}

/// What ROS logs as a warning; the rest is the same at every start of every program.
fn is_warning(notice: &Notice) -> bool {
    !matches!(notice, Notice::NoKey { .. } | Notice::Undescribed { .. })
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

    /// What this node shows of an endpoint of its own.
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

    /// Those of other contexts and processes.
    pub(crate) fn others(&self) -> Vec<Entry> {
        let participants = self.participants();
        let Some(viewer) = participants.first() else { return Vec::new() };
        let is_own = |id: NodeId| participants.iter().any(|own| own.node.id() == id);
        let known = viewer.node.endpoints().into_iter();
        known.filter(|known| !is_own(known.node)).map(|known| entry(&known)).collect()
    }

    pub(crate) fn entries(&self) -> Vec<Entry> {
        let others = self.others();
        lock(&self.own).values().cloned().chain(others).collect()
    }

    fn nodes(&self) -> Vec<NodeName> {
        let participants = self.participants();
        let mut nodes: Vec<NodeName> = participants.iter().map(|own| own.name.clone()).collect();
        let Some(viewer) = participants.first() else { return nodes };
        let is_own = |id: NodeId| participants.iter().any(|own| own.node.id() == id);
        let others = viewer.node.nodes().into_iter().filter(|other| !is_own(other.id));
        nodes.extend(others.map(|other| node_name(&other.name)));
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
        quality: Quality::of(&endpoint.qos),
        gid: Gid::of(known.node, endpoint.id),
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings").field("domain", &self.domain).finish_non_exhaustive()
    }
}
