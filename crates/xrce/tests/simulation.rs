//! An agent and a client that behaves as eProsima's does, joined by a network that loses, copies, delays
//! and reorders, while the client restarts now and then. Everything follows from a seed, which is printed.
//!
//! The client publishes numbers reliably and subscribes to the same topic reliably; the test takes the part of the
//! bus and hands back what was published. `NOCTULE_XRCE_MESSAGES` makes it longer; one seed again:
//! `cargo xtask sim xrce --seed N`.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod model_client;

use std::collections::BTreeMap;
use std::num::NonZeroU16;

use model_client::ModelClient;
use noctule_proto_kit::SplitMix64;
use noctule_timebase::{Instant, Span};
use noctule_xrce::{
    Agent, AgentConfig, ClientAddress, Direction, EndpointId, Event, Local, References, Sample, Stamp,
};

/// Impairments of the network, and rate of restarts.
#[derive(Clone, Copy)]
struct Weather {
    lost_per_mille: u64,
    copied_per_mille: u64,
    delay_us_max: u64,
    restart_per_million: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum To {
    Agent,
    Client,
}

/// When something arrives, and its number.
type Arrival = (Instant<Local>, u64);

struct World {
    agent: Agent,
    client: ModelClient,
    random: SplitMix64,
    weather: Weather,
    now: Instant<Local>,
    on_the_way: BTreeMap<Arrival, (To, Vec<u8>)>,
    sent: u64,
    reader: Option<EndpointId>,
    /// The last number published in this life of the client.
    published: Option<u32>,
    messages: u64,
    restarts: u64,
    echoed: u64,
}

const HERE: ClientAddress = ClientAddress::Serial(1);

impl World {
    fn new(seed: u64, weather: Weather, history: u16) -> World {
        World::with(AgentConfig::default(), seed, weather, history)
    }

    fn with(config: AgentConfig, seed: u64, weather: Weather, history: u16) -> World {
        World {
            agent: Agent::new(config, References::default()),
            client: ModelClient::new(history, Instant::from_ns(0)),
            random: SplitMix64::new(seed),
            weather,
            now: Instant::from_ns(0),
            on_the_way: BTreeMap::new(),
            sent: 0,
            reader: None,
            published: None,
            messages: 0,
            restarts: 0,
            echoed: 0,
        }
    }

    fn send(&mut self, to: To, message: &[u8]) {
        let copies = match self.random.below(1000) {
            roll if roll < self.weather.lost_per_mille => 0,
            roll if roll < self.weather.lost_per_mille + self.weather.copied_per_mille => 2,
            _ => 1,
        };
        for _ in 0..copies {
            let delay = 200 + self.random.below(self.weather.delay_us_max);
            self.sent += 1;
            let at = self.now + Span::from_us(delay as i64);
            self.on_the_way.insert((at, self.sent), (to, message.to_vec()));
        }
    }

    fn drain(&mut self) {
        loop {
            while let Some(event) = self.agent.poll_event() {
                match event {
                    Event::Opened(endpoint) if endpoint.direction == Direction::Read => {
                        self.reader = Some(endpoint.id)
                    }
                    Event::Published { sample, .. } => {
                        let number = u32::from_le_bytes(sample.body[..4].try_into().unwrap());
                        let next = self.published.map_or(0, |last| last + 1);
                        assert_eq!(number, next, "a reliable stream is in order, without gap and copy");
                        self.published = Some(number);
                        self.hand_back(sample);
                    }
                    _ => {}
                }
            }
            let mut message = Vec::new();
            let Some(transmit) = self.agent.poll_transmit(self.now, &mut message) else { break };
            assert!(transmit.to == HERE && message.len() <= usize::from(model_client::MESSAGE_BYTES_MAX));
            self.send(To::Client, &message);
        }
        while let Some(message) = self.client.poll_transmit(self.now) {
            self.send(To::Agent, &message);
        }
    }

    fn hand_back(&mut self, sample: Sample) {
        self.echoed += 1;
        if let Some(reader) = self.reader {
            self.agent.handle_sample(reader, sample, self.now);
        }
    }

    /// Until the client has published `count` numbers in all its lives, and the last life all of its own.
    fn run(&mut self, count: u64) {
        let mut steps = 0u64;
        while self.messages < count || !self.client.is_done() {
            steps += 1;
            assert!(steps < 400 * (count + 500), "{}", self.client.describe());
            self.drain();
            if self.random.below(1_000_000) < self.weather.restart_per_million && self.messages < count {
                self.client = self.client.restarted(self.now);
                self.published = None;
                self.restarts += 1;
                // Messages of its life before do not come after those of now: a board takes
                // longer to start than the network keeps a message.
                self.on_the_way.retain(|_, (to, _)| *to == To::Client);
            }
            self.messages += u64::from(self.client.publish(self.messages < count));
            self.step();
        }
    }

    /// Until nothing is on the way any more.
    fn settle(&mut self) {
        (0..500).for_each(|_| self.step());
    }

    /// Goes on to the next thing that happens.
    fn step(&mut self) {
        self.drain();
        let arrival = self.on_the_way.first_key_value().map(|((at, _), _)| *at);
        let alarm = self.agent.poll_timeout();
        let next = [arrival, alarm, Some(self.client.poll_timeout())].into_iter().flatten().min().unwrap();
        self.now = self.now.max(next);
        while let Some(entry) = self.on_the_way.first_entry().filter(|entry| entry.key().0 <= self.now) {
            match entry.remove() {
                (To::Agent, message) => {
                    let stamp = Stamp { local: self.now, wall: Instant::from_ns(self.now.ns()) };
                    self.agent.handle_datagram(&message, HERE, stamp);
                }
                (To::Client, message) => self.client.handle_message(&message, self.now),
            }
        }
        self.agent.handle_timeout(self.now);
    }
}

fn simulate(name: &str, weather: Weather, history: u16) {
    let seeds = noctule_netsim::seeds(1, 8);
    let messages: u64 = std::env::var("NOCTULE_XRCE_MESSAGES").map_or(3_000, |text| text.parse().unwrap());
    let count = messages / (seeds.end - seeds.start);
    for seed in seeds {
        println!("{name}: seed {seed}, {count} messages");
        let mut world = World::new(seed, weather, history);
        world.run(count);
        let counters = world.agent.counters();
        assert_eq!(
            counters.malformed + counters.events_dropped + counters.answers_dropped,
            0,
            "{counters:?}"
        );
        println!(
            "  {} restarts, {} of {} came back, {:.1} ms a message, {counters:?}",
            world.restarts,
            world.client.received(),
            world.echoed,
            world.now.ns() as f64 / 1e6 / world.messages as f64,
        );
        assert!(world.client.received() > 0);
    }
}

const CALM: Weather =
    Weather { lost_per_mille: 0, copied_per_mille: 0, delay_us_max: 300, restart_per_million: 0 };

#[test]
fn on_a_calm_line_nothing_is_repeated() {
    let mut world = World::new(1, Weather { delay_us_max: 1, ..CALM }, 4);
    world.run(1000);
    let counters = world.agent.counters();
    assert_eq!((counters.repeated, counters.beyond, counters.held_back), (0, 0, 0), "{counters:?}");
    assert_eq!(world.client.dropped(), 0, "never more on the way than the client can hold");
    assert_eq!(world.client.received(), 1000);
}

#[test]
fn loss_copies_and_reordering_are_repaired() {
    simulate("rough", Weather { lost_per_mille: 100, copied_per_mille: 50, delay_us_max: 20_000, ..CALM }, 4);
}

#[test]
fn a_client_that_restarts_goes_on() {
    let weather =
        Weather { lost_per_mille: 30, copied_per_mille: 20, delay_us_max: 5_000, restart_per_million: 3_000 };
    simulate("restarts", weather, 4);
}

#[test]
fn a_longer_history_is_found_and_used_and_a_shorter_is_not_blocked() {
    for (history, arrives) in [(16, true), (8, true), (4, false)] {
        let mut world = World::new(7, CALM, history);
        world.run(50);
        world.settle();
        // Six messages long.
        let body = (0..500u32).flat_map(u32::to_le_bytes).collect::<Vec<u8>>();
        let before = world.client.received();
        let large = Sample { body: body.into(), is_little_endian: true };
        world.agent.handle_sample(world.reader.unwrap(), large, world.now);
        while world.client.large() + world.agent.counters().undeliverable == 0 {
            assert!(world.messages < 5_000, "{}", world.client.describe());
            world.run(world.messages + 10);
        }
        world.run(world.messages + 100);
        world.settle();
        assert_eq!(world.client.large(), u64::from(arrives), "history {history}");
        assert!(world.client.received() > before + 20, "the stream goes on");
        assert_eq!(world.agent.counters().undeliverable, u64::from(!arrives));
    }
}

#[test]
fn samples_in_sixty_pieces_reach_a_client_whose_history_is_known_and_others_are_named() {
    let rough = Weather { lost_per_mille: 100, copied_per_mille: 50, delay_us_max: 20_000, ..CALM };
    for (weather, known, history) in [
        (CALM, NonZeroU16::new(64), 64),
        (rough, NonZeroU16::new(64), 64),
        (CALM, None, 64),
        // It was started with less than configured.
        (CALM, NonZeroU16::new(64), 16),
    ] {
        let config = AgentConfig { client_history: known, ..AgentConfig::default() };
        let mut world = World::with(config, 11, weather, history);
        world.run(50);
        world.settle();
        let body = (0..5_000u32).flat_map(u32::to_le_bytes).collect::<Vec<u8>>();
        for number in 1..=3 {
            let large = Sample { body: body.clone().into(), is_little_endian: true };
            world.agent.handle_sample(world.reader.unwrap(), large, world.now);
            for _ in 0..20_000 {
                if world.client.large() + world.agent.counters().undeliverable == number {
                    break;
                }
                world.step();
            }
        }
        let (large, undeliverable) = (world.client.large(), world.agent.counters().undeliverable);
        match (known, history) {
            (Some(_), 64) => assert_eq!((large, undeliverable), (3, 0)),
            (None, _) => assert_eq!((large, undeliverable), (0, 3)),
            // The first blocks the stream, and is named once.
            _ => assert_eq!((large, undeliverable), (0, 1)),
        }
        if large > 0 {
            let before = world.client.received();
            world.run(world.messages + 100);
            world.settle();
            assert!(world.client.received() > before + 20, "the stream goes on");
        }
    }
}
