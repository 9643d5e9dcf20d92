//! One direction of a serial line, byte by byte: wire time, FIFO, USB adapter, noise.
//!
//! # Problem
//!
//! A message over a UART takes its wire time, and then often waits many times longer: USB adapters
//! collect bytes until a timer of 16 ms runs out. A protocol for such lines must be tried on one.
//!
//! # Approach
//!
//! Bytes leave the sender's FIFO one after the other, each for its start, data, parity and stop bits.
//! Times are exact: after n characters at baud rate r the line has been busy for n·bits/r, rounded
//! down to nanoseconds once, not n times. At the receiver a byte is there at its end, if its FIFO does not
//! wait for more; behind a USB adapter it waits in the adapter's buffer until a packet is full, or the latency timer runs out, and
//! then for the next USB frame.
//!
//! Verbs as of a link: [`SerialLine::handle_bytes`] says how many bytes fitted the FIFO,
//! [`SerialLine::poll_deliver`] and [`SerialLine::poll_timeout`] give them back.
//!
//! References: FTDI AN232B-04, "Data Throughput, Latency and Handshaking" (latency timer of 16 ms, 62
//! bytes of data in a 64-byte packet); TI PC16550D, 8.4.1 (FIFO level and time-out); USB 2.0, 5.12 (frames of 1 ms, microframes of 125 µs).

use std::collections::VecDeque;
use std::fmt;

use noctule_timebase::{Instant, Span};

use crate::Truth;
use crate::link::Share;
use crate::random::Random;

/// Data bytes of a full USB packet of an FTDI adapter: 64 less two of status.
pub const USB_PACKET_BYTES: usize = 62;
/// Slowest and fastest line.
pub const BAUD_RANGE: std::ops::RangeInclusive<u32> = 50..=12_000_000;
/// FIFO of the sender unless asked otherwise: what a Linux driver and its UART take.
pub const FIFO_BYTES_DEFAULT: usize = 4_096;
/// Longest FIFO.
pub const FIFO_BYTES_MAX: usize = 1 << 20;
/// A 16550's receiver as Linux sets it up: it interrupts when 8 bytes of its FIFO of 16 are filled, or after
/// the time of 4 characters without another.
pub const FIFO_16550: ReceiveFifo = ReceiveFifo { level_bytes: 8, silence_characters: 4 };
/// Most bytes that wait to be taken by the receiver; more are lost as by an overrun.
pub const RECEIVED_BYTES_MAX: usize = 1 << 20;

/// Parameters of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SerialSpec {
    /// Bits per second, of [`BAUD_RANGE`].
    pub baud: u32,
    /// Data, parity and stop bits.
    pub format: CharacterFormat,
    /// Bytes the sender may be ahead of the wire.
    pub fifo_bytes: usize,
    /// The FIFO of the receiver's UART; without one each byte is handed over by itself. Behind a USB adapter
    /// it is the adapter's affair.
    pub receive_fifo: Option<ReceiveFifo>,
    /// A USB adapter at the receiver.
    pub adapter: Option<Adapter>,
    /// Errors of transmission.
    pub noise: Noise,
}

/// Bits of a character besides the start bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CharacterFormat {
    /// 5 to 8.
    pub data_bits: u8,
    /// Whether there is a parity bit, and which: `N`, `E` or `O`. A byte with wrong parity is dropped.
    pub parity: Parity,
    /// 1 or 2.
    pub stop_bits: u8,
}

/// The parity bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parity {
    /// There is none.
    None,
    /// An even number of ones, with it.
    Even,
    /// An odd number of ones, with it.
    Odd,
}

/// When a UART hands over what its FIFO has received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiveFifo {
    /// As soon as it holds so many bytes, 1 or more.
    pub level_bytes: usize,
    /// Or when for the time of so many characters no other came.
    pub silence_characters: u64,
}

/// A USB adapter between line and receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Adapter {
    /// Timer after which less than a full packet is sent, from the last packet on: 16 ms as delivered, 1 ms after
    /// `setserial low_latency`.
    pub latency_timer: Span,
    /// The host asks for packets this often: 1 ms at full speed, 125 µs at high speed.
    pub frame: Span,
}

/// Faults per byte. With `burst_bytes` above one, they come in runs of that mean length at the same
/// overall share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Noise {
    /// Share of bytes of which one bit is flipped.
    pub flipped: Share,
    /// Share of bytes that vanish.
    pub dropped: Share,
    /// Share of bytes before which another, random one appears.
    pub inserted: Share,
    /// Mean length of a run of bytes that are exposed to faults; 1 or more.
    pub burst_bytes: u32,
}

/// A format that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "\"{0}\" is no character format; write data bits 5 to 8, parity N, E or O, stop bits 1 or 2, such as 8N1"
)]
pub struct FormatError(String);

/// Counts of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct SerialStatistics {
    /// Bytes taken from the sender.
    pub sent: u64,
    /// Bytes handed to the receiver.
    pub delivered: u64,
    /// Bytes with a bit flipped.
    pub flipped: u64,
    /// Bytes that vanished by noise.
    pub dropped: u64,
    /// Bytes that appeared.
    pub inserted: u64,
    /// Bytes dropped for their parity.
    pub parity_errors: u64,
    /// Bytes lost because the line was unplugged.
    pub unplugged: u64,
    /// Bytes lost because the receiver did not take what had arrived.
    pub overrun: u64,
}

/// One direction of a line.
#[derive(Debug)]
pub struct SerialLine {
    spec: SerialSpec,
    statistics: SerialStatistics,
    random: Random,
    /// Whether the present byte is exposed to faults, while they come in runs.
    exposed: bool,
    plugged: bool,
    /// Since when the line has been busy without a pause, and for how many characters.
    busy_since: Instant<Truth>,
    busy_characters: u64,
    /// Bytes on their way: when each is whole at the receiver's end of the wire.
    wire: VecDeque<(Instant<Truth>, u8)>,
    /// Bytes in the adapter, or in the receiver's FIFO, that are not yet on their way to the host.
    collected: VecDeque<u8>,
    /// When the first and the last of them came.
    collected_since: Instant<Truth>,
    collected_last: Instant<Truth>,
    /// When the adapter last handed a packet over: the latency timer counts from there.
    handed_over: Instant<Truth>,
    /// Bytes for the receiver.
    received: VecDeque<(Instant<Truth>, u8)>,
    start: Instant<Truth>,
}

impl Default for SerialSpec {
    /// 115200 baud 8N1, no adapter, no noise.
    fn default() -> SerialSpec {
        SerialSpec {
            baud: 115_200,
            format: CharacterFormat { data_bits: 8, parity: Parity::None, stop_bits: 1 },
            fifo_bytes: FIFO_BYTES_DEFAULT,
            receive_fifo: None,
            adapter: None,
            noise: Noise::default(),
        }
    }
}

impl Default for Noise {
    fn default() -> Noise {
        Noise { flipped: Share::ZERO, dropped: Share::ZERO, inserted: Share::ZERO, burst_bytes: 1 }
    }
}

impl Noise {
    /// A share of bytes that are hit, each kind of fault a third.
    pub fn of(share: Share) -> Noise {
        let third = Share::from_billionths(share.billionths() / 3);
        Noise { flipped: third, dropped: third, inserted: third, burst_bytes: 1 }
    }

    fn total(&self) -> f64 {
        self.flipped.as_f64() + self.dropped.as_f64() + self.inserted.as_f64()
    }
}

impl CharacterFormat {
    /// Bits of a character on the wire, start bit included.
    pub fn bits(&self) -> u64 {
        1 + u64::from(self.data_bits) + u64::from(self.parity != Parity::None) + u64::from(self.stop_bits)
    }
}

impl std::str::FromStr for CharacterFormat {
    type Err = FormatError;

    fn from_str(text: &str) -> Result<CharacterFormat, FormatError> {
        let [data, parity, stop] = text.as_bytes() else {
            return Err(FormatError(text.chars().take(20).collect()));
        };
        let parity = match parity {
            b'N' => Some(Parity::None),
            b'E' => Some(Parity::Even),
            b'O' => Some(Parity::Odd),
            _ => None,
        };
        match (data, parity, stop) {
            (b'5'..=b'8', Some(parity), b'1' | b'2') => {
                Ok(CharacterFormat { data_bits: data - b'0', parity, stop_bits: stop - b'0' })
            }
            _ => Err(FormatError(text.chars().take(20).collect())),
        }
    }
}

impl fmt::Display for CharacterFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parity = match self.parity {
            Parity::None => 'N',
            Parity::Even => 'E',
            Parity::Odd => 'O',
        };
        write!(f, "{}{parity}{}", self.data_bits, self.stop_bits)
    }
}

impl SerialLine {
    /// An idle line, plugged in.
    pub fn new(spec: SerialSpec, start: Instant<Truth>, seed: u64) -> SerialLine {
        SerialLine {
            spec,
            statistics: SerialStatistics::default(),
            random: Random::for_part(seed, 0x5e41a1),
            exposed: false,
            plugged: true,
            busy_since: start,
            busy_characters: 0,
            wire: VecDeque::new(),
            collected: VecDeque::new(),
            collected_since: start,
            collected_last: start,
            handed_over: start,
            received: VecDeque::new(),
            start,
        }
    }

    /// The sender writes; returns how many bytes the FIFO took. The rest must be written again, after
    /// [`Self::poll_room`].
    pub fn handle_bytes(&mut self, now: Instant<Truth>, bytes: &[u8]) -> usize {
        self.advance(now);
        let taken = bytes.len().min(self.space());
        self.statistics.sent += taken as u64;
        if !self.plugged {
            self.statistics.unplugged += taken as u64;
            return taken;
        }
        let free = self.end_of(self.busy_characters);
        if free < now || self.busy_characters == 0 {
            self.busy_since = now;
            self.busy_characters = 0;
        }
        for byte in &bytes[..taken] {
            self.busy_characters += 1;
            self.wire.push_back((self.end_of(self.busy_characters), *byte));
        }
        taken
    }

    /// Pulls the plug or puts it back. What is on the wire or in the adapter is lost.
    pub fn set_plugged(&mut self, now: Instant<Truth>, plugged: bool) {
        self.advance(now);
        self.plugged = plugged;
        let lost = self.wire.len() + self.collected.len() + self.received.len();
        self.statistics.unplugged += lost as u64;
        self.wire.clear();
        self.collected.clear();
        self.received.clear();
        (self.busy_since, self.busy_characters) = (now, 0);
    }

    /// Takes what has arrived by `now`, up to the length of `buffer`; returns how many bytes.
    pub fn poll_deliver(&mut self, now: Instant<Truth>, buffer: &mut [u8]) -> usize {
        self.advance(now);
        let mut count = 0;
        for place in buffer {
            let Some((_, byte)) = self.received.front().copied().filter(|(at, _)| *at <= now) else { break };
            self.received.pop_front();
            *place = byte;
            count += 1;
        }
        self.statistics.delivered += count as u64;
        count
    }

    /// When the next byte can be taken, or will have reached the adapter; `None` if the line is idle. With noise
    /// it can be later than that by as many bytes as vanish until then.
    pub fn poll_timeout(&self) -> Option<Instant<Truth>> {
        let received = self.received.front().map(|(at, _)| *at);
        let collected = match (self.spec.adapter, self.spec.receive_fifo) {
            (None, Some(fifo)) => self.fifo_time(fifo),
            _ => self.wire.front().map(|(at, _)| *at).into_iter().chain(self.flush_time()).min(),
        };
        received.into_iter().chain(collected).min()
    }

    /// When the receiver's FIFO will hand over what it has and what is on the wire now.
    fn fifo_time(&self, fifo: ReceiveFifo) -> Option<Instant<Truth>> {
        let next = self.wire.front().map(|(at, _)| *at);
        let flush = self.flush_time().filter(|flush| next.is_none_or(|next| next > *flush));
        let wanted = fifo.level_bytes.saturating_sub(self.collected.len() + 1);
        let full = self.wire.get(wanted).map(|(at, _)| *at);
        let last = self.wire.back().map(|(at, _)| *at + self.duration_of(fifo.silence_characters));
        flush.or(full).or(last)
    }

    /// Bytes the FIFO has room for now.
    pub fn room(&mut self, now: Instant<Truth>) -> usize {
        self.advance(now);
        self.space()
    }

    /// Bytes that were taken and then found no room at the receiver: they count as lost, not delivered.
    pub fn count_overrun(&mut self, bytes: usize) {
        self.statistics.overrun += bytes as u64;
        self.statistics.delivered = self.statistics.delivered.saturating_sub(bytes as u64);
    }

    /// When the FIFO will have room for another byte; `None` if it has.
    pub fn poll_room(&self) -> Option<Instant<Truth>> {
        if self.space() > 0 { None } else { self.wire.front().map(|(at, _)| *at) }
    }

    /// Counts so far.
    pub fn statistics(&self) -> SerialStatistics {
        self.statistics
    }

    /// Parameters of the line.
    pub fn spec(&self) -> &SerialSpec {
        &self.spec
    }

    fn space(&self) -> usize {
        self.spec.fifo_bytes.clamp(1, FIFO_BYTES_MAX).saturating_sub(self.wire.len())
    }

    /// The end of a number of characters since the line last began to be busy.
    fn end_of(&self, characters: u64) -> Instant<Truth> {
        self.busy_since + self.duration_of(characters)
    }

    fn duration_of(&self, characters: u64) -> Span {
        let bits = u128::from(characters) * u128::from(self.spec.format.bits());
        let ns = bits * 1_000_000_000 / u128::from(self.spec.baud.max(1));
        Span::from_ns(i64::try_from(ns).unwrap_or(i64::MAX))
    }

    /// Lets bytes reach the receiver's end and leave the adapter, in the order of time.
    fn advance(&mut self, now: Instant<Truth>) {
        loop {
            let byte_at = self.wire.front().map(|(at, _)| *at).filter(|at| *at <= now);
            let flush_at = self.flush_time().filter(|at| *at <= now);
            match (byte_at, flush_at) {
                (None, None) => return,
                // A byte that is whole when the timer runs out goes along.
                (Some(byte_at), flush_at) if flush_at.is_none_or(|flush_at| byte_at <= flush_at) => {
                    if let Some((at, byte)) = self.wire.pop_front() {
                        self.arrive(at, byte);
                    }
                }
                (_, Some(flush_at)) => self.hand_over(flush_at),
                (Some(_), None) => return,
            }
        }
    }

    fn arrive(&mut self, at: Instant<Truth>, byte: u8) {
        let mut byte = byte & u8::MAX >> 8_u8.saturating_sub(self.spec.format.data_bits.clamp(5, 8));
        let noise = self.spec.noise;
        let exposure = self.exposure();
        if self.random.chance(noise.inserted.as_f64() * exposure) {
            self.statistics.inserted += 1;
            let inserted = self.random.bits() as u8;
            self.collect(at, inserted);
        }
        if self.random.chance(noise.dropped.as_f64() * exposure) {
            self.statistics.dropped += 1;
            return;
        }
        if self.random.chance(noise.flipped.as_f64() * exposure) {
            if self.spec.format.parity != Parity::None {
                // One wrong bit is what parity finds, the parity bit's own included.
                self.statistics.parity_errors += 1;
                return;
            }
            self.statistics.flipped += 1;
            byte ^= 1 << (self.random.bits() % u64::from(self.spec.format.data_bits.clamp(5, 8)));
        }
        self.collect(at, byte);
    }

    /// How much more likely than on average faults are for this byte: one, or with runs zero or enough
    /// to make up for it.
    fn exposure(&mut self) -> f64 {
        let run = f64::from(self.spec.noise.burst_bytes.max(1));
        let total = self.spec.noise.total();
        if run <= 1.0 || total == 0.0 {
            return 1.0;
        }
        // Within a run every second byte is hit; so runs cover twice the share of faults.
        let share = (2.0 * total).min(0.9);
        let next = if self.exposed { 1.0 - 1.0 / run } else { share / (1.0 - share) / run };
        self.exposed = self.random.chance(next);
        if self.exposed { 1.0 / share } else { 0.0 }
    }

    fn collect(&mut self, at: Instant<Truth>, byte: u8) {
        if self.received.len() + self.collected.len() >= RECEIVED_BYTES_MAX {
            self.statistics.overrun += 1;
            return;
        }
        let level_bytes = match (self.spec.adapter, self.spec.receive_fifo) {
            (Some(_), _) => USB_PACKET_BYTES,
            (None, Some(fifo)) => fifo.level_bytes,
            (None, None) => 1,
        };
        if self.collected.is_empty() {
            self.collected_since = at;
        }
        self.collected_last = at;
        self.collected.push_back(byte);
        if self.collected.len() >= level_bytes {
            self.hand_over(at);
        }
    }

    /// When bytes are handed over although there are not enough of them: after a silence of the line, or when
    /// the adapter's latency timer runs out. That one runs freely: an adapter that has sent nothing for long
    /// sends empty status packets at the same pace.
    fn flush_time(&self) -> Option<Instant<Truth>> {
        if self.collected.is_empty() {
            return None;
        }
        let Some(adapter) = self.spec.adapter else {
            let silence = self.spec.receive_fifo?.silence_characters;
            return Some(self.collected_last + self.duration_of(silence));
        };
        let timer_ns = adapter.latency_timer.ns().max(1_000);
        let waited_ns = (self.collected_since - self.handed_over).ns().max(1);
        let periods = (waited_ns - 1).div_euclid(timer_ns) + 1;
        Some(self.handed_over + Span::from_ns(periods.saturating_mul(timer_ns)))
    }

    fn hand_over(&mut self, at: Instant<Truth>) {
        let host = self.spec.adapter.map_or(at, |adapter| self.next_frame(at, adapter.frame));
        self.received.extend(self.collected.drain(..).map(|byte| (host, byte)));
        self.handed_over = at;
    }

    fn next_frame(&self, at: Instant<Truth>, frame: Span) -> Instant<Truth> {
        let frame_ns = frame.ns().max(1);
        let since_ns = (at - self.start).ns();
        self.start + Span::from_ns((since_ns + frame_ns - 1).div_euclid(frame_ns) * frame_ns)
    }
}

#[cfg(test)]
mod tests;
