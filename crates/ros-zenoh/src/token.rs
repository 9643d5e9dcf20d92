//! Liveliness tokens: each node and each endpoint of ROS 2 declares one, and all together are its graph.
//!
//! ```text
//! @ros2_lv/<domain>/<zid>/<nid>/<id>/<kind>/<enclave>/<namespace>/<node>[/<topic>/<type>/<hash>/<qos>[/…]]
//! ```
//!
//! Within a part `%` replaces `/`. Lyrical adds a part that names its ways for buffers; what comes after the known parts is ignored.

use crate::key::{KEY_BYTES_MAX, TypedName, decimal, is_chunk, is_hash};
use crate::qos::RosQos;

/// The first part of all tokens.
pub const PREFIX: &str = "@ros2_lv";

/// Kind of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// `MP`: it publishes a topic.
    Publisher,
    /// `MS`: it subscribes to a topic.
    Subscription,
    /// `SS`: it serves a service.
    Server,
    /// `SC`: it calls a service.
    Client,
}

impl Kind {
    const ALL: [Kind; 4] = [Kind::Publisher, Kind::Subscription, Kind::Server, Kind::Client];

    fn word(self) -> &'static str {
        match self {
            Kind::Publisher => "MP",
            Kind::Subscription => "MS",
            Kind::Server => "SS",
            Kind::Client => "SC",
        }
    }
}

/// A node, and the session it belongs to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TokenNode {
    /// `ROS_DOMAIN_ID`.
    pub domain: u32,
    /// The session's number as Zenoh prints it: hexadecimal digits.
    pub zid: String,
    /// The node's number in its session.
    pub nid: u64,
    /// `/` or `/a/b`: where its security files are; `/` without security.
    pub enclave: String,
    /// `/` or `/a/b`.
    pub namespace: String,
    /// Name without slashes.
    pub name: String,
}

impl TokenNode {
    /// Full name, as `ros2 node list` shows it.
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.namespace.trim_end_matches('/'), self.name)
    }
}

/// Description of an endpoint in a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenEndpoint {
    /// Publisher, subscription, server or client.
    pub kind: Kind,
    /// Its topic or service.
    pub name: TypedName,
    /// Hash of its type, or of its service.
    pub hash: String,
    /// Offered or requested.
    pub qos: RosQos,
}

/// A token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// The node.
    pub node: TokenNode,
    /// The number of the endpoint, or of the node, in its session.
    pub id: u64,
    /// `None`: the node's own token.
    pub endpoint: Option<TokenEndpoint>,
}

impl Token {
    /// The key under which it is declared.
    pub fn key(&self) -> String {
        let TokenNode { domain, zid, nid, enclave, namespace, name } = &self.node;
        let kind = self.endpoint.as_ref().map_or("NN", |endpoint| endpoint.kind.word());
        let (enclave, namespace) = (mangle(enclave), mangle(namespace));
        let node = format!("{PREFIX}/{domain}/{zid}/{nid}/{}/{kind}/{enclave}/{namespace}/{name}", self.id);
        let Some(TokenEndpoint { name, hash, qos, .. }) = &self.endpoint else { return node };
        format!("{node}/{}/{}/{hash}/{}", mangle(&name.name), name.type_in_key(), qos.text())
    }

    /// Reads a token's key, which may be anything.
    pub fn parse(key: &str) -> Option<Token> {
        if key.len() > KEY_BYTES_MAX {
            return None;
        }
        let mut parts = key.split('/');
        let mut part = || parts.next().filter(|part| !part.is_empty());
        if part()? != PREFIX {
            return None;
        }
        let (domain, zid, nid, id) = (decimal(part()?)?, part()?, decimal(part()?)?, decimal(part()?)?);
        let (kind, enclave, namespace, name) = (part()?, part()?, part()?, part()?);
        if !is_zid(zid) || !is_chunk(name) {
            return None;
        }
        let (zid, name) = (zid.to_owned(), name.to_owned());
        let (enclave, namespace) = (path(enclave)?, path(namespace)?);
        let node = TokenNode { domain, zid, nid, enclave, namespace, name };
        if kind == "NN" {
            return Some(Token { node, id, endpoint: None });
        }
        let kind = Kind::ALL.into_iter().find(|known| known.word() == kind)?;
        let (topic, mangled_type, hash, qos) = (part()?, part()?, part()?, part()?);
        let topic = topic.replace('%', "/");
        let name = TypedName::from_zenoh(topic.strip_prefix('/')?, mangled_type)?;
        let qos = RosQos::parse(qos)?;
        let endpoint = TokenEndpoint { kind, name, hash: is_hash(hash).then(|| hash.to_owned())?, qos };
        Some(Token { node, id, endpoint: Some(endpoint) })
    }

    /// The number by which samples name their publisher: XXH3-128 of the token's key.
    pub fn gid(&self) -> [u8; 16] {
        gid_of(&self.key())
    }
}

/// The number of whom this is the token's key.
pub fn gid_of(key: &str) -> [u8; 16] {
    let hash = twox_hash::XxHash3_128::oneshot(key.as_bytes());
    // The low half first, each half in little-endian order: the whole in little-endian order.
    hash.to_le_bytes()
}

/// Whether this is a session's number as Zenoh prints it.
pub fn is_zid(text: &str) -> bool {
    (1..=32).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

fn mangle(text: &str) -> String {
    text.replace('/', "%")
}

/// `/` or `/a/b` from its mangled form.
fn path(text: &str) -> Option<String> {
    let path = text.replace('%', "/");
    let rest = path.strip_prefix('/')?;
    let is_path = rest.is_empty() || rest.split('/').all(is_chunk);
    is_path.then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::NO_HASH;
    use proptest::prelude::*;

    const NODE: &str = "@ros2_lv/0/34cb94e49fb225435b22fa2b9721131d/0/0/NN/%/%/talker";
    const CHATTER: &str = "@ros2_lv/0/34cb94e49fb225435b22fa2b9721131d/0/11/MP/%/%/talker/%chatter/std_msgs::msg::dds_::String_/\
        RIHS01_df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18/::,7:,:,:,,";

    #[test]
    fn tokens_of_ros_2_are_read_and_written_again() {
        let node = Token::parse(NODE).unwrap();
        assert_eq!((node.node.full_name().as_str(), node.endpoint.is_none()), ("/talker", true));
        let chatter = Token::parse(CHATTER).unwrap();
        let endpoint = chatter.endpoint.as_ref().unwrap();
        assert_eq!((endpoint.kind, endpoint.qos.depth), (Kind::Publisher, 7));
        assert_eq!(endpoint.name, TypedName::new("/chatter", "std_msgs/msg/String").unwrap());
        for text in [NODE, CHATTER] {
            assert_eq!(Token::parse(text).unwrap().key(), text);
        }
        let humble = CHATTER.replace(&endpoint.hash, NO_HASH).replace("/%/%/", "/%enclave/%a%b/");
        let humble = Token::parse(&humble).unwrap();
        assert_eq!(humble.node.full_name(), "/a/b/talker");
        assert_eq!(humble.endpoint.unwrap().hash, NO_HASH);
    }

    #[test]
    fn what_lyrical_adds_is_ignored() {
        let more = Token::parse(&format!("{CHATTER}/backends:cpu:")).unwrap();
        assert_eq!(more.key(), CHATTER);
    }

    #[test]
    fn a_gid_is_the_hash_of_the_token() {
        // XXH3-128 of nothing, as its reference implementation has it: 99aa06d3014798d86001c324468d497f.
        let mut expected = 0x99aa_06d3_0147_98d8_6001_c324_468d_497f_u128.to_le_bytes();
        assert_eq!(gid_of(""), expected);
        expected = Token::parse(CHATTER).unwrap().gid();
        assert_eq!(expected, gid_of(CHATTER));
    }

    #[test]
    fn what_is_no_token_is_refused() {
        for (from, to) in [
            ("@ros2_lv", "@ros2"),
            ("/0/34", "/-1/34"),
            ("/0/34", "/99999999999/34"),
            ("34cb", "34CB"),
            ("/11/", "/x/"),
            ("/MP/", "/MX/"),
            ("/%/%/", "//%/"),
            ("/%/%/", "/a/%/"),
            ("talker", "t*"),
            ("%chatter", "chatter"),
            ("%chatter", "%%"),
            ("::msg::", "::"),
            ("RIHS01_d", "RIHS01_x"),
            ("::,7:", "::7:"),
        ] {
            assert_eq!(Token::parse(&CHATTER.replacen(from, to, 1)), None, "{from} {to}");
        }
        assert_eq!(Token::parse(&format!("{CHATTER}/{}", "x".repeat(KEY_BYTES_MAX))), None);
    }

    proptest! {
        #[test]
        fn any_key_is_read_or_refused(text in ".{0,99}", at in 0..CHATTER.len(), with in "[/%:,@*a-z0-9]{0,3}", cut in 0_usize..5) {
            let end = (at + cut).min(CHATTER.len());
            let near = format!("{}{with}{}", &CHATTER[..at], &CHATTER[end..]);
            for text in [text, near] {
                if let Some(token) = Token::parse(&text) {
                    prop_assert_eq!(Token::parse(&token.key()), Some(token));
                }
            }
        }
    }
}
