//! One shared medium: stations that contend for a Wi-Fi channel, collide, and do not all hear each other.
//!
//! # Problem
//!
//! A [`Network`](crate::network::Network) gives each node a transmitter of its own. A hundred drones have one channel
//! together: a frame of one costs all others time, two at once destroy each other, and a node that is far away neither hears
//! nor defers.
//!
//! # Approach
//!
//! The distributed coordination function of IEEE 802.11 as a state machine: frames and positions in, receptions out.
//! A broadcast has one attempt after DIFS and a backoff of 0 to 15 slots (31 for 802.11b), and no acknowledgement. A unicast
//! frame is acknowledged after SIFS, and retransmitted with a doubled window up to a limit. Which frame is received is decided at
//! the end of a frame by the ratio of its level to noise and to all frames that overlapped it (`radio`), so
//! capture and hidden nodes follow and are not put in. Each station senses only what reaches it.
//!
//! Left out: propagation time, EIFS, NAV, RTS/CTS, rate adaptation, the immediate access of the first frame after a
//! long pause (every frame draws a backoff), and the post-backoff of a queue that has become empty.
//!
//! Drain order: after each `handle_*` and when [`Air::poll_timeout`] has come, [`Air::poll_reception`] until `None`.
//! Equal seeds and equal calls give equal receptions.

mod radio;
mod rate;
mod station;

pub use radio::{Bursts, NOISE_DBM, RadioSpec};
pub use rate::{ACK_BYTES, Band, HEADERS_BYTES, Rate};

use std::collections::VecDeque;
use std::sync::Arc;

use noctule_timebase::{Instant, Span};

use crate::Truth;
use crate::random::Random;
use radio::{Fate, Powers, Radio};
use station::{Phase, Station};

/// Most stations of one medium: the tables of pairs grow with the square.
pub const STATIONS_MAX: usize = 4_096;

/// Parameters of the medium.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AirSpec {
    /// Band, and with it slot and spaces.
    pub band: Band,
    /// Rate of frames to all.
    pub multicast_rate: Rate,
    /// Rate of frames to one.
    pub unicast_rate: Rate,
    /// Signals.
    pub radio: RadioSpec,
    /// Frames a station keeps; more are dropped and counted.
    pub queue_frames: usize,
    /// A frame to all replaces one of the same station that still waits.
    pub newest_wins: bool,
    /// Attempts after the first of a frame to one; 802.11 has 7.
    pub retries_max: u32,
    /// Largest window of the backoff, slots; 802.11 has 1023.
    pub window_max: u32,
}

impl Default for AirSpec {
    /// 5 GHz, multicast at 24 Mb/s, unicast at 54, 64 frames, 7 retries.
    fn default() -> AirSpec {
        AirSpec {
            band: Band::Ghz5,
            multicast_rate: Rate::Mbps24,
            unicast_rate: Rate::Mbps54,
            radio: RadioSpec::default(),
            queue_frames: 64,
            newest_wins: false,
            retries_max: 7,
            window_max: 1_023,
        }
    }
}

/// To which stations a frame goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receivers {
    /// All, without acknowledgement.
    All,
    /// One, acknowledged.
    One(usize),
}

/// Frame that a station has to send.
#[derive(Clone, Debug)]
pub struct Frame {
    /// To which stations.
    pub to: Receivers,
    /// Length with the header and check sequence of the MAC.
    pub mac_bytes: u32,
    /// Content.
    pub bytes: Arc<[u8]>,
}

impl Frame {
    /// A UDP payload with all its headers.
    pub fn of_payload(to: Receivers, payload: Arc<[u8]>) -> Frame {
        Frame { to, mac_bytes: payload.len() as u32 + HEADERS_BYTES, bytes: payload }
    }
}

/// A frame that a station has received.
#[derive(Clone, Debug)]
pub struct Reception {
    /// When its last symbol arrived.
    pub at: Instant<Truth>,
    /// Sending station.
    pub from: usize,
    /// Receiving station.
    pub to: usize,
    /// Content.
    pub bytes: Arc<[u8]>,
}

/// Counters of the medium.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AirCounters {
    /// Frames sent, attempts counted one by one, without acknowledgements.
    pub sent: u64,
    /// Bytes of those, MAC headers and check sequences included.
    pub sent_bytes: u64,
    /// Receptions.
    pub received: u64,
    /// Frames that did not reach a station because they were too weak there.
    pub weak: u64,
    /// Frames that a station would have received without other transmissions, its own included.
    pub collided: u64,
    /// Frames lost in a burst.
    pub burst: u64,
    /// Attempts after the first.
    pub retried: u64,
    /// Frames to one given up after the last retry.
    pub given_up: u64,
    /// Frames a newer one replaced before they were sent.
    pub superseded: u64,
    /// Frames dropped because a queue was full.
    pub queue_full: u64,
    /// Sum of the durations of all transmissions, acknowledgements included.
    pub airtime_ns: u64,
    /// Time in which there was at least one transmission.
    pub busy_ns: u64,
}

/// A shared medium and its stations.
#[derive(Debug)]
pub struct Air {
    spec: AirSpec,
    radio: Radio,
    stations: Vec<Station>,
    /// Stations that count down.
    contenders: Vec<usize>,
    /// Stations that wait for an acknowledgement.
    awaiting: Vec<usize>,
    acknowledgements: Vec<Owed>,
    transmissions: Vec<Transmission>,
    receptions: VecDeque<Reception>,
    backoff: Random,
    powers: Powers,
    busy_since: Instant<Truth>,
    counters: AirCounters,
}

/// Mean level of a transmission at each station, dBm.
type Levels = Arc<[f32]>;

/// An acknowledgement to be sent.
#[derive(Clone, Copy, Debug)]
struct Owed {
    at: Instant<Truth>,
    from: usize,
    to: usize,
}

#[derive(Debug)]
struct Transmission {
    from: usize,
    end: Instant<Truth>,
    content: Content,
    levels_dbm: Levels,
    /// Others that were on the air at some time of this one.
    overlaps: Vec<(usize, Levels)>,
}

#[derive(Debug)]
enum Content {
    Frame(Frame),
    Acknowledgement { to: usize },
}

impl Air {
    /// `stations` of them, at most [`STATIONS_MAX`], all at the origin, at time zero.
    ///
    /// # Panics
    /// If there are more.
    pub fn new(spec: AirSpec, stations: usize, seed: u64) -> Air {
        assert!(stations <= STATIONS_MAX, "{stations} stations; at most {STATIONS_MAX}");
        Air {
            spec,
            radio: Radio::new(spec.radio, spec.band, stations, seed),
            stations: (0..stations).map(|_| Station::new()).collect(),
            contenders: Vec::new(),
            awaiting: Vec::new(),
            acknowledgements: Vec::new(),
            transmissions: Vec::new(),
            receptions: VecDeque::new(),
            backoff: Random::for_part(seed, 4),
            powers: Powers::new(),
            busy_since: Instant::from_ns(0),
            counters: AirCounters::default(),
        }
    }

    /// A station is elsewhere, m. Frames on the air keep the levels they began with.
    pub fn set_position(&mut self, station: usize, position_m: [f64; 3]) {
        self.radio.set_position(station, position_m);
    }

    /// A station wants a frame sent.
    pub fn handle_frame(&mut self, now: Instant<Truth>, from: usize, frame: Frame) {
        self.handle_timeout(now);
        let station = &mut self.stations[from];
        if self.spec.newest_wins && frame.to == Receivers::All && station.replace_waiting(&frame) {
            self.counters.superseded += 1;
            return;
        }
        if station.queue.len() >= self.spec.queue_frames {
            self.counters.queue_full += 1;
            return;
        }
        station.queue.push_back(frame);
        if station.phase == Phase::Idle {
            self.contend(now, from);
        }
    }

    /// Everything due by `now` happens.
    pub fn handle_timeout(&mut self, now: Instant<Truth>) {
        while let Some(at) = self.next_event().filter(|at| *at <= now) {
            self.end_transmissions(at);
            self.start_acknowledgements(at);
            self.give_up_waiting(at);
            self.start_frames(at);
        }
    }

    /// The next frame that was received by `now`.
    pub fn poll_reception(&mut self, now: Instant<Truth>) -> Option<Reception> {
        if self.receptions.is_empty() {
            self.handle_timeout(now);
        }
        self.receptions.pop_front()
    }

    /// When something happens next.
    pub fn poll_timeout(&self) -> Option<Instant<Truth>> {
        match self.receptions.front() {
            Some(reception) => Some(reception.at),
            None => self.next_event(),
        }
    }

    /// Frames a station has not sent yet, the one on the air included.
    pub fn waiting(&self, station: usize) -> usize {
        self.stations[station].queue.len()
    }

    /// How long a station has sensed the medium busy since time zero, its own transmissions included: what a radio's survey
    /// counts. `now` is not before the last [`Self::handle_timeout`].
    pub fn sensed_busy(&self, now: Instant<Truth>, station: usize) -> Span {
        self.stations[station].busy(now)
    }

    /// Counters since the start.
    pub fn counters(&self) -> AirCounters {
        self.counters
    }

    fn next_event(&self) -> Option<Instant<Truth>> {
        let slot = self.spec.band.slot();
        let accesses = self.contenders.iter().filter_map(|&number| self.stations[number].access(slot));
        let ends = self.transmissions.iter().map(|transmission| transmission.end);
        let acknowledgements = self.acknowledgements.iter().map(|owed| owed.at);
        let ack_timeouts = self.awaiting.iter().filter_map(|&number| self.stations[number].ack_timeout());
        accesses.chain(ends).chain(acknowledgements).chain(ack_timeouts).min()
    }

    /// Draws a backoff for the frame at the head of a station's queue, or leaves the station idle.
    fn contend(&mut self, now: Instant<Truth>, number: usize) {
        let station = &mut self.stations[number];
        let Some(frame) = station.queue.front() else {
            station.phase = Phase::Idle;
            return;
        };
        if station.attempts == 0 {
            station.window = match frame.to {
                Receivers::All => self.spec.multicast_rate.least_window(),
                Receivers::One(_) => self.spec.unicast_rate.least_window(),
            };
        }
        station.slots = (self.backoff.bits() % u64::from(station.window + 1)) as u32;
        station.phase = Phase::Frozen;
        if station.sensed == 0 {
            station.resume(now, self.spec.band);
            self.contenders.push(number);
        }
    }

    fn start_frames(&mut self, now: Instant<Truth>) {
        let slot = self.spec.band.slot();
        let due = |station: &Station| station.access(slot).is_some_and(|at| at <= now);
        let starters: Vec<usize> =
            self.contenders.iter().copied().filter(|&number| due(&self.stations[number])).collect();
        if starters.is_empty() {
            return;
        }
        self.contenders.retain(|number| !starters.contains(number));
        for &number in &starters {
            self.stations[number].phase = Phase::Sending;
        }
        for number in starters {
            let Some(frame) = self.stations[number].queue.front().cloned() else { continue };
            self.counters.sent += 1;
            self.counters.sent_bytes += u64::from(frame.mac_bytes);
            self.start(now, number, Content::Frame(frame));
        }
    }

    fn start_acknowledgements(&mut self, now: Instant<Truth>) {
        while let Some(at) = self.acknowledgements.iter().position(|owed| owed.at <= now) {
            let Owed { from, to, .. } = self.acknowledgements.swap_remove(at);
            // A station that did not sense what it received may have begun to send.
            if self.stations[from].phase != Phase::Sending {
                self.start(now, from, Content::Acknowledgement { to });
            }
        }
    }

    fn give_up_waiting(&mut self, now: Instant<Truth>) {
        let late = |station: &Station| station.ack_timeout().is_some_and(|until| until <= now);
        while let Some(at) = self.awaiting.iter().position(|&number| late(&self.stations[number])) {
            let number = self.awaiting.swap_remove(at);
            let station = &mut self.stations[number];
            station.attempts += 1;
            station.window = (2 * station.window + 1).min(self.spec.window_max);
            if station.attempts > self.spec.retries_max {
                self.counters.given_up += 1;
                station.finish();
            } else {
                self.counters.retried += 1;
            }
            self.contend(now, number);
        }
    }

    fn start(&mut self, now: Instant<Truth>, from: usize, content: Content) {
        let (rate, mac_bytes) = self.shape(&content);
        let airtime = rate.airtime(mac_bytes);
        let levels_dbm: Levels = self.radio.levels_dbm(from).into();
        let mut overlaps = Vec::new();
        for other in &mut self.transmissions {
            other.overlaps.push((from, levels_dbm.clone()));
            overlaps.push((other.from, other.levels_dbm.clone()));
        }
        if self.transmissions.is_empty() {
            self.busy_since = now;
        }
        self.counters.airtime_ns += airtime.ns().unsigned_abs();
        let threshold_dbm = self.radio.carrier_sense_dbm() as f32;
        let slot = self.spec.band.slot();
        let mut frozen = false;
        for (number, (station, level_dbm)) in self.stations.iter_mut().zip(levels_dbm.iter()).enumerate() {
            if number == from || *level_dbm >= threshold_dbm {
                station.sense(now);
                frozen |= station.freeze(now, slot);
            }
        }
        if frozen {
            self.contenders.retain(|&number| self.stations[number].access(slot).is_some());
        }
        self.transmissions.push(Transmission { from, end: now + airtime, content, levels_dbm, overlaps });
    }

    fn end_transmissions(&mut self, now: Instant<Truth>) {
        while let Some(at) = self.transmissions.iter().position(|transmission| transmission.end <= now) {
            let ended = self.transmissions.swap_remove(at);
            if self.transmissions.is_empty() {
                self.counters.busy_ns += (now - self.busy_since).ns().unsigned_abs();
            }
            let threshold_dbm = self.radio.carrier_sense_dbm() as f32;
            let levels_dbm = ended.levels_dbm.iter();
            for (number, (station, level_dbm)) in self.stations.iter_mut().zip(levels_dbm).enumerate() {
                if number == ended.from || *level_dbm >= threshold_dbm {
                    station.sensed -= 1;
                    if station.sensed == 0 && station.hear_silence(now, self.spec.band) {
                        self.contenders.push(number);
                    }
                }
            }
            match &ended.content {
                Content::Frame(frame) => self.end_frame(now, &ended, frame),
                Content::Acknowledgement { to } => self.end_acknowledgement(now, &ended, *to),
            }
        }
    }

    fn end_frame(&mut self, now: Instant<Truth>, ended: &Transmission, frame: &Frame) {
        let from = ended.from;
        let least_dbm = self.least_dbm(&ended.content);
        match frame.to {
            Receivers::All => {
                for to in (0..self.stations.len()).filter(|to| *to != from) {
                    if self.is_received(now, ended, (to, least_dbm)) {
                        self.receptions.push_back(Reception {
                            at: now,
                            from,
                            to,
                            bytes: frame.bytes.clone(),
                        });
                    }
                }
                self.stations[from].finish();
                self.contend(now, from);
            }
            Receivers::One(to) => {
                let control = self.spec.unicast_rate.control();
                let band = self.spec.band;
                let ack_timeout = band.sifs() + control.airtime(ACK_BYTES) + band.slot();
                self.stations[from].phase = Phase::Awaiting { until: now + ack_timeout };
                self.awaiting.push(from);
                if to != from && to < self.stations.len() && self.is_received(now, ended, (to, least_dbm)) {
                    self.acknowledgements.push(Owed { at: now + band.sifs(), from: to, to: from });
                    // A repeated frame is acknowledged again and delivered once.
                    if !std::mem::replace(&mut self.stations[from].delivered, true) {
                        self.receptions.push_back(Reception {
                            at: now,
                            from,
                            to,
                            bytes: frame.bytes.clone(),
                        });
                    }
                }
            }
        }
    }

    fn end_acknowledgement(&mut self, now: Instant<Truth>, ended: &Transmission, to: usize) {
        let least_dbm = self.least_dbm(&ended.content);
        if !matches!(self.stations[to].phase, Phase::Awaiting { .. })
            || !self.is_received(now, ended, (to, least_dbm))
        {
            return;
        }
        self.awaiting.retain(|&number| number != to);
        self.stations[to].finish();
        self.contend(now, to);
    }

    /// The level at which a tenth of such frames is lost, dBm.
    fn least_dbm(&self, content: &Content) -> f64 {
        let (rate, mac_bytes) = self.shape(content);
        radio::least_dbm(rate, mac_bytes)
    }

    /// Whether a transmission that ends now reaches a station.
    fn is_received(
        &mut self,
        now: Instant<Truth>,
        ended: &Transmission,
        (to, least_dbm): (usize, f64),
    ) -> bool {
        let level_dbm = f64::from(ended.levels_dbm[to]);
        let mut interference_mw = 0.0;
        for (sender, levels_dbm) in &ended.overlaps {
            // A station hears nothing while it sends.
            interference_mw += match *sender == to {
                true => f64::INFINITY,
                false => self.powers.mw(levels_dbm[to]),
            };
        }
        let fate = self.radio.fate(now, (ended.from, to), least_dbm, (level_dbm, interference_mw));
        let counter = match fate {
            Fate::Received => &mut self.counters.received,
            Fate::Weak => &mut self.counters.weak,
            Fate::Collided => &mut self.counters.collided,
            Fate::Burst => &mut self.counters.burst,
        };
        *counter += 1;
        fate == Fate::Received
    }

    fn shape(&self, content: &Content) -> (Rate, u32) {
        match content {
            Content::Frame(frame) if frame.to == Receivers::All => {
                (self.spec.multicast_rate, frame.mac_bytes)
            }
            Content::Frame(frame) => (self.spec.unicast_rate, frame.mac_bytes),
            Content::Acknowledgement { .. } => (self.spec.unicast_rate.control(), ACK_BYTES),
        }
    }
}

/// Share of the air that `stations` need together for a broadcast of `payload_bytes` at `rate_hz` each, if no two ever
/// collide; more than 1 is impossible.
pub fn broadcast_load(spec: &AirSpec, stations: usize, payload_bytes: u32, rate_hz: f64) -> f64 {
    let access: Span = spec.multicast_rate.access_time(spec.band, payload_bytes);
    stations as f64 * rate_hz * access.as_s_f64()
}

#[cfg(test)]
mod tests;
