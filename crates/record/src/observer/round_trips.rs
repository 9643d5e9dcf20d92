//! How long a datagram takes to each node and back, what that says of its clock, and what links it has to others: one ping and one
//! question a node every two seconds, from a thread of its own.
//!
//! The library compares clocks only with nodes that it receives from itself; what a sibling on this host hands on needs no clock of its
//! own here. So a looker keeps an estimator for each node and feeds it with its pings.

use std::collections::BTreeMap;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use noctule::{Estimate, Exchange, LinkReport, Node, NodeId};
use noctule_time_sync::{Bounded, BoundedConfig, Estimator, Local};

/// Interval between two pings of a node.
const EVERY: Duration = Duration::from_secs(2);
/// A node that has not answered by then has not.
const TIMEOUT: Duration = Duration::from_millis(500);
/// A node that left so many questions for its links unanswered, one after the other, does not know them.
const UNANSWERED_MAX: u32 = 3;
/// Nodes that are asked.
const NODES_LIMIT: usize = 256;

/// Round trips to a node, and its clock.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RoundTrip {
    pub(super) asked: u64,
    pub(super) answered: u64,
    pub(super) last_ns: Option<i64>,
    pub(super) least_ns: Option<i64>,
    /// Its clock now.
    pub(super) clock: Option<Estimate>,
}

/// A node that is asked.
struct Asked {
    trip: RoundTrip,
    /// Links to nodes of other hosts, as it answered last.
    links: Vec<LinkReport>,
    /// Questions for its links in a row that it left unanswered.
    unanswered: u32,
    clock: Bounded,
}

impl Asked {
    fn handle_answer(&mut self, exchange: &Exchange) {
        // The other side's own time is not the network's.
        let ns = (exchange.t4 - exchange.t1).ns() - (exchange.t3 - exchange.t2).ns();
        self.trip.answered += 1;
        self.trip.last_ns = Some(ns);
        self.trip.least_ns = Some(self.trip.least_ns.map_or(ns, |least| least.min(ns)));
        // One that contradicts those before is counted by the estimator, and shows in its state.
        let _ = self.clock.handle_exchange(exchange);
    }
}

type Known = Arc<Mutex<BTreeMap<NodeId, Asked>>>;

/// Asks until it is dropped.
pub(super) struct RoundTrips {
    known: Known,
    /// Its end is what the thread waits for.
    _stop: Option<Sender<()>>,
}

impl RoundTrips {
    pub(super) fn start(node: &Arc<Node>) -> RoundTrips {
        let known = Known::default();
        let (stop, stopped) = channel();
        let (node, table) = (Arc::clone(node), Arc::clone(&known));
        let work = move || {
            loop {
                let begin = Instant::now();
                ask_all(&node, &table);
                let rest = EVERY.saturating_sub(begin.elapsed());
                if stopped.recv_timeout(rest) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        };
        // Without a thread there are no round trips, which the page shows as a dash.
        let started = std::thread::Builder::new().name("noctule-ping".into()).spawn(work);
        RoundTrips { known, _stop: started.is_ok().then_some(stop) }
    }

    pub(super) fn of(&self, node: NodeId, now: noctule_timebase::Instant<Local>) -> Option<RoundTrip> {
        let known = lock(&self.known);
        let asked = known.get(&node)?;
        Some(RoundTrip { clock: asked.clock.estimate(now), ..asked.trip })
    }

    /// Links between nodes, each as the node that it leaves from knows it.
    pub(super) fn links(&self) -> Vec<(NodeId, LinkReport)> {
        let known = lock(&self.known);
        known.iter().flat_map(|(from, asked)| asked.links.iter().map(|link| (*from, *link))).collect()
    }
}

fn lock(known: &Known) -> MutexGuard<'_, BTreeMap<NodeId, Asked>> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

fn ask_all(node: &Node, table: &Known) {
    let nodes = node.nodes();
    lock(table).retain(|id, _| nodes.iter().any(|known| known.id == *id));
    for known in nodes.iter().take(NODES_LIMIT) {
        let answer = node.ping(known.id, TIMEOUT);
        let is_silent = lock(table).get(&known.id).is_some_and(|asked| asked.unanswered >= UNANSWERED_MAX);
        // A node that does not answer a ping answers nothing else, and would be waited for.
        let links = (answer.is_ok() && !is_silent).then(|| node.links_of(known.id, TIMEOUT).ok());
        let mut table = lock(table);
        let asked = table.entry(known.id).or_insert_with(|| Asked {
            trip: RoundTrip::default(),
            links: Vec::new(),
            unanswered: 0,
            clock: Bounded::new(BoundedConfig::default()),
        });
        asked.trip.asked += 1;
        if let Ok(exchange) = answer {
            asked.handle_answer(&exchange);
        }
        match links {
            Some(Some(links)) => (asked.links, asked.unanswered) = (links, 0),
            Some(None) => asked.unanswered += 1,
            None => {}
        }
    }
}
