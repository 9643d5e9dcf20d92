//! A page on a running system, or on a recording of one.
//!
//! # Problem
//!
//! An engineer looks at a robot and asks: what flows, how old is it, how well is that known, which node sends to which, and
//! what do the values look like. The answer must not change what is looked at: a slow page may miss frames, a publisher
//! may not wait.
//!
//! # Approach
//!
//! - Every topic has one best-effort reader of any type and a thread ([`live`]), as in `noctule top`; a page is never
//!   part of that path. Samples are counted where they lie. Bytes are copied, and values decoded, only of topics that
//!   somebody looks at.
//! - Four times a second the figures of all topics go to every page; pictures and points go as fast as a budget of
//!   bytes allows, the newest of each topic ([`page`]).
//! - A recording is read into memory ([`recorded`]) and answers the same questions for any moment of it.
//! - Values are decoded by definitions ([`types`]): of a recording, of folders that the user names, or those of common
//!   ROS 2 messages that are built in ([`builtin`]).
#![forbid(unsafe_code)]

pub mod builtin;
pub mod content;
pub mod figures;
pub mod live;
pub mod page;
pub mod plain;
pub mod recorded;
pub mod sample;
pub mod system;
pub mod types;

mod cdr_reader;
