//! Many UDP datagrams in one system call, none of which ever waits.
//!
//! `UDP_SEGMENT` and `UDP_GRO` (udp(7)): the kernel cuts one buffer into datagrams of equal length, and joins those that arrived
//! together. `sendmmsg(2)` takes several such buffers. `SIOCOUTQ` says how much the kernel has still to send.

use std::io;
use std::mem::{MaybeUninit, size_of};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

use rustix::net::{SendFlags, sendto};

/// The most datagrams that the kernel cuts from one buffer (`UDP_MAX_SEGMENTS`).
pub const SEGMENTS_MAX: usize = 64;
/// The longest buffer that it cuts: what fits in one IP packet, headers counted.
pub const RUN_BYTES_MAX: usize = 65_000;
/// Runs taken by one call.
pub const RUNS_MAX: usize = 32;

/// Datagrams to one address, one behind the other.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// Where they go.
    pub to: SocketAddr,
    /// All of them.
    pub bytes: &'a [u8],
    /// Length of each; the last may be shorter.
    pub segment_bytes: usize,
    /// The octet of RFC 2474: above, the code point of differentiated services, from which the kernel derives the priority on the way out and
    /// Wi-Fi the access category (RFC 8325); in the lowest two bits explicit congestion notification (RFC 3168).
    pub octet: u8,
}

impl Run<'_> {
    /// Whether it is more than one datagram.
    pub fn is_segmented(&self) -> bool {
        self.bytes.len() > self.segment_bytes
    }
}

/// Sends one datagram if the kernel takes it at once.
///
/// # Errors
/// `WouldBlock` if the socket's buffer is full; otherwise what the network says.
pub fn send_now(socket: &UdpSocket, bytes: &[u8], to: SocketAddr) -> io::Result<()> {
    sendto(socket, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL, &to)?;
    Ok(())
}

/// Room for the length of a segment and for a mark, aligned as control messages must be.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
struct Control([u8; 48]);

impl Control {
    /// Puts a message behind those of `used` bytes, and gives how many are used then.
    fn put<T>(&mut self, used: usize, (level, kind): (libc::c_int, libc::c_int), value: T) -> usize {
        let value_bytes = size_of::<T>() as u32;
        // SAFETY: plain computations.
        let (space, length) = unsafe { (libc::CMSG_SPACE(value_bytes), libc::CMSG_LEN(value_bytes)) };
        let end = used + space as usize;
        assert!(end <= self.0.len(), "two messages of an int at most");
        // SAFETY: the buffer is aligned, `used` is a sum of CMSG_SPACE, and the message ends within the buffer.
        unsafe {
            let message = self.0.as_mut_ptr().add(used).cast::<libc::cmsghdr>();
            (*message).cmsg_level = level;
            (*message).cmsg_type = kind;
            (*message).cmsg_len = length as _;
            libc::CMSG_DATA(message).cast::<T>().write_unaligned(value);
        }
        end
    }

    /// Writes the control messages of a run; returns their length in bytes.
    fn describe(&mut self, run: &Run<'_>) -> usize {
        let mut used = 0;
        if run.is_segmented() {
            used = self.put(used, (libc::SOL_UDP, libc::UDP_SEGMENT), run.segment_bytes as u16);
        }
        if run.octet != 0 {
            let field = libc::c_int::from(run.octet);
            // A mapped address travels by IPv4.
            let option = match run.to.ip().to_canonical() {
                IpAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_TOS),
                IpAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_TCLASS),
            };
            used = self.put(used, option, field);
        }
        used
    }
}

/// Sends up to [`RUNS_MAX`] runs and returns how many the kernel took; it never waits. One is sent for what one costs.
///
/// # Errors
/// The kernel's error for the first run, if it took none: `WouldBlock` if the socket's buffer is full, `EINVAL` or `EIO` if it
/// cannot cut the run into datagrams, `EMSGSIZE` if the datagrams are too long for the line.
pub fn send_runs(socket: &UdpSocket, runs: &[Run<'_>]) -> io::Result<usize> {
    match Call::of(runs) {
        Call::None => Ok(0),
        Call::SendTo(run) => send_now(socket, run.bytes, run.to).map(|()| 1),
        Call::SendMsg(run) => send_described(socket, run).map(|()| 1),
        Call::SendMmsg(runs) => send_several(socket, runs),
    }
}

/// The system call that sends some runs: what most samples are, one datagram without a mark, needs no headers, and those of
/// `sendmmsg` are 8 KiB.
#[derive(Clone, Copy, Debug)]
enum Call<'a> {
    None,
    SendTo(&'a Run<'a>),
    SendMsg(&'a Run<'a>),
    SendMmsg(&'a [Run<'a>]),
}

impl<'a> Call<'a> {
    fn of(runs: &'a [Run<'a>]) -> Call<'a> {
        match runs {
            [] => Call::None,
            [run] if run.octet == 0 && !run.is_segmented() => Call::SendTo(run),
            [run] => Call::SendMsg(run),
            runs => Call::SendMmsg(runs),
        }
    }
}

/// A run of which the kernel is to know more than its address.
fn send_described(socket: &UdpSocket, run: &Run<'_>) -> io::Result<()> {
    let mut address = MaybeUninit::<libc::sockaddr_storage>::uninit();
    let (mut part, mut control) = (run_part(run), Control([0; 48]));
    // SAFETY: msghdr is a plain C struct for which all zeros is a valid value.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    fill_header(&mut header, run, (&mut address, &mut part, &mut control));
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: the header points to live buffers of the lengths beside them; the kernel only reads those.
    let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const header, flags) };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// As [`send_runs`], without what makes a single run cheap.
fn send_several(socket: &UdpSocket, runs: &[Run<'_>]) -> io::Result<usize> {
    let count = runs.len().min(RUNS_MAX);
    let mut addresses = [const { MaybeUninit::<libc::sockaddr_storage>::uninit() }; RUNS_MAX];
    let mut parts = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; RUNS_MAX];
    let mut controls = [Control([0; 48]); RUNS_MAX];
    // SAFETY: mmsghdr is a plain C struct for which all zeros is a valid value.
    let mut headers: [libc::mmsghdr; RUNS_MAX] = unsafe { std::mem::zeroed() };
    for (index, run) in runs.iter().take(count).enumerate() {
        parts[index] = run_part(run);
        let places = (&mut addresses[index], &mut parts[index], &mut controls[index]);
        fill_header(&mut headers[index].msg_hdr, run, places);
    }
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: the first `count` headers point to live buffers of the lengths beside them; the kernel only reads those.
    let sent = unsafe {
        libc::sendmmsg(socket.as_raw_fd(), headers.as_mut_ptr(), count as libc::c_uint, flags as _)
    };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(sent as usize) }
}

fn run_part(run: &Run<'_>) -> libc::iovec {
    libc::iovec { iov_base: run.bytes.as_ptr().cast_mut().cast(), iov_len: run.bytes.len() }
}

/// Points a header, all zeros before, to what describes a run: its address and control messages, written here, and its bytes. The three
/// must outlive the header's use.
fn fill_header(
    header: &mut libc::msghdr,
    run: &Run<'_>,
    (address, part, control): (&mut MaybeUninit<libc::sockaddr_storage>, &mut libc::iovec, &mut Control),
) {
    header.msg_namelen = write_address(run.to, address);
    header.msg_name = address.as_mut_ptr().cast();
    header.msg_iov = part;
    header.msg_iovlen = 1;
    let used = control.describe(run);
    if used > 0 {
        header.msg_control = control.0.as_mut_ptr().cast();
        header.msg_controllen = used as _;
    }
}

/// Whether the kernel or the interface cannot cut a buffer into datagrams, so that each must be sent by itself.
pub fn is_not_segmented(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EIO | libc::EMSGSIZE | libc::EOPNOTSUPP))
}

/// Length of the socket's send queue in the kernel (`SIOCOUTQ`), bytes as it counts memory: about twice those
/// of short datagrams.
///
/// # Errors
/// A descriptor that is no socket.
pub fn queued_bytes(socket: &UdpSocket) -> io::Result<usize> {
    let mut queued: libc::c_int = 0;
    // SAFETY: TIOCOUTQ, which is SIOCOUTQ, writes one int.
    let status = unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut queued) };
    if status == 0 { Ok(queued.max(0) as usize) } else { Err(io::Error::last_os_error()) }
}

/// Writes an address as the kernel wants it and gives its length.
fn write_address(address: SocketAddr, storage: &mut MaybeUninit<libc::sockaddr_storage>) -> libc::socklen_t {
    match address {
        SocketAddr::V4(v4) => {
            let raw = libc::sockaddr_in {
                sin_family: libc::AF_INET as _,
                sin_port: v4.port().to_be(),
                sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(v4.ip().octets()) },
                sin_zero: [0; 8],
            };
            // SAFETY: sockaddr_storage is larger and at least as aligned as every address of a family.
            unsafe { storage.as_mut_ptr().cast::<libc::sockaddr_in>().write(raw) };
            size_of::<libc::sockaddr_in>() as _
        }
        SocketAddr::V6(v6) => {
            let raw = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as _,
                sin6_port: v6.port().to_be(),
                sin6_flowinfo: v6.flowinfo(),
                sin6_addr: libc::in6_addr { s6_addr: v6.ip().octets() },
                sin6_scope_id: v6.scope_id(),
            };
            // SAFETY: as above.
            unsafe { storage.as_mut_ptr().cast::<libc::sockaddr_in6>().write(raw) };
            size_of::<libc::sockaddr_in6>() as _
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datagram::{receive, tell_octets, wait};

    /// Expedited forwarding, and ECT(0).
    const URGENT: u8 = 46 << 2 | 2;

    fn pair(address: &str) -> (UdpSocket, UdpSocket) {
        (UdpSocket::bind(address).unwrap(), UdpSocket::bind(address).unwrap())
    }

    fn received(socket: &UdpSocket) -> Vec<u8> {
        let mut buffer = [0; 2_000];
        assert!(wait(socket, 5_000_000_000).unwrap());
        let length = receive(socket, &mut buffer).unwrap().unwrap().length_bytes;
        buffer[..length].to_vec()
    }

    #[test]
    fn runs_arrive_as_the_datagrams_they_are_made_of() {
        for loopback in ["127.0.0.1:0", "[::1]:0"] {
            let (a, b) = pair(loopback);
            let to = b.local_addr().unwrap();
            let bytes: Vec<u8> = (0..2_500u32).map(|byte| byte as u8).collect();
            let run = Run { to, bytes: &bytes, segment_bytes: 1_000, octet: URGENT };
            let single = Run { to, bytes: &bytes[..3], segment_bytes: 3, octet: 0 };
            assert_eq!(send_runs(&a, &[run, single, run]).unwrap(), 3);
            let cut = [&bytes[..1_000], &bytes[1_000..2_000], &bytes[2_000..]];
            for expected in cut.into_iter().chain([&bytes[..3]]).chain(cut) {
                assert_eq!(received(&b), expected);
            }
        }
    }

    #[test]
    fn one_datagram_without_a_mark_needs_no_headers_and_one_run_no_array_of_them() {
        let to = SocketAddr::from(([127, 0, 0, 1], 1));
        let single = Run { to, bytes: &[0; 64], segment_bytes: 64, octet: 0 };
        let marked = Run { octet: URGENT, ..single };
        let cut = Run { segment_bytes: 32, ..single };
        assert!(matches!(Call::of(&[]), Call::None));
        assert!(matches!(Call::of(&[single]), Call::SendTo(_)));
        assert!(matches!(Call::of(&[marked]), Call::SendMsg(_)));
        assert!(matches!(Call::of(&[cut]), Call::SendMsg(_)));
        assert!(matches!(Call::of(&[single, single]), Call::SendMmsg([_, _])));
    }

    #[test]
    fn every_call_delivers_what_it_was_given() {
        let (a, b) = pair("127.0.0.1:0");
        let to = b.local_addr().unwrap();
        let bytes: Vec<u8> = (0..100).collect();
        let single = Run { to, bytes: &bytes, segment_bytes: 100, octet: 0 };
        let marked = Run { octet: URGENT, ..single };
        let cut = Run { segment_bytes: 60, ..single };
        assert_eq!(send_runs(&a, &[]).unwrap(), 0);
        for run in [single, marked, cut] {
            assert_eq!(send_runs(&a, &[run]).unwrap(), 1);
        }
        let cut = [&bytes[..60], &bytes[60..]];
        for expected in [&bytes[..]; 2].into_iter().chain(cut) {
            assert_eq!(received(&b), expected);
        }
    }

    /// Of the next datagram: the octet of RFC 2474.
    fn octet(socket: &UdpSocket) -> u8 {
        assert!(wait(socket, 5_000_000_000).unwrap());
        receive(socket, &mut [0; 2_000]).unwrap().unwrap().octet
    }

    #[test]
    fn the_mark_of_a_run_is_on_each_of_its_datagrams() {
        for (from, to) in [
            ("127.0.0.1:0", "127.0.0.1:0"),
            ("[::]:0", "127.0.0.1:0"),
            ("[::1]:0", "[::1]:0"),
            ("127.0.0.1:0", "[::]:0"),
        ] {
            let (a, b) = (UdpSocket::bind(from).unwrap(), UdpSocket::bind(to).unwrap());
            let receiver = b.local_addr().unwrap();
            tell_octets(&b).unwrap();
            let mapped = match (receiver, from.starts_with("[::]")) {
                (SocketAddr::V4(v4), true) => SocketAddr::new(v4.ip().to_ipv6_mapped().into(), v4.port()),
                (other, _) if other.ip().is_unspecified() => SocketAddr::from(([127, 0, 0, 1], other.port())),
                (other, _) => other,
            };
            let bytes = [0; 2_500];
            let urgent = Run { to: mapped, bytes: &bytes, segment_bytes: 1_000, octet: URGENT };
            let plain = Run { octet: 0, bytes: &bytes[..3], segment_bytes: 3, ..urgent };
            assert_eq!(send_runs(&a, &[urgent, plain]).unwrap(), 2);
            assert_eq!([(); 4].map(|()| octet(&b)), [URGENT, URGENT, URGENT, 0], "{from} to {to}");
        }
    }

    #[test]
    fn a_run_of_datagrams_that_no_line_carries_is_refused() {
        let (a, b) = pair("127.0.0.1:0");
        let bytes = vec![0; 65_508];
        let run = Run { to: b.local_addr().unwrap(), bytes: &bytes, segment_bytes: 65_508, octet: 0 };
        assert!(is_not_segmented(&send_runs(&a, &[run]).unwrap_err()));
    }

    #[test]
    fn what_was_sent_over_loopback_is_no_longer_queued() {
        let (a, b) = pair("127.0.0.1:0");
        send_now(&a, &[1, 2], b.local_addr().unwrap()).unwrap();
        assert_eq!(received(&b), [1, 2]);
        assert_eq!(queued_bytes(&a).unwrap(), 0);
    }
}
