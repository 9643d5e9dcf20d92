//! DEADLINE kept or missed: DDS 1.4, 2.2.3.7, with the statuses OFFERED_DEADLINE_MISSED and REQUESTED_DEADLINE_MISSED.
//!
//! A deadline is a promise of the publisher and a demand of the subscriber: a sample at least this often. Each side
//! watches for itself, the publisher what it has published, the subscriber what has reached this host; so a sample lost
//! on the way is missed by one, a publisher that stalls by both. As in DDS the watch begins with the first sample, and
//! each period without one counts. Unlike there it goes on when the publisher is gone, for then the data are missing
//! no less.
//!
//! Sans-IO: the node's time-outs drive it. Nothing is done for a sample but to note when it came, so a gap that ends between
//! the due time and the time-out is not seen: gaps longer than the deadline by the thread's delay are.

use std::time::Duration;

use noctule_time_sync::Local;
use noctule_timebase::{Instant, Span};

use crate::clock::Raw;

/// Shorter deadlines are looked after this often, so that none keeps a core busy.
const SHORTEST_LOOK: Span = Span::from_ms(1);
/// Between two notices of one topic.
const NOTICE_PAUSE: Span = Span::from_s(1);

/// A duration that a user gives, in the unit of the cores; the longest there is if it does not fit.
pub(crate) fn span(duration: Duration) -> Span {
    Span::from_ns(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX - 1))
}

/// A share that a user gives, in millionths: at least one, at most all; what is not a number is the least.
pub(crate) fn loss_ppm(share: f64) -> u32 {
    // The cast saturates.
    ((share * 1e6).round() as u32).clamp(1, 1_000_000)
}

/// How often DEADLINE was missed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeadlineMissed {
    /// Periods without a sample, since the first sample.
    pub total: u64,
    /// When the last of them ended, on the node's clock; `None`: none was missed.
    pub last: Option<Instant<Local>>,
}

/// Keeps watch over one endpoint.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    pub(crate) period: Span,
    /// Where the current period began: with a sample, or with the end of a period missed. `None` before the first sample.
    since: Option<Instant<Raw>>,
    next_look: Instant<Raw>,
    /// The periods since the last sample were missed.
    is_missing: bool,
    next_notice: Instant<Raw>,
    total: u64,
    last: Option<Instant<Raw>>,
}

impl Watch {
    /// A promise or demand of a sample every `period`.
    pub(crate) fn new(period: Span, now: Instant<Raw>) -> Watch {
        let period = period.max(Span::from_ns(1));
        Watch {
            period,
            since: None,
            next_look: now + period.max(SHORTEST_LOOK),
            is_missing: false,
            next_notice: now,
            total: 0,
            last: None,
        }
    }

    /// Looks whether a period is over. `newest`: when the last sample came, `None` for none yet. True if the user should
    /// get a notice: at the first miss after a sample, once a second at most.
    pub(crate) fn handle_timeout(&mut self, newest: Option<Instant<Raw>>, now: Instant<Raw>) -> bool {
        if now < self.next_look {
            return false;
        }
        // Another process may have written nonsense.
        let newest = newest.map(|newest| newest.min(now));
        if newest > self.since {
            (self.since, self.is_missing) = (newest, false);
        }
        let mut tells = false;
        let due = match self.since {
            None => now + self.period,
            Some(since) => {
                let periods = (now - since).ns() / self.period.ns();
                let end = since + Span::from_ns(periods.saturating_mul(self.period.ns()));
                if periods > 0 {
                    self.total = self.total.saturating_add(periods as u64);
                    (self.since, self.last) = (Some(end), Some(end));
                    tells = !std::mem::replace(&mut self.is_missing, true) && now >= self.next_notice;
                }
                end + self.period
            }
        };
        if tells {
            self.next_notice = now + NOTICE_PAUSE;
        }
        self.next_look = due.max(now + SHORTEST_LOOK);
        tells
    }

    /// When to look again.
    pub(crate) fn poll_timeout(&self) -> Instant<Raw> {
        self.next_look
    }

    /// How often and when last.
    pub(crate) fn missed(&self) -> (u64, Option<Instant<Raw>>) {
        (self.total, self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Instant<Raw> {
        Instant::from_ns(ms * 1_000_000)
    }

    /// Lets time pass to `until_ms`, millisecond by millisecond, with a sample at each of `samples_ms`; returns when there was a notice.
    fn run(watch: &mut Watch, samples_ms: &[i64], until_ms: i64) -> Vec<i64> {
        let newest = |now: i64| samples_ms.iter().filter(|sample| **sample <= now).max().map(|ms| at(*ms));
        (0..=until_ms).filter(|now| watch.handle_timeout(newest(*now), at(*now))).collect()
    }

    fn watch(period_ms: i64) -> Watch {
        Watch::new(Span::from_ms(period_ms), at(0))
    }

    #[test]
    fn nothing_is_missed_before_the_first_sample_nor_while_they_come() {
        let mut idle = watch(10);
        assert!(run(&mut idle, &[], 1000).is_empty());
        assert_eq!(idle.missed(), (0, None));
        let mut steady = watch(10);
        let samples: Vec<i64> = (3..1000).step_by(10).collect();
        assert!(run(&mut steady, &samples, 1000).is_empty());
        assert_eq!(steady.missed(), (0, None));
    }

    #[test]
    fn each_period_without_a_sample_counts_and_the_spell_is_reported_once() {
        let mut watch = watch(10);
        assert_eq!(run(&mut watch, &[5, 12], 100), [22]);
        assert_eq!(watch.missed(), (8, Some(at(92))));
    }

    #[test]
    fn a_gap_between_samples_is_missed_however_the_looks_fall() {
        for phase in 0..10 {
            let mut watch = watch(10);
            run(&mut watch, &[phase, phase + 9, phase + 21, phase + 30], phase + 35);
            assert_eq!(watch.missed(), (1, Some(at(phase + 19))), "phase {phase}");
        }
    }

    #[test]
    fn a_thread_that_overslept_counts_all_periods() {
        let mut watch = watch(10);
        watch.handle_timeout(Some(at(7)), at(10));
        assert!(watch.handle_timeout(Some(at(7)), at(1000)));
        assert_eq!(watch.missed(), (99, Some(at(997))));
    }

    #[test]
    fn a_topic_that_stutters_is_reported_once_a_second() {
        let mut watch = watch(10);
        let samples: Vec<i64> = (0..3000).step_by(20).collect();
        let reported = run(&mut watch, &samples, 3000);
        assert_eq!(reported.len(), 3, "{reported:?}");
        assert!(reported.windows(2).all(|pair| pair[1] - pair[0] >= 1000), "{reported:?}");
        assert_eq!(watch.missed(), (151, Some(at(3000))));
    }

    #[test]
    fn a_deadline_of_a_nanosecond_is_looked_after_once_a_millisecond() {
        let mut watch = Watch::new(Span::from_ns(1), at(0));
        watch.handle_timeout(Some(at(1)), at(1));
        assert_eq!(watch.poll_timeout(), at(2));
        watch.handle_timeout(Some(at(1)), at(2));
        assert_eq!((watch.missed().0, watch.poll_timeout()), (1_000_000, at(3)));
    }

    #[test]
    fn a_sample_from_the_future_is_taken_for_one_of_now() {
        let mut watch = watch(10);
        watch.handle_timeout(Some(at(1_000_000)), at(10));
        assert!(watch.handle_timeout(Some(at(10)), at(20)));
        assert_eq!(watch.missed().0, 1);
    }
}
