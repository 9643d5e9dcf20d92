//! Services of ROS 2: the library's requests, so that `noctule call` reaches a ROS service and the other way round.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use noctule::request::{
    CallError, CallId, RawClient, RawReply, RawRequest, RawServer, RequestId, ServiceError, ServiceTopics,
    ServiceTypes,
};
use noctule::{ReadError, SampleInfo, Subscriber};
use noctule_bridge::ages::Now;
use noctule_bridge::requests::deadline_of;

use crate::door::Task;
use crate::gid::Gid;
use crate::graph::{Entry, Way};
use crate::participant::Participant;
use crate::quality::Quality;
use crate::queue::{History, Inbox};
use crate::signal::Waitable;

/// Requests, or replies, that wait to be taken; beyond that the oldest is dropped.
const WAITING_MAX: usize = 1_000;
/// Calls of one client that wait for their replies; the oldest is cancelled for the next, for rmw cannot say that a caller has given up.
const CALLS_MAX: usize = 512;
/// Requests taken for one server, or replies that cannot be read for one client, before the others get their turn.
const BATCH: usize = 64;
/// Longest request or response. Memory is taken as slots are first written to.
pub const MESSAGE_BYTES_MAX: u32 = 1 << 20;

/// A request for a server, or a reply for a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incoming {
    /// The message in CDR, with its header.
    pub bytes: Vec<u8>,
    /// The client that asked.
    pub client: Gid,
    /// Counts the client's requests from 1.
    pub sequence: i64,
    /// When it was sent, in nanoseconds of the time of day; `None`: not known.
    pub source_ns: Option<i64>,
    /// When it came, in nanoseconds of the time of day.
    pub received_ns: i64,
}

/// A request or a response that was not sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "service {service}: a message of {bytes} bytes is longer than a request or a response may be ({MESSAGE_BYTES_MAX}); send it in parts, or publish it on a topic"
)]
pub struct TooLong {
    /// Its service.
    pub service: String,
    /// Its length in CDR, with its header.
    pub bytes: usize,
}

/// State that clients and servers of a service have in common.
#[derive(Debug)]
struct End {
    participant: Arc<Participant>,
    service: String,
    numbers: [u64; 2],
    /// Requests or replies that were not taken yet.
    inbox: Inbox<Incoming>,
}

/// Calls a service.
#[derive(Debug)]
pub struct ClientEnd {
    end: End,
    gid: Gid,
    last: AtomicI64,
    servers: AtomicUsize,
    unsent: AtomicU64,
}

/// Serves a service.
#[derive(Debug)]
pub struct ServerEnd {
    end: End,
    unanswered: AtomicU64,
}

/// A service and its types, with ROS 2's hash of it.
#[derive(Clone, Debug)]
pub struct Service<'a> {
    /// `/add_two_ints`.
    pub name: &'a str,
    /// Types of its request and its response.
    pub types: ServiceTypes,
    /// ROS 2's hash of the service.
    pub rihs01: Option<[u8; 32]>,
    /// QoS of the service; the library's own is reliable, volatile and 64 deep.
    pub quality: Quality,
}

/// Whether it fits; the hub has nobody to report it to.
fn check(service: &str, bytes: usize) -> Result<(), TooLong> {
    if bytes <= MESSAGE_BYTES_MAX as usize {
        return Ok(());
    }
    Err(TooLong { service: service.to_owned(), bytes })
}

impl End {
    fn new(participant: &Arc<Participant>, service: &Service<'_>, serves: bool) -> Result<End, ServiceError> {
        let topics = ServiceTopics::of(service.name)?;
        let registry = &participant.registry;
        let numbers = [registry.number(), registry.number()];
        let (requests, replies) = if serves { (Way::Reads, Way::Writes) } else { (Way::Writes, Way::Reads) };
        let (request, response) = (&service.types.request, &service.types.response);
        let own = |way, topic: &str, name: &str, hash, gid| {
            let entry = participant.entry(way, topic, (name, hash), gid);
            Entry { quality: service.quality, rihs01: service.rihs01, ..entry }
        };
        let gid = |number: u64| Gid::of(participant.node.id(), noctule::EndpointId(number as u32 | 1 << 31));
        let request = own(requests, &topics.request, &request.name, request.hash, gid(numbers[0]));
        let response = own(replies, &topics.reply, &response.name, response.hash, gid(numbers[1]));
        registry.show([(numbers[0], request), (numbers[1], response)]);
        let inbox = Inbox::new(History::KeepLast(WAITING_MAX));
        Ok(End { participant: Arc::clone(participant), service: service.name.to_owned(), numbers, inbox })
    }

    fn handle(&self, incoming: Incoming) {
        let bytes = incoming.bytes.len();
        self.inbox.push(incoming, bytes);
    }

    fn close(&self) {
        self.participant.door.remove(self.numbers[0]);
        self.participant.registry.hide(&self.numbers);
    }
}

impl ClientEnd {
    /// Opens a client.
    ///
    /// # Errors
    /// As [`ClientBuilder::open`](noctule::request::ClientBuilder::open).
    pub fn open(
        participant: &Arc<Participant>,
        service: &Service<'_>,
    ) -> Result<Arc<ClientEnd>, ServiceError> {
        let builder = participant.node.raw_client(service.name, service.types.clone());
        let builder = builder.payload_bytes_max(MESSAGE_BYTES_MAX);
        let client = builder.deadline(deadline_of(service.name)).open()?;
        let end = Arc::new(ClientEnd {
            end: End::new(participant, service, false)?,
            gid: Gid::of_client(client.number()),
            last: AtomicI64::new(0),
            servers: AtomicUsize::new(0),
            unsent: AtomicU64::new(0),
        });
        let called = Called::new(client, Arc::clone(&end));
        participant.door.add(end.end.numbers[0], Box::new(called));
        Ok(end)
    }

    /// Closes it, as [`Reader::close`](crate::Reader::close).
    pub fn close(&self) {
        self.end.close();
    }

    /// Sends a request in CDR; gives its number. It is not sent if there is no server ([`unsent`](ClientEnd::unsent)).
    ///
    /// # Errors
    /// It is longer than [`MESSAGE_BYTES_MAX`].
    pub fn send(&self, request: Vec<u8>) -> Result<i64, TooLong> {
        check(&self.end.service, request.len())?;
        let sequence = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        self.end.participant.door.request(self.end.numbers[0], sequence, request);
        Ok(sequence)
    }

    /// The oldest reply that was not taken.
    pub fn take(&self) -> Option<Incoming> {
        self.end.inbox.take()
    }

    /// Rings when there is a reply.
    pub fn waitable(&self) -> &Waitable {
        self.end.inbox.waitable()
    }

    /// Its identity, which its requests carry.
    pub fn gid(&self) -> Gid {
        self.gid
    }

    /// Servers that can be asked.
    pub fn servers(&self) -> usize {
        self.servers.load(Ordering::Acquire)
    }

    /// Requests that were not sent, or whose server went: no reply will come. rmw has no word for it.
    pub fn unsent(&self) -> u64 {
        self.unsent.load(Ordering::Relaxed)
    }

    fn count_unsent(&self) {
        self.unsent.fetch_add(1, Ordering::Relaxed);
    }

    fn set_servers(&self, servers: usize) {
        self.servers.store(servers, Ordering::Release);
    }

    fn handle(&self, reply: Incoming) {
        self.end.handle(reply);
    }

    fn participant(&self) -> &Participant {
        &self.end.participant
    }
}

impl ServerEnd {
    /// Opens a server.
    ///
    /// # Errors
    /// As [`ServerBuilder::open`](noctule::request::ServerBuilder::open).
    pub fn open(
        participant: &Arc<Participant>,
        service: &Service<'_>,
    ) -> Result<Arc<ServerEnd>, ServiceError> {
        let builder = participant.node.raw_server(service.name, service.types.clone());
        let server = builder.payload_bytes_max(MESSAGE_BYTES_MAX).open()?;
        let end = End::new(participant, service, true)?;
        let end = Arc::new(ServerEnd { end, unanswered: AtomicU64::new(0) });
        participant.door.add(end.end.numbers[0], Box::new(Served { server, end: Arc::clone(&end) }));
        Ok(end)
    }

    /// Closes it, as [`Reader::close`](crate::Reader::close).
    pub fn close(&self) {
        self.end.close();
    }

    /// Answers a request in CDR. False if it is of no client of the bus.
    ///
    /// # Errors
    /// The response is longer than [`MESSAGE_BYTES_MAX`].
    pub fn reply(&self, client: Gid, sequence: i64, response: Vec<u8>) -> Result<bool, TooLong> {
        check(&self.end.service, response.len())?;
        let Some(client) = client.client() else { return Ok(false) };
        self.end.participant.door.reply(self.end.numbers[0], RequestId { client, sequence }, response);
        Ok(true)
    }

    /// The oldest request that was not taken.
    pub fn take(&self) -> Option<Incoming> {
        self.end.inbox.take()
    }

    /// Rings when there is a request.
    pub fn waitable(&self) -> &Waitable {
        self.end.inbox.waitable()
    }

    /// Replies that nobody waited for any more, or that could not be sent.
    pub fn unanswered(&self) -> u64 {
        self.unanswered.load(Ordering::Relaxed)
    }

    fn count_unanswered(&self) {
        self.unanswered.fetch_add(1, Ordering::Relaxed);
    }

    fn handle(&self, request: Incoming) {
        self.end.handle(request);
    }

    fn participant(&self) -> &Participant {
        &self.end.participant
    }
}

/// A client with the calls that are under way.
#[derive(Debug)]
struct Called {
    client: RawClient,
    end: Arc<ClientEnd>,
    /// The numbers that rmw knows them by, in the order in which they began.
    calls: BTreeMap<CallId, i64>,
}

/// A server as the hub serves it.
#[derive(Debug)]
struct Served {
    server: RawServer,
    end: Arc<ServerEnd>,
}

impl Called {
    fn new(client: RawClient, end: Arc<ClientEnd>) -> Called {
        Called { client, end, calls: BTreeMap::new() }
    }

    fn is_due(&self) -> bool {
        self.client.next_due().is_some_and(|due| due.is_zero())
    }
}

impl Task for Called {
    fn request(&mut self, sequence: i64, request: &[u8]) {
        // As on DDS: what is asked while nobody serves is not executed later.
        if self.client.servers().map_or(0, |servers| servers.len()) == 0 {
            return self.end.count_unsent();
        }
        if self.calls.len() >= CALLS_MAX
            && let Some((oldest, _)) = self.calls.pop_first()
        {
            let _ = self.client.cancel(oldest);
            self.end.count_unsent();
        }
        let within = deadline_of(self.client.service());
        match self.client.start(request, Some(within)) {
            Ok(call) => drop(self.calls.insert(call, sequence)),
            Err(_) => self.end.count_unsent(),
        }
        // If nothing can be read any more, the hub learns it at its own drain.
        self.drain();
    }

    fn drain(&mut self) -> bool {
        // Results are bounded by the calls under way; what cannot be read is not.
        let mut unreadable = 0;
        while unreadable < BATCH {
            match self.client.next(Some(Duration::ZERO)) {
                Ok(Some(ended)) => {
                    let sequence = self.calls.remove(&ended.call);
                    match (sequence, ended.result) {
                        (Some(sequence), Ok(reply)) => self.end.handle(answered(&reply, sequence, &self.end)),
                        (Some(_), Err(_)) => self.end.count_unsent(),
                        // Cancelled.
                        (None, _) => {}
                    }
                }
                Ok(None) => break,
                Err(CallError::Take(error)) if error.cause == ReadError::Forked => return false,
                // A reply that cannot be read ends no call.
                Err(CallError::Take(_)) => unreadable += 1,
                Err(_) => break,
            }
        }
        true
    }

    fn look(&mut self) {
        self.drain();
        let servers = self.client.servers().map_or(0, |servers| servers.len());
        self.end.set_servers(servers);
    }

    fn tend(&mut self) -> bool {
        !self.is_due() || self.drain()
    }

    fn next_due(&self) -> Option<Duration> {
        self.client.next_due()
    }
}

impl AsMut<Subscriber> for Called {
    fn as_mut(&mut self) -> &mut Subscriber {
        self.client.subscriber()
    }
}

impl Task for Served {
    fn drain(&mut self) -> bool {
        for _ in 0..BATCH {
            match self.server.receive(Some(Duration::ZERO)) {
                Ok(Some(request)) => self.end.handle(asked(request, &self.end)),
                Ok(None) => break,
                Err(error) if error.cause == ReadError::Forked => return false,
                // The next one may be read.
                Err(_) => {}
            }
        }
        true
    }

    fn look(&mut self) {}

    fn reply(&mut self, id: RequestId, bytes: &[u8]) {
        if self.server.reply(id, bytes).is_err() {
            self.end.count_unanswered();
        }
    }
}

impl AsMut<Subscriber> for Served {
    fn as_mut(&mut self) -> &mut Subscriber {
        self.server.subscriber()
    }
}

fn times(node: &noctule::Node, info: &SampleInfo) -> (Option<i64>, i64) {
    let now = Now::read(node);
    (info.source_time.map(|at| now.stamp_ns(at)), now.stamp_ns(info.receive_time))
}

fn asked(request: RawRequest, end: &ServerEnd) -> Incoming {
    let (source_ns, received_ns) = times(&end.participant().node, request.info());
    let RequestId { client, sequence } = request.id();
    Incoming { client: Gid::of_client(client), sequence, source_ns, received_ns, bytes: request.into_bytes() }
}

fn answered(reply: &RawReply, sequence: i64, end: &ClientEnd) -> Incoming {
    let (source_ns, received_ns) = times(&end.participant().node, reply.info());
    Incoming { client: end.gid(), sequence, source_ns, received_ns, bytes: reply.bytes().to_vec() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_beyond_the_limit_is_refused_in_one_sentence() {
        let most = MESSAGE_BYTES_MAX as usize;
        assert_eq!(check("/add", most), Ok(()));
        let refused = check("/add", most + 1).expect_err("one byte too many").to_string();
        assert!(refused.starts_with("service /add: a message of 1048577 bytes is longer"), "{refused}");
        assert!(refused.contains("(1048576); send it in parts"), "{refused}");
    }
}
