//! Which samples came before: a transient local publisher that opens anew publishes its history again.

use std::collections::{BTreeMap, BTreeSet};

use noctule::{EndpointId, NodeId};

use crate::quality::DEPTH_MAX;

/// Publishers of one topic whose samples are remembered; beyond that the one whose newest sample is the oldest is forgotten.
const PUBLISHERS_MAX: usize = 1_024;
/// Source times that they share, each at most its part; of one publisher [`DEPTH_MAX`] suffice, for no history is longer.
const TIMES_MAX: usize = 1 << 16;

type Publisher = (NodeId, EndpointId);

/// Source times of what each publisher has given, the newest of them.
///
/// A publisher that opens anew is another endpoint of the same node, whose history has the source times that it had before. Which of a
/// node's endpoints it was is not known, and its last samples may be read after the history that repeats them: so a sample came before if any
/// endpoint of its node has given one of the same time. Endpoints of one node have one clock, and never publish in the same nanosecond but by chance.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    publishers: BTreeMap<Publisher, BTreeSet<i64>>,
}

impl Seen {
    /// Whether this sample came before; remembers it.
    pub(crate) fn is_again(&mut self, node: NodeId, endpoint: EndpointId, source_ns: i64) -> bool {
        let publisher = (node, endpoint);
        if self.publishers.len() >= PUBLISHERS_MAX && !self.publishers.contains_key(&publisher) {
            self.forget_one();
        }
        let of_node = (node, EndpointId(0))..=(node, EndpointId(u32::MAX));
        let is_again = self.publishers.range(of_node).any(|(_, times)| times.contains(&source_ns));
        let times_max = times_max(self.publishers.len());
        let times = self.publishers.entry(publisher).or_default();
        times.insert(source_ns);
        while times.len() > times_max {
            times.pop_first();
        }
        is_again
    }

    fn forget_one(&mut self) {
        let oldest = self.publishers.iter().min_by_key(|(_, times)| times.last().copied());
        if let Some(publisher) = oldest.map(|(publisher, _)| *publisher) {
            self.publishers.remove(&publisher);
        }
    }
}

/// Of each of so many publishers.
fn times_max(publishers: usize) -> usize {
    (TIMES_MAX / publishers.max(1)).min(DEPTH_MAX as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: NodeId = NodeId([1; 16]);
    const TWO: NodeId = NodeId([2; 16]);

    #[test]
    fn what_a_publisher_gives_again_came_before_whichever_is_read_first() {
        let mut seen = Seen::default();
        let mut is_again = |endpoint, source_ns| seen.is_again(ONE, EndpointId(endpoint), source_ns);
        assert!(!is_again(1, 10) && !is_again(1, 20) && is_again(1, 20));
        // Opened anew; 30 is read there before it is read in the old ring.
        assert!(is_again(2, 10) && is_again(2, 20) && !is_again(2, 30) && is_again(1, 30));
        // And once more, after which only what it had repeated is left of the first.
        assert!(!is_again(2, 40) && is_again(3, 20) && is_again(3, 40) && !is_again(3, 50));
        assert!(!seen.is_again(TWO, EndpointId(1), 10), "another node");
    }

    #[test]
    fn a_busy_publisher_does_not_displace_what_another_gave() {
        let mut seen = Seen::default();
        assert!(!seen.is_again(ONE, EndpointId(1), 1));
        (0..100_000).for_each(|ns| assert!(!seen.is_again(TWO, EndpointId(1), ns)));
        assert!(seen.is_again(ONE, EndpointId(2), 1));
        assert!(seen.is_again(TWO, EndpointId(2), 100_000 - i64::from(DEPTH_MAX)));
        assert!(!seen.is_again(TWO, EndpointId(2), 100_000 - i64::from(DEPTH_MAX) - 1));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut seen = Seen::default();
        for number in 0..2 * PUBLISHERS_MAX as u128 {
            let node = NodeId(number.to_le_bytes());
            (0..100).for_each(|ns| assert!(!seen.is_again(node, EndpointId(1), ns)));
        }
        assert_eq!(seen.publishers.len(), PUBLISHERS_MAX);
        let times: usize = seen.publishers.values().map(BTreeSet::len).sum();
        assert!(times <= 2 * TIMES_MAX, "{times}");
    }
}
