//! Errors, one type per operation.

use std::io;
use std::path::PathBuf;

use noctule_discovery::{NameError, NodeId};
use noctule_formats::FormatError;
use noctule_shm_ring::{LayoutError, ReadError};

use crate::swarm_key::SwarmKeyError;

/// Why a node, a publisher or a subscriber cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// Sockets.
    #[error("{what}: {cause}")]
    System {
        /// The call, and what it was for.
        what: &'static str,
        /// The operating system's error.
        cause: io::Error,
    },
    /// The file of a trace.
    #[error(
        "NOCTULE_TRACE names {path}, which cannot be written: {cause}; name a file in a folder of yours, or unset it"
    )]
    Trace {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        cause: io::Error,
    },
    /// In the child of a fork.
    #[error(
        "this process was forked from the one that opened the node, or its machine was copied, and the node goes on there; open it anew"
    )]
    Forked,
    /// The swarm key.
    #[error(transparent)]
    Key(#[from] SwarmKeyError),
    /// A format that the type does not have.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// A name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// History, borrows or sample size out of limits.
    #[error("topic {topic}: {cause}")]
    Layout {
        /// The topic.
        topic: String,
        /// Which limit.
        cause: LayoutError,
    },
    /// [`noctule_discovery::PAGES_LIMIT`] pages are full.
    #[error("this node has as many topics as can be announced; use another node for more")]
    Full,
    /// A history of zero or of more than 65,535 samples.
    #[error("topic {topic}: a history of {depth} samples is not possible; 1 to 65535 are")]
    Depth {
        /// The topic.
        topic: String,
        /// The history that was requested, in samples.
        depth: u32,
    },
    /// Deadline bound without a deadline.
    #[error("topic {topic} is deadline bound but has no deadline; give it one")]
    NoDeadline {
        /// The topic.
        topic: String,
    },
    /// Reliable by multicast.
    #[error(
        "topic {topic} is reliable, which goes to each reader by itself; leave multicast out, or make it deadline bound or best effort"
    )]
    Multicast {
        /// The topic.
        topic: String,
    },
    /// A domain without multicast groups.
    #[error("domain {domain} has no multicast groups of its own; 0 to 5000 have")]
    Domain {
        /// The domain that was requested.
        domain: u32,
    },
    /// A static peer that is no address.
    #[error(
        "{text} is no address of a static peer; write e.g. 192.168.1.7, [2001:db8::7]:40123 or fe80::7%3"
    )]
    Peer {
        /// The text that was given.
        text: String,
    },
    /// A file that cannot be read.
    #[error("{path} cannot be read: {cause}")]
    File {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        cause: io::Error,
    },
}

/// Why a sample was not published.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PublishError {
    /// In the child of a fork.
    #[error(
        "topic {topic}: this process was forked from the one that opened the publisher, or its machine was copied, and the node goes on \
         there; open it anew"
    )]
    Forked {
        /// The topic.
        topic: String,
    },
    /// Longer than the topic was opened for.
    #[error(
        "a sample of {bytes} bytes is too long for topic {topic}, which was opened for {most_bytes}; raise payload_bytes_max"
    )]
    TooLong {
        /// The topic.
        topic: String,
        /// Length of the sample.
        bytes: usize,
        /// Longest possible.
        most_bytes: usize,
    },
    /// Longer than travels to other hosts, where a reader is.
    #[error(
        "a sample of {bytes} bytes of topic {topic} is too long for the network, which carries {most_bytes} in one sample; split it up, or read it on this host only"
    )]
    TooLongForNetwork {
        /// The topic.
        topic: String,
        /// Length of the sample.
        bytes: usize,
        /// Longest possible.
        most_bytes: usize,
    },
    /// More than was lent, or nothing was.
    #[error(
        "topic {topic}: {bytes} bytes of a loan are to be published, and {lent_bytes} are lent; ask for a loan first, as long as the sample"
    )]
    NotLent {
        /// The topic.
        topic: String,
        /// Length of the sample that is to be published.
        bytes: usize,
        /// Length of the memory that is lent.
        lent_bytes: usize,
    },
    /// Keep all, and a reader is behind by the whole history. Nothing was published.
    #[error(
        "topic {topic} keeps all samples and a reader is behind by as many as it keeps; publish again later, or wait for room"
    )]
    WouldBlock {
        /// The topic.
        topic: String,
    },
    /// A value that its format cannot express.
    #[error("topic {topic}: {cause}")]
    Format {
        /// The topic.
        topic: String,
        /// Why.
        cause: FormatError,
    },
}

/// Why nothing was taken although something may be there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("topic {topic}: {cause}")]
pub struct TakeError {
    /// The topic.
    pub topic: String,
    /// Why.
    pub cause: ReadError,
}

/// Why a value was not received although something came. The next call goes on with the next sample.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReceiveError {
    /// As for bytes.
    #[error(transparent)]
    Take(#[from] TakeError),
    /// The sample is no value of the type.
    #[error("topic {topic}, a sample of node {publisher}: {cause}")]
    Format {
        /// The topic.
        topic: String,
        /// The node that published it.
        publisher: NodeId,
        /// Why.
        cause: FormatError,
    },
}
