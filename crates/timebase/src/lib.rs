//! Instants and spans in integer nanoseconds, one type per clock.
//!
//! # Problem
//!
//! Every robot has several clocks, and the commonest timing fault is to subtract a reading of one
//! from a reading of another. The result is a plausible number that means nothing.
//!
//! # Approach
//!
//! An [`Instant`] carries its clock as a type parameter. Two instants of one clock give a [`Span`];
//! two instants of different clocks do not subtract at all, and there is no cast between them: the
//! only way across is [`Instant::translate`], which needs the offset between the two clocks as an
//! argument, so the question "known how well?" comes up where it belongs.
//!
//! Both types are `i64` nanoseconds: 292 years either side of the clock's own origin, one machine
//! word, exact, and the same on every platform. Arithmetic by operator saturates at the ends of that
//! range, because a robot that has computed a deadline in the far future must wait, not crash and
//! not wrap into the past; the `checked_*` methods say when that happened. Conversions from counters
//! go through 128 bits: `ticks * 1_000_000_000` overflows 64 bits after six seconds of a 3 GHz
//! counter.
//!
//! ```
//! use noctule_timebase::{Instant, Span};
//!
//! enum Board {}
//! enum Host {}
//!
//! let stamped = Instant::<Board>::from_ns(1_000_000);
//! let board_to_host = Span::from_us(250);
//! let received = Instant::<Host>::from_ns(1_400_000);
//! assert_eq!(received - stamped.translate(board_to_host), Span::from_us(150));
//! ```
//!
//! Mixing clocks without a translation is a compile error:
//!
//! ```compile_fail,E0308
//! # use noctule_timebase::{Instant, Span};
//! # enum Board {}
//! # enum Host {}
//! let stamped = Instant::<Board>::from_ns(1_000_000);
//! let received = Instant::<Host>::from_ns(1_400_000);
//! let age: Span = received - stamped;
//! ```
#![no_std]
#![forbid(unsafe_code)]

mod instant;
mod span;

pub use instant::Instant;
pub use span::Span;

/// Marker of the clock that drives a protocol's state machine: any monotonic clock of this node, which neither stops nor steps.
pub enum Local {}
