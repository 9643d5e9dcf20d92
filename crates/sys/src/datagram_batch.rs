//! Many UDP datagrams in one system call, none of which ever waits.
//!
//! `UDP_SEGMENT` and `UDP_GRO` (udp(7)): the kernel cuts one buffer into datagrams of equal length, and joins those that arrived
//! together. `sendmmsg(2)` takes several such buffers. `SIOCOUTQ` says how much the kernel has still to send.

use std::io;
use std::mem::{MaybeUninit, size_of};
use std::net::{SocketAddr, UdpSocket};
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

/// Room for the length of a segment, aligned as control messages must be.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
struct SegmentControl([u8; 24]);

/// Sends up to [`RUNS_MAX`] runs and says how many the kernel took; it never waits.
///
/// # Errors
/// What the kernel says of the first run, if it took none: `WouldBlock` if the socket's buffer is full, `EINVAL` or `EIO` if it
/// cannot cut the run into datagrams, `EMSGSIZE` if the datagrams are too long for the line.
pub fn send_runs(socket: &UdpSocket, runs: &[Run<'_>]) -> io::Result<usize> {
    let count = runs.len().min(RUNS_MAX);
    let mut addresses = [const { MaybeUninit::<libc::sockaddr_storage>::zeroed() }; RUNS_MAX];
    let mut parts = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; RUNS_MAX];
    let mut controls = [SegmentControl([0; 24]); RUNS_MAX];
    // SAFETY: mmsghdr is a plain C struct for which all zeros is a valid value.
    let mut headers: [libc::mmsghdr; RUNS_MAX] = unsafe { std::mem::zeroed() };
    for (index, run) in runs.iter().take(count).enumerate() {
        let length = write_address(run.to, &mut addresses[index]);
        parts[index] =
            libc::iovec { iov_base: run.bytes.as_ptr().cast_mut().cast(), iov_len: run.bytes.len() };
        let header = &mut headers[index].msg_hdr;
        header.msg_name = addresses[index].as_mut_ptr().cast();
        header.msg_namelen = length;
        header.msg_iov = &raw mut parts[index];
        header.msg_iovlen = 1;
        if run.is_segmented() {
            header.msg_control = controls[index].0.as_mut_ptr().cast();
            // SAFETY: a plain computation.
            header.msg_controllen = unsafe { libc::CMSG_SPACE(size_of::<u16>() as u32) } as _;
            // SAFETY: the control buffer is aligned and holds a header and a u16: 24 bytes.
            unsafe {
                let message = libc::CMSG_FIRSTHDR(header);
                (*message).cmsg_level = libc::SOL_UDP;
                (*message).cmsg_type = libc::UDP_SEGMENT;
                (*message).cmsg_len = libc::CMSG_LEN(size_of::<u16>() as u32) as _;
                libc::CMSG_DATA(message).cast::<u16>().write_unaligned(run.segment_bytes as u16);
            }
        }
    }
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: the first `count` headers point to live buffers of the lengths beside them; the kernel only reads those.
    let sent = unsafe {
        libc::sendmmsg(socket.as_raw_fd(), headers.as_mut_ptr(), count as libc::c_uint, flags as _)
    };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(sent as usize) }
}

/// Whether the kernel or the interface cannot cut a buffer into datagrams, so that each must be sent by itself.
pub fn is_not_segmented(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EIO | libc::EMSGSIZE | libc::EOPNOTSUPP))
}

/// What the kernel has taken from this socket and not sent yet (`SIOCOUTQ`), bytes as it counts memory: about twice those
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
    use crate::datagram::{receive, wait};

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
            let run = Run { to, bytes: &bytes, segment_bytes: 1_000 };
            let single = Run { to, bytes: &bytes[..3], segment_bytes: 3 };
            assert_eq!(send_runs(&a, &[run, single, run]).unwrap(), 3);
            let cut = [&bytes[..1_000], &bytes[1_000..2_000], &bytes[2_000..]];
            for expected in cut.into_iter().chain([&bytes[..3]]).chain(cut) {
                assert_eq!(received(&b), expected);
            }
        }
    }

    #[test]
    fn a_run_of_datagrams_that_no_line_carries_is_refused() {
        let (a, b) = pair("127.0.0.1:0");
        let bytes = vec![0; 65_508];
        let run = Run { to: b.local_addr().unwrap(), bytes: &bytes, segment_bytes: 65_508 };
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
