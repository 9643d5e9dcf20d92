//! Feasibility of a deadline and a loss target on this path, and the block size that serves them.
//!
//! A closed form ([`reach`](crate::residual_loss)) gives what is feasible on a path that is like the model of it. Paths are not, so the repair
//! rule's own result counts: the risk that it had to leave its blocks with. Where that stays beyond the target the target is infeasible; the closed
//! form gives feasible alternatives, and an infeasible result of it makes the verdict quicker. A target that cannot be met is still pursued: what
//! arrives is worth its price.

use noctule_timebase::{Instant, Span};

use crate::delay_table::Quantiles;
use crate::gilbert::{Gilbert, LossModel};
use crate::residual_loss::{Feasible, Infeasible, Question, ResidualLoss};
use crate::sent_packets::SentPackets;
use crate::stream::{Bound, Local};

/// Between two looks.
const LOOK_AGAIN: Span = Span::from_s(1);
/// Observation of the path before the first verdict on it.
const LOOK_FIRST: Span = Span::from_ms(200);
/// Risk left, in parts of the target, that is too much if the model says so, too, and if not.
const BEYOND: [f64; 2] = [1.1, 2.0];
/// Limit of the sum of risk beyond that (Page's CUSUM, Biometrika 1954), in samples lost on average: a verdict needs so many, and as many
/// less to be withdrawn. Of blocks of several samples, which are lost together, as many times more.
const EVIDENCE: f64 = 2.0;
/// Weight of earlier looks at the next one.
const KEPT: f64 = 0.8;
/// Risk left, in parts of the target, that misses it by far, as an outage does; after so many looks in a row without it the sum begins anew: a verdict
/// on an outage does not outlast it by minutes.
const FAR: f64 = 30.0;
const LOOKS_SINCE: u32 = 8;

/// The feasibility of a stream's loss target by its deadline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FeasibilityChange {
    /// It cannot be fulfilled as the path is, with what could be.
    Infeasible(Infeasible),
    /// It can be again.
    Feasible,
}

/// Looks at a stream now and then.
#[derive(Debug)]
pub(crate) struct Feasibility {
    look_at: Instant<Local>,
    /// The latest verdict is that it is infeasible.
    is_reported: bool,
    /// A change that the application was not notified of yet.
    change: Option<FeasibilityChange>,
    block: u8,
    /// Since the last look: samples, and those of them for which the path had no room before their deadline.
    offered: u32,
    starved: u32,
    now: Left,
    average: Left,
    /// Risk left beyond what may be, summed up.
    excess: f64,
    /// Looks since the last one that missed by far; `None` if there was none since the sum began.
    since_far: Option<u32>,
}

/// Samples lost on average as blocks were left, and those that the target allows.
#[derive(Clone, Copy, Debug, Default)]
struct Left {
    risk: f64,
    allowed: f64,
}

impl Left {
    /// In parts of what is allowed.
    fn share(&self) -> f64 {
        if self.allowed > 0.0 { self.risk / self.allowed } else { 0.0 }
    }
}

impl Feasibility {
    pub(crate) fn new(now: Instant<Local>) -> Feasibility {
        Feasibility {
            look_at: now + LOOK_FIRST,
            is_reported: false,
            change: None,
            block: 1,
            offered: 0,
            starved: 0,
            now: Left::default(),
            average: Left::default(),
            excess: 0.0,
            since_far: None,
        }
    }

    /// Samples of a block, if they are of one datagram each.
    pub(crate) fn block(&self) -> u8 {
        self.block
    }

    /// A sample is to be sent.
    pub(crate) fn count_offered(&mut self) {
        self.offered = self.offered.saturating_add(1);
    }

    /// So many samples were never sent.
    pub(crate) fn count_starved(&mut self, samples: u32) {
        self.starved = self.starved.saturating_add(samples);
    }

    /// A block is over that was left with `risk` and entitled to `allowed`, in samples.
    pub(crate) fn settle(&mut self, risk: f64, allowed: f64) {
        self.now.risk += risk;
        self.now.allowed += allowed;
    }

    /// Looks, if it is time to. Block size and effort follow from it, so it must not depend on whether an application polls for changes.
    pub(crate) fn look(
        &mut self,
        bound: &Bound,
        interval: Span,
        sent_packets: &mut SentPackets,
        now: Instant<Local>,
    ) {
        if now < self.look_at {
            return;
        }
        let Some(question) = question(bound, interval, sent_packets) else { return };
        self.look_at = now + LOOK_AGAIN;
        let mut reach = question.answer();
        // A queue passes, and parity would make it longer; and where repairs are held back there is none to share.
        let floor = sent_packets.floor();
        let is_answered = floor + floor / 2 < bound.deadline;
        if is_answered || sent_packets.pace().is_queued(question.round) || !sent_packets.allows_repair(now) {
            reach.block = 1;
        }
        if let Some(change) = self.judge(reach, bound.loss_target) {
            // Changes alternate: one that was not polled yet and its opposite are none.
            self.change = if self.change.is_some() { None } else { Some(change) };
        }
    }

    /// A change of the verdict, once.
    pub(crate) fn poll(&mut self) -> Option<FeasibilityChange> {
        self.change.take()
    }

    fn judge(&mut self, reach: ResidualLoss, target: f64) -> Option<FeasibilityChange> {
        let ResidualLoss { block, verdict, .. } = reach;
        self.block = block;
        let starved = f64::from(self.starved) / f64::from(self.offered.max(1));
        (self.offered, self.starved) = (0, 0);
        let is_doubted = usize::from(verdict.is_ok());
        self.weigh(BEYOND[is_doubted]);
        let left = self.average.share() * target;
        let at_once = match verdict {
            Err(why @ Infeasible::BelowDelay { .. }) => Some(why),
            _ if starved > target => Some(beyond_capacity(None, starved)),
            _ => None,
        };
        let evidence = f64::from(self.block);
        if at_once.is_some() {
            (self.since_far, self.excess) = (Some(0), EVIDENCE * evidence);
        }
        self.since_far = self.since_far.map(|looks| looks + 1);
        if self.since_far.is_some_and(|looks| looks > LOOKS_SINCE) {
            (self.since_far, self.average, self.excess) = (None, Left::default(), 0.0);
        }
        let is_infeasible = self.excess >= EVIDENCE * evidence || self.is_reported && self.excess > 0.0;
        if std::mem::replace(&mut self.is_reported, is_infeasible) == is_infeasible {
            return None;
        }
        if !is_infeasible {
            return Some(FeasibilityChange::Feasible);
        }
        Some(FeasibilityChange::Infeasible(at_once.unwrap_or(match verdict {
            Err(Infeasible::BeyondCapacity { feasible }) => {
                beyond_capacity(feasible.deadline, feasible.loss_target.unwrap_or(0.0).max(left))
            }
            _ => beyond_capacity(None, left),
        })))
    }

    /// Adds the risk left in blocks since the last look to the sums.
    fn weigh(&mut self, beyond: f64) {
        let Left { risk, allowed } = std::mem::take(&mut self.now);
        if allowed == 0.0 {
            return;
        }
        let Left { risk: before, allowed: allowed_before } = self.average;
        self.average = Left { risk: before * KEPT + risk, allowed: allowed_before * KEPT + allowed };
        let most = f64::from(self.block) * EVIDENCE;
        self.excess = (self.excess + risk - beyond * allowed).clamp(0.0, most);
        if risk > FAR * allowed {
            self.since_far = Some(0);
        }
    }
}

fn beyond_capacity(deadline: Option<Span>, loss_target: f64) -> Infeasible {
    Infeasible::BeyondCapacity { feasible: Feasible { deadline, loss_target: Some(loss_target.min(1.0)) } }
}

/// Input of the closed form; `None` before the first round trip.
fn question(bound: &Bound, interval: Span, sent_packets: &mut SentPackets) -> Option<Question> {
    let rounds = sent_packets.round_trips()?;
    let round = rounds.highest();
    let (p, mean_burst) = (sent_packets.loss().share(), sent_packets.loss().mean_burst());
    let model = match sent_packets.loss().model() {
        LossModel::BurstsInTime { p, mean } => LossModel::BurstsInTime { p, mean },
        _ => LossModel::Bursts { p, mean_burst },
    };
    Some(Question {
        deadline: bound.deadline,
        loss_target: bound.loss_target,
        interval,
        one_way: sent_packets.ways_there().as_ref().map_or(round / 2, Quantiles::highest),
        round,
        channel: Gilbert::new(&model),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At 200 Hz and 1e-4.
    const ALLOWED: f64 = 0.02;

    fn look(feasibility: &mut Feasibility, risk: f64) -> Option<FeasibilityChange> {
        feasibility.settle(risk, ALLOWED);
        feasibility.judge(ResidualLoss::infeasible(beyond_capacity(None, 1e-3)), 1e-4)
    }

    #[test]
    fn a_single_lump_of_risk_is_no_verdict() {
        let mut feasibility = Feasibility::new(Instant::from_ns(0));
        for second in 0..1_000 {
            let risk = if second % 100 == 0 { 1.5 } else { 0.0 };
            assert_eq!(look(&mut feasibility, risk), None, "second {second}");
        }
    }

    #[test]
    fn what_is_missed_by_little_is_reported_in_time_and_taken_back_when_it_is_not_any_more() {
        let mut feasibility = Feasibility::new(Instant::from_ns(0));
        let reported = (1..).find(|_| look(&mut feasibility, 1.4 * ALLOWED).is_some()).unwrap();
        assert_eq!(reported, (EVIDENCE / (1.4 - BEYOND[0]) / ALLOWED).ceil() as u32);
        // However long it lasts.
        (0..10_000).for_each(|_| assert_eq!(look(&mut feasibility, 1.4 * ALLOWED), None));
        let back = (1..).find(|_| look(&mut feasibility, 0.0).is_some()).unwrap();
        assert_eq!(back, (EVIDENCE / BEYOND[0] / ALLOWED).ceil() as u32);
    }

    #[test]
    fn what_is_missed_by_far_is_reported_at_once_and_soon_taken_back_when_it_is_over() {
        let mut feasibility = Feasibility::new(Instant::from_ns(0));
        assert!(matches!(look(&mut feasibility, 10.0), Some(FeasibilityChange::Infeasible(_))));
        (0..100).for_each(|_| assert_eq!(look(&mut feasibility, 10.0), None));
        let back = (1..).find(|_| look(&mut feasibility, 0.0).is_some()).unwrap();
        assert_eq!(back, LOOKS_SINCE);
    }
}
