//! A circuit breaker for repairs (RFC 8083): where as much arrives without them, repairs are what is lost.
//!
//! # Problem
//!
//! A policer loses without a queue, a short queue loses before a round trip shows it, and what repairs push out is repaired in turn: on a
//! line that bears 1.3 times the offer and loses nothing by itself, repairs kept the loss up for hours. Losses alone do not distinguish such a
//! path from a radio.
//!
//! # Approach
//!
//! Where samples fail although they are repaired, repairs pause. Each packet's fate then speaks for one of two losses: the samples' own failures
//! before, which mean that repairs are futile, or the mean of that and of the packets' losses before, as on a radio. Wald's sequential test ends after the
//! second or third burst of losses on a radio. Where repairs are futile it goes on (Page's CUSUM), so that a radio is not taken for a full
//! path for long. Samples themselves are never held back here.

use noctule_timebase::{Instant, Span};

use super::epoch::{RETRY_FIRST, RETRY_MOST};
use crate::stream::Local;

/// Samples of one look, and packets without a decision after which repairs are worth what they cost. Of the former so many must fail, apart from
/// each other. A stream that keeps a target of 1e-4 has two in one of a thousand looks.
const LOOK: u32 = 512;
const FAILED_LEAST: u32 = 2;
/// More failures in a row are an outage, with or without repairs, and a look begins anew after it. (In its share of failures they would outweigh all
/// later losses, as if repairs were futile.) A full path lets something through sooner: even if each second sample failed by chance, so many in a row were one in 10⁹.
const RUN_MOST: u32 = LOOK / 16;
/// Without repairs samples fail so many times as often where repairs are worth anything; and packets are lost so many times as often as samples fail, or
/// the path is full whatever is repaired.
const CLEARLY: f64 = 1.2;
/// More of them cannot be distinguished from all.
const FAILING_MOST: f64 = 0.95;
/// Repairs are this part of what leaves, at least: else they are not what fills the path. And so much is lost, or repairs are so many times
/// what losses ask for: a test costs a stream that is lost by chance some samples.
const REPAIRS_LEAST: f64 = 0.15;
const LOSS_LEAST: f64 = 0.2;
const REPAIRS_TIMES: f64 = 5.0;
/// Of a pause nothing counts before the queue of before is gone.
const SETTLES: Span = Span::from_ms(100);
/// Logarithm of the odds that decide: 20 to 1 (Wald 1945). No loss is worth more than half of that.
const DECIDES: f64 = 3.0;
const LOSS_WEIGHS_MOST: f64 = DECIDES / 2.0;
/// Bound of the sum for futile repairs: beyond it a radio would be recognised too late.
const CERTAIN: f64 = 2.0 * DECIDES;

/// Whether repairs may leave on one path.
#[derive(Debug)]
pub(super) struct RepairBreaker {
    state: State,
    look: Look,
    /// Samples of before do not count: they were not repaired as the rule would have.
    since: Instant<Local>,
    retry_at: Instant<Local>,
    retry_after: Span,
    /// Repairs were found futile, and nobody knows yet.
    is_news: bool,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Closed,
    Testing(Trial),
    Open(Trial),
}

/// How many there were, how many of them were lost, and in how many runs.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    all: u32,
    lost: u32,
    runs: u32,
    /// Length of the last run, if it goes on.
    run: u32,
}

/// Fates of samples, of the datagram that left first for each (copies are lost together with what they replace), and of all datagrams.
#[derive(Clone, Copy, Debug, Default)]
struct Look {
    samples: Share,
    firsts: Share,
    packets: Share,
}

/// A pause of repairs.
#[derive(Clone, Copy, Debug)]
struct Trial {
    began: Instant<Local>,
    packets: u32,
    /// Log-likelihood ratio of a lost and of an arrived packet for repairs, and the sum so far.
    lost: f64,
    arrived: f64,
    said: f64,
}

impl Share {
    fn add(&mut self, is_lost: bool) {
        self.all += 1;
        self.lost += u32::from(is_lost);
        self.run = if is_lost { self.run + 1 } else { 0 };
        self.runs += u32::from(self.run == 1);
    }

    fn get(&self) -> f64 {
        f64::from(self.lost) / f64::from(self.all.max(1))
    }

    fn mean_run(&self) -> f64 {
        f64::from(self.lost.max(1)) / f64::from(self.runs.max(1))
    }
}

impl Trial {
    fn new(look: &Look, now: Instant<Local>) -> Trial {
        let futile = look.samples.get().min(FAILING_MOST);
        let useful =
            f64::midpoint(futile, look.firsts.get()).max(CLEARLY * futile).min(f64::midpoint(futile, 1.0));
        // Of losses that come in runs each says as much less.
        let weight = 1.0 / look.firsts.mean_run();
        let lost = (useful / futile).ln().min(LOSS_WEIGHS_MOST) * weight;
        let arrived = ((1.0 - useful) / (1.0 - futile)).ln() * weight;
        Trial { began: now, packets: 0, lost, arrived, said: 0.0 }
    }
}

impl RepairBreaker {
    pub(super) fn new(now: Instant<Local>) -> RepairBreaker {
        let (state, look) = (State::Closed, Look::default());
        RepairBreaker { state, look, since: now, retry_at: now, retry_after: RETRY_FIRST, is_news: false }
    }

    /// Whether a repair may leave now.
    pub(super) fn allows(&self) -> bool {
        matches!(self.state, State::Closed)
    }

    /// Whether repairs have been found futile since this was last asked: what was lost meanwhile says nothing of the channel.
    pub(super) fn poll_futile(&mut self) -> bool {
        std::mem::take(&mut self.is_news)
    }

    /// Samples of one datagram each, sent from `began` on, are over; so many of them were not acknowledged in time, and so many lost at first.
    /// Repairs are this part of what leaves.
    pub(super) fn settle(
        &mut self,
        (samples, failed, lost): (u32, u32, u32),
        began: Instant<Local>,
        repairs: f64,
        now: Instant<Local>,
    ) {
        if !self.allows() || began < self.since {
            return;
        }
        let is_over = failed < samples;
        if is_over && self.look.samples.run + failed > RUN_MOST {
            return self.close(now);
        }
        (0..samples).for_each(|number| {
            self.look.samples.add(number < failed);
            self.look.firsts.add(number < lost);
        });
        if self.look.samples.all < LOOK || !is_over {
            return;
        }
        let look = std::mem::take(&mut self.look);
        let loss = look.packets.get();
        let is_failing = look.samples.runs >= FAILED_LEAST && loss > CLEARLY * look.samples.get();
        let is_suspect = repairs > REPAIRS_LEAST && (loss > LOSS_LEAST || repairs > REPAIRS_TIMES * loss);
        if is_failing && is_suspect && now >= self.retry_at {
            self.state = State::Testing(Trial::new(&look, now));
        }
    }

    /// The fate of a packet with a deadline that left at `sent_at`.
    pub(super) fn handle_outcome(&mut self, is_lost: bool, sent_at: Instant<Local>, now: Instant<Local>) {
        let (State::Testing(trial) | State::Open(trial)) = &mut self.state else {
            self.look.packets.add(is_lost);
            return;
        };
        if sent_at < trial.began + SETTLES {
            return;
        }
        trial.packets += 1;
        trial.said += if is_lost { trial.lost } else { trial.arrived };
        let trial = *trial;
        match self.state {
            State::Open(_) if trial.said < DECIDES => {
                if let State::Open(trial) = &mut self.state {
                    trial.said = trial.said.max(-CERTAIN);
                }
                if now >= self.retry_at {
                    self.close(now);
                    self.retry_at = now;
                }
            }
            State::Testing(_) if trial.said <= -DECIDES => {
                (self.state, self.is_news) = (State::Open(trial), true);
                (self.retry_at, self.retry_after) = (now + RETRY_MOST, RETRY_FIRST);
            }
            State::Testing(_) if trial.said < DECIDES && trial.packets < LOOK => {}
            _ => {
                self.close(now);
                self.wait(now);
            }
        }
    }

    fn close(&mut self, now: Instant<Local>) {
        (self.state, self.look, self.since) = (State::Closed, Look::default(), now);
    }

    /// Nothing is tested before some time has passed, four times as much each time.
    fn wait(&mut self, now: Instant<Local>) {
        self.retry_at = now + self.retry_after;
        self.retry_after = (self.retry_after * 4).min(RETRY_MOST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten minutes at 200 Hz on a path where so many of a thousand samples fail with repairs, and packets are lost with repairs and without; the share of time in
    /// which repairs may leave.
    fn allowed(failing: u32, loss: u32, without: u32) -> f64 {
        allowed_with(0, failing, loss, without)
    }

    /// The same, and nothing arrives of so many in a row once a minute.
    fn allowed_with(outage: u32, failing: u32, loss: u32, without: u32) -> f64 {
        let at = |n: u32| Instant::from_ns(i64::from(n) * 5_000_000);
        let mut breaker = RepairBreaker::new(at(0));
        let mut allowed = 0;
        // Evenly spread, as the fraction of a golden ratio.
        let is = |n: u32, of_thousand: u32| (n.wrapping_mul(2_654_435_769) >> 8) % 1_000 < of_thousand;
        for n in 0..120_000 {
            let may_repair = breaker.allows();
            allowed += u32::from(may_repair);
            let is_down = n % 12_000 < outage;
            let is_lost = is_down || is(n, if may_repair { loss } else { without });
            breaker.handle_outcome(is_lost, at(n), at(n));
            let has_failed = is_down || is(n, failing);
            breaker.settle((1, u32::from(has_failed), u32::from(is_lost)), at(n), 0.4, at(n));
        }
        f64::from(allowed) / 120_000.0
    }

    #[test]
    fn where_as_much_arrives_without_them_repairs_end() {
        // A line of 1.3 times the offer, a policer of nine tenths and one of half.
        for (failing, loss, without) in [(6, 200, 0), (6, 50, 0), (100, 350, 70), (370, 500, 360)] {
            let share = allowed(failing, loss, without);
            assert!(share < 0.2, "{failing}, {loss}, {without}: {share}");
        }
    }

    #[test]
    fn on_a_radio_a_test_costs_a_few_packets() {
        for (failing, loss) in [(5, 50), (20, 200), (100, 400)] {
            let share = allowed(failing, loss, loss);
            assert!(share > 0.99, "{failing}, {loss}: {share}");
        }
    }

    #[test]
    fn an_outage_says_nothing_of_repairs() {
        // From a fifth of a second on, on a radio that keeps its target but for them, and on one that does not.
        for (outage, failing) in [(40, 1), (100, 1), (200, 1), (400, 1), (800, 1), (200, 5)] {
            let share = allowed_with(outage, failing, 50, 50);
            assert!(share > 0.99, "{outage}, {failing}: {share}");
        }
        // And where they are what is lost they end all the same.
        for (failing, loss, without) in [(6, 200, 0), (100, 350, 70)] {
            let share = allowed_with(200, failing, loss, without);
            assert!(share < 0.3, "{failing}, {loss}, {without}: {share}");
        }
    }

    #[test]
    fn a_stream_that_keeps_its_target_is_not_tested() {
        assert_eq!(allowed(1, 200, 0), 1.0);
    }
}
