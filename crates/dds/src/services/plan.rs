//! Both sides' endpoints → services to exchange, and why not the others.
//!
//! A service goes over the bridge if it has a server on one side alone: that server is offered on the other side. Where both sides have
//! one, each side asks its own: which of two answers a client should get is undefined.

use std::collections::{BTreeMap, BTreeSet};

use noctule::request::{ServiceTypes, TypeRef};
use noctule::{EndpointKind, KnownEndpoint, NodeId};
use noctule_bridge::names::{bus_type, service_end};

use crate::plan::{DdsEndpoint, Direction};
use noctule_bridge::rules::Rules;

/// Services of one bridge; those beyond are reported as not exchanged.
pub const SERVICES_MAX: usize = 1024;
/// Numbers of Fast DDS's participants begin with its vendor's number (DDSI-RTPS 2.3, 8.2.4.1).
const FAST_DDS: [u8; 2] = [0x01, 0x0f];
/// The services by which each node of ROS 2 answers for its parameters.
const PARAMETERS: [&str; 6] = [
    "describe_parameters",
    "get_parameter_types",
    "get_parameters",
    "list_parameters",
    "set_parameters",
    "set_parameters_atomically",
];

/// A service that is offered on the other side than its server's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceRoute {
    /// Its name, with a leading `/`.
    pub service: String,
    /// Its types, as the bus names them.
    pub types: ServiceTypes,
    /// ROS 2's hashes of the request's and the response's type, where they are known.
    pub rihs01: [Option<String>; 2],
    /// [`Direction::FromDds`]: its server is in DDS.
    pub direction: Direction,
}

impl ServiceRoute {
    /// Whether a service that is open by this route serves as well for another one. A hash that is not known suits every client, and to
    /// open the service anew because a client has named one, or has gone with it, would lose what is asked meanwhile.
    pub fn serves_as(&self, wanted: &ServiceRoute) -> bool {
        let suits = |open: &TypeRef, wanted: &TypeRef| {
            open.name == wanted.name && (open.hash == wanted.hash || open.hash == 0 || wanted.hash == 0)
        };
        let types = (&self.types, &wanted.types);
        self.service == wanted.service
            && self.direction == wanted.direction
            && self.rihs01 == wanted.rihs01
            && suits(&types.0.request, &types.1.request)
            && suits(&types.0.response, &types.1.response)
    }
}

/// Service routes to open, and why the other services have none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServicePlan {
    /// Routes, in the order of their names.
    pub routes: Vec<ServiceRoute>,
    /// Sentences for people.
    pub faults: BTreeSet<String>,
}

/// Endpoints of one service on both sides: those that servers read requests with, and those that they write replies with.
#[derive(Default)]
struct Ends<'a> {
    dds: [Vec<&'a DdsEndpoint>; 2],
    bus: [Vec<&'a KnownEndpoint>; 2],
    /// The least hash that nodes of the bus, clients included, name for a type. A reader with a hash is served only by a writer with the same.
    hashes: BTreeMap<&'a str, u64>,
}

/// Whether a participant is Fast DDS's: there a request's identity lies outside of the message (PID_RELATED_SAMPLE_IDENTITY), which
/// Cyclone neither reads nor writes.
pub fn is_fast_dds(participant: &[u8]) -> bool {
    participant.starts_with(&FAST_DDS)
}

/// Plans services between others' endpoints, as [`plan`](crate::plan::plan) does it with topics. `is_bridge` tells by the name of
/// a node of the bus whether it is another bridge's.
pub fn plan_services(
    dds: &[DdsEndpoint],
    bus: &[KnownEndpoint],
    rules: &Rules,
    hashes: &BTreeMap<u64, String>,
    is_bridge: fn(&str) -> bool,
) -> ServicePlan {
    let mut services = BTreeMap::<String, Ends<'_>>::new();
    for endpoint in dds {
        if let Some((service, end)) = server_end(&endpoint.topic, endpoint.kind) {
            services.entry(service).or_default().dds[end].push(endpoint);
        }
    }
    for known in bus {
        if let Some((service, end)) = server_end(&known.endpoint.topic, known.endpoint.kind) {
            services.entry(service).or_default().bus[end].push(known);
        }
        let endpoint = &known.endpoint;
        if let Some((service, _)) = service_end(&endpoint.topic).filter(|_| endpoint.type_hash != 0) {
            let hashes = &mut services.entry(service).or_default().hashes;
            let least = hashes.entry(&endpoint.type_name).or_insert(u64::MAX);
            *least = endpoint.type_hash.min(*least);
        }
    }
    let mut plan = ServicePlan::default();
    for (service, ends) in services.iter().filter(|(service, _)| rules.allow(service)) {
        match ends.route(service, hashes, is_bridge) {
            Ok(None) => {}
            Ok(Some(route)) if plan.routes.len() < SERVICES_MAX => plan.routes.push(route),
            Ok(Some(_)) => {
                plan.faults.insert(format!(
                    "{}: not exchanged, for {SERVICES_MAX} services are; name fewer by --dds-topic",
                    subject(service)
                ));
            }
            Err(why) => _ = plan.faults.insert(format!("{}: {why}", subject(service))),
        }
    }
    plan
}

/// Why a service is not exchanged.
#[derive(Debug, thiserror::Error)]
enum ServiceFault {
    #[error(
        "its server in DDS is a program on Fast DDS, which puts a request's identity outside of the message, where the bridge \
         does not reach it: not exchanged; start it with RMW_IMPLEMENTATION=rmw_cyclonedds_cpp"
    )]
    FastDds,
    #[error(
        "it has a server in DDS and one on the bus: not exchanged, each side asks its own; give one of them another name"
    )]
    BothSides,
    #[error("its server on the bus names no types, which DDS wants: not exchanged; open it with names")]
    NoTypes,
    #[error("its servers mean different types by it ({0}): not exchanged")]
    Types(String),
}

/// The service of a topic whose endpoint may be a server's, and which of a server's two ends it is.
fn server_end(topic: &str, kind: EndpointKind) -> Option<(String, usize)> {
    let written = usize::from(kind == EndpointKind::Writer);
    service_end(topic)
        .map(|(service, is_reply)| (service, usize::from(is_reply)))
        .filter(|(_, end)| *end == written)
}

impl<'a> Ends<'a> {
    fn route(
        &self,
        service: &str,
        hashes: &BTreeMap<u64, String>,
        is_bridge: fn(&str) -> bool,
    ) -> Result<Option<ServiceRoute>, ServiceFault> {
        let (in_dds, fast) = self.in_dds();
        let on_bus = self.on_bus();
        let has_own = on_bus[0].iter().any(|known| !is_bridge(&known.node_name));
        match (in_dds[0].is_empty(), on_bus[0].is_empty()) {
            (true, true) if fast => Err(ServiceFault::FastDds),
            (true, true) => Ok(None),
            (true, false) => bus_route(service, &on_bus, hashes).map(Some),
            (false, _) if has_own => Err(ServiceFault::BothSides),
            // Another bridge offers a server of its network: each offers its own.
            (false, _) => dds_route(service, &in_dds, &self.hashes).map(Some),
        }
    }

    /// The ends of servers in DDS that can be asked; whether Fast DDS has some.
    fn in_dds(&self) -> ([Vec<&'a DdsEndpoint>; 2], bool) {
        let has = |end: usize, participant: &[u8]| {
            self.dds[end].iter().any(|endpoint| endpoint.participant() == participant)
        };
        let servers = |end: usize| {
            let whole = self.dds[end].iter().filter(move |endpoint| has(1 - end, endpoint.participant()));
            whole.copied().collect::<Vec<_>>()
        };
        let (mut reads, mut writes) = (servers(0), servers(1));
        let fast = reads.iter().any(|endpoint| is_fast_dds(endpoint.participant()));
        for ends in [&mut reads, &mut writes] {
            ends.retain(|endpoint| !is_fast_dds(endpoint.participant()));
        }
        ([reads, writes], fast)
    }

    /// The ends of servers on the bus.
    fn on_bus(&self) -> [Vec<&'a KnownEndpoint>; 2] {
        let nodes = |end: usize| self.bus[end].iter().map(|known| known.node).collect::<BTreeSet<NodeId>>();
        let both: BTreeSet<NodeId> = nodes(0).intersection(&nodes(1)).copied().collect();
        let of = |end: usize| {
            let ends = self.bus[end].iter().filter(|known| both.contains(&known.node));
            ends.copied().collect::<Vec<_>>()
        };
        [of(0), of(1)]
    }
}

fn dds_route(
    service: &str,
    ends: &[Vec<&DdsEndpoint>; 2],
    of_bus: &BTreeMap<&str, u64>,
) -> Result<ServiceRoute, ServiceFault> {
    let one = |ends: &[&DdsEndpoint]| -> Result<(TypeRef, Option<String>), ServiceFault> {
        let names: BTreeSet<String> = ends.iter().map(|endpoint| bus_type(&endpoint.type_name)).collect();
        let name = one_type(names)?;
        let hash = of_bus.get(name.as_str()).copied().unwrap_or_default();
        let rihs01 = ends.iter().filter_map(|endpoint| endpoint.rihs01.clone()).min();
        Ok((TypeRef { name, hash }, rihs01))
    };
    let ((request, first), (response, second)) = (one(&ends[0])?, one(&ends[1])?);
    let types = ServiceTypes { request, response };
    Ok(ServiceRoute {
        service: service.to_owned(),
        types,
        rihs01: [first, second],
        direction: Direction::FromDds,
    })
}

fn bus_route(
    service: &str,
    ends: &[Vec<&KnownEndpoint>; 2],
    hashes: &BTreeMap<u64, String>,
) -> Result<ServiceRoute, ServiceFault> {
    let one = |ends: &[&KnownEndpoint]| -> Result<(TypeRef, Option<String>), ServiceFault> {
        let name = one_type(ends.iter().map(|known| known.endpoint.type_name.clone()).collect())?;
        if name.is_empty() {
            return Err(ServiceFault::NoTypes);
        }
        let hash = ends.iter().map(|known| known.endpoint.type_hash).filter(|hash| *hash != 0).min();
        let hash = hash.unwrap_or_default();
        Ok((TypeRef { name, hash }, hashes.get(&hash).cloned()))
    };
    let ((request, first), (response, second)) = (one(&ends[0])?, one(&ends[1])?);
    let types = ServiceTypes { request, response };
    Ok(ServiceRoute {
        service: service.to_owned(),
        types,
        rihs01: [first, second],
        direction: Direction::ToDds,
    })
}

fn one_type(names: BTreeSet<String>) -> Result<String, ServiceFault> {
    match names.len() {
        1 => Ok(names.into_iter().next().unwrap_or_default()),
        _ => Err(ServiceFault::Types(names.into_iter().collect::<Vec<_>>().join(", "))),
    }
}

/// A service as people name it: the parameters of a node and an action are several services each.
pub fn subject(service: &str) -> String {
    let (owner, last) = service.rsplit_once('/').unwrap_or(("", service));
    match owner.strip_suffix("/_action") {
        Some(action) => format!("action {action}"),
        None if PARAMETERS.contains(&last) && !owner.is_empty() => format!("parameters of node {owner}"),
        None => format!("service {service}"),
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
