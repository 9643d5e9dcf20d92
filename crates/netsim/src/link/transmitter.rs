//! The sending interface: length limit, queue, stalls, rate.

use std::collections::VecDeque;

use noctule_timebase::{Instant, Span};

use super::FLIGHT_PACKETS_MAX;
use super::spec::Impairments;
use crate::Truth;
use crate::random::Random;

/// Counters of a transmitter's packets. Every packet is in exactly one of
/// `queue_full`, `policed`, `down`, `too_long` and those handed to the channels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransmitterStatistics {
    /// Packets that came.
    pub packets: u64,
    /// Their bytes, without overhead.
    pub bytes: u64,
    /// Dropped because the queue had no room.
    pub queue_full: u64,
    /// Marked because the queue was long: of those that were sent.
    pub marked: u64,
    /// Dropped because the policer's bucket was empty.
    pub policed: u64,
    /// Dropped because the link was down.
    pub down: u64,
    /// Dropped because longer than the MTU.
    pub too_long: u64,
    /// Longest queue so far, in bytes with overhead, the packet being sent included.
    pub queue_peak_bytes: u64,
    /// Longest time from a packet's coming to the end of its sending so far.
    pub queue_peak: Span,
}

/// Unit of a policer's account: billionths of a bit, so that a rate times nanoseconds is whole.
const BIT: u128 = 1_000_000_000;

#[derive(Debug)]
pub(super) struct Transmitter {
    impairments: Impairments,
    pub(super) statistics: TransmitterStatistics,
    /// When the last packet admitted will have been sent.
    free: Instant<Truth>,
    /// Billionths of a bit time that rounding to nanoseconds has left over, so that a long train of
    /// packets takes exactly its time.
    remainder: u128,
    /// When each packet waiting or being sent will have been sent, and its bytes with overhead.
    queue: VecDeque<(Instant<Truth>, u64)>,
    queue_bytes: u64,
    /// Billionths of a bit in the policer's bucket, and when it was last filled.
    tokens: Option<(u128, Instant<Truth>)>,
    stalls: Random,
    /// The current or next stall.
    stall: Option<Interval>,
}

#[derive(Clone, Copy, Debug)]
struct Interval {
    begin: Instant<Truth>,
    end: Instant<Truth>,
}

impl Transmitter {
    pub(super) fn new(impairments: Impairments, start: Instant<Truth>, seed: u64) -> Transmitter {
        Transmitter {
            impairments,
            statistics: TransmitterStatistics::default(),
            free: start,
            remainder: 0,
            queue: VecDeque::new(),
            queue_bytes: 0,
            tokens: None,
            stalls: Random::for_part(seed, 0x57a11),
            stall: None,
        }
    }

    pub(super) fn change(&mut self, impairments: Impairments) {
        if impairments.stall != self.impairments.stall {
            self.stall = None;
        }
        if impairments.police != self.impairments.police {
            self.tokens = None;
        }
        self.impairments = impairments;
    }

    /// When a packet of `length_bytes` that comes now will have been sent; `None` if it is dropped.
    pub(super) fn admit(&mut self, now: Instant<Truth>, length_bytes: usize) -> Option<Instant<Truth>> {
        self.statistics.packets += 1;
        self.statistics.bytes += length_bytes as u64;
        if self.impairments.down {
            self.statistics.down += 1;
            return None;
        }
        if self.impairments.mtu_bytes.is_some_and(|mtu| length_bytes > mtu as usize) {
            self.statistics.too_long += 1;
            return None;
        }
        self.retire_sent(now);
        let wire_bytes = length_bytes as u64 + u64::from(self.impairments.overhead_bytes);
        if !self.conforms(now, wire_bytes) {
            self.statistics.policed += 1;
            return None;
        }
        if !self.has_room(wire_bytes) {
            self.statistics.queue_full += 1;
            return None;
        }
        if self.free < now {
            self.free = now;
            self.remainder = 0;
        }
        let begin = self.after_stall(self.free);
        let sent = begin + self.impairments.preamble + self.wire_time(wire_bytes);
        self.free = sent;
        if sent > now {
            self.queue.push_back((sent, wire_bytes));
            self.queue_bytes += wire_bytes;
        }
        let statistics = &mut self.statistics;
        statistics.queue_peak_bytes = statistics.queue_peak_bytes.max(self.queue_bytes);
        statistics.queue_peak = statistics.queue_peak.max(sent - now);
        Some(sent)
    }

    /// Whether a packet that came now and will have been sent then has waited long enough to be marked.
    pub(super) fn marks(&self, now: Instant<Truth>, sent: Instant<Truth>) -> bool {
        self.impairments.mark.is_some_and(|longest| sent - now > longest)
    }

    /// Takes a packet's tokens, if there are enough. A new bucket is full.
    fn conforms(&mut self, now: Instant<Truth>, wire_bytes: u64) -> bool {
        let Some(policer) = self.impairments.police else { return true };
        let full = u128::from(policer.burst_bytes) * 8 * BIT;
        let (tokens, filled) = self.tokens.unwrap_or((full, now));
        let passed_ns = (now - filled).ns().max(0).unsigned_abs();
        let tokens = full.min(tokens + u128::from(passed_ns) * u128::from(policer.rate_bps));
        let needed = u128::from(wire_bytes) * 8 * BIT;
        let conforms = needed <= tokens;
        self.tokens = Some((if conforms { tokens - needed } else { tokens }, now));
        conforms
    }

    fn retire_sent(&mut self, now: Instant<Truth>) {
        while let Some((sent, bytes)) = self.queue.front().copied()
            && sent <= now
        {
            self.queue.pop_front();
            self.queue_bytes -= bytes;
        }
    }

    /// Tail drop. An empty transmitter takes any packet: one longer than the queue is not stuck forever.
    fn has_room(&self, wire_bytes: u64) -> bool {
        let packets_max =
            self.impairments.queue_packets.map_or(FLIGHT_PACKETS_MAX, |packets| packets as usize);
        let bytes_max = self.impairments.queue_limit_bytes().unwrap_or(u64::MAX);
        self.queue.is_empty()
            || (self.queue.len() < packets_max && self.queue_bytes + wire_bytes <= bytes_max)
    }

    fn wire_time(&mut self, wire_bytes: u64) -> Span {
        let Some(rate_bps) = self.impairments.rate_bps else { return Span::ZERO };
        let rate = u128::from(rate_bps.max(1));
        let needed = u128::from(wire_bytes) * 8 * 1_000_000_000 + self.remainder;
        // After a change of rate the remainder may exceed the new one: it is less than a nanosecond.
        self.remainder = needed % rate;
        Span::from_ns(i64::try_from(needed / rate).unwrap_or(i64::MAX))
    }

    /// The first moment not before `from` at which the transmitter is not stalled.
    ///
    /// Stalls begin as a Poisson process while there is none, and last an exponential time. They are
    /// drawn along with the packets, whose sending times never decrease.
    fn after_stall(&mut self, from: Instant<Truth>) -> Instant<Truth> {
        let Some(model) = self.impairments.stall else { return from };
        let mut until = self.stall.map_or(from, |stall| stall.end);
        loop {
            if let Some(Interval { begin, end }) = self.stall {
                if from < begin {
                    return from;
                }
                if from < end {
                    return end;
                }
                until = end;
            }
            let begin = until + exponential(&mut self.stalls, model.interval);
            let end = begin + exponential(&mut self.stalls, model.duration);
            self.stall = Some(Interval { begin, end });
        }
    }
}

/// At least a microsecond, so that a loop over such spans ends.
fn exponential(random: &mut Random, mean: Span) -> Span {
    Span::from_ns(random.exponential(mean.ns() as f64) as i64).max(Span::from_us(1))
}
