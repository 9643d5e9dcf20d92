//! A node's sockets: its own, from which everything is sent, and those on which others find it.
//!
//! The own socket takes IPv4 and IPv6 alike where the host has both. Addresses are kept in the form of that socket
//! ([`Sockets::in_own_family`]), so that what came from an address can be sent to it as it is.
//! Interfaces come and go: groups are joined by interface number, anew whenever the kernel reports a change.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use noctule_sys::datagram::{self, Arrival};
use noctule_sys::datagram_batch::send_now;
use noctule_sys::interface::{self, Interface};
use noctule_sys::network_changes::NetworkChanges;
use rustix::fd::OwnedFd;
use rustix::net::sockopt::{
    set_ip_add_membership_with_ifindex, set_ip_drop_membership_with_ifindex,
    set_ip_multicast_if_with_ifindex, set_ip_multicast_loop, set_ipv6_add_membership,
    set_ipv6_drop_membership, set_ipv6_v6only, set_socket_recv_buffer_size,
    set_socket_recv_buffer_size_force, set_socket_reuseaddr,
};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with};

use super::directory::Directory;
use super::ports::{self, CHANNEL_PORT, DISCOVERY_PORT};
use super::receive_offload::ReceiveOffload;

/// Requested from the kernel, so that a large sample fits: 8 MiB.
const RECEIVE_BUFFER_BYTES: usize = 8 << 20;
/// The kernel chooses the own port anew so often: if a DDS program needs the port, or if a node of this host has the same number on another
/// address. Each try fails for DDS with a chance of 13 %.
const PORT_TRIES: usize = 16;

/// The sockets, and the interfaces that groups are joined on.
#[derive(Debug)]
pub(super) struct Sockets {
    pub(super) own: UdpSocket,
    /// Of the own socket.
    pub(super) offload: ReceiveOffload,
    pub(super) group: UdpSocket,
    pub(super) group_v6: Option<UdpSocket>,
    /// Of samples to groups.
    pub(super) channels: UdpSocket,
    /// The well-known port; the kernel gives a datagram to one of the nodes that have it.
    pub(super) well_known_port: UdpSocket,
    pub(super) directory: Directory,
    /// `None` where a sandbox forbids netlink: then interfaces are listed at start only.
    pub(super) changes: Option<NetworkChanges>,
    pub(super) port: u16,
    domain: u32,
    only: Option<Ipv4Addr>,
    /// Those that groups are joined on.
    interfaces: RwLock<Vec<Interface>>,
    /// Nodes of this host are reached by their local sockets.
    is_without_loopback: AtomicBool,
}

impl Sockets {
    /// Opens and joins. `only` restricts the node to the interface with this address, and to IPv4.
    pub(super) fn open(domain: u32, only: Option<Ipv4Addr>) -> io::Result<Sockets> {
        let (own, directory) = own_socket(domain, only)?;
        set_ip_multicast_loop(&own, true)?;
        if set_socket_recv_buffer_size_force(&own, RECEIVE_BUFFER_BYTES).is_err() {
            set_socket_recv_buffer_size(&own, RECEIVE_BUFFER_BYTES)?;
        }
        datagram::stamp_arrivals(&own)?;
        datagram::tell_octets(&own)?;
        datagram::forbid_fragments(&own)?;
        datagram::enable_receive_offload(&own)?;
        let local = own.local_addr()?;
        let group_v6 = if local.is_ipv6() { Some(group_socket_v6()?) } else { None };
        let sockets = Sockets {
            own,
            offload: ReceiveOffload::new(),
            group: shared(SocketAddrV4::new(ports::discovery_group(domain), DISCOVERY_PORT).into())?,
            group_v6,
            channels: channel_socket()?,
            well_known_port: shared(SocketAddr::new(unspecified(local.is_ipv6()), DISCOVERY_PORT))?,
            directory,
            changes: NetworkChanges::watch().ok(),
            port: local.port(),
            domain,
            only,
            interfaces: RwLock::default(),
            is_without_loopback: AtomicBool::new(false),
        };
        sockets.refresh(0)?;
        Ok(sockets)
    }

    /// Lists the interfaces again and joins the groups on what is new: discovery's, and the channels, a bit each. Whether
    /// anything is different.
    pub(super) fn refresh(&self, channels: u16) -> io::Result<bool> {
        let mut now = interface::list()?;
        if let Some(only) = self.only {
            now.retain(|interface| interface.ipv4.contains(&only));
            now.iter_mut().for_each(|interface| {
                interface.ipv4 = vec![only];
                interface.ipv6.clear();
            });
        }
        let before = self.interfaces().clone();
        for gone in before.iter().filter(|known| now.iter().all(|other| other.index != known.index)) {
            // The kernel counts a membership until it is given up, though the interface is no more.
            self.join(gone, false);
            self.listen_on(gone, channels, false);
        }
        for interface in &now {
            // One that does not do multicast is no reason to stay silent on the others. One that is joined stays so.
            self.join(interface, true);
            self.listen_on(interface, channels, true);
        }
        let over_loopback = now.iter().any(|each| each.is_loopback && !each.ipv4.is_empty());
        self.is_without_loopback.store(!over_loopback && self.only.is_none(), Ordering::Relaxed);
        let is_new = now != before;
        *self.interfaces.write().unwrap_or_else(PoisonError::into_inner) = now;
        Ok(is_new)
    }

    /// The name of an interface on which others may listen: any but loopback.
    pub(super) fn network(&self) -> Option<String> {
        self.interfaces()
            .iter()
            .find(|interface| !interface.is_loopback)
            .map(|interface| interface.name.clone())
    }

    fn join(&self, interface: &Interface, joins: bool) {
        let group = ports::discovery_group(self.domain);
        if !interface.ipv4.is_empty() {
            change_membership(&self.group, group, interface.index, joins);
        }
        if let Some(socket) = self.group_v6.as_ref().filter(|_| sends_v6(interface)) {
            let group = ports::discovery_group_v6(self.domain);
            let _ = match joins {
                true => set_ipv6_add_membership(socket, &group, interface.index),
                false => set_ipv6_drop_membership(socket, &group, interface.index),
            };
        }
    }

    /// Receives a datagram of the own socket without waiting; `None` if there is none.
    #[inline]
    pub(super) fn receive_own(&self, buffer: &mut Vec<u8>) -> io::Result<Option<Arrival>> {
        self.offload.receive(&self.own, buffer)
    }

    /// An address of this host at which the own socket receives.
    pub(super) fn own_address(&self) -> IpAddr {
        match self.own.local_addr().map(|address| address.ip()) {
            Ok(ip) if !ip.is_unspecified() => ip,
            Ok(IpAddr::V6(_)) => Ipv4Addr::LOCALHOST.to_ipv6_mapped().into(),
            _ => Ipv4Addr::LOCALHOST.into(),
        }
    }

    /// An address in the form in which the own socket knows it.
    pub(super) fn in_own_family(&self, address: SocketAddr) -> SocketAddr {
        match address {
            SocketAddr::V4(v4) if self.group_v6.is_some() => {
                SocketAddr::new(v4.ip().to_ipv6_mapped().into(), v4.port())
            }
            other => other,
        }
    }

    /// Sends to discovery's group on every interface. A network that is down is no error: it may come back.
    pub(super) fn send_to_group(&self, bytes: &[u8]) {
        let to = self.in_own_family(SocketAddr::from((ports::discovery_group(self.domain), DISCOVERY_PORT)));
        let interfaces = self.interfaces();
        for interface in interfaces.iter() {
            if let Some(address) = interface.ipv4.first()
                && self.send_from(interface.index, *address).is_ok()
            {
                let _ = send_now(&self.own, bytes, to);
            }
            if self.group_v6.is_some() && sends_v6(interface) {
                let group = ports::discovery_group_v6(self.domain);
                let to = SocketAddrV6::new(group, CHANNEL_PORT, 0, interface.index);
                let _ = send_now(&self.own, bytes, to.into());
            }
        }
        drop(interfaces);
        if self.is_without_loopback.load(Ordering::Relaxed) {
            self.directory
                .others(Some(self.domain))
                .into_iter()
                .for_each(|to| self.directory.send(to, bytes));
        }
    }

    /// Whether an address of this host is to be reached by the node's local socket, because there is no loopback: the kernel
    /// drops what is sent over one that is down, without an error.
    #[inline]
    pub(super) fn is_without_loopback(&self, to: SocketAddr) -> bool {
        self.is_without_loopback.load(Ordering::Relaxed) && to.ip().to_canonical().is_loopback()
    }

    /// Sends to a node of this host by its local socket.
    pub(super) fn send_without_loopback(&self, to: SocketAddr, bytes: &[u8]) {
        self.directory.send((self.domain, to.port()), bytes);
    }

    /// Joins a channel, or leaves it, on every interface.
    pub(super) fn listen(&self, channel: u8, listens: bool) {
        for interface in self.interfaces().iter() {
            self.listen_on(interface, 1 << channel, listens);
        }
    }

    fn listen_on(&self, interface: &Interface, channels: u16, listens: bool) {
        for channel in (0..ports::CHANNELS).filter(|channel| channels >> channel & 1 == 1) {
            let group = ports::channel_group(self.domain, channel);
            if !interface.ipv4.is_empty() {
                // What fails is not received on that interface; its sender serves us by unicast.
                change_membership(&self.channels, group, interface.index, listens);
            }
        }
    }

    /// Sends to a channel: over loopback, to other hosts, or both.
    pub(super) fn send_to_channel(&self, (channel, reach): (u8, Reach), bytes: &[u8]) {
        let group = ports::channel_group(self.domain, channel);
        let to = self.in_own_family(SocketAddr::from((group, CHANNEL_PORT)));
        for interface in self.interfaces().iter() {
            let wanted = if interface.is_loopback { reach.here } else { reach.elsewhere };
            if wanted
                && let Some(address) = interface.ipv4.first()
                && self.send_from(interface.index, *address).is_ok()
            {
                let _ = send_now(&self.own, bytes, to);
            }
        }
    }

    fn send_from(&self, index: u32, address: Ipv4Addr) -> rustix::io::Result<()> {
        set_ip_multicast_if_with_ifindex(&self.own, &Ipv4Addr::UNSPECIFIED, &address, index)
    }

    /// Whether a datagram is our own, come back.
    pub(super) fn is_own(&self, source: SocketAddr) -> bool {
        source.port() == self.port && self.is_of_this_host(source.ip())
    }

    /// Whether a datagram of the group came over a detour: from this host, but not over loopback, where
    /// the same datagram comes too.
    pub(super) fn is_detour(&self, source: SocketAddr) -> bool {
        let source = source.ip().to_canonical();
        let over_loopback = self.interfaces().iter().any(|each| each.is_loopback && !each.ipv4.is_empty());
        over_loopback && !source.is_loopback() && self.is_of_this_host(source)
    }

    fn is_of_this_host(&self, ip: IpAddr) -> bool {
        let ip = ip.to_canonical();
        let has = |interface: &Interface| match ip {
            IpAddr::V4(v4) => interface.ipv4.contains(&v4),
            IpAddr::V6(v6) => interface.ipv6.contains(&v6),
        };
        ip.is_loopback() || self.interfaces().iter().any(has)
    }

    fn interfaces(&self) -> RwLockReadGuard<'_, Vec<Interface>> {
        // It is replaced as a whole, so a panic elsewhere leaves it usable.
        self.interfaces.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where a datagram goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum To {
    One(SocketAddr),
    /// Discovery's group, and the nodes that it does not reach.
    Everyone,
    Channel(u8, Reach),
}

/// The addresses of the readers of a channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reach {
    /// On this machine, at a loopback address.
    pub(super) here: bool,
    /// On other machines.
    pub(super) elsewhere: bool,
}

/// Whether discovery uses IPv6 on an interface: on loopback only if there is no other.
fn sends_v6(interface: &Interface) -> bool {
    !interface.ipv6.is_empty() && (!interface.is_loopback || interface.ipv4.is_empty())
}

fn change_membership(socket: &UdpSocket, group: Ipv4Addr, index: u32, joins: bool) {
    let _ = match joins {
        // Fails where it is joined already, and where the interface does not do multicast.
        true => set_ip_add_membership_with_ifindex(socket, &group, &Ipv4Addr::UNSPECIFIED, index),
        false => set_ip_drop_membership_with_ifindex(socket, &group, &Ipv4Addr::UNSPECIFIED, index),
    };
}

/// At the unspecified address, for a group of one link cannot be bound without naming the interface; and at another port
/// than the well-known one, or it would take unicast datagrams from that.
fn group_socket_v6() -> io::Result<UdpSocket> {
    let socket = unbound(true)?;
    set_ipv6_v6only(&socket, true)?;
    bound(socket, SocketAddr::new(unspecified(true), CHANNEL_PORT))
}

fn channel_socket() -> io::Result<UdpSocket> {
    let socket = shared(SocketAddr::from((Ipv4Addr::UNSPECIFIED, CHANNEL_PORT)))?;
    if set_socket_recv_buffer_size_force(&socket, RECEIVE_BUFFER_BYTES).is_err() {
        set_socket_recv_buffer_size(&socket, RECEIVE_BUFFER_BYTES)?;
    }
    Ok(socket)
}

/// A socket that does not block, at an address that every node of this host binds.
fn shared(address: SocketAddr) -> io::Result<UdpSocket> {
    bound(unbound(address.is_ipv6())?, address)
}

fn bound(socket: OwnedFd, address: SocketAddr) -> io::Result<UdpSocket> {
    set_socket_reuseaddr(&socket, true)?;
    let socket = UdpSocket::from(socket);
    // Before it is bound, or it would receive for a moment what is for the groups of other domains.
    datagram::only_joined_groups(&socket)?;
    bind(&socket, &address)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// The own socket, at a port that the kernel chose, and its place in the host's directory.
fn own_socket(domain: u32, only: Option<Ipv4Addr>) -> io::Result<(UdpSocket, Directory)> {
    // Held until another is found, so that the kernel does not choose one of them again.
    let (mut given_back, mut tries) = (Vec::new(), 0);
    loop {
        tries += 1;
        let own = match own_socket_once(only) {
            Ok(own) if tries < PORT_TRIES && ports::is_needed_by_dds(own.local_addr()?.port()) => {
                given_back.push(own);
                continue;
            }
            Ok(own) => own,
            // A host whose range has no other port still has its nodes.
            Err(error) => given_back.pop().ok_or(error)?,
        };
        match Directory::enter(domain, own.local_addr()?.port()) {
            Ok(directory) => return Ok((own, directory)),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && tries < PORT_TRIES => {
                given_back.push(own);
            }
            Err(error) => return Err(error),
        }
    }
}

fn own_socket_once(only: Option<Ipv4Addr>) -> io::Result<UdpSocket> {
    // Without IPv6 in the kernel: IPv4 alone.
    if only.is_none()
        && let Ok(socket) = unbound(true)
        && bind(&socket, &SocketAddr::new(unspecified(true), 0)).is_ok()
    {
        return Ok(UdpSocket::from(socket));
    }
    let socket = unbound(false)?;
    bind(&socket, &SocketAddrV4::new(only.unwrap_or(Ipv4Addr::UNSPECIFIED), 0))?;
    Ok(UdpSocket::from(socket))
}

fn unspecified(is_v6: bool) -> IpAddr {
    if is_v6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() }
}

/// Of IPv6, then for IPv4 as well; or of IPv4.
fn unbound(is_v6: bool) -> io::Result<OwnedFd> {
    let family = if is_v6 { AddressFamily::INET6 } else { AddressFamily::INET };
    let socket = socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    if is_v6 {
        set_ipv6_v6only(&socket, false)?;
    }
    Ok(socket)
}
