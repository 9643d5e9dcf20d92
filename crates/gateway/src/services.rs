//! Services of a line's clients: a requester asks as a client of the bus, a replier answers as a server there.
//!
//! Between a client and its agent each request and reply begins with a `SampleIdentity` (DDS-RPC 1.0, 7.5.1.1.1): the requester's GUID and a sequence
//! number. On the bus it lies in a header of its own (`docs/spec/requests.md`).

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use noctule::request::{CallId, RawClient, RawServer, RequestId};
use noctule::{SourceTime, Subscriber, Wait, WaitSet, Waker};
use noctule_bridge::requests::deadline_of;
use noctule_xrce::{EndpointId, Sample};

use crate::inlet::{Inlet, encapsulated, without_encapsulation};

/// Bytes of the identity.
const IDENTITY_BYTES: usize = 24;
/// Messages of a client that wait for the thread of their service; more are dropped and counted.
const INBOX_MAX: usize = 256;
/// Longest request or reply, in bytes.
pub(crate) const MESSAGE_BYTES_MAX: u32 = 256 << 10;

/// One requester or replier of a client; its thread ends when this is dropped, and [`end`](Service::end) waits for that.
#[derive(Debug)]
pub(crate) struct Service {
    inbox: Arc<Inbox>,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

/// Messages of the client that wait for the thread.
#[derive(Debug, Default)]
struct Inbox {
    messages: Mutex<VecDeque<(Sample, SourceTime)>>,
    dropped: AtomicU64,
    ended: AtomicBool,
}

/// The end on the bus.
pub(crate) enum End {
    /// End of a requester: calls under way, and the identity that each reply needs.
    Client(Box<RawClient>, BTreeMap<CallId, [u8; IDENTITY_BYTES]>),
    /// End of a replier.
    Server(Box<RawServer>),
}

impl AsMut<Subscriber> for End {
    fn as_mut(&mut self) -> &mut Subscriber {
        match self {
            End::Client(client, _) => client.subscriber(),
            End::Server(server) => server.subscriber(),
        }
    }
}

impl Service {
    /// Starts the thread of a client's requester or replier.
    ///
    /// # Errors
    /// There is no thread left.
    pub(crate) fn start(end: End, endpoint: EndpointId, line: Arc<dyn Inlet>) -> io::Result<Service> {
        let set = WaitSet::new(Wait::Block);
        let (inbox, waker) = (Arc::<Inbox>::default(), set.waker());
        let theirs = Arc::clone(&inbox);
        let thread = thread::Builder::new().name("noctule-service".to_owned());
        let thread =
            thread.spawn(move || Work { end, endpoint, line, inbox: theirs, dropped: 0 }.run(set))?;
        Ok(Service { inbox, waker, thread: Some(thread) })
    }

    /// The client sent a request or a reply.
    pub(crate) fn handle_message(&self, sample: Sample, source: SourceTime) {
        let mut messages = self.inbox.messages.lock().unwrap_or_else(PoisonError::into_inner);
        if messages.len() < INBOX_MAX {
            messages.push_back((sample, source));
        } else {
            self.inbox.dropped.fetch_add(1, Ordering::Relaxed);
        }
        drop(messages);
        self.waker.wake();
    }

    /// Ends the thread and waits for it. The caller must not hold what the line's `deliver` waits for.
    pub(crate) fn end(mut self) {
        let thread = self.thread.take();
        drop(self);
        // It panics only by a bug, which has been printed then.
        let _ = thread.map(JoinHandle::join);
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // `end` waits for the thread; here it is not joined, because it may wait for the line, which may be locked by the thread that drops this.
        self.inbox.ended.store(true, Ordering::Relaxed);
        self.waker.wake();
    }
}

/// State of the thread.
struct Work {
    end: End,
    endpoint: EndpointId,
    line: Arc<dyn Inlet>,
    inbox: Arc<Inbox>,
    /// Messages of the client that were dropped at the last look.
    dropped: u64,
}

impl Work {
    fn run(mut self, mut set: WaitSet) {
        while !self.inbox.ended.load(Ordering::Relaxed) {
            while let Some((sample, source)) = self.inbox.pop() {
                self.handle_client(&sample, source);
            }
            let dropped = self.inbox.dropped.load(Ordering::Relaxed);
            let before = std::mem::replace(&mut self.dropped, dropped);
            if dropped > before {
                self.unanswered(dropped - before, "more of them come than the gateway passes on");
            }
            self.handle_bus();
            let due = match &self.end {
                End::Client(client, _) => client.next_due(),
                End::Server(_) => None,
            };
            set.wait_for_news(std::slice::from_mut(&mut self.end), due);
        }
    }

    /// A request of the requester, or a reply of the replier.
    fn handle_client(&mut self, sample: &Sample, source: SourceTime) {
        let Some((identity, message)) = sample.body.split_first_chunk::<IDENTITY_BYTES>() else {
            return self.unanswered(1, "a message has no identity");
        };
        let mut bytes = Vec::new();
        encapsulated(message, sample.is_little_endian, &mut bytes);
        match &mut self.end {
            End::Client(client, asked) => {
                match client.start_from(&bytes, Some(deadline_of(client.service())), source) {
                    Ok(call) => drop(asked.insert(call, *identity)),
                    Err(why) => self.unanswered(1, &why.to_string()),
                }
            }
            End::Server(server) => {
                let id = request_of(identity, sample.is_little_endian);
                // Its deadline is over, it was cancelled, or it was never requested.
                if let Err(why) = server.reply_from(id, &bytes, source) {
                    self.unanswered(1, &why.to_string());
                }
            }
        }
    }

    /// Replies for the requester, or requests for the replier.
    fn handle_bus(&mut self) {
        loop {
            let (identity, message) = match &mut self.end {
                End::Client(client, asked) => match client.next(Some(Duration::ZERO)) {
                    Ok(None) => return,
                    Ok(Some(ended)) => {
                        let Some(identity) = asked.remove(&ended.call) else { continue };
                        match ended.result {
                            Ok(reply) => (Ok(identity), reply.into_bytes()),
                            Err(why) => {
                                self.unanswered(1, &why.to_string());
                                continue;
                            }
                        }
                    }
                    Err(why) => return self.line.notice_once(why.to_string()),
                },
                End::Server(server) => match server.receive(Some(Duration::ZERO)) {
                    Ok(None) => return,
                    Ok(Some(request)) => (Err(request.id()), request.into_bytes()),
                    Err(why) => return self.line.notice_once(why.to_string()),
                },
            };
            self.deliver(identity, &message);
        }
    }

    fn deliver(&mut self, identity: Result<[u8; IDENTITY_BYTES], RequestId>, message: &[u8]) {
        let Some((body, is_little_endian)) = without_encapsulation(message) else {
            let why = "a message is no CDR of version 1, which is all that a client reads";
            if let (End::Server(server), Err(id)) = (&mut self.end, identity) {
                // The client may have gone meanwhile.
                let _ = server.fail(id, why);
            }
            return self.unanswered(1, why);
        };
        let identity = identity.unwrap_or_else(|id| identity_of(id, is_little_endian));
        let body = [&identity, body].concat().into();
        Arc::clone(&self.line).deliver(self.endpoint, Sample { body, is_little_endian });
    }

    /// Requests without a reply, or replies without a request: XRCE has no way to say it to the client.
    fn unanswered(&self, messages: u64, why: &str) {
        self.line.count_unanswered(messages);
        let (service, what) = match &self.end {
            End::Client(client, _) => (client.service(), "a client's request has no reply"),
            End::Server(server) => (server.service(), "a request to a client, or its reply, was left out"),
        };
        self.line.notice_once(format!("service {service}: {what}: {why}"));
    }
}

impl Inbox {
    fn pop(&self) -> Option<(Sample, SourceTime)> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

/// The identity of a request of the bus: the caller's number in the GUID, then the count, high word first.
fn identity_of(id: RequestId, is_little_endian: bool) -> [u8; IDENTITY_BYTES] {
    let mut identity = [0; IDENTITY_BYTES];
    identity[..8].copy_from_slice(&id.client.to_be_bytes());
    let (high, low) = ((id.sequence >> 32) as u32, id.sequence as u32);
    for (at, word) in [(16, high), (20, low)] {
        let octets = if is_little_endian { word.to_le_bytes() } else { word.to_be_bytes() };
        identity[at..at + 4].copy_from_slice(&octets);
    }
    identity
}

/// The request of the bus that a replier answers under this identity. Any bytes give a number; only one that is open is answered.
fn request_of(identity: &[u8; IDENTITY_BYTES], is_little_endian: bool) -> RequestId {
    let (mut client, mut words) = ([0; 8], [0u32; 2]);
    client.copy_from_slice(&identity[..8]);
    for (word, octets) in words.iter_mut().zip(identity[16..].chunks_exact(4)) {
        let octets = octets.try_into().unwrap_or_default();
        *word = if is_little_endian { u32::from_le_bytes(octets) } else { u32::from_be_bytes(octets) };
    }
    let sequence = i64::from(words[0] as i32) << 32 | i64::from(words[1]);
    RequestId { client: u64::from_be_bytes(client), sequence }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn an_identity_comes_back(client: u64, sequence: i64, is_little_endian: bool) {
            let id = RequestId { client, sequence };
            prop_assert_eq!(request_of(&identity_of(id, is_little_endian), is_little_endian), id);
        }
    }
}
