//! Thin, safe wrappers over the Linux calls Noctule needs.
//!
//! Everything here does one system-level thing and returns the kernel's own error. Unsafe code of
//! the workspace lives here (and in `shm-ring` and the FFI glue), so that the rest can forbid it.

#![allow(unsafe_code)] // this is the place for it; each block states why it is sound

pub mod clock;
pub mod datagram;
pub mod datagram_batch;
pub mod fork_guard;
pub mod input_device;
pub mod interface;
pub mod local_socket;
pub mod namespace;
pub mod network_changes;
pub mod process;
pub mod pulse;
pub mod random;
pub mod scheduling;

pub mod sealed_memory;
pub mod serial;
pub mod shared_memory;
pub mod tun;
