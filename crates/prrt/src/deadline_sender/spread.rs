//! Pacing of long samples with a deadline (RFC 9002, section 7.7): how fast one leaves.
//!
//! # Problem
//!
//! A sample of hundreds of datagrams that leaves at once fills the queue of a slow line, where it is lost or delays what others send.
//! One that is spread over all of its time until the deadline is as old as its deadline allows when it arrives, although the line would
//! have carried it in a fraction of that, and a thread that wakes late makes it too late.
//!
//! # Approach
//!
//! Slow start, sample by sample: the first is spread over most of what its deadline and the next sample leave. A sample of which nothing
//! was lost and that made no queue shows that the path carries its rate, so the next may leave twice as fast, up to the capacity as
//! [estimated](crate::congestion::bandwidth). That estimate may be too low, because threads that wake late stretch trains, too: now and
//! then a sample is sent a quarter faster, and if it makes no queue either, the next is a quarter faster again. A sample that lost a
//! datagram or made a queue halves the rate, which then rests for a while, each time longer. On a path that loses by chance samples stay
//! spread, which is what outlives bursts.

use noctule_timebase::{Instant, Span};

use super::{DeadlineStream, HEADER_BYTES};
use crate::block::Block;
use crate::stream::Local;

/// Samples of so many datagrams are sent without a pause (RFC 6928 has ten).
const AT_ONCE: usize = 16;
/// A long sample leaves so much faster than the estimated capacity: a short queue keeps the line busy while a thread wakes late.
const OVER_CAPACITY: f64 = 1.03;
/// This part of the time until the deadline is left for threads that wake late, on either side.
const LATE_PARTS: i64 = 4;

/// More than a thread encodes and seals. What leaves without a pause teaches nothing any more.
const BYTES_PER_S_MAX: f64 = 2e9;
/// Growth below the estimated capacity, and beyond.
const GROWTH: f64 = 2.0;
const GROWTH_BEYOND: f64 = 1.25;
/// Round trips so much longer than the shortest are through a queue; threads that are taken off their core between the clock and the socket make up to a
/// millisecond.
const QUEUE_MOST: Span = Span::from_ms(2);
/// A line that is as slow as estimated shows so long a queue, for the rate is a little above it: there is nothing to try.
const QUEUE_OF_THE_LINE: Span = Span::from_ms(1);
/// Samples for which the rate rests after it was too high, and before it is raised beyond the estimated capacity: the first time, and at most. After as many
/// clean ones in a row it is half as many the next time.
const REST: (u32, u32) = (16, 256);
/// A sample that left at less than this part of the rate proves nothing; one that left at more than this part of the capacity was at it.
const AS_FAST: f64 = 0.9;
const AT_CAPACITY: f64 = 0.98;

/// The rate of the long samples of one stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spread {
    /// 0 before the first sample has arrived.
    bytes_per_s: f64,
    /// The sample whose blocks end now, at what rate it was sent, and whether it was neither lossy nor queued so far.
    sequence: u64,
    sent_bytes_per_s: f64,
    is_clean: bool,
    queue: Span,
    clean_in_a_row: u32,
    /// The newest sample when the rate was lowered last.
    lowered_after: u64,
    /// Clean samples until the rate may rise again, and how many it will be the next time.
    rest: u32,
    next_rest: u32,
}

/// A block of a long sample.
#[derive(Clone, Copy, Debug)]
pub(super) struct LongBlock {
    pub(super) sequence: u64,
    /// The rate at which it was to leave.
    pub(super) bytes_per_s: f64,
    /// A datagram of it was lost.
    pub(super) is_lossy: bool,
    /// This host stalled meanwhile, so that losses and queues may be its own doing.
    pub(super) has_stalled: bool,
}

/// The stream and its path at the time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Context {
    /// The newest sample.
    pub(super) newest: u64,
    /// The estimated capacity and a little more, if that is known.
    pub(super) line_bytes_per_s: Option<f64>,
}

impl Spread {
    pub(super) fn new() -> Spread {
        Spread {
            bytes_per_s: 0.0,
            sequence: 0,
            sent_bytes_per_s: 0.0,
            is_clean: false,
            queue: Span::ZERO,
            clean_in_a_row: 0,
            lowered_after: 0,
            rest: 0,
            next_rest: REST.0,
        }
    }

    /// The time over which a sample of so many bytes is to be spread that may take `longest`.
    pub(super) fn time(&self, bytes: usize, longest: Span) -> Span {
        time_at(self.bytes_per_s, bytes).min(longest)
    }

    /// A datagram of a block was lost.
    pub(super) fn handle_loss(&mut self, block: LongBlock, context: Context) {
        // Those that are older left before the rate was lowered last.
        if block.sequence > self.lowered_after && !block.has_stalled {
            self.fall(block.bytes_per_s, context.line_bytes_per_s);
            self.lowered_after = context.newest;
        }
    }

    /// A block of a long sample has ended; round trips are longer than the shortest by `queue`.
    pub(super) fn handle_end(&mut self, block: LongBlock, queue: Span, context: Context) {
        if block.sequence != self.sequence {
            if self.is_clean && self.sent_bytes_per_s > AS_FAST * self.bytes_per_s {
                self.count_clean();
                self.rise(context.line_bytes_per_s);
            }
            (self.sequence, self.sent_bytes_per_s) = (block.sequence, block.bytes_per_s);
            (self.is_clean, self.queue) = (true, Span::ZERO);
        }
        self.queue = self.queue.max(queue);
        if block.is_lossy || queue > QUEUE_MOST {
            self.is_clean = false;
            self.handle_loss(block, context);
        }
    }

    fn rise(&mut self, line_bytes_per_s: Option<f64>) {
        if self.rest > 0 {
            self.rest -= 1;
            return;
        }
        let (sent, line_bytes_per_s) = (self.sent_bytes_per_s, line_bytes_per_s.unwrap_or(f64::INFINITY));
        if sent * GROWTH < line_bytes_per_s {
            self.bytes_per_s = sent * GROWTH;
        } else if sent < line_bytes_per_s * AT_CAPACITY {
            (self.bytes_per_s, self.rest) = (line_bytes_per_s, self.next_rest);
        } else if self.queue < QUEUE_OF_THE_LINE {
            self.bytes_per_s = sent * GROWTH_BEYOND;
        }
        self.bytes_per_s = self.bytes_per_s.min(BYTES_PER_S_MAX);
    }

    fn count_clean(&mut self) {
        self.clean_in_a_row += 1;
        if self.clean_in_a_row >= self.next_rest {
            (self.clean_in_a_row, self.next_rest) = (0, (self.next_rest / 2).max(REST.0));
        }
    }

    fn fall(&mut self, sent: f64, line_bytes_per_s: Option<f64>) {
        // No lower than the estimated capacity, if it was beyond.
        let least = line_bytes_per_s.filter(|capacity| sent > *capacity).unwrap_or(0.0);
        self.bytes_per_s = (sent / GROWTH).max(least).min(self.bytes_per_s);
        (self.rest, self.next_rest) = (self.next_rest, (self.next_rest * 2).min(REST.1));
        self.clean_in_a_row = 0;
    }
}

impl DeadlineStream {
    /// Time between the datagrams of a long sample. It is spread over what its deadline and the next sample leave, a round trip
    /// for repairs aside, or what the line takes for it if that is more and can still be in time; over less once the path has shown that it
    /// carries more.
    pub(super) fn spacing(
        &self,
        fragments: usize,
        bytes: usize,
        deadline_at: Instant<Local>,
        now: Instant<Local>,
    ) -> Span {
        if fragments <= AT_ONCE {
            return Span::ZERO;
        }
        let until_deadline = deadline_at - now - self.round / 2;
        let interval = self.interval.unwrap_or(until_deadline);
        let latest = until_deadline - until_deadline / LATE_PARTS;
        let long = latest.min(until_deadline - self.round).min(interval - interval / 8);
        let bytes = bytes + fragments * HEADER_BYTES;
        let on_the_line = self.line_bytes_per_s().map_or(Span::ZERO, |rate| time_at(rate, bytes));
        let longest = long.max(Span::ZERO).max(on_the_line.min(until_deadline));
        self.spread.time(bytes, longest) / fragments as i64
    }

    /// What the spread has to know when something becomes of a block.
    pub(super) fn spread_context(&self) -> Context {
        let newest = self.blocks.back().map_or(0, |block| block.sequence);
        Context { newest, line_bytes_per_s: self.line_bytes_per_s() }
    }

    /// The rate that the path carries, and a little more, if it is known.
    fn line_bytes_per_s(&self) -> Option<f64> {
        self.capacity_bytes_per_s.map(|capacity| capacity * OVER_CAPACITY)
    }
}

/// How long so many bytes take at a rate; for ever at 0.
fn time_at(bytes_per_s: f64, bytes: usize) -> Span {
    // A cast saturates.
    Span::from_ns((bytes as f64 / bytes_per_s * 1e9) as i64)
}

/// A block of a long sample, as far as its spread is concerned.
pub(super) fn long_block(block: &Block) -> LongBlock {
    let time = block.spacing * i64::from(block.symbols());
    LongBlock {
        sequence: block.sequence,
        bytes_per_s: block.bytes() as f64 / time.as_s_f64(),
        is_lossy: block.is_abandoned() || block.has_lost(),
        has_stalled: block.has_stalled(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: usize = 1_000_000;
    /// 10 MB/s.
    const LONGEST: Span = Span::from_ms(100);

    /// Sends a sample over a line of so many bytes a second and gives the time it was spread over; its queue at the end is what the line had not taken.
    fn send(spread: &mut Spread, sequence: u64, line: f64, line_bytes_per_s: Option<f64>) -> Span {
        let time = spread.time(BYTES, LONGEST);
        let bytes_per_s = BYTES as f64 / time.as_s_f64();
        let behind_s = (BYTES as f64 / line - time.as_s_f64()).max(0.0);
        let block = LongBlock { sequence, bytes_per_s, is_lossy: false, has_stalled: false };
        let context = Context { newest: sequence, line_bytes_per_s };
        spread.handle_end(block, Span::from_ns((behind_s * 1e9) as i64), context);
        time
    }

    #[test]
    fn the_rate_doubles_up_to_what_the_line_takes_and_tries_more_ever_less_often() {
        let mut spread = Spread::new();
        let times: Vec<Span> = (1..=1_000).map(|sequence| send(&mut spread, sequence, 100e6, None)).collect();
        assert_eq!(times[0], LONGEST);
        let fast = Span::from_ms(14);
        assert!(times.iter().skip(10).all(|time| *time < fast), "{:?}", times.iter().skip(10).max());
        let too_fast = |times: &[Span]| times.iter().filter(|time| **time < Span::from_ms(8)).count();
        assert!((1..=6).contains(&too_fast(&times[..200])), "{}", too_fast(&times[..200]));
        assert!(too_fast(&times[500..]) <= 3, "{}", too_fast(&times[500..]));
    }

    #[test]
    fn a_path_that_took_everything_for_long_and_then_less_is_followed() {
        let mut spread = Spread::new();
        (1..=1_000).for_each(|sequence| _ = send(&mut spread, sequence, f64::INFINITY, None));
        assert!(spread.time(BYTES, LONGEST) >= Span::from_us(500));
        let times: Vec<Span> =
            (1_001..=1_040).map(|sequence| send(&mut spread, sequence, 12e6, None)).collect();
        assert!(times[10..].iter().all(|time| *time > Span::from_ms(80)), "{:?}", times[10..].iter().min());
    }

    #[test]
    fn a_capacity_that_was_estimated_too_low_is_left_behind_and_a_true_one_is_not() {
        let mut spread = Spread::new();
        let last = (1..=100).map(|sequence| send(&mut spread, sequence, 1e9, Some(12e6))).last().unwrap();
        assert!(last < Span::from_ms(5), "{last:?}");
        let mut spread = Spread::new();
        // A little above what the line takes, as it is asked for.
        let times: Vec<Span> =
            (1..=1_000).map(|sequence| send(&mut spread, sequence, 20e6, Some(20.6e6))).collect();
        assert!(times.iter().all(|time| *time > Span::from_ms(48)), "{:?}", times.iter().min());
        assert!(*times.last().unwrap() < Span::from_ms(50), "{:?}", times.last());
    }

    #[test]
    fn a_loss_halves_the_rate_once_for_all_that_had_left_and_one_of_this_host_does_not() {
        let mut spread = Spread::new();
        (1..=5).for_each(|sequence| _ = send(&mut spread, sequence, 1e9, None));
        let before = spread.time(BYTES, LONGEST);
        let lost =
            |sequence, has_stalled| LongBlock { sequence, bytes_per_s: 80e6, is_lossy: true, has_stalled };
        let context = Context { newest: 8, line_bytes_per_s: None };
        spread.handle_loss(lost(6, true), context);
        assert_eq!(spread.time(BYTES, LONGEST), before);
        for sequence in 6..=8 {
            spread.handle_loss(lost(sequence, false), context);
        }
        assert_eq!(spread.time(BYTES, LONGEST), Span::from_ms(25));
    }
}
