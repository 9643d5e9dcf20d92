//! The answering end of a service, for messages as bytes of CDR.

use std::time::{Duration, Instant as Timer};

use noctule_discovery::{NodeId, Reliability};
use noctule_time_sync::Local;
use noctule_timebase::{Instant, Span};

use super::error::{ReplyError, ServiceError};
use super::remembered::{NotOpen, Remembered, ServerCounters, Verdict};
use super::wire::{REPLY_HEADER_BYTES, ReplyHeader, RequestHeader, RequestId, Status};
use super::{QUEUE_DEPTH, ServiceTopics, ServiceTypes, number};
use crate::error::{PublishError, TakeError};
use crate::node::Node;
use crate::publisher::{PAYLOAD_BYTES_DEFAULT, Publisher, SourceTime};
use crate::sample::{Age, SampleInfo};
use crate::subscriber::Subscriber;

/// Settings of a server.
#[derive(Debug)]
#[must_use = "call open"]
pub struct ServerBuilder<'a> {
    node: &'a Node,
    service: String,
    types: ServiceTypes,
    payload_bytes_max: u32,
}

/// Serves one service, with messages as bytes of CDR; [`Server`](super::Server) has them as values.
#[derive(Debug)]
pub struct RawServer {
    service: String,
    requests: Subscriber,
    replies: Publisher,
    number: u64,
    core: Remembered,
    /// Kept from one reply to the next.
    buffer: Vec<u8>,
}

/// A request as bytes of CDR, and what is known of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawRequest {
    id: RequestId,
    bytes: Vec<u8>,
    info: SampleInfo,
    deadline: Span,
    is_idempotent: bool,
}

impl<'a> ServerBuilder<'a> {
    pub(super) fn new(node: &'a Node, service: &str, types: ServiceTypes) -> ServerBuilder<'a> {
        ServerBuilder { node, service: service.to_owned(), types, payload_bytes_max: PAYLOAD_BYTES_DEFAULT }
    }

    /// Longest response in bytes. Default 64 KiB.
    pub fn payload_bytes_max(mut self, bytes: u32) -> Self {
        self.payload_bytes_max = bytes;
        self
    }

    /// Opens the server.
    ///
    /// # Errors
    /// A name that cannot travel, or no room for two more endpoints.
    pub fn open(self) -> Result<RawServer, ServiceError> {
        let ServerBuilder { node, service, types, payload_bytes_max } = self;
        let topics = ServiceTopics::of(&service)?;
        // Before the writer: a client that knows the writer can ask.
        let requests = node
            .subscriber(&topics.request)
            .type_name(&types.request.name, types.request.hash)
            .reliability(Reliability::Reliable)
            .open()?;
        let replies = node
            .publisher(&topics.reply)
            .type_name(&types.response.name, types.response.hash)
            .reliability(Reliability::Reliable)
            .keep_last(QUEUE_DEPTH)
            .payload_bytes_max(payload_bytes_max.saturating_add(REPLY_HEADER_BYTES as u32))
            .open()?;
        let (node, writer) = replies.endpoint();
        let number = number(node, writer);
        let core = Remembered::new(number);
        Ok(RawServer { service, requests, replies, number, core, buffer: Vec::new() })
    }
}

impl RawServer {
    /// The next request; waits up to `timeout`, or for ever. It may be [answered](RawServer::reply) later, after other requests.
    ///
    /// # Errors
    /// Requests cannot be read; the next call goes on with the next one.
    pub fn receive(&mut self, timeout: Option<Duration>) -> Result<Option<RawRequest>, TakeError> {
        let end = timeout.and_then(|timeout| Timer::now().checked_add(timeout));
        loop {
            let left = end.map(|end| end.saturating_duration_since(Timer::now()));
            let Some(sample) = self.requests.receive(left)? else { return Ok(None) };
            let (bytes, info) = (sample.to_vec(), *sample.info());
            drop(sample);
            if let Some(request) = self.handle(&bytes, info) {
                return Ok(Some(request));
            }
        }
    }

    /// Answers a request with a response in CDR.
    ///
    /// # Errors
    /// No client waits for it any more, or it cannot be published.
    pub fn reply(&mut self, id: RequestId, response: &[u8]) -> Result<(), ReplyError> {
        self.answer(id, (Status::Done, response), None)
    }

    /// Like [`reply`](RawServer::reply), for a response that came from elsewhere, such as from another middleware: it was made at `source.time`, as far as that is known.
    ///
    /// # Errors
    /// As there.
    pub fn reply_from(
        &mut self,
        id: RequestId,
        response: &[u8],
        source: SourceTime,
    ) -> Result<(), ReplyError> {
        self.answer(id, (Status::Done, response), Some(source))
    }

    /// Answers a request with the reason why there is no response, for people.
    ///
    /// # Errors
    /// As [`reply`](RawServer::reply).
    pub fn fail(&mut self, id: RequestId, why: &str) -> Result<(), ReplyError> {
        self.answer(id, (Status::Failed, why.as_bytes()), None)
    }

    /// Whether the client does not wait for the reply any more: it was cancelled, or its deadline is over. Takes in no requests; the
    /// cancellation is noticed once it was [received](RawServer::receive).
    pub fn is_cancelled(&mut self, id: RequestId) -> bool {
        self.core.handle_time(self.replies.now());
        self.core.is_cancelled(id)
    }

    /// Name of the service, as it was given.
    pub fn service(&self) -> &str {
        &self.service
    }

    /// Counters of the requests so far.
    pub fn counters(&self) -> ServerCounters {
        self.core.counters
    }

    /// The subscriber of the requests, for what waits for many at once.
    pub fn subscriber(&mut self) -> &mut Subscriber {
        &mut self.requests
    }

    /// A request that is no value of its type.
    pub(super) fn count_malformed(&mut self) {
        self.core.handle_malformed();
    }

    fn handle(&mut self, bytes: &[u8], info: SampleInfo) -> Option<RawRequest> {
        let Some((header, message)) = RequestHeader::decode(bytes) else {
            self.core.handle_malformed();
            return None;
        };
        match self.core.handle_request(info.receive_time, &header, info.age()) {
            Verdict::Execute => Some(RawRequest {
                id: header.id,
                bytes: message.to_vec(),
                info: SampleInfo { length_bytes: message.len(), ..info },
                deadline: header.deadline,
                is_idempotent: header.is_idempotent,
            }),
            Verdict::Answer(status, bytes) => {
                // A reply that cannot be published is asked for again by the next copy, or the deadline ends the call.
                let _ = self.send(ReplyHeader { status, id: header.id, server: self.number }, &bytes, None);
                None
            }
            Verdict::Ignore => None,
        }
    }

    fn answer(
        &mut self,
        id: RequestId,
        reply: (Status, &[u8]),
        source: Option<SourceTime>,
    ) -> Result<(), ReplyError> {
        self.replies.check_bytes(REPLY_HEADER_BYTES + reply.1.len())?;
        match self.core.handle_answer(self.replies.now(), id, reply) {
            Ok(header) => Ok(self.send(header, reply.1, source)?),
            Err(why) => {
                let service = self.service.clone();
                Err(match why {
                    NotOpen::TooLate => ReplyError::TooLate { service, id },
                    NotOpen::Twice => ReplyError::Twice { service, id },
                    NotOpen::Cancelled => ReplyError::Cancelled { service, id },
                })
            }
        }
    }

    fn send(
        &mut self,
        header: ReplyHeader,
        message: &[u8],
        source: Option<SourceTime>,
    ) -> Result<(), PublishError> {
        self.buffer.clear();
        self.buffer.extend_from_slice(&header.encode());
        self.buffer.extend_from_slice(message);
        match source {
            Some(source) => self.replies.publish_uncertain(&self.buffer, source),
            None => self.replies.publish(&self.buffer),
        }
    }
}

impl AsMut<Subscriber> for RawServer {
    fn as_mut(&mut self) -> &mut Subscriber {
        &mut self.requests
    }
}

impl RawRequest {
    /// Its identity, to answer it with.
    pub fn id(&self) -> RequestId {
        self.id
    }

    /// The request in CDR.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Metadata of the request: source time, age, writer.
    pub fn info(&self) -> &SampleInfo {
        &self.info
    }

    /// Its age when it was taken: since the call began.
    pub fn age(&self) -> Option<Age> {
        self.info.age()
    }

    /// The node that asks.
    pub fn caller(&self) -> NodeId {
        self.info.publisher
    }

    /// Age at which the caller waits no longer.
    pub fn deadline(&self) -> Span {
        self.deadline
    }

    /// The rest at `now` of the time that the caller waits, in this node's clock; negative if it is over, `None` if the age is not known.
    pub fn time_left(&self, now: Instant<Local>) -> Option<Span> {
        Some(self.deadline - self.info.age_at(now)?.span)
    }

    /// Whether another server may execute it again.
    pub fn is_idempotent(&self) -> bool {
        self.is_idempotent
    }

    pub(super) fn without_bytes(mut self) -> RawRequest {
        self.bytes = Vec::new();
        self
    }

    /// The request alone, in CDR.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}
