//! Do pairwise offsets among three or more clocks agree with each other?
//!
//! # Problem
//!
//! Every pair of clocks is estimated from its own exchanges, so one estimate may be false (a liar, a
//! path that has become longer on one side, a driver that stamps late) without any sign of it in its
//! own figures.
//!
//! # Approach
//!
//! Around a triangle the offsets sum to zero: `(b − a) + (c − b) + (a − c) = 0`. Each is known to
//! within its bound, so a sum farther from zero than the three bounds together proves that at least
//! one of the three bounds is false. Which one, a single triangle cannot say. With a fourth clock every
//! pair lies in two triangles, and only a pair that lies in all triangles which do not close can alone be
//! the cause.
//!
//! All offsets must belong to the same moment; to carry an estimate on to it, ask the estimator at
//! that moment. Constant asymmetry of one path is found only where it exceeds the bounds, which it
//! never does as long as they are proven; with sigma in place of the bound the check is sharper and
//! says what is likely.

use noctule_timebase::Span;

/// More pairs than this are refused: the search tries every three of them.
pub const PAIRS_LIMIT: usize = 128;

/// The estimate of one pair of clocks. Clocks are numbered by the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The clock that the offset counts from.
    pub from: u32,
    /// The other.
    pub to: u32,
    /// `to − from`.
    pub offset: Span,
    /// How far the truth may be from `offset`.
    pub within: Span,
}

/// The verdict of the triangles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closure {
    /// All triangles close, or there is none.
    Closed {
        /// How many.
        triangles: u32,
    },
    /// At least one does not.
    Open {
        /// How many triangles there are.
        triangles: u32,
        /// How many do not close.
        open: u32,
        /// The most by which a sum exceeds what its three pairs allow.
        excess: Span,
        /// Index of the only pair that can alone be the cause; `None` if there are several such pairs, as
        /// in a single triangle, or none.
        culprit: Option<usize>,
    },
    /// More than [`PAIRS_LIMIT`] pairs.
    TooMany,
}

/// Checks every triangle among `pairs`. A pair of a clock with itself takes no part; two estimates of
/// one pair are taken for two sides of different triangles.
pub fn check(pairs: &[Pair]) -> Closure {
    if pairs.len() > PAIRS_LIMIT {
        return Closure::TooMany;
    }
    let (mut triangles, mut open, mut excess_ns) = (0_u32, 0_u32, 0_i64);
    // Triangles of each pair that do not close.
    let mut open_with = [0_u32; PAIRS_LIMIT];
    for a in 0..pairs.len() {
        for b in a + 1..pairs.len() {
            for c in b + 1..pairs.len() {
                let Some(over_ns) = excess([&pairs[a], &pairs[b], &pairs[c]]) else {
                    continue;
                };
                triangles += 1;
                if over_ns > 0 {
                    open += 1;
                    excess_ns = excess_ns.max(over_ns);
                    for side in [a, b, c] {
                        open_with[side] += 1;
                    }
                }
            }
        }
    }
    if open == 0 {
        return Closure::Closed { triangles };
    }
    let mut suspects = (0..pairs.len()).filter(|&side| open_with[side] == open);
    let culprit = suspects.next().filter(|_| suspects.next().is_none());
    Closure::Open { triangles, open, excess: Span::from_ns(excess_ns), culprit }
}

/// By how much the sum around a triangle exceeds what its sides allow, zero or less if it closes;
/// `None` if the three are no triangle.
fn excess([a, b, c]: [&Pair; 3]) -> Option<i64> {
    let second = along(b, a.to).map(|b_sum| (b_sum, c)).or_else(|| along(c, a.to).map(|c_sum| (c_sum, b)));
    let ((corner, second_ns), last) = second?;
    let (end, last_ns) = along(last, corner)?;
    if end != a.from || corner == a.from || corner == a.to || a.from == a.to {
        return None;
    }
    // Three offsets of 64 bits need more than 64.
    let sum_ns = i128::from(a.offset.ns()) + i128::from(second_ns) + i128::from(last_ns);
    let allowed_ns: i128 = [a, b, c].iter().map(|pair| i128::from(pair.within.ns())).sum();
    let over_ns = i128::try_from(sum_ns.unsigned_abs()).unwrap_or(i128::MAX) - allowed_ns;
    Some(over_ns.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64)
}

/// The other end of a pair that begins or ends at `clock`, and the offset on the way there.
fn along(pair: &Pair, clock: u32) -> Option<(u32, i64)> {
    if pair.from == clock {
        Some((pair.to, pair.offset.ns()))
    } else if pair.to == clock {
        Some((pair.from, pair.offset.ns().saturating_neg()))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    fn pair(from: u32, to: u32, offset_ns: i64, within_ns: i64) -> Pair {
        Pair { from, to, offset: Span::from_ns(offset_ns), within: Span::from_ns(within_ns) }
    }

    /// All pairs among clocks that show these times at one moment.
    fn all_pairs(clocks_ns: &[i64], within_ns: i64) -> Vec<Pair> {
        let mut pairs = Vec::new();
        for from in 0..clocks_ns.len() {
            for to in from + 1..clocks_ns.len() {
                pairs.push(pair(from as u32, to as u32, clocks_ns[to] - clocks_ns[from], within_ns));
            }
        }
        pairs
    }

    #[test]
    fn a_triangle_closes_within_its_bounds_and_no_farther() {
        let triangle = |last_ns| [pair(1, 2, 1_000, 10), pair(2, 3, 500, 20), pair(3, 1, last_ns, 5)];
        assert_eq!(check(&triangle(-1_535)), Closure::Closed { triangles: 1 });
        let excess = Span::from_ns(1);
        let open = Closure::Open { triangles: 1, open: 1, excess, culprit: None };
        assert_eq!(check(&triangle(-1_536)), open);
        assert_eq!(check(&triangle(-1_464)), open);
    }

    #[test]
    fn with_a_fourth_clock_the_false_pair_is_named() {
        for culprit in 0..6 {
            let mut pairs = all_pairs(&[0, 5_000, -70_000, 900], 100);
            pairs[culprit].offset += Span::from_ns(1_000);
            let said =
                Closure::Open { triangles: 4, open: 2, excess: Span::from_ns(700), culprit: Some(culprit) };
            assert_eq!(check(&pairs), said);
        }
    }

    #[test]
    fn two_false_pairs_are_not_blamed_on_one() {
        let mut pairs = all_pairs(&[0, 5_000, -70_000, 900], 100);
        pairs[0].offset = Span::from_ns(9_000);
        pairs[5].offset = Span::from_ns(0);
        assert!(matches!(check(&pairs), Closure::Open { open: 4, culprit: None, .. }));
    }

    #[test]
    fn what_is_no_triangle_is_not_judged() {
        let closed = Closure::Closed { triangles: 0 };
        assert_eq!(check(&[]), closed);
        assert_eq!(check(&[pair(1, 2, 9, 0), pair(2, 1, 9, 0), pair(1, 1, 9, 0)]), closed);
        assert_eq!(check(&[pair(1, 2, 9, 0), pair(2, 3, 9, 0), pair(3, 4, 9, 0)]), closed);
        assert_eq!(check(&[pair(1, 2, 0, 0); PAIRS_LIMIT + 1]), Closure::TooMany);
        assert_eq!(check(&[pair(1, 2, 0, 0); PAIRS_LIMIT]), closed);
    }

    #[test]
    fn ends_of_the_range_do_not_overflow() {
        let far = [pair(1, 2, i64::MAX, 0), pair(2, 3, i64::MAX, 0), pair(3, 1, i64::MAX, 0)];
        let excess = Span::from_ns(i64::MAX);
        assert_eq!(check(&far), Closure::Open { triangles: 1, open: 1, excess, culprit: None });
    }

    proptest! {
        #[test]
        fn true_clocks_always_close(
            clocks_ns in prop::collection::vec(-1_000_000_000_000_i64..1_000_000_000_000, 3..7),
            errors in prop::collection::vec(-50_i64..=50, 21),
            turned in prop::collection::vec(any::<bool>(), 21),
        ) {
            let mut pairs = all_pairs(&clocks_ns, 50);
            for ((pair, error_ns), turned) in pairs.iter_mut().zip(errors).zip(turned) {
                pair.offset += Span::from_ns(error_ns);
                if turned {
                    *pair = self::pair(pair.to, pair.from, -pair.offset.ns(), 50);
                }
            }
            let n = clocks_ns.len() as u32;
            prop_assert_eq!(check(&pairs), Closure::Closed { triangles: n * (n - 1) * (n - 2) / 6 });
        }
    }
}
