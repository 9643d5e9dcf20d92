//! Bytes of a serial line or of datagrams → MAVLink frames.
//!
//! Frames of version 1 (`FE`) and 2 (`FD`) are distinguished by their first byte and validated by their checksum,
//! which covers a number that belongs to the message's definition (CRC_EXTRA): a frame whose message no
//! dialect knows cannot be validated. Whatever is not a frame is skipped byte by byte, so that noise costs
//! no more than the frame it hit. <https://mavlink.io/en/guide/serialization.html>

use std::collections::VecDeque;

use mavlink::dialects::common::MavMessage;
use mavlink::dialects::dynamic::DynamicDialect;
use mavlink::{Dialect, MavlinkVersion, Message, calculate_crc};

/// The longest frame: version 2 with a full payload and a signature.
pub const FRAME_BYTES_MAX: usize = 280;
/// Bytes that may wait to be looked at; with more the oldest are lost.
pub const BUFFER_BYTES_MAX: usize = 16 * FRAME_BYTES_MAX;

const STX_V1: u8 = 0xFE;
const STX_V2: u8 = 0xFD;
const SIGNED: u8 = 0x01;
const SIGNATURE_BYTES: usize = 13;

/// A frame whose checksum is right.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// Version of its layout.
    pub version: MavlinkVersion,
    /// System of the sender, 1 to 255.
    pub system: u8,
    /// Component of the sender.
    pub component: u8,
    /// Counted by the sender, modulo 256.
    pub sequence: u8,
    /// Number of the message.
    pub message_id: u32,
    /// Its payload; in version 2 without trailing zeros.
    pub payload: Vec<u8>,
}

/// Counters of frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameCounters {
    /// Frames with a valid checksum.
    pub frames: u64,
    /// Bytes that belonged to none.
    pub skipped_bytes: u64,
    /// Frames with incompatibility flags that are not implemented here.
    pub unknown_flags: u64,
    /// Frames with a signature; it is not checked.
    pub signed: u64,
    /// Bytes dropped because [`BUFFER_BYTES_MAX`] were waiting.
    pub dropped_bytes: u64,
}

/// Where the layout of one version has what.
struct Layout {
    version: MavlinkVersion,
    header_bytes: usize,
    /// Bytes after the payload: checksum and signature.
    trailer_bytes: usize,
}

/// First bytes of the buffer: a frame, part of one, or noise.
enum Front {
    /// A frame of so many bytes.
    Frame(Frame, usize),
    /// Perhaps one; more bytes will tell.
    Incomplete,
    /// None.
    Noise,
}

/// Finds MAVLink frames in the bytes of a serial line, or in datagrams.
#[derive(Debug, Default)]
pub struct Frames {
    waiting: VecDeque<u8>,
    custom: Option<DynamicDialect>,
    counters: FrameCounters,
}

impl Frames {
    /// Frames of the common dialect, and of `custom` if there is one.
    pub fn new(custom: Option<DynamicDialect>) -> Frames {
        Frames { custom, ..Frames::default() }
    }

    /// Bytes have come in.
    pub fn handle_bytes(&mut self, bytes: &[u8]) {
        let excess = (self.waiting.len() + bytes.len()).saturating_sub(BUFFER_BYTES_MAX);
        let old = excess.min(self.waiting.len());
        self.waiting.drain(..old);
        self.waiting.extend(&bytes[excess - old..]);
        self.counters.dropped_bytes += excess as u64;
    }

    /// The next frame; `None` until more bytes come.
    pub fn poll_frame(&mut self) -> Option<Frame> {
        loop {
            match self.front() {
                Front::Frame(frame, bytes) => {
                    self.waiting.drain(..bytes);
                    self.counters.frames += 1;
                    return Some(frame);
                }
                Front::Incomplete => return None,
                Front::Noise => {
                    self.waiting.pop_front();
                    self.counters.skipped_bytes += 1;
                }
            }
        }
    }

    /// Counters of frames so far.
    pub fn counters(&self) -> FrameCounters {
        self.counters
    }

    /// A message of the user's own dialect, as its definition reads it.
    pub fn custom_message(&self, frame: &Frame) -> Option<mavlink::dialects::dynamic::DynamicMessage> {
        let dialect = self.custom.as_ref()?;
        dialect.decode(frame.version, frame.message_id, &frame.payload).ok()
    }

    fn front(&mut self) -> Front {
        let bytes = self.waiting.make_contiguous();
        let (Some(&start), length) = (bytes.first(), bytes.get(1).copied()) else { return Front::Incomplete };
        let layout = match start {
            STX_V1 => Layout { version: MavlinkVersion::V1, header_bytes: 6, trailer_bytes: 2 },
            STX_V2 => {
                let flags = bytes.get(2).copied().unwrap_or(0);
                if flags & !SIGNED != 0 {
                    self.counters.unknown_flags += 1;
                    return Front::Noise;
                }
                let signature = if flags & SIGNED == 0 { 0 } else { SIGNATURE_BYTES };
                Layout { version: MavlinkVersion::V2, header_bytes: 10, trailer_bytes: 2 + signature }
            }
            _ => return Front::Noise,
        };
        let Some(length) = length else { return Front::Incomplete };
        let payload_end = layout.header_bytes + usize::from(length);
        let whole = payload_end + layout.trailer_bytes;
        if bytes.len() < whole {
            return Front::Incomplete;
        }
        let frame = layout.frame(&bytes[..payload_end]);
        let checksum = u16::from_le_bytes([bytes[payload_end], bytes[payload_end + 1]]);
        let fits = |extra| calculate_crc(&bytes[1..payload_end], extra) == checksum;
        let custom = self.custom.as_ref().and_then(|dialect| dialect.extra_crc(frame.message_id));
        if !fits(MavMessage::extra_crc(frame.message_id)) && !custom.is_some_and(fits) {
            return Front::Noise;
        }
        self.counters.signed += u64::from(layout.trailer_bytes > 2);
        Front::Frame(frame, whole)
    }
}

impl Layout {
    /// The frame whose header and payload these are.
    fn frame(&self, bytes: &[u8]) -> Frame {
        let payload = bytes[self.header_bytes..].to_vec();
        let (sequence, system, component, message_id) = match self.version {
            MavlinkVersion::V1 => (bytes[2], bytes[3], bytes[4], u32::from(bytes[5])),
            MavlinkVersion::V2 => {
                (bytes[4], bytes[5], bytes[6], u32::from_le_bytes([bytes[7], bytes[8], bytes[9], 0]))
            }
        };
        Frame { version: self.version, system, component, sequence, message_id, payload }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use mavlink::dialects::common::TIMESYNC_DATA;
    use mavlink::{MAVLinkV1MessageRaw, MAVLinkV2MessageRaw, MavHeader};
    use proptest::prelude::*;

    use super::*;

    fn timesync(sequence: u8) -> Vec<u8> {
        let mut raw = MAVLinkV2MessageRaw::new();
        let message = TIMESYNC_DATA { tc1: 0, ts1: 5, ..Default::default() };
        raw.serialize_message_data(MavHeader { system_id: 1, component_id: 1, sequence }, &message);
        raw.raw_bytes().to_vec()
    }

    fn all(frames: &mut Frames) -> Vec<u8> {
        std::iter::from_fn(|| frames.poll_frame()).map(|frame| frame.sequence).collect()
    }

    #[test]
    fn frames_of_both_versions_are_found_byte_by_byte() {
        let mut old = MAVLinkV1MessageRaw::new();
        let message = TIMESYNC_DATA { tc1: 7, ts1: 5, ..Default::default() };
        old.serialize_message_data(MavHeader { system_id: 3, component_id: 4, sequence: 9 }, &message);
        let bytes = [timesync(8), old.raw_bytes().to_vec()].concat();
        let mut frames = Frames::default();
        let mut found = Vec::new();
        for byte in bytes {
            frames.handle_bytes(&[byte]);
            found.extend(frames.poll_frame());
        }
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].sequence, found[1].sequence, found[1].system), (8, 9, 3));
        assert_eq!(frames.counters().skipped_bytes, 0);
    }

    #[test]
    fn noise_costs_no_more_than_the_frame_it_hit() {
        let mut bytes = [timesync(1), timesync(2), timesync(3)].concat();
        bytes[timesync(1).len() + 3] ^= 0x10;
        bytes.insert(0, STX_V2);
        let mut frames = Frames::default();
        // A frame start in the noise asks for up to 280 bytes; enough follows here.
        frames.handle_bytes(&bytes);
        frames.handle_bytes(&[0; FRAME_BYTES_MAX]);
        assert_eq!(all(&mut frames), [1, 3]);
    }

    #[test]
    fn a_signature_is_skipped_and_unknown_flags_are_refused() {
        let mut signed = timesync(4);
        signed[2] = SIGNED;
        let body = signed.len() - 2;
        let checksum = calculate_crc(&signed[1..body], MavMessage::extra_crc(111)).to_le_bytes();
        signed[body..].copy_from_slice(&checksum);
        signed.extend([0xAB; SIGNATURE_BYTES]);
        let mut strange = timesync(5);
        strange[2] = 0x80;
        let mut frames = Frames::default();
        frames.handle_bytes(&[signed, strange, timesync(6), vec![0; FRAME_BYTES_MAX]].concat());
        assert_eq!(all(&mut frames), [4, 6]);
        assert_eq!((frames.counters().signed, frames.counters().unknown_flags), (1, 1));
    }

    #[test]
    fn too_many_waiting_bytes_are_dropped_and_counted() {
        let mut frames = Frames::default();
        frames.handle_bytes(&[0; BUFFER_BYTES_MAX + 10]);
        frames.handle_bytes(&timesync(7));
        assert_eq!(frames.counters().dropped_bytes, 10 + timesync(7).len() as u64);
        assert_eq!(all(&mut frames), [7]);
    }

    proptest! {
        #[test]
        fn nothing_that_comes_in_does_harm(bytes in prop::collection::vec(any::<u8>(), 0..2_000)) {
            let mut frames = Frames::default();
            for piece in bytes.chunks(97) {
                frames.handle_bytes(piece);
                while let Some(frame) = frames.poll_frame() {
                    let _ = MavMessage::parse(frame.version, frame.message_id, &frame.payload);
                }
            }
            prop_assert!(frames.waiting.len() <= BUFFER_BYTES_MAX);
        }
    }
}
