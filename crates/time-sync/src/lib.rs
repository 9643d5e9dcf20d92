//! Know another clock: its offset, its drift, and how wrong both may be.
//!
//! # Problem
//!
//! A board and its host each count time on a crystal of their own. To say how old a measurement is,
//! one reading must be translated into the other clock, from nothing but messages that take an
//! unknown time each way. Every filter gives a number; a robot also needs to know how far the number
//! may be from the truth, even just after a reboot, a time step or a burst of queueing.
//!
//! # Approach
//!
//! One [`Exchange`] is a request and its reply with four stamps. An [`Estimator`] eats exchanges and
//! answers at any later time with an [`Estimate`]. Several are here behind that one small trait:
//!
//! - [`Bounded`]: the default. A proven interval from causality and a limit on drift alone, and
//!   inside it a Kalman estimate.
//! - [`Ema`]: the filter that autopilots run, with both sets of constants in use.
//! - [`LastSample`] and [`MinimumOf8`]: what the simplest clients and NTP do.
//!
//! [`EstimatorKind`] names them and builds one by name.
//!
//! [`Exchanger`] decides when to ask, matches replies to requests by nonce, and drops what is stale,
//! duplicated, reordered or forged. With the feature `alloc`, [`offline`] aligns a whole recorded
//! trace after the fact. [`closure`] checks the offsets among three or more clocks against each other.
//!
//! Everywhere `offset = remote − local`. Nothing here reads a clock, opens anything, or allocates
//! (but for `offline`); no host clock is ever set: time is translated.
//!
//! Why it is done this way, and what is provable: `docs/design/time-sync.md`.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(test)]
extern crate std;

mod bounded;
pub mod closure;
mod ema;
mod exchange;
mod exchanger;

mod exponential;
mod fixed;
mod kind;
mod last_sample;
mod minimum_of_8;
#[cfg(feature = "alloc")]
pub mod offline;

pub use bounded::{Bounded, BoundedConfig, LONGEST_GAP};
pub use ema::{Ema, EmaPreset};
pub use exchange::{Counters, Drift, Estimate, Estimator, Exchange, Local, Rejection, Remote, State};

pub use exchanger::{Dropped, DroppedCounters, Exchanger, ExchangerConfig, Nonce, PENDING_LIMIT};
pub use kind::{AnyEstimator, EstimatorKind, UnknownEstimator};
pub use last_sample::LastSample;
pub use minimum_of_8::MinimumOf8;
