//! A host with one QUIC connection, by quinn-proto: samples after their length on one stream.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant as QuicInstant};

use bytes::{Bytes, BytesMut};
use noctule_netsim::network::{Address, Destination, Endpoint, Transmit};
use noctule_prrt::Local;
use noctule_timebase::{Instant, Span};
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, EndpointConfig, Event, ServerConfig,
    StreamEvent, StreamId,
};

use crate::map::arrived::Arrived;
use crate::map::flow::{Flow, HEADERS_BYTES, STREAM};
use crate::map::{Cell, Fault, Load};
use crate::tls;

/// Bytes of a sample's length before it.
const LENGTH_BYTES: usize = 4;

/// One host; the first sends.
pub struct Host {
    quic: quinn_proto::Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    pub is_connected: bool,
    /// quinn-proto's time at the network's time zero.
    zero: QuicInstant,
    wake: Option<Instant<Local>>,
    /// Answers of the endpoint itself.
    answers: VecDeque<Vec<u8>>,
    /// Of the first.
    offer: Option<Offer>,
    stream: Option<StreamId>,
    pub flow: Flow,
    /// Bytes sent, headers included.
    pub wire_bytes: u64,
    pub arrived: Arrived,
    received_bytes: u64,
    load: Load,
}

struct Offer {
    samples: u64,
    published: u64,
    /// A sample with its length, and how much of it has not been taken.
    sample: Bytes,
    rest: Bytes,
}

/// Seed of what a host draws.
fn endpoint(server: Option<ServerConfig>, seed: u64) -> quinn_proto::Endpoint {
    let mut config = EndpointConfig::default();
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    config.rng_seed(Some(bytes));
    quinn_proto::Endpoint::new(Arc::new(config), server.map(Arc::new), true, None)
}

fn address(of_sender: bool) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1 + u8::from(!of_sender))), 4433)
}

impl Host {
    /// The two hosts of a cell, about to connect. Samples and the flow beside begin with [`Self::begin`].
    pub fn pair(
        cell: &Cell,
        (server, client): (ServerConfig, ClientConfig),
        seed: u64,
    ) -> Result<Vec<Host>, Fault> {
        let zero = QuicInstant::now();
        let host = |quic, connection| Host {
            quic,
            connection,
            is_connected: false,
            zero,
            wake: None,
            answers: VecDeque::new(),
            offer: None,
            stream: None,
            flow: Flow::Nothing,
            wire_bytes: 0,
            arrived: Arrived::new(cell.deadline, cell.samples()),
            received_bytes: 0,
            load: cell.load,
        };
        let mut quic = endpoint(None, seed);
        let connection = quic.connect(zero, client, address(false), tls::NAME)?;
        Ok(vec![host(quic, Some(connection)), host(endpoint(Some(server), seed + 1), None)])
    }

    /// The network's time begins anew, and the cell with it.
    pub fn begin(&mut self, cell: &Cell, passed: Span) {
        let sends = self.is_sender();
        self.zero += Duration::from_nanos(passed.ns() as u64);
        self.wire_bytes = 0;
        self.flow = Flow::new((cell.beside, cell.beside_from()), sends);
        let length = cell.load.bytes();
        let mut sample = BytesMut::from(&(length as u32).to_be_bytes()[..]);
        sample.resize(LENGTH_BYTES + length, 3);
        let sample = sample.freeze();
        self.offer =
            sends.then(|| Offer { samples: cell.samples(), published: 0, sample, rest: Bytes::new() });
        self.refresh();
    }

    fn is_sender(&self) -> bool {
        self.connection.as_ref().is_some_and(|(_, connection)| connection.side().is_client())
    }

    fn at(&self, now: Instant<Local>) -> QuicInstant {
        self.zero + Duration::from_nanos(now.ns() as u64)
    }

    fn refresh(&mut self) {
        let timeout = self.connection.as_mut().and_then(|(_, connection)| connection.poll_timeout());
        let zero = self.zero;
        self.wake = timeout.map(|at| Instant::from_ns(at.saturating_duration_since(zero).as_nanos() as i64));
    }

    fn next_sample(&self) -> Option<Instant<Local>> {
        let offer = self.offer.as_ref().filter(|offer| offer.published < offer.samples)?;
        Some(Instant::from_ns(0) + self.load.interval() * offer.published as i64)
    }

    fn publish(&mut self, now: Instant<Local>) {
        loop {
            let due = self.next_sample().is_some_and(|at| at <= now);
            let (Some(offer), Some((_, connection))) = (&mut self.offer, &mut self.connection) else {
                return;
            };
            if offer.rest.is_empty() {
                if !due {
                    return;
                }
                offer.published += 1;
                offer.rest = offer.sample.clone();
            }
            if self.stream.is_none() {
                self.stream = connection.streams().open(Dir::Uni);
            }
            let Some(stream) = self.stream else { return };
            let taken = connection.send_stream(stream).write_chunks(std::slice::from_mut(&mut offer.rest));
            if taken.is_err() {
                return;
            }
        }
    }

    /// What the connection wants of its endpoint and of the program.
    fn go_on(&mut self, now: Instant<Local>) {
        let Some((handle, connection)) = &mut self.connection else { return };
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = self.quic.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
        while let Some(event) = connection.poll() {
            match event {
                Event::Connected => self.is_connected = true,
                Event::Stream(StreamEvent::Opened { dir }) => self.stream = connection.streams().accept(dir),
                // quinn gives up a stream with more than 1,024 gaps. What has not arrived does not.
                Event::ConnectionLost { .. } => self.offer = None,
                _ => {}
            }
        }
        if !self.is_sender() {
            self.read(now);
        }
        self.refresh();
    }

    fn read(&mut self, now: Instant<Local>) {
        let (Some(stream), Some((_, connection))) = (self.stream, &mut self.connection) else { return };
        let mut stream = connection.recv_stream(stream);
        let Ok(mut chunks) = stream.read(true) else { return };
        let of_sample = (LENGTH_BYTES + self.load.bytes()) as u64;
        while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
            let before = self.received_bytes / of_sample;
            self.received_bytes += chunk.bytes.len() as u64;
            for number in before..self.received_bytes / of_sample {
                let source = Instant::from_ns(0) + self.load.interval() * number as i64;
                self.arrived.take(number + 1, now - source);
            }
        }
        let _ = chunks.finalize();
    }
}

impl Endpoint for Host {
    type Clock = Local;

    fn handle_datagram(&mut self, now: Instant<Local>, _: Address, bytes: &[u8]) {
        if bytes[0] != STREAM {
            return self.flow.handle_datagram(now, bytes);
        }
        let (at, data) = (self.at(now), BytesMut::from(&bytes[HEADERS_BYTES..]));
        let from = address(self.connection.is_none() || !self.is_sender());
        let mut answer = Vec::new();
        match self.quic.handle(at, from, None, None, data, &mut answer) {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut self.connection {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                if let Ok(accepted) = self.quic.accept(incoming, at, &mut answer, None) {
                    self.connection = Some(accepted);
                }
            }
            Some(DatagramEvent::Response(_)) => self.answers.push_back(answer),
            None => {}
        }
        self.go_on(now);
    }

    fn handle_timeout(&mut self, now: Instant<Local>) {
        let at = self.at(now);
        if let Some((_, connection)) = &mut self.connection {
            connection.handle_timeout(at);
        }
        self.go_on(now);
        self.flow.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant<Local>) -> Option<Transmit> {
        self.publish(now);
        let (at, to) = (self.at(now), Destination::One(Address(u32::from(self.is_sender()))));
        let mut payload = self.answers.pop_front().unwrap_or_default();
        if payload.is_empty() {
            if let Some((_, connection)) = &mut self.connection {
                let _ = connection.poll_transmit(at, 1, &mut payload);
            }
        }
        self.go_on(now);
        if payload.is_empty() {
            return self.flow.poll_transmit(now).map(|bytes| Transmit { to, bytes });
        }
        let mut bytes = vec![0; HEADERS_BYTES];
        bytes[0] = STREAM;
        bytes.extend_from_slice(&payload);
        self.wire_bytes += bytes.len() as u64;
        Some(Transmit { to, bytes })
    }

    fn poll_timeout(&self) -> Option<Instant<Local>> {
        [self.wake, self.next_sample(), self.flow.poll_timeout()].into_iter().flatten().min()
    }
}
