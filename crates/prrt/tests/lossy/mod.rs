//! A stream of samples with a deadline over a channel that loses in bursts, in simulated time.
#![allow(missing_docs, unreachable_pub, dead_code)]

use std::collections::BTreeMap;

use noctule_netsim::Random;
use noctule_prrt::{Arrival, Bound, Class, Link, LinkConfig, LinkCounters, Local, Order, Outgoing, StreamId};
use noctule_timebase::{Instant, Span};

pub const WRITER: StreamId = StreamId(1);

/// One cell of the grid.
#[derive(Clone, Copy, Debug)]
pub struct Cell {
    pub loss: f64,
    /// Mean length of bursts in packets; 1 for independent losses.
    pub burst: f64,
    pub round_trip: Span,
    /// Uniform, up to this much more each way.
    pub jitter: Span,
    pub deadline: Span,
    pub interval: Span,
    pub payload_bytes: usize,
    pub loss_target: f64,
    pub order: Order,
    /// Bytes a second, and bytes that fit in front of it.
    pub bottleneck: Option<(u64, u64)>,
    /// Probabilities per datagram: it comes twice; a byte of it is changed.
    pub duplication: f64,
    pub corruption: f64,
    /// The receiver starts anew in the middle, and the sender with it.
    pub restarts: bool,
    /// The sender's clock steps in the middle, and the receiver learns of it later.
    pub clock_steps: bool,
}

impl Cell {
    /// DESIGN's lossy link: 20 ms round trip, 5 % in bursts of mean 3, 115 B at 200 Hz, 60 ms.
    pub const LOSSY: Cell = Cell {
        loss: 0.05,
        burst: 3.0,
        round_trip: Span::from_ms(20),
        jitter: Span::ZERO,
        deadline: Span::from_ms(60),
        interval: Span::from_ms(5),
        payload_bytes: 115,
        loss_target: 1e-4,
        order: Order::Asap,
        bottleneck: None,
        duplication: 0.0,
        corruption: 0.0,
        restarts: false,
        clock_steps: false,
    };
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Outcome {
    pub sent: u64,
    pub on_time: u64,
    pub late: u64,
    pub twice: u64,
    pub out_of_order: u64,
    pub held_bytes_max: usize,
    pub datagrams: u64,
    pub feedback: u64,
    pub latency_max: Span,
    pub sender: LinkCounters,
    pub receiver: LinkCounters,
}

impl Outcome {
    pub fn residual(&self) -> f64 {
        1.0 - self.on_time as f64 / self.sent as f64
    }

    /// Datagrams beyond those that carry each sample once.
    pub fn redundancy(&self) -> f64 {
        (self.sender.bound_repeats + self.sender.bound_parity) as f64 / self.sender.bound_data as f64
    }
}

/// Gilbert's channel, a step per datagram.
struct Direction {
    random: Random,
    is_bad: bool,
    begins: f64,
    ends: f64,
    free_at: Instant<Local>,
}

impl Direction {
    fn new(cell: &Cell, seed: u64, part: u64) -> Direction {
        let independent = cell.burst <= 1.0;
        let ends = if independent { 1.0 - cell.loss } else { 1.0 / cell.burst };
        let begins = if independent { cell.loss } else { ends * cell.loss / (1.0 - cell.loss) };
        let random = Random::for_part(seed, part);
        Direction { random, is_bad: false, begins, ends, free_at: Instant::MIN }
    }

    /// When a datagram arrives, if it does.
    fn pass(&mut self, cell: &Cell, bytes: usize, now: Instant<Local>) -> Option<Instant<Local>> {
        let changes = self.random.chance(if self.is_bad { self.ends } else { self.begins });
        self.is_bad ^= changes;
        let jitter = Span::from_ns((self.random.unit() * cell.jitter.ns() as f64) as i64);
        let mut leaves = now;
        if let Some((bytes_per_s, room_bytes)) = cell.bottleneck {
            let waiting = (self.free_at - now).ns().max(0) as u64 * bytes_per_s / 1_000_000_000;
            if waiting + bytes as u64 > room_bytes {
                return None;
            }
            let takes = Span::from_ns((bytes as u64 * 1_000_000_000 / bytes_per_s) as i64);
            leaves = self.free_at.max(now) + takes;
            self.free_at = leaves;
        }
        (!self.is_bad).then(|| leaves + cell.round_trip / 2 + jitter)
    }
}

/// Sends `samples` samples and lets all deadlines pass.
pub fn run(cell: Cell, samples: u64, seed: u64) -> Outcome {
    let start = Instant::<Local>::from_ns(1_000_000_000);
    let mut now = start;
    let bound = Bound { deadline: cell.deadline, loss_target: cell.loss_target, order: cell.order };
    let mut links = [Link::new(LinkConfig::default(), now), Link::new(LinkConfig::default(), now)];
    links[1].expect(WRITER, 1 << 24, Class::DeadlineBound(bound));
    let mut directions = [Direction::new(&cell, seed, 0), Direction::new(&cell, seed, 1)];
    let mut in_transit: BTreeMap<(Instant<Local>, u64), (usize, Vec<u8>)> = BTreeMap::new();
    let mut number = 0;
    let payload = vec![7; cell.payload_bytes];
    let mut outcome = Outcome::default();
    let mut seen = vec![false; samples as usize + 1];
    let mut out = Vec::new();
    let mut clocks = [0, 77_000_000_000];
    let mut known_clocks = clocks;
    let mut newest = 0;
    let mut damage = Random::for_part(seed, 2);
    let mut next_sample = now;
    let end = start + cell.interval * samples as i64 + cell.deadline + cell.round_trip * 4;
    while now <= end {
        if outcome.sent < samples && next_sample <= now {
            outcome.sent += 1;
            let source_time_ns = now.ns() + clocks[0];
            links[0].send(
                &Outgoing {
                    writer: WRITER,
                    sequence: outcome.sent,
                    source_time_ns,
                    age: Span::ZERO,
                    class: Class::DeadlineBound(bound),
                    depth: 1,
                    payload: &payload,
                },
                now,
            );
            next_sample = start + cell.interval * outcome.sent as i64;
            if cell.restarts && outcome.sent == samples / 2 {
                let config = LinkConfig { session: 1, ..LinkConfig::default() };
                links = [Link::new(config, now), Link::new(config, now)];
                links[1].expect(WRITER, 1 << 24, Class::DeadlineBound(bound));
            }
            if cell.clock_steps && outcome.sent == samples / 2 {
                clocks[0] += 50_000_000;
            }
            if outcome.sent == samples * 3 / 4 {
                known_clocks = clocks;
            }
        }
        let mut deliver = |sample: noctule_prrt::Delivered<'_>| {
            let written = start + cell.interval * (sample.sequence as i64 - 1);
            let latency = now - written;
            outcome.out_of_order += u64::from(sample.sequence < newest);
            newest = newest.max(sample.sequence);
            outcome.latency_max = outcome.latency_max.max(latency);
            assert_eq!(sample.payload, payload, "seed {seed}: a sample is damaged");
            let twice = std::mem::replace(&mut seen[sample.sequence as usize], true);
            outcome.twice += u64::from(twice);
            outcome.late += u64::from(latency > cell.deadline);
            outcome.on_time += u64::from(latency <= cell.deadline && !twice);
        };
        while let Some(entry) = in_transit.first_entry().filter(|entry| entry.key().0 <= now) {
            let (to, bytes) = entry.remove();
            let arrival = Arrival {
                now,
                own_ns: now.ns() + clocks[to],
                peer_ns: Some(now.ns() + known_clocks[1 - to]),
            };
            // What is damaged and malformed is counted.
            let taken = links[to].handle_datagram(&bytes, arrival, &mut deliver);
            assert!(cell.corruption > 0.0 || taken.is_ok(), "seed {seed}: {taken:?}");
        }
        for link in &mut links {
            link.handle_timeout(now, &mut deliver);
        }
        for from in 0..2 {
            for turn in 0.. {
                out.clear();
                if !links[from].poll_transmit(now, &mut out) {
                    break;
                }
                assert!(turn < 100_000, "seed {seed}: a link that always has something more");
                outcome.datagrams += u64::from(from == 0);
                outcome.feedback += u64::from(from == 1);
                if let Some(arrives) = directions[from].pass(&cell, out.len() + 28, now) {
                    let copies = 1 + u32::from(damage.chance(cell.duplication));
                    for _ in 0..copies {
                        let mut bytes = out.clone();
                        if damage.chance(cell.corruption) {
                            // The header's checks are tested elsewhere; here a checksum lets through lengths only.
                            bytes.truncate(damage.bits() as usize % bytes.len());
                        }
                        number += 1;
                        in_transit.insert((arrives, number), (1 - from, bytes));
                    }
                }
            }
        }
        for link in &links {
            let (queued, held) = link.held_bytes();
            outcome.held_bytes_max = outcome.held_bytes_max.max(queued).max(held);
        }
        let arrival = in_transit.first_key_value().map(|((at, _), _)| *at);
        let sample = (outcome.sent < samples).then_some(next_sample);
        let timeouts = links.iter().filter_map(Link::poll_timeout);
        let Some(next) = timeouts.chain(arrival).chain(sample).min() else { break };
        assert!(
            next > now || sample == Some(next) || arrival == Some(next),
            "seed {seed}: time stands still"
        );
        now = now.max(next);
    }
    outcome.sender = links[0].counters();
    outcome.receiver = links[1].counters();
    outcome
}
