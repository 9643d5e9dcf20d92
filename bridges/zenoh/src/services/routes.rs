//! Services as the planning thread keeps them: each offered on the side that has no server.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use noctule::WaitSet;
use noctule_bridge::lane::Lane;
use noctule_bridge::orders::Orders;
use noctule_ros_zenoh::plan::Direction;
use noctule_ros_zenoh::services::ServiceRoute;
use noctule_ros_zenoh::token::gid_of;
use zenoh::Wait;
use zenoh::query::{Query, Queryable};
use zenoh::sample::Locality;

use super::exchange::{Arrived, End, Exchange, Inbox, Waiting, What, Work};
use super::status::{CountedService, ServiceCounters};
use crate::counters::count;
use crate::shared::{RouteError, Shared};

/// Longest request or response, in bytes.
const MESSAGE_BYTES_MAX: u32 = 1 << 20;

/// All services, and the threads that pass their messages.
pub(crate) struct ServiceRoutes {
    shared: Arc<Shared>,
    lanes: Vec<ServicesLane>,
    open: BTreeMap<String, OpenService>,
    /// The next number of a service.
    next: u32,
}

/// A thread and where its messages from Zenoh wait.
struct ServicesLane {
    lane: Lane<Exchange>,
    inbox: Inbox,
}

/// A service that is offered.
struct OpenService {
    number: u32,
    route: Arc<ServiceRoute>,
    counters: Arc<ServiceCounters>,
    /// Queryable of a server on the bus.
    _queryable: Option<Queryable<()>>,
}

impl ServiceRoutes {
    pub(crate) fn new(shared: &Arc<Shared>) -> ServiceRoutes {
        ServiceRoutes { shared: Arc::clone(shared), lanes: Vec::new(), open: BTreeMap::new(), next: 0 }
    }

    /// Closes what is not needed any more and opens what is. False if something of that failed, which may be tried again.
    pub(crate) fn follow(&mut self, wanted: &[ServiceRoute]) -> bool {
        let by_name: BTreeMap<&str, &ServiceRoute> =
            wanted.iter().map(|route| (route.name.name.as_str(), route)).collect();
        let is_wanted = |name: &String, open: &OpenService| {
            by_name.get(name.as_str()).is_some_and(|route| is_same(route, &open.route))
        };
        let gone: BTreeSet<String> = self
            .open
            .iter()
            .filter(|(name, open)| !is_wanted(name, open))
            .map(|(name, _)| name.clone())
            .collect();
        for name in gone {
            if let Some(open) = self.open.remove(&name) {
                self.stop(open.number);
            }
        }
        let mut is_complete = true;
        for route in wanted {
            if self.open.contains_key(&route.name.name) {
                continue;
            }
            if let Err(error) = self.start(route) {
                is_complete = false;
                self.shared.notice_once(&format!("service {} is not exchanged: {error}", route.name.name));
            }
        }
        is_complete
    }

    /// Every service with its counts.
    pub(crate) fn listed(&self) -> Vec<CountedService> {
        self.open.values().map(|open| (Arc::clone(&open.route), Arc::clone(&open.counters))).collect()
    }

    fn start(&mut self, route: &ServiceRoute) -> Result<(), RouteError> {
        let (number, route, counters) =
            (self.next, Arc::new(route.clone()), Arc::<ServiceCounters>::default());
        let at = match self.lanes.iter().position(|one| one.lane.has_room()) {
            Some(at) => at,
            None => {
                self.lanes.push(ServicesLane::start(&self.shared)?);
                self.lanes.len() - 1
            }
        };
        let inbox = self.lanes[at].inbox.clone();
        let node = &self.shared.node;
        let (service, types) = (&route.name.name, route.types.clone());
        let mut queryable = None;
        let end = match route.direction {
            Direction::FromZenoh => {
                let server = node.raw_server(service, types).payload_bytes_max(MESSAGE_BYTES_MAX).open()?;
                let hash = route.hashes.first().map(String::as_str).unwrap_or_default();
                let key = route.name.key(self.shared.domain, hash);
                let gid = gid_of(&format!("{}/{number}/{key}", self.shared.zid));
                End::Server { server: Box::new(server), key, gid, next: 0, asked: BTreeMap::new() }
            }
            Direction::ToZenoh => {
                let client = node.raw_client(service, types).payload_bytes_max(MESSAGE_BYTES_MAX).open()?;
                queryable = Some(self.queryable(number, &route, (&inbox, &counters))?);
                End::Client { client: Box::new(client), asked: BTreeMap::new() }
            }
        };
        let (of, counted) = (Arc::clone(&route), Arc::clone(&counters));
        self.lanes[at].lane.add(number, Exchange { number, route: of, counters: counted, inbox, end });
        let name = route.name.name.clone();
        self.open.insert(name, OpenService { number, route, counters, _queryable: queryable });
        // After 4 billion services numbers come again; theirs are gone by then.
        self.next = self.next.wrapping_add(1);
        Ok(())
    }

    /// Takes requests under any hash: what the bus's types are called there is known by their clients alone.
    fn queryable(
        &self,
        number: u32,
        route: &ServiceRoute,
        (inbox, counters): (&Inbox, &Arc<ServiceCounters>),
    ) -> Result<Queryable<()>, RouteError> {
        let (inbox, counters) = (inbox.clone(), Arc::clone(counters));
        let take = move |query: Query| {
            // Kept apart for the case that there is no room.
            let refusal = query.clone();
            if !inbox.push(Arrived { number, what: What::Asked(Box::new(query)) }) {
                count(&counters.full, 1);
                // The client may have gone meanwhile.
                let _ =
                    refusal.reply_err("the bridge holds as many requests as it may; call again later").wait();
            }
        };
        let key = route.name.key(self.shared.domain, "*");
        let queryable = self.shared.session.declare_queryable(key).complete(true);
        Ok(queryable.allowed_origin(Locality::Remote).callback(take).wait()?)
    }

    fn stop(&mut self, number: u32) {
        let Some(at) = self.lanes.iter().position(|one| one.lane.has(number)) else { return };
        self.lanes[at].lane.stop(number);
        if self.lanes[at].lane.is_empty() {
            self.lanes.swap_remove(at);
        }
    }
}

/// Whether an open service need not be opened anew: a server on the bus serves any hash.
fn is_same(wanted: &ServiceRoute, open: &ServiceRoute) -> bool {
    let is_hash_free = wanted.direction == Direction::ToZenoh;
    (&wanted.name, &wanted.types, wanted.direction) == (&open.name, &open.types, open.direction)
        && (is_hash_free || wanted.hashes == open.hashes)
}

impl ServicesLane {
    fn start(shared: &Arc<Shared>) -> Result<ServicesLane, RouteError> {
        let (shared, waiting) = (Arc::clone(shared), Waiting::default());
        let theirs = Arc::clone(&waiting);
        let work = move |set: WaitSet, orders: Arc<Orders<Exchange>>| {
            let inbox = Inbox::new(theirs, set.waker());
            Work { shared, set, orders, inbox, exchanges: Vec::new() }.run();
        };
        let lane = Lane::start("noctule-zen-ask", work)?;
        let inbox = Inbox::new(waiting, lane.waker());
        Ok(ServicesLane { lane, inbox })
    }
}
