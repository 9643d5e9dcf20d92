//! Noctule itself under test, as a user of the library has it: nodes that find each other, a topic, an
//! age read with every sample.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Duration;

use noctule::{
    Node, PublishError, Publisher, PublisherBuilder, Qos, Reliability as LibraryReliability, Subscriber,
    SubscriberBuilder, Wait as LibraryWait,
};
use noctule_lab::dimensions::Reliability;
use noctule_peer::{Deliver, Description, Open, Outgoing, Peer, PeerError, Support, Touch, Transport, Wait};
use noctule_sys::clock;
use noctule_timebase::Span;

use crate::{floors, options};

/// With `history=keep_all`: a reader that leaves no room for so long has died.
const ROOM_WITHIN: Duration = Duration::from_secs(10);
/// How long all nodes may take to find each other.
const PARTNERS_WITHIN_NS: i64 = 10_000_000_000;
/// Messages that a slow reader may be behind, at least; `depth` says another number, to the most that the library has.
const HISTORY: u32 = 8;
const HISTORY_MAX: u32 = 65_535;
const LARGE_BYTES: u64 = 64 << 20;
const KEY_BYTES: usize = 32;
/// Of a message only this much is read at either end, when it is read in place and not wholly touched.
const EDGE_BYTES: usize = 16;

/// Name in scenarios.
const NAME: &str = "noctule";

/// The peer `noctule`.
pub(crate) struct Noctule;

struct Ends {
    _node: Node,
    publisher: Option<Publisher>,
    subscriber: Option<Subscriber>,
    readers: usize,
    in_place: bool,
    sealed: bool,
    spins: bool,
    buffer: Vec<u8>,
    /// Every age is read and summed, or the compiler would remove it as unused.
    age_sum: Span,
}

impl Peer for Noctule {
    fn describe(&self) -> Description {
        let waits = [Wait::Spin, Wait::Block, Wait::Hybrid];
        let mut description = floors::description(NAME, "shm", &waits, LARGE_BYTES);
        description.links.push("udp".into());
        description
    }

    fn support(&self) -> Support {
        let reliabilities = Reliability::ALL.map(|one| one.to_string()).to_vec();
        let options = BTreeMap::from([(Reliability::OPTION.into(), reliabilities)]);
        Support { options, ..Support::default() }
    }

    fn open(&self, open: &Open) -> Result<Box<dyn Transport>, PeerError> {
        let fault = |error: noctule::NodeError| PeerError(error.to_string());
        let mut builder = Node::builder(&format!("{}-{}", open.session, open.node));
        if open.link == "udp" {
            builder = builder.without_shared_memory();
        }
        let made = match open.options.get("key").map(String::as_str) {
            Some("session") => {
                Some(session_key(&open.session).map_err(|e| PeerError::of("no file for a key", e))?)
            }
            Some(file) => {
                builder = builder.swarm_key(file);
                None
            }
            None => None,
        };
        if let Some(made) = &made {
            builder = builder.swarm_key(made.path());
        }
        let node = builder.open().map_err(fault)?;
        let topic = |name: &String| format!("{}/{name}", open.session);
        let qos = qos(open)?;
        let keep_all =
            (open.options.get("history").map(String::as_str) == Some("keep_all")).then_some(qos.depth);
        let publisher = open.publish.as_ref().map(|name| {
            let builder = node.publisher(&topic(name)).qos(qos);
            let builder = keep_all.into_iter().fold(builder, PublisherBuilder::keep_all);
            builder.payload_bytes_max(open.payload_bytes as u32).open()
        });
        let subscriber = open.subscribe.as_ref().map(|name| {
            let builder = waiting(node.subscriber(&topic(name)), open.wait).qos(qos);
            keep_all.into_iter().fold(builder, SubscriberBuilder::keep_all).open()
        });
        Ok(Box::new(Ends {
            publisher: publisher.transpose().map_err(fault)?,
            subscriber: subscriber.transpose().map_err(fault)?,
            _node: node,
            readers: open.readers as usize,
            in_place: open.options.get("read").is_some_and(|way| way == "in_place"),
            sealed: open.options.contains_key("key"),
            spins: open.wait == Wait::Spin,
            buffer: vec![0; open.payload_bytes],
            age_sum: Span::ZERO,
        }))
    }
}

/// QoS of publisher and subscriber: the deadline is the cell's.
fn qos(open: &Open) -> Result<Qos, PeerError> {
    let multicast = match open.options.get("multicast").map(String::as_str) {
        None | Some("0") => false,
        Some("1") => true,
        Some(other) => return Err(PeerError(format!("multicast {other}: say 1, or leave it out"))),
    };
    let qos = Qos { depth: depth(open.options.get("depth"), open.window)?, multicast, ..Qos::default() };
    match options::reliability(open)? {
        Reliability::BestEffort => Ok(qos),
        Reliability::Reliable if multicast => Err(PeerError(
            "reliable goes to each by itself: leave multicast out, or say deadline_bound".into(),
        )),
        Reliability::Reliable => Ok(Qos { reliability: LibraryReliability::Reliable, ..qos }),
        Reliability::DeadlineBound => {
            let wrong = || PeerError("deadline_bound needs a deadline in the cell (deadline_us)".into());
            let deadline_ns = open.deadline_ns.and_then(|ns| i64::try_from(ns).ok()).ok_or_else(wrong)?;
            let loss = match open.options.get("loss").map(|text| text.parse::<f64>()) {
                None => f64::from(qos.loss_ppm) / 1e6,
                Some(Ok(share)) if (1e-6..=1.0).contains(&share) => share,
                Some(_) => return Err(PeerError("loss: say a share from 0.000001 to 1".into())),
            };
            let reliability = LibraryReliability::DeadlineBound;
            let loss_ppm = (loss * 1e6).round() as u32;
            Ok(Qos { reliability, deadline: Some(Span::from_ns(deadline_ns)), loss_ppm, ..qos })
        }
    }
}

/// Depth of the history: with keep all, what may be on its way before the publisher waits, so at least the rate times the round trip.
fn depth(option: Option<&String>, window: u32) -> Result<u32, PeerError> {
    match option.map(|text| text.parse()) {
        None => Ok(HISTORY.max(window)),
        Some(Ok(depth)) if (1..=HISTORY_MAX).contains(&depth) => Ok(depth),
        Some(_) => Err(PeerError(format!("depth: say a number of messages from 1 to {HISTORY_MAX}"))),
    }
}

/// A file with a key that all nodes of a session come to by themselves. It keeps nothing secret, but sealing with
/// it costs what sealing costs.
fn session_key(session: &str) -> io::Result<tempfile::NamedTempFile> {
    let mut file = tempfile::NamedTempFile::new()?;
    session.bytes().cycle().take(KEY_BYTES).try_for_each(|byte| write!(file, "{byte:02x}"))?;
    Ok(file)
}

fn waiting(builder: SubscriberBuilder, wait: Wait) -> SubscriberBuilder {
    builder.wait(match wait {
        Wait::Spin => LibraryWait::Spin,
        Wait::Block => LibraryWait::Block,
        Wait::Hybrid => LibraryWait::Hybrid,
    })
}

impl Transport for Ends {
    fn facts(&self) -> BTreeMap<String, f64> {
        let sent = self.publisher.iter().flat_map(Publisher::deadline_counters);
        let (mut datagrams, mut extra) = (0, 0);
        for (_, counters) in sent {
            datagrams += counters.datagrams;
            extra += counters.repeats + counters.parity;
        }
        match datagrams {
            0 => BTreeMap::new(),
            _ => BTreeMap::from([("redundancy".into(), extra as f64 / datagrams as f64)]),
        }
    }

    fn connect(&mut self, _: &[String]) -> Result<BTreeMap<String, String>, PeerError> {
        let until_ns = clock::now_ns() + PARTNERS_WITHIN_NS;
        loop {
            let readers = self.publisher.as_ref().is_none_or(|publisher| publisher.readers() >= self.readers);
            let writers = self.subscriber.as_mut().is_none_or(|subscriber| subscriber.publishers() > 0);
            if readers && writers {
                break;
            }
            if clock::now_ns() > until_ns {
                return Err(PeerError("the other nodes did not come within 10 s".into()));
            }
            clock::sleep_until(clock::now_ns() + 1_000_000);
        }
        floors::start_pulse()?;
        let way = if self.in_place { "in_place" } else { "copy" };
        let sealed = if self.sealed { "swarm key" } else { "none" };
        Ok(BTreeMap::from([
            ("read".into(), way.into()),
            ("history".into(), HISTORY.to_string()),
            ("encryption".into(), sealed.into()),
        ]))
    }

    #[inline]
    fn send(&mut self, message: &mut Outgoing) -> Result<(), PeerError> {
        let Some(publisher) = &mut self.publisher else { return Ok(()) };
        let (length, in_place) = (message.payload_bytes(), self.in_place && message.touch() == Touch::Header);
        let bytes = message.bytes();
        loop {
            let sent = if in_place {
                publisher.publish_in_place(length, |place| {
                    let edge = EDGE_BYTES.min(length);
                    place.write_at(0, &bytes[..edge]);
                    place.write_at(length - edge, &bytes[length - edge..]);
                })
            } else {
                publisher.publish(bytes)
            };
            match sent {
                // Only with `history=keep_all`.
                Err(PublishError::WouldBlock { .. }) if publisher.wait_for_room(length, ROOM_WITHIN) => {}
                sent => return sent.map(drop).map_err(|error| PeerError(error.to_string())),
            }
        }
    }

    #[inline]
    fn try_receive(&mut self, deliver: &mut Deliver<'_>) -> Result<usize, PeerError> {
        let count = self.take(deliver)?;
        if count == 0
            && self.spins
            && let Some(subscriber) = &mut self.subscriber
        {
            // Looks at the socket, where it is that which there is to poll.
            subscriber.wait(None);
            return self.take(deliver);
        }
        Ok(count)
    }

    fn receive(&mut self, timeout: Duration, deliver: &mut Deliver<'_>) -> Result<usize, PeerError> {
        let count = self.take(deliver)?;
        if count > 0 {
            return Ok(count);
        }
        if let Some(subscriber) = &mut self.subscriber {
            subscriber.wait(floors::own_timeout(timeout));
        }
        self.take(deliver)
    }
}

impl Ends {
    #[inline]
    fn take(&mut self, deliver: &mut Deliver<'_>) -> Result<usize, PeerError> {
        let Some(subscriber) = &mut self.subscriber else { return Ok(0) };
        let fault = |error: noctule::TakeError| PeerError(error.to_string());
        let (length, age) = if self.in_place {
            let Some(sample) = subscriber.take().map_err(fault)? else { return Ok(0) };
            let (length, edge) = (sample.len(), EDGE_BYTES.min(sample.len()));
            sample.read_at(0, &mut self.buffer[..edge]);
            sample.read_at(length - edge, &mut self.buffer[length - edge..length]);
            (length, sample.age())
        } else {
            let Some(info) = subscriber.take_into(&mut self.buffer).map_err(fault)? else { return Ok(0) };
            (info.length_bytes, info.age())
        };
        self.age_sum += age.map_or(Span::ZERO, |age| age.span);
        deliver(&self.buffer[..length]);
        Ok(1)
    }
}

impl Drop for Ends {
    fn drop(&mut self) {
        std::hint::black_box(self.age_sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_is_as_deep_as_the_window_or_as_the_scenario_says() {
        assert_eq!([depth(None, 1), depth(None, 100)], [Ok(HISTORY), Ok(100)]);
        assert_eq!(depth(Some(&"1000".to_owned()), 1), Ok(1000));
        for word in ["0", "65536", "-1", "many"] {
            let refused = depth(Some(&word.to_owned()), 1).unwrap_err();
            assert!(refused.0.contains("from 1 to 65535"), "{word}: {}", refused.0);
        }
    }
}
