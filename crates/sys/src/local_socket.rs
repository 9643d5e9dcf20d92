//! Sockets between processes of one host: packets that carry descriptors, and the process at the other end.
//!
//! `AF_UNIX`, `SOCK_SEQPACKET`: messages keep their bounds, and the end of either process, however it
//! came, ends the connection for the other. Names are abstract: they vanish with their owner, so no
//! file is left behind.
//!
//! References: `unix(7)`.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::net::{
    self, AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, sockopt,
};

/// The most descriptors one packet carries here; a packet with more is refused by the kernel's
/// truncation, and the surplus closed.
pub const DESCRIPTORS_MAX: usize = 2;
/// Supplementary groups looked at; a process in more than that is taken to be in none.
const GROUPS_MAX: usize = 256;
/// Connections that wait to be accepted.
const BACKLOG: i32 = 64;

/// The process at the other end, as the kernel knows it: when it connected or listened, respectively.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Credentials {
    /// User.
    pub uid: u32,
    /// Primary group.
    pub gid: u32,
    /// Process, in our numbering; 0 if it is in no namespace we see.
    pub pid: i32,
}

/// A socket that accepts connections under an abstract name.
#[derive(Debug)]
pub struct LocalListener(OwnedFd);

/// One end of a connection.
#[derive(Debug)]
pub struct LocalSocket(OwnedFd);

/// A packet received.
#[derive(Debug)]
pub struct Packet {
    /// Bytes received; 0 at the end of the connection.
    pub length_bytes: usize,
    /// Descriptors that came with it, closed on exec.
    pub descriptors: Vec<OwnedFd>,
    /// Whether bytes did not fit and are lost.
    pub truncated: bool,
    /// Whether descriptors are lost: more came than are allowed, or this process can have no more.
    pub descriptors_lost: bool,
}

impl LocalListener {
    /// Listens, without blocking in [`Self::accept`].
    ///
    /// # Errors
    /// `AddrInUse` if another process has the name; the kernel's for names longer than 107 bytes.
    pub fn bind(name: &[u8]) -> io::Result<Self> {
        let socket = socket(SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)?;
        net::bind(&socket, &SocketAddrUnix::new_abstract_name(name)?)?;
        net::listen(&socket, BACKLOG)?;
        Ok(Self(socket))
    }

    /// The next connection, not blocking either; `None` if none waits.
    pub fn accept(&self) -> io::Result<Option<LocalSocket>> {
        match net::accept_with(&self.0, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
            Ok(socket) => Ok(Some(LocalSocket(socket))),
            Err(error) if is_transient(error) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

impl LocalSocket {
    /// Connects to a name; sending and receiving on it wait at most `timeout`.
    ///
    /// # Errors
    /// `ConnectionRefused` if no socket listens there.
    pub fn connect(name: &[u8], timeout: Duration) -> io::Result<Self> {
        let socket = socket(SocketFlags::CLOEXEC)?;
        for direction in [sockopt::Timeout::Recv, sockopt::Timeout::Send] {
            sockopt::set_socket_timeout(&socket, direction, Some(timeout))?;
        }
        net::connect(&socket, &SocketAddrUnix::new_abstract_name(name)?)?;
        Ok(Self(socket))
    }

    /// Connects to a name without waiting; sending and receiving on it do not wait either.
    ///
    /// # Errors
    /// `ConnectionRefused` if no socket listens there; `WouldBlock` if too many others wait to be accepted.
    pub fn connect_now(name: &[u8]) -> io::Result<Self> {
        let socket = socket(SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)?;
        net::connect(&socket, &SocketAddrUnix::new_abstract_name(name)?)?;
        Ok(Self(socket))
    }

    /// Sends one packet with up to [`DESCRIPTORS_MAX`] descriptors. Raises no signal if the other end
    /// is gone.
    pub fn send(&self, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        if descriptors.len() > DESCRIPTORS_MAX {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(descriptors)) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        net::sendmsg(&self.0, &[IoSlice::new(bytes)], &mut ancillary, SendFlags::NOSIGNAL)?;
        Ok(())
    }

    /// Receives one packet. On a non-blocking socket without one: `WouldBlock`. The other end may have sent packets before it closed the
    /// connection: they come first, also if it did not read everything.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Packet> {
        match self.receive_once(buffer) {
            // The kernel reports once that something was not read, and before what is still to be received.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => self.receive_once(buffer),
            received => received,
        }
    }

    fn receive_once(&self, buffer: &mut [u8]) -> io::Result<Packet> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut slices = [IoSliceMut::new(buffer)];
        let message = net::recvmsg(&self.0, &mut slices, &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
        let descriptors = ancillary.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
            _ => None,
        });
        Ok(Packet {
            length_bytes: message.bytes,
            descriptors: descriptors.flatten().collect(),
            truncated: message.flags.contains(ReturnFlags::TRUNC),
            descriptors_lost: message.flags.contains(ReturnFlags::CTRUNC),
        })
    }

    /// The process at the other end (`SO_PEERCRED`).
    pub fn credentials(&self) -> io::Result<Credentials> {
        let peer = sockopt::socket_peercred(&self.0)?;
        Ok(Credentials {
            uid: peer.uid.as_raw(),
            gid: peer.gid.as_raw(),
            pid: peer.pid.as_raw_nonzero().get(),
        })
    }

    /// Whether the other end is in a group, by its primary or supplementary groups
    /// (`SO_PEERGROUPS`).
    pub fn peer_is_in_group(&self, group: u32) -> io::Result<bool> {
        if self.credentials()?.gid == group {
            return Ok(true);
        }
        let mut groups: [libc::gid_t; GROUPS_MAX] = [0; GROUPS_MAX];
        let mut length = size_of_val(&groups) as libc::socklen_t;
        // SAFETY: the kernel writes at most `length` bytes to `groups` and the number to `length`.
        let result = unsafe {
            libc::getsockopt(
                self.0.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_PEERGROUPS,
                groups.as_mut_ptr().cast(),
                &mut length,
            )
        };
        if result != 0 {
            let error = io::Error::last_os_error();
            // ERANGE: more groups than we look at.
            return if error.raw_os_error() == Some(libc::ERANGE) { Ok(false) } else { Err(error) };
        }
        Ok(groups[..length as usize / size_of::<libc::gid_t>()].contains(&group))
    }
}

impl AsFd for LocalListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsFd for LocalSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// User and group of this process, as files and sockets see it.
pub fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

fn socket(flags: SocketFlags) -> io::Result<OwnedFd> {
    Ok(net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?)
}

/// No connection there, or gone again, or a signal: look again later.
fn is_transient(error: rustix::io::Errno) -> bool {
    use rustix::io::Errno;
    [Errno::AGAIN, Errno::CONNABORTED, Errno::INTR].contains(&error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(name: &str) -> (LocalSocket, LocalSocket) {
        let name = format!("noctule-test/{}/{name}", std::process::id());
        let listener = LocalListener::bind(name.as_bytes()).unwrap();
        assert!(listener.accept().unwrap().is_none());
        let client = LocalSocket::connect(name.as_bytes(), Duration::from_secs(5)).unwrap();
        let server = listener.accept().unwrap().unwrap();
        assert_eq!(LocalListener::bind(name.as_bytes()).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        (client, server)
    }

    #[test]
    fn packets_carry_descriptors_and_keep_their_bounds() {
        let (client, server) = pair("descriptors");
        let file = std::fs::File::open("/dev/null").unwrap();
        server.send(b"two", &[file.as_fd(), file.as_fd()]).unwrap();
        server.send(b"none", &[]).unwrap();
        let mut buffer = [0; 16];
        let packet = client.receive(&mut buffer).unwrap();
        assert_eq!((packet.length_bytes, packet.descriptors.len(), packet.truncated), (3, 2, false));
        let packet = client.receive(&mut buffer[..2]).unwrap();
        assert_eq!((packet.length_bytes, packet.descriptors.len(), packet.truncated), (2, 0, true));
        assert!(server.send(b"three", &[file.as_fd(); 3]).is_err());
    }

    #[test]
    fn a_connection_is_made_at_once_or_not_at_all() {
        let name = format!("noctule-test/{}/now", std::process::id());
        assert_eq!(
            LocalSocket::connect_now(name.as_bytes()).unwrap_err().kind(),
            io::ErrorKind::ConnectionRefused
        );
        let _never_accepts = LocalListener::bind(name.as_bytes()).unwrap();
        let mut waiting = Vec::new();
        let refused = loop {
            match LocalSocket::connect_now(name.as_bytes()) {
                Ok(socket) => waiting.push(socket),
                Err(error) => break error,
            }
        };
        assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
        assert!(waiting.len() >= BACKLOG as usize);
    }

    #[test]
    fn the_end_of_one_side_is_seen_by_the_other() {
        let (client, server) = pair("end");
        assert_eq!(server.receive(&mut [0; 8]).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        drop(client);
        assert_eq!(server.receive(&mut [0; 8]).unwrap().length_bytes, 0);
        assert!(server.send(b"x", &[]).is_err());
    }

    #[test]
    fn what_the_other_side_sent_is_received_though_it_closed_with_something_unread() {
        let (client, server) = pair("unread");
        client.send(b"a question", &[]).unwrap();
        server.send(b"no", &[]).unwrap();
        drop(server);
        let mut buffer = [0; 16];
        assert_eq!(client.receive(&mut buffer).unwrap().length_bytes, 2);
        assert_eq!(client.receive(&mut buffer).unwrap().length_bytes, 0);
    }

    #[test]
    fn the_kernel_says_which_process_is_at_the_other_end() {
        let (client, server) = pair("credentials");
        let own = Credentials {
            uid: own_user(),
            gid: rustix::process::getegid().as_raw(),
            pid: std::process::id() as i32,
        };
        assert_eq!(client.credentials().unwrap(), own);
        assert_eq!(server.credentials().unwrap(), own);
        assert!(server.peer_is_in_group(own.gid).unwrap());
        assert!(!server.peer_is_in_group(u32::MAX - 7).unwrap());
    }
}
