//! CBOR, structs as maps with field names.
//!
//! By `cbor4ii` (MIT). Of the alternatives, `ciborium` has not had a release since early 2024, and `minicbor-serde` does
//! not limit how deep values nest.
//! Source: RFC 8949.

use cbor4ii::core::dec::Read;
use cbor4ii::core::utils::SliceReader;
use cbor4ii::serde::{Deserializer, to_writer};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::Fault;

pub(crate) fn encode<T: Serialize>(value: &T, out: &mut Vec<u8>) -> Result<(), Fault> {
    to_writer(out, value).map_err(Fault::of)
}

pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Fault> {
    let mut deserializer = Deserializer::new(SliceReader::new(bytes));
    let value = T::deserialize(&mut deserializer).map_err(Fault::of)?;
    let mut rest = deserializer.into_inner();
    let ended = rest.fill(1).is_ok_and(|rest| rest.as_ref().is_empty());
    if ended { Ok(value) } else { Err(Fault::left_over()) }
}
