//! What a user should know although no call failed.

use std::fmt;

use noctule_discovery::{Incompatible, NodeId, Reason};

use crate::envelope::Refused;
use crate::topic_formats::names;

/// Something worth telling. Printed to standard error unless the node was given another way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A writer and a reader of one topic do not fit together.
    Mismatch {
        /// The topic.
        topic: String,
        /// The other node's name.
        node: String,
        /// Why.
        why: Incompatible,
    },
    /// A node has gone without saying so.
    Gone {
        /// Which.
        node: NodeId,
        /// How that was noticed.
        reason: Reason,
    },
    /// Keys that do not fit.
    Seal {
        /// How.
        why: Refused,
    },
    /// A publisher of this host did not let a subscriber read.
    Refused {
        /// The topic.
        topic: String,
        /// The publisher's words.
        why: String,
    },
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Notice::Mismatch { topic, node, why: Incompatible::Format { writer, reader } } => write!(
                f,
                "topic {topic}, with node {node}: the writer uses {}, the reader understands {}; choose a format both have",
                names(*writer),
                names(*reader)
            ),
            Notice::Mismatch { topic, node, why } => write!(f, "topic {topic}, with node {node}: {why}"),
            Notice::Gone { node, reason: Reason::Restarted } => write!(f, "node {node} was restarted"),
            Notice::Gone { node, .. } => write!(f, "node {node} is silent; it counts as gone"),
            Notice::Seal { why } => why.fmt(f),
            Notice::Refused { topic, why } => write!(f, "topic {topic}: the publisher refuses: {why}"),
        }
    }
}
