//! The bytes of a message: header, body, trailer (spec section 2).

/// Size of the header, and the smallest payload, in bytes.
pub const HEADER_BYTES: usize = 16;

/// Set in the index of messages that only warm up.
pub const WARM_UP: u64 = 1 << 63;

const TRAILER_BYTES: usize = 8;

/// How much of a payload is written and read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Touch {
    /// Header and trailer.
    #[default]
    Header,
    /// Every byte.
    Full,
}

/// The first 16 bytes of every message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Number of the message, from 0; [`WARM_UP`] is set on warm-up messages.
    pub index: u64,
    /// When the source should have sent it, in its `CLOCK_MONOTONIC`.
    pub scheduled_ns: i64,
}

impl Header {
    /// True if the message is not to be measured.
    pub fn is_warm_up(&self) -> bool {
        self.index & WARM_UP != 0
    }

    /// Writes header, trailer and, for [`Touch::Full`], every byte between into a message buffer.
    pub fn write(&self, message: &mut [u8], touch: Touch) {
        if touch == Touch::Full {
            message.fill(self.index as u8);
        }
        if let Some(target) = message.first_chunk_mut::<HEADER_BYTES>() {
            target[..8].copy_from_slice(&self.index.to_le_bytes());
            target[8..].copy_from_slice(&self.scheduled_ns.to_le_bytes());
        }
        if message.len() >= HEADER_BYTES + TRAILER_BYTES
            && let Some(target) = message.last_chunk_mut::<TRAILER_BYTES>()
        {
            *target = self.index.to_le_bytes();
        }
    }
}

/// Reads a message of exactly `payload_bytes`; `None` if the length or the trailer is wrong.
///
/// With [`Touch::Full`] every byte is read, as an application that uses the data would.
#[inline]
pub fn parse(message: &[u8], payload_bytes: usize, touch: Touch) -> Option<Header> {
    if message.len() != payload_bytes {
        return None;
    }
    let (index, rest) = message.split_first_chunk::<8>()?;
    let index = u64::from_le_bytes(*index);
    let scheduled_ns = i64::from_le_bytes(*rest.first_chunk::<8>()?);
    if payload_bytes >= HEADER_BYTES + TRAILER_BYTES
        && u64::from_le_bytes(*message.last_chunk::<TRAILER_BYTES>()?) != index
    {
        return None;
    }
    if touch == Touch::Full {
        let body = message.get(HEADER_BYTES..payload_bytes.saturating_sub(TRAILER_BYTES)).unwrap_or(&[]);
        if body.iter().fold(0, |seen, &byte| seen | (byte ^ index as u8)) != 0 {
            return None;
        }
    }
    Some(Header { index, scheduled_ns })
}

/// A message about to be sent. The middleware either takes its bytes or has it written into memory
/// it lends.
#[derive(Debug)]
pub struct Outgoing {
    header: Header,
    touch: Touch,
    buffer: Vec<u8>,
}

impl Outgoing {
    /// Allocates and touches the buffer once; nothing is allocated per message.
    pub(crate) fn new(payload_bytes: usize, touch: Touch) -> Self {
        // Non-zero, so that the pages are really there and not the shared zero page.
        let buffer = vec![0xA5; payload_bytes];
        Self { header: Header { index: 0, scheduled_ns: 0 }, touch, buffer }
    }

    pub(crate) fn set(&mut self, header: Header) -> &mut Self {
        self.header = header;
        self
    }

    /// Size of the message in bytes.
    pub fn payload_bytes(&self) -> usize {
        self.buffer.len()
    }

    /// The whole message, for middlewares that copy from the caller's memory.
    #[inline]
    pub fn bytes(&mut self) -> &[u8] {
        self.header.write(&mut self.buffer, self.touch);
        &self.buffer
    }

    /// Writes the message into lent memory of exactly [`Self::payload_bytes`]. Unless the scenario
    /// asks to touch everything, only header and trailer are written: that is what lending is for.
    #[inline]
    pub fn write_into(&self, lent: &mut [u8]) {
        self.header.write(lent, self.touch);
    }

    /// How much of the message is written.
    pub fn touch(&self) -> Touch {
        self.touch
    }

    /// Header of the message.
    pub fn header(&self) -> Header {
        self.header
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_and_trailer_survive_in_every_size_and_touch() {
        for touch in [Touch::Header, Touch::Full] {
            for payload_bytes in [16, 17, 23, 24, 25, 64, 1000] {
                let header = Header { index: 300 | WARM_UP, scheduled_ns: -5 };
                let mut outgoing = Outgoing::new(payload_bytes, touch);
                let bytes = outgoing.set(header).bytes();
                assert_eq!(parse(bytes, payload_bytes, touch), Some(header), "{payload_bytes} bytes");
            }
        }
    }

    #[test]
    fn truncated_or_torn_messages_are_not_accepted() {
        let mut outgoing = Outgoing::new(64, Touch::Full);
        let mut bytes = outgoing.set(Header { index: 1, scheduled_ns: 2 }).bytes().to_vec();
        assert_eq!(parse(&bytes[..63], 64, Touch::Header), None);
        assert_eq!(parse(&[], 64, Touch::Header), None);
        assert_eq!(parse(&bytes[..8], 8, Touch::Header), None);
        bytes[40] ^= 1;
        assert!(parse(&bytes, 64, Touch::Header).is_some());
        assert_eq!(parse(&bytes, 64, Touch::Full), None);
        bytes[63] ^= 1;
        assert_eq!(parse(&bytes, 64, Touch::Header), None);
    }
}
