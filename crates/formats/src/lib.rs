//! Serialization: one value, many formats, one interface.
//!
//! # Problem
//!
//! A robot's message meets flight controllers, ROS 2, web pages, log files and shared memory, and each wants other bytes.
//! The cost of a format in time and size is guessed more often than measured.
//!
//! # Approach
//!
//! - [`encode`] and [`decode`] take the format as a value. A type describes itself once, to [serde](https://serde.rs) and
//!   by [`message!`]; that is enough for CDR, MessagePack, CBOR, BSON, JSON, YAML, CSV and XML.
//! - Protobuf and FlatBuffers have schemas of their own, and the plain layout is a property of the type: a type offers
//!   them by [`Message::codec`]. [`uav_state`] is the worked example and what the lab measures.
//! - Every format is one file, on a crate that is maintained and permissively licensed; each file says which and why.
//! - A format is a feature of this crate, named as [`Format::name`] says: a program that needs it compiles its crate. CDR and the
//!   plain layout are always there; a format that is left out is an error that names the feature.
//! - No decoder panics, and none allocates by a number that its input merely announces: serde reserves at
//!   most a mebibyte for a sequence, what is read here at most what the input can hold.
//!
//! Numbers and bits of formats, the bytes of those that are ours to define, and the hash of a type:
//! `docs/spec/formats.md`.

pub mod array;
pub mod bounded;
#[cfg(feature = "bson")]
mod bson;
#[cfg(feature = "cbor")]
mod cbor;
mod cdr;
#[cfg(feature = "csv")]
mod csv;
mod definition;
mod describer;
pub mod description;
mod error;
#[cfg(feature = "flatbuffers")]
pub mod flat_buffers;
mod format;
#[cfg(all(feature = "flatbuffers", feature = "uav_state"))]
mod generated;
#[cfg(feature = "json")]
mod json;
mod message;
#[cfg(feature = "msgpack")]
mod message_pack;
pub mod plain;
mod positional;
#[cfg(feature = "protobuf")]
pub mod protobuf;
#[cfg(feature = "uav_state")]
pub mod uav_state;
#[cfg(feature = "xml")]
mod xml;
#[cfg(feature = "yaml")]
mod yaml;

pub use definition::{
    Definition, array_hash, enum_hash, optional_hash, sequence_hash, string_hash, struct_hash,
};
pub use describer::Describer;
pub use description::TypeDescription;
pub use error::FormatError;
pub use format::{Format, UnknownFormat};
/// The crate whose derives prove that a type is its own encoding ([`plain`]); generated code takes it from here.
pub use zerocopy;

pub use message::{Codec, Decode, Encode, Fill, Memory, Message, wire_name};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Appends the encoding of a message to `out`.
///
/// # Errors
/// The format is left out of this build, needs a schema the type does not have, or cannot express the value; `out` is
/// then as it was.
pub fn encode<T: Message>(format: Format, value: &T, out: &mut Vec<u8>) -> Result<(), FormatError> {
    match T::codec(format) {
        Some(codec) => encode_by(&codec, value, out),
        None => encode_value(format, value, out),
    }
}

fn encode_by<T>(codec: &Codec<T>, value: &T, out: &mut Vec<u8>) -> Result<(), FormatError> {
    let start = out.len();
    (codec.encode)(value, out).inspect_err(|_| out.truncate(start))
}

/// Reads a message from bytes that hold it and nothing else.
///
/// # Errors
/// The format is left out of this build, needs a schema the type does not have, or the bytes are no value of this type.
pub fn decode<T: Message>(format: Format, bytes: &[u8]) -> Result<T, FormatError> {
    match T::codec(format) {
        Some(codec) => (codec.decode)(bytes),
        None => decode_value(format, bytes),
    }
}

/// [`encode`] for any type of serde's, in the formats that need no schema.
///
/// # Errors
/// As [`encode`].
pub fn encode_value<T: Serialize>(format: Format, value: &T, out: &mut Vec<u8>) -> Result<(), FormatError> {
    let start = out.len();
    let written = match format {
        Format::Cdr => cdr::encode(value, out),
        #[cfg(feature = "msgpack")]
        Format::MessagePack => message_pack::encode(value, out),
        #[cfg(feature = "bson")]
        Format::Bson => bson::encode(value, out),
        #[cfg(feature = "json")]
        Format::Json => json::encode(value, out),
        #[cfg(feature = "yaml")]
        Format::Yaml => yaml::encode(value, out),
        #[cfg(feature = "csv")]
        Format::Csv => csv::encode(value, out),
        #[cfg(feature = "xml")]
        Format::Xml => xml::encode(value, out),
        #[cfg(feature = "cbor")]
        Format::Cbor => cbor::encode(value, out),
        other => return Err(FormatError::absent(other, std::any::type_name::<T>())),
    };
    written.map_err(|fault| {
        out.truncate(start);
        FormatError::encode(format, fault)
    })
}

/// [`decode`] for any type of serde's, in the formats that need no schema.
///
/// # Errors
/// As [`decode`].
pub fn decode_value<T: DeserializeOwned>(format: Format, bytes: &[u8]) -> Result<T, FormatError> {
    let read = match format {
        Format::Cdr => cdr::decode(bytes),
        #[cfg(feature = "msgpack")]
        Format::MessagePack => message_pack::decode(bytes),
        #[cfg(feature = "bson")]
        Format::Bson => bson::decode(bytes),
        #[cfg(feature = "json")]
        Format::Json => json::decode(bytes),
        #[cfg(feature = "yaml")]
        Format::Yaml => yaml::decode(bytes),
        #[cfg(feature = "csv")]
        Format::Csv => csv::decode(bytes),
        #[cfg(feature = "xml")]
        Format::Xml => xml::decode(bytes),
        #[cfg(feature = "cbor")]
        Format::Cbor => cbor::decode(bytes),
        other => return Err(FormatError::absent(other, std::any::type_name::<T>())),
    };
    read.map_err(|fault| FormatError::decode(format, fault))
}

/// [`encode_value`] in [`Format::Cdr`]: a program that speaks only CDR has only CDR compiled for each of its types.
///
/// # Errors
/// As [`encode`].
pub fn encode_cdr<T: Serialize>(value: &T, out: &mut Vec<u8>) -> Result<(), FormatError> {
    let start = out.len();
    cdr::encode(value, out).map_err(|fault| {
        out.truncate(start);
        FormatError::encode(Format::Cdr, fault)
    })
}

/// [`decode_value`] in [`Format::Cdr`], as [`encode_cdr`].
///
/// # Errors
/// As [`decode`].
pub fn decode_cdr<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, FormatError> {
    cdr::decode(bytes).map_err(|fault| FormatError::decode(Format::Cdr, fault))
}

/// [`encode`] in [`Format::Cdr`], as [`encode_cdr`], but by the type's own codec if it has one.
///
/// # Errors
/// As [`encode`].
pub fn encode_message_cdr<T: Message>(value: &T, out: &mut Vec<u8>) -> Result<(), FormatError> {
    match T::codec(Format::Cdr) {
        Some(codec) => encode_by(&codec, value, out),
        None => encode_cdr(value, out),
    }
}

/// [`decode`] in [`Format::Cdr`], as [`encode_message_cdr`].
///
/// # Errors
/// As [`decode`].
pub fn decode_message_cdr<T: Message>(bytes: &[u8]) -> Result<T, FormatError> {
    match T::codec(Format::Cdr) {
        Some(codec) => (codec.decode)(bytes),
        None => decode_cdr(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    message! {
        /// A type that writes its CDR itself.
        #[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        struct Inverted: "test/Inverted" {
            byte: u8,
        }
        codec = inverted;
    }

    message! {
        /// A type that serde writes.
        #[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        struct Upright: "test/Upright" {
            byte: u8,
        }
    }

    fn inverted(format: Format) -> Option<Codec<Inverted>> {
        let encode: Encode<Inverted> = |value, out| encode_cdr(&!value.byte, out);
        let decode: Decode<Inverted> = |bytes| Ok(Inverted { byte: !decode_cdr::<u8>(bytes)? });
        (format == Format::Cdr).then_some(Codec::new(encode, decode))
    }

    fn same_by_both<T: Message + PartialEq + std::fmt::Debug>(value: &T, expected: u8) {
        let (mut by_format, mut in_cdr) = (Vec::new(), Vec::new());
        encode(Format::Cdr, value, &mut by_format).unwrap();
        encode_message_cdr(value, &mut in_cdr).unwrap();
        assert_eq!((&in_cdr, in_cdr[4]), (&by_format, expected));
        assert_eq!(decode_message_cdr::<T>(&in_cdr).unwrap(), *value);
    }

    #[test]
    fn a_type_that_writes_its_cdr_itself_does_so_where_only_cdr_is_spoken() {
        same_by_both(&Inverted { byte: 1 }, 0xfe);
        same_by_both(&Upright { byte: 1 }, 1);
    }

    #[test]
    fn a_format_that_is_left_out_names_its_feature_and_touches_nothing() {
        let mut out = vec![7];
        for format in Format::ALL.into_iter().filter(|format| !format.is_built_in()) {
            let refused = [
                encode_value(format, &1u32, &mut out).unwrap_err(),
                decode_value::<u32>(format, b"1").unwrap_err(),
            ];
            assert_eq!(refused, [FormatError::LeftOut { format }, FormatError::LeftOut { format }]);
            assert!(
                refused[0].to_string().contains(&format!("the feature \"{format}\" of")),
                "{}",
                refused[0]
            );
        }
        assert_eq!(out, [7]);
        encode_value(Format::Cdr, &1u32, &mut out).unwrap();
        assert_eq!(out, [7, 0, 1, 0, 0, 1, 0, 0, 0]);
        let refused = encode_value(Format::Plain, &1u32, &mut out).unwrap_err();
        assert!(matches!(refused, FormatError::NeedsSchema { .. }), "{refused}");
    }
}
