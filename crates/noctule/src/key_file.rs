//! A key file that is watched: keys are changed while the swarm goes on.
//!
//! The file has up to four keys. The first seals, all open. So a key is changed in three steps, each of them on every node
//! before the next: the new key is added as the second line; the lines change places; the old line is removed. From
//! the last step on what the old key seals is refused.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use noctule_timebase::{Instant, Span};

use crate::clock::Raw;
use crate::swarm_key::{SwarmKey, SwarmKeyError};

/// Between two looks at the file.
const LOOK_AGAIN: Span = Span::from_s(1);

/// Identity of a file's content: device, number, length, seconds and nanoseconds of its time; another when the file is written or replaced.
type Stamp = (u64, u64, u64, i64, i64);

/// A key file, its keys as last read, and when it is read again.
#[derive(Debug)]
pub(crate) struct KeyFile {
    path: PathBuf,
    stamp: Option<Stamp>,
    looked: Option<Instant<Raw>>,
}

impl KeyFile {
    /// Reads the keys of a file, and what to compare it with later.
    ///
    /// # Errors
    /// As [`SwarmKey::read_all`].
    pub(crate) fn open(path: PathBuf) -> Result<(KeyFile, Vec<SwarmKey>), SwarmKeyError> {
        // Before it is read: a change in between is seen later.
        let stamp = stamp(&path);
        let keys = SwarmKey::read_all(&path)?;
        Ok((KeyFile { path, stamp, looked: None }, keys))
    }

    /// The keys of the file, or why there are none, if it has changed; looks once a second.
    pub(crate) fn poll(&mut self, now: Instant<Raw>) -> Option<Result<Vec<SwarmKey>, SwarmKeyError>> {
        if self.looked.is_some_and(|looked| now - looked < LOOK_AGAIN) {
            return None;
        }
        self.looked = Some(now);
        let stamp = stamp(&self.path);
        if stamp == self.stamp {
            return None;
        }
        self.stamp = stamp;
        Some(SwarmKey::read_all(&self.path))
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let known = fs::metadata(path).ok()?;
    Some((known.dev(), known.ino(), known.len(), known.mtime(), known.mtime_nsec()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_change_is_seen_once_and_a_file_that_is_gone_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        let write = |text: &str| {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        };
        write(&"11".repeat(32));
        let (mut file, keys) = KeyFile::open(path.clone()).unwrap();
        assert_eq!(keys, [SwarmKey::from_bytes([0x11; 32])]);
        let at = |ms: i64| Instant::from_ns(ms * 1_000_000);
        assert!(file.poll(at(0)).is_none());
        write(&["11".repeat(32), "22".repeat(32)].join("\n"));
        assert!(file.poll(at(500)).is_none(), "not before a second has passed");
        assert_eq!(file.poll(at(1_000)).unwrap().unwrap().len(), 2);
        assert!(file.poll(at(2_000)).is_none());
        fs::remove_file(&path).unwrap();
        assert!(matches!(file.poll(at(3_000)), Some(Err(SwarmKeyError::Unreadable { .. }))));
        assert!(file.poll(at(4_000)).is_none());
    }
}
