use noctule::{Endpoint, Qos};
use noctule_discovery::EndpointId;

use noctule::request::ServiceTopics;

use super::*;
use crate::sibling_bridges::{node_name, participant_of};

const CYCLONE: u8 = 0x10;
const FAST: u8 = 0x0f;

fn is_bridge(name: &str) -> bool {
    participant_of(name).is_some()
}

fn in_dds(vendor: u8, participant: u8, service: &str) -> [DdsEndpoint; 2] {
    let endpoint = |kind, topic: String, type_name: &str| {
        let mut guid = [participant; 16];
        guid[..2].copy_from_slice(&[0x01, vendor]);
        guid[15] = 3;
        let type_name = type_name.to_owned();
        DdsEndpoint { guid, kind, topic, type_name, rihs01: None, qos: Qos::default() }
    };
    [
        endpoint(EndpointKind::Reader, format!("rq{service}Request"), "demo::srv::dds_::Add_Request_"),
        endpoint(EndpointKind::Writer, format!("rr{service}Reply"), "demo::srv::dds_::Add_Response_"),
    ]
}

fn on_bus(node: u8, node_name: &str, service: &str) -> [KnownEndpoint; 2] {
    let known = |kind, topic: String, type_name: &str, type_hash| KnownEndpoint {
        node: NodeId([node; 16]),
        node_name: node_name.to_owned(),
        same_host: true,
        endpoint: Endpoint {
            id: EndpointId(1),
            kind,
            topic,
            type_name: type_name.to_owned(),
            type_hash,
            formats: 0,
            payload_bytes_max: 0,
            relayed: false,
            qos: Qos::default(),
        },
    };
    [
        known(EndpointKind::Reader, format!("rq{service}Request"), "demo/srv/Add_Request", 7),
        known(EndpointKind::Writer, format!("rr{service}Reply"), "demo/srv/Add_Response", 8),
    ]
}

fn planned(dds: &[[DdsEndpoint; 2]], bus: &[[KnownEndpoint; 2]]) -> ServicePlan {
    let hashes = BTreeMap::from([(7, "RIHS01_07".to_owned())]);
    plan_services(&dds.concat(), &bus.concat(), &Rules::default(), &hashes, is_bridge)
}

#[test]
fn a_server_of_one_side_is_offered_on_the_other() {
    let plan = planned(&[in_dds(CYCLONE, 1, "/add")], &[on_bus(1, "arm", "/arm/move")]);
    assert_eq!(plan.faults, BTreeSet::new());
    let [from, to] = &plan.routes[..] else { panic!("{plan:?}") };
    assert_eq!((from.service.as_str(), from.direction), ("/add", Direction::FromDds));
    // No endpoint on the bus names a hash of it.
    assert_eq!(from.types.request, TypeRef { name: "demo/srv/Add_Request".to_owned(), hash: 0 });
    assert_eq!((to.service.as_str(), to.direction), ("/arm/move", Direction::ToDds));
    assert_eq!(to.types.response, TypeRef { name: "demo/srv/Add_Response".to_owned(), hash: 8 });
    assert_eq!(to.rihs01, [Some("RIHS01_07".to_owned()), None]);
}

#[test]
fn a_client_of_the_bus_with_a_hash_of_the_types_finds_them_at_the_server() {
    let mut client = on_bus(4, "tool", "/add");
    (client[0].endpoint.kind, client[1].endpoint.kind) = (EndpointKind::Writer, EndpointKind::Reader);
    let plan = planned(&[in_dds(CYCLONE, 1, "/add")], &[client]);
    let [route] = &plan.routes[..] else { panic!("{plan:?}") };
    assert_eq!((route.types.request.hash, route.types.response.hash), (7, 8));
    assert_eq!(route.direction, Direction::FromDds);
    // What was open before the client came stays, and so when it goes; only another definition opens the service anew.
    let alone = planned(&[in_dds(CYCLONE, 1, "/add")], &[]);
    let [before] = &alone.routes[..] else { panic!("{alone:?}") };
    assert!(before != route && before.serves_as(route) && route.serves_as(before));
    let mut other = route.clone();
    other.types.response.hash = 9;
    assert!(!route.serves_as(&other) && before.serves_as(&other));
    other = ServiceRoute { direction: Direction::ToDds, ..before.clone() };
    assert!(!before.serves_as(&other));
}

#[test]
fn a_client_alone_and_half_a_server_are_nothing() {
    let [reads, writes] = in_dds(CYCLONE, 1, "/add");
    let [elsewhere, _] = in_dds(CYCLONE, 2, "/add");
    assert_eq!(
        plan_services(std::slice::from_ref(&reads), &[], &Rules::default(), &BTreeMap::new(), is_bridge),
        ServicePlan::default()
    );
    let halves = [elsewhere, writes.clone()];
    assert_eq!(
        plan_services(&halves, &[], &Rules::default(), &BTreeMap::new(), is_bridge),
        ServicePlan::default()
    );
    let mut client = [reads, writes];
    (client[0].kind, client[1].kind) = (EndpointKind::Writer, EndpointKind::Reader);
    assert_eq!(planned(&[client], &[]), ServicePlan::default());
}

#[test]
fn where_both_sides_have_a_server_each_asks_its_own_but_another_bridges_is_none() {
    let (here, own) = (in_dds(CYCLONE, 1, "/add"), on_bus(1, "arm", "/add"));
    let plan = planned(std::slice::from_ref(&here), &[own]);
    assert_eq!(plan.routes, []);
    assert!(
        plan.faults.first().unwrap().starts_with("service /add: it has a server in DDS and one on the bus")
    );
    let bridge = on_bus(2, &node_name(3, &[9; 12]), "/add");
    let plan = planned(&[here], std::slice::from_ref(&bridge));
    assert_eq!(plan.routes[0].direction, Direction::FromDds);
    // And what another bridge has brought goes on into this network.
    assert_eq!(planned(&[], &[bridge]).routes[0].direction, Direction::ToDds);
}

#[test]
fn a_server_on_fast_dds_is_named_once_and_parameters_and_actions_are_one_subject_each() {
    let services = ["/talker/get_parameters", "/talker/set_parameters", "/fibonacci/_action/send_goal"];
    let fast = services.map(|service| in_dds(FAST, 1, service));
    let plan = planned(&fast, &[]);
    let subjects: Vec<&str> = plan.faults.iter().map(|fault| fault.split(": ").next().unwrap()).collect();
    assert_eq!(subjects, ["action /fibonacci", "parameters of node /talker"]);
    // Beside a server on Cyclone it does not matter.
    let plan = planned(&[in_dds(FAST, 1, "/add"), in_dds(CYCLONE, 2, "/add")], &[]);
    assert_eq!((plan.routes.len(), plan.faults.len()), (1, 0));
}

#[test]
fn servers_that_differ_in_their_types_and_too_many_services_are_named() {
    let mut other = in_dds(CYCLONE, 2, "/add");
    other[0].type_name = "demo::srv::dds_::Sum_Request_".to_owned();
    let plan = planned(&[in_dds(CYCLONE, 1, "/add"), other], &[]);
    let expected = "service /add: its servers mean different types by it (demo/srv/Add_Request, demo/srv/Sum_Request): not exchanged";
    assert_eq!((plan.routes.len(), plan.faults.first().map(String::as_str)), (0, Some(expected)));
    let many: Vec<_> =
        (0..=SERVICES_MAX).map(|number| in_dds(CYCLONE, 1, &format!("/s{number:04}"))).collect();
    let plan = planned(&many, &[]);
    assert_eq!((plan.routes.len(), plan.faults.len()), (SERVICES_MAX, 1));
    assert!(plan.faults.first().unwrap().starts_with("service /s1024: not exchanged, for 1024 services are"));
}

#[test]
fn rules_hold_for_services_by_their_names() {
    let rules = Rules { only: vec!["/arm/*".into()], except: vec![] };
    let dds = [in_dds(CYCLONE, 1, "/add"), in_dds(CYCLONE, 1, "/arm/add")].concat();
    let plan = plan_services(&dds, &[], &rules, &BTreeMap::new(), is_bridge);
    assert_eq!(plan.routes.iter().map(|route| route.service.as_str()).collect::<Vec<_>>(), ["/arm/add"]);
}

#[test]
fn the_services_of_an_action_pass_by_their_names_and_types() {
    let ends = ["send_goal", "get_result", "cancel_goal"].map(|last| {
        let mut ends = in_dds(CYCLONE, 1, &format!("/fibonacci/_action/{last}"));
        for (end, kind) in ends.iter_mut().zip(["Request", "Response"]) {
            end.type_name = match last {
                "send_goal" => format!("demo::action::dds_::Fibonacci_SendGoal_{kind}_"),
                "get_result" => format!("demo::action::dds_::Fibonacci_GetResult_{kind}_"),
                _ => format!("action_msgs::srv::dds_::CancelGoal_{kind}_"),
            };
        }
        ends
    });
    let plan = planned(&ends, &[]);
    let named = plan.routes.iter().map(|route| (route.service.as_str(), route.types.request.name.as_str()));
    let expected = [
        ("/fibonacci/_action/cancel_goal", "action_msgs/srv/CancelGoal_Request"),
        ("/fibonacci/_action/get_result", "demo/action/Fibonacci_GetResult_Request"),
        ("/fibonacci/_action/send_goal", "demo/action/Fibonacci_SendGoal_Request"),
    ];
    assert_eq!(named.collect::<Vec<_>>(), expected);
    // As rmw_cyclonedds_cpp names it.
    let topics = ServiceTopics::of("/fibonacci/_action/send_goal").unwrap();
    assert_eq!(topics.request, "rq/fibonacci/_action/send_goalRequest");
    assert_eq!(topics.reply, "rr/fibonacci/_action/send_goalReply");
}
