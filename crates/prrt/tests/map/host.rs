//! A host of the map: the stream that is looked at, and what flows beside it.

use noctule_netsim::network::{Address, Destination, Endpoint, Transmit};
use noctule_prrt::{Class, Link, Local, Origin, Outgoing};
use noctule_timebase::{Instant, Span};

use super::arrived::Arrived;
use super::flow::{Flow, HEADERS_BYTES, STREAM, WRITER, at_once, links_end};
use super::{Beside, Load};

/// Load of the stream.
pub struct Offer {
    pub load: Load,
    pub class: Class,
    pub samples: u64,
}

/// One host; the first sends.
pub struct Host {
    pub link: Link,
    offer: Option<Offer>,
    pub published: u64,
    payload: Vec<u8>,
    pub flow: Flow,
    /// Bytes sent, headers included.
    pub wire_bytes: u64,
    pub arrived: Arrived,
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
            wire_bytes: 0,
            arrived: Arrived::new(deadline, samples),
        };
        vec![host(Some(offer)), host(None)]
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

impl Endpoint for Host {
    type Clock = Local;

    fn handle_datagram(&mut self, now: Instant<Local>, _: Address, bytes: &[u8]) {
        if bytes[0] != STREAM {
            return self.flow.handle_datagram(now, bytes);
        }
        let arrived = &mut self.arrived;
        let mut deliver = |sample: noctule_prrt::Delivered<'_>| {
            arrived.take(sample.sequence, now - Instant::from_ns(sample.origin.source_time_ns));
        };
        let taken = self.link.handle_datagram(&bytes[HEADERS_BYTES..], at_once(now), &mut deliver);
        assert_eq!(taken, Ok(()));
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
