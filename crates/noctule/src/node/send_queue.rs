//! Datagrams on their way from the state to the kernel, and what sends them: no lock of the state is held meanwhile.
//!
//! The thread that has the outbox sends for all. The others queue their samples in the state, say that there is more, and go on; so
//! datagrams leave in the order in which the state gave them out, and while one thread is in the kernel the next ones gather and
//! leave together.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};

use noctule_sys::datagram::is_too_long;
use noctule_sys::datagram_batch::{
    RUN_BYTES_MAX, RUNS_MAX, Run, SEGMENTS_MAX, is_not_segmented, queued_bytes, send_runs,
};
use noctule_timebase::Span;

use super::kernel_queue::KernelQueue;
use super::sockets::{Sockets, To};
use super::state::State;
use crate::clock;

/// Limits of one take of datagrams from the state.
#[derive(Clone, Copy, Debug)]
pub(super) struct Batch {
    datagrams: usize,
    /// No further datagram after these.
    bytes: usize,
}

#[cfg(test)]
impl Batch {
    pub(super) fn datagrams(self) -> usize {
        self.datagrams
    }
}

/// About 0.1 ms of encoding and sealing: long enough that a system call is cheap for each of them. Two runs of what Ethernet carries.
pub(super) const BATCH: Batch = Batch { datagrams: 88, bytes: 128 << 10 };
/// While a thread of the application waits for the state, or does the work. With the system call that sends it, about 0.1 ms.
pub(super) const SMALL_BATCH: Batch = Batch { datagrams: 8, bytes: 40 << 10 };
/// After the socket's buffer was full.
const FULL_AGAIN: Span = Span::from_ms(1);

/// Nothing, to nowhere.
const NO_RUN: Run<'static> = Run {
    to: SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0)),
    bytes: &[],
    segment_bytes: 0,
    octet: 0,
};

/// Counters of datagrams sent, by the way they went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendCounters {
    /// Datagrams given to the kernel, but for those to discovery's group.
    pub datagrams: u64,
    /// System calls that took.
    pub system_calls: u64,
    /// Times that the socket's buffer was full, so that what was due had to wait. No call waits for the kernel.
    pub would_block: u64,
    /// Times that fragments of long samples were held back because the line was behind.
    pub held_back: u64,
    /// Datagrams that the kernel refused: no route, or a network that is down.
    pub failed: u64,
}

/// Datagrams between the state and the kernel.
#[derive(Debug)]
pub(super) struct SendQueue {
    runs: Vec<Pending>,
    /// Runs before this one were sent.
    next: usize,
    bytes: Vec<u8>,
    /// Where datagrams are sealed, kept from one to the next.
    sealed: Vec<u8>,
    queue: KernelQueue,
    /// The kernel or the interface does not cut buffers into datagrams.
    is_single: bool,
    /// Datagrams that were too long for the line.
    too_long: Vec<(SocketAddr, usize)>,
    counters: SendCounters,
}

/// Datagrams to one destination.
#[derive(Debug)]
struct Pending {
    to: To,
    range: std::ops::Range<usize>,
    segment_bytes: usize,
    segments: usize,
    octet: u8,
}

/// Result of one send call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// Everything.
    All,
    /// The socket's buffer is full.
    Full,
}

impl SendQueue {
    pub(super) fn new() -> SendQueue {
        SendQueue {
            runs: Vec::new(),
            next: 0,
            bytes: Vec::new(),
            sealed: Vec::new(),
            queue: KernelQueue::new(clock::now()),
            is_single: false,
            too_long: Vec::new(),
            counters: SendCounters::default(),
        }
    }

    pub(super) fn counters(&self) -> SendCounters {
        self.counters
    }

    /// Takes what is due from the state, no more than a small batch once `is_small`. True if there may be more.
    pub(super) fn fill(
        &mut self,
        state: &mut State,
        socket: &UdpSocket,
        is_small: impl Fn() -> bool,
    ) -> bool {
        for (to, bytes) in self.too_long.drain(..) {
            state.handle_too_long(to, bytes, clock::now());
        }
        self.look(socket);
        if self.next == self.runs.len() {
            self.next = 0;
            self.runs.clear();
            self.bytes.clear();
        }
        let mut allowance_bytes = self.queue.allowance_bytes();
        let begin = self.bytes.len();
        for taken in 0..BATCH.datagrams {
            let bytes = self.bytes.len() - begin;
            let is_enough = taken >= SMALL_BATCH.datagrams || bytes >= SMALL_BATCH.bytes;
            if self.bytes.len() >= BATCH.bytes || is_enough && is_small() {
                return true;
            }
            let only_urgent = allowance_bytes == 0;
            let start = self.bytes.len();
            let Some(to) = self.take_one(state, only_urgent) else {
                // Something may be held back: it can go once the queue has drained.
                if only_urgent && state.has_long_samples() {
                    self.queue.hold_back();
                    self.counters.held_back += 1;
                }
                return false;
            };
            let length = self.bytes.len() - start;
            allowance_bytes = allowance_bytes.saturating_sub(KernelQueue::cost_bytes(length));
            let octet = state.octet;
            self.push(to, length, octet);
            if to == To::Everyone {
                for peer in state.discovery.unicast_peers() {
                    self.bytes.extend_from_within(start..start + length);
                    self.push(To::One(peer), length, octet);
                }
            }
        }
        true
    }

    /// Appends the next datagram of the state: written where it is sent from, unless it is sealed.
    fn take_one(&mut self, state: &mut State, only_urgent: bool) -> Option<To> {
        if !state.envelope.is_sealed() {
            return state.poll_transmit(clock::now(), only_urgent, &mut self.bytes);
        }
        self.sealed.clear();
        let to = state.poll_transmit(clock::now(), only_urgent, &mut self.sealed)?;
        self.bytes.extend_from_slice(&self.sealed);
        Some(to)
    }

    /// When the outbox must be filled and sent once more although nothing new is due.
    pub(super) fn check_at(&self) -> Option<noctule_timebase::Instant<clock::Raw>> {
        self.queue.check_at()
    }

    /// Whether the outbox is to be filled again although nothing new is due: something was too long for the line, or was
    /// held back and can go.
    pub(super) fn wants_more(&mut self) -> bool {
        self.queue.is_released() || !self.too_long.is_empty()
    }

    /// Gives the kernel what it takes.
    pub(super) fn send(&mut self, sockets: &Sockets) -> Sent {
        while let Some(pending) = self.runs.get(self.next) {
            let bytes = &self.bytes[pending.range.clone()];
            match pending.to {
                To::One(to) if sockets.is_without_loopback(to) => {
                    for datagram in bytes.chunks(pending.segment_bytes.max(1)) {
                        sockets.send_without_loopback(to, datagram);
                    }
                }
                To::One(_) => match self.send_runs(sockets) {
                    Sent::All => continue,
                    Sent::Full => return Sent::Full,
                },
                To::Channel(channel, reach) => sockets.send_to_channel((channel, reach), bytes),
                To::Everyone => sockets.send_to_group(bytes),
            }
            self.queue.sent(pending.range.len());
            self.next += 1;
        }
        if self.queue.wants_look()
            && let Ok(queued_bytes) = queued_bytes(&sockets.own)
        {
            self.queue.handle_sent(queued_bytes, clock::now());
        }
        Sent::All
    }

    /// Looks at the kernel's queue, if that is due.
    fn look(&mut self, socket: &UdpSocket) {
        // Mostly nothing is behind, and the clock need not be read.
        let Some(at) = self.queue.check_at() else { return };
        let now = clock::now();
        if at <= now
            && let Ok(queued_bytes) = queued_bytes(socket)
        {
            self.queue.handle_drained(queued_bytes, now);
        }
    }

    /// The last `length` bytes are a datagram.
    fn push(&mut self, to: To, length: usize, octet: u8) {
        let start = self.bytes.len() - length;
        let is_unsent = self.next < self.runs.len();
        if let (To::One(_), Some(last)) = (to, self.runs.last_mut())
            && is_unsent
            && (last.to, last.octet) == (to, octet)
            && last.range.end == start
            && last.takes(length)
            && !self.is_single
        {
            last.range.end += length;
            last.segments += 1;
            return;
        }
        self.runs.push(Pending {
            to,
            range: start..start + length,
            segment_bytes: length,
            segments: 1,
            octet,
        });
    }

    /// Sends the next runs that are to single addresses.
    fn send_runs(&mut self, sockets: &Sockets) -> Sent {
        let socket = &sockets.own;
        // Mostly it is one, and as many as there may be are 2 KiB.
        let (mut one, mut several);
        let runs: &mut [Run<'_>] = if self.runs.len() == self.next + 1 {
            one = [NO_RUN];
            &mut one
        } else {
            several = [NO_RUN; RUNS_MAX];
            &mut several
        };
        let mut count = 0;
        for (pending, run) in self.runs[self.next..].iter().zip(runs.iter_mut()) {
            let To::One(to) = pending.to else { break };
            if count > 0 && sockets.is_without_loopback(to) {
                break;
            }
            let bytes = &self.bytes[pending.range.clone()];
            *run = Run { to, bytes, segment_bytes: pending.segment_bytes, octet: pending.octet };
            count += 1;
        }
        self.counters.system_calls += 1;
        match send_runs(socket, &runs[..count]) {
            Ok(taken) => {
                for pending in &self.runs[self.next..self.next + taken] {
                    self.counters.datagrams += pending.segments as u64;
                    self.queue.sent(pending.range.len());
                }
                self.next += taken;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.counters.would_block += 1;
                self.queue.handle_full(clock::now() + FULL_AGAIN);
                return Sent::Full;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if runs[0].is_segmented() && is_not_segmented(&error) => {
                self.is_single |= !is_too_long(&error);
                let (run, segment_bytes) = (runs[0].bytes.to_vec(), runs[0].segment_bytes);
                let Run { to, octet, .. } = runs[0];
                for datagram in run.chunks(segment_bytes.max(1)) {
                    self.send_single(
                        socket,
                        Run { to, bytes: datagram, segment_bytes: datagram.len(), octet },
                    );
                }
                self.next += 1;
            }
            Err(error) => {
                if is_too_long(&error) {
                    self.too_long.push((runs[0].to, runs[0].bytes.len()));
                } else {
                    // A node that is gone, a network that is down: discovery notices.
                    self.counters.failed += 1;
                }
                self.next += 1;
            }
        }
        Sent::All
    }

    fn send_single(&mut self, socket: &UdpSocket, run: Run<'_>) {
        self.counters.system_calls += 1;
        let (to, length) = (run.to, run.bytes.len());
        match send_runs(socket, &[run]) {
            Ok(_) => {
                self.counters.datagrams += 1;
                self.queue.sent(length);
            }
            Err(error) if is_too_long(&error) => self.too_long.push((to, length)),
            Err(error) => {
                self.counters.would_block += u64::from(error.kind() == io::ErrorKind::WouldBlock);
                self.counters.failed += 1;
            }
        }
    }
}

#[cfg(test)]
impl SendQueue {
    /// In front of a line that has never been behind.
    pub(super) fn before_a_quick_line() -> SendQueue {
        let mut send_queue = SendQueue::new();
        while send_queue.queue.allowance_bytes() < 2 * BATCH.bytes {
            send_queue.queue.hold_back();
            send_queue.queue.handle_drained(0, clock::now());
        }
        send_queue
    }

    /// Bytes of each datagram in it, in the order in which they leave.
    pub(super) fn lengths_bytes(&self) -> Vec<usize> {
        let lengths = |run: &Pending| {
            let (bytes, each) = (run.range.len(), run.segment_bytes);
            (0..run.segments).map(move |segment| each.min(bytes - segment * each)).collect::<Vec<_>>()
        };
        self.runs[self.next..].iter().flat_map(lengths).collect()
    }
}

impl Pending {
    /// Whether a datagram of this length can follow in the same buffer: all but the last have one length.
    fn takes(&self, length: usize) -> bool {
        let is_whole = self.range.len() == self.segments * self.segment_bytes;
        let fits = self.range.len() + length <= RUN_BYTES_MAX && self.segments < SEGMENTS_MAX;
        is_whole && fits && length <= self.segment_bytes && length > 0
    }
}
