//! A stream of samples with a deadline over a channel that loses in bursts, in simulated time.
#![allow(missing_docs, unreachable_pub, dead_code)]

use std::collections::{BTreeMap, VecDeque};

use noctule_netsim::Random;
use noctule_prrt::{
    Arrival, Bound, Class, FeasibilityChange, Link, LinkConfig, LinkCounters, Local, Order, Origin, Outgoing,
    StreamId,
};
use noctule_timebase::{Instant, Span};

mod host;

pub mod expected;
pub mod fixed_interval;
pub mod story;

use host::Thread;
pub use host::ThreadStalls;

pub const WRITER: StreamId = StreamId(1);

/// No sample with a deadline has a shorter header.
const HEADER_BYTES_MIN: usize = 14;

/// One cell of the grid.
#[derive(Clone, Copy, Debug)]
pub struct Cell {
    pub loss: f64,
    /// Mean length of bursts in packets; 1 for independent losses.
    pub burst: f64,
    /// Mean length of bursts in time; zero if they are counted in packets.
    pub burst_time: Span,
    pub round_trip: Span,
    /// Of the round trip, the way there takes so much more than half.
    pub way_there_excess: Span,
    /// Share of datagrams that are held for 3 to 8 ms while others overtake them.
    pub reordering: f64,
    /// Uniform, up to this much more each way.
    pub jitter: Span,
    /// Threads sleep for whole multiples of this, the next above what was asked for; and then uniformly up to this much longer.
    pub sleep_unit: Span,
    pub wake_late: Span,
    /// Probability that whatever arrives or wakes is held up, and uniformly for up to how long; what comes behind it waits.
    pub stalls: f64,
    pub stall: Span,
    /// Of the node's thread at the sender, and at the receiver; and whether the application of the sender stalls with it.
    pub thread_stalls: [Option<ThreadStalls>; 2],
    pub writer_stalls: bool,
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
        burst_time: Span::ZERO,
        round_trip: Span::from_ms(20),
        way_there_excess: Span::ZERO,
        reordering: 0.0,
        jitter: Span::ZERO,
        sleep_unit: Span::ZERO,
        wake_late: Span::ZERO,
        stalls: 0.0,
        stall: Span::ZERO,
        thread_stalls: [None; 2],
        writer_stalls: false,
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

    fn class(&self) -> Class {
        let Cell { deadline, loss_target, order, .. } = *self;
        Class::DeadlineBound(Bound { deadline, loss_target, order })
    }
}

/// Results of a simulation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outcome {
    pub sent: u64,
    pub on_time: u64,
    pub late: u64,
    pub twice: u64,
    pub out_of_order: u64,
    /// The first sample that came late or twice.
    pub failing: Option<u64>,
    pub held_bytes_max: usize,
    /// Reports of the sender that the loss target is infeasible, and whether it was in the end.
    pub infeasible: u64,
    pub ends_infeasible: bool,
    pub datagrams: u64,
    /// Retransmissions and repair symbols, of all lives of the sender.
    pub repairs: u64,
    /// Of both directions, 28 of IP and UDP added for each datagram.
    pub wire_bytes: u64,
    pub feedback: u64,
    /// Bytes that the sender gave out after the first second, and the time in which.
    pub settled_bytes: u64,
    pub settled_for: Span,
    pub latency_max: Span,
    /// Samples that were not in time, by eighths of the run.
    pub missed_by_eighth: [u64; 8],
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

/// Gilbert's channel, a step per datagram or in time.
pub struct Direction {
    random: Random,
    is_bad: bool,
    /// Beyond half of the round trip.
    excess: Span,
    drawn_at: Instant<Local>,
    begins: f64,
    ends: f64,
    free_at: Instant<Local>,
    /// Behind a stall.
    held_until: Instant<Local>,
}

impl Direction {
    pub fn new(cell: &Cell, seed: u64, part: u64) -> Direction {
        let independent = cell.burst <= 1.0;
        let ends = if independent { 1.0 - cell.loss } else { 1.0 / cell.burst };
        let begins = if independent { cell.loss } else { ends * cell.loss / (1.0 - cell.loss) };
        let random = Random::for_part(seed, part);
        Direction {
            random,
            is_bad: false,
            excess: cell.way_there_excess * if part == 0 { 1 } else { -1 },
            drawn_at: START,
            begins,
            ends,
            free_at: Instant::MIN,
            held_until: Instant::MIN,
        }
    }

    /// Whether the channel is bad for the datagram that leaves now.
    pub fn is_bad(&mut self, cell: &Cell, now: Instant<Local>) -> bool {
        let changes = if cell.burst_time == Span::ZERO {
            if self.is_bad { self.ends } else { self.begins }
        } else {
            // A bad state of exponential length: what it is after a pause.
            let settling = cell.burst_time.as_s_f64() * (1.0 - cell.loss);
            let memory = (-(now - self.drawn_at).as_s_f64() / settling).exp();
            (1.0 - memory) * if self.is_bad { 1.0 - cell.loss } else { cell.loss }
        };
        self.drawn_at = now;
        self.is_bad ^= self.random.chance(changes);
        self.is_bad
    }

    /// When a datagram arrives, if it does.
    fn pass(&mut self, cell: &Cell, bytes: usize, now: Instant<Local>) -> Option<Instant<Local>> {
        let is_lost = self.is_bad(cell, now);
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
        let mut arrives = leaves + cell.round_trip / 2 + self.excess + jitter;
        if cell.reordering > 0.0 && self.random.chance(cell.reordering) {
            arrives += Span::from_us(self.random.uniform(3_000.0, 8_000.0) as i64);
        }
        if cell.stalls > 0.0 {
            arrives = (arrives + stalled(cell, &mut self.random)).max(self.held_until);
            self.held_until = arrives;
        }
        (!is_lost).then_some(arrives)
    }
}

fn stalled(cell: &Cell, random: &mut Random) -> Span {
    let (is_stalled, share) = (random.chance(cell.stalls), random.unit());
    if is_stalled { Span::from_ns((share * cell.stall.ns() as f64) as i64) } else { Span::ZERO }
}

/// Moments of a simulation for every sample at most; more are a link that does not rest.
const STEPS_PER_SAMPLE: u64 = 10_000;

/// Sends `samples` samples and lets all deadlines pass.
pub fn run(cell: Cell, samples: u64, seed: u64) -> Outcome {
    let mut simulation = Simulation::new(cell, samples, seed);
    let mut steps = 0;
    while simulation.step() {
        steps += 1;
        assert!(steps < samples * STEPS_PER_SAMPLE, "seed {seed}: {steps} steps, {cell:?}");
    }
    for (place, _) in simulation.seen[1..].iter().enumerate().filter(|(_, seen)| !**seen) {
        simulation.outcome.missed_by_eighth[place * 8 / samples as usize] += 1;
    }
    simulation.outcome.repairs += simulation.repairs();
    simulation.outcome.sender = simulation.links[0].counters();
    simulation.outcome.receiver = simulation.links[1].counters();
    simulation.outcome
}

/// With the time when each came.
type Socket = VecDeque<(Instant<Local>, Datagram)>;

/// A datagram on its way.
struct Datagram {
    to: usize,
    bytes: Vec<u8>,
}

struct Simulation {
    cell: Cell,
    samples: u64,
    seed: u64,
    now: Instant<Local>,
    links: [Link; 2],
    directions: [Direction; 2],
    damage: Random,
    /// When each node's thread wakes although nothing arrives, and how late.
    wakes: [Option<Instant<Local>>; 2],
    lateness: Random,
    threads: [Thread; 2],
    still_until: [Option<Instant<Local>>; 2],
    /// Datagrams that arrived at each host and were not processed yet, and their times of arrival.
    sockets: [Socket; 2],
    /// By time of arrival, and a number of their own.
    in_transit: BTreeMap<(Instant<Local>, u64), Datagram>,
    datagrams: u64,
    /// Offset of each node's clock from the simulation's, and the offset that the other node assumes.
    clocks_ns: [i64; 2],
    assumed_ns: [i64; 2],
    next_sample: Instant<Local>,
    written: Vec<Instant<Local>>,
    payload: Vec<u8>,
    seen: Vec<bool>,
    newest: u64,
    outcome: Outcome,
    story: Option<story::Story>,
}

pub(crate) const START: Instant<Local> = Instant::from_ns(1_000_000_000);

impl Simulation {
    fn new(cell: Cell, samples: u64, seed: u64) -> Simulation {
        let clocks_ns = [0, 77_000_000_000];
        Simulation {
            cell,
            samples,
            seed,
            now: START,
            links: links(&cell, 0, START),
            directions: [0, 1].map(|part| Direction::new(&cell, seed, part)),
            damage: Random::for_part(seed, 2),
            wakes: [None; 2],
            lateness: Random::for_part(seed, 3),
            threads: [0, 1].map(|node: usize| {
                Thread::new(cell.thread_stalls[node], Random::for_part(seed, 4 + node as u64), START)
            }),
            still_until: [None; 2],
            sockets: [(); 2].map(|()| VecDeque::new()),
            in_transit: BTreeMap::new(),
            datagrams: 0,
            clocks_ns,
            assumed_ns: clocks_ns,
            next_sample: START,
            written: Vec::with_capacity(samples as usize),
            payload: vec![7; cell.payload_bytes],
            seen: vec![false; samples as usize + 1],
            newest: 0,
            outcome: Outcome::default(),
            story: None,
        }
    }

    /// Processes the events of now, and advances to the next one. False at the end.
    fn step(&mut self) -> bool {
        let now = self.now;
        if self.story.is_some() {
            self.links.iter_mut().for_each(Link::start_trace);
        }
        self.still_until = [0, 1].map(|node| self.threads[node].still_until(now));
        let runs = self.still_until.map(|until| until.is_none());
        let mut is_awake = [0, 1].map(|node| runs[node] && self.wakes[node].is_some_and(|at| at <= now));
        while self.writes_at().is_some_and(|at| at <= now) {
            self.publish();
            is_awake[0] = true;
        }
        self.arrive(&mut is_awake);
        for node in (0..2).filter(|node| is_awake[*node]) {
            self.drain(node);
            self.wakes[node] = self.links[node].poll_timeout().map(|at| self.wake(at));
        }
        if let Some(story) = &mut self.story {
            story.drain(&mut self.links);
        }
        let (sample, arrival) = (self.writes_at(), self.in_transit.first_key_value().map(|((at, _), _)| *at));
        let timeouts = [0, 1].map(|node| self.thread_wakes_at(node));
        let Some(next) = timeouts.into_iter().flatten().chain(arrival).chain(sample).min() else {
            return false;
        };
        let stands = next <= self.now && sample != Some(next) && arrival != Some(next);
        let (seed, now, cell) = (self.seed, self.now, self.cell);
        assert!(!stands, "seed {seed}: time stalls at {now:?}, timeouts {timeouts:?}, {cell:?}");
        self.now = self.now.max(next);
        let cell = &self.cell;
        let end = START + cell.interval * self.samples as i64 + cell.deadline + cell.round_trip * 8;
        self.now <= end
    }

    /// When the next sample is written.
    fn writes_at(&self) -> Option<Instant<Local>> {
        let still_until = self.still_until[0].filter(|_| self.cell.writer_stalls);
        (self.outcome.sent < self.samples).then(|| self.next_sample.max(still_until.unwrap_or(Instant::MIN)))
    }

    /// When the thread of a node goes on although nothing arrives.
    fn thread_wakes_at(&self, node: usize) -> Option<Instant<Local>> {
        match self.still_until[node] {
            Some(end) if !self.sockets[node].is_empty() => Some(end),
            Some(end) => self.wakes[node].map(|at| at.max(end)),
            None => self.wakes[node],
        }
    }

    /// When a thread that sleeps until `at` wakes.
    fn wake(&mut self, at: Instant<Local>) -> Instant<Local> {
        let (unit, late) = (self.cell.sleep_unit.ns(), self.cell.wake_late.ns());
        let asleep = (at - self.now).clamp(Span::ZERO, Span::from_s(10)).ns();
        let rounded = if unit == 0 { asleep } else { (asleep + unit - 1) / unit * unit };
        let late = if late == 0 { 0 } else { (self.lateness.unit() * late as f64) as i64 };
        let stalled =
            if self.cell.stalls > 0.0 { stalled(&self.cell, &mut self.lateness) } else { Span::ZERO };
        self.now + Span::from_ns(rounded + late) + stalled
    }

    fn publish(&mut self) {
        self.outcome.sent += 1;
        self.written.push(self.now);
        let sample = Outgoing {
            writer: WRITER,
            sequence: self.outcome.sent,
            origin: Origin::exactly(self.now.ns() + self.clocks_ns[0]),
            age: Span::ZERO,
            class: self.cell.class(),
            depth: 1,
            payload: &self.payload,
        };
        let _ = self.links[0].send(&sample, self.now);
        self.next_sample = START + self.cell.interval * self.outcome.sent as i64;
        if self.outcome.sent == self.samples / 2 {
            if self.cell.restarts {
                self.outcome.repairs += self.repairs();
                self.links = links(&self.cell, 1, self.now);
            }
            if self.cell.clock_steps {
                self.clocks_ns[0] += 50_000_000;
            }
        }
        if self.outcome.sent == self.samples * 3 / 4 {
            self.assumed_ns = self.clocks_ns;
        }
    }

    /// Hands over what has arrived, and says that time has passed.
    fn arrive(&mut self, is_awake: &mut [bool; 2]) {
        let Simulation { cell, seed, now, outcome, payload, seen, newest, written, .. } = self;
        let now = *now;
        let mut deliver = |sample: noctule_prrt::Delivered<'_>| {
            let latency = now - written[sample.sequence as usize - 1];
            outcome.out_of_order += u64::from(sample.sequence < *newest);
            *newest = sample.sequence.max(*newest);
            outcome.latency_max = outcome.latency_max.max(latency);
            assert_eq!(sample.payload, payload, "seed {seed}: a sample is damaged");
            let twice = std::mem::replace(&mut seen[sample.sequence as usize], true);
            outcome.twice += u64::from(twice);
            outcome.late += u64::from(latency > cell.deadline);
            if twice || latency > cell.deadline {
                outcome.failing.get_or_insert(sample.sequence);
            }
            outcome.on_time += u64::from(latency <= cell.deadline && !twice);
        };
        while let Some(entry) = self.in_transit.first_entry().filter(|entry| entry.key().0 <= now) {
            let came = entry.key().0;
            let datagram = entry.remove();
            self.sockets[datagram.to].push_back((came, datagram));
        }
        // The writing thread reads the socket, if the node's thread does not.
        for (to, is_awake) in is_awake.iter_mut().enumerate() {
            if self.still_until[to].is_some() && !*is_awake {
                continue;
            }
            while let Some((came, Datagram { bytes, .. })) = self.sockets[to].pop_front() {
                *is_awake = true;
                let arrival = Arrival {
                    now,
                    came,
                    own_ns: came.ns() + self.clocks_ns[to],
                    peer_ns: Some(now.ns() + self.assumed_ns[1 - to]),
                    ecn: Default::default(),
                };
                // What is damaged and malformed is counted.
                let taken = self.links[to].handle_datagram(&bytes, arrival, &mut deliver);
                assert!(cell.corruption > 0.0 || taken.is_ok(), "seed {seed}: {taken:?}");
            }
        }
        for (link, _) in self.links.iter_mut().zip(is_awake).filter(|(_, is_awake)| **is_awake) {
            link.handle_timeout(now, &mut deliver);
        }
    }

    fn drain(&mut self, from: usize) {
        let mut out = Vec::new();
        while let Some((_, wish)) = self.links[from].poll_feasibility_change(self.now) {
            self.outcome.ends_infeasible = wish != FeasibilityChange::Feasible;
            self.outcome.infeasible += u64::from(wish != FeasibilityChange::Feasible);
        }
        for turn in 0.. {
            out.clear();
            if !self.links[from].poll_transmit(self.now, &mut out) {
                break;
            }
            assert!(turn < 100_000, "seed {}: a link that always has something more", self.seed);
            self.transmit(from, &out);
        }
        let (queued, held) = self.links[from].held_bytes();
        self.outcome.held_bytes_max = self.outcome.held_bytes_max.max(queued).max(held);
    }

    /// Of the sender's present life.
    fn repairs(&self) -> u64 {
        let counters = self.links[0].counters();
        counters.bound_repeats + counters.bound_parity
    }

    fn transmit(&mut self, from: usize, datagram: &[u8]) {
        self.outcome.datagrams += u64::from(from == 0);
        self.outcome.wire_bytes += datagram.len() as u64 + 28;
        self.outcome.feedback += u64::from(from == 1);
        if from == 0 && self.now >= START + Span::from_s(1) {
            self.outcome.settled_bytes += datagram.len() as u64 + 28;
            self.outcome.settled_for = self.now - START - Span::from_s(1);
        }
        let passed = self.directions[from].pass(&self.cell, datagram.len() + 28, self.now);
        let Some(arrives) = passed else { return };
        let copies = 1 + u32::from(self.damage.chance(self.cell.duplication));
        for _ in 0..copies {
            let mut bytes = datagram.to_vec();
            if self.damage.chance(self.cell.corruption) {
                // UDP's length and checksum let nothing through that is shorter than it was sent; what another program sends may be
                // too short for a header.
                bytes.truncate(self.damage.bits() as usize % bytes.len().min(HEADER_BYTES_MIN));
            }
            self.datagrams += 1;
            self.in_transit.insert((arrives, self.datagrams), Datagram { to: 1 - from, bytes });
        }
    }
}

/// Two links of a new life.
fn links(cell: &Cell, session: u32, now: Instant<Local>) -> [Link; 2] {
    let config = LinkConfig { session, ..LinkConfig::default() };
    let mut links = [Link::new(config, now), Link::new(config, now)];
    links[1].expect(WRITER, 1 << 24, cell.class());
    links
}
