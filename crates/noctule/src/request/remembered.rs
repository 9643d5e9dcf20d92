//! The requests that one server has and has had. Sans-IO: requests, replies and the time in; what to do with each out.
//!
//! # Approach
//!
//! - A request is executed only if its age is proven to be below its deadline, and is remembered until its age is proven to be above: so
//!   no copy of it is executed twice, however late it comes. Where an age is not known, it counts from the arrival, and the identity is
//!   kept [`UNPROVEN`] longer.
//! - A copy of an answered request gets the same reply again, while its bytes are kept.
//! - An answered request is forgotten [`ANSWERED`] after its last copy even if its deadline is far: its client resends more
//!   often than that while it waits. Where there is no room for another, [`ANSWERED_LEAST`] is enough.

use std::collections::{BTreeMap, BTreeSet};

use noctule_time_sync::Local;
use noctule_timebase::{Instant, Span};

use super::outstanding::count;
use super::wire::{Kind, ReplyHeader, RequestHeader, RequestId, Status};
use crate::sample::Age;

/// Requests that one server remembers, answered or not.
pub const REMEMBERED_MAX: usize = 16_384;
/// Bytes of replies that one server keeps for copies of requests.
pub const REPLIES_BYTES_MAX: usize = 16 << 20;
/// How much longer a request of unknown age is remembered than its deadline.
const UNPROVEN: Span = Span::from_s(10);
/// How long a reply is kept after the last copy of its request.
const ANSWERED: Span = Span::from_s(60);
/// And how long at least: twice the longest pause between two copies, so that its client has the reply.
const ANSWERED_LEAST: Span = Span::from_s(10);

/// Counters of the requests that came to a server. Each saturates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerCounters {
    /// Requests handed to the program.
    pub requests: u64,
    /// Copies of requests that were there before.
    pub duplicates: u64,
    /// Requests older than their deadline on arrival, or not proven younger.
    pub late: u64,
    /// Requests refused because [`REMEMBERED_MAX`] are remembered.
    pub full: u64,
    /// Requests cancelled before they were answered.
    pub cancelled: u64,
    /// Replies that came after the deadline of their request.
    pub late_replies: u64,
    /// Replies that are not kept because of [`REPLIES_BYTES_MAX`].
    pub replies_not_kept: u64,
    /// Requests to other servers of the service.
    pub other_servers: u64,
    /// Samples that are no requests, or no values of the type.
    pub malformed: u64,
}

/// The decision on a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Execute,
    Answer(Status, Vec<u8>),
    Ignore,
}

/// Why a request cannot be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotOpen {
    TooLate,
    Twice,
    Cancelled,
}

#[derive(Debug)]
enum State {
    Running,
    Cancelled,
    Answered(Status, Option<Vec<u8>>),
}

#[derive(Debug)]
struct Known {
    state: State,
    /// Its age is above its deadline from then on.
    until: Instant<Local>,
    /// When it or its last copy was answered.
    answered_at: Instant<Local>,
    /// The earlier of that and, if answered, [`ANSWERED`] after the last copy.
    forget_at: Instant<Local>,
}

/// The requests that one server executes or has executed.
#[derive(Debug)]
pub(crate) struct Remembered {
    server: u64,
    known: BTreeMap<RequestId, Known>,
    by_time: BTreeSet<(Instant<Local>, RequestId)>,
    reply_bytes: usize,
    pub(crate) counters: ServerCounters,
}

impl Remembered {
    pub(crate) fn new(server: u64) -> Remembered {
        Remembered {
            server,
            known: BTreeMap::new(),
            by_time: BTreeSet::new(),
            reply_bytes: 0,
            counters: ServerCounters::default(),
        }
    }

    /// A request or a cancellation of this age.
    pub(crate) fn handle_request(
        &mut self,
        now: Instant<Local>,
        header: &RequestHeader,
        age: Option<Age>,
    ) -> Verdict {
        self.handle_time(now);
        if header.server != 0 && header.server != self.server {
            count(&mut self.counters.other_servers);
            return Verdict::Ignore;
        }
        if self.known.contains_key(&header.id) {
            return self.handle_copy(now, header);
        }
        if header.kind == Kind::Cancel {
            // The request came with a loss, or not at all: a copy of it is not to be executed.
            if self.has_room(now) {
                self.remember(now, header, age, State::Cancelled);
            }
            return Verdict::Ignore;
        }
        let oldest = age.map(|age| age.span + age.bound.unwrap_or(Span::ZERO));
        if oldest.is_some_and(|oldest| oldest >= header.deadline) {
            count(&mut self.counters.late);
            return Verdict::Answer(Status::Late, Vec::new());
        }
        if !self.has_room(now) {
            count(&mut self.counters.full);
            return Verdict::Answer(Status::Full, Vec::new());
        }
        count(&mut self.counters.requests);
        self.remember(now, header, age, State::Running);
        Verdict::Execute
    }

    /// The program answers. The reply goes out if this does not fail.
    ///
    /// # Errors
    /// No client waits for it.
    pub(crate) fn handle_answer(
        &mut self,
        now: Instant<Local>,
        id: RequestId,
        reply: (Status, &[u8]),
    ) -> Result<ReplyHeader, NotOpen> {
        self.handle_time(now);
        let Some(known) = self.known.get_mut(&id) else {
            count(&mut self.counters.late_replies);
            return Err(NotOpen::TooLate);
        };
        match known.state {
            State::Running => {}
            State::Cancelled => return Err(NotOpen::Cancelled),
            State::Answered(..) => return Err(NotOpen::Twice),
        }
        let (status, bytes) = reply;
        let kept = if self.reply_bytes.saturating_add(bytes.len()) <= REPLIES_BYTES_MAX {
            self.reply_bytes += bytes.len();
            Some(bytes.to_vec())
        } else {
            count(&mut self.counters.replies_not_kept);
            None
        };
        known.state = State::Answered(status, kept);
        self.touch(now, id);
        Ok(ReplyHeader { status, id, server: self.server })
    }

    /// Whether a request waits no longer for its answer: cancelled, or its deadline is over.
    pub(crate) fn is_cancelled(&self, id: RequestId) -> bool {
        self.known.get(&id).is_none_or(|known| matches!(known.state, State::Cancelled))
    }

    /// A sample that is no request, or none of the type.
    pub(crate) fn handle_malformed(&mut self) {
        count(&mut self.counters.malformed);
    }

    /// Forgets what need not be remembered any more.
    pub(crate) fn handle_time(&mut self, now: Instant<Local>) {
        while self.by_time.first().is_some_and(|(at, _)| *at <= now) {
            self.forget_first();
        }
    }

    /// Whether another request can be remembered; makes room if one is there that was answered long enough ago.
    fn has_room(&mut self, now: Instant<Local>) -> bool {
        if self.known.len() < REMEMBERED_MAX {
            return true;
        }
        let first = self.by_time.first().and_then(|(_, id)| self.known.get(id));
        let is_over = first.is_some_and(|known| {
            matches!(known.state, State::Answered(..)) && now - known.answered_at >= ANSWERED_LEAST
        });
        if is_over {
            self.forget_first();
        }
        is_over
    }

    fn forget_first(&mut self) {
        let Some((_, id)) = self.by_time.pop_first() else { return };
        if let Some(Known { state: State::Answered(_, Some(bytes)), .. }) = self.known.remove(&id) {
            self.reply_bytes -= bytes.len();
        }
    }

    fn handle_copy(&mut self, now: Instant<Local>, header: &RequestHeader) -> Verdict {
        let Some(known) = self.known.get_mut(&header.id) else { return Verdict::Ignore };
        if header.kind == Kind::Cancel {
            if matches!(known.state, State::Running) {
                known.state = State::Cancelled;
                count(&mut self.counters.cancelled);
            }
            return Verdict::Ignore;
        }
        count(&mut self.counters.duplicates);
        let verdict = match &known.state {
            State::Running => return Verdict::Ignore,
            State::Cancelled => Verdict::Answer(Status::Cancelled, Vec::new()),
            State::Answered(status, Some(bytes)) => Verdict::Answer(*status, bytes.clone()),
            State::Answered(_, None) => Verdict::Answer(Status::Forgotten, Vec::new()),
        };
        self.touch(now, header.id);
        verdict
    }

    fn remember(&mut self, now: Instant<Local>, header: &RequestHeader, age: Option<Age>, state: State) {
        // The least that its age may be: then it is above its deadline for certain.
        let proven = age.and_then(|age| Some(age.span - age.bound?));
        let left = match proven {
            Some(youngest) => header.deadline - youngest.min(header.deadline),
            None => header.deadline.checked_add(UNPROVEN).unwrap_or(header.deadline),
        };
        let until = now.checked_add(left).unwrap_or(Instant::MAX);
        self.known.insert(header.id, Known { state, until, answered_at: now, forget_at: until });
        self.by_time.insert((until, header.id));
    }

    /// An answered request is kept from its last copy on.
    fn touch(&mut self, now: Instant<Local>, id: RequestId) {
        let Some(known) = self.known.get_mut(&id) else { return };
        self.by_time.remove(&(known.forget_at, id));
        known.answered_at = now;
        known.forget_at = known.until.min(now.checked_add(ANSWERED).unwrap_or(Instant::MAX));
        self.by_time.insert((known.forget_at, id));
    }
}
