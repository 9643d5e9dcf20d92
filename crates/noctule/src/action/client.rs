//! The client of an action, for messages as bytes of CDR.

mod following;

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant as Timer};

use noctule_discovery::{NodeId, Reliability};
use noctule_formats::{Format, Message, encode_cdr};

use super::error::{ActionError, GoalError};
use super::goals::{CancelCode, GOALS_MAX, count};
use super::types::{ActionTypes, GOAL_BYTES, STATUS_AT, cancel_types, describe_shared};
use super::{ActionNames, GoalId, GoalStamp, GoalStatus, KnownGoal, goal_info};
use crate::generated::action_msgs::{msg, srv};
use crate::node::Node;
use crate::publisher::PAYLOAD_BYTES_DEFAULT;
use crate::request::{CALL_DEADLINE_DEFAULT, CallId, RawClient, RawReply};
use crate::sample::{Age, SampleInfo};
use crate::subscriber::{Subscriber, Wait, WaitSet};

/// How long a client waits for a result unless it is given another deadline.
pub const RESULT_DEADLINE_DEFAULT: Duration = Duration::from_secs(24 * 3600);
/// Events that wait for [`next`](RawActionClient::next); then the oldest feedback goes.
pub const EVENTS_MAX: usize = 1024;
/// Little-endian CDR.
const CDR: [u8; 4] = [0, 1, 0, 0];

/// Settings of an action's client.
#[derive(Debug)]
#[must_use = "call open"]
pub struct ActionClientBuilder<'a> {
    node: &'a Node,
    action: String,
    types: ActionTypes,
    deadline: Duration,
    result_deadline: Duration,
    payload_bytes_max: u32,
}

/// Sends goals of one action and follows them, with messages as bytes of CDR; [`ActionClient`](super::ActionClient) has them as values.
#[derive(Debug)]
pub struct RawActionClient {
    action: String,
    goals: RawClient,
    cancels: RawClient,
    results: RawClient,
    feedback: Subscriber,
    status: Subscriber,
    set: WaitSet,
    result_deadline: Duration,
    followed: BTreeMap<GoalId, Followed>,
    /// Requests for cancellation, and the goals that they name.
    canceling: BTreeMap<CallId, GoalId>,
    events: VecDeque<(GoalId, GoalEvent)>,
    /// All goals of the server that spoke last.
    known: Vec<KnownGoal>,
    counters: ActionClientCounters,
}

/// Counters of an action client's goals. Each saturates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ActionClientCounters {
    /// Goals that were sent.
    pub goals: u64,
    /// Of these, accepted.
    pub accepted: u64,
    /// Of these, rejected.
    pub rejected: u64,
    /// Results that came.
    pub results: u64,
    /// Goals without a result: no server, a server that ended, a deadline that was over.
    pub failed: u64,
    /// Feedback that was not taken before [`EVENTS_MAX`] events waited.
    pub feedback_dropped: u64,
    /// Feedback of goals that this client does not follow.
    pub other_goals: u64,
    /// Messages that are none of the action's.
    pub malformed: u64,
}

/// An event of a goal that a client follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GoalEvent {
    /// It is accepted, and its result will follow.
    Accepted {
        /// Whose server.
        server: NodeId,
        /// When, by the server's time of day.
        stamp: GoalStamp,
    },
    /// It is executed, or canceled.
    Status(GoalStatus),
    /// Feedback in CDR, a `…_FeedbackMessage`. Over a network the first may come before the acceptance, and the last after the result;
    /// that one is counted only.
    Feedback {
        /// The message.
        bytes: Vec<u8>,
        /// Metadata of the feedback: its age, its writer.
        info: SampleInfo,
    },
    /// It has ended; this is its last event.
    Result(RawResult),
    /// It has no result, for this reason; this is its last event.
    Failed(GoalError),
    /// The answer to a request for cancellation. Of all goals, or those up to a time: under the number of none.
    Cancel(Result<Canceled, GoalError>),
}

/// The next event of any goal and that goal's number; `None` if there is none.
pub type NextGoalEvent<E> = Result<Option<(GoalId, E)>, GoalError>;

/// The answer to a request for cancellation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Canceled {
    /// Whether goals are being canceled.
    pub code: CancelCode,
    /// Which, and when they were accepted.
    pub goals: Vec<(GoalId, GoalStamp)>,
}

/// How a goal ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawResult {
    status: GoalStatus,
    reply: RawReply,
}

#[derive(Debug)]
struct Followed {
    /// The last status that was reported.
    status: GoalStatus,
    phase: Phase,
    result_deadline: Duration,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    Sent(CallId),
    /// Its result is requested from this node.
    Accepted(CallId, NodeId),
    /// Its last event waits to be taken.
    Ended,
}

impl<'a> ActionClientBuilder<'a> {
    pub(super) fn new(node: &'a Node, action: &str, types: ActionTypes) -> ActionClientBuilder<'a> {
        ActionClientBuilder {
            node,
            action: format!("/{}", action.trim_matches('/')),
            types,
            deadline: CALL_DEADLINE_DEFAULT,
            result_deadline: RESULT_DEADLINE_DEFAULT,
            payload_bytes_max: PAYLOAD_BYTES_DEFAULT,
        }
    }

    /// How long a goal waits to be accepted, and a cancellation for its answer. Default 5 s.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// How long an accepted goal may take. Default 24 h.
    pub fn result_deadline(mut self, deadline: Duration) -> Self {
        self.result_deadline = deadline;
        self
    }

    /// Longest goal in bytes. Default 64 KiB.
    pub fn payload_bytes_max(mut self, bytes: u32) -> Self {
        self.payload_bytes_max = bytes;
        self
    }

    /// Opens the client. Servers are found from now on.
    ///
    /// # Errors
    /// A name that cannot travel, or no room for eight more endpoints.
    pub fn open(self) -> Result<RawActionClient, ActionError> {
        let node = self.node;
        let names = ActionNames::of(&self.action);
        describe_shared(node);
        let feedback = node
            .subscriber(&names.feedback)
            .type_name(&self.types.feedback.name, self.types.feedback.hash)
            .formats(&[Format::Cdr])
            .reliability(Reliability::Reliable)
            .open()?;
        let status = node
            .subscriber(&names.status)
            .type_name(
                <msg::GoalStatusArray as Message>::TYPE_NAME,
                <msg::GoalStatusArray as Message>::type_hash(),
            )
            .formats(&[Format::Cdr])
            .reliability(Reliability::Reliable)
            .transient_local()
            .open()?;
        let results = node.raw_client(&names.get_result, self.types.get_result);
        let cancels = node.raw_client(&names.cancel_goal, cancel_types());
        let goals = node.raw_client(&names.send_goal, self.types.send_goal);
        Ok(RawActionClient {
            action: self.action,
            results: results.deadline(self.result_deadline).open()?,
            cancels: cancels.deadline(self.deadline).open()?,
            goals: goals.deadline(self.deadline).payload_bytes_max(self.payload_bytes_max).open()?,
            feedback,
            status,
            set: WaitSet::new(Wait::Block),
            result_deadline: self.result_deadline,
            followed: BTreeMap::new(),
            canceling: BTreeMap::new(),
            events: VecDeque::new(),
            known: Vec::new(),
            counters: ActionClientCounters::default(),
        })
    }
}

impl RawActionClient {
    /// Sends a goal and waits until it is accepted. Gives its number. `request` as for [`start`](RawActionClient::start).
    ///
    /// # Errors
    /// It is rejected, or there is no answer within the deadline, each with its reason.
    pub fn send_goal(&mut self, request: &[u8]) -> Result<GoalId, GoalError> {
        let goal = self.start(request, None)?;
        match self.wait_for(goal, |event| matches!(event, GoalEvent::Accepted { .. }))? {
            GoalEvent::Failed(why) => Err(why),
            _ => Ok(goal),
        }
    }

    /// Sends a goal: `request` in CDR, a `…_SendGoal_Request`; a number by chance is written into it if it has none. Its result may take up to
    /// `result_deadline` from its acceptance, or what the client was opened with. Gives its number.
    ///
    /// # Errors
    /// No such message, a number that is followed, [`GOALS_MAX`] of them; or it cannot be published.
    pub fn start(&mut self, request: &[u8], result_deadline: Option<Duration>) -> Result<GoalId, GoalError> {
        let action = || self.action.clone();
        if request.len() < GOAL_BYTES {
            return Err(GoalError::Message {
                action: action(),
                what: "request to send a goal",
                bytes: request.len(),
            });
        }
        let mut request = request.to_vec();
        let mut goal = GoalId::default();
        goal.0.copy_from_slice(&request[STATUS_AT..GOAL_BYTES]);
        if goal.is_none() {
            goal = GoalId::random()
                .map_err(|why| GoalError::Random { action: action(), why: why.to_string() })?;
            request[STATUS_AT..GOAL_BYTES].copy_from_slice(&goal.0);
        }
        if self.followed.contains_key(&goal) {
            return Err(GoalError::Duplicate { action: action(), goal });
        }
        if self.followed.len() >= GOALS_MAX {
            return Err(GoalError::Full { action: action(), most: GOALS_MAX });
        }
        let call = self.goals.start(&request, None)?;
        count(&mut self.counters.goals);
        let result_deadline = result_deadline.unwrap_or(self.result_deadline);
        let followed = Followed { status: GoalStatus::Unknown, phase: Phase::Sent(call), result_deadline };
        self.followed.insert(goal, followed);
        Ok(goal)
    }

    /// The next event of any goal, in the order in which they became known; waits up to `timeout`, or for ever. `None` if the time is over, or nothing is followed.
    ///
    /// # Errors
    /// Nothing can be read. The goals go on.
    pub fn next(&mut self, timeout: Option<Duration>) -> NextGoalEvent<GoalEvent> {
        let end = timeout.and_then(|timeout| Timer::now().checked_add(timeout));
        loop {
            self.step()?;
            if let Some((goal, event)) = self.events.pop_front() {
                self.taken(goal, &event);
                return Ok(Some((goal, event)));
            }
            let left = end.map(|end| end.saturating_duration_since(Timer::now()));
            if left == Some(Duration::ZERO) || !self.is_following() {
                return Ok(None);
            }
            self.wait(left);
        }
    }

    /// Waits until a goal has ended; other events, its feedback among them, stay for [`next`](RawActionClient::next).
    ///
    /// # Errors
    /// There is no result, with the reason; or the goal is not followed.
    pub fn wait_for_result(&mut self, goal: GoalId) -> Result<RawResult, GoalError> {
        match self.wait_for(goal, |event| matches!(event, GoalEvent::Result(_)))? {
            GoalEvent::Result(result) => Ok(result),
            GoalEvent::Failed(why) => Err(why),
            _ => Err(GoalError::NotFollowed { action: self.action.clone(), goal }),
        }
    }

    /// Requests the cancellation of a goal of any client, and waits for the answer. A goal that is being canceled ends as any other, by its result.
    ///
    /// # Errors
    /// There is no answer within the deadline, with the reason.
    pub fn cancel(&mut self, goal: GoalId) -> Result<Canceled, GoalError> {
        self.cancel_and_wait(goal, GoalStamp::default())
    }

    /// Requests the cancellation of all goals of all clients that were accepted at `stamp` or before.
    ///
    /// # Errors
    /// As [`cancel`](RawActionClient::cancel).
    pub fn cancel_before(&mut self, stamp: GoalStamp) -> Result<Canceled, GoalError> {
        self.cancel_and_wait(GoalId::default(), stamp)
    }

    /// Requests the cancellation of all goals of all clients.
    ///
    /// # Errors
    /// As [`cancel`](RawActionClient::cancel).
    pub fn cancel_all(&mut self) -> Result<Canceled, GoalError> {
        self.cancel_and_wait(GoalId::default(), GoalStamp::default())
    }

    /// Requests the cancellation of a goal, of those accepted up to a time, both, or without both all; the answer is an event under the number given.
    ///
    /// # Errors
    /// The request cannot be published.
    pub fn start_cancel(&mut self, goal: GoalId, stamp: GoalStamp) -> Result<(), GoalError> {
        self.begin_cancel(goal, stamp).map(drop)
    }

    /// Waits up to `timeout` until there is a server; false if the time is over.
    ///
    /// # Errors
    /// Replies cannot be read.
    pub fn wait_for_server(&mut self, timeout: Duration) -> Result<bool, GoalError> {
        let end = Timer::now().checked_add(timeout);
        loop {
            self.step()?;
            let is_there =
                self.goals.has_servers() && self.results.has_servers() && self.cancels.has_servers();
            let left = end.map(|end| end.saturating_duration_since(Timer::now()));
            if is_there || left == Some(Duration::ZERO) {
                return Ok(is_there);
            }
            self.wait(left);
        }
    }

    /// The goals of all clients as the server has reported them last, in the order of their acceptance.
    ///
    /// # Errors
    /// States cannot be read.
    pub fn goals(&mut self) -> Result<&[KnownGoal], GoalError> {
        self.step()?;
        Ok(&self.known)
    }

    /// Whether [`next`](RawActionClient::next) may still have something: a goal that is followed, or a cancellation without an answer.
    pub fn is_following(&self) -> bool {
        !self.followed.is_empty() || !self.canceling.is_empty() || !self.events.is_empty()
    }

    /// Name of the action, with a leading `/`.
    pub fn action(&self) -> &str {
        &self.action
    }

    /// Counters of the goals so far.
    pub fn counters(&self) -> ActionClientCounters {
        self.counters
    }

    fn cancel_and_wait(&mut self, goal: GoalId, stamp: GoalStamp) -> Result<Canceled, GoalError> {
        let call = self.begin_cancel(goal, stamp)?;
        while self.canceling.contains_key(&call) {
            self.wait(None);
            self.step()?;
        }
        // The answer was put there last, if that call has ended.
        let is_answer =
            |(of, event): &(GoalId, GoalEvent)| *of == goal && matches!(event, GoalEvent::Cancel(_));
        match self.events.iter().rposition(is_answer).and_then(|at| self.events.remove(at)) {
            Some((_, GoalEvent::Cancel(answer))) => answer,
            _ => Err(GoalError::NotFollowed { action: self.action.clone(), goal }),
        }
    }

    fn begin_cancel(&mut self, goal: GoalId, stamp: GoalStamp) -> Result<CallId, GoalError> {
        let request = srv::CancelGoal_Request { goal_info: goal_info(goal, stamp) };
        let mut bytes = Vec::new();
        encode_cdr(&request, &mut bytes).map_err(|cause| self.format(cause))?;
        // The request goes to the server that accepted it, if that is known.
        let server = match self.followed.get(&goal).map(|followed| followed.phase) {
            Some(Phase::Accepted(_, server)) => Some(server),
            _ => None,
        };
        let call = self.cancels.start_at(&bytes, None, server)?;
        self.canceling.insert(call, goal);
        Ok(call)
    }

    /// Waits for the event of a goal that is requested, or its last one.
    fn wait_for(&mut self, goal: GoalId, is_it: fn(&GoalEvent) -> bool) -> Result<GoalEvent, GoalError> {
        loop {
            self.step()?;
            let fits = |(of, event): &(GoalId, GoalEvent)| {
                *of == goal && (is_it(event) || matches!(event, GoalEvent::Failed(_) | GoalEvent::Result(_)))
            };
            if let Some((_, event)) = self.events.iter().position(fits).and_then(|at| self.events.remove(at))
            {
                self.taken(goal, &event);
                return Ok(event);
            }
            if !self.followed.contains_key(&goal) {
                return Err(GoalError::NotFollowed { action: self.action.clone(), goal });
            }
            self.wait(None);
        }
    }

    fn taken(&mut self, goal: GoalId, event: &GoalEvent) {
        if matches!(event, GoalEvent::Result(_) | GoalEvent::Failed(_)) {
            self.followed.remove(&goal);
        }
    }
}

impl RawResult {
    /// Succeeded, canceled or aborted.
    pub fn status(&self) -> GoalStatus {
        self.status
    }

    /// The response in CDR, a `…_GetResult_Response`: the status, then the result.
    pub fn bytes(&self) -> &[u8] {
        self.reply.bytes()
    }

    /// Metadata of the sample: source time, age, writer.
    pub fn info(&self) -> &SampleInfo {
        self.reply.info()
    }

    /// Its age when it was taken: since the server sent it.
    pub fn age(&self) -> Option<Age> {
        self.reply.age()
    }
}
