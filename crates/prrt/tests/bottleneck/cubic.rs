//! A sender of TCP's CUBIC (RFC 9438) with ideal selective acknowledgement, and its receiver: as a flow that competes.
//!
//! Segments carry numbers instead of bytes, and what is lost is not retransmitted but replaced by the next segment: the
//! flow never ends, so it makes no difference to the line. Slow start ends with the first loss, as Linux's does
//! without HyStart.

use std::collections::{BTreeMap, VecDeque};

use noctule_timebase::{Instant, Span};

use super::Local;

const SEGMENT_BYTES: usize = 1_500;
const ACKNOWLEDGEMENT_BYTES: usize = 52;
const PAYLOAD_BYTES: u64 = 1_448;
const MARK: u8 = 0xc0;
const BETA: f64 = 0.7;
const C: f64 = 0.4;

pub struct CubicTcp {
    is_sender: bool,
    /// When the sender begins.
    from: Option<Instant<Local>>,
    next: u64,
    in_flight: BTreeMap<u64, Instant<Local>>,
    window: f64,
    threshold: f64,
    before: f64,
    decreased_at: u64,
    epoch: Option<(Instant<Local>, f64)>,
    as_reno: f64,
    smoothed: Span,
    heard_at: Instant<Local>,
    acknowledgements: VecDeque<u64>,
    received: u64,
}

/// A segment's number and whether it is an acknowledgement.
pub fn read(bytes: &[u8]) -> Option<(u64, bool)> {
    let is_segment = bytes.first() == Some(&MARK);
    is_segment
        .then(|| (u64::from_le_bytes(bytes[1..9].try_into().unwrap()), bytes.len() == ACKNOWLEDGEMENT_BYTES))
}

fn write(number: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    bytes[0] = MARK;
    bytes[1..9].copy_from_slice(&number.to_le_bytes());
    bytes
}

impl CubicTcp {
    pub fn sender(from: Option<Instant<Local>>) -> CubicTcp {
        CubicTcp { is_sender: true, from, ..CubicTcp::receiver() }
    }

    pub fn receiver() -> CubicTcp {
        CubicTcp {
            is_sender: false,
            from: None,
            next: 0,
            in_flight: BTreeMap::new(),
            window: 10.0,
            threshold: f64::MAX,
            before: 0.0,
            decreased_at: 0,
            epoch: None,
            as_reno: 0.0,
            smoothed: Span::ZERO,
            heard_at: Instant::from_ns(0),
            acknowledgements: VecDeque::new(),
            received: 0,
        }
    }

    pub fn is_first(&self) -> bool {
        self.is_sender
    }

    pub fn delivered_bytes(&self) -> u64 {
        self.received * PAYLOAD_BYTES
    }

    pub fn handle_segment(&mut self, (number, acknowledges): (u64, bool), now: Instant<Local>) {
        if !acknowledges {
            self.received += 1;
            self.acknowledgements.push_back(number);
            return;
        }
        self.heard_at = now;
        if let Some(sent_at) = self.in_flight.remove(&number) {
            let sample = now - sent_at;
            let first = self.smoothed == Span::ZERO;
            self.smoothed = if first { sample } else { self.smoothed + (sample - self.smoothed) / 8 };
            self.grow(now);
        }
        let overtaken: Vec<u64> =
            self.in_flight.range(..number.saturating_sub(2)).map(|(&old, _)| old).collect();
        for old in overtaken {
            self.in_flight.remove(&old);
            if old >= self.decreased_at {
                self.before =
                    if self.window < self.before { self.window * (1.0 + BETA) / 2.0 } else { self.window };
                self.window = (self.window * BETA).max(2.0);
                (self.threshold, self.as_reno, self.epoch) = (self.window, self.window, None);
                self.decreased_at = self.next;
            }
        }
    }

    fn grow(&mut self, now: Instant<Local>) {
        if self.window < self.threshold {
            self.window += 1.0;
            return;
        }
        let (window, before) = (self.window, self.before);
        let (since, inflection) =
            *self.epoch.get_or_insert_with(|| (now, ((before - window).max(0.0) / C).cbrt()));
        let alpha = if self.as_reno < self.before { 3.0 * (1.0 - BETA) / (1.0 + BETA) } else { 1.0 };
        self.as_reno += alpha / self.window;
        let time = (now - since + self.smoothed).as_s_f64() - inflection;
        let target = (self.before + C * time.powi(3)).clamp(self.window, 1.5 * self.window);
        self.window = (self.window + (target - self.window) / self.window).max(self.as_reno);
    }

    /// Linux's shortest time-out is 200 ms.
    pub fn poll_timeout(&self) -> Option<Instant<Local>> {
        let waits = self.from.filter(|_| self.next == 0);
        let timeout =
            (!self.in_flight.is_empty()).then(|| self.heard_at + self.smoothed * 2 + Span::from_ms(200));
        waits.into_iter().chain(timeout).min()
    }

    pub fn handle_timeout(&mut self, now: Instant<Local>) {
        if self.in_flight.is_empty() || self.poll_timeout().is_none_or(|at| at > now) {
            return;
        }
        self.in_flight.clear();
        (self.threshold, self.window, self.heard_at) = ((self.window / 2.0).max(2.0), 1.0, now);
        self.decreased_at = self.next;
    }

    pub fn poll_transmit(&mut self, now: Instant<Local>) -> Option<Vec<u8>> {
        if let Some(number) = self.acknowledgements.pop_front() {
            return Some(write(number, ACKNOWLEDGEMENT_BYTES));
        }
        let begun = self.from.is_some_and(|from| from <= now);
        if !begun || self.in_flight.len() as f64 + 1.0 > self.window {
            return None;
        }
        if self.in_flight.is_empty() {
            self.heard_at = now;
        }
        self.in_flight.insert(self.next, now);
        self.next += 1;
        Some(write(self.next - 1, SEGMENT_BYTES))
    }
}
