//! Routes as the planning thread keeps them: each announced on its far side, and read while a reader there exists.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use crate::counters::{Counted, RouteCounters, RouteStatus};
use crate::cyclone::Writer;
use crate::from_dds::{self, Outlet};
use crate::plan::{Direction, Plan, Route, dds_names};
use crate::reader_thread::ReaderThread;
use crate::shared::{RouteError, Shared};
use crate::to_dds::{self, ToDds};
use crate::user_data::user_data;

/// A topic and a way, of which there is one route.
type Key = (String, Direction);

/// All routes, and the threads that pass their samples.
pub(crate) struct Routes {
    shared: Arc<Shared>,
    from_dds: ReaderThread<from_dds::Passage>,
    to_dds: ToDds,
    open: BTreeMap<Key, OpenRoute>,
    /// The next number of a route that is read.
    next: u32,
}

/// A route that is announced.
struct OpenRoute {
    /// Number in DDS of the writer, or of the reader while it is read.
    guid: Option<[u8; 16]>,
    route: Arc<Route>,
    counters: Arc<RouteCounters>,
    announced: Announced,
    /// Its number, while it is read.
    number: Option<u32>,
}

/// The endpoint that a route announces on its far side.
enum Announced {
    OnBus(Arc<Mutex<Outlet>>),
    InDds(Arc<Writer>),
}

impl Routes {
    pub(crate) fn start(shared: &Arc<Shared>) -> Result<Routes, RouteError> {
        let (from_dds, to_dds) = (ReaderThread::start("noctule-dds-in", shared)?, ToDds::new(shared));
        Ok(Routes { shared: Arc::clone(shared), from_dds, to_dds, open: BTreeMap::new(), next: 0 })
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
                self.shared.notice_once(&format!("topic {} is not exchanged: {error}", route.topic));
            }
        }
        is_complete
    }

    /// The number in DDS of the bridge's endpoint of a topic.
    pub(crate) fn guid(&self, topic: &str, direction: Direction) -> Option<[u8; 16]> {
        self.open.get(&(topic.to_owned(), direction))?.guid
    }

    /// Every route with its counts.
    pub(crate) fn listed(&self) -> Vec<Counted> {
        self.open.values().map(|open| (Arc::clone(&open.route), Arc::clone(&open.counters))).collect()
    }

    fn follow_one(&mut self, route: &Route) -> Result<(), RouteError> {
        let of = key(route);
        if !self.open.contains_key(&of) {
            let opened = OpenRoute::announce(&self.shared, route)?;
            self.open.insert(of.clone(), opened);
        }
        let Some(mut open) = self.open.remove(&of) else { return Ok(()) };
        open.route = Arc::new(route.clone());
        let result = match (route.is_read, open.number) {
            (true, None) => self.read(&mut open),
            (false, Some(_)) => {
                self.stop(&open);
                open.number = None;
                if open.route.direction == Direction::FromDds {
                    open.guid = None;
                }
                Ok(())
            }
            _ => Ok(()),
        };
        self.open.insert(of, open);
        result
    }

    fn read(&mut self, open: &mut OpenRoute) -> Result<(), RouteError> {
        let number = self.next;
        let (route, counters) = (Arc::clone(&open.route), Arc::clone(&open.counters));
        match &open.announced {
            Announced::OnBus(outlet) => {
                let (topic, type_name) = dds_names(&route);
                let user_data = user_data(route.rihs01.as_deref());
                let reader = self.shared.participant.reader((&topic, &type_name), &route.qos, &user_data)?;
                open.guid = Some(reader.guid()?);
                let outlet = Arc::clone(outlet);
                self.from_dds.add(number, from_dds::Passage { route, counters, reader, outlet });
            }
            Announced::InDds(writer) => {
                let subscriber = to_dds::subscriber(&self.shared.node, &route)?;
                let writer = Arc::clone(writer);
                self.to_dds.add(number, to_dds::Passage { route, counters, subscriber, writer })?;
            }
        }
        // After 4 billion changes numbers come again; their routes are gone by then.
        self.next = self.next.wrapping_add(1);
        open.number = Some(number);
        Ok(())
    }

    fn stop(&mut self, open: &OpenRoute) {
        match (open.number, &open.announced) {
            (Some(number), Announced::OnBus(_)) => self.from_dds.stop(number),
            (Some(number), Announced::InDds(_)) => self.to_dds.stop(number),
            (None, _) => {}
        }
    }
}

impl OpenRoute {
    fn announce(shared: &Shared, route: &Route) -> Result<OpenRoute, RouteError> {
        let mut guid = None;
        let announced = match route.direction {
            Direction::FromDds => Announced::OnBus(Arc::new(Mutex::new(Outlet::open(&shared.node, route)?))),
            Direction::ToDds => {
                let (topic, type_name) = dds_names(route);
                let user_data = user_data(route.rihs01.as_deref());
                let writer = shared.participant.writer((&topic, &type_name), &route.offered(), &user_data)?;
                guid = Some(writer.guid()?);
                Announced::InDds(Arc::new(writer))
            }
        };
        let (route, counters) = (Arc::new(route.clone()), Arc::default());
        Ok(OpenRoute { guid, route, counters, announced, number: None })
    }
}

fn key(route: &Route) -> Key {
    (route.topic.clone(), route.direction)
}

/// Status of each route.
pub(crate) fn statuses(routes: &[Counted]) -> Vec<RouteStatus> {
    routes.iter().map(|(route, counters)| counters.status(route.as_ref())).collect()
}
