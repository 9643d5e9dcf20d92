//! A context of ROS 2: its nodes, what they have open, and the hub that serves them.

use std::fmt;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use std::time::Instant as Timer;

use noctule::{Node, NodeError, Notice};
use noctule_bridge::type_hashes::TypeHashes;

use crate::graph::{Entry, NodeName};
use crate::hub::Hub;
use crate::names;
use crate::participant::{Participant, Registry};
use crate::signal::{Waitable, lock};

/// Called with each notice of a node; true: a warning, false: for those who look closely.
pub type Notify = Arc<dyn Fn(bool, &str) + Send + Sync>;

/// How the nodes of a context are opened.
#[derive(Clone)]
pub struct Settings {
    /// `ROS_DOMAIN_ID`.
    pub domain: u32,
    /// Limits discovery to nodes of this host.
    pub localhost: bool,
    /// Addresses of other hosts, as `ROS_STATIC_PEERS` has them.
    pub peers: Vec<String>,
    /// Enclave of this process.
    pub enclave: String,
    /// Callback for notices.
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
        participant.listen();
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

/// True for notices that ROS logs as a warning; the others are the same at every start of every program.
fn is_warning(notice: &Notice) -> bool {
    !matches!(notice, Notice::NoKey { .. } | Notice::Undescribed { .. })
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings").field("domain", &self.domain).finish_non_exhaustive()
    }
}
