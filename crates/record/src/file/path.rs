//! Reading what lies at a path. A bag of rosbag2 cannot be read from front to back: it is a folder, or a database.

mod joined;

use std::fs::File;
use std::io::{BufReader, Cursor, Read};
use std::path::Path;

use super::foreign::rosbag2;
use super::{FileError, Take, array, read, undecodable};
use joined::Joined;

/// Endings of a recording's name.
const NAMES_END: [&str; 6] = [".mcap", ".bag", ".ulg", ".db3", ".mcap.zstd", ".db3.zstd"];
/// First bytes of a compressed file (RFC 8878, 3.1.1).
const ZSTD: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];
const BUFFER_BYTES: usize = 1 << 20;

/// Whether a name is that of a recording and not of a topic.
pub fn is_recording(name: &str) -> bool {
    NAMES_END.iter().any(|end| name.ends_with(end)) || rosbag2::is_folder(Path::new(name))
}

/// Gives record by record of a file, or of the folder of a bag of rosbag2, to `take`.
///
/// # Errors
/// It cannot be opened, or why its rest was not read.
pub fn read_path(path: &Path, take: Take<'_>) -> Result<(), FileError> {
    if path.is_dir() { read_folder(path, take) } else { read_file(path, take) }
}

/// Reads the files of a bag one after the other.
fn read_folder(folder: &Path, take: Take<'_>) -> Result<(), FileError> {
    let mut joined = Joined::default();
    for name in rosbag2::files(folder)? {
        joined.begin_file();
        let read = read_file(&folder.join(&name), &mut |record| joined.pass(&record, take));
        read.map_err(|cause| match cause {
            FileError::Stopped => FileError::Stopped,
            cause => FileError::OfBag { file: name, cause: Box::new(cause) },
        })?;
    }
    Ok(())
}

fn read_file(path: &Path, take: Take<'_>) -> Result<(), FileError> {
    let messages = rosbag2::messages_beside(path);
    let opened = File::open(path).map_err(|error| FileError::Unopened(error.to_string()))?;
    let mut file = BufReader::with_capacity(BUFFER_BYTES, opened);
    let beginning: [u8; 8] = array(&mut file)?;
    if rosbag2::is_database(beginning) {
        return rosbag2::read_database(path, messages, take);
    }
    let whole = Cursor::new(beginning).chain(file);
    if !beginning.starts_with(&ZSTD) {
        return rosbag2::unpacking(messages, take, |take| read(whole, take));
    }
    let decoder = ruzstd::decoding::StreamingDecoder::new(whole);
    let mut decoder = decoder.map_err(|error| undecodable(&error))?;
    let beginning: [u8; 8] = array(&mut decoder)?;
    let whole = Cursor::new(beginning).chain(decoder);
    if rosbag2::is_database(beginning) {
        return rosbag2::read_compressed_database(whole, take);
    }
    read(BufReader::with_capacity(BUFFER_BYTES, whole), take)
}
