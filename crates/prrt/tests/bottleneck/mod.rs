//! Two hosts on one line: a reliable stream from one to the other, and TCP's CUBIC beside it.
#![allow(missing_docs, unreachable_pub, clippy::unwrap_used)]

use noctule_netsim::network::{Address, Destination, Endpoint, Transmit};
use noctule_netsim::{LinkSpec, Network};
use noctule_prrt::{Arrival, Class, Link, LinkConfig, Local, Origin, Outgoing, StreamId};
use noctule_timebase::{Instant, Span};

use cubic::CubicTcp;

mod cubic;

const WRITER: StreamId = StreamId(1);
/// What IPv4 and UDP put in front; here, when it left.
const HEADERS_BYTES: usize = 28;

/// What the stream is offered.
#[derive(Clone, Copy, Debug)]
pub enum Offer {
    Nothing,
    /// Samples of so many bytes as fast as they are taken.
    Elastic(usize),
    /// Samples of so many bytes at this interval.
    Paced(usize, Span),
}

/// One host.
pub struct Host {
    pub link: Link,
    pub tcp: CubicTcp,
    offer: Offer,
    published: u64,
    next_sample: Instant<Local>,
    pub until: Instant<Local>,
    /// Source time to delivery, of each sample in order.
    pub latencies: Vec<Span>,
    /// Of each datagram of the stream.
    pub transits: Vec<Span>,
    pub delivered_bytes: u64,
    now: Instant<Local>,
}

impl Host {
    fn new(offer: Offer, tcp: CubicTcp) -> Host {
        let now = Instant::from_ns(0);
        let mut link = Link::new(LinkConfig::default(), now);
        link.expect(WRITER, 1 << 20, Class::Reliable);
        Host {
            link,
            tcp,
            offer,
            published: 0,
            next_sample: now,
            until: Instant::from_ns(i64::MAX),
            latencies: Vec::new(),
            transits: Vec::new(),
            delivered_bytes: 0,
            now,
        }
    }

    fn publish(&mut self, bytes: usize, now: Instant<Local>) {
        self.published += 1;
        let sample = Outgoing {
            writer: WRITER,
            sequence: self.published,
            origin: Origin::exactly(now.ns()),
            age: Span::ZERO,
            class: Class::Reliable,
            depth: u32::MAX,
            payload: &vec![3; bytes],
        };
        // The queue is never full here.
        let _ = self.link.send(&sample, now);
    }
}

impl Endpoint for Host {
    type Clock = Local;

    fn handle_datagram(&mut self, now: Instant<Local>, _: Address, bytes: &[u8]) {
        if let Some(segment) = cubic::read(bytes) {
            self.tcp.handle_segment(segment, now);
            return;
        }
        let (latencies, delivered) = (&mut self.latencies, &mut self.delivered_bytes);
        let arrival = Arrival { now, came: now, own_ns: now.ns(), peer_ns: Some(now.ns()) };
        let left = i64::from_be_bytes(bytes[HEADERS_BYTES - 8..HEADERS_BYTES].try_into().unwrap());
        self.transits.push(now - Instant::from_ns(left));
        let taken = self.link.handle_datagram(&bytes[HEADERS_BYTES..], arrival, &mut |sample| {
            latencies.push(now - Instant::from_ns(sample.origin.source_time_ns));
            *delivered += sample.payload.len() as u64;
        });
        assert_eq!(taken, Ok(()));
    }

    fn handle_timeout(&mut self, now: Instant<Local>) {
        self.link.handle_timeout(now, &mut |_| {});
        self.tcp.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant<Local>) -> Option<Transmit> {
        self.now = now;
        let is_over = now >= self.until;
        match self.offer {
            // As with a program that is let as many bytes as two sockets hold.
            Offer::Elastic(bytes) if !is_over => {
                while self.link.held_bytes().0 < 2_000_000 {
                    self.publish(bytes, now);
                }
            }
            Offer::Paced(bytes, interval) if !is_over && self.next_sample <= now => {
                self.publish(bytes, now);
                self.next_sample += interval;
            }
            _ => {}
        }
        let to = Destination::One(Address(if self.tcp.is_first() { 1 } else { 0 }));
        if let Some(bytes) = self.tcp.poll_transmit(now) {
            return Some(Transmit { to, bytes });
        }
        let mut bytes = vec![0; HEADERS_BYTES - 8];
        bytes.extend_from_slice(&now.ns().to_be_bytes());
        self.link.poll_transmit(now, &mut bytes).then_some(Transmit { to, bytes })
    }

    fn poll_timeout(&self) -> Option<Instant<Local>> {
        let sample = match self.offer {
            Offer::Paced(..) if self.now < self.until => Some(self.next_sample),
            _ => None,
        };
        self.link.poll_timeout().into_iter().chain(sample).chain(self.tcp.poll_timeout()).min()
    }
}

/// What came of a run.
#[derive(Debug)]
pub struct Outcome {
    /// Payload of samples and of segments delivered, bits a second.
    pub stream_bps: f64,
    pub tcp_bps: f64,
    pub latencies: Vec<Span>,
    pub transits: Vec<Span>,
    pub published: u64,
    pub capacity_bytes_per_s: Option<f64>,
    pub lost_packets: u64,
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

    pub fn stream_share(&self) -> f64 {
        self.stream_bps / (self.stream_bps + self.tcp_bps)
    }
}

/// Lets `offer` and, if `tcp_from` says so, a CUBIC TCP flow share a line for `span`.
pub fn run(line: &str, offer: Offer, tcp_from: Option<Span>, (span, seed): (Span, u64)) -> Outcome {
    let spec: LinkSpec = line.parse().unwrap();
    let sender = Host::new(offer, CubicTcp::sender(tcp_from.map(|from| Instant::from_ns(from.ns()))));
    let receiver = Host::new(Offer::Nothing, CubicTcp::receiver());
    let mut network = Network::new(vec![sender, receiver], &spec, seed);
    network.endpoint(0).until = Instant::from_ns(span.ns());
    network.run_for(span).unwrap();
    let (stream, tcp) = (network.endpoint(1).delivered_bytes, network.endpoint(1).tcp.delivered_bytes());
    // What was repeated meanwhile may still come.
    network.run_for(Span::from_s(3)).unwrap();
    let latencies = std::mem::take(&mut network.endpoint(1).latencies);
    let transits = std::mem::take(&mut network.endpoint(1).transits);
    let sender = network.endpoint(0);
    let counters = sender.link.counters();
    let bps = |bytes: u64| bytes as f64 * 8.0 / span.as_s_f64();
    Outcome {
        stream_bps: bps(stream),
        tcp_bps: bps(tcp),
        latencies,
        transits,
        published: sender.published,
        capacity_bytes_per_s: sender.link.capacity_bytes_per_s(),
        lost_packets: counters.lost_packets,
    }
}
