use noctule::formats::{decode, encode};
use proptest::prelude::*;

use super::*;

const A: NodeId = NodeId([1; 16]);
const B: NodeId = NodeId([2; 16]);

fn node(namespace: &str, name: &str) -> NodeBehind {
    NodeBehind { namespace: namespace.into(), name: name.into(), ..NodeBehind::default() }
}

fn list(names: &[&str]) -> NodesBehind {
    NodesBehind::of(names.iter().map(|name| node("/", name)).collect())
}

/// The example of `docs/spec/nodes-behind.md`.
#[test]
fn a_list_has_the_bytes_of_the_specification() {
    let talker = NodeBehind {
        publishes: vec!["/chatter".into()],
        serves: vec!["/talker/get_parameters".into()],
        ..node("/", "talker")
    };
    let mut bytes = Vec::new();
    encode(Format::Cdr, &NodesBehind::of(vec![talker]), &mut bytes).unwrap();
    let expected = "00010000 01000000 02000000 2f000000 07000000 74616c6b 65720000 01000000 09000000 2f636861 74746572 00000000 \
        00000000 01000000 17000000 2f74616c 6b65722f 6765745f 70617261 6d657465 72730000 00000000";
    let hexadecimal: Vec<String> =
        bytes.chunks(4).map(|word| word.iter().map(|byte| format!("{byte:02x}")).collect()).collect();
    assert_eq!(hexadecimal.join(" "), expected);
}

#[test]
fn a_list_keeps_to_its_limits_and_says_how_many_had_no_room() {
    let many = (0..NODES_MAX + 3).map(|at| node("/", &format!("n{at:05}"))).collect();
    let listed = NodesBehind::of(many);
    assert_eq!((listed.nodes.len(), listed.left_out), (NODES_MAX, 3));
    let long = |at: usize| NodeBehind { serves: vec!["s".repeat(1 << 18)], ..node("/", &format!("n{at}")) };
    let listed = NodesBehind::of((0..8).map(long).collect());
    assert_eq!((listed.nodes.len(), listed.left_out), (3, 5));
    let mut bytes = Vec::new();
    encode(Format::Cdr, &listed, &mut bytes).unwrap();
    assert!(bytes.len() <= LIST_BYTES_MAX);
}

#[test]
fn a_bridge_that_goes_takes_its_nodes_along() {
    let mut known = KnownBehind::default();
    assert!(known.insert(A, list(&["talker"])) && known.insert(B, list(&["listener"])));
    assert!(!known.insert(A, list(&["talker"])), "the same again");
    assert!(known.insert(A, list(&["talker", "planner"])));
    let names: Vec<&str> = known.by_bridge().map(|(_, node)| node.name.as_str()).collect();
    assert_eq!(names, ["planner", "talker", "listener"]);
    assert!(known.retain(|bridge| bridge == B) && !known.retain(|bridge| bridge == B));
    assert_eq!((known.of(A).len(), known.of(B).len(), known.refused()), (0, 1, 0));
}

#[test]
fn names_that_ros_does_not_allow_and_bridges_beyond_the_limit_are_counted() {
    let mut known = KnownBehind::default();
    let mut bad: Vec<NodeBehind> = ["", "a b", "1a", "é", "a/b"].iter().map(|name| node("/", name)).collect();
    bad.extend(["", "a", "/a/", "//", "/1", "/a b"].iter().map(|namespace| node(namespace, "n")));
    bad.push(node("/", &"n".repeat(NAME_BYTES_MAX + 1)));
    let count = bad.len() as u64;
    bad.push(node("/a/_b2", "n"));
    assert!(known.insert(A, NodesBehind { nodes: bad, left_out: 0 }));
    assert_eq!((known.of(A), known.refused()), ([node("/a/_b2", "n")].as_slice(), count));

    let mut known = KnownBehind::default();
    for number in 0..BRIDGES_MAX {
        assert!(known.insert(NodeId([number as u8; 16]), list(&["n"])));
    }
    assert!(!known.insert(NodeId([255; 16]), list(&["n", "m"])));
    assert_eq!((known.by_bridge().count(), known.refused()), (BRIDGES_MAX, 2));
    assert!(known.insert(A, list(&["m"])), "one that is known may change");
}

proptest! {
    #[test]
    fn any_bytes_are_read_and_what_is_kept_fits_ros(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        if let Ok(list) = decode::<NodesBehind>(Format::Cdr, &bytes) {
            let mut known = KnownBehind::default();
            known.insert(A, list);
            prop_assert!(known.of(A).iter().all(NodeBehind::is_named_well));
        }
    }

    #[test]
    fn a_list_is_no_longer_than_was_computed(
        names in proptest::collection::vec(("[a-z]{1,9}", proptest::collection::vec("/[a-z]{0,9}", 0..5)), 0..6)
    ) {
        let nodes = names.into_iter().map(|(name, topics)| {
            let (publishes, serves) = (topics.clone(), topics);
            NodeBehind { publishes, serves, ..node("/", &name) }
        });
        let list = NodesBehind::of(nodes.collect());
        let mut bytes = Vec::new();
        encode(Format::Cdr, &list, &mut bytes).unwrap();
        prop_assert!(bytes.len() <= 64 + list.nodes.iter().map(NodeBehind::bytes).sum::<usize>());
        prop_assert_eq!(decode::<NodesBehind>(Format::Cdr, &bytes).unwrap(), list);
    }
}
