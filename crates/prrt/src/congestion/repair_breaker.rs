//! A circuit breaker for repairs (RFC 8083): where more is sent and no more arrives, repairs are what is lost.
//!
//! A policer loses without a queue, and so does a line that was never seen empty. Losses alone do not tell it from a radio
//! that loses much. So when much is lost and repairs are a good part of what leaves, less of them is sent for
//! a while: on a radio less arrives, at a policer as much as before. Samples themselves are never held back here.

use noctule_timebase::{Instant, Span};

use super::epoch::{Epoch, NOTHING, RETRY_FIRST, RETRY_MOST, Total};
use crate::stream::Local;

/// This part of so many packets was lost: below, three copies of a sample are as good as the target of most streams.
const LOSS: f64 = 0.45;
const PACKETS: u32 = 512;
/// What a test sends of what was sent before: only if the samples need less does it begin.
const TEST: f64 = 0.7;
/// Packets of a test. It says something if less than this part was sent of what was before; repairs are futile if the arrivals fell by
/// less than a third of that.
const TEST_PACKETS: u32 = 256;
const CLEARLY_LESS: f64 = 0.85;
/// Tests in a row that must agree: one may be chance where losses come in long bursts.
const TESTS: u32 = 2;
/// What may leave where repairs are futile, as a part of what is offered.
const FUTILE: f64 = 1.1;

/// Time over which the allowance for repairs accumulates (token bucket).
const SAVED: Span = Span::from_ms(500);

/// How many repairs may leave on one path.
#[derive(Debug)]
pub(super) struct RepairBreaker {
    state: State,
    /// What may leave, as a part of what is offered.
    share: Option<f64>,
    /// Bytes that may leave now, samples and repairs together.
    allowance_bytes: f64,
    retry_at: Instant<Local>,
    retry_after: Span,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Closed(Total),
    Testing { before: Total, total: Total, tests: u32 },
    Open,
}

impl RepairBreaker {
    pub(super) fn new(now: Instant<Local>) -> RepairBreaker {
        RepairBreaker {
            state: State::Closed(NOTHING),
            share: None,
            allowance_bytes: 0.0,
            retry_at: now,
            retry_after: RETRY_FIRST,
        }
    }

    /// Whether a repair may leave now.
    pub(super) fn allows(&self) -> bool {
        self.share.is_none() || self.allowance_bytes > 0.0
    }

    /// The application has so many bytes to send.
    pub(super) fn offer(&mut self, bytes: usize, offered_bytes_per_s: f64) {
        let Some(share) = self.share else { return };
        let saved_max = offered_bytes_per_s * (share - 1.0).max(0.0) * SAVED.as_s_f64();
        self.allowance_bytes = self.allowance_bytes.min(saved_max) + bytes as f64 * share;
    }

    /// A datagram, repair or not, leaves.
    pub(super) fn sent(&mut self, bytes: usize) {
        self.allowance_bytes -= bytes as f64;
    }

    /// An epoch is over, in which so many bytes a second were offered.
    pub(super) fn handle_epoch(&mut self, epoch: &Epoch, offered_bytes_per_s: f64, now: Instant<Local>) {
        match &mut self.state {
            State::Closed(total) => {
                total.add(epoch);
                let total = *total;
                if total.packets() < PACKETS {
                    return;
                }
                self.state = State::Closed(NOTHING);
                let sent = total.bytes_per_s(total.sent_bytes);
                let is_lossy = f64::from(total.lost) > LOSS * f64::from(total.packets());
                if is_lossy && offered_bytes_per_s < sent * TEST && now >= self.retry_at {
                    self.state = State::Testing { before: total, total: NOTHING, tests: 0 };
                    self.limit(Some(sent * TEST / offered_bytes_per_s.max(1.0)));
                }
            }
            State::Testing { before, total, tests } => {
                total.add(epoch);
                if total.packets() < TEST_PACKETS {
                    return;
                }
                let ratio = |of: fn(&Total) -> usize| {
                    total.bytes_per_s(of(total)) / before.bytes_per_s(of(before)).max(1.0)
                };
                let (sent, arrived) = (ratio(|total| total.sent_bytes), ratio(|total| total.arrived_bytes));
                let is_futile = sent < CLEARLY_LESS && arrived >= 1.0 - (1.0 - sent) / 3.0;
                (*tests, *total) = (*tests + 1, NOTHING);
                if is_futile && *tests < TESTS {
                    return;
                }
                if is_futile {
                    self.state = State::Open;
                    self.limit(Some(FUTILE));
                } else {
                    self.state = State::Closed(NOTHING);
                    self.limit(None);
                }
                self.retry_at = now + self.retry_after;
                self.retry_after = (self.retry_after * 2).min(RETRY_MOST);
            }
            State::Open if now >= self.retry_at => {
                self.state = State::Closed(NOTHING);
                self.limit(None);
                self.retry_at = now;
            }
            State::Open => {}
        }
    }

    fn limit(&mut self, share: Option<f64>) {
        (self.share, self.allowance_bytes) = (share, 0.0);
    }
}
