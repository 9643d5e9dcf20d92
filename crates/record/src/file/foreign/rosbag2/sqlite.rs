//! The database of a bag: tables `topics` and `messages`, and in later versions `message_definitions` and `metadata`.
//!
//! Reference: `rosbag2_storage_sqlite3/src/rosbag2_storage_sqlite3/sqlite_storage.cpp` of ROS 2 Foxy to Jazzy (versions 1 to 4 of the schema).
//! SQLite's own library reads it (sqlite.org/fileformat.html). A file that somebody else made is data, not a program: it is opened for reading,
//! views and virtual tables in place of tables are refused, and steps and bytes are limited by the length of the file.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{Connection, ErrorCode, OpenFlags, Row};

use crate::file::foreign::metadata;
use crate::file::{FileError, RECORD_BYTES_MAX, Record, Take};

/// Most topics: each has a schema with the next number.
const TOPICS_MAX: usize = 65_534;
/// SQLite asks so often whether it may go on.
const STEPS_AT_ONCE: u64 = 10_000;
/// Steps that any file may take, and those for each of its bytes. A message takes about 15 steps and 35 bytes at least, with its entry in the index.
const STEPS_LEAST: u64 = 1_000_000;
const STEPS_PER_BYTE: u64 = 4;

/// An open database.
pub(super) struct Bag {
    connection: Connection,
    /// Length, with what was written and not yet merged.
    length_bytes: u64,
}

/// A bag's definition of a type: language and text.
type Definition = (String, String);

impl Bag {
    pub(super) fn open(path: &Path) -> Result<Bag, FileError> {
        let length = |path: &Path| std::fs::metadata(path).map_or(0, |metadata| metadata.len());
        let unmerged_bytes = length(&unmerged(path));
        let length_bytes = length(path) + unmerged_bytes;
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let opened = Connection::open_with_flags(address(path, unmerged_bytes == 0)?, flags);
        let mut connection = opened.map_err(refused)?;
        limit(&mut connection, length_bytes).map_err(refused)?;
        let tables = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND rootpage > 0 \
                      AND name IN ('topics', 'messages')";
        let tables: i64 = connection.query_row(tables, (), |row| row.get(0)).map_err(refused)?;
        if tables != 2 {
            return Err(FileError::NoBag(
                "it is a database without the tables topics and messages, so no bag of rosbag2",
            ));
        }
        Ok(Bag { connection, length_bytes })
    }

    /// The text of `metadata.yaml`, as later versions have it in the database too.
    pub(super) fn metadata(&self) -> Option<String> {
        let newest = "SELECT metadata FROM metadata ORDER BY id DESC LIMIT 1";
        self.connection.query_row(newest, (), |row| row.get(0)).ok()
    }

    /// Gives topics, then messages by their time, and those of the same time in the order in which they were written.
    pub(super) fn read(&self, take: Take<'_>) -> Result<(), FileError> {
        take(Record::Header { profile: "ros2" })?;
        let channels = self.topics(take)?;
        let mut sequences = vec![0_u32; channels.len()];
        let messages = "SELECT topic_id, timestamp, data FROM messages ORDER BY timestamp, id";
        let mut statement = self.connection.prepare(messages).map_err(refused)?;
        let mut rows = statement.query(()).map_err(refused)?;
        let mut read_bytes = 0_u64;
        while let Some(row) = rows.next().map_err(refused)? {
            let topic: i64 = row.get(0).map_err(refused)?;
            let undeclared =
                || FileError::Damaged(format!("a message names topic {topic}, which is not declared").into());
            let channel = *channels.get(&topic).ok_or_else(undeclared)?;
            let payload = row.get_ref(2).map_err(refused)?.as_blob();
            let payload = payload.map_err(|_| FileError::Damaged("a message has no bytes".into()))?;
            read_bytes += payload.len() as u64;
            if read_bytes > self.length_bytes {
                return Err(FileError::Damaged("its messages are longer than the file".into()));
            }
            let log_ns = row.get::<_, i64>(1).ok().and_then(|ns| u64::try_from(ns).ok());
            let log_ns =
                log_ns.ok_or_else(|| FileError::Damaged("a message has no time since 1970".into()))?;
            let sequence = sequences[usize::from(channel)];
            take(Record::Message { channel, sequence, log_ns, publish_ns: log_ns, payload })?;
            sequences[usize::from(channel)] = sequence.wrapping_add(1);
        }
        Ok(())
    }

    /// Gives a schema and a channel for each topic; returns the channels by the bag's own numbers.
    fn topics(&self, take: Take<'_>) -> Result<HashMap<i64, u16>, FileError> {
        let definitions = self.definitions()?;
        let mut statement = self.connection.prepare("SELECT * FROM topics ORDER BY id").map_err(refused)?;
        let has = |name| statement.column_index(name).is_ok();
        let (has_qos, has_hash) = (has("offered_qos_profiles"), has("type_description_hash"));
        let mut rows = statement.query(()).map_err(refused)?;
        let mut channels = HashMap::new();
        while let Some(row) = rows.next().map_err(refused)? {
            let id = channels.len();
            if id >= TOPICS_MAX {
                return Err(FileError::TooLarge(format!(
                    "it has more than {TOPICS_MAX} topics; so many are read at most"
                )));
            }
            let type_name = text(row, "type")?;
            let (language, definition) = definitions.get(&type_name).cloned().unwrap_or_default();
            take(Record::Schema {
                id: id as u16 + 1,
                name: &type_name,
                encoding: &language,
                text: definition.as_bytes(),
            })?;
            let mut pairs = Vec::new();
            if has_qos {
                pairs.push(("offered_qos_profiles", text(row, "offered_qos_profiles")?));
            }
            if has_hash {
                pairs.push(("topic_type_hash", text(row, "type_description_hash")?));
            }
            let pairs: Vec<_> = pairs.iter().map(|(key, value)| (*key, value.as_str())).collect();
            take(Record::Channel {
                id: id as u16,
                schema: id as u16 + 1,
                topic: &text(row, "name")?,
                encoding: &text(row, "serialization_format")?,
                metadata: &metadata(&pairs),
            })?;
            channels.insert(row.get("id").map_err(refused)?, id as u16);
        }
        Ok(channels)
    }

    /// Definitions by type. Bags of Humble and before have none.
    fn definitions(&self) -> Result<HashMap<String, Definition>, FileError> {
        let has = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND rootpage > 0 \
                   AND name = 'message_definitions'";
        if self.connection.query_row(has, (), |row| row.get::<_, i64>(0)).map_err(refused)? == 0 {
            return Ok(HashMap::new());
        }
        let all = "SELECT topic_type, encoding, encoded_message_definition FROM message_definitions";
        let mut statement = self.connection.prepare(all).map_err(refused)?;
        let rows = statement.query_map((), |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?))));
        let mut definitions = HashMap::new();
        for row in rows.map_err(refused)? {
            let (name, (language, text)): (String, Definition) = row.map_err(refused)?;
            if definitions.len() >= TOPICS_MAX {
                return Err(FileError::TooLarge(format!("it has more than {TOPICS_MAX} definitions")));
            }
            // rosbag2 writes "unknown" for a type whose definition it has not found.
            if !text.is_empty() && language != "unknown" {
                definitions.insert(name, (language, text));
            }
        }
        Ok(definitions)
    }
}

fn text(row: &Row<'_>, column: &str) -> Result<String, FileError> {
    row.get(column).map_err(refused)
}

/// Path of a database's write-ahead log.
fn unmerged(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    name.into()
}

/// The database as a URI. One without a writer is read without locks, so that a medium that cannot be written to will do.
fn address(path: &Path, is_immutable: bool) -> Result<String, FileError> {
    let absolute = path.canonicalize().map_err(|error| FileError::Unopened(error.to_string()))?;
    let escaped = |byte: u8| match byte {
        b'/' | b'.' | b'-' | b'_' | b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    let path: String = absolute.as_os_str().as_encoded_bytes().iter().copied().map(escaped).collect();
    Ok(format!("file:{path}?immutable={}", u8::from(is_immutable)))
}

fn limit(connection: &mut Connection, length_bytes: u64) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, RECORD_BYTES_MAX as i32)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    // A file that was cut is read up to its cut; without this SQLite refuses it whole.
    connection.pragma_update(None, "writable_schema", true)?;
    let mut steps_left = STEPS_LEAST.saturating_add(length_bytes.saturating_mul(STEPS_PER_BYTE));
    let is_too_long = move || {
        steps_left = steps_left.saturating_sub(STEPS_AT_ONCE);
        steps_left == 0
    };
    connection.progress_handler(STEPS_AT_ONCE as i32, Some(is_too_long))
}

fn refused(error: rusqlite::Error) -> FileError {
    match error.sqlite_error_code() {
        Some(ErrorCode::OperationInterrupted) => {
            FileError::Damaged("reading it takes more steps than a bag of its length can need".into())
        }
        Some(ErrorCode::TooBig) => {
            FileError::TooLarge(format!("a message has more than {RECORD_BYTES_MAX} bytes"))
        }
        _ => FileError::Unreadable(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endless_reading_ends() {
        let mut connection = Connection::open_in_memory().unwrap();
        limit(&mut connection, 0).unwrap();
        let endless = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM r) SELECT max(n) FROM r";
        let read = connection.query_row(endless, (), |row| row.get::<_, i64>(0));
        assert!(refused(read.unwrap_err()).to_string().contains("more steps"));
    }
}
