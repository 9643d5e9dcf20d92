//! A board and its companion computer under test, in two processes with a line between them.
//!
//! # Problem
//!
//! The cost of a board's messages is measured in both directions, with several protocols, and with a clock on
//! each side. Everything but the protocol must be the same for all of them.
//!
//! # Approach
//!
//! A [`Speaker`] is one side of a protocol, sans-IO; the [`driver`] owns its [`port`] and its time. The peer
//! [`xrce`] has the microcontroller client on the board's side and, on the other, a [`companion`]: an
//! application with a node and the gateway inside it. The peer [`mavlink`] has the same speaker on both sides.
//!
//! The option `board` names the node that is the board, 0 unless said otherwise. The option `spin_delay` (1ms …)
//! makes the board look at its port only so often, as firmware does that calls its client in a loop; without
//! it the board sleeps until something arrives. The option `topics` lets messages take turns on so many. The option
//! `gateway` says where the gateway of `xrce` runs ([`hosting`]).

mod companion;
mod driver;
mod hosting;
mod mavlink;
mod port;
mod xrce;

use std::collections::BTreeMap;

use noctule::clock::LocalClock;
use noctule_lab::dimensions::Reliability;
use noctule_netsim::link::parse_time;
use noctule_peer::{Open, PeerError};
use noctule_sys::clock;
use noctule_time_sync::Exchange;
use noctule_timebase::Instant;

use crate::options;

pub use hosting::DDS_BRIDGE;
pub(crate) use hosting::dds_need;
pub(crate) use mavlink::Mavlink;
pub(crate) use xrce::Xrce;

/// How long both sides may take to find each other.
const READY_WITHIN_NS: i64 = 10_000_000_000;
/// The type of all messages on the bus.
const BUS_TYPE: &str = "noctule_lab/msg/Bytes";
/// Topics of one board, at most.
const TOPICS_MAX: usize = 256;

/// The topic's name in DDS; on the bus `rt` is left away.
fn topic(open: &Open, name: &str, number: usize) -> String {
    format!("/{}/{name}/{number}", open.session)
}

/// One side of a protocol. Times are of the side's own clock. Drain order after each call: messages, exchanges,
/// then what is to be sent.
trait Speaker: Send {
    /// Bytes, or one datagram, of which the last was there at `arrived_ns`.
    fn handle_bytes(&mut self, bytes: &[u8], arrived_ns: i64);
    /// Appends the next frame or datagram; false if there is none now.
    fn poll_transmit(&mut self, now_ns: i64, out: &mut Vec<u8>) -> bool;
    /// When to poll next if nothing arrives before.
    fn timeout_ns(&self, now_ns: i64) -> i64;
    /// Takes a message to be sent, measured at `stamp_ns`.
    fn send(&mut self, message: &[u8], stamp_ns: i64) -> Result<(), PeerError>;
    /// The next message that arrived.
    fn poll_message(&mut self) -> Option<Vec<u8>>;
    /// The next exchange of clocks; local is this side's.
    fn poll_exchange(&mut self) -> Option<Exchange>;
    /// Whether the other side has been found.
    fn is_ready(&self) -> bool;
}

/// The clock of one side: what the harness stamps with.
#[derive(Clone, Debug)]
struct SideClock(Option<LocalClock>);

/// Marker of what a side's clock shows.
enum Shown {}

impl SideClock {
    fn now_ns(&self) -> i64 {
        match &self.0 {
            None => clock::now_ns(),
            Some(artificial) => artificial.at::<Shown>(Instant::from_ns(clock::raw_ns())).ns(),
        }
    }
}

/// Options that every peer of this kind has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sides {
    is_board: bool,
    /// Firmware that looks at its port only so often, in nanoseconds.
    spin_delay_ns: Option<i64>,
    topics: usize,
    /// Best effort or reliable; boards know no deadline.
    reliability: Reliability,
}

impl Sides {
    fn of(open: &Open) -> Result<Sides, PeerError> {
        let option = |name: &str| open.options.get(name).map(String::as_str);
        let wrong =
            |name: &str, value: &str, say: &str| PeerError(format!("{name} = \"{value}\": say {say}"));
        let board = match option("board") {
            None | Some("0") => 0,
            Some("1") => 1,
            Some(other) => return Err(wrong("board", other, "0 or 1, the node that is the board")),
        };
        let spin_delay_ns = match option("spin_delay") {
            None | Some("none") => None,
            Some(text) => {
                let delay = parse_time(text).filter(|delay| (1..=1_000_000_000).contains(&delay.ns()));
                Some(
                    delay
                        .ok_or_else(|| wrong("spin_delay", text, "none, or a time up to 1s such as 5ms"))?
                        .ns(),
                )
            }
        };
        let topics = option("topics").map_or(Some(1), |text| text.parse().ok());
        let topics = topics.filter(|topics| (1..=TOPICS_MAX).contains(topics));
        let reliability = options::reliability(open)?;
        if reliability == Reliability::DeadlineBound {
            return Err(wrong(Reliability::OPTION, &reliability.to_string(), "best_effort or reliable"));
        }
        Ok(Sides {
            is_board: open.node == board,
            spin_delay_ns: spin_delay_ns.filter(|_| open.node == board),
            topics: topics.ok_or_else(|| PeerError(format!("topics is not between 1 and {TOPICS_MAX}")))?,
            reliability,
        })
    }

    fn settings(self) -> BTreeMap<String, String> {
        BTreeMap::from([
            (Reliability::OPTION.into(), self.reliability.to_string()),
            ("topics".into(), self.topics.to_string()),
        ])
    }
}

/// The device of this side of a serial line and its speed.
fn device(open: &Open) -> Result<(&str, u32), PeerError> {
    let device = open.device.as_deref();
    let device = device.ok_or_else(|| PeerError("no device=… says which end of the line is ours".into()))?;
    let baud = open.options.get("baud").and_then(|text| text.parse().ok());
    Ok((device, baud.ok_or_else(|| PeerError("option.baud=… must say how fast the line is".into()))?))
}

/// The clock that this side is configured with. A board's clock may be off and drift, but never goes back.
fn side_clock(open: &Open) -> Result<SideClock, PeerError> {
    let steps = open.clock.as_ref().is_some_and(|clock| clock.to_string().contains("step="));
    if steps {
        return Err(PeerError("this peer's clocks cannot step; leave step=… out".into()));
    }
    Ok(SideClock(open.clock.clone()))
}
