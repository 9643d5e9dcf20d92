//! Alignment of a whole recorded trace after the fact.
//!
//! # Problem
//!
//! An online estimator knows only the past. When a trace is evaluated afterwards, what came later
//! says as much about a moment as what came before.
//!
//! # Approach
//!
//! Above the true offset lie the points `(t1, t2 − t1)`, below it the points `(t4, t3 − t4)`; as long
//! as the clocks run evenly a straight line passes between the two clouds. The lower convex hull of
//! the upper cloud and the upper hull of the lower cloud are all that matters (Zhang, Liu and Xia,
//! "Clock synchronization algorithms for network measurements", INFOCOM 2002). Of the lines below
//! the upper cloud the one nearest to it in the mean is the hull's edge over the mean time (Moon,
//! Skelly and Towsley, "Estimation and removal of clock skew from network delay measurements",
//! INFOCOM 1999); likewise from below; the answer is the midline of the two.
//!
//! No crystal runs evenly for ever, so the trace is cut: at steps, which [`Bounded`] finds, into
//! pieces of at most [`LONGEST_PIECE`], and in half wherever the two hulls cross, because then
//! causality itself says that no straight line fits.

use alloc::vec::Vec;

use noctule_timebase::{Instant, Span};

use crate::bounded::{Bounded, BoundedConfig};
use crate::exchange::{Estimator, Exchange, Local};

/// No piece is longer than this: over a minute a plain crystal strays from a line by less than the
/// hulls can resolve.
pub const LONGEST_PIECE: Span = Span::from_s(60);
/// A piece of fewer exchanges is not divided any more.
const SHORTEST_PIECE: usize = 4;
/// Exchanges of which the last is the one at which [`Bounded`] locks again.
const RELOCK_EXCHANGES: usize = 3;

/// A straight piece of the offset over time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Piece {
    /// `t4` of its first exchange.
    pub from: Instant<Local>,
    /// `t4` of its last exchange.
    pub to: Instant<Local>,
    /// Offset (remote − local) at `from`.
    pub offset: Span,
    /// Relative drift in ppm.
    pub drift_ppm: f64,
    /// Half the distance between the two hulls where they come nearest. Negative where they cross,
    /// which only a piece too short to be divided may show: it lies across a step.
    pub clearance: Span,
}

impl Piece {
    /// The offset at local time `at`, also beyond the ends.
    pub fn offset_at(&self, at: Instant<Local>) -> Span {
        let drifted_ns = (at - self.from).ns() as f64 * self.drift_ppm * 1e-6;
        self.offset + Span::from_ns(drifted_ns as i64)
    }
}

/// Aligns a trace whose exchanges are in the order of their replies. Exchanges that cannot be true
/// are left out. A trace without a usable exchange gives no piece.
pub fn align(exchanges: &[Exchange], config: &BoundedConfig) -> Vec<Piece> {
    let mut online = Bounded::new(*config);
    let mut usable: Vec<Exchange> = Vec::with_capacity(exchanges.len());
    let mut cuts = Vec::new();
    for exchange in exchanges {
        let relocks_before = online.counters().relocks;
        let verdict = online.handle_exchange(exchange);
        let counts = verdict.is_ok() || verdict == Err(crate::Rejection::Contradiction);
        if counts {
            usable.push(*exchange);
        }
        if online.counters().relocks > relocks_before {
            cuts.push(usable.len().saturating_sub(RELOCK_EXCHANGES));
        }
    }
    cuts.push(usable.len());
    let mut pieces = Vec::new();
    let mut start = 0;
    for cut in cuts {
        // Two relocks in quick succession may name overlapping exchanges.
        if cut > start {
            divide(&usable[start..cut], config, &mut pieces);
            start = cut;
        }
    }
    pieces
}

/// Cuts a run without steps until each piece is short enough and straight.
fn divide(run: &[Exchange], config: &BoundedConfig, pieces: &mut Vec<Piece>) {
    let (Some(first), Some(last)) = (run.first(), run.last()) else {
        return;
    };
    let piece = fit(run, config);
    let straight = piece.clearance >= Span::ZERO && last.t4 - first.t4 <= LONGEST_PIECE;
    if straight || run.len() < 2 * SHORTEST_PIECE {
        pieces.push(piece);
        return;
    }
    let (early, late) = run.split_at(run.len() / 2);
    divide(early, config, pieces);
    divide(late, config, pieces);
}

/// A point of a cloud: local time and offset, both in ns from the piece's own origin.
#[derive(Clone, Copy)]
struct Point {
    at: f64,
    offset: f64,
}

fn fit(run: &[Exchange], config: &BoundedConfig) -> Piece {
    let (from, to) = (run[0].t4, run[run.len() - 1].t4);
    let anchor = run[0].midpoint();
    let point = |at: Instant<Local>, offset: Span| Point {
        at: (at - from).ns() as f64,
        offset: (offset - anchor).ns() as f64,
    };
    let above = hull(run.iter().map(|e| point(e.t1, e.offset_at_most() - config.wire_forward)), 1.0);
    let below = hull(run.iter().map(|e| point(e.t4, e.offset_at_least() + config.wire_back)), -1.0);
    let mean_at = run.iter().map(|e| point(e.t4, anchor).at).sum::<f64>() / run.len() as f64;
    let (above_offset, above_slope) = edge_over(&above, mean_at);
    let (below_offset, below_slope) = edge_over(&below, mean_at);
    let slope = (above_slope + below_slope) / 2.0;
    let at_mean = (above_offset + below_offset) / 2.0;
    // Two convex functions are nearest at a corner of one of them.
    let corners = above.iter().chain(&below).map(|corner| corner.at);
    let gap =
        corners.map(|at| edge_over(&above, at).0 - edge_over(&below, at).0).fold(f64::INFINITY, f64::min);
    Piece {
        from,
        to,
        offset: anchor + Span::from_ns((at_mean - slope * mean_at) as i64),
        drift_ppm: slope * 1e6,
        clearance: Span::from_ns((gap / 2.0) as i64),
    }
}

/// The lower hull (`side` = 1) or the upper hull (`side` = −1) of points, by Andrew's monotone chain
/// (Information Processing Letters 9(5), 1979), in the order of time.
fn hull(points: impl Iterator<Item = Point>, side: f64) -> Vec<Point> {
    let mut sorted: Vec<Point> = points.collect();
    sorted.sort_by(|a, b| a.at.total_cmp(&b.at).then((side * a.offset).total_cmp(&(side * b.offset))));
    let mut hull: Vec<Point> = Vec::new();
    for point in sorted {
        // Of several points at one time only the innermost counts, and it comes first.
        if hull.last().is_some_and(|last| last.at == point.at) {
            continue;
        }
        while let [.., a, b] = hull[..] {
            let turn = (b.at - a.at) * (point.offset - a.offset) - (b.offset - a.offset) * (point.at - a.at);
            if turn * side > 0.0 {
                break;
            }
            hull.pop();
        }
        hull.push(point);
    }
    hull
}

/// Offset and slope of the hull at a time; beyond its ends the last edge is continued.
fn edge_over(hull: &[Point], at: f64) -> (f64, f64) {
    match hull {
        [] => (0.0, 0.0),
        [only] => (only.offset, 0.0),
        _ => {
            let right = hull.partition_point(|corner| corner.at < at).clamp(1, hull.len() - 1);
            let (a, b) = (hull[right - 1], hull[right]);
            let slope = (b.offset - a.offset) / (b.at - a.at);
            (a.offset + slope * (at - a.at), slope)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use noctule_netsim::{RoundTrip, Scenario, round_trips};

    fn trace(name: &str, seed: u64) -> (Vec<Exchange>, Vec<RoundTrip>) {
        let trips = round_trips(&Scenario::named(name).unwrap(), seed);
        let exchange = |t: &RoundTrip| Exchange::from_ns(t.t1_ns, t.t2_ns, t.t3_ns, t.t4_ns);
        (trips.iter().map(exchange).collect(), trips)
    }

    fn rms_us(pieces: &[Piece], trips: &[RoundTrip]) -> f64 {
        let error_ns = |trip: &RoundTrip| {
            let at = Instant::from_ns(trip.t4_ns);
            let piece = pieces.iter().find(|piece| piece.from <= at && at <= piece.to).unwrap();
            (piece.offset_at(at).ns() - trip.offset_true_ns) as f64
        };
        let sum: f64 = trips.iter().map(|trip| error_ns(trip).powi(2)).sum();
        (sum / trips.len() as f64).sqrt() / 1e3
    }

    #[test]
    fn a_quiet_line_is_aligned_to_a_few_microseconds_from_the_first_exchange_on() {
        let (exchanges, trips) = trace("A", 1);
        let pieces = align(&exchanges, &BoundedConfig::default());
        assert!(rms_us(&pieces, &trips) < 4.0, "{} µs", rms_us(&pieces, &trips));
        assert!(pieces.iter().all(|piece| (piece.drift_ppm - 20.0).abs() < 1.5));
    }

    #[test]
    fn queueing_on_one_side_does_not_bias_the_midline() {
        let (exchanges, trips) = trace("C", 1);
        let pieces = align(&exchanges, &BoundedConfig::default());
        assert!(rms_us(&pieces, &trips) < 8.0, "{} µs", rms_us(&pieces, &trips));
    }

    #[test]
    fn the_trace_is_cut_exactly_at_a_step() {
        let (exchanges, trips) = trace("F", 1);
        let pieces = align(&exchanges, &BoundedConfig::default());
        let first_after = trips.iter().find(|trip| trip.t4_ns > 300_000_000_000).unwrap();
        assert!(pieces.iter().any(|piece| piece.from.ns() == first_after.t4_ns));
        assert!(rms_us(&pieces, &trips) < 4.0, "{} µs", rms_us(&pieces, &trips));
    }

    #[test]
    fn where_the_hulls_cross_the_run_is_divided() {
        // 600 ppm for the first half, −600 for the second: no line passes between the clouds.
        let exchange = |i: i64| {
            let sent = i * 100_000_000;
            let offset = 60_000 * if i < 100 { i } else { 200 - i };
            Exchange::from_ns(sent, sent + 300_000 + offset, sent + 300_000 + offset, sent + 600_000)
        };
        let exchanges: Vec<Exchange> = (0..200).map(exchange).collect();
        let config = BoundedConfig { max_drift_ppm: 2_000, ..BoundedConfig::default() };
        let mut pieces = Vec::new();
        divide(&exchanges, &config, &mut pieces);
        assert!(pieces.len() >= 2);
        assert!(pieces.iter().all(|piece| piece.clearance >= Span::ZERO));
        assert!((pieces[0].drift_ppm - 600.0).abs() < 30.0, "{:?}", pieces[0]);
    }

    #[test]
    fn of_messages_that_left_or_arrived_together_the_quicker_one_counts_in_any_order() {
        // Offset 0, 100 µs on each way; of the first two one waited 200 µs more on its way there, the other on its way back.
        let there = Exchange::from_ns(0, 300_000, 300_000, 400_000);
        let back = Exchange::from_ns(0, 100_000, 100_000, 400_000);
        let last = Exchange::from_ns(10_000_000_000, 10_000_100_000, 10_000_100_000, 10_000_200_000);
        for trace in [[there, back, last], [back, there, last]] {
            let pieces = align(&trace, &BoundedConfig::default());
            let [piece] = pieces[..] else { panic!("{pieces:?}") };
            assert!(piece.offset.abs() <= Span::from_ns(1) && piece.drift_ppm.abs() < 1e-6, "{piece:?}");
            assert_eq!(piece.clearance, Span::from_us(100));
        }
    }

    #[test]
    fn an_empty_or_impossible_trace_gives_no_piece() {
        let config = BoundedConfig::default();
        assert_eq!(align(&[], &config), []);
        assert_eq!(align(&[Exchange::from_ns(5, 0, 0, 4)], &config), []);
        assert_eq!(align(&[Exchange::from_ns(0, 5, 5, 4)], &config).len(), 1);
    }
}
