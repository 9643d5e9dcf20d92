//! Networks that come, go and change while nodes run. Hosts are network namespaces, joined by veth.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)] // tests and what they share

use std::io;
use std::os::fd::AsRawFd;
use std::process::Command;
use std::time::{Duration, Instant};

use noctule::{Node, NodeBuilder, Notice, Publisher, Reliability, Subscriber};
use noctule_sys::interface;
use noctule_sys::namespace::NetworkNamespace;

/// Nothing takes so long unless it never comes.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A host: a namespace, and how `ip` calls it.
struct Host(NetworkNamespace);

impl Host {
    /// `None`, and a line with the reason, where namespaces cannot be made.
    fn new() -> Option<Host> {
        let has_ip = Command::new("ip").arg("-V").output().is_ok();
        match NetworkNamespace::create() {
            Ok(namespace) if has_ip => Some(Host(namespace)),
            Ok(_) => {
                eprintln!("skipped: `ip` is not installed; apt-get install iproute2");
                None
            }
            Err(error) => {
                eprintln!("skipped: network namespaces need CAP_SYS_ADMIN ({error})");
                None
            }
        }
    }

    fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.descriptor().as_raw_fd())
    }

    /// Runs `ip` inside.
    fn ip(&self, arguments: &str) {
        let run = || Command::new("ip").args(arguments.split(' ')).output();
        let output = self.0.run(run).unwrap();
        assert!(output.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn node(&self, with: impl FnOnce(NodeBuilder) -> NodeBuilder + Send) -> Node {
        let open = || with(Node::builder("n").keep_notices()).open().map_err(io::Error::other);
        self.0.run(open).unwrap()
    }
}

/// Joins two hosts by a cable; its ends are down and have no address.
fn plug(a: (&Host, &str), b: (&Host, &str)) {
    let path_b = b.0.path();
    // In the first host, for the machine's own network may have an interface of the name.
    a.0.ip(&format!("link add {} type veth peer name {} netns {path_b}", a.1, b.1));
}

fn up(host: &Host, name: &str, address: &str) {
    host.ip(&format!("addr add {address} dev {name}"));
    host.ip(&format!("link set {name} up"));
}

/// A reliable topic between two nodes.
fn topic(from: &Node, to: &Node) -> (Publisher, Subscriber) {
    let publisher = from.publisher("imu").reliability(Reliability::Reliable).open().unwrap();
    let subscriber = to.subscriber("imu").reliability(Reliability::Reliable).open().unwrap();
    (publisher, subscriber)
}

/// Publishes until a sample that was published after this call has arrived; how long that took.
fn until_received((publisher, subscriber): &mut (Publisher, Subscriber), mark: u8) -> Duration {
    let begin = Instant::now();
    loop {
        assert!(begin.elapsed() < TIMEOUT, "nothing came");
        publisher.publish(&[mark]).unwrap();
        while let Some(sample) = subscriber.take().unwrap() {
            if sample.to_vec() == [mark] {
                return begin.elapsed();
            }
        }
        subscriber.wait(Some(Duration::from_millis(5)));
    }
}

#[test]
fn a_network_that_comes_after_the_nodes_joins_them_and_so_does_a_new_one_after_it_is_gone() {
    let (Some(a), Some(b)) = (Host::new(), Host::new()) else { return };
    let (far, near) = (a.node(|builder| builder), b.node(|builder| builder));
    let mut topic = topic(&far, &near);
    topic.0.publish(b"without a reader").unwrap();
    for (mark, network) in [(1, "10.1.0"), (2, "10.2.0")] {
        plug((&a, "wire"), (&b, "wire"));
        up(&a, "wire", &format!("{network}.1/24"));
        up(&b, "wire", &format!("{network}.2/24"));
        eprintln!("network {network}: first sample after {:?}", until_received(&mut topic, mark));
        a.ip("link delete wire");
    }
}

#[test]
fn an_address_that_is_replaced_on_one_side_or_the_other_does_not_end_a_stream() {
    let (Some(a), Some(b)) = (Host::new(), Host::new()) else { return };
    plug((&a, "wire"), (&b, "wire"));
    up(&a, "wire", "10.1.0.1/16");
    up(&b, "wire", "10.1.0.2/16");
    let (far, near) = (a.node(|builder| builder), b.node(|builder| builder));
    let mut topic = topic(&far, &near);
    until_received(&mut topic, 0);
    for (mark, host, old, new) in [(1, &a, "10.1.0.1", "10.1.5.1"), (2, &b, "10.1.0.2", "10.1.5.2")] {
        host.ip(&format!("addr del {old}/16 dev wire"));
        host.ip(&format!("addr add {new}/16 dev wire"));
        eprintln!("renumbered: first sample after {:?}", until_received(&mut topic, mark));
    }
    // The new address is taken once it has proved that it hears, which may be after the first samples from it.
    let begin = Instant::now();
    while near.nodes()[0].address.ip().to_string() != "10.1.5.1" {
        assert!(begin.elapsed() < TIMEOUT, "still known at {}", near.nodes()[0].address);
        until_received(&mut topic, 3);
    }
}

#[test]
fn processes_of_a_host_without_any_interface_find_each_other() {
    let Some(host) = Host::new() else { return };
    host.ip("link set lo down");
    let (far, near) = (host.node(|builder| builder), host.node(|builder| builder));
    let mut topic = topic(&far, &near);
    until_received(&mut topic, 1);
    // Loopback comes: they stay together.
    host.0.run(|| interface::set_up("lo", true)).unwrap();
    until_received(&mut topic, 2);
    assert_eq!(near.nodes().len(), 1);
}

#[test]
fn nodes_find_each_other_over_ipv6_alone() {
    let (Some(a), Some(b)) = (Host::new(), Host::new()) else { return };
    plug((&a, "wire"), (&b, "wire"));
    for host in [&a, &b] {
        host.ip("link set wire up");
    }
    let (far, near) = (a.node(|builder| builder), b.node(|builder| builder));
    let mut topic = topic(&far, &near);
    eprintln!("IPv6: first sample after {:?}", until_received(&mut topic, 1));
    assert!(near.nodes()[0].address.is_ipv6());
}

#[test]
fn a_static_peer_of_ipv6_is_reached_by_address_and_port() {
    let Some(host) = Host::new() else { return };
    let target = host.node(|builder| builder.domain(1));
    let port = host.0.run(|| std::fs::read_to_string("/proc/thread-self/net/unix")).unwrap();
    let port = port.lines().find_map(|line| line.rsplit_once("@noctule-host/1/")).unwrap().1.to_owned();
    // Another host number, or shared memory would do.
    let asking =
        host.node(|builder| builder.domain(1).static_peer(&format!("[::1]:{port}")).without_shared_memory());
    until_received(&mut topic(&target, &asking), 1);
}

#[test]
fn a_static_peer_reaches_every_node_of_a_host_behind_a_router() {
    let (Some(a), Some(router), Some(b)) = (Host::new(), Host::new(), Host::new()) else { return };
    plug((&router, "to_a"), (&a, "wire"));
    plug((&router, "to_b"), (&b, "wire"));
    up(&router, "to_a", "10.1.0.254/24");
    up(&router, "to_b", "10.2.0.254/24");
    up(&a, "wire", "10.1.0.1/24");
    up(&b, "wire", "10.2.0.1/24");
    a.ip("route add default via 10.1.0.254");
    b.ip("route add default via 10.2.0.254");
    router.0.run(|| std::fs::write("/proc/sys/net/ipv4/ip_forward", "1")).unwrap();
    let nodes: Vec<Node> = (0..20).map(|_| b.node(|builder| builder)).collect();
    let mut subscribers: Vec<Subscriber> =
        nodes.iter().map(|node| node.subscriber("clock").open().unwrap()).collect();
    let far = a.node(|builder| builder.static_peer("10.2.0.1"));
    let mut publisher = far.publisher("clock").open().unwrap();
    let begin = Instant::now();
    for subscriber in &mut subscribers {
        while subscriber.take().unwrap().is_none() {
            assert!(begin.elapsed() < TIMEOUT, "{} of 20 nodes are known", far.nodes().len());
            publisher.publish(b"tick").unwrap();
            subscriber.wait(Some(Duration::from_millis(5)));
        }
    }
    let served = begin.elapsed();
    // One node of a host may hand on to the others what it receives, so all may be served before each has been found.
    while far.nodes().len() < 20 {
        assert!(begin.elapsed() < TIMEOUT, "{} of 20 nodes are known", far.nodes().len());
        subscribers[0].wait(Some(Duration::from_millis(5)));
    }
    assert_eq!(far.nodes().len(), 20);
    eprintln!("20 nodes behind a router: all served after {served:?}, all known after {:?}", begin.elapsed());
}

#[test]
fn a_stream_goes_on_over_the_other_network_when_one_of_two_dies() {
    let (Some(a), Some(b)) = (Host::new(), Host::new()) else { return };
    for (cable, network) in [("one", "10.1.0"), ("two", "10.2.0")] {
        plug((&a, cable), (&b, cable));
        up(&a, cable, &format!("{network}.1/24"));
        up(&b, cable, &format!("{network}.2/24"));
    }
    let (far, near) = (a.node(|builder| builder), b.node(|builder| builder));
    let mut topic = topic(&far, &near);
    until_received(&mut topic, 0);
    // Whichever it uses at first, it has to leave one of them.
    for (mark, dies, comes_back) in [(1, "one", "two"), (2, "two", "one"), (3, "one", "two")] {
        a.ip(&format!("link set {comes_back} up"));
        until_received(&mut topic, 10 + mark);
        a.ip(&format!("link set {dies} down"));
        eprintln!("one of two networks dead: first sample after {:?}", until_received(&mut topic, mark));
        assert_eq!(near.nodes().len(), 1);
    }
}

#[test]
fn a_node_without_a_key_says_so_once_when_there_is_a_network_and_one_with_a_key_does_not() {
    let (Some(a), Some(b)) = (Host::new(), Host::new()) else { return };
    let directory = tempfile::tempdir().unwrap();
    let key = directory.path().join("key");
    std::fs::write(&key, "5a".repeat(32)).unwrap();
    std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let key = &key;
    let keyed = [&a, &b].map(|host| host.node(|builder| builder.swarm_key(key)));
    let (far, near) = (a.node(|builder| builder), b.node(|builder| builder));
    let warnings = |node: &Node| -> Vec<String> {
        let notices = std::iter::from_fn(|| node.poll_notice());
        let warning = |notice| if let Notice::NoKey { interface } = notice { Some(interface) } else { None };
        notices.filter_map(warning).collect()
    };
    for host in [&a, &b] {
        host.ip("link set lo up");
    }
    // Two nodes of a host need no network, and loopback is none.
    let beside = a.node(|builder| builder);
    until_received(&mut topic(&far, &beside), 1);
    assert_eq!(warnings(&far), [""; 0]);
    let mut sealed = topic(&keyed[0], &keyed[1]);
    let mut open = topic(&far, &near);
    for (cable, network) in [("one", "10.1.0"), ("two", "10.2.0")] {
        plug((&a, cable), (&b, cable));
        up(&a, cable, &format!("{network}.1/24"));
        up(&b, cable, &format!("{network}.2/24"));
        until_received(&mut open, 2);
        until_received(&mut sealed, 2);
        // Those samples came behind the change that is warned of; of the second network there are no more warnings.
        let names: &[&str] = if cable == "one" { &["one"] } else { &[] };
        assert_eq!(warnings(&far), names);
        assert_eq!(keyed.each_ref().map(|node| warnings(node).len()), [0, 0]);
        a.ip(&format!("link delete {cable}"));
    }
    drop(beside);
}

#[test]
fn a_node_that_is_given_one_interface_is_not_on_the_other() {
    let (Some(a), Some(b), Some(c)) = (Host::new(), Host::new(), Host::new()) else { return };
    for (cable, other, network) in [("to_b", &b, "10.1.0"), ("to_c", &c, "10.2.0")] {
        plug((&a, cable), (other, "wire"));
        up(&a, cable, &format!("{network}.1/24"));
        up(other, "wire", &format!("{network}.2/24"));
    }
    let (everywhere, on_one) =
        (a.node(|builder| builder), a.node(|builder| builder.interface("10.1.0.1".parse().unwrap())));
    let (at_b, at_c) = (b.node(|builder| builder), c.node(|builder| builder));
    let (mut both, mut second) = (topic(&on_one, &at_b), topic(&everywhere, &at_c));
    until_received(&mut both, 1);
    // As often as a node would long have been found that can be.
    (0..200).for_each(|mark| _ = until_received(&mut second, mark));
    let known = |node: &Node| node.nodes().iter().map(|node| node.id).collect::<Vec<_>>();
    assert_eq!(known(&at_c), [everywhere.id()]);
    assert!(known(&at_b).contains(&on_one.id()) && known(&at_b).contains(&everywhere.id()));
}

/// A stream of numbers from 1 on, and what its reader counts.
struct Numbered {
    publisher: Publisher,
    subscriber: Subscriber,
    published: u64,
    taken: u64,
    missed: u64,
    /// By the library's count; what was before it was before the reader.
    first: Option<u64>,
    newest: u64,
}

impl Numbered {
    fn between(far: &Node, near: &Node, reliability: Reliability) -> Numbered {
        let (mut publisher, mut subscriber) = (far.publisher("state"), near.subscriber("state"));
        if reliability == Reliability::DeadlineBound {
            let deadline = Duration::from_millis(200);
            (publisher, subscriber) = (publisher.deadline(deadline), subscriber.deadline(deadline));
        }
        let publisher = publisher.reliability(reliability).open().unwrap();
        let subscriber = subscriber.reliability(reliability).open().unwrap();
        Numbered { publisher, subscriber, published: 0, taken: 0, missed: 0, first: None, newest: 0 }
    }

    /// Publishes, and takes what has come, until `is_enough`.
    fn go_on(&mut self, is_enough: impl Fn(&mut Numbered) -> bool) {
        let begin = Instant::now();
        while !is_enough(self) {
            assert!(begin.elapsed() < TIMEOUT, "{} taken, {} missed", self.taken, self.missed);
            self.published += 1;
            self.publisher.publish(&self.published.to_le_bytes()).unwrap();
            self.subscriber.wait(Some(Duration::from_millis(5)));
            while let Some(sample) = self.subscriber.take().unwrap() {
                let mut number = [0; 8];
                sample.read_at(0, &mut number);
                let info = sample.info();
                self.first.get_or_insert(info.sequence - info.missed);
                (self.taken, self.missed) = (self.taken + 1, self.missed + info.missed);
                self.newest = self.newest.max(u64::from_le_bytes(number));
            }
        }
    }

    /// Samples up to the newest that are neither taken nor counted; what is lost last counts when a later one has come.
    fn unaccounted(&self) -> u64 {
        self.newest + 1 - self.first.unwrap() - self.taken - self.missed
    }
}

/// As many times as NOCTULE_OUTAGES says; the times are bounded in virtual time (`network_back`), here they are shown.
#[test]
fn a_subscription_goes_on_after_a_network_is_back() {
    let (Some(a), Some(b)) = (Host::new(), Host::new()) else { return };
    plug((&a, "wire"), (&b, "wire"));
    up(&a, "wire", "10.1.0.1/24");
    up(&b, "wire", "10.1.0.2/24");
    let (far, near) = (a.node(|builder| builder), b.node(|builder| builder));
    let mut topic = topic(&far, &near);
    until_received(&mut topic, 0);
    let outages = std::env::var("NOCTULE_OUTAGES").ok().and_then(|text| text.parse().ok()).unwrap_or(2);
    // Every other one is longer than a node's lifetime.
    for outage in 1..=outages {
        a.ip("link set wire down");
        let begin = Instant::now();
        while if outage % 2 == 0 {
            topic.1.publishers() > 0
        } else {
            begin.elapsed() < Duration::from_secs(1)
        } {
            assert!(begin.elapsed() < TIMEOUT, "the writer is never given up");
            topic.0.publish(&[0]).unwrap();
            topic.1.wait(Some(Duration::from_millis(5)));
            while topic.1.take().unwrap().is_some() {}
        }
        let lasted = begin.elapsed();
        a.ip("link set wire up");
        eprintln!("an outage of {lasted:?}: first sample after {:?}", until_received(&mut topic, outage));
    }
}

#[test]
fn what_a_stream_lost_while_its_writer_was_given_up_is_counted() {
    let (Some(a), Some(b)) = (Host::new(), Host::new()) else { return };
    plug((&a, "wire"), (&b, "wire"));
    up(&a, "wire", "10.1.0.1/24");
    up(&b, "wire", "10.1.0.2/24");
    let (far, near) = (a.node(|builder| builder), b.node(|builder| builder));
    for reliability in [Reliability::DeadlineBound, Reliability::BestEffort, Reliability::Reliable] {
        let mut stream = Numbered::between(&far, &near, reliability);
        stream.go_on(|stream| stream.taken >= 50);
        a.ip("link set wire down");
        stream.go_on(|stream| stream.subscriber.publishers() == 0);
        let (published, taken) = (stream.published, stream.taken);
        stream.go_on(|stream| stream.published >= published + 50);
        a.ip("link set wire up");
        stream.go_on(|stream| stream.taken >= taken + 50);
        stream.go_on(|stream| stream.unaccounted() == 0);
        assert!(stream.missed >= 50, "{reliability:?}: {} missed", stream.missed);
    }
}
