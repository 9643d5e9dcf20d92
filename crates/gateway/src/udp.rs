//! A UDP port: any number of clients, each known by where its datagrams come from.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;

use noctule::sync::Arrivals;
use noctule_sys::{datagram, interface};
use noctule_xrce::ClientAddress;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{AddressFamily, SocketType, sockopt};

use crate::line::{Line, Port, Sent, stamp_at};

/// Where clients ask for agents (DDS-XRCE 1.0, "Agent discovery").
const DISCOVERY: (Ipv4Addr, u16) = (Ipv4Addr::new(239, 255, 0, 2), 7400);
/// Longest datagram there is.
const DATAGRAM_BYTES_MAX: usize = 65_536;
/// Datagrams taken in a row before time-outs are looked at.
const BATCH: usize = 64;

/// The sending side of the socket.
#[derive(Debug)]
pub(crate) struct UdpPort(Arc<UdpSocket>);

impl Port for UdpPort {
    fn send(&mut self, to: ClientAddress, message: &[u8]) -> Sent {
        if let ClientAddress::Socket(address) = to {
            // UDP may lose it here as anywhere; what matters is repeated.
            let _ = self.0.send_to(message, address);
        }
        Sent::Done
    }
}

/// What reads a UDP port.
#[derive(Debug)]
pub(crate) struct UdpDriver {
    socket: Arc<UdpSocket>,
    /// Hears who asks for agents; not there if another agent has the port for itself.
    discovery: Option<UdpSocket>,
    port: u16,
}

impl UdpDriver {
    /// Opens a port of all interfaces; 0 takes a free one.
    pub(crate) fn open(port: u16) -> io::Result<UdpDriver> {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port))?;
        socket.set_nonblocking(true)?;
        datagram::stamp_arrivals(&socket)?;
        let port = socket.local_addr()?.port();
        Ok(UdpDriver { socket: Arc::new(socket), discovery: discovery_socket().ok(), port })
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn sender(&self) -> Box<UdpPort> {
        Box::new(UdpPort(Arc::clone(&self.socket)))
    }

    /// Reads until the line is stopped.
    pub(crate) fn run(self, line: &Arc<Line>) {
        let mut buffer = vec![0; DATAGRAM_BYTES_MAX];
        let mut arrivals = Arrivals::new();
        while !line.is_stopped() {
            let timeout = line.tick();
            let kicked = line.kicked();
            let mut descriptors = vec![
                PollFd::from_borrowed_fd(kicked, PollFlags::IN),
                PollFd::new(&*self.socket, PollFlags::IN),
            ];
            descriptors.extend(self.discovery.iter().map(|socket| PollFd::new(socket, PollFlags::IN)));
            // A signal, or a time-out: look anew.
            let _ = poll(&mut descriptors, timeout.as_ref());
            line.take_kick();
            for _ in 0..BATCH {
                // An error is an ICMP message about a datagram sent before; the next is another matter.
                let Ok(Some(arrival)) = datagram::receive(&self.socket, &mut buffer) else { break };
                let arrived = stamp_at(arrivals.handle(arrival.realtime_ns).ns());
                let message = &buffer[..arrival.length_bytes.min(DATAGRAM_BYTES_MAX)];
                line.handle_message(message, ClientAddress::Socket(arrival.from), arrived);
            }
            if let Some(discovery) = &self.discovery {
                self.answer_discovery(discovery, &mut buffer, line);
            }
        }
    }

    fn answer_discovery(&self, discovery: &UdpSocket, buffer: &mut [u8], line: &Arc<Line>) {
        for _ in 0..BATCH {
            let Ok((length, from)) = discovery.recv_from(buffer) else { return };
            let addresses = interface::ipv4_addresses().unwrap_or_default();
            // Who asks over an interface can reach the addresses of all of them, or will try the next.
            let mut locators: Vec<_> = addresses.iter().map(|ip| (ip.octets(), self.port)).collect();
            if let SocketAddr::V4(asker) = from
                && asker.ip().is_loopback()
            {
                locators = vec![(Ipv4Addr::LOCALHOST.octets(), self.port)];
            }
            line.handle_discovery(&buffer[..length], ClientAddress::Socket(from), &locators);
        }
    }
}

fn discovery_socket() -> io::Result<UdpSocket> {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    let (group, port) = DISCOVERY;
    rustix::net::bind(&socket, &SocketAddr::from((group, port)))?;
    let socket = UdpSocket::from(socket);
    socket.set_nonblocking(true)?;
    for address in interface::ipv4_addresses()?.into_iter().chain([Ipv4Addr::LOCALHOST]) {
        // One that cannot do multicast is left out.
        let _ = socket.join_multicast_v4(&group, &address);
    }
    Ok(socket)
}
