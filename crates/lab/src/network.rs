//! The networks experiments run in: private, without names, gone when the run is.
//!
//! One host: a namespace with only `lo`, so that multicast and discovery of every middleware reach
//! its own nodes only. Two hosts: two such namespaces joined by a veth pair, or any number joined by an
//! emulated link.

use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::Command;

use noctule_link_emulator::forwarder::ForwarderError;
use noctule_link_emulator::source::SourceError;
use noctule_link_emulator::star::NODES_MAX;
use noctule_link_emulator::{Forwarder, ForwarderSettings, source};
use noctule_sys::namespace::NetworkNamespace;
use noctule_sys::{clock, interface};
use noctule_timebase::Span;

use crate::link_record::{LinkContext, LinkRecord};

/// Address of each host on the veth pair (an otherwise unused part of 10.0.0.0/8; the namespaces
/// have no other interface, so nothing else can own them).
const ADDRESSES: [[u8; 4]; 2] = [[10, 77, 0, 1], [10, 77, 0, 2]];
const PREFIX_BITS: u32 = 24;
const INTERFACES: [&str; 2] = ["noctule0", "noctule1"];

/// File with TCP's congestion control of the calling thread's namespace.
const CONGESTION_CONTROL_PATH: &str = "/proc/sys/net/ipv4/tcp_congestion_control";
const DEVICES_PATH: &str = "/proc/thread-self/net/dev";
/// Columns of that file, counted from after the name.
const SENT_BYTES: usize = 8;
const SENT_DROPPED: usize = 11;

/// Why there is no network for a cell.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    /// The kernel refuses a namespace.
    #[error("cannot create a private network ({0}); run as root, or where user namespaces are allowed")]
    Namespace(io::Error),
    /// `ip` refuses the pair of interfaces, in its words.
    #[error("cannot join two namespaces by veth: {0}")]
    Join(String),
    /// There is no `ip`.
    #[error("cannot run `ip` ({0}); install it with `apt-get install iproute2`")]
    NoIp(io::Error),
    /// An interface refuses its address.
    #[error("cannot configure {interface}: {source}")]
    Configure {
        /// Name of the interface.
        interface: &'static str,
        /// The system's reason.
        source: io::Error,
    },
    /// An interface has no carrier.
    #[error("{interface} does not come up: {source}")]
    Down {
        /// Name of the interface.
        interface: &'static str,
        /// The system's reason.
        source: io::Error,
    },
    /// The text of an emulated link cannot be used.
    #[error(transparent)]
    Specification(#[from] SourceError),
    /// The emulated link does not start, or ended by itself.
    #[error(transparent)]
    Emulator(#[from] ForwarderError),
}

/// Where the nodes of a cell run.
#[derive(Debug)]
pub struct Network {
    // Ends before the namespaces it joins.
    link: Option<EmulatedLink>,
    hosts: Vec<NetworkNamespace>,
}

/// An emulated link for one trial.
#[derive(Debug, Clone, Copy)]
pub struct Emulation<'a> {
    /// Model of the link as text: docs/spec/link-text.md.
    pub spec: &'a str,
    /// Seed of the link's random choices.
    pub seed: u64,
    /// How far recordings have come.
    pub elapsed: Span,
    /// Core for the forwarder alone, if any.
    pub core: Option<u32>,
}

#[derive(Debug)]
struct EmulatedLink {
    forwarder: Forwarder,
    seed: u64,
}

impl Network {
    /// `hosts` = 1: only loopback. 2: joined by veth.
    ///
    /// # Errors
    /// Missing privileges, or for two hosts a missing `ip` command.
    pub fn create(hosts: u32) -> Result<Self, NetworkError> {
        let network = Self { link: None, hosts: namespaces(hosts)? };
        if let [a, b] = network.hosts.as_slice() {
            join(a, b)?;
        }
        Ok(network)
    }

    /// `hosts` ≥ 2, joined by an emulated link that begins now.
    ///
    /// # Errors
    /// Missing privileges, no TUN devices, a specification that cannot be read.
    pub fn emulated(hosts: u32, emulation: Emulation<'_>) -> Result<Self, NetworkError> {
        let spec = source::read(emulation.spec)?;
        let hosts = namespaces(hosts)?;
        let settings = ForwarderSettings {
            core: emulation.core,
            elapsed: emulation.elapsed,
            ..ForwarderSettings::new(spec, emulation.seed)
        };
        let forwarder = Forwarder::start(&hosts.iter().collect::<Vec<_>>(), &settings)?;
        Ok(Self { link: Some(EmulatedLink { forwarder, seed: emulation.seed }), hosts })
    }

    /// No host of its own: every node is where this process is. For machines of tests.
    #[cfg(test)]
    pub(crate) fn here() -> Self {
        Self { link: None, hosts: Vec::new() }
    }

    /// The namespace of a node: nodes take turns.
    pub fn host(&self, node: u32) -> Option<&NetworkNamespace> {
        self.hosts.get(node as usize % self.hosts.len().max(1))
    }

    /// Bytes that all hosts have given to the links between them; `None` on one host.
    pub fn sent_bytes(&self) -> Option<u64> {
        self.sum_of_devices(SENT_BYTES).filter(|_| self.hosts.len() > 1)
    }

    /// Counters of the emulated link since it began; `None` if there is none.
    ///
    /// # Errors
    /// It has ended by itself.
    pub fn link_record(&self) -> Result<Option<LinkRecord>, NetworkError> {
        let Some(EmulatedLink { forwarder, seed }) = &self.link else { return Ok(None) };
        let report = forwarder.report()?;
        let control =
            self.hosts.first().map(|host| host.run(|| std::fs::read_to_string(CONGESTION_CONTROL_PATH)));
        let around = LinkContext {
            seed: *seed,
            tcp_congestion_control: control.and_then(Result::ok).unwrap_or_default().trim().to_owned(),
            unread: self.sum_of_devices(SENT_DROPPED).unwrap_or(0),
        };
        Ok(Some(LinkRecord::of(&report, around)))
    }

    fn sum_of_devices(&self, column: usize) -> Option<u64> {
        let text = |host: &NetworkNamespace| host.run(|| std::fs::read_to_string(DEVICES_PATH));
        self.hosts.iter().map(|host| Some(sum_of(column, &text(host).ok()?))).sum()
    }

    /// The address a node binds to and announces.
    pub fn address(&self, node: u32) -> String {
        if let Some(link) = &self.link {
            let addresses = link.forwarder.addresses();
            return addresses[node as usize % addresses.len()].to_string();
        }
        match self.hosts.len() {
            2 => ADDRESSES[node as usize % 2].map(|octet| octet.to_string()).join("."),
            _ => "127.0.0.1".into(),
        }
    }
}

/// Why nothing can be measured between so many hosts across an emulated link; `None` if it can.
pub(crate) fn emulator_unsupported(hosts: u32) -> Option<String> {
    if !Path::new("/dev/net/tun").exists() {
        return Some(
            "an emulated link needs /dev/net/tun, which is not there; load it with `modprobe tun`".into(),
        );
    }
    let many = hosts as usize > NODES_MAX;
    many.then(|| format!("an emulated link joins at most {NODES_MAX} nodes, not {hosts}"))
}

fn namespaces(hosts: u32) -> Result<Vec<NetworkNamespace>, NetworkError> {
    (0..hosts).map(|_| NetworkNamespace::create().map_err(NetworkError::Namespace)).collect()
}

/// One counter of all interfaces but the loopback, of the text of `/proc/net/dev`: name, eight counters of what
/// was received, eight of what was sent.
fn sum_of(column: usize, text: &str) -> u64 {
    let interface = |line: &str| {
        let (_, counters) = line.split_once(':').filter(|(name, _)| name.trim() != "lo")?;
        counters.split_whitespace().nth(column)?.parse::<u64>().ok()
    };
    text.lines().filter_map(interface).sum()
}

fn join(a: &NetworkNamespace, b: &NetworkNamespace) -> Result<(), NetworkError> {
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
            return Err(NetworkError::Join(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
        }
        Err(error) => {
            return Err(NetworkError::NoIp(error));
        }
    }
    for (host, number) in [(a, 0), (b, 1)] {
        let configure = || -> io::Result<()> {
            interface::set_address(INTERFACES[number], ADDRESSES[number], PREFIX_BITS)?;
            interface::set_up(INTERFACES[number], true)?;
            interface::replace_multicast_route("lo", INTERFACES[number])
        };
        let interface = INTERFACES[number];
        host.run(configure).map_err(|source| NetworkError::Configure { interface, source })?;
    }
    for (host, number) in [(a, 0), (b, 1)] {
        let interface = INTERFACES[number];
        host.run(|| wait_until_running(interface))
            .map_err(|source| NetworkError::Down { interface, source })?;
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
    fn counters_are_those_of_every_interface_but_the_loopback() {
        let text = "Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:     100       1    0    0    0     0          0         0      900       1    0    0    0     0       0          0
noctule0:  2000       2    0    0    0     0          0         0     3000       2    0    0    0     0       0          0
tun0: 1 1 0 0 0 0 0 0 40 1 0 6 0 0 0 0
";
        assert_eq!((sum_of(SENT_BYTES, text), sum_of(SENT_DROPPED, text)), (3040, 6));
        assert_eq!(sum_of(SENT_BYTES, "lo: nonsense\neth0: 1 2"), 0);
    }
}
