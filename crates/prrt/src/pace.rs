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
//! or while the queue grows, that becomes a limit, less what drains the queue within [`DRAIN`]. Epochs without a queue
//! raise the limit, faster and faster, until it no longer binds. Limits that do not shorten the
//! delay are against someone else's queue or a longer way: then that delay becomes the floor.
//!
//! Without a limit nothing here delays a datagram.

use noctule_timebase::{Instant, Span};

use crate::stream::Local;

/// Shortest epoch.
const EPOCH_LEAST: Span = Span::from_ms(50);
/// Round trips that must all have been long before a queue is believed: one short one proves that there is none.
/// Fewer do under a limit, where a mistake costs little.
const LONG_ROUND_TRIPS: u32 = 16;
const LONG_ROUND_TRIPS_LIMITED: u32 = 6;
/// A queue is one if it is longer than this, and than a quarter of the floor.
const QUEUE_LEAST: Span = Span::from_ms(3);
/// A limit leaves so much room that the queue is gone after this, but never less than half.
const DRAIN: Span = Span::from_ms(500);
const DRAIN_LEAST: f64 = 0.5;
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
/// What may be saved up under a limit, in time; besides, one datagram may always leave as soon as nothing is owed.
const BURST: Span = Span::from_ms(2);
/// No limit is lower: a datagram a second says whether the path has recovered.
const LIMIT_LEAST_BYTES_PER_S: f64 = 1_500.0;

/// See the module.
#[derive(Debug)]
pub(crate) struct Pace {
    /// The shortest round trip that is believed to be possible.
    floor: Option<Span>,
    limit_bytes_per_s: Option<f64>,
    /// Bytes that may leave at `counted_at`; below 0 after a datagram that was longer.
    tokens_bytes: f64,
    counted_at: Instant<Local>,
    epoch: Epoch,
    /// The queue of the epoch before.
    queue_before: Span,
    growing: u32,
    /// What the path last bore with a queue, and epochs spent near that.
    ceiling_bytes_per_s: f64,
    near_ceiling: u32,
    /// Epochs since the queue last became shorter by an eighth.
    in_vain: u32,
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

impl Pace {
    pub(crate) fn new(now: Instant<Local>) -> Pace {
        Pace {
            floor: None,
            limit_bytes_per_s: None,
            tokens_bytes: 0.0,
            counted_at: now,
            epoch: Epoch::new(now),
            queue_before: Span::ZERO,
            growing: 0,
            ceiling_bytes_per_s: f64::MAX,
            near_ceiling: 0,
            in_vain: 0,
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

    /// When the next datagram may leave; in the past if at once.
    pub(crate) fn ready_at(&self) -> Instant<Local> {
        match self.limit_bytes_per_s {
            Some(limit) if self.tokens_bytes < 0.0 => {
                self.counted_at + Span::from_ns((-self.tokens_bytes / limit * 1e9).ceil() as i64)
            }
            _ => Instant::MIN,
        }
    }

    /// A datagram with a deadline leaves.
    pub(crate) fn sent(&mut self, bytes: usize, now: Instant<Local>) {
        self.epoch.sent_bytes += bytes;
        self.count(now);
        if self.limit_bytes_per_s.is_some() {
            self.tokens_bytes -= bytes as f64;
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
        self.floor = Some(self.floor.map_or(round_trip, |floor| floor.min(round_trip)));
        if sent_at < self.epoch.began {
            return;
        }
        self.epoch.round_trips += 1;
        self.epoch.least = Some(self.epoch.least.map_or(round_trip, |least| least.min(round_trip)));
    }

    /// Feedback has been taken in: judges the epoch, if it is over.
    pub(crate) fn handle_feedback(&mut self, now: Instant<Local>) {
        let Epoch { began, round_trips, least: Some(least), .. } = self.epoch else { return };
        let length = now - began;
        let Some(floor) = self.floor else { return };
        let queue = least - floor;
        let is_long = queue > QUEUE_LEAST.max(floor / 4);
        let needed =
            if self.limit_bytes_per_s.is_some() { LONG_ROUND_TRIPS_LIMITED } else { LONG_ROUND_TRIPS };
        if length < EPOCH_LEAST.max(floor * 2) || is_long && round_trips < needed {
            return;
        }
        self.count(now);
        if is_long {
            self.decrease(queue, least, length);
        } else {
            self.grow(length);
        }
        self.queue_before = queue;
        self.epoch = Epoch::new(now);
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
            None if self.epoch.lost == 0 && !grows => {}
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

    fn grow(&mut self, length: Span) {
        self.in_vain = 0;
        let Some(limit) = self.limit_bytes_per_s else { return };
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

    /// Brings the tokens up to date.
    fn count(&mut self, now: Instant<Local>) {
        let elapsed = now - self.counted_at;
        self.counted_at = self.counted_at.max(now);
        match self.limit_bytes_per_s {
            Some(limit) => {
                let burst = limit * BURST.as_s_f64();
                self.tokens_bytes = (self.tokens_bytes + limit * elapsed.as_s_f64().max(0.0)).min(burst);
            }
            None => self.tokens_bytes = 0.0,
        }
    }
}
