//! ROS 2's list of nodes, written and read by Cyclone DDS's own serializer.

use noctule::{Format, Node};

use super::{KEPT, Place, STRING, foreign, report_until};

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
