//! Both sides' endpoints → services to exchange, and why not the others.
//!
//! A service is offered on the other side if it has a server on one side alone. Where both sides have one, each side asks its own: nobody
//! could say which of two answers a client should get.
//!
//! An action is three services and two topics, and parameters are services, so both pass with these.

use std::collections::{BTreeMap, BTreeSet};

use noctule::request::{ServiceTopics, ServiceTypes, TypeRef};
use noctule::{EndpointKind, NodeId};
use noctule_bridge::rules::Rules;

use crate::key::{NameError, TypedName};
use crate::plan::{Direction, Sides};
use crate::token::Kind;

/// Services of one bridge; those beyond are reported as not exchanged.
pub const SERVICES_MAX: usize = 1024;

/// A service that is offered on the other side than its server's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceRoute {
    /// Its name and type (`package/srv/Name`).
    pub name: TypedName,
    /// The types of its request and response on the bus.
    pub types: ServiceTypes,
    /// From Zenoh: the hash in the key of its servers. To Zenoh: under any it is served, and the first is announced.
    pub hashes: BTreeSet<String>,
    /// [`Direction::FromZenoh`]: its server is in ROS 2.
    pub direction: Direction,
    /// Of a server in ROS 2: a client on the bus may call it.
    pub is_wanted: bool,
}

/// Service routes to open, and why the other services have none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServicePlan {
    /// Routes, in the order of their names.
    pub routes: Vec<ServiceRoute>,
    /// Sentences for people.
    pub faults: BTreeSet<String>,
}

/// Why a service is not exchanged.
#[derive(Debug, thiserror::Error)]
enum ServiceFault {
    #[error(
        "it has a server in Zenoh and one on the bus: each side asks its own; give one of them another name"
    )]
    BothSides,
    #[error("its servers mean different types by it ({0})")]
    Types(String),
    #[error(
        "its types are {request} and {response}, where ROS 2 wants package/srv/Name_Request and …_Response; name them so"
    )]
    Names { request: String, response: String },
    #[error(transparent)]
    Name(#[from] NameError),
}

/// Servers and clients of one service on both sides.
#[derive(Default)]
struct Service<'a> {
    /// Types and hashes of servers in ROS 2.
    servers: BTreeSet<(&'a TypedName, &'a str)>,
    /// Those of clients there.
    clients: BTreeSet<(&'a TypedName, &'a str)>,
    /// Endpoints on the bus that read requests, and those that write replies, by node, with their type.
    bus: [Vec<(NodeId, TypeRef)>; 2],
    /// Hashes that endpoints on the bus name for a type.
    bus_hashes: BTreeMap<&'a str, u64>,
    has_bus_client: bool,
}

/// Plans services; `is_bridge` tells by the name of a node of the bus whether it is another bridge's.
pub fn plan_services(sides: &Sides<'_>, rules: &Rules, is_bridge: fn(&str) -> bool) -> ServicePlan {
    let mut services = BTreeMap::<String, Service<'_>>::new();
    for remote in sides.zenoh {
        let (name, hash) = (&remote.endpoint.name, remote.endpoint.hash.as_str());
        if matches!(remote.endpoint.kind, Kind::Publisher | Kind::Subscription) {
            continue;
        }
        let service = services.entry(name.name.clone()).or_default();
        let ends =
            if remote.endpoint.kind == Kind::Server { &mut service.servers } else { &mut service.clients };
        ends.insert((name, hash));
    }
    for known in sides.bus {
        let endpoint = &known.endpoint;
        let Some((name, end)) = end_of(&endpoint.topic) else { continue };
        let service = services.entry(name).or_default();
        if endpoint.type_hash != 0 {
            let least = service.bus_hashes.entry(&endpoint.type_name).or_insert(u64::MAX);
            *least = endpoint.type_hash.min(*least);
        }
        let is_servers = (endpoint.kind == EndpointKind::Writer) == (end == 1);
        if is_servers && !is_bridge(&known.node_name) {
            let of = TypeRef { name: endpoint.type_name.clone(), hash: endpoint.type_hash };
            service.bus[end].push((known.node, of));
        }
        service.has_bus_client |= !is_servers;
    }
    let mut plan = ServicePlan::default();
    for (name, service) in services.iter().filter(|(name, _)| rules.allow(name)) {
        match service.route(name) {
            Ok(None) => {}
            Ok(Some(route)) if plan.routes.len() < SERVICES_MAX => plan.routes.push(route),
            Ok(Some(_)) => {
                plan.faults.insert(format!(
                    "service {name}: not exchanged, for {SERVICES_MAX} services are; name fewer by --zenoh-topic"
                ));
            }
            Err(why) => _ = plan.faults.insert(format!("service {name}: not exchanged: {why}")),
        }
    }
    plan
}

/// The service of a topic of the bus, and whether that has its requests, 0, or its replies, 1.
pub fn end_of(topic: &str) -> Option<(String, usize)> {
    if let Some(service) = ServiceTopics::service_of(topic) {
        return Some((service, 0));
    }
    let name = topic.strip_prefix("rr/")?.strip_suffix("Reply")?;
    (!name.is_empty()).then(|| (format!("/{name}"), 1))
}

impl Service<'_> {
    fn route(&self, name: &str) -> Result<Option<ServiceRoute>, ServiceFault> {
        let nodes = |end: usize| self.bus[end].iter().map(|(node, _)| *node).collect::<BTreeSet<_>>();
        let has_bus = nodes(0).intersection(&nodes(1)).next().is_some();
        match (self.servers.is_empty(), has_bus) {
            (true, false) => Ok(None),
            (false, true) => Err(ServiceFault::BothSides),
            (true, true) => self.of_bus(name).map(Some),
            (false, false) => self.of_zenoh().map(Some),
        }
    }

    fn of_zenoh(&self) -> Result<ServiceRoute, ServiceFault> {
        let names: BTreeSet<&TypedName> = self.servers.iter().map(|(name, _)| *name).collect();
        let (Some(name), 1) = (names.first(), names.len()) else {
            let types: Vec<&str> = names.iter().map(|name| name.type_name.as_str()).collect();
            return Err(ServiceFault::Types(types.join(", ")));
        };
        let message = |suffix: &str| {
            let name = format!("{}_{suffix}", name.type_name);
            let hash = self.bus_hashes.get(name.as_str()).copied().unwrap_or_default();
            TypeRef { name, hash }
        };
        Ok(ServiceRoute {
            name: (*name).clone(),
            types: ServiceTypes { request: message("Request"), response: message("Response") },
            hashes: self.servers.iter().map(|(_, hash)| (*hash).to_owned()).collect(),
            direction: Direction::FromZenoh,
            is_wanted: self.has_bus_client,
        })
    }

    fn of_bus(&self, service: &str) -> Result<ServiceRoute, ServiceFault> {
        let one = |end: usize| -> Result<TypeRef, ServiceFault> {
            let names: BTreeSet<&str> = self.bus[end].iter().map(|(_, of)| of.name.as_str()).collect();
            let (Some(name), 1) = (names.first(), names.len()) else {
                return Err(ServiceFault::Types(Vec::from_iter(names).join(", ")));
            };
            let hash = self.bus[end].iter().map(|(_, of)| of.hash).filter(|hash| *hash != 0).min();
            Ok(TypeRef { name: (*name).to_owned(), hash: hash.unwrap_or_default() })
        };
        let types = ServiceTypes { request: one(0)?, response: one(1)? };
        let type_name = match types.request.name.strip_suffix("_Request") {
            Some(name) if types.response.name.strip_suffix("_Response") == Some(name) => name,
            _ => {
                let (request, response) = (types.request.name.clone(), types.response.name.clone());
                return Err(ServiceFault::Names { request, response });
            }
        };
        let name = TypedName::new(service, type_name)?;
        let hashes = self.clients.iter().filter(|(of, _)| **of == name).map(|(_, hash)| (*hash).to_owned());
        let hashes = hashes.collect();
        Ok(ServiceRoute { name, types, hashes, direction: Direction::ToZenoh, is_wanted: true })
    }
}

#[cfg(test)]
#[path = "services_tests.rs"]
mod tests;
