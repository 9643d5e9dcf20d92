//! TUN devices: network interfaces whose packets a process carries.
//!
//! References: `Documentation/networking/tuntap.rst` of the kernel.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

use crate::interface;

/// Longest IP packet.
pub const PACKET_BYTES_MAX: usize = 65_535;

/// The process's end of a TUN device. Whole IP packets, no link layer, no offload: one packet is one
/// packet of at most the MTU. The device goes with this.
#[derive(Debug)]
pub struct Tun(File);

impl Tun {
    /// Creates a device in the network namespace of the calling thread; it stays there.
    ///
    /// # Errors
    /// `ENOENT` without `/dev/net/tun`, `EPERM` without `CAP_NET_ADMIN` in the namespace, `EBUSY` if the
    /// name is taken, `InvalidInput` if it is longer than 15 bytes.
    pub fn create(name: &str) -> io::Result<Tun> {
        let flags = libc::O_NONBLOCK | libc::O_CLOEXEC;
        let file = OpenOptions::new().read(true).write(true).custom_flags(flags).open("/dev/net/tun")?;
        let mut request = interface::named_request(name)?;
        request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
        // SAFETY: TUNSETIFF takes an ifreq; `request` is valid for the call.
        let status = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &mut request) };
        if status == 0 { Ok(Tun(file)) } else { Err(io::Error::last_os_error()) }
    }

    /// Takes the next packet the namespace has sent; `None` if there is none. `buffer` holds
    /// [`PACKET_BYTES_MAX`].
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match (&self.0).read(buffer) {
            Ok(length) => Ok(Some(length)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Hands a packet to the namespace.
    ///
    /// # Errors
    /// `EIO` while the device is down, `EINVAL` for what is no IP packet.
    pub fn send(&self, packet: &[u8]) -> io::Result<()> {
        (&self.0).write(packet).map(|_| ())
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
