//! Port of one side: a serial device, or UDP to one address.

use std::fs::File;
use std::io;
use std::net::UdpSocket;
use std::os::fd::{AsFd, BorrowedFd};

use noctule_peer::PeerError;
use noctule_sys::clock::timespec;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

/// How long a write may wait for room; what does not go out by then is lost, as on a board.
const WRITE_WAIT_NS: i64 = 20_000_000;

/// An open way to the other side. Nothing waits but [`Port::wait`].
#[derive(Debug)]
pub(super) enum Port {
    /// Bytes.
    Serial(File),
    /// Datagrams.
    Udp(UdpSocket),
}

impl Port {
    /// Opens a serial device, raw.
    ///
    /// # Errors
    /// It is not there, or no terminal.
    pub(super) fn serial(path: &str, baud: u32) -> Result<Port, PeerError> {
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = rustix::fs::open(path, flags, Mode::empty()).and_then(|file| {
            let mut settings = tcgetattr(&file)?;
            settings.make_raw();
            settings.set_speed(baud)?;
            tcsetattr(&file, OptionalActions::Flush, &settings)?;
            Ok(file)
        });
        opened
            .map(|file| Port::Serial(file.into()))
            .map_err(|e| PeerError::of(&format!("cannot open {path}"), e))
    }

    /// Datagrams to and from one address.
    ///
    /// # Errors
    /// No socket.
    pub(super) fn udp(from: &str, to: &str) -> Result<Port, PeerError> {
        let open = || {
            let socket = UdpSocket::bind((from, 0))?;
            socket.connect(to)?;
            socket.set_nonblocking(true)?;
            Ok(socket)
        };
        open().map(Port::Udp).map_err(|e: io::Error| PeerError::of(&format!("no UDP socket to {to}"), e))
    }

    /// Waits until there is something to read, at most `timeout_ns`.
    pub(super) fn wait(&self, timeout_ns: i64) {
        let mut ready = [PollFd::from_borrowed_fd(self.descriptor(), PollFlags::IN)];
        // An interrupted wait is a short one.
        let _ = poll(&mut ready, Some(&timespec(timeout_ns.max(0))));
    }

    /// How many bytes were there; 0 if none.
    ///
    /// # Errors
    /// The line is gone.
    pub(super) fn read(&self, buffer: &mut [u8]) -> Result<usize, PeerError> {
        let read = match self {
            Port::Serial(file) => rustix::io::read(file, buffer).map_err(io::Error::from),
            Port::Udp(socket) => socket.recv(buffer),
        };
        match read {
            Ok(0) => Err(PeerError("the line was unplugged".into())),
            Ok(count) => Ok(count),
            Err(error) if is_passing(&error) => Ok(0),
            Err(error) => Err(PeerError::of("cannot read the line", error)),
        }
    }

    /// Writes all of it, or loses what does not go out in time; returns how many bytes were lost.
    ///
    /// # Errors
    /// The line is gone.
    pub(super) fn write(&self, bytes: &[u8]) -> Result<usize, PeerError> {
        let mut left = bytes;
        while !left.is_empty() {
            let written = match self {
                Port::Serial(file) => rustix::io::write(file, left).map_err(io::Error::from),
                Port::Udp(socket) => socket.send(left),
            };
            match written {
                Ok(count) => left = &left[count..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let mut ready = [PollFd::from_borrowed_fd(self.descriptor(), PollFlags::OUT)];
                    if poll(&mut ready, Some(&timespec(WRITE_WAIT_NS))).unwrap_or(0) == 0 {
                        return Ok(left.len());
                    }
                }
                // No socket is bound at the other end yet: the datagram is lost.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => return Ok(0),
                Err(error) => return Err(PeerError::of("cannot write the line", error)),
            }
        }
        Ok(0)
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        match self {
            Port::Serial(file) => file.as_fd(),
            Port::Udp(socket) => socket.as_fd(),
        }
    }
}

/// Nothing is there, or no socket is bound at the other end yet.
fn is_passing(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, Interrupted, WouldBlock};
    matches!(error.kind(), WouldBlock | Interrupted | ConnectionRefused)
}
