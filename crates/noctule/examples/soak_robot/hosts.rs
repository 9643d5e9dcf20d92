//! Three namespaces: the robot with its writers, another robot, a stranger without the key.

use std::os::fd::AsRawFd;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use noctule::{Node, Reliability};
use noctule_link_emulator::{Forwarder, ForwarderSettings};
use noctule_sys::namespace::NetworkNamespace;

/// 2,000 round trips to a board, recorded in a quiet room: `vectors/pingpong/README.md`.
const WIFI: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/pingpong/m5atom_udp_wifi");

pub struct Hosts {
    pub robots: [NetworkNamespace; 2],
    stranger: NetworkNamespace,
}

impl Hosts {
    pub fn new() -> Hosts {
        let namespace = || NetworkNamespace::create().expect("namespaces need root");
        let hosts = Hosts { robots: [namespace(), namespace()], stranger: namespace() };
        for (name, other, network) in
            [("robots", &hosts.robots[1], "10.1.0"), ("open", &hosts.stranger, "10.2.0")]
        {
            let path = format!("/proc/{}/fd/{}", std::process::id(), other.descriptor().as_raw_fd());
            ip(&hosts.robots[0], &format!("link add {name} type veth peer name wire netns {path}"));
            for (host, device, last) in [(&hosts.robots[0], name, 1), (other, "wire", 2)] {
                ip(host, &format!("addr add {network}.{last}/24 dev {device}"));
                ip(host, &format!("link set {device} up"));
            }
        }
        for host in &hosts.robots {
            ip(host, "link set lo up");
        }
        hosts
    }

    /// The line between the robots.
    pub fn set_link(&self, is_up: bool) {
        ip(&self.robots[0], &format!("link set robots {}", if is_up { "up" } else { "down" }));
    }

    /// For so long the cable is out, and the robots are joined by Wi-Fi: delays and stalls as they were recorded, and losses in bursts.
    pub fn roam(&self, length_ns: i64, seed: u64) {
        for host in &self.robots {
            // The link takes this route over.
            ip(host, "route replace 224.0.0.0/4 dev lo");
        }
        let spec =
            noctule_link_emulator::source::read(&format!("replay:{WIFI} rate=50mbit loss=2% burst=20ms"))
                .unwrap();
        let settings = ForwarderSettings::new(spec, seed);
        let wifi = Forwarder::start(&[&self.robots[0], &self.robots[1]], &settings).unwrap();
        self.set_link(false);
        noctule_sys::clock::sleep_until(noctule_sys::clock::now_ns() + length_ns);
        self.set_link(true);
        wifi.stop().unwrap();
    }

    /// Nodes without the key that read and write the robots' topics, and garbage at every port they can see.
    pub fn start_strangers(&self) -> Strangers {
        let stop = Arc::new(AtomicBool::new(false));
        let nodes = (0..10).map(|_| {
            let open = || Node::builder("stranger").keep_notices().open().map_err(std::io::Error::other);
            let node = self.stranger.run(open).unwrap();
            let publisher = node.publisher("command").reliability(Reliability::Reliable).open().unwrap();
            let subscriber = node.subscriber("command").reliability(Reliability::Reliable).open().unwrap();
            (publisher, subscriber, node)
        });
        let nodes: Vec<_> = nodes.collect();
        let socket = self.stranger.run(|| std::net::UdpSocket::bind("10.2.0.2:0")).unwrap();
        let is_over = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut nodes = nodes;
            let mut bytes = [0; 600];
            let mut number = 0_u64;
            while !is_over.load(Ordering::Relaxed) {
                for (at, byte) in bytes.iter_mut().enumerate() {
                    number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(at as u64 | 1);
                    *byte = (number >> 56) as u8;
                }
                bytes[..4].copy_from_slice(if number & 1 == 0 { b"NCTX" } else { b"NCTD" });
                let _ = socket.send_to(&bytes, "10.2.0.1:7399");
                for (publisher, ..) in &mut nodes {
                    publisher.publish(b"forged").unwrap();
                }
                noctule_sys::clock::sleep_until(noctule_sys::clock::now_ns() + 5_000_000);
            }
        });
        Strangers { stop, thread: Some(thread) }
    }
}

pub struct Strangers {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Strangers {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn ip(host: &NetworkNamespace, arguments: &str) {
    let run = || Command::new("ip").args(arguments.split(' ')).output();
    let output = host.run(run).unwrap();
    assert!(output.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&output.stderr));
}
