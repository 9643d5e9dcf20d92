//! A third machine without a key on the network of two robots: what it can make them send, keep and lose. Each attack is
//! the one that worked before, with memory, descriptors and the robots' own traffic before, during and after.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)] // tests and what they share

use std::io;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use noctule::{Node, NodeId, Notice, Publisher, Reliability, Subscriber};
use noctule_discovery::datagram::{Body, Datagram, Hello, Page};
use noctule_discovery::{Endpoint, EndpointId, EndpointKind, Qos};
use noctule_sys::namespace::NetworkNamespace;
use noctule_timebase::Span;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

const LONG: Duration = Duration::from_secs(30);

/// Three hosts on a network of their own: a robot that publishes is joined with another and with the stranger.
struct Place {
    /// Descriptors and memory are the process's: one test at a time.
    _alone: MutexGuard<'static, ()>,
    publishing: NetworkNamespace,
    reading: NetworkNamespace,
    stranger: NetworkNamespace,
}

impl Place {
    /// `None`, and a line with the reason, where namespaces cannot be made.
    fn new() -> Option<Place> {
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let made = [(); 3].map(|()| NetworkNamespace::create());
        let [Ok(publishing), Ok(reading), Ok(stranger)] = made else {
            eprintln!("skipped: network namespaces need CAP_SYS_ADMIN");
            return None;
        };
        if Command::new("ip").arg("-V").output().is_err() {
            eprintln!("skipped: `ip` is not installed; apt-get install iproute2");
            return None;
        }
        for (name, other, network) in [("robot", &reading, "10.1.0"), ("open", &stranger, "10.2.0")] {
            let path = format!("/proc/{}/fd/{}", std::process::id(), other.descriptor().as_raw_fd());
            ip(&publishing, &format!("link add {name} type veth peer name wire netns {path}"));
            for (host, device, last) in [(&publishing, name, 1), (other, "wire", 2)] {
                ip(host, &format!("addr add {network}.{last}/24 dev {device}"));
                ip(host, &format!("link set {device} up"));
            }
        }
        Some(Place { _alone: alone, publishing, reading, stranger })
    }
}

fn ip(host: &NetworkNamespace, arguments: &str) {
    let run = || Command::new("ip").args(arguments.split(' ')).output();
    let output = host.run(run).unwrap();
    assert!(output.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&output.stderr));
}

fn node(host: &NetworkNamespace, name: &str) -> Node {
    host.run(|| Node::builder(name).keep_notices().open().map_err(io::Error::other)).unwrap()
}

/// A reliable stream between the robots.
struct Stream(Publisher, Subscriber, u64);

impl Stream {
    fn open(from: &Node, to: &Node) -> Stream {
        let publisher = from.publisher("imu").reliability(Reliability::Reliable).open().unwrap();
        let subscriber = to.subscriber("imu").reliability(Reliability::Reliable).open().unwrap();
        let mut stream = Stream(publisher, subscriber, 0);
        while stream.0.readers() == 0 || stream.1.publishers() == 0 {
            stream.1.wait(Some(Duration::from_millis(5)));
        }
        stream
    }

    /// Samples that all arrive, one after the other.
    fn passes(&mut self, samples: u64) {
        for _ in 0..samples {
            self.0.publish(&self.2.to_le_bytes()).unwrap();
            let sample = self.1.receive(Some(LONG)).unwrap().expect("a reliable sample");
            assert_eq!((sample.to_vec(), sample.info().missed), (self.2.to_le_bytes().to_vec(), 0));
            self.2 += 1;
        }
    }
}

/// Resident memory of this process in KiB, and its descriptors.
fn usage() -> (u64, usize) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let kib = line.trim().trim_end_matches(" kB").parse().unwrap();
    (kib, std::fs::read_dir("/proc/self/fd").unwrap().count())
}

/// Memory has grown by so much at most, and no descriptors are gone but some of connections that open and close by themselves.
fn check_usage(before: (u64, usize), now: (u64, usize), most_kib: u64) {
    eprintln!("memory in KiB, descriptors: {before:?} -> {now:?}");
    assert!(now.0 <= before.0 + most_kib, "{before:?} -> {now:?} KiB");
    assert!(now.1 <= before.1 + 4, "{before:?} -> {now:?} descriptors");
}

fn endpoint(kind: EndpointKind, id: u32, topic: &str) -> Endpoint {
    Endpoint {
        id: EndpointId(id),
        kind,
        topic: topic.into(),
        type_name: String::new(),
        type_hash: 0,
        formats: 0,
        payload_bytes_max: 1 << 20,
        qos: Qos::default(),
        relayed: false,
    }
}

fn hello(port: u16) -> Hello {
    let (lifetime, name) = (Span::from_s(60), "stranger".to_owned());
    Hello { revision: 1, pages: 1, lifetime, port, new_here: true, host: 7, digest: 9, name }
}

/// A socket of the stranger, and what it has sent.
struct Forger {
    socket: UdpSocket,
    sent_bytes: usize,
}

impl Forger {
    fn new(host: &NetworkNamespace) -> Forger {
        let socket = host.run(|| UdpSocket::bind("10.2.0.2:0")).unwrap();
        socket.set_nonblocking(true).unwrap();
        Forger { socket, sent_bytes: 0 }
    }

    fn port(&self) -> u16 {
        self.socket.local_addr().unwrap().port()
    }

    /// By unicast to the well-known port, as from any network that is routed.
    fn send(&mut self, from: NodeId, body: Body) {
        let mut bytes = Vec::new();
        Datagram { from, domain: 0, body }.encode(&mut bytes);
        self.sent_bytes += self.socket.send_to(&bytes, "10.2.0.1:7399").unwrap();
    }

    fn received_bytes(&self) -> usize {
        let mut buffer = [0; 65_536];
        std::iter::from_fn(|| self.socket.recv(&mut buffer).ok()).sum()
    }
}

#[test]
fn a_hello_that_names_a_victim_brings_it_three_times_its_bytes_and_no_camera() {
    let Some(place) = Place::new() else { return };
    let (robot, reader) = (node(&place.publishing, "robot"), node(&place.reading, "reader"));
    let mut stream = Stream::open(&robot, &reader);
    let mut camera = robot.publisher("camera").payload_bytes_max(1 << 20).open().unwrap();
    let mut victim = Forger::new(&place.stranger);
    let before = usage();
    let mut received = 0;
    for round in 0..20 {
        victim.send(NodeId([9; 16]), Body::Hello(hello(victim.port())));
        let endpoints = vec![endpoint(EndpointKind::Reader, 1, "camera")];
        victim.send(NodeId([9; 16]), Body::Page(Page { number: 0, revision: round + 1, endpoints }));
        camera.publish(&vec![7; 1 << 20]).unwrap();
        stream.passes(20);
        received += victim.received_bytes();
    }
    let during = usage();
    let sent = victim.sent_bytes;
    eprintln!("sent {sent} bytes, the victim got {received}");
    check_usage(before, during, 16 << 10);
    assert!(received > 0, "it was asked whether it hears");
    assert!(received <= 3 * sent, "{received} bytes for {sent}");
    assert_eq!(camera.readers(), 0);
    drop(victim);
    stream.passes(200);
    check_usage(before, usage(), 16 << 10);
}

#[test]
fn a_goodbye_in_anothers_name_ends_nothing() {
    let Some(place) = Place::new() else { return };
    let (robot, reader) = (node(&place.publishing, "robot"), node(&place.reading, "reader"));
    let mut stream = Stream::open(&robot, &reader);
    let mut forger = Forger::new(&place.stranger);
    stream.passes(50);
    let before = usage();
    for _ in 0..50 {
        forger.send(reader.id(), Body::Bye);
        stream.passes(5);
    }
    check_usage(before, usage(), 4 << 10);
    // All have been handled when they have been counted.
    while robot.counters().discovery.misplaced < 50 {
        stream.passes(1);
    }
    assert_eq!(stream.0.readers(), 1);
    assert_eq!(robot.nodes().len(), 1);
    drop(forger);
    stream.passes(200);
    check_usage(before, usage(), 4 << 10);
}

#[test]
fn thousands_of_writers_leave_the_robot_its_descriptors_and_its_stream() {
    let Some(place) = Place::new() else { return };
    // What Debian gives a program. The other tests of this file need few.
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(1_024), maximum }).unwrap();
    let (robot, reader) = (node(&place.reading, "robot"), node(&place.publishing, "reader"));
    let mut stream = Stream::open(&robot, &reader);
    stream.passes(10);
    let before = usage();
    // Real nodes, so they show that they receive where they are. Their publishers have no rings of their own: all descriptors are the victim's.
    let nodes: Vec<Node> = (0..10).map(|_| node(&place.stranger, "stranger")).collect();
    let own = usage().1 - before.1;
    let publisher = |node: &Node| node.publisher("imu").reliability(Reliability::Reliable).open().unwrap();
    let flood: Vec<Publisher> = nodes.iter().flat_map(|node| (0..200).map(|_| publisher(node))).collect();
    // Either limit ends it.
    let refused = |notice: Notice| matches!(notice, Notice::Full { .. } | Notice::Unreadable { .. });
    while !std::iter::from_fn(|| reader.poll_notice()).any(refused) {
        stream.passes(1);
    }
    stream.passes(200);
    let during = usage();
    let taken = during.1 - before.1 - own;
    eprintln!(
        "2,000 writers: memory in KiB, descriptors {before:?} -> {during:?} of 1,024, {taken} of them by the flood"
    );
    // All but 256, of one address three quarters of that; beside them some connections of this process's own nodes.
    assert!(taken <= (1_024 - 256) * 3 / 4 + 16, "{taken} descriptors");
    assert!(std::fs::File::open("/dev/null").is_ok(), "the application has descriptors left");
    drop((flood, nodes));
    stream.passes(200);
    eprintln!("afterwards {:?}", usage());
}

/// A reader that shows that it receives where it is, and acknowledges nothing.
struct Silent(Forger, NodeId);

impl Silent {
    fn new(host: &NetworkNamespace, number: u32) -> Silent {
        let mut id = [8; 16];
        id[..4].copy_from_slice(&number.to_le_bytes());
        Silent(Forger::new(host), NodeId(id))
    }

    /// Says that it is there, what it reads, and answers the question whether it is.
    fn announce(&mut self) {
        let Silent(forger, id) = self;
        forger.send(*id, Body::Hello(hello(forger.port())));
        let mut endpoint = endpoint(EndpointKind::Reader, 1, "camera");
        (endpoint.qos.reliability, endpoint.formats) = (Reliability::Reliable, u32::MAX);
        forger.send(*id, Body::Page(Page { number: 0, revision: 1, endpoints: vec![endpoint] }));
        let mut buffer = [0; 65_536];
        while let Ok(length) = forger.socket.recv(&mut buffer) {
            if let Ok(Datagram { body: Body::PathChallenge { number, .. }, .. }) =
                Datagram::decode(&buffer[..length])
            {
                forger.send(*id, Body::PathResponse { number, hello: hello(forger.port()) });
            }
        }
    }
}

#[test]
fn hundreds_of_readers_that_acknowledge_nothing_cost_the_budget_and_no_more() {
    const BUDGET_BYTES: usize = 32 << 20;
    let Some(place) = Place::new() else { return };
    let open = || Node::builder("robot").unacknowledged_bytes_max(BUDGET_BYTES).keep_notices().open();
    let robot = place.publishing.run(|| open().map_err(io::Error::other)).unwrap();
    let reader = node(&place.reading, "reader");
    let mut stream = Stream::open(&robot, &reader);
    let builder = robot.publisher("camera").payload_bytes_max(1 << 20).keep_last(64);
    let mut camera = builder.reliability(Reliability::Reliable).open().unwrap();
    let mut crowd: Vec<Silent> = (0..300).map(|number| Silent::new(&place.stranger, number)).collect();
    // Some publish while the crowd comes, so that each link begins with another sample.
    while camera.readers() < crowd.len() {
        crowd.iter_mut().for_each(Silent::announce);
        camera.publish(&vec![7; 1 << 20]).unwrap();
        stream.passes(1);
    }
    let before = usage();
    let (mut reported, mut during) = (0, before);
    for _ in 0..200 {
        camera.publish(&vec![7; 1 << 20]).unwrap();
        stream.passes(1);
        reported += std::iter::from_fn(|| robot.poll_notice())
            .filter(|notice| matches!(notice, Notice::Unacknowledged { .. }))
            .count();
        let now = usage();
        during = (during.0.max(now.0), during.1.max(now.1));
    }
    let kept = robot.unacknowledged_bytes();
    eprintln!(
        "300 readers that acknowledge nothing, 200 samples of 1 MiB: {kept} bytes kept of {BUDGET_BYTES}"
    );
    assert!(kept <= BUDGET_BYTES, "{kept} bytes");
    assert_eq!(reported, 1);
    assert!(camera.given_up() > 0);
    // The budget, and as much for what each link and the kernel need.
    check_usage(before, during, (2 * BUDGET_BYTES as u64) >> 10);
    // Another node's reader of the same topic gets what is published: its address holds little.
    let mut honest = reader.subscriber("camera").reliability(Reliability::Reliable).open().unwrap();
    while honest.publishers() == 0 || camera.readers() <= crowd.len() {
        honest.wait(Some(Duration::from_millis(5)));
    }
    camera.publish(b"picture").unwrap();
    while honest.receive(Some(LONG)).unwrap().expect("a picture").to_vec() != b"picture" {}
    drop(crowd);
    stream.passes(200);
    // The honest reader's ring is new since.
    check_usage((before.0, before.1 + 2), usage(), (2 * BUDGET_BYTES as u64) >> 10);
}
