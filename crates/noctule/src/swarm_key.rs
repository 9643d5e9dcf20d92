//! The key that all nodes of a swarm share.

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use ring::hmac;

/// The environment variable that names the key's file.
pub const KEY_FILE_VARIABLE: &str = "NOCTULE_KEY_FILE";
/// The environment variable that holds the key itself, for containers whose secrets are variables; the processes of the same user can read it.
pub const KEY_VARIABLE: &str = "NOCTULE_KEY";

/// Keys that a file may hold: an old one, a new one, and some more.
pub const KEYS_LIMIT: usize = 4;
/// Longer files are no key files.
const FILE_BYTES_MAX: u64 = 512;

/// 32 secret bytes. Never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct SwarmKey(pub(crate) [u8; 32]);

/// Why a key file cannot be used. None of these says anything about the key.
#[derive(Debug, thiserror::Error)]
pub enum SwarmKeyError {
    /// The file cannot be read.
    #[error("the swarm key {path} cannot be read: {cause}; make one with: noctule key new {path}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
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
        "the swarm key {path} belongs to user {uid}; it must belong to the user that runs this program, or to root"
    )]
    Foreign {
        /// The file.
        path: PathBuf,
        /// Its owner.
        uid: u32,
    },
    /// Not lines of 64 hexadecimal digits.
    #[error(
        "the swarm key {path} is not one to four lines of 64 hexadecimal digits; make one with: noctule key new {path}"
    )]
    Malformed {
        /// The file.
        path: PathBuf,
    },
    /// The environment variable does not hold 64 hexadecimal digits.
    #[error(
        "{KEY_VARIABLE} does not hold 64 hexadecimal digits; unset it, or name a file in {KEY_FILE_VARIABLE}"
    )]
    Variable,
    /// A new key cannot be written.
    #[error(
        "the swarm key {path} cannot be written: {cause}; choose a file that does not exist yet, in a folder of yours"
    )]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        cause: io::Error,
    },
}

impl SwarmKey {
    /// The key of a file; without one that of the environment, if it names or holds one ([`KEY_FILE_VARIABLE`], [`KEY_VARIABLE`]).
    ///
    /// # Errors
    /// A key that is named and cannot be used: never taken for none.
    pub fn choose(file: Option<&Path>) -> Result<Option<SwarmKey>, SwarmKeyError> {
        match SwarmKey::chosen_file(file) {
            Some(file) => SwarmKey::read(&file).map(Some),
            None => SwarmKey::of_environment(),
        }
    }

    /// The file that is named, here or in the environment.
    pub(crate) fn chosen_file(file: Option<&Path>) -> Option<PathBuf> {
        file.map(Path::to_owned).or_else(|| variable(KEY_FILE_VARIABLE).map(PathBuf::from))
    }

    pub(crate) fn of_environment() -> Result<Option<SwarmKey>, SwarmKeyError> {
        let digits = variable(KEY_VARIABLE);
        digits.map(|digits| parse(digits.as_encoded_bytes()).ok_or(SwarmKeyError::Variable)).transpose()
    }

    /// Draws a key and writes it to a new file that only its owner can read.
    ///
    /// # Errors
    /// The file exists already, or cannot be written.
    pub fn create(path: &Path) -> Result<SwarmKey, SwarmKeyError> {
        let unwritable = |cause| SwarmKeyError::Unwritable { path: path.to_owned(), cause };
        let key: [u8; 32] = noctule_sys::random::secret().map_err(unwritable)?;
        // No other user can read it at any moment: the mode is that of its making.
        let mut file =
            File::options().write(true).create_new(true).mode(0o600).open(path).map_err(unwritable)?;
        let mut digits: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
        digits.push('\n');
        file.write_all(digits.as_bytes()).and_then(|()| file.sync_all()).map_err(unwritable)?;
        Ok(SwarmKey(key))
    }

    /// A fingerprint, which distinguishes keys and discloses nothing of them: 16 digits of a hash.
    pub fn fingerprint(&self) -> String {
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &self.0), b"noctule key fingerprint 1");
        tag.as_ref().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    }

    /// From 32 bytes that came from a good random source.
    pub fn from_bytes(bytes: [u8; 32]) -> SwarmKey {
        SwarmKey(bytes)
    }

    /// Reads the first key of a file that only its owner can read.
    ///
    /// # Errors
    /// As [`read_all`](SwarmKey::read_all).
    pub fn read(path: &Path) -> Result<SwarmKey, SwarmKeyError> {
        let keys = SwarmKey::read_all(path)?;
        keys.into_iter().next().ok_or_else(|| SwarmKeyError::Malformed { path: path.to_owned() })
    }

    /// Reads a file of one to [`KEYS_LIMIT`] lines of 64 hexadecimal digits that only its owner can read. The first seals, all open.
    ///
    /// # Errors
    /// Says which of these it is not.
    pub fn read_all(path: &Path) -> Result<Vec<SwarmKey>, SwarmKeyError> {
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
        file.take(FILE_BYTES_MAX).read_to_end(&mut text).map_err(unreadable)?;
        let keys: Option<Vec<SwarmKey>> = text.trim_ascii().split(|byte| *byte == b'\n').map(parse).collect();
        let keys = keys.filter(|keys| keys.len() <= KEYS_LIMIT);
        keys.ok_or_else(|| SwarmKeyError::Malformed { path: path.to_owned() })
    }
}

impl fmt::Debug for SwarmKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SwarmKey(…)")
    }
}

fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
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
    fn a_file_of_several_keys_is_read_in_order() {
        let lines = ["11", "22", "33"].map(|digits| digits.repeat(32)).join("\n");
        let (_directory, path) = file(&lines, 0o600);
        assert_eq!(SwarmKey::read_all(&path).unwrap(), [0x11, 0x22, 0x33].map(|byte| SwarmKey([byte; 32])));
        assert_eq!(SwarmKey::read(&path).unwrap(), SwarmKey([0x11; 32]));
    }

    #[test]
    fn anything_else_is_refused_and_not_repeated() {
        let five = vec!["00".repeat(32); KEYS_LIMIT + 1].join("\n");
        let half = format!("{}\nsecret", "00".repeat(32));
        for text in ["", "secret", &"0".repeat(63), &"g".repeat(64), &"0".repeat(200), &five, &half] {
            let (_directory, path) = file(text, 0o600);
            let error = SwarmKey::read(&path).unwrap_err();
            assert!(matches!(error, SwarmKeyError::Malformed { .. }));
            assert!(!error.to_string().contains("secret"));
        }
    }

    #[test]
    fn a_new_key_is_its_owners_alone_and_overwrites_none() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("new");
        let key = SwarmKey::create(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(SwarmKey::read(&path).unwrap(), key);
        let again = SwarmKey::create(&path).unwrap_err().to_string();
        assert!(again.contains("choose a file that does not exist"), "{again}");
        assert_eq!(SwarmKey::read(&path).unwrap(), key);
        assert_ne!(SwarmKey::create(&directory.path().join("other")).unwrap(), key);
    }

    #[test]
    fn fingerprints_tell_keys_apart_and_do_not_hold_them() {
        let [one, other] = [1, 2].map(|byte| SwarmKey([byte; 32]).fingerprint());
        assert_ne!(one, other);
        assert!(one.len() == 16 && !one.contains("0101"), "{one}");
    }

    #[test]
    fn a_key_is_never_printed() {
        assert_eq!(format!("{:?}", SwarmKey([7; 32])), "SwarmKey(…)");
    }
}
