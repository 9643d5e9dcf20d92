//! One-way latency between two clocks: arrivals on the second host, translated into the first's.
//!
//! # Problem
//!
//! A one-way latency has a stamp of each of two clocks. What is subtracted must first be known, and
//! how well it is known is part of the result.
//!
//! # Approach
//!
//! Beside the measurement a server on the sender's host and a prober on the receiver's exchange their
//! times. Every arrival is translated with the estimate of the exchanges before it and none after it, as
//! a robot would have to. The bound and sigma of that moment go with it. Nothing is clipped: a
//! latency that comes out negative stays negative.
//!
//! Both clocks are artificial, over one crystal, so the truth is known as well, and the bound is put to
//! the test with every message.

use noctule_local_clock::LocalClock;
use noctule_time_sync::{Bounded, BoundedConfig, Estimator, Exchange, Local, Remote};
use noctule_timebase::{Instant, Span};

use crate::samples::Sample;
use crate::trace::TraceRow;
use crate::validity::Invalid;

/// The sender's clock as the receiver's host knows it.
#[derive(Debug)]
pub(crate) struct ClockTranslation {
    /// Exchanges in the order in which their replies arrived.
    pub(crate) exchanges: Vec<TraceRow>,
    /// The sender's.
    pub(crate) remote: LocalClock,
    /// The receiver's.
    pub(crate) local: LocalClock,
    /// Least time of an exchange on the wire, each way; zero where that is not known.
    pub(crate) wire: Span,
}

/// How well the arrivals of one trial could be translated.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Translation {
    /// The largest bound of any arrival.
    pub(crate) bound_ns: u64,
    /// The largest standard error of any arrival.
    pub(crate) sigma_ns: u64,
    /// Arrivals at a moment when nothing was proven.
    pub(crate) unbounded: u64,
    /// Latencies whose true error was larger than their bound.
    pub(crate) wrong: u64,
    /// The largest of those errors.
    pub(crate) worst_error_ns: i64,
    /// Arrivals translated.
    pub(crate) count: u64,
}

impl ClockTranslation {
    /// Translates the arrivals of nodes on the second host, in place: those of odd number.
    pub(crate) fn translate(&self, samples: &mut [Sample]) -> Translation {
        let mut arrivals: Vec<&mut Sample> =
            samples.iter_mut().filter(|sample| sample.node % 2 == 1).collect();
        arrivals.sort_by_key(|sample| sample.received_ns);
        let wire =
            BoundedConfig { wire_forward: self.wire, wire_back: self.wire, ..BoundedConfig::default() };
        let mut bounded = Bounded::new(wire);
        let mut exchanges = self.exchanges.iter().peekable();
        let mut translation = Translation::default();
        for sample in arrivals {
            let received = Instant::<Local>::from_ns(sample.received_ns);
            while let Some(row) = exchanges.next_if(|row| row.exchange.t4 <= received) {
                // One that does not fit withdraws the bound, which is what counts.
                let _ = bounded.handle_exchange(&row.exchange);
            }
            translation.count += 1;
            let Some(estimate) = bounded.estimate(received) else {
                translation.unbounded += 1;
                continue;
            };
            sample.received_ns = received.translate::<Remote>(estimate.offset).ns();
            let sigma_ns = estimate.sigma.map_or(0, |sigma| sigma.ns().unsigned_abs());
            translation.sigma_ns = translation.sigma_ns.max(sigma_ns);
            let Some(bound) = estimate.bound else {
                translation.unbounded += 1;
                continue;
            };
            translation.bound_ns = translation.bound_ns.max(bound.ns().unsigned_abs());
            let error_ns = self.error_ns(received, sample);
            if error_ns.is_none_or(|error_ns| error_ns.saturating_abs() > bound.ns()) {
                translation.wrong += 1;
                let error_ns = error_ns.unwrap_or(0);
                if error_ns.saturating_abs() > translation.worst_error_ns.saturating_abs() {
                    translation.worst_error_ns = error_ns;
                }
            }
        }
        translation
    }

    /// The latency found minus the true one; `None` if a clock never showed one of its stamps, or only
    /// in an order that causality forbids. A clock stepped back shows a reading twice: then the true
    /// latency is the least that is not negative.
    fn error_ns(&self, received: Instant<Local>, sample: &Sample) -> Option<i64> {
        let sent = self.remote.moments_of(Instant::<Remote>::from_ns(sample.scheduled_ns));
        let received = self.local.moments_of(received);
        let pairs = received.iter().flat_map(|received| sent.iter().map(|sent| (*received - *sent).ns()));
        // Two nanoseconds of rounding.
        let true_ns = pairs.filter(|ns| *ns >= -2).min()?;
        // In the sender's own seconds, of which only a step between the two moments is an error.
        let error_ns = sample.latency_ns().saturating_sub(true_ns);
        let stretch_ns = true_ns.saturating_abs() / STRETCH + 2;
        Some(error_ns.signum() * (error_ns.saturating_abs() - stretch_ns).max(0))
    }
}

/// Exchanges that the sender made, as the receiver knows them: the reply to one and the request of the next are an
/// exchange begun by the receiver, which the sender answers as late as its next request leaves.
pub(crate) fn turned(exchanges: &[TraceRow]) -> Vec<TraceRow> {
    let turn = |pair: &[TraceRow]| {
        let [before, after] = pair else { return None };
        let (before, after) = (before.exchange, after.exchange);
        let stamps = [before.t3.ns(), before.t4.ns(), after.t1.ns(), after.t2.ns()];
        // A request that left before the last reply came was on its way together with it.
        let [t1, t2, t3, t4] = stamps;
        let exchange = (t2 <= t3 && t1 <= t4).then(|| Exchange::from_ns(t1, t2, t3, t4))?;
        Some(TraceRow { exchange, offset_true_ns: None, step_in_flight: false })
    };
    exchanges.windows(2).filter_map(turn).collect()
}

/// A sender's clock that is fast by one in this many (200 ppm, the premise of every bound) measures
/// its own seconds rightly, and not the crystal's.
const STRETCH: i64 = 5_000;

impl Translation {
    /// Reasons in the clock comparison for which the cell is invalid.
    pub(crate) fn faults(&self) -> Vec<Invalid> {
        let mut faults = Vec::new();
        if self.unbounded > 0 {
            faults.push(Invalid::NoClockBound { arrivals: self.unbounded, of: self.count });
        }
        if self.wrong > 0 {
            faults.push(Invalid::ClockBoundWrong {
                latencies: self.wrong,
                of: self.count,
                worst_ns: self.worst_error_ns,
            });
        }
        faults
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validity::sentences;

    const SECOND: i64 = 1_000_000_000;

    fn shown<C>(clock: &LocalClock, raw_ns: i64) -> Instant<C> {
        clock.at(Instant::from_ns(raw_ns))
    }

    /// Exchanges every 100 ms for ten seconds, 30 µs there and 10 µs back.
    fn foreign(remote: &str, local: &str) -> ClockTranslation {
        let (remote, local): (LocalClock, LocalClock) = (remote.parse().unwrap(), local.parse().unwrap());
        let exchange = |number: i64| {
            let raw_ns = number * SECOND / 10;
            noctule_time_sync::Exchange {
                t1: shown(&local, raw_ns),
                t2: shown(&remote, raw_ns + 30_000),
                t3: shown(&remote, raw_ns + 31_000),
                t4: shown(&local, raw_ns + 41_000),
            }
        };
        let row =
            |number| TraceRow { exchange: exchange(number), offset_true_ns: None, step_in_flight: false };
        ClockTranslation { exchanges: (0..100).map(row).collect(), remote, local, wire: Span::ZERO }
    }

    /// A message every 10 ms from the second second on, with a latency of 70 µs, at node 1.
    fn samples(clock: &ClockTranslation) -> Vec<Sample> {
        let sample = |index: i64| {
            let raw_ns = SECOND + index * SECOND / 100 + 5_000_000;
            let scheduled_ns = shown::<Remote>(&clock.remote, raw_ns).ns();
            let received_ns = shown::<Local>(&clock.local, raw_ns + 70_000).ns();
            Sample { index: index as u64, node: 1, scheduled_ns, sent_ns: scheduled_ns, received_ns }
        };
        (0..800).map(sample).collect()
    }

    #[test]
    fn arrivals_come_out_in_the_senders_clock_within_the_bound_they_carry() {
        let clock = foreign("since=0", "offset=-3s,ppm=50,since=0");
        let mut samples = samples(&clock);
        let translation = clock.translate(&mut samples);
        assert_eq!((translation.count, translation.unbounded, translation.wrong), (800, 0, 0));
        assert!((15_000..60_000).contains(&translation.bound_ns), "{translation:?}");
        assert!(translation.sigma_ns > 0 && translation.sigma_ns < translation.bound_ns);
        for sample in &samples {
            let error_ns = sample.latency_ns() - 70_000;
            assert!(error_ns.unsigned_abs() <= translation.bound_ns, "{error_ns}");
        }
        assert!(translation.faults().is_empty());
    }

    #[test]
    fn exchanges_that_the_sender_made_prove_as_much_to_the_receiver() {
        let own = foreign("since=0", "offset=-3s,ppm=50,since=0");
        // The same, asked from the other side: its local clock is the sender's.
        let asked = foreign("offset=-3s,ppm=50,since=0", "since=0");
        let clock = ClockTranslation { exchanges: turned(&asked.exchanges), ..own };
        assert_eq!(clock.exchanges.len(), 99);
        let mut samples = samples(&clock);
        let translation = clock.translate(&mut samples);
        assert_eq!((translation.count, translation.unbounded, translation.wrong), (800, 0, 0));
        assert!((15_000..80_000).contains(&translation.bound_ns), "{translation:?}");
        assert!(
            samples
                .iter()
                .all(|sample| (sample.latency_ns() - 70_000).unsigned_abs() <= translation.bound_ns)
        );
    }

    #[test]
    fn a_known_time_on_the_wire_narrows_the_bound_and_it_still_holds() {
        let mut clock = foreign("since=0", "offset=-3s,ppm=50,since=0");
        let loose = clock.translate(&mut samples(&clock));
        clock.wire = Span::from_us(10);
        let tight = clock.translate(&mut samples(&clock));
        assert_eq!((tight.unbounded, tight.wrong), (0, 0));
        assert!(tight.bound_ns + 5_000 < loose.bound_ns, "{tight:?} {loose:?}");
    }

    #[test]
    fn a_step_is_found_in_the_arrivals_before_the_next_exchange_and_reported() {
        for stepping in ["offset=5s,step=20ms@5050ms,since=0", "offset=5s,step=-20ms@5050ms,since=0"] {
            for (remote, local) in [(stepping, ""), ("", stepping)] {
                let clock = foreign(remote, local);
                let mut samples = samples(&clock);
                let translation = clock.translate(&mut samples);
                // Five messages until the next exchange. That one contradicts and withdraws the bound, as do
                // the two after it: thirty more without any.
                assert!((4..=6).contains(&translation.wrong), "{translation:?}");
                assert!((15..=35).contains(&translation.unbounded), "{translation:?}");
                assert!((19_900_000..20_100_000).contains(&translation.worst_error_ns.abs()));
                let faults = sentences(&translation.faults());
                assert!(
                    faults.contains("of 800 latencies are wrong by more than their clock bound"),
                    "{faults}"
                );
                assert!(faults.contains("20 ms") && faults.contains("nothing was proven"), "{faults}");
            }
        }
    }

    #[test]
    fn a_bound_that_the_exchanges_do_not_support_is_found_out() {
        let mut clock = foreign("since=0", "since=0");
        clock.remote = "offset=1ms,since=0".parse().unwrap();
        let mut samples = samples(&foreign("offset=1ms,since=0", "since=0"));
        assert_eq!(clock.translate(&mut samples).wrong, 800);
    }

    #[test]
    fn nodes_on_the_senders_host_are_left_as_they_are() {
        let clock = foreign("since=0", "offset=-3s,since=0");
        let mut samples = samples(&clock);
        samples.iter_mut().for_each(|sample| sample.node = 2);
        let before = samples.clone();
        assert_eq!(clock.translate(&mut samples), Translation::default());
        assert_eq!(samples, before);
    }

    #[test]
    fn without_an_exchange_nothing_is_proven_and_nothing_changed() {
        let mut clock = foreign("since=0", "since=0");
        clock.exchanges.clear();
        let mut samples = samples(&clock);
        assert_eq!(clock.translate(&mut samples).unbounded, 800);
    }
}
