//! Noctule itself under test: a topic through shared memory, as a user of the library has it.

use std::collections::BTreeMap;
use std::time::Duration;

use noctule::local::{
    Access, Interest, LocalError, Origin, Publisher, RingConfig, StartAt, Subscriber, Waiting,
};
use noctule_peer::{Deliver, Description, Open, Outgoing, Peer, PeerError, Transport, Wait};
use noctule_sys::clock;

use crate::floors;

/// How long all nodes may take to find each other.
const PARTNERS_WITHIN_NS: i64 = 5_000_000_000;
/// Messages that a slow reader may be behind.
const HISTORY: u32 = 13;
const LARGE_BYTES: usize = 64 << 20;

/// The peer `ring`.
pub(crate) struct Ring;

struct Node {
    publisher: Option<Publisher>,
    readers: usize,
    /// Address and topic to read.
    wanted: Option<(String, String)>,
    subscriber: Option<Subscriber>,
    buffer: Vec<u8>,
}

impl Peer for Ring {
    fn describe(&self) -> Description {
        let waits = [Wait::Spin, Wait::Block, Wait::Hybrid];
        floors::description("ring", "shm", &waits, LARGE_BYTES as u64)
    }

    fn open(&self, open: &Open) -> Result<Box<dyn Transport>, PeerError> {
        let address = |topic: &str| format!("noctule-lab/{}/{topic}", open.session);
        let config =
            RingConfig { history: HISTORY, pins: 2, payload_bytes_max: open.payload_bytes, type_hash: 0 };
        let publisher = match &open.publish {
            Some(topic) => Some(
                Publisher::open(&address(topic), topic, &config, Access::default())
                    .map_err(|e| PeerError(e.to_string()))?,
            ),
            None => None,
        };
        Ok(Box::new(Node {
            publisher,
            readers: open.readers as usize,
            wanted: open.subscribe.as_ref().map(|topic| (address(topic), topic.clone())),
            subscriber: None,
            buffer: vec![0; open.payload_bytes],
        }))
    }
}

impl Transport for Node {
    fn address(&self) -> Option<String> {
        self.wanted.as_ref().map(|(address, _)| address.clone())
    }

    fn connect(&mut self, _: &[String]) -> Result<BTreeMap<String, String>, PeerError> {
        if let Some((address, topic)) = &self.wanted {
            let interest =
                Interest { type_hash: 0, pins: 1, start: StartAt::Next, access: Access::default() };
            self.subscriber = Some(within(|| match Subscriber::connect(address, topic, &interest) {
                Err(LocalError::NobodyThere(_)) => Ok(None),
                Err(error) => Err(PeerError(error.to_string())),
                Ok(subscriber) => Ok(Some(subscriber)),
            })?);
        }
        if let Some(publisher) = &self.publisher {
            within(|| Ok((publisher.readers() >= self.readers).then_some(())))?;
        }
        floors::start_pulse()?;
        let copied = [("read".into(), "copy".into()), ("history".into(), HISTORY.to_string())];
        Ok(BTreeMap::from(copied))
    }

    #[inline]
    fn send(&mut self, message: &mut Outgoing) -> Result<(), PeerError> {
        let Some(publisher) = &mut self.publisher else { return Ok(()) };
        let origin = Origin { source_time_ns: message.header().scheduled_ns, user: 0 };
        publisher.publish(message.bytes(), origin).map_err(|e| PeerError(e.to_string()))
    }

    #[inline]
    fn try_receive(&mut self, deliver: &mut Deliver<'_>) -> Result<usize, PeerError> {
        let Some(subscriber) = &mut self.subscriber else { return Ok(0) };
        let taken = subscriber.take_next(&mut self.buffer).map_err(|e| PeerError(e.to_string()))?;
        let Some(sample) = taken else { return Ok(0) };
        deliver(&self.buffer[..sample.length_bytes]);
        Ok(1)
    }

    fn receive(&mut self, timeout: Duration, deliver: &mut Deliver<'_>) -> Result<usize, PeerError> {
        if let Some(subscriber) = &mut self.subscriber {
            subscriber.wait(Waiting::Block, floors::own_timeout(timeout));
        }
        self.try_receive(deliver)
    }
}

/// Asks every millisecond until the answer is there.
fn within<T>(mut ask: impl FnMut() -> Result<Option<T>, PeerError>) -> Result<T, PeerError> {
    let until_ns = clock::now_ns() + PARTNERS_WITHIN_NS;
    loop {
        if let Some(answer) = ask()? {
            return Ok(answer);
        }
        if clock::now_ns() > until_ns {
            return Err(PeerError("the other nodes did not come within 5 s".into()));
        }
        clock::sleep_until(clock::now_ns() + 1_000_000);
    }
}
