//! From a payload to the bytes on the line.

use crate::{BEGIN, ESCAPE, FLIP, crc16};

/// The buffer is shorter than the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the frame does not fit; give it encoded_bytes_max of the payload's length, which is at most 65535")]
pub struct NoRoom;

/// The most bytes that a payload of this length can take on the line, when each of them is escaped.
pub const fn encoded_bytes_max(payload_bytes: usize) -> usize {
    1 + 2 * (4 + payload_bytes + 2)
}

/// Writes one frame to the start of `out` and returns its length in bytes.
///
/// # Errors
/// `out` is too short, or the payload is longer than 65,535 bytes. `out` then holds a useless beginning.
pub fn encode(source: u8, destination: u8, payload: &[u8], out: &mut [u8]) -> Result<usize, NoRoom> {
    let length = u16::try_from(payload.len()).map_err(|_| NoRoom)?.to_le_bytes();
    let mut at = 0;
    let mut put = |byte| {
        *out.get_mut(at).ok_or(NoRoom)? = byte;
        at += 1;
        Ok(())
    };
    put(BEGIN)?;
    let header = [source, destination, length[0], length[1]];
    let crc = crc16(payload).to_le_bytes();
    for byte in header.iter().chain(payload).chain(&crc) {
        if matches!(*byte, BEGIN | ESCAPE) {
            put(ESCAPE)?;
            put(byte ^ FLIP)?;
        } else {
            put(*byte)?;
        }
    }
    Ok(at)
}
