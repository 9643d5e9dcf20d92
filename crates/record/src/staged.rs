//! A file that grows by whole pieces: what was written since the last commit is in memory only.
//!
//! So whatever kills the process, or the power, leaves a file that ends behind a commit; and when the disk is full, the
//! piece that does not fit is taken back and the file is as good as before.

use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::unnamed::New;

/// Pending bytes over a file.
#[derive(Debug)]
pub(crate) struct Staged {
    new: New,
    /// Bytes of the file that are whole.
    committed_bytes: u64,
    pending: Vec<u8>,
    /// Where the next write goes, from the start of `pending`.
    cursor: usize,
}

impl Staged {
    /// A new file; nothing is written before the first commit.
    pub(crate) fn new(new: New) -> Staged {
        Staged { new, committed_bytes: 0, pending: Vec::new(), cursor: 0 }
    }

    /// Length, pending bytes included.
    pub(crate) fn len_bytes(&self) -> u64 {
        self.committed_bytes + self.pending.len() as u64
    }

    /// Writes what is pending to the file.
    ///
    /// # Errors
    /// The system's, e.g. a full disk. The file ends behind the last commit then, and what was pending is dropped.
    pub(crate) fn commit(&mut self) -> io::Result<()> {
        let written = self.new.file.write_all_at(&self.pending, self.committed_bytes);
        if written.is_ok() {
            self.committed_bytes += self.pending.len() as u64;
        } else {
            // If this fails too, the file ends with a piece of a record, which readers step over.
            let _ = self.new.file.set_len(self.committed_bytes);
        }
        self.pending.clear();
        self.cursor = 0;
        written
    }

    /// Gives the file its name, with what was committed.
    ///
    /// # Errors
    /// There is a file of that name, or the system's.
    pub(crate) fn name(&mut self, path: &Path) -> io::Result<()> {
        self.new.name(path)
    }

    /// Removes the file if it has its name before its beginning.
    pub(crate) fn give_up(&self, path: &Path) {
        self.new.give_up(path);
    }

    /// Waits until the disk has what was committed.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.new.file.sync_data()
    }
}

impl Write for Staged {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let overwritten = bytes.len().min(self.pending.len() - self.cursor);
        self.pending[self.cursor..][..overwritten].copy_from_slice(&bytes[..overwritten]);
        self.pending.extend_from_slice(&bytes[overwritten..]);
        self.cursor += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for Staged {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let here = self.committed_bytes + self.cursor as u64;
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => here.checked_add_signed(by),
            SeekFrom::End(by) => self.len_bytes().checked_add_signed(by),
        };
        let at = at.filter(|at| (self.committed_bytes..=self.len_bytes()).contains(at));
        let at = at.ok_or_else(|| io::Error::other("a committed part of the file cannot be changed"))?;
        self.cursor = (at - self.committed_bytes) as usize;
        Ok(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_committed_is_in_the_file_and_what_is_pending_can_be_changed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("staged");
        let mut staged = Staged::new(crate::unnamed::create(&path).unwrap());
        staged.write_all(b"12345678").unwrap();
        staged.seek(SeekFrom::Start(2)).unwrap();
        staged.write_all(b"ab").unwrap();
        staged.seek(SeekFrom::End(0)).unwrap();
        staged.name(&path).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"");
        staged.commit().unwrap();
        staged.write_all(b"9").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"12ab5678");
        assert_eq!(staged.len_bytes(), 9);
        assert!(staged.seek(SeekFrom::Start(3)).is_err());
        staged.commit().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"12ab56789");
    }
}
