//! A reader of the simulation.

use std::sync::Arc;

use noctule_discovery::NodeId;

use crate::sample::Bytes;
use crate::shared_topic::{Source, Sources, SubscribedTopic};

/// A reader, which checks what it takes.
pub(in crate::node::state::relay::tests) struct Reader {
    pub(super) topic: Arc<SubscribedTopic>,
    pub(super) sources: Sources,
    pub(in crate::node::state::relay::tests) last: u64,
    pub(in crate::node::state::relay::tests) missed: u64,
}

impl Reader {
    /// Takes what there is in whatever order it came: whose it is, its number in the ring and how many are missing before it, and its own number.
    pub(in crate::node::state::relay::tests) fn take_each(
        &mut self,
        each: &mut impl FnMut(NodeId, (u64, u64), u64),
    ) {
        let changes = std::mem::take(&mut *self.topic.changes.lock().unwrap());
        changes.into_iter().for_each(|change| self.sources.apply(change));
        loop {
            match self.sources.next(&mut Source::take).unwrap() {
                Some((at, sample, bytes)) => {
                    let Bytes::Copied(bytes) = bytes else { panic!("lent without pins") };
                    let number = u64::from_le_bytes(bytes.try_into().unwrap());
                    each(self.sources.list[at].node, (sample.number, sample.missed), number);
                }
                None if self.sources.retire() => {}
                None => return,
            }
        }
    }

    /// Missed of writers that have gone, and no sample has said so.
    pub(in crate::node::state::relay::tests) fn missed_unsaid(&self) -> u64 {
        self.sources.missed_unsaid()
    }

    /// Takes what there is, which must come in order with nothing missing that is not counted.
    pub(in crate::node::state::relay::tests) fn take(&mut self, seed: u64) {
        let (mut last, mut all_missed) = (self.last, self.missed);
        self.take_each(&mut |_, (place, missed), number| {
            assert_eq!(place, number, "seed {seed}");
            assert!(number > last, "seed {seed}: {number} after {last}");
            if last > 0 {
                assert_eq!(missed, number - last - 1, "seed {seed}");
            }
            (last, all_missed) = (number, all_missed + missed);
        });
        (self.last, self.missed) = (last, all_missed);
    }
}
