//! Model of definitions: types with their fields and constants, independent of the language they came in.

use std::fmt;
use std::sync::Arc;

use crate::diagnostic::Place;

/// Full name of a type, its parts joined by `/`: `sensor_msgs/msg/Imu`. Types of IDL have as many parts as modules.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TypeName(Arc<str>);

impl TypeName {
    /// A name of these parts.
    pub fn new(full: impl Into<Arc<str>>) -> Self {
        Self(full.into())
    }

    /// A name in a ROS 2 package; `kind` is `msg`, `srv` or `action`.
    pub fn ros(package: &str, kind: &str, name: &str) -> Self {
        Self(format!("{package}/{kind}/{name}").into())
    }

    /// All of it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The first part, or nothing for a type outside all modules.
    pub fn package(&self) -> &str {
        self.0.split_once('/').map_or("", |(package, _)| package)
    }

    /// The last part.
    pub fn name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or_default()
    }

    /// All parts.
    pub fn parts(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.split('/')
    }

    /// `package/kind/Name` with another last part.
    #[must_use]
    pub fn with_suffix(&self, suffix: &str) -> Self {
        Self(format!("{}{suffix}", self.0).into())
    }
}

impl fmt::Display for TypeName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// Numbers and truth values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Primitive {
    /// `bool` of `.msg`, `boolean` of IDL: one byte, 0 or 1.
    Bool,
    /// `byte` of `.msg`, `octet` of IDL.
    Byte,
    /// `char` of IDL, one byte. (`char` of `.msg` is [`U8`](Self::U8).)
    Char,
    /// Signed, 8 bits.
    I8,
    /// Unsigned, 8 bits.
    U8,
    /// Signed, 16 bits.
    I16,
    /// Unsigned, 16 bits.
    U16,
    /// Signed, 32 bits.
    I32,
    /// Unsigned, 32 bits.
    U32,
    /// Signed, 64 bits.
    I64,
    /// Unsigned, 64 bits.
    U64,
    /// IEEE 754, 32 bits.
    F32,
    /// IEEE 754, 64 bits.
    F64,
}

impl Primitive {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::Bool,
        Self::Byte,
        Self::Char,
        Self::I8,
        Self::U8,
        Self::I16,
        Self::U16,
        Self::I32,
        Self::U32,
        Self::I64,
        Self::U64,
        Self::F32,
        Self::F64,
    ];

    /// Size, and in CDR alignment, in bytes.
    pub const fn size_bytes(self) -> usize {
        match self {
            Self::Bool | Self::Byte | Self::Char | Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
        }
    }

    /// The word of `docs/spec/formats.md`, section 5, and of Rust.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::Byte | Self::Char | Self::U8 => "u8",
            Self::I8 => "i8",
            Self::I16 => "i16",
            Self::U16 => "u16",
            Self::I32 => "i32",
            Self::U32 => "u32",
            Self::I64 => "i64",
            Self::U64 => "u64",
            Self::F32 => "f32",
            Self::F64 => "f64",
        }
    }

    /// Least and greatest value, for integers; a bool is no integer.
    pub const fn range(self) -> Option<(i128, i128)> {
        Some(match self {
            Self::Bool | Self::F32 | Self::F64 => return None,
            Self::Byte | Self::Char | Self::U8 => (0, u8::MAX as i128),
            Self::I8 => (i8::MIN as i128, i8::MAX as i128),
            Self::I16 => (i16::MIN as i128, i16::MAX as i128),
            Self::U16 => (0, u16::MAX as i128),
            Self::I32 => (i32::MIN as i128, i32::MAX as i128),
            Self::U32 => (0, u32::MAX as i128),
            Self::I64 => (i64::MIN as i128, i64::MAX as i128),
            Self::U64 => (0, u64::MAX as i128),
        })
    }
}

/// Type of a field's elements.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Element {
    /// A number or a truth value.
    Primitive(Primitive),
    /// UTF-8; `bound` is the greatest number of bytes without the closing NUL.
    String {
        /// Greatest number of bytes, if there is one.
        bound: Option<u32>,
    },
    /// UTF-16; `bound` is the greatest number of code units.
    WString {
        /// Greatest number of code units, if there is one.
        bound: Option<u32>,
    },
    /// A struct or an enum by its name.
    Named(TypeName),
}

/// How many of its element a field holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shape {
    /// A single element.
    One,
    /// A fixed number.
    Array(u32),
    /// Any number, up to the bound if there is one.
    Sequence(Option<u32>),
}

/// The type of a field.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FieldType {
    /// Type of its elements.
    pub element: Element,
    /// Number of its elements.
    pub shape: Shape,
}

/// A value as it stands in a definition.
#[derive(Debug, Clone, PartialEq)]
pub enum Literal {
    /// A truth value.
    Bool(bool),
    /// An integer of any of the types.
    Integer(i128),
    /// A floating-point number; for `float32` already rounded to it.
    Float(f64),
    /// Text.
    Text(String),
    /// Elements of an array or sequence.
    List(Vec<Literal>),
}

/// One member of a struct.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Its name, as written.
    pub name: String,
    /// Its type.
    pub kind: FieldType,
    /// Its default value, if the definition has one.
    pub default: Option<Literal>,
    /// The comment beside or above it, line by line.
    pub comment: Vec<String>,
    /// The unit, out of the comment (`[m/s]`) or `@unit`.
    pub unit: Option<String>,
    /// True for a part of the key (`@key`).
    pub is_key: bool,
    /// Place of its name in the file.
    pub place: Option<Place>,
    /// Where its type stands, if a type that is found nowhere is to be shown there.
    pub type_place: Option<Place>,
}

impl Field {
    /// A field without comment, unit and default.
    pub fn new(name: &str, element: Element, shape: Shape) -> Self {
        Self {
            name: name.to_owned(),
            kind: FieldType { element, shape },
            default: None,
            comment: Vec::new(),
            unit: None,
            is_key: false,
            place: None,
            type_place: None,
        }
    }
}

/// A named value.
#[derive(Debug, Clone, PartialEq)]
pub struct Constant {
    /// Its name.
    pub name: String,
    /// Primitive or string.
    pub element: Element,
    /// Its value.
    pub value: Literal,
    /// The comment beside or above it, line by line.
    pub comment: Vec<String>,
    /// The unit, out of the comment.
    pub unit: Option<String>,
    /// Place in the file.
    pub place: Option<Place>,
}

/// Fields in order, and constants.
#[derive(Debug, Clone, PartialEq)]
pub struct Struct {
    /// Its full name.
    pub name: TypeName,
    /// Fields in order, at least one.
    pub fields: Vec<Field>,
    /// Constants in order.
    pub constants: Vec<Constant>,
    /// The definition's comment on the whole, line by line.
    pub comment: Vec<String>,
    /// Where its name stands, or its file begins.
    pub place: Option<Place>,
}

/// The only member of a struct without members, as in ROS 2: a language may have no empty struct.
pub const EMPTY_MEMBER: &str = "structure_needs_at_least_one_member";

impl Struct {
    /// A struct; one without fields gets [`EMPTY_MEMBER`].
    pub fn new(name: TypeName, mut fields: Vec<Field>) -> Self {
        if fields.is_empty() {
            fields.push(Field::new(EMPTY_MEMBER, Element::Primitive(Primitive::U8), Shape::One));
        }
        Self { name, fields, constants: Vec::new(), comment: Vec::new(), place: None }
    }

    /// True if the definition has no fields.
    pub fn is_empty(&self) -> bool {
        matches!(self.fields.as_slice(), [only] if only.name == EMPTY_MEMBER)
    }
}

/// Named values of an unsigned 32-bit number, from IDL.
#[derive(Debug, Clone, PartialEq)]
pub struct Enum {
    /// Its full name.
    pub name: TypeName,
    /// Name and comment; the first is 0. At least one.
    pub variants: Vec<(String, Vec<String>)>,
    /// The definition's comment on the whole.
    pub comment: Vec<String>,
    /// Place in the file.
    pub place: Option<Place>,
}

/// A type with a name.
#[derive(Debug, Clone, PartialEq)]
pub enum Named {
    /// A struct with its fields.
    Struct(Arc<Struct>),
    /// An enum with its variants.
    Enum(Arc<Enum>),
}

impl Named {
    /// Its full name.
    pub fn name(&self) -> &TypeName {
        match self {
            Self::Struct(defined) => &defined.name,
            Self::Enum(defined) => &defined.name,
        }
    }

    /// Place of its definition.
    pub fn place(&self) -> Option<&Place> {
        match self {
            Self::Struct(defined) => defined.place.as_ref(),
            Self::Enum(defined) => defined.place.as_ref(),
        }
    }
}

impl fmt::Display for Element {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Primitive(primitive) => out.write_str(match primitive {
                Primitive::Byte => "byte",
                Primitive::Char => "char",
                Primitive::Bool => "bool",
                Primitive::I8 => "int8",
                Primitive::U8 => "uint8",
                Primitive::I16 => "int16",
                Primitive::U16 => "uint16",
                Primitive::I32 => "int32",
                Primitive::U32 => "uint32",
                Primitive::I64 => "int64",
                Primitive::U64 => "uint64",
                Primitive::F32 => "float32",
                Primitive::F64 => "float64",
            }),
            Self::String { bound: None } => out.write_str("string"),
            Self::String { bound: Some(bound) } => write!(out, "string<={bound}"),
            Self::WString { bound: None } => out.write_str("wstring"),
            Self::WString { bound: Some(bound) } => write!(out, "wstring<={bound}"),
            Self::Named(name) => name.fmt(out),
        }
    }
}

impl fmt::Display for FieldType {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.element.fmt(out)?;
        match self.shape {
            Shape::One => Ok(()),
            Shape::Array(count) => write!(out, "[{count}]"),
            Shape::Sequence(None) => out.write_str("[]"),
            Shape::Sequence(Some(bound)) => write!(out, "[<={bound}]"),
        }
    }
}
