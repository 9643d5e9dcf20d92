//! The key that all nodes of a swarm share.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// 32 secret bytes. Never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct SwarmKey(pub(crate) [u8; 32]);

/// Why a key file cannot be used. None of these says anything about the key.
#[derive(Debug, thiserror::Error)]
pub enum SwarmKeyError {
    /// The file cannot be read.
    #[error(
        "the swarm key {path} cannot be read: {cause}; make one with: head -c 32 /dev/urandom | xxd -p -c 64 > {path} && chmod 600 {path}"
    )]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        cause: io::Error,
    },
    /// Others than its owner may read it.
    #[error(
        "the swarm key {path} may be read by others than its owner (mode {mode:o}); say: chmod 600 {path}"
    )]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// Neither this user nor root owns it.
    #[error(
        "the swarm key {path} belongs to user {uid}; it must belong to whoever runs this program, or to root"
    )]
    Foreign {
        /// The file.
        path: PathBuf,
        /// Its owner.
        uid: u32,
    },
    /// Not 64 hexadecimal digits.
    #[error(
        "the swarm key {path} is not 64 hexadecimal digits on one line; make one with: head -c 32 /dev/urandom | xxd -p -c 64"
    )]
    Malformed {
        /// The file.
        path: PathBuf,
    },
}

impl SwarmKey {
    /// From 32 bytes that came from a good random source.
    pub fn from_bytes(bytes: [u8; 32]) -> SwarmKey {
        SwarmKey(bytes)
    }

    /// Reads a file of 64 hexadecimal digits that only its owner can read.
    ///
    /// # Errors
    /// Says which of these it is not.
    pub fn read(path: &Path) -> Result<SwarmKey, SwarmKeyError> {
        let unreadable = |cause| SwarmKeyError::Unreadable { path: path.to_owned(), cause };
        let file = File::open(path).map_err(unreadable)?;
        // Of the file that was opened, not of the name: the name may point elsewhere by now.
        let metadata = file.metadata().map_err(unreadable)?;
        let mode = metadata.mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(SwarmKeyError::Exposed { path: path.to_owned(), mode });
        }
        let uid = metadata.uid();
        if uid != 0 && uid != noctule_sys::process::user_id() {
            return Err(SwarmKeyError::Foreign { path: path.to_owned(), uid });
        }
        let mut text = Vec::new();
        file.take(128).read_to_end(&mut text).map_err(unreadable)?;
        parse(&text).ok_or_else(|| SwarmKeyError::Malformed { path: path.to_owned() })
    }
}

impl fmt::Debug for SwarmKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SwarmKey(…)")
    }
}

fn parse(text: &[u8]) -> Option<SwarmKey> {
    let digits: &[u8; 64] = text.trim_ascii().try_into().ok()?;
    let mut key = [0; 32];
    for (byte, pair) in key.iter_mut().zip(digits.chunks_exact(2)) {
        let high = char::from(pair[0]).to_digit(16)?;
        let low = char::from(pair[1]).to_digit(16)?;
        *byte = (high * 16 + low) as u8;
    }
    Some(SwarmKey(key))
}

#[cfg(test)]
mod tests {
    use std::fs::{Permissions, set_permissions, write};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn file(text: &str, mode: u32) -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        write(&path, text).unwrap();
        set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        (directory, path)
    }

    #[test]
    fn sixty_four_digits_of_either_case_are_a_key() {
        let (_directory, path) = file(&format!("{}\n", "aB".repeat(32)), 0o600);
        assert_eq!(SwarmKey::read(&path).unwrap(), SwarmKey([0xab; 32]));
    }

    #[test]
    fn a_key_that_others_can_read_is_refused_with_the_way_out() {
        let (_directory, path) = file(&"00".repeat(32), 0o640);
        let sentence = SwarmKey::read(&path).unwrap_err().to_string();
        assert!(sentence.contains("mode 640") && sentence.contains("chmod 600"), "{sentence}");
    }

    #[test]
    fn anything_else_is_refused_and_not_repeated() {
        for text in ["", "secret", &"0".repeat(63), &"g".repeat(64), &"0".repeat(200)] {
            let (_directory, path) = file(text, 0o600);
            let error = SwarmKey::read(&path).unwrap_err();
            assert!(matches!(error, SwarmKeyError::Malformed { .. }));
            assert!(!error.to_string().contains("secret"));
        }
    }

    #[test]
    fn a_key_is_never_printed() {
        assert_eq!(format!("{:?}", SwarmKey([7; 32])), "SwarmKey(…)");
    }
}
