//! A file that grows by whole pieces: what was written since the last commit is in memory only.
//!
//! So whatever kills the process, or the power, leaves a file that ends behind a commit; and when the disk is full, the
//! piece that does not fit is taken back and the file is as good as before.
//!
//! A piece of whole blocks that begins at a block goes to the disk past the page cache, where the file system can do that: large recordings are
//! written about twice as fast, and the robot's processes keep their cache.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::io::Errno;

use crate::block_buffer::{BLOCK_BYTES, BlockBuffer};
use crate::unnamed::New;

/// Pending bytes over a file.
#[derive(Debug)]
pub(crate) struct Staged {
    new: New,
    /// The same file past the page cache; `None` where the file system has no such way.
    direct: Option<File>,
    /// Bytes of the file that are whole.
    committed_bytes: u64,
    pending: BlockBuffer,
    /// Where the next write goes, from the start of `pending`.
    cursor: usize,
}

impl Staged {
    /// A new file; nothing is written before the first commit.
    pub(crate) fn new(new: New) -> Staged {
        let direct = new.direct();
        Staged { new, direct, committed_bytes: 0, pending: BlockBuffer::default(), cursor: 0 }
    }

    /// Whether pieces of whole blocks go past the page cache.
    pub(crate) fn is_direct(&self) -> bool {
        self.direct.is_some()
    }

    /// Bytes that lack to the end of a block.
    pub(crate) fn lacking_bytes(&self) -> usize {
        let block_bytes = BLOCK_BYTES as u64;
        (self.len_bytes().next_multiple_of(block_bytes) - self.len_bytes()) as usize
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
        let written = self.write_pending();
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

    fn write_pending(&mut self) -> io::Result<()> {
        let bytes = self.pending.bytes();
        let is_whole = bytes.len().is_multiple_of(BLOCK_BYTES)
            && self.committed_bytes.is_multiple_of(BLOCK_BYTES as u64);
        if let Some(direct) = self.direct.as_ref().filter(|_| is_whole) {
            match direct.write_all_at(bytes, self.committed_bytes) {
                // Some file systems open a file so and then refuse; and the rest of a piece that the disk took half of is not of whole blocks.
                Err(error) if error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => self.direct = None,
                written => return written,
            }
        }
        self.new.file.write_all_at(bytes, self.committed_bytes)
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
        self.pending.write_at(self.cursor, bytes);
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

    /// Where the file system knows no direct writes, both go the same way.
    #[test]
    fn whole_blocks_and_others_are_one_file() {
        let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = directory.path().join("staged");
        let mut staged = Staged::new(crate::unnamed::create(&path).unwrap());
        staged.name(&path).unwrap();
        println!("direct: {}", staged.is_direct());
        let mut expected = Vec::new();
        for (round, length) in [10, 4086, 8192, 1 << 20, 5, 100_000, 4096].into_iter().enumerate() {
            let lacking = staged.lacking_bytes();
            assert!((expected.len() + lacking).is_multiple_of(BLOCK_BYTES) && lacking < BLOCK_BYTES);
            let bytes = vec![round as u8 + 1; length];
            staged.write_all(&bytes).unwrap();
            staged.commit().unwrap();
            expected.extend(bytes);
            assert_eq!(std::fs::read(&path).unwrap(), expected);
        }
        staged.sync().unwrap();
    }

    #[test]
    fn a_file_system_that_refuses_direct_writes_gets_others() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("staged");
        let mut staged = Staged::new(crate::unnamed::create(&path).unwrap());
        staged.name(&path).unwrap();
        // Text that is no number is refused there by EINVAL, as a write that is not of whole blocks is elsewhere.
        staged.direct = Some(File::options().write(true).open("/proc/self/coredump_filter").unwrap());
        staged.write_all(&[7; 8192]).unwrap();
        staged.commit().unwrap();
        assert_eq!((std::fs::read(&path).unwrap(), staged.is_direct()), (vec![7; 8192], false));
    }
}
