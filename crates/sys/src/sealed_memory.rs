//! Memory lent to other processes that do not trust its owner, nor the owner them.
//!
//! A memfd whose size no process can change any more, not even its owner: a process that maps it cannot be
//! killed by a truncation (SIGBUS). Data that only the owner may write is sealed against future
//! writable mappings, too; the owner's own mapping is older than the seal and stays writable. Since
//! a memfd has no name, nothing is left behind, however a process dies.
//!
//! References: `memfd_create(2)`, `fcntl(2)` on file seals.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, ftruncate, memfd_create};
use rustix::io::Errno;
use rustix::mm::{MapFlags, MlockFlags, MprotectFlags, MsyncFlags, ProtFlags, mlock_with, mprotect, msync};

/// The largest region that is created or accepted: 64 GiB.
pub const LENGTH_BYTES_MAX: u64 = 64 << 30;

/// Larger regions get their pages when they are first used: a thousand topics of cameras that never send
/// would else take all memory. That holds in a process that has locked its memory, too: there the pages are locked as they come.
pub const PRESENT_BYTES_MAX: usize = 256 << 10;

/// Which processes may write a region after it was created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WrittenBy {
    /// Only its creator, through the mapping it has already.
    Creator,
    /// Every process that has the descriptor.
    Holder,
}

impl WrittenBy {
    fn seals(self) -> SealFlags {
        let size = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
        match self {
            Self::Creator => size | SealFlags::FUTURE_WRITE,
            Self::Holder => size,
        }
    }
}

/// A mapping of sealed memory of fixed size.
///
/// Holds no references to the memory: others may write it at any time, so it is reached through
/// [`Self::start`] by code that knows what that means.
#[derive(Debug)]
pub struct SealedMemory {
    start: NonNull<u8>,
    length_bytes: usize,
    writable: bool,
}

// SAFETY: a mapping belongs to the process, not to a thread; the value only carries its address.
unsafe impl Send for SealedMemory {}
// SAFETY: as above; there are no methods that touch the memory.
unsafe impl Sync for SealedMemory {}

impl SealedMemory {
    /// Creates `length_bytes` of zeros and seals it; the descriptor is for those it is lent to. Up to
    /// [`PRESENT_BYTES_MAX`] it is present in memory (no page fault on first use).
    ///
    /// # Errors
    /// The kernel's, and `InvalidInput` for 0 or more than [`LENGTH_BYTES_MAX`] bytes.
    pub fn create(length_bytes: usize, written_by: WrittenBy) -> io::Result<(Self, OwnedFd)> {
        if length_bytes == 0 || length_bytes as u64 > LENGTH_BYTES_MAX {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let descriptor = memfd_create("noctule", flags)?;
        ftruncate(&descriptor, length_bytes as u64)?;
        // Mapped first: the seal on writing refuses writable mappings from then on.
        let memory = Self::map(descriptor.as_fd(), length_bytes, true)?;
        fcntl_add_seals(&descriptor, written_by.seals())?;
        Ok((memory, descriptor))
    }

    /// Creates `length_bytes` of zeros without a descriptor, for this process alone: where it can have none.
    ///
    /// # Errors
    /// As of [`Self::create`].
    pub fn unnamed(length_bytes: usize) -> io::Result<Self> {
        if length_bytes == 0 || length_bytes as u64 > LENGTH_BYTES_MAX {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // Without access at first; see `map`.
        let (first, shared) = (ProtFlags::empty(), MapFlags::SHARED);
        // SAFETY: a fresh mapping at an address the kernel chooses; it aliases nothing of ours.
        let start = unsafe { rustix::mm::mmap_anonymous(std::ptr::null_mut(), length_bytes, first, shared)? };
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        let memory = Self { start, length_bytes, writable: true };
        memory.allow_access()?;
        Ok(memory)
    }

    /// Maps what another process created, after making sure that no process can truncate it: writable if
    /// it is [`WrittenBy::Holder`], read-only if it is [`WrittenBy::Creator`].
    ///
    /// # Errors
    /// The kernel's, and `PermissionDenied` for a descriptor without the seals, `InvalidData` for one
    /// that is empty or larger than [`LENGTH_BYTES_MAX`].
    pub fn open(descriptor: OwnedFd, written_by: WrittenBy) -> io::Result<Self> {
        if !fcntl_get_seals(&descriptor)?.contains(written_by.seals()) {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "the shared memory is not sealed, so its owner could truncate it under us; refused",
            ));
        }
        let file = File::from(descriptor);
        // The size is read after the seals, so it holds from now on.
        let length = file.metadata()?.len();
        match usize::try_from(length) {
            Ok(bytes) if bytes > 0 && length <= LENGTH_BYTES_MAX => {
                Self::map(file.as_fd(), bytes, written_by == WrittenBy::Holder)
            }
            _ => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("shared memory of {length} bytes; between 1 and {LENGTH_BYTES_MAX} are accepted"),
            )),
        }
    }

    /// First byte; page-aligned, valid for [`Self::length_bytes`] while the value lives.
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Size in bytes.
    pub fn length_bytes(&self) -> usize {
        self.length_bytes
    }

    /// Whether this mapping may be written.
    pub fn is_writable(&self) -> bool {
        self.writable
    }

    fn map(file: BorrowedFd<'_>, length_bytes: usize, writable: bool) -> io::Result<Self> {
        let is_present = length_bytes <= PRESENT_BYTES_MAX;
        let protection = if writable { ProtFlags::READ | ProtFlags::WRITE } else { ProtFlags::READ };
        // After mlockall(MCL_FUTURE) the kernel would fill a region that may be accessed, at 0.7 ms per MiB while all threads wait.
        let (first, present) = if is_present {
            (protection, MapFlags::POPULATE)
        } else {
            (ProtFlags::empty(), MapFlags::empty())
        };
        // SAFETY: a fresh mapping at an address the kernel chooses; it aliases nothing of ours. The
        // file cannot shrink: it is sealed, or ours alone until it is.
        let start = unsafe {
            rustix::mm::mmap(std::ptr::null_mut(), length_bytes, first, MapFlags::SHARED | present, file, 0)?
        };
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        let memory = Self { start, length_bytes, writable };
        if !is_present {
            memory.allow_access()?;
        }
        Ok(memory)
    }

    /// Makes a region accessible that was mapped without access. If the process's memory is locked, a page of it is locked once it is used.
    fn allow_access(&self) -> io::Result<()> {
        let (start, length_bytes) = (self.start.as_ptr().cast(), self.length_bytes);
        // SAFETY: the whole mapping, and nothing has used it yet. Invalidating a shared mapping of memory changes no byte.
        let locked = unsafe { msync(start, length_bytes, MsyncFlags::INVALIDATE) };
        // msync(2): a memory lock exists for the range.
        if locked == Err(Errno::BUSY) {
            // SAFETY: as above; locking changes no byte.
            unsafe { mlock_with(start, length_bytes, MlockFlags::ONFAULT)? };
        }
        let access = MprotectFlags::READ;
        let access = if self.writable { access | MprotectFlags::WRITE } else { access };
        // SAFETY: as above; no reference to the range exists.
        unsafe { mprotect(start, length_bytes, access) }.map_err(io::Error::from)
    }
}

impl Drop for SealedMemory {
    fn drop(&mut self) {
        // SAFETY: exactly the range mapped in `map`. Unmapping a valid range cannot fail.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.length_bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_sees_what_the_creator_writes_and_cannot_map_it_writable() {
        let (owner, descriptor) = SealedMemory::create(8192, WrittenBy::Creator).unwrap();
        let reader = SealedMemory::open(descriptor.try_clone().unwrap(), WrittenBy::Creator).unwrap();
        assert!(!reader.is_writable());
        // SAFETY: both mappings are 8192 bytes; nothing else uses them.
        unsafe {
            owner.start().as_ptr().add(5000).write_volatile(7);
            assert_eq!(reader.start().as_ptr().add(5000).read_volatile(), 7);
        }
        let error = SealedMemory::map(descriptor.as_fd(), 8192, true).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    }

    #[test]
    fn memory_without_a_descriptor_is_zero_and_can_be_written() {
        let memory = SealedMemory::unnamed(8192).unwrap();
        assert!(memory.is_writable() && memory.length_bytes() == 8192);
        // SAFETY: inside the mapping; nothing else uses it.
        unsafe {
            let last = memory.start().as_ptr().add(8191);
            assert_eq!(last.read_volatile(), 0);
            last.write_volatile(7);
            assert_eq!(last.read_volatile(), 7);
        }
        assert!(SealedMemory::unnamed(0).is_err());
    }

    #[test]
    fn nobody_changes_the_size() {
        let (_owner, descriptor) = SealedMemory::create(8192, WrittenBy::Creator).unwrap();
        assert!(ftruncate(&descriptor, 4096).is_err());
        assert!(ftruncate(&descriptor, 16384).is_err());
    }

    #[test]
    fn unsealed_memory_is_refused() {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let unsealed = memfd_create("noctule-test", flags).unwrap();
        ftruncate(&unsealed, 4096).unwrap();
        fcntl_add_seals(&unsealed, SealFlags::SHRINK | SealFlags::GROW).unwrap();
        for written_by in [WrittenBy::Creator, WrittenBy::Holder] {
            let error = SealedMemory::open(unsealed.try_clone().unwrap(), written_by).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        }
    }

    #[test]
    fn a_descriptor_of_something_else_is_refused() {
        let file = File::open("/proc/self/cmdline").unwrap();
        assert!(SealedMemory::open(file.into(), WrittenBy::Creator).is_err());
        assert!(SealedMemory::create(0, WrittenBy::Holder).is_err());
    }
}
