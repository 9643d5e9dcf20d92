//! Fields of a datagram: whole integers, integers as long as they need to be (LEB128), and the low bytes of integers of which the
//! receiver knows about how large they are (RFC 9000, section 17.1).

use noctule_proto_kit::Bytes;

use super::Malformed;

/// Bytes of a packet number, and of the counts that are cut like it.
pub(super) const PACKET_BYTES: usize = 3;
/// Bytes of a time.
pub(super) const TIME_BYTES: usize = 5;
/// The longest integer of 64 bits.
pub(super) const VARINT_BYTES_MAX: usize = 10;

/// Appends the low `N` bytes.
pub(super) fn put_low<const N: usize>(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(&value.to_le_bytes()[..N]);
}

/// Appends seven bits a byte, the lowest first; the highest bit of each byte but the last is set.
pub(super) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// The signed distance from `expected` to the nearest number with these low bytes.
fn distance<const N: usize>(low: u64, expected: u64) -> i64 {
    let unused = 64 - 8 * N as u32;
    (low.wrapping_sub(expected) << unused).cast_signed() >> unused
}

/// The fields that only the transport has.
pub(super) trait Fields {
    /// The low `N` bytes of an integer.
    fn low<const N: usize>(&mut self) -> Result<u64, Malformed>;
    /// The number nearest to `expected` with the low bytes that follow.
    fn count_near<const N: usize>(&mut self, expected: u64) -> Result<u64, Malformed>;
    /// The same for a time.
    fn time_near(&mut self, expected_ns: i64) -> Result<i64, Malformed>;
    /// An integer as long as it needs to be, in no more bytes than that.
    fn varint(&mut self) -> Result<u64, Malformed>;
    /// The same, of a shorter type.
    fn varint_of<T: TryFrom<u64>>(&mut self) -> Result<T, Malformed>;
}

impl Fields for Bytes<'_> {
    fn low<const N: usize>(&mut self) -> Result<u64, Malformed> {
        let low: [u8; N] = self.array()?;
        let mut bytes = [0; 8];
        bytes[..N].copy_from_slice(&low);
        Ok(u64::from_le_bytes(bytes))
    }

    fn count_near<const N: usize>(&mut self, expected: u64) -> Result<u64, Malformed> {
        let low = self.low::<N>()?;
        expected.checked_add_signed(distance::<N>(low, expected)).ok_or(Malformed::Value)
    }

    fn time_near(&mut self, expected_ns: i64) -> Result<i64, Malformed> {
        let low = self.low::<TIME_BYTES>()?;
        let ahead = distance::<TIME_BYTES>(low, expected_ns.cast_unsigned());
        expected_ns.checked_add(ahead).ok_or(Malformed::Value)
    }

    fn varint(&mut self) -> Result<u64, Malformed> {
        let mut value = 0;
        for place in 0..VARINT_BYTES_MAX {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            let is_last = byte & 0x80 == 0;
            if place == VARINT_BYTES_MAX - 1 && byte > 1 || is_last && byte == 0 && place > 0 {
                return Err(Malformed::Value);
            }
            value |= bits << (7 * place);
            if is_last {
                return Ok(value);
            }
        }
        Err(Malformed::Value)
    }

    fn varint_of<T: TryFrom<u64>>(&mut self) -> Result<T, Malformed> {
        T::try_from(self.varint()?).map_err(|_| Malformed::Value)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn varints_come_back_and_have_one_form(value in any::<u64>(), shift in 0u32..64) {
            let value = value >> shift;
            let mut bytes = Vec::new();
            put_varint(&mut bytes, value);
            prop_assert_eq!(bytes.len(), (64 - value.leading_zeros()).max(1).div_ceil(7) as usize);
            prop_assert_eq!(Bytes::new(&bytes).varint(), Ok(value));
            let last = bytes.len() - 1;
            bytes[last] |= 0x80;
            bytes.push(0);
            prop_assert_eq!(Bytes::new(&bytes).varint(), Err(Malformed::Value));
        }

        #[test]
        fn what_was_cut_is_whole_again_within_half_of_its_range(
            expected in any::<u64>(),
            ahead in -(1i64 << 23)..(1 << 23),
        ) {
            let Some(number) = expected.checked_add_signed(ahead) else { return Ok(()) };
            let mut bytes = Vec::new();
            put_low::<PACKET_BYTES>(&mut bytes, number);
            prop_assert_eq!(Bytes::new(&bytes).count_near::<PACKET_BYTES>(expected), Ok(number));
        }

        #[test]
        fn times_are_whole_again_within_nine_minutes(expected_ns in any::<i64>(), ahead_ns in -(1i64 << 39)..(1 << 39)) {
            let Some(time_ns) = expected_ns.checked_add(ahead_ns) else { return Ok(()) };
            let mut bytes = Vec::new();
            put_low::<TIME_BYTES>(&mut bytes, time_ns.cast_unsigned());
            prop_assert_eq!(Bytes::new(&bytes).time_near(expected_ns), Ok(time_ns));
        }
    }

    #[test]
    fn what_lies_outside_the_range_of_the_type_is_refused() {
        assert_eq!(Bytes::new(&[255; 3]).count_near::<3>(0), Err(Malformed::Value));
        assert_eq!(Bytes::new(&[255; 9]).varint(), Err(Malformed::Length));
        assert_eq!(Bytes::new(&[255; 10]).varint(), Err(Malformed::Value));
        assert_eq!(Bytes::new(&[0x80, 0x80, 4]).varint_of::<u16>(), Err(Malformed::Value));
    }
}
