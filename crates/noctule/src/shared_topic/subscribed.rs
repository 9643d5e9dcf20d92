//! State that a subscriber shares with the node's thread.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use noctule_discovery::{Durability, Endpoint, EndpointId, Reliability};
use noctule_shm_ring::Alarm;
use noctule_sys::shared_memory::futex_wake;

use super::deadline_watches::DeadlineWatches;
use super::{Change, ChangeCount};

/// HISTORY of a subscriber: samples of each publisher that may wait to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum History {
    /// As its publisher's, be that keep last or keep all.
    AsPublished,
    /// Older ones give way.
    KeepLast(u32),
    /// Publishers wait.
    KeepAll(u32),
}

impl History {
    /// Samples, if the subscriber has set a depth.
    pub(crate) fn depth(self) -> Option<u32> {
        match self {
            History::AsPublished => None,
            History::KeepLast(depth) | History::KeepAll(depth) => Some(depth),
        }
    }
}

/// A subscriber's state that the node's thread shares.
#[derive(Debug)]
pub(crate) struct SubscribedTopic {
    pub(crate) id: EndpointId,
    pub(crate) endpoint: Endpoint,
    /// Formats it would understand, a bit each, were they part of this build.
    pub(crate) left_out: u32,
    pub(crate) pins: u32,
    pub(crate) history: History,
    /// Publishers of its own node are left out.
    pub(crate) ignores_local: bool,
    /// Sources added and ended since the subscriber's last look.
    pub(crate) changes: Mutex<Vec<Change>>,
    /// Counts them. The subscriber sleeps on it, unless it has one source: then on that alone, which is
    /// quicker.
    pub(crate) version: AtomicU32,
    /// The version that the subscriber knows.
    pub(crate) seen: AtomicU32,
    /// Wakes a subscriber that sleeps on its one source.
    pub(crate) alarm: Mutex<Option<Alarm>>,
    /// When its publishers last wrote, if it has a deadline.
    rhythms: Mutex<DeadlineWatches>,
    /// Of its node.
    pub(crate) changes_of_node: ChangeCount,
}

impl SubscribedTopic {
    /// A topic without a publisher yet.
    pub(crate) fn new(endpoint: Endpoint, left_out: u32, (pins, history): (u32, History)) -> SubscribedTopic {
        SubscribedTopic {
            id: endpoint.id,
            endpoint,
            left_out,
            pins,
            history,
            ignores_local: false,
            changes: Mutex::new(Vec::new()),
            version: AtomicU32::new(0),
            seen: AtomicU32::new(0),
            alarm: Mutex::new(None),
            rhythms: Mutex::default(),
            changes_of_node: ChangeCount::default(),
        }
    }

    /// Samples of a writer of another host that may wait here before it must; `None` if older ones give way to newer ones.
    pub(crate) fn keeps_all_of(&self, writer: &Endpoint) -> Option<u32> {
        let both_reliable =
            [writer, &self.endpoint].iter().all(|end| end.qos.reliability == Reliability::Reliable);
        match self.history {
            History::KeepAll(depth) if both_reliable => Some(depth),
            History::AsPublished if both_reliable && writer.qos.keep_all => Some(writer.qos.depth),
            _ => None,
        }
    }

    /// Samples of a writer that were published before and are wanted.
    pub(crate) fn past(&self, writer: &Endpoint) -> u32 {
        match self.endpoint.qos.durability {
            Durability::TransientLocal => writer.qos.depth,
            Durability::Volatile => 0,
        }
    }

    /// Hands a change to the subscriber and wakes it.
    pub(crate) fn change(&self, change: Change) {
        if self.endpoint.qos.deadline.is_some()
            && let Ok(mut rhythms) = self.rhythms.lock()
        {
            rhythms.change(&change);
        }
        // Only a panic of the subscriber's thread poisons it, and then it is not read.
        if let Ok(mut changes) = self.changes.lock() {
            changes.push(change);
        }
        self.version.fetch_add(1, Ordering::Release);
        self.changes_of_node.count();
        self.wake();
    }

    /// When the last sample came, on the crystal; 0 for none. Only if there is a deadline.
    pub(crate) fn newest_ns(&self) -> i64 {
        self.rhythms.lock().map_or(0, |rhythms| rhythms.newest_ns())
    }

    /// Whether the subscriber has not seen all changes. It may just have fallen asleep when it was woken,
    /// so it must be woken again until it has.
    pub(crate) fn is_behind(&self) -> bool {
        self.seen.load(Ordering::Acquire) != self.version.load(Ordering::Acquire)
    }

    pub(crate) fn wake(&self) {
        futex_wake(&self.version);
        if let Ok(alarm) = self.alarm.lock()
            && let Some(alarm) = &*alarm
        {
            alarm.wake();
        }
    }
}
