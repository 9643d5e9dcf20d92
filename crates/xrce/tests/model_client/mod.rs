//! A client as eProsima's behaves on the wire, as far as the agent can tell: a history of so many messages
//! each way, one ACKNACK for each reliable message, a heartbeat every 100 ms while something is missing.

use std::collections::{BTreeMap, VecDeque};

use noctule_timebase::{Instant, Span};
use noctule_xrce::Local;

/// Announced in CREATE_CLIENT.
pub(crate) const MESSAGE_BYTES_MAX: u16 = 348;
const CREATE_CLIENT: [u8; 24] = [
    0x80,
    0,
    0,
    0,
    0,
    1,
    16,
    0,
    b'X',
    b'R',
    b'C',
    b'E',
    1,
    0,
    1,
    15,
    0xAA,
    0xAA,
    0xBB,
    0xBB,
    0x81,
    0,
    (MESSAGE_BYTES_MAX % 256) as u8,
    (MESSAGE_BYTES_MAX / 256) as u8,
];
/// Participant, topic "t" of type "T", publisher, writer, subscriber, reader; READ_DATA without end.
const CREATIONS: [&[u8]; 7] = [
    &[1, 5, 16, 0, 0, 10, 0, 0x11, 1, 3, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0],
    &[
        1, 5, 30, 0, 0, 11, 0, 0x12, 2, 3, 0, 0, 16, 0, 0, 0, 2, 0, 0, 0, b't', 0, 0, 1, 2, 0, 0, 0, b'T', 0,
        0, 0, 0, 0x11,
    ],
    &[1, 5, 16, 0, 0, 12, 0, 0x13, 3, 3, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0x11],
    &[1, 5, 25, 0, 0, 13, 0, 0x15, 5, 3, 0, 0, 11, 0, 0, 0, 0, 0x12, 1, 0, 11, 0, 0, 0, 0, 0, 0, 0, 0x13],
    &[1, 5, 16, 0, 0, 14, 0, 0x14, 4, 3, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0x11],
    &[1, 5, 25, 0, 0, 15, 0, 0x16, 6, 3, 0, 0, 11, 0, 0, 0, 0, 0x12, 1, 0, 11, 0, 0, 0, 0, 0, 0, 0, 0x14],
    &[8, 1, 16, 0, 0, 16, 0, 0x16, 0x80, 0, 0, 1, 255, 255, 0, 0, 0, 0, 0, 0],
];
const RETRY: Span = Span::from_ms(1000);
const HEARTBEAT: Span = Span::from_ms(100);

#[derive(Clone)]
pub(crate) struct ModelClient {
    history: u16,
    now: Instant<Local>,
    has_session: bool,
    retry_at: Instant<Local>,
    heartbeat_at: Instant<Local>,
    control: VecDeque<Vec<u8>>,
    /// Reliable messages on the way, from `first` on; the flag says it is to be sent.
    flight: VecDeque<(Vec<u8>, bool)>,
    first: u16,
    statuses: usize,
    next_number: u32,
    handled: u16,
    announced: u16,
    stored: BTreeMap<u16, Vec<u8>>,
    last_number: Option<u32>,
    received: u64,
    large: u64,
    dropped: u64,
}

fn behind(a: u16, b: u16) -> bool {
    (b.wrapping_sub(a) as i16) > 0
}

impl ModelClient {
    pub(crate) fn new(history: u16, now: Instant<Local>) -> ModelClient {
        ModelClient {
            history,
            now,
            has_session: false,
            retry_at: now,
            heartbeat_at: now,
            control: VecDeque::new(),
            flight: VecDeque::new(),
            first: 0,
            statuses: 0,
            next_number: 0,
            handled: u16::MAX,
            announced: u16::MAX,
            stored: BTreeMap::new(),
            last_number: None,
            received: 0,
            large: 0,
            dropped: 0,
        }
    }

    /// The same board after a reset: only the test's own counts live on.
    pub(crate) fn restarted(&self, now: Instant<Local>) -> ModelClient {
        ModelClient {
            received: self.received,
            large: self.large,
            dropped: self.dropped,
            ..ModelClient::new(self.history, now + Span::from_ms(200))
        }
    }

    /// Publishes the next number if it may; true if it did.
    pub(crate) fn publish(&mut self, wanted: bool) -> bool {
        if !self.has_session || self.flight.len() >= usize::from(self.history) {
            return false;
        }
        let created = usize::from(self.first) + self.flight.len();
        if self.next_number == 0 && created < CREATIONS.len() && self.first < 7 {
            self.push(CREATIONS[created].to_vec());
            return false;
        }
        if !wanted || self.statuses < 6 {
            return false;
        }
        let mut message = vec![7, 1, 8, 0, 0, 20, 0, 0x15];
        message.extend(self.next_number.to_le_bytes());
        self.next_number += 1;
        self.push(message);
        true
    }

    pub(crate) fn is_done(&self) -> bool {
        self.has_session && self.flight.is_empty() && self.statuses >= 6
    }

    pub(crate) fn received(&self) -> u64 {
        self.received
    }

    pub(crate) fn large(&self) -> u64 {
        self.large
    }

    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }

    pub(crate) fn describe(&self) -> String {
        format!(
            "session {}, first {}, {} in flight, {} statuses, handled {}",
            self.has_session,
            self.first,
            self.flight.len(),
            self.statuses,
            self.handled
        )
    }

    pub(crate) fn poll_transmit(&mut self, now: Instant<Local>) -> Option<Vec<u8>> {
        self.now = now;
        if !self.has_session {
            let is_due = now >= self.retry_at;
            self.retry_at = if is_due { now + RETRY } else { self.retry_at };
            return is_due.then(|| CREATE_CLIENT.to_vec());
        }
        if let Some(message) = self.control.pop_front() {
            return Some(message);
        }
        if let Some(at) = self.flight.iter().position(|(_, due)| *due) {
            self.flight[at].1 = false;
            let [low, high] = self.first.wrapping_add(at as u16).to_le_bytes();
            return Some([&[0x81, 0x80, low, high][..], &self.flight[at].0].concat());
        }
        if !self.flight.is_empty() && now >= self.heartbeat_at {
            self.heartbeat_at = now + HEARTBEAT;
            let (first, last) = (self.first, self.first.wrapping_add(self.flight.len() as u16 - 1));
            let [a, b, c, d] = [first.to_le_bytes(), last.to_le_bytes()].concat()[..] else { unreachable!() };
            return Some(vec![0x81, 0, 0, 0, 11, 1, 5, 0, a, b, c, d, 0x80]);
        }
        None
    }

    pub(crate) fn poll_timeout(&self) -> Instant<Local> {
        if self.has_session { self.heartbeat_at.max(self.now + Span::from_ms(1)) } else { self.retry_at }
    }

    pub(crate) fn handle_message(&mut self, message: &[u8], now: Instant<Local>) {
        self.now = now;
        let (stream, sequence) = (message[1], u16::from_le_bytes([message[2], message[3]]));
        if !self.has_session {
            // Only the answer to CREATE_CLIENT.
            self.has_session = message[4] == 4 && message[8] == 0;
            return;
        }
        if stream == 0 {
            return self.handle_submessages(&message[4..]);
        }
        self.handle_reliable(sequence, &message[4..]);
        self.acknowledge();
    }

    fn push(&mut self, message: Vec<u8>) {
        if self.flight.is_empty() {
            self.heartbeat_at = self.now + HEARTBEAT;
        }
        self.flight.push_back((message, true));
    }

    fn handle_reliable(&mut self, sequence: u16, body: &[u8]) {
        let end = self.handled.wrapping_add(self.history);
        if behind(self.announced, sequence) {
            self.announced = sequence;
        }
        if !behind(self.handled, sequence) {
            return;
        }
        if behind(end, sequence) {
            self.dropped += 1;
            return;
        }
        self.stored.entry(sequence).or_insert_with(|| body.to_vec());
        loop {
            let next = self.handled.wrapping_add(1);
            let Some(body) = self.stored.get(&next) else { return };
            if body[0] != 13 {
                let body = self.stored.remove(&next).unwrap();
                self.handled = next;
                self.handle_submessages(&body);
                continue;
            }
            // A sample in pieces is handled when the last one is there.
            let mut whole = Vec::new();
            let mut at = next;
            loop {
                let Some(piece) = self.stored.get(&at) else { return };
                whole.extend_from_slice(&piece[4..]);
                if piece[1] & 2 != 0 {
                    break;
                }
                at = at.wrapping_add(1);
            }
            self.stored.retain(|sequence, _| behind(at, *sequence));
            self.handled = at;
            self.handle_submessages(&whole);
        }
    }

    fn acknowledge(&mut self) {
        let mut from = self.handled.wrapping_add(1);
        while self.stored.contains_key(&from) && from != self.handled.wrapping_add(1 + self.history) {
            from = from.wrapping_add(1);
        }
        let announced = self.announced.wrapping_sub(from.wrapping_sub(1)).min(16);
        let announced = if behind(self.announced, from) { 0 } else { announced };
        let missing = (0..announced).filter(|bit| !self.stored.contains_key(&from.wrapping_add(*bit)));
        let bits = missing.fold(0u16, |bits, bit| bits | 1 << bit).to_be_bytes();
        let [low, high] = from.to_le_bytes();
        self.control.push_back(vec![0x81, 0, 0, 0, 10, 1, 5, 0, low, high, bits[0], bits[1], 0x80]);
    }

    fn handle_submessages(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let [id, _, low, high, ..] = rest {
            let length = usize::from(u16::from_le_bytes([*low, *high]));
            let body = &rest[4..4 + length];
            match id {
                5 => {
                    assert!(body[4] <= 1, "status {:02x} for {:02x?}", body[4], &body[..4]);
                    self.statuses += 1;
                }
                9 => self.handle_data(&body[4..]),
                10 => self.handle_acknack(body),
                11 => {
                    let last = u16::from_le_bytes([body[2], body[3]]);
                    if behind(self.announced, last) {
                        self.announced = last;
                    }
                    self.acknowledge();
                }
                _ => {}
            }
            rest = rest.get((4 + length).next_multiple_of(4)..).unwrap_or_default();
        }
    }

    fn handle_data(&mut self, body: &[u8]) {
        self.received += 1;
        if body.len() > 4 {
            let words = body.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap()));
            assert!(words.eq(0..(body.len() / 4) as u32), "put together in order");
            self.large += 1;
            return;
        }
        let number = u32::from_le_bytes(body.try_into().unwrap());
        // Numbers of an earlier life may still be on the bus; then they fall back once.
        if number != 0 && self.last_number.is_some_and(|last| number <= last && number != 0) {
            assert!(self.last_number.is_some_and(|last| last >= self.next_number), "{number} came again");
        }
        self.last_number = Some(number);
    }

    fn handle_acknack(&mut self, body: &[u8]) {
        let first = u16::from_le_bytes([body[0], body[1]]);
        let missing = u16::from_be_bytes([body[2], body[3]]);
        while behind(self.first, first) && !self.flight.is_empty() {
            self.flight.pop_front();
            self.first = self.first.wrapping_add(1);
        }
        for bit in (0..16u16).filter(|bit| missing >> bit & 1 == 1) {
            let at = usize::from(first.wrapping_add(bit).wrapping_sub(self.first));
            if let Some((_, due)) = self.flight.get_mut(at) {
                *due = true;
            }
        }
    }
}
