//! Links and lines, live, with real sockets and terminals. No figure of time is asserted but that
//! nothing arrives before its delay.

#![allow(clippy::unwrap_used)]

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::time::{Duration, Instant};

use noctule_link_emulator::serial::{SerialPump, Unplug};
use noctule_link_emulator::star::node_address;
use noctule_link_emulator::{Forwarder, ForwarderSettings};
use noctule_netsim::link::LinkSpec;
use noctule_netsim::serial::SerialSpec;
use noctule_sys::namespace::NetworkNamespace;

const PORT: u16 = 7_410;
const TIMEOUT: Duration = Duration::from_secs(60);

fn settings(spec: &str) -> ForwarderSettings {
    ForwarderSettings::new(spec.parse::<LinkSpec>().unwrap(), 1)
}

fn namespaces(count: usize) -> Vec<NetworkNamespace> {
    (0..count).map(|_| NetworkNamespace::create().unwrap()).collect()
}

fn start(namespaces: &[NetworkNamespace], settings: &ForwarderSettings) -> Forwarder {
    Forwarder::start(&namespaces.iter().collect::<Vec<_>>(), settings).unwrap()
}

fn socket(namespace: &NetworkNamespace) -> UdpSocket {
    let socket = namespace.run(|| UdpSocket::bind(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, PORT))).unwrap();
    socket.set_read_timeout(Some(TIMEOUT)).unwrap();
    socket
}

fn to(node: usize) -> SocketAddrV4 {
    SocketAddrV4::new(node_address(node), PORT)
}

#[test]
fn nothing_arrives_before_its_delay_and_everything_arrives() {
    let namespaces = namespaces(2);
    let forwarder = start(&namespaces, &settings("delay=5ms; b>a: delay=2ms"));
    let (a, b) = (socket(&namespaces[0]), socket(&namespaces[1]));
    let mut buffer = [0; 64];
    for number in 0..50_u8 {
        let sent = Instant::now();
        a.send_to(&[number], to(1)).unwrap();
        let (_, from) = b.recv_from(&mut buffer).unwrap();
        assert!(sent.elapsed() >= Duration::from_millis(5));
        b.send_to(&buffer[..1], from).unwrap();
        assert_eq!((a.recv(&mut buffer).unwrap(), buffer[0]), (1, number));
        assert!(sent.elapsed() >= Duration::from_millis(7));
    }
    let report = forwarder.stop().unwrap();
    assert_eq!((report.nodes[0].packets, report.nodes[0].to[0].counts.delivered), (50, 50));
    assert_eq!(report.lateness_ns.count, 100);
}

#[test]
fn the_live_link_loses_the_very_packets_the_model_loses() {
    let spec = "loss=30% burst=2";
    let namespaces = namespaces(2);
    let forwarder = start(&namespaces, &settings(spec));
    let (a, b) = (socket(&namespaces[0]), socket(&namespaces[1]));
    let model: LinkSpec = spec.parse().unwrap();
    let origin = noctule_timebase::Instant::from_ns(0);
    // The receiver's number is part of the channel's seed.
    let mut link = noctule_netsim::Link::to_receivers(&model.a_to_b, 2, origin, 1);
    let mut expected = Vec::new();
    for number in 0..200_u8 {
        a.send_to(&[number], to(1)).unwrap();
        link.handle_packet_to(origin, 1, &[number]);
        expected.extend(link.poll_deliver(origin).map(|delivery| delivery.bytes[0]));
    }
    let mut buffer = [0; 8];
    for number in &expected {
        b.recv(&mut buffer).unwrap();
        assert_eq!(buffer[0], *number);
    }
    assert!((100..180).contains(&expected.len()));
    assert_eq!(forwarder.stop().unwrap().nodes[0].to[0].counts.lost as usize, 200 - expected.len());
}

#[test]
fn a_group_is_reached_across_the_star() {
    let namespaces = namespaces(4);
    let forwarder = start(&namespaces, &settings("delay=1ms"));
    let group = Ipv4Addr::new(239, 255, 0, 9);
    let sockets: Vec<UdpSocket> = namespaces.iter().map(socket).collect();
    for (node, (namespace, socket)) in namespaces.iter().zip(&sockets).enumerate() {
        namespace.run(|| socket.join_multicast_v4(&group, &node_address(node))).unwrap();
    }
    sockets[2].set_multicast_loop_v4(false).unwrap();
    sockets[2].send_to(b"all", SocketAddrV4::new(group, PORT)).unwrap();
    let mut buffer = [0; 8];
    for receiver in [0, 1, 3] {
        let (length, from) = sockets[receiver].recv_from(&mut buffer).unwrap();
        assert_eq!((&buffer[..length], from.ip()), (&b"all"[..], node_address(2).into()));
    }
    assert_eq!(forwarder.report().unwrap().nodes[2].to.len(), 3);
}

#[test]
fn a_number_of_nodes_no_link_has_is_refused() {
    let namespaces = namespaces(1);
    let one: Vec<&NetworkNamespace> = namespaces.iter().collect();
    let error = Forwarder::start(&one, &settings("")).unwrap_err().to_string();
    assert!(error.contains("2 to 26 nodes, not 1"), "{error}");
}

#[test]
fn bytes_cross_a_line_at_its_pace_and_a_plug_can_be_pulled() {
    let folder = tempfile::tempdir().unwrap();
    let paths = [folder.path().join("a"), folder.path().join("b")];
    let spec = SerialSpec { baud: 115_200, ..SerialSpec::default() };
    let line = SerialPump::start(spec, 1, paths.clone()).unwrap();
    let open = |path| OpenOptions::new().read(true).write(true).open(path).unwrap();
    let (mut a, mut b) = (open(&paths[0]), open(&paths[1]));
    let message: Vec<u8> = (0..=255).collect();
    let mut received = vec![0; 256];
    let sent = Instant::now();
    a.write_all(&message).unwrap();
    b.read_exact(&mut received).unwrap();
    // 2,560 bits at 115,200 per second.
    assert!(sent.elapsed() >= Duration::from_nanos(22_222_222));
    assert_eq!(received, message);

    let report = line.unplug(Unplug::BothEnds).unwrap();
    assert_eq!((report.plugged, report.directions[0].delivered), (false, 256));
    assert!(!paths[0].exists());
    // A hang-up: end of file or an error, never bytes.
    assert!(matches!(b.read(&mut received), Ok(0) | Err(_)));
    assert!(line.plug().unwrap().plugged);
    let (mut a, mut b) = (open(&paths[0]), open(&paths[1]));
    b.write_all(b"back").unwrap();
    a.read_exact(&mut received[..4]).unwrap();
    assert_eq!(&received[..4], b"back");

    assert!(!line.unplug(Unplug::FirstEnd).unwrap().plugged);
    assert!(!paths[0].exists() && paths[1].exists());
    b.write_all(b"lost").unwrap();
    let end = Instant::now() + Duration::from_secs(60);
    while line.report().unwrap().directions[1].unplugged < 4 {
        assert!(Instant::now() < end, "{:?}", line.report());
    }
    line.plug().unwrap();
    let mut a = open(&paths[0]);
    b.write_all(b"same").unwrap();
    a.read_exact(&mut received[..4]).unwrap();
    assert_eq!(&received[..4], b"same");
    assert_eq!(line.stop().unwrap().directions[1].delivered, 8);
    assert!(!paths[0].exists());
}
