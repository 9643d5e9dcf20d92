//! Floor: one Unix datagram per message, on abstract addresses that vanish with their owner.

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::AsFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use noctule_peer::{Deliver, Description, Open, Outgoing, Peer, PeerError, Transport, Wait};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::SendFlags;

use super::socket::{enlarge_queues, receive, start_pulse, try_receive};

/// Longest payload that fits the default send buffer of 212,992 bytes after the kernel's bookkeeping.
const PAYLOAD_BYTES_MAX: u64 = 200_000;

/// Messages set aside while a reader's queue is full. Beyond it the sender waits for the reader alone.
const BACKLOG_MAX: usize = 4096;

pub(super) struct Unix;

struct Sockets {
    datagrams: Datagrams,
    open: Open,
}

/// One node's sockets.
struct Datagrams {
    inbound: UnixDatagram,
    outbound: Vec<UnixDatagram>,
    buffer: Vec<u8>,
    /// Messages that came while this node waited to send: the kernel's queue has ten datagrams, and two nodes that fill each other's would wait for
    /// ever.
    backlog: VecDeque<Vec<u8>>,
}

impl Peer for Unix {
    fn describe(&self) -> Description {
        super::description("unix", "unix", &[Wait::Spin, Wait::Block, Wait::Hybrid], PAYLOAD_BYTES_MAX)
    }

    fn open(&self, open: &Open) -> Result<Box<dyn Transport>, PeerError> {
        let inbound = match abstract_name(open) {
            Some(name) => UnixDatagram::bind_addr(&address(&name)?),
            None => UnixDatagram::unbound(),
        };
        let inbound = inbound.map_err(|e| PeerError::of("cannot bind a Unix datagram socket", e))?;
        Ok(Box::new(Sockets { datagrams: Datagrams::new(inbound, open.payload_bytes), open: open.clone() }))
    }
}

fn abstract_name(open: &Open) -> Option<String> {
    let topic = open.subscribe.as_ref()?;
    Some(format!("noctule-{}-{topic}-{}", open.session, open.node))
}

fn address(name: &str) -> Result<SocketAddr, PeerError> {
    SocketAddr::from_abstract_name(name).map_err(|e| PeerError::of("cannot name a Unix socket", e))
}

impl Datagrams {
    fn new(inbound: UnixDatagram, payload_bytes: usize) -> Self {
        let buffer = vec![0xA5; payload_bytes + 1];
        Self { inbound, outbound: Vec::new(), buffer, backlog: VecDeque::new() }
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), PeerError> {
        for reader in 0..self.outbound.len() {
            loop {
                match rustix::net::send(&self.outbound[reader], bytes, SendFlags::DONTWAIT) {
                    Ok(_) => break,
                    Err(Errno::INTR) => {}
                    Err(Errno::AGAIN) => self.wait_for_room(reader)?,
                    Err(error) => return Err(PeerError::of("cannot send the datagram", error)),
                }
            }
        }
        Ok(())
    }

    /// Waits until a reader may take more, or for a message of its own to set aside.
    fn wait_for_room(&mut self, reader: usize) -> Result<(), PeerError> {
        let is_full = self.backlog.len() >= BACKLOG_MAX;
        let inbound = if is_full { PollFlags::empty() } else { PollFlags::IN };
        let mut waits = [
            PollFd::from_borrowed_fd(self.outbound[reader].as_fd(), PollFlags::OUT),
            PollFd::from_borrowed_fd(self.inbound.as_fd(), inbound),
        ];
        match poll(&mut waits, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(PeerError::of("cannot wait for the reader", error)),
        }
        if !is_full && let Some(count) = try_receive(&self.inbound, &mut self.buffer)? {
            self.backlog.push_back(self.buffer[..count].to_vec());
        }
        Ok(())
    }

    fn try_receive(&mut self, deliver: &mut Deliver<'_>) -> Result<usize, PeerError> {
        if let Some(message) = self.backlog.pop_front() {
            deliver(&message);
            return Ok(1);
        }
        let Some(count) = try_receive(&self.inbound, &mut self.buffer)? else {
            return Ok(0);
        };
        deliver(&self.buffer[..count]);
        Ok(1)
    }
}

impl Transport for Sockets {
    fn address(&self) -> Option<String> {
        abstract_name(&self.open)
    }

    fn connect(&mut self, readers: &[String]) -> Result<BTreeMap<String, String>, PeerError> {
        for reader in readers {
            let failed = |e| PeerError::of(&format!("cannot connect to the Unix socket @{reader}"), e);
            let socket = UnixDatagram::unbound().map_err(failed)?;
            socket.connect_addr(&address(reader)?).map_err(failed)?;
            enlarge_queues(&socket, &self.open);
            self.datagrams.outbound.push(socket);
        }
        start_pulse()?;
        Ok(enlarge_queues(&self.datagrams.inbound, &self.open))
    }

    fn send(&mut self, message: &mut Outgoing) -> Result<(), PeerError> {
        self.datagrams.send(message.bytes())
    }

    fn try_receive(&mut self, deliver: &mut Deliver<'_>) -> Result<usize, PeerError> {
        self.datagrams.try_receive(deliver)
    }

    fn receive(&mut self, timeout: Duration, deliver: &mut Deliver<'_>) -> Result<usize, PeerError> {
        let Datagrams { inbound, buffer, backlog, .. } = &mut self.datagrams;
        if !backlog.is_empty() {
            return self.try_receive(deliver);
        }
        let Some(count) = receive(&*inbound, buffer, timeout)? else { return Ok(0) };
        deliver(&buffer[..count]);
        Ok(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// More than the kernel queues, so that each of two nodes has to wait for the other.
    const MESSAGES: usize = 1000;

    #[test]
    fn two_nodes_that_send_before_they_receive_do_not_wait_for_each_other() {
        let (a, b) = UnixDatagram::pair().unwrap();
        let exchange = |socket: UnixDatagram| {
            let mut node = Datagrams::new(socket.try_clone().unwrap(), 16);
            node.outbound.push(socket);
            for number in 0..MESSAGES {
                node.send(&number.to_le_bytes()).unwrap();
            }
            let mut received = Vec::new();
            while received.len() < MESSAGES {
                node.try_receive(&mut |message| received.push(message.to_vec())).unwrap();
            }
            received
        };
        let sent: Vec<Vec<u8>> = (0..MESSAGES).map(|number| number.to_le_bytes().to_vec()).collect();
        let other = std::thread::spawn(move || exchange(b));
        assert_eq!(exchange(a), sent);
        assert_eq!(other.join().unwrap(), sent);
    }
}
