//! Floor of everything serial at a line's speed: messages of fixed length behind a marker.
//!
//! The least that a program can do with a line: write the message, read until it is whole. The marker
//! finds the next message after noise. The option `overhead_bytes` adds bytes to each message, so that a protocol
//! can be compared with a pump of as many bytes on the wire.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::time::Duration;

use noctule_peer::{Deliver, Description, Open, Outgoing, Peer, PeerError, Transport, Wait};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

use super::socket::{readable, start_pulse};

/// Begins every message.
const MARKER: u8 = 0xC3;
/// More than this belongs to no protocol.
const OVERHEAD_BYTES_MAX: usize = 256;
const PAYLOAD_BYTES_MAX: u64 = 4096;

pub(super) struct SerialPump;

struct Line {
    device: OwnedFd,
    /// Bytes to write: marker, overhead, message.
    frame: Vec<u8>,
    /// Bytes of the present frame that have been read, at most a frame's length.
    filled_bytes: usize,
    buffer: Vec<u8>,
    before_bytes: usize,
    baud: u32,
}

impl Peer for SerialPump {
    fn describe(&self) -> Description {
        let waits = [Wait::Spin, Wait::Block, Wait::Hybrid];
        let mut description = super::description("serial_pump", "serial", &waits, PAYLOAD_BYTES_MAX);
        description.modes = ["round_trip", "one_way"].map(String::from).to_vec();
        description
    }

    fn open(&self, open: &Open) -> Result<Box<dyn Transport>, PeerError> {
        let number = |name: &str| open.options.get(name).and_then(|text| text.parse::<u32>().ok());
        let (Some(path), Some(baud)) = (&open.device, number("baud")) else {
            return Err(PeerError("a serial line needs device=… and option.baud=…".into()));
        };
        let overhead_bytes = match open.options.get("overhead_bytes") {
            None => 0,
            Some(text) => {
                text.parse().ok().filter(|bytes| *bytes <= OVERHEAD_BYTES_MAX).ok_or_else(|| {
                    PeerError(format!(
                        "overhead_bytes = \"{text}\" is not between 0 and {OVERHEAD_BYTES_MAX}"
                    ))
                })?
            }
        };
        let device = open_raw(path).map_err(|e| PeerError::of(&format!("cannot open {path}"), e))?;
        let before_bytes = 1 + overhead_bytes;
        let frame = vec![MARKER; before_bytes + open.payload_bytes];
        let buffer = vec![0; frame.len()];
        Ok(Box::new(Line { device, frame, filled_bytes: 0, buffer, before_bytes, baud }))
    }
}

fn open_raw(path: &str) -> Result<OwnedFd, Errno> {
    let device = rustix::fs::open(path, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())?;
    let mut settings = tcgetattr(&device)?;
    settings.make_raw();
    tcsetattr(&device, OptionalActions::Flush, &settings)?;
    Ok(device)
}

impl Line {
    /// One read; delivers a message that it completed.
    fn read(&mut self, deliver: &mut Deliver<'_>) -> Result<usize, PeerError> {
        match rustix::io::read(&self.device, &mut self.buffer[self.filled_bytes..]) {
            Ok(0) => return Err(PeerError("the line was unplugged".into())),
            Ok(count) => self.filled_bytes += count,
            Err(Errno::INTR | Errno::AGAIN) => return Ok(0),
            Err(error) => return Err(PeerError::of("cannot read the line", error)),
        }
        // After noise: what is no beginning is dropped.
        let read = &self.buffer[..self.filled_bytes];
        let noise_bytes = read.iter().position(|byte| *byte == MARKER).unwrap_or(read.len());
        self.buffer.copy_within(noise_bytes..self.filled_bytes, 0);
        self.filled_bytes -= noise_bytes;
        if self.filled_bytes < self.buffer.len() {
            return Ok(0);
        }
        self.filled_bytes = 0;
        deliver(&self.buffer[self.before_bytes..]);
        Ok(1)
    }
}

impl Transport for Line {
    fn connect(&mut self, _: &[String]) -> Result<BTreeMap<String, String>, PeerError> {
        start_pulse()?;
        Ok(BTreeMap::from([("frame_bytes".into(), self.frame.len().to_string())]))
    }

    fn send(&mut self, message: &mut Outgoing) -> Result<(), PeerError> {
        message.write_into(&mut self.frame[self.before_bytes..]);
        let mut left = self.frame.as_slice();
        while !left.is_empty() {
            match rustix::io::write(&self.device, left) {
                Ok(count) => left = &left[count..],
                Err(Errno::INTR) => {}
                Err(error) => return Err(PeerError::of("cannot write the line", error)),
            }
        }
        Ok(())
    }

    fn try_receive(&mut self, deliver: &mut Deliver<'_>) -> Result<usize, PeerError> {
        if readable(&self.device, Duration::ZERO)? { self.read(deliver) } else { Ok(0) }
    }

    fn receive(&mut self, timeout: Duration, deliver: &mut Deliver<'_>) -> Result<usize, PeerError> {
        loop {
            if !readable(&self.device, timeout)? {
                return Ok(0);
            }
            if self.read(deliver)? > 0 {
                return Ok(1);
            }
        }
    }

    fn facts(&self) -> BTreeMap<String, f64> {
        // Start, eight of data, stop.
        let wire_ns = self.frame.len() as f64 * 10.0 * 1e9 / f64::from(self.baud);
        BTreeMap::from([("wire_time_ns".into(), wire_ns)])
    }
}
