use std::slice::from_ref;

use noctule::{Endpoint, KnownEndpoint, Qos};
use noctule_discovery::EndpointId;

use super::*;
use crate::graph::RemoteEndpoint;
use crate::qos::RosQos;
use crate::token::TokenEndpoint;

const KNOWN: &str = "RIHS01_df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18";

fn ros(kind: Kind, service: &str, type_name: &str) -> RemoteEndpoint {
    let name = TypedName::new(service, type_name).unwrap();
    let endpoint = TokenEndpoint { kind, name, hash: KNOWN.into(), qos: RosQos::of_services() };
    RemoteEndpoint { zid: "ab".into(), endpoint, gid: [0; 16] }
}

/// Both ends of a server, or of a client.
fn bus(node: &str, is_server: bool, service: &str) -> [KnownEndpoint; 2] {
    let known = |is_request: bool| {
        let (topic, suffix) = match is_request {
            true => (format!("rq{service}Request"), "Request"),
            false => (format!("rr{service}Reply"), "Response"),
        };
        let endpoint = Endpoint {
            id: EndpointId(1),
            kind: if is_server == is_request { EndpointKind::Reader } else { EndpointKind::Writer },
            topic,
            type_name: format!("demo/srv/Add_{suffix}"),
            type_hash: 7,
            formats: 0,
            payload_bytes_max: 0,
            relayed: false,
            qos: Qos::default(),
        };
        KnownEndpoint {
            node: NodeId([node.len() as u8; 16]),
            node_name: node.to_owned(),
            same_host: true,
            endpoint,
        }
    };
    [known(true), known(false)]
}

fn planned(zenoh: &[RemoteEndpoint], bus: &[[KnownEndpoint; 2]]) -> ServicePlan {
    let (gateways, hashes) = (BTreeSet::new(), BTreeMap::new());
    let sides = Sides { zenoh, gateways: &gateways, bus: &bus.concat(), hashes: &hashes };
    plan_services(&sides, &Rules::default(), |name| name.starts_with("zenoh gateway "))
}

#[test]
fn a_server_of_one_side_is_offered_on_the_other() {
    let plan = planned(&[ros(Kind::Server, "/add", "demo/srv/Add")], &[bus("arm", true, "/arm/add")]);
    assert_eq!(plan.faults, BTreeSet::new());
    let [from, to] = &plan.routes[..] else { panic!("{plan:?}") };
    assert_eq!((from.direction, from.is_wanted), (Direction::FromZenoh, false));
    assert_eq!(from.types.request.name, "demo/srv/Add_Request");
    assert_eq!(from.hashes, [KNOWN.to_owned()].into());
    assert_eq!((to.direction, to.name.type_name.as_str()), (Direction::ToZenoh, "demo/srv/Add"));
    assert!(to.hashes.is_empty());
}

#[test]
fn a_client_of_the_bus_is_the_one_that_wants_it_and_one_of_ros_announces_the_hash() {
    let plan = planned(&[ros(Kind::Server, "/add", "demo/srv/Add")], &[bus("arm", false, "/add")]);
    assert!(plan.routes[0].is_wanted && plan.routes[0].types.response.hash == 7);
    let plan = planned(&[ros(Kind::Client, "/add", "demo/srv/Add")], &[bus("arm", true, "/add")]);
    assert_eq!(plan.routes[0].hashes, [KNOWN.to_owned()].into());
}

#[test]
fn servers_on_both_sides_are_left_alone_but_not_those_of_bridges() {
    let there = ros(Kind::Server, "/add", "demo/srv/Add");
    let plan = planned(from_ref(&there), &[bus("arm", true, "/add")]);
    assert!(plan.routes.is_empty() && plan.faults.first().unwrap().contains("each side asks its own"));
    let plan = planned(&[there], &[bus("zenoh gateway 0 ab", true, "/add")]);
    assert_eq!((plan.routes.len(), plan.faults.len()), (1, 0));
}

#[test]
fn types_that_do_not_fit_are_named() {
    let two = [ros(Kind::Server, "/add", "demo/srv/Add"), ros(Kind::Server, "/add", "demo/srv/Sub")];
    assert!(planned(&two, &[]).faults.first().unwrap().contains("demo/srv/Add, demo/srv/Sub"));
    let mut odd = bus("arm", true, "/add");
    odd[0].endpoint.type_name = "Question".into();
    assert!(planned(&[], &[odd]).faults.first().unwrap().contains("package/srv/Name_Request"));
}

#[test]
fn services_beyond_the_limit_are_named() {
    let many: Vec<_> =
        (0..SERVICES_MAX + 1).map(|at| ros(Kind::Server, &format!("/s{at}"), "demo/srv/Add")).collect();
    let plan = planned(&many, &[]);
    assert_eq!((plan.routes.len(), plan.faults.len()), (SERVICES_MAX, 1));
}
