//! Statistics of a subscriber: counts, and ages with their bound.
//!
//! Every subscriber keeps them since it was opened ([`Subscriber::statistics`](crate::Subscriber::statistics)). A live table
//! wants the recent past instead: [`StatisticsWindow`] covers a window of five slices, of which the oldest is
//! emptied when a new one begins. So memory is constant, 47 kB, whatever the rate. Sans-IO: samples come in
//! with the time when they were taken, and `now` is an argument.

use noctule_time_sync::Local;
use noctule_timebase::{Instant, Span};

use crate::age_histogram::AgeHistogram;
use crate::sample::{Route, SampleInfo};

/// Slices of a window.
const SLICES: i64 = 5;

/// Counters of samples received, missed and dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SubscriberCounters {
    /// Taken.
    pub taken: u64,
    /// Missing before those that were taken; of publishers that have gone, also what was still missing before the last that came.
    pub missed: u64,
    /// Older than LIFESPAN, and dropped.
    pub expired: u64,
    /// Taken, but older than the DEADLINE that was requested.
    pub late: u64,
    /// Taken by a [`TypedSubscriber`](crate::TypedSubscriber), but no value of its type.
    pub undecodable: u64,
    /// Bytes of those that were taken.
    pub bytes: u64,
    /// Received from another host by another node of this one, which handed them on; those that expired included.
    pub relayed: u64,
}

impl SubscriberCounters {
    /// The same, so many more missed.
    pub(crate) fn and_missed(self, samples: u64) -> SubscriberCounters {
        SubscriberCounters { missed: self.missed.saturating_add(samples), ..self }
    }
}

/// Statistics of a subscriber since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SubscriberStatistics {
    /// Counters of samples received, missed and dropped.
    pub counters: SubscriberCounters,
    /// Periods of the DEADLINE that was requested in which nothing came.
    pub deadline_missed: u64,
    /// Samples of known age, to which the figures below belong.
    pub aged: u64,
    /// Median age when it was taken, within 0.8 %; `None` if fewer than ten samples lie beyond it, as for each quantile.
    pub age_p50: Option<Span>,
    /// 90th percentile of ages.
    pub age_p90: Option<Span>,
    /// 99th percentile of ages.
    pub age_p99: Option<Span>,
    /// 99.9th percentile of ages.
    pub age_p99_9: Option<Span>,
    /// The largest age; `None` if no age is known.
    pub age_max: Option<Span>,
    /// No age is further from the truth than this. `None` if that is not proven of every sample.
    pub bound: Option<Span>,
}

/// Keeps [`SubscriberStatistics`]; recording costs a few nanoseconds.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    pub(crate) counters: SubscriberCounters,
    pub(crate) ages: AgeHistogram,
    bounds: Bounds,
    age_max: Option<Span>,
}

/// How well ages are known.
#[derive(Clone, Copy, Debug, Default)]
struct Bounds {
    /// Samples of which a bound is proven, and the largest.
    bounded: u64,
    bound_max: Option<Span>,
}

impl Bounds {
    #[inline]
    fn record(&mut self, bound: Option<Span>) {
        self.bounded += u64::from(bound.is_some());
        self.bound_max = self.bound_max.max(bound);
    }

    fn add(&mut self, other: Bounds) {
        self.bounded += other.bounded;
        self.bound_max = self.bound_max.max(other.bound_max);
    }

    /// The bound that holds for all of so many samples.
    fn of_all(self, samples: u64) -> Option<Span> {
        self.bound_max.filter(|_| self.bounded == samples)
    }
}

impl Recorder {
    /// A sample was taken.
    #[inline]
    pub(crate) fn record(&mut self, info: &SampleInfo, deadline: Option<Span>) {
        self.counters.taken += 1;
        self.counters.missed = self.counters.missed.saturating_add(info.missed);
        self.counters.bytes += info.length_bytes as u64;
        if let Some(age) = info.age() {
            self.counters.late += u64::from(deadline.is_some_and(|deadline| age.span > deadline));
            self.ages.record(age.span);
            self.age_max = self.age_max.max(Some(age.span));
            self.bounds.record(age.bound);
        }
    }

    pub(crate) fn statistics(&self) -> SubscriberStatistics {
        let ages = &self.ages;
        SubscriberStatistics {
            counters: self.counters,
            deadline_missed: 0,
            aged: ages.len(),
            age_p50: ages.quantile(0.5),
            age_p90: ages.quantile(0.9),
            age_p99: ages.quantile(0.99),
            age_p99_9: ages.quantile(0.999),
            age_max: self.age_max,
            bound: self.bounds.of_all(self.counters.taken),
        }
    }
}

/// Collects what a subscriber takes over a window of time; its user records each sample.
#[derive(Clone, Debug)]
pub struct StatisticsWindow {
    slice: Span,
    since: Instant<Local>,
    slices: [Slice; SLICES as usize],
}

/// Counts of one slice.
#[derive(Clone, Debug)]
struct Slice {
    /// Its number since the clock's zero, `None` before the first sample.
    number: Option<i64>,
    ages: AgeHistogram,
    sums: Sums,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    samples: u64,
    missed: u64,
    bytes: u64,
    age_max: Option<Span>,
    bounds: Bounds,
    by_shared_memory: bool,
    by_udp: bool,
}

/// Statistics of a window.
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

impl StatisticsWindow {
    /// Over the last `window`, 50 ms at least; nothing was taken before `now`.
    pub fn new(window: Span, now: Instant<Local>) -> StatisticsWindow {
        let slice = Span::from_ns((window.ns() / SLICES).max(10_000_000));
        let slices = std::array::from_fn(|_| Slice {
            number: None,
            ages: AgeHistogram::default(),
            sums: Sums::default(),
        });
        StatisticsWindow { slice, since: now, slices }
    }

    /// A sample was taken.
    pub fn record(&mut self, info: &SampleInfo) {
        let number = self.number(info.receive_time);
        let slice = &mut self.slices[number.rem_euclid(SLICES) as usize];
        if slice.number != Some(number) {
            slice.number = Some(number);
            slice.ages.clear();
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
            slice.ages.record(age.span);
            sums.age_max = sums.age_max.max(Some(age.span));
            sums.bounds.record(age.bound);
        }
    }

    /// The window that ends at `now`.
    pub fn window(&self, now: Instant<Local>) -> WindowStatistics {
        let last = self.number(now);
        let first = last.saturating_sub(SLICES - 1);
        let begin = Instant::from_ns(first.saturating_mul(self.slice.ns()));
        let mut all = AgeHistogram::default();
        let mut sums = Sums::default();
        let is_inside = |slice: &&Slice| slice.number.is_some_and(|number| (first..=last).contains(&number));
        for slice in self.slices.iter().filter(is_inside) {
            all.add(&slice.ages);
            sums.add(&slice.sums);
        }
        let routes = [(Route::SharedMemory, sums.by_shared_memory), (Route::Udp, sums.by_udp)];
        WindowStatistics {
            duration: now - begin.max(self.since),
            samples: sums.samples,
            missed: sums.missed,
            bytes: sums.bytes,
            age_p50: all.quantile(0.5),
            age_p99: all.quantile(0.99),
            age_max: sums.age_max,
            bound: sums.bounds.of_all(sums.samples),
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
        self.age_max = self.age_max.max(other.age_max);
        self.bounds.add(other.bounds);
        self.by_shared_memory |= other.by_shared_memory;
        self.by_udp |= other.by_udp;
    }
}

#[cfg(test)]
mod tests {
    use noctule_discovery::{EndpointId, NodeId};

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
            endpoint: EndpointId(1),
            route: Route::Udp,
            format: None,
        }
    }

    fn at(ms: i64) -> Instant<Local> {
        Instant::from_ns(ms * 1_000_000)
    }

    #[test]
    fn a_window_shows_rate_ages_loss_and_the_largest_bound() {
        let mut statistics = StatisticsWindow::new(Span::from_s(10), at(0));
        (0..1000).for_each(|number| statistics.record(&sample(number, number % 100, u64::from(number == 7))));
        let window = statistics.window(at(1000));
        assert_eq!((window.samples, window.missed, window.bytes), (1000, 1, 100_000));
        assert_eq!(window.rate_hz(), 1000.0);
        assert_eq!(window.loss(), Some(1.0 / 1001.0));
        assert_eq!(window.bound, Some(Span::from_us(99)));
        assert_eq!(window.routes, [Route::Udp]);
        let ms = |span: Option<Span>| span.unwrap().ns() as f64 / 1e6;
        assert!((ms(window.age_p50) - 50.0).abs() < 0.4, "{window:?}");
        assert!((ms(window.age_p99) - 99.0).abs() < 0.8, "{window:?}");
        assert_eq!(window.age_max, Some(Span::from_ms(99)));
    }

    #[test]
    fn what_has_left_the_window_no_longer_counts() {
        let mut statistics = StatisticsWindow::new(Span::from_s(10), at(0));
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
        let mut statistics = StatisticsWindow::new(Span::from_s(10), at(0));
        statistics.record(&sample(500, 1, 5));
        statistics.record(&sample(10_500, 1, 0));
        assert_eq!((statistics.window(at(10_600)).samples, statistics.window(at(10_600)).missed), (1, 0));
    }

    #[test]
    fn few_samples_have_no_percentiles_and_an_unproven_one_no_bound() {
        let mut statistics = StatisticsWindow::new(Span::from_s(10), at(0));
        (0..19).for_each(|number| statistics.record(&sample(number, 5, 0)));
        assert_eq!(statistics.window(at(20)).age_p50, None);
        statistics.record(&SampleInfo { bound: None, ..sample(19, 5, 0) });
        let window = statistics.window(at(20));
        assert!(window.age_p50.is_some() && window.age_p99.is_none() && window.bound.is_none());
    }

    #[test]
    fn an_age_that_is_not_known_is_a_sample_without_an_age() {
        let mut statistics = StatisticsWindow::new(Span::from_s(10), at(0));
        statistics.record(&SampleInfo { source_time: None, bound: None, ..sample(1, 5, 0) });
        let window = statistics.window(at(20));
        assert_eq!((window.samples, window.age_max, window.bound), (1, None, None));
    }

    #[test]
    fn a_recorder_knows_what_was_late_lost_and_how_old() {
        let mut recorder = Recorder::default();
        (0..1000).for_each(|number| {
            let info = sample(number, number % 100, u64::from(number == 7));
            recorder.record(&info, Some(Span::from_ms(89)));
        });
        let statistics = recorder.statistics();
        let SubscriberCounters { taken, missed, late, bytes, .. } = statistics.counters;
        assert_eq!((taken, missed, late, bytes), (1000, 1, 100, 100_000));
        assert_eq!((statistics.aged, statistics.age_max), (1000, Some(Span::from_ms(99))));
        assert_eq!((statistics.bound, statistics.age_p99_9), (Some(Span::from_us(99)), None));
        let near =
            |span: Option<Span>, ms: i64| (span.unwrap().ns() - ms * 1_000_000).abs() * 128 <= ms * 1_000_000;
        assert!(near(statistics.age_p50, 50) && near(statistics.age_p90, 90), "{statistics:?}");
    }
}
