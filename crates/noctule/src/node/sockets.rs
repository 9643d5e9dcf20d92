//! A node's UDP sockets: its own, from which everything is sent, discovery's group's, and that of samples to groups.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};

use noctule_sys::datagram_batch::send_now;
use noctule_sys::{datagram, interface};
use rustix::net::sockopt::{
    set_ip_add_membership, set_ip_drop_membership, set_ip_multicast_if, set_ip_multicast_loop,
    set_socket_recv_buffer_size, set_socket_recv_buffer_size_force, set_socket_reuseaddr,
};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with};

/// Discovery's group (`docs/spec/discovery.md`).
pub(super) const GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 76, 67);
/// Port of the group in domain 0.
const GROUP_PORT: u16 = 7400;
/// Groups for samples: the first, and how many follow each other. A socket may join no more than 20 on Linux.
const FIRST_CHANNEL: Ipv4Addr = Ipv4Addr::new(239, 255, 76, 68);
/// Channels: groups that streams of samples share.
pub(super) const CHANNELS: u8 = 16;
/// Their port, behind the domain's others.
const CHANNEL_PORT: u16 = 9;
/// Ports that a domain takes: the group's, and from this far on those of nodes.
const PORTS_PER_DOMAIN: u16 = 10;
/// Ports tried before any is taken.
const NODE_PORTS: u16 = 8;
/// Domains that fit below port 65535.
pub(super) const DOMAIN_MAX: u32 = 5_000;
/// Asked of the kernel, so that a large sample fits: 8 MiB.
const RECEIVE_BUFFER_BYTES: usize = 8 << 20;

/// The sockets, and the interfaces that groups are joined on.
#[derive(Debug)]
pub(super) struct Sockets {
    pub(super) own: UdpSocket,
    pub(super) group: UdpSocket,
    /// Of samples to groups.
    pub(super) channels: UdpSocket,
    pub(super) port: u16,
    interfaces: Vec<Ipv4Addr>,
}

impl Sockets {
    /// Opens and joins. Interfaces are those that are up now; `only` restricts them.
    pub(super) fn open(domain: u32, only: Option<Ipv4Addr>) -> io::Result<Sockets> {
        let group_port = group_port(domain);
        let group = unbound()?;
        // Every node of this host binds it.
        set_socket_reuseaddr(&group, true)?;
        bind(&group, &SocketAddrV4::new(GROUP, group_port))?;
        let mut interfaces = interface::ipv4_addresses()?;
        interfaces.retain(|address| only.is_none_or(|only| *address == only));
        // One that does not do multicast is no reason to stay silent on the others.
        interfaces.retain(|address| set_ip_add_membership(&group, &GROUP, address).is_ok());
        let own = own_socket(domain, only)?;
        set_ip_multicast_loop(&own, true)?;
        if set_socket_recv_buffer_size_force(&own, RECEIVE_BUFFER_BYTES).is_err() {
            set_socket_recv_buffer_size(&own, RECEIVE_BUFFER_BYTES)?;
        }
        let (own, group) = (UdpSocket::from(own), UdpSocket::from(group));
        datagram::stamp_arrivals(&own)?;
        datagram::forbid_fragments(&own)?;
        group.set_nonblocking(true)?;
        let channels = channel_socket(domain)?;
        let port = own.local_addr()?.port();
        Ok(Sockets { own, group, channels, port, interfaces })
    }

    /// An address of this host at which the own socket hears.
    pub(super) fn own_address(&self) -> Ipv4Addr {
        match self.own.local_addr().map(|address| address.ip()) {
            Ok(IpAddr::V4(ip)) if !ip.is_unspecified() => ip,
            _ => Ipv4Addr::LOCALHOST,
        }
    }

    /// Sends to the group on every interface. A network that is down is no error: it may come back.
    pub(super) fn send_to_group(&self, domain: u32, bytes: &[u8]) {
        let to = SocketAddr::from((GROUP, group_port(domain)));
        for interface in &self.interfaces {
            if set_ip_multicast_if(&self.own, interface).is_ok() {
                let _ = send_now(&self.own, bytes, to);
            }
        }
    }

    /// Joins a channel, or leaves it, on every interface.
    pub(super) fn listen(&self, channel: u8, listens: bool) {
        let group = channel_group(channel);
        for interface in &self.interfaces {
            // What fails is not heard on that interface; its sender serves us by unicast.
            let _ = match listens {
                true => set_ip_add_membership(&self.channels, &group, interface),
                false => set_ip_drop_membership(&self.channels, &group, interface),
            };
        }
    }

    /// Sends to a channel: over loopback, to other hosts, or both.
    pub(super) fn send_to_channel(&self, domain: u32, (channel, reach): (u8, Reach), bytes: &[u8]) {
        let to = SocketAddr::from((channel_group(channel), group_port(domain) + CHANNEL_PORT));
        for interface in &self.interfaces {
            let wanted = if interface.is_loopback() { reach.here } else { reach.elsewhere };
            if wanted && set_ip_multicast_if(&self.own, interface).is_ok() {
                let _ = send_now(&self.own, bytes, to);
            }
        }
    }

    /// Whether a datagram is our own, come back.
    pub(super) fn is_own(&self, source: SocketAddr) -> bool {
        let here = matches!(source.ip(), IpAddr::V4(ip) if ip.is_loopback() || self.interfaces.contains(&ip));
        here && source.port() == self.port
    }

    /// Whether a datagram of the group came over a detour: from this host, but not over loopback, where
    /// the same datagram comes too.
    pub(super) fn is_detour(&self, source: SocketAddr) -> bool {
        let over_loopback = self.interfaces.iter().any(Ipv4Addr::is_loopback);
        matches!(source.ip(), IpAddr::V4(ip) if over_loopback && !ip.is_loopback() && self.interfaces.contains(&ip))
    }
}

/// Where a datagram goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum To {
    One(SocketAddr),
    /// Discovery's group, and who is not reached by it.
    Everyone,
    Channel(u8, Reach),
}

/// Where those are who read a channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reach {
    /// On this machine, at a loopback address.
    pub(super) here: bool,
    /// On other machines.
    pub(super) elsewhere: bool,
}

fn channel_group(channel: u8) -> Ipv4Addr {
    let [a, b, c, d] = FIRST_CHANNEL.octets();
    Ipv4Addr::new(a, b, c, d + channel % CHANNELS)
}

fn channel_socket(domain: u32) -> io::Result<UdpSocket> {
    let socket = unbound()?;
    // Every node of this host binds it.
    set_socket_reuseaddr(&socket, true)?;
    if set_socket_recv_buffer_size_force(&socket, RECEIVE_BUFFER_BYTES).is_err() {
        set_socket_recv_buffer_size(&socket, RECEIVE_BUFFER_BYTES)?;
    }
    bind(&socket, &SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, group_port(domain) + CHANNEL_PORT))?;
    let socket = UdpSocket::from(socket);
    datagram::only_joined_groups(&socket)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

fn group_port(domain: u32) -> u16 {
    GROUP_PORT + PORTS_PER_DOMAIN * domain.min(DOMAIN_MAX) as u16
}

/// Ports at which a static peer named without one may be.
pub(super) fn node_ports(domain: u32) -> impl Iterator<Item = u16> {
    let first = group_port(domain) + 1;
    first..first + NODE_PORTS
}

fn own_socket(domain: u32, only: Option<Ipv4Addr>) -> io::Result<rustix::fd::OwnedFd> {
    let address = only.unwrap_or(Ipv4Addr::UNSPECIFIED);
    for port in node_ports(domain).chain([0]) {
        let socket = unbound()?;
        match bind(&socket, &SocketAddrV4::new(address, port)) {
            Ok(()) => return Ok(socket),
            Err(rustix::io::Errno::ADDRINUSE) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(io::Error::from(io::ErrorKind::AddrInUse))
}

fn unbound() -> io::Result<rustix::fd::OwnedFd> {
    Ok(socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?)
}
