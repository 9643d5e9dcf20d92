//! The line to the companion computer: a serial device or UDP.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use noctule_sys::clock::timespec;
use rustix::event::{PollFd, PollFlags, poll};

/// Bytes read at once.
pub(crate) const READ_BYTES: usize = 4096;
/// How long one write may wait for room; what does not go out by then is lost, as on a board.
const WRITE_WAIT: Duration = Duration::from_millis(20);

/// Why there is no line.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    /// The device cannot be opened or set up.
    #[error("{device}: {why}; name a serial device or pseudo-terminal that you may read and write")]
    Device {
        /// Its path.
        device: String,
        /// The system's error.
        why: io::Error,
    },
    /// No socket.
    #[error("no UDP socket to {to}: {why}")]
    Socket {
        /// The other side.
        to: SocketAddr,
        /// The system's error.
        why: io::Error,
    },
}

/// An open line.
#[derive(Debug)]
pub enum Line {
    /// Bytes.
    Serial(std::fs::File),
    /// Datagrams to and from one address.
    Udp(UdpSocket),
}

impl Line {
    /// Opens a serial device at `baud`, raw and without waiting.
    ///
    /// # Errors
    ///
    /// The device is not there, is no terminal, or has no such speed.
    pub fn serial(path: &str, baud: u32) -> Result<Line, LineError> {
        let open = noctule_sys::serial::open(path.as_ref(), baud);
        open.map(Line::Serial).map_err(|why| LineError::Device { device: path.to_owned(), why })
    }

    /// Datagrams to and from `to`.
    ///
    /// # Errors
    ///
    /// The system has no socket to give.
    pub fn udp(to: SocketAddr) -> Result<Line, LineError> {
        let open = || {
            let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
            let socket = UdpSocket::bind(any)?;
            socket.connect(to)?;
            socket.set_nonblocking(true)?;
            Ok(socket)
        };
        open().map(Line::Udp).map_err(|why| LineError::Socket { to, why })
    }

    /// Waits until there is something to read, at most `timeout_ns`.
    pub(crate) fn wait(&self, timeout_ns: i64) {
        let mut ready = [PollFd::from_borrowed_fd(self.fd(), PollFlags::IN)];
        // An interrupted wait is a short one.
        let _ = poll(&mut ready, Some(&timespec(timeout_ns.max(0))));
    }

    /// Bytes that are there; `None` if there are none.
    ///
    /// # Errors
    ///
    /// The line is gone.
    pub(crate) fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        let read = match self {
            Line::Serial(file) => rustix::io::read(file, buffer).map_err(io::Error::from),
            Line::Udp(socket) => socket.recv(buffer),
        };
        match read {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(length) => Ok(Some(length)),
            // Refused: no socket is bound yet at the other end.
            Err(why)
                if matches!(why.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::ConnectionRefused) =>
            {
                Ok(None)
            }
            Err(why) if why.kind() == io::ErrorKind::Interrupted => Ok(None),
            Err(why) => Err(why),
        }
    }

    /// Writes all of it, or loses what does not go out in time.
    ///
    /// # Errors
    ///
    /// The line is gone.
    pub(crate) fn write(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let written = match self {
                Line::Serial(file) => rustix::io::write(file, bytes).map_err(io::Error::from),
                Line::Udp(socket) => socket.send(bytes),
            };
            match written {
                Ok(length) => bytes = &bytes[length..],
                Err(why) if why.kind() == io::ErrorKind::ConnectionRefused => return Ok(()),
                Err(why) if why.kind() == io::ErrorKind::WouldBlock => {
                    let mut ready = [PollFd::from_borrowed_fd(self.fd(), PollFlags::OUT)];
                    let wait = timespec(WRITE_WAIT.as_nanos() as i64);
                    if poll(&mut ready, Some(&wait))? == 0 {
                        return Ok(());
                    }
                }
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                Err(why) => return Err(why),
            }
        }
        Ok(())
    }

    fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Line::Serial(file) => file.as_fd(),
            Line::Udp(socket) => socket.as_fd(),
        }
    }
}
