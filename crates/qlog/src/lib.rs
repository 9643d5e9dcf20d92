//! Trace events of the cores: kept while they are wanted, written as a file, read back as sentences.
//!
//! # Problem
//!
//! A counter says that something happened 17 times; a user who looks for one late sample or one node that vanished needs to know when,
//! to whom, and by which rule. That must cost nothing where nobody asks.
//!
//! # Approach
//!
//! - A core has a [`Log`] of its events. Off, [`Log::note`] is one branch, and the event is not even made.
//! - Each core writes its events as one table with [`events!`]: the variant, its name in a file, its sentence, its fields. The rules that
//!   decided are a table of [`reasons!`], and stand in the field `trigger`.
//! - [`text`] writes them in qlog's JSON text sequence; a [`Schema`] turns the fields of a file into sentences again.
//!
//! Names and fields of every event: `docs/guide/trace.md`.
#![forbid(unsafe_code)]

mod field;
mod log;
mod schema;
mod table;
pub mod text;

pub use field::{Field, FieldsOfFile, Put, Value};
pub use log::{EVENTS_LIMIT, Log};
pub use schema::{Event, Schema};
