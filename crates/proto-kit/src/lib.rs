//! Parts that every protocol core needs and none should have of its own.
//!
//! - [`Bytes`]: a reader of received bytes that never reads beyond them.
//! - [`SplitMix64`]: numbers that look random and are the same for the same seed.
//! - [`median`]: of what tools measure.

#![no_std]

mod bytes;
mod median;
mod split_mix;

pub use bytes::{Bytes, Truncated};
pub use median::median;
pub use split_mix::{SplitMix64, mix};
