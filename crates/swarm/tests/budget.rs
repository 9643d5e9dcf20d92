//! Two groups and a unicast flow on one channel: their sum stays within the budget, rates fall and rise together, and what is
//! received is the newest.

#![allow(clippy::unwrap_used)]

use noctule_netsim::Truth;
use noctule_netsim::air::{Air, AirSpec, Frame, HEADERS_BYTES, RadioSpec, Rate, Receivers};
use noctule_swarm::rate::{PERIOD, RateControl, RateLimits};
use noctule_timebase::{Instant, Span};

/// Stations of the first group and length of its messages, bytes.
const FIRST: (usize, usize) = (20, 80);
/// The same of the second group.
const SECOND: (usize, usize) = (10, 400);
const GROUPS: usize = FIRST.0 + SECOND.0;
/// Sends to the next one.
const UNICAST: usize = GROUPS;
const UNICAST_BYTES: usize = 1_200;
const UNICAST_PERIOD: Span = Span::from_us(1_600);
/// Busy share of the channel that is aimed at.
const TARGET: f64 = 0.4;
const WANTED_HZ: f64 = 100.0;

fn spec() -> AirSpec {
    let radio = RadioSpec { shadowing_db: 0.0, rice_k: None, ..RadioSpec::default() };
    AirSpec { radio, multicast_rate: Rate::Mbps6, newest_wins: true, ..AirSpec::default() }
}

/// All within 10 m of each other.
fn air(spec: AirSpec, stations: usize) -> Air {
    let mut air = Air::new(spec, stations, 7);
    for number in 0..stations {
        let angle = core::f64::consts::TAU * number as f64 / stations as f64;
        air.set_position(number, [5.0 * libm::cos(angle), 5.0 * libm::sin(angle), 0.0]);
    }
    air
}

/// A message with the time at which it was true.
fn message(bytes: usize, now: Instant<Truth>) -> Frame {
    let mut content = vec![0; bytes];
    content[..8].copy_from_slice(&now.ns().to_le_bytes());
    Frame::of_payload(Receivers::All, content.into())
}

fn bytes_of(station: usize) -> usize {
    if station < FIRST.0 { FIRST.1 } else { SECOND.1 }
}

struct Channel {
    air: Air,
    controls: Vec<RateControl>,
    due: Vec<Instant<Truth>>,
    unicast_due: Instant<Truth>,
    now: Instant<Truth>,
    /// Unicast messages that arrived.
    arrived: u64,
}

impl Channel {
    fn new() -> Channel {
        let limits = RateLimits { wanted_hz: WANTED_HZ, least_hz: 1.0, target: TARGET };
        let control = |station| {
            let frame_bytes = bytes_of(station) as u32 + HEADERS_BYTES;
            RateControl::new(limits, spec().multicast_rate.airtime(frame_bytes))
        };
        let start = Instant::from_ns(0);
        Channel {
            air: air(spec(), GROUPS + 2),
            controls: (0..GROUPS).map(control).collect(),
            // Not all at once.
            due: (0..GROUPS).map(|station| start + Span::from_us(997 * station as i64)).collect(),
            unicast_due: start,
            now: start,
            arrived: 0,
        }
    }

    /// Busy share of the channel in each of the seconds that pass.
    fn run(&mut self, seconds: usize, with_unicast: bool) -> Vec<f64> {
        self.unicast_due = self.now;
        (0..seconds).map(|_| self.second(with_unicast)).collect()
    }

    fn second(&mut self, with_unicast: bool) -> f64 {
        let (end, busy_ns) = (self.now + Span::from_s(1), self.air.counters().busy_ns);
        while self.now < end {
            let period_end = self.now + PERIOD;
            while self.now < period_end {
                self.now += Span::from_us(200);
                self.send(with_unicast);
                while let Some(reception) = self.air.poll_reception(self.now) {
                    self.arrived += u64::from(reception.from == UNICAST);
                }
            }
            for (station, control) in self.controls.iter_mut().enumerate() {
                control.handle_period(PERIOD, self.air.sensed_busy(self.now, station));
            }
        }
        (self.air.counters().busy_ns - busy_ns) as f64 / 1e9
    }

    fn send(&mut self, with_unicast: bool) {
        for (station, due) in self.due.iter_mut().enumerate().filter(|(_, due)| **due <= self.now) {
            self.air.handle_frame(self.now, station, message(bytes_of(station), self.now));
            *due += Span::from_ns((1e9 / self.controls[station].rate_hz()) as i64);
        }
        while with_unicast && self.unicast_due <= self.now {
            let content = vec![0; UNICAST_BYTES].into();
            let frame = Frame::of_payload(Receivers::One(UNICAST + 1), content);
            self.air.handle_frame(self.now, UNICAST, frame);
            self.unicast_due += UNICAST_PERIOD;
        }
    }

    /// Least and greatest rate of each group, Hz.
    fn rates_hz(&self) -> [(f64, f64); 2] {
        [&self.controls[..FIRST.0], &self.controls[FIRST.0..]].map(|group| {
            let rates = group.iter().map(RateControl::rate_hz);
            rates.fold((f64::MAX, 0.0_f64), |range, rate| (range.0.min(rate), range.1.max(rate)))
        })
    }
}

#[test]
fn two_groups_and_unicast_stay_within_the_budget_and_rates_fall_and_rise_together() {
    let mut channel = Channel::new();
    let within = |busy: &[f64]| busy.iter().all(|share| *share < TARGET);
    let settled = |channel: &Channel| {
        let rates = channel.rates_hz();
        assert!(rates.iter().all(|(least, most)| *most < 1.15 * least), "{rates:?}");
        rates.map(|(least, most)| 0.5 * (least + most))
    };
    let alone = channel.run(25, false);
    assert!(within(&alone) && alone[24] > 0.6 * TARGET, "{alone:?}");
    let before = settled(&channel);
    assert_eq!(channel.arrived, 0);
    let beside = channel.run(25, true);
    let during = settled(&channel);
    // The first seconds are those in which rates fall.
    assert!(within(&beside[5..]) && beside[24] > 0.6 * TARGET, "{beside:?}");
    assert!(channel.arrived > 15_000, "{} messages", channel.arrived);
    let after_s = channel.run(25, false);
    let after = settled(&channel);
    assert!(within(&after_s), "{after_s:?}");
    for group in 0..2 {
        assert!(before[group] > 1.3 * during[group], "{before:?} {during:?}");
        assert!((after[group] / before[group] - 1.0).abs() < 0.1, "{before:?} {after:?}");
    }
    // Both groups by the same part, although the messages of one are four times as long.
    let falls = [0, 1].map(|group| during[group] / before[group]);
    assert!((falls[0] / falls[1] - 1.0).abs() < 0.1, "{falls:?}");
    assert!(before[0] < WANTED_HZ && during[1] > 1.0, "{before:?} {during:?}");
}

#[test]
fn without_room_the_newest_state_is_sent_where_a_queue_has_only_old_ones() {
    // Ten times 500 Hz are at least three times what the channel carries.
    let greatest_age = |newest_wins: bool| {
        let spec = AirSpec { newest_wins, ..spec() };
        let mut air = air(spec, 10);
        let (mut age, mut receptions) = (Span::ZERO, 0_u64);
        for step in 0..2_500_i64 {
            let now = Instant::from_ns(2_000_000 * step);
            for station in 0..10 {
                air.handle_frame(now, station, message(400, now));
            }
            while let Some(reception) = air.poll_reception(now) {
                let at = i64::from_le_bytes(reception.bytes[..8].try_into().unwrap());
                (age, receptions) = (age.max(reception.at - Instant::from_ns(at)), receptions + 1);
            }
        }
        assert!(receptions > 10_000, "{receptions}");
        (age, air.counters().superseded)
    };
    let ((newest, superseded), (queued, kept)) = (greatest_age(true), greatest_age(false));
    assert!(newest < Span::from_ms(10) && superseded > 1_000, "{newest:?}, {superseded} superseded");
    assert!(queued > Span::from_ms(200) && kept == 0, "{queued:?}");
}
