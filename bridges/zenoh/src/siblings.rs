//! Bridges that join the same two networks, and which of them works.
//!
//! The name of a bridge's node says which session of Zenoh it has: `zenoh gateway DOMAIN ZID`. A bridge on the bus whose session is
//! also seen in Zenoh joins the same two networks: one that works is enough.

use std::collections::BTreeSet;

use noctule::NodeId;
use noctule_ros_zenoh::token::is_zid;

/// Nodes of bridges begin so.
const PREFIX: &str = "zenoh gateway ";

/// The name of a bridge's node.
pub(crate) fn node_name(domain: u32, zid: &str) -> String {
    format!("{PREFIX}{domain} {zid}")
}

/// The session of the bridge whose node has this name; `None` if it is no bridge's.
pub(crate) fn zid_of(node_name: &str) -> Option<&str> {
    let (_, zid) = node_name.strip_prefix(PREFIX)?.split_once(' ')?;
    is_zid(zid).then_some(zid)
}

/// Whether a node of the bus is a bridge's, by its name.
pub(crate) fn is_bridge(name: &str) -> bool {
    zid_of(name).is_some()
}

/// Bridges of the bus that join the same two networks as this one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Siblings {
    pub(crate) zids: BTreeSet<String>,
    pub(crate) nodes: BTreeSet<NodeId>,
}

impl Siblings {
    /// From the bus's nodes, by number and name, and the gateways that are seen in Zenoh.
    pub(crate) fn among<'a>(
        nodes: impl IntoIterator<Item = (NodeId, &'a str)>,
        gateways: &BTreeSet<String>,
    ) -> Siblings {
        let mut siblings = Siblings::default();
        for (id, name) in nodes {
            if let Some(zid) = zid_of(name).filter(|zid| gateways.contains(*zid)) {
                siblings.zids.insert(zid.to_owned());
                siblings.nodes.insert(id);
            }
        }
        siblings
    }

    /// Whether this bridge leaves the work to another: to the one with the least number.
    pub(crate) fn stands_by(&self, me: NodeId) -> Option<NodeId> {
        self.nodes.first().copied().filter(|least| *least < me)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_bridge_that_is_seen_on_both_sides_is_a_sibling_and_the_least_works() {
        let name = node_name(3, "ab12");
        assert_eq!((name.as_str(), zid_of(&name)), ("zenoh gateway 3 ab12", Some("ab12")));
        assert!(!is_bridge("zenoh gateway 0 x*") && !is_bridge("camera"));
        let (near, far) = (NodeId([1; 16]), NodeId([9; 16]));
        let nodes = [(near, "zenoh gateway 0 aa"), (far, "zenoh gateway 0 bb"), (NodeId([0; 16]), "camera")];
        let siblings = Siblings::among(nodes, &["bb".to_owned()].into());
        assert_eq!((siblings.stands_by(NodeId([5; 16])), siblings.nodes.contains(&near)), (None, false));
        let both = Siblings::among(nodes, &["aa".to_owned(), "bb".to_owned()].into());
        assert_eq!(both.stands_by(NodeId([5; 16])), Some(near));
    }
}
