//! A send before the send.
//!
//! After a pause of a second, the kernel's way out of a machine has left the caches: a request takes 25 µs
//! to leave where the reply, sent right after a receive, takes 9. A constant asymmetry cannot be seen
//! by any exchange, and half of it is the error of the estimate. So shortly before a request is stamped a
//! datagram goes to a socket of our own, the same way as far as the interface, and back in. Nobody
//! is woken by it, and it never leaves the machine.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

use crate::sync::wire::DATAGRAM_BYTES;

/// A socket that is connected to itself; none where there is no loopback interface.
#[derive(Debug)]
pub(super) struct WarmUp {
    socket: Option<UdpSocket>,
}

impl WarmUp {
    /// Over IPv4 or IPv6, as the requests will go.
    pub(super) fn new(like: IpAddr) -> WarmUp {
        let own: IpAddr = match like {
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        };
        let open = || {
            let socket = UdpSocket::bind((own, 0))?;
            socket.connect(socket.local_addr()?)?;
            socket.set_nonblocking(true)?;
            std::io::Result::Ok(socket)
        };
        WarmUp { socket: open().ok() }
    }

    /// Sends one datagram of a request's length and takes it back. Whether that succeeds is no matter.
    pub(super) fn run(&self) {
        if let Some(socket) = &self.socket {
            let _ = socket.send(&[0; DATAGRAM_BYTES]);
            let _ = socket.recv(&mut [0; DATAGRAM_BYTES]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_is_taken_back_so_that_nothing_piles_up() {
        let warm_up = WarmUp::new(Ipv4Addr::UNSPECIFIED.into());
        (0..1000).for_each(|_| warm_up.run());
        let left = warm_up.socket.unwrap().recv(&mut [0; DATAGRAM_BYTES]);
        assert_eq!(left.unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    }
}
