//! Exchanges gathered into blocks, of which only the two edges are kept.
//!
//! Queueing only ever adds delay, so of several exchanges the smallest `t2 − t1` and the largest
//! `t3 − t4` are the ones that say most about the offset, and they may come from different
//! exchanges: a queue on one direction then costs nothing as long as a few messages each way find it
//! empty. Taken along lines of the current drift these two edges are the support lines of the two
//! convex hulls (Zhang, Liu and Xia, INFOCOM 2002), so a block is a hull that needs no list.
//!
//! Blocks grow from one exchange to [`LARGEST`] while a lock is young: the first exchange counts at
//! once, and later ones are averaged where that pays.

use noctule_timebase::Span;

use crate::fixed::mul_shift;

/// Exchanges in a full-grown block.
pub(crate) const LARGEST: u32 = 32;
/// A block is closed after this time however few exchanges it holds.
pub(crate) const LONGEST: Span = Span::from_s(4);

/// The running edges of one block. Offsets are in ns from the anchor, carried to the time of the
/// block's first exchange along a fixed slope.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    first_ns: i64,
    last_ns: i64,
    /// Parts per 2^46.
    slope_2_46: i64,
    at_most_ns: i64,
    at_least_ns: i64,
    /// Of the midpoints.
    sum_ns: i64,
    count: u32,
}

/// The edges of a closed block, at the middle of its time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edges {
    pub(crate) at_ns: i64,
    pub(crate) at_most_ns: i64,
    pub(crate) at_least_ns: i64,
    /// Mean of the midpoints of all exchanges.
    pub(crate) mean_ns: i64,
    pub(crate) count: u32,
}

impl Edges {
    /// Counts offsets from `ns` higher up.
    pub(crate) fn move_anchor(&mut self, ns: i64) {
        self.at_most_ns = self.at_most_ns.saturating_sub(ns);
        self.at_least_ns = self.at_least_ns.saturating_sub(ns);
        self.mean_ns = self.mean_ns.saturating_sub(ns);
    }

    pub(crate) fn width_ns(&self) -> i64 {
        self.at_most_ns.saturating_sub(self.at_least_ns).max(0)
    }

    pub(crate) fn middle_ns(&self) -> i64 {
        self.at_least_ns.saturating_add(self.at_most_ns.saturating_sub(self.at_least_ns) >> 1)
    }
}

impl Block {
    pub(crate) fn new(at_ns: i64, at_least_ns: i64, at_most_ns: i64, slope_2_46: i64) -> Block {
        Block {
            first_ns: at_ns,
            last_ns: at_ns,
            slope_2_46,
            at_most_ns,
            at_least_ns,
            sum_ns: middle(at_least_ns, at_most_ns),
            count: 1,
        }
    }

    pub(crate) fn add(&mut self, at_ns: i64, at_least_ns: i64, at_most_ns: i64) {
        let drifted_ns = mul_shift(at_ns.saturating_sub(self.first_ns), self.slope_2_46, 46);
        self.at_most_ns = self.at_most_ns.min(at_most_ns.saturating_sub(drifted_ns));
        self.at_least_ns = self.at_least_ns.max(at_least_ns.saturating_sub(drifted_ns));
        let middle_ns = middle(at_least_ns, at_most_ns).saturating_sub(drifted_ns);
        self.sum_ns = self.sum_ns.saturating_add(middle_ns);
        self.last_ns = self.last_ns.max(at_ns);
        self.count += 1;
    }

    /// Counts offsets from `ns` higher up.
    pub(crate) fn move_anchor(&mut self, ns: i64) {
        self.at_most_ns = self.at_most_ns.saturating_sub(ns);
        self.at_least_ns = self.at_least_ns.saturating_sub(ns);
        self.sum_ns = self.sum_ns.saturating_sub(ns.saturating_mul(i64::from(self.count)));
    }

    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    pub(crate) fn span_ns(&self) -> i64 {
        self.last_ns.saturating_sub(self.first_ns)
    }

    /// Whether an exchange at `at_ns` comes too late for this block.
    pub(crate) fn is_over_at(&self, at_ns: i64) -> bool {
        at_ns.saturating_sub(self.first_ns) > LONGEST.ns()
    }

    pub(crate) fn edges(&self) -> Edges {
        let half_ns = self.span_ns() >> 1;
        let drifted_ns = mul_shift(half_ns, self.slope_2_46, 46);
        Edges {
            at_ns: self.first_ns.saturating_add(half_ns),
            at_most_ns: self.at_most_ns.saturating_add(drifted_ns),
            at_least_ns: self.at_least_ns.saturating_add(drifted_ns),
            mean_ns: (self.sum_ns / i64::from(self.count)).saturating_add(drifted_ns),
            count: self.count,
        }
    }
}

fn middle(at_least_ns: i64, at_most_ns: i64) -> i64 {
    at_least_ns.saturating_add(at_most_ns.saturating_sub(at_least_ns) >> 1)
}
