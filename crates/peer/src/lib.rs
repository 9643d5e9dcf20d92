//! Library for a program under test: the node side of the lab's peer protocol.
//!
//! The lab starts one process per node. This crate is that process except for the middleware:
//! it reads the lab's lines, pins and paces, stamps and records, and calls the middleware through
//! the small trait [`Transport`]. Built-in floors and peers written in Rust share it, so that all
//! are measured by the same loop. The protocol is specified in `docs/spec/peer-protocol.md`;
//! `peers/harness/noctule_peer.h` is the same thing for C and C++.
//!
//! ```no_run
//! # use noctule_peer::*;
//! # struct Mine;
//! # impl Peer for Mine {
//! #     fn describe(&self) -> Description { unimplemented!() }
//! #     fn open(&self, _: &Open) -> Result<Box<dyn Transport>, PeerError> { unimplemented!() }
//! # }
//! fn main() -> std::process::ExitCode {
//!     noctule_peer::serve(&Mine)
//! }
//! ```

mod control;
mod delegate;
mod inbox;
mod line;
mod message;
mod node;
mod open_loop;
mod receiver;
mod serve;
mod stamp_clock;
mod table;
mod transport;

pub use line::{Line, LineError};
pub use message::{HEADER_BYTES, Header, Outgoing, Touch, WARM_UP, parse};
pub use serve::serve;
pub use table::{SLOTS_MAX, Slot, Table, TableError};
pub use transport::{
    Delegate, Deliver, Description, Need, Open, Peer, PeerError, Role, Support, Transport, Wait,
};
