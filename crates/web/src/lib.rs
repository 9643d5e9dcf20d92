//! A live page on this machine.
//!
//! # Problem
//!
//! Several commands show something that moves in a browser, and one of them moves an arm. A page that moves a machine
//! must not be open to every page of the same browser.
//!
//! # Approach
//!
//! [`Server`] serves files that were compiled in, and a WebSocket. It listens on the loopback interface unless asked
//! otherwise. The address it gives out contains a random token, without which there is neither page nor socket; the
//! `Host` and `Origin` of a request must be its own, so that no foreign page can connect, whatever name resolves to
//! this machine. Nothing that is served asks anything from elsewhere; the content security policy forbids it.
//!
//! One thread accepts, two serve each browser, of which there are at most [`CLIENTS_MAX`]. A slow browser gets the
//! newest of each channel and misses those between; what is for one browser alone is queued up to [`REPLIES_MAX`].
//!
//! Programs that ask for a subprotocol of the WebSocket get it on the same port ([`Protocol`]); they need the token, too.
#![forbid(unsafe_code)]

mod client;
mod protocol;
mod request;
mod server;

pub use client::Payload;
pub use protocol::{Frame, Incoming, Outgoing, Protocol};
pub use server::{Asset, ClientId, Event, Server, ServerError, ServerOptions};

/// Browsers at the same time.
pub const CLIENTS_MAX: usize = 8;
/// Replies that wait for a browser.
pub const REPLIES_MAX: usize = 16;
/// Channels of a browser of which something waits.
pub const CHANNELS_MAX: usize = 256;
/// Longest message that is taken from a browser.
pub const MESSAGE_BYTES_MAX: usize = 16 << 10;
/// Events that wait for the program; beyond it the messages of browsers are dropped and counted.
pub const EVENTS_MAX: usize = 4_096;
