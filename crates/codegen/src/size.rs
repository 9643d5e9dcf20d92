//! How many bytes a type takes as CDR: exactly, wherever in a message it begins.
//!
//! The size of a value depends on where it begins, because alignment counts from the start of the message. So the size of a
//! type is a matrix: the greatest number of bytes from each offset modulo 8 to each offset modulo 8. Types that follow each
//! other are the product of their matrices, with `max` for the sum and `+` for the product; n elements are a power. Nothing
//! is iterated by a number of the input but bit by bit.

/// Offsets modulo the greatest alignment.
const OFFSETS: usize = 8;

/// The greatest number of bytes from each offset to each offset; `None` where no value leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span([[Option<u64>; OFFSETS]; OFFSETS]);

impl Span {
    /// Nothing at all.
    pub fn none() -> Self {
        Self::from_each(|offset| (offset, 0))
    }

    /// A primitive of this size, aligned to it: 1, 2, 4 or 8 bytes.
    pub fn primitive(size_bytes: usize) -> Self {
        let size = size_bytes.clamp(1, OFFSETS);
        Self::from_each(|offset| {
            let taken = offset.next_multiple_of(size) - offset + size;
            ((offset + taken) % OFFSETS, taken as u64)
        })
    }

    fn from_each(step: impl Fn(usize) -> (usize, u64)) -> Self {
        let mut matrix = [[None; OFFSETS]; OFFSETS];
        for (offset, row) in matrix.iter_mut().enumerate() {
            let (end, bytes) = step(offset);
            row[end] = Some(bytes);
        }
        Self(matrix)
    }

    /// This and then that.
    #[must_use]
    pub fn then(&self, next: &Self) -> Self {
        let mut matrix = [[None; OFFSETS]; OFFSETS];
        for (row, taken) in matrix.iter_mut().zip(&self.0) {
            for (middle, first) in taken.iter().enumerate() {
                let Some(first) = first else { continue };
                for (end, second) in next.0[middle].iter().enumerate() {
                    let Some(second) = second else { continue };
                    let bytes = first.saturating_add(*second);
                    row[end] = Some(row[end].map_or(bytes, |known: u64| known.max(bytes)));
                }
            }
        }
        Self(matrix)
    }

    /// This or that, whichever is longer.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        let mut matrix = self.0;
        for (row, others) in matrix.iter_mut().zip(&other.0) {
            for (known, new) in row.iter_mut().zip(others) {
                *known = (*known).max(*new);
            }
        }
        Self(matrix)
    }

    /// So many of these in a row.
    #[must_use]
    pub fn times(&self, count: u64) -> Self {
        let (mut result, mut square, mut left) = (Self::none(), *self, count);
        while left > 0 {
            if left & 1 == 1 {
                result = result.then(&square);
            }
            square = square.then(&square);
            left >>= 1;
        }
        result
    }

    /// A count, and any number of these up to the bound.
    #[must_use]
    pub fn sequence(&self, bound: u64) -> Self {
        Self::primitive(4).then(&self.or(&Self::none()).times(bound))
    }

    /// A string of at most this many bytes without its NUL.
    pub fn string(bound: u64) -> Self {
        let byte = Self::primitive(1);
        Self::primitive(4).then(&byte).then(&byte.or(&Self::none()).times(bound))
    }

    /// The greatest number of bytes from the beginning of a message.
    pub fn bytes(&self) -> u64 {
        self.0[0].iter().flatten().copied().max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alignment_counts_from_the_message_and_not_from_the_struct() {
        let (byte, double) = (Span::primitive(1), Span::primitive(8));
        assert_eq!(double.then(&byte).bytes(), 9);
        assert_eq!(byte.then(&double).bytes(), 16);
        // C would take 2 * 16 bytes; CDR pads nothing behind the last byte.
        assert_eq!(double.then(&byte).times(2).bytes(), 25);
        assert_eq!(byte.times(3).then(&Span::primitive(2)).bytes(), 6);
    }

    #[test]
    fn the_longest_value_of_a_bounded_type_is_found() {
        // Count, 5 letters, NUL, 2 of padding, a double.
        assert_eq!(Span::string(5).then(&Span::primitive(8)).bytes(), 4 + 6 + 6 + 8);
        assert_eq!(Span::string(3).then(&Span::primitive(8)).bytes(), 8 + 8);
        // No element leaves no padding; 3 elements take 4 + 4 + 3 * 8.
        assert_eq!(Span::primitive(8).sequence(3).bytes(), 32);
        assert_eq!(Span::primitive(8).sequence(0).bytes(), 4);
    }

    #[test]
    fn large_counts_need_no_loop() {
        assert_eq!(Span::primitive(1).sequence(u64::from(u32::MAX)).bytes(), 4 + u64::from(u32::MAX));
        assert_eq!(Span::primitive(8).times(u64::MAX).bytes(), u64::MAX);
    }

    #[test]
    fn the_matrix_agrees_with_counting() {
        // Every sequence of three primitives, at every offset, by brute force.
        for sizes in (0..64).map(|code| [1 << (code % 4), 1 << (code / 4 % 4), 1 << (code / 16)]) {
            let span = sizes.iter().fold(Span::none(), |span, size| span.then(&Span::primitive(*size)));
            for start in 0..OFFSETS {
                let end = sizes.iter().fold(start, |at, size: &usize| at.next_multiple_of(*size) + size);
                assert_eq!(
                    span.0[start][end % OFFSETS],
                    Some((end - start) as u64),
                    "{sizes:?} from {start}"
                );
            }
        }
    }
}
