//! Packets of a connection between two nodes of this host, as they come.

use std::io;

use noctule_discovery::NodeId;
use noctule_sys::local_socket::{LocalSocket, Packet as Received};
use rustix::fd::OwnedFd;

use crate::node::ring_handshake::Packet;

/// Result of reading a connection.
pub(super) enum Arrival {
    Nothing,
    Packet(NodeId, Packet, Vec<OwnedFd>),
    /// The other process is gone, or does not keep to the protocol.
    End,
}

/// Takes the next packet of a connection.
pub(super) fn take(socket: &LocalSocket, buffer: &mut [u8]) -> Arrival {
    match socket.receive(buffer) {
        Ok(Received { length_bytes, mut descriptors, truncated: false, descriptors_lost })
            if length_bytes > 0 =>
        {
            if descriptors_lost {
                // Half of them are none; the packet says what they were for.
                descriptors.clear();
            }
            match Packet::decode(&buffer[..length_bytes]) {
                Some((from, packet)) => Arrival::Packet(from, packet, descriptors),
                None => Arrival::End,
            }
        }
        Ok(_) => Arrival::End,
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
            Arrival::Nothing
        }
        Err(_) => Arrival::End,
    }
}
