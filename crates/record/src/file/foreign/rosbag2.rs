//! Bags of rosbag2: a folder with `metadata.yaml` and one file after the other, in MCAP or in [SQLite](sqlite), whole or compressed.
//!
//! Reference: `rosbag2_storage/src/rosbag2_storage/bag_metadata.cpp` and `rosbag2_compression` of ROS 2. Versions 1 to 9 of the metadata
//! have the same words for what is read here: the names of the files (in front of which the first versions put their folder) and how they are compressed.

mod sqlite;

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use serde::Deserialize;

use crate::file::{FileError, RECORD_BYTES_MAX, Record, Take, sentence, undecodable};

const METADATA: &str = "metadata.yaml";
/// Metadata name each topic and each file.
const METADATA_BYTES_MAX: u64 = 16 << 20;
/// A compressed database is unpacked to a temporary file of at most so many bytes.
const UNPACKED_BYTES_MAX: u64 = 64 << 30;

/// Whether each message of a bag is compressed by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Messages {
    Plain,
    Zstd,
}

#[derive(Deserialize)]
struct Metadata {
    rosbag2_bagfile_information: Information,
}

#[derive(Deserialize)]
struct Information {
    relative_file_paths: Vec<String>,
    #[serde(default)]
    compression_format: Option<String>,
    #[serde(default)]
    compression_mode: Option<String>,
}

impl Information {
    fn read(folder: &Path) -> Result<Information, FileError> {
        let opened = File::open(folder.join(METADATA));
        let opened = opened.map_err(|error| FileError::Unopened(format!("{METADATA}: {error}")))?;
        let mut text = String::new();
        opened.take(METADATA_BYTES_MAX).read_to_string(&mut text).map_err(sentence)?;
        Information::parse(&text)
    }

    fn parse(text: &str) -> Result<Information, FileError> {
        let metadata: Result<Metadata, _> = serde_saphyr::from_str(text);
        let first_line = |error: String| error.lines().next().unwrap_or_default().to_owned();
        let wrong = |why: String| FileError::Unreadable(format!("{METADATA}: {}", first_line(why)));
        metadata.map(|all| all.rosbag2_bagfile_information).map_err(|error| wrong(error.to_string()))
    }

    /// Information embedded in a database: the same text, or only its contents. Unreadable text gives none.
    fn embedded(text: &str) -> Option<Information> {
        Information::parse(text).ok().or_else(|| serde_saphyr::from_str(text).ok())
    }

    /// Names of the files; what stands before a name is the bag's folder as it was called once.
    fn files(&self) -> impl Iterator<Item = &str> {
        self.relative_file_paths.iter().filter_map(|path| Path::new(path).file_name()?.to_str())
    }

    fn messages(&self) -> Result<Messages, FileError> {
        let word = |word: &Option<String>| word.as_deref().unwrap_or_default().to_lowercase();
        match (word(&self.compression_mode).as_str(), word(&self.compression_format).as_str()) {
            ("message", "zstd") => Ok(Messages::Zstd),
            ("message", other) => Err(FileError::Compression(other.escape_debug().to_string())),
            // The compression of a file is seen in the file.
            _ => Ok(Messages::Plain),
        }
    }
}

/// Whether a folder is that of a bag.
pub(crate) fn is_folder(path: &Path) -> bool {
    path.join(METADATA).is_file()
}

/// Whether a file that begins so is a database.
pub(crate) fn is_database(beginning: [u8; 8]) -> bool {
    &beginning == b"SQLite f"
}

/// Messages of a file as the metadata beside it count them; `None` where there are no metadata.
pub(crate) fn messages_beside(file: &Path) -> Option<Messages> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let information = is_folder(folder).then(|| Information::read(folder).ok()).flatten()?;
    let is_listed = information.files().any(|name| file.file_name().is_some_and(|own| own == name));
    is_listed.then(|| information.messages().ok()).flatten()
}

/// Names of the files of a bag, in the order in which they were written.
///
/// # Errors
/// It is no bag, or one that is compressed in a way that is not known.
pub(crate) fn files(folder: &Path) -> Result<Vec<String>, FileError> {
    if !is_folder(folder) {
        return Err(FileError::NoBag(
            "it is a folder without metadata.yaml, so no bag of rosbag2; name a file in it",
        ));
    }
    let information = Information::read(folder)?;
    information.messages()?;
    Ok(information.files().map(str::to_owned).collect())
}

/// Reads a database, and unpacks its messages if what lies beside it or in it says so.
///
/// # Errors
/// Why its rest was not read.
pub(crate) fn read_database(
    path: &Path,
    messages: Option<Messages>,
    take: Take<'_>,
) -> Result<(), FileError> {
    let bag = sqlite::Bag::open(path)?;
    let embedded = || Information::embedded(&bag.metadata()?);
    let messages = match (messages, embedded()) {
        (None, Some(information)) => Some(information.messages()?),
        (messages, _) => messages,
    };
    unpacking(messages, take, |take| bag.read(take))
}

/// Reads a database that was compressed as a whole: SQLite needs a file.
///
/// # Errors
/// There is no room for the file, or why the rest was not read.
pub(crate) fn read_compressed_database(packed: impl Read, take: Take<'_>) -> Result<(), FileError> {
    let no_room = |error: io::Error| {
        FileError::Unreadable(format!(
            "it cannot be unpacked: {error}; TMPDIR names the folder that needs room for that"
        ))
    };
    let mut unpacked = tempfile::NamedTempFile::new().map_err(no_room)?;
    let length_bytes = io::copy(&mut packed.take(UNPACKED_BYTES_MAX + 1), &mut unpacked).map_err(no_room)?;
    if length_bytes > UNPACKED_BYTES_MAX {
        return Err(FileError::TooLarge(format!(
            "it would be longer than {UNPACKED_BYTES_MAX} bytes when it is unpacked"
        )));
    }
    // A bag is compressed by file or by message.
    read_database(unpacked.path(), Some(Messages::Plain), take)
}

/// Has `read` give its records to `take`, with the payload of each message unpacked if it is packed.
pub(crate) fn unpacking(
    messages: Option<Messages>,
    take: Take<'_>,
    read: impl FnOnce(Take<'_>) -> Result<(), FileError>,
) -> Result<(), FileError> {
    if messages != Some(Messages::Zstd) {
        return read(take);
    }
    read(&mut |record| match record {
        Record::Message { channel, sequence, log_ns, publish_ns, payload } => {
            let payload = unpacked(payload)?;
            take(Record::Message { channel, sequence, log_ns, publish_ns, payload: &payload })
        }
        other => take(other),
    })
}

fn unpacked(payload: &[u8]) -> Result<Vec<u8>, FileError> {
    let decoder = ruzstd::decoding::StreamingDecoder::new(payload).map_err(|error| undecodable(&error))?;
    let mut bytes = Vec::new();
    decoder.take(RECORD_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(sentence)?;
    if bytes.len() as u64 > RECORD_BYTES_MAX {
        return Err(FileError::TooLarge(format!(
            "a message is longer than {RECORD_BYTES_MAX} bytes when it is unpacked"
        )));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests;
