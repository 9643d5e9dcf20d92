//! Counters and measurements of a node, for the API.

use noctule_discovery::{EndpointId, NodeId};
use noctule_prrt::{ReceivedCounters, SentCounters};

use super::State;
use crate::deadline::DeadlineMissed;
use crate::node::NodeCounters;

impl State {
    /// Counters of a deadline-bound writer, by node that reads it.
    pub(in crate::node) fn sent(&self, writer: EndpointId) -> Vec<(NodeId, SentCounters)> {
        let sent = self.remotes.iter().filter_map(|(node, remote)| {
            let (alone, together) = (remote.sent(writer), self.groups.sent(writer, *node));
            let both = [alone, together].into_iter().flatten().reduce(SentCounters::plus)?;
            Some((*node, both))
        });
        sent.collect()
    }

    /// Capacities of the paths to the nodes of other hosts that read a writer, bytes a second; `None`: not known.
    pub(in crate::node) fn capacities(&self, writer: EndpointId) -> Vec<(NodeId, Option<f64>)> {
        let mut nodes: Vec<NodeId> =
            self.partners.get(&writer).into_iter().flatten().map(|(node, _)| *node).collect();
        nodes.dedup();
        nodes
            .into_iter()
            .filter_map(|node| Some((node, self.remotes.get(&node)?.capacity_bytes_per_s())))
            .collect()
    }

    /// Counters of a reader, by node of another host whose deadline-bound writer it reads.
    pub(in crate::node) fn received(&self, reader: EndpointId) -> Vec<(NodeId, ReceivedCounters)> {
        let writers = self.partners.get(&reader).into_iter().flatten();
        writers
            .filter_map(|(node, writer)| Some((*node, self.remotes.get(node)?.received(*writer)?)))
            .collect()
    }

    pub(in crate::node) fn counters(&self) -> NodeCounters {
        NodeCounters {
            discovery: self.discovery.counters(),
            refused: self.envelope.counters(),
            strangers: self.strangers,
            impostors: self.impostors,
            malformed_group: self.groups.malformed(),
            descriptions: self.descriptions.counters(),
        }
    }

    /// How often the DEADLINE of one of our endpoints was missed.
    pub(in crate::node) fn deadline_missed(&self, id: EndpointId) -> DeadlineMissed {
        self.deadlines.missed(id, &self.clock)
    }
}
