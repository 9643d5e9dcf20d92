//! Why a topic's type is not known, or a value is none of it.

use std::sync::Arc;

use noctule::{DescribeError, Format, NodeId};
use noctule_codegen::cdr::CdrError;
use noctule_codegen::described::DescribedError;
use noctule_codegen::diagnostic::{Fault, Faults};

/// One sentence each, with the way out. What is kept of a node that did not answer is given again: cheap to clone.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum TypeError {
    #[error(transparent)]
    Given(#[from] Faults),
    #[error("{0}")]
    Definition(Box<Fault>),
    #[error(transparent)]
    Description(#[from] DescribedError),
    #[error(transparent)]
    Cdr(#[from] CdrError),
    #[error("node {0} has gone before it was asked for the type")]
    Gone(NodeId),
    #[error("{hashes}; name the definitions that the topic was built with")]
    OtherHash { hashes: Hashes },
    #[error("{0}; name its definitions with --types FOLDER")]
    NothingGiven(Asked),
    #[error("{asked}, and --types names no definition of {type_name}")]
    NotGiven { asked: Asked, type_name: String },
    #[error("{0} has a layout of its own in shared memory")]
    OwnLayout(String),
    #[error("its samples are written as {0}, which is not shown as fields")]
    NotShown(Format),
    #[error("the value is not UTF-8; write YAML or JSON")]
    NotUtf8,
    #[error("the value is neither JSON nor YAML: {0}; write e.g. '{{x: 1.5}}'")]
    NotYaml(String),
}

/// Why the node that has a type does not give it.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum Asked {
    #[error("its type {0} has no definition on the bus")]
    NoHash(String),
    #[error(transparent)]
    Refused(Arc<DescribeError>),
}

/// A definition that `--types` names and the topic disagree.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{name} that --types names has the hash {given:016x}, and the topic {topic:016x}")]
pub(crate) struct Hashes {
    pub(crate) name: String,
    pub(crate) given: u64,
    pub(crate) topic: u64,
}
