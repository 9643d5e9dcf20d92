//! JSON.
//!
//! By `serde_json` (MIT or Apache-2.0). It limits nesting to 128 by itself. NaN and infinities become `null`, which is
//! no number when it comes back: JSON has no word for them.
//! Source: RFC 8259.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::Fault;

pub(crate) fn encode<T: Serialize>(value: &T, out: &mut Vec<u8>) -> Result<(), Fault> {
    serde_json::to_writer(out, value).map_err(Fault::of)
}

pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Fault> {
    serde_json::from_slice(bytes).map_err(Fault::of)
}
