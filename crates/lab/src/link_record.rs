//! Record of an emulated link during one trial, as `run.json` keeps it, and whether the emulator kept to its model.
//!
//! Losses that the link was configured to make are the experiment; packets the emulator itself could not hold, or handed over much
//! later than the model said, are faults of the tool, and the cell is invalid.

use noctule_link_emulator::Report;
use noctule_link_emulator::report::{Lateness, NodeReport};
use noctule_netsim::link::ChannelStatistics;
use serde::{Deserialize, Serialize};

use crate::validity::Invalid;

/// Of fewer packets than this nobody knows when one in a thousand is handed over: ten lie beyond.
const LATENESS_P99_9_PACKETS_MIN: u64 = 10_000;
/// One packet in a hundred may be handed over this much later than due: a tenth of the shortest way that the lab's own
/// scenarios model.
const LATENESS_P99_MAX_NS: u64 = 1_000_000;
/// One in a thousand may be this late, which is about one time slice that the machine gave to another process.
const LATENESS_P99_9_MAX_NS: u64 = 5_000_000;

/// An emulated link during one trial, warm-up and discovery included.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkRecord {
    /// Seed of its random numbers; the same for every peer in the same trial.
    pub seed: u64,
    /// The congestion control of programs that use the kernel's TCP and do not choose.
    pub tcp_congestion_control: String,
    /// Core the forwarder was pinned to, apart from all nodes; `null`: it shared the nodes' cores.
    pub core: Option<u32>,
    /// Whether the forwarder ran under `SCHED_FIFO`.
    pub real_time: bool,
    /// Processor time of the forwarder.
    pub cpu_ns: u64,
    /// How much later than due packets were handed over: the emulator's own error.
    pub lateness_ns: Lateness,
    /// Dropped before the forwarder could read them: a fault of the emulator or a flood.
    pub unread: u64,
    /// Packets a node's device did not take: a fault of the emulator.
    pub refused: u64,
    /// Packets to addresses without a node.
    pub unroutable: u64,
    /// Packets of other protocols than IPv4.
    pub not_ipv4: u64,
    /// The way out of each host.
    pub directions: Vec<Direction>,
}

/// Packets of one sending host, and their fates. With more than two hosts a packet to a group counts once in `packets` and
/// once per receiver in `offered` and after.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Direction {
    /// `a`, `b`, …: host 0, 1, …
    pub from: String,
    /// Packets that came from the host.
    pub packets: u64,
    /// Their bytes, IP header included.
    pub packet_bytes: u64,
    /// Dropped: no room in the link's queue.
    pub queue_full: u64,
    /// Dropped: the link was down.
    pub down: u64,
    /// Dropped: longer than the link's MTU.
    pub too_long: u64,
    /// Longest wait for the end of sending.
    pub queue_peak_ns: i64,
    /// Packets sent into the air to the others.
    pub offered: u64,
    /// Lost in the air.
    pub lost: u64,
    /// Delivered after their delay, copies included.
    pub delivered: u64,
    /// Copies made.
    pub duplicated: u64,
    /// Packets spoiled.
    pub corrupted: u64,
    /// Packets held back so that others overtook them.
    pub held_back: u64,
    /// Dropped for want of room in the emulator: its fault.
    pub flight_full: u64,
}

/// Values of a [`LinkRecord`] that the emulator's report lacks.
#[derive(Debug, Clone, Default)]
pub(crate) struct LinkContext {
    pub(crate) seed: u64,
    pub(crate) tcp_congestion_control: String,
    pub(crate) unread: u64,
}

impl LinkRecord {
    pub(crate) fn of(report: &Report, around: LinkContext) -> Self {
        Self {
            seed: around.seed,
            tcp_congestion_control: around.tcp_congestion_control,
            core: report.core,
            real_time: report.real_time,
            cpu_ns: report.cpu_ns,
            lateness_ns: report.lateness_ns,
            unread: around.unread,
            refused: report.refused,
            unroutable: report.unroutable,
            not_ipv4: report.not_ipv4,
            directions: report.nodes.iter().map(Direction::of).collect(),
        }
    }

    /// Why the trial says nothing about the peer.
    pub(crate) fn faults(&self) -> Vec<Invalid> {
        let mut why = Vec::new();
        let lateness = self.lateness_ns;
        let p99_9 = lateness.p99_9.filter(|_| lateness.count >= LATENESS_P99_9_PACKETS_MIN);
        let limits = [("1 %", lateness.p99, LATENESS_P99_MAX_NS), ("0.1 %", p99_9, LATENESS_P99_9_MAX_NS)];
        for (share, found, limit) in limits {
            if let Some(late_ns) = found.filter(|&ns| ns > limit) {
                why.push(Invalid::EmulatorLate { share, late_ns, limit_ns: limit });
            }
        }
        let sum = |count: fn(&Direction) -> u64| self.directions.iter().map(count).sum::<u64>();
        let overflows = [
            (sum(|direction| direction.flight_full), "found no room in it"),
            (self.unread, "were dropped before it could read them"),
            (self.refused, "were refused by a host's interface"),
        ];
        for (packets, what) in overflows.into_iter().filter(|(count, _)| *count > 0) {
            why.push(Invalid::EmulatorOverflow { packets, what });
        }
        why
    }
}

impl Direction {
    fn of(node: &NodeReport) -> Self {
        let sum =
            |count: fn(&ChannelStatistics) -> u64| node.to.iter().map(|to| count(&to.counts)).sum::<u64>();
        Self {
            from: node.name.clone(),
            packets: node.packets,
            packet_bytes: node.bytes,
            queue_full: node.queue_full,
            down: node.down,
            too_long: node.too_long,
            queue_peak_ns: node.queue_peak_ns,
            offered: sum(|to| to.sent),
            lost: sum(|to| to.lost),
            delivered: sum(|to| to.delivered),
            duplicated: sum(|to| to.duplicated),
            corrupted: sum(|to| to.corrupted),
            held_back: sum(|to| to.held_back),
            flight_full: sum(|to| to.flight_full),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_the_experiment_and_lateness_or_overflow_a_fault() {
        let mut record = LinkRecord {
            lateness_ns: Lateness {
                count: LATENESS_P99_9_PACKETS_MIN,
                p99: Some(LATENESS_P99_MAX_NS),
                p99_9: Some(LATENESS_P99_9_MAX_NS),
                ..Lateness::default()
            },
            directions: vec![Direction { lost: 50, queue_full: 3, down: 2, ..Direction::default() }],
            ..LinkRecord::default()
        };
        assert_eq!(record.faults(), Vec::new());
        record.lateness_ns.p99 = Some(2_340_000);
        record.lateness_ns.p99_9 = Some(7_000_000);
        let said: Vec<String> = record.faults().iter().map(ToString::to_string).collect();
        assert!(said[0].contains("1 % of its packets more than 2.3 ms (1 ms are tolerated)"), "{said:?}");
        assert!(said[1].contains("0.1 % of its packets more than 7.0 ms"), "{said:?}");
        record.lateness_ns.count -= 1;
        assert_eq!(record.faults().len(), 1, "ten packets make no p99.9");
        record.lateness_ns = Lateness::default();
        record.directions[0].flight_full = 7;
        (record.unread, record.refused) = (8, 9);
        let counts: Vec<bool> =
            ["7 packets found no room", "8 packets were dropped", "9 packets were refused"]
                .iter()
                .zip(record.faults())
                .map(|(expected, said)| said.to_string().contains(expected))
                .collect();
        assert_eq!(counts, [true; 3]);
    }
}
