//! Requests of type descriptions from other nodes, and the answers to theirs.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant as Deadline};

use noctule_discovery::NodeId;
use noctule_formats::description::{DESCRIPTION_BYTES_MAX, DescriptionError};
use noctule_formats::{Message, TypeDescription};
use noctule_sys::random;

use super::links::report;
use super::{Node, Shared};
use crate::error::NodeError;
use crate::link_report::{self, LINK_BYTES, LINKS_MAX, LinkReport};
use crate::type_descriptions::wire::{Request, Subject};
use crate::type_descriptions::{DESCRIBED_BYTES_MAX, DESCRIBED_TYPES_MAX, Part, QUESTIONS_MAX};

/// A part is asked for again after this time, which doubles up to eight times as much.
const ASK_AGAIN_FIRST: Duration = Duration::from_millis(50);
const ASK_AGAIN_MAX: Duration = Duration::from_millis(400);

/// Why a type is not described.
#[derive(Debug, thiserror::Error)]
pub enum DescribeError {
    /// The text is none, or the node answered with one that is none.
    #[error(transparent)]
    Text(#[from] DescriptionError),
    /// [`DESCRIBED_TYPES_MAX`], [`DESCRIBED_BYTES_MAX`].
    #[error(
        "this node describes {DESCRIBED_TYPES_MAX} types or {DESCRIBED_BYTES_MAX} bytes already; use another node for more"
    )]
    Full,
    /// No such node is known, or it has gone.
    #[error("node {node} is not known")]
    Unknown {
        /// Which.
        node: NodeId,
    },
    /// No reply came in time.
    #[error("node {node} did not answer within {} ms", timeout.as_millis())]
    Silent {
        /// Which.
        node: NodeId,
        /// How long was waited.
        timeout: Duration,
    },
    /// The node has the topic, but not the definition of its type.
    #[error("node {node} has no description of the type")]
    NotDescribed {
        /// Which.
        node: NodeId,
    },
    /// The description that the node answered with has another hash, or contradicts itself.
    #[error("node {node} answered with the description of another type")]
    OtherType {
        /// Which.
        node: NodeId,
    },
    /// So many questions are open.
    #[error("{QUESTIONS_MAX} questions for types are open; wait for one of them")]
    Busy,
    /// The request could not be sent.
    #[error("the request cannot be sent: {0}")]
    System(io::Error),
}

impl Node {
    /// Describes a type, see [`Shared::describe`].
    pub(crate) fn describe_type<T: Message>(&self) {
        self.shared.describe::<T>();
    }

    /// Describes a type to nodes that request it; typed endpoints do it by themselves. Gives the type's hash,
    /// the one to open publishers and subscribers with.
    ///
    /// # Errors
    /// The text is no description, or there is no room for more.
    pub fn describe(&self, text: &str) -> Result<u64, DescribeError> {
        let description = TypeDescription::parse(text)?;
        let hash = description.hash();
        if self.shared.lock().descriptions.add(description) { Ok(hash) } else { Err(DescribeError::Full) }
    }

    /// The description of the type of this hash, from a node that has an endpoint of it; waits up to `timeout` for the
    /// answer. Its hash has been computed again from the text. What was answered once is kept.
    ///
    /// # Errors
    /// The node is not known, does not answer or has no description, or what it answers is that of another type.
    pub fn type_description(
        &self,
        node: NodeId,
        hash: u64,
        timeout: Duration,
    ) -> Result<Arc<TypeDescription>, DescribeError> {
        let shared = &self.shared;
        if shared.is_in_child() {
            return Err(DescribeError::System(io::Error::other(NodeError::Forked)));
        }
        let nonce = u64::from_le_bytes(random::secret().map_err(DescribeError::System)?);
        let answer = {
            let mut state = shared.lock();
            if let Some(known) = state.descriptions.known(hash) {
                return Ok(known);
            }
            if node == shared.id {
                return Err(DescribeError::NotDescribed { node });
            }
            state.discovery.locator(node).ok_or(DescribeError::Unknown { node })?;
            state.descriptions.begin(nonce, node, (Subject::Type, hash)).ok_or(DescribeError::Busy)?
        };
        let first = Request { about: Subject::Type, nonce, hash, offset: 0 };
        let text = shared.ask_parts(node, first, &answer, timeout);
        shared.lock().descriptions.end(nonce);
        let text = String::from_utf8(text?).map_err(|_| DescribeError::OtherType { node })?;
        let description = Arc::new(TypeDescription::parse(&text)?);
        if description.hash() != hash {
            return Err(DescribeError::OtherType { node });
        }
        shared.lock().descriptions.learn(Arc::clone(&description));
        Ok(description)
    }

    /// The links that another node has to nodes of other hosts at present; its own for this node. A page can so show
    /// links that it has no part in. Waits up to `timeout` for the answer.
    ///
    /// # Errors
    /// The node is not known or does not answer; nodes older than this function do not.
    pub fn links_of(&self, node: NodeId, timeout: Duration) -> Result<Vec<LinkReport>, DescribeError> {
        let shared = &self.shared;
        if shared.is_in_child() {
            return Err(DescribeError::System(io::Error::other(NodeError::Forked)));
        }
        if node == shared.id {
            return Ok(shared.lock().remotes.iter().map(|(to, remote)| report(*to, remote)).collect());
        }
        let nonce = u64::from_le_bytes(random::secret().map_err(DescribeError::System)?);
        let answer = {
            let mut state = shared.lock();
            state.discovery.locator(node).ok_or(DescribeError::Unknown { node })?;
            state.descriptions.begin(nonce, node, (Subject::Links, 0)).ok_or(DescribeError::Busy)?
        };
        let first = Request { about: Subject::Links, nonce, hash: 0, offset: 0 };
        let links = shared.ask_parts(node, first, &answer, timeout);
        shared.lock().descriptions.end(nonce);
        Ok(links?.as_chunks::<LINK_BYTES>().0.iter().map(link_report::decode).collect())
    }
}

impl Shared {
    /// Describes the type of an endpoint that is about to be opened. An endpoint whose type cannot be described opens all the
    /// same; that it is not described is counted.
    pub(crate) fn describe<T: Message>(&self) {
        let has_it = self.lock().descriptions.has_own(T::type_hash());
        if has_it {
            return;
        }
        let description = TypeDescription::parse(&T::description());
        let mut state = self.lock();
        match description {
            Ok(description) if description.hash() == T::type_hash() => {
                // That there is no room is counted.
                let _ = state.descriptions.add(description);
            }
            _ => state.descriptions.count_not_kept(),
        }
    }

    /// Requests one part after another, each until it comes.
    fn ask_parts(
        &self,
        node: NodeId,
        first: Request,
        answer: &Receiver<Part>,
        timeout: Duration,
    ) -> Result<Vec<u8>, DescribeError> {
        let until = Deadline::now() + timeout;
        let mut text = Vec::new();
        let mut wait = ASK_AGAIN_FIRST;
        let (each, most) = match first.about {
            Subject::Type => (1, DESCRIPTION_BYTES_MAX),
            Subject::Links => (LINK_BYTES, LINKS_MAX),
        };
        loop {
            self.send_request(node, Request { offset: (text.len() / each) as u32, ..first })?;
            let left = until.saturating_duration_since(Deadline::now());
            if left.is_zero() {
                return Err(DescribeError::Silent { node, timeout });
            }
            let part = match answer.recv_timeout(wait.min(left)) {
                Ok(part) => part,
                Err(RecvTimeoutError::Timeout) => {
                    wait = (wait * 2).min(ASK_AGAIN_MAX);
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => return Err(DescribeError::Unknown { node }),
            };
            if part.total_bytes == 0 && first.about == Subject::Type {
                return Err(DescribeError::NotDescribed { node });
            }
            if part.total_bytes as usize > most {
                return Err(DescribeError::OtherType { node });
            }
            // Links may have become fewer since the last part.
            if part.offset as usize == text.len() / each {
                text.extend(part.bytes);
                wait = ASK_AGAIN_FIRST;
            }
            if text.len() / each >= part.total_bytes as usize {
                return Ok(text);
            }
        }
    }

    fn send_request(&self, node: NodeId, request: Request) -> Result<(), DescribeError> {
        let mut state = self.lock();
        let to = state.discovery.locator(node).ok_or(DescribeError::Unknown { node })?;
        let mut out = Vec::new();
        state.envelope.begin(&mut out);
        request.encode(&mut out);
        // It asks again: the other node has not been ready to hear this one yet.
        if state.envelope.seal_for(node, &mut out) {
            self.sockets.own.send_to(&out, to).map_err(DescribeError::System)?;
        }
        Ok(())
    }
}
