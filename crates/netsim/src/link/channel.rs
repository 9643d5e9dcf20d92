//! The way of a packet to one receiver, once it is sent: loss, corruption, delay, order, copies.

use noctule_timebase::{Instant, Span};

use super::loss::LossProcess;
use super::recording::Replayed;
use super::spec::{Advance, Impairments, Reorder};
use crate::Truth;
use crate::random::Random;

/// Fates of the packets to one receiver: once none is under way any more,
/// `sent + duplicated = delivered + lost + flight_full`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ChannelStatistics {
    /// Packets the transmitter sent to this receiver.
    pub sent: u64,
    /// Packets delivered, copies included.
    pub delivered: u64,
    /// Their bytes.
    pub delivered_bytes: u64,
    /// Lost by the loss model or the recording.
    pub lost: u64,
    /// Copies made.
    pub duplicated: u64,
    /// Packets of which one bit was flipped.
    pub corrupted: u64,
    /// Packets held back so that later ones may overtake them.
    pub held_back: u64,
    /// Dropped because the emulator itself has no room: none of the link's doing, and a reason to
    /// distrust the experiment.
    pub flight_full: u64,
}

#[derive(Debug)]
pub(super) struct Channel {
    impairments: Impairments,
    pub(super) statistics: ChannelStatistics,
    start: Instant<Truth>,
    loss: LossProcess,
    delays: Random,
    orders: Random,
    copies: Random,
    flips: Random,
    /// No packet is due before this one, unless order is free.
    last_due: Instant<Truth>,
}

pub(super) struct Arrival {
    pub(super) due: Instant<Truth>,
    pub(super) copies: usize,
    pub(super) flipped_bit: Option<u64>,
}

impl Channel {
    pub(super) fn new(impairments: Impairments, start: Instant<Truth>, seed: u64, receiver: u64) -> Channel {
        let part = |cause: u64| Random::for_part(seed, (receiver << 8) + cause);
        Channel {
            loss: LossProcess::new(&impairments, start, part(1)),
            impairments,
            statistics: ChannelStatistics::default(),
            start,
            delays: part(2),
            orders: part(3),
            copies: part(4),
            flips: part(5),
            last_due: start,
        }
    }

    pub(super) fn change(&mut self, impairments: Impairments) {
        self.loss.change(&impairments);
        self.impairments = impairments;
    }

    /// Arrival of a packet whose sending ended at `sent`; `None` if it is lost.
    pub(super) fn pass(&mut self, sent: Instant<Truth>, length_bytes: usize) -> Option<Arrival> {
        let index = self.statistics.sent;
        self.statistics.sent += 1;
        let lost = self.loss.loses(sent);
        let delay = self.delay(sent, index);
        let Some(delay) = delay.filter(|_| !lost) else {
            self.statistics.lost += 1;
            return None;
        };
        let flipped = self.flips.chance(self.impairments.corrupt.as_f64()) && length_bytes > 0;
        let flipped_bit = flipped.then(|| self.flips.bits() % (length_bytes as u64 * 8));
        self.statistics.corrupted += u64::from(flipped);
        let copies = 1 + usize::from(self.copies.chance(self.impairments.duplicate.as_f64()));
        Some(Arrival { due: self.in_order(sent + delay), copies, flipped_bit })
    }

    pub(super) fn count_launched(&mut self, fits: bool, duplicate: bool) {
        self.statistics.duplicated += u64::from(duplicate);
        self.statistics.flight_full += u64::from(!fits);
    }

    pub(super) fn count_delivered(&mut self, length_bytes: usize) {
        self.statistics.delivered += 1;
        self.statistics.delivered_bytes += length_bytes as u64;
    }

    fn delay(&mut self, sent: Instant<Truth>, index: u64) -> Option<Span> {
        let modelled = self.impairments.distribution.draw(
            self.impairments.delay,
            self.impairments.jitter,
            &mut self.delays,
        );
        let Some(replay) = &self.impairments.replay else { return Some(modelled) };
        let replayed = match replay.advance {
            Advance::Packet => replay.recording.entry(index),
            Advance::Time => replay.recording.at(sent - self.start),
        };
        match replayed {
            Replayed::Lost => None,
            Replayed::Delivered(delay) => Some(modelled + delay),
        }
    }

    fn in_order(&mut self, due: Instant<Truth>) -> Instant<Truth> {
        match self.impairments.reorder {
            Reorder::ByJitter => due,
            Reorder::Held { share, by } if self.orders.chance(share.as_f64()) => {
                self.statistics.held_back += 1;
                due.max(self.last_due) + by
            }
            Reorder::Never | Reorder::Held { .. } => {
                self.last_due = due.max(self.last_due);
                self.last_due
            }
        }
    }
}
