//! Frames over a noisy serial line.
//!
//! # Problem
//!
//! A UART gives bytes, some of them wrong, some missing, some that were never sent. Messages need a beginning
//! and an end, and a message that was damaged must be dropped without taking its neighbours along.
//!
//! # Approach
//!
//! The framing of DDS-XRCE 1.0 (OMG formal/20-02-01, annex "Serial transport"), so that every XRCE client
//! understands it:
//!
//! ```text
//! 7E  source  destination  length (u16 LE)  payload  CRC (u16 LE)
//! ```
//!
//! Behind the 7E every byte 7E or 7D, the CRC's too, is sent as 7D and the byte with bit 5 flipped. So a 7E
//! always begins a frame, and whatever went before it is over: noise costs the frames that it touches and
//! no other. The CRC is CRC-16/ARC over the payload alone; addresses and length are not covered, which
//! is why a length is trusted no further than the next 7E.
//!
//! [`encode`] writes one frame into the caller's buffer. A [`Decoder`] takes bytes as they come.
#![forbid(unsafe_code)]

mod crc;
mod decoder;
mod encoder;

pub use crc::crc16;
pub use decoder::{Counters, Decoder, Frame};
pub use encoder::{NoRoom, encode, encoded_bytes_max};

/// Begins a frame; found nowhere else in it.
pub const BEGIN: u8 = 0x7E;
/// Announces a byte with bit 5 flipped.
pub const ESCAPE: u8 = 0x7D;
/// Bit that is flipped in an escaped byte.
pub(crate) const FLIP: u8 = 0x20;
/// Address of an agent on a serial line.
pub const AGENT_ADDRESS: u8 = 0;
/// Address of a client on a line of two.
pub const CLIENT_ADDRESS: u8 = 1;
