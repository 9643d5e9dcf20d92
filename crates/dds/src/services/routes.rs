//! Services as the planning thread keeps them: each offered on the side that its server is not on.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use noctule::request::{ServiceTopics, TypeRef};
use noctule::{Qos, Reliability};
use noctule_bridge::names::dds_type;

use super::exchange::{End, Exchange};
use super::intake::Tap;
use super::lane::ServicesLane;
use super::plan::{ServiceRoute, subject};
use super::status::{CountedService, ServiceCounters};
use crate::cyclone::{Reader, Writer};
use crate::plan::Direction;
use crate::reader_thread::ReaderThread;
use crate::shared::{RouteError, Shared};
use crate::user_data::{self, user_data};

/// HISTORY of requests and replies in DDS. ROS 2 has 10 for its own; a bridge has those of many clients at once, and what KEEP_LAST drops before it
/// is acknowledged is lost.
const DEPTH: u32 = 1000;
/// Longest request or response that passes, in bytes.
const MESSAGE_BYTES_MAX: u32 = 256 << 10;

/// All services, and the threads that pass their messages.
pub(crate) struct ServiceRoutes {
    shared: Arc<Shared>,
    intake: Option<ReaderThread<Tap>>,
    lanes: Vec<ServicesLane>,
    open: BTreeMap<String, OpenService>,
    /// The next number of a service.
    next: u32,
}

struct OpenService {
    number: u32,
    route: Arc<ServiceRoute>,
    counters: Arc<ServiceCounters>,
    /// Numbers in DDS of the bridge's endpoints: of requests, of replies.
    guids: [[u8; 16]; 2],
}

impl ServiceRoutes {
    pub(crate) fn new(shared: &Arc<Shared>) -> ServiceRoutes {
        ServiceRoutes {
            shared: Arc::clone(shared),
            intake: None,
            lanes: Vec::new(),
            open: BTreeMap::new(),
            next: 0,
        }
    }

    /// Closes what is not needed any more, and opens what is. False if something of that failed, which may be tried again.
    pub(crate) fn follow(&mut self, wanted: &[ServiceRoute]) -> bool {
        let wanted_as = |open: &OpenService| wanted.iter().any(|route| open.route.serves_as(route));
        let gone: BTreeSet<String> =
            self.open.iter().filter(|(_, open)| !wanted_as(open)).map(|(name, _)| name.clone()).collect();
        for service in gone {
            self.close(&service);
        }
        let mut is_complete = true;
        for route in wanted {
            if self.open.contains_key(&route.service) {
                continue;
            }
            if let Err(error) = self.open(route) {
                is_complete = false;
                self.shared.notice_once(&format!("{}: not exchanged: {error}", subject(&route.service)));
            }
        }
        is_complete
    }

    /// The numbers in DDS of the bridge's endpoints of a service whose server is on the bus: its reader of requests, its writer of replies.
    pub(crate) fn server_guids(&self, service: &str) -> Option<[[u8; 16]; 2]> {
        let open = self.open.get(service)?;
        (open.route.direction == Direction::ToDds).then_some(open.guids)
    }

    /// Every service with its counts.
    pub(crate) fn listed(&self) -> Vec<CountedService> {
        self.open.values().map(|open| (Arc::clone(&open.route), Arc::clone(&open.counters))).collect()
    }

    fn close(&mut self, service: &str) {
        let Some(OpenService { number, .. }) = self.open.remove(service) else { return };
        if let Some(intake) = &self.intake {
            intake.stop(number);
        }
        if let Some(at) = self.lanes.iter().position(|one| one.lane.has(number)) {
            self.lanes[at].lane.stop(number);
            if self.lanes[at].lane.is_empty() {
                self.lanes.swap_remove(at);
            }
        }
    }

    fn open(&mut self, route: &ServiceRoute) -> Result<(), RouteError> {
        let number = self.next;
        let counters = Arc::<ServiceCounters>::default();
        let route = Arc::new(route.clone());
        let (end, reader, writer) = match route.direction {
            Direction::FromDds => self.offer_on_bus(&route)?,
            Direction::ToDds => self.offer_in_dds(&route)?,
        };
        let (read, written) = (reader.guid()?, writer.guid()?);
        let guids = match route.direction {
            Direction::FromDds => [written, read],
            Direction::ToDds => [read, written],
        };
        if self.intake.is_none() {
            self.intake = Some(ReaderThread::start("noctule-dds-srv", &self.shared)?);
        }
        let at = match self.lanes.iter().position(|one| one.lane.has_room()) {
            Some(at) => at,
            None => {
                self.lanes.push(ServicesLane::start(&self.shared)?);
                self.lanes.len() - 1
            }
        };
        let lane = &mut self.lanes[at];
        let (inbox, waker) = (lane.inbox.clone(), lane.lane.waker());
        let (for_lane, counted) = (Arc::clone(&route), Arc::clone(&counters));
        let held = VecDeque::new();
        lane.lane.add(number, Exchange { number, route: for_lane, counters: counted, end, writer, held });
        if let Some(intake) = &self.intake {
            intake.add(number, Tap { reader, inbox, waker, counters: Arc::clone(&counters) });
        }
        // After 4 billion services numbers come again; theirs are gone by then.
        self.next = self.next.wrapping_add(1);
        self.open.insert(route.service.clone(), OpenService { number, route, counters, guids });
        Ok(())
    }

    /// A server on the bus for one in DDS, which is opened last: a client that finds it can ask.
    fn offer_on_bus(&self, route: &ServiceRoute) -> Result<(End, Reader, Writer), RouteError> {
        let Shared { node, participant, .. } = &*self.shared;
        let topics = ServiceTopics::of(&route.service)?;
        let [request, reply] = self.user_data(route, user_data::CLIENT);
        let reader = participant.reader(dds(&topics.reply, &route.types.response).pair(), &qos(), &reply)?;
        let writer =
            participant.writer(dds(&topics.request, &route.types.request).pair(), &qos(), &request)?;
        let server = node.raw_server(&route.service, route.types.clone());
        let server = Box::new(server.payload_bytes_max(MESSAGE_BYTES_MAX).open()?);
        let replies = reader.handle();
        Ok((End::Server { server, replies, asked: BTreeMap::new() }, reader, writer))
    }

    /// A server in DDS for one on the bus.
    fn offer_in_dds(&self, route: &ServiceRoute) -> Result<(End, Reader, Writer), RouteError> {
        let Shared { node, participant, .. } = &*self.shared;
        let topics = ServiceTopics::of(&route.service)?;
        let client = node.raw_client(&route.service, route.types.clone());
        let client = Box::new(client.payload_bytes_max(MESSAGE_BYTES_MAX).open()?);
        let [request, reply] = self.user_data(route, user_data::SERVICE);
        let writer = participant.writer(dds(&topics.reply, &route.types.response).pair(), &qos(), &reply)?;
        let reader =
            participant.reader(dds(&topics.request, &route.types.request).pair(), &qos(), &request)?;
        Ok((End::Client { client, asked: BTreeMap::new() }, reader, writer))
    }

    /// USER_DATA of both endpoints in DDS: the owner, by which the other side pairs them, and the hashes of their types.
    fn user_data(&self, route: &ServiceRoute, key: &str) -> [String; 2] {
        let mut id = [0; 16];
        id[..12].copy_from_slice(self.shared.participant.guid());
        id[12..].copy_from_slice(&self.next.to_be_bytes());
        let owner = user_data::owner(key, &id);
        route.rihs01.each_ref().map(|hash| format!("{owner}{}", user_data(hash.as_deref())))
    }
}

/// Names in DDS of a topic and its type.
struct DdsNames(String, String);

impl DdsNames {
    fn pair(&self) -> (&str, &str) {
        (&self.0, &self.1)
    }
}

fn dds(topic: &str, of: &TypeRef) -> DdsNames {
    DdsNames(topic.to_owned(), dds_type(&of.name))
}

fn qos() -> Qos {
    Qos { reliability: Reliability::Reliable, depth: DEPTH, ..Qos::default() }
}
