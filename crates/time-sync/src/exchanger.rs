//! When to ask, and which replies to accept.
//!
//! # Problem
//!
//! A reply that is matched to the wrong request shifts the clock by half the distance between the
//! two: a client that takes whatever arrives next is off by half a period after one lost packet. And
//! an attacker that makes a host accept a reply sets its estimate of the time.
//!
//! # Approach
//!
//! Every request carries a nonce, SipHash-2-4 of a counter under a secret key, and a reply counts
//! only if it brings back a nonce that is still waiting. Seeing some nonces does not help to guess
//! the next (Aumasson and Bernstein, "SipHash: a fast short-input PRF", INDOCRYPT 2012); someone who
//! sees a request on the wire can answer it, and only a key shared with the peer could prevent that.
//! Replies that do not count are counted by reason.
//!
//! The rhythm is a burst of eight at the start and after a step, 10 Hz while drift is unsettled, then
//! slower by an eighth with every answer down to 1 Hz. A peer that does not answer is asked at 1 Hz.

use core::fmt;
use core::hash::Hasher;

use noctule_timebase::{Instant, Span};
use siphasher::sip::SipHasher24;

use crate::exchange::{Exchange, Local, Remote, State};

/// Requests that may wait for their replies at once; one more and the oldest is given up.
pub const PENDING_LIMIT: usize = 8;
/// Finished requests that are remembered, to distinguish a duplicate or a late reply from a forged one.
const FINISHED_LIMIT: usize = 32;
/// Requests in a burst.
const BURST: u32 = 8;
/// Unanswered requests in a row after which the peer is asked slowly.
const SILENCE: u32 = 8;

/// The nonce that a reply must return. Unpredictable for an attacker without the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nonce(pub u64);

/// The rhythm of asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExchangerConfig {
    /// Between the requests of a burst. Default 10 ms.
    pub burst_interval: Span,
    /// Between requests while drift is unsettled. Default 100 ms.
    pub fastest_interval: Span,
    /// Between requests in the long run. Default 1 s.
    pub slowest_interval: Span,
    /// A reply that takes longer is stale. Default 1 s.
    pub timeout: Span,
}

impl Default for ExchangerConfig {
    fn default() -> ExchangerConfig {
        ExchangerConfig {
            burst_interval: Span::from_ms(10),
            fastest_interval: Span::from_ms(100),
            slowest_interval: Span::from_s(1),
            timeout: Span::from_s(1),
        }
    }
}

/// Why a reply was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    /// The nonce was never given out, or so long ago that it is forgotten: forged, or for another.
    Forged,
    /// The request has been answered already.
    Duplicated,
    /// The request had been given up: the reply took longer than the timeout.
    Stale,
    /// A later request has been answered already.
    Reordered,
}

impl fmt::Display for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Dropped::Forged => "no request with this nonce is known",
            Dropped::Duplicated => "the request has been answered already",
            Dropped::Stale => "the reply came after its time-out",
            Dropped::Reordered => "a later request has been answered already",
        })
    }
}

impl core::error::Error for Dropped {}

/// Counters of dropped requests and replies. Each saturates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DroppedCounters {
    /// Requests given out.
    pub asked: u32,
    /// Replies that counted.
    pub answered: u32,
    /// Requests given up, because of the timeout or because too many were waiting.
    pub given_up: u32,
    /// [`Dropped::Forged`].
    pub forged: u32,
    /// [`Dropped::Duplicated`].
    pub duplicated: u32,
    /// [`Dropped::Stale`].
    pub stale: u32,
    /// [`Dropped::Reordered`].
    pub reordered: u32,
}

/// The asking side of the exchange. Performs no I/O and reads no clock.
///
/// Call [`poll_request`](Exchanger::poll_request) until it gives nothing, send what it gives,
/// report the moment of departure with [`handle_sent`](Exchanger::handle_sent), then sleep until
/// [`poll_timeout`](Exchanger::poll_timeout) or a reply. Hand each reply to
/// [`handle_reply`](Exchanger::handle_reply), what comes out to an estimator, and the estimator's
/// state back to [`handle_state`](Exchanger::handle_state).
#[derive(Clone, Debug)]
pub struct Exchanger {
    config: ExchangerConfig,
    key: [u8; 16],
    sequence: u64,
    pending: [Option<Pending>; PENDING_LIMIT],
    finished: [Option<(Nonce, Fate)>; FINISHED_LIMIT],
    next_finished: usize,
    newest_answered: Option<u64>,
    due: Instant<Local>,
    interval: Span,
    burst_left: u32,
    stepped: bool,
    unanswered_in_a_row: u32,
    counters: DroppedCounters,
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    nonce: Nonce,
    sequence: u64,
    asked: Instant<Local>,
    t1: Instant<Local>,
}

#[derive(Clone, Copy, Debug)]
enum Fate {
    Answered,
    GivenUp,
}

impl Exchanger {
    /// An exchanger whose first request is due at `now`. The key must be secret and must not be used
    /// again: take 16 bytes from the system's random source.
    pub fn new(config: ExchangerConfig, key: [u8; 16], now: Instant<Local>) -> Exchanger {
        Exchanger {
            config,
            key,
            sequence: 0,
            pending: [None; PENDING_LIMIT],
            finished: [None; FINISHED_LIMIT],
            next_finished: 0,
            newest_answered: None,
            due: now,
            interval: config.fastest_interval,
            burst_left: BURST,
            stepped: false,
            unanswered_in_a_row: 0,
            counters: DroppedCounters::default(),
        }
    }

    /// Asks in another rhythm from now on; a burst that has begun goes on.
    pub fn set_config(&mut self, config: ExchangerConfig) {
        self.config = config;
        self.interval = self.interval.clamp(config.fastest_interval, config.slowest_interval);
    }

    /// The nonce of a request to send now, if one is due. Call again until there is none.
    pub fn poll_request(&mut self, now: Instant<Local>) -> Option<Nonce> {
        self.give_up_older_than(now - self.config.timeout);
        if now < self.due {
            return None;
        }
        let nonce = self.nonce(self.sequence);
        let pending = Pending { nonce, sequence: self.sequence, asked: now, t1: now };
        let slot = self.free_slot();
        self.pending[slot] = Some(pending);
        self.sequence += 1;
        self.counters.asked = self.counters.asked.saturating_add(1);
        self.burst_left = self.burst_left.saturating_sub(1);
        // From now, not from when it was due: a late caller must not send a volley.
        self.due = now + self.wait();
        Some(nonce)
    }

    /// The request of `nonce` left at `t1`, stamped as close to the wire as possible. Without this
    /// call `t1` is the time of [`poll_request`](Exchanger::poll_request), which is never too late.
    pub fn handle_sent(&mut self, nonce: Nonce, t1: Instant<Local>) {
        if let Some(pending) = self.pending.iter_mut().flatten().find(|pending| pending.nonce == nonce) {
            pending.t1 = t1;
        }
    }

    /// A reply that brought back `nonce` and the remote stamps, and arrived at `t4`.
    ///
    /// # Errors
    /// Says why the reply does not count.
    pub fn handle_reply(
        &mut self,
        nonce: Nonce,
        remote: (Instant<Remote>, Instant<Remote>),
        t4: Instant<Local>,
    ) -> Result<Exchange, Dropped> {
        self.give_up_older_than(t4 - self.config.timeout);
        let found = self.pending.iter_mut().find(|slot| slot.is_some_and(|pending| pending.nonce == nonce));
        let Some(pending) = found.and_then(Option::take) else {
            return Err(self.drop_unexpected(nonce));
        };
        self.finish(nonce, Fate::Answered);
        if self.newest_answered.is_some_and(|newest| pending.sequence < newest) {
            self.counters.reordered = self.counters.reordered.saturating_add(1);
            return Err(Dropped::Reordered);
        }
        self.newest_answered = Some(pending.sequence);
        self.unanswered_in_a_row = 0;
        self.counters.answered = self.counters.answered.saturating_add(1);
        Ok(Exchange { t1: pending.t1, t2: remote.0, t3: remote.1, t4 })
    }

    /// The estimator's state after an exchange sets the rhythm; a step brings the next request
    /// forward to `now`.
    pub fn handle_state(&mut self, state: State, now: Instant<Local>) {
        let stepped = state == State::Stepped;
        if stepped && !self.stepped {
            self.burst_left = BURST;
            self.due = self.due.min(now);
        }
        self.stepped = stepped;
        self.interval = match state {
            State::Locked => {
                let longer = self.interval + self.interval / 8;
                longer.clamp(self.config.fastest_interval, self.config.slowest_interval)
            }
            State::Acquiring | State::Stepped | State::Stale => self.config.fastest_interval,
        };
    }

    /// When [`poll_request`](Exchanger::poll_request) next has something. Calling it earlier is
    /// harmless; later costs accuracy.
    pub fn poll_timeout(&self) -> Instant<Local> {
        self.due
    }

    /// Counters of requests and replies so far.
    pub fn counters(&self) -> DroppedCounters {
        self.counters
    }

    fn wait(&self) -> Span {
        if self.unanswered_in_a_row >= SILENCE {
            self.config.slowest_interval
        } else if self.burst_left > 0 {
            self.config.burst_interval
        } else {
            self.interval
        }
    }

    fn nonce(&self, sequence: u64) -> Nonce {
        let mut hasher = SipHasher24::new_with_key(&self.key);
        hasher.write_u64(sequence.to_le());
        Nonce(hasher.finish())
    }

    fn give_up_older_than(&mut self, earliest: Instant<Local>) {
        for slot in 0..PENDING_LIMIT {
            if self.pending[slot].is_some_and(|pending| pending.asked < earliest) {
                self.give_up(slot);
            }
        }
    }

    fn give_up(&mut self, slot: usize) {
        if let Some(pending) = self.pending[slot].take() {
            self.finish(pending.nonce, Fate::GivenUp);
            self.unanswered_in_a_row = self.unanswered_in_a_row.saturating_add(1);
            self.counters.given_up = self.counters.given_up.saturating_add(1);
        }
    }

    /// An empty slot; when there is none, that of the oldest request, which is given up.
    fn free_slot(&mut self) -> usize {
        let oldest = |slot: &usize| self.pending[*slot].map(|pending| pending.sequence);
        // `None` orders before every sequence number, so an empty slot is found first.
        let slot = (0..PENDING_LIMIT).min_by_key(oldest).unwrap_or(0);
        self.give_up(slot);
        slot
    }

    fn finish(&mut self, nonce: Nonce, fate: Fate) {
        self.finished[self.next_finished] = Some((nonce, fate));
        self.next_finished = (self.next_finished + 1) % FINISHED_LIMIT;
    }

    fn drop_unexpected(&mut self, nonce: Nonce) -> Dropped {
        let fate = self.finished.iter().flatten().find(|(finished, _)| *finished == nonce);
        let (reason, counter) = match fate {
            Some((_, Fate::Answered)) => (Dropped::Duplicated, &mut self.counters.duplicated),
            Some((_, Fate::GivenUp)) => (Dropped::Stale, &mut self.counters.stale),
            None => (Dropped::Forged, &mut self.counters.forged),
        };
        *counter = counter.saturating_add(1);
        reason
    }
}

#[cfg(test)]
mod tests;
