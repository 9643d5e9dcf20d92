//! Requests: a client asks, a server answers, what ROS 2 calls a service.
//!
//! # Problem
//!
//! A topic has no answer. A client must learn within a known time what became of the request, whatever happens to the server
//! and to the way there; and a request must not be executed twice because a datagram was.
//!
//! # Approach
//!
//! - Two reliable topics, named as ROS 2 names them on DDS: `rq/…Request` and `rr/…Reply`. A header in front of each
//!   message says which request it is, which server is asked and how long the caller waits (`docs/spec/requests.md`).
//! - The cores are sans-IO: `outstanding` at the client, `remembered` at the server. What drives them is the caller's thread: a client
//!   sends again, and notices a deadline, while the program is in one of its calls.
//! - Ages both ways: a request and a reply are samples, so each has its [`Age`](crate::Age) with a bound in the clock of the node that has it.

mod client;
mod error;
pub(crate) mod outstanding;
pub(crate) mod remembered;
mod server;
mod typed;
pub(crate) mod wire;

#[cfg(test)]
mod tests;

pub use client::{CallId, ClientBuilder, EndedCall, NextCall, RawClient, RawReply};
pub use error::{CallError, ReplyError, ServiceError};
pub use outstanding::{ClientCounters, OUTSTANDING_MAX};
pub use remembered::{REMEMBERED_MAX, REPLIES_BYTES_MAX, ServerCounters};
pub use server::{RawRequest, RawServer, ServerBuilder};
pub use typed::{
    Client, Failure, Reply, Request, ServeError, Server, TypedClientBuilder, TypedServerBuilder,
};
pub use wire::RequestId;

use std::hash::Hasher;
use std::time::Duration;

use noctule_discovery::{EndpointId, NodeId};

/// How long a call waits unless it is given another deadline.
pub const CALL_DEADLINE_DEFAULT: Duration = Duration::from_secs(5);
/// Requests, or replies, that a reader may lag behind.
const QUEUE_DEPTH: u32 = 64;
/// Longest name of a service, in bytes without the leading `/`: what is left of a topic's name.
const NAME_BYTES_MAX: usize = noctule_discovery::NAME_BYTES_MAX - "rq/Request".len() - 2;

/// Name and hash of a type, as discovery carries them.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TypeRef {
    /// `package/srv/Name_Request`.
    pub name: String,
    /// Hash of the definition; 0: any.
    pub hash: u64,
}

/// The types of a service.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServiceTypes {
    /// Of what a client sends.
    pub request: TypeRef,
    /// Of what a server answers.
    pub response: TypeRef,
}

/// The two topics of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceTopics {
    /// Read by servers.
    pub request: String,
    /// Read by clients.
    pub reply: String,
}

impl ServiceTopics {
    /// Those of `/service`; the leading `/` may be left out.
    ///
    /// # Errors
    /// No name, or one that is too long.
    pub fn of(service: &str) -> Result<ServiceTopics, ServiceError> {
        let name = service.strip_prefix('/').unwrap_or(service);
        if name.is_empty() || name.len() > NAME_BYTES_MAX {
            return Err(ServiceError::Name { name: service.to_owned(), bytes: name.len() });
        }
        Ok(ServiceTopics { request: format!("rq/{name}Request"), reply: format!("rr/{name}Reply") })
    }

    /// The service whose requests go over `topic`, with a leading `/`; `None` if that is no request topic.
    pub fn service_of(topic: &str) -> Option<String> {
        let name = topic.strip_prefix("rq/")?.strip_suffix("Request")?;
        (!name.is_empty()).then(|| format!("/{name}"))
    }
}

/// The number of a client or a server: SipHash-2-4 with a key of zero over its node and its writer, never 0.
fn number(node: NodeId, writer: EndpointId) -> u64 {
    let mut hasher = siphasher::sip::SipHasher24::new();
    hasher.write(&node.0);
    hasher.write(&writer.0.to_le_bytes());
    hasher.finish().max(1)
}
