//! Floor: one Unix datagram per message, on abstract addresses that vanish with their owner.

use std::collections::BTreeMap;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use noctule_peer::{Deliver, Description, Open, Outgoing, Peer, PeerError, Transport, Wait};

use super::socket::{enlarge_queues, receive, start_pulse, try_receive, uninterrupted};

/// What fits the default send buffer of 212,992 bytes after the kernel's bookkeeping.
const PAYLOAD_BYTES_MAX: u64 = 200_000;

pub(super) struct Unix;

struct Sockets {
    inbound: UnixDatagram,
    outbound: Vec<UnixDatagram>,
    open: Open,
    buffer: Vec<u8>,
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
        Ok(Box::new(Sockets {
            inbound: inbound.map_err(|e| PeerError::of("cannot bind a Unix datagram socket", e))?,
            outbound: Vec::new(),
            open: open.clone(),
            buffer: vec![0xA5; open.payload_bytes + 1],
        }))
    }
}

fn abstract_name(open: &Open) -> Option<String> {
    let topic = open.subscribe.as_ref()?;
    Some(format!("noctule-{}-{topic}-{}", open.session, open.node))
}

fn address(name: &str) -> Result<SocketAddr, PeerError> {
    SocketAddr::from_abstract_name(name).map_err(|e| PeerError::of("cannot name a Unix socket", e))
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
            self.outbound.push(socket);
        }
        start_pulse()?;
        Ok(enlarge_queues(&self.inbound, &self.open))
    }

    fn send(&mut self, message: &mut Outgoing) -> Result<(), PeerError> {
        let bytes = message.bytes();
        for socket in &self.outbound {
            uninterrupted(|| socket.send(bytes)).map_err(|e| PeerError::of("cannot send the datagram", e))?;
        }
        Ok(())
    }

    fn try_receive(&mut self, deliver: &mut Deliver<'_>) -> Result<usize, PeerError> {
        let Some(count) = try_receive(&self.inbound, &mut self.buffer)? else {
            return Ok(0);
        };
        deliver(&self.buffer[..count]);
        Ok(1)
    }

    fn receive(&mut self, timeout: Duration, deliver: &mut Deliver<'_>) -> Result<usize, PeerError> {
        let Some(count) = receive(&self.inbound, &mut self.buffer, timeout)? else { return Ok(0) };
        deliver(&self.buffer[..count]);
        Ok(1)
    }
}
