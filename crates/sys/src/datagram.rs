//! UDP datagrams together with the moment at which the kernel took them in, or several of them at once.
//!
//! `SO_TIMESTAMPNS` (socket(7)): the kernel stamps a datagram in `CLOCK_REALTIME` when the interface
//! hands it over, before any process is woken for it.

use std::io;
use std::mem::{MaybeUninit, size_of};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6, UdpSocket};
use std::os::fd::AsRawFd;

use rustix::event::{PollFd, PollFlags, poll};

use crate::clock::timespec;

/// What was taken from a socket: one datagram, unless the socket [joins](enable_receive_offload) them.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Length of the datagram, or of all that are joined, which may be more than the buffer held.
    pub length_bytes: usize,
    /// If several are joined: the length of each, the last of which may be shorter; otherwise 0.
    pub segment_bytes: usize,
    /// Its sender.
    pub from: SocketAddr,
    /// When the kernel took it in, in nanoseconds of `CLOCK_REALTIME`; `None` if it does not say.
    pub realtime_ns: Option<i64>,
    /// The octet of RFC 2474 of its IP header: the code point of differentiated services and, lowest, the two bits of RFC 3168; 0 if the kernel
    /// was not asked for it.
    pub octet: u8,
}

/// Room for a control message that carries a `timespec` and two that carry an int, aligned as control messages must be.
#[repr(C, align(8))]
struct ControlBuffer([u8; CONTROL_BYTES]);

/// 32 for the first and 24 for each of the others, on 64 bits.
const CONTROL_BYTES: usize = 96;

/// Of `linux/in6.h`.
const IPV6_MULTICAST_ALL: libc::c_int = 29;

/// Asks the kernel to stamp what arrives from now on. One that cannot (an emulator of Linux) leaves the stamps out.
pub fn stamp_arrivals(socket: &UdpSocket) -> io::Result<()> {
    known_option(socket, (libc::SOL_SOCKET, libc::SO_TIMESTAMPNS), 1)
}

/// Asks the kernel for the octet of RFC 2474 of what arrives from now on, by IPv4 and, if the socket is of that family, IPv6.
pub fn tell_octets(socket: &UdpSocket) -> io::Result<()> {
    if socket.local_addr()?.is_ipv6() {
        known_option(socket, (libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS), 1)?;
    }
    known_option(socket, (libc::IPPROTO_IP, libc::IP_RECVTOS), 1)
}

/// Generic receive offload: lets the kernel join datagrams of one sender that arrive together and have one length, up to 64 of them and 64 KiB (`UDP_GRO`, udp(7)). One that
/// cannot, before Linux 5.0, hands them over one by one.
pub fn enable_receive_offload(socket: &UdpSocket) -> io::Result<()> {
    known_option(socket, (libc::SOL_UDP, libc::UDP_GRO), 1)
}

/// Datagrams are not fragmented from now on, whatever path MTU the kernel has cached (ip(7), `IP_PMTUDISC_PROBE`): the
/// sender finds out what the path carries. For IPv4, and for IPv6 if the socket is of that family.
pub fn forbid_fragments(socket: &UdpSocket) -> io::Result<()> {
    if socket.local_addr()?.is_ipv6() {
        let value = libc::IPV6_PMTUDISC_PROBE;
        set_option(socket, (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER), value)?;
    }
    set_option(socket, (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER), libc::IP_PMTUDISC_PROBE)
}

/// Whether a datagram was not sent because it is longer than this host's line carries.
pub fn is_too_long(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EMSGSIZE)
}

fn set_option(
    socket: &UdpSocket,
    (level, name): (libc::c_int, libc::c_int),
    value: libc::c_int,
) -> io::Result<()> {
    // SAFETY: each of the options takes an int; `value` outlives the call and its size is given.
    let status = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// As [`set_option`], but one that this kernel does not know stays as it is.
fn known_option(
    socket: &UdpSocket,
    option: (libc::c_int, libc::c_int),
    value: libc::c_int,
) -> io::Result<()> {
    match set_option(socket, option, value) {
        Err(error) if error.raw_os_error() == Some(libc::ENOPROTOOPT) => Ok(()),
        done => done,
    }
}

/// Lets in datagrams of those groups only that this socket itself has joined (`IP_MULTICAST_ALL`, ip(7)); by default those
/// come, too, that any other socket of the host has joined. Where the kernel lacks the option (IPv6 before Linux 4.20) they all come.
pub fn only_joined_groups(socket: &UdpSocket) -> io::Result<()> {
    if socket.local_addr()?.is_ipv6() {
        known_option(socket, (libc::IPPROTO_IPV6, IPV6_MULTICAST_ALL), 0)?;
    }
    known_option(socket, (libc::IPPROTO_IP, libc::IP_MULTICAST_ALL), 0)
}

/// Waits until a datagram (or an error) is there; false after `timeout_ns`, or when a signal came.
pub fn wait(socket: &UdpSocket, timeout_ns: i64) -> io::Result<bool> {
    let mut descriptors = [PollFd::new(socket, PollFlags::IN)];
    match poll(&mut descriptors, Some(&timespec(timeout_ns.max(0)))) {
        Ok(count) => Ok(count > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Takes the next datagram without waiting; `None` if there is none.
pub fn receive(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<Option<Arrival>> {
    receive_with(socket, buffer, libc::MSG_DONTWAIT)
}

/// Waits for the next datagram and takes it; `None` when a signal came.
pub fn receive_blocking(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<Option<Arrival>> {
    receive_with(socket, buffer, 0)
}

fn receive_with(socket: &UdpSocket, buffer: &mut [u8], flags: libc::c_int) -> io::Result<Option<Arrival>> {
    let mut parts = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let mut sender = MaybeUninit::<libc::sockaddr_storage>::zeroed();
    let mut control = ControlBuffer([0; CONTROL_BYTES]);
    // SAFETY: msghdr is a plain C struct for which all zeros is a valid value.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_name = sender.as_mut_ptr().cast();
    header.msg_namelen = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
    header.msg_iov = &raw mut parts;
    header.msg_iovlen = 1;
    header.msg_control = control.0.as_mut_ptr().cast();
    header.msg_controllen = control.0.len() as _;
    // SAFETY: every pointer in `header` is to a live buffer of the length beside it.
    let length = unsafe { recvmsg(socket, &mut header, flags | libc::MSG_TRUNC) };
    if length < 0 {
        let error = io::Error::last_os_error();
        return match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(None),
            _ => Err(error),
        };
    }
    // SAFETY: it was zeroed, which is a valid value, before the kernel wrote into it.
    let from = address(unsafe { sender.assume_init_ref() })?;
    let Described { realtime_ns, octet, segment_bytes } = described(&header);
    Ok(Some(Arrival { length_bytes: length as usize, segment_bytes, from, realtime_ns, octet }))
}

/// `recvmsg(2)`. That of the C library is a cancellation point and switches the thread's state to and fro, a tenth of a look at a socket
/// without a datagram, of which a spinning subscriber takes millions a second; no thread here is cancelled. On 32 bits
/// the C library may have to translate the stamp.
///
/// # Safety
/// Every pointer in `header` is to a live buffer of the length beside it.
unsafe fn recvmsg(socket: &UdpSocket, header: &mut libc::msghdr, flags: libc::c_int) -> isize {
    #[cfg(target_pointer_width = "64")]
    // SAFETY: as above; on 64 bits the kernel has the C library's layout, the padding of which is zero.
    return unsafe { libc::syscall(libc::SYS_recvmsg, socket.as_raw_fd(), &raw mut *header, flags) as isize };
    #[cfg(not(target_pointer_width = "64"))]
    // SAFETY: as above.
    return unsafe { libc::recvmsg(socket.as_raw_fd(), header, flags) as isize };
}

/// What control messages say of an arrival.
struct Described {
    realtime_ns: Option<i64>,
    octet: u8,
    segment_bytes: usize,
}

/// Reads the control messages of a header that `recvmsg` has filled.
fn described(header: &libc::msghdr) -> Described {
    let (mut realtime_ns, mut octet, mut segment_bytes) = (None, 0, 0);
    // SAFETY: `header` and its control buffer are as recvmsg left them; CMSG_FIRSTHDR gives null or a
    // header inside that buffer.
    let mut message = unsafe { libc::CMSG_FIRSTHDR(header) };
    while !message.is_null() {
        // SAFETY: not null, so inside the control buffer, which is aligned for a cmsghdr.
        let (level, kind) = unsafe { ((*message).cmsg_level, (*message).cmsg_type) };
        if level == libc::SOL_SOCKET && kind == libc::SCM_TIMESTAMPNS {
            // SAFETY: the kernel puts a whole timespec behind a header of this kind; it need not be
            // aligned.
            let time = unsafe { libc::CMSG_DATA(message).cast::<libc::timespec>().read_unaligned() };
            realtime_ns = time.tv_sec.checked_mul(1_000_000_000).and_then(|ns| ns.checked_add(time.tv_nsec));
        }
        // Of IPv4 it is a byte, of IPv6 an int.
        if (level, kind) == (libc::IPPROTO_IP, libc::IP_TOS) {
            // SAFETY: the kernel puts a byte behind a header of this kind.
            octet = unsafe { libc::CMSG_DATA(message).read() };
        }
        if (level, kind) == (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) {
            // SAFETY: the kernel puts an int behind a header of this kind; it need not be aligned.
            octet = unsafe { libc::CMSG_DATA(message).cast::<libc::c_int>().read_unaligned() } as u8;
        }
        if (level, kind) == (libc::SOL_UDP, libc::UDP_GRO) {
            // SAFETY: the kernel puts an int behind a header of this kind; it need not be aligned.
            let length = unsafe { libc::CMSG_DATA(message).cast::<libc::c_int>().read_unaligned() };
            segment_bytes = usize::try_from(length).unwrap_or(0);
        }
        // SAFETY: `message` is a header inside the control buffer of `header`.
        message = unsafe { libc::CMSG_NXTHDR(header, message) };
    }
    Described { realtime_ns, octet, segment_bytes }
}

fn address(storage: &libc::sockaddr_storage) -> io::Result<SocketAddr> {
    match libc::c_int::from(storage.ss_family) {
        libc::AF_INET => {
            // SAFETY: the family says which struct the storage, which is larger and aligned, holds.
            let v4 = unsafe { &*(&raw const *storage).cast::<libc::sockaddr_in>() };
            let ip = Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr));
            Ok(SocketAddrV4::new(ip, u16::from_be(v4.sin_port)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let v6 = unsafe { &*(&raw const *storage).cast::<libc::sockaddr_in6>() };
            let ip = Ipv6Addr::from(v6.sin6_addr.s6_addr);
            let port = u16::from_be(v6.sin6_port);
            Ok(SocketAddrV6::new(ip, port, v6.sin6_flowinfo, v6.sin6_scope_id).into())
        }
        _ => Err(io::Error::from(io::ErrorKind::InvalidData)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(address: &str) -> (UdpSocket, UdpSocket) {
        let (a, b) = (UdpSocket::bind(address).unwrap(), UdpSocket::bind(address).unwrap());
        a.connect(b.local_addr().unwrap()).unwrap();
        (a, b)
    }

    #[test]
    fn a_datagram_comes_with_its_true_length_its_sender_and_its_stamp() {
        for loopback in ["127.0.0.1:0", "[::1]:0"] {
            let (a, b) = pair(loopback);
            stamp_arrivals(&b).unwrap();
            a.send(&[7; 40]).unwrap();
            assert!(wait(&b, 5_000_000_000).unwrap());
            let mut buffer = [0; 33];
            let arrival = receive(&b, &mut buffer).unwrap().unwrap();
            assert_eq!(arrival.length_bytes, 40);
            assert_eq!(arrival.from, a.local_addr().unwrap());
            assert!(arrival.realtime_ns.is_some());
            assert_eq!(buffer, [7; 33]);
            assert!(receive(&b, &mut buffer).unwrap().is_none(), "nothing more");
        }
    }

    #[test]
    fn what_the_line_does_not_carry_is_refused_when_fragments_are_forbidden() {
        let (a, b) = pair("127.0.0.1:0");
        forbid_fragments(&a).unwrap();
        a.send(&[7; 61_440]).unwrap();
        assert!(wait(&b, 5_000_000_000).unwrap());
        // Longer than any datagram of UDP.
        assert!(is_too_long(&a.send(&[7; 65_508]).unwrap_err()));
    }

    #[test]
    fn without_asking_there_is_no_stamp() {
        let (a, b) = pair("127.0.0.1:0");
        a.send(&[]).unwrap();
        assert!(wait(&b, 5_000_000_000).unwrap());
        let arrival = receive(&b, &mut []).unwrap().unwrap();
        assert_eq!((arrival.length_bytes, arrival.realtime_ns, arrival.octet), (0, None, 0));
    }
}
