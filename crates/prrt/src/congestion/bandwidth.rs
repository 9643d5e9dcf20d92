//! Capacity of the bottleneck, estimated from the dispersion of packet trains.
//!
//! Datagrams that are sent faster than the narrowest line takes them arrive as fast as it gives them. Both distances are
//! known without comparing clocks: that of sending by ours, that of arrival by the other side's, which feedback tells
//! (packet trains: Dovrolis, Ramanathan and Moore, INFOCOM 2001). What others send over the same line counts as not
//! there. Jitter stretches trains, too; so long samples are spread by no less than what lately arrived over half a second.

use noctule_timebase::{Instant, Span};

use crate::stream::Local;

/// A train is at least so many packets, and so long on arrival, that a thread that wakes late does not matter.
const TRAIN_PACKETS: u64 = 32;
const TRAIN_LEAST: Span = Span::from_ms(30);
/// Longest train, from the first packet's departure to the last one's: datagrams farther apart are none.
const TRAIN_MAX: Span = Span::from_ms(100);
/// Arrivals must be farther apart than this times what was sent, and longer by this and by more than jitter explains.
const STRETCH: f64 = 1.01;
const STRETCH_LEAST: Span = Span::from_us(300);
/// Trains of which the fastest is selected: a stall makes one slow.
const TRAINS: usize = 3;
/// A train as fast as the selected one that was not stretched: there is so much more.
const RAISE: f64 = 1.01;
const AS_FAST: f64 = 0.98;
/// Arrivals are counted over this, and the most of them is remembered for one to two of these (BBR has ten round trips).
const DELIVERED_OVER: Span = Span::from_ms(500);
const DELIVERED_MEMORY: Span = Span::from_s(5);

/// A packet that arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passage {
    pub(crate) packet: u64,
    pub(crate) sent_at: Instant<Local>,
    /// By the other side's clock.
    pub(crate) arrived_ns: i64,
    /// Bytes of all packets that have arrived, this one included.
    pub(crate) arrived_bytes: u64,
}

/// Estimates the capacity of a path by the dispersion of packet trains.
#[derive(Debug, Default)]
pub(crate) struct Bandwidth {
    first: Option<Passage>,
    /// Bytes per second of the last stretched trains; 0 for none.
    trains: [f64; TRAINS],
    /// Where the span began over which arrivals are counted now.
    counted_from: Option<Passage>,
    /// The most that arrived in such a span of this memory and of the one before, bytes per second, and when this one began.
    delivered: [f64; 2],
    since_ns: i64,
}

impl Bandwidth {
    /// Bytes of datagrams a second; `None` while no train has been stretched.
    pub(crate) fn bytes_per_s(&self) -> Option<f64> {
        Some(self.trains.iter().fold(0.0, |most, &rate| rate.max(most))).filter(|rate| *rate > 0.0)
    }

    /// The same, but never less than what lately arrived.
    pub(crate) fn at_least_bytes_per_s(&self) -> Option<f64> {
        self.bytes_per_s().map(|stretched| stretched.max(self.delivered[0]).max(self.delivered[1]))
    }

    /// Jitter stretches a train of some ten milliseconds, but a path carries at least what arrived over a longer time.
    fn count_delivered(&mut self, last: Passage) {
        let first = *self.counted_from.get_or_insert(last);
        let arrived = Span::from_ns(last.arrived_ns.saturating_sub(first.arrived_ns));
        if arrived < Span::ZERO {
            self.counted_from = Some(last);
        }
        if arrived < DELIVERED_OVER {
            return;
        }
        self.counted_from = Some(last);
        if last.arrived_ns - self.since_ns > DELIVERED_MEMORY.ns() {
            (self.delivered, self.since_ns) = ([0.0, self.delivered[0]], last.arrived_ns);
        }
        let bytes = last.arrived_bytes.saturating_sub(first.arrived_bytes) as f64;
        self.delivered[0] = self.delivered[0].max(bytes / arrived.as_s_f64());
    }

    /// The newest packet that feedback names, once; and by how much a delay may differ from another without a queue.
    pub(crate) fn handle_arrival(&mut self, last: Passage, noise: Span) {
        self.count_delivered(last);
        let first = *self.first.get_or_insert(last);
        let sent = last.sent_at - first.sent_at;
        let arrived = Span::from_ns(last.arrived_ns.saturating_sub(first.arrived_ns));
        let is_broken = sent > TRAIN_MAX || arrived < Span::ZERO || last.packet < first.packet;
        let is_short = last.packet - first.packet.min(last.packet) < TRAIN_PACKETS || arrived < TRAIN_LEAST;
        if is_short && !is_broken {
            return;
        }
        self.first = Some(last);
        if is_broken {
            return;
        }
        let bytes = (last.arrived_bytes - first.arrived_bytes) as f64;
        let stretched =
            arrived - sent > STRETCH_LEAST.max(noise) && arrived.as_s_f64() > sent.as_s_f64() * STRETCH;
        let known = self.bytes_per_s();
        let rate = if stretched {
            Some(bytes / arrived.as_s_f64())
        } else {
            let is_as_fast = |known: &f64| bytes > AS_FAST * known * sent.as_s_f64();
            known.filter(is_as_fast).map(|known| known * RAISE)
        };
        if let Some(rate) = rate {
            self.trains.rotate_right(1);
            self.trains[0] = rate;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets of 1,000 bytes sent `sent_us` apart, that arrive `arrived_us` apart.
    fn train(dispersion: &mut Bandwidth, from: u64, packets: u64, (sent_us, arrived_us): (i64, i64)) {
        let noise = Span::from_ms(1);
        for packet in from..from + packets {
            let number = packet as i64;
            let sent_at = Instant::from_ns(number * sent_us * 1_000);
            let (arrived_ns, arrived_bytes) = (number * arrived_us * 1_000, packet * 1_000);
            dispersion.handle_arrival(Passage { packet, sent_at, arrived_ns, arrived_bytes }, noise);
        }
    }

    #[test]
    fn datagrams_that_arrive_farther_apart_than_they_left_tell_the_rate_and_others_do_not() {
        let mut dispersion = Bandwidth::default();
        train(&mut dispersion, 0, 500, (80, 80));
        assert_eq!(dispersion.bytes_per_s(), None);
        train(&mut dispersion, 500, 500, (80, 100));
        let known = dispersion.bytes_per_s().unwrap();
        assert!((known / 10e6 - 1.0).abs() < 0.02, "{known}");
        // Slower than that says nothing more.
        train(&mut dispersion, 1_000, 500, (200, 200));
        assert_eq!(dispersion.bytes_per_s(), Some(known));
    }

    #[test]
    fn a_path_that_bears_more_is_found_out_and_a_stall_is_ignored() {
        let mut dispersion = Bandwidth::default();
        train(&mut dispersion, 0, 1_000, (80, 100));
        let stall = Passage {
            packet: 1_040,
            sent_at: Instant::from_ns(1_040 * 80_000),
            arrived_ns: 400_000_000,
            arrived_bytes: 1_040_000,
        };
        dispersion.handle_arrival(stall, Span::ZERO);
        assert!(dispersion.bytes_per_s().unwrap() > 9.9e6);
        train(&mut dispersion, 2_000, 9_000, (80, 80));
        assert!(dispersion.bytes_per_s().unwrap() > 12e6);
    }

    /// Packets leave 80 us apart; the way becomes 40 ms longer within 60 ms and shorter again, ten times a second.
    #[test]
    fn trains_that_jitter_stretches_do_not_make_the_capacity_less_than_what_arrives() {
        let mut dispersion = Bandwidth::default();
        for packet in 0..25_000 {
            let sent_us = packet as i64 * 80;
            let phase_us = sent_us % 100_000;
            let longer_us = if phase_us < 60_000 { phase_us * 2 / 3 } else { 100_000 - phase_us };
            let passage = Passage {
                packet,
                sent_at: Instant::from_ns(sent_us * 1_000),
                arrived_ns: (sent_us + longer_us) * 1_000,
                arrived_bytes: packet * 1_000,
            };
            dispersion.handle_arrival(passage, Span::from_ms(1));
            let known = dispersion.at_least_bytes_per_s().filter(|_| packet > 10_000);
            assert!(known.is_none_or(|known| known > 0.9 * 12.5e6), "packet {packet}: {known:?}");
        }
        assert!(dispersion.bytes_per_s().unwrap() < 0.9 * 12.5e6);
    }
}
