//! Flow control (RFC 9000, section 4): a reader that takes no more for now holds up its writer, and no other.
//!
//! The reader's side says up to which position it takes a writer's samples; what lies beyond is not sent. A limit is repeated only when
//! the writer asks: a lost one costs a question, an idle one nothing.

use std::collections::BTreeMap;

use noctule_timebase::{Instant, Span};

use crate::stream::{Local, StreamId};

/// A writer that waits for its reader asks after this whether the limit has moved, ...
const QUESTION_PAUSE: Span = Span::from_ms(10);
/// ... and then after twice as long each time, up to this: a limit that was lost costs no more.
pub(crate) const QUESTION_PAUSE_MAX: Span = Span::from_ms(200);

/// The room at the reader's side.
#[derive(Debug, Default)]
pub(crate) struct Credit {
    /// Samples beside those that were delivered; `None`: any number.
    left: Option<u64>,
    /// The limit that the writer was given last.
    announced: u64,
    is_due: bool,
}

impl Credit {
    /// There is room for `room` samples beside those delivered before position `next`, of `window` that there is room for at most. A limit
    /// once given is never taken back. Gives from how much room on the writer is to hear of it.
    pub(crate) fn grant(&mut self, (room, window): (u32, u32), next: Option<u64>) -> u32 {
        let left = self.left.unwrap_or_else(|| {
            // There was no limit.
            self.announced = 0;
            0
        });
        self.left = Some(left.max(room.into()));
        let Some(next) = next else { return 0 };
        // A quarter of a window at a time: not each sample costs a datagram, and when one is lost others come before all is read.
        let step = u64::from(window / 4).max(1);
        let limit = self.limit(next);
        self.is_due |= limit >= self.announced.saturating_add(step);
        let known = if self.is_due { limit } else { self.announced };
        u32::try_from(known.saturating_sub(next).saturating_add(step)).unwrap_or(u32::MAX)
    }

    /// There is room for all.
    pub(crate) fn lift(&mut self) {
        self.is_due |= self.left.take().is_some();
    }

    /// The writer wants to know.
    pub(crate) fn ask(&mut self) {
        self.is_due = true;
    }

    /// A sample was delivered.
    pub(crate) fn take(&mut self) {
        self.left = self.left.map(|left| left.saturating_sub(1));
    }

    /// Whether there is no room yet for the sample at a position. Then its writer has not received the limit.
    pub(crate) fn refuses(&mut self, position: u64, next: Option<u64>) -> bool {
        let refuses = next.is_some_and(|next| position >= self.limit(next));
        self.is_due |= refuses;
        refuses
    }

    /// The limit, if the writer is to be given it.
    pub(crate) fn poll(&mut self, next: Option<u64>) -> Option<u64> {
        let next = next.filter(|_| std::mem::take(&mut self.is_due))?;
        self.announced = self.limit(next);
        Some(self.announced)
    }

    fn limit(&self, next: u64) -> u64 {
        self.left.map_or(u64::MAX, |left| next.saturating_add(left))
    }
}

/// Writers here that wait for their reader.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    writers: BTreeMap<StreamId, Wait>,
}

#[derive(Debug)]
struct Wait {
    since: Instant<Local>,
    ask_at: Instant<Local>,
    pause: Span,
    is_noted: bool,
}

impl Waiting {
    /// A writer has something to send, and its reader takes nothing.
    pub(crate) fn begin(&mut self, writer: StreamId, now: Instant<Local>) {
        let (ask_at, pause) = (now + QUESTION_PAUSE, QUESTION_PAUSE);
        self.writers.entry(writer).or_insert(Wait { since: now, ask_at, pause, is_noted: false });
    }

    /// It has no reason to wait any more.
    pub(crate) fn end(&mut self, writer: StreamId) {
        self.writers.remove(&writer);
    }

    /// A writer that is to ask now.
    pub(crate) fn poll_question(&mut self, now: Instant<Local>) -> Option<StreamId> {
        let (writer, wait) = self.writers.iter_mut().find(|(_, wait)| wait.ask_at <= now)?;
        wait.pause = (wait.pause * 2).min(QUESTION_PAUSE_MAX);
        wait.ask_at = now + wait.pause;
        Some(*writer)
    }

    /// A writer that has waited for `timeout`, once.
    pub(crate) fn poll_long(&mut self, timeout: Span, now: Instant<Local>) -> Option<StreamId> {
        let is_new = |wait: &Wait| !wait.is_noted && now - wait.since >= timeout;
        let (writer, wait) = self.writers.iter_mut().find(|(_, wait)| is_new(wait))?;
        wait.is_noted = true;
        Some(*writer)
    }

    pub(crate) fn timeout(&self) -> Option<Instant<Local>> {
        self.writers.values().map(|wait| wait.ask_at).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Instant<Local> {
        Instant::from_ns(ms * 1_000_000)
    }

    #[test]
    fn a_limit_is_given_a_quarter_of_a_window_at_a_time_and_never_taken_back() {
        let mut credit = Credit::default();
        assert_eq!((credit.grant((8, 8), None), credit.poll(None)), (0, None), "nothing came yet");
        assert_eq!((credit.grant((8, 8), Some(100)), credit.poll(Some(100))), (10, Some(108)));
        (0..8).for_each(|_| credit.take());
        assert!(credit.refuses(108, Some(108)));
        assert_eq!(credit.poll(Some(108)), Some(108), "the writer did not know");
        assert_eq!((credit.grant((1, 8), Some(108)), credit.poll(Some(108))), (2, None));
        assert!(!credit.refuses(108, Some(108)), "there is room, although no limit was sent");
        assert_eq!((credit.grant((4, 8), Some(108)), credit.poll(Some(108))), (6, Some(112)));
        assert_eq!((credit.grant((1, 8), Some(108)), credit.poll(Some(108))), (6, None));
        assert!(!credit.refuses(111, Some(108)));
        credit.lift();
        assert_eq!((credit.poll(Some(108)), credit.poll(Some(108))), (Some(u64::MAX), None));
    }

    #[test]
    fn a_sender_that_waits_asks_ever_more_seldom_and_is_named_once() {
        let mut waiting = Waiting::default();
        let writer = StreamId(7);
        waiting.begin(writer, at(0));
        waiting.begin(writer, at(20));
        let asked: Vec<i64> = (0..800).filter(|ms| waiting.poll_question(at(*ms)).is_some()).collect();
        assert_eq!(asked, [10, 30, 70, 150, 310, 510, 710]);
        let timeout = Span::from_s(5);
        assert_eq!(
            (waiting.poll_long(timeout, at(4_999)), waiting.poll_long(timeout, at(5_000))),
            (None, Some(writer))
        );
        assert_eq!((waiting.poll_long(timeout, at(9_000)), waiting.timeout()), (None, Some(at(910))));
        waiting.end(writer);
        assert_eq!(waiting.timeout(), None);
    }
}
