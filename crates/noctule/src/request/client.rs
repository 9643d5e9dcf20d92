//! The asking end of a service, for messages as bytes of CDR.

use std::collections::VecDeque;
use std::time::{Duration, Instant as Timer};

use noctule_discovery::{NodeId, Reliability};
use noctule_timebase::Span;

use super::error::{CallError, ServiceError};
use super::outstanding::{Arrived, ClientCounters, Ended, OUTSTANDING_MAX, Outstanding, ServerRef, Terms};
use super::wire::{REQUEST_HEADER_BYTES, ReplyHeader, Status};
use super::{CALL_DEADLINE_DEFAULT, QUEUE_DEPTH, ServiceTopics, ServiceTypes, number};
use crate::deadline::span;
use crate::node::Node;
use crate::notice::Notice;
use crate::publisher::{PAYLOAD_BYTES_DEFAULT, Publisher, SourceTime};
use crate::sample::{Age, SampleInfo};
use crate::subscriber::Subscriber;

/// Settings of a client.
#[derive(Debug)]
#[must_use = "call open"]
pub struct ClientBuilder<'a> {
    node: &'a Node,
    service: String,
    types: ServiceTypes,
    terms: Terms,
    payload_bytes_max: u32,
}

/// One call of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallId(i64);

/// Calls one service, with messages as bytes of CDR; [`Client`](super::Client) has them as values.
#[derive(Debug)]
pub struct RawClient {
    service: String,
    requests: Publisher,
    replies: Subscriber,
    /// That of the replies' publishers, at the last look.
    version: Option<u32>,
    servers: Vec<ServerRef>,
    terms: Terms,
    core: Outstanding,
    results: VecDeque<EndedCall<RawReply>>,
}

/// A call that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedCall<R> {
    /// Which.
    pub call: CallId,
    /// Its response, or why there is none.
    pub result: Result<R, CallError>,
}

/// A response as bytes of CDR, and what is known of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawReply {
    bytes: Vec<u8>,
    info: SampleInfo,
}

/// The next call that ended; `None` if none has.
pub type NextCall<R> = Result<Option<EndedCall<R>>, CallError>;

impl<'a> ClientBuilder<'a> {
    pub(super) fn new(node: &'a Node, service: &str, types: ServiceTypes) -> ClientBuilder<'a> {
        let terms = Terms { deadline: span(CALL_DEADLINE_DEFAULT), is_idempotent: false, only: None };
        let payload_bytes_max = PAYLOAD_BYTES_DEFAULT;
        ClientBuilder { node, service: service.to_owned(), types, terms, payload_bytes_max }
    }

    /// How long a call waits for its reply. Default 5 s.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.terms.deadline = span(deadline);
        self
    }

    /// A request may be executed more than once: if its server ends before it answers, another one is asked. Default no.
    pub fn idempotent(mut self, is_idempotent: bool) -> Self {
        self.terms.is_idempotent = is_idempotent;
        self
    }

    /// Longest request in bytes. Default 64 KiB.
    pub fn payload_bytes_max(mut self, bytes: u32) -> Self {
        self.payload_bytes_max = bytes;
        self
    }

    /// Opens the client. Servers are found from now on.
    ///
    /// # Errors
    /// A name that cannot travel, or no room for two more endpoints.
    pub fn open(self) -> Result<RawClient, ServiceError> {
        let ClientBuilder { node, service, types, terms, payload_bytes_max } = self;
        let topics = ServiceTopics::of(&service)?;
        // Before the writer: a server that knows the writer can answer.
        let replies = node
            .subscriber(&topics.reply)
            .type_name(&types.response.name, types.response.hash)
            .reliability(Reliability::Reliable)
            .open()?;
        let requests = node
            .publisher(&topics.request)
            .type_name(&types.request.name, types.request.hash)
            .reliability(Reliability::Reliable)
            .keep_last(QUEUE_DEPTH)
            .payload_bytes_max(payload_bytes_max.saturating_add(REQUEST_HEADER_BYTES as u32))
            .open()?;
        let (node, writer) = requests.endpoint();
        Ok(RawClient {
            service,
            requests,
            replies,
            version: None,
            servers: Vec::new(),
            terms,
            core: Outstanding::new(number(node, writer)),
            results: VecDeque::new(),
        })
    }
}

impl CallId {
    /// The call of this number, for other languages.
    pub fn of(number: i64) -> CallId {
        CallId(number)
    }

    /// Counts the calls of a client from 1.
    pub fn number(self) -> i64 {
        self.0
    }
}

impl RawClient {
    /// Sends a request and waits for its response.
    ///
    /// # Errors
    /// There is none within the deadline, or will be none; each with its reason.
    pub fn call(&mut self, request: &[u8]) -> Result<RawReply, CallError> {
        let call = self.start(request, None)?;
        self.wait_for(call)
    }

    /// Begins a call with this deadline, or the client's. Its copies are sent and its deadline noticed while the program is in
    /// [`next`](RawClient::next), [`wait_for`](RawClient::wait_for) or [`call`](RawClient::call).
    ///
    /// # Errors
    /// [`OUTSTANDING_MAX`] calls are under way, or the request cannot be published.
    pub fn start(&mut self, request: &[u8], deadline: Option<Duration>) -> Result<CallId, CallError> {
        self.begin(request, (deadline, None), None)
    }

    /// Like [`start`](RawClient::start), for a request that only the server of this node can answer; it waits for that one until its deadline.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn start_at(
        &mut self,
        request: &[u8],
        deadline: Option<Duration>,
        server: Option<NodeId>,
    ) -> Result<CallId, CallError> {
        self.begin(request, (deadline, server), None)
    }

    /// Like [`start`](RawClient::start), for a request that came from elsewhere, such as from another middleware: it was made at `source.time`, as far as that is known.
    /// The deadline counts from now.
    ///
    /// # Errors
    /// As there.
    pub fn start_from(
        &mut self,
        request: &[u8],
        deadline: Option<Duration>,
        source: SourceTime,
    ) -> Result<CallId, CallError> {
        self.begin(request, (deadline, None), Some(source))
    }

    fn begin(
        &mut self,
        request: &[u8],
        (deadline, only): (Option<Duration>, Option<NodeId>),
        source: Option<SourceTime>,
    ) -> Result<CallId, CallError> {
        let service = || self.service.clone();
        let deadline = deadline.map_or(self.terms.deadline, span);
        if deadline <= Span::ZERO {
            return Err(CallError::NoTime { service: service() });
        }
        let now = self.requests.now();
        let terms = Terms { deadline, only, ..self.terms };
        let Some(sequence) = self.core.handle_call_of(now, source, (request, terms)) else {
            return Err(CallError::Full { service: service(), most: OUTSTANDING_MAX });
        };
        self.step()?;
        Ok(CallId(sequence))
    }

    /// Waits until a call has ended.
    ///
    /// # Errors
    /// There is no response; or the result of this call was taken before.
    pub fn wait_for(&mut self, call: CallId) -> Result<RawReply, CallError> {
        loop {
            if let Some(at) = self.results.iter().position(|ended| ended.call == call)
                && let Some(EndedCall { result, .. }) = self.results.remove(at)
            {
                return result;
            }
            if !self.core.is_open(call.0) {
                return Err(CallError::Unknown { service: self.service.clone(), sequence: call.0 });
            }
            self.wait(None);
            self.step()?;
        }
    }

    /// The next call that has ended, in the order of their ends; waits up to `timeout`, or for ever. `None` if the time is over or no call is under way.
    ///
    /// # Errors
    /// Replies cannot be read. The calls go on.
    pub fn next(&mut self, timeout: Option<Duration>) -> NextCall<RawReply> {
        let end = timeout.and_then(|timeout| Timer::now().checked_add(timeout));
        loop {
            self.step()?;
            let result = self.results.pop_front();
            let left = end.map(|end| end.saturating_duration_since(Timer::now()));
            if result.is_some() || self.core.calls() == 0 || left == Some(Duration::ZERO) {
                return Ok(result);
            }
            self.wait(left);
        }
    }

    /// Ends a call with [`CallError::Cancelled`]; its server learns that the client does not wait any more. False if it has ended before.
    ///
    /// # Errors
    /// The cancellation cannot be published.
    pub fn cancel(&mut self, call: CallId) -> Result<bool, CallError> {
        let is_open = self.core.handle_cancel(call.0);
        self.step()?;
        Ok(is_open)
    }

    /// Waits up to `timeout` until there is a server; false if the time is over.
    ///
    /// # Errors
    /// Replies cannot be read.
    pub fn wait_for_server(&mut self, timeout: Duration) -> Result<bool, CallError> {
        let end = Timer::now().checked_add(timeout);
        loop {
            self.step()?;
            let left = end.map(|end| end.saturating_duration_since(Timer::now()));
            if !self.servers.is_empty() || left == Some(Duration::ZERO) {
                return Ok(!self.servers.is_empty());
            }
            self.wait(left);
        }
    }

    /// Servers that can be asked now.
    ///
    /// # Errors
    /// Replies cannot be read.
    pub fn servers(&mut self) -> Result<Vec<NodeId>, CallError> {
        self.step()?;
        Ok(self.servers.iter().map(|server| server.node).collect())
    }

    /// Whether there was a server at the last look.
    pub(crate) fn has_servers(&self) -> bool {
        !self.servers.is_empty()
    }

    /// Whether this node had a server at the last look.
    pub(crate) fn has_server(&self, node: NodeId) -> bool {
        self.servers.iter().any(|server| server.node == node)
    }

    /// Name of the service, as it was given.
    pub fn service(&self) -> &str {
        &self.service
    }

    /// The client's number, which its requests carry.
    pub fn number(&self) -> u64 {
        let (node, writer) = self.requests.endpoint();
        number(node, writer)
    }

    /// The subscriber of the replies, for what waits for many at once. Samples are taken by [`next`](RawClient::next) alone.
    pub fn subscriber(&mut self) -> &mut Subscriber {
        &mut self.replies
    }

    /// How long until [`next`](RawClient::next) has something to do even if nothing comes; `None`: no call is under way.
    pub fn next_due(&self) -> Option<Duration> {
        let now = self.requests.now();
        self.core.next_time().map(|at| Duration::from_nanos((at - now).ns().max(0) as u64))
    }

    /// Counters of the calls so far.
    pub fn counters(&self) -> ClientCounters {
        self.core.counters
    }

    /// Sleeps until there may be something to do, at most so long.
    fn wait(&mut self, most: Option<Duration>) {
        let timeout = [most, self.next_due()].into_iter().flatten().min();
        self.replies.wait(timeout);
    }

    /// Does what is to be done now.
    fn step(&mut self) -> Result<(), CallError> {
        while let Some(sample) = self.replies.take()? {
            self.handle(&sample.to_vec(), *sample.info());
        }
        let now = self.requests.now();
        let version = self.replies.version();
        if self.version != Some(version) {
            self.version = Some(version);
            let server = |(node, writer)| ServerRef { number: number(node, writer), node };
            self.servers = self.replies.writers().into_iter().map(server).collect();
            self.core.handle_servers(now, &self.servers);
        }
        self.core.handle_time(now);
        while let Some(copy) = self.core.poll_send() {
            let published = match copy.source {
                Some(source) => self.requests.publish_uncertain(&copy.bytes, source),
                None => self.requests.publish_at(&copy.bytes, copy.source_time),
            };
            if let Err(why) = published
                && self.core.handle_refused(copy.sequence)
            {
                self.end(copy.sequence, Err(why.into()));
            }
        }
        while let Some((sequence, ended)) = self.core.poll_ended() {
            let error = self.error(ended);
            self.end(sequence, Err(error));
        }
        Ok(())
    }

    fn handle(&mut self, bytes: &[u8], info: SampleInfo) {
        let Some((header, message)) = ReplyHeader::decode(bytes) else {
            return self.core.handle_malformed();
        };
        match self.core.handle_reply(info.receive_time, &header, info.publisher) {
            Arrived::Expected => {
                let service = || self.service.clone();
                let result = match header.status {
                    Status::Done => {
                        let length_bytes = message.len();
                        let info = SampleInfo { length_bytes, ..info };
                        Ok(RawReply { bytes: message.to_vec(), info })
                    }
                    Status::Failed => {
                        let why = String::from_utf8_lossy(message).into_owned();
                        Err(CallError::Failed { service: service(), server: info.publisher, why })
                    }
                    _ => return,
                };
                self.end(header.id.sequence, result);
            }
            Arrived::Late { since } => {
                let service = self.service.clone();
                self.replies.note(Notice::LateReply { service, node: info.publisher, since });
            }
            Arrived::Unexpected => {}
        }
    }

    fn end(&mut self, sequence: i64, result: Result<RawReply, CallError>) {
        self.results.push_back(EndedCall { call: CallId(sequence), result });
    }

    fn error(&self, ended: Ended) -> CallError {
        let service = self.service.clone();
        let duration = |span: Span| Duration::from_nanos(span.ns().max(0) as u64);
        match ended {
            Ended::NoServer { waited } => CallError::NoServer { service, waited: duration(waited) },
            Ended::DeadlineExceeded { server, waited, sent } => {
                CallError::DeadlineExceeded { service, server, waited: duration(waited), sent }
            }
            Ended::ServerGone { server } => CallError::ServerGone { service, server },
            Ended::Cancelled => CallError::Cancelled { service },
            Ended::Refused { server, status: Status::Late } => CallError::Late { service, server },
            Ended::Refused { server, status: Status::Full } => CallError::ServerFull { service, server },
            Ended::Refused { status: Status::Cancelled, .. } => CallError::Cancelled { service },
            Ended::Refused { server, .. } => CallError::Forgotten { service, server },
        }
    }
}

impl RawReply {
    /// The response in CDR.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Metadata of the reply: source time, age, writer.
    pub fn info(&self) -> &SampleInfo {
        &self.info
    }

    /// Its age when it was taken: since the server answered.
    pub fn age(&self) -> Option<Age> {
        self.info.age()
    }

    /// The server that answered.
    pub fn server(&self) -> NodeId {
        self.info.publisher
    }

    /// The response alone, in CDR.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}
