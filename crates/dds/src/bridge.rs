//! A bus and a DDS domain, joined.

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::io;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use noctule::{Endpoint, Node, NodeError};

use crate::cyclone::{DdsError, Participant};
use crate::plan::{DdsEndpoint, Plan, plan};
use crate::route::OpenRoute;
pub use crate::route::RouteStatus;
use crate::rules::Rules;
use crate::sibling_bridges::{ParticipantId, SiblingBridges, node_name};
use crate::type_hashes::TypeHashes;

/// Both sides' discovery is looked at this often.
const LOOK: Duration = Duration::from_millis(100);
/// Nothing is exchanged before the others on the bus have had time to learn who this is: a hello is said once a second.
const SETTLE: Duration = Duration::from_millis(1200);
/// DDS domains, by the ports that they have (DDSI-RTPS 2.3, 9.6.1).
pub const DOMAIN_MAX: u32 = 232;
/// Notices that wait to be read.
const NOTICES_MAX: usize = 64;
/// Different notices that are told once.
const TOLD_MAX: usize = 1024;

/// Why a bridge cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum BridgeError {
    /// A number that DDS has no ports for.
    #[error("DDS has no domain {0}; domains are 0 to 232")]
    Domain(u32),
    /// The DDS side.
    #[error(transparent)]
    Dds(#[from] DdsError),
    /// The bus.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// No thread.
    #[error("the system gives no more threads: {0}")]
    System(io::Error),
}

/// What is joined, and how.
#[derive(Clone, Debug, Default)]
pub struct BridgeConfig {
    /// DDS domain, 0 to [`DOMAIN_MAX`]; ROS 2's `ROS_DOMAIN_ID`.
    pub domain: u32,
    /// Domain of the bus.
    pub bus_domain: u32,
    /// DDS only over the interface with this address; else as Cyclone chooses, or `CYCLONEDDS_URI` says.
    pub interface: Option<Ipv4Addr>,
    /// Which topics.
    pub rules: Rules,
}

/// What there is to say about a bridge.
#[derive(Clone, Debug, Default)]
pub struct BridgeStatus {
    /// Other participants in DDS.
    pub participants: usize,
    /// Another bridge does the work.
    pub is_standby: bool,
    /// By topic.
    pub routes: Vec<RouteStatus>,
}

/// A bridge at work. Dropping it takes its topics off both sides, and tells both.
#[derive(Debug)]
pub struct Bridge {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// What routes and the planning thread share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) node: Node,
    pub(crate) participant: Participant,
    stop: AtomicBool,
    inside: Mutex<Inside>,
}

#[derive(Debug, Default)]
struct Inside {
    siblings: SiblingBridges,
    /// Participants of this host.
    here: HashSet<ParticipantId>,
    notices: VecDeque<String>,
    told: BTreeSet<String>,
    status: BridgeStatus,
}

/// What there is to plan from.
struct Sides {
    dds: Vec<DdsEndpoint>,
    bus: Vec<Endpoint>,
    is_standby: bool,
}

impl Bridge {
    /// Joins both and exchanges what the rules allow, from one second later on.
    ///
    /// # Errors
    /// A domain that does not exist, an interface that is not there, no sockets or threads.
    pub fn open(config: BridgeConfig) -> Result<Bridge, BridgeError> {
        if config.domain > DOMAIN_MAX {
            return Err(BridgeError::Domain(config.domain));
        }
        let participant = Participant::join(config.domain, config.interface)?;
        let mut id = [0; 12];
        id.copy_from_slice(participant.guid());
        let node = Node::builder(&node_name(config.domain, &id)).domain(config.bus_domain).open()?;
        let (stop, inside) = (AtomicBool::new(false), Mutex::default());
        let shared = Arc::new(Shared { node, participant, stop, inside });
        let theirs = Arc::clone(&shared);
        let thread = thread::Builder::new().name("noctule-dds".to_owned());
        let thread = thread.spawn(move || work(&theirs, &config.rules)).map_err(BridgeError::System)?;
        Ok(Bridge { shared, thread: Some(thread) })
    }

    /// What goes on.
    pub fn status(&self) -> BridgeStatus {
        self.shared.lock().status.clone()
    }

    /// What the user should know, each once.
    pub fn poll_notice(&self) -> Option<String> {
        self.shared.lock().notices.pop_front()
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // It panics only by a bug, which has been printed then.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a participant is a bridge's that is also on the bus.
    pub(crate) fn is_sibling_participant(&self, participant: &ParticipantId) -> bool {
        self.lock().siblings.has_participant(participant)
    }

    /// Whether a node is a bridge's that is also in DDS.
    pub(crate) fn is_sibling_node(&self, node: noctule::NodeId) -> bool {
        self.lock().siblings.has_node(node)
    }

    /// Whether a participant is a process of this host.
    pub(crate) fn is_here(&self, participant: &ParticipantId) -> bool {
        self.lock().here.contains(participant)
    }

    pub(crate) fn notice_once(&self, text: &str) {
        let mut inside = self.lock();
        if inside.told.len() == TOLD_MAX {
            inside.told.clear();
        }
        if inside.told.insert(text.to_owned()) && inside.notices.len() < NOTICES_MAX {
            inside.notices.push_back(text.to_owned());
        }
    }

    /// Learns who is there; the endpoints that are neither ours nor a sibling's.
    fn look(&self, hashes: &mut TypeHashes) -> Result<Sides, DdsError> {
        let neighbours = self.participant.neighbours()?;
        let ids: Vec<ParticipantId> = neighbours.iter().map(|neighbour| neighbour.participant).collect();
        let nodes = self.node.nodes();
        let siblings = SiblingBridges::among(nodes.iter().map(|node| (node.id, node.name.as_str())), &ids);
        let standby = siblings.stands_by(self.node.id());
        let mut dds = self.participant.endpoints()?;
        dds.retain(|endpoint| !siblings.has_participant(endpoint.participant()));
        let mut bus = self.node.endpoints();
        bus.retain(|known| !siblings.has_node(known.node));
        hashes.learn(&self.node, &bus, Instant::now());
        let bus = bus.into_iter().map(|known| known.endpoint).collect();
        let mut inside = self.lock();
        inside.status.participants = ids.len();
        inside.status.is_standby = standby.is_some();
        inside.here = neighbours
            .iter()
            .filter(|neighbour| neighbour.is_here)
            .map(|neighbour| neighbour.participant)
            .collect();
        inside.siblings = siblings;
        drop(inside);
        if let Some(other) = standby {
            self.notice_once(&format!(
                "node {other} joins the same networks; this bridge stands by and works when it goes"
            ));
        }
        Ok(Sides { dds, bus, is_standby: standby.is_some() })
    }
}

/// Plans, opens and closes routes until told to stop.
fn work(shared: &Arc<Shared>, rules: &Rules) {
    let start = Instant::now();
    let (mut open, mut hashes) = (Vec::<OpenRoute>::new(), TypeHashes::default());
    while !shared.stop.load(Ordering::Relaxed) {
        match shared.look(&mut hashes) {
            Ok(Sides { dds, bus, is_standby }) => {
                let wanted = match is_standby || start.elapsed() < SETTLE {
                    true => Plan::default(),
                    false => plan(&dds, &bus, rules, hashes.known()),
                };
                follow(shared, &wanted, &mut open);
            }
            Err(error) => shared.notice_once(&error.to_string()),
        }
        shared.lock().status.routes = open.iter().map(OpenRoute::status).collect();
        thread::park_timeout(LOOK);
    }
    open.iter().for_each(OpenRoute::end);
}

/// Closes what is not wanted any more and opens what is.
fn follow(shared: &Arc<Shared>, wanted: &Plan, open: &mut Vec<OpenRoute>) {
    wanted.faults.iter().for_each(|fault| shared.notice_once(fault));
    let is_wanted = |route: &OpenRoute| wanted.routes.contains(route.route());
    open.iter().filter(|route| !is_wanted(route)).for_each(OpenRoute::end);
    open.retain(is_wanted);
    for route in &wanted.routes {
        if open.iter().any(|known| known.route() == route) {
            continue;
        }
        match OpenRoute::open(route, shared) {
            Ok(opened) => open.push(opened),
            Err(error) => shared.notice_once(&format!("topic {} is not exchanged: {error}", route.topic)),
        }
    }
}
