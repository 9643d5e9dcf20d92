//! Inputs and outputs of an agent beside bytes: addresses, stamps, endpoints, events, counters.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use noctule_timebase::Instant;
pub use noctule_timebase::Local;

use crate::description::{Qos, Topic};
use crate::wire::{ClientKey, ObjectId};

/// Marker of the clock that clients get: the time of day, in nanoseconds since 1970.
pub enum Wall {}

/// Marker of a client's own clock.
pub enum ClientClock {}

/// Where a client is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ClientAddress {
    /// It sends datagrams from here.
    Socket(SocketAddr),
    /// It has a connection of its own, which the driver has numbered.
    Connection(u64),
    /// It has this address on a serial line.
    Serial(u8),
}

impl fmt::Display for ClientAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientAddress::Socket(address) => address.fmt(f),
            ClientAddress::Connection(number) => write!(f, "connection {number}"),
            ClientAddress::Serial(address) => write!(f, "address {address}"),
        }
    }
}

/// One moment, taken by the driver as low as it can: an arrival never too early, a departure never too
/// late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// In the agent's own clock.
    pub local: Instant<Local>,
    /// In the time of day.
    pub wall: Instant<Wall>,
}

/// One end of one topic at a client. A replaced object is another endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EndpointId {
    /// Whose.
    pub client: ClientKey,
    /// Its number at the client.
    pub object: ObjectId,
    /// Tells it from what had that number before.
    pub serial: u32,
}

/// Which way samples go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Direction {
    /// From the client.
    Write,
    /// To the client.
    Read,
}

/// An endpoint as its client described it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Its number.
    pub id: EndpointId,
    /// Writes or reads. A requester and a replier are two endpoints of one number.
    pub direction: Direction,
    /// DDS domain.
    pub domain: u16,
    /// DDS names.
    pub topic: Topic,
    /// Offered or requested.
    pub qos: Qos,
    /// Each sample begins with the 24 bytes that name the request it belongs to.
    pub is_service: bool,
}

/// A sample: CDR without encapsulation header, as clients write it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Aligned from its own first byte.
    pub body: Arc<[u8]>,
    /// Byte order of `body`.
    pub is_little_endian: bool,
}

/// Event that an agent reports to its driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A client began a session, or came back from silence.
    Connected {
        /// Its key.
        client: ClientKey,
        /// Where it is.
        address: ClientAddress,
    },
    /// A client announced its name.
    Named {
        /// Its key.
        client: ClientKey,
        /// The participant's name.
        name: String,
    },
    /// A client has gone. Its endpoints were closed before.
    Disconnected {
        /// Its key.
        client: ClientKey,
        /// Why.
        reason: Gone,
    },
    /// Samples of this topic are wanted, or will come.
    Opened(Endpoint),
    /// No more.
    Closed {
        /// Which.
        endpoint: EndpointId,
        /// Writes or reads.
        direction: Direction,
    },
    /// A client published a sample.
    Published {
        /// By which endpoint.
        endpoint: EndpointId,
        /// What.
        sample: Sample,
        /// When its message arrived.
        arrived: Stamp,
        /// When it was measured, by the client's clock, if the client is ours and says so.
        measured: Option<Instant<ClientClock>>,
    },
    /// A sample does not reach its client, which takes no messages that long, or cannot hold as many pieces.
    Undeliverable {
        /// Its key.
        client: ClientKey,
        /// The reader it was for.
        object: ObjectId,
        /// Its length with the submessage's header.
        bytes: usize,
    },
    /// A client of ours completed an exchange of stamps, which the agent has asked for.
    Exchanged {
        /// Its key.
        client: ClientKey,
        /// The four stamps.
        exchange: Exchange,
    },
}

/// Four stamps of a question of the agent's and the client's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// The agent's message left.
    pub t1: Instant<Local>,
    /// It arrived.
    pub t2: Instant<ClientClock>,
    /// The client's message left.
    pub t3: Instant<ClientClock>,
    /// It arrived.
    pub t4: Instant<Local>,
}

/// Why a client has gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gone {
    /// It announced that it leaves.
    Left,
    /// It was silent, and did not answer either. Its objects are kept for its return.
    Silent,
    /// Another client is at its place, or it began anew with another session.
    Replaced,
    /// It made room for others.
    Evicted,
}

/// One message to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Transmit {
    /// Its destination.
    pub to: ClientAddress,
    /// The message carries the time when it was sent: see [`Agent::handle_departure`](crate::Agent::handle_departure).
    pub stamp: Option<Departure>,
}

/// A message that carries the time when it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    pub(crate) client: ClientKey,
    /// Where in the message it says so.
    pub(crate) at: usize,
}

/// A time as XRCE writes it: seconds and nanoseconds.
pub(crate) fn time_octets<C>(instant: Instant<C>) -> [u8; 8] {
    let seconds = instant.ns().div_euclid(1_000_000_000) as u32;
    let nanoseconds = instant.ns().rem_euclid(1_000_000_000) as u32;
    let mut octets = [0; 8];
    octets[..4].copy_from_slice(&seconds.to_le_bytes());
    octets[4..].copy_from_slice(&nanoseconds.to_le_bytes());
    octets
}

/// Counters of messages. Each saturates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Messages that arrived.
    pub received: u64,
    /// Messages given out for sending.
    pub sent: u64,
    /// No XRCE, or cut off.
    pub malformed: u64,
    /// For a session that is not there.
    pub unknown_session: u64,
    /// Above a client's budget.
    pub over_budget: u64,
    /// Missing in best-effort streams from clients.
    pub lost: u64,
    /// Arrived again, or later than newer ones.
    pub repeated: u64,
    /// Too far ahead of a missing one; the client repeats them.
    pub beyond: u64,
    /// Not taken in because answers wait; the client repeats them.
    pub held_back: u64,
    /// Samples from clients that are larger than [`AgentConfig::sample_bytes_max`](crate::AgentConfig).
    pub too_large: u64,
    /// Samples to clients that do not fit the client's messages or history.
    pub undeliverable: u64,
    /// Samples to clients that newer ones replaced.
    pub replaced: u64,
    /// Answers dropped because their queue was full.
    pub answers_dropped: u64,
    /// Events dropped because they were not fetched.
    pub events_dropped: u64,
    /// Objects, streams and clients refused because a limit was reached.
    pub refused_full: u64,
}

pub(crate) fn count(counter: &mut u64) {
    *counter = counter.saturating_add(1);
}
