//! What the socket floors share: waiting with a timeout, and room in the kernel's queues.

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::time::Duration;

use noctule_peer::{Open, PeerError};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, sockopt};

/// From here on a timeout is left to the socket (SO_RCVTIMEO counts in ticks of up to 10 ms), so
/// that a blocking receive is one system call, as in the smallest program that could do it.
const SOCKET_TIMEOUT_MIN: Duration = Duration::from_millis(20);

/// Receives with a timeout, remembering what the socket's own timeout is.
#[derive(Default)]
pub(super) struct TimedReceive {
    set: Option<Duration>,
}

impl TimedReceive {
    /// One receive call; `None` if nothing came in time.
    pub(super) fn receive(
        &mut self,
        socket: impl AsFd + Copy,
        buffer: &mut [u8],
        timeout: Duration,
    ) -> Result<Option<usize>, PeerError> {
        if timeout >= SOCKET_TIMEOUT_MIN {
            if self.set != Some(timeout) {
                sockopt::set_socket_timeout(socket, sockopt::Timeout::Recv, Some(timeout))
                    .map_err(|e| PeerError::of("cannot set the receive timeout", e))?;
                self.set = Some(timeout);
            }
            return now_or_never(rustix::net::recv(socket, buffer, RecvFlags::empty()));
        }
        let limit = noctule_sys::clock::timespec(timeout.as_nanos() as i64);
        match poll(&mut [PollFd::new(&socket, PollFlags::IN)], Some(&limit)) {
            Ok(0) | Err(Errno::INTR) => Ok(None),
            Ok(_) => try_receive(socket, buffer),
            Err(error) => Err(PeerError::of("cannot wait for the socket", error)),
        }
    }
}

/// One receive call that does not wait.
#[inline]
pub(super) fn try_receive(
    socket: impl AsFd,
    buffer: &mut [u8],
) -> Result<Option<usize>, PeerError> {
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
pub(super) fn enlarge_queues(socket: impl AsFd + Copy, open: &Open) -> BTreeMap<String, String> {
    // The kernel charges about twice a datagram's size, and at least 768 bytes.
    let wanted_bytes = (open.payload_bytes + 1024) * 2 * open.window as usize;
    let wanted_bytes = wanted_bytes.clamp(1 << 18, 1 << 27);
    // The forced form passes net.core.*mem_max, but only for root; the plain one is the fallback.
    if sockopt::set_socket_recv_buffer_size_force(socket, wanted_bytes).is_err() {
        let _ = sockopt::set_socket_recv_buffer_size(socket, wanted_bytes);
    }
    let _ = sockopt::set_socket_send_buffer_size(socket, wanted_bytes);
    let granted =
        |size: rustix::io::Result<usize>| size.map_or("unknown".into(), |size| size.to_string());
    BTreeMap::from([
        (
            "receive_buffer_bytes".into(),
            granted(sockopt::socket_recv_buffer_size(socket)),
        ),
        (
            "send_buffer_bytes".into(),
            granted(sockopt::socket_send_buffer_size(socket)),
        ),
    ])
}
