//! A node: one participant of the swarm, with its topics, its sockets and its thread.

mod changes;
mod command;
mod deadlines;
mod death_detection;
mod descriptions;
mod directory;
mod driver;
mod dscp;
mod fallback;
mod groups;
mod guid;
mod histories;
mod inbound;
mod kernel_queue;
mod known;
mod links;
mod overload;
mod own_readers;
mod path;
mod ping;
mod ports;
mod reader_route;
mod receive;
mod receive_offload;
mod reception;
mod remote;
mod ring_handshake;
mod rings;
mod same_host;
mod send;
mod send_queue;
mod served_nodes;
mod socket_lease;
mod sockets;
mod state;
mod trace;
mod unacknowledged;
mod waiters;
mod wake_timer;
mod well_known_port;

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use noctule_discovery::{
    Discovery, DiscoveryConfig, Durability, Endpoint, EndpointId, Identity, NodeId, Reliability,
};
use noctule_prrt::{LinkCounters, ReceivedCounters, SentCounters};
use noctule_shm_ring::RingConfig;
use noctule_sys::fork_guard::ForkGuard;
use noctule_sys::random;
use noctule_time_sync::Local;
use noctule_timebase::Instant;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;

pub use self::{path::PathFigures, send_queue::SendCounters};
use crate::clock::{self, LocalClock};
use crate::deadline::DeadlineMissed;
use crate::envelope::Envelope;
use crate::error::NodeError;
use crate::key_file::KeyFile;
use crate::notice::{Notice, NoticeHook};
use crate::shared_topic::{Change, ChangeCount, PublishedTopic, RingOwner, SubscribedTopic};
use crate::swarm_key::SwarmKey;
use changes::ChangeHook;
use deadlines::Topic;
pub use descriptions::DescribeError;
pub use known::{KnownEndpoint, KnownNode, NodeCounters};
pub use ping::{PINGS_LIMIT, PingError};
use ports::{DISCOVERY_PORT, DOMAIN_MAX};
pub use reader_route::trace::SCHEMA as RELAY_TRACE_SCHEMA;
use send_queue::SendQueue;
use socket_lease::SocketLease;
use sockets::Sockets;
use state::State;
pub use unacknowledged::UNACKNOWLEDGED_BYTES_DEFAULT;
use unacknowledged::Unacknowledged;
use wake_timer::WakeTimer;

/// A participant of the swarm. Dropping it announces its end and ends its thread: keep it as long as its
/// publishers and subscribers, which then still reach partners they have on this host, and no others.
///
/// It belongs to the process that opened it: in the child of a fork its publishers and subscribers refuse with an error. Open nodes after the fork.
#[derive(Debug)]
pub struct Node {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// State that a node's handles and its thread share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) clock: LocalClock,
    id: NodeId,
    sockets: Sockets,
    state: Mutex<State>,
    /// Threads of the application that wait for it: the thread that fills the outbox lets them in.
    state_wanted: AtomicU32,
    /// Locked before `state`, if both are.
    send_queue: Mutex<SendQueue>,
    /// A thread queued something while another had the outbox.
    outbox_wanted: AtomicBool,
    /// When the outbox must be looked at again, on the raw clock; `i64::MAX` if never.
    check_at_ns: AtomicI64,
    /// When the thread wakes by itself.
    wake_timer: WakeTimer,
    /// Which thread reads the own socket.
    lead: SocketLease,
    /// For a datagram that a publisher receives in place of the stalled thread; locked after `state`.
    drained: Mutex<Vec<u8>>,
    /// Wakes the thread.
    kick: OwnedFd,
    stop: AtomicBool,
    /// Signalled, under the lock of `state`, when what one of its waiters waits for is so.
    progress: Condvar,
    /// Whether this is still the process that opened the node.
    guard: ForkGuard,
    /// A copy of this machine goes on in this node's place.
    copied: AtomicBool,
    /// Group whose members may read our memory, too.
    group: Option<u32>,
    /// Where notices go as they come; `None`: they are kept.
    hook: Option<NoticeHook>,
    on_change: Option<ChangeHook>,
    changes: ChangeCount,
}

/// How a node is set up.
#[derive(Clone, Debug)]
#[must_use = "call open"]
pub struct NodeBuilder {
    name: String,
    domain: u32,
    peers: Vec<String>,
    key: Option<PathBuf>,
    clock: LocalClock,
    interface: Option<Ipv4Addr>,
    group: Option<u32>,
    hook: Option<NoticeHook>,
    on_change: Option<ChangeHook>,
    shares_memory: bool,
    unacknowledged_bytes_max: usize,
}

impl NodeBuilder {
    /// Nodes of different domains do not see each other. 0 to 5000, default 0.
    pub fn domain(mut self, domain: u32) -> Self {
        self.domain = domain;
        self
    }

    /// A node to be reached by unicast, where multicast does not: `192.168.1.7` or `fe80::7%3` (all nodes of that host), or
    /// `192.168.1.7:40123`, `[2001:db8::7]:40123` (one node).
    pub fn static_peer(mut self, address: &str) -> Self {
        self.peers.push(address.to_owned());
        self
    }

    /// File with the swarm's key; every datagram is sealed with it. Default: the file that `NOCTULE_KEY_FILE` names, or the 64 digits in `NOCTULE_KEY`;
    /// without either, no key. The file is watched: it may hold an old and a new key, the first seals and all open, so a key can be changed while
    /// the swarm goes on (`docs/design/security.md`).
    pub fn swarm_key(mut self, file: impl Into<PathBuf>) -> Self {
        self.key = Some(file.into());
        self
    }

    /// Another clock than the machine's, so that nodes of one machine can have different ones.
    pub fn clock(mut self, clock: LocalClock) -> Self {
        self.clock = clock;
        self
    }

    /// Uses only the interface with this address. Default: all that are up.
    pub fn interface(mut self, address: Ipv4Addr) -> Self {
        self.interface = Some(address);
        self
    }

    /// Lets members of a group (its number) read samples through shared memory, too. Default: only processes of the same user.
    pub fn share_with_group(mut self, group: u32) -> Self {
        self.group = Some(group);
        self
    }

    /// Exchanges samples by UDP even with nodes of this host: to measure it, or to keep them out of a
    /// container's memory.
    pub fn without_shared_memory(mut self) -> Self {
        self.shares_memory = false;
        self
    }

    /// Bytes of samples that this node keeps until nodes of other hosts have been sent or have acknowledged them, of all its topics and
    /// readers together. Beyond that samples are given up, which counts and is a notice. Default 256 MiB.
    pub fn unacknowledged_bytes_max(mut self, bytes: usize) -> Self {
        self.unacknowledged_bytes_max = bytes;
        self
    }

    /// Keeps notices (mismatches, refusals, keys that do not fit) for [`Node::poll_notice`]. Default:
    /// they go to standard error, so that none is silent.
    pub fn keep_notices(mut self) -> Self {
        self.hook = None;
        self
    }

    /// Calls `hook` with each notice, on the node's thread and in order: to log them as the program logs all else. It must not wait, and
    /// does not close the node. Default: they go to standard error, at most 20 in 10 s.
    pub fn on_notice(mut self, hook: impl Fn(&Notice) + Send + Sync + 'static) -> Self {
        self.hook = Some(NoticeHook::new(hook));
        self
    }

    /// Starts the node.
    ///
    /// # Errors
    /// A key, a peer or a domain that cannot be used; or the system gives no socket.
    pub fn open(self) -> Result<Node, NodeError> {
        if self.domain > DOMAIN_MAX {
            return Err(NodeError::Domain { domain: self.domain });
        }
        let (key_file, keys) = match SwarmKey::chosen_file(self.key.as_deref()) {
            Some(file) => KeyFile::open(file).map(|(file, keys)| (Some(file), keys))?,
            None => (None, SwarmKey::of_environment()?.into_iter().collect()),
        };
        let peers = static_peers(&self.peers)?;
        trace::open()?;
        let system = |what| move |cause: io::Error| NodeError::System { what, cause };
        let sockets =
            Sockets::open(self.domain, self.interface).map_err(system("UDP sockets cannot be opened"))?;
        let peers = peers.into_iter().map(|peer| sockets.in_own_family(peer)).collect();
        let random: [u8; 16] = random::secret().map_err(system("no random numbers"))?;
        let exchange_key: [u8; 16] = random::secret().map_err(system("no random numbers"))?;
        let seed: [u8; 8] = random::secret().map_err(system("no random numbers"))?;
        let secret = random::secret().map_err(system("no random numbers"))?;
        let envelope = Envelope::new(&keys, secret, u64::from_le_bytes(seed).rotate_left(17));
        // With a key no other process can answer in the name of the node.
        let id = envelope.number().unwrap_or(NodeId(random));
        let clock = self.clock.started(clock::now());
        let mut host = host_number(&clock).map_err(system("the host cannot be identified by /proc"))?;
        if !self.shares_memory {
            // A host of its own.
            host ^= u64::from_le_bytes(seed);
        }
        let me = Identity { id, name: self.name, host, port: sockets.port };
        let well_known_port = Some(DISCOVERY_PORT);
        let config = DiscoveryConfig { domain: self.domain, well_known_port, ..DiscoveryConfig::default() };
        let now = Instant::from_ns(clock::now().ns());
        let secret = random::secret().map_err(system("no random numbers"))?;
        let discovery = Discovery::new(config, me, peers, secret, now);
        let kick = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let kick = kick.map_err(|error| system("no eventfd")(error.into()))?;
        let wake_timer = WakeTimer::new().map_err(system("no timer"))?;
        let mut state = State::new(id, (discovery, envelope), clock.clone(), exchange_key);
        state.unacknowledged = Unacknowledged::new(self.unacknowledged_bytes_max);
        let shared = Arc::new(Shared {
            clock,
            id,
            sockets,
            changes: state.changes.clone(),
            state: Mutex::new(state),
            state_wanted: AtomicU32::new(0),
            send_queue: Mutex::new(SendQueue::new()),
            outbox_wanted: AtomicBool::new(false),
            check_at_ns: AtomicI64::new(i64::MAX),
            wake_timer,
            lead: SocketLease::new(),
            drained: Mutex::default(),
            kick,
            stop: AtomicBool::new(false),
            progress: Condvar::new(),
            guard: ForkGuard::new().map_err(system("a fork cannot be noticed"))?,
            copied: AtomicBool::new(false),
            group: self.group,
            hook: self.hook,
            on_change: self.on_change,
        });
        let thread = driver::start(Arc::clone(&shared), key_file)
            .map_err(system("the node's thread cannot be started"))?;
        Ok(Node { shared, thread: Some(thread) })
    }
}

impl Node {
    /// A node with the default settings.
    ///
    /// # Errors
    /// As [`NodeBuilder::open`].
    pub fn new(name: &str) -> Result<Node, NodeError> {
        Node::builder(name).open()
    }

    /// Settings for a node. The name is for people; it need not be unique.
    pub fn builder(name: &str) -> NodeBuilder {
        NodeBuilder {
            name: name.to_owned(),
            domain: 0,
            peers: Vec::new(),
            key: None,
            clock: LocalClock::default(),
            interface: None,
            group: None,
            hook: Some(NoticeHook::standard_error()),
            on_change: None,
            shares_memory: true,
            unacknowledged_bytes_max: UNACKNOWLEDGED_BYTES_DEFAULT,
        }
    }

    /// The node's shared state, for its publishers and subscribers.
    pub(crate) fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }

    /// The node's number.
    pub fn id(&self) -> NodeId {
        self.shared.id
    }

    pub(crate) fn clock(&self) -> &LocalClock {
        &self.shared.clock
    }

    /// Now on the node's clock, the one that source times are given in.
    pub fn now(&self) -> Instant<Local> {
        self.shared.clock.now()
    }

    /// The next notice, in order, each once; for nodes set up with
    /// [`keep_notices`](NodeBuilder::keep_notices).
    pub fn poll_notice(&self) -> Option<Notice> {
        self.shared.lock().poll_notice()
    }

    /// Counters of datagrams that were not authenticated or not understood, beside discovery's own traffic.
    pub fn counters(&self) -> NodeCounters {
        self.shared.lock().counters()
    }

    /// Counters of datagrams sent over the network, by the way they went.
    pub fn send_counters(&self) -> SendCounters {
        self.shared.send_queue.lock().unwrap_or_else(PoisonError::into_inner).counters()
    }

    /// Bytes of samples that nodes of other hosts have still to be sent or to acknowledge, at most
    /// [`unacknowledged_bytes_max`](NodeBuilder::unacknowledged_bytes_max).
    pub fn unacknowledged_bytes(&self) -> usize {
        self.shared.lock().unacknowledged_bytes()
    }

    /// Every other node, by number.
    pub fn nodes(&self) -> Vec<KnownNode> {
        let state = self.shared.lock();
        let known = state.discovery.nodes().map(|(id, name, address, same_host)| KnownNode {
            id,
            name: name.to_owned(),
            address: SocketAddr::new(address.ip().to_canonical(), address.port()),
            same_host,
        });
        known.collect()
    }

    /// Counters of the link to a node of another host; `None` if there was never one.
    pub fn link_counters(&self, node: NodeId) -> Option<LinkCounters> {
        self.shared.lock().remotes.get(&node).map(|remote| remote.link_counters())
    }

    /// Every endpoint of other nodes, with the node's name and whether it is on this host.
    pub fn endpoints(&self) -> Vec<KnownEndpoint> {
        let state = self.shared.lock();
        let known = state.discovery.endpoints().filter_map(|(node, endpoint)| {
            let (node_name, same_host) =
                (state.discovery.name(node)?.to_owned(), state.discovery.is_here(node));
            Some(KnownEndpoint { node, node_name, same_host, endpoint: endpoint.clone() })
        });
        known.collect()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if self.shared.guard.is_in_child() {
            // Thread, sockets and goodbye are the parent's.
            if let Some(thread) = self.thread.take() {
                std::mem::forget(thread);
            }
            return;
        }
        self.shared.stop.store(true, Ordering::Release);
        self.shared.kick();
        if let Some(thread) = self.thread.take() {
            // It panics only by a bug, which has been printed then.
            let _ = thread.join();
        }
        trace::flush();
    }
}

impl Shared {
    pub(crate) fn add_publisher(
        &self,
        endpoint: Endpoint,
        config: RingConfig,
    ) -> Result<Arc<PublishedTopic>, NodeError> {
        if self.is_in_child() {
            return Err(NodeError::Forked);
        }
        endpoint.check_names()?;
        let (topic, qos) = (endpoint.topic.clone(), endpoint.qos);
        let depth = qos.depth;
        if qos.reliability == Reliability::DeadlineBound && qos.deadline.is_none() {
            return Err(NodeError::NoDeadline { topic });
        }
        if qos.multicast && qos.reliability == Reliability::Reliable {
            return Err(NodeError::Multicast { topic });
        }
        if depth == 0 || depth > u32::from(u16::MAX) {
            return Err(NodeError::Depth { topic, depth });
        }
        let layout = |cause| NodeError::Layout { topic: topic.clone(), cause };
        let offer = RingOwner::new(config).map_err(layout)?;
        // Its history is in the ring, so the ring must be there before the first sample.
        let writer = match endpoint.qos.durability {
            Durability::TransientLocal => offer.make_for_here().map_err(|error| NodeError::System {
                what: "shared memory cannot be had",
                cause: io::Error::other(error),
            })?,
            Durability::Volatile => None,
        };
        let mut state = self.lock();
        let id = state.add(endpoint, clock::now()).ok_or(NodeError::Full)?;
        let published = Arc::new(PublishedTopic {
            id,
            name: topic,
            class: remote::class(&qos),
            depth,
            offer,
            is_fresh: AtomicBool::new(writer.is_some()),
            fresh: Mutex::new(writer),
            remote_readers: AtomicU32::new(0),
            published: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            given_up: AtomicU64::new(0),
            held_up: AtomicU64::new(0),
            undelivered: AtomicU64::new(0),
            remote_bytes_max: remote::sample_bytes_max(state.envelope.overhead_bytes()),
            has_deadline: qos.deadline.is_some(),
            last_ns: AtomicI64::new(0),
        });
        state.publishers.insert(id, Arc::clone(&published));
        let watched = Topic::Published(Arc::clone(&published));
        state.deadlines.add(id, watched, qos.deadline, clock::now());
        state.settle(id, clock::now());
        drop(state);
        self.kick();
        Ok(published)
    }

    pub(crate) fn add_subscriber(
        &self,
        mut topic: SubscribedTopic,
    ) -> Result<Arc<SubscribedTopic>, NodeError> {
        if self.is_in_child() {
            return Err(NodeError::Forked);
        }
        topic.endpoint.check_names()?;
        let mut state = self.lock();
        let id = state.add(topic.endpoint.clone(), clock::now()).ok_or(NodeError::Full)?;
        (topic.id, topic.endpoint.id) = (id, id);
        topic.changes_of_node = state.changes.clone();
        let deadline = topic.endpoint.qos.deadline;
        let subscribed = Arc::new(topic);
        state.subscribers.insert(id, Arc::clone(&subscribed));
        state.deadlines.add(id, Topic::Subscribed(Arc::clone(&subscribed)), deadline, clock::now());
        state.settle(id, clock::now());
        drop(state);
        self.kick();
        Ok(subscribed)
    }

    pub(crate) fn remove_publisher(&self, id: EndpointId) {
        if self.is_in_child() {
            return;
        }
        self.lock().remove(id, clock::now());
        self.kick();
    }

    pub(crate) fn remove_subscriber(&self, id: EndpointId) {
        if self.is_in_child() {
            return;
        }
        self.lock().remove(id, clock::now());
        self.kick();
    }

    /// Counters of a deadline-bound writer, by node that reads it.
    pub(crate) fn sent(&self, writer: EndpointId) -> Vec<(NodeId, SentCounters)> {
        self.lock().sent(writer)
    }

    /// Capacities of the paths to the nodes of other hosts that read a writer, bytes a second; `None`: not known.
    pub(crate) fn capacities(&self, writer: EndpointId) -> Vec<(NodeId, Option<f64>)> {
        self.lock().capacities(writer)
    }

    /// Counters of a reader, by node of another host whose deadline-bound writer it reads.
    pub(crate) fn received(&self, reader: EndpointId) -> Vec<(NodeId, ReceivedCounters)> {
        self.lock().received(reader)
    }

    pub(crate) fn deadline_missed(&self, id: EndpointId) -> DeadlineMissed {
        self.lock().deadline_missed(id)
    }

    pub(crate) fn readers_of(&self, id: EndpointId) -> usize {
        self.lock().readers_of(id)
    }

    /// All writers of a node are gone, and what it handed on of others.
    fn sources_went(&self, node: NodeId) {
        for topic in self.lock().subscribers.values() {
            topic.change(Change::NodeWent(node));
        }
    }

    /// Whether the process was forked since the node was opened and this is the child: its thread is not here, the lock may be held for ever, and
    /// a nonce of the seal that is used here is used by the parent, too.
    #[inline]
    pub(crate) fn is_in_child(&self) -> bool {
        self.guard.is_in_child() || self.copied.load(Ordering::Relaxed)
    }

    pub(crate) fn id(&self) -> NodeId {
        self.id
    }

    pub(crate) fn note(&self, notice: Notice) {
        self.lock().note(notice);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere must not stop the publishers of the whole process.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the node's thread look.
    fn kick(&self) {
        let _ = rustix::io::write(&self.kick, &1u64.to_ne_bytes());
    }
}

/// The same for all processes that can share memory with this one: one kernel, one network (names of
/// sockets end there), one clock.
fn host_number(clock: &LocalClock) -> io::Result<u64> {
    use std::hash::Hasher;
    use std::os::unix::fs::MetadataExt;
    let boot = std::fs::read("/proc/sys/kernel/random/boot_id")?;
    let network = std::fs::metadata("/proc/thread-self/ns/net")?;
    // Stable between releases of the compiler, unlike the default hasher.
    let mut hasher = siphasher::sip::SipHasher24::new();
    hasher.write(&boot);
    hasher.write_u64(network.ino());
    if !clock.is_raw() {
        hasher.write(clock.to_string().as_bytes());
    }
    Ok(hasher.finish())
}

/// An address with a port is one node; without, all nodes of a host, which share the well-known port.
fn static_peers(texts: &[String]) -> Result<Vec<SocketAddr>, NodeError> {
    let parse = |text: &String| {
        let whole_host = || text.parse::<IpAddr>().map(|ip| SocketAddr::new(ip, DISCOVERY_PORT));
        let address = text.parse::<SocketAddr>().or_else(|_| whole_host());
        address.map_err(|_| NodeError::Peer { text: text.clone() })
    };
    texts.iter().map(parse).collect()
}

pub(crate) fn local_packet(name: &[u8], bytes: &mut [u8]) -> bool {
    directory::is_packet(name, bytes)
}

pub(crate) fn by_udp_again(bytes: &[u8]) -> Option<Vec<u8>> {
    fallback::Message::decode(bytes).map(|message| message.encode().to_vec())
}

pub(crate) fn ring_handshake_again(bytes: &[u8]) -> Option<Vec<u8>> {
    ring_handshake::Packet::decode(bytes).map(|(from, packet)| packet.encode(from))
}

#[cfg(test)]
#[path = "node/tests/lock_census.rs"]
mod lock_census;
