//! XML: every field an element, every element of a sequence an element of the field's name, all inside `<message>`.
//!
//! By `quick-xml` (MIT), which limits nesting to 128 by itself. Fields that are empty sequences leave no trace, so a type
//! with sequences needs `#[serde(default)]` on them; a sequence of sequences cannot be written, nor bytes, nor characters
//! that XML 1.0 forbids.
//! Source: W3C XML 1.0, fifth edition.

use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::Fault;

const ROOT: &str = "message";

pub(crate) fn encode<T: Serialize>(value: &T, out: &mut Vec<u8>) -> Result<(), Fault> {
    quick_xml::se::to_writer_with_root(Utf8(out), ROOT, value).map_err(Fault::of).map(|_| ())
}

pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Fault> {
    let text = std::str::from_utf8(bytes).map_err(|_| Fault("it is not UTF-8".into()))?;
    let mut deserializer = quick_xml::de::Deserializer::from_str(text);
    let value = T::deserialize(&mut deserializer).map_err(Fault::of)?;
    if deserializer.is_empty() { Ok(value) } else { Err(Fault::left_over()) }
}

/// Text goes straight into the bytes.
struct Utf8<'a>(&'a mut Vec<u8>);

impl fmt::Write for Utf8<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}
