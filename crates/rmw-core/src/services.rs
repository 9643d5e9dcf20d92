//! Services of ROS 2: the library's requests, so that `noctule call` reaches a ROS service and the other way round.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use noctule::request::{RequestId, ServiceError, ServiceTopics, ServiceTypes};
use noctule_bridge::requests::deadline_of;

use crate::context::Participant;
use crate::gid::Gid;
use crate::graph::{Entry, Way};
use crate::hub::{Called, Task};
use crate::quality::Quality;
use crate::signal::{Waitable, lock};

/// Requests, or replies, that wait to be taken; the oldest gives way to the newest beyond that.
const WAITING_MAX: usize = 1_000;
/// Longest request or response. Memory is taken as slots are first written to.
const MESSAGE_BYTES_MAX: u32 = 1 << 20;

/// A request for a server, or a reply for a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incoming {
    /// In CDR, with its header.
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

/// What a client or a server has to be taken.
#[derive(Debug, Default)]
struct Inbox {
    waiting: Mutex<VecDeque<Incoming>>,
    waitable: Waitable,
    overwritten: AtomicU64,
}

/// What both ends of a service are.
#[derive(Debug)]
struct End {
    participant: Arc<Participant>,
    numbers: [u64; 2],
    inbox: Inbox,
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
    /// Of its request and its response.
    pub types: ServiceTypes,
    /// ROS 2's hash of the service.
    pub rihs01: Option<[u8; 32]>,
    /// What was asked for; the library's own is reliable, volatile and 64 deep.
    pub quality: Quality,
}

impl Inbox {
    fn push(&self, incoming: Incoming) {
        let mut waiting = lock(&self.waiting);
        let is_full = waiting.len() >= WAITING_MAX;
        if is_full {
            waiting.pop_front();
            self.overwritten.fetch_add(1, Ordering::Relaxed);
        }
        waiting.push_back(incoming);
        drop(waiting);
        if is_full { self.waitable.replace() } else { self.waitable.add(1) }
    }

    fn take(&self) -> Option<Incoming> {
        let incoming = lock(&self.waiting).pop_front()?;
        self.waitable.remove(1);
        Some(incoming)
    }
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
        Ok(End { participant: Arc::clone(participant), numbers, inbox: Inbox::default() })
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
        participant.door.add(end.end.numbers[0], Task::Client(Box::new(called)));
        Ok(end)
    }

    /// Closes it, as [`Reader::close`](crate::Reader::close).
    pub fn close(&self) {
        self.end.close();
    }

    /// Sends a request in CDR; gives its number. It is not sent if there is no server ([`unsent`](ClientEnd::unsent)).
    pub fn send(&self, request: Vec<u8>) -> i64 {
        let sequence = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        self.end.participant.door.request(self.end.numbers[0], sequence, request);
        sequence
    }

    /// The oldest reply that was not taken.
    pub fn take(&self) -> Option<Incoming> {
        self.end.inbox.take()
    }

    /// Rings when there is a reply.
    pub fn waitable(&self) -> &Waitable {
        &self.end.inbox.waitable
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

    pub(crate) fn count_unsent(&self) {
        self.unsent.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn set_servers(&self, servers: usize) {
        self.servers.store(servers, Ordering::Release);
    }

    pub(crate) fn handle(&self, reply: Incoming) {
        self.end.inbox.push(reply);
    }

    pub(crate) fn participant(&self) -> &Participant {
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
        let server = Box::new(builder.payload_bytes_max(MESSAGE_BYTES_MAX).open()?);
        let end = End::new(participant, service, true)?;
        let end = Arc::new(ServerEnd { end, unanswered: AtomicU64::new(0) });
        participant.door.add(end.end.numbers[0], Task::Server { server, end: Arc::clone(&end) });
        Ok(end)
    }

    /// Closes it, as [`Reader::close`](crate::Reader::close).
    pub fn close(&self) {
        self.end.close();
    }

    /// Answers a request in CDR. False if it is of no client of the bus.
    pub fn reply(&self, client: Gid, sequence: i64, response: Vec<u8>) -> bool {
        let Some(client) = client.client() else { return false };
        self.end.participant.door.reply(self.end.numbers[0], RequestId { client, sequence }, response);
        true
    }

    /// The oldest request that was not taken.
    pub fn take(&self) -> Option<Incoming> {
        self.end.inbox.take()
    }

    /// Rings when there is a request.
    pub fn waitable(&self) -> &Waitable {
        &self.end.inbox.waitable
    }

    /// Replies that nobody waited for any more, or that could not be sent.
    pub fn unanswered(&self) -> u64 {
        self.unanswered.load(Ordering::Relaxed)
    }

    pub(crate) fn count_unanswered(&self) {
        self.unanswered.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn handle(&self, request: Incoming) {
        self.end.inbox.push(request);
    }

    pub(crate) fn participant(&self) -> &Participant {
        &self.end.participant
    }
}

/// How long a client waits for replies to what it asked, by the name of the service.
pub(crate) fn deadline(service: &str) -> Duration {
    deadline_of(service)
}
