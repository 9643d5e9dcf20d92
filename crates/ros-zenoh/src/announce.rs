//! The tokens by which ROS 2 sees nodes and endpoints of the bus, and which of them are new or go.

use std::collections::{BTreeMap, BTreeSet};

use noctule::NodeId;
use noctule_bridge::names::ros_node;

use crate::key::TypedName;
use crate::qos::RosQos;
use crate::token::{Kind, Token, TokenEndpoint, TokenNode};

/// Tokens of one bridge; nodes and endpoints beyond are not shown to ROS 2, and counted.
pub const ANNOUNCED_MAX: usize = 16_384;

/// An endpoint of the bus that ROS 2 is to see.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Announced {
    /// Its node.
    pub node: NodeId,
    /// Publisher, subscription, server or client.
    pub kind: Kind,
    /// Its topic or service.
    pub name: TypedName,
    /// Hash of the type.
    pub hash: String,
    /// Offered or requested, as [`RosQos::text`] has it.
    pub qos: String,
}

/// Tokens to declare and to undeclare, by key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Nodes come before their endpoints.
    pub declare: Vec<String>,
    /// Tokens of nodes and endpoints that are gone.
    pub undeclare: Vec<String>,
}

/// Tokens that this session has declared.
#[derive(Clone, Debug)]
pub struct Announcements {
    domain: u32,
    zid: String,
    /// Nodes and endpoints are counted together from 0, and no number comes again.
    next: u64,
    nodes: BTreeMap<NodeId, Token>,
    endpoints: BTreeMap<Announced, Token>,
    left_out: usize,
}

impl Announcements {
    /// No announcements yet, of the session with this number.
    pub fn new(domain: u32, zid: &str) -> Announcements {
        let (nodes, endpoints) = (BTreeMap::new(), BTreeMap::new());
        Announcements { domain, zid: zid.to_owned(), next: 0, nodes, endpoints, left_out: 0 }
    }

    /// Makes what is announced the same as what is there: nodes by number and name, and endpoints of these nodes.
    pub fn follow(&mut self, nodes: &BTreeMap<NodeId, String>, endpoints: &BTreeSet<Announced>) -> Changes {
        let mut changes = Changes::default();
        let Announcements { domain, zid, next, .. } = self;
        let gone = |changes: &mut Changes, token: &Token| changes.undeclare.push(token.key());
        self.endpoints.retain(|of, token| {
            let stays = endpoints.contains(of) && nodes.contains_key(&of.node);
            if !stays {
                gone(&mut changes, token);
            }
            stays
        });
        self.nodes.retain(|id, token| {
            let stays = nodes.contains_key(id);
            if !stays {
                gone(&mut changes, token);
            }
            stays
        });
        self.left_out = 0;
        let mut room = ANNOUNCED_MAX.saturating_sub(self.nodes.len() + self.endpoints.len());
        let mut number = || {
            *next += 1;
            *next - 1
        };
        for (id, name) in nodes {
            if self.nodes.contains_key(id) {
                continue;
            }
            if room == 0 {
                self.left_out += 1;
                continue;
            }
            room -= 1;
            let (namespace, name) = ros_node(name);
            let id_of = number();
            let (zid, enclave) = (zid.clone(), "/".to_owned());
            let node = TokenNode { domain: *domain, zid, nid: id_of, enclave, namespace, name };
            let token = Token { node, id: id_of, endpoint: None };
            changes.declare.push(token.key());
            self.nodes.insert(*id, token);
        }
        for of in endpoints {
            let Some(node) = self.nodes.get(&of.node) else { continue };
            if self.endpoints.contains_key(of) {
                continue;
            }
            let Some(qos) = RosQos::parse(&of.qos).filter(|_| room > 0) else {
                self.left_out += 1;
                continue;
            };
            room -= 1;
            let endpoint = TokenEndpoint { kind: of.kind, name: of.name.clone(), hash: of.hash.clone(), qos };
            let token = Token { node: node.node.clone(), id: number(), endpoint: Some(endpoint) };
            changes.declare.push(token.key());
            self.endpoints.insert(of.clone(), token);
        }
        changes
    }

    /// Nodes and endpoints that had no room.
    pub fn left_out(&self) -> usize {
        self.left_out
    }

    /// The numbers by which samples of a topic name their publishers on the bus, under one hash.
    pub fn gids(&self, name: &TypedName, hash: &str) -> BTreeMap<NodeId, [u8; 16]> {
        let of_topic = self
            .endpoints
            .iter()
            .filter(|(of, _)| of.kind == Kind::Publisher && of.hash == hash && of.name == *name);
        of_topic.map(|(of, token)| (of.node, token.gid())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::NO_HASH;

    fn writer(node: u8, topic: &str) -> Announced {
        Announced {
            node: NodeId([node; 16]),
            kind: Kind::Publisher,
            name: TypedName::new(topic, "std_msgs/msg/String").unwrap(),
            hash: NO_HASH.into(),
            qos: RosQos::default().text(),
        }
    }

    #[test]
    fn nodes_and_endpoints_have_numbers_that_stay_and_tokens_that_go_with_them() {
        let mut announced = Announcements::new(5, "ab");
        let nodes = BTreeMap::from([
            (NodeId([1; 16]), "arm/left hand".to_owned()),
            (NodeId([2; 16]), "9".to_owned()),
        ]);
        let both = BTreeSet::from([writer(1, "/a"), writer(2, "/a")]);
        let first = announced.follow(&nodes, &both);
        let tail = "std_msgs::msg::dds_::String_/TypeHashNotSupported/::,:,:,:,,";
        assert_eq!(
            first.declare,
            [
                "@ros2_lv/5/ab/0/0/NN/%/%arm/left_hand".to_owned(),
                "@ros2_lv/5/ab/1/1/NN/%/%/_9".to_owned(),
                format!("@ros2_lv/5/ab/0/2/MP/%/%arm/left_hand/%a/{tail}"),
                format!("@ros2_lv/5/ab/1/3/MP/%/%/_9/%a/{tail}"),
            ]
        );
        for key in &first.declare {
            assert_eq!(Token::parse(key).unwrap().key(), *key);
        }
        assert_eq!(announced.follow(&nodes, &both), Changes::default());
        let name = writer(1, "/a").name;
        assert_eq!(announced.gids(&name, NO_HASH)[&NodeId([2; 16])], crate::token::gid_of(&first.declare[3]));
        // The node goes with its endpoints, whatever is wanted of it.
        let one = BTreeMap::from([(NodeId([2; 16]), "9".to_owned())]);
        let second = announced.follow(&one, &both);
        assert_eq!(second.undeclare, [first.declare[2].clone(), first.declare[0].clone()]);
        assert_eq!(announced.gids(&name, NO_HASH).len(), 1);
        let third = announced.follow(&nodes, &both);
        assert!(third.declare[0].contains("/4/4/NN/"), "no number comes again: {third:?}");
    }

    #[test]
    fn what_has_no_room_is_counted() {
        let mut announced = Announcements::new(0, "ab");
        let nodes = BTreeMap::from([(NodeId([1; 16]), "a".to_owned())]);
        let many: BTreeSet<Announced> =
            (0..ANNOUNCED_MAX + 9).map(|at| writer(1, &format!("/t{at}"))).collect();
        assert_eq!(announced.follow(&nodes, &many).declare.len(), ANNOUNCED_MAX);
        assert_eq!(announced.left_out(), 10);
        assert_eq!(announced.follow(&nodes, &BTreeSet::new()).undeclare.len(), ANNOUNCED_MAX - 1);
        assert_eq!(announced.left_out(), 0);
    }
}
