use super::*;
use noctule_timebase::Span;

const STRING: &str = "std_msgs::msg::dds_::String_";

fn dds(kind: EndpointKind, topic: &str, type_name: &str) -> DdsEndpoint {
    let mut guid = [7; 16];
    // Writer or reader without a key (DDSI-RTPS 2.3, table 9.1).
    guid[15] = if kind == EndpointKind::Writer { 0x03 } else { 0x04 };
    let (topic, type_name) = (topic.into(), type_name.into());
    DdsEndpoint { guid, kind, topic, type_name, rihs01: None, qos: Qos::default() }
}

fn bus(kind: EndpointKind, topic: &str, type_name: &str) -> Endpoint {
    Endpoint {
        id: EndpointId(1),
        kind,
        topic: topic.into(),
        type_name: type_name.into(),
        type_hash: 0,
        formats: Format::Cdr.bit(),
        payload_bytes_max: 64,
        relayed: false,
        qos: Qos::default(),
    }
}

fn plan_all(dds: &[DdsEndpoint], bus: &[Endpoint]) -> Plan {
    plan(dds, bus, &Rules::default(), &BTreeMap::new())
}

#[track_caller]
fn the_fault(plan: &Plan) -> &str {
    assert!(plan.routes.is_empty(), "{:?}", plan.routes);
    assert_eq!(plan.faults.len(), 1, "{:?}", plan.faults);
    plan.faults.first().unwrap()
}

#[test]
fn a_writer_on_one_side_is_a_route_to_the_other_under_the_names_of_ros() {
    let chatter = dds(EndpointKind::Writer, "rt/chatter", STRING);
    let imu = bus(EndpointKind::Writer, "/imu", "sensor_msgs/msg/Imu");
    let plan = plan_all(&[chatter], &[imu]);
    let ways: Vec<_> = plan.routes.iter().map(|route| (route.topic.as_str(), route.direction)).collect();
    assert_eq!(ways, [("/chatter", Direction::FromDds), ("/imu", Direction::ToDds)]);
    assert_eq!(plan.routes[0].type_name, "std_msgs/msg/String");
    assert_eq!(dds_names(&plan.routes[1]), ("rt/imu".into(), "sensor_msgs::msg::dds_::Imu_".into()));
    assert!(plan.faults.is_empty());
}

#[test]
fn writers_on_both_sides_are_two_routes() {
    let (there, here) =
        (dds(EndpointKind::Writer, "rt/a", STRING), bus(EndpointKind::Writer, "/a", "std_msgs/msg/String"));
    let ways: Vec<_> = plan_all(&[there], &[here]).routes.iter().map(|route| route.direction).collect();
    assert_eq!(ways, [Direction::FromDds, Direction::ToDds]);
}

#[test]
fn readers_alone_are_no_routes() {
    let readers = [bus(EndpointKind::Reader, "/a", "std_msgs/msg/String")];
    assert_eq!(plan_all(&[dds(EndpointKind::Reader, "rt/a", STRING)], &readers), Plan::default());
}

#[test]
fn types_that_differ_are_named_and_not_exchanged() {
    let (there, here) =
        (dds(EndpointKind::Writer, "rt/a", STRING), bus(EndpointKind::Writer, "/a", "std_msgs/msg/UInt32"));
    assert_eq!(
        the_fault(&plan_all(&[there], &[here])),
        "topic /a is not exchanged: its type is std_msgs/msg/String in DDS and std_msgs/msg/UInt32 on the bus"
    );
    // A reader that takes any type names none.
    let any = bus(EndpointKind::Reader, "/a", "");
    assert_eq!(plan_all(&[dds(EndpointKind::Writer, "rt/a", STRING)], &[any]).routes.len(), 1);
}

#[test]
fn the_hash_of_the_buss_type_is_taken_over_unless_there_are_two() {
    let writer = dds(EndpointKind::Writer, "rt/a", STRING);
    let typed = |type_hash| Endpoint { type_hash, ..bus(EndpointKind::Reader, "/a", "std_msgs/msg/String") };
    assert_eq!(plan_all(std::slice::from_ref(&writer), &[typed(0), typed(5)]).routes[0].type_hash, 5);
    let plan = plan_all(&[writer], &[typed(6), typed(5)]);
    assert!(the_fault(&plan).contains("type hashes 0000000000000005, 0000000000000006"), "{plan:?}");
}

#[test]
fn a_type_with_keys_and_samples_that_are_no_cdr_are_named() {
    let mut keyed = dds(EndpointKind::Writer, "Square", "ShapeType");
    keyed.guid[15] = 0x02;
    assert!(the_fault(&plan_all(&[keyed], &[])).contains("its type ShapeType has keys"));
    let raw = Endpoint { formats: 1, ..bus(EndpointKind::Writer, "/a", "bytes") };
    // No reader in DDS wants it: no notice.
    assert_eq!(plan_all(&[], std::slice::from_ref(&raw)), Plan::default());
    let plan = plan_all(&[dds(EndpointKind::Reader, "rt/a", STRING)], &[raw]);
    assert!(the_fault(&plan).contains("no CDR"), "{plan:?}");
}

#[test]
fn what_is_asked_for_is_what_the_weakest_writer_offers() {
    let strong = Qos {
        reliability: Reliability::Reliable,
        durability: Durability::TransientLocal,
        deadline: Some(Span::from_ms(10)),
        ..Qos::default()
    };
    let writer = |qos| DdsEndpoint { qos, ..dds(EndpointKind::Writer, "rt/a", STRING) };
    let alone = plan_all(&[writer(strong)], &[]).routes[0].qos;
    assert_eq!(alone, Qos { depth: DEPTH_FROM_DDS, ..strong });
    let slower = Qos { deadline: Some(Span::from_ms(30)), ..strong };
    assert_eq!(plan_all(&[writer(strong), writer(slower)], &[]).routes[0].qos.deadline, slower.deadline);
    let both = plan_all(&[writer(strong), writer(Qos::default())], &[]).routes[0].qos;
    assert_eq!(both, Qos { depth: DEPTH_FROM_DDS, ..Qos::default() });
    // Deadline-bound is not reliable in DDS's sense.
    let bound = Qos { reliability: Reliability::DeadlineBound, deadline: strong.deadline, ..Qos::default() };
    let bound = Endpoint { qos: bound, ..bus(EndpointKind::Writer, "/a", "std_msgs/msg/String") };
    assert_eq!(plan_all(&[], &[bound]).routes[0].qos.reliability, Reliability::BestEffort);
}

#[test]
fn a_history_is_kept_for_dds_as_deep_as_the_buss_up_to_a_limit() {
    let deep = |depth| Endpoint {
        qos: Qos { depth, ..Qos::default() },
        ..bus(EndpointKind::Writer, "/a", "std_msgs/msg/String")
    };
    assert_eq!(plan_all(&[], &[deep(20), deep(3)]).routes[0].qos.depth, 20);
    assert_eq!(plan_all(&[], &[deep(65_000)]).routes[0].qos.depth, DEPTH_TO_DDS_MAX);
}

#[test]
fn a_reader_in_dds_that_wants_more_is_named_and_the_others_are_served() {
    let mut wants = dds(EndpointKind::Reader, "rt/a", STRING);
    wants.qos.durability = Durability::TransientLocal;
    let plan = plan_all(&[wants], &[bus(EndpointKind::Writer, "/a", "std_msgs/msg/String")]);
    assert_eq!(plan.routes.len(), 1);
    let fault = plan.faults.first().unwrap();
    assert!(fault.starts_with("topic /a: what the bus offers does not suit a reader in DDS"), "{fault}");
    assert!(fault.contains("transient_local") && fault.contains("volatile"), "{fault}");
    assert!(!plan.routes[0].is_read, "no reader is served by it");
}

#[test]
fn a_name_that_ros_gives_to_another_topic_is_not_exchanged() {
    // `rt/imu` of the bus would be `/imu` for everybody in DDS.
    let plan = plan_all(&[], &[bus(EndpointKind::Writer, "rt/imu", "sensor_msgs/msg/Imu")]);
    assert!(the_fault(&plan).contains("a name for it that ROS 2 gives to another"));
    let plan = plan_all(&[dds(EndpointKind::Writer, "/imu", STRING)], &[]);
    assert!(the_fault(&plan).contains("a name for it that ROS 2 gives to another"));
}

#[test]
fn a_type_with_a_name_that_ros_gives_to_another_is_not_exchanged() {
    // In DDS, `std_msgs/msg/String` of the bus is another type than this.
    let plan = plan_all(&[dds(EndpointKind::Writer, "rt/a", "std_msgs/msg/String")], &[]);
    assert!(the_fault(&plan).contains("a name for its type std_msgs/msg/String"), "{plan:?}");
    let plan = plan_all(&[], &[bus(EndpointKind::Writer, "/a", STRING)]);
    assert!(the_fault(&plan).contains("a name for its type"), "{plan:?}");
}

#[test]
fn beyond_the_limit_topics_are_named_and_nothing_is_opened() {
    let writers: Vec<DdsEndpoint> = (0..ROUTES_MAX + 2)
        .map(|number| dds(EndpointKind::Writer, &format!("rt/t{number:04}"), STRING))
        .collect();
    let plan = plan_all(&writers, &[]);
    assert_eq!((plan.routes.len(), plan.faults.len()), (ROUTES_MAX, 2));
    assert!(plan.faults.iter().all(|fault| fault.contains("4096")), "{:?}", plan.faults);
}

#[test]
fn rules_hold_for_both_ways() {
    let rules = Rules { only: vec!["/a".into()], except: Vec::new() };
    let there = [dds(EndpointKind::Writer, "rt/a", STRING), dds(EndpointKind::Writer, "rt/b", STRING)];
    let here = [bus(EndpointKind::Writer, "/c", "std_msgs/msg/String")];
    let plan = plan(&there, &here, &rules, &BTreeMap::new());
    assert_eq!(plan.routes.iter().map(|route| route.topic.as_str()).collect::<Vec<_>>(), ["/a"]);
}

#[test]
fn the_bus_hash_is_carried_else_that_of_dds_and_another_is_named_with_both() {
    let hash = |digit: &str| Some(format!("RIHS01_{}", digit.repeat(64)));
    let dds = |digit| DdsEndpoint { rihs01: hash(digit), ..dds(EndpointKind::Writer, "rt/a", STRING) };
    let reader = Endpoint { type_hash: 7, ..bus(EndpointKind::Reader, "/a", "std_msgs/msg/String") };
    let hashes: BTreeMap<u64, String> = [(7, hash("b").unwrap())].into();
    let with = |theirs: &[DdsEndpoint], hashes: &BTreeMap<u64, String>| {
        plan(theirs, std::slice::from_ref(&reader), &Rules::default(), hashes)
    };

    let copied = with(&[dds("a")], &BTreeMap::new());
    assert_eq!((&copied.routes[0].rihs01, copied.faults.len()), (&hash("a"), 0));
    assert_eq!(with(&[dds("a"), dds("c")], &BTreeMap::new()).routes[0].rihs01, None);
    let same = with(&[dds("b")], &hashes);
    assert_eq!((&same.routes[0].rihs01, same.faults.len()), (&hash("b"), 0));
    let other = with(&[dds("a")], &hashes);
    assert_eq!(other.routes[0].rihs01, hash("b"));
    let fault = other.faults.first().unwrap();
    for part in ["RIHS01_aaa", "in DDS and RIHS01_bbb", "std_msgs/msg/String", "the same definition"] {
        assert!(fault.contains(part), "{fault}");
    }
}

#[test]
fn a_publisher_with_defaults_reaches_a_subscriber_of_ros_with_defaults() {
    let mut default_of_ros = dds(EndpointKind::Reader, "rt/a", STRING);
    default_of_ros.qos.reliability = Reliability::Reliable;
    let plan = plan_all(&[default_of_ros], &[bus(EndpointKind::Writer, "/a", "std_msgs/msg/String")]);
    let route = &plan.routes[0];
    assert_eq!(route.qos.reliability, Reliability::BestEffort, "as the bus offers it");
    assert_eq!(route.offered().reliability, Reliability::Reliable);
    assert!(route.is_read && plan.faults.is_empty(), "{plan:?}");
}

#[test]
fn only_what_has_a_reader_on_the_other_side_is_read() {
    let writer = dds(EndpointKind::Writer, "rt/a", STRING);
    let reader = bus(EndpointKind::Reader, "/a", "std_msgs/msg/String");
    let is_read = |dds: &[DdsEndpoint], bus: &[Endpoint]| plan_all(dds, bus).routes[0].is_read;
    let from_dds = std::slice::from_ref(&writer);
    assert!(!is_read(from_dds, &[]));
    assert!(is_read(from_dds, std::slice::from_ref(&reader)));
    assert!(is_read(from_dds, &[bus(EndpointKind::Reader, "/a", "")]), "of any type");
    let wants = Qos { reliability: Reliability::Reliable, ..Qos::default() };
    assert!(!is_read(from_dds, &[Endpoint { qos: wants, ..reader.clone() }]), "what it cannot get");
    assert!(!is_read(from_dds, &[Endpoint { formats: 1, ..reader.clone() }]), "what it cannot decode");
    let kept = Qos { durability: Durability::TransientLocal, ..Qos::default() };
    assert!(is_read(&[DdsEndpoint { qos: kept, ..writer }], &[]), "for late readers");

    let to_dds = [bus(EndpointKind::Writer, "/a", "std_msgs/msg/String")];
    assert!(!is_read(&[], &to_dds));
    assert!(is_read(&[dds(EndpointKind::Reader, "rt/a", STRING)], &to_dds));
    // A reader of the same side needs no bridge.
    assert!(!is_read(&[], &[to_dds[0].clone(), reader]));
}
