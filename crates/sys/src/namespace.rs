//! Network namespaces without names, and so without clean-up.
//!
//! A thread unshares its network, keeps a descriptor of the new namespace and ends. The namespace
//! lives exactly as long as the descriptor or a process inside it: nothing is left under
//! `/run/netns`, even after SIGKILL. Namespaces are per thread in Linux, so the caller's own network
//! is never touched: work inside happens on short-lived threads.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

use crate::interface;

/// An anonymous network namespace. Dropping it drops the network once no process is inside.
#[derive(Debug)]
pub struct NetworkNamespace {
    descriptor: File,
}

impl NetworkNamespace {
    /// Creates a namespace that holds only `lo`, up, with multicast on it and multicast routed to
    /// it: programs that discover each other by multicast find each other here and no other.
    ///
    /// # Errors
    /// `EPERM` without `CAP_SYS_ADMIN`.
    pub fn create() -> io::Result<Self> {
        let descriptor = on_thread(|| {
            // SAFETY: NEWNET unshares neither file descriptors nor memory, which other code might
            // rely on being shared between threads; and this thread ends right after.
            unsafe { unshare_unsafe(UnshareFlags::NEWNET)? };
            interface::set_up("lo", true)?;
            interface::route_multicast_to("lo")?;
            File::open("/proc/thread-self/ns/net")
        })?;
        Ok(Self { descriptor })
    }

    /// A namespace by its descriptor, as another process handed it out.
    pub fn from_descriptor(descriptor: std::os::fd::OwnedFd) -> Self {
        Self { descriptor: descriptor.into() }
    }

    /// Moves the calling thread into the namespace for good: for a process that becomes another
    /// program there.
    ///
    /// # Errors
    /// `EPERM` without `CAP_SYS_ADMIN`; `EINVAL` if the descriptor is of no network namespace.
    pub fn enter(&self) -> io::Result<()> {
        Ok(move_into_link_name_space(self.descriptor.as_fd(), Some(LinkNameSpaceType::Network))?)
    }

    /// Runs `work` on a fresh thread inside the namespace. Sockets it opens and processes it starts
    /// belong to the namespace.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        on_thread(|| {
            self.enter()?;
            work()
        })
    }

    /// The descriptor, e.g. to name the namespace to `ip` as `/proc/PID/fd/N`.
    pub fn descriptor(&self) -> &File {
        &self.descriptor
    }
}

fn on_thread<T: Send>(work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    std::thread::scope(|scope| match scope.spawn(work).join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}
