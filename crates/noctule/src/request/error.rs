//! Why a request has no response, and why a reply was not sent.

use std::time::Duration;

use noctule_discovery::NodeId;
use noctule_formats::FormatError;

use super::wire::RequestId;
use crate::error::{NodeError, PublishError, TakeError};

/// Why a service's client or server cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// Its topics cannot be opened.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// A service without a name, or with one that is too long for its two topics.
    #[error(
        "a service is named by 1 to 243 bytes besides a leading '/', and {name:?} has {bytes}; choose another name"
    )]
    Name {
        /// The name that was given.
        name: String,
        /// Its length.
        bytes: usize,
    },
}

/// Why a call has no response.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// So many calls of this client are under way.
    #[error(
        "service {service}: {most} calls of this client are under way; wait for one of them, or open another client"
    )]
    Full {
        /// The service.
        service: String,
        /// [`OUTSTANDING_MAX`](super::OUTSTANDING_MAX).
        most: usize,
    },
    /// The call is not known.
    #[error("service {service}: call {sequence} is not under way; its result was taken before")]
    Unknown {
        /// The service.
        service: String,
        /// Which call.
        sequence: i64,
    },
    /// A deadline of zero.
    #[error("service {service}: a deadline of zero is over before the request is sent; give it one")]
    NoTime {
        /// The service.
        service: String,
    },
    /// No server was found within the deadline.
    #[error(
        "service {service}: no server was found within {} ms; start one, and check that it serves the same types (`noctule services`)",
        waited.as_millis()
    )]
    NoServer {
        /// The service.
        service: String,
        /// The deadline.
        waited: Duration,
    },
    /// A server had the request, and no reply came within the deadline. It may have been executed.
    #[error(
        "service {service}: node {server} did not answer within {} ms (sent {sent} times); the request may have been executed",
        waited.as_millis()
    )]
    DeadlineExceeded {
        /// The service.
        service: String,
        /// The server that was asked last.
        server: NodeId,
        /// The deadline.
        waited: Duration,
        /// Copies of the request that were sent.
        sent: u32,
    },
    /// The server ended after it was asked. The request may have been executed.
    #[error(
        "service {service}: node {server} ended before it answered; the request may have been executed: call again if that does no harm, or mark the call idempotent"
    )]
    ServerGone {
        /// The service.
        service: String,
        /// The server that was asked.
        server: NodeId,
    },
    /// The request arrived after its deadline, or its age was not proven to be below it. It was not executed.
    #[error(
        "service {service}: the request was too old when it arrived at node {server}, and was not executed; raise the deadline"
    )]
    Late {
        /// The service.
        service: String,
        /// The server that refused.
        server: NodeId,
    },
    /// The server remembers as many requests as it may. It was not executed.
    #[error(
        "service {service}: node {server} has as many requests as it can remember, and did not execute this one; call again later"
    )]
    ServerFull {
        /// The service.
        service: String,
        /// The server that refused.
        server: NodeId,
    },
    /// It was executed, and its reply is not kept any more.
    #[error("service {service}: node {server} executed the request, and no longer has the reply")]
    Forgotten {
        /// The service.
        service: String,
        /// The server that executed it.
        server: NodeId,
    },
    /// Cancelled by the caller. It may have been executed.
    #[error("service {service}: the call was cancelled")]
    Cancelled {
        /// The service.
        service: String,
    },
    /// The server's handler failed.
    #[error("service {service}: node {server} failed: {why}")]
    Failed {
        /// The service.
        service: String,
        /// The server.
        server: NodeId,
        /// In its words.
        why: String,
    },
    /// The request cannot be published.
    #[error(transparent)]
    Publish(#[from] PublishError),
    /// Replies cannot be read.
    #[error(transparent)]
    Take(#[from] TakeError),
    /// The request cannot be expressed, or the response is no value of its type.
    #[error("service {service}: {cause}")]
    Format {
        /// The service.
        service: String,
        /// Why.
        cause: FormatError,
    },
}

/// Why a reply was not sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplyError {
    /// The deadline of the request is over, or it never came.
    #[error("service {service}: request {} waits no longer for its reply: its deadline is over", id.sequence)]
    TooLate {
        /// The service.
        service: String,
        /// Which.
        id: RequestId,
    },
    /// It was answered before.
    #[error("service {service}: request {} was answered before; answer each request once", id.sequence)]
    Twice {
        /// The service.
        service: String,
        /// Which.
        id: RequestId,
    },
    /// The caller cancelled it.
    #[error("service {service}: request {} was cancelled by its caller", id.sequence)]
    Cancelled {
        /// The service.
        service: String,
        /// Which.
        id: RequestId,
    },
    /// The reply cannot be published.
    #[error(transparent)]
    Publish(#[from] PublishError),
    /// The response cannot be expressed.
    #[error("service {service}: {cause}")]
    Format {
        /// The service.
        service: String,
        /// Why.
        cause: FormatError,
    },
}
