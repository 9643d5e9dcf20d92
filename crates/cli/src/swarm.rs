//! Joining a swarm from the command line: the options that `pub`, `echo`, `ping`, `topics` and `top` share,
//! and what to say when nothing is there.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

use crate::argument::ArgumentError;
use noctule::{Node, NodeError, NodeId};

/// Arguments for joining a network: domain, key, peers, interface, name.
#[derive(clap::Args)]
pub(crate) struct SwarmArguments {
    /// Nodes of different domains do not see each other: 0 to 5000
    #[arg(long, value_name = "N", default_value_t = 0)]
    domain: u32,
    /// File with the swarm's key, as `noctule key new` writes it [default: NOCTULE_KEY_FILE or NOCTULE_KEY]
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// A host or node to reach by unicast where multicast does not, e.g. 192.168.1.7 or [fe80::1%3]:40123; repeatable
    #[arg(long, value_name = "ADDRESS")]
    peer: Vec<String>,
    /// Use only the interface with this address
    #[arg(long, value_name = "ADDRESS")]
    interface: Option<Ipv4Addr>,
    /// Name of this node in the network; the command's name by default
    #[arg(long)]
    name: Option<String>,
}

impl SwarmArguments {
    /// Joins. Notices go to standard error.
    pub(crate) fn join(&self, command: &str) -> Result<Node, NodeError> {
        self.builder(command).open()
    }

    /// Joins; notices are kept for the caller to show.
    pub(crate) fn join_quietly(&self, command: &str) -> Result<Node, NodeError> {
        self.builder(command).keep_notices().open()
    }

    fn builder(&self, command: &str) -> noctule::NodeBuilder {
        let name = self.name.clone().unwrap_or_else(|| format!("noctule {command}"));
        let mut builder = Node::builder(&name).domain(self.domain);
        if let Some(key) = &self.key {
            builder = builder.swarm_key(key);
        }
        if let Some(address) = self.interface {
            builder = builder.interface(address);
        }
        self.peer.iter().fold(builder, |builder, peer| builder.static_peer(peer))
    }

    /// Which swarm, in a few words.
    pub(crate) fn described(&self) -> String {
        format!("domain {}", self.domain)
    }

    /// Why nothing was seen and what to check, as one sentence.
    pub(crate) fn nothing_seen(&self, what: &str, waited: Duration, node: &Node) -> String {
        let others = node.nodes().len();
        let seconds = (waited.as_secs_f64() * 10.0).round() / 10.0;
        if others > 0 {
            let nodes =
                if others == 1 { "one other node is".into() } else { format!("{others} other nodes are") };
            return format!(
                "{what} in {seconds} s, although {nodes} there; `noctule topics` lists what they have"
            );
        }
        let key = self.key.as_ref().map_or("none here".into(), |key| format!("{} here", key.display()));
        format!(
            "{what} in {seconds} s, and no other node was heard; check that all use the same domain (--domain, {} \
             here) and swarm key (--key, {key}), and that the firewall lets multicast and UDP through (to \
             ports 7396 and 7399, and between the ports that nodes have from the system), or name a --peer",
            self.domain
        )
    }
}

/// The first digits of a node's number: enough to tell nodes of one name apart.
pub(crate) fn short(id: NodeId) -> String {
    let mut digits = id.to_string();
    digits.truncate(8);
    digits
}

/// `--seconds`: more than none, at most a year.
pub(crate) fn seconds(text: &str) -> Result<Duration, ArgumentError> {
    let fault = || ArgumentError::Seconds(text.to_owned());
    let seconds: f64 = text.parse().map_err(|_| fault())?;
    let is_sensible = seconds > 0.0 && seconds <= 366.0 * 86_400.0;
    if is_sensible { Ok(Duration::from_secs_f64(seconds)) } else { Err(fault()) }
}
