//! How fast datagrams with a deadline may leave when the path bears less than is offered.
//!
//! # Problem
//!
//! The rate of such samples is the application's, and repairs come on top. On a path that loses by chance that is
//! right; on one that loses because it is full, every repair is another loss.
//!
//! # Approach
//!
//! The two are told apart by delay: chance losses leave the round trip at its floor, a full path has a queue. In
//! *epochs* of two round trips, if even the shortest round trip of what left in them is above the floor, something is
//! queueing all the time, and what arrives is what the path bears (BBR's bandwidth, Cardwell et al. 2016). With losses,
//! or while the queue grows and less arrives than is sent, that becomes a limit, less what drains the queue within [`DRAIN`]. Epochs without a queue
//! raise the limit, faster and faster, until it no longer binds. Limits that do not shorten the
//! delay are against someone else's queue or a longer way: then that delay becomes the floor.
//!
//! Until a limit is set the queue grows by all that is sent on suspicion; so some long round trips in a row are
//! doubt enough to send only what is surely needed ([`is_doubtful`](RateLimit::is_doubtful)).
//!
//! Without a limit nothing here delays a datagram.

use noctule_timebase::{Instant, Span};

use crate::congestion::pacer::Pacer;
use crate::stream::Local;

/// Shortest epoch.
const EPOCH_LEAST: Span = Span::from_ms(50);
/// Round trips that must all have been long before a queue is believed: one short one proves that there is none.
/// Fewer do under a limit, where a mistake costs little.
const LONG_ROUND_TRIPS: u32 = 16;
const LONG_ROUND_TRIPS_LIMITED: u32 = 6;
/// Round trips in a row that were long and leave doubt, before a queue is believed.
const LONG_IN_A_ROW: u32 = 8;
/// A queue is one if it is longer than this, and than a quarter of the floor.
const QUEUE_LEAST: Span = Span::from_ms(3);
/// A path on which this part of what is sent arrives meanwhile is not full, whatever it delays: radios stall and catch up.
const CARRIED: f64 = 0.95;
/// A limit leaves so much room that the queue is gone after this, but never less than half.
const DRAIN: Span = Span::from_ms(500);
const DRAIN_LEAST: f64 = 0.5;
/// A queue that is gone sooner after the first limit, with nothing lost, was a stall: a limit does not drain so fast.
const STALL: Span = Span::from_ms(250);
/// Part of what arrives that a limit begins with, the queue aside.
const SHARE_OF_ARRIVED: f64 = 0.95;
/// Growth of the limit by an epoch without a queue; each further one in a row adds as much.
const GROWTH: f64 = 0.04;
const GROWTH_MAX: f64 = 1.3;
/// Less than this part of what was sent arrives: the limit is still too high.
const STILL_TOO_MUCH: f64 = 0.75;
/// Decrease of the limit by an epoch whose queue is not shorter by an eighth.
const DECREASE: f64 = 0.85;
/// A queue that as many decreases in a row do not shorten is not ours.
const EPOCHS_IN_VAIN: u32 = 4;
/// Near the last limit that was too high, growth rests for so many epochs (as CUBIC's does near its last window).
const EPOCHS_NEAR_CEILING: u32 = 40;
const NEAR_CEILING: f64 = 0.9;
/// What is offered is averaged over this, and fits if so much times it is less than what the path carries.
const OFFERED_OVER: Span = Span::from_ms(500);
const OFFERED_MARGIN: f64 = 1.05;
/// No limit is lower: a datagram a second says whether the path has recovered.
const LIMIT_LEAST_BYTES_PER_S: f64 = 1_500.0;

/// See the module.
#[derive(Debug)]
pub(crate) struct RateLimit {
    /// The shortest round trip that is believed to be possible.
    floor: Option<Span>,
    limit_bytes_per_s: Option<f64>,
    /// When there was last no limit, and whether something was lost in that epoch or since.
    limited_at: Instant<Local>,
    lost_since: bool,
    bucket: Pacer,
    epoch: Epoch,
    /// Round trips above the floor since the last short one.
    long_in_a_row: u32,
    /// The queue of the epoch before.
    queue_before: Span,
    growing: u32,
    /// What the path last bore with a queue, and epochs spent near that.
    ceiling_bytes_per_s: f64,
    near_ceiling: u32,
    /// Epochs since the queue last became shorter by an eighth.
    in_vain: u32,
    /// What the application wants to send: averaged, and without the half of what came last.
    offered_bytes_per_s: f64,
    offered_mean_bytes_per_s: f64,
    offered_at: Instant<Local>,
    /// The queue then.
    queue_at_decrease: Span,
}

/// What became known in one epoch.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    began: Instant<Local>,
    arrived_bytes: usize,
    sent_bytes: usize,
    lost: u32,
    round_trips: u32,
    least: Option<Span>,
}

impl Epoch {
    fn new(began: Instant<Local>) -> Epoch {
        Epoch { began, arrived_bytes: 0, sent_bytes: 0, lost: 0, round_trips: 0, least: None }
    }
}

impl RateLimit {
    pub(crate) fn new(now: Instant<Local>) -> RateLimit {
        RateLimit {
            floor: None,
            limit_bytes_per_s: None,
            limited_at: now,
            lost_since: false,
            bucket: Pacer::new(now),
            epoch: Epoch::new(now),
            long_in_a_row: 0,
            queue_before: Span::ZERO,
            growing: 0,
            ceiling_bytes_per_s: f64::MAX,
            near_ceiling: 0,
            in_vain: 0,
            offered_bytes_per_s: 0.0,
            offered_mean_bytes_per_s: 0.0,
            offered_at: now,
            queue_at_decrease: Span::ZERO,
        }
    }

    /// What the path bears, if it is less than was offered.
    pub(crate) fn limit_bytes_per_s(&self) -> Option<f64> {
        self.limit_bytes_per_s
    }

    /// The shortest round trip that is believed to be possible; 0 before the first.
    pub(crate) fn floor(&self) -> Span {
        self.floor.unwrap_or(Span::ZERO)
    }

    /// Whether the path may be full: a limit comes later, and what is sent in doubt until then would make the queue longer.
    pub(crate) fn is_doubtful(&self, capacity_bytes_per_s: Option<f64>) -> bool {
        !self.fits(capacity_bytes_per_s) && self.long_in_a_row >= LONG_IN_A_ROW
    }

    /// When the next datagram may leave; in the past if at once.
    pub(crate) fn ready_at(&self) -> Instant<Local> {
        self.bucket.ready_at(self.limit_bytes_per_s)
    }

    /// The application has so many bytes to send.
    pub(crate) fn offer(&mut self, bytes: usize, now: Instant<Local>) {
        let over = OFFERED_OVER.as_s_f64();
        let fades = (-(now - self.offered_at).as_s_f64() / over).exp();
        let more = bytes as f64 / over;
        self.offered_bytes_per_s = self.offered_bytes_per_s * fades + more;
        self.offered_mean_bytes_per_s = self.offered_bytes_per_s - more / 2.0;
        self.offered_at = now;
    }

    /// A datagram with a deadline leaves.
    pub(crate) fn sent(&mut self, bytes: usize, now: Instant<Local>) {
        self.epoch.sent_bytes += bytes;
        self.bucket.count(self.limit_bytes_per_s, now);
        if self.limit_bytes_per_s.is_some() {
            self.bucket.spend(bytes);
        }
    }

    /// One has arrived.
    pub(crate) fn arrived(&mut self, bytes: usize) {
        self.epoch.arrived_bytes += bytes;
    }

    /// One was lost.
    pub(crate) fn lost(&mut self) {
        self.epoch.lost += 1;
    }

    /// The round trip of what left at `sent_at`, the other side's waiting taken off.
    pub(crate) fn measure(&mut self, round_trip: Span, sent_at: Instant<Local>) {
        let floor = self.floor.map_or(round_trip, |floor| floor.min(round_trip));
        self.floor = Some(floor);
        self.long_in_a_row =
            if is_long(round_trip - floor, floor) { self.long_in_a_row.saturating_add(1) } else { 0 };
        if sent_at < self.epoch.began {
            return;
        }
        self.epoch.round_trips += 1;
        self.epoch.least = Some(self.epoch.least.map_or(round_trip, |least| least.min(round_trip)));
    }

    /// Feedback has been taken in: judges the epoch, if it is over. A queue in front of a path that is known to carry what
    /// is offered is one of a long sample, and drains.
    pub(crate) fn handle_feedback(&mut self, capacity_bytes_per_s: Option<f64>, now: Instant<Local>) {
        let Epoch { began, round_trips, least: Some(least), .. } = self.epoch else { return };
        let length = now - began;
        let Some(floor) = self.floor else { return };
        let queue = least - floor;
        let is_long = is_long(queue, floor);
        let needed =
            if self.limit_bytes_per_s.is_some() { LONG_ROUND_TRIPS_LIMITED } else { LONG_ROUND_TRIPS };
        if length < EPOCH_LEAST.max(floor * 2) || is_long && round_trips < needed {
            return;
        }
        self.bucket.count(self.limit_bytes_per_s, now);
        if self.limit_bytes_per_s.is_none() {
            (self.limited_at, self.lost_since) = (now, false);
        }
        self.lost_since |= self.epoch.lost > 0;
        if self.fits(capacity_bytes_per_s) {
            self.limit_bytes_per_s = None;
        } else if is_long {
            self.decrease(queue, least, length);
        } else {
            self.grow(length, now);
        }
        self.queue_before = queue;
        self.epoch = Epoch::new(now);
    }

    /// Whether the path is known to carry what is offered.
    fn fits(&self, capacity_bytes_per_s: Option<f64>) -> bool {
        let offered = self.offered_mean_bytes_per_s * OFFERED_MARGIN;
        capacity_bytes_per_s.is_some_and(|capacity| offered < capacity)
    }

    fn decrease(&mut self, queue: Span, least: Span, length: Span) {
        (self.growing, self.near_ceiling) = (0, 0);
        let [arrived, sent] =
            [self.epoch.arrived_bytes, self.epoch.sent_bytes].map(|bytes| bytes as f64 / length.as_s_f64());
        let drains = (1.0 - queue.as_s_f64() / DRAIN.as_s_f64()).max(DRAIN_LEAST);
        let bearable = (arrived * SHARE_OF_ARRIVED * drains).max(LIMIT_LEAST_BYTES_PER_S);
        self.ceiling_bytes_per_s = arrived;
        let grows = queue > self.queue_before + self.queue_before / 8 + QUEUE_LEAST;
        match self.limit_bytes_per_s {
            None if self.epoch.lost == 0 && !(grows && arrived < sent * CARRIED) => {}
            None => {
                self.limit_bytes_per_s = Some(bearable);
                (self.in_vain, self.queue_at_decrease) = (0, queue);
            }
            // It drains.
            Some(_) if queue + self.queue_at_decrease / 8 < self.queue_at_decrease => {
                (self.in_vain, self.queue_at_decrease) = (0, queue);
            }
            Some(_) if self.in_vain >= EPOCHS_IN_VAIN => {
                (self.floor, self.in_vain) = (Some(least), 0);
            }
            Some(limit) => {
                self.in_vain += 1;
                let bearable = if arrived < sent * STILL_TOO_MUCH { bearable } else { limit };
                self.limit_bytes_per_s = Some((limit * DECREASE).min(bearable).max(LIMIT_LEAST_BYTES_PER_S));
                self.queue_at_decrease = queue.max(self.queue_at_decrease);
            }
        }
    }

    fn grow(&mut self, length: Span, now: Instant<Local>) {
        self.in_vain = 0;
        let Some(limit) = self.limit_bytes_per_s else { return };
        if !self.lost_since && now - self.limited_at < STALL {
            (self.limit_bytes_per_s, self.ceiling_bytes_per_s) = (None, f64::MAX);
            return;
        }
        if limit >= self.ceiling_bytes_per_s * NEAR_CEILING && self.near_ceiling < EPOCHS_NEAR_CEILING {
            self.near_ceiling += 1;
            return;
        }
        self.growing += 1;
        let sent = self.epoch.sent_bytes as f64 / length.as_s_f64();
        let grown = limit * (1.0 + GROWTH * f64::from(self.growing)).min(GROWTH_MAX);
        // It no longer binds, even if twice as much is offered.
        self.limit_bytes_per_s = (limit < sent * 2.0).then_some(grown);
    }
}

fn is_long(queue: Span, floor: Span) -> bool {
    queue > QUEUE_LEAST.max(floor / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(trips_ms: &[i64]) -> RateLimit {
        let mut pace = RateLimit::new(Instant::MIN);
        trips_ms.iter().for_each(|trip_ms| pace.measure(Span::from_ms(*trip_ms), Instant::MIN));
        pace
    }

    #[test]
    fn eight_long_round_trips_in_a_row_leave_doubt_and_a_short_one_ends_it() {
        assert!(!after(&[20, 30, 31, 32, 33, 34, 35, 36]).is_doubtful(None));
        assert!(after(&[20, 30, 31, 32, 33, 34, 35, 36, 37]).is_doubtful(None));
        assert!(!after(&[20, 30, 31, 32, 33, 34, 35, 36, 37, 24]).is_doubtful(None));
        // A path that is known to carry what is offered has a queue now and then.
        assert!(!after(&[20, 30, 31, 32, 33, 34, 35, 36, 37]).is_doubtful(Some(1.0)));
    }

    /// 115 B every 5 ms over a floor of 6 ms and through a queue, each heard of when it has been there and back.
    fn through(queue_ms: impl Fn(i64) -> i64, samples: i64) -> RateLimit {
        let at = |ms| Instant::from_ns(ms * 1_000_000);
        let mut pace = RateLimit::new(at(0));
        let mut heard: Vec<(i64, i64)> = (0..samples).map(|n| (5 * n + 6 + queue_ms(n), n)).collect();
        heard.sort_unstable();
        let mut heard = heard.into_iter().peekable();
        for now in 0..5 * samples {
            if now % 5 == 0 {
                pace.offer(115, at(now));
                pace.sent(115, at(now));
            }
            while let Some((when, n)) = heard.next_if(|(when, _)| *when == now) {
                pace.arrived(115);
                pace.measure(Span::from_ms(when - 5 * n), at(5 * n));
                pace.handle_feedback(None, at(now));
            }
        }
        pace
    }

    #[test]
    fn a_radio_that_stalls_and_catches_up_is_not_full() {
        for (stall_ms, length) in [(20, 10), (40, 20), (45, 15)] {
            let stall = |n: i64| (stall_ms - (n - 200).abs() * stall_ms / length).max(0);
            assert_eq!(through(stall, 600).limit_bytes_per_s(), None, "{stall_ms} ms");
        }
        assert!(through(|n| (n - 200).max(0) / 2, 600).limit_bytes_per_s().is_some(), "a tenth too much");
    }
}
