//! A broadcast ring in shared memory: one writer, up to 256 readers, none waits for another.
//!
//! # Problem
//!
//! A camera image or a joint angle goes to several processes of one host. Copying it through a
//! socket costs two copies and a system call per reader; a queue that readers can write lets one
//! crashed or hostile reader stop all; a lock is worse.
//!
//! # Approach
//!
//! The writer owns the *data region*: a header, one word that counts what was published, and a power
//! of two of slots. Readers map it read-only. Each slot carries a stamp with its position in the
//! stream and whether it is complete, so a reader polls one word of the slot it expects next, and a
//! small message arrives together with that word in one cache line. What a reader must say, it says
//! in a *control page* of its own that only it and the writer have: whether it sleeps, and which
//! positions it has pinned.
//!
//! - Reading by copy ([`Reader::take_next`], [`Reader::take_latest`]) is checked against the stamp
//!   afterwards; a copy that was overtaken is not delivered.
//! - Reading in place ([`Reader::borrow_next`]) pins the slot: the writer passes it over.
//! - Pins are granted when a reader is attached, never more than there are slots to spare. So the
//!   writer always finds a slot, whatever a reader does, and never takes one away from an honest
//!   reader. There is no state in which writing fails.
//! - A reader sets a flag before it sleeps; the writer makes a system call only if it sees one.
//!
//! The crate is a protocol over bytes: it opens nothing and starts nothing. Why it is done this way:
//! `docs/design/shared-memory.md`; every byte: `docs/spec/shared-memory.md`.
//!
//! # Safety
//!
//! Other processes write this memory, so it is read through atomics and one opaque copy instruction
//! only; every number in it is checked before it is used as an index. No reference to plain memory
//! of the region is made, except by [`Borrowed::as_slice`], which is unsafe and says why.
#![allow(unsafe_code)] // this is the place for it; each block states why it is sound

mod borrowed;
mod layout;
mod memory;
mod reader;
mod reader_table;
mod rhythm;
mod sync;
mod view;
mod writer;

#[cfg(test)]
#[cfg(loom)]
mod models;
#[cfg(test)]
#[cfg(not(loom))]
mod tests;

pub use borrowed::Borrowed;
pub use layout::{
    CONTROL_BYTES, Layout, LayoutError, PAYLOAD_BYTES_MAX, PINS_PER_READER, RingConfig, SLOTS_MAX,
};
pub use memory::Memory;
#[cfg(not(loom))]
pub use reader::Alarm;
pub use reader::{ReadError, Reader, ReaderCounters};
pub use reader_table::{AttachError, OWN_READERS_MAX, READERS_MAX, ReaderId, ReaderTable};
pub use rhythm::Rhythm;
pub use view::{Sample, StartAt};
pub use writer::{Loan, Origin, Wake, WriteError, Writer, WriterCounters};
