//! The requests of one client that wait for their replies. Sans-IO: replies, servers and the time in; copies to send and
//! results out.
//!
//! # Approach
//!
//! - Each request goes to one server, so that it is executed at most once. Copies of it, with the same identity, go to the
//!   same server until the reply is there: a server answers a copy from its memory. Only a request that is marked idempotent goes to
//!   another server, and only when its server has gone.
//! - Copies go after [`RESEND_FIRST`], then after twice that and so on up to [`RESEND_MAX`]: the topic is reliable, so what they
//!   repair is a request or a reply of the moment in which two nodes find each other.
//! - Each request ends once: by a reply, by its deadline, by the end of its server, by cancellation.

use std::collections::{BTreeMap, VecDeque};

use noctule_discovery::NodeId;
use noctule_time_sync::Local;
use noctule_timebase::{Instant, Span};

use crate::publisher::SourceTime;

use super::wire::{Kind, REQUEST_HEADER_BYTES, ReplyHeader, RequestHeader, RequestId, Status};

/// Calls of one client that may be under way at once.
pub const OUTSTANDING_MAX: usize = 1024;
/// Calls that ended without a reply and are remembered to tell a late reply from a second one.
const ENDED_MAX: usize = 256;
/// From the first copy of a request to the second.
const RESEND_FIRST: Span = Span::from_ms(50);
/// Between copies at most.
const RESEND_MAX: Span = Span::from_s(5);

/// A server that can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ServerRef {
    pub(crate) number: u64,
    pub(crate) node: NodeId,
}

/// How a call ended without a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    NoServer {
        waited: Span,
    },
    DeadlineExceeded {
        server: NodeId,
        waited: Span,
        sent: u32,
    },
    ServerGone {
        server: NodeId,
    },
    Cancelled,
    /// The server's own word, and the text that came with it.
    Refused {
        server: NodeId,
        status: Status,
    },
}

/// The outcome of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrived {
    /// It ends this call.
    Expected,
    /// Of a call that had ended without it, so long after its request.
    Late { since: Span },
    /// A second one, or one to another client.
    Unexpected,
}

/// Counters of the requests of a client. Each saturates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientCounters {
    /// Calls that were begun.
    pub calls: u64,
    /// Calls refused because [`OUTSTANDING_MAX`] were under way.
    pub full: u64,
    /// Copies of requests sent beyond the first.
    pub resent: u64,
    /// Requests that went to another server because theirs had gone.
    pub moved: u64,
    /// Calls whose deadline was over.
    pub deadline_exceeded: u64,
    /// Calls whose server ended.
    pub server_gone: u64,
    /// Replies to calls that had ended without them.
    pub late_replies: u64,
    /// Second and further replies to one request.
    pub duplicate_replies: u64,
    /// Replies to other clients of the service.
    pub other_clients: u64,
    /// Samples that are no replies.
    pub malformed: u64,
}

pub(crate) fn count(counter: &mut u64) {
    *counter = counter.saturating_add(1);
}

/// The conditions of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub(crate) deadline: Span,
    pub(crate) is_idempotent: bool,
    /// The only node whose server is asked.
    pub(crate) only: Option<NodeId>,
}

#[derive(Debug)]
struct Call {
    /// Header and message.
    bytes: Vec<u8>,
    terms: Terms,
    asked: Instant<Local>,
    /// When the request was true, if that was elsewhere.
    source: Option<SourceTime>,
    server: Option<ServerRef>,
    /// The last server that had it.
    last: Option<NodeId>,
    sent: u32,
    resend_at: Instant<Local>,
    interval: Span,
}

/// A sample for the request topic; it was true when its call began, or when `source` says.
#[derive(Debug)]
pub(crate) struct Copy {
    pub(crate) sequence: i64,
    pub(crate) bytes: Vec<u8>,
    pub(crate) source_time: Instant<Local>,
    pub(crate) source: Option<SourceTime>,
}

/// The requests of one client that have no reply yet.
#[derive(Debug)]
pub(crate) struct Outstanding {
    client: u64,
    next: i64,
    calls: BTreeMap<i64, Call>,
    servers: Vec<ServerRef>,
    /// Whose turn it is.
    turn: usize,
    to_send: VecDeque<Copy>,
    ended: VecDeque<(i64, Ended)>,
    /// Calls that ended without a reply, with the time of their request.
    unanswered: VecDeque<(i64, Instant<Local>)>,
    pub(crate) counters: ClientCounters,
}

impl Outstanding {
    pub(crate) fn new(client: u64) -> Outstanding {
        Outstanding {
            client,
            next: 1,
            calls: BTreeMap::new(),
            servers: Vec::new(),
            turn: 0,
            to_send: VecDeque::new(),
            ended: VecDeque::new(),
            unanswered: VecDeque::new(),
            counters: ClientCounters::default(),
        }
    }

    /// Begins a call; `None` if [`OUTSTANDING_MAX`] are under way.
    #[cfg(test)]
    pub(crate) fn handle_call(&mut self, now: Instant<Local>, message: &[u8], terms: Terms) -> Option<i64> {
        self.handle_call_of(now, None, (message, terms))
    }

    /// Begins a call, whose request may come from elsewhere; `None` if [`OUTSTANDING_MAX`] are under way.
    pub(crate) fn handle_call_of(
        &mut self,
        now: Instant<Local>,
        source: Option<SourceTime>,
        (message, terms): (&[u8], Terms),
    ) -> Option<i64> {
        if self.calls.len() >= OUTSTANDING_MAX {
            count(&mut self.counters.full);
            return None;
        }
        count(&mut self.counters.calls);
        let sequence = self.next;
        self.next += 1;
        let mut bytes = vec![0; REQUEST_HEADER_BYTES];
        bytes.extend_from_slice(message);
        let call = Call {
            bytes,
            terms,
            asked: now,
            source,
            server: None,
            last: None,
            sent: 0,
            resend_at: now,
            interval: RESEND_FIRST,
        };
        self.calls.insert(sequence, call);
        self.send_due(now);
        Some(sequence)
    }

    /// Ends a call; its server learns that the client does not wait for the reply. False if it is not under way.
    pub(crate) fn handle_cancel(&mut self, sequence: i64) -> bool {
        let Some(call) = self.calls.remove(&sequence) else { return false };
        // Nothing of it may go out after this.
        self.to_send.retain(|copy| copy.sequence != sequence);
        if let Some(server) = call.server {
            let header = self.header(Kind::Cancel, sequence, &call, server.number);
            let bytes = header.encode().to_vec();
            self.to_send.push_back(Copy { sequence, bytes, source_time: call.asked, source: call.source });
        }
        self.end(sequence, &call, Ended::Cancelled);
        true
    }

    /// Forgets a call that could not be sent.
    pub(crate) fn handle_refused(&mut self, sequence: i64) -> bool {
        self.calls.remove(&sequence).is_some()
    }

    /// The servers there are now.
    pub(crate) fn handle_servers(&mut self, now: Instant<Local>, servers: &[ServerRef]) {
        self.servers.clear();
        self.servers.extend_from_slice(servers);
        let is_gone = |call: &Call| call.server.is_some_and(|server| !servers.contains(&server));
        let gone: Vec<i64> =
            self.calls.iter().filter(|(_, call)| is_gone(call)).map(|(sequence, _)| *sequence).collect();
        for sequence in gone {
            let Some(call) = self.calls.get_mut(&sequence) else { continue };
            let Some(server) = call.server.take() else { continue };
            if call.terms.is_idempotent {
                (call.resend_at, call.interval) = (now, RESEND_FIRST);
                count(&mut self.counters.moved);
            } else if let Some(call) = self.calls.remove(&sequence) {
                count(&mut self.counters.server_gone);
                self.end(sequence, &call, Ended::ServerGone { server: server.node });
            }
        }
        self.send_due(now);
    }

    /// Handles a reply of `server`; one that is expected with another status than done has ended its call.
    pub(crate) fn handle_reply(
        &mut self,
        now: Instant<Local>,
        header: &ReplyHeader,
        server: NodeId,
    ) -> Arrived {
        let sequence = header.id.sequence;
        if header.id.client != self.client {
            count(&mut self.counters.other_clients);
            return Arrived::Unexpected;
        }
        if self.calls.remove(&sequence).is_some() {
            self.to_send.retain(|copy| copy.sequence != sequence);
            if !matches!(header.status, Status::Done | Status::Failed) {
                self.ended.push_back((sequence, Ended::Refused { server, status: header.status }));
            }
            return Arrived::Expected;
        }
        match self.unanswered.iter().position(|(known, _)| *known == sequence) {
            Some(at) => {
                count(&mut self.counters.late_replies);
                let since = self.unanswered.remove(at).map_or(Span::ZERO, |(_, asked)| now - asked);
                Arrived::Late { since }
            }
            None => {
                count(&mut self.counters.duplicate_replies);
                Arrived::Unexpected
            }
        }
    }

    /// Ends what has waited long enough, and sends again what is due.
    pub(crate) fn handle_time(&mut self, now: Instant<Local>) {
        let is_over = |call: &Call| now - call.asked >= call.terms.deadline;
        let over: Vec<i64> =
            self.calls.iter().filter(|(_, call)| is_over(call)).map(|(sequence, _)| *sequence).collect();
        for sequence in over {
            let Some(call) = self.calls.remove(&sequence) else { continue };
            count(&mut self.counters.deadline_exceeded);
            let (waited, sent) = (call.terms.deadline, call.sent);
            let ended = match call.last {
                None => Ended::NoServer { waited },
                Some(server) => Ended::DeadlineExceeded { server, waited, sent },
            };
            self.end(sequence, &call, ended);
        }
        self.send_due(now);
    }

    /// When [`handle_time`](Outstanding::handle_time) has something to do.
    pub(crate) fn next_time(&self) -> Option<Instant<Local>> {
        let end = |call: &Call| call.asked.checked_add(call.terms.deadline).unwrap_or(Instant::MAX);
        let next = |call: &Call| call.server.map_or(end(call), |_| end(call).min(call.resend_at));
        self.calls.values().map(next).min()
    }

    pub(crate) fn poll_send(&mut self) -> Option<Copy> {
        self.to_send.pop_front()
    }

    pub(crate) fn poll_ended(&mut self) -> Option<(i64, Ended)> {
        self.ended.pop_front()
    }

    /// A sample that is no reply.
    pub(crate) fn handle_malformed(&mut self) {
        count(&mut self.counters.malformed);
    }

    /// Whether a call is under way.
    pub(crate) fn is_open(&self, sequence: i64) -> bool {
        self.calls.contains_key(&sequence)
    }

    /// Calls under way.
    pub(crate) fn calls(&self) -> usize {
        self.calls.len()
    }

    fn end(&mut self, sequence: i64, call: &Call, ended: Ended) {
        if self.unanswered.len() >= ENDED_MAX {
            self.unanswered.pop_front();
        }
        self.unanswered.push_back((sequence, call.asked));
        self.ended.push_back((sequence, ended));
    }

    fn send_due(&mut self, now: Instant<Local>) {
        let due: Vec<i64> = self
            .calls
            .iter()
            .filter(|(_, call)| call.resend_at <= now)
            .map(|(sequence, _)| *sequence)
            .collect();
        for sequence in due {
            let Some(mut call) = self.calls.remove(&sequence) else { continue };
            if let (None, Some(only)) = (call.server, call.terms.only) {
                call.server = self.servers.iter().find(|server| server.node == only).copied();
            } else if call.server.is_none() && !self.servers.is_empty() {
                // In turn, so that servers of one service share the work.
                self.turn = (self.turn + 1) % self.servers.len();
                call.server = Some(self.servers[self.turn]);
            }
            if let Some(server) = call.server {
                let header = self.header(Kind::Request, sequence, &call, server.number);
                call.bytes[..REQUEST_HEADER_BYTES].copy_from_slice(&header.encode());
                if call.sent > 0 {
                    count(&mut self.counters.resent);
                }
                call.sent = call.sent.saturating_add(1);
                call.last = Some(server.node);
                call.resend_at = now.checked_add(call.interval).unwrap_or(Instant::MAX);
                call.interval = (call.interval + call.interval).min(RESEND_MAX);
                let bytes = call.bytes.clone();
                self.to_send.push_back(Copy {
                    sequence,
                    bytes,
                    source_time: call.asked,
                    source: call.source,
                });
            }
            self.calls.insert(sequence, call);
        }
    }

    fn header(&self, kind: Kind, sequence: i64, call: &Call, server: u64) -> RequestHeader {
        RequestHeader {
            kind,
            is_idempotent: call.terms.is_idempotent,
            attempt: u8::try_from(call.sent).unwrap_or(u8::MAX),
            id: RequestId { client: self.client, sequence },
            server,
            deadline: call.terms.deadline,
        }
    }
}
