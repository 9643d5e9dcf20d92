//! Values of any type of a library as CDR and back, by the model alone: what `noctule gen encode` and the decoded views
//! of topics do. The bytes are those of `docs/spec/formats.md`, section 1.

mod decode;
mod encode;
mod yaml;

use serde::Serialize;
use serde::ser::{SerializeMap, SerializeSeq};

pub use decode::{decode, decode_some};
pub use encode::encode;
pub use yaml::yaml;

use crate::model::Primitive;

/// Why a value is no bytes, or bytes no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CdrError {
    /// At this field, which is empty for the message itself.
    #[error("{}{what}", at(path))]
    Value {
        /// `pose.position.x`, `names[3]`.
        path: String,
        /// The fault, as a sentence.
        what: String,
    },
    /// The type itself cannot travel, or is not there.
    #[error("{0}")]
    Type(String),
}

fn at(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!("{}: ", path.trim_start_matches('.')) }
}

impl CdrError {
    fn value(what: impl Into<String>) -> Self {
        Self::Value { path: String::new(), what: what.into() }
    }

    /// Puts a step in front of the fault's path.
    fn within(self, step: impl FnOnce() -> String) -> Self {
        match self {
            Self::Value { path, what } => Self::Value { path: step() + &path, what },
            other => other,
        }
    }
}

/// How `wstring` is treated. Middlewares disagree about its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WideStrings {
    /// A type that holds one does not travel.
    #[default]
    Refused,
    /// A count of code units, then UTF-16 without a NUL.
    Utf16,
}

impl WideStrings {
    fn check(self) -> Result<(), CdrError> {
        match self {
            Self::Utf16 => Ok(()),
            Self::Refused => Err(CdrError::value(
                "middlewares disagree about the bytes of a wstring; use string, or allow --wstring-utf16",
            )),
        }
    }
}

/// A decoded value, its fields in the order of the definition.
#[derive(Debug, Clone, PartialEq)]
pub enum Tree {
    /// A truth value.
    Bool(bool),
    /// An integer of any of the types.
    Integer(i128),
    /// A floating-point number.
    Float(f64),
    /// Text; an enum is the name of its variant.
    Text(String),
    /// Elements of an array or a sequence.
    List(Vec<Tree>),
    /// Count of further elements of a list, left out.
    More(usize),
    /// Names and values.
    Fields(Vec<(String, Tree)>),
}

impl Tree {
    /// The value of a number whose bits, unextended, are the low ones of `bits`. A bool is true unless they are zero.
    pub fn of_bits(primitive: Primitive, bits: u64) -> Tree {
        match primitive {
            Primitive::Bool => Tree::Bool(bits != 0),
            Primitive::F32 => Tree::Float(f64::from(f32::from_bits(bits as u32))),
            Primitive::F64 => Tree::Float(f64::from_bits(bits)),
            Primitive::I8 => Tree::Integer(i128::from(bits as u8 as i8)),
            Primitive::I16 => Tree::Integer(i128::from(bits as u16 as i16)),
            Primitive::I32 => Tree::Integer(i128::from(bits as u32 as i32)),
            Primitive::I64 => Tree::Integer(i128::from(bits as i64)),
            _ => Tree::Integer(i128::from(bits)),
        }
    }
}

impl Serialize for Tree {
    fn serialize<S: serde::Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Bool(value) => out.serialize_bool(*value),
            Self::Integer(value) => match (i64::try_from(*value), u64::try_from(*value)) {
                (Ok(value), _) => out.serialize_i64(value),
                (_, Ok(value)) => out.serialize_u64(value),
                _ => out.serialize_i128(*value),
            },
            // JSON has no such numbers.
            Self::Float(value) if value.is_nan() => out.serialize_str("NaN"),
            Self::Float(value) if value.is_infinite() => {
                out.serialize_str(if *value > 0.0 { "Infinity" } else { "-Infinity" })
            }
            Self::Float(value) => out.serialize_f64(*value),
            Self::Text(text) => out.serialize_str(text),
            Self::List(list) => {
                let mut sequence = out.serialize_seq(Some(list.len()))?;
                list.iter().try_for_each(|element| sequence.serialize_element(element))?;
                sequence.end()
            }
            Self::More(count) => out.serialize_str(&format!("… {count} more")),
            Self::Fields(fields) => {
                let mut map = out.serialize_map(Some(fields.len()))?;
                fields.iter().try_for_each(|(name, value)| map.serialize_entry(name, value))?;
                map.end()
            }
        }
    }
}

#[cfg(test)]
mod tests;
