//! Floor: one UDP datagram per message over the kernel's loopback or a link.

use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::time::Duration;

use noctule_peer::{Deliver, Description, Open, Outgoing, Peer, PeerError, Transport, Wait};

use super::socket::{enlarge_queues, receive, start_pulse, try_receive, uninterrupted};

/// Largest UDP payload over IPv4: 65,535 − 20 − 8 (RFC 768, RFC 791).
const PAYLOAD_BYTES_MAX: u64 = 65_507;

pub(super) struct Udp;

struct Sockets {
    inbound: UdpSocket,
    outbound: Vec<UdpSocket>,
    open: Open,
    buffer: Vec<u8>,
}

impl Peer for Udp {
    fn describe(&self) -> Description {
        super::description("udp", "udp", &[Wait::Spin, Wait::Block, Wait::Hybrid], PAYLOAD_BYTES_MAX)
    }

    fn open(&self, open: &Open) -> Result<Box<dyn Transport>, PeerError> {
        Ok(Box::new(Sockets {
            inbound: bind(open)?,
            outbound: Vec::new(),
            open: open.clone(),
            // One byte more than a message: an overlong datagram must not look right.
            buffer: vec![0xA5; open.payload_bytes + 1],
        }))
    }
}

fn bind(open: &Open) -> Result<UdpSocket, PeerError> {
    let address = (open.bind_address.as_str(), 0);
    UdpSocket::bind(address).map_err(|e| PeerError::of(&format!("cannot bind to {}", open.bind_address), e))
}

impl Transport for Sockets {
    fn address(&self) -> Option<String> {
        self.open.subscribe.as_ref()?;
        self.inbound.local_addr().ok().map(|address| address.to_string())
    }

    fn connect(&mut self, readers: &[String]) -> Result<BTreeMap<String, String>, PeerError> {
        for reader in readers {
            let socket = bind(&self.open)?;
            socket.connect(reader).map_err(|e| PeerError::of(&format!("cannot connect to {reader}"), e))?;
            enlarge_queues(&socket, &self.open);
            self.outbound.push(socket);
        }
        start_pulse()?;
        Ok(enlarge_queues(&self.inbound, &self.open))
    }

    #[inline]
    fn send(&mut self, message: &mut Outgoing) -> Result<(), PeerError> {
        let bytes = message.bytes();
        for socket in &self.outbound {
            match uninterrupted(|| socket.send(bytes)) {
                Ok(_) => {}
                // The reader has gone or not come yet: UDP loses the message, and it is counted.
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {}
                Err(error) => return Err(PeerError::of("cannot send the datagram", error)),
            }
        }
        Ok(())
    }

    #[inline]
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
