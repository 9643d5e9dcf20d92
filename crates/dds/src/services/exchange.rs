//! One service: requests from the side that has the clients, replies from the side that has the server.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use noctule::request::{CallId, RawClient, RawRequest, RawServer, RequestId};
use noctule::{CallError, Subscriber};
use noctule_bridge::requests::deadline_of;

use super::intake::Arrived;
use super::message::{Identity, from_dds, to_dds};
use super::plan::{ServiceRoute, is_fast_dds, subject};
use super::status::ServiceCounters;
use crate::counters::count;
use crate::cyclone::{DdsError, ReaderHandle, Writer};
use crate::shared::Shared;
use noctule_bridge::ages::Now;

/// How long a reply waits until the reader of its client in DDS is found.
const REPLY_READER_WITHIN: Duration = Duration::from_secs(10);
/// Whether what is held can go is looked for this often.
const LOOK: Duration = Duration::from_millis(5);
/// A response of `send_goal`: not accepted, no stamp.
const REJECTED: [u8; 16] = [0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
/// Requests, or replies, of one service that wait for their readers in DDS.
const HELD_MAX: usize = 1024;

/// A service and what is under way.
pub(crate) struct Exchange {
    pub(crate) number: u32,
    pub(crate) route: Arc<ServiceRoute>,
    pub(crate) counters: Arc<ServiceCounters>,
    pub(crate) end: End,
    /// Writer of requests or of replies in DDS.
    pub(crate) writer: Writer,
    pub(crate) held: VecDeque<Held>,
}

/// The bridge's end on the bus.
pub(crate) enum End {
    /// The server is in DDS.
    Server {
        server: Box<RawServer>,
        /// Handle of the reader of replies in DDS.
        replies: ReaderHandle,
        /// Requests that were passed on, and until when their callers wait.
        asked: BTreeMap<Identity, Instant>,
    },
    /// The server is on the bus.
    Client {
        client: Box<RawClient>,
        /// Calls under way, and their clients.
        asked: BTreeMap<CallId, Asker>,
    },
}

/// A client in DDS.
pub(crate) struct Asker {
    identity: Identity,
    reader: Awaited,
}

/// The endpoint that a sample waits for in DDS.
enum Awaited {
    /// A server, and that its replies can be read.
    Server,
    /// The reader of a client.
    Client { participant: [u8; 12], client: Option<Arc<str>> },
}

/// A sample that is to be written in DDS.
pub(crate) struct Held {
    bytes: Vec<u8>,
    stamp_ns: i64,
    until: Instant,
    awaited: Awaited,
}

impl AsMut<Subscriber> for Exchange {
    fn as_mut(&mut self) -> &mut Subscriber {
        match &mut self.end {
            End::Server { server, .. } => server.subscriber(),
            End::Client { client, .. } => client.subscriber(),
        }
    }
}

impl Exchange {
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// How long until [`handle_time`](Exchange::handle_time) may have something to do.
    pub(crate) fn due(&self) -> Option<Duration> {
        let held = (!self.held.is_empty()).then_some(LOOK);
        let calls = match &self.end {
            End::Client { client, .. } => client.next_due(),
            End::Server { .. } => None,
        };
        held.into_iter().chain(calls).min()
    }

    pub(crate) fn handle_time(&mut self, shared: &Shared) {
        self.take_replies(shared);
        self.write(shared);
    }

    /// Something came by the bus.
    pub(crate) fn handle_bus(&mut self, shared: &Shared) {
        self.take_requests(shared);
        self.handle_time(shared);
    }

    /// Something came by DDS.
    pub(crate) fn handle_dds(&mut self, shared: &Shared, arrived: Arrived) {
        let Some(participant) = arrived.participant else {
            // Its writer has gone: a request needs no reply any more, and a reply is still valid.
            return self.handle_message(shared, &arrived, [0; 12]);
        };
        if shared.is_sibling_participant(&participant) {
            return count(&self.counters.ignored, 1);
        }
        if is_fast_dds(&participant) {
            count(&self.counters.unreadable, 1);
            return self.notice(
                shared,
                "a program on Fast DDS asks or answers, which puts a request's identity outside of the message, where the bridge does not \
                 reach it; start it with RMW_IMPLEMENTATION=rmw_cyclonedds_cpp",
            );
        }
        self.handle_message(shared, &arrived, participant);
    }

    fn handle_message(&mut self, shared: &Shared, arrived: &Arrived, participant: [u8; 12]) {
        let mut message = Vec::new();
        let Some(identity) = from_dds(&arrived.bytes, &mut message) else {
            count(&self.counters.unreadable, 1);
            return self.notice(shared, "a sample in DDS has no identity as rmw_cyclonedds_cpp writes it");
        };
        let is_here = shared.is_here(&participant);
        let (source, _) = Now::read(&shared.node).source(Some(arrived.stamp_ns), false, is_here);
        match &mut self.end {
            End::Server { server, asked, .. } => {
                // Replies to all clients of the service come here.
                if asked.remove(&identity).is_none() {
                    return;
                }
                let id = RequestId { client: identity.client, sequence: identity.sequence };
                match server.reply_from(id, &message, source) {
                    Ok(()) => count(&self.counters.replies, 1),
                    Err(noctule::request::ReplyError::Publish(why)) => {
                        count(&self.counters.full, 1);
                        // The client may have gone meanwhile.
                        let _ = server.fail(id, &format!("the reply did not pass the bridge: {why}"));
                    }
                    // Its deadline is over, or it was cancelled.
                    Err(_) => count(&self.counters.late, 1),
                }
            }
            End::Client { client, asked } => {
                let deadline = deadline_of(&self.route.service);
                match client.start_from(&message, Some(deadline), source) {
                    Ok(call) => {
                        count(&self.counters.requests, 1);
                        let reader = Awaited::Client { participant, client: arrived.client.clone() };
                        asked.insert(call, Asker { identity, reader });
                    }
                    Err(why) => self.unanswered(shared, &why),
                }
            }
        }
        self.handle_time(shared);
    }

    /// Ends; clients in DDS without an answer are reported.
    pub(crate) fn close(self, shared: &Shared) {
        if let End::Client { asked, .. } = &self.end
            && !asked.is_empty()
        {
            count(&self.counters.failed, asked.len() as u64);
            self.notice(
                shared,
                &format!(
                    "its server on the bus has gone; {} requests from DDS have no reply, which nothing in DDS can say",
                    asked.len()
                ),
            );
        }
    }

    /// Requests of the bus to a server in DDS.
    fn take_requests(&mut self, shared: &Shared) {
        loop {
            let End::Server { server, .. } = &mut self.end else { return };
            match server.receive(Some(Duration::ZERO)) {
                Ok(None) => return,
                Ok(Some(request)) => self.pass(shared, &request),
                Err(why) => return self.notice(shared, &why.to_string()),
            }
        }
    }

    fn pass(&mut self, shared: &Shared, request: &RawRequest) {
        let End::Server { server, asked, .. } = &mut self.end else { return };
        let id = request.id();
        let identity = Identity { client: id.client, sequence: id.sequence };
        let (now, clocks) = (Instant::now(), Now::read(&shared.node));
        asked.retain(|_, until| *until > now);
        let refusal = match to_dds(identity, request.bytes()) {
            Some(_) if self.held.len() >= HELD_MAX => {
                count(&self.counters.full, 1);
                "the bridge to DDS holds as many requests as it may; call again later"
            }
            Some(bytes) => {
                let left = request.time_left(clocks.node).unwrap_or(request.deadline());
                let until = now + Duration::from_nanos(left.ns().max(0) as u64);
                asked.insert(identity, until);
                let info = request.info();
                let stamp_ns = clocks.stamp_ns(info.source_time.unwrap_or(info.receive_time));
                return self.held.push_back(Held { bytes, stamp_ns, until, awaited: Awaited::Server });
            }
            None => {
                count(&self.counters.unreadable, 1);
                "the request is no CDR of version 1, which is all that DDS knows"
            }
        };
        // The client may have gone meanwhile.
        let _ = server.fail(id, refusal);
    }

    /// Replies of the bus to clients in DDS.
    fn take_replies(&mut self, shared: &Shared) {
        loop {
            let End::Client { client, asked } = &mut self.end else { return };
            match client.next(Some(Duration::ZERO)) {
                Ok(None) => return,
                Ok(Some(ended)) => {
                    let Some(asker) = asked.remove(&ended.call) else { continue };
                    match ended.result {
                        Ok(reply) => {
                            let info = reply.info();
                            let made = info.source_time.unwrap_or(info.receive_time);
                            let stamp_ns = Now::read(&shared.node).stamp_ns(made);
                            self.answer(shared, asker, (reply.bytes(), stamp_ns));
                        }
                        Err(why) => self.refuse(shared, asker, &why),
                    }
                }
                Err(why) => return self.notice(shared, &why.to_string()),
            }
        }
    }

    /// A goal that its server refuses with a sentence is rejected in DDS, which has an answer for that; nothing else has one.
    fn refuse(&mut self, shared: &Shared, asker: Asker, why: &CallError) {
        if !self.route.service.ends_with("/_action/send_goal") || !matches!(why, CallError::Failed { .. }) {
            return self.unanswered(shared, why);
        }
        self.notice(shared, &format!("a goal from DDS is rejected: {why}"));
        let now = Now::read(&shared.node);
        self.answer(shared, asker, (&REJECTED, now.stamp_ns(now.node)));
    }

    fn answer(&mut self, shared: &Shared, asker: Asker, (reply, stamp_ns): (&[u8], i64)) {
        let Some(bytes) = to_dds(asker.identity, reply) else {
            count(&self.counters.unreadable, 1);
            return self.notice(shared, "its server on the bus answers with what is no CDR of version 1");
        };
        if self.held.len() >= HELD_MAX {
            count(&self.counters.full, 1);
            return self
                .notice(shared, "replies wait for more clients in DDS than may be; some are left out");
        }
        let until = Instant::now() + REPLY_READER_WITHIN;
        self.held.push_back(Held { bytes, stamp_ns, until, awaited: asker.reader });
    }

    fn unanswered(&self, shared: &Shared, why: &CallError) {
        count(&self.counters.failed, 1);
        self.notice(shared, &format!("a request from DDS has no reply, which nothing there can say: {why}"));
    }

    /// Writes what is held and can be read now.
    fn write(&mut self, shared: &Shared) {
        let now = Instant::now();
        for held in std::mem::take(&mut self.held) {
            if held.until <= now {
                count(&self.counters.late, 1);
                if matches!(held.awaited, Awaited::Client { .. }) {
                    self.notice(shared, "a client in DDS has gone, or has no reader for its reply");
                }
                continue;
            }
            let result = match self.is_read(&held.awaited) {
                true => self.writer.write(&held.bytes, held.stamp_ns),
                false => Err(DdsError::Slow),
            };
            match (result, &held.awaited) {
                (Ok(()), Awaited::Server) => count(&self.counters.requests, 1),
                (Ok(()), Awaited::Client { .. }) => count(&self.counters.replies, 1),
                (Err(DdsError::Slow), _) => self.held.push_back(held),
                (Err(why), _) => self.notice(shared, &why.to_string()),
            }
        }
    }

    fn is_read(&self, awaited: &Awaited) -> bool {
        match (awaited, &self.end) {
            (Awaited::Server, End::Server { replies, .. }) => {
                self.writer.has_readers() && replies.has_writers()
            }
            (Awaited::Server, End::Client { .. }) => false,
            (Awaited::Client { participant, client }, _) => {
                self.writer.is_read_by(participant, client.as_deref())
            }
        }
    }

    fn notice(&self, shared: &Shared, text: &str) {
        shared.notice_once(&format!("{}: {text}", subject(&self.route.service)));
    }
}
