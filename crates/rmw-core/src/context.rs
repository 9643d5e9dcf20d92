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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::quality::Quality;
    use crate::reader::Reader;
    use crate::signal::wait;
    use crate::status::Kind;
    use crate::writer::{Topic, Writer};

    /// For a machine under any load.
    const TIMEOUT: Duration = Duration::from_secs(60);
    const NODES: usize = 12;

    fn take(reader: &Reader) -> Vec<u8> {
        assert!(wait(&Arc::default(), &[reader.waitable()], Some(TIMEOUT)), "no message came");
        reader.take().expect("a message that was waited for").body.to_vec()
    }

    #[test]
    fn more_publishers_than_the_kernel_waits_for_are_heard_by_several_lanes() {
        let (peers, enclave, notify) = (Vec::new(), "/".to_owned(), Arc::new(|_, _: &str| {}));
        let domain = 3_800 + std::process::id() % 100;
        let settings = Settings { domain, localhost: true, peers, enclave, notify };
        let context = Context::new(settings).expect("a context");
        let quality = Quality::DEFAULT;
        let (name, type_name) = ("/all", "std_msgs/msg/String");
        let topic =
            Topic { name, type_name, type_hash: 7, rihs01: None, quality, bytes_max: 0, is_plain: false };
        let open = |at: usize| {
            let node = context.open("/", &format!("node_{at}")).expect("a node");
            let reader = Reader::open(&node, &topic, false).expect("a subscription");
            (reader, Writer::open(&node, &topic).expect("a publisher"), node)
        };
        let ends: Vec<_> = (0..NODES).map(open).collect();
        assert_eq!(context.hub.door().lanes(), 1);
        // Each hears itself, too.
        for (reader, writer, _) in &ends {
            for statuses in [reader.statuses(), writer.statuses()] {
                while statuses.take(Kind::Matched).current < NODES as u64 {
                    let matched = statuses.waitable(Kind::Matched);
                    assert!(wait(&Arc::default(), &[matched], Some(TIMEOUT)), "not all match");
                    matched.clear();
                }
            }
        }
        let message = |at: u8| vec![0, 1, 0, 0, at];
        let all_hear = |at: u8, readers: &[&Reader]| {
            ends[usize::from(at)].1.publish(&message(at)).expect("published");
            readers.iter().for_each(|reader| assert_eq!(take(reader), message(at)));
        };
        let readers: Vec<&Reader> = ends.iter().map(|(reader, ..)| &**reader).collect();
        (0..NODES as u8).for_each(|at| all_hear(at, &readers));
        assert!(context.hub.door().lanes() > 1);
        // Whichever lane they went to, they can be closed, and the others hear on.
        readers[..NODES / 2].iter().for_each(|reader| reader.close());
        all_hear(0, &readers[NODES / 2..]);
        readers[NODES / 2..].iter().for_each(|reader| reader.close());
        ends.iter().for_each(|(_, writer, _)| writer.close());
    }
}
