//! ROS 2's list of nodes, written and read by Cyclone DDS's own serializer, and its variables.

use std::process::Command;

use noctule::{Format, Node};

use super::{KEPT, Place, Process, STRING, foreign, report_until};

#[test]
fn nodes_of_the_bus_are_in_the_list_of_ros_and_those_of_ros_are_known_here() {
    let Some((_, program)) = foreign().iter().find(|(name, _)| *name == "cyclone") else { return };
    let place = Place::new(18);
    let arm = Node::builder("arm/joint 3").domain(place.bus).open().unwrap();
    let publisher = arm.publisher("/chatter").type_name(STRING, 0).format(Format::Cdr);
    let publisher = publisher.open().unwrap();
    let bridge = place.bridge(&[]);
    report_until(&bridge, "the topic", |report| report["routes"][0]["topic"] == "/chatter");
    let list = place.program(program, "nodes", KEPT, &["1", "planner"]);
    // Namespace, name, readers, writers, and the number of the first writer: the bridge's, without a key.
    let line = list.line();
    let gid = line.strip_prefix("node /arm joint_3 0 1 ").unwrap_or_else(|| panic!("{line}"));
    assert!(gid.len() == 32 && gid.ends_with("03"), "{gid}");
    let report = report_until(&bridge, "its node", |report| report["ros_nodes"][0].is_string());
    assert_eq!(report["ros_nodes"], serde_json::json!(["/far/planner"]));
    assert!(list.end());
    report_until(&bridge, "that it is gone", |report| report["ros_nodes"] == serde_json::json!([]));

    // Without an endpoint the node stays.
    drop(publisher);
    report_until(&bridge, "no topic", |report| report["routes"] == serde_json::json!([]));
    let list = place.program(program, "nodes", KEPT, &["1", "planner"]);
    assert_eq!(list.line(), "node /arm joint_3 0 0 ");
    assert!(list.end() && bridge.end());
}

#[test]
fn nodes_behind_another_bridge_have_their_own_names_until_they_or_their_bridge_go() {
    let Some((_, program)) = foreign().iter().find(|(name, _)| *name == "cyclone") else { return };
    let near = Place::new(20);
    let far = Place { dds: near.dds + 1, ..near };
    let (near_bridge, far_bridge) = (near.bridge(&[]), far.bridge(&[]));
    let list = near.program(program, "nodes", KEPT, &["0", "desk", "owns"]);
    let until = |holds: fn(&str) -> bool| while !holds(&list.line()) {};
    // The writer of the list's GUID is the bridge's own, without a key; the far side has one, too.
    let is_there = |line: &str| line.starts_with("node /far planner 0 1 ") && line.ends_with("03");
    let planner = far.program(program, "nodes", KEPT, &["0", "planner", "owns"]);
    until(is_there);
    while !planner.line().starts_with("node /far desk 0 1 ") {}
    // Each bridge reports its own side alone, and none announces what another announced to it.
    let names = |bridge: &Process| {
        report_until(bridge, "a node", |report| report["ros_nodes"][0].is_string())["ros_nodes"].clone()
    };
    assert_eq!(names(&near_bridge), serde_json::json!(["/far/desk"]));
    assert_eq!(names(&far_bridge), serde_json::json!(["/far/planner"]));
    assert!(planner.end());
    until(|line| line == "none");

    let planner = far.program(program, "nodes", KEPT, &["0", "planner", "owns"]);
    until(is_there);
    assert!(far_bridge.end());
    until(|line| line == "none");
    assert!(planner.end() && list.end() && near_bridge.end());
}

#[test]
fn with_the_range_localhost_programs_of_this_host_are_found_and_bad_variables_are_named() {
    let Some((_, program)) = foreign().iter().find(|(name, _)| *name == "cyclone") else { return };
    let place = Place::new(19);
    let bridge = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_noctule-dds"));
        command.arg(place.dds.to_string()).args(["--bus-domain", &place.bus.to_string()]);
        command.args(["--json", "--with-input", "--every", "0.2"]).env("CYCLONEDDS_URI", "");
        command
    };
    // As rmw_cyclonedds sets its own Cyclone.
    let settings = "<General><AllowMulticast>false</AllowMulticast></General><Discovery><ParticipantIndex>auto</ParticipantIndex>\
        <MaxAutoParticipantIndex>32</MaxAutoParticipantIndex><Peers><Peer address=\"localhost\"/></Peers></Discovery>";
    let mut writer = Command::new(program);
    writer.args(["write", &place.dds.to_string(), "rt/chatter"]).args(KEPT).args(["5", "here"]);
    let writer = Process::start(writer.env("CYCLONEDDS_URI", settings));
    assert_eq!(writer.line(), "written");
    let other = (place.dds + 1).to_string();
    let found = Process::start(
        bridge().env("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST").env("ROS_DOMAIN_ID", other),
    );
    assert!(found.line().contains("\"dds\""));
    let mut notice = String::new();
    report_until(&found, "five samples", |report| {
        notice.push_str(report["notice"].as_str().unwrap_or_default());
        report["routes"][0]["samples"] == 5
    });
    assert!(notice.contains("but this bridge was given DDS domain"), "{notice}");
    assert!(found.end() && writer.end());

    let ran = bridge().env("ROS_AUTOMATIC_DISCOVERY_RANGE", "here").output().unwrap();
    let expected = "noctule-dds: ROS_AUTOMATIC_DISCOVERY_RANGE is \"here\"; it can be SUBNET, LOCALHOST, SYSTEM_DEFAULT or OFF\n";
    assert_eq!((ran.status.code(), String::from_utf8(ran.stderr).unwrap().as_str()), (Some(2), expected));
}
