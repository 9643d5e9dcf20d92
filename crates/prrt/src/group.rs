//! Multicast: one stream of samples to many readers, with FEC and suppressed NACKs (as NORM, RFC 5740).
//!
//! # Problem
//!
//! A sample that sixteen robots read is sent sixteen times by links. One datagram to a group reaches all of them, but each
//! loses others, and sixteen answers to each datagram would cost more than is saved.
//!
//! # Approach
//!
//! - Samples are symbols of systematic blocks ([`erasure`](crate::erasure)): a parity symbol repairs a different loss at
//!   every receiver. A block is as long as its first sample's deadline leaves time to ask for parity and get it.
//! - Parity that a receiver will almost certainly need is sent unasked (`shortfall`). For more, a receiver asks by how many symbols
//!   it *has*, when the block should be there; so what is asked for twice is sent once, and the most that any receiver
//!   lacks is sent without waiting for all of them.
//! - Requests go to the sender alone, after a random part of the time that can be spared, and not at all if the parity comes first.
//! - Now and then each receiver reports what arrived: the sender learns which receivers hear the group at all, round trips and losses.
//!   A receiver that does not hear it, or would cost the others more than [`DRAG_MAX`], is the caller's to serve by a link.
//!
//! [`GroupSender`] and [`GroupReceiver`] are state machines of one stream: `handle_*` in, `poll_*` out, `now` an argument. Drain order after any
//! call: `poll_transmit` until `false`, then wait until `poll_timeout`.
//!
//! Every byte: `docs/spec/prrt.md`; reasons and formulas: `docs/design/prrt.md`.
//!
//! # References
//!
//! RFC 5740 (NORM: parity-based repair, quantity of what is lacked instead of a list, suppression); J. Nonnenmacher, E. Biersack,
//! D. Towsley, "Parity-based loss recovery for reliable multicast transmission", IEEE/ACM ToN 6(4), 1998.

mod members;
mod rate;
mod receiving;
mod sending;
mod shortfall;
pub mod trace;
mod wire;

use noctule_timebase::Span;

use crate::stream::{Bound, StreamId};

pub use receiving::{GroupReceiver, ReceiverCounters, TakeFragment};
pub use sending::{GroupSender, SenderCounters};
pub use wire::{Ask, Body, Datagram, Report, Symbol, SymbolKind};

/// Receivers that a sender keeps account of; more are to be served by links.
pub const MEMBERS_LIMIT: usize = 256;
/// Fragments of a sample at most; longer ones are to be sent by links, which pace them.
pub const FRAGMENTS_MAX: usize = 64;
/// Data symbols of a block of several samples at most.
pub const BLOCK_SAMPLES_MAX: u8 = 32;
/// Parity datagrams per datagram of data that one receiver may cost all others before it is served by itself.
pub const DRAG_MAX: f64 = 0.6;
/// Parity datagrams per datagram of data, in the long run, whatever is asked for.
pub const PARITY_SHARE_MAX: f64 = 1.0;

/// Before a round trip has been measured it is assumed to be this long.
const ROUND_TRIP_PRIOR: Span = Span::from_ms(20);
/// Least time that an expected datagram may be late: threads wake late.
const GUARD_LEAST: Span = Span::from_ms(1);

/// A receiver of a group: the number of its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MemberId(pub u128);

/// The configuration that both ends of a stream to a group agree on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GroupConfig {
    /// Number of the sender's life, another after a restart.
    pub session: u32,
    /// The stream.
    pub writer: StreamId,
    /// Its deadline and loss; `None`: best effort, nothing is repaired.
    pub bound: Option<Bound>,
    /// Longest datagram, header included; clamped to 512 … 9,000 bytes.
    pub datagram_bytes_max: usize,
}

/// A change of a receiver's membership, for the sender's user.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Membership {
    /// It loses so much that it would cost the others more than [`DRAG_MAX`]: it is to be served by itself.
    Apart {
        /// The receiver.
        member: MemberId,
        /// Share of the group's datagrams that it loses.
        loss: f64,
    },
    /// It is served with the others again.
    Back {
        /// The receiver.
        member: MemberId,
    },
}
