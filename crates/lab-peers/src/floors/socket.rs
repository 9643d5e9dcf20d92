//! Helpers of the socket floors: waiting with a timeout, and room in the kernel's queues.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use noctule_peer::{Open, PeerError};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, sockopt};

/// Waits at least this long need no timeout of their own: the pulse ends them.
const PULSE: Duration = Duration::from_millis(20);

/// Starts the pulse that ends blocking calls. Last thing before a floor is ready, because from then
/// on every call must expect `EINTR`.
pub(crate) fn start_pulse() -> Result<(), PeerError> {
    noctule_sys::pulse::interrupt_every(PULSE).map_err(|e| PeerError::of("cannot start the pulse", e))
}

/// Repeats a send that the pulse interrupted while it waited for room.
#[inline]
pub(crate) fn uninterrupted<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// `None` for a wait that the pulse ends, else the timeout as the kernel wants it.
pub(crate) fn own_timeout(timeout: Duration) -> Option<Duration> {
    (timeout < PULSE).then_some(timeout)
}

/// Receives within `timeout`; `None` if nothing came in time. With the usual timeout that is one
/// system call, as in the smallest program that could do it.
pub(crate) fn receive(
    socket: impl AsFd + Copy,
    buffer: &mut [u8],
    timeout: Duration,
) -> Result<Option<usize>, PeerError> {
    if own_timeout(timeout).is_none() {
        return now_or_never(rustix::net::recv(socket, buffer, RecvFlags::empty()));
    }
    if readable(socket, timeout)? { try_receive(socket, buffer) } else { Ok(None) }
}

/// True if something is there to be read within `timeout`.
pub(crate) fn readable(descriptor: impl AsFd, timeout: Duration) -> Result<bool, PeerError> {
    let limit = noctule_sys::clock::timespec(timeout.as_nanos() as i64);
    match poll(&mut [PollFd::new(&descriptor, PollFlags::IN)], Some(&limit)) {
        Ok(count) => Ok(count > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(PeerError::of("cannot wait for the descriptor", error)),
    }
}

/// One receive call that does not wait.
#[inline]
pub(crate) fn try_receive(socket: impl AsFd, buffer: &mut [u8]) -> Result<Option<usize>, PeerError> {
    now_or_never(rustix::net::recv(socket, buffer, RecvFlags::DONTWAIT))
}

type Received = Result<(usize, usize), Errno>;

fn now_or_never(result: Received) -> Result<Option<usize>, PeerError> {
    match result {
        Ok((count, _)) => Ok(Some(count)),
        // A refused datagram says that the reader was not there when an earlier one was sent; that
        // one is counted as lost.
        Err(Errno::AGAIN | Errno::INTR | Errno::CONNREFUSED) => Ok(None),
        Err(error) => Err(PeerError::of("cannot receive", error)),
    }
}

/// Asks for room for the whole window in both of the kernel's queues and says what it granted.
pub(crate) fn enlarge_queues(socket: impl AsFd + Copy, open: &Open) -> BTreeMap<String, String> {
    // The kernel charges about twice a datagram's size, and at least 768 bytes.
    let wanted_bytes = (open.payload_bytes + 1024) * 2 * open.window as usize;
    let wanted_bytes = wanted_bytes.clamp(1 << 18, 1 << 27);
    // The forced form passes net.core.*mem_max, but only for root; the plain one is the fallback.
    if sockopt::set_socket_recv_buffer_size_force(socket, wanted_bytes).is_err() {
        let _ = sockopt::set_socket_recv_buffer_size(socket, wanted_bytes);
    }
    let _ = sockopt::set_socket_send_buffer_size(socket, wanted_bytes);
    let granted = |size: rustix::io::Result<usize>| size.map_or("unknown".into(), |size| size.to_string());
    BTreeMap::from([
        ("receive_buffer_bytes".into(), granted(sockopt::socket_recv_buffer_size(socket))),
        ("send_buffer_bytes".into(), granted(sockopt::socket_send_buffer_size(socket))),
    ])
}
