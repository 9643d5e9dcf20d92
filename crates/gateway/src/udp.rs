//! A UDP port: any number of clients, each known by where its datagrams come from.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
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
pub(crate) struct UdpPort {
    socket: Arc<UdpSocket>,
    is_ipv6: bool,
}

impl Port for UdpPort {
    fn send(&mut self, to: ClientAddress, message: &[u8]) -> Sent {
        if let ClientAddress::Socket(address) = to {
            let address = match address {
                SocketAddr::V4(four) if self.is_ipv6 => (four.ip().to_ipv6_mapped(), four.port()).into(),
                as_it_is => as_it_is,
            };
            // UDP may lose it here as anywhere; what matters is repeated.
            let _ = self.socket.send_to(message, address);
        }
        Sent::Done
    }
}

/// The driver of a UDP port.
#[derive(Debug)]
pub(crate) struct UdpDriver {
    socket: Arc<UdpSocket>,
    /// Whether addresses of IPv4 are written as ones of IPv6.
    is_ipv6: bool,
    /// Receive requests for agents; not there if another program has the port for itself.
    discovery: Vec<UdpSocket>,
    port: u16,
}

impl UdpDriver {
    /// Opens a port of all interfaces; 0 takes a free one.
    pub(crate) fn open(port: u16) -> io::Result<UdpDriver> {
        let socket = any_socket(port)?;
        let is_ipv6 = socket.local_addr()?.is_ipv6();
        socket.set_nonblocking(true)?;
        datagram::stamp_arrivals(&socket)?;
        let port = socket.local_addr()?.port();
        Ok(UdpDriver { socket: Arc::new(socket), is_ipv6, discovery: discovery_sockets(), port })
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn sender(&self) -> Box<UdpPort> {
        Box::new(UdpPort { socket: Arc::clone(&self.socket), is_ipv6: self.is_ipv6 })
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
                line.handle_message(message, ClientAddress::Socket(plain(arrival.from)), arrived);
            }
            for discovery in &self.discovery {
                self.answer_discovery(discovery, &mut buffer, line);
            }
        }
    }

    fn answer_discovery(&self, discovery: &UdpSocket, buffer: &mut [u8], line: &Arc<Line>) {
        for _ in 0..BATCH {
            let Ok((length, from)) = discovery.recv_from(buffer) else { return };
            let addresses = interface::ipv4_addresses().unwrap_or_default();
            // A client that asks over an interface can reach the addresses of all of them, or will try the next.
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

/// An address of IPv4 as such, however the socket writes it: so clients are known and shown by it.
fn plain(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V6(six) => match six.ip().to_ipv4_mapped() {
            Some(four) => (four, six.port()).into(),
            None => address,
        },
        SocketAddr::V4(_) => address,
    }
}

/// The port of discovery: the group's, and this host's addresses', each with a socket of its own, so that nothing of the other
/// groups on that port, which is one of DDS, arrives here. Those that cannot be had are left out.
fn discovery_sockets() -> Vec<UdpSocket> {
    let (group, port) = DISCOVERY;
    let ours = interface::ipv4_addresses().unwrap_or_default();
    let addresses: Vec<Ipv4Addr> = ours.into_iter().chain([Ipv4Addr::LOCALHOST]).collect();
    let mut sockets: Vec<UdpSocket> = addresses
        .iter()
        .filter_map(|address| shared_socket(SocketAddr::from((*address, port))).ok())
        .collect();
    if let Ok(socket) = shared_socket(SocketAddr::from((group, port))) {
        for address in &addresses {
            // One that cannot do multicast is left out.
            let _ = socket.join_multicast_v4(&group, address);
        }
        sockets.push(socket);
    }
    sockets
}

/// A socket on an address that other programs may have as well.
fn shared_socket(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    rustix::net::bind(&socket, &address)?;
    let socket = UdpSocket::from(socket);
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// A socket of all addresses, IPv6's too where the host has it.
fn any_socket(port: u16) -> io::Result<UdpSocket> {
    let both = || -> io::Result<UdpSocket> {
        let socket = rustix::net::socket(AddressFamily::INET6, SocketType::DGRAM, None)?;
        sockopt::set_ipv6_v6only(&socket, false)?;
        rustix::net::bind(&socket, &SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)))?;
        Ok(UdpSocket::from(socket))
    };
    both().or_else(|error| match error.kind() {
        io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied => Err(error),
        // A host without IPv6.
        _ => UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port)),
    })
}
