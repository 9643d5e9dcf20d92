//! One station's part of the contention: its queue, its countdown, what it senses.

use std::collections::VecDeque;

use noctule_timebase::{Instant, Span};

use super::rate::Band;
use super::{Frame, Receivers};
use crate::Truth;

/// State of a station's channel access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nothing to send.
    Idle,
    /// Counts slots down from this time on.
    Contending { from: Instant<Truth> },
    /// Has slots left and senses another station.
    Frozen,
    /// Its frame is on the air.
    Sending,
    /// Waits for an acknowledgement.
    Awaiting { until: Instant<Truth> },
}

#[derive(Debug)]
pub(super) struct Station {
    /// The first is the one that is contended for, or on the air.
    pub(super) queue: VecDeque<Frame>,
    pub(super) phase: Phase,
    /// Backoff left.
    pub(super) slots: u32,
    /// Largest backoff of the present attempt.
    pub(super) window: u32,
    /// Failed attempts of the first frame.
    pub(super) attempts: u32,
    /// The first frame has reached its receiver; its acknowledgement was lost.
    pub(super) delivered: bool,
    /// Transmissions it senses, its own included.
    pub(super) sensed: u32,
    /// When it last sensed anything.
    pub(super) idle_since: Instant<Truth>,
    /// Since when it senses something, while it does.
    busy_since: Instant<Truth>,
    /// How long it has sensed something, the present time apart.
    busy: Span,
}

impl Station {
    pub(super) fn new() -> Station {
        Station {
            queue: VecDeque::new(),
            phase: Phase::Idle,
            slots: 0,
            window: 0,
            attempts: 0,
            delivered: false,
            sensed: 0,
            idle_since: Instant::from_ns(0),
            busy_since: Instant::from_ns(0),
            busy: Span::ZERO,
        }
    }

    /// A transmission that it senses has begun.
    pub(super) fn sense(&mut self, now: Instant<Truth>) {
        if self.sensed == 0 {
            self.busy_since = now;
        }
        self.sensed += 1;
    }

    /// How long it has sensed the medium busy until now.
    pub(super) fn busy(&self, now: Instant<Truth>) -> Span {
        let present = if self.sensed > 0 { now - self.busy_since } else { Span::ZERO };
        self.busy + present
    }

    /// When the countdown ends, if it runs.
    pub(super) fn access(&self, slot: Span) -> Option<Instant<Truth>> {
        match self.phase {
            Phase::Contending { from } => Some(from + Span::from_ns(slot.ns() * i64::from(self.slots))),
            _ => None,
        }
    }

    /// Until when it waits for an acknowledgement, if it does.
    pub(super) fn ack_timeout(&self) -> Option<Instant<Truth>> {
        match self.phase {
            Phase::Awaiting { until } => Some(until),
            _ => None,
        }
    }

    /// The countdown begins, on the grid of slots that all stations that received the same last transmission share: two stations whose
    /// frames come within one slot collide.
    pub(super) fn resume(&mut self, now: Instant<Truth>, band: Band) {
        let first = self.idle_since + band.difs();
        let late_ns = (now - first).ns().max(0);
        let slot_ns = band.slot().ns();
        let from = first + Span::from_ns(late_ns.div_euclid(slot_ns) * slot_ns);
        let from = if from < now && late_ns > 0 { from + band.slot() } else { from };
        self.phase = Phase::Contending { from };
    }

    /// Another station has begun to send. True if that stopped its countdown.
    pub(super) fn freeze(&mut self, now: Instant<Truth>, slot: Span) -> bool {
        let Phase::Contending { from } = self.phase else { return false };
        let counted = (now - from).ns().max(0) / slot.ns();
        self.slots = self.slots.saturating_sub(counted as u32);
        self.phase = Phase::Frozen;
        true
    }

    /// The last transmission it sensed has ended. True if its countdown goes on.
    pub(super) fn hear_silence(&mut self, now: Instant<Truth>, band: Band) -> bool {
        self.idle_since = now;
        self.busy += now - self.busy_since;
        let resumes = self.phase == Phase::Frozen;
        if resumes {
            self.resume(now, band);
        }
        resumes
    }

    /// The first frame is done with.
    pub(super) fn finish(&mut self) {
        self.queue.pop_front();
        (self.attempts, self.delivered) = (0, false);
    }

    /// Puts a frame to all in the place of one that is not on the air yet; false if there is none.
    pub(super) fn replace_waiting(&mut self, frame: &Frame) -> bool {
        let on_the_air = usize::from(self.phase == Phase::Sending);
        let waits = self.queue.iter_mut().skip(on_the_air).find(|waits| waits.to == Receivers::All);
        let Some(waits) = waits else { return false };
        waits.clone_from(frame);
        true
    }
}
