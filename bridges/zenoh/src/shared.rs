//! State that the bridge's threads and Zenoh's callbacks share: both sides' handles, the nodes that are there, and notices for the user.

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use noctule::request::ServiceError;
use noctule::{Node, NodeError};
use noctule_ros_zenoh::graph::Graph;
use zenoh::Session;

use crate::clocks::Clocks;
use crate::counters::Counted;

/// Notices that wait to be read.
const NOTICES_MAX: usize = 1024;
/// Different notices that are given once.
const GIVEN_MAX: usize = 8192;

/// Why something cannot be exchanged.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RouteError {
    /// Zenoh's side.
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

impl From<zenoh::Error> for RouteError {
    fn from(error: zenoh::Error) -> RouteError {
        RouteError::Zenoh(error.to_string())
    }
}

/// Handles and state that routes, services and the planning thread share.
pub(crate) struct Shared {
    pub(crate) node: Node,
    pub(crate) session: Session,
    /// The session's number as Zenoh prints it.
    pub(crate) zid: String,
    /// `ROS_DOMAIN_ID`.
    pub(crate) domain: u32,
    pub(crate) clocks: Clocks,
    /// Samples and requests that others' attachments make unreadable, replies of clocks that do not count: all that is hostile or broken.
    pub(crate) malformed: AtomicU64,
    graph: Mutex<Graph>,
    stop: AtomicBool,
    inside: Mutex<Inside>,
}

/// Others, and what is reported.
#[derive(Debug, Default)]
pub(crate) struct Inside {
    /// Identities by which samples of other gateways name their publishers: they come on keys of our own.
    pub(crate) site_gids: HashSet<[u8; 16]>,
    pub(crate) notices: VecDeque<String>,
    given: BTreeSet<String>,
    /// Other sessions in ROS 2's graph.
    pub(crate) sessions: usize,
    /// Another bridge does the work.
    pub(crate) is_standby: bool,
    pub(crate) routes: Vec<Counted>,
    /// Names of ROS 2's nodes.
    pub(crate) ros_nodes: Vec<String>,
    /// Nodes and endpoints of the bus that had no room among the tokens.
    pub(crate) not_announced: usize,
}

impl Shared {
    pub(crate) fn new(node: Node, session: Session, domain: u32) -> Shared {
        let zid = session.zid().to_string();
        let graph = Mutex::new(Graph::new(domain, &zid));
        let clocks = Clocks::default();
        let (malformed, stop, inside) = (AtomicU64::new(0), AtomicBool::new(false), Mutex::default());
        Shared { node, session, zid, domain, clocks, malformed, graph, stop, inside }
    }

    pub(crate) fn end(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn graph(&self) -> MutexGuard<'_, Graph> {
        self.graph.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_site_gid(&self, gid: &[u8; 16]) -> bool {
        self.lock().site_gids.contains(gid)
    }

    pub(crate) fn notice_once(&self, text: &str) {
        let mut inside = self.lock();
        if inside.given.len() == GIVEN_MAX {
            inside.given.clear();
        }
        if inside.given.insert(text.to_owned()) && inside.notices.len() < NOTICES_MAX {
            inside.notices.push_back(text.to_owned());
        }
    }
}
