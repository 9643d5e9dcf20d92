//! State that the bridge's threads share: both sides' handles, the nodes that are there, and notices for the user.

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use noctule::request::ServiceError;
use noctule::{Node, NodeError};

use crate::counters::Counted;
use crate::cyclone::{DdsError, Participant, ReaderSet};
use crate::sibling_bridges::{ParticipantId, SiblingBridges};

/// Notices that wait to be read.
const NOTICES_MAX: usize = 1024;
/// Different notices that are reported once.
const REPORTED_MAX: usize = 8192;

/// Why a topic cannot be exchanged.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RouteError {
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
    System(#[from] io::Error),
}

/// Handles and state that routes and the planning thread share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) node: Node,
    pub(crate) participant: Participant,
    /// Waitset that the planning thread sleeps on.
    pub(crate) news: Arc<ReaderSet>,
    stop: AtomicBool,
    inside: Mutex<Inside>,
}

/// Others, and what is reported.
#[derive(Debug, Default)]
pub(crate) struct Inside {
    pub(crate) siblings: SiblingBridges,
    /// Participants of this host.
    pub(crate) here: HashSet<ParticipantId>,
    pub(crate) notices: VecDeque<String>,
    reported: BTreeSet<String>,
    /// Other participants in DDS.
    pub(crate) participants: usize,
    /// Another bridge does the work.
    pub(crate) is_standby: bool,
    pub(crate) routes: Vec<Counted>,
    /// Names of ROS 2's nodes.
    pub(crate) ros_nodes: Vec<String>,
}

impl Shared {
    pub(crate) fn new(node: Node, participant: Participant, news: Arc<ReaderSet>) -> Shared {
        Shared { node, participant, news, stop: AtomicBool::new(false), inside: Mutex::default() }
    }

    pub(crate) fn end(&self) {
        self.stop.store(true, Ordering::Release);
        self.news.wake();
    }

    pub(crate) fn is_over(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Inside> {
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
        if inside.reported.len() == REPORTED_MAX {
            inside.reported.clear();
        }
        if inside.reported.insert(text.to_owned()) && inside.notices.len() < NOTICES_MAX {
            inside.notices.push_back(text.to_owned());
        }
    }
}
