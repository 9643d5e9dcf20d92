//! The Gilbert model of burst loss: two states, one step per datagram or in continuous time.
//!
//! In the bad state everything is lost, in the good one nothing (Gilbert, "Capacity of a burst-noise channel",
//! BSTJ 1960, with his h = 0). The state after `n` steps leans towards the long-run share of losses by λⁿ.
//! Independent losses are the case λ = 0. Interference and fading go by time instead: the state after a pause t leans
//! towards the share by e^(−t/τ), however many datagrams were sent meanwhile.

use noctule_timebase::{Instant, Span};

use crate::stream::Local;

/// The largest share of lost datagrams that is distinguished from all of them.
pub(crate) const LOSS_MAX: f64 = 0.999;

/// How one direction of a path loses datagrams.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LossModel {
    /// Each is lost with probability `p`, whatever became of those before.
    Independent {
        /// Share of lost datagrams, 0 to 1.
        p: f64,
    },
    /// They are lost in runs.
    Bursts {
        /// Share of lost datagrams, 0 to 1.
        p: f64,
        /// Mean number lost in a row; less than independent losses have, 1 / (1 − p), counts as that.
        mean_burst: f64,
    },
    /// They are lost while something lasts, however many are sent meanwhile.
    BurstsInTime {
        /// Share of time in which datagrams are lost, 0 to 1.
        p: f64,
        /// Mean time for which it lasts, above 0.
        mean: Span,
    },
}

/// The chain of one direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Gilbert {
    /// Long-run share of datagrams lost.
    pub(crate) loss: f64,
    /// Probability that the datagram after a delivered one is lost.
    pub(crate) begins: f64,
    /// Probability that the datagram after a lost one is delivered.
    pub(crate) ends: f64,
    /// Rate at which the state is forgotten, per nanosecond; 0: by packets only. If above 0, `begins` and `ends` are 0.
    pub(crate) forgets_per_ns: f64,
}

/// A datagram as the channel sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Departure {
    /// Its number among all datagrams of the direction.
    pub(crate) packet: u64,
    pub(crate) sent_at: Instant<Local>,
}

/// A datagram and what its silence tells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Unknown {
    pub(crate) departure: Departure,
    /// Probability that no acknowledgement would be here by now if it had arrived; 1 if it is too early for one.
    pub(crate) silence: f64,
}

/// Distribution of losses among datagrams of which too few arrive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Shortfall {
    /// Probability that too few arrive.
    pub(crate) probability: f64,
    /// Datagrams lost on average, counting 0 where enough arrive.
    pub(crate) lost: f64,
}

impl Gilbert {
    pub(crate) fn new(model: &LossModel) -> Gilbert {
        let (loss, mean_burst) = match *model {
            LossModel::Independent { p } => (p, 1.0),
            LossModel::Bursts { p, mean_burst } => (p, mean_burst),
            LossModel::BurstsInTime { p, mean } => return Gilbert::in_time(p, mean),
        };
        let loss = possible(loss);
        let ends = 1.0 / mean_burst.max(1.0 / (1.0 - loss));
        Gilbert { loss, begins: loss * ends / (1.0 - loss), ends, forgets_per_ns: 0.0 }
    }

    fn in_time(loss: f64, mean: Span) -> Gilbert {
        let loss = possible(loss);
        let forgets_per_ns = 1.0 / (mean.ns().max(1) as f64 * (1.0 - loss));
        Gilbert { loss, begins: 0.0, ends: 0.0, forgets_per_ns }
    }

    /// Whether bursts last for a time, however many datagrams are sent meanwhile.
    pub(crate) fn is_timed(&self) -> bool {
        self.forgets_per_ns > 0.0
    }

    /// Time after which 1/e of the state is remembered; `None` if time does not matter.
    pub(crate) fn memory(&self) -> Option<Span> {
        self.is_timed().then(|| Span::from_ns((1.0 / self.forgets_per_ns) as i64))
    }

    /// Probability that everything sent within `window` is lost, however much it is.
    pub(crate) fn outage(&self, window: Span) -> f64 {
        if !self.is_timed() {
            return 0.0;
        }
        // A bad state ends at the rate at which the state is forgotten, less the returns to it.
        let ends_per_ns = self.forgets_per_ns * (1.0 - self.loss);
        self.loss * (-(window.ns().max(0) as f64) * ends_per_ns).exp()
    }

    /// Probability that a datagram is lost `steps` datagrams and `pause` after one that was lost, or was not.
    pub(crate) fn lost_after(&self, steps: u64, pause: Span, was_lost: bool) -> f64 {
        let from = if was_lost { 1.0 } else { 0.0 };
        self.loss + (from - self.loss) * self.remembered(steps, pause)
    }

    fn remembered(&self, steps: u64, pause: Span) -> f64 {
        if self.is_timed() {
            return (-(pause.ns().max(0) as f64) * self.forgets_per_ns).exp();
        }
        let memory = (1.0 - self.begins - self.ends).max(0.0);
        memory.powi(steps.min(10_000) as i32)
    }

    /// Probability of loss at `to` after a delivered and after a lost datagram at `from`. The chain is reversible, so
    /// that either may be the earlier.
    fn lost_between(&self, from: Departure, to: Departure) -> [f64; 2] {
        let steps = to.packet.saturating_sub(from.packet).max(1);
        let remembered = self.remembered(steps, (to.sent_at - from.sent_at).abs());
        [self.loss - self.loss * remembered, self.loss + (1.0 - self.loss) * remembered]
    }

    /// Shortfall of datagrams of which `needed` must arrive, given whether the one `known` was lost. In the order of sending.
    pub(crate) fn shortfall(&self, sent: &[Unknown], needed: usize, known: (Departure, bool)) -> Shortfall {
        if needed == 1 {
            let mut chain = AllLost::new(known);
            sent.iter().for_each(|unknown| chain.add(self, *unknown));
            return Shortfall {
                probability: chain.probability(),
                lost: chain.probability() * sent.len() as f64,
            };
        }
        // Weight of so many losses so far, by the fate of the last datagram: [arrived, lost].
        let mut ways = vec![[0.0; 2]; (sent.len() + 1).saturating_sub(needed)];
        // The same of all that has failed already, and its losses.
        let (mut failed, mut failed_lost) = ([0.0; 2], [0.0; 2]);
        ways.first_mut().unwrap_or(&mut failed)[usize::from(known.1)] = 1.0;
        let mut before = known.0;
        for &Unknown { departure, silence } in sent {
            let after = self.lost_between(before, departure);
            before = departure;
            let step = |way: [f64; 2]| {
                let lost = way[0] * after[0] + way[1] * after[1];
                [(way[0] + way[1] - lost) * silence, lost]
            };
            let mut carried = 0.0;
            for way in &mut ways {
                let [arrived, lost] = step(*way);
                *way = [arrived, carried];
                carried = lost;
            }
            // What comes after too many losses still makes the silence more or less probable.
            (failed, failed_lost) = (step(failed), step(failed_lost));
            failed_lost[1] += failed[1] + carried * ways.len() as f64;
            failed[1] += carried;
        }
        let failing: f64 = failed.iter().sum();
        let all = failing + ways.iter().flatten().sum::<f64>();
        if all <= 0.0 {
            // Nothing of the kind can have happened: the channel is not what the model says.
            return Shortfall { probability: 1.0, lost: sent.len() as f64 };
        }
        Shortfall { probability: failing / all, lost: failed_lost.iter().sum::<f64>() / all }
    }
}

/// Not a number counts as no loss; a link that loses everything as one that loses almost everything.
fn possible(loss: f64) -> f64 {
    if loss.is_nan() { 0.0 } else { loss.clamp(0.0, LOSS_MAX) }
}

/// The case in which one datagram of any is enough, one datagram after the other: the probability that all are lost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AllLost {
    last: Departure,
    /// Weight of all lost so far; before the first datagram, by the state of the channel.
    lost: [f64; 2],
    /// Weight of the rest, by the fate of the last datagram: [arrived, lost].
    rest: [f64; 2],
}

impl AllLost {
    pub(crate) fn new((last, is_lost): (Departure, bool)) -> AllLost {
        let lost = if is_lost { [0.0, 1.0] } else { [1.0, 0.0] };
        AllLost { last, lost, rest: [0.0; 2] }
    }

    /// One more datagram, sent after those before.
    pub(crate) fn add(&mut self, channel: &Gilbert, unknown: Unknown) {
        let after = channel.lost_between(self.last, unknown.departure);
        self.last = unknown.departure;
        let all_lost = self.lost[0] * after[0] + self.lost[1] * after[1];
        let first_arrived = self.lost[0] + self.lost[1] - all_lost;
        let lost = self.rest[0] * after[0] + self.rest[1] * after[1];
        let arrived = self.rest[0] + self.rest[1] - lost;
        self.lost = [0.0, all_lost];
        self.rest = [(arrived + first_arrived) * unknown.silence, lost];
    }

    pub(crate) fn probability(&self) -> f64 {
        let lost = self.lost[0] + self.lost[1];
        let all = lost + self.rest[0] + self.rest[1];
        // All weight gone: nothing of the kind can have happened, and the channel is not what the model says.
        if all > 0.0 { lost / all } else { 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bursts(p: f64, mean_burst: f64) -> Gilbert {
        Gilbert::new(&LossModel::Bursts { p, mean_burst })
    }

    #[test]
    fn losses_have_their_share_and_their_length() {
        let channel = bursts(0.05, 3.0);
        assert!((channel.lost_after(1, Span::ZERO, true) - 2.0 / 3.0).abs() < 1e-9);
        assert!((channel.lost_after(1, Span::ZERO, false) - 0.05 / 0.95 / 3.0).abs() < 1e-9);
        assert!((channel.lost_after(1_000, Span::ZERO, true) - 0.05).abs() < 1e-9);
        let independent = bursts(0.1, 1.0);
        assert!((independent.lost_after(1, Span::ZERO, true) - 0.1).abs() < 1e-9);
    }

    fn at(packet: u64, sent_ms: i64) -> Departure {
        Departure { packet, sent_at: Instant::from_ns(sent_ms * 1_000_000) }
    }

    /// None of which should have been acknowledged yet; all sent at one time.
    fn unheard(numbers: &[u64]) -> Vec<Unknown> {
        numbers.iter().map(|number| Unknown { departure: at(*number, 0), silence: 1.0 }).collect()
    }

    const GOOD: (Departure, bool) = (Departure { packet: 0, sent_at: Instant::from_ns(0) }, false);
    const BAD: (Departure, bool) = (GOOD.0, true);

    #[test]
    fn of_independent_datagrams_the_shortfall_is_binomial() {
        let channel = bursts(0.1, 1.0);
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} is not {b}");
        close(channel.shortfall(&unheard(&[1, 2, 3]), 1, GOOD).probability, 0.001);
        close(channel.shortfall(&unheard(&[1, 2, 3]), 3, BAD).probability, 1.0 - 0.729);
        close(channel.shortfall(&unheard(&[1, 2, 3]), 2, GOOD).probability, 3.0 * 0.01 * 0.9 + 0.001);
        close(channel.shortfall(&unheard(&[1]), 2, GOOD).probability, 1.0);
        close(channel.shortfall(&[], 0, GOOD).probability, 0.0);
    }

    #[test]
    fn losses_beyond_what_may_fail_are_counted() {
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} is not {b}");
        let channel = bursts(0.1, 1.0);
        // Two of three must arrive: two losses in three ways, or three.
        close(channel.shortfall(&unheard(&[1, 2, 3]), 2, GOOD).lost, 2.0 * 3.0 * 0.009 + 3.0 * 0.001);
        // More must arrive than were sent.
        close(channel.shortfall(&unheard(&[1, 2]), 3, BAD).lost, 0.2);
        close(channel.shortfall(&unheard(&[1, 2]), 0, BAD).lost, 0.0);
    }

    #[test]
    fn copies_in_one_burst_share_its_fate() {
        let channel = bursts(0.05, 3.0);
        let near = channel.shortfall(&unheard(&[10, 11]), 1, GOOD).probability;
        let far = channel.shortfall(&unheard(&[10, 30]), 1, GOOD).probability;
        assert!(near > 10.0 * far, "{near}, {far}");
    }

    #[test]
    fn silence_about_what_should_have_been_heard_of_makes_its_loss_probable() {
        let channel = bursts(0.05, 1.0);
        let heard = |silence| [Unknown { departure: at(1, 0), silence }];
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} is not {b}");
        close(channel.shortfall(&heard(0.05), 1, GOOD).probability, 0.05 / (0.05 + 0.95 * 0.05));
        close(channel.shortfall(&heard(0.0), 1, GOOD).probability, 1.0);
    }

    #[test]
    fn bursts_in_time_are_outlived_by_waiting_and_not_by_copies() {
        let channel = Gilbert::new(&LossModel::BurstsInTime { p: 0.05, mean: Span::from_ms(15) });
        let risk = |sent_ms: &[i64]| {
            let copies: Vec<Unknown> = (1..)
                .zip(sent_ms)
                .map(|(packet, ms)| Unknown { departure: at(packet, *ms), silence: 1.0 })
                .collect();
            channel.shortfall(&copies, 1, BAD).probability
        };
        assert!((risk(&[0]) - 1.0).abs() < 1e-9 && (risk(&[0, 0, 0]) - 1.0).abs() < 1e-9);
        // e^(−30 / 14.25) of the state is left after 30 ms.
        assert!((risk(&[30]) - (0.05 + 0.95 * (-30.0_f64 / 14.25).exp())).abs() < 1e-9);
        assert!(risk(&[10, 30]) < 0.9 * risk(&[30, 30]));
        // Nothing outlives what lasts for all of the time.
        let copies: Vec<i64> = (0..=1_000).map(|n| n * 30 / 1_000).collect();
        let floor = channel.outage(Span::from_ms(30)) / channel.loss;
        assert!(risk(&copies) >= floor && risk(&copies) < 1.1 * floor, "{} {floor}", risk(&copies));
    }

    #[test]
    fn the_case_of_one_needed_is_the_general_one() {
        for channel in
            [bursts(0.1, 3.0), Gilbert::new(&LossModel::BurstsInTime { p: 0.1, mean: Span::from_ms(9) })]
        {
            let sent = [(3, 2, 1.0), (4, 5, 0.3), (9, 20, 0.1), (10, 21, 1.0)]
                .map(|(packet, ms, silence)| Unknown { departure: at(packet, ms), silence });
            for known in [GOOD, BAD] {
                // Of the general case: a datagram more is needed, and one that certainly arrives is there.
                let mut general = [[0.0, 0.0], [0.0, 0.0]];
                general[0][usize::from(known.1)] = 1.0;
                let mut before = known.0;
                for Unknown { departure, silence } in sent {
                    let after = channel.lost_between(before, departure);
                    before = departure;
                    let [all, rest] = general.map(|way| {
                        let lost = way[0] * after[0] + way[1] * after[1];
                        [(way[0] + way[1] - lost) * silence, lost]
                    });
                    general = [[0.0, all[1]], [rest[0] + all[0], rest[1]]];
                }
                let expected = general[0][1] / general.iter().flatten().sum::<f64>();
                let got = channel.shortfall(&sent, 1, known).probability;
                assert!((got - expected).abs() < 1e-12, "{got} is not {expected}");
            }
        }
    }
}
