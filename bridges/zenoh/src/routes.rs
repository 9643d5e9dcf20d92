//! Routes as the planning thread keeps them: each announced on its far side, and read while a reader there exists.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use noctule_ros_zenoh::announce::Announcements;
use noctule_ros_zenoh::plan::{Direction, Plan, Route};
use noctule_ros_zenoh::site::sample_key;
use zenoh_ext::AdvancedSubscriber;

use crate::counters::{Counted, RouteCounters};
use crate::engine;
use crate::from_zenoh::Outlet;
use crate::shared::{RouteError, Shared};
use crate::to_zenoh::{self, Passage, ToZenoh, Writer};

/// A topic and a way, of which there is one route.
type Key = (String, Direction);

/// All routes.
pub(crate) struct Routes {
    shared: Arc<Shared>,
    to_zenoh: ToZenoh,
    open: BTreeMap<Key, OpenRoute>,
    /// The next number of a route to Zenoh that is read.
    next: u32,
}

/// A route that is announced.
struct OpenRoute {
    route: Arc<Route>,
    counters: Arc<RouteCounters>,
    end: End,
}

/// Endpoints of a route: on its far side, and while it is read on its near one.
enum End {
    OnBus { outlet: Arc<Outlet>, subscribers: Vec<AdvancedSubscriber<()>> },
    InZenoh { writer: Arc<Writer>, number: Option<u32> },
}

impl Routes {
    pub(crate) fn new(shared: &Arc<Shared>) -> Routes {
        Routes { shared: Arc::clone(shared), to_zenoh: ToZenoh::new(shared), open: BTreeMap::new(), next: 0 }
    }

    /// Closes what is not needed any more, opens what is, and reads what is read. False if something of that failed, which
    /// may be tried again.
    pub(crate) fn follow(&mut self, wanted: &Plan) -> bool {
        let unread = |route: &Route| Route { is_read: false, ..route.clone() };
        let by_key: BTreeMap<Key, &Route> = wanted.routes.iter().map(|route| (key(route), route)).collect();
        let is_wanted = |of: &Key, open: &OpenRoute| {
            by_key.get(of).is_some_and(|route| unread(route) == unread(&open.route))
        };
        let gone: BTreeSet<Key> =
            self.open.iter().filter(|(of, open)| !is_wanted(of, open)).map(|(of, _)| of.clone()).collect();
        for of in gone {
            if let Some(open) = self.open.remove(&of) {
                self.stop(&open);
            }
        }
        let mut is_complete = true;
        for route in &wanted.routes {
            if let Err(error) = self.follow_one(route) {
                is_complete = false;
                self.shared.notice_once(&format!("topic {} is not exchanged: {error}", route.name.name));
            }
        }
        is_complete
    }

    /// Gives the writers in Zenoh the numbers of the publishers on the bus.
    pub(crate) fn name_publishers(&self, announced: &Announcements) {
        for open in self.open.values() {
            if let End::InZenoh { writer, .. } = &open.end {
                let of = |hash: &String| (hash.clone(), announced.gids(&open.route.name, hash));
                writer.set_gids(open.route.hashes.iter().map(of).collect());
            }
        }
    }

    /// Every route with its counts.
    pub(crate) fn listed(&self) -> Vec<Counted> {
        self.open.values().map(|open| (Arc::clone(&open.route), Arc::clone(&open.counters))).collect()
    }

    fn follow_one(&mut self, route: &Route) -> Result<(), RouteError> {
        let of = key(route);
        let mut open = match self.open.remove(&of) {
            Some(open) => open,
            None => OpenRoute::announce(&self.shared, route)?,
        };
        open.route = Arc::new(route.clone());
        let result = self.read(&mut open);
        self.open.insert(of, open);
        result
    }

    /// Begins or leaves off to read.
    fn read(&mut self, open: &mut OpenRoute) -> Result<(), RouteError> {
        let OpenRoute { route, counters, end } = open;
        match end {
            End::OnBus { subscribers, .. } if !route.is_read => subscribers.clear(),
            End::OnBus { outlet, subscribers } if subscribers.is_empty() => {
                *subscribers = subscribe(&self.shared, route, outlet)?;
            }
            End::InZenoh { number, .. } if !route.is_read => {
                if let Some(number) = number.take() {
                    self.to_zenoh.stop(number);
                }
            }
            End::InZenoh { writer, number } if number.is_none() => {
                let subscriber = to_zenoh::subscriber(&self.shared.node, route)?;
                let (route, counters, writer) = (Arc::clone(route), Arc::clone(counters), Arc::clone(writer));
                let passage = Passage { route, counters, subscriber, writer, sequences: BTreeMap::new() };
                self.to_zenoh.add(self.next, passage)?;
                *number = Some(self.next);
                // After 4 billion changes numbers come again; their routes are gone by then.
                self.next = self.next.wrapping_add(1);
            }
            End::OnBus { .. } | End::InZenoh { .. } => {}
        }
        Ok(())
    }

    fn stop(&mut self, open: &OpenRoute) {
        if let End::InZenoh { number: Some(number), .. } = &open.end {
            self.to_zenoh.stop(*number);
        }
    }
}

impl OpenRoute {
    fn announce(shared: &Shared, route: &Route) -> Result<OpenRoute, RouteError> {
        let (route, counters) = (Arc::new(route.clone()), Arc::<RouteCounters>::default());
        let end = match route.direction {
            Direction::FromZenoh => {
                let outlet = Arc::new(Outlet::open(&shared.node, &route, &counters)?);
                End::OnBus { outlet, subscribers: Vec::new() }
            }
            Direction::ToZenoh => {
                End::InZenoh { writer: Arc::new(Writer::open(shared, &route)?), number: None }
            }
        };
        Ok(OpenRoute { route, counters, end })
    }
}

/// Subscribes to the keys of ROS 2's publishers, and to our own if another gateway publishes.
fn subscribe(
    shared: &Arc<Shared>,
    route: &Route,
    outlet: &Arc<Outlet>,
) -> Result<Vec<AdvancedSubscriber<()>>, RouteError> {
    let Shared { session, domain, .. } = &**shared;
    let mut subscribers = Vec::new();
    if route.is_from_site {
        let (weak, outlet) = (Arc::downgrade(shared), Arc::clone(outlet));
        let key = sample_key(*domain, "*", &route.name, "*");
        subscribers.push(engine::subscriber(session, key, &route.qos, move |sample| {
            if let Some(shared) = weak.upgrade() {
                outlet.handle_site(&shared, &sample);
            }
        })?);
    }
    for hash in route.hashes.iter().filter(|_| route.is_from_ros) {
        let (weak, outlet) = (Arc::downgrade(shared), Arc::clone(outlet));
        let key = route.name.key(*domain, hash);
        subscribers.push(engine::subscriber(session, key, &route.qos, move |sample| {
            if let Some(shared) = weak.upgrade() {
                outlet.handle_ros(&shared, &sample);
            }
        })?);
    }
    Ok(subscribers)
}

fn key(route: &Route) -> Key {
    (route.name.name.clone(), route.direction)
}
