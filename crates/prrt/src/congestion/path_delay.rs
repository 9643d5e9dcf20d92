//! The minimum RTT of the path, without a queue, and its jitter; from both the queueing delay.
//!
//! All that depends on whether there is a queue asks here: [`rate_limit`](super::rate_limit) and
//! [`window`](super::window).

use noctule_timebase::{Instant, Span};

use crate::stream::Local;

/// The floor is the shortest round trip of one to two such spans (BBRv3 has 10 s): a route that has become longer is
/// learned within them, and a queue of ours is drained more often.
const FLOOR_MEMORY: Span = Span::from_s(10);
/// Round trips over which jitter is averaged (RFC 3550, section 6.4.1).
const JITTER_OVER: i64 = 16;
/// The shortest of a few round trips lies above the floor by up to this many times the jitter although nothing queues:
/// with normal delays, the least of four lies 1.0 and the least of some thousands 3.4 deviations below the mean, and the
/// mean difference of two is 1.1.
const JITTERS: i64 = 4;
/// A round trip that no path has.
const NEVER: Span = Span::from_s(1 << 30);

/// Floor and jitter of the round trip.
#[derive(Debug)]
pub(crate) struct PathDelay {
    /// The shortest round trips of this memory span and the one before, and when this one began.
    floors: [Span; 2],
    since: Instant<Local>,
    latest: Option<Span>,
    /// Change of the round trip from one packet to the next: mean, and mean deviation from it.
    trend: Span,
    jitter: Span,
}

impl PathDelay {
    pub(crate) fn new(now: Instant<Local>) -> PathDelay {
        PathDelay { floors: [NEVER; 2], since: now, latest: None, trend: Span::ZERO, jitter: Span::ZERO }
    }

    /// A packet has been there and back, the other side's waiting taken off. A route that became longer loses no more than
    /// before: while long round trips come with losses (`queue_loses`) the floor is remembered on.
    pub(crate) fn measure(&mut self, round_trip: Span, queue_loses: bool, now: Instant<Local>) {
        if now - self.since > FLOOR_MEMORY {
            let remembered = if queue_loses { self.floors[0].min(self.floors[1]) } else { self.floors[0] };
            (self.floors, self.since) = ([NEVER, remembered], now);
        }
        self.floors[0] = self.floors[0].min(round_trip);
        if let Some(latest) = self.latest.replace(round_trip) {
            let change = round_trip - latest;
            self.jitter += ((change - self.trend).abs() - self.jitter) / JITTER_OVER;
            self.trend += (change - self.trend) / JITTER_OVER;
        }
    }

    /// The shortest round trip that is possible at present; 0 before the first.
    pub(crate) fn floor(&self) -> Span {
        let floor = self.floors[0].min(self.floors[1]);
        if floor == NEVER { Span::ZERO } else { floor }
    }

    /// A round trip may be longer than the floor by so much without a queue.
    pub(crate) fn noise(&self) -> Span {
        self.jitter * JITTERS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(trips_ms: impl Iterator<Item = i64>) -> PathDelay {
        let mut delay = PathDelay::new(Instant::from_ns(0));
        for (number, trip_ms) in trips_ms.enumerate() {
            delay.measure(Span::from_ms(trip_ms), false, Instant::from_ns(number as i64 * 5_000_000));
        }
        delay
    }

    #[test]
    fn a_longer_route_is_the_floor_once_the_shorter_one_is_old() {
        let route = |seconds: usize| after((0..200 * seconds).map(|n| if n < 200 { 20 } else { 100 }));
        assert_eq!(route(9).floor(), Span::from_ms(20));
        assert_eq!(route(22).floor(), Span::from_ms(100));
    }

    #[test]
    fn a_queue_that_grows_is_no_jitter_and_a_wild_path_is() {
        assert!(after((0..200).map(|n| 20 + 5 * n)).noise() < Span::from_ms(1));
        assert!(after((0..200).map(|n| 20 + n % 2 * 10)).noise() > Span::from_ms(25));
    }
}
