//! Generic receive offload (GRO) of the own socket, datagram by datagram.
//!
//! The kernel joins datagrams of one sender that arrive together (`UDP_GRO`, udp(7)): a long sample costs a system call for up to 64 of its fragments. The
//! rest of the segments is kept here and comes before what the socket still has, so the thread that reads next goes on in the order of arrival. One thread reads at a
//! time: see [`socket_lease`](super::socket_lease).
//!
//! A subscriber gets a sample as soon as it is there and comes back for the rest: one acknowledgement is sent for all of what was joined.

use std::io;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use noctule_prrt::BATCH_LIMIT;
use noctule_sys::datagram::{self, Arrival};
use noctule_timebase::{Instant, Span};

use crate::clock::{self, Raw};

/// Longer datagrams are not ours.
pub(super) const DATAGRAM_BYTES_MAX: usize = 65_536;

/// Datagrams that may lie handled and not acknowledged while a subscriber has the sample that they completed, and the longest time.
const WAITING_MAX: usize = 48;
const WAIT_MAX: Span = Span::from_ms(1);

/// What the kernel has handed over and nobody has received.
#[derive(Debug)]
pub(super) struct ReceiveOffload {
    has_more: AtomicBool,
    /// When the kernel handed them over, on the raw clock, and how many were handled and not acknowledged.
    read_at_ns: AtomicI64,
    waiting: AtomicUsize,
    rest: Mutex<Rest>,
}

#[derive(Debug)]
struct Rest {
    /// A buffer that the kernel wrote into: datagrams of the arrival's segment length, the last of which may be shorter.
    bytes: Vec<u8>,
    /// Those before are received; nothing is behind `end`.
    next: usize,
    end: usize,
    arrival: Option<Arrival>,
}

impl ReceiveOffload {
    pub(super) fn new() -> ReceiveOffload {
        // As long as any reader's buffer, for which it is exchanged: nothing is allocated or copied when a sample arrives.
        let rest = Rest { bytes: vec![0; DATAGRAM_BYTES_MAX], next: 0, end: 0, arrival: None };
        ReceiveOffload {
            has_more: AtomicBool::new(false),
            read_at_ns: AtomicI64::new(0),
            waiting: AtomicUsize::new(0),
            rest: Mutex::new(rest),
        }
    }

    /// So many datagrams were handled.
    pub(super) fn note_handled(&self, datagrams: usize) {
        self.waiting.fetch_add(datagrams, Ordering::Relaxed);
    }

    /// What was handled is acknowledged.
    pub(super) fn note_acknowledged(&self) {
        // A store costs more, and mostly nothing waits.
        if self.waiting.load(Ordering::Relaxed) > 0 {
            self.waiting.store(0, Ordering::Relaxed);
        }
    }

    /// Datagrams that may be handled before those that were are acknowledged.
    pub(super) fn left(&self) -> usize {
        BATCH_LIMIT.saturating_sub(self.waiting.load(Ordering::Relaxed))
    }

    /// Whether what was handled can be acknowledged with the rest of what was joined.
    pub(super) fn may_wait(&self, now: Instant<Raw>) -> bool {
        let read_at = Instant::from_ns(self.read_at_ns.load(Ordering::Relaxed));
        self.has_more() && self.waiting.load(Ordering::Relaxed) < WAITING_MAX && now - read_at < WAIT_MAX
    }

    /// Whether there is a datagram that the socket does not signal any more.
    pub(super) fn has_more(&self) -> bool {
        self.has_more.load(Ordering::Acquire)
    }

    /// As [`datagram::receive`].
    #[inline]
    pub(super) fn receive(&self, socket: &UdpSocket, buffer: &mut Vec<u8>) -> io::Result<Option<Arrival>> {
        self.receive_by(buffer, |buffer| datagram::receive(socket, buffer))
    }

    /// As [`datagram::receive_blocking`].
    pub(super) fn receive_blocking(
        &self,
        socket: &UdpSocket,
        buffer: &mut Vec<u8>,
    ) -> io::Result<Option<Arrival>> {
        self.receive_by(buffer, |buffer| datagram::receive_blocking(socket, buffer))
    }

    /// As [`datagram::wait`].
    pub(super) fn wait(&self, socket: &UdpSocket, timeout_ns: i64) -> io::Result<bool> {
        if self.has_more() { Ok(true) } else { datagram::wait(socket, timeout_ns) }
    }

    fn receive_by(
        &self,
        buffer: &mut Vec<u8>,
        receive: impl FnOnce(&mut [u8]) -> io::Result<Option<Arrival>>,
    ) -> io::Result<Option<Arrival>> {
        if self.has_more()
            && let Some(arrival) = self.next(buffer)
        {
            return Ok(Some(arrival));
        }
        Ok(receive(buffer)?.map(|arrival| self.first(arrival, buffer)))
    }

    /// The next of the rest.
    fn next(&self, buffer: &mut [u8]) -> Option<Arrival> {
        let mut rest = self.rest.lock().unwrap_or_else(PoisonError::into_inner);
        let arrival = rest.arrival?;
        let left = &rest.bytes[rest.next..rest.end];
        let length_bytes = left.len().min(arrival.segment_bytes);
        buffer[..length_bytes].copy_from_slice(&left[..length_bytes]);
        rest.next += length_bytes;
        if rest.next == rest.end {
            rest.arrival = None;
            self.has_more.store(false, Ordering::Release);
        }
        Some(Arrival { length_bytes, ..arrival })
    }

    /// The first of what the kernel has written into `buffer`; keeps that buffer with the rest and gives another for it.
    fn first(&self, arrival: Arrival, buffer: &mut Vec<u8>) -> Arrival {
        let read_bytes = arrival.length_bytes.min(buffer.len());
        if arrival.segment_bytes == 0 || read_bytes <= arrival.segment_bytes {
            return arrival;
        }
        let mut rest = self.rest.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(&mut rest.bytes, buffer);
        // A reader's buffer may be shorter than the longest datagram.
        buffer.resize(DATAGRAM_BYTES_MAX, 0);
        let length_bytes = arrival.segment_bytes;
        buffer[..length_bytes].copy_from_slice(&rest.bytes[..length_bytes]);
        (rest.next, rest.end, rest.arrival) = (length_bytes, read_bytes, Some(arrival));
        self.read_at_ns.store(clock::now().ns(), Ordering::Relaxed);
        self.has_more.store(true, Ordering::Release);
        Arrival { length_bytes, ..arrival }
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use noctule_sys::datagram_batch::{Run, send_runs};

    use super::*;

    fn pair() -> (UdpSocket, UdpSocket, SocketAddr) {
        let (from, to) = (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
        datagram::enable_receive_offload(&to).unwrap();
        let address = to.local_addr().unwrap();
        (from, to, address)
    }

    fn send(from: &UdpSocket, to: SocketAddr, bytes: &[u8], segment_bytes: usize) {
        assert_eq!(send_runs(from, &[Run { to, bytes, segment_bytes, octet: 0 }]).unwrap(), 1);
    }

    #[test]
    fn datagrams_that_the_kernel_joins_come_one_by_one_and_before_what_came_later() {
        let (from, socket, to) = pair();
        let bytes: Vec<u8> = (0..=250).collect();
        send(&from, to, &bytes, 100);
        send(&from, to, &[7; 300], 100);
        send(&from, to, &[], 1);
        let (offload, mut buffer) = (ReceiveOffload::new(), vec![0; DATAGRAM_BYTES_MAX]);
        let mut receive = || {
            let arrival = offload.receive(&socket, &mut buffer).unwrap()?;
            assert_eq!(arrival.from, from.local_addr().unwrap());
            Some((buffer[..arrival.length_bytes].to_vec(), offload.has_more()))
        };
        assert_eq!(receive().unwrap(), (bytes[..100].to_vec(), true), "which needs Linux 5.0");
        assert_eq!(receive().unwrap(), (bytes[100..200].to_vec(), true));
        assert_eq!(receive().unwrap(), (bytes[200..].to_vec(), false));
        for has_more in [true, true, false] {
            assert_eq!(receive().unwrap(), (vec![7; 100], has_more));
        }
        assert_eq!(receive().unwrap(), (vec![], false));
        assert_eq!(receive(), None);
    }

    #[test]
    fn a_wait_ends_at_once_for_what_the_socket_no_longer_has() {
        let (from, socket, to) = pair();
        send(&from, to, &[1; 8], 4);
        let (offload, mut buffer) = (ReceiveOffload::new(), vec![0; DATAGRAM_BYTES_MAX]);
        assert!(offload.receive_blocking(&socket, &mut buffer).unwrap().is_some());
        assert!(!datagram::wait(&socket, 0).unwrap() && offload.wait(&socket, 0).unwrap());
        assert!(offload.receive_blocking(&socket, &mut buffer).unwrap().is_some());
        assert!(!offload.wait(&socket, 0).unwrap());
    }

    #[test]
    fn what_was_handled_waits_for_the_rest_of_what_was_joined_but_not_long_and_not_for_a_whole_batch() {
        let (from, socket, to) = pair();
        send(&from, to, &[1; 300], 100);
        let (offload, mut buffer) = (ReceiveOffload::new(), vec![0; DATAGRAM_BYTES_MAX]);
        let before = clock::now();
        assert!(offload.receive(&socket, &mut buffer).unwrap().is_some());
        offload.note_handled(WAITING_MAX - 1);
        assert!(offload.may_wait(before) && !offload.may_wait(clock::now() + WAIT_MAX), "two are left");
        offload.note_handled(1);
        assert!(!offload.may_wait(before));
        assert_eq!(offload.left(), BATCH_LIMIT - WAITING_MAX);
        offload.note_acknowledged();
        assert!(offload.may_wait(before));
        assert_eq!(offload.left(), BATCH_LIMIT);
        for may_wait in [true, false] {
            assert!(offload.receive(&socket, &mut buffer).unwrap().is_some());
            assert_eq!(offload.may_wait(before), may_wait);
        }
    }
}
