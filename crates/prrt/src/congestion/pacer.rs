//! Pacing: datagrams leave at a rate (RFC 9002, section 7.7).

use noctule_timebase::{Instant, Span};

use crate::stream::Local;

/// Allowance of the token bucket, in time: a thread that wakes late catches up.
const BURST: Span = Span::from_ms(2);

/// Token bucket of one path. One datagram of any length may leave while the bucket is not in debt.
#[derive(Debug)]
pub(crate) struct Pacer {
    /// Below 0 after a datagram that was longer.
    bytes: f64,
    counted_at: Instant<Local>,
}

impl Pacer {
    pub(crate) fn new(now: Instant<Local>) -> Pacer {
        Pacer { bytes: 0.0, counted_at: now }
    }

    /// Counts what may leave by now; without a rate nothing is owed.
    pub(crate) fn count(&mut self, bytes_per_s: Option<f64>, now: Instant<Local>) {
        let elapsed = (now - self.counted_at).as_s_f64().max(0.0);
        self.counted_at = self.counted_at.max(now);
        self.bytes = match bytes_per_s {
            Some(rate) => (self.bytes + rate * elapsed).min(rate * BURST.as_s_f64()),
            None => 0.0,
        };
    }

    /// A datagram has left.
    pub(crate) fn spend(&mut self, bytes: usize) {
        self.bytes -= bytes as f64;
    }

    /// When the next one may leave at that rate; in the past if at once.
    pub(crate) fn ready_at(&self, bytes_per_s: Option<f64>) -> Instant<Local> {
        match bytes_per_s {
            Some(rate) if self.bytes < 0.0 => {
                self.counted_at + Span::from_ns((-self.bytes / rate * 1e9).ceil() as i64)
            }
            _ => Instant::MIN,
        }
    }
}
