//! The seam: all this harness knows about a middleware.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use noctule_local_clock::LocalClock;

use crate::line::{Line, LineError};
use crate::message::{Outgoing, Touch};

/// Called once for each message received, with its bytes. The bytes may be lent memory of the
/// middleware; they are not kept.
pub type Deliver<'a> = dyn FnMut(&[u8]) + 'a;

/// A middleware that can be put under test.
pub trait Peer {
    /// Its name, version and capabilities.
    fn describe(&self) -> Description;

    /// Values that its options may have; by default the lab passes every option on and leaves the judgement to [`Peer::open`].
    fn support(&self) -> Support {
        Support::default()
    }

    /// Creates everything one node needs, so that it can be found; connects nothing.
    fn open(&self, open: &Open) -> Result<Box<dyn Transport>, PeerError>;

    /// Another program that is this node in the peer's place; by default none is, and [`Peer::open`] is called.
    fn delegate(&self, _open: &Open) -> Result<Option<Delegate>, PeerError> {
        Ok(None)
    }
}

/// A program that speaks this protocol and is a node in a peer's place: all lines of the lab go to it.
pub struct Delegate {
    /// The program.
    pub program: PathBuf,
    /// Words of `open` instead of the lab's. The scenario's options are for the peer, and left out.
    pub words: BTreeMap<String, String>,
    /// Is dropped when the program has ended.
    pub beside: Box<dyn Any>,
}

/// One node's open endpoints.
pub trait Transport {
    /// Where writers reach this node's reader, if the middleware does not find out by itself.
    fn address(&self) -> Option<String> {
        None
    }

    /// Connects to the readers of the topic this node publishes; returns when every reader and
    /// writer has found all its partners. The settings that shape the result are returned by name.
    fn connect(&mut self, readers: &[String]) -> Result<BTreeMap<String, String>, PeerError>;

    /// Sends one message to all readers, by [`Outgoing::bytes`] or [`Outgoing::write_into`].
    fn send(&mut self, message: &mut Outgoing) -> Result<(), PeerError>;

    /// Delivers what has arrived, without waiting and, where the middleware can, without a system
    /// call; returns how many messages it delivered. Called in a tight loop when spinning.
    fn try_receive(&mut self, deliver: &mut Deliver<'_>) -> Result<usize, PeerError>;

    /// Sleeps in the kernel until something arrives, delivers it and returns how many messages that
    /// were; returns 0 after `timeout`, or earlier.
    fn receive(&mut self, timeout: Duration, deliver: &mut Deliver<'_>) -> Result<usize, PeerError>;

    /// The exchanges of clocks that the middleware made with the other node, in the order in which their replies
    /// arrived: t1, t4 by this node's clock, t2, t3 by the other's, in nanoseconds. Asked for once, at the end.
    fn exchanges(&self) -> Vec<[i64; 4]> {
        Vec::new()
    }

    /// Figures that this node measured by itself while it ran, by name; units end the names. Asked for once, at the end.
    fn facts(&self) -> BTreeMap<String, f64> {
        BTreeMap::new()
    }
}

/// Name, version and capabilities of a peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// Name of the peer, one word.
    pub name: String,
    /// The middleware's own version.
    pub version: String,
    /// Subset of `shm udp tcp unix pty serial memory`.
    pub links: Vec<String>,
    /// Waits it can do.
    pub waits: Vec<Wait>,
    /// Subset of `round_trip one_way chain fan_out`.
    pub modes: Vec<String>,
    /// Serialization formats; `raw` for plain bytes.
    pub formats: Vec<String>,
    /// Largest message it carries.
    pub payload_bytes_max: u64,
}

/// Support of options by a peer, beyond its [`Description`], so that the lab skips a cell by name instead of seeing it fail.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Support {
    /// Options of which only these values are offered.
    pub options: BTreeMap<String, Vec<String>>,
    /// Peers and programs that values of options need. Not part of `hello`: only a peer inside the command has needs.
    pub needs: Vec<Need>,
    /// Whether one node is all there is, because it sends to itself.
    pub is_alone: bool,
}

/// Peer and program that a value of an option needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    /// Name of the option.
    pub option: String,
    /// Its value.
    pub value: String,
    /// The peer that must be built.
    pub peer: String,
    /// The program that the command builds when it is wanted first.
    pub program: String,
}

/// Why a middleware call failed: a sentence that names the call and the way out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PeerError(pub String);

impl PeerError {
    /// `what: cause`, for a failed call.
    pub fn of(what: &str, cause: impl Display) -> Self {
        Self(format!("{what}: {cause}"))
    }
}

/// How a node waits for a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wait {
    /// Polls without pause.
    Spin,
    /// Sleeps in the kernel.
    Block,
    /// Polls for 50 µs, then sleeps.
    Hybrid,
}

/// Role of a node in its topology.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Sends and waits for the echo.
    Initiator,
    /// Answers every message.
    Echo,
    /// Sends.
    Source,
    /// Receives and sends on.
    Forwarder,
    /// Receives.
    Sink,
}

/// Arguments of the lab's line `open` for one node (spec section 1.2).
#[derive(Debug, Clone, PartialEq)]
pub struct Open {
    /// A word unique to this cell and trial.
    pub session: String,
    /// Role of this node.
    pub role: Role,
    /// Its number, from 0.
    pub node: u32,
    /// Number of nodes.
    pub nodes: u32,
    /// Topic to publish.
    pub publish: Option<String>,
    /// How many readers that topic will have.
    pub readers: u32,
    /// Topic to subscribe to.
    pub subscribe: Option<String>,
    /// Link to use.
    pub link: String,
    /// Way in which the node waits for messages.
    pub wait: Wait,
    /// Serialization format.
    pub format: String,
    /// Size of every message.
    pub payload_bytes: usize,
    /// Messages that may be on the way at once.
    pub window: u32,
    /// A message that arrives later than this after its scheduled time is of no use.
    pub deadline_ns: Option<u64>,
    /// Core to run on.
    pub core: Option<u32>,
    /// SCHED_FIFO priority; 0 leaves the scheduler alone.
    pub priority: u32,
    /// Lock all memory.
    pub lock_memory: bool,
    /// IPv4 address to bind to and announce.
    pub bind_address: String,
    /// This node's end of a serial line.
    pub device: Option<String>,
    /// Stamp with this clock instead of `CLOCK_MONOTONIC`; the harness does, transports need not care.
    pub clock: Option<LocalClock>,
    /// Free options of the scenario for this peer.
    pub options: BTreeMap<String, String>,
}

impl Open {
    pub(crate) fn parse(line: &Line) -> Result<Self, LineError> {
        let payload_bytes = line.require("payload_bytes", "a number of bytes")?;
        if !(crate::message::HEADER_BYTES..=1 << 30).contains(&payload_bytes) {
            return Err(LineError::Unreadable {
                key: "payload_bytes".into(),
                value: payload_bytes.to_string(),
                wanted: "between 16 and 1073741824",
            });
        }
        Ok(Self {
            session: line.require("session", "a word")?,
            role: line.require("role", "a role")?,
            node: line.require("node", "a number")?,
            nodes: line.require("nodes", "a number")?,
            publish: line.word("publish").map(str::to_owned),
            readers: line.read("readers", "a number")?.unwrap_or(0),
            subscribe: line.word("subscribe").map(str::to_owned),
            link: line.require("link", "a link")?,
            wait: line.require("wait", "spin, block or hybrid")?,
            format: line.read("format", "a format")?.unwrap_or_else(|| "raw".into()),
            payload_bytes,
            window: line.read("window", "a number")?.unwrap_or(1).clamp(1, 1 << 16),
            deadline_ns: line.read("deadline_ns", "a number of nanoseconds")?,
            core: line.read("core", "a core number")?,
            priority: line.read("priority", "a priority from 0 to 99")?.unwrap_or(0),
            lock_memory: line.word("lock_memory") == Some("1"),
            bind_address: line.read("bind_address", "an address")?.unwrap_or_else(|| "127.0.0.1".into()),
            device: line.word("device").map(str::to_owned),
            clock: line.read("clock", "a clock such as offset=5s,ppm=50,since=0")?,
            options: line.with_prefix("option."),
        })
    }
}

/// Words of the protocol for enum variants, in both directions.
macro_rules! words {
    ($($type:ident { $($variant:ident = $word:literal),* $(,)? })*) => {$(
        impl FromStr for $type {
            type Err = ();
            fn from_str(word: &str) -> Result<Self, ()> {
                match word { $($word => Ok(Self::$variant),)* _ => Err(()) }
            }
        }
        impl Display for $type {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str(match self { $(Self::$variant => $word),* })
            }
        }
    )*};
}

words! {
    Wait { Spin = "spin", Block = "block", Hybrid = "hybrid" }
    Touch { Header = "header", Full = "full" }
    Role {
        Initiator = "initiator", Echo = "echo", Source = "source", Forwarder = "forwarder",
        Sink = "sink",
    }
}
