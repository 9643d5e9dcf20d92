//! From the raw samples of one cell and trial to the figures of its entry in `run.json`.
//!
//! Everything here is a pure function of samples in the order [`CellSamples`](crate::samples::CellSamples)
//! promises: by node, then by index. Times are nanoseconds. Nothing is dropped or clamped: a negative
//! latency comes out negative, so that the validity checks see it.
//!
//! Reordering counts as in RFC 4737 section 3: a message is reordered if one sent after it arrived
//! before it.

use crate::dimensions::Mode;
use crate::run::{Block, Hop, SendLag};
use crate::samples::Sample;
use crate::statistics::{LatencySummary, order_statistic, percentile};

/// Blocks a trial is cut into for the comparison of runs.
pub const BLOCKS: usize = 10;

/// The samples of one node, in index order.
pub fn of_node(samples: &[Sample], node: u16) -> &[Sample] {
    debug_assert!(
        samples.is_sorted_by_key(|sample| (sample.node, sample.index)),
        "samples come by node, then index"
    );
    let begin = samples.partition_point(|sample| sample.node < node);
    let end = samples.partition_point(|sample| sample.node <= node);
    &samples[begin..end]
}

/// Latency of every arrival at `node` from its scheduled send, in index order.
pub fn latencies(samples: &[Sample], node: u16) -> Vec<i64> {
    of_node(samples, node).iter().map(Sample::latency_ns).collect()
}

/// The latencies that a cell's `latency_ns` summarises, in index order: of a round trip the whole
/// trip, of a chain the arrivals at its last node, of a fan-out those at every receiver.
pub fn end_to_end(mode: Mode, nodes: u32, samples: &[Sample]) -> Vec<i64> {
    end_to_end_samples(mode, nodes, samples).into_iter().map(Sample::latency_ns).collect()
}

/// The arrivals behind [`end_to_end`], in the same order.
pub fn end_to_end_samples(mode: Mode, nodes: u32, samples: &[Sample]) -> Vec<&Sample> {
    match mode {
        Mode::RoundTrip => of_node(samples, 0).iter().collect(),
        Mode::FanOut => {
            let mut arrivals: Vec<&Sample> = samples.iter().collect();
            arrivals.sort_by_key(|sample| (sample.index, sample.node));
            arrivals
        }
        Mode::OneWay | Mode::Chain => of_node(samples, last_node(nodes)).iter().collect(),
    }
}

/// Cuts latencies in index order into [`BLOCKS`] consecutive tenths; none if there are fewer.
pub fn blocks(latencies: &[i64]) -> Vec<Block> {
    if latencies.len() < BLOCKS {
        return Vec::new();
    }
    let bound = |block: usize| block * latencies.len() / BLOCKS;
    (0..BLOCKS)
        .filter_map(|block| {
            let mut tenth = latencies[bound(block)..bound(block + 1)].to_vec();
            tenth.sort_unstable();
            Some(Block {
                count: tenth.len() as u64,
                p50_ns: order_statistic(&tenth, 0.50)?,
                p99_ns: order_statistic(&tenth, 0.99)?,
            })
        })
        .collect()
}

/// How many latencies exceed the deadline. A message that takes exactly the deadline is on time.
pub fn late(latencies: &[i64], deadline_ns: u64) -> u64 {
    let exceeds = |&&latency: &&i64| u64::try_from(latency).is_ok_and(|ns| ns > deadline_ns);
    latencies.iter().filter(exceeds).count() as u64
}

/// Arrivals at one node after the arrival of a message with a higher index.
pub fn reordered(samples: &[Sample], node: u16) -> u64 {
    let mut earliest_of_later = i64::MAX;
    let mut count = 0;
    for sample in of_node(samples, node).iter().rev() {
        if sample.received_ns > earliest_of_later {
            count += 1;
        }
        earliest_of_later = earliest_of_later.min(sample.received_ns);
    }
    count
}

/// The hops of a chain into each of the `receivers`: the first from the scheduled send, each later
/// one from the arrival at the receiver before it, so that the hops of a message add up to its whole
/// latency. Messages missing at either end are left out.
pub fn chain_hops(samples: &[Sample], receivers: &[u32]) -> Vec<Hop> {
    let starts = std::iter::once(0).chain(receivers.iter().copied());
    starts
        .zip(receivers)
        .map(|(from, &to)| {
            let hop = match from {
                0 => latencies(samples, to as u16),
                _ => between(of_node(samples, from as u16), of_node(samples, to as u16)),
            };
            Hop { from, to, latency_ns: LatencySummary::of(hop) }
        })
        .collect()
}

/// The receivers of a fan-out with `nodes` processes, each from the scheduled send.
pub fn fan_out_hops(samples: &[Sample], nodes: u32) -> Vec<Hop> {
    (1..=last_node(nodes))
        .map(|node| Hop {
            from: 0,
            to: u32::from(node),
            latency_ns: LatencySummary::of(latencies(samples, node)),
        })
        .collect()
}

/// Arrivals per second of all nodes together, from the first scheduled send to the last arrival; `None` if that is no
/// time.
pub fn rate_hz(samples: &[Sample]) -> Option<f64> {
    let first = samples.iter().map(|sample| sample.scheduled_ns).min()?;
    let last = samples.iter().map(|sample| sample.received_ns).max()?;
    (last > first).then(|| samples.len() as f64 * 1e9 / (last - first) as f64)
}

/// Summarises how late the sender was (actual minus scheduled send); `None` without messages.
pub fn send_lag(mut lags_ns: Vec<i64>) -> Option<SendLag> {
    lags_ns.sort_unstable();
    Some(SendLag {
        p50: order_statistic(&lags_ns, 0.50)?,
        p99: percentile(&lags_ns, 0.99),
        max: *lags_ns.last()?,
    })
}

fn last_node(nodes: u32) -> u16 {
    u16::try_from(nodes.saturating_sub(1)).unwrap_or(u16::MAX)
}

/// Arrival at `after` minus arrival at `before`, for indices that reached both.
fn between(before: &[Sample], after: &[Sample]) -> Vec<i64> {
    let mut before = before.iter().peekable();
    after
        .iter()
        .filter_map(|arrival| {
            while before.next_if(|s| s.index < arrival.index).is_some() {}
            let start = before.next_if(|s| s.index == arrival.index)?;
            Some(arrival.received_ns.saturating_sub(start.received_ns))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(node: u16, index: u64, scheduled_ns: i64, received_ns: i64) -> Sample {
        Sample { index, node, scheduled_ns, sent_ns: scheduled_ns, received_ns }
    }

    #[test]
    fn a_hop_pairs_equal_indices_and_leaves_out_messages_lost_on_either_side() {
        let samples = [
            sample(1, 0, 100, 110),
            sample(1, 1, 200, 215),
            sample(1, 3, 400, 420),
            sample(2, 1, 200, 245),
            sample(2, 2, 300, 333),
            sample(2, 3, 400, 460),
        ];
        let hop = between(of_node(&samples, 1), of_node(&samples, 2));
        assert_eq!(hop, vec![30, 40]);
        let hops = chain_hops(&samples, &[1, 2]);
        assert_eq!(hops.iter().map(|h| (h.from, h.to)).collect::<Vec<_>>(), [(0, 1), (1, 2)]);
        let first = hops[0].latency_ns.unwrap();
        assert_eq!((first.min, first.max), (10, 20), "node 1 counts from the schedule");
        let second = hops[1].latency_ns.unwrap();
        assert_eq!((second.min, second.max), (30, 40));
    }

    #[test]
    fn end_to_end_takes_the_initiator_the_last_node_or_every_receiver() {
        let samples = [sample(0, 0, 0, 1), sample(1, 0, 0, 10), sample(1, 1, 0, 11), sample(2, 0, 0, 20)];
        assert_eq!(end_to_end(Mode::RoundTrip, 2, &samples), vec![1]);
        assert_eq!(end_to_end(Mode::OneWay, 2, &samples), vec![10, 11]);
        assert_eq!(end_to_end(Mode::Chain, 3, &samples), vec![20]);
        assert_eq!(end_to_end(Mode::FanOut, 3, &samples[1..]), vec![10, 20, 11], "by index, then receiver");
    }

    #[test]
    fn fan_out_has_one_hop_per_receiver_even_if_it_received_nothing() {
        let hops = fan_out_hops(&[sample(1, 0, 5, 9)], 3);
        assert_eq!(hops.len(), 2);
        assert_eq!(hops[0].latency_ns.unwrap().max, 4);
        assert_eq!((hops[1].from, hops[1].to, hops[1].latency_ns), (0, 2, None));
    }

    #[test]
    fn blocks_are_ten_consecutive_tenths_that_hold_every_sample_once() {
        let latencies: Vec<i64> = (0..1037).collect();
        let blocks = blocks(&latencies);
        assert_eq!(blocks.len(), BLOCKS);
        assert_eq!(blocks.iter().map(|b| b.count).sum::<u64>(), 1037);
        assert!(blocks.iter().all(|b| b.count == 103 || b.count == 104));
        assert!(blocks.is_sorted_by_key(|b| b.p50_ns), "in order of index");
        assert_eq!((blocks[0].p50_ns, blocks[0].p99_ns), (51, 101));
    }

    #[test]
    fn fewer_samples_than_blocks_give_no_blocks() {
        assert!(blocks(&[1; 9]).is_empty());
        assert_eq!(blocks(&[1; 10]).len(), BLOCKS);
    }

    #[test]
    fn a_message_is_late_only_beyond_its_deadline() {
        assert_eq!(late(&[-5, 0, 99, 100, 101, i64::MAX], 100), 2);
        assert_eq!(late(&[i64::MAX], u64::MAX), 0);
    }

    #[test]
    fn reordered_counts_messages_overtaken_by_a_later_one() {
        // Arrival order 0, 2, 3, 1, 4: only message 1 was overtaken.
        let received = [10, 40, 20, 30, 50];
        let samples: Vec<Sample> = (0..5).map(|i| sample(1, i, 0, received[i as usize])).collect();
        assert_eq!(reordered(&samples, 1), 1);
        assert_eq!(reordered(&[sample(1, 0, 0, 7), sample(1, 1, 0, 7)], 1), 0, "a tie is no proof");
        assert_eq!(reordered(&samples, 0), 0);
    }

    #[test]
    fn a_rate_counts_every_receiver_until_the_last_arrival() {
        let samples = [sample(1, 0, 0, 10), sample(1, 1, 500, 900), sample(2, 0, 0, 1_000)];
        assert_eq!(rate_hz(&samples), Some(3e6));
        assert_eq!(rate_hz(&[sample(1, 0, 5, 5)]), None);
        assert_eq!(rate_hz(&[]), None);
    }

    #[test]
    fn send_lag_withholds_p99_of_a_short_run() {
        let lag = send_lag((0..100).collect()).unwrap();
        assert_eq!((lag.p50, lag.p99, lag.max), (50, None, 99));
        assert_eq!(send_lag(vec![]), None);
    }
}
