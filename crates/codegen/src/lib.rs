//! The generator: from message and topic definitions to typed endpoints in every language a robot is written in.
//!
//! # Problem
//!
//! Two hundred topics over a dozen programs in five languages fit together only if somebody checks it, and a message means
//! the same on both sides only if both sides are written from one definition.
//!
//! # Approach
//!
//! - [`rosidl`] reads `.msg`, `.srv` and `.action`, [`idl`] a subset of OMG IDL into the [`model`]; a [`library`] finds what they refer to and checks it.
//! - [`mod@hash`] computes Noctule's hash of a type and ROS 2's, [`size`] what it takes as CDR, [`cdr`] its bytes, [`layout`] its place in memory that programs share.
//! - [`topics`] reads `topics.toml` and checks that a system fits together.
//! - [`description`] puts all of it into one JSON value, [`render`] gives that to templates that a user may replace, [`tree`]
//!   writes what has changed. [`generate`] is the whole way.
//! - [`described`] turns types into the descriptions that nodes send to nodes that ask, and back: what decodes the samples of a running system.
//! - What is wrong with an input is shown as rustc shows it ([`diagnostic`]): file, line, caret, way out.
//!
//! A build runs it by [`build`] (cargo), by `noctule-gen` (CMake) or by `python -m noctule.gen`.
//!
//! No parser panics, and none allocates by a number that its input merely announces.

pub mod build;
pub mod cdr;
#[cfg(feature = "command")]
pub mod command;
pub mod described;
pub mod description;
pub mod diagnostic;
pub mod generate;
pub mod given;
pub mod hash;
pub mod idl;
mod languages;
pub mod layout;
pub mod library;
pub mod model;
mod nearest;
pub mod render;
pub mod rosidl;
pub mod size;
pub mod topics;
pub mod tree;
