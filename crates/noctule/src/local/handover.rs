//! The two packets of the hand-over: what a reader asks for, and what it gets.
//!
//! Little-endian, fixed positions (`docs/spec/shared-memory.md`, section 3). Either side refuses what
//! it does not understand with a sentence.

/// Longest name of a topic, in bytes of UTF-8.
pub const TOPIC_BYTES_MAX: usize = 256;
/// Longest sentence of a refusal, in bytes of UTF-8.
pub const REFUSAL_BYTES_MAX: usize = 512;

/// First bytes of both packets: name and version of the hand-over.
const MAGIC: [u8; 4] = *b"nsh1";
const HEADER_BYTES: usize = 20;
/// Longer than any valid packet, so that one that is too long shows.
pub(crate) const PACKET_BYTES_MAX: usize = HEADER_BYTES + REFUSAL_BYTES_MAX;

/// What a reader asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Name of the topic.
    pub topic: String,
    /// What its bytes must mean.
    pub type_hash: u64,
    /// How many samples it wants to borrow at once.
    pub pins: u32,
}

/// What a writer answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// With two descriptors: data region, control page.
    Accepted {
        /// How many samples may be borrowed at once.
        pins: u32,
    },
    /// Why not, in one sentence.
    Refused(String),
}

/// A packet that is none of the hand-over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HandoverError {
    /// Wrong length or first bytes.
    #[error("the packet is no hand-over of version 1; both programs must use the same release")]
    Foreign,
    /// A text that is too long or no UTF-8.
    #[error("the hand-over's text is no UTF-8, or longer than {TOPIC_BYTES_MAX} bytes for a topic")]
    Text,
}

const ACCEPTED: u32 = 0;
const REFUSED: u32 = 1;
const REQUEST: u32 = 2;

impl Request {
    /// The packet.
    ///
    /// # Errors
    /// [`HandoverError::Text`] if the topic is too long.
    pub fn emit(&self) -> Result<Vec<u8>, HandoverError> {
        if self.topic.len() > TOPIC_BYTES_MAX {
            return Err(HandoverError::Text);
        }
        Ok(packet(REQUEST, self.pins, self.type_hash, &self.topic))
    }

    /// Reads a packet.
    pub fn parse(bytes: &[u8]) -> Result<Self, HandoverError> {
        match fields(bytes)? {
            Fields { kind: REQUEST, text, pins, type_hash } if text.len() <= TOPIC_BYTES_MAX => {
                Ok(Self { topic: text.to_owned(), type_hash, pins })
            }
            Fields { kind: REQUEST, .. } => Err(HandoverError::Text),
            _ => Err(HandoverError::Foreign),
        }
    }
}

impl Answer {
    /// The packet; a sentence that is too long is cut.
    pub fn emit(&self) -> Vec<u8> {
        match self {
            Self::Accepted { pins } => packet(ACCEPTED, *pins, 0, ""),
            Self::Refused(why) => {
                let mut end = why.len().min(REFUSAL_BYTES_MAX);
                while !why.is_char_boundary(end) {
                    end -= 1;
                }
                packet(REFUSED, 0, 0, &why[..end])
            }
        }
    }

    /// Reads a packet.
    pub fn parse(bytes: &[u8]) -> Result<Self, HandoverError> {
        match fields(bytes)? {
            Fields { kind: ACCEPTED, pins, .. } => Ok(Self::Accepted { pins }),
            Fields { kind: REFUSED, text, .. } => Ok(Self::Refused(text.to_owned())),
            _ => Err(HandoverError::Foreign),
        }
    }
}

fn packet(kind: u32, pins: u32, type_hash: u64, text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER_BYTES + text.len());
    bytes.extend(MAGIC);
    bytes.extend(kind.to_le_bytes());
    bytes.extend(pins.to_le_bytes());
    bytes.extend(type_hash.to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes
}

/// What both packets have.
struct Fields<'a> {
    kind: u32,
    pins: u32,
    type_hash: u64,
    text: &'a str,
}

fn fields(bytes: &[u8]) -> Result<Fields<'_>, HandoverError> {
    let (magic, rest) = bytes.split_first_chunk::<4>().ok_or(HandoverError::Foreign)?;
    let (kind, rest) = rest.split_first_chunk::<4>().ok_or(HandoverError::Foreign)?;
    let (pins, rest) = rest.split_first_chunk::<4>().ok_or(HandoverError::Foreign)?;
    let (type_hash, text) = rest.split_first_chunk::<8>().ok_or(HandoverError::Foreign)?;
    if *magic != MAGIC || text.len() > REFUSAL_BYTES_MAX {
        return Err(HandoverError::Foreign);
    }
    let text = std::str::from_utf8(text).map_err(|_| HandoverError::Text)?;
    Ok(Fields {
        kind: u32::from_le_bytes(*kind),
        pins: u32::from_le_bytes(*pins),
        type_hash: u64::from_le_bytes(*type_hash),
        text,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_can_be_read() {
        let request = Request { topic: "imu/ä".into(), type_hash: 0x0123_4567_89AB_CDEF, pins: 3 };
        assert_eq!(Request::parse(&request.emit().unwrap()), Ok(request));
        for answer in [Answer::Accepted { pins: 7 }, Answer::Refused("no room".into())] {
            assert_eq!(Answer::parse(&answer.emit()), Ok(answer));
        }
    }

    #[test]
    fn the_bytes_are_those_of_the_specification() {
        let request = Request { topic: "t".into(), type_hash: 0x0807_0605_0403_0201, pins: 2 };
        let expected = b"nsh1\x02\0\0\0\x02\0\0\0\x01\x02\x03\x04\x05\x06\x07\x08t";
        assert_eq!(request.emit().unwrap(), expected);
    }

    #[test]
    fn what_is_too_long_or_foreign_is_refused() {
        let long = Request { topic: "x".repeat(257), type_hash: 0, pins: 0 };
        assert_eq!(long.emit(), Err(HandoverError::Text));
        assert_eq!(Request::parse(&packet(REQUEST, 0, 0, &long.topic)), Err(HandoverError::Text));
        assert_eq!(Request::parse(&packet(REFUSED, 0, 0, "")), Err(HandoverError::Foreign));
        assert_eq!(Answer::parse(&packet(REQUEST, 0, 0, "")), Err(HandoverError::Foreign));
        assert_eq!(Answer::parse(&[b'n'; PACKET_BYTES_MAX + 1]), Err(HandoverError::Foreign));
        let mut no_text = packet(REFUSED, 0, 0, "");
        no_text.push(0xFF);
        assert_eq!(Answer::parse(&no_text), Err(HandoverError::Text));
        for length in 0..HEADER_BYTES {
            assert!(Request::parse(&packet(REQUEST, 0, 0, "")[..length]).is_err());
        }
        let cut = Answer::Refused("ä".repeat(400)).emit();
        assert_eq!(cut.len(), HEADER_BYTES + REFUSAL_BYTES_MAX);
        assert!(Answer::parse(&cut).is_ok());
    }
}
