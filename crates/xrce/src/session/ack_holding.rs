//! Acknowledgements that let a short answer go first.
//!
//! On a slow line the acknowledgement of a request takes as long as half of its answer, and both leave at nearly the same
//! moment. The client can do something with the answer, and waits for the acknowledgement at leisure. So a client whose
//! samples were answered at once the last time is acknowledged a little later, and what is there by then goes ahead. All
//! others are acknowledged first, as eProsima's agent does it.

use noctule_timebase::{Instant, Span};

use crate::event::Local;

/// Longest message that goes ahead of an acknowledgement, in bytes.
pub const AHEAD_BYTES_MAX: usize = 128;

/// Holding of acknowledgements while an answer to a client's sample may come.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AckHolding {
    /// The last sample was answered within the hold.
    pays: bool,
    /// When a sample came that was not answered yet.
    asked_at: Option<Instant<Local>>,
    /// Acknowledgements wait until then.
    until: Option<Instant<Local>>,
    /// One message has gone ahead.
    has_yielded: bool,
}

/// Next step for an acknowledgement that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// Send it.
    Acknowledgement,
    /// Send the other message first.
    Other,
    /// Wait for an answer.
    None,
}

impl AckHolding {
    /// A sample came on a reliable stream, which may be answered within `hold`.
    pub(super) fn handle_asked(&mut self, hold: Span, now: Instant<Local>) {
        self.asked_at = Some(now);
        self.until = (self.pays && hold > Span::ZERO).then(|| now + hold);
    }

    /// There is a sample for the client.
    pub(super) fn handle_answer(&mut self, hold: Span, now: Instant<Local>) {
        if let Some(asked) = self.asked_at.take() {
            self.pays = now - asked <= hold;
        }
    }

    /// Whose turn it is beside an acknowledgement that is due; `other_bytes`: the length of what else there is.
    pub(super) fn turn(&mut self, hold: Span, other_bytes: Option<usize>, now: Instant<Local>) -> Turn {
        let may_yield = hold > Span::ZERO && !self.has_yielded;
        match other_bytes {
            Some(bytes) if may_yield && self.pays && bytes <= AHEAD_BYTES_MAX => {
                self.has_yielded = true;
                return Turn::Other;
            }
            None if self.until.is_some_and(|until| now < until) && may_yield => return Turn::None,
            None if self.until.is_some() && self.asked_at.is_some() => self.pays = false,
            _ => {}
        }
        (self.until, self.has_yielded) = (None, false);
        Turn::Acknowledgement
    }

    /// When an acknowledgement has waited long enough.
    pub(super) fn poll_timeout(&self) -> Option<Instant<Local>> {
        self.until
    }
}
