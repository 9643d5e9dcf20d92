use proptest::prelude::*;

use super::*;

const PARTICIPANT: [u8; 16] = [0x01, 0x10, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0, 0, 1, 0xc1];

fn talker() -> RosNode {
    RosNode {
        namespace: "/".into(),
        name: "talker".into(),
        readers: vec![[0xaa; 16]],
        writers: vec![[0xbb; 16], [0xcc; 16]],
    }
}

/// By hand from the definition, as rmw_dds_common of Jazzy writes it.
fn golden() -> Vec<u8> {
    let mut bytes = vec![0, 1, 0, 0];
    bytes.extend(PARTICIPANT);
    bytes.extend([1, 0, 0, 0]);
    bytes.extend([2, 0, 0, 0, b'/', 0, 0, 0]);
    bytes.extend([7, 0, 0, 0, b't', b'a', b'l', b'k', b'e', b'r', 0, 0]);
    bytes.extend([1, 0, 0, 0]);
    bytes.extend([0xaa; 16]);
    bytes.extend([2, 0, 0, 0]);
    bytes.extend([0xbb; 16]);
    bytes.extend([0xcc; 16]);
    bytes
}

#[test]
fn a_node_has_the_bytes_of_ros() {
    assert_eq!(encode(&PARTICIPANT, &[talker()], GidWidth::Bytes16), golden());
    assert_eq!(decode(&golden()), Some((PARTICIPANT, vec![talker()])));
    assert_eq!(talker().full_name(), "/talker");
}

#[test]
fn names_are_announced_to_other_bridges_in_place_of_numbers() {
    let endpoint = |number, kind, topic: &str| DdsEndpoint {
        guid: [number; 16],
        kind,
        topic: topic.into(),
        type_name: "T".into(),
        rihs01: None,
        qos: noctule::Qos::default(),
    };
    let (writer, reader) = (EndpointKind::Writer, EndpointKind::Reader);
    let endpoints = [
        endpoint(1, writer, "rt/chatter"),
        endpoint(2, writer, "rt/chatter"),
        endpoint(3, reader, "Square"),
        endpoint(4, reader, "rq/talker/get_parametersRequest"),
        endpoint(5, writer, "rr/talker/get_parametersReply"),
        endpoint(6, writer, "rq/addRequest"),
        endpoint(7, reader, "rr/addReply"),
        endpoint(8, reader, "rt/another_nodes"),
    ];
    let (readers, writers) = ([3, 4, 7, 0xaa], [1, 2, 5, 6]);
    let [readers, writers] = [readers, writers].map(|of| of.map(|number| [number; 16]).to_vec());
    let node = RosNode { readers, writers, ..talker() };
    let idle = RosNode { namespace: "/far".into(), ..RosNode::of_bus("idle") };
    let expected = NodeBehind {
        namespace: "/".into(),
        name: "talker".into(),
        publishes: vec!["/chatter".into()],
        subscribes: vec!["Square".into()],
        serves: vec!["/talker/get_parameters".into()],
    };
    let none = NodeBehind { namespace: "/far".into(), name: "idle".into(), ..NodeBehind::default() };
    assert_eq!(by_names([&node, &idle], &endpoints), [expected, none]);
}

#[test]
fn humbles_numbers_are_longer_and_distinguished_by_the_length() {
    let bytes = encode(&PARTICIPANT, &[talker()], GidWidth::Bytes24);
    assert_eq!(bytes.len(), golden().len() + 4 * 8);
    assert_eq!(bytes[4..28], [&PARTICIPANT[..], &[0; 8]].concat());
    assert_eq!(decode(&bytes), Some((PARTICIPANT, vec![talker()])));
    assert_eq!(GidWidth::of_distribution("humble"), GidWidth::Bytes24);
    assert_eq!(GidWidth::of_distribution("jazzy"), GidWidth::Bytes16);
    // No node at all, in either.
    for width in [GidWidth::Bytes16, GidWidth::Bytes24] {
        assert_eq!(decode(&encode(&PARTICIPANT, &[], width)), Some((PARTICIPANT, vec![])));
    }
}

#[test]
fn every_prefix_and_a_number_without_its_bytes_are_refused() {
    let bytes = golden();
    for length in 0..bytes.len() {
        assert_eq!(decode(&bytes[..length]), None, "{length} bytes");
    }
    let mut many = golden();
    many[20..24].fill(0xff);
    assert_eq!(decode(&many), None);
    let mut long = golden();
    long[24..28].fill(0xff);
    assert_eq!(decode(&long), None);
}

#[test]
fn nodes_of_the_bus_get_names_that_ros_allows() {
    for (bus, expected) in [
        ("camera", "/camera"),
        ("arm/left/joint 3", "/arm/left/joint_3"),
        ("/robot-1/imu", "/robot_1/imu"),
        ("3d", "/_3d"),
        ("", "/_"),
        ("//", "/_"),
        ("é", "/_"),
    ] {
        assert_eq!(RosNode::of_bus(bus).full_name(), expected, "{bus:?}");
    }
}

fn node() -> impl Strategy<Value = RosNode> {
    let gids = || proptest::collection::vec(any::<[u8; 16]>(), 0..4);
    ("/[a-z]{0,9}", "[a-z_]{1,9}", gids(), gids()).prop_map(|(namespace, name, readers, writers)| RosNode {
        namespace,
        name,
        readers,
        writers,
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(nodes in proptest::collection::vec(node(), 0..5)) {
        let bytes = encode(&PARTICIPANT, &nodes, GidWidth::Bytes16);
        prop_assert_eq!(decode_as(&bytes, GidWidth::Bytes16), Some((PARTICIPANT, nodes.clone())));
        let bytes = encode(&PARTICIPANT, &nodes, GidWidth::Bytes24);
        prop_assert_eq!(decode_as(&bytes, GidWidth::Bytes24), Some((PARTICIPANT, nodes)));
    }

    #[test]
    fn any_bytes_are_read(
        bytes in proptest::collection::vec(any::<u8>(), 0..300), at in 0_usize..80, value in any::<u8>(),
    ) {
        let _ = decode(&bytes);
        let mut damaged = golden();
        if let Some(byte) = damaged.get_mut(at) {
            *byte = value;
        }
        let _ = decode(&damaged);
    }
}
