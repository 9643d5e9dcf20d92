//! ROS 2's list of nodes, both ways: the bus's nodes are written into DDS as nodes of the bridge's participant, and the nodes that
//! participants of ROS 2 have are known by name.

use std::collections::BTreeMap;

use noctule::{Durability, NodeId, Qos, Reliability};

use crate::cyclone::{DdsError, Participant, Reader, Writer};
use crate::discovery_info::{self, GidWidth, NODES_MAX, RosNode};
use crate::shared::Shared;
use crate::user_data::user_data;
use noctule_bridge::ages::Now;
use noctule_bridge::payload::pad;

/// Participants whose nodes are kept.
const PARTICIPANTS_MAX: usize = 1024;

/// Publishes and reads ROS 2's list of nodes (`ros_discovery_info`).
pub(crate) struct RosGraph {
    writer: Writer,
    reader: Reader,
    width: GidWidth,
    /// CDR of the list that was published last.
    written: Vec<u8>,
    /// Nodes by the GUID prefix of their participant.
    known: BTreeMap<[u8; 12], Vec<RosNode>>,
}

impl RosGraph {
    pub(crate) fn open(participant: &Participant) -> Result<RosGraph, DdsError> {
        let names = (discovery_info::TOPIC, discovery_info::TYPE);
        let (reliability, durability) = (Reliability::Reliable, Durability::TransientLocal);
        let qos = Qos { reliability, durability, depth: 1, ..Qos::default() };
        let user_data = user_data(Some(discovery_info::TYPE_HASH));
        let writer = participant.writer(names, &qos, &user_data)?;
        let reader = participant.reader(names, &qos, &user_data)?;
        let width =
            std::env::var("ROS_DISTRO").map_or(GidWidth::default(), |name| GidWidth::of_distribution(&name));
        Ok(RosGraph { writer, reader, width, written: Vec::new(), known: BTreeMap::new() })
    }

    /// Reader of other participants' lists.
    pub(crate) fn reader(&self) -> &Reader {
        &self.reader
    }

    /// Writes the list if it is another than the last one.
    pub(crate) fn write(&mut self, shared: &Shared, nodes: &[RosNode]) -> Result<(), DdsError> {
        let mut bytes = discovery_info::encode(shared.participant.whole_guid(), nodes, self.width);
        if nodes.len() > NODES_MAX {
            shared.notice_once(&format!(
                "ROS 2 is shown {NODES_MAX} nodes of the bus, which has {}",
                nodes.len()
            ));
        }
        pad(&mut bytes);
        if bytes != self.written {
            self.writer.write(&bytes, Now::read(&shared.node).wall_ns)?;
            self.written = bytes;
        }
        Ok(())
    }

    /// Processes what others have written, and forgets those that are gone. True if anything is different now.
    pub(crate) fn read(&mut self, is_there: impl Fn(&[u8; 12]) -> bool) -> Result<bool, DdsError> {
        let before = self.known.len();
        self.known.retain(|participant, _| is_there(participant));
        let mut is_new = self.known.len() != before;
        let known = &mut self.known;
        loop {
            let taken = self.reader.take(|sample| {
                // By the writer's GUID, not by the content: no participant speaks for others.
                let (Some(writer), Some((_, nodes))) =
                    (sample.participant, discovery_info::decode(sample.bytes))
                else {
                    return;
                };
                if known.len() < PARTICIPANTS_MAX || known.contains_key(&writer) {
                    is_new |= known.insert(writer, nodes.clone()).as_ref() != Some(&nodes);
                }
            })?;
            if taken == 0 {
                return Ok(is_new);
            }
        }
    }

    /// Nodes of the participants that are meant.
    pub(crate) fn nodes(&self, is_foreign: impl Fn(&[u8; 12]) -> bool) -> impl Iterator<Item = &RosNode> {
        let foreign = self.known.iter().filter(move |(participant, _)| is_foreign(participant));
        foreign.flat_map(|(_, nodes)| nodes)
    }

    /// Their names, in the order of the alphabet.
    pub(crate) fn names(&self, is_foreign: impl Fn(&[u8; 12]) -> bool) -> Vec<String> {
        let mut names: Vec<String> = self.nodes(is_foreign).map(RosNode::full_name).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

/// Nodes of the bus, to be listed in ROS 2.
#[derive(Default)]
pub(crate) struct BusNodes(BTreeMap<NodeId, RosNode>);

impl BusNodes {
    pub(crate) fn add(&mut self, node: NodeId, name: &str) {
        self.0.insert(node, RosNode::of_bus(name));
    }

    /// The bridge's writer in DDS that has what this node publishes.
    pub(crate) fn writes(&mut self, node: NodeId, writer: [u8; 16]) {
        self.0.entry(node).or_default().writers.push(writer);
    }

    /// The bridge's reader in DDS that has what this node subscribes to.
    pub(crate) fn reads(&mut self, node: NodeId, reader: [u8; 16]) {
        self.0.entry(node).or_default().readers.push(reader);
    }

    /// The nodes in an order that does not change.
    pub(crate) fn listed(self) -> Vec<RosNode> {
        self.0.into_values().filter(|node| !node.name.is_empty()).collect()
    }
}
