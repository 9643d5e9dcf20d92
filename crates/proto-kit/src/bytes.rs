//! A bounded reader of received bytes.

use core::fmt;

/// Rest of received bytes, to be read. Integers are little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes<'a> {
    rest: &'a [u8],
}

/// There are fewer bytes than were to be read. Nothing was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truncated;

impl fmt::Display for Truncated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it ends before its last field")
    }
}

impl core::error::Error for Truncated {}

impl<'a> Bytes<'a> {
    /// Reads from the first of these bytes.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Bytes<'a> {
        Bytes { rest: bytes }
    }

    /// The unread bytes.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Whether all has been read.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next `N` bytes.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Truncated> {
        let (head, rest) = self.rest.split_first_chunk::<N>().ok_or(Truncated)?;
        self.rest = rest;
        Ok(*head)
    }

    /// The next so many bytes, where they lie.
    #[inline]
    pub fn slice(&mut self, length_bytes: usize) -> Result<&'a [u8], Truncated> {
        let (head, rest) = self.rest.split_at_checked(length_bytes).ok_or(Truncated)?;
        self.rest = rest;
        Ok(head)
    }

    /// The next byte.
    #[inline]
    pub fn u8(&mut self) -> Result<u8, Truncated> {
        self.array().map(|[byte]| byte)
    }

    /// The next two bytes.
    #[inline]
    pub fn u16(&mut self) -> Result<u16, Truncated> {
        self.array().map(u16::from_le_bytes)
    }

    /// The next four bytes.
    #[inline]
    pub fn u32(&mut self) -> Result<u32, Truncated> {
        self.array().map(u32::from_le_bytes)
    }

    /// The next eight bytes.
    #[inline]
    pub fn u64(&mut self) -> Result<u64, Truncated> {
        self.array().map(u64::from_le_bytes)
    }

    /// The next eight bytes, two's complement.
    #[inline]
    pub fn i64(&mut self) -> Result<i64, Truncated> {
        self.array().map(i64::from_le_bytes)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use proptest::prelude::*;
    use std::vec::Vec;

    use super::*;

    #[test]
    fn fields_follow_each_other() {
        let mut bytes = Bytes::new(&[1, 2, 1, 3, 0, 0, 1, 9, 9, 255, 255, 255, 255, 255, 255, 255, 255]);
        assert_eq!(bytes.u8(), Ok(1));
        assert_eq!(bytes.u16(), Ok(0x102));
        assert_eq!(bytes.u32(), Ok(0x0100_0003));
        assert_eq!(bytes.slice(2), Ok(&[9, 9][..]));
        assert_eq!(bytes.clone().u64(), Ok(u64::MAX));
        assert_eq!(bytes.i64(), Ok(-1));
        assert!(bytes.is_empty());
        assert_eq!(bytes.u8(), Err(Truncated));
    }

    proptest! {
        #[test]
        fn nothing_is_read_beyond_the_end(
            received in prop::collection::vec(any::<u8>(), 0..40),
            lengths in prop::collection::vec(0usize..20, 0..10),
        ) {
            let mut bytes = Bytes::new(&received);
            let mut read = Vec::new();
            for length_bytes in lengths {
                let before = bytes;
                match bytes.slice(length_bytes) {
                    Ok(slice) => read.extend_from_slice(slice),
                    Err(Truncated) => {
                        prop_assert!(before.rest().len() < length_bytes);
                        prop_assert_eq!(before, bytes, "nothing was taken");
                    }
                }
            }
            read.extend_from_slice(bytes.rest());
            prop_assert_eq!(read, received);
        }
    }
}
