//! Middleware interface of ROS 2 (rmw) on top of the library, without a header of ROS: `bridges/rmw_noctule` is the glue around it.
//!
//! # Problem
//!
//! rmw waits for any number of things of any threads at once, takes a sample in another thread than the one that waits, has queues of the
//! reader's own depth, messages of any length, and calls back. The library has one thread at a subscriber at a time, the publisher's
//! history, and rings of a fixed slot.
//!
//! # Approach
//!
//! - A ROS node is a Noctule node of the same name: so the graph of ROS is what discovery says ([`graph`]), and `noctule topics` shows it.
//! - One thread of each context, the hub (`hub`), has all subscribers, clients and servers. It moves what comes into queues of the reader's depth
//!   ([`queue`]) and wakes the threads that wait ([`signal`]).
//! - A publisher whose message is longer than its ring's slots opens anew with longer ones ([`writer`]).
//! - A message of a plain type is written and read where it lies in shared memory ([`Writer::lend`], [`Body`]).
//! - Services are the library's requests ([`services`]).
#![forbid(unsafe_code)]

mod behind;
pub mod context;
mod door;
pub mod gid;
pub mod graph;
mod hub;
mod loans;
pub mod names;
mod participant;
pub mod quality;
pub mod queue;
pub mod reader;
mod seen;
pub mod services;
pub mod signal;
pub mod status;
pub mod writer;

pub use context::{Context, Notify, Settings};
pub use gid::Gid;
pub use participant::Participant;
pub use quality::Quality;
pub use reader::{Body, Reader, Taken};
pub use services::{ClientEnd, Incoming, ServerEnd};
pub use signal::{Signal, Waitable};
pub use writer::Writer;
