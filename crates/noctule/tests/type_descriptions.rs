//! A node asks another what a type is made of: on one host and between two, with a key and without.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests and what they share

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use noctule::clock::LocalClock;
use noctule::formats::uav_state::UavState;
use noctule::{DescribeError, KnownEndpoint, Message, Node, NodeId};

const LONG: Duration = Duration::from_secs(30);

fn node(name: &str, domain: u32, clock: &str, key: Option<&Path>) -> Node {
    let clock: LocalClock = clock.parse().unwrap();
    let builder = Node::builder(name).domain(domain).clock(clock).keep_notices();
    match key {
        Some(key) => builder.swarm_key(key).open().unwrap(),
        None => builder.open().unwrap(),
    }
}

fn domain(number: u32) -> u32 {
    3_200 + std::process::id() % 90 * 5 + number
}

/// Waits until the endpoint is known; the waiting is that of a subscriber that gets nothing.
fn endpoint(node: &Node, topic: &str) -> KnownEndpoint {
    let mut idle = node.subscriber("idle").open().unwrap();
    loop {
        if let Some(found) = node.endpoints().into_iter().find(|known| known.endpoint.topic == topic) {
            return found;
        }
        idle.wait(Some(Duration::from_millis(5)));
    }
}

fn is_answered(domain: u32, clock: &str, key: Option<&Path>) {
    let (owner, asking) = (node("owner", domain, clock, key), node("asking", domain, "", key));
    let _publisher = owner.publisher("state").typed::<UavState>().open().unwrap();
    let known = endpoint(&asking, "state");
    let hash = known.endpoint.type_hash;
    let description = asking.type_description(known.node, hash, LONG).unwrap();
    assert_eq!((description.name(), description.hash()), (UavState::TYPE_NAME, UavState::type_hash()));
    assert_eq!(description.text(), UavState::description());
    assert!(description.text().contains("\n uav/Header header\n"), "{}", description.text());

    let answered = owner.counters().descriptions.answered;
    assert!(answered >= 1);
    asking.type_description(known.node, hash, LONG).unwrap();
    assert_eq!(owner.counters().descriptions.answered, answered, "what was answered once is kept");

    let refused = asking.type_description(known.node, hash ^ 1, LONG).unwrap_err();
    assert!(matches!(refused, DescribeError::NotDescribed { .. }), "{refused}");
    let refused = asking.type_description(NodeId([9; 16]), hash ^ 1, LONG).unwrap_err();
    assert!(matches!(refused, DescribeError::Unknown { .. }), "{refused}");
}

#[test]
fn a_typed_topic_of_this_host_is_described() {
    is_answered(domain(0), "", None);
}

#[test]
fn a_typed_topic_of_another_host_is_described() {
    is_answered(domain(1), "offset=3s", None);
}

#[test]
fn a_typed_topic_of_a_swarm_with_a_key_is_described() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key");
    fs::write(&key, "5a".repeat(32)).unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    is_answered(domain(2), "offset=3s", Some(&key));
}

#[test]
fn a_long_description_comes_in_parts_and_what_is_none_is_refused() {
    let domain = domain(3);
    let (owner, asking) = (node("owner", domain, "", None), node("asking", domain, "", None));
    let fields: String = (0..3000).map(|n| format!(" float64 field_{n}\n")).collect();
    let hash = owner.describe(&format!("struct demo/Wide\n{fields}")).unwrap();
    let _publisher = owner.publisher("wide").type_name("demo/Wide", hash).open().unwrap();
    let known = endpoint(&asking, "wide");
    let description = asking.type_description(known.node, known.endpoint.type_hash, LONG).unwrap();
    assert_eq!(description.types().len(), 1);
    assert!(owner.counters().descriptions.answered > 50);
    assert!(owner.describe("struct demo/Wide\n").unwrap_err().to_string().contains("no members"));
}
