//! Hosts: network namespaces of this machine, joined by a cable whose rate can be limited.
#![allow(missing_docs, unreachable_pub, clippy::print_stderr, dead_code)] // not every test uses all of it

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsRawFd;
use std::process::Command;

use noctule::{Node, NodeBuilder};
use noctule_sys::namespace::NetworkNamespace;

/// A host by its network, and its address there.
pub struct Host(NetworkNamespace, Ipv4Addr);

impl Host {
    fn run(&self, program: &str, arguments: &str) -> io::Result<()> {
        let run = || Command::new(program).args(arguments.split(' ')).output();
        let output = self.0.run(run)?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() {
            return Ok(());
        }
        Err(io::Error::other(format!("{program} {arguments}: {said}")))
    }

    /// Limits the rate of this host: a token bucket in front of a queue of 2 MB.
    pub fn limit(&self, mbit_per_s: u32) {
        let limit =
            format!("qdisc replace dev cable root tbf rate {mbit_per_s}mbit burst 4kb limit {}", 2 << 20);
        self.run("tc", &limit).unwrap();
    }

    /// Passes datagrams that this host sends through a rule of nftables; false, with the reason printed, where there are none.
    pub fn nft(&self, name: &str, rule: &str) -> bool {
        let chain = "add chain ip marks out { type filter hook output priority 0 ; }";
        let rule = format!("add rule ip marks out {rule}");
        let commands = ["add table ip marks", chain, &rule];
        let done = commands.into_iter().try_for_each(|command| self.run("nft", command));
        done.inspect_err(|why| eprintln!("skipped, {name} needs nft: {why}")).is_ok()
    }

    /// A node on this host.
    pub fn node(&self, name: &str, with: impl FnOnce(NodeBuilder) -> NodeBuilder + Send) -> Node {
        let open = || {
            let builder = Node::builder(name).keep_notices();
            with(builder).open().map_err(io::Error::other)
        };
        self.0.run(open).unwrap()
    }
}

/// Two hosts joined by a cable; `None`, and a line with the reason, where namespaces cannot be made or limited.
pub fn pair() -> Option<(Host, Host)> {
    let joined = || -> io::Result<(Host, Host)> {
        let host = |number| NetworkNamespace::create().map(|it| Host(it, Ipv4Addr::new(10, 77, 0, number)));
        let (a, b) = (host(1)?, host(2)?);
        let path = format!("/proc/{}/fd/{}", std::process::id(), b.0.descriptor().as_raw_fd());
        a.run("ip", &format!("link add cable type veth peer name cable netns {path}"))?;
        for host in [&a, &b] {
            host.run("ip", &format!("addr add {}/24 dev cable", host.1))?;
            host.run("ip", "link set cable up")?;
        }
        a.run("tc", "qdisc replace dev cable root tbf rate 1000mbit burst 64kb limit 2000000")?;
        a.run("tc", "qdisc del dev cable root")?;
        Ok((a, b))
    };
    joined().map_err(|why| eprintln!("skipped, it needs CAP_NET_ADMIN, iproute2 and tbf: {why}")).ok()
}
