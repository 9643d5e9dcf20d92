//! The repair rule: whether one more datagram (retransmission or repair symbol) is worth sending for a block, and when.
//!
//! # Problem
//!
//! Redundancy that is sent before a loss is known costs as much as what it protects; redundancy that is sent
//! after it is too late if the deadline is near, and likely to be lost in the same burst if it is not.
//!
//! # Approach
//!
//! As long as feedback on every datagram sent can still come in time for a repair, nothing is sent but what is
//! known to be lacking. When it cannot, the *last phase* begins: the probability that the block fails is
//! computed from the burst model, from the last datagram whose fate is known, and from the missing feedback on those
//! that should have been acknowledged. Datagrams are added, spread over the time that is left, as long as
//! each takes off more of that risk than its [price](Price). The last phase is seldom reached, so it may
//! spend freely; with a deadline shorter than a round trip every block begins with it, and the same rule is
//! proactive parity.
//!
//! Where bursts last for a time, however many datagrams are sent meanwhile, copies close together share their fate: then they are
//! spread over all that is left of the deadline as soon as one is lost or its acknowledgement overdue.
//!
//! Derivation: `docs/design/prrt.md`.

use noctule_timebase::{Instant, Span};

use crate::gilbert::{AllLost, Departure, Shortfall, Unknown};
use crate::path::{Path, Pending};
use crate::sample_interval::grace;
use crate::stream::Local;

/// Feedback is missing when it comes so much later than expected, in parts of the interval.
const LATENESS_PARTS: i64 = 4;

/// Copies against bursts in time are no closer together than this part of the channel's memory: a burst that is on at the
/// one is still on at the other seven times in ten.
const SPREAD_PARTS: i64 = 3;

/// With a greater probability of an acknowledgement before the last moment copies wait for it.
const HOPE: f64 = 0.25;

/// Datagrams that are weighed together at most.
const MORE_LIMIT: usize = 64;

/// State of a block and its path: the input of the repair rule.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prospect<'a> {
    pub(crate) now: Instant<Local>,
    /// A datagram sent by `latest` arrives in time, as far as can be relied on; after `hopeless`, none does.
    pub(crate) latest: Instant<Local>,
    pub(crate) hopeless: Instant<Local>,
    pub(crate) path: &'a Path,
    /// Until the next datagram, and the next feedback.
    pub(crate) interval: Span,
    /// Symbols that the receiver lacks, as far as is known.
    pub(crate) needed: usize,
    /// Datagrams of unknown fate, in rising order.
    pub(crate) pending: &'a [Pending],
    /// When a datagram was last sent for it.
    pub(crate) last_sent: Instant<Local>,
    /// Something was retransmitted for it.
    pub(crate) was_lost: bool,
    pub(crate) stake: Stake,
    /// Samples that a datagram must save on average to be sent.
    pub(crate) price: f64,
}

/// The samples that are lost with a block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Stake {
    /// A sample.
    Sample,
    /// A sample with every data symbol: so many that are known to be lost, and of the pending datagrams this share.
    Symbols { lost: usize, pending: f64 },
}

/// The next step for a block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Step {
    /// One more datagram, now; then ask again. Without it so many samples are lost on average.
    Send(f64),
    /// Nothing before this, unless feedback comes.
    Wait(Instant<Local>),
    /// The same, and so many samples are lost on average if nothing more is done.
    Risk(f64, Instant<Local>),
    /// Nothing any more.
    Rest,
}

impl Prospect<'_> {
    pub(crate) fn step(&self) -> Step {
        if self.needed == 0 || self.now > self.hopeless {
            return Step::Rest;
        }
        let answer =
            self.last_sent + self.path.round + self.pending.last().map_or(Span::ZERO, |last| last.ack_delay);
        if self.needed > self.pending.len() {
            let is_answered_in_time = self.now + self.path.round <= self.latest;
            return match self.path.channel.memory() {
                Some(memory) if self.needed == 1 && !is_answered_in_time => self.spread(memory),
                _ => Step::Send(self.samples(Shortfall { probability: 1.0, lost: 0.0 })),
            };
        }
        // Feedback is lost, too: what the next one says is waited for, if that is not too late.
        let heard = if self.now < answer { answer } else { self.now + self.interval };
        match self.path.channel.memory() {
            Some(memory) if self.needed == 1 => {
                let is_in_doubt = self.was_lost || self.now >= answer;
                if heard <= self.latest && !is_in_doubt { Step::Wait(heard) } else { self.spread(memory) }
            }
            _ if heard <= self.latest => Step::Wait(heard),
            _ => self.insure(),
        }
    }

    /// Bursts last for a time: a copy is the better the more time lies between it and those before, and the one at the last
    /// moment is the best. So one more is sent now only if it is worth its price beside that one.
    fn spread(&self, memory: Span) -> Step {
        let pause = (memory / SPREAD_PARTS).max(self.path.lateness);
        let next = self.last_sent + pause;
        let is_last = self.now + self.path.lateness >= self.latest;
        if is_last && self.pending.is_empty() {
            return Step::Send(1.0);
        }
        if self.now < next && !is_last {
            return Step::Wait(next.min(self.latest));
        }
        let mut without = AllLost::new(self.path.known);
        self.unknowns().for_each(|unknown| without.add(&self.path.channel, unknown));
        let risk = without.probability();
        let mut with = without;
        with.add(&self.path.channel, self.copy_at(self.now));
        if !is_last {
            with.add(&self.path.channel, self.copy_at(self.latest));
            without.add(&self.path.channel, self.copy_at(self.latest));
        }
        if without.probability() - with.probability() > self.price {
            Step::Send(risk)
        } else if is_last {
            Step::Risk(risk, self.latest)
        } else {
            Step::Wait((self.now + pause).min(self.latest))
        }
    }

    fn copy_at(&self, sent_at: Instant<Local>) -> Unknown {
        Unknown { departure: Departure { packet: self.path.next, sent_at }, silence: 1.0 }
    }

    /// Nothing more will be known in time.
    fn insure(&self) -> Step {
        // Copies in packets are as good at the last moment as before it, and by then they may not be needed.
        if self.now + self.path.lateness < self.latest && self.hope() > HOPE {
            return Step::Wait(self.latest - self.path.lateness);
        }
        let spacing = self.interval.min((self.latest - self.now) / 2);
        let spaced = self.last_sent + spacing;
        // A thread that wakes late must not find that it is too late for the rest.
        if self.now < spaced && spacing >= self.path.lateness {
            return Step::Wait(spaced);
        }
        let (risk, gain) = self.risk();
        if gain > self.price { Step::Send(risk) } else { Step::Risk(risk, self.latest) }
    }

    /// Datagrams whose fate is unknown, and what the silence about them tells.
    fn unknowns(&self) -> impl Iterator<Item = Unknown> {
        let Path { channel, round, .. } = *self.path;
        // Feedback that would have named a datagram is as often lost as one after one that came, or did not.
        let is_silent = self.now > self.path.heard_at + self.interval + self.interval / LATENESS_PARTS;
        let feedback_lost = channel.lost_after(1, self.interval, is_silent);
        let overdue = self.now - round;
        // By then the receiver has missed what it expected: silence means lost feedback, whatever became of the datagram.
        let missed = overdue - grace(self.interval) - (round - self.path.floor).max(Span::ZERO);
        self.pending.iter().map(move |pending| {
            let departure = Departure { packet: pending.packet, sent_at: pending.sent_at };
            let is_missed = pending.is_expected && pending.sent_at <= missed;
            let answered = if is_missed { 0.0 } else { self.answered_by(pending, self.now) };
            Unknown { departure, silence: 1.0 - answered * (1.0 - feedback_lost) }
        })
    }

    /// Probability that the acknowledgement of a datagram that arrived would be here at this time, were it not lost.
    fn answered_by(&self, pending: &Pending, at: Instant<Local>) -> f64 {
        self.path.rounds.share_within(at - pending.sent_at - self.path.lateness - pending.ack_delay)
    }

    /// Probability that the acknowledgement of the datagram sent last comes before the last moment, if it arrived and none is lost.
    fn hope(&self) -> f64 {
        let Some(last) = self.pending.last() else { return 0.0 };
        let [now, then] = [self.now, self.latest].map(|at| self.answered_by(last, at));
        if now < 1.0 { (then - now) / (1.0 - now) } else { 0.0 }
    }

    /// Samples lost on average as things stand, and how many of them each of some more datagrams would save. One
    /// alone may save nothing where several lack: the number is taken that is worth most.
    fn risk(&self) -> (f64, f64) {
        let Path { channel, known, next, .. } = *self.path;
        let mut sent: Vec<Unknown> = Vec::with_capacity(self.pending.len() + MORE_LIMIT);
        sent.extend(self.unknowns());
        let risk = self.samples(channel.shortfall(&sent, self.needed, known));
        // Of a block of one the first is worth most.
        let limit = if self.needed == 1 { 1 } else { MORE_LIMIT };
        let (mut more, mut gain) = (1, 0.0_f64);
        while more <= limit && gain <= self.price && risk > self.price * more as f64 {
            while sent.len() < self.pending.len() + more {
                let packet = next + (sent.len() - self.pending.len()) as u64;
                let departure = Departure { packet, sent_at: self.now };
                sent.push(Unknown { departure, silence: 1.0 });
            }
            gain =
                gain.max((risk - self.samples(channel.shortfall(&sent, self.needed, known))) / more as f64);
            more += more.div_ceil(3);
        }
        (risk, gain)
    }

    fn samples(&self, shortfall: Shortfall) -> f64 {
        match self.stake {
            Stake::Sample => shortfall.probability,
            Stake::Symbols { lost, pending } => {
                shortfall.probability * lost as f64 + shortfall.lost * pending
            }
        }
    }
}

/// Price of a datagram in the last phase: the risk that it must remove, so that on the whole the loss target is kept at least cost.
///
/// One price for all blocks spends where it helps most. It falls while more risk is left than the target allows
/// and rises while less is: the *debt* of the stream, in samples. Streams that fail more often than their risks predicted
/// pay for it with every risk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Price {
    debt: f64,
    /// Failures as foreseen and as they were, fading.
    foreseen: f64,
    failed: f64,
}

/// Debt that changes the price by a factor of e.
const DEBT_SCALE: f64 = 0.1;
/// Price without debt, in loss targets.
const PRICE_UNINDEBTED: f64 = 50.0;
/// Price of a stream of which nothing is known, and the lowest, in loss targets: a stream whose every block is left to chance
/// saves less than its target with each datagram beyond.
const PRICE_INITIAL: f64 = 2.0;
const PRICE_LEAST: f64 = 1.0 / 60.0;
/// The lowest where outages alone fail more than the target allows.
const PRICE_LEAST_OUTAGE: f64 = 1.0;
/// The highest, in loss targets; one sample is more than a datagram can save.
const PRICE_MOST: f64 = 10_000.0;
/// Part of the loss target that is aimed at; in blocks of several samples, which are lost together, chance weighs more.
const SHARE_OF_TARGET: f64 = 0.5;
const SHARE_OF_TARGET_BLOCKS: f64 = 0.35;
/// Failures with which the model's word is weighted against experience, and how slowly that fades.
const TRUST_FAILURES: f64 = 1.0;
const TRUST_FADES: f64 = 1.0 / 1_000_000.0;
/// Beyond this factor experience is not trusted: what fails so much more often than foreseen has a cause that copies do not cure.
const EXPERIENCE_MOST: f64 = 8.0;

impl Price {
    pub(crate) fn new() -> Price {
        Price { debt: debt_at(PRICE_INITIAL), foreseen: 0.0, failed: 0.0 }
    }

    pub(crate) fn now(&self, loss_target: f64) -> f64 {
        (PRICE_UNINDEBTED * loss_target * (-self.debt / DEBT_SCALE).exp()).min(1.0)
    }

    /// A block is over that was left with `risk`, of which `failed` came true, where `aim` was aimed at and `outage` cannot be
    /// helped: all in samples. Gives the risk as experience has it.
    pub(crate) fn settle(&mut self, risk: f64, failed: f64, aim: f64, outage: f64) -> f64 {
        self.foreseen += risk - self.foreseen * TRUST_FADES;
        self.failed += failed - self.failed * TRUST_FADES;
        let experience = (self.failed + TRUST_FAILURES) / (self.foreseen + TRUST_FAILURES);
        let experience = experience.min(EXPERIENCE_MOST);
        // Failures of outages come in lumps as large as themselves; and nothing cheap helps against them.
        let (scale, least) =
            if outage > aim { (aim / outage, PRICE_LEAST_OUTAGE) } else { (1.0, PRICE_LEAST) };
        let debt = self.debt + (risk * experience - aim.max(outage)) * scale;
        self.debt = debt.clamp(debt_at(PRICE_MOST), debt_at(least));
        risk * experience
    }
}

/// Part of the loss target that blocks of so many samples aim at.
pub(crate) fn share_of_target(samples: u32) -> f64 {
    if samples > 1 { SHARE_OF_TARGET_BLOCKS } else { SHARE_OF_TARGET }
}

/// The debt with which the price is so many loss targets.
fn debt_at(price: f64) -> f64 {
    (PRICE_UNINDEBTED / price).ln() * DEBT_SCALE
}

#[cfg(test)]
mod tests;
