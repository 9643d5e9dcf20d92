#![allow(clippy::unwrap_used)]

use mavlink::dialects::common::HIGHRES_IMU_DATA;
use noctule_netsim::{Delay, Random};

use super::*;

/// Bytes on the line.
struct Flight {
    to_companion: bool,
    arrives_ns: i64,
    bytes: Vec<u8>,
}

/// An autopilot's and a companion's endpoint with a line between; the autopilot's clock is ahead.
struct Line {
    companion: Endpoint,
    autopilot: Endpoint,
    ahead: Span,
    random: Random,
    on_the_way: Vec<Flight>,
    now_ns: i64,
    loss: f64,
}

impl Line {
    fn new(ahead: Span, loss: f64, seed: u64) -> Line {
        let now_ns = 1_000;
        Line {
            companion: Endpoint::new(Identity::COMPANION, None, Instant::from_ns(now_ns)),
            autopilot: Endpoint::new(Identity::AUTOPILOT, None, Instant::from_ns(now_ns) + ahead),
            ahead,
            random: Random::new(seed),
            on_the_way: Vec::new(),
            now_ns,
            loss,
        }
    }

    /// Runs until `end_ns`, event by event.
    fn run(&mut self, end_ns: i64) -> Vec<Event> {
        const DELAY: Delay =
            Delay { least_us: 700.0, jitter_us: 80.0, queue: noctule_netsim::delay::Queue::Empty };
        let mut events = Vec::new();
        while self.now_ns < end_ns {
            for to_companion in [false, true] {
                let (from, offset) = if to_companion {
                    (&mut self.autopilot, self.ahead)
                } else {
                    (&mut self.companion, Span::ZERO)
                };
                let now = Instant::from_ns(self.now_ns) + offset;
                from.handle_timeout(now);
                let mut bytes = Vec::new();
                while from.poll_transmit(now, &mut bytes) {}
                let arrives_ns = self.now_ns + DELAY.draw(&mut self.random).ns();
                if !bytes.is_empty() && !self.random.chance(self.loss) {
                    self.on_the_way.push(Flight { to_companion, arrives_ns, bytes });
                }
            }
            let soonest = self.on_the_way.iter().map(|flight| flight.arrives_ns).min().unwrap_or(i64::MAX);
            let timeouts = self.companion.poll_timeout().min(self.autopilot.poll_timeout() - self.ahead);
            self.now_ns = soonest.min(timeouts.ns()).max(self.now_ns + 1);
            let now_ns = self.now_ns;
            for flight in self.on_the_way.extract_if(.., |flight| flight.arrives_ns <= now_ns) {
                let arrived = Instant::from_ns(flight.arrives_ns);
                if flight.to_companion {
                    self.companion.handle_bytes(&flight.bytes, arrived);
                } else {
                    self.autopilot.handle_bytes(&flight.bytes, arrived + self.ahead);
                }
            }
            events.extend(std::iter::from_fn(|| self.companion.poll_event()));
        }
        events
    }
}

#[test]
fn two_endpoints_find_each_other_and_learn_each_others_clock_with_a_bound_that_holds() {
    for seed in 0..5 {
        let ahead = Span::from_s(1_234) + Span::from_ns(567);
        let mut line = Line::new(ahead, 0.2, seed);
        let events = line.run(20_000_000_000);
        assert!(events.contains(&Event::Found { system: 1, component: 1 }), "seed {seed}");
        let now = Instant::from_ns(line.now_ns);
        let known = line.companion.clock(now).unwrap();
        let error = (known.offset - ahead).abs();
        assert!(error <= known.bound.unwrap() && error < Span::from_us(100), "{known:?}, seed {seed}");
        let other = line.autopilot.clock(now + ahead).unwrap();
        assert!((other.offset + ahead).abs() <= other.bound.unwrap(), "{other:?}, seed {seed}");
        let counted = line.companion.counters().0;
        assert!(counted.exchanges > 80 && counted.missed > 0, "{counted:?}, seed {seed}");
    }
}

#[test]
fn a_message_arrives_whole_with_the_time_of_its_arrival() {
    let mut line = Line::new(Span::ZERO, 0.0, 1);
    line.run(2_000_000_000);
    let imu = HIGHRES_IMU_DATA { time_usec: 77, xacc: 1.5, ..Default::default() };
    line.autopilot.send(MavMessage::HIGHRES_IMU(imu.clone()));
    let events = line.run(3_000_000_000);
    let arrived = events.iter().find_map(|event| match event {
        Event::Message(message, at) => (**message == MavMessage::HIGHRES_IMU(imu.clone())).then_some(at.ns()),
        _ => None,
    });
    assert!(arrived.unwrap() > 2_000_700_000);
}

#[test]
fn silence_is_noticed_and_the_way_back_too() {
    let mut line = Line::new(Span::ZERO, 0.0, 1);
    line.run(3_000_000_000);
    line.loss = 1.0;
    let events = line.run(12_000_000_000);
    assert_eq!(events.iter().filter(|event| **event == Event::Lost).count(), 1);
    line.loss = 0.0;
    assert!(line.run(14_000_000_000).contains(&Event::Found { system: 1, component: 1 }));
}

#[test]
fn a_reply_that_nobody_asked_for_changes_nothing() {
    let mut endpoint = Endpoint::new(Identity::COMPANION, None, Instant::from_ns(0));
    let mut forger = Endpoint::new(Identity::AUTOPILOT, None, Instant::from_ns(0));
    forger.send(MavMessage::TIMESYNC(TIMESYNC_DATA { tc1: 5, ts1: 6, ..Default::default() }));
    let mut bytes = Vec::new();
    assert!(forger.poll_transmit(Instant::from_ns(0), &mut bytes));
    endpoint.handle_bytes(&bytes, Instant::from_ns(10));
    assert_eq!(endpoint.counters().0.unexpected_replies, 1);
    assert!(endpoint.clock(Instant::from_ns(10)).is_none());
}

#[test]
fn a_ping_is_answered_to_its_sender() {
    let mut companion = Endpoint::new(Identity::COMPANION, None, Instant::from_ns(0));
    let mut autopilot = Endpoint::new(Identity::AUTOPILOT, None, Instant::from_ns(0));
    autopilot.send(MavMessage::PING(PING_DATA { time_usec: 3, seq: 4, ..Default::default() }));
    let mut bytes = Vec::new();
    autopilot.poll_transmit(Instant::from_ns(0), &mut bytes);
    companion.handle_bytes(&bytes, Instant::from_ns(0));
    bytes.clear();
    companion.poll_transmit(Instant::from_ns(0), &mut bytes);
    autopilot.handle_bytes(&bytes, Instant::from_ns(0));
    let answer = PING_DATA { time_usec: 3, seq: 4, target_system: 1, target_component: 1 };
    let events: Vec<_> = std::iter::from_fn(|| autopilot.poll_event()).collect();
    assert!(events.contains(&Event::Message(Box::new(MavMessage::PING(answer)), Instant::from_ns(0))));
}

#[test]
fn queues_are_bounded_and_the_newest_wins() {
    let mut endpoint = Endpoint::new(Identity::COMPANION, None, Instant::from_ns(0));
    for seq in 0..OUTBOX_MAX as u32 + 5 {
        endpoint.send(MavMessage::PING(PING_DATA { seq, ..Default::default() }));
    }
    assert_eq!((endpoint.outbox.len(), endpoint.counters().0.outbox_full), (OUTBOX_MAX, 5));
    assert!(matches!(endpoint.outbox.front(), Some(MavMessage::PING(ping)) if ping.seq == 5));
}
