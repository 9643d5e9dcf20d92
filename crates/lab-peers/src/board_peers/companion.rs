//! The application on the other side of a board's line: a node of the bus, and a gateway inside the same process or in one
//! of its own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use noctule::{Format, Node, Publisher, Reliability, Subscriber, Wait as LibraryWait};
use noctule_lab::dimensions::Reliability as WantedReliability;
use noctule_peer::{Deliver, Open, Outgoing, PeerError, Transport, Wait};
use noctule_sys::clock;

use super::hosting::Hosting;
use super::{BUS_TYPE, READY_WITHIN_NS, Sides, topic};

/// CDR in version 1, little-endian (DDSI-RTPS 2.3, 10.5): what the bus carries before a board's bytes.
const CDR_LE: [u8; 4] = [0, 1, 0, 0];
/// A message that is missing keeps those on other topics waiting no longer than this.
const WAIT: Duration = Duration::from_millis(5);

/// The node and the gateway that answer a board.
pub(super) struct Companion {
    publishers: Vec<Publisher>,
    subscribers: Vec<Subscriber>,
    /// The next message goes to this publisher.
    turn: usize,
    /// The next message is expected here: messages take turns on the topics.
    expected: usize,
    sides: Sides,
    address: Option<String>,
    gateway: Hosting,
    _node: Arc<Node>,
    message: Vec<u8>,
    buffer: Vec<u8>,
}

impl Companion {
    pub(super) fn open(open: &Open, sides: Sides) -> Result<Companion, PeerError> {
        if open.clock.as_ref().is_some_and(|clock| !clock.is_raw()) {
            let what = "the companion's clock is the machine's; give its host \"\", and the board a clock";
            return Err(PeerError(what.into()));
        }
        let fault = |error: noctule::NodeError| PeerError(error.to_string());
        let node = Arc::new(Node::new(&format!("{}-{}", open.session, open.node)).map_err(fault)?);
        let reliability = match sides.reliability {
            WantedReliability::Reliable => Reliability::Reliable,
            WantedReliability::BestEffort | WantedReliability::DeadlineBound => Reliability::BestEffort,
        };
        let mut publishers = Vec::new();
        let mut subscribers = Vec::new();
        for number in 0..sides.topics {
            if let Some(name) = &open.publish {
                let builder = node.publisher(&topic(open, name, number)).type_name(BUS_TYPE, 0);
                let builder = builder.format(Format::Cdr).reliability(reliability);
                let builder = builder.payload_bytes_max((open.payload_bytes + CDR_LE.len()) as u32);
                publishers.push(builder.keep_last(open.window).open().map_err(fault)?);
            }
            if let Some(name) = &open.subscribe {
                let builder = node.subscriber(&topic(open, name, number)).type_name(BUS_TYPE, 0);
                let builder =
                    builder.formats(&[Format::Cdr]).reliability(reliability).wait(match open.wait {
                        Wait::Spin => LibraryWait::Spin,
                        Wait::Block => LibraryWait::Block,
                        Wait::Hybrid => LibraryWait::Hybrid,
                    });
                subscribers.push(builder.open().map_err(fault)?);
            }
        }
        let (gateway, port) = Hosting::start(open, &node)?;
        Ok(Companion {
            publishers,
            subscribers,
            turn: 0,
            expected: 0,
            sides,
            address: port.map(|port| format!("{}:{port}", open.bind_address)),
            gateway,
            _node: node,
            message: Vec::new(),
            buffer: vec![0; open.payload_bytes + CDR_LE.len() + 1],
        })
    }

    fn take(&mut self, deliver: &mut Deliver<'_>) -> Result<usize, PeerError> {
        let mut count = 0;
        let topics = self.subscribers.len();
        for (number, subscriber) in self.subscribers.iter_mut().enumerate() {
            let taken = subscriber.take_into(&mut self.buffer);
            if let Some(info) = taken.map_err(|error| PeerError(error.to_string()))? {
                deliver(self.buffer.get(CDR_LE.len()..info.length_bytes).unwrap_or_default());
                count += 1;
                self.expected = (number + 1) % topics;
            }
        }
        Ok(count)
    }

    fn is_ready(&mut self) -> bool {
        self.publishers.iter().all(|publisher| publisher.readers() > 0)
            && self.subscribers.iter_mut().all(|subscriber| subscriber.publishers() > 0)
    }
}

impl Transport for Companion {
    fn address(&self) -> Option<String> {
        self.address.clone()
    }

    fn connect(&mut self, _: &[String]) -> Result<BTreeMap<String, String>, PeerError> {
        let until_ns = clock::now_ns() + READY_WITHIN_NS;
        while !self.is_ready() {
            if clock::now_ns() > until_ns {
                let notice = self.gateway.notice().unwrap_or_else(|| "it says nothing".into());
                return Err(PeerError(format!(
                    "no board came within 10 s; of the line the gateway says: {notice}"
                )));
            }
            clock::sleep_until(clock::now_ns() + 1_000_000);
        }
        Ok(self.sides.settings())
    }

    fn send(&mut self, message: &mut Outgoing) -> Result<(), PeerError> {
        self.message.clear();
        self.message.extend(CDR_LE);
        self.message.extend_from_slice(message.bytes());
        let turn = self.turn;
        self.turn = (self.turn + 1) % self.publishers.len().max(1);
        let Some(publisher) = self.publishers.get_mut(turn) else { return Ok(()) };
        publisher.publish(&self.message).map_err(|error| PeerError(error.to_string()))
    }

    fn try_receive(&mut self, deliver: &mut Deliver<'_>) -> Result<usize, PeerError> {
        self.take(deliver)
    }

    fn receive(&mut self, timeout: Duration, deliver: &mut Deliver<'_>) -> Result<usize, PeerError> {
        let until_ns = clock::now_ns() + timeout.as_nanos() as i64;
        loop {
            let count = self.take(deliver)?;
            let now_ns = clock::now_ns();
            if count > 0 || now_ns >= until_ns {
                return Ok(count);
            }
            let Some(subscriber) = self.subscribers.get_mut(self.expected) else { return Ok(0) };
            subscriber.wait(Some(WAIT.min(Duration::from_nanos((until_ns - now_ns).unsigned_abs()))));
        }
    }
}
