//! A bus and a DDS domain, joined.

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use noctule::request::{ServiceError, ServiceTopics};
use noctule::{EndpointKind, KnownEndpoint, KnownNode, Node, NodeError};

use crate::behind::Behind;
pub use crate::counters::RouteStatus;
use crate::cyclone::{DdsError, Neighbour, Participant};
use crate::discovery_info::{RosNode, by_names};
use crate::plan::{DdsEndpoint, Direction, Plan, plan};
use crate::ros_graph::{BusNodes, RosGraph};
use crate::ros_variables::{self, RosVariableError};
use crate::route::{Routes, statuses};
pub use crate::services::ServiceStatus;
use crate::services::plan::{ServicePlan, plan_services};
use crate::services::{ListedServices, ServiceRoutes};
use crate::shared::{RouteError, Shared};
use crate::sibling_bridges::{ParticipantId, SiblingBridges, node_name, participant_of};
use noctule_bridge::behind::NodeBehind;
use noctule_bridge::rules::Rules;
use noctule_bridge::type_hashes::TypeHashes;

/// Pause before the planner retries a step that failed.
const AGAIN: Duration = Duration::from_millis(100);
/// Time for which discovery news is gathered, so that one plan covers what arrives together.
const GATHER: Duration = Duration::from_millis(20);
/// Sources of news of discovery in DDS: three kinds, and the list of ROS 2's nodes.
const NEWS_MAX: usize = 4;
/// Nothing is exchanged before the others on the bus have had time to learn of this node: a hello is sent once a second.
const SETTLE: Duration = Duration::from_millis(1200);
/// DDS domains, by the ports that they have (DDSI-RTPS 2.3, 9.6.1).
pub const DOMAIN_MAX: u32 = 232;

/// Why a bridge cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum BridgeError {
    /// A number that DDS has no ports for.
    #[error("DDS has no domain {0}; domains are 0 to 232")]
    Domain(u32),
    /// A variable of ROS 2's.
    #[error(transparent)]
    Variable(#[from] RosVariableError),
    /// The DDS side.
    #[error(transparent)]
    Dds(#[from] DdsError),
    /// The bus.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// The bus, of a service.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// No thread.
    #[error("the system gives no more threads: {0}")]
    System(io::Error),
}

/// Configuration of a [`Bridge`]: the two domains, the interface and the rules.
#[derive(Clone, Debug, Default)]
pub struct BridgeConfig {
    /// DDS domain, 0 to [`DOMAIN_MAX`]; ROS 2's `ROS_DOMAIN_ID`.
    pub domain: u32,
    /// Domain of the bus.
    pub bus_domain: u32,
    /// DDS only over the interface with this address; else as ROS 2's variables and `CYCLONEDDS_URI` say, or as Cyclone chooses.
    pub interface: Option<Ipv4Addr>,
    /// Topics that are exchanged.
    pub rules: Rules,
}

impl From<RouteError> for BridgeError {
    fn from(error: RouteError) -> BridgeError {
        match error {
            RouteError::Dds(error) => BridgeError::Dds(error),
            RouteError::Node(error) => BridgeError::Node(error),
            RouteError::Service(error) => BridgeError::Service(error),
            RouteError::System(error) => BridgeError::System(error),
        }
    }
}

/// State and counters of a [`Bridge`], for the report.
#[derive(Clone, Debug, Default)]
pub struct BridgeStatus {
    /// Other participants in DDS.
    pub participants: usize,
    /// Another bridge does the work.
    pub is_standby: bool,
    /// Status of each topic's route.
    pub routes: Vec<RouteStatus>,
    /// Status of each service.
    pub services: Vec<ServiceStatus>,
    /// Nodes of ROS 2 by their full names, in the order of the alphabet.
    pub ros_nodes: Vec<String>,
}

/// A bridge at work. Dropping it withdraws its topics on both sides.
#[derive(Debug)]
pub struct Bridge {
    shared: Arc<Shared>,
    services: ListedServices,
    thread: Option<JoinHandle<()>>,
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
        let variable = |name: &str| std::env::var(name);
        let ros = match config.interface {
            Some(_) => String::new(),
            None => ros_variables::discovery(variable)?,
        };
        let other_domain = ros_variables::other_domain(config.domain, variable)?;
        let participant = Participant::join(config.domain, config.interface, &ros)?;
        let mut id = [0; 12];
        id.copy_from_slice(participant.guid());
        let news = Arc::new(participant.news_set()?);
        let changes = Arc::clone(&news);
        let builder = Node::builder(&node_name(config.domain, &id)).domain(config.bus_domain);
        let node = builder.on_change(move || changes.wake()).open()?;
        let shared = Arc::new(Shared::new(node, participant, news));
        other_domain.iter().for_each(|notice| shared.notice_once(notice));
        let services = ListedServices::default();
        let mut planner = Planner::new(&shared, config.rules, services.clone())?;
        let thread = thread::Builder::new().name("noctule-dds".to_owned());
        let thread = thread.spawn(move || planner.work()).map_err(BridgeError::System)?;
        Ok(Bridge { shared, services, thread: Some(thread) })
    }

    /// The bridge's state and counters now.
    pub fn status(&self) -> BridgeStatus {
        let inside = self.shared.lock();
        let (participants, is_standby) = (inside.participants, inside.is_standby);
        let (routes, ros_nodes) = (statuses(&inside.routes), inside.ros_nodes.clone());
        let services = self.services.statuses();
        BridgeStatus { participants, is_standby, routes, services, ros_nodes }
    }

    /// The next warning or error for the user; each text is reported once.
    pub fn poll_notice(&self) -> Option<String> {
        self.shared.lock().notices.pop_front()
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        self.shared.end();
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // It panics only by a bug, which has been printed then.
            let _ = thread.join();
        }
    }
}

/// Whether a node of the bus is a bridge's, by its name.
fn is_bridge(name: &str) -> bool {
    participant_of(name).is_some()
}

/// Looks at both sides and keeps the routes as they should be.
struct Planner {
    shared: Arc<Shared>,
    rules: Rules,
    routes: Routes,
    services: ServiceRoutes,
    listed: ListedServices,
    graph: RosGraph,
    behind: Behind,
    hashes: TypeHashes,
    start: Instant,
    seen: Seen,
    /// Whether the routes are as the plan wants them.
    is_complete: bool,
}

/// Input of the last plan: discovery's state on both sides.
#[derive(Default)]
struct Seen {
    dds: Vec<DdsEndpoint>,
    neighbours: Vec<Neighbour>,
    bus: Vec<KnownEndpoint>,
    nodes: Vec<KnownNode>,
    /// Types of the bus whose hash of ROS 2 is known.
    types: usize,
    has_settled: bool,
}

impl Planner {
    fn new(shared: &Arc<Shared>, rules: Rules, listed: ListedServices) -> Result<Planner, RouteError> {
        let (shared, routes) = (Arc::clone(shared), Routes::start(shared)?);
        let services = ServiceRoutes::new(&shared);
        let graph = RosGraph::open(&shared.participant)?;
        shared.news.add(graph.reader(), 0)?;
        let behind = Behind::open(&shared)?;
        let (hashes, start, seen) = (TypeHashes::default(), Instant::now(), Seen::default());
        Ok(Planner {
            shared,
            rules,
            routes,
            services,
            listed,
            graph,
            behind,
            hashes,
            start,
            seen,
            is_complete: false,
        })
    }

    /// Until it is to end.
    fn work(&mut self) {
        let mut ready = Vec::new();
        while !self.shared.is_over() {
            let mut gather = GATHER;
            match self.look() {
                Ok(true) => self.plan(),
                Ok(false) => {}
                Err(error) => {
                    gather = AGAIN;
                    self.shared.notice_once(&error.to_string());
                }
            }
            if let Err(error) = self.learn_ros_nodes() {
                gather = AGAIN;
                self.shared.notice_once(&format!("ROS 2's list of nodes: {error}"));
            }
            // More may come with it; and news that cannot be looked at stays news.
            thread::park_timeout(gather);
            self.shared.news.wait(NEWS_MAX, self.due(), &mut ready);
        }
    }

    /// How long until there is something to do without news.
    fn due(&self) -> Duration {
        let again = (!self.is_complete).then_some(AGAIN);
        let settles = (!self.seen.has_settled).then(|| SETTLE.saturating_sub(self.start.elapsed()));
        let types = self.hashes.due(&self.seen.bus, Instant::now());
        [again, settles, types].into_iter().flatten().min().unwrap_or(Duration::MAX)
    }

    /// Learns the nodes and endpoints that are there; whether that may change the plan.
    fn look(&mut self) -> Result<bool, DdsError> {
        let (shared, seen) = (&self.shared, &mut self.seen);
        let mut is_new = !self.is_complete;
        if shared.participant.has_news() {
            // Before they are read: what comes meanwhile is news again.
            seen.neighbours = shared.participant.neighbours()?;
            seen.dds = shared.participant.endpoints()?;
            is_new = true;
        }
        let (bus, nodes) = (shared.node.endpoints(), shared.node.nodes());
        if bus != seen.bus || nodes != seen.nodes {
            (seen.bus, seen.nodes) = (bus, nodes);
            is_new = true;
        }
        is_new |= self.behind.has_news();
        self.hashes.learn(&shared.node, &seen.bus, Instant::now());
        let (types, has_settled) = (self.hashes.known().len(), self.start.elapsed() >= SETTLE);
        is_new |= (types, has_settled) != (seen.types, seen.has_settled);
        (seen.types, seen.has_settled) = (types, has_settled);
        Ok(is_new)
    }

    /// Plans anew, and opens, closes and reads what that asks for.
    fn plan(&mut self) {
        let Planner { shared, seen, .. } = self;
        let ids: Vec<ParticipantId> = seen.neighbours.iter().map(|known| known.participant).collect();
        let named = seen.nodes.iter().map(|node| (node.id, node.name.as_str()));
        let siblings = SiblingBridges::among(named, &ids);
        let standby = siblings.stands_by(shared.node.id());
        let dds = seen.dds.iter().filter(|endpoint| !siblings.has_participant(endpoint.participant()));
        let bus = seen.bus.iter().filter(|known| !siblings.has_node(known.node));
        let (wanted, services) = match standby.is_some() || !seen.has_settled {
            true => (Plan::default(), ServicePlan::default()),
            false => {
                let (dds, known): (Vec<_>, Vec<_>) = (dds.cloned().collect(), bus.cloned().collect());
                let bus: Vec<_> = known.iter().map(|known| known.endpoint.clone()).collect();
                let hashes = self.hashes.known();
                (
                    plan(&dds, &bus, &self.rules, hashes),
                    plan_services(&dds, &known, &self.rules, hashes, is_bridge),
                )
            }
        };
        let mut inside = shared.lock();
        inside.participants = ids.len();
        inside.is_standby = standby.is_some();
        let here = seen.neighbours.iter().filter(|known| known.is_here);
        inside.here = here.map(|known| known.participant).collect();
        inside.siblings = siblings;
        drop(inside);
        if let Some(other) = standby {
            shared.notice_once(&format!(
                "node {other} joins the same networks; this bridge stands by and works when it goes"
            ));
        }
        wanted.faults.iter().chain(&services.faults).for_each(|fault| shared.notice_once(fault));
        self.is_complete = self.routes.follow(&wanted) & self.services.follow(&services.routes);
        shared.lock().routes = self.routes.listed();
        self.listed.set(self.services.listed());
        let nodes = if self.works() { self.bus_nodes() } else { Vec::new() };
        if let Err(error) = self.graph.write(&self.shared, &nodes) {
            self.is_complete = false;
            self.shared.notice_once(&format!("nodes of the bus are not shown in ROS 2: {error}"));
        }
        self.announce_nodes();
    }

    /// Whether this bridge exchanges anything.
    fn works(&self) -> bool {
        self.seen.has_settled && !self.shared.lock().is_standby
    }

    /// Announces to other bridges which nodes of ROS 2 are in DDS.
    fn announce_nodes(&mut self) {
        let is_foreign = |participant: &ParticipantId| !self.shared.is_sibling_participant(participant);
        let nodes = match self.works() {
            true => by_names(self.graph.nodes(is_foreign), &self.seen.dds),
            false => Vec::new(),
        };
        self.behind.publish(nodes);
    }

    /// Nodes of the bus with the bridge's endpoints that represent theirs, without the bridges' nodes.
    fn bus_nodes(&self) -> Vec<RosNode> {
        let mut nodes = BusNodes::default();
        for node in self.seen.nodes.iter().filter(|node| !is_bridge(&node.name)) {
            nodes.add(node.id, &node.name);
        }
        for known in self.seen.bus.iter().filter(|known| !is_bridge(&known.node_name)) {
            let topic = &known.endpoint.topic;
            match known.endpoint.kind {
                EndpointKind::Writer => {
                    let guid = self.routes.guid(topic, Direction::ToDds);
                    guid.into_iter().for_each(|guid| nodes.writes(known.node, guid));
                }
                EndpointKind::Reader => {
                    let service = ServiceTopics::service_of(topic);
                    if let Some([reader, writer]) = service.and_then(|name| self.services.server_guids(&name))
                    {
                        nodes.reads(known.node, reader);
                        nodes.writes(known.node, writer);
                    }
                    let guid = self.routes.guid(topic, Direction::FromDds);
                    guid.into_iter().for_each(|guid| nodes.reads(known.node, guid));
                }
            }
        }
        let mut listed = nodes.listed();
        listed.extend(self.behind.nodes().into_iter().map(|node| self.node_behind(node)));
        listed
    }

    /// A node behind another bridge.
    fn node_behind(&self, node: NodeBehind) -> RosNode {
        let guids = |topics: &[String], direction| -> Vec<[u8; 16]> {
            topics.iter().filter_map(|topic| self.routes.guid(topic, direction)).collect()
        };
        let mut writers = guids(&node.publishes, Direction::ToDds);
        let mut readers = guids(&node.subscribes, Direction::FromDds);
        for [reader, writer] in node.serves.iter().filter_map(|service| self.services.server_guids(service)) {
            readers.push(reader);
            writers.push(writer);
        }
        RosNode { namespace: node.namespace, name: node.name, readers, writers }
    }

    /// Learns the nodes of others in DDS, but for those that other bridges have written.
    fn learn_ros_nodes(&mut self) -> Result<(), DdsError> {
        let there = &self.seen.neighbours;
        let is_there =
            |participant: &ParticipantId| there.iter().any(|known| known.participant == *participant);
        if self.graph.read(is_there)? {
            let shared = &self.shared;
            let names = self.graph.names(|participant| !shared.is_sibling_participant(participant));
            shared.lock().ros_nodes = names;
            self.announce_nodes();
        }
        Ok(())
    }
}
