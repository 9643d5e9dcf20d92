//! Two hosts on one line: streams from one to the other, and TCP's CUBIC or BBR beside them.
#![allow(missing_docs, unreachable_pub, dead_code, clippy::unwrap_used)]

use noctule_netsim::network::{Address, Destination, Endpoint, Transmit};
use noctule_netsim::{LinkSpec, Network};
use noctule_prrt::{
    Arrival, Bound, Class, Link, LinkConfig, LinkCounters, Local, Order, Origin, Outgoing, StreamId,
};
use noctule_timebase::{Instant, Span};

use bbr::Bbr;
use cubic::CubicTcp;

#[path = "../map/bbr.rs"]
mod bbr;
mod cubic;

const WRITER: StreamId = StreamId(1);
/// IPv4 and UDP headers. Here they carry the number of the stream and the time of sending.
const HEADERS_BYTES: usize = 28;
const STREAM_AT: usize = 1;
/// No run is so long.
const NEVER: Instant<Local> = Instant::from_ns(1 << 60);

/// Load of a stream.
#[derive(Clone, Copy, Debug)]
pub enum Offer {
    /// Reliable samples of so many bytes as fast as they are taken.
    Elastic(usize),
    /// The same from this time on.
    ElasticFrom(usize, Span),
    /// Samples of so many bytes at this interval.
    Paced(usize, Span, Class),
}

impl Offer {
    fn class(self) -> Class {
        match self {
            Offer::Elastic(_) | Offer::ElasticFrom(..) => Class::Reliable,
            Offer::Paced(_, _, class) => class,
        }
    }
}

/// Cross traffic beside our streams, from this time on.
#[derive(Clone, Copy, Debug)]
pub enum Beside {
    Nothing,
    Cubic(Span),
    Bbr(Span),
}

/// The deadline-bound class with a residual loss target of 1e-4.
pub fn deadline(deadline: Span) -> Class {
    Class::DeadlineBound(Bound { deadline, loss_target: 1e-4, order: Order::Asap })
}

/// One end of one stream: a link of its own, as of a process of its own.
pub struct Stream {
    pub link: Link,
    offer: Option<Offer>,
    published: u64,
    next_sample: Instant<Local>,
    /// Source time to delivery, of each sample in order.
    pub latencies: Vec<Span>,
    /// Source times of the samples delivered.
    pub sources: Vec<Instant<Local>>,
    /// Of each datagram.
    pub transits: Vec<Span>,
    pub delivered_bytes: u64,
    pub sent_bytes: u64,
    payload: Vec<u8>,
}

/// One host.
pub struct Host {
    pub streams: Vec<Stream>,
    pub tcp: CubicTcp,
    bbr: Bbr,
    pub until: Instant<Local>,
    now: Instant<Local>,
    turn: usize,
}

impl Stream {
    fn new(offer: Offer, sends: bool) -> Stream {
        let now = Instant::from_ns(0);
        let mut link = Link::new(LinkConfig::default(), now);
        link.expect(WRITER, 1 << 24, offer.class());
        Stream {
            link,
            offer: sends.then_some(offer),
            published: 0,
            next_sample: now,
            latencies: Vec::new(),
            sources: Vec::new(),
            transits: Vec::new(),
            delivered_bytes: 0,
            sent_bytes: 0,
            payload: Vec::new(),
        }
    }

    fn publish(&mut self, bytes: usize, class: Class, now: Instant<Local>) {
        self.published += 1;
        self.payload.resize(bytes, 3);
        let sample = Outgoing {
            writer: WRITER,
            sequence: self.published,
            origin: Origin::exactly(now.ns()),
            age: Span::ZERO,
            class,
            depth: u32::MAX,
            payload: &self.payload,
        };
        // The queue is never full here.
        let _ = self.link.send(&sample, now);
    }

    fn offer(&mut self, now: Instant<Local>) {
        match self.offer {
            Some(Offer::ElasticFrom(_, from)) if now.ns() < from.ns() => {}
            // As with a program that is let as many bytes as two sockets hold.
            Some(Offer::Elastic(bytes) | Offer::ElasticFrom(bytes, _)) => {
                while self.link.held_bytes().0 < 2_000_000 {
                    self.publish(bytes, Class::Reliable, now);
                }
            }
            Some(Offer::Paced(bytes, interval, class)) if self.next_sample <= now => {
                self.publish(bytes, class, now);
                self.next_sample += interval;
            }
            _ => {}
        }
    }

    fn handle_datagram(&mut self, bytes: &[u8], now: Instant<Local>) {
        let (latencies, sources, delivered) =
            (&mut self.latencies, &mut self.sources, &mut self.delivered_bytes);
        let arrival =
            Arrival { now, came: now, own_ns: now.ns(), peer_ns: Some(now.ns()), ecn: Default::default() };
        let left = i64::from_be_bytes(bytes[HEADERS_BYTES - 8..HEADERS_BYTES].try_into().unwrap());
        self.transits.push(now - Instant::from_ns(left));
        let taken = self.link.handle_datagram(&bytes[HEADERS_BYTES..], arrival, &mut |sample| {
            latencies.push(now - Instant::from_ns(sample.origin.source_time_ns));
            sources.push(Instant::from_ns(sample.origin.source_time_ns));
            *delivered += sample.payload.len() as u64;
        });
        assert_eq!(taken, Ok(()));
    }
}

impl Host {
    fn new(offers: &[Offer], sends: bool, beside: Beside) -> Host {
        let from = |from: Span| Instant::from_ns(from.ns());
        let (cubic_from, bbr_from) = match beside {
            Beside::Nothing => (None, NEVER),
            Beside::Cubic(at) => (Some(from(at)), NEVER),
            Beside::Bbr(at) => (None, from(at)),
        };
        Host {
            streams: offers.iter().map(|offer| Stream::new(*offer, sends)).collect(),
            tcp: if sends { CubicTcp::sender(cubic_from) } else { CubicTcp::receiver() },
            bbr: Bbr::new(sends, bbr_from),
            until: Instant::from_ns(i64::MAX),
            now: Instant::from_ns(0),
            turn: 0,
        }
    }
}

impl Endpoint for Host {
    type Clock = Local;

    fn handle_datagram(&mut self, now: Instant<Local>, _: Address, bytes: &[u8]) {
        match (cubic::read(bytes), bbr::read(bytes)) {
            (Some(segment), _) => self.tcp.handle_segment(segment, now),
            (_, Some(segment)) => self.bbr.handle_segment(segment, now),
            _ => self.streams[usize::from(bytes[STREAM_AT])].handle_datagram(bytes, now),
        }
    }

    fn handle_timeout(&mut self, now: Instant<Local>) {
        for stream in &mut self.streams {
            stream.link.handle_timeout(now, &mut |_| {});
        }
        self.tcp.handle_timeout(now);
        self.bbr.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant<Local>) -> Option<Transmit> {
        self.now = now;
        if now < self.until {
            self.streams.iter_mut().for_each(|stream| stream.offer(now));
        }
        let to = Destination::One(Address(if self.tcp.is_first() { 1 } else { 0 }));
        if let Some(bytes) = self.tcp.poll_transmit(now).or_else(|| self.bbr.poll_transmit(now)) {
            return Some(Transmit { to, bytes });
        }
        for _ in 0..self.streams.len() {
            self.turn = (self.turn + 1) % self.streams.len();
            let mut bytes = vec![0; HEADERS_BYTES - 8];
            bytes[STREAM_AT] = self.turn as u8;
            bytes.extend_from_slice(&now.ns().to_be_bytes());
            let stream = &mut self.streams[self.turn];
            if stream.link.poll_transmit(now, &mut bytes) {
                stream.sent_bytes += bytes.len() as u64;
                return Some(Transmit { to, bytes });
            }
        }
        None
    }

    fn poll_timeout(&self) -> Option<Instant<Local>> {
        let runs = self.now < self.until;
        let samples = self.streams.iter().filter_map(|stream| match stream.offer {
            Some(Offer::Paced(..)) if runs => Some(stream.next_sample),
            Some(Offer::ElasticFrom(_, from)) if stream.published == 0 => Some(Instant::from_ns(from.ns())),
            _ => None,
        });
        let links = self.streams.iter().filter_map(|stream| stream.link.poll_timeout());
        links.chain(samples).chain(self.tcp.poll_timeout()).chain(self.bbr.poll_timeout()).min()
    }
}

/// Results of one stream.
#[derive(Debug)]
pub struct Outcome {
    /// Payload of samples and of TCP's segments delivered, bits a second.
    pub stream_bps: f64,
    pub tcp_bps: f64,
    /// Everything that the stream put on the line, with headers, bits a second.
    pub sent_bps: f64,
    pub latencies: Vec<Span>,
    pub sources: Vec<Instant<Local>>,
    pub transits: Vec<Span>,
    pub published: u64,
    pub capacity_bytes_per_s: Option<f64>,
    pub counters: LinkCounters,
}

impl Outcome {
    /// The way of a datagram that this share of them does not exceed.
    pub fn transit(&self, share: f64) -> Span {
        let mut sorted = self.transits.clone();
        sorted.sort_unstable();
        sorted[((sorted.len() - 1) as f64 * share) as usize]
    }

    pub fn on_time(&self, deadline: Span) -> f64 {
        self.latencies.iter().filter(|latency| **latency <= deadline).count() as f64 / self.published as f64
    }

    /// Of the samples published in the span that begins at `from`, how many were delivered by their deadline.
    pub fn on_time_between(&self, deadline: Span, from: Span, to: Span) -> u64 {
        let samples = self.sources.iter().zip(&self.latencies);
        let published = |source: &Instant<Local>| source.ns() >= from.ns() && source.ns() < to.ns();
        samples.filter(|(source, latency)| published(source) && **latency <= deadline).count() as u64
    }

    /// Samples delivered in a part of the run.
    pub fn delivered_between(&self, from: Span, to: Span) -> u64 {
        let delivered =
            self.sources.iter().zip(&self.latencies).map(|(source, latency)| source.ns() + latency.ns());
        delivered.filter(|at| (from.ns()..to.ns()).contains(at)).count() as u64
    }

    pub fn stream_share(&self) -> f64 {
        self.stream_bps / (self.stream_bps + self.tcp_bps)
    }
}

/// Lets `offer` and, if `tcp_from` says so, a CUBIC TCP flow share a line for `span`.
pub fn run(line: &str, offer: Offer, tcp_from: Option<Span>, (span, seed): (Span, u64)) -> Outcome {
    let beside = tcp_from.map_or(Beside::Nothing, Beside::Cubic);
    run_all(line, &[offer], beside, (span, seed)).remove(0)
}

/// The same with several streams of ours, and another flow.
pub fn run_all(line: &str, offers: &[Offer], beside: Beside, (span, seed): (Span, u64)) -> Vec<Outcome> {
    let spec: LinkSpec = line.parse().unwrap();
    let sender = Host::new(offers, true, beside);
    let receiver = Host::new(offers, false, beside);
    let mut network = Network::new(vec![sender, receiver], &spec, seed);
    network.endpoint(0).until = Instant::from_ns(span.ns());
    network.run_for(span).unwrap();
    let delivered: Vec<u64> = network.endpoint(1).streams.iter().map(|one| one.delivered_bytes).collect();
    let sent: Vec<u64> = network.endpoint(0).streams.iter().map(|one| one.sent_bytes).collect();
    let receiver = network.endpoint(1);
    let tcp = receiver.tcp.delivered_bytes() + receiver.bbr.delivered_bytes();
    // Retransmissions may still arrive.
    network.run_for(Span::from_s(3)).unwrap();
    let bps = |bytes: u64| bytes as f64 * 8.0 / span.as_s_f64();
    let outcome = |number: usize| {
        let receiver = &mut network.endpoint(1).streams[number];
        let latencies = std::mem::take(&mut receiver.latencies);
        let sources = std::mem::take(&mut receiver.sources);
        let transits = std::mem::take(&mut receiver.transits);
        let sender = &network.endpoint(0).streams[number];
        Outcome {
            stream_bps: bps(delivered[number]),
            tcp_bps: bps(tcp),
            sent_bps: bps(sent[number]),
            latencies,
            sources,
            transits,
            published: sender.published,
            capacity_bytes_per_s: sender.link.capacity_bytes_per_s(),
            counters: sender.link.counters(),
        }
    };
    (0..offers.len()).map(outcome).collect()
}
