//! Bridges that join the same two networks, and which of them works.
//!
//! The name of a bridge's node says which DDS participant it is: `dds gateway DOMAIN GUID`. A bridge on the bus whose
//! participant is also seen in DDS joins the same two networks: a sibling. What it writes on either side came from
//! the other, so no bridge needs to carry it again; and one that works is enough.

use noctule::NodeId;

/// Nodes of bridges begin so.
const PREFIX: &str = "dds gateway ";

/// The number of a participant in DDS.
pub(crate) type ParticipantId = [u8; 12];

/// The name of a bridge's node.
pub(crate) fn node_name(domain: u32, participant: &ParticipantId) -> String {
    let digits: String = participant.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{PREFIX}{domain} {digits}")
}

/// The participant of the bridge whose node has this name; `None` if it is no bridge's.
pub(crate) fn participant_of(node_name: &str) -> Option<ParticipantId> {
    let (_, digits) = node_name.strip_prefix(PREFIX)?.split_once(' ')?;
    if digits.len() != 24 || !digits.is_ascii() {
        return None;
    }
    let mut participant = [0; 12];
    for (byte, at) in participant.iter_mut().zip((0..24).step_by(2)) {
        *byte = u8::from_str_radix(&digits[at..at + 2], 16).ok()?;
    }
    Some(participant)
}

/// Bridges of the bus that join the same two networks as this one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SiblingBridges {
    /// Participants of all bridges of the bus. What comes from one by DDS is seen there, and so a sibling's.
    named: Vec<ParticipantId>,
    /// Those that discovery has found in DDS.
    bridges: Vec<(NodeId, ParticipantId)>,
}

impl SiblingBridges {
    /// From the bus's nodes, by number and name, and DDS's participants.
    pub(crate) fn among<'a>(
        nodes: impl IntoIterator<Item = (NodeId, &'a str)>,
        participants: &[ParticipantId],
    ) -> SiblingBridges {
        let bridges = nodes.into_iter().filter_map(|(id, name)| Some((id, participant_of(name)?)));
        let mut bridges: Vec<(NodeId, ParticipantId)> = bridges.collect();
        let named = bridges.iter().map(|(_, participant)| *participant).collect();
        bridges.retain(|(_, participant)| participants.contains(participant));
        SiblingBridges { named, bridges }
    }

    pub(crate) fn has_node(&self, node: NodeId) -> bool {
        self.bridges.iter().any(|(id, _)| *id == node)
    }

    pub(crate) fn has_participant(&self, participant: &[u8]) -> bool {
        self.named.iter().any(|known| known == participant)
    }

    /// Whether this bridge leaves the work to another: to the one with the least number.
    pub(crate) fn stands_by(&self, me: NodeId) -> Option<NodeId> {
        self.bridges.iter().map(|(id, _)| *id).min().filter(|least| *least < me)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINE: NodeId = NodeId([5; 16]);

    #[test]
    fn a_bridge_is_known_by_its_nodes_name() {
        let participant = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 250, 255];
        let name = node_name(42, &participant);
        assert_eq!(name, "dds gateway 42 00010203040506070809faff");
        assert_eq!(participant_of(&name), Some(participant));
        for other in ["dds gateway", "dds gateway 0 ", "dds gateway 0 00é2030405060708090a0b", "camera"] {
            assert_eq!(participant_of(other), None, "{other}");
        }
    }

    #[test]
    fn only_a_bridge_that_is_seen_on_both_sides_is_a_sibling_and_the_least_works() {
        let (near, far) = ([1; 12], [2; 12]);
        let (less, more) = (NodeId([1; 16]), NodeId([9; 16]));
        let (near_name, far_name) = (node_name(0, &near), node_name(0, &far));
        let nodes = [(less, far_name.as_str()), (more, near_name.as_str()), (NodeId([0; 16]), "camera")];
        let siblings = SiblingBridges::among(nodes, &[near]);
        assert!(siblings.has_node(more) && !siblings.has_node(less));
        assert!(siblings.has_participant(&near) && !siblings.has_participant(&[3; 12]));
        assert_eq!(siblings.stands_by(MINE), None);
        assert_eq!(SiblingBridges::among(nodes, &[near, far]).stands_by(MINE), Some(less));
    }
}
