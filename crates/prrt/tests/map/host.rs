//! A host of the map: the stream that is looked at, and what flows beside it.

use noctule_netsim::network::{Address, Destination, Endpoint, Transmit};
use noctule_prrt::{Arrival, Class, Link, LinkConfig, Local, Origin, Outgoing, StreamId};
use noctule_timebase::{Instant, Span};

use super::bbr::{self, Bbr};
use super::cubic::{self, CubicTcp};
use super::{Beside, Load, PARTS};

const WRITER: StreamId = StreamId(1);
/// Headers of IPv4 and UDP.
const HEADERS_BYTES: usize = 28;
/// First byte of a datagram of the stream, and of the stream of ours beside it.
const STREAM: u8 = 1;
const OTHER: u8 = 2;
/// Bytes of a sample of the stream of ours beside it, and what its program is let keep waiting.
const OTHER_BYTES: usize = 1_200;
const OTHER_HELD_BYTES: usize = 2_000_000;

/// Load of the stream.
pub struct Offer {
    pub load: Load,
    pub class: Class,
    pub samples: u64,
}

enum Flow {
    Nothing,
    Cubic(CubicTcp),
    Bbr(Bbr),
    Ours { link: Box<Link>, from: Instant<Local>, published: u64 },
}

/// One host; the first sends.
pub struct Host {
    pub link: Link,
    offer: Option<Offer>,
    pub published: u64,
    payload: Vec<u8>,
    flow: Flow,
    flow_bytes: u64,
    /// Bytes sent, headers included.
    pub wire_bytes: u64,
    pub arrived: Arrived,
}

/// Arrivals at the receiver.
pub struct Arrived {
    pub deadline: Span,
    seen: Vec<bool>,
    pub on_time: u64,
    pub late: u64,
    /// Samples in time by equal parts of the run.
    pub on_time_by_part: [u64; PARTS],
    pub latencies: Vec<Span>,
}

impl Arrived {
    fn take(&mut self, sequence: u64, latency: Span) {
        let samples = self.seen.len() as u64;
        let Some(seen) = self.seen.get_mut(sequence as usize - 1) else { return };
        if std::mem::replace(seen, true) {
            return;
        }
        self.latencies.push(latency);
        if latency > self.deadline {
            self.late += 1;
            return;
        }
        self.on_time += 1;
        self.on_time_by_part[((sequence - 1) * PARTS as u64 / samples) as usize] += 1;
    }
}

fn links_end(class: Class) -> Link {
    let mut link = Link::new(LinkConfig::default(), Instant::from_ns(0));
    link.expect(WRITER, 1 << 24, class);
    link
}

impl Host {
    /// The two hosts of a cell.
    pub fn pair(offer: Offer, deadline: Span, beside: (Beside, Instant<Local>)) -> Vec<Host> {
        let (class, samples) = (offer.class, offer.samples);
        let host = |offer: Option<Offer>| Host {
            link: links_end(class),
            payload: vec![3; offer.as_ref().map_or(0, |offer| offer.load.bytes())],
            published: 0,
            flow: Flow::new(beside, offer.is_some()),
            offer,
            flow_bytes: 0,
            wire_bytes: 0,
            arrived: Arrived {
                deadline,
                seen: vec![false; samples as usize],
                on_time: 0,
                late: 0,
                on_time_by_part: [0; PARTS],
                latencies: Vec::with_capacity(samples as usize),
            },
        };
        vec![host(Some(offer)), host(None)]
    }

    /// Payload bytes that the flow beside the stream delivered here.
    pub fn flow_bytes(&self) -> u64 {
        match &self.flow {
            Flow::Nothing => 0,
            Flow::Cubic(tcp) => tcp.delivered_bytes(),
            Flow::Bbr(tcp) => tcp.delivered_bytes(),
            Flow::Ours { .. } => self.flow_bytes,
        }
    }

    fn next_sample(&self) -> Option<Instant<Local>> {
        let offer = self.offer.as_ref().filter(|offer| self.published < offer.samples)?;
        Some(Instant::from_ns(0) + offer.load.interval() * self.published as i64)
    }

    fn publish(&mut self, now: Instant<Local>) {
        while let Some(at) = self.next_sample().filter(|at| *at <= now) {
            let Some(offer) = &self.offer else { return };
            self.published += 1;
            let sample = Outgoing {
                writer: WRITER,
                sequence: self.published,
                origin: Origin::exactly(at.ns()),
                age: now - at,
                class: offer.class,
                // A reliable stream loses nothing, as TCP and QUIC do not.
                depth: if offer.class == Class::Reliable { u32::MAX } else { 8 },
                payload: &self.payload,
            };
            // What is refused is not in time.
            let _ = self.link.send(&sample, now);
        }
    }
}

impl Flow {
    fn new((beside, start): (Beside, Instant<Local>), sends: bool) -> Flow {
        match beside {
            Beside::Nothing => Flow::Nothing,
            Beside::Cubic if sends => Flow::Cubic(CubicTcp::sender(Some(start))),
            Beside::Cubic => Flow::Cubic(CubicTcp::receiver()),
            Beside::Bbr => Flow::Bbr(Bbr::new(sends, start)),
            Beside::Ours => Flow::Ours {
                link: Box::new(links_end(Class::Reliable)),
                from: start,
                published: u64::from(!sends) * u64::MAX,
            },
        }
    }

    fn poll_transmit(&mut self, now: Instant<Local>) -> Option<Vec<u8>> {
        match self {
            Flow::Nothing => None,
            Flow::Cubic(tcp) => tcp.poll_transmit(now),
            Flow::Bbr(tcp) => tcp.poll_transmit(now),
            Flow::Ours { link, from, published } => {
                while *published < u64::MAX && now >= *from && link.held_bytes().0 < OTHER_HELD_BYTES {
                    *published += 1;
                    let sample = Outgoing {
                        writer: WRITER,
                        sequence: *published,
                        origin: Origin::exactly(now.ns()),
                        age: Span::ZERO,
                        class: Class::Reliable,
                        depth: u32::MAX,
                        payload: &[4; OTHER_BYTES],
                    };
                    let _ = link.send(&sample, now);
                }
                let mut bytes = vec![0; HEADERS_BYTES];
                bytes[0] = OTHER;
                link.poll_transmit(now, &mut bytes).then_some(bytes)
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant<Local>> {
        match self {
            Flow::Nothing => None,
            Flow::Cubic(tcp) => tcp.poll_timeout(),
            Flow::Bbr(tcp) => tcp.poll_timeout(),
            Flow::Ours { link, from, published } => {
                link.poll_timeout().into_iter().chain((*published == 0).then_some(*from)).min()
            }
        }
    }

    fn handle_timeout(&mut self, now: Instant<Local>) {
        match self {
            Flow::Nothing => {}
            Flow::Cubic(tcp) => tcp.handle_timeout(now),
            Flow::Bbr(tcp) => tcp.handle_timeout(now),
            Flow::Ours { link, .. } => link.handle_timeout(now, &mut |_| {}),
        }
    }
}

impl Endpoint for Host {
    type Clock = Local;

    fn handle_datagram(&mut self, now: Instant<Local>, _: Address, bytes: &[u8]) {
        let arrival =
            Arrival { now, came: now, own_ns: now.ns(), peer_ns: Some(now.ns()), ecn: Default::default() };
        match (bytes[0], &mut self.flow) {
            (STREAM, _) => {
                let arrived = &mut self.arrived;
                let mut deliver = |sample: noctule_prrt::Delivered<'_>| {
                    arrived.take(sample.sequence, now - Instant::from_ns(sample.origin.source_time_ns));
                };
                let taken = self.link.handle_datagram(&bytes[HEADERS_BYTES..], arrival, &mut deliver);
                assert_eq!(taken, Ok(()));
            }
            (OTHER, Flow::Ours { link, .. }) => {
                let delivered = &mut self.flow_bytes;
                let taken = link.handle_datagram(&bytes[HEADERS_BYTES..], arrival, &mut |sample| {
                    *delivered += sample.payload.len() as u64;
                });
                assert_eq!(taken, Ok(()));
            }
            (_, Flow::Cubic(tcp)) => {
                if let Some(segment) = cubic::read(bytes) {
                    tcp.handle_segment(segment, now);
                }
            }
            (_, Flow::Bbr(tcp)) => {
                if let Some(segment) = bbr::read(bytes) {
                    tcp.handle_segment(segment, now);
                }
            }
            _ => unreachable!("a datagram that was never sent"),
        }
    }

    fn handle_timeout(&mut self, now: Instant<Local>) {
        let arrived = &mut self.arrived;
        self.link.handle_timeout(now, &mut |sample| {
            arrived.take(sample.sequence, now - Instant::from_ns(sample.origin.source_time_ns));
        });
        self.flow.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant<Local>) -> Option<Transmit> {
        self.publish(now);
        let to = Destination::One(Address(u32::from(self.offer.is_some())));
        let mut bytes = vec![0; HEADERS_BYTES];
        bytes[0] = STREAM;
        if self.link.poll_transmit(now, &mut bytes) {
            self.wire_bytes += bytes.len() as u64;
            return Some(Transmit { to, bytes });
        }
        self.flow.poll_transmit(now).map(|bytes| Transmit { to, bytes })
    }

    fn poll_timeout(&self) -> Option<Instant<Local>> {
        let timeouts = [self.link.poll_timeout(), self.next_sample(), self.flow.poll_timeout()];
        timeouts.into_iter().flatten().min()
    }
}
