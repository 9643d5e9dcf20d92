//! Trait of types that can be published, and the macro that implements it.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::definition::Definition;
use crate::describer::Describer;
use crate::{Format, FormatError};

/// A type that can be published. [`message!`](crate::message) writes this implementation.
pub trait Message: Definition + Serialize + DeserializeOwned + Sized {
    /// Its name, `package/Type`, as both sides of a topic must agree on.
    const TYPE_NAME: &'static str;

    /// Hash of the definition: fields by name, type and order, nested types included. Never 0.
    fn type_hash() -> u64 {
        Self::HASH
    }

    /// The definition as [text](crate::description), for nodes that ask what samples are made of.
    fn description() -> String {
        let mut types = Describer::default();
        Self::describe(&mut types);
        types.finish()
    }

    /// How this type is written in a format that needs a schema, or in any format if it knows better than serde.
    /// `None`: serde writes it, if the format can do without a schema.
    fn codec(_format: Format) -> Option<Codec<Self>> {
        None
    }

    /// Bits of all formats this type can be written in by this build, as discovery announces them.
    fn formats() -> u32 {
        let by_serde = |format: &Format| format.needs_no_schema() && format.is_built_in();
        let usable = |format: &Format| by_serde(format) || Self::codec(*format).is_some();
        Format::ALL.into_iter().filter(usable).fold(0, |bits, format| bits | format.bit())
    }

    /// The format for readers on the same host: the type's own memory if that is an encoding, else CDR.
    fn format_in_shared_memory() -> Format {
        if Self::codec(Format::Plain).is_some() { Format::Plain } else { Self::format_on_network() }
    }

    /// The format for readers on other hosts.
    fn format_on_network() -> Format {
        Format::Cdr
    }
}

/// Two functions that write and read a type in one format.
#[derive(Debug)]
pub struct Codec<T> {
    /// Appends the encoding. What it appended before it failed is removed by the caller.
    pub encode: Encode<T>,
    /// Reads an encoding that fills the whole slice. Must not panic, nor allocate by a number it has not checked.
    pub decode: Decode<T>,
    /// The value's memory, if that is its encoding: then it is copied once, and read where it lies.
    pub memory: Option<Memory<T>>,
}

/// The memory of a type that is its own encoding; [`plain::codec`](crate::plain::codec) has it.
#[derive(Debug)]
pub struct Memory<T> {
    /// The value as it lies.
    pub bytes: fn(&T) -> &[u8],
    /// A value that the given function fills: all of its bytes.
    pub filled: fn(Fill<'_>) -> T,
    /// How many those are.
    pub length_bytes: usize,
}

/// Writes all bytes it is given.
pub type Fill<'a> = &'a mut dyn FnMut(&mut [u8]);

impl<T> Codec<T> {
    /// A codec whose encoding is not the value's memory.
    pub const fn new(encode: Encode<T>, decode: Decode<T>) -> Self {
        Self { encode, decode, memory: None }
    }
}

/// See [`Codec::encode`].
pub type Encode<T> = fn(&T, &mut Vec<u8>) -> Result<(), FormatError>;
/// See [`Codec::decode`].
pub type Decode<T> = fn(&[u8]) -> Result<T, FormatError>;

/// Defines a struct together with its [`Message`] implementation, from one list of fields.
///
/// ```
/// use noctule_formats::{Format, Message, decode, encode, message};
/// use serde::{Deserialize, Serialize};
///
/// message! {
///     /// State of one battery.
///     #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
///     pub struct Battery: "power/Battery" {
///         /// Of each cell, in volts.
///         pub cells_v: Vec<f32>,
///         /// 0 … 1.
///         pub remaining: f32,
///     }
/// }
///
/// let battery = Battery { cells_v: vec![3.7, 3.8], remaining: 0.6 };
/// let mut bytes = Vec::new();
/// encode(Format::Cdr, &battery, &mut bytes)?;
/// assert_eq!(decode::<Battery>(Format::Cdr, &bytes)?, battery);
/// assert_eq!(Battery::TYPE_NAME, "power/Battery");
/// # Ok::<(), noctule_formats::FormatError>(())
/// ```
///
/// A field whose name on the wire is no identifier of Rust says both: `self_ as "self": u8`, with
/// `#[serde(rename = "self")]` for the formats that write names. Raw identifiers (`r#type`) need neither.
///
/// After the fields may stand `codec = PATH;`, a function like [`Message::codec`]; `codec = plain::only;` is the one of
/// a type that is its own encoding. After that may stand `description = TEXT;` where the definition says more than types of
/// Rust do: that a `u8` is a `byte`.
#[macro_export]
macro_rules! message {
    (
        $(#[$attribute:meta])*
        $visibility:vis struct $name:ident : $type_name:literal {
            $($(#[$field_attribute:meta])* $field_visibility:vis $field:ident $(as $wire:literal)? : $type:ty),* $(,)?
        }
        $(codec = $codec:path;)?
        $(description = $description:expr;)?
    ) => {
        $(#[$attribute])*
        $visibility struct $name {
            $($(#[$field_attribute])* $field_visibility $field: $type),*
        }

        impl $crate::Definition for $name {
            const HASH: u64 = $crate::struct_hash(
                $type_name,
                &[$((
                    $crate::wire_name(stringify!($field), &[$($wire)?]),
                    <$type as $crate::Definition>::HASH,
                )),*],
            );

            fn describe(types: &mut $crate::Describer) -> ::std::string::String {
                types.structure($type_name, |types| {
                    let _ = &types;
                    ::std::vec![$((
                        $crate::wire_name(stringify!($field), &[$($wire)?]),
                        <$type as $crate::Definition>::describe(types),
                    )),*]
                })
            }
        }

        impl $crate::Message for $name {
            const TYPE_NAME: &'static str = $type_name;
            $(fn codec(format: $crate::Format) -> ::std::option::Option<$crate::Codec<Self>> {
                $codec(format)
            })?

            $(fn description() -> ::std::string::String {
                ::std::borrow::ToOwned::to_owned($description)
            })?
        }
    };
}

/// The name that [`message!`](crate::message) hashes: the one that is given, or else the field's own.
#[doc(hidden)]
pub const fn wire_name(field: &'static str, given: &[&'static str]) -> &'static str {
    if given.is_empty() { field } else { given[0] }
}

#[cfg(test)]
mod tests {
    use crate::{Definition, struct_hash};

    message! {
        /// Names that Rust does not allow.
        #[derive(serde::Serialize, serde::Deserialize)]
        struct Keywords: "test/Keywords" {
            r#type: u8,
            #[serde(rename = "self")]
            self_ as "self": f64,
        }
    }

    fn no_other<T>(_: crate::Format) -> Option<crate::Codec<T>> {
        None
    }

    /// As `std_msgs/String` is: the names have this meaning in a whole package.
    #[allow(dead_code)]
    mod named_as_types_of_rust {
        crate::message! {
            #[derive(serde::Serialize, serde::Deserialize)]
            pub(super) struct String: "test/String" {
                data: u8,
            }
            description = "struct test/String\n uint8 data\n";
        }

        crate::message! {
            #[derive(serde::Serialize, serde::Deserialize)]
            pub(super) struct Option: "test/Option" {
                data: u8,
            }
            codec = super::no_other;
        }

        crate::message! {
            #[derive(serde::Serialize, serde::Deserialize)]
            pub(super) struct Vec: "test/Vec" {
                data: String,
            }
        }
    }

    #[test]
    fn a_message_may_be_called_as_a_type_of_rust() {
        use named_as_types_of_rust::{String, Vec};
        assert_eq!(Vec::HASH, struct_hash("test/Vec", &[("data", String::HASH)]));
    }

    #[test]
    fn keywords_are_hashed_as_other_languages_write_them() {
        let expected = struct_hash("test/Keywords", &[("type", u8::HASH), ("self", f64::HASH)]);
        assert_eq!(Keywords::HASH, expected);
    }
}
