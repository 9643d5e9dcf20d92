//! A TCP port: each message is preceded by its length, u16 little-endian.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use noctule_xrce::ClientAddress;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::sockopt;

use crate::line::{Line, Port, Sent, now};

/// Connections at once; more are closed at once.
pub const CONNECTIONS_MAX: usize = 256;
/// Bytes that wait for a connection that does not take them.
const UNSENT_BYTES_MAX: usize = 256 << 10;
/// Bytes read in a row from one connection.
const READ_BYTES: usize = 16 << 10;

/// The sending side of all connections.
#[derive(Debug, Default)]
pub(crate) struct TcpPort {
    connections: HashMap<u64, Outgoing>,
}

#[derive(Debug)]
struct Outgoing {
    stream: Arc<TcpStream>,
    unsent: Vec<u8>,
}

/// Work on the sending side that the driver asks for.
impl TcpPort {
    /// Sends what waits; whether nothing is left. An error ends the connection where it is read.
    fn flush(&mut self, number: u64) -> bool {
        let Some(connection) = self.connections.get_mut(&number) else { return true };
        while !connection.unsent.is_empty() {
            match (&*connection.stream).write(&connection.unsent) {
                Ok(0) => return false,
                Ok(count) => drop(connection.unsent.drain(..count)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        true
    }
}

impl Port for TcpPort {
    fn send(&mut self, to: ClientAddress, message: &[u8]) -> Sent {
        let ClientAddress::Connection(number) = to else { return Sent::Done };
        let Some(connection) = self.connections.get_mut(&number) else { return Sent::Done };
        let Ok(length) = u16::try_from(message.len()) else { return Sent::Done };
        if connection.unsent.len() + message.len() + 2 > UNSENT_BYTES_MAX {
            return Sent::Blocked;
        }
        connection.unsent.extend(length.to_le_bytes());
        connection.unsent.extend_from_slice(message);
        if self.flush(number) { Sent::Done } else { Sent::Blocked }
    }
}

/// The driver of a TCP port.
#[derive(Debug)]
pub(crate) struct TcpDriver {
    listener: TcpListener,
    connections: HashMap<u64, Incoming>,
    next: u64,
}

#[derive(Debug)]
struct Incoming {
    stream: Arc<TcpStream>,
    received: Vec<u8>,
}

/// The sending side, shared between the line and its thread.
#[derive(Debug, Default, Clone)]
pub(crate) struct SharedTcpPort(Arc<std::sync::Mutex<TcpPort>>);

impl SharedTcpPort {
    fn with<T>(&self, work: impl FnOnce(&mut TcpPort) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }
}

impl Port for SharedTcpPort {
    fn send(&mut self, to: ClientAddress, message: &[u8]) -> Sent {
        self.with(|port| port.send(to, message))
    }
}

impl TcpDriver {
    /// Listens on a port of all interfaces; 0 takes a free one.
    pub(crate) fn open(port: u16) -> io::Result<TcpDriver> {
        // With SO_REUSEADDR, so that connections of a gateway before do not keep the port; IPv6, too, where the host has it.
        let listener =
            TcpListener::bind((Ipv6Addr::UNSPECIFIED, port)).or_else(|error| match error.kind() {
                io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied => Err(error),
                _ => TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)),
            })?;
        listener.set_nonblocking(true)?;
        Ok(TcpDriver { listener, connections: HashMap::new(), next: 1 })
    }

    pub(crate) fn port(&self) -> u16 {
        self.listener.local_addr().map_or(0, |address| address.port())
    }

    /// Reads until the line is stopped.
    pub(crate) fn run(mut self, line: &Arc<Line>, port: &SharedTcpPort) {
        let mut buffer = vec![0; READ_BYTES];
        while !line.is_stopped() {
            let timeout = line.tick();
            let waiting = self.wait(line, port, timeout.as_ref());
            line.take_kick();
            while let Ok((stream, _)) = self.listener.accept() {
                self.accept(stream, port);
            }
            for (number, is_readable, is_writable) in waiting {
                if is_writable && port.with(|port| port.flush(number)) {
                    line.handle_unblocked(ClientAddress::Connection(number));
                }
                if is_readable && !self.read(number, &mut buffer, line) {
                    self.connections.remove(&number);
                    port.with(|port| port.connections.remove(&number));
                    line.handle_lost(ClientAddress::Connection(number));
                }
            }
        }
    }

    /// Waits, and says of which connections something is there or can be sent.
    fn wait(
        &self,
        line: &Line,
        port: &SharedTcpPort,
        timeout: Option<&rustix::event::Timespec>,
    ) -> Vec<(u64, bool, bool)> {
        let mut numbers = Vec::with_capacity(self.connections.len());
        let mut descriptors = vec![
            PollFd::from_borrowed_fd(line.kicked(), PollFlags::IN),
            PollFd::new(&self.listener, PollFlags::IN),
        ];
        for (number, connection) in &self.connections {
            let is_stuck = port.with(|port| {
                port.connections.get(number).is_some_and(|connection| !connection.unsent.is_empty())
            });
            let wanted = if is_stuck { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
            descriptors.push(PollFd::new(&*connection.stream, wanted));
            numbers.push(*number);
        }
        // A signal, or a time-out: look anew.
        let _ = poll(&mut descriptors, timeout);
        let came = descriptors[2..].iter().map(PollFd::revents);
        let reads = PollFlags::IN | PollFlags::HUP | PollFlags::ERR;
        let waiting = numbers.into_iter().zip(came);
        waiting
            .map(|(number, came)| (number, came.intersects(reads), came.contains(PollFlags::OUT)))
            .collect()
    }

    fn accept(&mut self, stream: TcpStream, port: &SharedTcpPort) {
        // However this process ends, the client notices it by a reset: what it sends next fails, instead of going nowhere, and it connects
        // again at once.
        let has_reset = sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).is_ok();
        let is_usable = has_reset && stream.set_nonblocking(true).is_ok() && stream.set_nodelay(true).is_ok();
        if !is_usable || self.connections.len() == CONNECTIONS_MAX {
            return;
        }
        let stream = Arc::new(stream);
        let outgoing = Outgoing { stream: Arc::clone(&stream), unsent: Vec::new() };
        port.with(|port| port.connections.insert(self.next, outgoing));
        self.connections.insert(self.next, Incoming { stream, received: Vec::new() });
        self.next += 1;
    }

    /// Takes what is there; false if the connection has ended.
    fn read(&mut self, number: u64, buffer: &mut [u8], line: &Arc<Line>) -> bool {
        let Some(connection) = self.connections.get_mut(&number) else { return true };
        let count = match (&*connection.stream).read(buffer) {
            Ok(0) => return false,
            Ok(count) => count,
            Err(error) => {
                return matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted);
            }
        };
        let arrived = now();
        // At most one message's beginning is kept, so this is at most 64 KiB and what was read.
        connection.received.extend_from_slice(&buffer[..count]);
        let mut rest = &connection.received[..];
        while let Some((length, behind)) = rest.split_first_chunk::<2>() {
            let Some(message) = behind.get(..usize::from(u16::from_le_bytes(*length))) else { break };
            line.handle_message(message, ClientAddress::Connection(number), arrived);
            rest = &behind[message.len()..];
        }
        let taken = connection.received.len() - rest.len();
        connection.received.drain(..taken);
        true
    }
}
