//! A new file that gets its name when it has a beginning, so that no file without one is left behind.
//!
//! Reference: open(2), `O_TMPFILE`; linkat(2).

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, openat};
use rustix::io::Errno;

/// A file that is open for writing, perhaps without a name.
#[derive(Debug)]
pub(crate) struct New {
    /// The open file.
    pub(crate) file: File,
    has_name: bool,
}

/// Makes a file that will be called `path`. Where the file system has no files without names, it has its name at once.
///
/// # Errors
/// The folder is not there or may not be written; with a name at once also that `path` exists.
pub(crate) fn create(path: &Path) -> io::Result<New> {
    let new = create_unlocked(path)?;
    // While it is locked its end is still to come. Where files cannot be locked nothing depends on it but that nobody mends it meanwhile.
    let _ = new.file.try_lock();
    Ok(new)
}

fn create_unlocked(path: &Path) -> io::Result<New> {
    let named = || Ok(New { file: File::create_new(path)?, has_name: true });
    if !Path::new("/proc/self/fd").exists() {
        return named();
    }
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    match openat(CWD, folder(path), flags, Mode::from_raw_mode(0o666)) {
        Ok(file) => Ok(New { file: file.into(), has_name: false }),
        // Errors of kernels for file systems without such files.
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => named(),
        Err(error) => Err(error.into()),
    }
}

impl New {
    /// The same file, whose writes go past the page cache and must be of whole blocks; `None` where that cannot be had.
    pub(crate) fn direct(&self) -> Option<File> {
        let here = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        let flags = OFlags::WRONLY | OFlags::DIRECT | OFlags::CLOEXEC;
        Some(openat(CWD, here, flags, Mode::empty()).ok()?.into())
    }

    /// Gives the file its name, and has the disk keep it.
    ///
    /// # Errors
    /// `path` exists, or the system's.
    pub(crate) fn name(&mut self, path: &Path) -> io::Result<()> {
        if !self.has_name {
            let here = format!("/proc/self/fd/{}", self.file.as_raw_fd());
            linkat(CWD, here, CWD, path, AtFlags::SYMLINK_FOLLOW)?;
            self.has_name = true;
        }
        // Some file systems cannot be asked for a folder; then its entry is kept when they see fit.
        let _ = File::open(folder(path)).and_then(|folder| folder.sync_all());
        Ok(())
    }

    /// Leaves no file behind that has no beginning.
    pub(crate) fn give_up(&self, path: &Path) {
        if self.has_name {
            // If it cannot be removed, the next file has the next number.
            let _ = std::fs::remove_file(path);
        }
    }
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_file_is_seen_with_its_beginning_and_replaces_no_other() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("new");
        let mut new = create(&path).unwrap();
        assert!(new.has_name || !path.exists());
        new.file.write_all(b"begun").unwrap();
        new.name(&path).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"begun");
        let second = create(&path).and_then(|mut second| second.name(&path));
        assert_eq!(second.unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(&path).unwrap(), b"begun");
        assert_eq!(create(Path::new("/nowhere/new")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
