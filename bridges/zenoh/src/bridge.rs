//! A bus and a Zenoh network, joined.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use noctule::clock::LocalClock;
use noctule::request::ServiceError;
use noctule::{EndpointKind, KnownEndpoint, KnownNode, Node, NodeError};
use noctule_bridge::rules::Rules;
use noctule_bridge::type_hashes::TypeHashes;
use noctule_ros_zenoh::announce::{Announced, Announcements};
use noctule_ros_zenoh::graph::{GraphCounters, RemoteEndpoint};
use noctule_ros_zenoh::key::UNKNOWN_HASH;
use noctule_ros_zenoh::plan::{Direction, Plan, Sides, plan};
use noctule_ros_zenoh::qos::RosQos;
use noctule_ros_zenoh::services::{ServicePlan, end_of, plan_services};
use noctule_ros_zenoh::site;
use noctule_ros_zenoh::token::{Kind, PREFIX};
use zenoh::liveliness::LivelinessToken;
use zenoh::pubsub::Subscriber;
use zenoh::query::Queryable;
use zenoh::sample::SampleKind;
use zenoh::{Config, Wait};

use crate::clocks::{self, ClockStatus};
use crate::counters::RouteStatus;
use crate::routes::Routes;
use crate::services::{ListedServices, ServiceRoutes, ServiceStatus};
use crate::shared::{RouteError, Shared};
use crate::siblings::{Siblings, is_bridge, node_name};

/// Both sides' discovery is looked at this often.
const LOOK: Duration = Duration::from_millis(100);
/// Nothing is exchanged before the others on the bus have had time to learn of this node: a hello is sent once a second.
const SETTLE: Duration = Duration::from_millis(1200);

/// Why a bridge cannot be opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BridgeError {
    /// Zenoh's side: mostly no router.
    #[error("Zenoh: {0}")]
    Zenoh(String),
    /// The bus.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// The bus, of a service.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// No thread.
    #[error("the system gives no more threads: {0}")]
    System(#[from] io::Error),
}

impl From<RouteError> for BridgeError {
    fn from(error: RouteError) -> BridgeError {
        match error {
            RouteError::Zenoh(error) => BridgeError::Zenoh(error),
            RouteError::Node(error) => BridgeError::Node(error),
            RouteError::Service(error) => BridgeError::Service(error),
            RouteError::System(error) => BridgeError::System(error),
        }
    }
}

impl From<zenoh::Error> for BridgeError {
    fn from(error: zenoh::Error) -> BridgeError {
        BridgeError::Zenoh(error.to_string())
    }
}

/// Configuration of a [`Bridge`]: Zenoh's settings, the two domains and the rules.
#[derive(Clone, Debug)]
pub(crate) struct BridgeConfig {
    /// Zenoh's own.
    pub(crate) zenoh: Config,
    /// ROS 2's `ROS_DOMAIN_ID`.
    pub(crate) domain: u32,
    /// Domain of the bus.
    pub(crate) bus_domain: u32,
    /// Topics that are exchanged.
    pub(crate) rules: Rules,
    /// The clock of the bridge's node; the machine's own if `None`.
    pub(crate) clock: Option<LocalClock>,
}

/// State and counters of a [`Bridge`], for the report.
#[derive(Clone, Debug)]
pub(crate) struct BridgeStatus {
    /// Other sessions in ROS 2's graph.
    pub(crate) sessions: usize,
    /// Another bridge does the work.
    pub(crate) is_standby: bool,
    /// Status of each topic's route.
    pub(crate) routes: Vec<RouteStatus>,
    /// Status of each service.
    pub(crate) services: Vec<ServiceStatus>,
    /// Nodes of ROS 2 by their full names, in the order of the alphabet.
    pub(crate) ros_nodes: Vec<String>,
    /// Other gateways whose clocks are followed.
    pub(crate) clocks: Vec<ClockStatus>,
    /// Tokens that were not taken.
    pub(crate) graph: GraphCounters,
    /// Samples, requests and replies that are none.
    pub(crate) malformed: u64,
    /// Nodes and endpoints of the bus that had no room among the tokens.
    pub(crate) not_announced: usize,
}

/// A bridge at work. Dropping it withdraws its topics on both sides.
pub(crate) struct Bridge {
    shared: Arc<Shared>,
    services: ListedServices,
    threads: Vec<JoinHandle<()>>,
    _graphs: Vec<Subscriber<()>>,
    _presence: LivelinessToken,
    _clock: Queryable<()>,
}

impl Bridge {
    /// Joins both and exchanges what the rules allow, from one second later on.
    ///
    /// # Errors
    /// No router, no sockets or threads.
    pub(crate) fn open(config: BridgeConfig) -> Result<Bridge, BridgeError> {
        let session = zenoh::open(config.zenoh).wait()?;
        let zid = session.zid().to_string();
        let mut builder = Node::builder(&node_name(config.domain, &zid)).domain(config.bus_domain);
        if let Some(clock) = config.clock {
            builder = builder.clock(clock);
        }
        let shared = Arc::new(Shared::new(builder.open()?, session, config.domain));
        let graphs = [format!("{PREFIX}/{}/**", config.domain), site::presence(config.domain, "*")];
        let graphs = graphs.into_iter().map(|key| listen(&shared, key)).collect::<Result<Vec<_>, _>>()?;
        let presence =
            shared.session.liveliness().declare_token(site::presence(config.domain, &zid)).wait()?;
        let clock = clocks::serve(&shared)?;
        let services = ListedServices::default();
        let mut planner = Planner::new(&shared, config.rules, services.clone());
        let work = move || planner.work();
        let planning = thread::Builder::new().name("noctule-zenoh".to_owned()).spawn(work)?;
        let threads = vec![planning, clocks::start(&shared)?];
        Ok(Bridge { shared, services, threads, _graphs: graphs, _presence: presence, _clock: clock })
    }

    /// The bridge's state and counters now.
    pub(crate) fn status(&self) -> BridgeStatus {
        let clocks = self.shared.clocks.statuses(self.shared.node.now());
        let graph = self.shared.graph().counters();
        let malformed = self.shared.malformed.load(Ordering::Relaxed);
        let services = self.services.statuses();
        let inside = self.shared.lock();
        BridgeStatus {
            sessions: inside.sessions,
            is_standby: inside.is_standby,
            routes: inside.routes.iter().map(|(route, counters)| counters.status(route.as_ref())).collect(),
            services,
            ros_nodes: inside.ros_nodes.clone(),
            clocks,
            graph,
            malformed,
            not_announced: inside.not_announced,
        }
    }

    /// The next warning or error for the user; each text is reported once.
    pub(crate) fn poll_notice(&self) -> Option<String> {
        self.shared.lock().notices.pop_front()
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        self.shared.end();
        for thread in self.threads.drain(..) {
            thread.thread().unpark();
            // It panics only by a bug, which has been printed then.
            let _ = thread.join();
        }
        // So that the tokens go at once; a session that is lost takes them along a little later.
        let _ = self.shared.session.close().wait();
    }
}

/// Follows tokens: those there are, those that come and those that go.
fn listen(shared: &Arc<Shared>, key: String) -> Result<Subscriber<()>, RouteError> {
    let weak = Arc::downgrade(shared);
    let follow = move |sample: zenoh::sample::Sample| {
        if let Some(shared) = weak.upgrade() {
            shared.graph().handle(sample.key_expr().as_str(), sample.kind() == SampleKind::Put);
        }
    };
    let liveliness = shared.session.liveliness();
    Ok(liveliness.declare_subscriber(key).history(true).callback(follow).wait()?)
}

/// Looks at both sides and keeps the routes as they should be.
struct Planner {
    shared: Arc<Shared>,
    rules: Rules,
    routes: Routes,
    services: ServiceRoutes,
    listed: ListedServices,
    announced: Announcements,
    tokens: BTreeMap<String, LivelinessToken>,
    hashes: TypeHashes,
    start: Instant,
    seen: Seen,
    /// Whether the routes are as the plan wants them.
    is_complete: bool,
}

/// Input of the last plan: discovery's state on both sides.
#[derive(Default)]
struct Seen {
    graph: Option<u64>,
    bus: Vec<KnownEndpoint>,
    nodes: Vec<KnownNode>,
    /// Types of the bus whose hash of ROS 2 is known.
    types: usize,
    has_settled: bool,
}

/// Both sides at one moment.
struct Look {
    siblings: Siblings,
    zenoh: Vec<RemoteEndpoint>,
    gateways: BTreeSet<String>,
    ros_nodes: Vec<String>,
    sessions: usize,
}

impl Planner {
    fn new(shared: &Arc<Shared>, rules: Rules, listed: ListedServices) -> Planner {
        Planner {
            routes: Routes::new(shared),
            services: ServiceRoutes::new(shared),
            announced: Announcements::new(shared.domain, &shared.zid),
            shared: Arc::clone(shared),
            rules,
            listed,
            tokens: BTreeMap::new(),
            hashes: TypeHashes::default(),
            start: Instant::now(),
            seen: Seen::default(),
            is_complete: false,
        }
    }

    /// Until it is to end.
    fn work(&mut self) {
        while !self.shared.is_over() {
            if self.look() {
                self.plan();
            }
            thread::park_timeout(LOOK);
        }
    }

    /// Learns the nodes and endpoints that are there; whether that may change the plan.
    fn look(&mut self) -> bool {
        let (shared, seen) = (&self.shared, &mut self.seen);
        let mut is_new = !self.is_complete;
        let graph = Some(shared.graph().version());
        is_new |= graph != seen.graph;
        seen.graph = graph;
        let (bus, nodes) = (shared.node.endpoints(), shared.node.nodes());
        if bus != seen.bus || nodes != seen.nodes {
            (seen.bus, seen.nodes) = (bus, nodes);
            is_new = true;
        }
        self.hashes.learn(&shared.node, &seen.bus, Instant::now());
        let (types, has_settled) = (self.hashes.known().len(), self.start.elapsed() >= SETTLE);
        is_new |= (types, has_settled) != (seen.types, seen.has_settled);
        (seen.types, seen.has_settled) = (types, has_settled);
        is_new
    }

    fn sides(&self) -> Look {
        let named = self.seen.nodes.iter().map(|node| (node.id, node.name.as_str()));
        let graph = self.shared.graph();
        let siblings = Siblings::among(named, graph.gateways());
        Look {
            zenoh: graph.endpoints(&siblings.zids),
            gateways: graph.gateways().clone(),
            ros_nodes: graph.nodes(&siblings.zids),
            sessions: graph.sessions(),
            siblings,
        }
    }

    /// Plans anew, and opens, closes, reads and announces what that asks for.
    fn plan(&mut self) {
        let look = self.sides();
        let standby = look.siblings.stands_by(self.shared.node.id());
        let (mut wanted, mut services) = (Plan::default(), ServicePlan::default());
        if standby.is_none() && self.seen.has_settled {
            let bus = self.seen.bus.iter().filter(|known| !look.siblings.nodes.contains(&known.node));
            let bus: Vec<KnownEndpoint> = bus.cloned().collect();
            let sides = Sides {
                zenoh: &look.zenoh,
                gateways: &look.gateways,
                bus: &bus,
                hashes: self.hashes.known(),
            };
            wanted = plan(&sides, &self.rules);
            services = plan_services(&sides, &self.rules, is_bridge);
        }
        if let Some(other) = standby {
            self.shared.notice_once(&format!(
                "node {other} joins the same networks; this bridge stands by and works when it goes"
            ));
        }
        self.follow_clocks(&look, &wanted);
        wanted.faults.iter().chain(&services.faults).for_each(|fault| self.shared.notice_once(fault));
        self.is_complete = self.routes.follow(&wanted) & self.services.follow(&services.routes);
        // A session that sees a token may send at once: by now there is a reader.
        self.announce(&wanted, &services);
        self.routes.name_publishers(&self.announced);
        self.listed.set(self.services.listed());
        let mut inside = self.shared.lock();
        inside.sessions = look.sessions;
        inside.is_standby = standby.is_some();
        inside.ros_nodes = look.ros_nodes;
        inside.routes = self.routes.listed();
        inside.not_announced = self.announced.left_out();
    }

    /// Follows the clocks of the gateways whose samples are read.
    fn follow_clocks(&self, look: &Look, wanted: &Plan) {
        let is_read = |remote: &&RemoteEndpoint| {
            let mut routes = wanted.routes.iter();
            routes.any(|route| route.is_read && route.is_from_site && route.name == remote.endpoint.name)
        };
        let of_sites = look
            .zenoh
            .iter()
            .filter(|remote| remote.endpoint.kind == Kind::Publisher && look.gateways.contains(&remote.zid));
        let of_sites: Vec<&RemoteEndpoint> = of_sites.collect();
        let read = of_sites.iter().copied().filter(|remote| is_read(remote));
        let zids = read.map(|remote| remote.zid.clone()).collect();
        self.shared.clocks.follow(&zids, self.shared.node.now());
        self.shared.lock().site_gids = of_sites.iter().map(|remote| remote.gid).collect();
    }

    /// Shows ROS 2 the bus's nodes and those of their endpoints that have routes; bridges to the same network are none.
    fn announce(&mut self, wanted: &Plan, services: &ServicePlan) {
        let is_shown = |name: &str| !is_bridge(name);
        let is_working = !self.shared.lock().is_standby && self.seen.has_settled;
        let nodes = self.seen.nodes.iter().filter(|node| is_working && is_shown(&node.name));
        let nodes = nodes.map(|node| (node.id, node.name.clone())).collect();
        let mut endpoints = BTreeSet::new();
        for known in self.seen.bus.iter().filter(|known| is_shown(&known.node_name)) {
            endpoints.extend(of_topic(known, wanted));
            endpoints.extend(of_service(known, services));
        }
        let changes = self.announced.follow(&nodes, &endpoints);
        for key in changes.undeclare {
            // Dropped, it is taken back.
            self.tokens.remove(&key);
        }
        for key in changes.declare {
            match self.shared.session.liveliness().declare_token(&key).wait() {
                Ok(token) => _ = self.tokens.insert(key, token),
                Err(why) => self.shared.notice_once(&format!("{key} cannot be announced in Zenoh: {why}")),
            }
        }
    }
}

/// The tokens of an endpoint that writes or reads a topic with a route.
fn of_topic(known: &KnownEndpoint, wanted: &Plan) -> Vec<Announced> {
    let (kind, direction) = match known.endpoint.kind {
        EndpointKind::Writer => (Kind::Publisher, Direction::ToZenoh),
        EndpointKind::Reader => (Kind::Subscription, Direction::FromZenoh),
    };
    // Routes are in the order of their topics.
    let first = wanted.routes.partition_point(|route| route.name.name < known.endpoint.topic);
    let of = wanted.routes[first..].iter().take_while(|route| route.name.name == known.endpoint.topic);
    let route = of.filter(|route| route.direction == direction && (route.is_read || kind == Kind::Publisher));
    let one = |hash: &String, name: &noctule_ros_zenoh::key::TypedName| Announced {
        node: known.node,
        kind,
        name: name.clone(),
        hash: hash.clone(),
        qos: RosQos::of_bus(&known.endpoint.qos).text(),
    };
    route.flat_map(|route| route.hashes.iter().map(|hash| one(hash, &route.name))).collect()
}

/// The tokens of an endpoint by which a node serves or calls a service with a route: that of its requests represents both.
fn of_service(known: &KnownEndpoint, services: &ServicePlan) -> Vec<Announced> {
    let Some((name, 0)) = end_of(&known.endpoint.topic) else { return Vec::new() };
    let Some(route) = services.routes.iter().find(|route| route.name.name == name) else { return Vec::new() };
    let (kind, direction) = match known.endpoint.kind {
        EndpointKind::Reader => (Kind::Server, Direction::ToZenoh),
        EndpointKind::Writer => (Kind::Client, Direction::FromZenoh),
    };
    if route.direction != direction {
        return Vec::new();
    }
    let hashes = match route.hashes.is_empty() {
        true => vec![UNKNOWN_HASH.to_owned()],
        false => route.hashes.iter().cloned().collect(),
    };
    let qos = RosQos::of_services().text();
    let one = |hash| Announced { node: known.node, kind, name: route.name.clone(), hash, qos: qos.clone() };
    hashes.into_iter().map(one).collect()
}
