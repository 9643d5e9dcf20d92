//! Two links and what lies between them, in simulated time.
#![allow(missing_docs, unreachable_pub)]

use std::collections::BTreeMap;

use noctule_netsim::Random;
use noctule_prrt::{
    Arrival, BATCH_LIMIT, Class, Delivered, Link, LinkConfig, Local, Origin, Outgoing, StreamId,
};
use noctule_timebase::{Instant, Span};

/// No sample has a shorter header.
const HEADER_BYTES_MIN: usize = 10;

/// Impairments of a channel. Probabilities are per datagram.
#[derive(Clone, Copy, Debug)]
pub struct Channel {
    pub loss: f64,
    pub duplication: f64,
    /// Cut short, or lengthened by a byte.
    pub wrong_length: f64,
    pub delay: Span,
    /// Uniform, up to this much more: datagrams overtake each other.
    pub jitter: Span,
    /// A bottleneck: nanoseconds per datagram, and datagrams that fit in front of it.
    pub bottleneck: Option<(i64, usize)>,
    /// Longer datagrams are dropped.
    pub mtu_bytes: usize,
}

impl Channel {
    pub const PERFECT: Channel = Channel {
        loss: 0.0,
        duplication: 0.0,
        wrong_length: 0.0,
        delay: Span::from_us(50),
        jitter: Span::ZERO,
        bottleneck: None,
        mtu_bytes: usize::MAX,
    };
}

/// A sample as it was delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    pub at: Instant<Local>,
    pub writer: u32,
    pub sequence: u64,
    pub missed: u64,
}

struct Datagram {
    to: usize,
    bytes: Vec<u8>,
}

pub struct Pair {
    seed: u64,
    random: Random,
    pub channel: Channel,
    pub now: Instant<Local>,
    pub links: [Link; 2],
    /// Samples delivered at each side.
    pub delivered: [Vec<Sample>; 2],
    /// By time of arrival, and a number of their own.
    in_transit: BTreeMap<(Instant<Local>, u64), Datagram>,
    datagrams: u64,
    /// When each bottleneck is free again.
    free_at: [Instant<Local>; 2],
    pub dropped_at_bottleneck: u64,
    /// Datagrams longer than the channel carries, probes apart.
    pub too_long: [u64; 2],
    /// Most bytes that any of the two held for sending, and for delivery.
    pub held_bytes_max: (usize, usize),
}

impl Pair {
    pub fn new(seed: u64, channel: Channel, config: LinkConfig) -> Pair {
        let now = Instant::from_ns(1_000_000_000);
        Pair {
            seed,
            random: Random::new(seed),
            channel,
            now,
            links: [Link::new(config, now), Link::new(config, now)],
            delivered: [Vec::new(), Vec::new()],
            in_transit: BTreeMap::new(),
            datagrams: 0,
            free_at: [now; 2],
            dropped_at_bottleneck: 0,
            too_long: [0; 2],
            held_bytes_max: (0, 0),
        }
    }

    /// Side `from` publishes sample `sequence` of `writer`.
    pub fn send(&mut self, from: usize, (writer, sequence): (u32, u64), reliable: bool, depth: u32) {
        let payload = payload(writer, sequence);
        self.send_payload(from, (writer, sequence), (reliable, depth), &payload);
    }

    pub fn send_payload(
        &mut self,
        from: usize,
        (writer, sequence): (u32, u64),
        (reliable, depth): (bool, u32),
        payload: &[u8],
    ) {
        let (writer, origin) = (StreamId(writer), origin(sequence));
        let class = if reliable { Class::Reliable } else { Class::BestEffort };
        let age = Span::ZERO;
        let sample = Outgoing { writer, sequence, origin, age, class, depth, payload };
        // What is refused is counted.
        let _ = self.links[from].send(&sample, self.now);
        self.drain();
    }

    /// Lets `span` pass.
    pub fn run(&mut self, span: Span) {
        let end = self.now + span;
        loop {
            self.drain();
            let arrival = self.in_transit.first_key_value().map(|((at, _), _)| *at);
            let timeouts = self.links.iter().filter_map(Link::poll_timeout);
            let Some(next) = timeouts.chain(arrival).min().filter(|next| *next <= end) else { break };
            assert!(next > self.now || arrival == Some(next), "seed {}: time stalls", self.seed);
            self.now = self.now.max(next);
            for link in &mut self.links {
                link.handle_timeout(self.now, &mut |sample| panic!("{sample:?} had waited"));
            }
            self.arrive();
        }
        self.now = end;
    }

    pub fn sequences(&self, side: usize, writer: u32) -> Vec<u64> {
        let of_writer = self.delivered[side].iter().filter(|sample| sample.writer == writer);
        of_writer.map(|sample| sample.sequence).collect()
    }

    fn drain(&mut self) {
        let mut out = Vec::new();
        for from in 0..2 {
            // Far beyond any window: a link that always has something more is broken.
            for _ in 0..100_000 {
                out.clear();
                if !self.links[from].poll_transmit(self.now, &mut out) {
                    break;
                }
                self.transmit(1 - from, &out);
            }
            let (queued, held) = self.links[from].held_bytes();
            let (queued_max, held_max) = self.held_bytes_max;
            self.held_bytes_max = (queued.max(queued_max), held.max(held_max));
        }
    }

    fn transmit(&mut self, to: usize, datagram: &[u8]) {
        let channel = self.channel;
        // With a long header, of which byte 5 is the content: load 6.
        let is_probe = datagram[0] < 128 && datagram[5] >> 3 & 7 == 6;
        let (length, allowed) = (datagram.len(), self.links[1 - to].datagram_bytes());
        assert!(is_probe || length <= allowed, "seed {}: {length} bytes, {allowed} confirmed", self.seed);
        if length > channel.mtu_bytes {
            self.too_long[1 - to] += u64::from(!is_probe);
            return;
        }
        let mut leaves = self.now;
        if let Some((each_ns, room)) = channel.bottleneck {
            let waiting = (self.free_at[to] - self.now).ns().max(0) / each_ns;
            if waiting as usize >= room {
                self.dropped_at_bottleneck += 1;
                return;
            }
            leaves = self.free_at[to].max(self.now) + Span::from_ns(each_ns);
            self.free_at[to] = leaves;
        }
        if self.random.chance(channel.loss) {
            return;
        }
        let copies = 1 + u32::from(self.random.chance(channel.duplication));
        for _ in 0..copies {
            let mut bytes = datagram.to_vec();
            if self.random.chance(channel.wrong_length) {
                // UDP lets nothing through that has another length than it was sent with; what a stranger sends may be too short.
                bytes.truncate(self.random.bits() as usize % bytes.len().min(HEADER_BYTES_MIN));
            }
            let jitter = (self.random.unit() * channel.jitter.ns() as f64) as i64;
            let arrives = leaves + channel.delay + Span::from_ns(jitter);
            self.datagrams += 1;
            self.in_transit.insert((arrives, self.datagrams), Datagram { to, bytes });
        }
    }

    /// Hands over what has arrived by now, a batch at most.
    fn arrive(&mut self) {
        for _ in 0..BATCH_LIMIT {
            let Some(entry) = self.in_transit.first_entry().filter(|entry| entry.key().0 <= self.now) else {
                return;
            };
            let Datagram { to, bytes } = entry.remove();
            let (seed, now, delivered) = (self.seed, self.now, &mut self.delivered[to]);
            let mut deliver = |sample: Delivered<'_>| {
                let Delivered { writer: StreamId(writer), sequence, origin, missed, payload, .. } = sample;
                assert_eq!(origin, self::origin(sequence), "seed {seed}");
                let whole = writer >= 100 || payload == self::payload(writer, sequence);
                assert!(whole, "seed {seed}: sample {sequence} of writer {writer} is damaged");
                delivered.push(Sample { at: now, writer, sequence, missed });
            };
            // What is malformed is counted.
            let _ = self.links[to].handle_datagram(&bytes, at(now), &mut deliver);
        }
    }
}

/// Some are exact, sixteen in a row, and some are not.
pub fn origin(sequence: u64) -> Origin {
    Origin { source_time_ns: -(sequence as i64), source_error: (sequence / 16 % 3) as u32 }
}

/// Content and length, up to 12,000 bytes, follow from the numbers. Writers from 100 on say themselves.
pub fn payload(writer: u32, sequence: u64) -> Vec<u8> {
    let mut random = Random::for_part(sequence, writer.into());
    let length = if random.chance(0.5) { random.bits() % 64 } else { random.bits() % 12_000 };
    let pattern = random.bits().to_le_bytes();
    (0..length as usize).map(|byte| pattern[byte % 8] ^ byte as u8).collect()
}

/// A datagram arrives, on nodes whose clocks are not compared.
pub fn at(now: Instant<Local>) -> Arrival {
    Arrival { now, came: now, own_ns: now.ns(), peer_ns: None, ecn: Default::default() }
}
