//! Events that wait to be fetched.

use std::collections::VecDeque;

use noctule_timebase::{Instant, Local};

/// Events kept at once; beyond that the oldest are dropped and counted.
pub const EVENTS_LIMIT: usize = 4_096;

/// The events of one state machine; off until [`start`](Log::start).
#[derive(Clone, Debug)]
pub struct Log<E>(Option<Box<Kept<E>>>);

#[derive(Clone, Debug)]
struct Kept<E> {
    now: Option<Instant<Local>>,
    events: VecDeque<(Instant<Local>, E)>,
    dropped: u64,
}

impl<E> Default for Log<E> {
    fn default() -> Log<E> {
        Log(None)
    }
}

impl<E> Log<E> {
    /// From now on events are kept, at most [`EVENTS_LIMIT`].
    pub fn start(&mut self) {
        self.0.get_or_insert_with(|| Box::new(Kept { now: None, events: VecDeque::new(), dropped: 0 }));
    }

    /// Whether events are kept.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Sets the time of the events that follow.
    #[inline]
    pub fn at(&mut self, now: Instant<Local>) {
        if let Some(kept) = &mut self.0 {
            kept.now = Some(now);
        }
    }

    /// Notes an event, which is made only if events are kept. One before the first [`at`](Log::at) has no time, and is not kept.
    #[inline]
    pub fn note(&mut self, event: impl FnOnce() -> E) {
        if let Some(kept) = &mut self.0 {
            kept.push(event());
        }
    }

    /// As [`note`](Log::note), of an event that needs the time.
    #[inline]
    pub fn note_at(&mut self, event: impl FnOnce(Instant<Local>) -> E) {
        if let Some(kept) = &mut self.0
            && let Some(now) = kept.now
        {
            kept.push(event(now));
        }
    }

    /// The oldest event that was not fetched, and when it was.
    pub fn poll(&mut self) -> Option<(Instant<Local>, E)> {
        self.0.as_mut()?.events.pop_front()
    }

    /// Events dropped since the last call.
    pub fn poll_dropped(&mut self) -> u64 {
        self.0.as_mut().map_or(0, |kept| std::mem::take(&mut kept.dropped))
    }
}

impl<E> Kept<E> {
    #[cold]
    fn push(&mut self, event: E) {
        let Some(now) = self.now else { return };
        if self.events.len() >= EVENTS_LIMIT {
            self.events.pop_front();
            self.dropped += 1;
        }
        self.events.push_back((now, event));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn off_nothing_is_made_and_on_the_newest_are_kept_and_the_rest_counted() {
        let mut log = Log::default();
        log.at(Instant::from_ns(1));
        log.note(|| -> u64 { panic!("nobody wants it") });
        assert_eq!((log.is_on(), log.poll(), log.poll_dropped()), (false, None, 0));
        log.start();
        log.note(|| 0);
        assert_eq!(log.poll(), None, "it has no time");
        for number in 0..EVENTS_LIMIT as u64 + 3 {
            log.at(Instant::from_ns(number as i64));
            log.note(|| number);
        }
        assert_eq!(log.poll(), Some((Instant::from_ns(3), 3)));
        assert_eq!((log.poll_dropped(), log.poll_dropped()), (3, 0));
        assert_eq!(std::iter::from_fn(|| log.poll()).count(), EVENTS_LIMIT - 1);
    }
}
