//! The bus side of a line: a publisher for each writer of its clients, a subscriber for each reader, a client or a server for each requester and replier.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use noctule::request::{ServiceError, ServiceTypes, TypeRef};
use noctule::{Format, Node, NodeError, Publisher, Reliability, Subscriber, TypeDescription};
use noctule_bridge::names::{bus_service, bus_topic, bus_type};
use noctule_sys::clock::raw_ns;
use noctule_timebase::Instant;
use noctule_xrce::{ClientKey, Direction, Endpoint, EndpointId, ObjectId, Sample};

use crate::ages::{Moment, Source, Stamped};
use crate::bus_reader::BusReader;
use crate::inlet::{Inlet, encapsulated};
use crate::services::{End, MESSAGE_BYTES_MAX, Service};

/// Nodes that a gateway makes for the DDS domains of its clients.
const DOMAINS_MAX: usize = 16;
/// Largest sample of a client on the bus, in bytes.
const PAYLOAD_BYTES_MAX: u32 = 256 << 10;
/// History of a topic whose board names none: what a reader that is descheduled for half a second still gets at 100 Hz. Its memory is touched
/// only as far as it is used.
const HISTORY_DEFAULT: u16 = 64;
/// Deepest history of a client's writer on the bus, in samples.
const HISTORY_MAX: u16 = 1000;

/// Finds the description of a topic's type by the names that the bus has for both: clients send names and no definitions.
pub type Definitions = Arc<dyn Fn(&str, &str) -> Option<TypeDescription> + Send + Sync>;

/// Where clients' domains are, and what is known of their types.
pub(crate) struct Nodes {
    pub(crate) place: Place,
    pub(crate) definitions: Option<Definitions>,
}

impl std::fmt::Debug for Nodes {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Debug::fmt(&self.place, out)
    }
}

/// Place of the nodes of clients' domains.
#[derive(Debug)]
pub(crate) enum Place {
    /// All of them at one node.
    One(Arc<Node>),
    /// Each at a node of its own, of the same domain, made when it is needed.
    EachDomain(Mutex<HashMap<u16, Arc<Node>>>),
}

impl Nodes {
    pub(crate) fn of_domain(&self, domain: u16) -> Result<Arc<Node>, NodeError> {
        match &self.place {
            Place::One(node) => Ok(Arc::clone(node)),
            Place::EachDomain(nodes) => {
                let mut nodes = nodes.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(node) = nodes.get(&domain) {
                    return Ok(Arc::clone(node));
                }
                if nodes.len() == DOMAINS_MAX {
                    return Err(NodeError::Full);
                }
                let node = Arc::new(Node::builder("noctule gateway").domain(domain.into()).open()?);
                nodes.insert(domain, Arc::clone(&node));
                Ok(node)
            }
        }
    }

    /// Hash of the type of a client's topic, which the node describes to others from then on; 0 if its definition is not known.
    fn type_hash(&self, node: &Node, topic: &str, type_name: &str) -> u64 {
        let found = self.definitions.as_ref().and_then(|definitions| definitions(topic, type_name));
        let found = found.filter(|description| description.name() == type_name);
        found.and_then(|description| node.describe(description.text()).ok()).unwrap_or(0)
    }
}

/// Endpoints of a line's clients on the bus.
#[derive(Debug)]
pub(crate) struct Bus {
    nodes: Arc<Nodes>,
    outlets: HashMap<EndpointId, Outlet>,
    inlets: HashMap<EndpointId, Inward>,
    services: HashMap<EndpointId, ServiceEnd>,
    /// Services that were closed alone and whose threads are still to be ended.
    closed: Vec<Service>,
    /// Once there is a reader.
    reader: Option<BusReader>,
    /// The line ends; what a client opens in that moment is left.
    is_closed: bool,
}

/// A requester or replier of a client, which comes as two endpoints.
#[derive(Debug)]
enum ServiceEnd {
    /// The first of them.
    Half(Endpoint),
    /// Both, on the bus.
    Open(Service, Arc<Node>),
}

/// A client's reader on the bus.
#[derive(Debug)]
struct Inward {
    topic: String,
    /// The user knows that samples do not reach it.
    is_reported: bool,
}

/// A client's writer on the bus.
#[derive(Debug)]
struct Outlet {
    node: Arc<Node>,
    publisher: Publisher,
    stamped: Stamped,
    /// Buffer for the payload with its encapsulation header.
    payload: Vec<u8>,
}

/// The threads of a line's endpoints.
#[must_use = "they are to be ended"]
pub(crate) struct Threads {
    services: Vec<Service>,
    reader: Option<BusReader>,
}

impl Threads {
    /// Ends them and waits for it. The caller must not hold what the line's `deliver` waits for.
    pub(crate) fn end(self) {
        self.services.into_iter().for_each(Service::end);
        if let Some(reader) = self.reader {
            reader.end();
        }
    }
}

/// An endpoint of a client that the bus does not have.
#[derive(Debug, thiserror::Error)]
#[error("{what} is not on the bus: {cause}")]
pub(crate) struct NotOnBus {
    /// Topic or service, with its name.
    what: String,
    cause: Cause,
}

#[derive(Debug, thiserror::Error)]
enum Cause {
    #[error(transparent)]
    Node(#[from] NodeError),
    #[error(transparent)]
    Service(#[from] ServiceError),
    #[error(transparent)]
    Thread(#[from] std::io::Error),
}

impl Bus {
    pub(crate) fn new(nodes: Arc<Nodes>) -> Bus {
        let (outlets, inlets, services) = (HashMap::new(), HashMap::new(), HashMap::new());
        Bus { nodes, outlets, inlets, services, closed: Vec::new(), reader: None, is_closed: false }
    }

    /// Puts an endpoint of a client of `line` on the bus.
    ///
    /// # Errors
    /// There is no node for its domain, it cannot be opened, or there is no thread for it.
    pub(crate) fn open(&mut self, endpoint: &Endpoint, line: Arc<dyn Inlet>) -> Result<(), NotOnBus> {
        if self.is_closed {
            return Ok(());
        }
        if !endpoint.is_service {
            return self.open_topic(endpoint, line);
        }
        let Some(ServiceEnd::Half(first)) = self.services.remove(&endpoint.id) else {
            self.services.insert(endpoint.id, ServiceEnd::Half(endpoint.clone()));
            return Ok(());
        };
        let (written, read) = match first.direction {
            Direction::Write => (&first, endpoint),
            Direction::Read => (endpoint, &first),
        };
        // A requester writes requests, a replier writes replies.
        let ends = [[written, read], [read, written]];
        let service = ends.into_iter().find_map(|[request, reply]| {
            let service = bus_service(&request.topic.name, &reply.topic.name)?;
            Some((service, [request, reply]))
        });
        let Some((service, ends)) = service else {
            self.open_topic(&first, Arc::clone(&line))?;
            return self.open_topic(endpoint, line);
        };
        let opened = self.open_service(&service, ends, line);
        opened.map_err(|cause| NotOnBus { what: format!("service {service}"), cause })
    }

    /// Puts the requester (its endpoint of requests writes) or the replier of a service on the bus.
    fn open_service(
        &mut self,
        service: &str,
        [request, reply]: [&Endpoint; 2],
        line: Arc<dyn Inlet>,
    ) -> Result<(), Cause> {
        let node = self.nodes.of_domain(request.domain)?;
        let type_of = |endpoint: &Endpoint| {
            let name = bus_type(&endpoint.topic.type_name);
            let hash = self.nodes.type_hash(&node, service, &name);
            TypeRef { name, hash }
        };
        let types = ServiceTypes { request: type_of(request), response: type_of(reply) };
        let end = if request.direction == Direction::Write {
            let client = node.raw_client(service, types).payload_bytes_max(MESSAGE_BYTES_MAX).open();
            End::Client(Box::new(client?), BTreeMap::new())
        } else {
            let server = node.raw_server(service, types).payload_bytes_max(MESSAGE_BYTES_MAX).open();
            End::Server(Box::new(server?))
        };
        let opened = Service::start(end, request.id, line)?;
        self.services.insert(request.id, ServiceEnd::Open(opened, node));
        Ok(())
    }

    fn open_topic(&mut self, endpoint: &Endpoint, line: Arc<dyn Inlet>) -> Result<(), NotOnBus> {
        let topic = bus_topic(&endpoint.topic.name);
        let opened = self.open_end(&topic, endpoint, line);
        opened.map_err(|cause| NotOnBus { what: format!("topic {topic}"), cause })
    }

    fn open_end(&mut self, topic: &str, endpoint: &Endpoint, line: Arc<dyn Inlet>) -> Result<(), Cause> {
        let node = self.nodes.of_domain(endpoint.domain)?;
        let type_name = bus_type(&endpoint.topic.type_name);
        let names = (topic, type_name.as_str(), self.nodes.type_hash(&node, topic, &type_name));
        match endpoint.direction {
            Direction::Write => {
                let publisher = publisher(&node, names, endpoint)?;
                let stamped = if endpoint.is_service {
                    Stamped::Not
                } else {
                    Stamped::of_type(&endpoint.topic.type_name)
                };
                let outlet = Outlet { node, publisher, stamped, payload: Vec::new() };
                self.outlets.insert(endpoint.id, outlet);
            }
            Direction::Read => {
                let subscriber = subscriber(&node, names, endpoint)?;
                let reader = match &self.reader {
                    Some(reader) => reader,
                    None => self.reader.insert(BusReader::start(line)?),
                };
                reader.add(endpoint.id, subscriber);
                self.inlets.insert(endpoint.id, Inward { topic: topic.to_owned(), is_reported: false });
            }
        }
        Ok(())
    }

    /// Takes an endpoint off the bus.
    pub(crate) fn close(&mut self, endpoint: EndpointId, direction: Direction) {
        if let Some(ServiceEnd::Open(service, _)) = self.services.remove(&endpoint) {
            self.closed.push(service);
        }
        match direction {
            Direction::Write => drop(self.outlets.remove(&endpoint)),
            Direction::Read => {
                if let (Some(_), Some(reader)) = (self.inlets.remove(&endpoint), &self.reader) {
                    reader.remove(endpoint);
                }
            }
        }
    }

    /// Services that were closed alone. The caller ends their threads.
    pub(crate) fn take_closed(&mut self) -> Threads {
        Threads { services: std::mem::take(&mut self.closed), reader: None }
    }

    /// Whether there are such services.
    pub(crate) fn has_closed(&self) -> bool {
        !self.closed.is_empty()
    }

    /// Takes all endpoints off the bus. The caller ends their threads.
    pub(crate) fn close_all(&mut self) -> Threads {
        self.is_closed = true;
        self.outlets.clear();
        self.inlets.clear();
        let services = self.services.drain().filter_map(|(_, end)| match end {
            ServiceEnd::Open(service, _) => Some(service),
            ServiceEnd::Half(_) => None,
        });
        Threads { services: self.closed.drain(..).chain(services).collect(), reader: self.reader.take() }
    }

    /// The topic of a client's reader, when a sample does not reach it for the first time.
    pub(crate) fn first_undeliverable(&mut self, client: ClientKey, object: ObjectId) -> Option<String> {
        let is_it = |id: &EndpointId| id.client == client && id.object == object;
        let (_, inward) = self.inlets.iter_mut().find(|(id, _)| is_it(id))?;
        (!std::mem::replace(&mut inward.is_reported, true)).then(|| inward.topic.clone())
    }

    /// How samples of this endpoint say when they were measured.
    pub(crate) fn stamped(&self, endpoint: EndpointId) -> Option<Stamped> {
        let is_service = self.services.contains_key(&endpoint);
        self.outlets.get(&endpoint).map(|outlet| outlet.stamped).or(is_service.then_some(Stamped::Not))
    }

    /// Publishes a client's sample; false if it is too large.
    pub(crate) fn publish(&mut self, endpoint: EndpointId, sample: &Sample, source: Source) -> bool {
        let on_node =
            |node: &Node| source.for_node(&Moment::read(|| node.now(), || Instant::from_ns(raw_ns())));
        if let Some(ServiceEnd::Open(service, node)) = self.services.get(&endpoint) {
            service.handle_message(sample.clone(), on_node(node));
            return true;
        }
        let Some(Outlet { node, publisher, payload, .. }) = self.outlets.get_mut(&endpoint) else {
            return true;
        };
        encapsulated(&sample.body, sample.is_little_endian, payload);
        publisher.publish_uncertain(payload, on_node(node)).is_ok()
    }
}

/// Names of a topic and its type on the bus, and the type's hash.
type Names<'a> = (&'a str, &'a str, u64);

fn publisher(
    node: &Node,
    (topic, type_name, hash): Names<'_>,
    endpoint: &Endpoint,
) -> Result<Publisher, NodeError> {
    let qos = &endpoint.qos;
    let mut builder = node
        .publisher(topic)
        .type_name(type_name, hash)
        .format(Format::Cdr)
        .payload_bytes_max(PAYLOAD_BYTES_MAX)
        .borrows(3);
    if qos.reliable {
        builder = builder.reliability(Reliability::Reliable);
    }
    if qos.transient_local {
        builder = builder.transient_local();
    }
    builder = builder.keep_last(qos.depth.unwrap_or(HISTORY_DEFAULT).clamp(1, HISTORY_MAX).into());
    if let Some(ms) = qos.deadline_ms {
        builder = builder.deadline(Duration::from_millis(ms.into()));
    }
    if let Some(ms) = qos.lifespan_ms {
        builder = builder.lifespan(Duration::from_millis(ms.into()));
    }
    builder.open()
}

fn subscriber(
    node: &Node,
    (topic, type_name, hash): Names<'_>,
    endpoint: &Endpoint,
) -> Result<Subscriber, NodeError> {
    let qos = &endpoint.qos;
    let mut builder = node.subscriber(topic).type_name(type_name, hash);
    builder = builder.formats(&[Format::Cdr]);
    if qos.reliable {
        builder = builder.reliability(Reliability::Reliable);
    }
    if qos.transient_local {
        builder = builder.transient_local();
    }
    if let Some(ms) = qos.deadline_ms {
        builder = builder.deadline(Duration::from_millis(ms.into()));
    }
    if let Some(ms) = qos.lifespan_ms {
        builder = builder.lifespan(Duration::from_millis(ms.into()));
    }
    builder.open()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use noctule_xrce::{Qos, Topic};

    use super::*;

    const RELIABLE: Qos =
        Qos { reliable: true, transient_local: false, depth: None, deadline_ms: None, lifespan_ms: None };

    /// A line that wants nothing.
    struct Line;

    impl Inlet for Line {
        fn deliver(self: Arc<Self>, _: EndpointId, _: Sample) {}
        fn count_missed(&self, _: u64) {}
        fn count_unanswered(&self, _: u64) {}
        fn notice_once(&self, _: String) {}
    }

    #[test]
    fn the_thread_of_a_service_that_is_closed_alone_is_waited_for() {
        let node = Arc::new(Node::builder("test").domain(4128).open().unwrap());
        let mut bus = Bus::new(Arc::new(Nodes { place: Place::One(node), definitions: None }));
        let line: Arc<dyn Inlet> = Arc::new(Line);
        let id = EndpointId { client: ClientKey([1; 4]), object: ObjectId([0, 0x18]), serial: 1 };
        for (direction, name) in [(Direction::Read, "rq/sRequest"), (Direction::Write, "rr/sReply")] {
            let topic = Topic { name: name.to_owned(), type_name: "A".to_owned() };
            let endpoint = Endpoint { id, direction, domain: 4128, topic, qos: RELIABLE, is_service: true };
            bus.open(&endpoint, Arc::clone(&line)).unwrap();
        }
        assert_eq!(Arc::strong_count(&line), 2, "its thread has the line, too");
        assert!(!bus.has_closed());
        bus.close(id, Direction::Read);
        assert!(bus.has_closed());
        bus.take_closed().end();
        assert_eq!(Arc::strong_count(&line), 1, "what the thread held has gone with it");
        assert!(!bus.has_closed());
    }
}
