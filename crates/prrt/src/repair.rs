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
//! computed from the burst model and from the last datagram whose fate is known, and datagrams are added, spread
//! over the time that is left, until the risk is acceptable. The last phase is seldom reached, so it may
//! spend freely; acceptable is the loss target divided by the share of blocks that reach it. With a deadline
//! shorter than a round trip every block does, and the same rule is proactive parity.
//!
//! Derivation: `docs/design/prrt.md`.

use noctule_timebase::{Instant, Span};

use crate::gilbert::Gilbert;
use crate::stream::Local;

/// Part of the loss target that the last phase may use; the rest is for what the model does not know.
const SHARE_OF_TARGET: f64 = 0.5;

/// What is known of a block and of its chances.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prospect<'a> {
    pub(crate) now: Instant<Local>,
    /// After this nothing arrives in time.
    pub(crate) latest: Instant<Local>,
    /// From sending to knowing.
    pub(crate) round: Span,
    /// Until the next datagram, and the next feedback.
    pub(crate) interval: Span,
    /// Symbols that the receiver lacks, as far as is known.
    pub(crate) needed: usize,
    /// Datagrams of unknown fate, in rising order.
    pub(crate) pending: &'a [u64],
    /// When the last of them was sent.
    pub(crate) last_sent: Instant<Local>,
    /// The newest datagram of known fate, and whether it was lost.
    pub(crate) known: (u64, bool),
    pub(crate) channel: Gilbert,
    /// Risk that may be left.
    pub(crate) acceptable: f64,
}

/// What to do for a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// One more datagram, now; then ask again.
    Send,
    /// Nothing before this, unless something is heard.
    Wait(Instant<Local>),
    /// Nothing any more.
    Rest,
}

/// Risk that a block may be left with, if `last_phase_share` of blocks come to that.
pub(crate) fn acceptable(loss_target: f64, last_phase_share: f64) -> f64 {
    (loss_target * SHARE_OF_TARGET / last_phase_share.max(1e-9)).min(1.0)
}

impl Prospect<'_> {
    /// What to do, and whether that was decided without hope of news: in the last phase.
    pub(crate) fn step(&self) -> (Step, bool) {
        if self.needed == 0 || self.now > self.latest {
            return (Step::Rest, false);
        }
        if self.needed > self.pending.len() {
            return (self.replace(), false);
        }
        let answer = self.last_sent + self.round;
        if answer <= self.latest {
            // Feedback is lost, too: what the next one says is waited for, if that is not too late.
            let heard = if self.now < answer { answer } else { self.now + self.interval };
            if heard <= self.latest {
                return (Step::Wait(heard), false);
            }
        }
        (self.insure(), true)
    }

    /// Something is known to be lacking.
    fn replace(&self) -> Step {
        let next_news = self.now + self.interval;
        let in_burst = self.known.1;
        if in_burst && next_news + self.round <= self.latest {
            return Step::Wait(next_news);
        }
        Step::Send
    }

    /// Nothing more will be known in time.
    fn insure(&self) -> Step {
        let risk = self.channel.shortfall(self.pending, self.needed, self.known);
        if risk <= self.acceptable {
            return if self.now < self.latest { Step::Wait(self.latest) } else { Step::Rest };
        }
        let spacing = self.interval.min((self.latest - self.now) / 2);
        if self.now < self.last_sent + spacing {
            return Step::Wait(self.last_sent + spacing);
        }
        Step::Send
    }
}
