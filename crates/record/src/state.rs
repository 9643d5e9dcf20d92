//! The system that a recording is of, beside its samples: every node's clock, the links between nodes, what does not match, and which nodes
//! publish and read. A recorder writes such a record every two seconds. Bytes: `docs/spec/recording.md`.

use serde::{Deserialize, Serialize};

/// Opcode of the record, which readers of MCAP that do not know it step over.
pub const STATE_OPCODE: u8 = 0xA8;
/// Version of its content.
const VERSION: u8 = 1;
/// Bytes before the text: version, 3 zeros, time.
const HEAD_BYTES: usize = 12;
/// Nodes, links, mismatches, or publishers and readers of a record; of more, these come first.
pub const ENTRIES_MAX: usize = 1_024;

/// Snapshot of a running system: nodes, links, mismatches.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SystemState {
    /// Nodes, without the one that looks.
    pub nodes: Vec<NodeState>,
    /// Links between nodes of different hosts, each as the node that it leaves from knows it.
    pub links: Vec<LinkState>,
    /// Writers and readers of a topic that get nothing from each other.
    pub mismatches: Vec<Mismatch>,
    /// In a recording: publishers and readers that came since the last record, and once a minute all of them.
    pub ends: Vec<TopicEnd>,
}

/// A node, its clock, and the link between it and the one that looks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeState {
    /// Number of the node.
    pub id: String,
    /// Name of the node.
    pub name: String,
    /// Address of the node.
    pub address: String,
    /// Whether it runs on the host of the one that looks, and so by the same clock.
    pub same_host: bool,
    /// Its clock; `None` on the same host, or if nothing is known of it.
    pub clock: Option<ClockState>,
    /// Round trip of the last ping, ms.
    pub rtt_ms: Option<f64>,
    /// The least round trip, ms.
    pub rtt_min_ms: Option<f64>,
    /// Pings sent to it.
    pub pings: Option<u64>,
    /// Pings that it answered.
    pub answers: Option<u64>,
    /// Datagrams sent to it.
    pub sent: u64,
    /// Datagrams received from it.
    pub received: u64,
    /// Samples received from it.
    pub delivered: u64,
    /// Datagrams sent to it that repeat others.
    pub extras: u64,
    /// Share of datagrams that are lost on the way to it.
    pub loss: Option<f64>,
    /// Capacity of the way to it, bytes a second.
    pub capacity_bytes_per_s: Option<f64>,
}

/// A clock against that of the one that looks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClockState {
    /// Its time minus the looker's, ms.
    pub offset_ms: f64,
    /// Drift: positive if it runs faster, parts per million.
    pub drift_ppm: f64,
    /// The true offset is within plus or minus this, ms; `None` if nothing is proven.
    pub bound_ms: Option<f64>,
    /// Standard error of the offset, ms.
    pub sigma_ms: Option<f64>,
    /// The estimator's state, e.g. `tracking`.
    pub state: String,
}

/// A link from a node to another.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LinkState {
    /// Name of the node that it leaves from.
    pub from: String,
    /// Number of that node.
    pub from_id: String,
    /// Name of the node that it leads to.
    pub to: String,
    /// Number of that node.
    pub to_id: String,
    /// Round trip, ms.
    pub rtt_ms: Option<f64>,
    /// Share of datagrams that are lost.
    pub loss: Option<f64>,
    /// Capacity, bytes a second.
    pub capacity_bytes_per_s: Option<f64>,
    /// Datagrams sent.
    pub sent: u64,
    /// Datagrams sent that repeat others.
    pub extras: u64,
    /// Datagrams received.
    pub received: u64,
}

/// A writer and a reader of a topic that get nothing from each other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Mismatch {
    /// Name of the topic.
    pub topic: String,
    /// Name of the writer's node.
    pub writer: String,
    /// Number of the writer's node.
    pub writer_node: String,
    /// Name of the reader's node.
    pub reader: String,
    /// Number of the reader's node.
    pub reader_node: String,
    /// Why, with the way out.
    pub why: String,
}

/// A node that publishes or reads a topic.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default)]
pub struct TopicEnd {
    /// Name of the topic.
    pub topic: String,
    /// Whether it publishes; if not, it reads.
    pub publishes: bool,
    /// The first 16 hexadecimal digits of the node's number.
    pub number: String,
    /// The node's name.
    pub name: String,
}

/// Milliseconds, to a tenth of a microsecond.
pub fn ms(ns: i64) -> f64 {
    (ns as f64 * 1e-2).round() * 1e-4
}

/// Writes the record's content; `log_ns` is since 1970, as the log times of messages are.
pub fn encode(log_ns: u64, state: &SystemState) -> Vec<u8> {
    let mut bytes = Vec::from([VERSION, 0, 0, 0]);
    bytes.extend(log_ns.to_le_bytes());
    // Numbers and text only: this cannot fail, and a vector takes every byte.
    let _ = serde_json::to_writer(&mut bytes, state);
    bytes
}

/// Reads a record's content; `None` if it is not of a version that is known, or damaged. What is beyond [`ENTRIES_MAX`] is left out.
pub fn decode(bytes: &[u8]) -> Option<(u64, SystemState)> {
    let (head, text) = bytes.split_at_checked(HEAD_BYTES)?;
    if head[..4] != [VERSION, 0, 0, 0] {
        return None;
    }
    let log_ns = u64::from_le_bytes(*head[4..].first_chunk()?);
    let mut state: SystemState = serde_json::from_slice(text).ok()?;
    state.nodes.truncate(ENTRIES_MAX);
    state.links.truncate(ENTRIES_MAX);
    state.mismatches.truncate(ENTRIES_MAX);
    state.ends.truncate(ENTRIES_MAX);
    Some((log_ns, state))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(&bytes);
        }

        #[test]
        fn what_is_written_is_read(log_ns in any::<u64>(), name in ".*", ms in -1e9..1e9, sent in any::<u64>(), topic in ".*") {
            let clock = ClockState { offset_ms: ms, state: "tracking".into(), ..ClockState::default() };
            let node = NodeState { name, clock: Some(clock), rtt_ms: Some(ms), sent, ..NodeState::default() };
            let end = TopicEnd { topic: topic.clone(), publishes: true, ..TopicEnd::default() };
            let mismatch = Mismatch { topic, ..Mismatch::default() };
            let link = LinkState { sent, ..LinkState::default() };
            let state = SystemState { nodes: vec![node], links: vec![link], mismatches: vec![mismatch], ends: vec![end] };
            prop_assert_eq!(decode(&encode(log_ns, &state)), Some((log_ns, state)));
        }
    }

    #[test]
    fn the_example_of_the_specification() {
        let text = r#"{"nodes":[{"name":"imu","id":"01","clock":{"offset_ms":5.0,"bound_ms":0.03}}]}"#;
        let bytes = [&[1, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0], text.as_bytes()].concat();
        let (log_ns, state) = decode(&bytes).unwrap();
        assert_eq!((log_ns, state.nodes[0].name.as_str()), (7, "imu"));
        assert_eq!(state.nodes[0].clock.as_ref().unwrap().bound_ms, Some(0.03));
        assert_eq!(decode(&bytes[..bytes.len() - 1]), None);
    }

    #[test]
    fn a_record_of_too_many_nodes_is_read_as_far_as_the_limit() {
        let state =
            SystemState { nodes: vec![NodeState::default(); ENTRIES_MAX + 5], ..SystemState::default() };
        assert_eq!(decode(&encode(1, &state)).unwrap().1.nodes.len(), ENTRIES_MAX);
    }
}
