//! From bytes on the line to payloads.

use crate::crc::add;
use crate::{BEGIN, ESCAPE, FLIP};

/// One whole frame whose checksum is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Its sender.
    pub source: u8,
    /// Whom it is for.
    pub destination: u8,
    /// Its payload, at least one byte.
    pub payload: &'a [u8],
}

/// Counters of frames, and of bytes and frames that were dropped, by reason. Each saturates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Whole frames.
    pub frames: u64,
    /// Bytes outside of any frame.
    pub noise_bytes: u64,
    /// Frames that another began in the middle of.
    pub cut: u64,
    /// Frames whose checksum was wrong.
    pub checksum: u64,
    /// Frames that announce more than this end takes, or nothing at all.
    pub length: u64,
}

/// Takes bytes as they come and finds the frames in them. Allocates once, when it is made.
#[derive(Clone, Debug)]
pub struct Decoder {
    payload: Vec<u8>,
    payload_bytes_max: u16,
    awaits: Awaits,
    /// The byte before was [`ESCAPE`].
    escaped: bool,
    source: u8,
    destination: u8,
    length: u16,
    crc: u16,
    counters: Counters,
}

/// Meaning of the next byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaits {
    Begin,
    Source,
    Destination,
    LengthLow,
    LengthHigh,
    Payload,
    CrcLow,
    CrcHigh { low: u8 },
}

impl Decoder {
    /// A decoder of frames that carry at most `payload_bytes_max` bytes; longer ones are dropped.
    pub fn new(payload_bytes_max: u16) -> Decoder {
        Decoder {
            payload: Vec::with_capacity(payload_bytes_max.into()),
            payload_bytes_max,
            awaits: Awaits::Begin,
            escaped: false,
            source: 0,
            destination: 0,
            length: 0,
            crc: 0,
            counters: Counters::default(),
        }
    }

    /// Takes bytes from the front of `bytes` up to the end of the next whole frame, and returns it;
    /// `None` when all are taken. Call it until then.
    pub fn next_frame(&mut self, bytes: &mut &[u8]) -> Option<Frame<'_>> {
        while let [first, rest @ ..] = *bytes {
            *bytes = rest;
            if self.take(*first) {
                let Decoder { source, destination, .. } = *self;
                return Some(Frame { source, destination, payload: &self.payload });
            }
        }
        None
    }

    /// Forgets the frame that has begun, as after the line was unplugged.
    pub fn reset(&mut self) {
        (self.awaits, self.escaped) = (Awaits::Begin, false);
    }

    /// Counters since the start.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Takes one byte; true if it ends a whole frame.
    fn take(&mut self, byte: u8) -> bool {
        if byte == BEGIN {
            if self.awaits != Awaits::Begin {
                count(&mut self.counters.cut);
            }
            (self.awaits, self.escaped, self.crc) = (Awaits::Source, false, 0);
            self.payload.clear();
            return false;
        }
        if self.awaits == Awaits::Begin {
            count(&mut self.counters.noise_bytes);
            return false;
        }
        if byte == ESCAPE {
            self.escaped = true;
            return false;
        }
        let byte = if std::mem::take(&mut self.escaped) { byte ^ FLIP } else { byte };
        self.take_plain(byte)
    }

    /// Takes one byte inside a frame, as it was before it was escaped.
    fn take_plain(&mut self, byte: u8) -> bool {
        self.awaits = match self.awaits {
            Awaits::Begin => Awaits::Begin,
            Awaits::Source => {
                self.source = byte;
                Awaits::Destination
            }
            Awaits::Destination => {
                self.destination = byte;
                Awaits::LengthLow
            }
            Awaits::LengthLow => {
                self.length = byte.into();
                Awaits::LengthHigh
            }
            Awaits::LengthHigh => {
                self.length |= u16::from(byte) << 8;
                if self.length == 0 || self.length > self.payload_bytes_max {
                    count(&mut self.counters.length);
                    Awaits::Begin
                } else {
                    Awaits::Payload
                }
            }
            Awaits::Payload => {
                self.payload.push(byte);
                self.crc = add(self.crc, byte);
                if self.payload.len() < usize::from(self.length) { Awaits::Payload } else { Awaits::CrcLow }
            }
            Awaits::CrcLow => Awaits::CrcHigh { low: byte },
            Awaits::CrcHigh { low } => {
                self.awaits = Awaits::Begin;
                let is_whole = u16::from_le_bytes([low, byte]) == self.crc;
                count(if is_whole { &mut self.counters.frames } else { &mut self.counters.checksum });
                return is_whole;
            }
        };
        false
    }
}

fn count(counter: &mut u64) {
    *counter = counter.saturating_add(1);
}

#[cfg(test)]
mod tests;
