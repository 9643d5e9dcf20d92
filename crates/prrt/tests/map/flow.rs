//! What flows beside the stream that is looked at.

use noctule_prrt::{Arrival, Class, Link, LinkConfig, Local, Origin, Outgoing, StreamId};
use noctule_timebase::{Instant, Span};

use super::Beside;
use super::bbr::{self, Bbr};
use super::cubic::{self, CubicTcp};

pub const WRITER: StreamId = StreamId(1);
/// Headers of IPv4 and UDP.
pub const HEADERS_BYTES: usize = 28;
/// First byte of a datagram of the stream, and of the stream of ours beside it.
pub const STREAM: u8 = 1;
const OTHER: u8 = 2;
/// Bytes of a sample of the stream of ours beside it, and what its program is let keep waiting.
const OTHER_BYTES: usize = 1_200;
const OTHER_HELD_BYTES: usize = 2_000_000;

/// One end of it.
pub enum Flow {
    Nothing,
    Cubic(CubicTcp),
    Bbr(Bbr),
    Ours { link: Box<Link>, from: Instant<Local>, published: u64, delivered_bytes: u64 },
}

/// An end of a link of ours for one stream.
pub fn links_end(class: Class) -> Link {
    let mut link = Link::new(LinkConfig::default(), Instant::from_ns(0));
    link.expect(WRITER, 1 << 24, class);
    link
}

/// A datagram that its receiver reads when it comes, by a clock that both ends have.
pub fn at_once(now: Instant<Local>) -> Arrival {
    Arrival { now, came: now, own_ns: now.ns(), peer_ns: Some(now.ns()), ecn: Default::default() }
}

impl Flow {
    pub fn new((beside, start): (Beside, Instant<Local>), sends: bool) -> Flow {
        match beside {
            Beside::Nothing => Flow::Nothing,
            Beside::Cubic if sends => Flow::Cubic(CubicTcp::sender(Some(start))),
            Beside::Cubic => Flow::Cubic(CubicTcp::receiver()),
            Beside::Bbr => Flow::Bbr(Bbr::new(sends, start)),
            Beside::Ours => Flow::Ours {
                link: Box::new(links_end(Class::Reliable)),
                from: start,
                published: u64::from(!sends) * u64::MAX,
                delivered_bytes: 0,
            },
        }
    }

    pub fn poll_transmit(&mut self, now: Instant<Local>) -> Option<Vec<u8>> {
        match self {
            Flow::Nothing => None,
            Flow::Cubic(tcp) => tcp.poll_transmit(now),
            Flow::Bbr(tcp) => tcp.poll_transmit(now),
            Flow::Ours { link, from, published, .. } => {
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

    pub fn poll_timeout(&self) -> Option<Instant<Local>> {
        match self {
            Flow::Nothing => None,
            Flow::Cubic(tcp) => tcp.poll_timeout(),
            Flow::Bbr(tcp) => tcp.poll_timeout(),
            Flow::Ours { link, from, published, .. } => {
                link.poll_timeout().into_iter().chain((*published == 0).then_some(*from)).min()
            }
        }
    }

    pub fn handle_timeout(&mut self, now: Instant<Local>) {
        match self {
            Flow::Nothing => {}
            Flow::Cubic(tcp) => tcp.handle_timeout(now),
            Flow::Bbr(tcp) => tcp.handle_timeout(now),
            Flow::Ours { link, .. } => link.handle_timeout(now, &mut |_| {}),
        }
    }

    /// Payload bytes delivered here.
    pub fn delivered_bytes(&self) -> u64 {
        match self {
            Flow::Nothing => 0,
            Flow::Cubic(tcp) => tcp.delivered_bytes(),
            Flow::Bbr(tcp) => tcp.delivered_bytes(),
            Flow::Ours { delivered_bytes, .. } => *delivered_bytes,
        }
    }

    pub fn handle_datagram(&mut self, now: Instant<Local>, bytes: &[u8]) {
        match (bytes[0], self) {
            (OTHER, Flow::Ours { link, delivered_bytes, .. }) => {
                let taken = link.handle_datagram(&bytes[HEADERS_BYTES..], at_once(now), &mut |sample| {
                    *delivered_bytes += sample.payload.len() as u64;
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
}
