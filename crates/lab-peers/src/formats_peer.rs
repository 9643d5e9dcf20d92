//! The peer `formats_rust`: a realistic message, encoded, sent over TCP and decoded again, in every format.
//!
//! The loop measures end to end, and splits the time: every node stamps before and after encoding, at arrival and after
//! decoding, and reports the medians as facts. The message is the UAV state of `noctule-formats`, as large as
//! `payload_bytes` in CDR and in the plain layout; index and stamp travel inside it, so nothing arrives that was not decoded.
//! The body of the lab's own message does not travel; the receiver makes it again.
//!
//! A frame on the stream: its length after this header (u32), 1 if the body counts (u32), when it was sent (i64,
//! CLOCK_MONOTONIC), then the encoding; little-endian.

use std::collections::BTreeMap;
use std::time::Duration;

use noctule_formats::Format;
use noctule_formats::uav_state::UavState;
use noctule_lab::statistics;
use noctule_peer::{
    Deliver, Description, Header, Open, Outgoing, Peer, PeerError, Touch, Transport, WARM_UP, Wait,
};
use noctule_sys::clock;

use crate::floors::tcp_streams::Streams;

const FRAME_HEADER_BYTES: usize = 16;
/// A longer frame is not of this peer: the largest payload, in the wordiest format.
const FRAME_BYTES_MAX: usize = 256 << 20;
const PAYLOAD_BYTES_MAX: u64 = 4 << 20;
/// All nodes make the same message of it.
const SEED: u64 = 1;
/// Stands for [`WARM_UP`] in the message: BSON has no place for numbers from 2⁶³.
const WARM_UP_SEQUENCE: u64 = 1 << 62;
/// Stamps kept per kind; later ones are not.
const STAMPS_MAX: usize = 1 << 16;

pub(crate) struct Formats;

impl Peer for Formats {
    fn describe(&self) -> Description {
        let modes = ["round_trip", "one_way", "chain", "fan_out"];
        Description {
            name: "formats_rust".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            links: vec!["tcp".into()],
            waits: vec![Wait::Spin, Wait::Block, Wait::Hybrid],
            modes: modes.map(String::from).to_vec(),
            formats: Format::ALL.map(|format| format.to_string()).to_vec(),
            payload_bytes_max: PAYLOAD_BYTES_MAX,
        }
    }

    fn open(&self, open: &Open) -> Result<Box<dyn Transport>, PeerError> {
        let format: Format = open.format.parse().map_err(|e| PeerError::of("format", e))?;
        let state = UavState::realistic(open.payload_bytes, SEED);
        let mut encoded = Vec::new();
        state.encode(Format::Plain, &mut encoded).map_err(|e| PeerError::of("cannot make a message", e))?;
        if encoded.len().abs_diff(open.payload_bytes) * 50 > open.payload_bytes {
            let (least, wanted) = (encoded.len(), open.payload_bytes);
            return Err(PeerError(format!(
                "payload_bytes={wanted}, but the message has {least}: ask for at least 1000"
            )));
        }
        Ok(Box::new(Link {
            streams: Streams::open(open)?,
            codec: Codec::new(format, state, open.payload_bytes),
            frame: Frame::default(),
        }))
    }
}

struct Link {
    streams: Streams,
    codec: Codec,
    frame: Frame,
}

impl Transport for Link {
    fn address(&self) -> Option<String> {
        self.streams.address()
    }

    fn connect(&mut self, readers: &[String]) -> Result<BTreeMap<String, String>, PeerError> {
        self.streams.connect(readers)
    }

    fn send(&mut self, message: &mut Outgoing) -> Result<(), PeerError> {
        self.streams.send(self.codec.frame(message.header(), message.touch())?)
    }

    fn try_receive(&mut self, deliver: &mut Deliver<'_>) -> Result<usize, PeerError> {
        match self.streams.try_receive(self.frame.space())? {
            Some(count) => self.advance(count, deliver),
            None => Ok(0),
        }
    }

    fn receive(&mut self, timeout: Duration, deliver: &mut Deliver<'_>) -> Result<usize, PeerError> {
        while let Some(count) = self.streams.receive(self.frame.space(), timeout)? {
            match self.advance(count, deliver)? {
                0 => {}
                delivered => return Ok(delivered),
            }
        }
        Ok(0)
    }

    fn facts(&self) -> BTreeMap<String, f64> {
        self.codec.facts()
    }
}

impl Link {
    /// Takes note of `count` bytes received; delivers the messages that are complete.
    fn advance(&mut self, count: usize, deliver: &mut Deliver<'_>) -> Result<usize, PeerError> {
        let arrived_ns = clock::now_ns();
        self.frame.filled_bytes += count;
        let mut delivered = 0;
        while let Some(Arrival { sent_ns, touch, encoded }) = self.frame.complete()? {
            // Further messages of one read have waited for the decoding of those before them.
            let transfer_ns = if delivered == 0 { Some(arrived_ns - sent_ns) } else { None };
            deliver(self.codec.message(encoded, touch, transfer_ns)?);
            self.frame.release();
            delivered += 1;
        }
        Ok(delivered)
    }
}

/// A whole frame.
struct Arrival<'a> {
    sent_ns: i64,
    touch: Touch,
    encoded: &'a [u8],
}

/// Bytes of the stream up to the end of a frame.
#[derive(Default)]
struct Frame {
    buffer: Vec<u8>,
    filled_bytes: usize,
}

impl Frame {
    /// Where the next bytes go: room for what is missing of a frame, and for a small frame at least.
    fn space(&mut self) -> &mut [u8] {
        let wanted = self.frame_bytes().unwrap_or(0).max(self.filled_bytes + 1).max(1 << 16);
        if self.buffer.len() < wanted {
            self.buffer.resize(wanted.min(FRAME_BYTES_MAX + 1), 0);
        }
        &mut self.buffer[self.filled_bytes..]
    }

    /// Length of the frame whose header is there.
    fn frame_bytes(&self) -> Option<usize> {
        let filled = self.buffer.get(..self.filled_bytes)?;
        let (length, _) = filled.first_chunk::<FRAME_HEADER_BYTES>()?.split_first_chunk::<4>()?;
        Some(FRAME_HEADER_BYTES + u32::from_le_bytes(*length) as usize)
    }

    /// The first frame, if it is all there.
    fn complete(&self) -> Result<Option<Arrival<'_>>, PeerError> {
        let Some(frame_bytes) = self.frame_bytes() else { return Ok(None) };
        if frame_bytes > FRAME_BYTES_MAX {
            return Err(PeerError(format!("a frame of {frame_bytes} bytes arrived; no message is so long")));
        }
        let Some((header, encoded)) = self.buffer[..self.filled_bytes.min(frame_bytes)]
            .split_at_checked(FRAME_HEADER_BYTES)
            .filter(|_| frame_bytes <= self.filled_bytes)
        else {
            return Ok(None);
        };
        let sent_ns = header.last_chunk::<8>().map_or(0, |bytes| i64::from_le_bytes(*bytes));
        let touch = if header[4] == 1 { Touch::Full } else { Touch::Header };
        Ok(Some(Arrival { sent_ns, touch, encoded }))
    }

    /// Forgets the first frame.
    fn release(&mut self) {
        let frame_bytes = self.frame_bytes().unwrap_or(0).min(self.filled_bytes);
        self.buffer.copy_within(frame_bytes..self.filled_bytes, 0);
        self.filled_bytes -= frame_bytes;
    }
}

/// Encodes, decodes, and takes the time of both.
struct Codec {
    format: Format,
    state: UavState,
    /// The frame being sent.
    outgoing: Vec<u8>,
    /// The lab's message, made again from what was decoded.
    message: Vec<u8>,
    content_was_checked: bool,
    encode_ns: Vec<i64>,
    transfer_ns: Vec<i64>,
    decode_ns: Vec<i64>,
}

impl Codec {
    fn new(format: Format, state: UavState, payload_bytes: usize) -> Self {
        let stamps = || Vec::with_capacity(STAMPS_MAX);
        Self {
            format,
            state,
            outgoing: Vec::new(),
            message: vec![0xA5; payload_bytes],
            content_was_checked: false,
            encode_ns: stamps(),
            transfer_ns: stamps(),
            decode_ns: stamps(),
        }
    }

    /// The frame of the message with this header, encoded now.
    fn frame(&mut self, header: Header, touch: Touch) -> Result<&[u8], PeerError> {
        let mark = if header.is_warm_up() { WARM_UP_SEQUENCE } else { 0 };
        self.state.header.sequence = header.index & !WARM_UP | mark;
        self.state.header.stamp_ns = header.scheduled_ns;
        self.outgoing.clear();
        self.outgoing.resize(FRAME_HEADER_BYTES, 0);
        let start_ns = clock::now_ns();
        self.state.encode(self.format, &mut self.outgoing).map_err(|e| PeerError(e.to_string()))?;
        let sent_ns = clock::now_ns();
        let encoded_bytes = (self.outgoing.len() - FRAME_HEADER_BYTES) as u32;
        self.outgoing[..4].copy_from_slice(&encoded_bytes.to_le_bytes());
        self.outgoing[4] = u8::from(touch == Touch::Full);
        self.outgoing[8..16].copy_from_slice(&sent_ns.to_le_bytes());
        if !header.is_warm_up() {
            keep(&mut self.encode_ns, sent_ns - start_ns);
        }
        Ok(&self.outgoing)
    }

    /// The lab's message of an encoding that arrived.
    fn message(
        &mut self,
        encoded: &[u8],
        touch: Touch,
        transfer_ns: Option<i64>,
    ) -> Result<&[u8], PeerError> {
        let start_ns = clock::now_ns();
        let state = UavState::decode(self.format, encoded).map_err(|e| PeerError(e.to_string()))?;
        let decode_ns = clock::now_ns() - start_ns;
        let sequence = state.header.sequence;
        let index =
            if sequence & WARM_UP_SEQUENCE == 0 { sequence } else { sequence & !WARM_UP_SEQUENCE | WARM_UP };
        let header = Header { index, scheduled_ns: state.header.stamp_ns };
        if !header.is_warm_up() {
            keep(&mut self.decode_ns, decode_ns);
            transfer_ns.into_iter().for_each(|ns| keep(&mut self.transfer_ns, ns));
        }
        if !self.content_was_checked {
            self.check_content(state)?;
        }
        header.write(&mut self.message, touch);
        Ok(&self.message)
    }

    /// Once per run: what was decoded is what every node has.
    fn check_content(&mut self, mut state: UavState) -> Result<(), PeerError> {
        state.header = self.state.header.clone();
        if state != self.state {
            return Err(PeerError(format!("what was decoded from {} is not what was encoded", self.format)));
        }
        self.content_was_checked = true;
        Ok(())
    }

    fn facts(&self) -> BTreeMap<String, f64> {
        let encoded_bytes = self.outgoing.len().checked_sub(FRAME_HEADER_BYTES);
        let facts = [
            ("encode_ns", median(&self.encode_ns)),
            ("transfer_ns", median(&self.transfer_ns)),
            ("decode_ns", median(&self.decode_ns)),
            ("encoded_bytes", encoded_bytes.map(|bytes| bytes as f64)),
        ];
        facts.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    }
}

fn keep(stamps: &mut Vec<i64>, ns: i64) {
    if stamps.len() < STAMPS_MAX {
        stamps.push(ns);
    }
}

fn median(stamps: &[i64]) -> Option<f64> {
    statistics::median(stamps.iter().map(|ns| *ns as f64).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAYLOAD_BYTES: usize = 1024;

    fn codec(format: Format) -> Codec {
        Codec::new(format, UavState::realistic(PAYLOAD_BYTES, SEED), PAYLOAD_BYTES)
    }

    fn arrive(frame: &mut Frame, bytes: &[u8]) {
        frame.space()[..bytes.len()].copy_from_slice(bytes);
        frame.filled_bytes += bytes.len();
    }

    #[test]
    fn index_and_stamp_travel_inside_every_format() {
        for format in Format::ALL {
            let (mut sender, mut receiver) = (codec(format), codec(format));
            for (index, touch) in [(0, Touch::Full), (1 << 40, Touch::Header), (WARM_UP | 7, Touch::Full)] {
                let header = Header { index, scheduled_ns: 12_345 };
                let mut frame = Frame::default();
                arrive(&mut frame, sender.frame(header, touch).unwrap());
                let arrival = frame.complete().unwrap().unwrap();
                assert!(arrival.sent_ns > 0);
                let message = receiver.message(arrival.encoded, arrival.touch, Some(5)).unwrap();
                assert_eq!(noctule_peer::parse(message, PAYLOAD_BYTES, touch), Some(header), "{format}");
            }
            assert_eq!(
                (sender.encode_ns.len(), receiver.decode_ns.len()),
                (2, 2),
                "{format}: without warm-up"
            );
            assert_eq!(receiver.facts()["transfer_ns"], 5.0);
        }
    }

    #[test]
    fn frames_are_cut_from_the_stream_wherever_reads_end() {
        let mut sender = codec(Format::Cdr);
        let one = sender.frame(Header { index: 1, scheduled_ns: 2 }, Touch::Header).unwrap().to_vec();
        let stream = [&one[..], &one[..]].concat();
        for cut in [1, 4, 15, 16, 17, one.len() - 1, one.len(), one.len() + 3] {
            let mut frame = Frame::default();
            let mut found = 0;
            for part in [&stream[..cut], &stream[cut..]] {
                arrive(&mut frame, part);
                while let Some(Arrival { encoded, .. }) = frame.complete().unwrap() {
                    assert_eq!(encoded, &one[FRAME_HEADER_BYTES..]);
                    frame.release();
                    found += 1;
                }
            }
            assert_eq!((found, frame.filled_bytes), (2, 0), "cut at {cut}");
        }
    }

    #[test]
    fn a_frame_that_announces_too_much_is_refused() {
        let mut frame = Frame::default();
        arrive(&mut frame, &[0xFF; FRAME_HEADER_BYTES]);
        assert!(frame.complete().map(|_| ()).unwrap_err().to_string().contains("4294967311 bytes"));
        assert!(frame.space().len() <= FRAME_BYTES_MAX);
    }

    #[test]
    fn content_that_changed_on_the_way_is_noticed() {
        let mut sender = codec(Format::Json);
        sender.state.armed = false;
        let frame = sender.frame(Header { index: 1, scheduled_ns: 2 }, Touch::Header).unwrap()
            [FRAME_HEADER_BYTES..]
            .to_vec();
        let refused = codec(Format::Json).message(&frame, Touch::Header, None).unwrap_err().to_string();
        assert_eq!(refused, "what was decoded from json is not what was encoded");
    }
}
