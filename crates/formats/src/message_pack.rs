//! MessagePack, structs as maps with field names, so that it describes itself and fields may be added.
//!
//! By `rmp-serde` (MIT), the implementation of the msgpack-rust project, which nearly all Rust programs use.
//! Source: the MessagePack specification (github.com/msgpack/msgpack/blob/master/spec.md).

use rmp_serde::decode::Error;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};

use crate::error::Fault;
use crate::positional::DEPTH_MAX;

pub(crate) fn encode<T: Serialize>(value: &T, out: &mut Vec<u8>) -> Result<(), Fault> {
    rmp_serde::encode::write_named(out, value).map_err(Fault::of)
}

pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Fault> {
    let mut deserializer = rmp_serde::Deserializer::from_read_ref(bytes);
    deserializer.set_max_depth(DEPTH_MAX as usize);
    let value = T::deserialize(&mut deserializer).map_err(Fault::of)?;
    // The crate does not say how much it has read: the only thing that may follow is the end.
    match IgnoredAny::deserialize(&mut deserializer) {
        Err(Error::InvalidMarkerRead(error)) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            Ok(value)
        }
        _ => Err(Fault::left_over()),
    }
}
