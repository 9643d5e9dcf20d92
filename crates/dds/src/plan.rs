//! Plans the exchange: endpoints of both sides → routes, and faults of the topics that cannot be exchanged.
//!
//! A pure function of two lists, so that every case is a test. Each topic can go both ways at once. What is
//! received is requested by the weakest of its writers, so that all of them match; and it is offered on the
//! other side as it was requested, so that nothing is offered that no endpoint provides. Only DDS is always offered RELIABLE: readers
//! of ROS 2 ask for it by default, and a reliable writer suits both kinds.
//!
//! A topic with a writer is announced on the other side at once, and read only if a reader there matches it.

use std::collections::{BTreeMap, BTreeSet};

use noctule::{Durability, Endpoint, EndpointKind, Format, Qos, Reliability, incompatible};
use noctule_bridge::names::{bus_topic, bus_type, dds_topic, dds_type};
use noctule_discovery::EndpointId;

use noctule_bridge::offers::weakest;
use noctule_bridge::rules::Rules;

/// Routes of one bridge; topics beyond are reported as not exchanged.
pub const ROUTES_MAX: usize = 4096;
/// HISTORY on the bus of what comes from DDS, which does not tell its writers' depth.
const DEPTH_FROM_DDS: u32 = 32;
/// Longest history kept for late readers in DDS.
const DEPTH_TO_DDS_MAX: u32 = 1000;

/// A writer or reader that DDS's discovery has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DdsEndpoint {
    /// Its number in the network: 12 bytes of its participant's, 4 of its own.
    pub guid: [u8; 16],
    /// Writer or reader.
    pub kind: EndpointKind,
    /// Topic, as DDS names it.
    pub topic: String,
    /// Type, as DDS names it.
    pub type_name: String,
    /// ROS 2's hash of the type, if the endpoint says one in its USER_DATA.
    pub rihs01: Option<String>,
    /// Offered or requested; DDS does not tell the depth.
    pub qos: Qos,
}

impl DdsEndpoint {
    /// The participant it belongs to.
    pub fn participant(&self) -> &[u8] {
        &self.guid[..12]
    }

    /// Topics with keys have endpoints of other kinds (DDSI-RTPS 2.3, table 9.1).
    fn is_keyed(&self) -> bool {
        matches!(self.guid[15] & 0x3f, 0x02 | 0x07)
    }
}

/// Direction of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Direction {
    /// From DDS to the bus.
    FromDds,
    /// From the bus to DDS.
    ToDds,
}

/// One topic, one way. Names are the bus's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Name of the topic.
    pub topic: String,
    /// Name of its type.
    pub type_name: String,
    /// Hash of the type's layout that nodes of the bus name for it; 0 if none does. DDS compares names only.
    pub type_hash: u64,
    /// ROS 2's hash of the type, which the bridge's endpoints carry in DDS: the bus's, or else that of the endpoints in DDS.
    pub rihs01: Option<String>,
    /// Direction of the samples.
    pub direction: Direction,
    /// Requested on the side that has it.
    pub qos: Qos,
    /// Whether it is read: a reader of the other side suits it, or its samples are kept for late readers.
    pub is_read: bool,
}

impl Route {
    /// Offered on the other side.
    pub fn offered(&self) -> Qos {
        match self.direction {
            Direction::FromDds => self.qos,
            Direction::ToDds => Qos { reliability: Reliability::Reliable, ..self.qos },
        }
    }
}

/// Routes to open, and why the other topics have none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Routes, in the order of their topics.
    pub routes: Vec<Route>,
    /// Sentences for people, each about one topic.
    pub faults: BTreeSet<String>,
}

/// Why a topic is not exchanged.
#[derive(Debug, thiserror::Error)]
enum TopicFault {
    #[error("DDS has a name for it that ROS 2 gives to another")]
    Name,
    #[error(
        "DDS reads it, but its samples on the bus are no CDR ({0}); choose the format cdr where it is published"
    )]
    NoCdr(String),
    #[error("DDS has a name for its type {0} that ROS 2 gives to another")]
    TypeName(String),
    #[error("its type {0} has keys, which the bus has not")]
    Keys(String),
    #[error("its type is {dds} in DDS and {bus} on the bus")]
    Types { dds: String, bus: String },
    #[error("nodes of the bus mean different layouts by {type_name} (type hashes {hashes})")]
    Layouts { type_name: String, hashes: String },
}

/// Endpoints of one topic on both sides.
#[derive(Default)]
struct Topic<'a> {
    dds: Vec<&'a DdsEndpoint>,
    bus: Vec<&'a Endpoint>,
}

/// Plans routes between others' endpoints: neither list has the bridge's own, nor those of bridges that
/// join the same pair of networks.
///
/// `hashes` has ROS 2's hash by Noctule's, for the types of the bus that are known.
pub fn plan(dds: &[DdsEndpoint], bus: &[Endpoint], rules: &Rules, hashes: &BTreeMap<u64, String>) -> Plan {
    let mut topics = BTreeMap::<String, Topic<'_>>::new();
    for endpoint in dds {
        topics.entry(bus_topic(&endpoint.topic)).or_default().dds.push(endpoint);
    }
    for endpoint in bus {
        topics.entry(endpoint.topic.clone()).or_default().bus.push(endpoint);
    }
    let mut plan = Plan::default();
    for (name, topic) in topics.iter().filter(|(name, _)| rules.allow(name)) {
        match topic.routes(name, hashes) {
            Ok(routes) if plan.routes.len() + routes.len() > ROUTES_MAX => {
                plan.faults.insert(format!(
                    "topic {name} is not exchanged: {ROUTES_MAX} topics and ways are; name fewer by --dds-topic"
                ));
            }
            Ok(routes) => {
                plan.faults.extend(routes.iter().flat_map(|route| topic.mismatches(route)));
                plan.faults.extend(routes.first().and_then(|route| topic.other_type(route)));
                plan.routes.extend(routes);
            }
            Err(fault) => _ = plan.faults.insert(format!("topic {name} is not exchanged: {fault}")),
        }
    }
    plan
}

impl Topic<'_> {
    fn routes(&self, name: &str, hashes: &BTreeMap<u64, String>) -> Result<Vec<Route>, TopicFault> {
        if bus_topic(&dds_topic(name)) != name || self.dds.iter().any(|dds| dds.topic != dds_topic(name)) {
            return Err(TopicFault::Name);
        }
        let from: Vec<Qos> = self.dds_of(EndpointKind::Writer).map(|endpoint| endpoint.qos).collect();
        let to: Vec<Qos> = self.bus_writers().map(|endpoint| endpoint.qos).collect();
        if from.is_empty() && to.is_empty() {
            return match self.bus.iter().find(|endpoint| endpoint.kind == EndpointKind::Writer) {
                Some(writer) if !self.dds.is_empty() => Err(TopicFault::NoCdr(writer.type_name.clone())),
                _ => Ok(Vec::new()),
            };
        }
        let type_name = self.type_name()?;
        let name_in_dds = dds_type(&type_name);
        if bus_type(&name_in_dds) != type_name || self.dds.iter().any(|dds| dds.type_name != name_in_dds) {
            return Err(TopicFault::TypeName(type_name));
        }
        let type_hash = self.type_hash(&type_name)?;
        let in_dds = self.rihs01_in_dds();
        let only = if in_dds.len() == 1 { in_dds.first().map(|hash| (*hash).to_owned()) } else { None };
        let rihs01 = hashes.get(&type_hash).cloned().or(only);
        let route = |direction, mut qos: Qos| {
            qos.depth = match direction {
                Direction::FromDds => DEPTH_FROM_DDS,
                Direction::ToDds => qos.depth.min(DEPTH_TO_DDS_MAX),
            };
            let (topic, type_name, rihs01) = (name.to_owned(), type_name.clone(), rihs01.clone());
            let mut route = Route { topic, type_name, type_hash, rihs01, direction, qos, is_read: false };
            route.is_read = qos.durability == Durability::TransientLocal || self.is_wanted(&route);
            route
        };
        let from = weakest(&from).map(|qos| route(Direction::FromDds, qos));
        let to = weakest(&to).map(|qos| route(Direction::ToDds, qos));
        Ok(from.into_iter().chain(to).collect())
    }

    /// Whether the other side has a reader that what the route offers suits.
    fn is_wanted(&self, route: &Route) -> bool {
        let offer = endpoint(route, route.offered());
        match route.direction {
            Direction::FromDds => {
                let mut readers = self.bus.iter().filter(|known| known.kind == EndpointKind::Reader);
                readers.any(|reader| incompatible(&offer, reader).is_none())
            }
            Direction::ToDds => {
                let mut readers = self.dds_of(EndpointKind::Reader);
                readers.any(|reader| incompatible(&offer, &endpoint(route, reader.qos)).is_none())
            }
        }
    }

    /// Readers in DDS that what goes there does not suffice; the bus tells of its own.
    fn mismatches(&self, route: &Route) -> BTreeSet<String> {
        let readers = self.dds_of(EndpointKind::Reader).filter(|_| route.direction == Direction::ToDds);
        let found = readers.filter_map(|reader| {
            let why = incompatible(&endpoint(route, route.offered()), &endpoint(route, reader.qos))?;
            Some(format!("topic {}: what the bus offers does not suit a reader in DDS: {why}", route.topic))
        });
        found.collect()
    }

    /// Hashes that endpoints in DDS say.
    fn rihs01_in_dds(&self) -> BTreeSet<&str> {
        self.dds.iter().filter_map(|endpoint| endpoint.rihs01.as_deref()).collect()
    }

    /// Warning if the two sides mean different definitions by the name of the type.
    fn other_type(&self, route: &Route) -> Option<String> {
        let ours = route.rihs01.as_deref()?;
        let others: Vec<&str> = self.rihs01_in_dds().into_iter().filter(|hash| *hash != ours).collect();
        let theirs = others.first()?;
        Some(format!(
            "topic {}: its type {} is {theirs} in DDS and {ours} on the bus: one side reads the other's samples wrongly or not \
             at all; build both from the same definition",
            route.topic, route.type_name
        ))
    }

    fn dds_of(&self, kind: EndpointKind) -> impl Iterator<Item = &DdsEndpoint> {
        self.dds.iter().copied().filter(move |endpoint| endpoint.kind == kind)
    }

    /// Those whose samples DDS can read.
    fn bus_writers(&self) -> impl Iterator<Item = &Endpoint> {
        let writers = self.bus.iter().copied().filter(|endpoint| endpoint.kind == EndpointKind::Writer);
        writers.filter(|endpoint| endpoint.formats & Format::Cdr.bit() != 0)
    }

    /// The one type that all agree on.
    fn type_name(&self) -> Result<String, TopicFault> {
        if let Some(keyed) = self.dds.iter().find(|endpoint| endpoint.is_keyed()) {
            return Err(TopicFault::Keys(keyed.type_name.clone()));
        }
        let dds: BTreeSet<String> = self.dds.iter().map(|endpoint| bus_type(&endpoint.type_name)).collect();
        // Readers of any type name none.
        let named = self.bus.iter().filter(|endpoint| !endpoint.type_name.is_empty());
        let bus: BTreeSet<String> = named.map(|endpoint| endpoint.type_name.clone()).collect();
        let all: BTreeSet<&String> = dds.union(&bus).collect();
        match all.iter().next() {
            Some(one) if all.len() == 1 => Ok((*one).clone()),
            _ => Err(TopicFault::Types { dds: either(&dds), bus: either(&bus) }),
        }
    }

    fn type_hash(&self, type_name: &str) -> Result<u64, TopicFault> {
        let hashes = self.bus.iter().map(|endpoint| endpoint.type_hash).filter(|hash| *hash != 0);
        let hashes: BTreeSet<u64> = hashes.collect();
        match hashes.len() {
            0 => Ok(0),
            1 => Ok(hashes.first().copied().unwrap_or_default()),
            _ => {
                let hashes: Vec<String> = hashes.iter().map(|hash| format!("{hash:016x}")).collect();
                Err(TopicFault::Layouts { type_name: type_name.to_owned(), hashes: hashes.join(", ") })
            }
        }
    }
}

/// A route as if it were an endpoint of the bus, to be compared.
fn endpoint(route: &Route, qos: Qos) -> Endpoint {
    Endpoint {
        id: EndpointId(0),
        kind: EndpointKind::Writer,
        topic: route.topic.clone(),
        type_name: route.type_name.clone(),
        type_hash: route.type_hash,
        formats: Format::Cdr.bit(),
        payload_bytes_max: 0,
        relayed: false,
        qos,
    }
}

fn either(names: &BTreeSet<String>) -> String {
    match names.is_empty() {
        true => "of no name".to_owned(),
        false => names.iter().map(String::as_str).collect::<Vec<_>>().join(" or "),
    }
}

/// The names of a route in DDS: topic and type.
pub fn dds_names(route: &Route) -> (String, String) {
    (dds_topic(&route.topic), dds_type(&route.type_name))
}

#[cfg(test)]
mod tests;
