//! A ROS 2 system on Cyclone DDS and a node of ours on one machine: whichever starts first, both start. `ddsperf` of
//! Debian's cyclonedds-tools takes the part of the ROS 2 program; it binds the ports of DDS domain 0 as every Cyclone program does.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)] // tests and what they share

use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use noctule::Node;
use noctule_sys::namespace::NetworkNamespace;

const DDSPERF: &str = "/usr/bin/ddsperf";

/// A network of their own; `None`, and a line with the reason, where the test cannot run.
fn network() -> Option<NetworkNamespace> {
    if !Path::new(DDSPERF).exists() {
        eprintln!("skipped: Cyclone DDS; apt-get install cyclonedds-tools");
        return None;
    }
    match NetworkNamespace::create() {
        Ok(network) => Some(network),
        Err(error) => {
            eprintln!("skipped: network namespaces need CAP_SYS_ADMIN ({error})");
            None
        }
    }
}

/// A DDS participant that publishes with multicast on; it prints a line each second, and runs for `seconds`.
fn cyclone(seconds: u32) -> io::Result<Child> {
    let uri = "<CycloneDDS><Domain id=\"any\"><General><AllowMulticast>true</AllowMulticast></General></Domain></CycloneDDS>";
    let mut command = Command::new(DDSPERF);
    command.args(["-D", &seconds.to_string(), "pub"]).env("CYCLONEDDS_URI", uri);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
}

fn exchange(network: &NetworkNamespace) {
    let nodes = network.run(|| Ok(["a", "b"].map(|name| Node::builder(name).keep_notices().open()))).unwrap();
    let [a, b] = nodes.map(Result::unwrap);
    let mut publisher = a.publisher("beside_dds").open().unwrap();
    let mut subscriber = b.subscriber("beside_dds").open().unwrap();
    while subscriber.take().unwrap().is_none() {
        publisher.publish(b"here").unwrap();
        subscriber.wait(Some(Duration::from_millis(5)));
    }
}

#[test]
fn cyclone_starts_after_a_node_of_ours() {
    let Some(network) = network() else { return };
    let open = || Node::builder("first").keep_notices().open().map_err(io::Error::other);
    let _node = network.run(open).unwrap();
    let output = network.run(|| cyclone(1)?.wait_with_output()).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!errors.contains("bind"), "{errors}");
    assert!(output.status.code() == Some(0), "{:?}: {errors}", output.status);
    exchange(&network);
}

#[test]
fn a_node_of_ours_starts_after_cyclone() {
    let Some(network) = network() else { return };
    let mut child = network.run(|| cyclone(600)).unwrap();
    // It has bound its ports when it reports.
    let mut reports = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(reports.next().is_some_and(|line| line.is_ok()));
    exchange(&network);
    assert!(child.try_wait().unwrap().is_none(), "Cyclone has ended");
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Linux's ephemeral ports, for programs that name no port, reach into the ports of DDS domains from 102 up.
#[test]
fn a_port_that_a_dds_domain_needs_is_given_back_to_the_kernel() {
    let Ok(network) = NetworkNamespace::create() else {
        eprintln!("skipped: network namespaces need CAP_SYS_ADMIN");
        return;
    };
    // Of DDS domain 102: the last six that its programs need, then four that they do not.
    let range = || std::fs::write("/proc/sys/net/ipv4/ip_local_port_range", "32926 32935");
    network.run(range).unwrap();
    let open = || Node::builder("port").keep_notices().open().map_err(io::Error::other);
    let ports = || {
        // The directory of a host's nodes: docs/spec/discovery.md.
        let list = network.run(|| std::fs::read_to_string("/proc/thread-self/net/unix")).unwrap();
        let ports = list.lines().filter_map(|line| line.rsplit_once("@noctule-host/0/"));
        let mut ports: Vec<u16> = ports.map(|(_, port)| port.parse().unwrap()).collect();
        ports.sort_unstable();
        ports
    };
    let nodes: Vec<Node> = (0..4).map(|_| network.run(open).unwrap()).collect();
    assert_eq!(ports(), [32_932, 32_933, 32_934, 32_935]);
    // A range that has no other port is no reason to have no node.
    let _fifth = network.run(open).unwrap();
    assert!((32_926..32_932).contains(&ports()[0]), "{:?}", ports());
    assert_eq!(nodes.len(), 4);
}
