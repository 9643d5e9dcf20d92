//! The peer `xrce`: the microcontroller client on one side, Noctule's agent inside an application on the other.
//!
//! The line is serial, or UDP; by UDP the board must have a reader on the other side, whose address it is configured with.

use noctule_board::{Client, ClientConfig, Endpoint, Line, State};
use noctule_lab::dimensions::Reliability;
use noctule_peer::{Delegate, Description, Open, Peer, PeerError, Support, Transport, Wait};
use noctule_sys::clock::three_clocks;
use noctule_time_sync::Exchange;
use noctule_timebase::Span;

use super::companion::Companion;
use super::driver::{Driver, OpenPort};
use super::hosting::{self, is_through_dds};
use super::port::Port;
use super::{Sides, Speaker, device, side_clock, topic};
use crate::floors;

/// Largest message: one message of the protocol, without fragments.
const PAYLOAD_BYTES_MAX: u64 = 1024;
/// Longest message of the protocol: a sample with its headers and time.
const MESSAGE_BYTES: u16 = 1280;
/// An exchange of clocks this often.
const SYNC_INTERVAL_NS: i64 = 100_000_000;
/// Key of the board; one line has one board.
const CLIENT_KEY: u32 = 0x4E4F_4354;

/// The peer `xrce`.
pub(crate) struct Xrce;

impl Peer for Xrce {
    fn describe(&self) -> Description {
        let waits = [Wait::Block, Wait::Spin, Wait::Hybrid];
        let mut description = floors::description("xrce", "serial", &waits, PAYLOAD_BYTES_MAX);
        description.links.push("udp".into());
        description.modes = ["round_trip", "one_way"].map(String::from).to_vec();
        description
    }

    fn support(&self) -> Support {
        Support { needs: vec![hosting::dds_need()], ..Support::default() }
    }

    fn open(&self, open: &Open) -> Result<Box<dyn Transport>, PeerError> {
        let sides = Sides::of(open)?;
        if !sides.is_board {
            return Ok(Box::new(Companion::open(open, sides)?));
        }
        let clock = side_clock(open)?;
        let is_serial = open.link == "serial";
        let line = if is_serial { Line::Serial } else { Line::Datagram };
        let board = Board::new(open, sides, line)?;
        let open_port: OpenPort = if is_serial {
            let (path, baud) = device(open)?;
            let path = path.to_owned();
            Box::new(move |_| Port::serial(&path, baud))
        } else {
            let from = open.bind_address.clone();
            Box::new(move |readers| {
                let to = readers.first().ok_or_else(|| {
                    PeerError("by udp the board must publish: use round_trip, or board = 0 in one_way".into())
                })?;
                Port::udp(&from, to)
            })
        };
        Ok(Box::new(Driver::new(open, (sides, clock), Box::new(board), open_port)))
    }

    fn delegate(&self, open: &Open) -> Result<Option<Delegate>, PeerError> {
        let sides = Sides::of(open)?;
        let is_foreign = !sides.is_board && is_through_dds(&open.options);
        is_foreign.then(|| hosting::delegate(open, sides)).transpose()
    }
}

/// As DDS calls the type of all messages; the bus calls it [`BUS_TYPE`](super::BUS_TYPE).
const DDS_TYPE: &str = "noctule_lab::msg::dds_::Bytes_";

/// The microcontroller client.
struct Board {
    client: Client,
    is_datagram: bool,
    /// Its publishers are the first endpoints, so many.
    publishers: usize,
    /// The next message goes to this one.
    turn: usize,
}

impl Board {
    fn new(open: &Open, sides: Sides, line: Line) -> Result<Board, PeerError> {
        let endpoints = |name: &Option<String>, subscribes: bool| {
            let name = name.clone();
            (0..sides.topics).filter_map(move |number| {
                Some(Endpoint {
                    topic: format!("rt{}", topic(open, name.as_deref()?, number)),
                    type_name: DDS_TYPE.into(),
                    subscribes,
                    reliable: sides.reliability == Reliability::Reliable,
                    stamped: !subscribes,
                })
            })
        };
        let endpoints: Vec<Endpoint> =
            endpoints(&open.publish, false).chain(endpoints(&open.subscribe, true)).collect();
        let publishers = endpoints.iter().filter(|endpoint| !endpoint.subscribes).count();
        let client = Client::new(&ClientConfig {
            key: CLIENT_KEY,
            line,
            domain: 0,
            endpoints,
            message_bytes: MESSAGE_BYTES,
            sync_interval_ns: SYNC_INTERVAL_NS,
        });
        let client =
            client.map_err(|refusal| PeerError::of("the microcontroller client refuses", refusal))?;
        Ok(Board { client, is_datagram: line == Line::Datagram, publishers, turn: 0 })
    }
}

/// An agent stamps with the time of day, as XRCE has it; what the lab compares runs on the raw clock of the machine. Both
/// clocks are of this machine, so the one is converted to the other as of now, some milliseconds later.
fn on_raw_clock(exchange: Exchange) -> Exchange {
    let clocks = three_clocks();
    let ahead = Span::from_ns(clocks.realtime_ns - clocks.raw_before_ns);
    Exchange { t2: exchange.t2 - ahead, t3: exchange.t3 - ahead, ..exchange }
}

impl Speaker for Board {
    fn handle_bytes(&mut self, bytes: &[u8], arrived_ns: i64) {
        if self.is_datagram {
            self.client.handle_datagram(bytes, arrived_ns);
        } else {
            self.client.handle_bytes(bytes, arrived_ns);
        }
    }

    fn poll_transmit(&mut self, now_ns: i64, out: &mut Vec<u8>) -> bool {
        let frame = self.client.poll_transmit(now_ns);
        out.extend_from_slice(frame.unwrap_or_default());
        frame.is_some()
    }

    fn timeout_ns(&self, now_ns: i64) -> i64 {
        self.client.next_timeout_ns(now_ns)
    }

    fn send(&mut self, message: &[u8], stamp_ns: i64) -> Result<(), PeerError> {
        let endpoint = self.turn;
        self.turn = (self.turn + 1) % self.publishers.max(1);
        match self.client.publish(endpoint, message, stamp_ns) {
            // Not ready or full: the message is lost, and counted.
            Err(refusal) if !refusal.is_passing() => Err(PeerError::of("cannot publish", refusal)),
            _ => Ok(()),
        }
    }

    fn poll_message(&mut self) -> Option<Vec<u8>> {
        self.client.poll_sample().map(|sample| sample.bytes)
    }

    fn poll_exchange(&mut self) -> Option<Exchange> {
        self.client.poll_exchange().map(on_raw_clock)
    }

    fn is_ready(&self) -> bool {
        self.client.state() == State::Ready
    }
}
