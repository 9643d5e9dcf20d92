//! Why an action cannot be opened, and why a goal has no result.

use std::io;

use noctule_discovery::NodeId;
use noctule_formats::FormatError;

use super::{GoalId, GoalStatus};
use crate::error::{NodeError, PublishError, TakeError};
use crate::request::{CallError, ReplyError, ServiceError};

/// Why an action's server or client cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum ActionError {
    /// A service of it.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// A topic of it.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// The types do not belong together.
    #[error(
        "an action's types are named X_Goal, X_Result and X_Feedback with one X, as in package/action/Name_Goal, and these are {goal}, {result} and {feedback}; rename them"
    )]
    TypeNames {
        /// Of the goal.
        goal: &'static str,
        /// Of the result.
        result: &'static str,
        /// Of the feedback.
        feedback: &'static str,
    },
    /// A value that cannot be expressed.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// No thread.
    #[error("the system gives no more threads: {0}")]
    System(io::Error),
}

/// Why something did not become of a goal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GoalError {
    /// A request of it has no response.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The response to its client was not sent.
    #[error(transparent)]
    Reply(#[from] ReplyError),
    /// Feedback or states cannot be published.
    #[error(transparent)]
    Publish(#[from] PublishError),
    /// Feedback or states cannot be read.
    #[error(transparent)]
    Take(#[from] TakeError),
    /// The server does not execute it.
    #[error("action {action}: node {server} rejected goal {goal}")]
    Rejected {
        /// The action.
        action: String,
        /// Whose server.
        server: NodeId,
        /// Which.
        goal: GoalId,
    },
    /// The server has no such goal.
    #[error(
        "action {action}: node {server} does not know goal {goal}; it was never accepted there, or its result is kept no longer"
    )]
    Unknown {
        /// The action.
        action: String,
        /// Whose server.
        server: NodeId,
        /// Which.
        goal: GoalId,
    },
    /// A client has sent a goal of this number and still follows it.
    #[error("action {action}: goal {goal} is under way; give each goal a number of its own")]
    Duplicate {
        /// The action.
        action: String,
        /// Which.
        goal: GoalId,
    },
    /// A client that follows as many goals as it may.
    #[error(
        "action {action}: this client follows {most} goals; wait for one of them, or open another client"
    )]
    Full {
        /// The action.
        action: String,
        /// [`GOALS_MAX`](super::GOALS_MAX).
        most: usize,
    },
    /// A step that goals in this state do not take.
    #[error("action {action}: goal {goal} is {from}, and cannot become {to}")]
    Step {
        /// The action.
        action: String,
        /// Which.
        goal: GoalId,
        /// Where it is.
        from: GoalStatus,
        /// Where it should go.
        to: GoalStatus,
    },
    /// Nothing is known of a goal of this number.
    #[error(
        "action {action}: goal {goal} is not followed by this client; its result was taken, or it was never sent"
    )]
    NotFollowed {
        /// The action.
        action: String,
        /// Which.
        goal: GoalId,
    },
    /// The server of the action has been closed in this process.
    #[error("action {action}: its server is closed; open it again")]
    Closed {
        /// The action.
        action: String,
    },
    /// A message that is none of the action's.
    #[error("action {action}: {bytes} bytes are no {what}; give it in CDR")]
    Message {
        /// The action.
        action: String,
        /// The type of message that was expected.
        what: &'static str,
        /// Its length.
        bytes: usize,
    },
    /// A message that is too long.
    #[error(
        "action {action}: a {what} of {bytes} bytes is longer than the {most} it was opened for; raise payload_bytes_max"
    )]
    TooLong {
        /// The action.
        action: String,
        /// The kind of message.
        what: &'static str,
        /// Its length.
        bytes: usize,
        /// The longest possible, in bytes.
        most: usize,
    },
    /// No random number for a goal.
    #[error("action {action}: the system has no random number for a goal: {why}")]
    Random {
        /// The action.
        action: String,
        /// The system's message.
        why: String,
    },
    /// A value that cannot be expressed, or bytes that are no value of the type.
    #[error("action {action}: {cause}")]
    Format {
        /// The action.
        action: String,
        /// Why.
        cause: FormatError,
    },
}
