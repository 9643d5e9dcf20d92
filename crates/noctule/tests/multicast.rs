//! Publishers that serve nodes of other hosts together. Nodes with clocks of their own count as other hosts, and loopback carries multicast.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests and what they share

use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::ops::{Range, RangeInclusive};
use std::time::Duration;

use noctule::clock::LocalClock;
use noctule::{Node, NodeBuilder, Publisher, Reliability, Subscriber};
use noctule_timebase::Span;
use rustix::net::sockopt::{set_ip_add_membership, set_socket_reuseaddr};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with};

const LONG: Duration = Duration::from_secs(20);
const SAMPLES: u64 = 300;
/// Samples of a lot: a listener's receive buffer holds some ninety datagrams, and a sender keeps 256 blocks until their deadline.
const LOT: u64 = 50;

fn domain() -> u32 {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    900 + (std::process::id() % 40) * 10 + NEXT.fetch_add(1, Ordering::Relaxed)
}

fn node(name: &str, domain: u32, clock: &str) -> NodeBuilder {
    let clock: LocalClock = clock.parse().unwrap();
    Node::builder(name).domain(domain).clock(clock).keep_notices()
}

/// Three hosts, the last two of which read what the first publishes.
fn swarm(domain: u32, with: impl Fn(NodeBuilder) -> NodeBuilder) -> [Node; 3] {
    let clocks = [("far", "offset=3s"), ("near", ""), ("other", "offset=-7s,ppm=40")];
    clocks.map(|(name, clock)| with(node(name, domain, clock)).open().unwrap())
}

fn found(publisher: &Publisher, subscribers: &mut [Subscriber; 2]) {
    while publisher.readers() < 2 || subscribers.iter_mut().any(|subscriber| subscriber.publishers() == 0) {
        subscribers[0].wait(Some(Duration::from_millis(5)));
    }
}

/// A deadline-bound topic for a group, and its readers, found.
fn cloud(far: &Node, readers: [&Node; 2]) -> (Publisher, [Subscriber; 2]) {
    let builder = far.publisher("cloud").reliability(Reliability::DeadlineBound);
    let publisher = builder.deadline(LONG).multicast(true).open().unwrap();
    let open = |node: &Node| node.subscriber("cloud").reliability(Reliability::DeadlineBound).open().unwrap();
    let mut subscribers = readers.map(open);
    found(&publisher, &mut subscribers);
    (publisher, subscribers)
}

/// A socket that listens to every channel of a domain and belongs to no swarm.
fn eavesdropper(domain: u32) -> UdpSocket {
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None).unwrap();
    set_socket_reuseaddr(&socket, true).unwrap();
    let socket = UdpSocket::from(socket);
    // Before it is bound, or it would hear for a moment every other domain, which share the port.
    noctule_sys::datagram::only_joined_groups(&socket).unwrap();
    bind(&socket, &SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 7396)).unwrap();
    for channel in 0..16 {
        let group = Ipv4Addr::from(0xefc1_0000 + 32 * domain + 1 + channel);
        set_ip_add_membership(&socket, &group, &Ipv4Addr::LOCALHOST).unwrap();
    }
    socket.set_nonblocking(true).unwrap();
    socket
}

/// Datagrams that begin like this.
fn heard(socket: &UdpSocket, beginning: &[u8]) -> (u64, u64) {
    let (mut like_this, mut all) = (0, 0);
    let mut buffer = [0; 2_000];
    while let Ok(length) = socket.recv(&mut buffer) {
        like_this += u64::from(buffer[..length].starts_with(beginning));
        all += 1;
    }
    (like_this, all)
}

fn exchange(publisher: &mut Publisher, subscribers: &mut [Subscriber; 2], numbers: Range<u64>) {
    for number in numbers {
        publisher.publish(&number.to_le_bytes()).unwrap();
        for subscriber in &mut *subscribers {
            let sample = subscriber.receive(Some(LONG)).unwrap().expect("nothing is lost here");
            assert_eq!((sample.to_vec(), sample.info().missed), (number.to_le_bytes().to_vec(), 0));
        }
    }
}

/// Exchanges samples until of so many in a row each went to the group once, and to no host by another way. Each host is served by its link until
/// its first report, which a busy machine delays. So many datagrams to the group must begin like this meanwhile. Gives the number of all
/// samples, and that of datagrams to the group that begin differently.
fn exchange_by_group(
    publisher: &mut Publisher,
    subscribers: &mut [Subscriber; 2],
    listener: &UdpSocket,
    (datagrams, beginning): (RangeInclusive<u64>, &[u8]),
) -> (u64, u64) {
    let copies = |publisher: &Publisher| -> Vec<u64> {
        publisher.deadline_counters().iter().map(|(_, sent)| sent.samples).collect()
    };
    let (begun, mut total, mut others) = (std::time::Instant::now(), 0, 0);
    loop {
        let before = copies(publisher);
        exchange(publisher, subscribers, total..total + LOT);
        let (like_this, all) = heard(listener, beginning);
        (total, others) = (total + LOT, others + all - like_this);
        let copies: Vec<u64> = copies(publisher)
            .iter()
            .zip(before)
            .map(|(after, before)| after.saturating_sub(before))
            .collect();
        if datagrams.contains(&like_this) && copies == [LOT; 2] {
            return (total, others);
        }
        assert!(
            begun.elapsed() < LONG,
            "{like_this} datagrams to the group and {copies:?} copies of {LOT} samples"
        );
    }
}

#[test]
fn deadline_bound_samples_go_to_the_group_once_and_arrive_at_each_host_once() {
    let domain = domain();
    let [far, near, other] = swarm(domain, |builder| builder);
    let listener = eavesdropper(domain);
    let (mut publisher, mut subscribers) = cloud(&far, [&near, &other]);
    let (total, _) =
        exchange_by_group(&mut publisher, &mut subscribers, &listener, (LOT..=LOT, b"NCTG\x02\x01"));
    for subscriber in &mut subscribers {
        assert!(subscriber.take().unwrap().is_none(), "something came twice");
        let [(_, received)] = subscriber.deadline_counters()[..] else { panic!("one writer") };
        assert_eq!((received.on_time, received.missed), (total, 0));
    }
}

#[test]
fn the_age_of_a_sample_from_a_group_is_that_of_its_source_time() {
    let [far, near, other] = swarm(domain(), |builder| builder);
    let mut publisher = far.publisher("pose").multicast(true).open().unwrap();
    let mut subscribers = [&near, &other].map(|node| node.subscriber("pose").open().unwrap());
    found(&publisher, &mut subscribers);
    let mut bounded = 0;
    while bounded < 50 {
        let source_time = far.now();
        publisher.publish_at(b"here", source_time - Span::from_ms(40)).unwrap();
        for subscriber in &mut subscribers {
            let sample = subscriber.receive(Some(LONG)).unwrap().expect("nothing is lost here");
            let Some(age) = sample.age() else { continue };
            let Some(bound) = age.bound else { continue };
            assert!(age.span + bound >= Span::from_ms(40), "{age:?}");
            assert!(age.span - bound <= Span::from_s(20), "{age:?}");
            bounded += 1;
        }
    }
}

#[test]
fn with_a_swarm_key_what_goes_to_a_group_is_sealed_once_for_all() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let key = directory.path().join("key");
    std::fs::write(&key, "5a".repeat(32)).unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    let domain = domain();
    let [far, near, other] = swarm(domain, |builder| builder.swarm_key(&key));
    let listener = eavesdropper(domain);
    let (mut publisher, mut subscribers) = cloud(&far, [&near, &other]);
    // Sealed, parity looks like data.
    let sealed = (LOT..=2 * LOT, b"NCTX".as_slice());
    let (_, unsealed) = exchange_by_group(&mut publisher, &mut subscribers, &listener, sealed);
    assert_eq!(unsealed, 0);
}

#[test]
fn of_two_readers_the_one_that_is_left_is_served_by_itself() {
    let domain = domain();
    let [far, near, other] = swarm(domain, |builder| builder);
    let mut publisher = far.publisher("pose").multicast(true).open().unwrap();
    let mut subscribers = [&near, &other].map(|node| node.subscriber("pose").open().unwrap());
    found(&publisher, &mut subscribers);
    exchange(&mut publisher, &mut subscribers, 0..SAMPLES);
    let [mut left, gone] = subscribers;
    drop(gone);
    while publisher.readers() > 1 {
        left.wait(Some(Duration::from_millis(5)));
    }
    let listener = eavesdropper(domain);
    publisher.publish(b"alone").unwrap();
    assert_eq!(left.receive(Some(LONG)).unwrap().expect("nothing is lost here").to_vec(), b"alone");
    assert_eq!(heard(&listener, b"NCTG"), (0, 0));
}

#[test]
fn reliable_by_multicast_is_refused_with_the_way_out() {
    let node = node("lone", domain(), "").open().unwrap();
    let refused = node.publisher("map").reliability(Reliability::Reliable).multicast(true).open();
    let sentence = refused.unwrap_err().to_string();
    assert!(sentence.contains("map is reliable") && sentence.contains("leave multicast out"), "{sentence}");
}
