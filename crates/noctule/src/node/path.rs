//! Another node's clock and the path to it, for the API.

use noctule_discovery::NodeId;
use noctule_time_sync::Estimate;

use super::Node;

/// Figures of the path of a link: loss, length of bursts, capacity.
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
    /// The estimate of another node's clock now, by its exchange with this one; `None` of nodes on this host, which have
    /// this clock, and before the first exchange: clocks are compared only with nodes that something is read from.
    pub fn clock_of(&self, node: NodeId) -> Option<Estimate> {
        let now = self.now();
        self.shared.lock().remotes.get(&node)?.clock_estimate(now)
    }

    /// Figures of the path to a node of another host; `None` if nothing ever went there.
    pub fn path_to(&self, node: NodeId) -> Option<PathFigures> {
        self.shared.lock().remotes.get(&node).map(|remote| remote.path_figures())
    }
}
