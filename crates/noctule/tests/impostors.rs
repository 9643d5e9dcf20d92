//! Processes of this host that speak in the name of other nodes, or do not answer: no node is cut off by them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests and what they share

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use noctule::clock::LocalClock;
use noctule::{Node, NodeId, Publisher, Reliability, Subscriber};
use noctule_discovery::datagram::{Body, Datagram, Hello, Page};
use noctule_discovery::{Endpoint, EndpointId, EndpointKind, Qos};
use noctule_sys::local_socket::{LocalListener, LocalSocket};
use noctule_timebase::Span;
use rustix::net::sockopt::set_socket_reuseaddr;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with};

/// Nothing takes so long unless something is held up.
const LONG: Duration = Duration::from_secs(8);

fn domain(number: u32) -> u32 {
    3_300 + (std::process::id() % 100) * 4 + number
}

fn node(name: &str, domain: u32, clock: &str) -> Node {
    let clock: LocalClock = clock.parse().unwrap();
    Node::builder(name).domain(domain).clock(clock).keep_notices().open().unwrap()
}

fn stream(topic: &str, from: &Node, to: &Node) -> (Publisher, Subscriber) {
    let publisher = from.publisher(topic).reliability(Reliability::Reliable).open().unwrap();
    let mut subscriber = to.subscriber(topic).reliability(Reliability::Reliable).open().unwrap();
    while publisher.readers() == 0 || subscriber.publishers() == 0 {
        subscriber.wait(Some(Duration::from_millis(5)));
    }
    (publisher, subscriber)
}

fn passes((publisher, subscriber): &mut (Publisher, Subscriber), number: u64) {
    publisher.publish(&number.to_le_bytes()).unwrap();
    let sample = subscriber.receive(Some(LONG)).unwrap().expect("a reliable sample");
    assert_eq!((sample.to_vec(), sample.info().missed), (number.to_le_bytes().to_vec(), 0));
}

/// "Let my reader read your writer 77", in the name of a node.
fn ask(from: NodeId, to: NodeId) -> Vec<u8> {
    let mut bytes = b"NCTR\x04\x01\0\0".to_vec();
    bytes.extend(from.0);
    bytes.extend(to.0);
    bytes.extend([77_u32, 1, 0].iter().flat_map(|word| word.to_le_bytes()));
    bytes.extend([0; 40]);
    bytes
}

/// Connects to a node in the name of another, and hangs up when it has answered.
fn hang_up_as(name: NodeId, at: &Node) {
    let socket = LocalSocket::connect(format!("noctule/{}", at.id()).as_bytes(), LONG).unwrap();
    socket.send(&ask(name, at.id()), &[]).unwrap();
    assert!(socket.receive(&mut [0; 600]).unwrap().length_bytes > 0);
}

#[test]
fn a_node_is_not_dead_because_somebody_hangs_up_in_its_name() {
    let domain = domain(0);
    let (far, beside) = (node("far", domain, "offset=5s"), node("beside", domain, ""));
    let near = node("near", domain, "");
    let (mut from_far, mut from_beside) = (stream("far", &far, &near), stream("beside", &beside, &near));
    for round in 0..40 {
        hang_up_as(far.id(), &near);
        hang_up_as(beside.id(), &near);
        passes(&mut from_far, round);
        passes(&mut from_beside, round);
        assert_eq!(near.nodes().len(), 2, "round {round}");
    }
}

/// Discovery's group of a domain on loopback.
fn group(domain: u32) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::from(0xefc1_0000 + 32 * domain), 7399))
}

/// The number of this host, from a hello.
fn host_number(domain: u32) -> u64 {
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None).unwrap();
    set_socket_reuseaddr(&socket, true).unwrap();
    bind(&socket, &group(domain)).unwrap();
    let socket = UdpSocket::from(socket);
    let IpAddr::V4(address) = group(domain).ip() else { unreachable!() };
    socket.join_multicast_v4(&address, &Ipv4Addr::LOCALHOST).unwrap();
    let mut buffer = [0; 2_000];
    loop {
        let length = socket.recv(&mut buffer).unwrap();
        if let Ok(Datagram { body: Body::Hello(hello), .. }) = Datagram::decode(&buffer[..length])
            && hello.name == "near"
        {
            return hello.host;
        }
    }
}

/// Announces a node of this host that has a hundred writers of a topic.
fn announce_writers(domain: u32, from: NodeId) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let IpAddr::V4(loopback) = socket.local_addr().unwrap().ip() else { unreachable!() };
    rustix::net::sockopt::set_ip_multicast_if(&socket, &loopback).unwrap();
    let port = socket.local_addr().unwrap().port();
    let send = |body| {
        let mut bytes = Vec::new();
        Datagram { from, domain, body }.encode(&mut bytes);
        socket.send_to(&bytes, group(domain)).unwrap();
    };
    let (host, lifetime, name) = (host_number(domain), Span::from_s(60), "fake".to_owned());
    send(Body::Hello(Hello { revision: 1, pages: 5, lifetime, port, new_here: true, host, digest: 1, name }));
    for number in 0..5 {
        let writer = |id| Endpoint {
            id: EndpointId(u32::from(number) * 20 + id),
            kind: EndpointKind::Writer,
            topic: "blocked".into(),
            type_name: String::new(),
            type_hash: 0,
            formats: 0,
            payload_bytes_max: 64,
            qos: Qos::default(),
            relayed: false,
        };
        send(Body::Page(Page { number, revision: 1, endpoints: (0..20).map(writer).collect() }));
    }
}

#[test]
fn a_process_that_never_accepts_does_not_hold_up_what_comes_from_other_hosts() {
    let domain = domain(1);
    let (far, near) = (node("far", domain, "offset=5s"), node("near", domain, ""));
    let mut from_far = stream("far", &far, &near);
    let _reader = near.subscriber("blocked").open().unwrap();
    // Its backlog is full.
    let fake = NodeId([9; 16]);
    let name = format!("noctule/{fake}");
    let _listener = LocalListener::bind(name.as_bytes()).unwrap();
    let waiting: Vec<LocalSocket> =
        std::iter::from_fn(|| LocalSocket::connect_now(name.as_bytes()).ok()).collect();
    assert!(!waiting.is_empty());
    announce_writers(domain, fake);
    while near.endpoints().iter().filter(|endpoint| endpoint.node == fake).count() < 100 {
        passes(&mut from_far, 0);
    }
    // Waiting 200 ms for each of a hundred writers took 20 s, and the node's thread did nothing else.
    (0..200).for_each(|round| passes(&mut from_far, round));
}

#[test]
fn a_keyed_node_lets_no_process_read_that_does_not_prove_that_it_has_the_key() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("key");
    std::fs::write(&file, "5a".repeat(32)).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let open = || Node::builder("keyed").domain(domain(2)).swarm_key(&file).keep_notices().open().unwrap();
    let (writer, reader) = (open(), open());
    // Those that have it do as before.
    passes(&mut stream("imu", &writer, &reader), 1);
    let socket = LocalSocket::connect(format!("noctule/{}", writer.id()).as_bytes(), LONG).unwrap();
    socket.send(&ask(reader.id(), writer.id()), &[]).unwrap();
    let mut answer = [0; 600];
    let packet = socket.receive(&mut answer).unwrap();
    let words = String::from_utf8_lossy(&answer[52..packet.length_bytes]);
    assert!(
        packet.descriptors.is_empty() && words.contains("does not prove that it has the swarm key"),
        "{words}"
    );
}
