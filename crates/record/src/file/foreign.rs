//! Files of other recorders, read as the records of an MCAP file, so that a program that reads one reads all.
//!
//! - [`rosbag1`]: bags of ROS 1, version 2.0.
//! - `rosbag2`: bags of ROS 2, as folders and in SQLite; they have a path and cannot be read from front to back.
//! - [`ulog`]: logs of PX4, with their values in CDR.
//!
//! The parsers of the first and the last are our own, small and limited: `rosbag` 0.6.3 maps the file into memory and has not changed since 2024; `px4-ulog` 0.6.1
//! panics at messages that are too short.

pub mod rosbag1;
pub(crate) mod rosbag2;
pub mod ulog;

use std::io::Read;

use crate::file::{FileError, Take};

/// So many bytes tell what kind of file it is; every file of these kinds has them.
pub(crate) const BEGINNING_BYTES: usize = 8;

/// Reads what follows the beginning of a file that is not MCAP.
///
/// # Errors
/// It is no file that is known, or why its rest was not read.
pub(crate) fn read(
    beginning: [u8; BEGINNING_BYTES],
    file: impl Read,
    take: Take<'_>,
) -> Result<(), FileError> {
    match &beginning {
        b"#ROSBAG " => rosbag1::read(file, take),
        [b'U', b'L', b'o', b'g', 1, 0x12, 0x35, _] => ulog::read(file, take),
        b"SQLite f" => Err(FileError::Sqlite),
        _ => Err(FileError::NotMcap),
    }
}

/// Pairs of key and value, as they stand in a channel of MCAP.
fn metadata(pairs: &[(&str, &str)]) -> Vec<u8> {
    let mut body = Vec::new();
    for text in pairs.iter().flat_map(|(key, value)| [key, value]) {
        body.extend((text.len() as u32).to_le_bytes());
        body.extend(text.as_bytes());
    }
    [&(body.len() as u32).to_le_bytes()[..], &body].concat()
}

/// Reads as many bytes as there should be, without allocating by their number.
fn bytes(reader: &mut impl Read, length_bytes: u64) -> Result<Vec<u8>, FileError> {
    let mut body = Vec::new();
    reader.take(length_bytes).read_to_end(&mut body).map_err(crate::file::sentence)?;
    if (body.len() as u64) < length_bytes { Err(FileError::Cut) } else { Ok(body) }
}
