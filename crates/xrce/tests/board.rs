//! The agent and the C client for microcontrollers, joined by a line that loses: samples in more pieces than any history reach it.
#![allow(clippy::unwrap_used)]

use noctule_board::{Client, ClientConfig, Endpoint, Line, State};
use noctule_proto_kit::SplitMix64;
use noctule_timebase::{Instant, Span};
use noctule_xrce::{
    Agent, AgentConfig, ClientAddress, EndpointId, Event, Local, References, Sample, Stamp,
    outbound::PIECES_MAX,
};

const HERE: ClientAddress = ClientAddress::Connection(1);
/// Nothing here takes so many milliseconds unless it never ends.
const STEPS_MAX: u32 = 200_000;

struct Pair {
    agent: Agent,
    board: Client,
    random: SplitMix64,
    lost_percent: u64,
    now: Instant<Local>,
    reader: Option<EndpointId>,
}

impl Pair {
    fn new(message_bytes: u16, lost_percent: u64) -> Pair {
        let endpoint = Endpoint {
            topic: "rt/map".into(),
            type_name: "T".into(),
            subscribes: true,
            reliable: true,
            stamped: false,
        };
        let config = ClientConfig {
            key: 7,
            line: Line::Datagram,
            domain: 0,
            endpoints: vec![endpoint],
            message_bytes,
            sync_interval_ns: 0,
        };
        Pair {
            agent: Agent::new(AgentConfig::default(), References::default()),
            board: Client::new(&config).unwrap(),
            random: SplitMix64::new(19),
            lost_percent,
            now: Instant::from_ns(0),
            reader: None,
        }
    }

    fn is_lost(&mut self) -> bool {
        self.random.below(100) < self.lost_percent
    }

    /// A millisecond.
    fn step(&mut self) {
        self.now += Span::from_ms(1);
        let stamp = Stamp { local: self.now, wall: Instant::from_ns(self.now.ns()) };
        while let Some(message) = self.board.poll_transmit(self.now.ns()).map(<[u8]>::to_vec) {
            if !self.is_lost() {
                self.agent.handle_datagram(&message, HERE, stamp);
            }
        }
        self.agent.handle_timeout(self.now);
        while let Some(event) = self.agent.poll_event() {
            if let Event::Opened(endpoint) = event {
                self.reader = Some(endpoint.id);
            }
        }
        let mut message = Vec::new();
        while self.agent.poll_transmit(self.now, &mut message).is_some() {
            if !self.is_lost() {
                self.board.handle_datagram(&message, self.now.ns());
            }
        }
    }

    fn step_until(&mut self, is_it: impl Fn(&Pair) -> bool) {
        for _ in 0..STEPS_MAX {
            if is_it(self) {
                return;
            }
            self.step();
        }
        panic!("it never comes to that: {:?}, {:?}", self.board.counts(), self.agent.counters());
    }

    fn send(&mut self, bytes: usize) -> Vec<u8> {
        let body: Vec<u8> = (0..bytes).map(|at| (at * 7 + at / 256) as u8).collect();
        let sample = Sample { body: body.clone().into(), is_little_endian: true };
        self.agent.handle_sample(self.reader.unwrap(), sample, self.now);
        body
    }
}

#[test]
fn samples_of_any_size_reach_a_board_over_a_line_that_loses() {
    for lost_percent in [0, 10] {
        for message_bytes in [64, 128, 512] {
            let mut pair = Pair::new(message_bytes, lost_percent);
            pair.step_until(|pair| pair.board.state() == State::Ready && pair.reader.is_some());
            // What a piece holds, and the bytes of a sample with its header in so many pieces.
            let piece = usize::from(message_bytes) - 8;
            let in_pieces = |pieces: usize| (pieces * piece - 8).min(60_000);
            for bytes in
                [0, 1, in_pieces(4), in_pieces(16), in_pieces(16) + 1, in_pieces(100), in_pieces(PIECES_MAX)]
            {
                let received = pair.board.counts().received;
                let body = pair.send(bytes);
                pair.step_until(|pair| pair.board.counts().received > received);
                let sample = pair.board.poll_sample().unwrap();
                assert!(
                    sample.bytes == body,
                    "{bytes} bytes in messages of {message_bytes} at {lost_percent} %"
                );
            }
            assert_eq!((pair.agent.counters().undeliverable, pair.board.counts().sessions), (0, 1));
            if lost_percent == 0 {
                assert_eq!(
                    pair.board.counts().unstorable_messages,
                    0,
                    "never more on the way than it can hold"
                );
            }
        }
    }
}
