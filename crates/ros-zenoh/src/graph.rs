//! Which nodes and endpoints are there in ROS 2, from the tokens that came and went.

use std::collections::{BTreeMap, BTreeSet};

use crate::site;
use crate::token::{Token, TokenEndpoint};

/// Tokens that are kept; further ones are counted.
pub const TOKENS_MAX: usize = 65_536;

/// Counts of the tokens that were not accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GraphCounters {
    /// Keys that are no tokens.
    pub unreadable: u64,
    /// Tokens beyond [`TOKENS_MAX`].
    pub full: u64,
}

/// An endpoint of another session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteEndpoint {
    /// The session's number.
    pub zid: String,
    /// Its kind, topic, type hash and QoS.
    pub endpoint: TokenEndpoint,
    /// Identity, by which its samples name it.
    pub gid: [u8; 16],
}

/// The nodes and endpoints that are there.
#[derive(Clone, Debug)]
pub struct Graph {
    domain: u32,
    own_zid: String,
    tokens: BTreeMap<String, Token>,
    gateways: BTreeSet<String>,
    counters: GraphCounters,
    version: u64,
}

impl Graph {
    /// An empty graph of one domain; the own session's tokens are left out.
    pub fn new(domain: u32, own_zid: &str) -> Graph {
        Graph {
            domain,
            own_zid: own_zid.to_owned(),
            tokens: BTreeMap::new(),
            gateways: BTreeSet::new(),
            counters: GraphCounters::default(),
            version: 0,
        }
    }

    /// A token of ROS 2's, or a gateway's of ours, has come or gone. The key may be anything.
    pub fn handle(&mut self, key: &str, is_there: bool) {
        if let Some((domain, zid)) = site::parse_presence(key) {
            if domain == self.domain && zid != self.own_zid {
                self.handle_gateway(zid, is_there);
            }
            return;
        }
        if !is_there {
            self.version += u64::from(self.tokens.remove(key).is_some());
            return;
        }
        let Some(token) = Token::parse(key) else {
            self.counters.unreadable = self.counters.unreadable.saturating_add(1);
            return;
        };
        if token.node.domain != self.domain || token.node.zid == self.own_zid {
            return;
        }
        if self.tokens.len() >= TOKENS_MAX && !self.tokens.contains_key(key) {
            self.counters.full = self.counters.full.saturating_add(1);
            return;
        }
        self.version += u64::from(self.tokens.insert(key.to_owned(), token).is_none());
    }

    fn handle_gateway(&mut self, zid: &str, is_there: bool) {
        let is_new = match is_there {
            true if self.gateways.len() >= TOKENS_MAX => {
                self.counters.full = self.counters.full.saturating_add(1);
                false
            }
            true => self.gateways.insert(zid.to_owned()),
            false => self.gateways.remove(zid),
        };
        self.version += u64::from(is_new);
    }

    /// Every entity has gone: the connection is lost, and those that are there will be announced again.
    pub fn clear(&mut self) {
        self.tokens.clear();
        self.gateways.clear();
        self.version += 1;
    }

    /// Another number after each change.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Counts of the tokens that were not accepted.
    pub fn counters(&self) -> GraphCounters {
        self.counters
    }

    /// Endpoints of others, but for those of the sessions in `except`.
    pub fn endpoints(&self, except: &BTreeSet<String>) -> Vec<RemoteEndpoint> {
        let foreign = self.tokens.iter().filter(|(_, token)| !except.contains(&token.node.zid));
        let endpoint = |(key, token): (&String, &Token)| {
            let endpoint = token.endpoint.clone()?;
            Some(RemoteEndpoint { zid: token.node.zid.clone(), endpoint, gid: crate::token::gid_of(key) })
        };
        foreign.filter_map(endpoint).collect()
    }

    /// Full names of the nodes of others, in the order of the alphabet.
    pub fn nodes(&self, except: &BTreeSet<String>) -> Vec<String> {
        let nodes = self.tokens.values().filter(|token| !except.contains(&token.node.zid));
        let names: BTreeSet<String> = nodes.map(|token| token.node.full_name()).collect();
        names.into_iter().collect()
    }

    /// Sessions that are gateways of Noctule.
    pub fn gateways(&self) -> &BTreeSet<String> {
        &self.gateways
    }

    /// Other sessions that have tokens.
    pub fn sessions(&self) -> usize {
        let zids: BTreeSet<&str> = self.tokens.values().map(|token| token.node.zid.as_str()).collect();
        zids.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TALKER: &str = "@ros2_lv/0/34cb/0/11/MP/%/%/talker/%chatter/std_msgs::msg::dds_::String_/TypeHashNotSupported/::,7:,:,:,,";

    #[test]
    fn a_node_that_comes_is_there_and_one_that_goes_is_not() {
        let mut graph = Graph::new(0, "aa");
        let none = BTreeSet::new();
        graph.handle(TALKER, true);
        graph.handle(TALKER, true);
        graph.handle("@ros2_lv/0/34cb/0/0/NN/%/%/talker", true);
        assert_eq!((graph.nodes(&none), graph.version()), (vec!["/talker".to_owned()], 2));
        let endpoints = graph.endpoints(&none);
        assert_eq!((endpoints.len(), endpoints[0].gid), (1, Token::parse(TALKER).unwrap().gid()));
        assert!(graph.endpoints(&["34cb".to_owned()].into()).is_empty());
        // Of oneself, of another domain.
        graph.handle(&TALKER.replace("34cb", "aa"), true);
        graph.handle(&TALKER.replace("lv/0", "lv/1"), true);
        graph.handle(TALKER, false);
        assert_eq!((graph.endpoints(&none), graph.nodes(&none).len(), graph.version()), (Vec::new(), 1, 3));
        graph.handle(&site::presence(0, "bb"), true);
        graph.handle(&site::presence(0, "aa"), true);
        assert_eq!(graph.gateways().iter().collect::<Vec<_>>(), ["bb"]);
        graph.clear();
        assert!(graph.gateways().is_empty() && graph.nodes(&none).is_empty());
    }

    #[test]
    fn a_flood_of_tokens_is_counted_and_a_node_that_went_makes_room() {
        let mut graph = Graph::new(0, "aa");
        let token = |id: usize| TALKER.replace("/11/", &format!("/{id}/"));
        (0..TOKENS_MAX + 3).for_each(|id| graph.handle(&token(id), true));
        assert_eq!((graph.tokens.len(), graph.counters().full), (TOKENS_MAX, 3));
        graph.handle(&token(0), false);
        graph.handle(&token(TOKENS_MAX), true);
        assert_eq!((graph.tokens.len(), graph.counters().full), (TOKENS_MAX, 3));
    }

    proptest! {
        #[test]
        fn keys_that_are_no_tokens_are_counted(keys in proptest::collection::vec("@ros2_lv/.{0,40}", 0..20)) {
            let mut graph = Graph::new(0, "aa");
            keys.iter().for_each(|key| graph.handle(key, true));
            let counted = graph.counters().unreadable as usize;
            prop_assert!(counted + graph.tokens.len() <= keys.len());
        }
    }
}
