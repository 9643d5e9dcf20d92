//! The least redundancy that meets a deadline and a loss target: blocks, rounds of extras, and their times.
//!
//! # Problem
//!
//! An extra that is sent early is often needless, one that is sent late may be lost with nothing left to
//! follow; one close to a loss falls into the same burst; parity over many messages shares extras among
//! them but must wait for the last of them. The best mixture depends on everything the path and the message
//! stream are, and changes as they do.
//!
//! # Approach
//!
//! A plan is a block size and rounds of extras, each at a fixed time after the block's first datagram and
//! for blocks of one state of knowledge ([`Trigger`]). That contains repetition (a block of one message,
//! whose extras are copies), proactive parity (a round before any feedback can have come), reactive rounds,
//! and their mixtures. [`walk`](crate::outcome::walk) gives what a schedule costs and leaves lost; the size
//! of the last round follows from its answer. [`exact`] tries every schedule of the class; [`fast`] tries
//! those shapes that are ever best on the grid of the sweep, and leaves out what cannot become better.
//!
//! Why so, formulas and references: `docs/design/prrt.md`, section "Plan".

use noctule_timebase::Span;
use thiserror::Error;

pub use crate::gilbert::LossModel;
pub use crate::outcome::Trigger;
use crate::outcome::{Round, TAIL_EXTRAS_MAX, walk};

mod search;
#[cfg(test)]
mod tests;

pub use search::{exact, fast};

/// Rounds of extras of one plan at most, those at the block's end not counted.
pub const ROUNDS_MAX: usize = 6;
/// Datagrams of one message that a plan is made for at most; larger ones are planned for as this many.
pub const DATAGRAMS_MAX: u32 = crate::erasure::DATA_SYMBOLS_MAX as u32;

/// What an application wants of a stream of messages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Demand {
    /// From the moment a message begins to be sent until it must have arrived.
    pub deadline: Span,
    /// Share of messages that may miss the deadline, 0 to 1.
    pub loss_target: f64,
    /// Time between messages.
    pub interval: Span,
    /// Datagrams of one message; a message of several is a block of its own.
    pub datagrams_per_message: u32,
    /// Extras per datagram of data that may be spent at most, on average.
    pub redundancy_max: f64,
    /// Messages come at their interval, so that the receiver reports one that is overdue although nothing
    /// newer has arrived.
    pub steady: bool,
}

impl Demand {
    pub(crate) fn datagrams(&self) -> i64 {
        self.datagrams_per_message.clamp(1, DATAGRAMS_MAX).into()
    }
}

/// What is known of the path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Path {
    /// Delay from sender to receiver.
    pub one_way: Span,
    /// Delay there and back.
    pub round_trip: Span,
    /// How much longer than `round_trip` to wait for news before it counts as lost.
    pub round_trip_jitter: Span,
    /// From sender to receiver.
    pub loss: LossModel,
    /// From receiver to sender.
    pub feedback_loss: LossModel,
    /// Time for which one datagram occupies the sender's pacing.
    pub transmit: Span,
    /// Time both ends need to notice and to answer, and a receiver's tolerance before a message is overdue.
    pub reaction: Span,
}

impl Path {
    /// From the moment a datagram has left until the sender knows what became of it.
    pub fn news_delay(&self) -> Span {
        self.round_trip + self.round_trip_jitter + self.reaction
    }

    fn clamped(&self) -> Path {
        let at_least_zero = |span: Span| span.max(Span::ZERO);
        Path {
            one_way: at_least_zero(self.one_way),
            round_trip: at_least_zero(self.round_trip),
            round_trip_jitter: at_least_zero(self.round_trip_jitter),
            transmit: at_least_zero(self.transmit),
            reaction: at_least_zero(self.reaction),
            ..*self
        }
    }
}

/// When a round is sent, and for which blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timing {
    /// After the block's first datagram began to be sent.
    pub at: Span,
    /// Which blocks it is for.
    pub trigger: Trigger,
}

/// How a stream is to be protected.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// Messages per block; with 1, extras are copies (of a message of one datagram) or its own parity.
    pub block: u8,
    /// Extras sent for every block, right after its last datagram.
    pub proactive: u8,
    /// Extras of each further round; unused ones are 0.
    pub rounds: [u8; ROUNDS_MAX],
    /// When each of `rounds` is sent, in order of time, and for which blocks.
    pub spread: [Timing; ROUNDS_MAX],
    /// Expected extras per datagram of data.
    pub redundancy: f64,
    /// Expected share of messages that miss the deadline.
    pub residual_loss: f64,
}

/// What would be possible instead; each alone suffices.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Feasible {
    /// With this deadline the loss target can be met; `None` if no deadline that was tried helps.
    pub deadline: Option<Span>,
    /// With the demanded deadline this loss target can be met; `None` below the path's delay.
    pub loss_target: Option<f64>,
}

/// No plan meets the demand.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum Infeasible {
    /// Not even a message that is not lost arrives in time.
    #[error("the deadline is shorter than the path's delay; at least {} µs are needed", .delay.ns() / 1_000)]
    BelowDelay {
        /// The shortest deadline that can be kept at all.
        delay: Span,
        /// What would be possible.
        feasible: Feasible,
    },
    /// Messages arrive in time, but too many are lost for the target, whatever is spent.
    #[error("the path loses too much, or bears too little, for this loss target at this deadline; {:.1e} is the least", .feasible.loss_target.unwrap_or(1.0))]
    BeyondCapacity {
        /// What would be possible.
        feasible: Feasible,
    },
}
