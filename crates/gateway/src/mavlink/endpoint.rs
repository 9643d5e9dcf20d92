//! One side of a MAVLink link, sans-IO.
//!
//! Behaves as MAVROS does towards an autopilot, or as an autopilot does towards MAVROS: heartbeats once a second,
//! TIMESYNC ten times a second, answers to TIMESYNC and PING, inertial measurements and poses. The
//! exchange of clocks feeds two estimators side by side: MAVROS's own and the bounded one.
//!
//! Drain order after any call: [`Endpoint::poll_event`] until `None`, then [`Endpoint::poll_transmit`] until
//! `false`, with `now` read just before the bytes are written; then wait until [`Endpoint::poll_timeout`].
//!
//! TIMESYNC: a request carries `tc1 = 0` and the asker's time in `ts1`; the reply carries the answerer's
//! time in `tc1` and gives `ts1` back. The answerer's two stamps are one number; the bound holds as before,
//! because that moment lay between arrival and departure. <https://mavlink.io/en/services/timesync.html>

// PING is on its way out of MAVLink, but autopilots still send it and expect an answer.
#![allow(deprecated)]

use std::collections::VecDeque;

use mavlink::dialects::common::{
    HEARTBEAT_DATA, MavAutopilot, MavMessage, MavModeFlag, MavState, MavType, PING_DATA, TIMESYNC_DATA,
};
use mavlink::dialects::dynamic::{DynamicDialect, DynamicMessage};
use mavlink::{MAVLinkV2MessageRaw, MavHeader, Message};
use noctule_time_sync::{
    Bounded, BoundedConfig, Ema, EmaPreset, Estimate, Estimator, Exchange, Local, Remote,
};
use noctule_timebase::{Instant, Span};

use super::frames::{FrameCounters, Frames};

/// Messages that wait to be written; a newer one replaces the oldest.
pub const OUTBOX_MAX: usize = 64;
/// Requests of the clock exchange whose reply may still come.
pub const PENDING_MAX: usize = 16;
/// Events that wait to be taken; the oldest is dropped.
pub const EVENTS_MAX: usize = 256;

/// Time between heartbeats (the protocol's rule).
pub const HEARTBEAT_INTERVAL: Span = Span::from_s(1);
/// Time between requests of the clock exchange (MAVROS's default).
pub const TIMESYNC_INTERVAL: Span = Span::from_ms(100);
/// Silence after which the other side is taken to be gone.
pub const SILENCE_MAX: Span = Span::from_s(5);

/// Our identity towards the other side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A companion computer; the other side is an autopilot.
    Companion,
    /// An autopilot; the other side is a companion computer.
    Autopilot,
}

/// Our identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Our system number; MAVROS and PX4 use 1 for both sides of one vehicle.
    pub system: u8,
    /// Our component number: 1 an autopilot, 191 an onboard computer.
    pub component: u8,
    /// The role of this side.
    pub role: Role,
}

impl Identity {
    /// The companion computer of vehicle 1.
    pub const COMPANION: Identity = Identity { system: 1, component: 191, role: Role::Companion };
    /// The autopilot of vehicle 1.
    pub const AUTOPILOT: Identity = Identity { system: 1, component: 1, role: Role::Autopilot };
}

/// An event of an endpoint.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// Frames of the other side arrive, for the first time or again.
    Found {
        /// Its system number.
        system: u8,
        /// Its component number.
        component: u8,
    },
    /// No frame of it has arrived for [`SILENCE_MAX`].
    Lost,
    /// A message that the endpoint does not answer itself, and when it arrived.
    Message(Box<MavMessage>, Instant<Local>),
    /// A message of the user's own dialect, and when it arrived.
    Custom(Box<DynamicMessage>, Instant<Local>),
}

/// Counters of an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndpointCounters {
    /// Frames written.
    pub sent: u64,
    /// Messages dropped because [`OUTBOX_MAX`] waited.
    pub outbox_full: u64,
    /// Events dropped because [`EVENTS_MAX`] waited.
    pub events_full: u64,
    /// Frames of the other side missing by their numbers.
    pub missed: u64,
    /// Frames whose payload does not fit their message.
    pub malformed: u64,
    /// Replies of the clock exchange without a pending request: late, duplicate or forged.
    pub unexpected_replies: u64,
    /// Exchanges that gave a measurement.
    pub exchanges: u64,
}

/// The other side, once a frame of it has arrived.
#[derive(Clone, Copy, Debug)]
struct Peer {
    system: u8,
    component: u8,
    heard: Instant<Local>,
    next_sequence: u8,
}

/// One side of a MAVLink link: frames and the time in, frames and messages out.
#[derive(Debug)]
pub struct Endpoint {
    identity: Identity,
    frames: Frames,
    peer: Option<Peer>,
    sequence: u8,
    outbox: VecDeque<MavMessage>,
    events: VecDeque<Event>,
    exchanges: VecDeque<Exchange>,
    next_heartbeat: Instant<Local>,
    next_timesync: Instant<Local>,
    /// Our times in requests that may still be answered, oldest first.
    pending: VecDeque<i64>,
    bounded: Bounded,
    ema: Ema,
    counters: EndpointCounters,
}

impl Endpoint {
    /// An endpoint that has received nothing; `custom` is a dialect of the user's own.
    pub fn new(identity: Identity, custom: Option<DynamicDialect>, now: Instant<Local>) -> Endpoint {
        Endpoint {
            identity,
            frames: Frames::new(custom),
            peer: None,
            sequence: 0,
            outbox: VecDeque::new(),
            events: VecDeque::new(),
            exchanges: VecDeque::new(),
            next_heartbeat: now,
            next_timesync: now,
            pending: VecDeque::new(),
            bounded: Bounded::new(BoundedConfig::default()),
            ema: Ema::new(EmaPreset::Mavros),
            counters: EndpointCounters::default(),
        }
    }

    /// Bytes that arrived at `arrived`: the moment of the first of them.
    pub fn handle_bytes(&mut self, bytes: &[u8], arrived: Instant<Local>) {
        self.frames.handle_bytes(bytes);
        while let Some(frame) = self.frames.poll_frame() {
            if !self.note_sender(frame.system, frame.component, frame.sequence, arrived) {
                continue;
            }
            match MavMessage::parse(frame.version, frame.message_id, &frame.payload) {
                Ok(message) => self.handle_message(message, arrived),
                Err(_) => match self.frames.custom_message(&frame) {
                    Some(message) => self.push_event(Event::Custom(Box::new(message), arrived)),
                    None => self.counters.malformed += 1,
                },
            }
        }
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Instant<Local>) {
        if self.peer.is_some_and(|peer| now - peer.heard >= SILENCE_MAX) {
            self.peer = None;
            self.pending.clear();
            self.push_event(Event::Lost);
        }
    }

    /// Sends a message when its turn comes.
    pub fn send(&mut self, message: MavMessage) {
        if self.outbox.len() == OUTBOX_MAX {
            self.outbox.pop_front();
            self.counters.outbox_full += 1;
        }
        self.outbox.push_back(message);
    }

    /// The next thing that has happened.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// The next completed exchange of clocks, for estimators of the caller's own; the last
    /// [`PENDING_MAX`] are kept.
    pub fn poll_exchange(&mut self) -> Option<Exchange> {
        self.exchanges.pop_front()
    }

    /// Appends the next frame to `out`; `now` goes into it where the frame carries a time.
    pub fn poll_transmit(&mut self, now: Instant<Local>, out: &mut Vec<u8>) -> bool {
        let message = if let Some(message) = self.outbox.pop_front() {
            message
        } else if now >= self.next_heartbeat {
            self.next_heartbeat = next(self.next_heartbeat, HEARTBEAT_INTERVAL, now);
            self.heartbeat()
        } else if self.peer.is_some() && now >= self.next_timesync {
            self.next_timesync = next(self.next_timesync, TIMESYNC_INTERVAL, now);
            self.request(now)
        } else {
            return false;
        };
        let header = MavHeader {
            system_id: self.identity.system.into(),
            component_id: self.identity.component,
            sequence: self.sequence,
        };
        self.sequence = self.sequence.wrapping_add(1);
        let mut raw = MAVLinkV2MessageRaw::new();
        raw.serialize_message(header, &message);
        out.extend_from_slice(raw.raw_bytes());
        self.counters.sent += 1;
        true
    }

    /// When to call [`Endpoint::handle_timeout`] and [`Endpoint::poll_transmit`] at the latest.
    pub fn poll_timeout(&self) -> Instant<Local> {
        match &self.peer {
            Some(peer) => self.next_heartbeat.min(self.next_timesync).min(peer.heard + SILENCE_MAX),
            None => self.next_heartbeat,
        }
    }

    /// The estimate of the other side's clock, by the bounded estimator.
    pub fn clock(&self, now: Instant<Local>) -> Option<Estimate> {
        self.bounded.estimate(now)
    }

    /// The same by MAVROS's filter.
    pub fn mavros_clock(&self, now: Instant<Local>) -> Option<Estimate> {
        self.ema.estimate(now)
    }

    /// System and component of the other side, while its frames arrive.
    pub fn peer(&self) -> Option<(u8, u8)> {
        self.peer.map(|peer| (peer.system, peer.component))
    }

    /// Counters of messages and frames so far.
    pub fn counters(&self) -> (EndpointCounters, FrameCounters) {
        (self.counters, self.frames.counters())
    }

    /// Notes that a frame came; false if it is none of the other side's.
    fn note_sender(&mut self, system: u8, component: u8, sequence: u8, arrived: Instant<Local>) -> bool {
        if (system, component) == (self.identity.system, self.identity.component) {
            return false;
        }
        match &mut self.peer {
            Some(peer) if (peer.system, peer.component) == (system, component) => {
                self.counters.missed += u64::from(sequence.wrapping_sub(peer.next_sequence));
                peer.heard = arrived;
                peer.next_sequence = sequence.wrapping_add(1);
            }
            // A gimbal or a ground station on the same line: received, but not our partner.
            Some(_) => {}
            None if is_wanted(self.identity.role, component) => {
                let next_sequence = sequence.wrapping_add(1);
                self.peer = Some(Peer { system, component, heard: arrived, next_sequence });
                self.next_timesync = arrived;
                self.push_event(Event::Found { system, component });
            }
            None => {}
        }
        true
    }

    fn handle_message(&mut self, message: MavMessage, arrived: Instant<Local>) {
        match message {
            MavMessage::TIMESYNC(sync) if !self.is_for_us(sync.target_system, sync.target_component) => {}
            MavMessage::TIMESYNC(sync) if sync.tc1 == 0 => {
                let reply = TIMESYNC_DATA { tc1: arrived.ns(), ts1: sync.ts1, ..Default::default() };
                self.send(MavMessage::TIMESYNC(reply));
            }
            MavMessage::TIMESYNC(sync) => self.handle_reply(&sync, arrived),
            // A request is addressed to no system in particular (0); its answer names the requester.
            MavMessage::PING(ping) if ping.target_system == 0 && ping.target_component == 0 => {
                if let Some((target_system, target_component)) = self.peer() {
                    self.send(MavMessage::PING(PING_DATA { target_system, target_component, ..ping }));
                }
            }
            message => self.push_event(Event::Message(Box::new(message), arrived)),
        }
    }

    fn is_for_us(&self, system: u8, component: u8) -> bool {
        (system == 0 || system == self.identity.system)
            && (component == 0 || component == self.identity.component)
    }

    fn handle_reply(&mut self, sync: &TIMESYNC_DATA, arrived: Instant<Local>) {
        let Some(place) = self.pending.iter().position(|asked_ns| *asked_ns == sync.ts1) else {
            self.counters.unexpected_replies += 1;
            return;
        };
        self.pending.remove(place);
        let answered = Instant::<Remote>::from_ns(sync.tc1);
        let exchange = Exchange { t1: Instant::from_ns(sync.ts1), t2: answered, t3: answered, t4: arrived };
        // The filter refuses much; the bounded estimator's word counts.
        let _ = self.ema.handle_exchange(&exchange);
        self.counters.exchanges += u64::from(self.bounded.handle_exchange(&exchange).is_ok());
        if self.exchanges.len() == PENDING_MAX {
            self.exchanges.pop_front();
        }
        self.exchanges.push_back(exchange);
    }

    fn request(&mut self, now: Instant<Local>) -> MavMessage {
        if self.pending.len() == PENDING_MAX {
            self.pending.pop_front();
        }
        self.pending.push_back(now.ns());
        MavMessage::TIMESYNC(TIMESYNC_DATA { tc1: 0, ts1: now.ns(), ..Default::default() })
    }

    fn heartbeat(&self) -> MavMessage {
        let (mavtype, autopilot) = match self.identity.role {
            Role::Companion => (MavType::MAV_TYPE_ONBOARD_CONTROLLER, MavAutopilot::MAV_AUTOPILOT_INVALID),
            Role::Autopilot => (MavType::MAV_TYPE_QUADROTOR, MavAutopilot::MAV_AUTOPILOT_GENERIC),
        };
        MavMessage::HEARTBEAT(HEARTBEAT_DATA {
            custom_mode: 0,
            mavtype,
            autopilot,
            base_mode: MavModeFlag::empty(),
            system_status: MavState::MAV_STATE_ACTIVE,
            mavlink_version: 3,
        })
    }

    fn push_event(&mut self, event: Event) {
        if self.events.len() == EVENTS_MAX {
            self.events.pop_front();
            self.counters.events_full += 1;
        }
        self.events.push_back(event);
    }
}

/// Whether a component of this number is our partner.
fn is_wanted(role: Role, component: u8) -> bool {
    const AUTOPILOT: u8 = 1;
    match role {
        Role::Companion => component == AUTOPILOT,
        Role::Autopilot => component != AUTOPILOT,
    }
}

/// The next time on a schedule, without catching up on what was slept through.
fn next(scheduled: Instant<Local>, interval: Span, now: Instant<Local>) -> Instant<Local> {
    (scheduled + interval).max(now + Span::from_ns(interval.ns() / 2))
}

#[cfg(test)]
mod tests;
