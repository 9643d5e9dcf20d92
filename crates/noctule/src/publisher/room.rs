//! A publisher that keeps all: whether there is room for its next sample, and which reader of its host it waits for.

use std::sync::atomic::Ordering;
use std::time::Duration;

use noctule_shm_ring::Writer;
use noctule_sys::clock::{now_ns, sleep_until};

use super::Publisher;
use crate::deadline::span;
use crate::error::PublishError;
use crate::shared_topic::HELD_UP;

/// Between two looks at the readers of this host while a publisher waits for them.
const LOOK_AGAIN_HERE: Duration = Duration::from_micros(200);
/// Those of other hosts wake it; a new one of this host may have come.
const LOOK_AGAIN_ELSEWHERE: Duration = Duration::from_millis(10);

/// For how long the readers of this host have left no room.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    since_ns: Option<i64>,
    is_named: bool,
}

impl Waiting {
    /// There is room.
    fn end(&mut self) {
        *self = Waiting::default();
    }

    /// There is none. True if a reader is to be named now: once each time.
    fn is_long(&mut self, now_ns: i64) -> bool {
        let since_ns = *self.since_ns.get_or_insert(now_ns);
        now_ns.saturating_sub(since_ns) >= HELD_UP.ns() && !std::mem::replace(&mut self.is_named, true)
    }
}

impl Publisher {
    /// Whether no reader is behind by the history: on this host, and on others for a sample of so many bytes.
    pub(super) fn has_room(&mut self, elsewhere_bytes: Option<usize>) -> bool {
        self.has_room_here() && elsewhere_bytes.is_none_or(|bytes| self.shared.has_room(&self.topic, bytes))
    }

    fn has_room_here(&mut self) -> bool {
        let depth = self.topic.depth;
        let has_room = self.writer.as_mut().is_none_or(|writer| writer.has_room(depth));
        if has_room {
            self.waiting.end();
        } else if self.waiting.is_long(now_ns()) {
            self.name_reader();
        }
        has_room
    }

    /// A reader of this host does not read.
    #[cold]
    fn name_reader(&mut self) {
        self.topic.held_up.fetch_add(1, Ordering::Relaxed);
        if let Some(reader) = self.writer.as_mut().and_then(Writer::slowest_reader) {
            self.shared.name_reader(self.topic.id, reader);
        }
    }

    /// Waits up to `timeout` until a sample of `length_bytes` can be published with
    /// [`keep_all`](super::PublisherBuilder::keep_all); false when the time is over.
    pub fn wait_for_room(&mut self, length_bytes: usize, timeout: Duration) -> bool {
        if self.shared.is_in_child() {
            return false;
        }
        let end_ns = now_ns().saturating_add(span(timeout).ns());
        loop {
            if self.topic.is_fresh.load(Ordering::Acquire) {
                self.fetch_ring();
            }
            let left = Duration::from_nanos(end_ns.saturating_sub(now_ns()).max(0).unsigned_abs());
            if !self.has_room_here() {
                // Readers of this host do not wake their writer: that would cost them a system call for each sample.
                sleep_until(now_ns().saturating_add(span(left.min(LOOK_AGAIN_HERE)).ns()));
            } else if self.topic.remote_readers.load(Ordering::Relaxed) == 0
                || self.shared.wait_for_room(self.topic.id, length_bytes, left.min(LOOK_AGAIN_ELSEWHERE))
            {
                return true;
            }
            if left.is_zero() {
                return false;
            }
        }
    }

    #[cold]
    pub(super) fn would_have_blocked(&mut self) -> PublishError {
        self.would_block += 1;
        PublishError::WouldBlock { topic: self.topic.name.clone() }
    }

    /// How often nothing was published because a reader was behind by the whole history, with
    /// [`keep_all`](super::PublisherBuilder::keep_all): the call returned [`WouldBlock`](PublishError::WouldBlock).
    pub fn would_block(&self) -> u64 {
        self.would_block
    }

    /// How often a reader that keeps all had read nothing for 5 s although it had left no room: each time a
    /// [`Notice`](crate::Notice::HeldUp) names it.
    pub fn held_up(&self) -> u64 {
        self.topic.held_up.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_is_named_once_each_time_it_has_left_no_room_for_so_long() {
        let mut waiting = Waiting::default();
        let mut named = |seconds: std::ops::Range<i64>| {
            let times = seconds.filter(|second| waiting.is_long(second * 1_000_000_000));
            let times: Vec<i64> = times.collect();
            waiting.end();
            times
        };
        assert_eq!(named(0..60), [5]);
        assert_eq!(named(60..65), [0; 0], "it read on in time");
        assert_eq!(named(65..90), [70]);
    }
}
