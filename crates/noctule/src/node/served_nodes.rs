//! To which nodes of other hosts the samples of a writer go: those with a reader that is not relayed.

use std::collections::BTreeMap;

use noctule_discovery::NodeId;

use super::guid::Guid;

/// The readers of one writer on other hosts.
#[derive(Debug, Default)]
pub(super) struct ServedNodes {
    /// Whether each is relayed.
    readers: BTreeMap<Guid, bool>,
    /// Those that samples are sent to, in rising order.
    nodes: Vec<NodeId>,
}

/// A change for a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shift {
    /// Nothing.
    None,
    /// Samples go there from now on.
    Came,
    /// They no longer do.
    Went,
}

impl ServedNodes {
    /// A reader has come, or is described anew; whether it gets the samples from another node of its host.
    pub(super) fn insert(&mut self, reader: Guid, relayed: bool) -> Shift {
        self.readers.insert(reader, relayed);
        self.settle(reader.0)
    }

    /// A reader has gone; `None` if it never was here.
    pub(super) fn remove(&mut self, reader: Guid) -> Option<Shift> {
        self.readers.remove(&reader)?;
        Some(self.settle(reader.0))
    }

    /// Whether this reader is here, and is not relayed.
    pub(super) fn serves(&self, reader: Guid) -> bool {
        self.readers.get(&reader) == Some(&false)
    }

    pub(super) fn nodes(&self) -> &[NodeId] {
        &self.nodes
    }

    fn settle(&mut self, node: NodeId) -> Shift {
        let is_wanted = self.readers.iter().any(|((its_node, _), relayed)| *its_node == node && !relayed);
        match (self.nodes.binary_search(&node), is_wanted) {
            (Err(at), true) => {
                self.nodes.insert(at, node);
                Shift::Came
            }
            (Ok(at), false) => {
                self.nodes.remove(at);
                Shift::Went
            }
            _ => Shift::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use noctule_discovery::EndpointId;

    use super::*;

    fn reader(node: u8, number: u32) -> Guid {
        (NodeId([node; 16]), EndpointId(number))
    }

    #[test]
    fn a_node_is_served_as_long_as_one_of_its_readers_is_not_relayed() {
        let mut served_nodes = ServedNodes::default();
        assert_eq!(served_nodes.insert(reader(3, 1), false), Shift::Came);
        assert_eq!(served_nodes.insert(reader(1, 1), true), Shift::None);
        assert_eq!(served_nodes.insert(reader(3, 2), false), Shift::None);
        assert_eq!(served_nodes.insert(reader(3, 1), true), Shift::None);
        assert_eq!(served_nodes.nodes(), [reader(3, 1).0]);
        assert!(!served_nodes.serves(reader(3, 1)) && served_nodes.serves(reader(3, 2)));
        assert_eq!(served_nodes.remove(reader(3, 2)), Some(Shift::Went));
        assert_eq!(served_nodes.remove(reader(3, 2)), None);
        assert_eq!(served_nodes.insert(reader(1, 1), false), Shift::Came);
        assert_eq!(served_nodes.nodes(), [reader(1, 1).0]);
    }
}
