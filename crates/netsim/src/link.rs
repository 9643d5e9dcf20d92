//! One direction of a link: what it delays, loses, holds back, repeats and spoils.
//!
//! # Problem
//!
//! A protocol for bad links must be tried on bad links, the same ones again after every change, in
//! a simulation and below unmodified programs alike.
//!
//! # Approach
//!
//! A packet passes two stages, in the order of a real interface. The *transmitter* drops what is too
//! long, what comes while the link is down and what its queue has no room for, waits through
//! stalls, and sends at the rate; so a packet that is lost afterwards has still used its share of the
//! rate. The *channel* after it loses, spoils, delays and duplicates, one independently for each
//! receiver, as in the air. Order is kept unless the specification says otherwise: the same jitter
//! that spreads arrivals must not silently test another thing.
//!
//! Verbs are those of every core: [`Link::handle_packet`] in; then, until it returns nothing,
//! [`Link::poll_deliver`] out; [`Link::poll_timeout`] says when to ask again. Each cause draws from a
//! random sequence of its own, so more loss does not change the delays.
//!
//! Memory is bounded by [`FLIGHT_PACKETS_MAX`] and [`FLIGHT_BYTES_MAX`]; what exceeds them is dropped
//! and counted apart from all that was requested.
//!
//! References: E. N. Gilbert, "Capacity of a burst-noise channel", BSTJ 39 (1960); E. O. Elliott,
//! "Estimates of error rates for codes on burst-noise channels", BSTJ 42 (1963).

mod channel;
mod jitter;
mod loss;
mod mark;
mod presets;
mod recording;
mod spec;
mod text;
mod transmitter;

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use noctule_timebase::Instant;

pub use channel::ChannelStatistics;
pub use jitter::{DELAY_MAX, Distribution};
pub use presets::PRESETS;
pub use recording::{Entry, RECORDING_ENTRIES_MAX, Recording, RecordingError};
pub use spec::{
    Advance, Burst, Direction, Impairments, LinkSpec, Policer, QUEUE_DEFAULT, QueueLimit, Reorder, Replay,
    ReplayError, SCRIPT_STEPS_MAX, ScriptStep, Share, SpecError, Stall,
};
pub use text::{Recordings, no_recordings, parse_share, parse_time};
pub use transmitter::TransmitterStatistics;

use crate::Truth;
use channel::Channel;
use transmitter::Transmitter;

/// Most packets under way in one direction, all receivers together.
pub const FLIGHT_PACKETS_MAX: usize = 65_536;
/// Most bytes under way in one direction, all receivers together.
pub const FLIGHT_BYTES_MAX: usize = 64 << 20;

/// One direction of a link, to one receiver or to several.
#[derive(Debug)]
pub struct Link {
    script: Vec<ScriptStep>,
    script_next: usize,
    start: Instant<Truth>,
    transmitter: Transmitter,
    channels: Vec<Channel>,
    flight: BinaryHeap<Reverse<Flying>>,
    flight_bytes: usize,
    sequence: u64,
}

/// A packet that has arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Which receiver's, counted from zero.
    pub receiver: usize,
    /// When it was due; not later than the `now` it was requested with.
    pub due: Instant<Truth>,
    /// The packet, possibly spoiled.
    pub bytes: Vec<u8>,
}

/// Ordered by due time, then by the order in which packets entered.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Flying {
    due: Instant<Truth>,
    sequence: u64,
    receiver: usize,
    bytes: Vec<u8>,
}

impl Link {
    /// A direction to one receiver. Its script counts from `start`.
    pub fn new(direction: &Direction, start: Instant<Truth>, seed: u64) -> Link {
        Link::to_receivers(direction, 1, start, seed)
    }

    /// A direction with one transmitter and `receivers` independent channels.
    pub fn to_receivers(direction: &Direction, receivers: usize, start: Instant<Truth>, seed: u64) -> Link {
        let channel = |receiver| Channel::new(direction.initial.clone(), start, seed, receiver as u64);
        Link {
            script: direction.script.clone(),
            script_next: 0,
            start,
            transmitter: Transmitter::new(direction.initial.clone(), start, seed),
            channels: (0..receivers).map(channel).collect(),
            flight: BinaryHeap::new(),
            flight_bytes: 0,
            sequence: 0,
        }
    }

    /// Sends a packet to every receiver; the rate is used once.
    pub fn handle_packet(&mut self, now: Instant<Truth>, bytes: &[u8]) {
        self.send(now, 0..self.channels.len(), bytes);
    }

    /// Sends a packet to every receiver but one: a hub does not return what it got.
    pub fn handle_packet_except(&mut self, now: Instant<Truth>, receiver: usize, bytes: &[u8]) {
        let receivers = self.channels.len();
        self.send(now, (0..receivers).filter(|number| *number != receiver), bytes);
    }

    /// Sends a packet to one receiver. One that does not exist gets nothing, but the rate is used.
    pub fn handle_packet_to(&mut self, now: Instant<Truth>, receiver: usize, bytes: &[u8]) {
        let exists = receiver < self.channels.len();
        self.send(now, exists.then_some(receiver), bytes);
    }

    /// The next packet due by `now`. Call until `None`.
    pub fn poll_deliver(&mut self, now: Instant<Truth>) -> Option<Delivery> {
        if self.flight.peek()?.0.due > now {
            return None;
        }
        let Reverse(Flying { due, receiver, bytes, .. }) = self.flight.pop()?;
        self.flight_bytes -= bytes.len();
        self.channels[receiver].count_delivered(bytes.len());
        Some(Delivery { receiver, due, bytes })
    }

    /// When [`Self::poll_deliver`] will have something; `None` if nothing is under way.
    pub fn poll_timeout(&self) -> Option<Instant<Truth>> {
        self.flight.peek().map(|Reverse(flying)| flying.due)
    }

    /// Counters of the transmitter: packets that came in, and packets that were not sent.
    pub fn transmitter(&self) -> &TransmitterStatistics {
        &self.transmitter.statistics
    }

    /// Counters of the packets to one receiver; zeros if it does not exist.
    pub fn channel(&self, receiver: usize) -> ChannelStatistics {
        self.channels.get(receiver).map(|channel| channel.statistics).unwrap_or_default()
    }

    /// Packets under way, to all receivers.
    pub fn in_flight(&self) -> usize {
        self.flight.len()
    }

    fn send(&mut self, now: Instant<Truth>, receivers: impl IntoIterator<Item = usize>, bytes: &[u8]) {
        self.follow_script(now);
        let Some(sent) = self.transmitter.admit(now, bytes.len()) else { return };
        let mut marked;
        let bytes = if self.transmitter.marks(now, sent) {
            marked = bytes.to_vec();
            self.transmitter.statistics.marked += u64::from(mark::mark(&mut marked));
            &marked
        } else {
            bytes
        };
        for receiver in receivers {
            let Some(arrival) = self.channels[receiver].pass(sent, bytes.len()) else { continue };
            for copy in 0..arrival.copies {
                let mut packet = bytes.to_vec();
                if let Some(bit) = arrival.flipped_bit
                    && let Some(byte) = packet.get_mut((bit / 8) as usize)
                {
                    *byte ^= 1 << (bit % 8);
                }
                self.launch(receiver, arrival.due, packet, copy > 0);
            }
        }
    }

    fn launch(&mut self, receiver: usize, due: Instant<Truth>, bytes: Vec<u8>, duplicate: bool) {
        let fits =
            self.flight.len() < FLIGHT_PACKETS_MAX && self.flight_bytes + bytes.len() <= FLIGHT_BYTES_MAX;
        self.channels[receiver].count_launched(fits, duplicate);
        if fits {
            self.flight_bytes += bytes.len();
            self.sequence += 1;
            self.flight.push(Reverse(Flying { due, sequence: self.sequence, receiver, bytes }));
        }
    }

    /// Changes take effect for packets that enter from then on; what is under way is not called back.
    fn follow_script(&mut self, now: Instant<Truth>) {
        while let Some(step) = self.script.get(self.script_next)
            && self.start + step.at <= now
        {
            self.transmitter.change(step.impairments.clone());
            for channel in &mut self.channels {
                channel.change(step.impairments.clone());
            }
            self.script_next += 1;
        }
    }
}
