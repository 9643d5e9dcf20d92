//! Counters of a live link since its start, for people and as JSON.

use hdrhistogram::Histogram;
use noctule_netsim::link::{ChannelStatistics, Link};
use serde::{Deserialize, Serialize};

use crate::star::{Star, node_address, node_name};

/// Counts of a live link since its start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Per node, what it sent and what became of it.
    pub nodes: Vec<NodeReport>,
    /// Packets to addresses without a node.
    pub unroutable: u64,
    /// Packets of other protocols than IPv4.
    pub not_ipv4: u64,
    /// Packets a node's device did not take.
    pub refused: u64,
    /// Packets missing from the capture because the disk was slower.
    pub capture_missed: u64,
    /// Whether the forwarder runs under `SCHED_FIFO`.
    pub real_time: bool,
    /// Core it is pinned to, if any.
    #[serde(default)]
    pub core: Option<u32>,
    /// Processor time of the forwarder.
    pub cpu_ns: u64,
    /// How much later than due packets were handed over.
    pub lateness_ns: Lateness,
}

/// Percentiles; null while nothing was delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lateness {
    /// Packets delivered.
    pub count: u64,
    /// Median.
    pub p50: Option<u64>,
    /// One in a hundred is later.
    pub p99: Option<u64>,
    /// One in a thousand is later.
    pub p99_9: Option<u64>,
    /// The latest.
    pub max: Option<u64>,
}

/// The way out of one node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeReport {
    /// `a`, `b`, …
    pub name: String,
    /// IPv4.
    pub address: String,
    /// Packets that came from the node.
    pub packets: u64,
    /// Their bytes, IP header included.
    pub bytes: u64,
    /// Dropped: no room in the queue.
    pub queue_full: u64,
    /// Dropped: the link was down.
    pub down: u64,
    /// Dropped: longer than the link's MTU.
    pub too_long: u64,
    /// Longest queue in bytes.
    pub queue_peak_bytes: u64,
    /// Longest wait for the end of sending.
    pub queue_peak_ns: i64,
    /// Packets still under way.
    pub in_flight: u64,
    /// To each other node.
    pub to: Vec<ChannelReport>,
}

/// Counters of the packets from one node to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelReport {
    /// The receiver.
    pub name: String,
    /// The counts.
    #[serde(flatten)]
    pub counts: ChannelStatistics,
}

impl Lateness {
    /// Percentiles of what was recorded, in nanoseconds; of nothing, nothing.
    pub(crate) fn of(recorded: &Histogram<u64>) -> Lateness {
        if recorded.is_empty() {
            return Lateness::default();
        }
        let at = |quantile| Some(recorded.value_at_quantile(quantile));
        let max = Some(recorded.max());
        Lateness { count: recorded.len(), p50: at(0.5), p99: at(0.99), p99_9: at(0.999), max }
    }
}

impl Report {
    pub(crate) fn of(star: &Star) -> Report {
        let nodes = star.links().iter().enumerate().map(|(node, link)| NodeReport::of(node, link, star));
        Report {
            nodes: nodes.collect(),
            unroutable: star.unroutable,
            not_ipv4: star.not_ipv4,
            refused: 0,
            capture_missed: 0,
            real_time: false,
            core: None,
            cpu_ns: 0,
            lateness_ns: Lateness::default(),
        }
    }
}

impl NodeReport {
    fn of(node: usize, link: &Link, star: &Star) -> NodeReport {
        let sent = *link.transmitter();
        let others = (0..star.links().len()).filter(|other| *other != node);
        let channel = |other| ChannelReport { name: node_name(other), counts: link.channel(other) };
        NodeReport {
            name: node_name(node),
            address: node_address(node).to_string(),
            packets: sent.packets,
            bytes: sent.bytes,
            // A policer is a queue without room.
            queue_full: sent.queue_full + sent.policed,
            down: sent.down,
            too_long: sent.too_long,
            queue_peak_bytes: sent.queue_peak_bytes,
            queue_peak_ns: sent.queue_peak.ns(),
            in_flight: link.in_flight() as u64,
            to: others.map(channel).collect(),
        }
    }
}
