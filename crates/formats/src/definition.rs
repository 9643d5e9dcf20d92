//! Hash of a type's definition: two programs that disagree about a type find out before they exchange it.
//!
//! The hash is FNV-1a with 64 bits (Fowler, Noll, Vo; RFC 9923) over names and hashes of the parts, so it can be
//! computed at compile time here and by a generator for any other language; `docs/spec/formats.md` has the bytes.
//! It guards against mistakes, not against an adversary.

use crate::describer::Describer;

/// A type whose definition has a hash. Implemented for what messages are made of; [`message!`](crate::message)
/// implements it for structs.
pub trait Definition {
    /// Hash of the definition, never 0.
    const HASH: u64;

    /// The type's word in a [description](crate::description); structs add themselves to `types`.
    fn describe(types: &mut Describer) -> String;
}

const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

const fn absorb(mut hash: u64, bytes: &[u8]) -> u64 {
    let mut index = 0;
    while index < bytes.len() {
        hash = (hash ^ bytes[index] as u64).wrapping_mul(PRIME);
        index += 1;
    }
    hash
}

/// A name is closed by a zero byte, so that names cannot run into each other.
const fn absorb_name(hash: u64, name: &str) -> u64 {
    absorb(absorb(hash, name.as_bytes()), &[0])
}

/// A field's name as other languages write it: Rust's raw identifiers lose their `r#`.
const fn absorb_field_name(hash: u64, name: &str) -> u64 {
    let bytes = match name.as_bytes() {
        [b'r', b'#', rest @ ..] => rest,
        bytes => bytes,
    };
    absorb(absorb(hash, bytes), &[0])
}

/// 0 means "any type" in discovery.
const fn never_zero(hash: u64) -> u64 {
    if hash == 0 { 1 } else { hash }
}

/// Hash of a struct: its name, then name and hash of every field, in order.
pub const fn struct_hash(name: &str, fields: &[(&str, u64)]) -> u64 {
    let mut hash = absorb_name(OFFSET_BASIS, name);
    let mut index = 0;
    while index < fields.len() {
        hash = absorb(absorb_field_name(hash, fields[index].0), &fields[index].1.to_le_bytes());
        index += 1;
    }
    never_zero(hash)
}

/// Hash of an array of so many elements of this hash.
pub const fn array_hash(element: u64, length: u64) -> u64 {
    derived_hash("array", element, length)
}

/// Hash of a sequence of at most so many elements of this hash; 0 for any number.
pub const fn sequence_hash(element: u64, bound: u64) -> u64 {
    derived_hash("sequence", element, bound)
}

/// Hash of a value of this hash, or none.
pub const fn optional_hash(element: u64) -> u64 {
    derived_hash("optional", element, 0)
}

/// Hash of a string: its word, `string` or `wstring`, and its greatest length; 0 for any.
pub const fn string_hash(word: &str, bound: u64) -> u64 {
    let hash = absorb_name(OFFSET_BASIS, word);
    never_zero(if bound == 0 { hash } else { absorb(hash, &bound.to_le_bytes()) })
}

/// Hash of an enum without values: its name and those of its variants, in order.
pub const fn enum_hash(name: &str, variants: &[&str]) -> u64 {
    let mut hash = absorb_name(absorb_name(OFFSET_BASIS, "enum"), name);
    let mut index = 0;
    while index < variants.len() {
        hash = absorb_name(hash, variants[index]);
        index += 1;
    }
    never_zero(hash)
}

/// Hash of a type made of another: `sequence`, `optional`, or `array` with its length.
const fn derived_hash(kind: &str, element: u64, length: u64) -> u64 {
    let hash = absorb(absorb_name(OFFSET_BASIS, kind), &element.to_le_bytes());
    never_zero(absorb(hash, &length.to_le_bytes()))
}

macro_rules! primitives {
    ($($type:ty = $name:literal $word:literal),* $(,)?) => {$(
        impl Definition for $type {
            const HASH: u64 = struct_hash($name, &[]);

            fn describe(_: &mut Describer) -> String {
                $word.to_owned()
            }
        }
    )*};
}

primitives! {
    bool = "bool" "bool", String = "string" "string",
    i8 = "i8" "int8", i16 = "i16" "int16", i32 = "i32" "int32", i64 = "i64" "int64",
    u8 = "u8" "uint8", u16 = "u16" "uint16", u32 = "u32" "uint32", u64 = "u64" "uint64",
    f32 = "f32" "float32", f64 = "f64" "float64",
}

impl<T: Definition, const N: usize> Definition for [T; N] {
    const HASH: u64 = array_hash(T::HASH, N as u64);

    fn describe(types: &mut Describer) -> String {
        format!("{}[{N}]", T::describe(types))
    }
}

impl<T: Definition> Definition for Vec<T> {
    const HASH: u64 = sequence_hash(T::HASH, 0);

    fn describe(types: &mut Describer) -> String {
        T::describe(types) + "[]"
    }
}

impl<T: Definition> Definition for Option<T> {
    const HASH: u64 = optional_hash(T::HASH);

    fn describe(types: &mut Describer) -> String {
        T::describe(types) + "?"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn primitives_hash_as_the_specification_says() {
        // FNV-1a of "f64\0", computed independently.
        assert_eq!(f64::HASH, 0xcb3e_f97a_242c_b591);
        assert_eq!(String::HASH, struct_hash("string", &[]));
    }

    #[test]
    fn a_keyword_as_a_field_has_the_hash_that_other_languages_compute() {
        // FNV-1a of the bytes that the specification names, computed in Python.
        let expected = 0x5cac_cabc_93b4_410c;
        let fields = |name| [(name, u8::HASH), ("id", u8::HASH), ("intensity", f32::HASH)];
        assert_eq!(struct_hash("sensor_msgs/msg/JoyFeedback", &fields("r#type")), expected);
        assert_eq!(struct_hash("sensor_msgs/msg/JoyFeedback", &fields("type")), expected);
    }

    #[test]
    fn bounds_and_variants_count_and_no_bound_is_the_type_itself() {
        assert_eq!(string_hash("string", 0), String::HASH);
        assert_eq!(sequence_hash(u8::HASH, 0), Vec::<u8>::HASH);
        let hashes = [
            string_hash("string", 0),
            string_hash("string", 5),
            string_hash("string", 6),
            string_hash("wstring", 5),
            sequence_hash(u8::HASH, 5),
            array_hash(u8::HASH, 5),
            enum_hash("a/Mode", &["A", "B"]),
            enum_hash("a/Mode", &["B", "A"]),
            enum_hash("a/Mode", &["AB"]),
        ];
        for (index, hash) in hashes.iter().enumerate() {
            assert!(!hashes[..index].contains(hash), "{index}");
        }
    }

    #[test]
    fn every_part_of_a_definition_counts() {
        let imu = struct_hash("a/Imu", &[("x", f64::HASH), ("y", f64::HASH)]);
        for other in [
            struct_hash("a/Imu2", &[("x", f64::HASH), ("y", f64::HASH)]),
            struct_hash("a/Imu", &[("y", f64::HASH), ("x", f64::HASH)]),
            struct_hash("a/Imu", &[("x", f64::HASH), ("y", f32::HASH)]),
            struct_hash("a/Imu", &[("x", f64::HASH)]),
            struct_hash("a/Im", &[("ux", f64::HASH), ("y", f64::HASH)]),
            <[f64; 2]>::HASH,
            <[f64; 3]>::HASH,
            Vec::<f64>::HASH,
            Option::<f64>::HASH,
        ] {
            assert_ne!(imu, other);
        }
    }
}
