//! The formats by name, number and bit.

use std::fmt::{self, Display};
use std::str::FromStr;

/// A way to write a value as bytes. What each is good for: `docs/guide/formats.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Format {
    /// Plain XCDR version 1 with encapsulation header, as ROS 2 and DDS use it. The default on a network.
    Cdr = 1,
    /// The value's own memory. The default in shared memory, for types that allow it.
    Plain = 2,
    /// MessagePack, structs as maps with field names.
    MessagePack = 3,
    /// Protocol Buffers, proto3.
    Protobuf = 4,
    /// FlatBuffers.
    FlatBuffers = 5,
    /// BSON.
    Bson = 6,
    /// JSON.
    Json = 7,
    /// YAML.
    Yaml = 8,
    /// One row of comma-separated values.
    Csv = 9,
    /// XML.
    Xml = 10,
    /// CBOR, structs as maps with field names.
    Cbor = 11,
}

/// Name and format, in the order of their numbers.
const NAMES: [(&str, Format); 11] = [
    ("cdr", Format::Cdr),
    ("plain", Format::Plain),
    ("msgpack", Format::MessagePack),
    ("protobuf", Format::Protobuf),
    ("flatbuffers", Format::FlatBuffers),
    ("bson", Format::Bson),
    ("json", Format::Json),
    ("yaml", Format::Yaml),
    ("csv", Format::Csv),
    ("xml", Format::Xml),
    ("cbor", Format::Cbor),
];

/// A word that names no format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{word}\" is none of the formats {}", NAMES.map(|(name, _)| name).join(", "))]
pub struct UnknownFormat {
    /// The word.
    pub word: String,
}

impl Format {
    /// All formats, in the order of their numbers.
    pub const ALL: [Self; 11] = {
        let mut all = [Self::Cdr; 11];
        let mut index = 0;
        while index < all.len() {
            all[index] = NAMES[index].1;
            index += 1;
        }
        all
    };

    /// Its name, one lower-case word.
    pub const fn name(self) -> &'static str {
        NAMES[self as usize - 1].0
    }

    /// Its number on the wire, from 1; never changes. 0 means bytes of no format.
    pub const fn id(self) -> u8 {
        self as u8
    }

    /// The format of a number, if there is one.
    pub fn from_id(id: u8) -> Option<Self> {
        Self::ALL.get(usize::from(id).checked_sub(1)?).copied()
    }

    /// Its bit in discovery's `formats` field.
    pub const fn bit(self) -> u32 {
        1 << self as u32
    }

    /// True if this build of the crate has it. [`Cdr`](Self::Cdr) and [`Plain`](Self::Plain) are always there; each
    /// other one is a feature of its [`name`](Self::name).
    pub const fn is_built_in(self) -> bool {
        match self {
            Self::Cdr | Self::Plain => true,
            Self::MessagePack => cfg!(feature = "msgpack"),
            Self::Protobuf => cfg!(feature = "protobuf"),
            Self::FlatBuffers => cfg!(feature = "flatbuffers"),
            Self::Bson => cfg!(feature = "bson"),
            Self::Json => cfg!(feature = "json"),
            Self::Yaml => cfg!(feature = "yaml"),
            Self::Csv => cfg!(feature = "csv"),
            Self::Xml => cfg!(feature = "xml"),
            Self::Cbor => cfg!(feature = "cbor"),
        }
    }

    /// True if any type that serde can serialize can be written so, without a schema.
    pub const fn needs_no_schema(self) -> bool {
        !matches!(self, Self::Plain | Self::Protobuf | Self::FlatBuffers)
    }
}

impl Display for Format {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(self.name())
    }
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(word: &str) -> Result<Self, UnknownFormat> {
        let found = NAMES.into_iter().find(|(name, _)| *name == word);
        found.map(|(_, format)| format).ok_or_else(|| UnknownFormat { word: word.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_keeps_its_name_number_and_bit() {
        let mut bits = 0;
        for (number, format) in (1..).zip(Format::ALL) {
            assert_eq!(format.name().parse(), Ok(format));
            assert_eq!((format.id(), Format::from_id(number)), (number, Some(format)));
            bits |= format.bit();
        }
        assert_eq!(bits, 0b1111_1111_1110, "bit 0 is bytes of no format");
        assert_eq!((Format::from_id(0), Format::from_id(12)), (None, None));
        assert!("JSON".parse::<Format>().unwrap_err().to_string().contains("json, yaml"));
    }
}
