//! Bytes that wait for nodes of other hosts to be sent or acknowledged, of all of them together.
//!
//! # Problem
//!
//! A reliable sample is kept for each reader until that has acknowledged it. Each link has a limit, but a stranger can open as many links
//! as there is room for nodes, and acknowledge nothing.
//!
//! # Approach
//!
//! Links share the bytes of a sample, so bytes are counted once however many links hold them. Above half of the limit only nodes of an
//! address that holds less than a quarter get new samples, so that a node with one address only cannot starve the others; at the limit none.
//! A sample that a node does not get counts as given up: `missed` at its reader, and a notice.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;

use noctule_timebase::{Instant, Span};

use crate::clock::Raw;

/// Bytes of samples that one node keeps for nodes of other hosts, unless it is set up otherwise: 256 MiB, four times what one link may hold.
pub const UNACKNOWLEDGED_BYTES_DEFAULT: usize = 256 << 20;
/// Samples looked at each time another is published: whether some link still holds them.
const SWEEP: usize = 8;
/// Of longer ones the memory goes back to the kernel when they are freed, which takes up to a millisecond: not while the state is locked, and not
/// in a thread that publishes something else. To get it again costs more than to copy a sample: a page fault each 4 KiB.
const QUICKLY_FREED_BYTES: usize = 32 << 10;
/// Payloads that no link holds any more are kept so long, and so many of them, for samples of the same length.
const SPARE_TIME: Span = Span::from_s(1);
const SPARES_MAX: usize = 16;
/// Samples published between two looks at what links hold for themselves.
pub(super) const LOOK_AGAIN: u32 = 64;
/// Between two notices.
pub(super) const NOTICE_INTERVAL: Span = Span::from_s(60);

/// The account of bytes that nodes of other hosts have still to acknowledge, with its limit.
#[derive(Debug)]
pub(super) struct Unacknowledged {
    pub(super) limit_bytes: usize,
    /// Payloads that links shared when they were published.
    payloads: VecDeque<Arc<[u8]>>,
    payload_bytes: usize,
    /// Long ones that no link holds any more: for the next samples, or for a thread that has time to free them.
    spent: VecDeque<Spent>,
    /// Bytes that links hold each for itself, as of the last look.
    pub(super) own_bytes: usize,
    pub(super) until_look: u32,
    /// Samples of a node that it did not get, since the last notice.
    pub(super) refused: u64,
    pub(super) noted_at: Option<Instant<Raw>>,
}

/// A payload that no link holds any more.
#[derive(Debug)]
struct Spent {
    payload: Arc<[u8]>,
    /// When the thread that frees it saw it first.
    seen_at: Option<Instant<Raw>>,
}

/// Which nodes get a new sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Admitted {
    /// Every node.
    All,
    /// Nodes of addresses that hold less than a quarter of the limit; what each holds.
    Small(BTreeMap<IpAddr, usize>),
    /// No node.
    None,
}

impl Unacknowledged {
    pub(super) fn new(limit_bytes: usize) -> Unacknowledged {
        Unacknowledged {
            limit_bytes,
            payloads: VecDeque::new(),
            payload_bytes: 0,
            spent: VecDeque::new(),
            own_bytes: 0,
            until_look: 0,
            refused: 0,
            noted_at: None,
        }
    }

    /// Bytes kept, as far as is known without a look at every sample: never fewer than there are.
    pub(super) fn bytes(&self) -> usize {
        self.payload_bytes + self.own_bytes
    }

    /// Counts a sample that links may have kept.
    pub(super) fn keep(&mut self, payload: &Arc<[u8]>) {
        // The caller has one.
        if Arc::strong_count(payload) > 1 {
            self.payload_bytes += payload.len();
            self.payloads.push_back(Arc::clone(payload));
        }
        self.sweep(SWEEP);
    }

    /// Forgets those of the oldest `samples` that no link holds any more.
    pub(super) fn sweep(&mut self, samples: usize) {
        for _ in 0..samples.min(self.payloads.len()) {
            let Some(oldest) = self.payloads.pop_front() else { return };
            if Arc::strong_count(&oldest) > 1 {
                self.payloads.push_back(oldest);
            } else if oldest.len() > QUICKLY_FREED_BYTES {
                self.spent.push_back(Spent { payload: oldest, seen_at: None });
            } else {
                self.payload_bytes -= oldest.len();
            }
        }
    }

    /// Memory for a payload of so many bytes, of which nothing is needed any more.
    pub(super) fn take_spare(&mut self, bytes: usize) -> Option<Arc<[u8]>> {
        let at = self.spent.iter().position(|spent| spent.payload.len() == bytes)?;
        let Spent { payload, .. } = self.spent.remove(at)?;
        self.payload_bytes -= bytes;
        Some(payload)
    }

    /// Long payloads that no link holds any more and no sample has taken in time, to be freed when the state is not locked. They count until
    /// then.
    #[must_use]
    pub(super) fn take_spent(&mut self, now: Instant<Raw>) -> Vec<Arc<[u8]>> {
        let seen = self.spent.iter_mut().map(|spent| *spent.seen_at.get_or_insert(now));
        let old = seen.filter(|seen_at| now - *seen_at >= SPARE_TIME).count();
        self.take_oldest_spent(old.max(self.spent.len().saturating_sub(SPARES_MAX)))
    }

    /// As [`take_spent`](Unacknowledged::take_spent), those that a sample may still take among them.
    #[must_use]
    pub(super) fn take_all_spent(&mut self) -> Vec<Arc<[u8]>> {
        self.take_oldest_spent(self.spent.len())
    }

    fn take_oldest_spent(&mut self, count: usize) -> Vec<Arc<[u8]>> {
        let taken: Vec<_> = self.spent.drain(..count).map(|spent| spent.payload).collect();
        self.payload_bytes -= taken.iter().map(|payload| payload.len()).sum::<usize>();
        taken
    }

    pub(super) fn has_room(&self, bytes: usize, share: usize) -> bool {
        self.bytes() + bytes <= self.limit_bytes / share
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant<Raw> = Instant::from_ns(0);

    #[test]
    fn a_payload_counts_once_and_as_long_as_a_link_holds_it() {
        let mut budget = Unacknowledged::new(1_000);
        let payload: Arc<[u8]> = Arc::from([7; 100]);
        budget.keep(&payload);
        assert_eq!(budget.bytes(), 0, "no link took it");
        let links = vec![Arc::clone(&payload); 300];
        budget.keep(&payload);
        drop(payload);
        assert_eq!(budget.bytes(), 100);
        assert!(budget.has_room(400, 2) && !budget.has_room(401, 2) && budget.has_room(900, 1));
        let later: Arc<[u8]> = Arc::from([7; 50]);
        let still = Arc::clone(&later);
        budget.keep(&later);
        drop((links, later));
        budget.sweep(usize::MAX);
        assert_eq!((budget.bytes(), budget.payloads.len()), (50, 1));
        drop(still);
        budget.sweep(usize::MAX);
        assert_eq!((budget.bytes(), budget.payloads.len()), (0, 0));
    }

    #[test]
    fn a_topic_that_publishes_little_frees_no_picture() {
        let mut budget = Unacknowledged::new(10 << 20);
        let picture: Arc<[u8]> = vec![7; 1 << 20].into();
        let link = Arc::clone(&picture);
        budget.keep(&picture);
        let freed = Arc::downgrade(&picture);
        drop((picture, link));
        let little: Arc<[u8]> = Arc::from([7; 64]);
        for _ in 0..10 {
            budget.keep(&little);
            budget.sweep(usize::MAX);
        }
        assert!(freed.upgrade().is_some());
        assert_eq!(budget.bytes(), 1 << 20, "it counts as long as its memory is held");
        assert!(
            budget.take_spent(NOW).is_empty()
                && budget.take_spent(NOW + SPARE_TIME - Span::from_ns(1)).is_empty()
        );
        assert!(freed.upgrade().is_some(), "a picture may follow");
        drop(budget.take_spent(NOW + SPARE_TIME));
        assert!(freed.upgrade().is_none());
        assert_eq!((budget.bytes(), budget.take_all_spent().len()), (0, 0));
    }

    /// A payload that its link had and has acknowledged.
    fn spend(budget: &mut Unacknowledged, bytes: usize) {
        let payload: Arc<[u8]> = vec![7; bytes].into();
        let link = Arc::clone(&payload);
        budget.keep(&payload);
        drop((payload, link));
        budget.sweep(usize::MAX);
    }

    #[test]
    fn the_memory_of_a_picture_is_for_the_next_one_of_its_length() {
        let mut budget = Unacknowledged::new(100 << 20);
        spend(&mut budget, 1 << 20);
        assert!(budget.take_spare(1 << 19).is_none());
        let mut spare = budget.take_spare(1 << 20).unwrap();
        assert_eq!((Arc::get_mut(&mut spare).map(|bytes| bytes.len()), budget.bytes()), (Some(1 << 20), 0));
        assert!(budget.take_spare(1 << 20).is_none());
    }

    #[test]
    fn no_more_memory_is_kept_for_others_than_its_limit() {
        let mut budget = Unacknowledged::new(100 << 20);
        (0..SPARES_MAX + 3).for_each(|longer| spend(&mut budget, (1 << 20) + longer));
        assert_eq!(budget.take_spent(NOW).len(), 3);
        assert!(budget.take_spare(1 << 20).is_none() && budget.take_spare((1 << 20) + 3).is_some());
        spend(&mut budget, 64);
        assert_eq!(budget.take_spare(64), None, "short ones are freed at once");
        assert_eq!(budget.take_all_spent().len(), SPARES_MAX - 1);
        assert_eq!(budget.bytes(), 0);
    }
}
