//! Seeded, deterministic models of clocks and of the paths between them.
//!
//! # Problem
//!
//! A clock estimator can only be judged against a truth, and on real hardware the truth is exactly
//! what nobody has. Here it is known: a model of the remote clock, a model of the delays in either
//! direction, and a seed give a list of round trips together with the true offset at each.
//!
//! # Approach
//!
//! Nothing here reads a clock or touches a socket. The same seed gives the same bits on every
//! platform and in every version: the generator is fixed ([`Random`]), and logarithm, sine and
//! root come from a pure Rust library instead of the platform's.
//!
//! - [`random`]: the generator and the distributions.
//! - [`clock`]: a clock that is fast, breathes with temperature, wanders, is slewed, and steps.
//! - [`delay`]: how long one message takes; modelled or recorded.
//! - [`serial`]: one direction of a serial line, byte by byte.
//! - [`scenario`]: the eleven named combinations against which estimators are compared.
//! - [`exchange`]: round trips over a scenario.
//! - [`link`]: one direction of a link for whole packets: delay, loss, rate, order, replay.
//! - [`bound`]: the least redundancy and loss that any transport can have on such a link.
//! - [`network`]: endpoints without sockets, joined by links, in virtual time.
//! - [`Story`]: the events of a session, for `noctule trace`.
//! - [`air`]: one shared Wi-Fi medium of many stations: contention, collisions, distance.
#![forbid(unsafe_code)]

pub mod air;
pub mod bound;
pub mod clock;
pub mod delay;
pub mod exchange;
pub mod link;
pub mod network;
pub mod random;
pub mod scenario;
mod seeds;
pub mod serial;
mod story;

pub use clock::{Clock, ClockModel};
pub use delay::{Delay, Path};
pub use exchange::{RoundTrip, round_trips};
pub use link::{Link, LinkSpec};
pub use network::Network;
pub use random::Random;
pub use scenario::{SCENARIOS, Scenario};
pub use seeds::seeds;
pub use story::Story;

/// Marker of the clock links act on: a simulation's true time, or the machine's own when live.
pub enum Truth {}
