//! The networks experiments run in: private, without names, gone when the run is.
//!
//! One host: a namespace with only `lo`, so that multicast and discovery of every middleware reach
//! its own nodes and nobody else. Two hosts: two such namespaces joined by a veth pair.

use std::io;
use std::os::fd::AsRawFd;
use std::process::Command;

use noctule_sys::namespace::NetworkNamespace;
use noctule_sys::{clock, interface};

/// Address of each host on the veth pair (an otherwise unused part of 10.0.0.0/8; the namespaces
/// have no other interface, so nothing else can own them).
const ADDRESSES: [[u8; 4]; 2] = [[10, 77, 0, 1], [10, 77, 0, 2]];
const PREFIX_BITS: u32 = 24;
const INTERFACES: [&str; 2] = ["noctule0", "noctule1"];

/// Where the nodes of a cell run.
#[derive(Debug)]
pub(crate) struct Network {
    hosts: Vec<NetworkNamespace>,
}

impl Network {
    /// `hosts` = 1: only loopback. 2: joined by veth. `across`: joined by an emulated link of that specification.
    ///
    /// # Errors
    /// Missing privileges, or for two hosts a missing `ip` command.
    pub(crate) fn create(hosts: u32, across: Option<&str>) -> Result<Self, String> {
        if let Some(why) = across.and_then(emulator_obstacle) {
            return Err(why);
        }
        let namespace = || {
            NetworkNamespace::create().map_err(|e| {
                format!(
                    "cannot create a private network ({e}); run as root, or where user namespaces are allowed"
                )
            })
        };
        let network = Self { hosts: (0..hosts).map(|_| namespace()).collect::<Result<_, _>>()? };
        if let [a, b] = network.hosts.as_slice() {
            join(a, b)?;
        }
        Ok(network)
    }

    /// The namespace of a node: nodes take turns.
    pub(crate) fn host(&self, node: u32) -> Option<&NetworkNamespace> {
        self.hosts.get(node as usize % self.hosts.len().max(1))
    }

    /// Bytes that all hosts have given to the links between them; `None` on one host.
    pub(crate) fn sent_bytes(&self) -> Option<u64> {
        let sent =
            |host: &NetworkNamespace| host.run(|| std::fs::read_to_string("/proc/thread-self/net/dev"));
        let hosts = self.hosts.get(..).filter(|hosts| hosts.len() > 1)?;
        hosts.iter().map(|host| Some(sent_bytes_in(&sent(host).ok()?))).sum()
    }

    /// The address a node binds to and announces.
    pub(crate) fn address(&self, node: u32) -> String {
        match self.hosts.len() {
            2 => ADDRESSES[node as usize % 2].map(|octet| octet.to_string()).join("."),
            _ => "127.0.0.1".into(),
        }
    }
}

/// Why nothing can be measured across an emulated link of this specification; `None` if it can.
pub(crate) fn emulator_obstacle(spec: &str) -> Option<String> {
    Some(format!("link:{spec} needs the link emulator, which this version does not contain"))
}

/// Bytes sent by all interfaces but the loopback, of the text of `/proc/net/dev`: name, eight counters of what
/// was received, then the bytes sent.
fn sent_bytes_in(text: &str) -> u64 {
    let interface = |line: &str| {
        let (_, counters) = line.split_once(':').filter(|(name, _)| name.trim() != "lo")?;
        counters.split_whitespace().nth(8)?.parse::<u64>().ok()
    };
    text.lines().filter_map(interface).sum()
}

fn join(a: &NetworkNamespace, b: &NetworkNamespace) -> Result<(), String> {
    let other = format!("/proc/{}/fd/{}", std::process::id(), b.descriptor().as_raw_fd());
    let linked = a.run(|| {
        Command::new("ip")
            .args([
                "link",
                "add",
                INTERFACES[0],
                "type",
                "veth",
                "peer",
                "name",
                INTERFACES[1],
                "netns",
                &other,
            ])
            .output()
    });
    match linked {
        Ok(output) if output.status.success() => {}
        Ok(output) => {
            return Err(format!(
                "cannot join two namespaces by veth: {}",
                String::from_utf8_lossy(&output.stderr).trim()
            ));
        }
        Err(error) => {
            return Err(format!("cannot run `ip` ({error}); install it with `apt-get install iproute2`"));
        }
    }
    for (host, number) in [(a, 0), (b, 1)] {
        let configure = || -> io::Result<()> {
            interface::set_address(INTERFACES[number], ADDRESSES[number], PREFIX_BITS)?;
            interface::set_up(INTERFACES[number], true)?;
            interface::replace_multicast_route("lo", INTERFACES[number])
        };
        host.run(configure).map_err(|e| format!("cannot configure {}: {e}", INTERFACES[number]))?;
    }
    for (host, number) in [(a, 0), (b, 1)] {
        host.run(|| wait_until_running(INTERFACES[number]))
            .map_err(|e| format!("{} does not come up: {e}", INTERFACES[number]))?;
    }
    Ok(())
}

/// Packets sent before the carrier is up are dropped without a word.
fn wait_until_running(name: &str) -> io::Result<()> {
    let deadline_ns = clock::now_ns() + 5_000_000_000;
    while !interface::is_running(name)? {
        if clock::now_ns() > deadline_ns {
            return Err(io::ErrorKind::TimedOut.into());
        }
        clock::sleep_until(clock::now_ns() + 1_000_000);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sent_bytes_are_those_of_every_interface_but_the_loopback() {
        let text = "Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:     100       1    0    0    0     0          0         0      900       1    0    0    0     0       0          0
noctule0:  2000       2    0    0    0     0          0         0     3000       2    0    0    0     0       0          0
tun0: 1 1 0 0 0 0 0 0 40 1 0 0 0 0 0 0
";
        assert_eq!(sent_bytes_in(text), 3040);
        assert_eq!(sent_bytes_in("lo: nonsense\neth0: 1 2"), 0);
    }
}
