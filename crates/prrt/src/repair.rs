//! Whether one more datagram is worth sending for a block, and when.
//!
//! # Problem
//!
//! Redundancy that is sent before a loss is known costs as much as what it protects; redundancy that is sent
//! after it is too late if the deadline is near, and likely to be lost in the same burst if it is not.
//!
//! # Approach
//!
//! As long as the fate of everything sent can still be heard of in time to act on it, nothing is sent but what is
//! known to be lacking. When it cannot, the *last phase* begins: the probability that the block fails is
//! computed from the burst model, from the last datagram whose fate is known, and from the silence about those
//! that should have been heard of. Datagrams are added, spread over the time that is left, as long as
//! each takes off more of that risk than its [price](Price). The last phase is seldom reached, so it may
//! spend freely; with a deadline shorter than a round trip every block begins with it, and the same rule is
//! proactive parity.
//!
//! Derivation: `docs/design/prrt.md`.

use noctule_timebase::{Instant, Span};

use crate::block::{Path, Pending};
use crate::stream::Local;

/// Feedback is missing when it comes so much later than expected, in parts of the interval.
const LATENESS_PARTS: i64 = 4;

/// What is known of a block and of its chances.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prospect<'a> {
    pub(crate) now: Instant<Local>,
    /// After this nothing arrives in time.
    pub(crate) latest: Instant<Local>,
    pub(crate) path: &'a Path,
    /// Until the next datagram, and the next feedback.
    pub(crate) interval: Span,
    /// Symbols that the receiver lacks, as far as is known.
    pub(crate) needed: usize,
    /// Datagrams of unknown fate, in rising order.
    pub(crate) pending: &'a [Pending],
    /// When a datagram was last sent for it.
    pub(crate) last_sent: Instant<Local>,
    /// Risk that a datagram must take off to be sent.
    pub(crate) price: f64,
}

/// What to do for a block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Step {
    /// One more datagram, now; then ask again.
    Send,
    /// Nothing before this, unless something is heard.
    Wait(Instant<Local>),
    /// The same, and the block fails with this probability if nothing more is done.
    Risk(f64, Instant<Local>),
    /// Nothing any more.
    Rest,
}

impl Prospect<'_> {
    pub(crate) fn step(&self) -> Step {
        if self.needed == 0 || self.now > self.latest {
            return Step::Rest;
        }
        if self.needed > self.pending.len() {
            return Step::Send;
        }
        let answer = self.last_sent + self.path.round;
        // Feedback is lost, too: what the next one says is waited for, if that is not too late.
        let heard = if self.now < answer { answer } else { self.now + self.interval };
        if heard <= self.latest { Step::Wait(heard) } else { self.insure() }
    }

    /// Nothing more will be known in time.
    fn insure(&self) -> Step {
        let spaced = self.last_sent + self.interval.min((self.latest - self.now) / 2);
        if self.now < spaced {
            return Step::Wait(spaced);
        }
        let (risk, gain) = self.risk();
        if gain > self.price { Step::Send } else { Step::Risk(risk, self.latest) }
    }

    /// Probability that too few of the pending datagrams arrive, and by how much one more would lower it.
    fn risk(&self) -> (f64, f64) {
        let Path { channel, known, next, .. } = *self.path;
        // Feedback that would have named a datagram is as often lost as one after one that came, or did not.
        let is_silent = self.now > self.path.heard_at + self.interval + self.interval / LATENESS_PARTS;
        let feedback_lost = channel.lost_after(1, is_silent);
        let overdue = self.now - self.path.round;
        let mut sent: Vec<(u64, f64)> = Vec::with_capacity(self.pending.len() + 1);
        sent.extend(
            self.pending.iter().map(|pending| {
                (pending.packet, if pending.sent_at <= overdue { feedback_lost } else { 1.0 })
            }),
        );
        let risk = channel.shortfall(&sent, self.needed, known);
        sent.push((next, 1.0));
        (risk, risk - channel.shortfall(&sent, self.needed, known))
    }
}

/// What a datagram in the last phase must be worth, so that on the whole the loss target is kept at least cost.
///
/// One price for all blocks spends where it helps most. It falls while more risk is left than the target allows
/// and rises while less is: the *debt* of the stream. Blocks that fail more often than their risks said
/// count for more.
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
const PRICE_INITIAL: f64 = 50.0;
/// Part of the loss target that is aimed at.
const SHARE_OF_TARGET: f64 = 0.7;
/// Failures with which the model's word is weighted against experience, and how slowly that fades.
const TRUST_FAILURES: f64 = 1.0;
const TRUST_FADES: f64 = 1.0 / 1_000_000.0;

impl Price {
    pub(crate) fn new() -> Price {
        Price { debt: 0.0, foreseen: 0.0, failed: 0.0 }
    }

    pub(crate) fn now(&self, loss_target: f64) -> f64 {
        (PRICE_INITIAL * loss_target * (-self.debt / DEBT_SCALE).exp()).min(0.5)
    }

    /// A block is over that was left with `risk`, and failed or did not.
    pub(crate) fn settle(&mut self, risk: f64, failed: bool, loss_target: f64) {
        self.foreseen += risk - self.foreseen * TRUST_FADES;
        self.failed += f64::from(u8::from(failed)) - self.failed * TRUST_FADES;
        let experience = (self.failed + TRUST_FAILURES) / (self.foreseen + TRUST_FAILURES);
        let left = risk * experience - loss_target * SHARE_OF_TARGET;
        self.debt = (self.debt + left).clamp(-DEBT_SCALE * 4.0, DEBT_SCALE * 12.0);
    }
}

#[cfg(test)]
mod tests;
