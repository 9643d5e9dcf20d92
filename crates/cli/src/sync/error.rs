//! Errors of `noctule sync`: files and hosts.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use noctule_clock_lab::TraceError;

/// Why `noctule sync` ends early.
#[derive(Debug, thiserror::Error)]
pub(super) enum SyncError {
    #[error(
        "nothing can be drawn: causality forbids every exchange of the trace; check the order of its columns"
    )]
    NothingToDraw,
    #[error("{path} cannot be read: {cause}; name a CSV trace")]
    Read { path: PathBuf, cause: io::Error },
    #[error("{path}: {cause}")]
    Trace { path: PathBuf, cause: TraceError },
    #[error("{path} cannot be written: {cause}; name another file")]
    Write { path: PathBuf, cause: io::Error },
    #[error("cannot ask {server}: {cause}; name a host that this one can reach")]
    Ask { server: SocketAddr, cause: io::Error },
}

impl SyncError {
    /// For `map_err`: this file cannot be written.
    pub(super) fn write(path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        |cause| Self::Write { path, cause }
    }
}
