//! The bytes of ROS 2's list of its nodes: topic `ros_discovery_info`, type `rmw_dds_common/msg/ParticipantEntitiesInfo`, one sample for
//! each participant, written whole at each change.
//!
//! CDR: the participant's number, then a sequence of nodes, each with its namespace, its name, and the numbers of its readers and of
//! its writers. A number has 16 bytes, in ROS 2 Humble and before 24, of which the last 8 are zero.

use std::collections::BTreeMap;

use noctule::EndpointKind;
use noctule_bridge::behind::NodeBehind;
use noctule_bridge::names::{bus_topic, ros_node, service_end};

use crate::plan::DdsEndpoint;

/// Topic of the list, without ROS 2's prefix.
pub const TOPIC: &str = "ros_discovery_info";
/// Its type in DDS.
pub const TYPE: &str = "rmw_dds_common::msg::dds_::ParticipantEntitiesInfo_";
/// ROS 2's hash of the type, since Iron.
pub const TYPE_HASH: &str = "RIHS01_91a0593bacdcc50ea9bdcf849a938b128412cc1ea821245c663bcd26f83c295e";
/// Nodes of one participant that are written or read; further ones are left out.
pub const NODES_MAX: usize = 4096;
/// Longest namespace or name that is read, in bytes (rmw allows 255).
const NAME_BYTES_MAX: usize = 255;
/// Encapsulation: CDR of version 1, little-endian.
const HEADER: [u8; 4] = [0, 1, 0, 0];

/// How many bytes a number has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GidWidth {
    /// ROS 2 Iron and later.
    #[default]
    Bytes16,
    /// ROS 2 Humble and before.
    Bytes24,
}

impl GidWidth {
    /// The width that a ROS 2 distribution uses, by its name (`ROS_DISTRO`); the newer one for unknown names.
    pub fn of_distribution(name: &str) -> GidWidth {
        match name {
            "foxy" | "galactic" | "humble" => GidWidth::Bytes24,
            _ => GidWidth::Bytes16,
        }
    }

    fn bytes(self) -> usize {
        match self {
            GidWidth::Bytes16 => 16,
            GidWidth::Bytes24 => 24,
        }
    }
}

/// A node of ROS 2 and the numbers of its endpoints.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RosNode {
    /// `/` or `/a/b`.
    pub namespace: String,
    /// Name without slashes.
    pub name: String,
    /// Its readers.
    pub readers: Vec<[u8; 16]>,
    /// Its writers.
    pub writers: Vec<[u8; 16]>,
}

impl RosNode {
    /// Full name, as `ros2 node list` shows it.
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.namespace.trim_end_matches('/'), self.name)
    }

    /// A node of the bus under [a name that ROS 2 allows](ros_node).
    pub fn of_bus(name: &str) -> RosNode {
        let (namespace, name) = ros_node(name);
        RosNode { namespace, name, ..RosNode::default() }
    }
}

/// What nodes have by the bus's names. Endpoints that discovery has not found yet are left out; so are clients of services, and servers'
/// writers of replies, which their readers of requests stand for.
pub fn by_names<'a>(
    nodes: impl IntoIterator<Item = &'a RosNode>,
    endpoints: &[DdsEndpoint],
) -> Vec<NodeBehind> {
    let by_guid: BTreeMap<[u8; 16], &DdsEndpoint> =
        endpoints.iter().map(|endpoint| (endpoint.guid, endpoint)).collect();
    let named = |node: &RosNode| {
        let (namespace, name) = (node.namespace.clone(), node.name.clone());
        let mut named = NodeBehind { namespace, name, ..NodeBehind::default() };
        for endpoint in node.readers.iter().chain(&node.writers).filter_map(|guid| by_guid.get(guid)) {
            let is_writer = endpoint.kind == EndpointKind::Writer;
            match service_end(&endpoint.topic) {
                Some((service, false)) if !is_writer => named.serves.push(service),
                Some(_) => {}
                None if is_writer => named.publishes.push(bus_topic(&endpoint.topic)),
                None => named.subscribes.push(bus_topic(&endpoint.topic)),
            }
        }
        for names in [&mut named.publishes, &mut named.subscribes, &mut named.serves] {
            names.sort_unstable();
            names.dedup();
        }
        named
    };
    nodes.into_iter().map(named).collect()
}

/// A participant's sample: CDR with its encapsulation header.
pub fn encode(participant: &[u8; 16], nodes: &[RosNode], width: GidWidth) -> Vec<u8> {
    let mut bytes = HEADER.to_vec();
    let gid = |bytes: &mut Vec<u8>, gid: &[u8; 16]| {
        bytes.extend(gid);
        bytes.resize(bytes.len() + width.bytes() - gid.len(), 0);
    };
    gid(&mut bytes, participant);
    let nodes = &nodes[..nodes.len().min(NODES_MAX)];
    bytes.extend((nodes.len() as u32).to_le_bytes());
    for node in nodes {
        for text in [&node.namespace, &node.name] {
            // The header has four bytes, so places in the sample and in the buffer are aligned alike.
            bytes.resize(bytes.len().next_multiple_of(4), 0);
            bytes.extend((text.len() as u32 + 1).to_le_bytes());
            bytes.extend(text.as_bytes());
            bytes.push(0);
        }
        for gids in [&node.readers, &node.writers] {
            bytes.resize(bytes.len().next_multiple_of(4), 0);
            bytes.extend((gids.len() as u32).to_le_bytes());
            gids.iter().for_each(|number| gid(&mut bytes, number));
        }
    }
    bytes
}

/// A participant's number and nodes.
pub type Participant = ([u8; 16], Vec<RosNode>);

/// A participant's list; `None` if the bytes, which may be anything, are no such sample. Of the two widths of numbers the
/// one is taken that fits to the end.
pub fn decode(bytes: &[u8]) -> Option<Participant> {
    [GidWidth::Bytes16, GidWidth::Bytes24].into_iter().find_map(|width| decode_as(bytes, width))
}

fn decode_as(bytes: &[u8], width: GidWidth) -> Option<Participant> {
    if !matches!(bytes, [0, 1, _, _, ..]) {
        return None;
    }
    let mut rest = Rest { bytes, at: HEADER.len() };
    let participant = rest.gid(width)?;
    let count = rest.count()?;
    let mut nodes = Vec::new();
    for _ in 0..count {
        // Before anything is kept for it.
        if nodes.len() == NODES_MAX {
            return None;
        }
        let (namespace, name) = (rest.text()?, rest.text()?);
        let (readers, writers) = (rest.gids(width)?, rest.gids(width)?);
        nodes.push(RosNode { namespace, name, readers, writers });
    }
    // Padding to a multiple of four, no more.
    (bytes.len() - rest.at < 4).then_some((participant, nodes))
}

/// Cursor over the bytes of a message that are not read yet.
struct Rest<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Rest<'_> {
    fn take(&mut self, length: usize) -> Option<&[u8]> {
        let taken = self.bytes.get(self.at..self.at.checked_add(length)?)?;
        self.at += length;
        Some(taken)
    }

    fn count(&mut self) -> Option<usize> {
        self.at = self.at.next_multiple_of(4);
        let bytes = self.take(4)?.try_into().ok()?;
        usize::try_from(u32::from_le_bytes(bytes)).ok()
    }

    fn text(&mut self) -> Option<String> {
        let length = self.count()?;
        if length > NAME_BYTES_MAX + 1 {
            return None;
        }
        let (zero, text) = self.take(length)?.split_last()?;
        (*zero == 0).then(|| std::str::from_utf8(text).ok().map(str::to_owned))?
    }

    fn gid(&mut self, width: GidWidth) -> Option<[u8; 16]> {
        let (gid, zeros) = self.take(width.bytes())?.split_at_checked(16)?;
        if zeros.iter().any(|byte| *byte != 0) {
            return None;
        }
        gid.try_into().ok()
    }

    fn gids(&mut self, width: GidWidth) -> Option<Vec<[u8; 16]>> {
        let count = self.count()?;
        // Nothing is allocated for more than there are bytes.
        (0..count).map(|_| self.gid(width)).collect()
    }
}

#[cfg(test)]
mod tests;
