//! Serialization: one value, many formats, one interface.
//!
//! # Problem
//!
//! A robot's message meets flight controllers, ROS 2, web pages, log files and shared memory, and each wants other bytes.
//! What a format costs in time and size is guessed more often than measured.
//!
//! # Approach
//!
//! - [`encode`] and [`decode`] take the format as a value. A type describes itself once, to [serde](https://serde.rs) and
//!   by [`message!`]; that is enough for CDR, MessagePack, CBOR, BSON, JSON, YAML, CSV and XML.
//! - Protobuf and FlatBuffers have schemas of their own, and the plain layout is a property of the type: a type offers
//!   them by [`Message::codec`]. [`uav_state`] is the worked example and what the lab measures.
//! - Every format is one file, on a crate that is maintained and permissively licensed; each file says which and why.
//! - No decoder panics, and none allocates by a number that its input merely announces: serde reserves at
//!   most a mebibyte for a sequence, what is read here at most what the input can hold.
//!
//! Numbers and bits of formats, the bytes of those that are ours to define, and the hash of a type:
//! `docs/spec/formats.md`.

mod bson;
mod cbor;
mod cdr;
mod csv;
mod definition;
mod error;
pub mod flat_buffers;
mod format;
mod generated;
mod json;
mod message;
mod message_pack;
pub mod plain;
mod positional;
pub mod protobuf;
pub mod uav_state;
mod xml;
mod yaml;

pub use definition::{Definition, struct_hash};
pub use error::FormatError;
pub use format::{Format, UnknownFormat};
pub use message::{Codec, Decode, Encode, Fill, Memory, Message};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Appends the encoding of a message to `out`.
///
/// # Errors
/// The format needs a schema the type does not have, or cannot express the value; `out` is then as it was.
pub fn encode<T: Message>(format: Format, value: &T, out: &mut Vec<u8>) -> Result<(), FormatError> {
    let Some(codec) = T::codec(format) else { return encode_value(format, value, out) };
    let start = out.len();
    (codec.encode)(value, out).inspect_err(|_| out.truncate(start))
}

/// Reads a message from bytes that hold it and nothing else.
///
/// # Errors
/// The format needs a schema the type does not have, or the bytes are no value of this type.
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
        Format::Cdr => return encode_cdr(value, out),
        Format::MessagePack => message_pack::encode(value, out),
        Format::Bson => bson::encode(value, out),
        Format::Json => json::encode(value, out),
        Format::Yaml => yaml::encode(value, out),
        Format::Csv => csv::encode(value, out),
        Format::Xml => xml::encode(value, out),
        Format::Cbor => cbor::encode(value, out),
        Format::Plain | Format::Protobuf | Format::FlatBuffers => return Err(needs_schema::<T>(format)),
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
        Format::Cdr => return decode_cdr(bytes),
        Format::MessagePack => message_pack::decode(bytes),
        Format::Bson => bson::decode(bytes),
        Format::Json => json::decode(bytes),
        Format::Yaml => yaml::decode(bytes),
        Format::Csv => csv::decode(bytes),
        Format::Xml => xml::decode(bytes),
        Format::Cbor => cbor::decode(bytes),
        Format::Plain | Format::Protobuf | Format::FlatBuffers => return Err(needs_schema::<T>(format)),
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

fn needs_schema<T>(format: Format) -> FormatError {
    FormatError::NeedsSchema { format, type_name: std::any::type_name::<T>() }
}
