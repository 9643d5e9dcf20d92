//! The plain layout: a type's own memory is its encoding, so nothing is encoded and it can be read in place.
//!
//! Only for types without pointers, padding and forbidden bit patterns. The crate `zerocopy` (Google; BSD-2, MIT or
//! Apache-2.0) proves all of that when deriving, and its conversions check length and alignment:
//!
//! ```
//! use noctule_formats::plain;
//! use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};
//!
//! #[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
//! #[repr(C)]
//! struct Imu {
//!     stamp_ns: i64,
//!     angular_velocity: [f64; 3],
//! }
//!
//! let imu = Imu { stamp_ns: 5, angular_velocity: [0.0, 0.1, 0.2] };
//! assert_eq!(plain::bytes_of(&imu).len(), 32);
//! assert_eq!(plain::read::<Imu>(plain::bytes_of(&imu)).unwrap().stamp_ns, 5);
//! ```
//!
//! Integers and floats are little-endian, as they lie in memory on every processor Noctule runs on.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::{Codec, Fill, Format, FormatError, Memory};

const _: () = assert!(cfg!(target_endian = "little"), "the plain layout is little-endian memory");

/// A type that is its own encoding: no padding, no pointer, any bit pattern is a value.
///
/// Implemented by every type that derives what it demands, with `#[repr(C)]` or `#[repr(transparent)]`.
pub trait Plain: FromBytes + IntoBytes + Immutable + KnownLayout + Copy + 'static {}

impl<T: FromBytes + IntoBytes + Immutable + KnownLayout + Copy + 'static> Plain for T {}

/// The encoding of a value: its memory.
pub fn bytes_of<T: Plain>(value: &T) -> &[u8] {
    value.as_bytes()
}

/// Copies a value out of bytes of any alignment.
///
/// # Errors
/// The length is not the size of `T`.
pub fn read<T: Plain>(bytes: &[u8]) -> Result<T, FormatError> {
    T::read_from_bytes(bytes).map_err(|_| wrong_length::<T>(bytes))
}

/// The value where it lies.
///
/// # Errors
/// The length is not the size of `T`, or the first byte is not aligned for it.
pub fn view<T: Plain>(bytes: &[u8]) -> Result<&T, FormatError> {
    match T::ref_from_bytes(bytes) {
        Ok(value) => Ok(value),
        Err(zerocopy::CastError::Alignment(_)) => {
            let what = format!("it does not lie at a multiple of {} bytes; copy it", align_of::<T>());
            Err(FormatError::decode(Format::Plain, what))
        }
        Err(_) => Err(wrong_length::<T>(bytes)),
    }
}

/// The codec of a plain type, for [`Message::codec`](crate::Message::codec).
pub fn codec<T: Plain>() -> Codec<T> {
    Codec {
        encode: |value, out| {
            out.extend_from_slice(value.as_bytes());
            Ok(())
        },
        decode: read,
        memory: Some(Memory { bytes: T::as_bytes, filled, length_bytes: size_of::<T>() }),
    }
}

/// The value whose bytes `fill` writes, all of them.
pub fn filled<T: Plain>(fill: Fill<'_>) -> T {
    let mut value = T::new_zeroed();
    fill(value.as_mut_bytes());
    value
}

/// [`codec`] for types that need no other: the path that `message!` takes as `codec = plain::only;`.
pub fn only<T: Plain>(format: Format) -> Option<Codec<T>> {
    (format == Format::Plain).then(codec)
}

fn wrong_length<T>(bytes: &[u8]) -> FormatError {
    let what = format!("{} bytes, but the type has {}", bytes.len(), size_of::<T>());
    FormatError::decode(Format::Plain, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone, Copy, PartialEq, FromBytes, IntoBytes, Immutable, KnownLayout)]
    #[repr(C)]
    struct Pose {
        stamp_ns: i64,
        position_m: [f64; 3],
    }

    const POSE: Pose = Pose { stamp_ns: 1, position_m: [1.0, 2.0, 3.0] };

    #[test]
    fn bytes_are_the_fields_in_order() {
        let expected: Vec<u8> = 1i64
            .to_le_bytes()
            .into_iter()
            .chain(POSE.position_m.into_iter().flat_map(f64::to_le_bytes))
            .collect();
        assert_eq!(bytes_of(&POSE), expected);
        assert_eq!(read::<Pose>(&expected).unwrap(), POSE);
    }

    #[test]
    fn a_view_is_the_value_where_it_lies_if_it_is_aligned() {
        let mut memory = [0u64; 5];
        memory.as_mut_bytes()[..32].copy_from_slice(bytes_of(&POSE));
        memory.as_mut_bytes().copy_within(..32, 8);
        let bytes = memory.as_bytes();
        let seen: &Pose = view(&bytes[8..]).unwrap();
        assert_eq!(*seen, POSE);
        assert_eq!(std::ptr::from_ref(seen).cast(), bytes[8..].as_ptr());
        let refused = view::<Pose>(&bytes[4..36]).unwrap_err().to_string();
        assert_eq!(refused, "cannot decode as plain: it does not lie at a multiple of 8 bytes; copy it");
        assert!(read::<Pose>(&bytes[4..36]).is_ok(), "copying needs no alignment");
    }

    #[test]
    fn other_lengths_are_refused() {
        for length in [0, 31, 33] {
            let refused = read::<Pose>(&vec![0; length]).unwrap_err().to_string();
            assert_eq!(refused, format!("cannot decode as plain: {length} bytes, but the type has 32"));
            assert!(view::<Pose>(&vec![0; length]).is_err());
        }
    }
}
