//! QUIC under test, by quinn: one connection per reader, called by the writer, encrypted as QUIC always is.
//!
//! Every reader makes a certificate for itself and says it in its address, in hexadecimal; a line of the protocol
//! holds ten of them. The writer trusts that one and no other.
//!
//! Options: `delivery=stream` (the default): one unidirectional stream, each message after its length, reliable and in
//! order; a lost packet holds up what comes after it. `delivery=streams`: a stream per message, so that messages do not
//! wait for each other. `delivery=datagram`: RFC 9221, never repaired, at most a packet. QUIC knows no deadline.
//! `datagram_buffer_bytes=N`: datagrams that wait for the congestion controller; beyond it the oldest is dropped (default: all wait).
//! `congestion=cubic|bbr|newreno`: the first is quinn's default. `packet_bytes=N`: UDP payload to begin with.
//!
//! The endpoint runs on the own thread of an initiator, an echo and a sink, which saves a wake-up per message. A source,
//! which sleeps between messages, and a forwarder, which may have something to send after it has received all, have a thread.

mod certificate;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use noctule_peer::{Deliver, Description, Open, Outgoing, Peer, PeerError, Role, Transport, Wait};
use quinn::congestion::{BbrConfig, ControllerFactory, CubicConfig, NewRenoConfig};
use quinn::{Connection, Endpoint, MtuDiscoveryConfig, RecvStream, SendStream, TransportConfig, VarInt};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::{mpsc, oneshot};

const PAYLOAD_BYTES_MAX: u64 = 16 << 20;
const MATCH_TIMEOUT: Duration = Duration::from_secs(10);
/// Flow control never limits what the window of the lab allows; the congestion controller may.
const WINDOW_BYTES: std::ops::RangeInclusive<u64> = 8 << 20..=64 << 20;
/// Largest datagram in an Ethernet frame: 1,500 bytes less IPv4 and UDP. quinn would begin with 1,200 and find out.
const PACKET_BYTES: u16 = 1472;

fn main() -> ExitCode {
    noctule_peer::serve(&Quinn)
}

struct Quinn;

/// How messages travel.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Delivery {
    Stream,
    Streams,
    Datagram,
}

impl Peer for Quinn {
    fn describe(&self) -> Description {
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        Description {
            name: "quinn".into(),
            version: version().into(),
            links: words(&["udp"]),
            waits: vec![Wait::Spin, Wait::Block, Wait::Hybrid],
            modes: words(&["round_trip", "one_way", "chain", "fan_out"]),
            formats: words(&["raw"]),
            payload_bytes_max: PAYLOAD_BYTES_MAX,
        }
    }

    fn open(&self, open: &Open) -> Result<Box<dyn Transport>, PeerError> {
        let delivery = match option(open, "delivery", "stream") {
            "stream" => Delivery::Stream,
            "streams" => Delivery::Streams,
            "datagram" => Delivery::Datagram,
            other => {
                return Err(PeerError(format!(
                    "option.delivery={other} is none of stream, streams, datagram"
                )));
            }
        };
        let transport = Arc::new(transport_config(open)?);
        let failed =
            |e: &dyn std::fmt::Display| PeerError::of(&format!("no endpoint on {}", open.bind_address), e);
        let runtime = Builder::new_current_thread().enable_all().build().map_err(|e| failed(&e))?;
        let host: SocketAddr = format!("{}:0", open.bind_address).parse().map_err(|e| failed(&e))?;
        let entered = runtime.enter();
        let (endpoint, certificate) = match &open.subscribe {
            None => (Endpoint::client(host), None),
            Some(_) => {
                let (config, certificate) = certificate::server(&transport)?;
                (Endpoint::server(config, host), Some(certificate::to_text(&certificate)))
            }
        };
        drop(entered);
        let endpoint = endpoint.map_err(|e| failed(&e))?;
        let waits = !matches!(open.role, Role::Source | Role::Forwarder);
        let driver = if waits { Driver::Here(runtime) } else { Driver::there(runtime) };
        let (outlets, inlet, frame, open) = (Vec::new(), None, Vec::new(), open.clone());
        Ok(Box::new(Ends { outlets, inlet, frame, endpoint, certificate, transport, delivery, open, driver }))
    }
}

fn option<'a>(open: &'a Open, name: &str, otherwise: &'a str) -> &'a str {
    open.options.get(name).map_or(otherwise, String::as_str)
}

/// quinn says its version nowhere; the lock file this program was built from does.
fn version() -> &'static str {
    let lock = include_str!("../Cargo.lock");
    let after = lock.split_once("name = \"quinn\"\nversion = \"").map_or("unknown\"", |(_, after)| after);
    after.split('"').next().unwrap_or("unknown")
}

fn transport_config(open: &Open) -> Result<TransportConfig, PeerError> {
    let window_bytes = (u64::from(open.window) * open.payload_bytes as u64)
        .clamp(*WINDOW_BYTES.start(), *WINDOW_BYTES.end());
    let limit = VarInt::from_u64(window_bytes).unwrap_or(VarInt::MAX);
    let congestion: Arc<dyn ControllerFactory + Send + Sync> = match option(open, "congestion", "cubic") {
        "cubic" => Arc::new(CubicConfig::default()),
        "bbr" => Arc::new(BbrConfig::default()),
        "newreno" => Arc::new(NewRenoConfig::default()),
        other => return Err(PeerError(format!("option.congestion={other} is none of cubic, bbr, newreno"))),
    };
    let packet_bytes = match open.options.get("packet_bytes") {
        None => PACKET_BYTES,
        Some(text) => {
            text.parse().map_err(|_| PeerError(format!("option.packet_bytes={text} is no number")))?
        }
    };
    let mut discovery = MtuDiscoveryConfig::default();
    discovery.upper_bound(packet_bytes);
    let mut config = TransportConfig::default();
    config
        .congestion_controller_factory(congestion)
        .stream_receive_window(limit)
        .receive_window(limit)
        .send_window(window_bytes)
        .max_concurrent_uni_streams(VarInt::from_u32(open.window.max(64)))
        .datagram_receive_buffer_size(Some(window_bytes as usize))
        .datagram_send_buffer_size(datagram_buffer_bytes(open, window_bytes)?)
        .initial_mtu(packet_bytes)
        .mtu_discovery_config(Some(discovery));
    Ok(config)
}

fn datagram_buffer_bytes(open: &Open, otherwise: u64) -> Result<usize, PeerError> {
    let Some(text) = open.options.get("datagram_buffer_bytes") else { return Ok(otherwise as usize) };
    text.parse().map_err(|_| PeerError(format!("option.datagram_buffer_bytes={text} is no number")))
}

/// The thread that runs the endpoint.
enum Driver {
    /// The node's thread, while it sends or waits.
    Here(Runtime),
    /// A thread of its own, until `end` is sent.
    There { handle: Handle, end: Option<oneshot::Sender<()>>, thread: Option<std::thread::JoinHandle<()>> },
}

impl Driver {
    fn there(runtime: Runtime) -> Self {
        let handle = runtime.handle().clone();
        let (end, ended) = oneshot::channel::<()>();
        let thread = std::thread::spawn(move || {
            let _ = runtime.block_on(ended);
        });
        Self::There { handle, end: Some(end), thread: Some(thread) }
    }

    /// Runs `work` to its end.
    fn run<T>(&self, work: impl Future<Output = T>) -> T {
        match self {
            Self::Here(runtime) => runtime.block_on(work),
            Self::There { handle, .. } => handle.block_on(work),
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        if let Self::There { end, thread, .. } = self {
            drop(end.take());
            let _ = thread.take().map(std::thread::JoinHandle::join);
        }
    }
}

struct Outlet {
    connection: Connection,
    /// The one stream of `delivery=stream`.
    stream: Option<SendStream>,
}

/// The writer's connection, and what tasks of the runtime have taken from it.
struct Inlet {
    connection: Connection,
    messages: mpsc::Receiver<Bytes>,
}

// Dropped in this order: what lives on the runtime before the runtime.
struct Ends {
    outlets: Vec<Outlet>,
    inlet: Option<Inlet>,
    frame: Vec<u8>,
    endpoint: Endpoint,
    certificate: Option<String>,
    transport: Arc<TransportConfig>,
    delivery: Delivery,
    open: Open,
    driver: Driver,
}

impl Transport for Ends {
    fn address(&self) -> Option<String> {
        Some(format!("{}/{}", self.endpoint.local_addr().ok()?, self.certificate.as_ref()?))
    }

    fn connect(&mut self, readers: &[String]) -> Result<BTreeMap<String, String>, PeerError> {
        let late = |_| PeerError("a reader did not answer, or no writer called, within 10 s".into());
        let (outlets, inlet) = self.driver.run(async {
            // Both at once: a node that calls must also answer.
            let partners = async { tokio::try_join!(self.call(readers), self.answer()) };
            tokio::time::timeout(MATCH_TIMEOUT, partners).await.map_err(late)?
        })?;
        (self.outlets, self.inlet) = (outlets, inlet);
        let largest = self.outlets.iter().filter_map(|outlet| outlet.connection.max_datagram_size()).min();
        if self.delivery == Delivery::Datagram
            && largest.is_some_and(|largest| largest < self.open.payload_bytes)
        {
            let (wanted, largest) = (self.open.payload_bytes, largest.unwrap_or(0));
            return Err(PeerError(format!(
                "a datagram holds {largest} bytes, not {wanted}: use delivery=stream"
            )));
        }
        let setting =
            |name: &str, otherwise: &str| (name.to_owned(), option(&self.open, name, otherwise).to_owned());
        Ok(BTreeMap::from([
            setting("delivery", "stream"),
            setting("congestion", "cubic"),
            setting("datagram_buffer_bytes", "window"),
            setting("packet_bytes", &PACKET_BYTES.to_string()),
            ("encryption".into(), "TLS 1.3".into()),
        ]))
    }

    #[inline]
    fn send(&mut self, message: &mut Outgoing) -> Result<(), PeerError> {
        let Self { outlets, driver, delivery, frame, .. } = self;
        let bytes = message.bytes();
        frame.clear();
        if *delivery != Delivery::Datagram {
            frame.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        }
        frame.extend_from_slice(bytes);
        driver.run(async {
            for outlet in outlets.iter_mut() {
                outlet.send(*delivery, frame).await?;
            }
            // The connection's own task puts it on the wire.
            tokio::task::yield_now().await;
            Ok(())
        })
    }

    #[inline]
    fn try_receive(&mut self, deliver: &mut Deliver<'_>) -> Result<usize, PeerError> {
        let Self { inlet: Some(inlet), driver, .. } = self else { return Ok(0) };
        // One turn of the runtime: a look at the socket, then the tasks that it woke.
        driver.run(tokio::task::yield_now());
        inlet.take(None, deliver)
    }

    fn receive(&mut self, timeout: Duration, deliver: &mut Deliver<'_>) -> Result<usize, PeerError> {
        let Self { inlet: Some(inlet), driver, .. } = self else { return Ok(0) };
        let first = driver.run(async { tokio::time::timeout(timeout, inlet.messages.recv()).await });
        match first {
            Err(_) => Ok(0),
            Ok(message) => inlet.take(message, deliver),
        }
    }
}

impl Ends {
    async fn call(&self, readers: &[String]) -> Result<Vec<Outlet>, PeerError> {
        let mut outlets = Vec::new();
        for reader in readers {
            let failed = |e: &dyn std::fmt::Display| PeerError::of("cannot connect to a reader", e);
            let (host, certificate) =
                reader.split_once('/').ok_or_else(|| failed(&"its address has no certificate"))?;
            let host: SocketAddr = host.parse().map_err(|e| failed(&e))?;
            let config = certificate::client(certificate, &self.transport)?;
            let calling =
                self.endpoint.connect_with(config, host, certificate::NAME).map_err(|e| failed(&e))?;
            let connection = calling.await.map_err(|e| failed(&e))?;
            let stream = match self.delivery {
                Delivery::Stream => Some(connection.open_uni().await.map_err(|e| failed(&e))?),
                Delivery::Streams | Delivery::Datagram => None,
            };
            outlets.push(Outlet { connection, stream });
        }
        Ok(outlets)
    }

    async fn answer(&self) -> Result<Option<Inlet>, PeerError> {
        if self.open.subscribe.is_none() {
            return Ok(None);
        }
        let failed = |e: &dyn std::fmt::Display| PeerError::of("cannot answer the writer", e);
        let incoming = self.endpoint.accept().await.ok_or_else(|| failed(&"the endpoint has closed"))?;
        let connection = incoming.await.map_err(|e| failed(&e))?;
        let (sender, messages) = mpsc::channel(self.open.window as usize);
        if self.delivery == Delivery::Datagram {
            tokio::spawn(take_datagrams(connection.clone(), sender));
        } else {
            tokio::spawn(take_streams(connection.clone(), sender));
        }
        Ok(Some(Inlet { connection, messages }))
    }
}

impl Outlet {
    async fn send(&mut self, delivery: Delivery, frame: &[u8]) -> Result<(), PeerError> {
        let failed = |e: &dyn std::fmt::Display| PeerError::of("cannot send", e);
        match (delivery, &mut self.stream) {
            (Delivery::Datagram, _) => {
                self.connection.send_datagram(Bytes::copy_from_slice(frame)).map_err(|e| failed(&e))
            }
            (_, Some(stream)) => stream.write_all(frame).await.map_err(|e| failed(&e)),
            (_, None) => {
                let mut stream = self.connection.open_uni().await.map_err(|e| failed(&e))?;
                stream.write_all(frame).await.map_err(|e| failed(&e))?;
                stream.finish().map_err(|e| failed(&e))
            }
        }
    }
}

impl Inlet {
    /// Delivers `first` and what else is there. An end of the channel is an end of the connection.
    fn take(&mut self, first: Option<Bytes>, deliver: &mut Deliver<'_>) -> Result<usize, PeerError> {
        let mut delivered = 0;
        let mut next = first.or_else(|| self.messages.try_recv().ok());
        while let Some(message) = next {
            deliver(&message);
            delivered += 1;
            next = self.messages.try_recv().ok();
        }
        match self.connection.close_reason() {
            Some(reason) if delivered == 0 => Err(PeerError::of("the writer's connection has ended", reason)),
            _ => Ok(delivered),
        }
    }
}

async fn take_datagrams(connection: Connection, messages: mpsc::Sender<Bytes>) {
    while let Ok(datagram) = connection.read_datagram().await {
        if messages.send(datagram).await.is_err() {
            return;
        }
    }
}

async fn take_streams(connection: Connection, messages: mpsc::Sender<Bytes>) {
    while let Ok(stream) = connection.accept_uni().await {
        tokio::spawn(take_messages(stream, messages.clone()));
    }
}

/// Cuts a stream into messages; ends with the stream, or at a length no message has.
async fn take_messages(mut stream: RecvStream, messages: mpsc::Sender<Bytes>) {
    let mut length = [0; 4];
    while stream.read_exact(&mut length).await.is_ok() {
        let length = u32::from_le_bytes(length) as usize;
        if length as u64 > PAYLOAD_BYTES_MAX {
            return;
        }
        let mut message = Vec::with_capacity(length);
        while message.len() < length {
            match stream.read_chunk(length - message.len(), true).await {
                Ok(Some(chunk)) => message.extend_from_slice(&chunk.bytes),
                Ok(None) | Err(_) => return,
            }
        }
        if messages.send(message.into()).await.is_err() {
            return;
        }
    }
}
