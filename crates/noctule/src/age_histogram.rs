//! How often which age: a fixed table, log-linear as in HdrHistogram (Tene, hdrhistogram.org).
//!
//! Up to 64 ns every nanosecond has a count; above, every octave has 64 equal ones. So a quantile is within 0.8 % of
//! a measured age, recording is one shift and one increment, and nothing is allocated after the first.

use std::fmt;

use noctule_timebase::Span;

/// Counts of one octave, as a power of two.
const OCTAVE_BITS: u32 = 6;
/// Older samples count as this old: 73 minutes, as a power of two of nanoseconds.
const AGE_BITS: u32 = 42;
/// Counts of a histogram.
const COUNTS: usize = ((AGE_BITS - OCTAVE_BITS + 1) as usize) << OCTAVE_BITS;

/// Memory of a histogram that has counted something: 9,472 bytes.
pub const AGE_HISTOGRAM_BYTES: usize = COUNTS * size_of::<u32>();

/// Counts ages in log-linear buckets. Without any age it has no memory.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct AgeHistogram {
    counts: Vec<u32>,
}

impl AgeHistogram {
    /// One more sample of this age. Between two clocks an age may come out below zero, within its bound: it counts
    /// as zero. Before a count is full all are halved, which leaves quantiles as they are.
    #[inline]
    pub fn record(&mut self, age: Span) {
        if self.counts.is_empty() {
            self.allocate();
        }
        let count = &mut self.counts[place(age.ns())];
        *count += 1;
        if *count == u32::MAX {
            self.counts.iter_mut().for_each(|count| *count /= 2);
        }
    }

    /// Takes the memory that the first age would take.
    #[cold]
    pub(crate) fn allocate(&mut self) {
        self.counts.resize(COUNTS, 0);
    }

    /// Removes all ages and keeps the memory.
    pub fn clear(&mut self) {
        self.counts.fill(0);
    }

    /// Adds what another has counted.
    pub fn add(&mut self, other: &AgeHistogram) {
        if self.counts.is_empty() {
            self.counts.clone_from(&other.counts);
            return;
        }
        self.counts
            .iter_mut()
            .zip(&other.counts)
            .for_each(|(count, more)| *count = count.saturating_add(*more));
    }

    /// Ages counted.
    pub fn len(&self) -> u64 {
        self.counts.iter().map(|count| u64::from(*count)).sum()
    }

    /// Whether no age was counted.
    pub fn is_empty(&self) -> bool {
        self.counts.iter().all(|count| *count == 0)
    }

    /// The age `x[⌊q·N⌋]` of the N sorted ones, within 0.8 %; `None` if fewer than ten lie beyond it.
    pub fn quantile(&self, q: f64) -> Option<Span> {
        let len = self.len();
        let rank = (len as f64 * q) as u64;
        // Nearly ten is ten: 1 − 0.99 is a little less than 0.01.
        if (len as f64) * (1.0 - q) < BEYOND - 1e-6 {
            return None;
        }
        let mut passed = 0;
        let found = self.counts.iter().position(|count| {
            passed += u64::from(*count);
            passed > rank
        })?;
        let (first, last) = range(found);
        Some(Span::from_ns(i64::midpoint(first, last)))
    }

    /// Every count that is not zero: the least and the largest age of its class, and how many those were.
    pub fn counts(&self) -> impl Iterator<Item = (Span, Span, u32)> {
        let counted = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        counted.map(|(place, count)| {
            let (first, last) = range(place);
            (Span::from_ns(first), Span::from_ns(last), *count)
        })
    }
}

/// A quantile is known only if so many samples lie beyond it.
const BEYOND: f64 = 10.0;

/// Where an age is counted.
#[inline]
fn place(ns: i64) -> usize {
    let ns = ns.clamp(0, (1 << AGE_BITS) - 1) as u64;
    let octave = (u64::BITS - ns.leading_zeros()).saturating_sub(OCTAVE_BITS + 1);
    ((octave as usize) << OCTAVE_BITS) + (ns >> octave) as usize
}

/// The ages that are counted there.
fn range(place: usize) -> (i64, i64) {
    let octave = (place >> OCTAVE_BITS).saturating_sub(1);
    let first = ((place - (octave << OCTAVE_BITS)) as i64) << octave;
    (first, first + (1 << octave) - 1)
}

impl fmt::Debug for AgeHistogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.counts()).finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn places_follow_each_other_without_a_gap() {
        let mut next = 0;
        for at in 0..COUNTS {
            let (first, last) = range(at);
            assert_eq!((first, place(first), place(last)), (next, at, at));
            next = last + 1;
        }
        assert_eq!(next, 1 << AGE_BITS);
        assert_eq!((place(-5), place(i64::MAX)), (0, COUNTS - 1));
    }

    #[test]
    fn a_quantile_needs_ten_beyond_it() {
        let mut ages = AgeHistogram::default();
        (0..19).for_each(|_| ages.record(Span::from_us(5)));
        assert_eq!((ages.quantile(0.5), ages.quantile(0.99)), (None, None));
        (19..1000).for_each(|_| ages.record(Span::from_us(5)));
        assert!(
            ages.quantile(0.5).is_some() && ages.quantile(0.99).is_some() && ages.quantile(0.999).is_none()
        );
        ages.clear();
        assert!(ages.is_empty() && ages.quantile(0.0).is_none());
    }

    #[test]
    fn a_count_that_is_full_halves_all() {
        let mut ages = AgeHistogram::default();
        ages.allocate();
        ages.counts[place(1000)] = u32::MAX - 1;
        ages.counts[place(9000)] = 100;
        ages.record(Span::from_ns(1000));
        assert_eq!(ages.len(), u64::from(u32::MAX / 2) + 50);
    }

    #[test]
    fn one_that_is_full_stays_full_when_another_is_added() {
        let mut ages = AgeHistogram::default();
        ages.record(Span::from_ns(7));
        ages.counts[7] = u32::MAX - 1;
        let other = ages.clone();
        ages.add(&other);
        assert_eq!(ages.len(), u64::from(u32::MAX));
        let mut empty = AgeHistogram::default();
        empty.add(&other);
        assert_eq!(empty, other);
    }

    #[test]
    fn recording_allocates_nothing_after_the_first() {
        let mut ages = AgeHistogram::default();
        ages.record(Span::ZERO);
        let more = || (0..1_000_000).for_each(|ns| ages.record(Span::from_ns(ns * 1_000_003)));
        assert_eq!(allocation_counter::measure(more).count_total, 0);
    }

    proptest! {
        #[test]
        fn a_quantile_is_a_measured_age(mut all_ns in proptest::collection::vec(0i64..1 << 42, 100..1000)) {
            let mut ages = AgeHistogram::default();
            all_ns.iter().for_each(|ns| ages.record(Span::from_ns(*ns)));
            all_ns.sort_unstable();
            for q in [0.0, 0.1, 0.5, 0.9] {
                let true_ns = all_ns[(all_ns.len() as f64 * q) as usize];
                let estimated_ns = ages.quantile(q).map_or(-1, Span::ns);
                prop_assert!((estimated_ns - true_ns).abs() * 128 <= true_ns, "{} is given as {}", true_ns, estimated_ns);
            }
        }
    }
}
