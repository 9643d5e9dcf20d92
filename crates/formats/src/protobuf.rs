//! Protocol Buffers.
//!
//! By `prost` (Apache-2.0, of the Tokio project). Protobuf numbers its fields and has types of its own, so a message needs
//! a second description:
//!
//! - A type that derives [`prost::Message`] offers the format by [`codec`].
//! - Any other converts to and from such a type in its [`Message::codec`](crate::Message::codec), as
//!   [`uav_state`](crate::uav_state) does; the conversion is then part of what encoding costs, as it is in a program.
//!
//! Source: protobuf.dev/programming-guides/encoding.

use crate::{Codec, Format, FormatError};

/// The codec of a type that derives [`prost::Message`], for [`Message::codec`](crate::Message::codec).
pub fn codec<T: prost::Message + Default>() -> Codec<T> {
    Codec::new(encode, decode)
}

/// Appends the encoding of a type that derives [`prost::Message`].
///
/// # Errors
/// None: it has a result only to fit [`Codec`].
pub fn encode<T: prost::Message>(value: &T, out: &mut Vec<u8>) -> Result<(), FormatError> {
    // Fails only for lack of room, of which a vector has enough.
    value.encode(out).map_err(|error| FormatError::encode(Format::Protobuf, error))
}

/// Reads a type that derives [`prost::Message`]. Unknown fields are skipped, missing ones have their default: that is
/// Protobuf's promise, and why it notices fewer mistakes than other formats.
///
/// # Errors
/// The bytes are not Protobuf, or a field has another type.
pub fn decode<T: prost::Message + Default>(bytes: &[u8]) -> Result<T, FormatError> {
    T::decode(bytes).map_err(|error| FormatError::decode(Format::Protobuf, error))
}
