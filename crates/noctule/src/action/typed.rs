//! Clients and servers of actions with values of Rust types instead of bytes.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::time::Duration;

use noctule_discovery::NodeId;
use noctule_formats::{FormatError, decode_cdr, encode_cdr};

use super::client::{ActionClientBuilder, Canceled, GoalEvent, NextGoalEvent, RawActionClient, RawResult};
use super::definition::Action;
use super::error::{ActionError, GoalError};
use super::server::{ActionServerBuilder, RawActionServer, RawActiveGoal, RawGoal};
use super::types::{ActionTypes, describe};
use super::{GoalId, GoalStamp, GoalStatus};
use crate::node::Node;
use crate::sample::{Age, SampleInfo};

/// Settings of the server of an action.
#[derive(Debug)]
#[must_use = "call open"]
pub struct TypedActionServerBuilder<'a, A> {
    node: &'a Node,
    builder: Result<ActionServerBuilder<'a>, ActionError>,
    action: PhantomData<fn(A)>,
}

/// Settings of a client of an action.
#[derive(Debug)]
#[must_use = "call open"]
pub struct TypedActionClientBuilder<'a, A> {
    node: &'a Node,
    builder: Result<ActionClientBuilder<'a>, ActionError>,
    action: PhantomData<fn(A)>,
}

/// Serves one action; see [`RawActionServer`].
#[derive(Debug)]
pub struct ActionServer<A> {
    raw: RawActionServer,
    action: PhantomData<fn(A)>,
}

/// A goal that waits to be accepted; dropping it rejects it. Dereferences to the goal.
pub struct Goal<A: Action> {
    value: A::Goal,
    raw: RawGoal,
}

/// A goal that was accepted and is under way; dropping it before its end aborts it. Dereferences to the goal.
pub struct ActiveGoal<A: Action> {
    value: A::Goal,
    raw: RawActiveGoal,
    buffer: Vec<u8>,
}

/// Sends goals of one action and follows them; see [`RawActionClient`].
#[derive(Debug)]
pub struct ActionClient<A> {
    raw: RawActionClient,
    buffer: Vec<u8>,
    action: PhantomData<fn(A)>,
}

/// How a goal ended. Dereferences to its result.
pub struct GoalResult<A: Action> {
    status: GoalStatus,
    value: A::Result,
    info: SampleInfo,
}

/// An event of a goal that a client follows; see [`GoalEvent`].
pub enum TypedGoalEvent<A: Action> {
    /// It is accepted, and its result will follow.
    Accepted {
        /// Whose server.
        server: NodeId,
        /// When, by the server's time of day.
        stamp: GoalStamp,
    },
    /// It is executed, or canceled.
    Status(GoalStatus),
    /// Feedback.
    Feedback {
        /// The value.
        value: A::Feedback,
        /// Metadata of the feedback: its age, its writer.
        info: SampleInfo,
    },
    /// It has ended; this is its last event.
    Result(GoalResult<A>),
    /// It has no result, for this reason; this is its last event.
    Failed(GoalError),
    /// The answer to a request for cancellation.
    Cancel(Result<Canceled, GoalError>),
}

impl Node {
    /// Settings of a server of the action `/name`; `A` is `(Goal, Result, Feedback)`, whose types are named as the generator names those of a `.action`.
    ///
    /// ```no_run
    /// # use serde::{Deserialize, Serialize};
    /// # noctule::message! { #[derive(Debug, Serialize, Deserialize)] pub struct CountGoal: "demo/action/Count_Goal" { pub to: u32 } }
    /// # noctule::message! { #[derive(Debug, Default, Serialize, Deserialize)] pub struct CountResult: "demo/action/Count_Result" { pub reached: u32 } }
    /// # noctule::message! { #[derive(Debug, Serialize, Deserialize)] pub struct CountFeedback: "demo/action/Count_Feedback" { pub at: u32 } }
    /// type Count = (CountGoal, CountResult, CountFeedback);
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let node = noctule::Node::new("counter")?;
    /// let server = node.action_server::<Count>("/count").open()?;
    /// while let Some(goal) = server.next(None) {
    ///     let mut goal = goal.accept()?;
    ///     let mut at = 0;
    ///     while at < goal.to && !goal.is_canceling() {
    ///         at += 1;
    ///         goal.feedback(&CountFeedback { at })?;
    ///     }
    ///     let result = CountResult { reached: at };
    ///     if goal.is_canceling() { goal.canceled(&result)? } else { goal.succeed(&result)? }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn action_server<A: Action>(&self, name: &str) -> TypedActionServerBuilder<'_, A> {
        let builder = ActionTypes::of::<A>().map(|types| ActionServerBuilder::new(self, name, types));
        TypedActionServerBuilder { node: self, builder, action: PhantomData }
    }

    /// Settings of a client of the action `/name`; see [`action_server`](Node::action_server).
    ///
    /// ```no_run
    /// # use serde::{Deserialize, Serialize};
    /// # noctule::message! { #[derive(Debug, Serialize, Deserialize)] pub struct CountGoal: "demo/action/Count_Goal" { pub to: u32 } }
    /// # noctule::message! { #[derive(Debug, Default, Serialize, Deserialize)] pub struct CountResult: "demo/action/Count_Result" { pub reached: u32 } }
    /// # noctule::message! { #[derive(Debug, Serialize, Deserialize)] pub struct CountFeedback: "demo/action/Count_Feedback" { pub at: u32 } }
    /// # type Count = (CountGoal, CountResult, CountFeedback);
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let node = noctule::Node::new("asks")?;
    /// let mut client = node.action_client::<Count>("/count").open()?;
    /// let goal = client.send_goal(&CountGoal { to: 10 })?;
    /// let result = client.wait_for_result(goal)?;
    /// println!("{}: {}", result.status(), result.reached);
    /// # Ok(())
    /// # }
    /// ```
    pub fn action_client<A: Action>(&self, name: &str) -> TypedActionClientBuilder<'_, A> {
        let builder = ActionTypes::of::<A>().map(|types| ActionClientBuilder::new(self, name, types));
        TypedActionClientBuilder { node: self, builder, action: PhantomData }
    }

    /// Settings of a server of an action with messages as bytes of CDR.
    pub fn raw_action_server(&self, name: &str, types: ActionTypes) -> ActionServerBuilder<'_> {
        ActionServerBuilder::new(self, name, types)
    }

    /// Settings of a client of an action with messages as bytes of CDR.
    pub fn raw_action_client(&self, name: &str, types: ActionTypes) -> ActionClientBuilder<'_> {
        ActionClientBuilder::new(self, name, types)
    }
}

impl<A: Action> TypedActionServerBuilder<'_, A> {
    /// Longest result and longest feedback in bytes. Default 64 KiB.
    pub fn payload_bytes_max(mut self, bytes: u32) -> Self {
        self.builder = self.builder.map(|builder| builder.payload_bytes_max(bytes));
        self
    }

    /// How long a result is kept after the end of its goal; see [`ActionServerBuilder::keep_results`].
    pub fn keep_results(mut self, kept: Duration) -> Self {
        self.builder = self.builder.map(|builder| builder.keep_results(kept));
        self
    }

    /// Called before a goal is canceled; see [`ActionServerBuilder::on_cancel`].
    pub fn on_cancel(mut self, callback: impl Fn(GoalId) -> bool + Send + Sync + 'static) -> Self {
        self.builder = self.builder.map(|builder| builder.on_cancel(callback));
        self
    }

    /// Opens the server. Goals come from now on.
    ///
    /// # Errors
    /// Types that do not belong together, a name that cannot travel, no room for eight more endpoints, no thread.
    pub fn open(self) -> Result<ActionServer<A>, ActionError> {
        let builder = self.builder?;
        describe::<A>(self.node)?;
        let mut empty = Vec::new();
        encode_cdr(&(GoalStatus::Unknown as i8, A::Result::default()), &mut empty)?;
        Ok(ActionServer { raw: builder.empty_result(&empty).open()?, action: PhantomData })
    }
}

impl<A: Action> TypedActionClientBuilder<'_, A> {
    /// How long a goal waits to be accepted, and a cancellation for its answer. Default 5 s.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.builder = self.builder.map(|builder| builder.deadline(deadline));
        self
    }

    /// How long an accepted goal may take. Default 24 h.
    pub fn result_deadline(mut self, deadline: Duration) -> Self {
        self.builder = self.builder.map(|builder| builder.result_deadline(deadline));
        self
    }

    /// Longest goal in bytes. Default 64 KiB.
    pub fn payload_bytes_max(mut self, bytes: u32) -> Self {
        self.builder = self.builder.map(|builder| builder.payload_bytes_max(bytes));
        self
    }

    /// Opens the client. Servers are found from now on.
    ///
    /// # Errors
    /// Types that do not belong together, a name that cannot travel, no room for eight more endpoints.
    pub fn open(self) -> Result<ActionClient<A>, ActionError> {
        let builder = self.builder?;
        describe::<A>(self.node)?;
        Ok(ActionClient { raw: builder.open()?, buffer: Vec::new(), action: PhantomData })
    }
}

impl<A: Action> ActionServer<A> {
    /// The next goal that was sent; waits up to `timeout`, or for ever. `None` if the time is over. One that is no value of the type is rejected.
    pub fn next(&self, timeout: Option<Duration>) -> Option<Goal<A>> {
        let end = timeout.and_then(|timeout| std::time::Instant::now().checked_add(timeout));
        loop {
            let left = end.map(|end| end.saturating_duration_since(std::time::Instant::now()));
            let raw = self.raw.next(left)?;
            match decode_cdr::<([u8; 16], A::Goal)>(raw.bytes()) {
                Ok((_, value)) => return Some(Goal { value, raw }),
                // It is rejected as it is dropped.
                Err(_) => self.raw.count_malformed(),
            }
        }
    }

    /// The server, for what is the same with bytes: goals and counters.
    pub fn raw(&self) -> &RawActionServer {
        &self.raw
    }
}

impl<A: Action> Goal<A> {
    /// Its number.
    pub fn id(&self) -> GoalId {
        self.raw.id()
    }

    /// The goal as it arrived: its sender, its age.
    pub fn raw(&self) -> &RawGoal {
        &self.raw
    }

    /// Accepts and executes it.
    ///
    /// # Errors
    /// Its client waits no longer; then it is as if it had never come.
    pub fn accept(self) -> Result<ActiveGoal<A>, GoalError> {
        Ok(ActiveGoal { value: self.value, raw: self.raw.accept()?, buffer: Vec::new() })
    }

    /// Accepts it, to be [executed](ActiveGoal::execute) later.
    ///
    /// # Errors
    /// As [`accept`](Goal::accept).
    pub fn defer(self) -> Result<ActiveGoal<A>, GoalError> {
        Ok(ActiveGoal { value: self.value, raw: self.raw.defer()?, buffer: Vec::new() })
    }

    /// Rejects it.
    ///
    /// # Errors
    /// Its client waits no longer.
    pub fn reject(self) -> Result<(), GoalError> {
        self.raw.reject()
    }
}

impl<A: Action> ActiveGoal<A> {
    /// Its number.
    pub fn id(&self) -> GoalId {
        self.raw.id()
    }

    /// Where it is, and what is the same with bytes.
    pub fn raw(&self) -> &RawActiveGoal {
        &self.raw
    }

    /// Whether its cancellation was requested.
    pub fn is_canceling(&self) -> bool {
        self.raw.is_canceling()
    }

    /// Waits until its cancellation is requested; false if `timeout` is over first.
    pub fn wait_for_cancel(&self, timeout: Option<Duration>) -> bool {
        self.raw.wait_for_cancel(timeout)
    }

    /// Executes a goal that was deferred.
    ///
    /// # Errors
    /// It is executed already, canceling or at its end.
    pub fn execute(&mut self) -> Result<(), GoalError> {
        self.raw.execute()
    }

    /// Publishes feedback.
    ///
    /// # Errors
    /// It cannot be expressed or published, or is too long.
    pub fn feedback(&mut self, feedback: &A::Feedback) -> Result<(), GoalError> {
        self.buffer.clear();
        encode_cdr(&(self.raw.id().0, feedback), &mut self.buffer)
            .map_err(|cause| self.raw.format_error(cause))?;
        self.raw.feedback(&self.buffer)
    }

    /// Ends it as it should.
    ///
    /// # Errors
    /// The result cannot be expressed or is too long, or the goal was not begun; then it is aborted.
    pub fn succeed(self, result: &A::Result) -> Result<(), GoalError> {
        self.end(GoalStatus::Succeeded, result)
    }

    /// Ends it as requested.
    ///
    /// # Errors
    /// As [`succeed`](ActiveGoal::succeed), or it was not requested.
    pub fn canceled(self, result: &A::Result) -> Result<(), GoalError> {
        self.end(GoalStatus::Canceled, result)
    }

    /// Gives it up.
    ///
    /// # Errors
    /// As [`succeed`](ActiveGoal::succeed).
    pub fn abort(self, result: &A::Result) -> Result<(), GoalError> {
        self.end(GoalStatus::Aborted, result)
    }

    fn end(mut self, status: GoalStatus, result: &A::Result) -> Result<(), GoalError> {
        self.buffer.clear();
        encode_cdr(&(status as i8, result), &mut self.buffer)
            .map_err(|cause| self.raw.format_error(cause))?;
        self.raw.end(status, &self.buffer)
    }
}

impl<A: Action> ActionClient<A> {
    /// Sends a goal and waits until it is accepted. Gives its number.
    ///
    /// # Errors
    /// It is rejected, or there is no answer within the deadline, each with its reason.
    pub fn send_goal(&mut self, goal: &A::Goal) -> Result<GoalId, GoalError> {
        self.encode(goal)?;
        self.raw.send_goal(&self.buffer)
    }

    /// Sends a goal, whose result may take up to `result_deadline` from its acceptance, or what the client was opened with; gives its number.
    ///
    /// # Errors
    /// See [`RawActionClient::start`].
    pub fn start(&mut self, goal: &A::Goal, result_deadline: Option<Duration>) -> Result<GoalId, GoalError> {
        self.encode(goal)?;
        self.raw.start(&self.buffer, result_deadline)
    }

    /// The next event of any goal; see [`RawActionClient::next`]. What is no value of its type is an event of failure.
    ///
    /// # Errors
    /// As there.
    pub fn next(&mut self, timeout: Option<Duration>) -> NextGoalEvent<TypedGoalEvent<A>> {
        let Some((goal, event)) = self.raw.next(timeout)? else { return Ok(None) };
        let event = match event {
            GoalEvent::Accepted { server, stamp } => TypedGoalEvent::Accepted { server, stamp },
            GoalEvent::Status(status) => TypedGoalEvent::Status(status),
            GoalEvent::Failed(why) => TypedGoalEvent::Failed(why),
            GoalEvent::Cancel(answer) => TypedGoalEvent::Cancel(answer),
            GoalEvent::Result(result) => match self.result(&result) {
                Ok(result) => TypedGoalEvent::Result(result),
                Err(why) => TypedGoalEvent::Failed(why),
            },
            GoalEvent::Feedback { bytes, info } => match decode_cdr::<([u8; 16], A::Feedback)>(&bytes) {
                Ok((_, value)) => TypedGoalEvent::Feedback { value, info },
                Err(cause) => return Err(self.error(cause)),
            },
        };
        Ok(Some((goal, event)))
    }

    /// Waits until a goal has ended; other events, its feedback among them, stay for [`next`](ActionClient::next).
    ///
    /// # Errors
    /// There is no result, with the reason; or the goal is not followed.
    pub fn wait_for_result(&mut self, goal: GoalId) -> Result<GoalResult<A>, GoalError> {
        let result = self.raw.wait_for_result(goal)?;
        self.result(&result)
    }

    /// Requests the cancellation of a goal; see [`RawActionClient::cancel`].
    ///
    /// # Errors
    /// As there.
    pub fn cancel(&mut self, goal: GoalId) -> Result<Canceled, GoalError> {
        self.raw.cancel(goal)
    }

    /// The client, for what is the same with bytes: cancellation of many, counters.
    pub fn raw(&mut self) -> &mut RawActionClient {
        &mut self.raw
    }

    fn encode(&mut self, goal: &A::Goal) -> Result<(), GoalError> {
        self.buffer.clear();
        let written = encode_cdr(&(GoalId::default().0, goal), &mut self.buffer);
        written.map_err(|cause| self.error(cause))
    }

    fn result(&self, result: &RawResult) -> Result<GoalResult<A>, GoalError> {
        let read = decode_cdr::<(i8, A::Result)>(result.bytes());
        let (_, value) = read.map_err(|cause| self.error(cause))?;
        Ok(GoalResult { status: result.status(), value, info: *result.info() })
    }

    fn error(&self, cause: FormatError) -> GoalError {
        GoalError::Format { action: self.raw.action().to_owned(), cause }
    }
}

impl<A: Action> GoalResult<A> {
    /// Succeeded, canceled or aborted.
    pub fn status(&self) -> GoalStatus {
        self.status
    }

    /// Metadata of the sample: source time, age, writer.
    pub fn info(&self) -> &SampleInfo {
        &self.info
    }

    /// Its age when it was taken: since the server sent it.
    pub fn age(&self) -> Option<Age> {
        self.info.age()
    }

    /// The result alone.
    pub fn into_value(self) -> A::Result {
        self.value
    }
}

impl<A: Action> Deref for Goal<A> {
    type Target = A::Goal;

    fn deref(&self) -> &A::Goal {
        &self.value
    }
}

impl<A: Action> Deref for ActiveGoal<A> {
    type Target = A::Goal;

    fn deref(&self) -> &A::Goal {
        &self.value
    }
}

impl<A: Action> Deref for GoalResult<A> {
    type Target = A::Result;

    fn deref(&self) -> &A::Result {
        &self.value
    }
}

impl<A: Action> fmt::Debug for Goal<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Goal").field("id", &self.id()).finish_non_exhaustive()
    }
}

impl<A: Action> fmt::Debug for ActiveGoal<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ActiveGoal").field("id", &self.id()).finish_non_exhaustive()
    }
}

impl<A: Action> fmt::Debug for GoalResult<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GoalResult").field("status", &self.status).finish_non_exhaustive()
    }
}

impl<A: Action> fmt::Debug for TypedGoalEvent<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TypedGoalEvent::Accepted { server, stamp } => {
                f.debug_struct("Accepted").field("server", server).field("stamp", stamp).finish()
            }
            TypedGoalEvent::Status(status) => f.debug_tuple("Status").field(status).finish(),
            TypedGoalEvent::Feedback { info, .. } => f.debug_struct("Feedback").field("info", info).finish(),
            TypedGoalEvent::Result(result) => f.debug_tuple("Result").field(result).finish(),
            TypedGoalEvent::Failed(why) => f.debug_tuple("Failed").field(why).finish(),
            TypedGoalEvent::Cancel(answer) => f.debug_tuple("Cancel").field(answer).finish(),
        }
    }
}
