//! The peer `mavlink`: an autopilot on one side of a serial line, a companion computer on the other.
//!
//! Messages travel in `V2_EXTENSION`, whose content is the user's own. Version 2 cuts zeros off the end of a frame;
//! the last byte is changed on the way so that no message is shorter than the payload that is measured.

use std::collections::VecDeque;

use mavlink::dialects::common::{MavMessage, V2_EXTENSION_DATA};
use noctule_gateway::mavlink::endpoint::{Endpoint, Event, Identity};
use noctule_lab::dimensions::Reliability;
use noctule_peer::{Description, Open, Peer, PeerError, Transport, Wait};
use noctule_time_sync::Exchange;
use noctule_timebase::Instant;

use super::driver::Driver;
use super::port::Port;
use super::{Sides, Speaker, device, side_clock};
use crate::floors;

/// Longest payload of `V2_EXTENSION`, in bytes.
const PAYLOAD_BYTES_MAX: usize = 249;
/// Message type in the range that is free for experiments.
const MESSAGE_TYPE: u16 = 0x8E4F;
/// Never leaves the last byte zero: of a message's trailer that is 0x00, or 0x80 in the warm-up.
const LAST_BYTE: u8 = 0x55;
/// Messages that wait to be taken, at most; the oldest is dropped, and is counted as lost.
const MESSAGES_MAX: usize = 1024;

/// The peer `mavlink`.
pub(crate) struct Mavlink;

impl Peer for Mavlink {
    fn describe(&self) -> Description {
        let waits = [Wait::Block, Wait::Spin, Wait::Hybrid];
        let mut description = floors::description("mavlink", "serial", &waits, PAYLOAD_BYTES_MAX as u64);
        description.modes = ["round_trip", "one_way"].map(String::from).to_vec();
        description
    }

    fn open(&self, open: &Open) -> Result<Box<dyn Transport>, PeerError> {
        let sides = Sides::of(open)?;
        if sides.topics != 1 || sides.reliability == Reliability::Reliable {
            return Err(PeerError(
                "MAVLink has no topics and repeats nothing; leave topics and reliability out".into(),
            ));
        }
        let clock = side_clock(open)?;
        let (path, baud) = device(open)?;
        let path = path.to_owned();
        let identity = if sides.is_board { Identity::AUTOPILOT } else { Identity::COMPANION };
        let side = Side {
            endpoint: Endpoint::new(identity, None, Instant::from_ns(clock.now_ns())),
            payload_bytes: open.payload_bytes,
            messages: VecDeque::new(),
        };
        let open_port = Box::new(move |_: &[String]| Port::serial(&path, baud));
        Ok(Box::new(Driver::new(open, (sides, clock), Box::new(side), open_port)))
    }
}

/// One side.
struct Side {
    endpoint: Endpoint,
    payload_bytes: usize,
    messages: VecDeque<Vec<u8>>,
}

impl Speaker for Side {
    fn handle_bytes(&mut self, bytes: &[u8], arrived_ns: i64) {
        self.endpoint.handle_bytes(bytes, Instant::from_ns(arrived_ns));
        while let Some(event) = self.endpoint.poll_event() {
            let Event::Message(message, _) = event else { continue };
            let MavMessage::V2_EXTENSION(extension) = *message else { continue };
            let Some(payload) = extension.payload.get(..self.payload_bytes) else { continue };
            let mut payload = payload.to_vec();
            change_last(&mut payload);
            if self.messages.len() == MESSAGES_MAX {
                self.messages.pop_front();
            }
            self.messages.push_back(payload);
        }
    }

    fn poll_transmit(&mut self, now_ns: i64, out: &mut Vec<u8>) -> bool {
        let now = Instant::from_ns(now_ns);
        self.endpoint.handle_timeout(now);
        self.endpoint.poll_transmit(now, out)
    }

    fn timeout_ns(&self, _now_ns: i64) -> i64 {
        self.endpoint.poll_timeout().ns()
    }

    fn send(&mut self, message: &[u8], _stamp_ns: i64) -> Result<(), PeerError> {
        let mut extension = V2_EXTENSION_DATA { message_type: MESSAGE_TYPE, ..Default::default() };
        let (target_system, target_component) = self.endpoint.peer().unwrap_or((0, 0));
        (extension.target_system, extension.target_component) = (target_system, target_component);
        let Some(payload) = extension.payload.get_mut(..message.len()) else {
            return Err(PeerError(format!("a message of {} B does not fit V2_EXTENSION", message.len())));
        };
        payload.copy_from_slice(message);
        change_last(payload);
        self.endpoint.send(MavMessage::V2_EXTENSION(extension));
        Ok(())
    }

    fn poll_message(&mut self) -> Option<Vec<u8>> {
        self.messages.pop_front()
    }

    fn poll_exchange(&mut self) -> Option<Exchange> {
        self.endpoint.poll_exchange()
    }

    fn is_ready(&self) -> bool {
        self.endpoint.peer().is_some()
    }
}

fn change_last(payload: &mut [u8]) {
    if let Some(last) = payload.last_mut() {
        *last ^= LAST_BYTE;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(identity: Identity, payload_bytes: usize) -> Side {
        let endpoint = Endpoint::new(identity, None, Instant::from_ns(1));
        Side { endpoint, payload_bytes, messages: VecDeque::new() }
    }

    #[test]
    fn a_message_that_ends_in_zeros_has_its_full_length_on_the_wire_and_arrives_whole() {
        let (mut board, mut companion) = (side(Identity::AUTOPILOT, 115), side(Identity::COMPANION, 115));
        board.send(&[0; 115], 2).unwrap();
        let mut wire = Vec::new();
        assert!(board.poll_transmit(3, &mut wire));
        // Header 10, five bytes before the payload, checksum 2.
        assert_eq!(wire.len(), 10 + 5 + 115 + 2);
        companion.handle_bytes(&wire, 4);
        assert_eq!(companion.poll_message(), Some(vec![0; 115]));
        assert_eq!(companion.poll_message(), None);
    }

    #[test]
    fn an_exchange_of_clocks_is_polled_once() {
        let (mut board, mut companion) = (side(Identity::AUTOPILOT, 16), side(Identity::COMPANION, 16));
        let mut polled = Vec::new();
        for step in 1..400 {
            let now_ns = step * 1_000_000;
            let mut wire = Vec::new();
            while board.poll_transmit(now_ns, &mut wire) {}
            companion.handle_bytes(&wire, now_ns);
            wire.clear();
            while companion.poll_transmit(now_ns, &mut wire) {}
            board.handle_bytes(&wire, now_ns);
            polled.extend(board.poll_exchange());
        }
        assert_eq!(polled.len() as u64, board.endpoint.counters().0.exchanges);
        assert!((3..=5).contains(&polled.len()), "{} exchanges", polled.len());
    }
}
