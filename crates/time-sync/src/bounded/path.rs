//! Statistics of the path: its least round trip, and which summary of a block is steadiest.

use super::block::{Edges, LARGEST};
use crate::fixed::{div_shift, mul_shift, root, square_shift};

/// Blocks after which the older half of the memory of the least round trip is dropped.
const FLOOR_BLOCKS: u32 = 64;
/// A direction counts as cleaner when the other's edge moves at least this many times as much, and
/// while few blocks have been seen this divided by their number on top.
const CLEANER: i64 = 5;
const CLEANER_EARLY: i64 = 16;
/// A line through two blocks is continued by half to twice their distance (16 fraction bits).
const LINE_RATIO_MIN: i64 = 1 << 15;
const LINE_RATIO_MAX: i64 = 1 << 17;
/// Movements that must have been seen before a direction is called cleaner.
const SIDES_SETTLED: u32 = 4;
/// Movements that must have been seen before the mean is preferred.
const MEAN_SETTLED: u32 = 12;

/// The least round trip of the recent past, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Floor {
    recent_ns: i64,
    older_ns: i64,
    /// The second least of each half, `i64::MAX` while there is none.
    recent_second_ns: i64,
    older_second_ns: i64,
    blocks: u32,
}

impl Floor {
    pub(crate) fn new(round_trip_ns: i64) -> Floor {
        Floor {
            recent_ns: round_trip_ns,
            older_ns: i64::MAX,
            recent_second_ns: i64::MAX,
            older_second_ns: i64::MAX,
            blocks: 0,
        }
    }

    pub(crate) fn ns(&self) -> i64 {
        self.recent_ns.min(self.older_ns)
    }

    pub(crate) fn add(&mut self, round_trip_ns: i64) {
        if round_trip_ns < self.recent_ns {
            self.recent_second_ns = self.recent_ns;
            self.recent_ns = round_trip_ns;
        } else if round_trip_ns > self.recent_ns {
            // An equal one is mostly the same exchange again, as the width of its block.
            self.recent_second_ns = self.recent_second_ns.min(round_trip_ns);
        }
    }

    /// How far the least one seen is likely to lie above the true one: as far as the second least
    /// lies above the least (Robson and Whitlock, Biometrika 51, 1964). Zero while there is no second.
    pub(crate) fn likely_excess_ns(&self) -> i64 {
        let seconds_ns = self.recent_second_ns.min(self.older_second_ns);
        let second_ns = self.recent_ns.max(self.older_ns).min(seconds_ns);
        if second_ns == i64::MAX { 0 } else { second_ns.saturating_sub(self.ns()) }
    }

    /// Counts one block, so that a path that has become longer is accepted in the end.
    pub(crate) fn count_block(&mut self, width_ns: i64) {
        self.blocks += 1;
        if self.blocks == FLOOR_BLOCKS {
            self.older_ns = self.recent_ns;
            self.older_second_ns = self.recent_second_ns;
            self.recent_ns = width_ns;
            self.recent_second_ns = i64::MAX;
            self.blocks = 0;
        }
    }
}

/// How much each summary of a block moves from block to block, by which the best one is chosen.
///
/// The two edges of a block say where the offset would be if the quickest message each way had met
/// no queue. If one direction queues much more than the other, its edge jumps about and the other's
/// does not, and that shows without any knowledge of the offset itself. Only then has the quiet edge
/// more weight: weights are the inverse variances of the two edges.
///
/// Movements are kept as those of a full-grown block: the edge of a smaller one moves
/// [`rougher`] times as much.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Movement {
    /// The last two blocks, the later one first.
    before: Option<Edges>,
    older: Option<Edges>,
    /// Mean movement of the upper edge (the way there): about half its standard deviation.
    forward: RunningMean,
    /// The same of the lower edge (the way back).
    back: RunningMean,
    /// The same of the middle between the edges.
    middle: RunningMean,
    /// The same of the mean of all midpoints.
    mean: RunningMean,
}

impl Movement {
    pub(crate) fn forget_position(&mut self) {
        self.before = None;
        self.older = None;
    }

    pub(crate) fn move_anchor(&mut self, ns: i64) {
        for edges in [&mut self.before, &mut self.older].into_iter().flatten() {
            edges.move_anchor(ns);
        }
    }

    /// Takes in a block. What counts is how far each summary lies from the straight line through the
    /// two blocks before: a wrong drift then moves none of them, so that a bad start cannot hide
    /// which one is the steadiest.
    pub(crate) fn add(&mut self, edges: &Edges) {
        if let (Some(before), Some(older)) = (self.before, self.older) {
            let elapsed_ns = edges.at_ns.saturating_sub(before.at_ns);
            let earlier_ns = before.at_ns.saturating_sub(older.at_ns);
            let ratio = div_shift(elapsed_ns, earlier_ns, 16);
            if (LINE_RATIO_MIN..=LINE_RATIO_MAX).contains(&ratio) {
                let rough = rougher(edges.count.min(before.count).min(older.count));
                let moved = |series: fn(&Edges) -> i64| {
                    let (now_ns, before_ns) = (series(edges), series(&before));
                    let step_ns = before_ns.saturating_sub(series(&older));
                    let line_ns = before_ns.saturating_add(mul_shift(step_ns, ratio, 16));
                    now_ns.saturating_sub(line_ns).saturating_abs() / (4 * rough)
                };
                self.forward.add(moved(|edges| edges.at_most_ns));
                self.back.add(moved(|edges| edges.at_least_ns));
                self.middle.add(moved(Edges::middle_ns));
                self.mean.add(moved(|edges| edges.mean_ns));
            }
        }
        self.older = self.before;
        self.before = Some(*edges);
    }

    /// Which edge to trust, with 16 fraction bits: +1 the upper alone, −1 the lower alone, 0 both
    /// alike, which is the answer unless the movements differ clearly.
    pub(crate) fn tilt(&self) -> i64 {
        let (quiet_ns, loud_ns) = (self.quiet_ns(), self.forward.ns.max(self.back.ns));
        let seen = self.forward.seen;
        if seen < SIDES_SETTLED
            || loud_ns < quiet_ns.saturating_mul(CLEANER + CLEANER_EARLY / i64::from(seen))
        {
            return 0;
        }
        let (quiet, loud) = (square_shift(quiet_ns, 8), square_shift(loud_ns, 8));
        let sum = loud.saturating_add(quiet).max(1);
        let tilt = div_shift(loud.saturating_sub(quiet), sum, 16);
        if self.forward.ns < self.back.ns { tilt } else { -tilt }
    }

    /// Whether the mean of all midpoints has clearly moved less than the middle between the edges.
    /// It does where jitter is symmetric about its mean, so that the quickest message is an accident
    /// and not a witness of an empty queue. Queueing moves the mean far more than the edges, so a
    /// mean that is biased by a queue is not preferred.
    pub(crate) fn mean_is_steadier(&self) -> bool {
        let steadier = self.mean.ns.saturating_mul(3) < self.middle.ns.saturating_mul(2);
        self.mean.seen >= MEAN_SETTLED && steadier && self.tilt() == 0
    }

    /// Movement of the middle between the edges in ns.
    pub(crate) fn middle_ns(&self) -> i64 {
        self.middle.ns
    }

    /// Movement of the mean of all midpoints in ns.
    pub(crate) fn mean_ns(&self) -> i64 {
        self.mean.ns
    }

    /// Movement of the quieter edge in ns.
    pub(crate) fn quiet_ns(&self) -> i64 {
        self.forward.ns.min(self.back.ns)
    }
}

/// How many times rougher the edges of a block of `count` exchanges are than those of a full-grown
/// one: the root of the ratio of the counts, which is how the smallest of several delays shrinks
/// when very small ones are rare.
pub(crate) fn rougher(count: u32) -> i64 {
    root(i64::from(LARGEST / count.clamp(1, LARGEST))).max(1)
}

/// A running mean with a memory of eight values, fewer while it is young, in which one outlier
/// cannot do more than double it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RunningMean {
    ns: i64,
    seen: u32,
}

impl RunningMean {
    pub(crate) fn new(first_ns: i64) -> RunningMean {
        RunningMean { ns: first_ns, seen: 1 }
    }

    pub(crate) fn add(&mut self, value_ns: i64) {
        let shift = match self.seen {
            0 => {
                *self = RunningMean::new(value_ns);
                return;
            }
            1 | 2 => 1,
            3..=6 => 2,
            _ => 3,
        };
        let limit_ns = self.ns.saturating_mul(2).saturating_add(1_000);
        self.ns += (value_ns.min(limit_ns) - self.ns) >> shift;
        self.seen = self.seen.saturating_add(1);
    }

    pub(crate) fn ns(&self) -> i64 {
        self.ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_likely_excess_is_the_distance_between_the_two_least_round_trips() {
        let mut floor = Floor::new(500);
        assert_eq!(floor.likely_excess_ns(), 0, "one alone says nothing");
        for round_trip_ns in [700, 430, 430, 900, 400] {
            floor.add(round_trip_ns);
        }
        assert_eq!((floor.ns(), floor.likely_excess_ns()), (400, 30), "an equal one is the same again");
        for _ in 0..FLOOR_BLOCKS {
            floor.count_block(480);
        }
        assert_eq!((floor.ns(), floor.likely_excess_ns()), (400, 30), "the older half remembers both");
        for _ in 0..FLOOR_BLOCKS {
            floor.count_block(490);
        }
        assert_eq!((floor.ns(), floor.likely_excess_ns()), (480, 10), "and forgets both");
    }
}
