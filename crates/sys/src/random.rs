//! Secrets from the kernel.

use std::io;

use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};

/// Bytes that nobody can predict. Blocks until the kernel has gathered enough, which after boot it has.
pub fn secret<const BYTES: usize>() -> io::Result<[u8; BYTES]> {
    let mut secret = [0; BYTES];
    let mut filled = 0;
    while filled < BYTES {
        match getrandom(&mut secret[filled..], GetRandomFlags::empty()) {
            Ok(count) => filled += count,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(secret)
}
