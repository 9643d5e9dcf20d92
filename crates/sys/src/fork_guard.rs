//! Notices that the process was forked, at the price of one load.
//!
//! A page of memory that the kernel empties in the child of a fork (`MADV_WIPEONFORK`, madvise(2)) holds a number. A process that
//! remembers the number and finds another one there runs in a child, and what it has was its parent's. No call is needed, and raw
//! `clone` is seen like `fork`.

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};

/// Numbers given so far in this process and those it was forked from.
static LAST: AtomicU64 = AtomicU64::new(0);
static PAGE: OnceLock<Page> = OnceLock::new();

/// The address of the page, which is never unmapped.
struct Page(&'static AtomicU64);

/// Belongs to the process that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForkGuard(u64);

impl ForkGuard {
    /// One for this process.
    ///
    /// # Errors
    /// No memory, or a kernel older than 4.14.
    pub fn new() -> io::Result<ForkGuard> {
        let page = match PAGE.get() {
            Some(page) => page,
            None => {
                let page = Page(map()?);
                PAGE.get_or_init(|| page)
            }
        };
        if page.0.load(Ordering::Acquire) == 0 {
            // The first of this process, or of a child whose page has been emptied.
            let number = LAST.fetch_add(1, Ordering::Relaxed) + 1;
            let _ = page.0.compare_exchange(0, number, Ordering::AcqRel, Ordering::Acquire);
        }
        Ok(ForkGuard(page.0.load(Ordering::Acquire)))
    }

    /// Whether this process is a child of the one that made the guard.
    #[inline]
    pub fn is_in_child(self) -> bool {
        PAGE.get().is_none_or(|page| page.0.load(Ordering::Relaxed) != self.0)
    }
}

fn map() -> io::Result<&'static AtomicU64> {
    let bytes = rustix::param::page_size();
    // SAFETY: a new mapping at an address of the kernel's choice.
    let page = unsafe {
        mmap_anonymous(std::ptr::null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)?
    };
    // SAFETY: the mapping of the line above, whole; it is private and anonymous, as the advice wants.
    unsafe { madvise(page, bytes, Advice::LinuxWipeOnFork)? };
    // SAFETY: mapped, zeroed, aligned to a page, longer than the word, and never unmapped. The kernel writes to it in a child only
    // before that runs.
    Ok(unsafe { AtomicU64::from_ptr(page.cast()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_finds_its_parents_guard_void_and_can_have_its_own() {
        let guard = ForkGuard::new().unwrap();
        assert_eq!(ForkGuard::new().unwrap(), guard);
        assert!(!guard.is_in_child());
        let code = crate::process::in_child(|| {
            let own = ForkGuard::new().is_ok_and(|own| own != guard && !own.is_in_child());
            u8::from(guard.is_in_child()) + 2 * u8::from(own)
        });
        assert_eq!(code.unwrap(), 3);
        assert!(!guard.is_in_child());
    }
}
