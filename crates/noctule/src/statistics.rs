//! How many samples, how old, how many lost: one topic over a sliding window.
//!
//! The window is a few slices of time with a histogram of ages each (HdrHistogram, within 1 %); the oldest is
//! emptied when a new one begins. So memory is constant, 90 kB, whatever the rate. Sans-IO: samples come in
//! with the time when they were taken, and `now` is an argument.

use hdrhistogram::Histogram;
use noctule_time_sync::Local;
use noctule_timebase::{Instant, Span};

use crate::sample::{Route, SampleInfo};

/// Slices of a window.
const SLICES: i64 = 5;
/// Older samples count as this old.
const AGE_MAX: Span = Span::from_s(3600);
/// Digits of an age that are kept.
const DIGITS: u8 = 2;
/// A quantile is told only if so many samples lie beyond it.
const BEYOND: f64 = 10.0;

/// Collects what a subscriber takes. Recording costs tens of nanoseconds, so it is the user's to do.
#[derive(Clone, Debug)]
pub struct SubscriberStatistics {
    slice: Span,
    since: Instant<Local>,
    slices: [Slice; SLICES as usize],
}

/// Counts of one slice.
#[derive(Clone, Debug)]
struct Slice {
    /// Its number since the clock's zero, `None` before the first sample.
    number: Option<i64>,
    ages: Histogram<u32>,
    sums: Sums,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    samples: u64,
    missed: u64,
    bytes: u64,
    /// Ages of which a bound is proven, and the largest bound.
    bounded: u64,
    bound_max: Option<Span>,
    by_shared_memory: bool,
    by_udp: bool,
}

/// What a window shows.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowStatistics {
    /// How much time it covers.
    pub duration: Span,
    /// Samples taken.
    pub samples: u64,
    /// Samples missing before those: lost on the way, or overwritten before they were read.
    pub missed: u64,
    /// Bytes of the samples taken.
    pub bytes: u64,
    /// Median age; `None` below 20 samples of known age.
    pub age_p50: Option<Span>,
    /// 99th percentile of ages; `None` below 1,000 samples of known age.
    pub age_p99: Option<Span>,
    /// The largest age; `None` if no age is known.
    pub age_max: Option<Span>,
    /// No age is further from the truth than this. `None` if that is not proven of every sample.
    pub bound: Option<Span>,
    /// Ways on which samples came.
    pub routes: Vec<Route>,
}

impl WindowStatistics {
    /// Samples taken per second.
    pub fn rate_hz(&self) -> f64 {
        self.per_second(self.samples)
    }

    /// Bytes taken per second.
    pub fn bytes_per_s(&self) -> f64 {
        self.per_second(self.bytes)
    }

    /// Share of the samples published that is missing, 0 to 1; `None` if there were none.
    pub fn loss(&self) -> Option<f64> {
        let published = self.samples + self.missed;
        (published > 0).then(|| self.missed as f64 / published as f64)
    }

    fn per_second(&self, count: u64) -> f64 {
        if self.duration > Span::ZERO { count as f64 / self.duration.as_s_f64() } else { 0.0 }
    }
}

impl SubscriberStatistics {
    /// Over the last `window`, 50 ms at least; nothing was taken before `now`.
    pub fn new(window: Span, now: Instant<Local>) -> SubscriberStatistics {
        let slice = Span::from_ns((window.ns() / SLICES).max(10_000_000));
        let slices = std::array::from_fn(|_| Slice { number: None, ages: ages(), sums: Sums::default() });
        SubscriberStatistics { slice, since: now, slices }
    }

    /// A sample was taken.
    pub fn record(&mut self, info: &SampleInfo) {
        let number = self.number(info.receive_time);
        let slice = &mut self.slices[number.rem_euclid(SLICES) as usize];
        if slice.number != Some(number) {
            slice.number = Some(number);
            slice.ages.reset();
            slice.sums = Sums::default();
        }
        let sums = &mut slice.sums;
        sums.samples += 1;
        sums.missed = sums.missed.saturating_add(info.missed);
        sums.bytes += info.length_bytes as u64;
        match info.route {
            Route::SharedMemory => sums.by_shared_memory = true,
            Route::Udp => sums.by_udp = true,
        }
        if let Some(age) = info.age() {
            // Between two clocks an age may come out below zero, within its bound.
            slice.ages.saturating_record(age.span.ns().max(0) as u64);
            sums.bounded += u64::from(age.bound.is_some());
            sums.bound_max = sums.bound_max.max(age.bound);
        }
    }

    /// The window that ends at `now`.
    pub fn window(&self, now: Instant<Local>) -> WindowStatistics {
        let last = self.number(now);
        let first = last.saturating_sub(SLICES - 1);
        let begin = Instant::from_ns(first.saturating_mul(self.slice.ns()));
        let mut all = ages();
        let mut sums = Sums::default();
        let is_inside = |slice: &&Slice| slice.number.is_some_and(|number| (first..=last).contains(&number));
        for slice in self.slices.iter().filter(is_inside) {
            // Cannot fail: all have the same bounds.
            let _ = all.add(&slice.ages);
            sums.add(&slice.sums);
        }
        let known = all.len() as f64;
        let quantile = |q: f64| {
            let is_told = known * (1.0 - q) >= BEYOND - 1e-6;
            is_told.then(|| Span::from_ns(all.value_at_quantile(q) as i64))
        };
        let routes = [(Route::SharedMemory, sums.by_shared_memory), (Route::Udp, sums.by_udp)];
        WindowStatistics {
            duration: now - begin.max(self.since),
            samples: sums.samples,
            missed: sums.missed,
            bytes: sums.bytes,
            age_p50: quantile(0.5),
            age_p99: quantile(0.99),
            age_max: (!all.is_empty()).then(|| Span::from_ns(all.max() as i64)),
            bound: sums.bound_max.filter(|_| sums.bounded == sums.samples),
            routes: routes.into_iter().filter_map(|(route, seen)| seen.then_some(route)).collect(),
        }
    }

    fn number(&self, at: Instant<Local>) -> i64 {
        at.ns().div_euclid(self.slice.ns())
    }
}

impl Sums {
    fn add(&mut self, other: &Sums) {
        self.samples += other.samples;
        self.missed = self.missed.saturating_add(other.missed);
        self.bytes += other.bytes;
        self.bounded += other.bounded;
        self.bound_max = self.bound_max.max(other.bound_max);
        self.by_shared_memory |= other.by_shared_memory;
        self.by_udp |= other.by_udp;
    }
}

fn ages() -> Histogram<u32> {
    let most = AGE_MAX.ns() as u64;
    // The bounds are constants that it takes; without them it would grow to the oldest sample.
    Histogram::new_with_bounds(1, most, DIGITS)
        .unwrap_or_else(|_| unreachable!("1 to {most} ns, {DIGITS} digits"))
}

#[cfg(test)]
mod tests {
    use noctule_discovery::NodeId;

    use super::*;

    fn sample(taken_ms: i64, age_ms: i64, missed: u64) -> SampleInfo {
        let receive_time = Instant::<Local>::from_ns(taken_ms * 1_000_000);
        SampleInfo {
            sequence: 0,
            missed,
            source_time: Some(receive_time - Span::from_ms(age_ms)),
            receive_time,
            bound: Some(Span::from_us(age_ms)),
            sigma: None,
            length_bytes: 100,
            publisher: NodeId([0; 16]),
            route: Route::Udp,
            format: None,
        }
    }

    fn at(ms: i64) -> Instant<Local> {
        Instant::from_ns(ms * 1_000_000)
    }

    #[test]
    fn a_window_shows_rate_ages_loss_and_the_largest_bound() {
        let mut statistics = SubscriberStatistics::new(Span::from_s(10), at(0));
        (0..1000).for_each(|number| statistics.record(&sample(number, number % 100, u64::from(number == 7))));
        let window = statistics.window(at(1000));
        assert_eq!((window.samples, window.missed, window.bytes), (1000, 1, 100_000));
        assert_eq!(window.rate_hz(), 1000.0);
        assert_eq!(window.loss(), Some(1.0 / 1001.0));
        assert_eq!(window.bound, Some(Span::from_us(99)));
        assert_eq!(window.routes, [Route::Udp]);
        let ms = |span: Option<Span>| span.unwrap().ns() as f64 / 1e6;
        assert!((ms(window.age_p50) - 49.0).abs() < 0.6, "{window:?}");
        assert!((ms(window.age_p99) - 98.0).abs() < 1.1, "{window:?}");
        assert!((ms(window.age_max) - 99.0).abs() < 1.1, "{window:?}");
    }

    #[test]
    fn what_has_left_the_window_no_longer_counts() {
        let mut statistics = SubscriberStatistics::new(Span::from_s(10), at(0));
        statistics.record(&sample(500, 1, 0));
        statistics.record(&sample(9000, 2, 0));
        assert_eq!(statistics.window(at(9999)).samples, 2);
        assert_eq!(statistics.window(at(10_000)).samples, 1);
        let silent = statistics.window(at(30_000));
        assert_eq!((silent.samples, silent.loss(), silent.age_max), (0, None, None));
        assert!(silent.duration >= Span::from_s(8) && silent.duration <= Span::from_s(10));
    }

    #[test]
    fn a_slice_is_emptied_before_it_is_used_again() {
        let mut statistics = SubscriberStatistics::new(Span::from_s(10), at(0));
        statistics.record(&sample(500, 1, 5));
        statistics.record(&sample(10_500, 1, 0));
        assert_eq!((statistics.window(at(10_600)).samples, statistics.window(at(10_600)).missed), (1, 0));
    }

    #[test]
    fn few_samples_have_no_percentiles_and_an_unproven_one_no_bound() {
        let mut statistics = SubscriberStatistics::new(Span::from_s(10), at(0));
        (0..19).for_each(|number| statistics.record(&sample(number, 5, 0)));
        assert_eq!(statistics.window(at(20)).age_p50, None);
        statistics.record(&SampleInfo { bound: None, ..sample(19, 5, 0) });
        let window = statistics.window(at(20));
        assert!(window.age_p50.is_some() && window.age_p99.is_none() && window.bound.is_none());
    }

    #[test]
    fn an_age_that_is_not_known_is_a_sample_without_an_age() {
        let mut statistics = SubscriberStatistics::new(Span::from_s(10), at(0));
        statistics.record(&SampleInfo { source_time: None, bound: None, ..sample(1, 5, 0) });
        let window = statistics.window(at(20));
        assert_eq!((window.samples, window.age_max, window.bound), (1, None, None));
    }
}
