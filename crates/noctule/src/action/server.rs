//! The executing end of an action, for messages as bytes of CDR.
//!
//! A thread of its own receives goals, answers cancellations and requests for results, and publishes the states; the program takes goals and reports what
//! becomes of them, from any of its threads.

mod serving;

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant as Timer};

use noctule_discovery::{NodeId, Reliability};
use noctule_formats::{Format, FormatError};

use super::error::{ActionError, GoalError};
use super::goals::{ActionCounters, GOAL_KEPT_DEFAULT, Goals, Outcome, count};
use super::types::{ActionTypes, GOAL_BYTES, STATUS_AT, cancel_types, describe_shared};
use super::{ActionNames, GoalId, GoalStamp, GoalStatus, KnownGoal, goal_info};
use crate::deadline::span;
use crate::generated::action_msgs::msg;
use crate::node::Node;
use crate::publisher::{CdrPublisher, PAYLOAD_BYTES_DEFAULT, Publisher};
use crate::request::{ReplyError, RequestId};
use crate::sample::{Age, SampleInfo};
use crate::subscriber::{Wait, WaitSet, Waker};

/// Feedback that a client may lag behind.
const FEEDBACK_DEPTH: u32 = 64;
/// Bytes of all states: a head, then 28 for each goal.
const STATUS_BYTES_MAX: u32 = 64 << 10;

/// Called before a goal is canceled; false: it goes on.
type OnCancel = Arc<dyn Fn(GoalId) -> bool + Send + Sync>;

/// Settings of an action's server.
#[must_use = "call open"]
pub struct ActionServerBuilder<'a> {
    node: &'a Node,
    action: String,
    types: ActionTypes,
    payload_bytes_max: u32,
    kept: Duration,
    empty_result: Option<Vec<u8>>,
    on_cancel: Option<OnCancel>,
}

/// Serves one action, with messages as bytes of CDR; [`ActionServer`](super::ActionServer) has them as values. Goals that are under way when it is
/// dropped end with it: their clients see that the server is gone.
pub struct RawActionServer {
    shared: Arc<Served>,
    thread: Option<JoinHandle<()>>,
}

/// A goal that waits to be accepted. Dropping it rejects it.
pub struct RawGoal {
    shared: Arc<Served>,
    offer: Offer,
    is_answered: bool,
}

/// A goal that was accepted and is under way. Dropping it before its end aborts it.
pub struct RawActiveGoal {
    shared: Arc<Served>,
    id: GoalId,
    stamp: GoalStamp,
    has_ended: bool,
    buffer: Vec<u8>,
}

/// A goal as it was sent.
#[derive(Clone, Debug)]
struct Offer {
    id: GoalId,
    request: RequestId,
    bytes: Vec<u8>,
    info: SampleInfo,
}

/// State that the thread and the program share.
struct Served {
    action: String,
    payload_bytes_max: usize,
    /// The response to requests for the result of a goal that ends without one.
    empty_result: Option<Arc<[u8]>>,
    on_cancel: Option<OnCancel>,
    is_over: AtomicBool,
    waker: Waker,
    state: Mutex<State>,
    /// A goal has come, or changed its state.
    has_news: Condvar,
}

struct State {
    goals: Goals,
    offers: VecDeque<Offer>,
    decisions: VecDeque<Decision>,
    feedback: Publisher,
    status: CdrPublisher<msg::GoalStatusArray>,
}

/// Decision of the program on a goal that was offered.
struct Decision {
    id: GoalId,
    request: RequestId,
    /// `None`: rejected. Else when it was accepted, and whether it is executed at once.
    accepted: Option<(GoalStamp, bool)>,
    /// Learns whether the client could be answered.
    done: Sender<Result<(), ReplyError>>,
}

impl<'a> ActionServerBuilder<'a> {
    pub(super) fn new(node: &'a Node, action: &str, types: ActionTypes) -> ActionServerBuilder<'a> {
        ActionServerBuilder {
            node,
            action: format!("/{}", action.trim_matches('/')),
            types,
            payload_bytes_max: PAYLOAD_BYTES_DEFAULT,
            kept: GOAL_KEPT_DEFAULT,
            empty_result: None,
            on_cancel: None,
        }
    }

    /// Longest result and longest feedback in bytes. Default 64 KiB.
    pub fn payload_bytes_max(mut self, bytes: u32) -> Self {
        self.payload_bytes_max = bytes;
        self
    }

    /// How long a result is kept after the end of its goal. Default 10 s, as in ROS 2. A client that requests it before that end waits for it as long as it likes.
    pub fn keep_results(mut self, kept: Duration) -> Self {
        self.kept = kept;
        self
    }

    /// The response to requests for a result that there is none of, in CDR: a `…_GetResult_Response` whose status is written here. Without it such requests
    /// fail with a sentence, which programs of ROS 2 do not see.
    pub fn empty_result(mut self, response: &[u8]) -> Self {
        self.empty_result = Some(response.to_vec());
        self
    }

    /// Called, on the server's own thread, before a goal is canceled; false lets it go on. It may look at goals, but neither accept nor reject one. Default: every goal can be canceled.
    pub fn on_cancel(mut self, callback: impl Fn(GoalId) -> bool + Send + Sync + 'static) -> Self {
        self.on_cancel = Some(Arc::new(callback));
        self
    }

    /// Opens the server. Goals come from now on.
    ///
    /// # Errors
    /// A name that cannot travel, no room for eight more endpoints, no thread.
    pub fn open(self) -> Result<RawActionServer, ActionError> {
        let node = self.node;
        let names = ActionNames::of(&self.action);
        describe_shared(node);
        let feedback = node
            .publisher(&names.feedback)
            .type_name(&self.types.feedback.name, self.types.feedback.hash)
            .format(Format::Cdr)
            .reliability(Reliability::Reliable)
            .keep_last(FEEDBACK_DEPTH)
            .payload_bytes_max(self.payload_bytes_max)
            .open()?;
        let status = node
            .publisher(&names.status)
            .reliability(Reliability::Reliable)
            .keep_last(1)
            .transient_local()
            .payload_bytes_max(STATUS_BYTES_MAX)
            .open_cdr()?;
        let get = node.raw_server(&names.get_result, self.types.get_result);
        let servers = [
            // Before the one for goals: a client with an accepted goal can request its result.
            get.payload_bytes_max(self.payload_bytes_max).open()?,
            node.raw_server(&names.cancel_goal, cancel_types()).open()?,
            node.raw_server(&names.send_goal, self.types.send_goal).open()?,
        ];
        let set = WaitSet::new(Wait::Block);
        let state = State {
            goals: Goals::new(span(self.kept)),
            offers: VecDeque::new(),
            decisions: VecDeque::new(),
            feedback,
            status,
        };
        let shared = Arc::new(Served {
            action: self.action,
            payload_bytes_max: self.payload_bytes_max as usize,
            empty_result: self.empty_result.map(Arc::from),
            on_cancel: self.on_cancel,
            is_over: AtomicBool::new(false),
            waker: set.waker(),
            state: Mutex::new(state),
            has_news: Condvar::new(),
        });
        let theirs = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("noctule-action".into());
        let thread =
            thread.spawn(move || serving::run(&theirs, servers, set)).map_err(ActionError::System)?;
        Ok(RawActionServer { shared, thread: Some(thread) })
    }
}

impl RawActionServer {
    /// The next goal that was sent; waits up to `timeout`, or for ever. `None` if the time is over. Several threads may wait.
    pub fn next(&self, timeout: Option<Duration>) -> Option<RawGoal> {
        let shared = Arc::clone(&self.shared);
        let end = timeout.and_then(|timeout| Timer::now().checked_add(timeout));
        let mut state = self.shared.lock();
        loop {
            if let Some(offer) = state.offers.pop_front() {
                drop(state);
                return Some(RawGoal { shared, offer, is_answered: false });
            }
            state = self.shared.wait(state, end)?;
        }
    }

    /// All goals that the server has, in the order of their acceptance: where they are, and when they were accepted.
    pub fn goals(&self) -> Vec<KnownGoal> {
        self.shared.lock().goals.statuses()
    }

    /// Name of the action, with a leading `/`.
    pub fn action(&self) -> &str {
        &self.shared.action
    }

    /// A goal that is no value of its type.
    pub(super) fn count_malformed(&self) {
        count(&mut self.shared.lock().goals.counters.malformed);
    }

    /// Counters of the goals so far.
    pub fn counters(&self) -> ActionCounters {
        self.shared.lock().goals.counters
    }
}

impl Drop for RawActionServer {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Release);
        self.shared.waker.wake();
        if let Some(thread) = self.thread.take()
            // The callback may hold the last handle.
            && thread.thread().id() != std::thread::current().id()
        {
            // It panics only if the callback does, which has been printed then.
            let _ = thread.join();
        }
    }
}

impl RawGoal {
    /// Its number.
    pub fn id(&self) -> GoalId {
        self.offer.id
    }

    /// The request in CDR, a `…_SendGoal_Request`: the goal's number, then the goal.
    pub fn bytes(&self) -> &[u8] {
        &self.offer.bytes
    }

    /// Metadata of the request: source time, age, writer.
    pub fn info(&self) -> &SampleInfo {
        &self.offer.info
    }

    /// Its age when it was taken: since it was sent.
    pub fn age(&self) -> Option<Age> {
        self.offer.info.age()
    }

    /// The node that sent it.
    pub fn caller(&self) -> NodeId {
        self.offer.info.publisher
    }

    /// Accepts and executes it.
    ///
    /// # Errors
    /// Its client waits no longer; then it is as if it had never come.
    pub fn accept(self) -> Result<RawActiveGoal, GoalError> {
        self.accept_as(true)
    }

    /// Accepts it, to be [executed](RawActiveGoal::execute) later.
    ///
    /// # Errors
    /// As [`accept`](RawGoal::accept).
    pub fn defer(self) -> Result<RawActiveGoal, GoalError> {
        self.accept_as(false)
    }

    /// Rejects it.
    ///
    /// # Errors
    /// Its client waits no longer.
    pub fn reject(mut self) -> Result<(), GoalError> {
        self.decide(None)
    }

    fn accept_as(mut self, is_begun: bool) -> Result<RawActiveGoal, GoalError> {
        let stamp = GoalStamp::now();
        self.decide(Some((stamp, is_begun)))?;
        let shared = Arc::clone(&self.shared);
        Ok(RawActiveGoal { shared, id: self.offer.id, stamp, has_ended: false, buffer: Vec::new() })
    }

    fn decide(&mut self, accepted: Option<(GoalStamp, bool)>) -> Result<(), GoalError> {
        self.is_answered = true;
        let closed = || GoalError::Closed { action: self.shared.action.clone() };
        let (done, answer) = channel();
        let decision = Decision { id: self.offer.id, request: self.offer.request, accepted, done };
        let mut state = self.shared.lock();
        // Under the lock: the thread looks once more, under it, before it ends.
        if self.shared.is_over.load(Ordering::Acquire) {
            return Err(closed());
        }
        state.decisions.push_back(decision);
        drop(state);
        self.shared.waker.wake();
        Ok(answer.recv().map_err(|_| closed())??)
    }
}

impl Drop for RawGoal {
    fn drop(&mut self) {
        if !self.is_answered {
            // Its client may have gone.
            let _ = self.decide(None);
        }
    }
}

impl RawActiveGoal {
    /// Its number.
    pub fn id(&self) -> GoalId {
        self.id
    }

    /// When it was accepted.
    pub fn stamp(&self) -> GoalStamp {
        self.stamp
    }

    /// Where it is.
    pub fn status(&self) -> GoalStatus {
        self.shared.lock().goals.status(self.id)
    }

    /// Whether its cancellation was requested.
    pub fn is_canceling(&self) -> bool {
        self.status() == GoalStatus::Canceling
    }

    /// Waits until its cancellation is requested; false if `timeout` is over first.
    pub fn wait_for_cancel(&self, timeout: Option<Duration>) -> bool {
        let end = timeout.and_then(|timeout| Timer::now().checked_add(timeout));
        let mut state = self.shared.lock();
        while state.goals.status(self.id) != GoalStatus::Canceling {
            match self.shared.wait(state, end) {
                Some(again) => state = again,
                None => return false,
            }
        }
        true
    }

    /// Executes a goal that was deferred.
    ///
    /// # Errors
    /// It is executed already, canceling or at its end.
    pub fn execute(&mut self) -> Result<(), GoalError> {
        let to = GoalStatus::Executing;
        let mut state = self.shared.lock();
        state.goals.handle_step(self.id, to).map_err(|from| self.no_step(from, to))?;
        state.publish_status();
        Ok(())
    }

    /// Publishes feedback in CDR, a `…_FeedbackMessage`: 16 bytes for the goal's number, which is written here, then the feedback.
    ///
    /// # Errors
    /// It is too long or no such message, or cannot be published.
    pub fn feedback(&mut self, message: &[u8]) -> Result<(), GoalError> {
        let Served { action, payload_bytes_max, .. } = &*self.shared;
        if message.len() < GOAL_BYTES {
            let (action, bytes) = (action.clone(), message.len());
            return Err(GoalError::Message { action, what: "feedback message", bytes });
        }
        if message.len() > *payload_bytes_max {
            let (action, bytes, most) = (action.clone(), message.len(), *payload_bytes_max);
            return Err(GoalError::TooLong { action, what: "feedback message", bytes, most });
        }
        self.buffer.clear();
        self.buffer.extend_from_slice(message);
        self.buffer[STATUS_AT..GOAL_BYTES].copy_from_slice(&self.id.0);
        Ok(self.shared.lock().feedback.publish(&self.buffer)?)
    }

    /// Ends it: [`Succeeded`](GoalStatus::Succeeded), [`Aborted`](GoalStatus::Aborted) or, on request, [`Canceled`](GoalStatus::Canceled). `response` is what
    /// requests for its result get, in CDR: a `…_GetResult_Response`, whose status is written here.
    ///
    /// # Errors
    /// It is too long or no such message, or a goal in its state does not end so; then it goes on.
    pub fn end(&mut self, status: GoalStatus, response: &[u8]) -> Result<(), GoalError> {
        let response = self.shared.response(status, response)?;
        self.finish(status, Some(response))
    }

    fn finish(&mut self, status: GoalStatus, response: Option<Arc<[u8]>>) -> Result<(), GoalError> {
        let mut state = self.shared.lock();
        let now = state.feedback.now();
        let ended = state.goals.handle_end(now, self.id, Outcome { status, response });
        ended.map_err(|from| self.no_step(from, status))?;
        state.publish_status();
        drop(state);
        self.has_ended = true;
        // It answers the clients that wait for the result.
        self.shared.waker.wake();
        Ok(())
    }

    pub(super) fn format_error(&self, cause: FormatError) -> GoalError {
        GoalError::Format { action: self.shared.action.clone(), cause }
    }

    fn no_step(&self, from: GoalStatus, to: GoalStatus) -> GoalError {
        GoalError::Step { action: self.shared.action.clone(), goal: self.id, from, to }
    }
}

impl Drop for RawActiveGoal {
    fn drop(&mut self) {
        if !self.has_ended {
            let response = self.shared.empty_response(GoalStatus::Aborted);
            // It fails only if the goal is at its end.
            let _ = self.finish(GoalStatus::Aborted, response);
        }
    }
}

impl Served {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for news; `None` if the time or the server is over.
    fn wait<'a>(&self, state: MutexGuard<'a, State>, end: Option<Timer>) -> Option<MutexGuard<'a, State>> {
        if self.is_over.load(Ordering::Acquire) {
            return None;
        }
        let Some(end) = end else {
            return Some(self.has_news.wait(state).unwrap_or_else(PoisonError::into_inner));
        };
        let left = end.checked_duration_since(Timer::now()).filter(|left| !left.is_zero())?;
        Some(self.has_news.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0)
    }

    /// A response with a result, with this status.
    fn response(&self, status: GoalStatus, response: &[u8]) -> Result<Arc<[u8]>, GoalError> {
        let (action, what, bytes) = (|| self.action.clone(), "response with a result", response.len());
        if bytes <= STATUS_AT {
            return Err(GoalError::Message { action: action(), what, bytes });
        }
        if bytes > self.payload_bytes_max {
            return Err(GoalError::TooLong { action: action(), what, bytes, most: self.payload_bytes_max });
        }
        let mut response: Arc<[u8]> = Arc::from(response);
        if let Some(bytes) = Arc::get_mut(&mut response) {
            bytes[STATUS_AT] = status as u8;
        }
        Ok(response)
    }

    /// The response without a result, with this status, if there is one.
    fn empty_response(&self, status: GoalStatus) -> Option<Arc<[u8]>> {
        self.response(status, self.empty_result.as_deref()?).ok()
    }
}

impl State {
    /// Publishes the states of the goals to all clients, if they have changed.
    fn publish_status(&mut self) {
        let Some(statuses) = self.goals.poll_statuses() else { return };
        let of = |(id, stamp, status): KnownGoal| msg::GoalStatus {
            goal_info: goal_info(id, stamp),
            status: status as i8,
        };
        let status_list = statuses.into_iter().map(of).collect();
        // It fits, and a fork's child that cannot publish has no readers to miss it.
        let _ = self.status.publish(&msg::GoalStatusArray { status_list });
    }
}

impl fmt::Debug for ActionServerBuilder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ActionServerBuilder").field("action", &self.action).finish_non_exhaustive()
    }
}

impl fmt::Debug for RawActionServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawActionServer").field("action", &self.shared.action).finish_non_exhaustive()
    }
}

impl fmt::Debug for RawGoal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawGoal").field("id", &self.offer.id).finish_non_exhaustive()
    }
}

impl fmt::Debug for RawActiveGoal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawActiveGoal").field("id", &self.id).finish_non_exhaustive()
    }
}
