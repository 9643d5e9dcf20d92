//! Plans the exchange: endpoints of both sides → routes with their keys, and faults of the topics that cannot be exchanged.
//!
//! A pure function of two lists, so that every case is a test. Each topic can go both ways at once. A topic with a writer is
//! announced on the other side at once, and read only while it has a reader there. Zenoh compares keys alone, not what is offered with
//! what is requested: every reader of the key gets the samples.
//!
//! The key has the hash of the type's definition. What nodes of the bus describe is computed; else the keys are those
//! that ROS 2's own endpoints have. Two definitions under one name never meet in ROS 2, and are not joined here.

use std::collections::{BTreeMap, BTreeSet};

use noctule::{Durability, Endpoint, EndpointKind, Format, KnownEndpoint, Qos, Reliability, incompatible};
use noctule_bridge::offers::weakest;
use noctule_bridge::rules::Rules;
use noctule_discovery::EndpointId;

use crate::graph::RemoteEndpoint;
use crate::key::{NameError, TypedName, UNKNOWN_HASH, is_known_hash};
use crate::token::Kind;

/// Routes of one bridge; topics beyond are reported as not exchanged.
pub const ROUTES_MAX: usize = 4096;

/// Direction of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Direction {
    /// From Zenoh to the bus.
    FromZenoh,
    /// From the bus to Zenoh.
    ToZenoh,
}

/// One topic, one way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Topic and type.
    pub name: TypedName,
    /// Hash of the type's layout that nodes of the bus name for it; 0 if none does.
    pub type_hash: u64,
    /// Hashes of ROS 2's in the keys that it is read or written under.
    pub hashes: BTreeSet<String>,
    /// Direction of the samples.
    pub direction: Direction,
    /// Requested on the side that has it, and offered on the other.
    pub qos: Qos,
    /// Whether it is read: the other side has a reader, or its samples are kept for late readers.
    pub is_read: bool,
    /// From Zenoh: a program that is no gateway of Noctule writes it.
    pub is_from_ros: bool,
    /// From Zenoh: a gateway of Noctule writes it, with source time and bound.
    pub is_from_site: bool,
}

/// Routes to open, and why the other topics have none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Routes, in the order of their topics.
    pub routes: Vec<Route>,
    /// Sentences for people, each about one topic.
    pub faults: BTreeSet<String>,
}

/// Both sides' endpoints: neither list has the bridge's own, nor those of bridges that join the same pair of networks.
#[derive(Clone, Copy, Debug)]
pub struct Sides<'a> {
    /// Endpoints of ROS 2.
    pub zenoh: &'a [RemoteEndpoint],
    /// Sessions that are gateways of Noctule.
    pub gateways: &'a BTreeSet<String>,
    /// Endpoints of the bus.
    pub bus: &'a [KnownEndpoint],
    /// ROS 2's hash by Noctule's, for the types of the bus that are known.
    pub hashes: &'a BTreeMap<u64, String>,
}

/// Why a topic is not exchanged.
#[derive(Debug, thiserror::Error)]
enum TopicFault {
    #[error(
        "Zenoh reads it, but its samples on the bus are no CDR ({0}); choose the format cdr where it is published"
    )]
    NoCdr(String),
    #[error(transparent)]
    Name(#[from] NameError),
    #[error("its type is {zenoh} in Zenoh and {bus} on the bus")]
    Types { zenoh: String, bus: String },
    #[error("nodes of the bus mean different layouts by {type_name} (type hashes {hashes})")]
    Layouts { type_name: String, hashes: String },
    #[error("its type has different definitions ({hashes}{bus}); build all programs from the same one")]
    Definitions { hashes: String, bus: String },
}

/// Endpoints of one topic on both sides.
#[derive(Default)]
struct Topic<'a> {
    zenoh: Vec<&'a RemoteEndpoint>,
    bus: Vec<&'a Endpoint>,
}

/// Plans routes of topics.
pub fn plan(sides: &Sides<'_>, rules: &Rules) -> Plan {
    let mut topics = BTreeMap::<&str, Topic<'_>>::new();
    for remote in sides.zenoh.iter().filter(|remote| is_of_topic(remote.endpoint.kind)) {
        topics.entry(&remote.endpoint.name.name).or_default().zenoh.push(remote);
    }
    for known in sides.bus {
        topics.entry(&known.endpoint.topic).or_default().bus.push(&known.endpoint);
    }
    let mut plan = Plan::default();
    for (name, topic) in topics.iter().filter(|(name, _)| rules.allow(name)) {
        match topic.routes(name, sides) {
            Ok(routes) if plan.routes.len() + routes.len() > ROUTES_MAX => {
                plan.faults.insert(format!(
                    "topic {name} is not exchanged: {ROUTES_MAX} topics and ways are; name fewer by --zenoh-topic"
                ));
            }
            Ok(routes) => plan.routes.extend(routes),
            Err(fault) => _ = plan.faults.insert(format!("topic {name} is not exchanged: {fault}")),
        }
    }
    plan
}

fn is_of_topic(kind: Kind) -> bool {
    matches!(kind, Kind::Publisher | Kind::Subscription)
}

impl Topic<'_> {
    fn routes(&self, name: &str, sides: &Sides<'_>) -> Result<Vec<Route>, TopicFault> {
        let from: Vec<Qos> = self.of(Kind::Publisher).map(|remote| remote.endpoint.qos.on_bus()).collect();
        let to: Vec<Qos> = self.bus_writers().map(|endpoint| endpoint.qos).collect();
        if from.is_empty() && to.is_empty() {
            return self.without_writers();
        }
        let name = TypedName::new(name, &self.type_name()?)?;
        let type_hash = self.type_hash(&name.type_name)?;
        let computed = sides.hashes.get(&type_hash).map(String::as_str);
        self.one_definition(computed)?;
        let mut routes = Vec::new();
        if let Some(qos) = weakest(&from) {
            let is_site = |remote: &&RemoteEndpoint| sides.gateways.contains(&remote.zid);
            let hashes = self.hashes_of(Kind::Publisher);
            let mut route = Route {
                name: name.clone(),
                type_hash,
                hashes,
                direction: Direction::FromZenoh,
                qos,
                is_read: false,
                is_from_ros: !self.of(Kind::Publisher).all(|remote| is_site(&remote)),
                is_from_site: self.of(Kind::Publisher).any(|remote| is_site(&remote)),
            };
            route.is_read = is_kept(&qos) || self.is_read_on_bus(&route);
            routes.push(route);
        }
        if let Some(qos) = weakest(&to) {
            let mut hashes = self.hashes_of(Kind::Subscription);
            hashes.extend(computed.map(str::to_owned));
            // Readers come under the true hash, which may not be known before.
            if hashes.is_empty() {
                hashes.extend(self.hashes_of(Kind::Publisher));
            }
            if hashes.is_empty() {
                hashes.insert(UNKNOWN_HASH.to_owned());
            }
            let is_read = is_kept(&qos) || self.of(Kind::Subscription).next().is_some();
            let direction = Direction::ToZenoh;
            let (is_from_ros, is_from_site) = (false, false);
            routes.push(Route {
                name,
                type_hash,
                hashes,
                direction,
                qos,
                is_read,
                is_from_ros,
                is_from_site,
            });
        }
        Ok(routes)
    }

    /// No writer has a type that can be exchanged.
    fn without_writers(&self) -> Result<Vec<Route>, TopicFault> {
        match self.bus.iter().find(|endpoint| endpoint.kind == EndpointKind::Writer) {
            Some(writer) if !self.zenoh.is_empty() => Err(TopicFault::NoCdr(writer.type_name.clone())),
            _ => Ok(Vec::new()),
        }
    }

    fn of(&self, kind: Kind) -> impl Iterator<Item = &RemoteEndpoint> {
        self.zenoh.iter().copied().filter(move |remote| remote.endpoint.kind == kind)
    }

    fn hashes_of(&self, kind: Kind) -> BTreeSet<String> {
        let hashes = self.of(kind).map(|remote| remote.endpoint.hash.clone());
        hashes.filter(|hash| hash != UNKNOWN_HASH || kind == Kind::Publisher).collect()
    }

    /// Those whose samples ROS 2 can read.
    fn bus_writers(&self) -> impl Iterator<Item = &Endpoint> {
        let writers = self.bus.iter().copied().filter(|endpoint| endpoint.kind == EndpointKind::Writer);
        writers.filter(|endpoint| endpoint.formats & Format::Cdr.bit() != 0)
    }

    fn is_read_on_bus(&self, route: &Route) -> bool {
        let offer = offered(route);
        let mut readers = self.bus.iter().filter(|known| known.kind == EndpointKind::Reader);
        readers.any(|reader| incompatible(&offer, reader).is_none())
    }

    /// The one type that all agree on.
    fn type_name(&self) -> Result<String, TopicFault> {
        let zenoh: BTreeSet<&str> = self.zenoh.iter().map(|of| of.endpoint.name.type_name.as_str()).collect();
        // Readers of any type name none.
        let bus: BTreeSet<&str> =
            self.bus.iter().map(|of| of.type_name.as_str()).filter(|name| !name.is_empty()).collect();
        let all: BTreeSet<&str> = zenoh.union(&bus).copied().collect();
        match all.first() {
            None => Ok(String::new()),
            Some(one) if all.len() == 1 => Ok((*one).to_owned()),
            Some(_) => Err(TopicFault::Types { zenoh: either(&zenoh), bus: either(&bus) }),
        }
    }

    fn type_hash(&self, type_name: &str) -> Result<u64, TopicFault> {
        let hashes: BTreeSet<u64> =
            self.bus.iter().map(|endpoint| endpoint.type_hash).filter(|hash| *hash != 0).collect();
        match hashes.len() {
            0 | 1 => Ok(hashes.first().copied().unwrap_or_default()),
            _ => {
                let hashes: Vec<String> = hashes.iter().map(|hash| format!("{hash:016x}")).collect();
                Err(TopicFault::Layouts { type_name: type_name.to_owned(), hashes: hashes.join(", ") })
            }
        }
    }

    /// Humble's endpoints name no definition, and are joined with any.
    fn one_definition(&self, computed: Option<&str>) -> Result<(), TopicFault> {
        let named = self.zenoh.iter().map(|remote| remote.endpoint.hash.as_str()).chain(computed);
        let known: BTreeSet<&str> = named.filter(|hash| is_known_hash(hash)).collect();
        if known.len() < 2 {
            return Ok(());
        }
        Err(TopicFault::Definitions {
            hashes: known.into_iter().collect::<Vec<_>>().join(", "),
            bus: computed.map_or(String::new(), |hash| format!("; the bus's is {hash}")),
        })
    }
}

/// Kept for late readers.
fn is_kept(qos: &Qos) -> bool {
    qos.durability == Durability::TransientLocal
}

/// A route from Zenoh as the bus sees it.
fn offered(route: &Route) -> Endpoint {
    Endpoint {
        id: EndpointId(0),
        kind: EndpointKind::Writer,
        topic: route.name.name.clone(),
        type_name: route.name.type_name.clone(),
        type_hash: route.type_hash,
        formats: Format::Cdr.bit(),
        payload_bytes_max: 0,
        relayed: false,
        qos: route.qos,
    }
}

/// Whether all of the samples arrive, or a writer gives up.
pub fn is_reliable(qos: &Qos) -> bool {
    qos.reliability == Reliability::Reliable
}

fn either(names: &BTreeSet<&str>) -> String {
    match names.is_empty() {
        true => "of no name".to_owned(),
        false => names.iter().copied().collect::<Vec<_>>().join(" or "),
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
