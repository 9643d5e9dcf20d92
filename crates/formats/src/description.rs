//! The definition of a type as text: what a node sends to a node that asks what the samples of a topic are made of.
//!
//! The text holds what the hash is computed of and nothing that it is not, so a reader computes the hash and knows
//! whether the description is that of the samples. Grammar and limits: `docs/spec/type-description.md`.

mod hash;
mod parse;

/// Longest description, in bytes.
pub const DESCRIPTION_BYTES_MAX: usize = 64 << 10;
/// Most types in one description.
pub const TYPES_MAX: usize = 1024;
/// Deepest nesting of types.
pub const NESTING_MAX: usize = 60;
/// Longest name of a type, a field or a variant, in bytes.
pub const NAME_BYTES_MAX: usize = 255;
/// Most arrays, sequences and options around one element.
pub const SHAPES_MAX: usize = 8;

/// Words of a description for numbers and truth values, and those that are hashed.
pub(crate) const PRIMITIVES: [(&str, &str); 13] = [
    ("bool", "bool"),
    ("byte", "u8"),
    ("char", "u8"),
    ("int8", "i8"),
    ("uint8", "u8"),
    ("int16", "i16"),
    ("uint16", "u16"),
    ("int32", "i32"),
    ("uint32", "u32"),
    ("int64", "i64"),
    ("uint64", "u64"),
    ("float32", "f32"),
    ("float64", "f64"),
];

/// A type with all that it refers to, read from text and checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeDescription {
    text: String,
    types: Vec<DescribedType>,
    hash: u64,
}

/// One type of a description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DescribedType {
    /// Fields in order.
    Struct {
        /// Its full name.
        name: String,
        /// Its fields, at least one.
        fields: Vec<DescribedField>,
    },
    /// Named values of an unsigned 32-bit number, from 0.
    Enum {
        /// Its full name.
        name: String,
        /// Its variants, at least one.
        variants: Vec<String>,
    },
}

/// A member of a struct.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescribedField {
    /// Its name in the definition.
    pub name: String,
    /// Type of its elements.
    pub element: DescribedElement,
    /// Around the element, from the inside: `float64[3][]` is a sequence of arrays.
    pub shapes: Vec<DescribedShape>,
}

/// Type of a field's elements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DescribedElement {
    /// A number or a truth value by its word: `bool byte char int8 … uint64 float32 float64`.
    Primitive(&'static str),
    /// UTF-8 of at most so many bytes; 0 for any.
    String(u32),
    /// UTF-16 of at most so many code units; 0 for any.
    WideString(u32),
    /// A type of the same description.
    Named(String),
}

/// Array, sequence or optional member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DescribedShape {
    /// Always so many.
    Array(u32),
    /// At most so many; 0 for any number.
    Sequence(u32),
    /// One or none.
    Optional,
}

/// Why a text describes no type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{what}", at(*.line))]
pub struct DescriptionError {
    /// The line, from 1; 0 for the whole.
    pub line: usize,
    /// The fact.
    pub what: String,
}

fn at(line: usize) -> String {
    if line == 0 { String::new() } else { format!("line {line} of the type description: ") }
}

impl DescriptionError {
    fn whole(what: impl Into<String>) -> Self {
        Self { line: 0, what: what.into() }
    }
}

impl TypeDescription {
    /// Reads a description.
    ///
    /// # Errors
    /// The text breaks the grammar or a limit, or a type in it is defined nowhere, twice, for nobody, or contains itself.
    pub fn parse(text: &str) -> Result<Self, DescriptionError> {
        let types = parse::types(text)?;
        let hash = hash::checked(&types)?;
        Ok(Self { text: text.to_owned(), types, hash })
    }

    /// The name of the type that is described.
    pub fn name(&self) -> &str {
        self.types.first().map_or("", DescribedType::name)
    }

    /// Its hash, computed from the text.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The type, and after it all that it refers to.
    pub fn types(&self) -> &[DescribedType] {
        &self.types
    }
}

impl DescribedType {
    /// Its full name.
    pub fn name(&self) -> &str {
        match self {
            Self::Struct { name, .. } | Self::Enum { name, .. } => name,
        }
    }
}

#[cfg(test)]
mod tests;
