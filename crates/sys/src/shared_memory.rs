//! Memory shared between processes, seen only through atomics.
//!
//! A memfd: it has no name in any file system, so nothing is left behind, however a process dies. Another
//! process of the same user opens it through `/proc/PID/fd/N` while its owner lives.
//!
//! No reference to plain memory is ever handed out, because another process may write at any time;
//! atomics are the only types for which that is defined.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::time::Duration;

use rustix::mm::{MapFlags, ProtFlags};
use rustix::thread::futex;

/// A mapping of shared memory, readable and writable, all zero when created.
#[derive(Debug)]
pub struct SharedMemory {
    start: NonNull<u8>,
    length_bytes: usize,
    file: File,
}

// SAFETY: the mapping is owned by the value, lives until drop, and is only reachable as atomics,
// which may be used from any thread.
unsafe impl Send for SharedMemory {}
// SAFETY: as above.
unsafe impl Sync for SharedMemory {}

impl SharedMemory {
    /// Creates `length_bytes` of zeros, present in memory (no page fault on first use).
    pub fn create(length_bytes: usize) -> io::Result<Self> {
        use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
        let file = File::from(memfd_create("noctule", MemfdFlags::CLOEXEC)?);
        ftruncate(&file, length_bytes as u64)?;
        Self::map(file)
    }

    /// Maps what another process created; `path` comes from its [`Self::path`].
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::map(OpenOptions::new().read(true).write(true).open(path)?)
    }

    /// Where another process of the same user finds this memory while this process lives.
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd())
    }

    /// Size in bytes.
    pub fn length_bytes(&self) -> usize {
        self.length_bytes
    }

    /// The 64-bit word at a byte offset. Use a given offset with one width only.
    ///
    /// # Panics
    /// If the offset is not a multiple of 8 or reaches past the end: offsets are constants of the caller.
    #[inline]
    pub fn word64(&self, offset: usize) -> &AtomicU64 {
        assert!(offset.is_multiple_of(8) && offset + 8 <= self.length_bytes, "offset within the mapping");
        // SAFETY: in bounds and aligned by the assertion (the mapping is page-aligned); the memory
        // stays mapped as long as `self` is borrowed; atomics tolerate writers in other processes.
        unsafe { AtomicU64::from_ptr(self.start.as_ptr().add(offset).cast()) }
    }

    /// The 32-bit word at a byte offset, for futexes. Use a given offset with one width only.
    ///
    /// # Panics
    /// As [`Self::word64`], for multiples of 4.
    #[inline]
    pub fn word32(&self, offset: usize) -> &AtomicU32 {
        assert!(offset.is_multiple_of(4) && offset + 4 <= self.length_bytes, "offset within the mapping");
        // SAFETY: as in `word64`.
        unsafe { AtomicU32::from_ptr(self.start.as_ptr().add(offset).cast()) }
    }

    fn map(file: File) -> io::Result<Self> {
        let length_bytes = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
        if length_bytes == 0 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
        }
        // SAFETY: a fresh mapping at an address the kernel chooses; it aliases nothing of ours. If
        // the owner truncated the file, access would raise SIGBUS, not corrupt memory; both sides
        // are programs of the same experiment and never truncate.
        let start = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                length_bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED | MapFlags::POPULATE,
                &file,
                0,
            )?
        };
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, length_bytes, file })
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // SAFETY: exactly the range mapped in `map`; no borrow of it can outlive `self`. The result
        // is ignored: unmapping a valid range cannot fail.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.length_bytes) };
    }
}

/// Sleeps until `word` is woken, no longer holds `expected`, or `timeout` has passed; `None` waits
/// until a signal at the latest. May return early for no reason: check and wait again.
pub fn futex_wait(word: &AtomicU32, expected: u32, timeout: Option<Duration>) {
    let timeout = timeout.map(|timeout| rustix::time::Timespec {
        tv_sec: timeout.as_secs() as i64,
        tv_nsec: timeout.subsec_nanos().into(),
    });
    // Every outcome (woken, changed, interrupted, timed out) means the same to the caller: look.
    let _ = futex::wait(word, futex::Flags::empty(), expected, timeout.as_ref());
}

/// The most words [`futex_wait_any`] takes (the kernel's `FUTEX_WAITV_MAX`).
pub const WAIT_ANY_MAX: usize = 128;

/// Sleeps until one of several words is woken or no longer holds the value beside it, or the clock
/// ([`crate::clock::now_ns`]) has reached `until_ns`. May return early for no reason.
///
/// # Errors
/// `Unsupported` before Linux 5.16, which has no `futex_waitv`; `InvalidInput` for no words, or for
/// more than [`WAIT_ANY_MAX`].
pub fn futex_wait_any(words: &[(&AtomicU32, u32)], until_ns: Option<i64>) -> io::Result<()> {
    use rustix::io::Errno;
    if words.is_empty() || words.len() > WAIT_ANY_MAX {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut waiters = [futex::Wait::new(); WAIT_ANY_MAX];
    for (waiter, (word, expected)) in waiters.iter_mut().zip(words) {
        waiter.val = u64::from(*expected);
        waiter.uaddr = futex::WaitPtr::new(word.as_ptr().cast());
        waiter.flags = futex::WaitFlags::SIZE_U32;
    }
    let until = until_ns.map(|until_ns| crate::clock::timespec(until_ns.max(0)));
    let waiters = &waiters[..words.len()];
    let flags = futex::WaitvFlags::empty();
    match futex::waitv(waiters, flags, until.as_ref(), rustix::thread::ClockId::Monotonic) {
        Err(Errno::NOSYS) => Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "waiting for several topics at once needs Linux 5.16 (futex_waitv); wait for each in its own thread",
        )),
        // Every other outcome means the same to the caller: look.
        _ => Ok(()),
    }
}

/// Wakes every process that sleeps on `word`. Always a system call.
pub fn futex_wake(word: &AtomicU32) {
    let _ = futex::wake(word, futex::Flags::empty(), i32::MAX as u32);
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    #[test]
    fn two_mappings_see_the_same_words() {
        let owner = SharedMemory::create(4096).unwrap();
        let other = SharedMemory::open(Path::new(&owner.path())).unwrap();
        owner.word64(8).store(7, Ordering::Release);
        other.word32(64).store(9, Ordering::Release);
        assert_eq!(other.word64(8).load(Ordering::Acquire), 7);
        assert_eq!(owner.word32(64).load(Ordering::Acquire), 9);
        assert_eq!(other.length_bytes(), 4096);
    }

    #[test]
    #[should_panic(expected = "offset within the mapping")]
    fn word_past_the_end_is_refused() {
        SharedMemory::create(4096).unwrap().word64(4096);
    }

    #[test]
    fn futex_wait_returns_at_once_if_the_word_has_changed() {
        let memory = SharedMemory::create(4096).unwrap();
        memory.word32(0).store(1, Ordering::Release);
        futex_wait(memory.word32(0), 0, None);
    }
}
