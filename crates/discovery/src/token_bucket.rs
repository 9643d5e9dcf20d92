//! A token bucket, and random delays that are the same for the same seed.

use noctule_proto_kit::SplitMix64;
use noctule_timebase::{Instant, Span};

use crate::types::Local;

/// Bytes that may be sent now, refilled at a constant rate up to a limit.
#[derive(Clone, Debug)]
pub(crate) struct TokenBucket {
    rate_bytes_per_s: i64,
    limit_bytes: i64,
    /// Scaled by a billion, so that refilling is exact.
    level: i128,
    at: Instant<Local>,
}

const SCALE: i128 = 1_000_000_000;

impl TokenBucket {
    pub(crate) fn new(rate_bytes_per_s: u32, limit_bytes: u32, now: Instant<Local>) -> TokenBucket {
        let limit_bytes = i64::from(limit_bytes);
        // A rate of zero would never refill and so never be due.
        let rate_bytes_per_s = i64::from(rate_bytes_per_s.max(1));
        TokenBucket { rate_bytes_per_s, limit_bytes, level: i128::from(limit_bytes) * SCALE, at: now }
    }

    /// Takes `bytes` if they are there.
    pub(crate) fn take(&mut self, bytes: usize, now: Instant<Local>) -> bool {
        self.refill(now);
        let cost = bytes as i128 * SCALE;
        let granted = self.level >= cost;
        if granted {
            self.level -= cost;
        }
        granted
    }

    /// When `bytes` will be there; `bytes` above the limit count as the limit.
    pub(crate) fn ready_at(&self, bytes: usize) -> Instant<Local> {
        let cost = (bytes as i128).min(i128::from(self.limit_bytes)) * SCALE;
        let missing = (cost - self.level).max(0);
        let rate = i128::from(self.rate_bytes_per_s);
        self.at + Span::from_ns(i64::try_from((missing + rate - 1) / rate).unwrap_or(i64::MAX))
    }

    fn refill(&mut self, now: Instant<Local>) {
        let elapsed = (now - self.at).ns().max(0);
        let full = i128::from(self.limit_bytes) * SCALE;
        self.level = (self.level + i128::from(elapsed) * i128::from(self.rate_bytes_per_s)).min(full);
        self.at = self.at.max(now);
    }
}

/// Random durations: enough to spread answers, not for secrets.
#[derive(Clone, Debug)]
pub(crate) struct Jitter(SplitMix64);

impl Jitter {
    /// The durations of this seed.
    pub(crate) fn new(seed: u64) -> Jitter {
        Jitter(SplitMix64::new(seed))
    }

    /// A duration between zero and `most`.
    pub(crate) fn up_to(&mut self, most: Span) -> Span {
        Span::from_ns(self.0.below(most.ns().max(0).cast_unsigned()).cast_signed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bucket_never_grants_more_than_its_limit_and_rate() {
        let start = Instant::from_ns(0);
        let mut bucket = TokenBucket::new(1000, 500, start);
        let mut granted = 0;
        for ms in 0..=2_000 {
            while bucket.take(100, start + Span::from_ms(ms)) {
                granted += 100;
            }
        }
        assert_eq!(granted, 500 + 2_000);
    }

    #[test]
    fn bucket_is_ready_when_it_says_and_not_before() {
        let start = Instant::from_ns(0);
        let mut bucket = TokenBucket::new(1000, 500, start);
        assert!(bucket.take(500, start));
        let ready = bucket.ready_at(200);
        assert_eq!(ready, start + Span::from_ms(200));
        assert!(!bucket.clone().take(200, ready - Span::from_ns(1)));
        assert!(bucket.take(200, ready));
    }

    #[test]
    fn jitter_stays_within_its_span_and_varies() {
        let mut jitter = Jitter::new(1);
        let drawn: Vec<i64> = (0..100).map(|_| jitter.up_to(Span::from_ms(10)).ns()).collect();
        assert!(drawn.iter().all(|ns| (0..10_000_000).contains(ns)));
        assert!(drawn.iter().any(|ns| *ns > 5_000_000) && drawn.iter().any(|ns| *ns < 5_000_000));
    }
}
