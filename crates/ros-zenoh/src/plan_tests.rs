use std::slice::from_ref;

use noctule::NodeId;
use noctule_timebase::Span;

use super::*;
use crate::qos::RosQos;
use crate::token::TokenEndpoint;

const STRING: &str = "std_msgs/msg/String";
const KNOWN: &str = "RIHS01_df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18";
const OTHER: &str = "RIHS01_ef668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18";
const HASH: u64 = 77;

fn ros(kind: Kind, topic: &str, hash: &str) -> RemoteEndpoint {
    let name = TypedName::new(topic, STRING).unwrap();
    let endpoint = TokenEndpoint { kind, name, hash: hash.into(), qos: RosQos::default() };
    RemoteEndpoint { zid: "ab".into(), endpoint, gid: [0; 16] }
}

fn bus(kind: EndpointKind, topic: &str, type_hash: u64) -> KnownEndpoint {
    let endpoint = Endpoint {
        id: EndpointId(1),
        kind,
        topic: topic.into(),
        type_name: STRING.into(),
        type_hash,
        formats: Format::Cdr.bit(),
        payload_bytes_max: 64,
        relayed: false,
        qos: Qos::default(),
    };
    KnownEndpoint { node: NodeId([1; 16]), node_name: "n".into(), same_host: true, endpoint }
}

fn planned(zenoh: &[RemoteEndpoint], bus: &[KnownEndpoint]) -> Plan {
    let (gateways, hashes) = (BTreeSet::new(), BTreeMap::from([(HASH, KNOWN.to_owned())]));
    plan(&Sides { zenoh, gateways: &gateways, bus, hashes: &hashes }, &Rules::default())
}

#[track_caller]
fn the_fault(plan: &Plan) -> &str {
    assert!(plan.routes.is_empty(), "{:?}", plan.routes);
    assert_eq!(plan.faults.len(), 1, "{:?}", plan.faults);
    plan.faults.first().unwrap()
}

fn hashes(route: &Route) -> Vec<&str> {
    route.hashes.iter().map(String::as_str).collect()
}

#[test]
fn a_writer_on_one_side_is_a_route_to_the_other_and_read_when_somebody_reads() {
    let (there, here) = (ros(Kind::Publisher, "/chatter", KNOWN), bus(EndpointKind::Writer, "/imu", HASH));
    let plan = planned(from_ref(&there), from_ref(&here));
    let ways: Vec<_> =
        plan.routes.iter().map(|route| (route.name.name.as_str(), route.direction, route.is_read)).collect();
    assert_eq!(ways, [("/chatter", Direction::FromZenoh, false), ("/imu", Direction::ToZenoh, false)]);
    assert!(plan.routes.iter().all(|route| hashes(route) == [KNOWN]));
    let readers = (ros(Kind::Subscription, "/imu", KNOWN), bus(EndpointKind::Reader, "/chatter", 0));
    let plan = planned(&[there, readers.0], &[here, readers.1]);
    assert!(plan.routes.iter().all(|route| route.is_read), "{plan:?}");
}

#[test]
fn what_is_kept_for_late_readers_is_read_always() {
    let mut there = ros(Kind::Publisher, "/map", KNOWN);
    there.endpoint.qos = RosQos { is_transient_local: true, depth: 3, ..RosQos::default() };
    let mut here = bus(EndpointKind::Writer, "/plan", HASH);
    here.endpoint.qos.durability = Durability::TransientLocal;
    let plan = planned(&[there], &[here]);
    assert!(plan.routes.iter().all(|route| route.is_read), "{plan:?}");
    assert_eq!((plan.routes[0].qos.depth, plan.routes[0].qos.durability), (3, Durability::TransientLocal));
}

#[test]
fn a_type_that_no_node_described_is_announced_and_written_under_the_key_of_its_readers() {
    let here = bus(EndpointKind::Writer, "/a", 0);
    assert_eq!(hashes(&planned(&[], from_ref(&here)).routes[0]), [UNKNOWN_HASH]);
    let reader = ros(Kind::Subscription, "/a", KNOWN);
    assert_eq!(hashes(&planned(&[reader], &[here]).routes[0]), [KNOWN]);
}

#[test]
fn a_node_of_humble_is_served_under_its_own_key_too() {
    let humble = ros(Kind::Subscription, "/a", crate::key::NO_HASH);
    let plan = planned(&[humble], &[bus(EndpointKind::Writer, "/a", HASH)]);
    assert_eq!((hashes(&plan.routes[0]), plan.routes[0].is_read), (vec![KNOWN, crate::key::NO_HASH], true));
}

#[test]
fn definitions_that_differ_are_named_and_not_joined() {
    let plan = planned(&[ros(Kind::Subscription, "/a", OTHER)], &[bus(EndpointKind::Writer, "/a", HASH)]);
    let fault = the_fault(&plan);
    assert!(
        fault.contains("/a is not exchanged") && fault.contains(OTHER) && fault.contains(KNOWN),
        "{fault}"
    );
    let mut other = bus(EndpointKind::Writer, "/a", HASH);
    other.endpoint.type_name = "std_msgs/msg/Char".into();
    let fault = planned(&[ros(Kind::Publisher, "/a", KNOWN)], &[other]);
    assert!(the_fault(&fault).contains("std_msgs/msg/String in Zenoh and std_msgs/msg/Char on the bus"));
    let two = [bus(EndpointKind::Writer, "/a", 1), bus(EndpointKind::Reader, "/a", 2)];
    assert!(the_fault(&planned(&[], &two)).contains("different layouts"));
}

#[test]
fn what_zenoh_cannot_carry_is_named() {
    let mut plain = bus(EndpointKind::Writer, "/a", HASH);
    plain.endpoint.formats = Format::Plain.bit();
    assert!(the_fault(&planned(&[ros(Kind::Subscription, "/a", KNOWN)], &[plain])).contains("no CDR"));
    let mut untyped = bus(EndpointKind::Writer, "/a", 0);
    untyped.endpoint.type_name = String::new();
    assert!(the_fault(&planned(&[], &[untyped])).contains("has no type"));
    assert!(the_fault(&planned(&[], &[bus(EndpointKind::Writer, "imu", 0)])).contains("begin with /"));
    let readers = (ros(Kind::Subscription, "/a", KNOWN), bus(EndpointKind::Reader, "/a", HASH));
    assert_eq!(planned(&[readers.0], &[readers.1]), Plan::default());
}

#[test]
fn what_a_gateway_of_ours_writes_is_known_from_what_ros_writes() {
    let (mut site, ros_2) = (ros(Kind::Publisher, "/a", KNOWN), ros(Kind::Publisher, "/a", KNOWN));
    site.zid = "cd".into();
    let (gateways, hashes) = (BTreeSet::from(["cd".to_owned()]), BTreeMap::new());
    let sources = |zenoh: &[RemoteEndpoint]| {
        let plan = plan(&Sides { zenoh, gateways: &gateways, bus: &[], hashes: &hashes }, &Rules::default());
        (plan.routes[0].is_from_ros, plan.routes[0].is_from_site)
    };
    assert_eq!(sources(&[site.clone()]), (false, true));
    assert_eq!(sources(&[site, ros_2.clone()]), (true, true));
    assert_eq!(sources(&[ros_2]), (true, false));
}

#[test]
fn topics_beyond_the_limit_are_named() {
    let many: Vec<_> =
        (0..ROUTES_MAX + 2).map(|at| ros(Kind::Publisher, &format!("/t{at}"), KNOWN)).collect();
    let plan = planned(&many, &[]);
    assert_eq!((plan.routes.len(), plan.faults.len()), (ROUTES_MAX, 2));
    assert!(plan.faults.first().unwrap().contains("4096 topics and ways"));
}

#[test]
fn the_weakest_of_several_writers_is_what_the_bus_is_offered() {
    let (strong, mut weak) = (ros(Kind::Publisher, "/a", KNOWN), ros(Kind::Publisher, "/a", KNOWN));
    weak.endpoint.qos = RosQos { is_reliable: false, deadline: Some(Span::from_s(1)), ..RosQos::default() };
    let plan = planned(&[strong, weak], &[]);
    assert!(!is_reliable(&plan.routes[0].qos));
    assert_eq!(plan.routes[0].qos.deadline, None);
}
