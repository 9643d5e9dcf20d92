//! Why a ring in shared memory cannot be made, handed out or read.

use std::io;

use noctule_shm_ring::{AttachError, LayoutError};

/// One sentence each, for the notice of this node or of the one that asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RingError {
    #[error(
        "{bytes} bytes of shared memory cannot be had ({cause}); lower keep_last, borrows or payload_bytes_max"
    )]
    NoMemory { bytes: u64, cause: io::Error },
    #[error(transparent)]
    Layout(#[from] LayoutError),
    #[error(transparent)]
    Attach(#[from] AttachError),
    #[error(transparent)]
    System(#[from] io::Error),
    #[error(
        "its shared memory cannot be mapped ({0}); lower the publisher's keep_last or payload_bytes_max, or raise this process's limit"
    )]
    NotMapped(io::Error),
    #[error("the topic has no shared memory yet; try again")]
    NotMade,
    #[error("the ring is there already")]
    MadeBefore,
    #[error("its process had no file descriptor to spare; raise `ulimit -n` there")]
    NoDescriptorThere,
    #[error("its memory did not arrive: this process has no file descriptor left; raise `ulimit -n`")]
    NoDescriptorHere,
    #[error("the publisher has failed")]
    PublisherFailed,
    #[error("the publisher has been closed")]
    PublisherClosed,
    #[error("this node does not receive it")]
    NotReceived,
    #[error("it does not prove that it has the swarm key")]
    Unproven,
    #[error(
        "{total} writers of other hosts are read already, {of_address} of them of that address, and each takes a file descriptor; \
         raise `ulimit -n`, or find out which nodes announce so many"
    )]
    TooMany { total: usize, of_address: usize },
    #[error(
        "{total} writers of this host are read by UDP already; raise `ulimit -n` of its processes, so that they share memory"
    )]
    TooManyHere { total: usize },
}
