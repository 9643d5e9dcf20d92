//! What a node knows of another one's clock, and of the path to it, for who asks: the program, or another node.

use std::io;
use std::time::Duration;

use noctule_discovery::NodeId;
use noctule_sys::random;
use noctule_time_sync::Estimate;

use super::Node;
use super::descriptions::DescribeError;
use super::remote::{Remote, Remotes};
use crate::error::NodeError;
use crate::link_report::{self, LinkReport};
use crate::type_descriptions::wire::{LINK_BYTES, PART_BYTES_MAX, Request, Subject};

/// What a link knows of its path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathFigures {
    /// Share of this node's datagrams that the path loses, 0 to 1.
    pub loss: f64,
    /// The mean number of datagrams lost in a row.
    pub burst_packets: f64,
    /// Bytes of datagrams a second that it carries; `None` until its queue was once not empty.
    pub capacity_bytes_per_s: Option<f64>,
}

impl Node {
    /// What is known of another node's clock now, as of its exchange with this one; `None` of nodes on this host, which have
    /// this clock, and before the first exchange: clocks are compared only with nodes that something is read from.
    pub fn clock_of(&self, node: NodeId) -> Option<Estimate> {
        let now = self.now();
        self.shared.lock().remotes.get(&node)?.clock_estimate(now)
    }

    /// What the path to a node of another host loses and carries; `None` if nothing ever went there.
    pub fn path_to(&self, node: NodeId) -> Option<PathFigures> {
        self.shared.lock().remotes.get(&node).map(|remote| remote.path_figures())
    }

    /// The links that another node has to nodes of other hosts, as it knows them now; its own for this node. A page can so show
    /// links that it has no part in. Waits up to `timeout` for the answer.
    ///
    /// # Errors
    /// The node is not known or does not answer: nodes before version 0.1's links do not.
    pub fn links_of(&self, node: NodeId, timeout: Duration) -> Result<Vec<LinkReport>, DescribeError> {
        let shared = &self.shared;
        if shared.is_in_child() {
            return Err(DescribeError::System(io::Error::other(NodeError::Forked)));
        }
        if node == shared.id {
            return Ok(shared.lock().remotes.iter().map(|(to, remote)| report(*to, remote)).collect());
        }
        let nonce = u64::from_le_bytes(random::secret().map_err(DescribeError::System)?);
        let answer = {
            let mut state = shared.lock();
            state.discovery.locator(node).ok_or(DescribeError::Unknown { node })?;
            state.descriptions.begin(nonce, node, (Subject::Links, 0)).ok_or(DescribeError::Busy)?
        };
        let first = Request { about: Subject::Links, nonce, hash: 0, offset: 0 };
        let links = shared.ask_parts(node, first, &answer, timeout);
        shared.lock().descriptions.end(nonce);
        Ok(links?.as_chunks::<LINK_BYTES>().0.iter().map(link_report::decode).collect())
    }
}

/// Links from a number on, in the order of their nodes, as many as fit into a datagram; and how many there are.
pub(super) fn links_from(remotes: &Remotes, from: usize) -> (Vec<u8>, usize) {
    let few = remotes.iter().skip(from).take(PART_BYTES_MAX / LINK_BYTES);
    let bytes = few.flat_map(|(to, remote)| link_report::encode(&report(*to, remote)));
    (bytes.collect(), remotes.len().min(link_report::LINKS_MAX))
}

fn report(to: NodeId, remote: &Remote) -> LinkReport {
    let (path, counted) = (remote.path_figures(), remote.link_counters());
    LinkReport {
        to,
        round_trip: remote.round_trip(),
        loss: path.loss,
        capacity_bytes_per_s: path.capacity_bytes_per_s,
        sent_datagrams: counted.sent_datagrams,
        extra_datagrams: counted.bound_repeats + counted.bound_parity + counted.repeated,
        received_datagrams: counted.received_datagrams,
    }
}
