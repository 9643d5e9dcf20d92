//! A sender of the first BBR (Cardwell et al., "BBR: congestion-based congestion control", CACM 60, 2017) with ideal
//! selective acknowledgement, and its receiver: as a flow that competes.
//!
//! The model: start-up and drain, bandwidth as the maximum over ten round trips, eight gains in turn, the round trip as a
//! minimum over ten seconds with a probe of 200 ms. Segments carry numbers instead of bytes; the flow never ends.

use std::collections::{BTreeMap, VecDeque};

use noctule_prrt::Local;
use noctule_timebase::{Instant, Span};

const SEGMENT_BYTES: usize = 1_500;
const ACKNOWLEDGEMENT_BYTES: usize = 52;
const PAYLOAD_BYTES: u64 = 1_448;
const MARK: u8 = 0xbb;
/// 2 / ln 2: doubles what is under way in a round trip.
const STARTUP_GAIN: f64 = 2.885;
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
const WINDOW_GAIN: f64 = 2.0;
const ROUNDS_OF_BANDWIDTH: u64 = 10;
const ROUND_TRIP_WINDOW: Span = Span::from_s(10);
const PROBE: Span = Span::from_ms(200);
const LEAST_SEGMENTS: f64 = 4.0;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    Startup,
    Drain,
    Cruise { place: usize, since: Instant<Local> },
    ProbeRoundTrip { until: Instant<Local> },
}

struct Sent {
    at: Instant<Local>,
    delivered: u64,
    delivered_at: Instant<Local>,
}

/// One side of the flow.
pub struct Bbr {
    is_sender: bool,
    from: Instant<Local>,
    next: u64,
    in_flight: BTreeMap<u64, Sent>,
    delivered: u64,
    delivered_at: Instant<Local>,
    round: u64,
    round_ends_at: u64,
    /// Segments a second, by round.
    bandwidth: VecDeque<(u64, f64)>,
    full: (f64, u32),
    floor: (Span, Instant<Local>),
    phase: Phase,
    send_at: Instant<Local>,
    heard_at: Instant<Local>,
    acknowledgements: VecDeque<u64>,
    received: u64,
}

/// A segment's number and whether it is an acknowledgement.
pub fn read(bytes: &[u8]) -> Option<(u64, bool)> {
    let number = bytes.get(1..9).filter(|_| bytes[0] == MARK)?.try_into().ok()?;
    Some((u64::from_le_bytes(number), bytes.len() == ACKNOWLEDGEMENT_BYTES))
}

fn write(number: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    bytes[0] = MARK;
    bytes[1..9].copy_from_slice(&number.to_le_bytes());
    bytes
}

impl Bbr {
    pub fn new(is_sender: bool, from: Instant<Local>) -> Bbr {
        Bbr {
            is_sender,
            from,
            next: 0,
            in_flight: BTreeMap::new(),
            delivered: 0,
            delivered_at: from,
            round: 0,
            round_ends_at: 0,
            bandwidth: VecDeque::new(),
            full: (0.0, 0),
            floor: (Span::from_s(10), from),
            phase: Phase::Startup,
            send_at: from,
            heard_at: from,
            acknowledgements: VecDeque::new(),
            received: 0,
        }
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
        self.delivered += 1;
        self.delivered_at = now;
        if let Some(sent) = self.in_flight.remove(&number) {
            self.sample(&sent, now);
        }
        // Lost for three overtaking it; the model does not slow down for that.
        let overtaken: Vec<u64> = self.in_flight.range(..number.saturating_sub(2)).map(|(n, _)| *n).collect();
        for number in overtaken {
            self.in_flight.remove(&number);
        }
        self.go_on(now);
    }

    fn sample(&mut self, sent: &Sent, now: Instant<Local>) {
        let round_trip = now - sent.at;
        let (floor, since) = self.floor;
        if round_trip <= floor || now - since > ROUND_TRIP_WINDOW {
            let is_old = now - since > ROUND_TRIP_WINDOW && round_trip > floor;
            self.floor = (round_trip, now);
            if is_old && matches!(self.phase, Phase::Cruise { .. }) {
                self.phase = Phase::ProbeRoundTrip { until: now + PROBE };
            }
        }
        if sent.delivered >= self.round_ends_at {
            (self.round, self.round_ends_at) = (self.round + 1, self.delivered);
            self.judge_start();
        }
        let rate = (self.delivered - sent.delivered) as f64 / (now - sent.delivered_at).as_s_f64().max(1e-6);
        self.bandwidth.push_back((self.round, rate));
        let oldest = self.round.saturating_sub(ROUNDS_OF_BANDWIDTH);
        self.bandwidth.retain(|(round, seen)| *round >= oldest && (*seen > rate || *round == self.round));
        if self.bandwidth.len() > 64 {
            let most = self.bottleneck();
            self.bandwidth.retain(|(_, seen)| *seen >= most);
        }
    }

    /// Three rounds without a quarter more: the pipe is full.
    fn judge_start(&mut self) {
        let (most, bottleneck) = (self.full.0, self.bottleneck());
        self.full = if bottleneck > most * 1.25 { (bottleneck, 0) } else { (most, self.full.1 + 1) };
        if self.phase == Phase::Startup && self.full.1 >= 3 {
            self.phase = Phase::Drain;
        }
    }

    fn go_on(&mut self, now: Instant<Local>) {
        let under_way = self.in_flight.len() as f64;
        let product = self.product();
        match self.phase {
            Phase::Drain if under_way <= product => self.phase = Phase::Cruise { place: 2, since: now },
            Phase::Cruise { place, since } => {
                let is_over = now - since >= self.floor.0;
                let drained = CYCLE[place] < 1.0 && under_way <= product;
                if is_over || drained {
                    self.phase = Phase::Cruise { place: (place + 1) % CYCLE.len(), since: now };
                }
            }
            Phase::ProbeRoundTrip { until } if now >= until => {
                self.phase = Phase::Cruise { place: 2, since: now };
            }
            _ => {}
        }
    }

    fn bottleneck(&self) -> f64 {
        self.bandwidth.iter().map(|(_, rate)| *rate).fold(0.0, f64::max)
    }

    /// Segments that fill the way.
    fn product(&self) -> f64 {
        self.bottleneck() * self.floor.0.as_s_f64()
    }

    fn window(&self) -> f64 {
        match self.phase {
            Phase::ProbeRoundTrip { .. } => LEAST_SEGMENTS,
            _ if self.bandwidth.is_empty() => 10.0,
            Phase::Startup | Phase::Drain => (STARTUP_GAIN * self.product()).max(10.0),
            Phase::Cruise { .. } => (WINDOW_GAIN * self.product()).max(LEAST_SEGMENTS),
        }
    }

    fn pause(&self) -> Span {
        let gain = match self.phase {
            Phase::Startup => STARTUP_GAIN,
            Phase::Drain => 1.0 / STARTUP_GAIN,
            Phase::Cruise { place, .. } => CYCLE[place],
            Phase::ProbeRoundTrip { .. } => 1.0,
        };
        let rate = self.bottleneck() * gain;
        if rate > 0.0 { Span::from_ns((1e9 / rate) as i64) } else { Span::from_ms(1) }
    }

    pub fn poll_timeout(&self) -> Option<Instant<Local>> {
        if !self.is_sender {
            return None;
        }
        let may_send = (self.in_flight.len() as f64) < self.window();
        let silent =
            (!self.in_flight.is_empty()).then(|| self.heard_at + self.floor.0 * 2 + Span::from_ms(200));
        may_send.then_some(self.send_at).into_iter().chain(silent).min()
    }

    pub fn handle_timeout(&mut self, now: Instant<Local>) {
        if !self.in_flight.is_empty() && now >= self.heard_at + self.floor.0 * 2 + Span::from_ms(200) {
            self.in_flight.clear();
            self.heard_at = now;
        }
    }

    pub fn poll_transmit(&mut self, now: Instant<Local>) -> Option<Vec<u8>> {
        if let Some(number) = self.acknowledgements.pop_front() {
            return Some(write(number, ACKNOWLEDGEMENT_BYTES));
        }
        if !self.is_sender || now < self.send_at || self.in_flight.len() as f64 >= self.window() {
            return None;
        }
        if self.in_flight.is_empty() {
            (self.heard_at, self.delivered_at) = (now, now);
        }
        let sent = Sent { at: now, delivered: self.delivered, delivered_at: self.delivered_at };
        self.in_flight.insert(self.next, sent);
        self.next += 1;
        self.send_at = self.send_at.max(now) + self.pause();
        Some(write(self.next - 1, SEGMENT_BYTES))
    }
}
