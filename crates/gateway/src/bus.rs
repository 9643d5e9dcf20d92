//! The bus side of a line: a publisher for each writer of its clients, a subscriber for each reader.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use noctule::{Format, Node, NodeError, Publisher, Reliability, Subscriber, TypeDescription};
use noctule_sys::clock::raw_ns;
use noctule_timebase::Instant;
use noctule_xrce::{ClientKey, Direction, Endpoint, EndpointId, ObjectId, Sample};

use crate::ages::{Source, Stamped};
use crate::names::{bus_topic, bus_type};

/// Nodes that a gateway makes for the DDS domains of its clients.
const DOMAINS_MAX: usize = 16;
/// Largest sample of a client on the bus, in bytes.
const PAYLOAD_BYTES_MAX: u32 = 256 << 10;
/// History of a topic whose board names none: what a reader that is descheduled for half a second still gets at 100 Hz. Its memory is touched
/// only as far as it is used.
const HISTORY_DEFAULT: u16 = 64;
/// Deepest history of a client's writer on the bus, in samples.
const HISTORY_MAX: u16 = 1000;
/// A thread that waits for samples looks this often whether it should end.
const LOOK: Duration = Duration::from_millis(200);

/// CDR in version 1, big-endian and little-endian (DDSI-RTPS 2.3, 10.5): what clients write and read.
const CDR_BE: [u8; 4] = [0, 0, 0, 0];
const CDR_LE: [u8; 4] = [0, 1, 0, 0];

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

/// Where clients' domains are.
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

/// Where samples of the bus go.
pub(crate) trait Inlet: Send + Sync {
    /// Hands a sample to the client that `endpoint` belongs to.
    fn deliver(self: Arc<Self>, endpoint: EndpointId, sample: Sample);
    /// Counts samples that were gone before they were taken.
    fn count_missed(&self, missed: u64);
    /// A notice that is given once, however often its cause returns.
    fn notice_once(&self, notice: String);
}

/// Endpoints of a line's clients on the bus.
#[derive(Debug)]
pub(crate) struct Bus {
    nodes: Arc<Nodes>,
    outlets: HashMap<EndpointId, Outlet>,
    inlets: HashMap<EndpointId, Inward>,
}

/// A client's reader on the bus.
#[derive(Debug)]
struct Inward {
    topic: String,
    /// Set to end the thread that waits for samples.
    ended: Arc<AtomicBool>,
    /// The user knows that samples do not reach it.
    is_told: bool,
}

/// A client's writer on the bus.
#[derive(Debug)]
struct Outlet {
    node: Arc<Node>,
    publisher: Publisher,
    stamped: Stamped,
    /// For the payload with its encapsulation header.
    payload: Vec<u8>,
}

impl Bus {
    pub(crate) fn new(nodes: Arc<Nodes>) -> Bus {
        Bus { nodes, outlets: HashMap::new(), inlets: HashMap::new() }
    }

    /// Puts an endpoint of a client of `line` on the bus.
    ///
    /// # Errors
    /// Why not, for people.
    pub(crate) fn open(&mut self, endpoint: &Endpoint, line: Arc<dyn Inlet>) -> Result<(), String> {
        let topic = bus_topic(&endpoint.topic.name);
        let fault = |error: &dyn std::fmt::Display| format!("topic {topic} is not on the bus: {error}");
        let node = self.nodes.of_domain(endpoint.domain).map_err(|error| fault(&error))?;
        let type_name = bus_type(&endpoint.topic.type_name);
        let names = (topic.as_str(), type_name.as_str(), self.nodes.type_hash(&node, &topic, &type_name));
        match endpoint.direction {
            Direction::Write => {
                let publisher = publisher(&node, names, endpoint).map_err(|error| fault(&error))?;
                let stamped = if endpoint.is_service {
                    Stamped::Not
                } else {
                    Stamped::of_type(&endpoint.topic.type_name)
                };
                let outlet = Outlet { node, publisher, stamped, payload: Vec::new() };
                self.outlets.insert(endpoint.id, outlet);
            }
            Direction::Read => {
                let subscriber = subscriber(&node, names, endpoint).map_err(|error| fault(&error))?;
                let ended = Arc::new(AtomicBool::new(false));
                let inward = Inward { topic: topic.clone(), ended: Arc::clone(&ended), is_told: false };
                self.inlets.insert(endpoint.id, inward);
                let id = endpoint.id;
                let spawned = thread::Builder::new()
                    .name(format!("reads {topic}").chars().take(15).collect())
                    .spawn(move || pass_on(subscriber, &line, id, &ended));
                spawned.map_err(|error| fault(&error))?;
            }
        }
        Ok(())
    }

    /// Takes an endpoint off the bus.
    pub(crate) fn close(&mut self, endpoint: EndpointId, direction: Direction) {
        match direction {
            Direction::Write => drop(self.outlets.remove(&endpoint)),
            Direction::Read => {
                if let Some(inward) = self.inlets.remove(&endpoint) {
                    inward.ended.store(true, Ordering::Relaxed);
                }
            }
        }
    }

    /// Takes all endpoints off the bus.
    pub(crate) fn close_all(&mut self) {
        self.outlets.clear();
        self.inlets.drain().for_each(|(_, inward)| inward.ended.store(true, Ordering::Relaxed));
    }

    /// The topic of a client's reader, when a sample does not reach it for the first time.
    pub(crate) fn first_undeliverable(&mut self, client: ClientKey, object: ObjectId) -> Option<String> {
        let is_it = |id: &EndpointId| id.client == client && id.object == object;
        let (_, inward) = self.inlets.iter_mut().find(|(id, _)| is_it(id))?;
        (!std::mem::replace(&mut inward.is_told, true)).then(|| inward.topic.clone())
    }

    /// How samples of this endpoint say when they were measured.
    pub(crate) fn stamped(&self, endpoint: EndpointId) -> Option<Stamped> {
        self.outlets.get(&endpoint).map(|outlet| outlet.stamped)
    }

    /// Publishes a client's sample; false if it is too large.
    pub(crate) fn publish(&mut self, endpoint: EndpointId, sample: &Sample, source: Source) -> bool {
        let Some(Outlet { node, publisher, payload, .. }) = self.outlets.get_mut(&endpoint) else {
            return true;
        };
        payload.clear();
        payload.extend(if sample.is_little_endian { CDR_LE } else { CDR_BE });
        payload.extend_from_slice(&sample.body);
        let source = source.for_node(node.now(), Instant::from_ns(raw_ns()));
        publisher.publish_uncertain(payload, source).is_ok()
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

/// Hands samples to a line until told to end: the thread that receives one also sends it.
fn pass_on(mut subscriber: Subscriber, line: &Arc<dyn Inlet>, endpoint: EndpointId, ended: &AtomicBool) {
    let mut missed = 0;
    while !ended.load(Ordering::Relaxed) {
        let received = subscriber.receive(Some(LOOK));
        let before = std::mem::replace(&mut missed, subscriber.counters().missed);
        line.count_missed(missed - before);
        match received {
            Ok(None) => {}
            Ok(Some(sample)) => {
                let bytes = sample.to_vec();
                drop(sample);
                let body = match bytes.split_first_chunk::<4>() {
                    Some(([0, 1, ..], body)) => Some((body, true)),
                    Some(([0, 0, ..], body)) => Some((body, false)),
                    _ => None,
                };
                match body {
                    Some((body, is_little_endian)) => {
                        Arc::clone(line).deliver(endpoint, Sample { body: body.into(), is_little_endian });
                    }
                    None => line.notice_once(format!(
                        "topic {} carries samples that are no CDR of version 1, which no client can read",
                        subscriber.topic()
                    )),
                }
            }
            Err(error) => line.notice_once(error.to_string()),
        }
    }
}
