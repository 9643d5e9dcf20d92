//! Bytes at an address that a disk can read by itself: direct writes ask for whole blocks of memory (open(2), `O_DIRECT`).

/// Address, offset and length of a direct write are multiples of this; no disk or file system of today asks for more.
pub(crate) const BLOCK_BYTES: usize = 4096;

/// Bytes that begin at a multiple of [`BLOCK_BYTES`]. Its memory is kept when it is cleared.
#[derive(Debug, Default)]
pub(crate) struct BlockBuffer {
    storage: Vec<u8>,
    /// Where the first block of `storage` begins.
    start: usize,
    len: usize,
}

impl BlockBuffer {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.storage[self.start..][..self.len]
    }

    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }

    /// Writes over what is there from `at` on, at most its length, and appends the rest.
    pub(crate) fn write_at(&mut self, at: usize, bytes: &[u8]) {
        let end = at + bytes.len();
        if self.start + end > self.storage.len() {
            self.grow(end);
        }
        self.storage[self.start + at..][..bytes.len()].copy_from_slice(bytes);
        self.len = self.len.max(end);
    }

    fn grow(&mut self, least_bytes: usize) {
        let mut storage = vec![0; least_bytes.next_power_of_two() + BLOCK_BYTES];
        let start = storage.as_ptr().align_offset(BLOCK_BYTES);
        storage[start..][..self.len].copy_from_slice(self.bytes());
        (self.storage, self.start) = (storage, start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_begin_at_a_block_however_they_grow() {
        let mut buffer = BlockBuffer::default();
        let mut expected: Vec<u8> = Vec::new();
        for length in [1, 7, 4096, 100_000, 3_000_000] {
            let bytes: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
            buffer.write_at(buffer.len(), &bytes);
            expected.extend(&bytes);
            assert!((buffer.bytes().as_ptr() as usize).is_multiple_of(BLOCK_BYTES));
            assert_eq!(buffer.bytes(), expected);
        }
        buffer.write_at(3, b"abc");
        expected[3..6].copy_from_slice(b"abc");
        buffer.write_at(buffer.len() - 1, b"xyz");
        expected.pop();
        expected.extend(b"xyz");
        assert_eq!(buffer.bytes(), expected);
        buffer.clear();
        buffer.write_at(0, b"new");
        assert_eq!(buffer.bytes(), b"new");
    }
}
