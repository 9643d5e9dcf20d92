//! The bytes under a ring, seen as atomic words and through racing copies.
//!
//! A copy may race with a writer in another process; the stamp shows afterwards whether it did. Plain
//! loads would be undefined behaviour then, and relaxed loads of words do not become vector loads. So
//! long copies are one `rep movsb`, an instruction the compiler cannot see into and the processor
//! runs at the speed of its best copy loop; short ones, and those of other processors, go by words.

#[cfg(not(loom))]
pub use real::Memory;

#[cfg(loom)]
pub use model::Memory;

#[cfg(not(loom))]
mod real {
    use std::any::Any;
    use std::fmt;
    use std::ops::Range;
    use std::ptr::NonNull;

    use noctule_sys::sealed_memory::SealedMemory;

    use crate::sync::{Arc, AtomicU32, AtomicU64, Ordering};

    /// From this length on the start-up of `rep movsb` pays.
    const LONG_BYTES: usize = 512;

    /// A range of bytes that other threads and processes may read and write, of fixed size, kept
    /// alive by the value. Clones are the same bytes.
    #[derive(Clone)]
    pub struct Memory {
        start: NonNull<u8>,
        length_bytes: usize,
        writable: bool,
        _owner: Arc<dyn Any + Send + Sync>,
    }

    // SAFETY: the bytes live as long as `_owner`, and are only touched through atomics and copies
    // that tolerate races.
    unsafe impl Send for Memory {}
    // SAFETY: as above.
    unsafe impl Sync for Memory {}

    impl fmt::Debug for Memory {
        fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(out, "Memory({} bytes)", self.length_bytes)
        }
    }

    impl From<SealedMemory> for Memory {
        fn from(mapping: SealedMemory) -> Self {
            let (start, length_bytes) = (mapping.start(), mapping.length_bytes());
            Self { start, length_bytes, writable: mapping.is_writable(), _owner: Arc::new(mapping) }
        }
    }

    impl Memory {
        /// A mapping that keeps something else alive, too.
        pub fn with(mapping: SealedMemory, kept: impl Any + Send + Sync) -> Self {
            let (start, length_bytes) = (mapping.start(), mapping.length_bytes());
            let writable = mapping.is_writable();
            Self { start, length_bytes, writable, _owner: Arc::new((mapping, kept)) }
        }
    }

    /// One cache line, the alignment of everything in a region.
    #[repr(C, align(64))]
    struct Line([AtomicU64; 8]);

    impl Memory {
        /// Zeros of this process alone, for rings between threads and for tests. The length is
        /// rounded up to whole cache lines.
        pub fn zeroed(length_bytes: usize) -> Self {
            let lines = length_bytes.div_ceil(64).max(1);
            let owner: Arc<[Line]> = (0..lines).map(|_| Line([const { AtomicU64::new(0) }; 8])).collect();
            let start = NonNull::from(&owner[..]).cast();
            Self { start, length_bytes: lines * 64, writable: true, _owner: Arc::new(owner) }
        }

        /// Size in bytes.
        pub fn length_bytes(&self) -> usize {
            self.length_bytes
        }

        /// Whether it may be written through this value.
        pub fn is_writable(&self) -> bool {
            self.writable
        }

        /// The word at a byte offset.
        ///
        /// # Panics
        /// If it is not aligned or not inside; offsets come from a checked `Layout`.
        #[inline(always)]
        pub(crate) fn word(&self, offset: usize) -> &AtomicU64 {
            assert!(offset.is_multiple_of(8) && offset < self.length_bytes, "word inside the region");
            // SAFETY: inside and aligned by the assertion (start and length are multiples of 64);
            // alive while `self` is; words are only ever accessed as atomics or by racing copies.
            unsafe { AtomicU64::from_ptr(self.start.as_ptr().add(offset).cast()) }
        }

        /// The low half of the word at a byte offset, which is what a futex compares.
        pub(crate) fn low_half(&self, offset: usize) -> &AtomicU32 {
            let half = if cfg!(target_endian = "big") { 4 } else { 0 };
            assert!(offset.is_multiple_of(8) && offset < self.length_bytes, "word inside the region");
            // SAFETY: as in `word`. Only the kernel reads it as 32 bits.
            unsafe { AtomicU32::from_ptr(self.start.as_ptr().add(offset + half).cast()) }
        }

        /// Pointer to `length_bytes` at a byte offset.
        ///
        /// # Panics
        /// If the range is not inside.
        #[inline(always)]
        pub(crate) fn range(&self, offset: usize, length_bytes: usize) -> *mut u8 {
            assert!(
                offset <= self.length_bytes && length_bytes <= self.length_bytes - offset,
                "range inside the region"
            );
            // SAFETY: inside by the assertion.
            unsafe { self.start.as_ptr().add(offset) }
        }

        /// Copies `bytes` into the region, while others may be reading there. Up to 7 bytes behind
        /// them, up to a multiple of 8, become zero.
        #[inline]
        pub(crate) fn copy_in(&self, offset: usize, bytes: &[u8]) {
            if !offset.is_multiple_of(8) {
                return self.copy_in_part(offset, bytes);
            }
            let target = self.range(offset, bytes.len().next_multiple_of(8));
            if bytes.len() >= LONG_BYTES && cfg!(all(target_arch = "x86_64", not(miri))) {
                // SAFETY: `range` checked the target; `bytes` is the source.
                return unsafe { copy_opaque(bytes.as_ptr(), target, bytes.len()) };
            }
            let (words, rest) = bytes.as_chunks::<8>();
            self.store_words(offset, words);
            if !rest.is_empty() {
                let mut last = [0; 8];
                last[..rest.len()].copy_from_slice(rest);
                self.word(offset + words.len() * 8).store(u64::from_ne_bytes(last), Ordering::Relaxed);
            }
        }

        /// Copies out of the region, while others may be writing there.
        #[inline]
        pub(crate) fn copy_out(&self, offset: usize, bytes: &mut [u8]) {
            if !offset.is_multiple_of(8) {
                return self.copy_out_between(offset, bytes);
            }
            let source = self.range(offset, bytes.len().next_multiple_of(8));
            if bytes.len() >= LONG_BYTES && cfg!(all(target_arch = "x86_64", not(miri))) {
                // SAFETY: `range` checked the source; `bytes` is the target.
                return unsafe { copy_opaque(source, bytes.as_mut_ptr(), bytes.len()) };
            }
            let (words, rest) = bytes.as_chunks_mut::<8>();
            let whole = words.len();
            for (index, word) in words.iter_mut().enumerate() {
                *word = self.word(offset + index * 8).load(Ordering::Relaxed).to_ne_bytes();
            }
            if !rest.is_empty() {
                let last = self.word(offset + whole * 8).load(Ordering::Relaxed).to_ne_bytes();
                rest.copy_from_slice(&last[..rest.len()]);
            }
        }

        /// [`Self::copy_in`] for a part of a message: any offset, and nothing around the bytes changes. Only for the process that alone writes there.
        #[inline]
        pub(crate) fn copy_in_part(&self, offset: usize, bytes: &[u8]) {
            if bytes.len() < LONG_BYTES || cfg!(any(not(target_arch = "x86_64"), miri)) {
                return self.patch(offset, bytes);
            }
            let target = self.range(offset, bytes.len());
            // SAFETY: `range` checked the target; `bytes` is the source.
            unsafe { copy_opaque(bytes.as_ptr(), target, bytes.len()) }
        }

        /// [`Self::copy_out`] from where no word begins.
        fn copy_out_between(&self, offset: usize, bytes: &mut [u8]) {
            if bytes.len() < LONG_BYTES || cfg!(any(not(target_arch = "x86_64"), miri)) {
                return self.peek(offset, bytes);
            }
            let source = self.range(offset, bytes.len());
            // SAFETY: `range` checked the source; `bytes` is the target.
            unsafe { copy_opaque(source, bytes.as_mut_ptr(), bytes.len()) }
        }

        /// Has the line at a byte offset on its way to this core, without waiting for it: a hint, which reads nothing.
        ///
        /// # Panics
        /// If it is not inside.
        #[inline(always)]
        pub(crate) fn fetch_ahead(&self, offset: usize) {
            let line = self.range(offset, 8);
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            // SAFETY: a hint that faults nowhere; SSE is part of x86-64.
            unsafe {
                use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
                _mm_prefetch::<_MM_HINT_T0>(line.cast_const().cast());
            }
            // Elsewhere the language has no such hint.
            #[cfg(not(all(target_arch = "x86_64", not(miri))))]
            let _ = line;
        }

        /// [`Self::copy_in_part`] by words.
        fn patch(&self, offset: usize, bytes: &[u8]) {
            let first = offset.next_multiple_of(8);
            let (before, bytes) = bytes.split_at(bytes.len().min(first - offset));
            self.patch_around(offset, before);
            let (words, behind) = bytes.as_chunks::<8>();
            self.store_words(first, words);
            self.patch_around(first + words.len() * 8, behind);
        }

        /// Whole words, the first at an offset that is a multiple of 8.
        #[inline]
        fn store_words(&self, offset: usize, words: &[[u8; 8]]) {
            for (index, word) in words.iter().enumerate() {
                self.word(offset + index * 8).store(u64::from_ne_bytes(*word), Ordering::Relaxed);
            }
        }

        /// Words of which a part stays as it is.
        fn patch_around(&self, offset: usize, bytes: &[u8]) {
            self.by_words(offset, bytes.len(), |word, within, part| {
                let mut patched = word.load(Ordering::Relaxed).to_ne_bytes();
                patched[within.clone()].copy_from_slice(&bytes[part]);
                word.store(u64::from_ne_bytes(patched), Ordering::Relaxed);
            });
        }

        /// [`Self::copy_out`] for a part of a message: any offset.
        pub(crate) fn peek(&self, offset: usize, bytes: &mut [u8]) {
            self.by_words(offset, bytes.len(), |word, within, part| {
                bytes[part].copy_from_slice(&word.load(Ordering::Relaxed).to_ne_bytes()[within]);
            });
        }

        /// Visits the words that a range touches, each with what of it and of the range that is.
        fn by_words(
            &self,
            offset: usize,
            length_bytes: usize,
            mut visit: impl FnMut(&AtomicU64, Range<usize>, Range<usize>),
        ) {
            let mut done = 0;
            while done < length_bytes {
                let at = offset + done;
                let first = at % 8;
                let count = (8 - first).min(length_bytes - done);
                visit(self.word(at - first), first..first + count, done..done + count);
                done += count;
            }
        }
    }

    /// Copies like `memcpy`, in one instruction that is opaque to the compiler.
    ///
    /// # Safety
    /// Both ranges must be mapped, and one of them private to the caller.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    unsafe fn copy_opaque(source: *const u8, target: *mut u8, length_bytes: usize) {
        // SAFETY: the caller's; the direction flag is clear by the calling convention.
        unsafe {
            std::arch::asm!(
                "rep movsb",
                inout("rcx") length_bytes => _,
                inout("rsi") source => _,
                inout("rdi") target => _,
                options(nostack, preserves_flags)
            );
        }
    }

    /// Never called: elsewhere all copies go by words.
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    unsafe fn copy_opaque(_: *const u8, _: *mut u8, _: usize) {}
}

#[cfg(loom)]
mod model {
    use crate::sync::{Arc, AtomicU64, Ordering};

    /// Words that the model checker watches, in place of bytes.
    #[derive(Clone, Debug)]
    pub struct Memory(Arc<Vec<AtomicU64>>);

    impl Memory {
        pub fn zeroed(length_bytes: usize) -> Self {
            Self(Arc::new((0..length_bytes.div_ceil(8)).map(|_| AtomicU64::new(0)).collect()))
        }

        pub fn length_bytes(&self) -> usize {
            self.0.len() * 8
        }

        pub fn is_writable(&self) -> bool {
            true
        }

        pub(crate) fn word(&self, offset: usize) -> &AtomicU64 {
            &self.0[offset / 8]
        }

        /// The model has no caches.
        pub(crate) fn fetch_ahead(&self, _offset: usize) {}

        /// Whole words only, which is what the models send.
        pub(crate) fn copy_in(&self, offset: usize, bytes: &[u8]) {
            for (index, word) in bytes.chunks_exact(8).enumerate() {
                let word = u64::from_ne_bytes(word.try_into().unwrap());
                self.word(offset + index * 8).store(word, Ordering::Relaxed);
            }
        }

        pub(crate) fn copy_out(&self, offset: usize, bytes: &mut [u8]) {
            for (index, word) in bytes.chunks_exact_mut(8).enumerate() {
                word.copy_from_slice(&self.word(offset + index * 8).load(Ordering::Relaxed).to_ne_bytes());
            }
        }
    }
}
