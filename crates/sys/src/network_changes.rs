//! Word of interfaces and addresses that come and go, from the kernel (`rtnetlink(7)`).
//!
//! Only that something changed is of interest: a woken thread lists the interfaces again
//! ([`interface::list`](crate::interface::list)). So no message is parsed, and one that was lost because the socket
//! was full is as good as one that was read.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fd::OwnedFd;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, bind, recv, socket_with};

/// Readable when an interface or an address of the namespace has changed.
#[derive(Debug)]
pub struct NetworkChanges(OwnedFd);

impl NetworkChanges {
    /// Watches the network namespace of the calling thread.
    ///
    /// # Errors
    /// The kernel's, where a sandbox forbids netlink.
    pub fn watch() -> io::Result<NetworkChanges> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        // Protocol 0 is NETLINK_ROUTE.
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
        let groups = libc::RTMGRP_LINK | libc::RTMGRP_IPV4_IFADDR | libc::RTMGRP_IPV6_IFADDR;
        bind(&socket, &SocketAddrNetlink::new(0, groups as u32))?;
        Ok(NetworkChanges(socket))
    }

    /// Takes all messages that are there. Whether there was one.
    pub fn drain(&self) -> bool {
        let mut buffer = [0; 8192];
        let mut changed = false;
        loop {
            match recv(&self.0, &mut buffer[..], RecvFlags::DONTWAIT) {
                Ok((_, 0)) | Err(rustix::io::Errno::AGAIN) => return changed,
                // Messages were lost: that is one, too.
                Ok(_) | Err(rustix::io::Errno::NOBUFS) => changed = true,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return changed,
            }
        }
    }
}

impl AsFd for NetworkChanges {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{interface, namespace};

    #[test]
    fn an_address_that_comes_is_seen_once() {
        let namespace = namespace::NetworkNamespace::create().unwrap();
        let seen = namespace.run(|| {
            let changes = NetworkChanges::watch()?;
            let before = changes.drain();
            interface::set_address("lo", [127, 0, 0, 5], 8)?;
            Ok([before, changes.drain(), changes.drain()])
        });
        assert_eq!(seen.unwrap(), [false, true, false]);
    }
}
