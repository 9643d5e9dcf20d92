//! Two contexts on one host: what one publishes, asks or closes, the other takes, answers or is notified of.

#![allow(clippy::expect_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use noctule::Node;
use noctule::request::{ServiceTypes, TypeRef};
use noctule_bridge::behind::{self, NodeBehind, NodesBehind};
use noctule_rmw_core::graph::{Wanted, count, names};
use noctule_rmw_core::services::Service;
use noctule_rmw_core::signal::wait;
use noctule_rmw_core::status::{Kind, Statuses, policy};
use noctule_rmw_core::writer::Topic;
use noctule_rmw_core::{
    Body, ClientEnd, Context, Incoming, Participant, Quality, Reader, ServerEnd, Settings, Taken, Waitable,
    Writer,
};

/// For a machine under any load.
const TIMEOUT: Duration = Duration::from_secs(60);

const RELIABLE: Quality = Quality::DEFAULT;

/// Another one for each test.
fn domain() -> u32 {
    static LAST: AtomicU32 = AtomicU32::new(0);
    4_000 + (std::process::id() % 100) * 8 + LAST.fetch_add(1, Ordering::Relaxed) % 8
}

fn context(domain: u32) -> Context {
    let (peers, enclave, notify) = (Vec::new(), "/".to_owned(), Arc::new(|_, _: &str| {}));
    Context::new(Settings { domain, localhost: true, peers, enclave, notify }).expect("a context")
}

fn topic(name: &str, quality: Quality) -> Topic<'_> {
    let (type_name, type_hash) = ("std_msgs/msg/String", 7);
    Topic { name, type_name, type_hash, rihs01: None, quality, bytes_max: 0, is_plain: false }
}

fn until(waitable: &Waitable, mut is_done: impl FnMut() -> bool) {
    while !is_done() {
        assert!(wait(&Arc::default(), &[waitable], Some(TIMEOUT)), "nothing came");
        waitable.clear();
    }
}

/// Until so many partners are there.
fn matched(statuses: &Statuses, partners: u64) {
    until(statuses.waitable(Kind::Matched), || statuses.take(Kind::Matched).current == partners);
}

fn next(reader: &Reader) -> Taken {
    assert!(wait(&Arc::default(), &[reader.waitable()], Some(TIMEOUT)), "no message came");
    reader.take().expect("a message that was waited for")
}

fn bytes(reader: &Reader) -> Vec<u8> {
    next(reader).body.to_vec()
}

fn message(text: &[u8]) -> Vec<u8> {
    [&[0, 1, 0, 0], text].concat()
}

fn open(context: &Context, name: &str) -> Arc<Participant> {
    context.open("/", name).expect("a node")
}

#[test]
fn messages_of_any_length_come_in_order() {
    let domain = domain();
    let (one, two) = (context(domain), context(domain));
    let (talker, listener) = (open(&one, "talker"), open(&two, "listener"));
    let writer = Writer::open(&talker, &topic("/chatter", RELIABLE)).expect("a publisher");
    let reader = Reader::open(&listener, &topic("/chatter", RELIABLE), false).expect("a subscription");
    matched(writer.statuses(), 1);
    matched(reader.statuses(), 1);
    let (short, long) = (message(b"short"), message(&[7; 3 << 20]));
    writer.publish(&short).expect("published");
    assert_eq!(next(&reader).gid, writer.gid());
    for bytes in [&short, &long, &short] {
        writer.publish(bytes).expect("published");
        let taken = next(&reader);
        assert_eq!(taken.body.place().1, bytes.len());
        let source_ns = taken.source_ns.expect("a publisher on this host");
        assert!(source_ns <= taken.received_ns);
    }
    writer.close();
    let refused = writer.publish(&short).expect_err("closed").to_string();
    assert_eq!(refused, "topic /chatter: the publisher was closed; open another");
    matched(reader.statuses(), 0);
    reader.close();
}

#[test]
fn a_late_subscription_gets_the_history_once_also_of_a_publisher_that_opened_anew() {
    let domain = domain();
    let (one, two) = (context(domain), context(domain));
    let (talker, listener) = (open(&one, "talker"), open(&two, "listener"));
    let latched = Quality { transient_local: true, depth: 3, ..RELIABLE };
    let writer = Writer::open(&talker, &topic("/map", latched)).expect("a publisher");
    (1..=4).for_each(|number| writer.publish(&message(&[number])).expect("published"));
    let early = Reader::open(&listener, &topic("/map", latched), false).expect("a subscription");
    let numbers =
        |reader: &Reader, samples: usize| (0..samples).map(|_| bytes(reader)[4]).collect::<Vec<_>>();
    assert_eq!(numbers(&early, 3), [2, 3, 4]);
    writer.publish(&message(&[5; 1 << 20])).expect("published in longer slots");
    writer.publish(&message(&[6])).expect("published");
    assert_eq!(numbers(&early, 2), [5, 6]);
    assert!(early.take().is_none());
    let late = Reader::open(&listener, &topic("/map", latched), false).expect("a subscription");
    assert_eq!(numbers(&late, 3), [4, 5, 6]);
    early.close();
    late.close();
}

#[test]
fn a_subscription_that_asks_for_more_than_is_offered_learns_which_policy() {
    let domain = domain();
    let (one, two) = (context(domain), context(domain));
    let (talker, listener) = (open(&one, "talker"), open(&two, "listener"));
    let weak = Quality { reliable: false, ..RELIABLE };
    let writer = Writer::open(&talker, &topic("/chatter", weak)).expect("a publisher");
    let reader = Reader::open(&listener, &topic("/chatter", RELIABLE), false).expect("a subscription");
    for statuses in [writer.statuses(), reader.statuses()] {
        let waitable = statuses.waitable(Kind::IncompatibleQos);
        assert!(wait(&Arc::default(), &[waitable], Some(TIMEOUT)));
        let status = statuses.take(Kind::IncompatibleQos);
        assert_eq!((status.total, status.total_change, status.policy), (1, 1, policy::RELIABILITY));
    }
    assert_eq!((writer.matched(), reader.matched()), (0, 0));
    reader.close();
}

#[test]
fn own_messages_are_left_out_and_the_queue_keeps_the_newest() {
    let domain = domain();
    let one = context(domain);
    let node = open(&one, "both");
    let writer = Writer::open(&node, &topic("/loop", RELIABLE)).expect("a publisher");
    let deaf = Reader::open(&node, &topic("/loop", RELIABLE), true).expect("a subscription");
    let two_deep = Quality { depth: 2, ..RELIABLE };
    let reader = Reader::open(&node, &topic("/loop", two_deep), false).expect("a subscription");
    matched(writer.statuses(), 2);
    (1..=5).for_each(|number| writer.publish(&message(&[number])).expect("published"));
    until(reader.waitable(), || reader.overwritten() == 3);
    // A waitable that was cleared while a thread waited for it.
    reader.waitable().set();
    assert_eq!((bytes(&reader)[4], bytes(&reader)[4]), (4, 5));
    assert!(deaf.take().is_none());
    reader.close();
    deaf.close();
}

/// A type of one array of bytes.
fn plain(name: &str, bytes: usize) -> Topic<'_> {
    Topic { type_name: "demo/msg/Plain", bytes_max: bytes, is_plain: true, ..topic(name, RELIABLE) }
}

#[test]
fn a_loan_is_published_once_in_shared_memory_and_others_beside_it_from_a_copy() {
    let domain = domain();
    let (one, two) = (context(domain), context(domain));
    let (talker, listener) = (open(&one, "talker"), open(&two, "listener"));
    let length = 8 << 10;
    let writer = Writer::open(&talker, &plain("/image", length)).expect("a publisher");
    let reader = Reader::open(&listener, &plain("/image", length), false).expect("a subscription");
    matched(writer.statuses(), 1);
    matched(reader.statuses(), 1);
    let written = |number| [&[0, 1, 0, 0], &vec![number; length - 4][..]].concat();
    let lend = || writer.lend(length).expect("a loan").addr();

    let first = lend();
    assert_eq!(first % 8, 4, "what is behind the header is aligned");
    // The loan holds the ring's old bytes, as nobody wrote there.
    writer.publish_lent(first, &written(1)).expect("published");
    let taken = next(&reader);
    let (place, taken_bytes) = taken.body.place();
    assert_eq!((taken_bytes, place.addr() % 8), (length, 4));
    assert!(matches!(taken.body, Body::Lent(_)));
    assert!(writer.publish_lent(first, &written(1)).is_err(), "once");

    let (slot, copy, unused) = (lend(), lend(), lend());
    assert!([slot, copy, unused].iter().all(|place| place % 8 == 4));
    writer.publish_lent(copy, &written(2)).expect("published");
    writer.publish(&written(3)).expect("published beside a loan");
    writer.publish_lent(slot, &written(4)).expect("published, though another publisher has taken the place");
    assert!(writer.give_back(unused));
    assert!(!writer.give_back(unused));
    assert!((2..=4).all(|number| bytes(&reader) == written(number)));
    matched(reader.statuses(), 1);
    writer.close();
    reader.close();
}

fn service(name: &str) -> Service<'_> {
    let of = |name: &str| TypeRef { name: name.to_owned(), hash: 0 };
    let types = ServiceTypes { request: of("demo/srv/Add_Request"), response: of("demo/srv/Add_Response") };
    Service { name, types, rihs01: None, quality: RELIABLE }
}

fn incoming(waitable: &Waitable, take: impl FnOnce() -> Option<Incoming>) -> Incoming {
    assert!(wait(&Arc::default(), &[waitable], Some(TIMEOUT)), "nothing came");
    take().expect("what was waited for")
}

#[test]
fn a_service_answers_each_client_its_own_requests_and_both_are_in_the_graph() {
    let domain = domain();
    let (one, two) = (context(domain), context(domain));
    let (asks, serves) = (open(&one, "asks"), open(&two, "serves"));
    let client = ClientEnd::open(&asks, &service("/add")).expect("a client");
    let other = ClientEnd::open(&asks, &service("/add")).expect("another client");
    let server = ServerEnd::open(&serves, &service("/add")).expect("a service");
    until(asks.graph(), || client.servers() == 1 && other.servers() == 1);
    assert_eq!(client.send(message(b"two")), Ok(1));
    let request = incoming(server.waitable(), || server.take());
    assert_eq!((&request.bytes[4..], request.client, request.sequence), (&b"two"[..], client.gid(), 1));
    assert_eq!(server.reply(request.client, request.sequence, message(b"four")), Ok(true));
    let reply = incoming(client.waitable(), || client.take());
    assert_eq!((&reply.bytes[4..], reply.sequence), (&b"four"[..], 1));
    assert_eq!(other.take(), None);
    let found = names(&one.entries(), Wanted::Served, Some(("/", "serves")));
    assert_eq!(found.into_keys().collect::<Vec<_>>(), ["/add"]);
    until(serves.graph(), || count(&two.entries(), Wanted::Called, "/add") == 2);
    server.close();
    until(asks.graph(), || client.servers() == 0);
    client.close();
    other.close();
}

#[test]
fn nodes_behind_a_bridge_are_in_the_graph_whichever_node_of_the_context_goes_until_the_bridge_does() {
    let domain = domain();
    let context = context(domain);
    let (first, second) = (open(&context, "first"), open(&context, "second"));
    let localhost = std::net::Ipv4Addr::LOCALHOST;
    let bridge = Node::builder("dds gateway 0").domain(domain).interface(localhost).open().expect("a node");
    let chatter =
        bridge.publisher("/chatter").type_name("std_msgs/msg/String", 7).open().expect("a publisher");
    let parameters = TypeRef { name: "demo/srv/Get_Request".into(), hash: 0 };
    let response = TypeRef { name: "demo/srv/Get_Response".into(), hash: 0 };
    let types = ServiceTypes { request: parameters, response };
    let server = bridge.raw_server("/far/talker/get", types).open().expect("a server");
    let mut lists = behind::publisher(&bridge).expect("the lists");
    let node =
        |name: &str| NodeBehind { namespace: "/far".into(), name: name.into(), ..NodeBehind::default() };
    let talker = NodeBehind {
        publishes: vec!["/chatter".into()],
        serves: vec!["/far/talker/get".into()],
        ..node("talker")
    };
    lists.publish(&NodesBehind::of(vec![talker, node("idle")])).expect("a list");

    let has = |name: &str| context.nodes().iter().any(|node| node.namespace == "/far" && node.name == name);
    let of =
        |wanted| names(&context.entries(), wanted, Some(("/far", "talker"))).into_keys().collect::<Vec<_>>();
    until(second.graph(), || has("talker") && has("idle") && of(Wanted::Served) == ["/far/talker/get"]);
    assert_eq!(of(Wanted::Published), ["/chatter"]);
    // The list itself is no topic of theirs.
    assert!(context.entries().iter().all(|entry| entry.topic != behind::TOPIC));
    assert!(!context.nodes().iter().any(|node| node.name == behind::TOPIC));

    drop(first);
    lists.publish(&NodesBehind::of(vec![node("late")])).expect("another list");
    until(second.graph(), || has("late") && !has("talker"));
    // What was the talker's is the bridge's again.
    let writers: Vec<_> = context.entries().into_iter().filter(|entry| entry.topic == "/chatter").collect();
    assert_eq!(writers.iter().map(|entry| entry.node.name.as_str()).collect::<Vec<_>>(), ["dds_gateway_0"]);
    drop((lists, chatter, server, bridge));
    until(second.graph(), || !has("late"));
}
