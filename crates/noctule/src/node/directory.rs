//! The nodes of this host, found without any network: by the names of their local sockets.
//!
//! # Problem
//!
//! Two processes of a machine without any interface, not even loopback, are to find each other. And a static peer names a
//! host, on which there may be any number of nodes: its one well-known port gives a datagram to one of them only.
//!
//! # Approach
//!
//! Every node has a datagram socket in the abstract namespace of `unix(7)`, named by domain and port. The kernel lists
//! them (`/proc/net/unix`), so they are a directory that no process keeps. Discovery's datagrams travel over it when loopback
//! does not work, and the node that took a datagram from the well-known port passes it on to all others.
//! Like UDP these sockets lose what does not fit; discovery repeats. Bytes: `docs/spec/discovery.md`.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as LocalAddress, UnixDatagram};

/// Before the domain in a name.
const PREFIX: &str = "noctule-host/";
/// "I send this myself."
const OWN: u8 = 0;
/// "This came to the well-known port, from the address that follows."
const FORWARDED: u8 = 1;
/// Address and port of a forwarded datagram, and the interface if the address is valid on one link only.
const SOURCE_BYTES: usize = 16 + 2 + 4;
/// Nodes of a host that are sent to.
const NODES_LIMIT: usize = 4096;

/// A node's local socket.
#[derive(Debug)]
pub(super) struct Directory {
    socket: UnixDatagram,
    domain: u32,
    port: u16,
}

/// The nodes on this host: domain and port.
pub(super) type Entry = (u32, u16);

impl Directory {
    /// Enters this node.
    ///
    /// # Errors
    /// `AddrInUse` if a node of this domain has the same port, bound to another address.
    pub(super) fn enter(domain: u32, port: u16) -> io::Result<Directory> {
        let socket = UnixDatagram::bind_addr(&address((domain, port))?)?;
        socket.set_nonblocking(true)?;
        Ok(Directory { socket, domain, port })
    }

    /// Whether a datagram that came to the well-known port is for nodes of another domain; not known of a sealed one.
    pub(super) fn is_of_another_domain(&self, datagram: &[u8]) -> bool {
        noctule_discovery::domain(datagram).is_some_and(|domain| domain != self.domain)
    }

    /// All nodes of this host but this one; those of one domain, or of all.
    pub(super) fn others(&self, domain: Option<u32>) -> Vec<Entry> {
        // Of this thread's namespace. Where the file cannot be read no node is found.
        let listed = std::fs::read_to_string("/proc/thread-self/net/unix").unwrap_or_default();
        let mut others = entries(&listed);
        others.retain(|entry| {
            *entry != (self.domain, self.port) && domain.is_none_or(|domain| entry.0 == domain)
        });
        others.truncate(NODES_LIMIT);
        others
    }

    /// Sends one of this node's own datagrams to another node of this host.
    pub(super) fn send(&self, to: Entry, datagram: &[u8]) {
        let mut bytes = vec![OWN];
        bytes.extend_from_slice(datagram);
        self.send_packet(to, &bytes);
    }

    /// Passes a datagram that came to the well-known port on to other nodes of this host.
    pub(super) fn forward(&self, to: &[Entry], source: SocketAddr, datagram: &[u8]) {
        let mut bytes = encode_source(source);
        bytes.extend_from_slice(datagram);
        to.iter().for_each(|to| self.send_packet(*to, &bytes));
    }

    fn send_packet(&self, to: Entry, bytes: &[u8]) {
        // A node that has gone, or does not keep up, does not get it: as with UDP.
        if let Ok(to) = address(to) {
            let _ = self.socket.send_to_addr(bytes, &to);
        }
    }

    /// The next datagram that is there: where it came from, whether it was forwarded, and its bytes in `buffer`.
    pub(super) fn receive<'a>(&self, buffer: &'a mut [u8]) -> io::Result<Option<Received<'a>>> {
        match self.socket.recv_from(buffer) {
            Ok((length, from)) => Ok(Some(decode(&mut buffer[..length], &from))),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// A datagram of another node of this host.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Received<'a> {
    /// Its own; the address is where its UDP socket would be on loopback.
    Own(SocketAddr, &'a mut [u8]),
    /// One that it took from the well-known port, and where that came from.
    Forwarded(SocketAddr, &'a mut [u8]),
    /// Not of this version, or by no node.
    Unknown,
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn address((domain, port): Entry) -> io::Result<LocalAddress> {
    LocalAddress::from_abstract_name(format!("{PREFIX}{domain}/{port}"))
}

fn entry(name: &str) -> Option<Entry> {
    let (domain, port) = name.strip_prefix(PREFIX)?.split_once('/')?;
    Some((domain.parse().ok()?, port.parse().ok()?))
}

/// Those of the kernel's list; an abstract name is shown behind an `@`.
fn entries(listed: &str) -> Vec<Entry> {
    listed.lines().filter_map(|line| entry(line.rsplit_once(" @")?.1)).collect()
}

fn encode_source(source: SocketAddr) -> Vec<u8> {
    let (ip, scope) = match source {
        SocketAddr::V4(v4) => (v4.ip().to_ipv6_mapped(), 0),
        SocketAddr::V6(v6) => (*v6.ip(), v6.scope_id()),
    };
    let mut bytes = vec![FORWARDED];
    bytes.extend(ip.octets());
    bytes.extend(source.port().to_le_bytes());
    bytes.extend(scope.to_le_bytes());
    bytes
}

fn decode_source(bytes: &[u8; SOURCE_BYTES]) -> SocketAddr {
    let [ip @ .., p, q, a, b, c, d] = *bytes;
    let port = u16::from_le_bytes([p, q]);
    let ip = Ipv6Addr::from(ip);
    match IpAddr::from(ip).to_canonical() {
        IpAddr::V4(v4) => SocketAddr::from((v4, port)),
        IpAddr::V6(v6) => SocketAddrV6::new(v6, port, 0, u32::from_le_bytes([a, b, c, d])).into(),
    }
}

fn decode<'a>(bytes: &'a mut [u8], from: &LocalAddress) -> Received<'a> {
    let name = from.as_abstract_name().and_then(|name| std::str::from_utf8(name).ok());
    let Some((_, port)) = name.and_then(entry) else { return Received::Unknown };
    match bytes.split_first_mut() {
        Some((&mut OWN, datagram)) => Received::Own(SocketAddr::from((Ipv4Addr::LOCALHOST, port)), datagram),
        Some((&mut FORWARDED, rest)) => match rest.split_first_chunk_mut() {
            Some((source, datagram)) => Received::Forwarded(decode_source(source), datagram),
            None => Received::Unknown,
        },
        _ => Received::Unknown,
    }
}

/// Whether a packet from a socket of this name is one of ours; the name may also be a list of names.
pub(super) fn is_packet(name: &[u8], bytes: &mut [u8]) -> bool {
    let listed = String::from_utf8_lossy(name);
    let is_listed = !entries(&listed).is_empty();
    let address = LocalAddress::from_abstract_name(name);
    is_listed | address.is_ok_and(|from| decode(bytes, &from) != Received::Unknown)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn nodes_of_a_host_find_each_other_by_name_and_domains_stay_apart() {
        let domain = 100_000 + std::process::id();
        let [a, b] = [1, 2].map(|port| Directory::enter(domain, port).unwrap());
        let other = Directory::enter(domain + 1, 1).unwrap();
        assert_eq!(a.others(Some(domain)), [(domain, 2)]);
        assert!(a.others(None).contains(&(domain + 1, 1)));
        let mut buffer = [0; 64];
        a.send((domain, 2), b"hello");
        let from = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
        assert_eq!(b.receive(&mut buffer).unwrap(), Some(Received::Own(from, &mut b"hello".to_owned()[..])));
        assert!(b.receive(&mut buffer).unwrap().is_none() && other.receive(&mut buffer).unwrap().is_none());
        assert_eq!(Directory::enter(domain, 2).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        drop(b);
        assert_eq!(a.others(Some(domain)), []);
    }

    #[test]
    fn a_forwarded_datagram_keeps_the_address_it_came_from() {
        let domain = 200_000 + std::process::id();
        let [a, b] = [1, 2].map(|port| Directory::enter(domain, port).unwrap());
        for source in ["10.0.0.5:4000", "[fe80::1%7]:4000", "[2001:db8::1]:4000"] {
            let source: SocketAddr = source.parse().unwrap();
            a.forward(&[(domain, 2)], source, b"x");
            let mut buffer = [0; 64];
            let received = b.receive(&mut buffer).unwrap().unwrap();
            assert_eq!(received, Received::Forwarded(source, &mut b"x".to_owned()[..]));
        }
    }

    #[test]
    fn the_kernels_list_is_read_without_regard_to_other_sockets() {
        let listed = "Num       RefCount Protocol Flags    Type St Inode Path\n\
            0000000000000000: 00000002 00000000 00000000 0002 01 20401 @noctule-host/3/40001\n\
            0000000000000000: 00000003 00000000 00000000 0001 03 20402 /run/user/@noctule-host/1/2\n\
            0000000000000000: 00000002 00000000 00000000 0005 01 20403 @noctule/00ff\n\
            0000000000000000: 00000002 00000000 00000000 0002 01 20404\n";
        assert_eq!(entries(listed), [(3, 40_001)]);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..60), name in ".*") {
            let from = address((1, 2)).unwrap();
            let _ = (decode(&mut bytes, &from), entries(&name));
        }
    }
}
