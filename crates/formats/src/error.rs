//! Why a value could not be encoded or decoded.

use std::fmt::Display;

use crate::Format;

/// A sentence that names the fact and, where there is one, the way out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// The format knows nothing of a type by itself.
    #[error(
        "{format} needs a schema that {type_name} does not have; return one from Message::codec, or use cdr"
    )]
    NeedsSchema {
        /// The format requested.
        format: Format,
        /// The type that has no schema for it.
        type_name: &'static str,
    },
    /// The format is a feature that this build does not have.
    #[error("this program is built without {format}; turn on the feature \"{format}\" of the crate noctule")]
    LeftOut {
        /// The format requested.
        format: Format,
    },
    /// The value cannot be expressed in this format.
    #[error("cannot encode as {format}: {what}")]
    Encode {
        /// The format requested.
        format: Format,
        /// The fact.
        what: String,
    },
    /// The bytes are not a value of this type in this format.
    #[error("cannot decode as {format}: {what}")]
    Decode {
        /// The format requested.
        format: Format,
        /// The fact.
        what: String,
    },
}

impl FormatError {
    /// Why a type that has no codec of its own for a format, nor serde's, cannot be written in it.
    pub fn absent(format: Format, type_name: &'static str) -> Self {
        if format.is_built_in() { Self::NeedsSchema { format, type_name } } else { Self::LeftOut { format } }
    }

    /// The error of encoding, for codecs of one's own.
    pub fn encode(format: Format, what: impl Display) -> Self {
        Self::Encode { format, what: what.to_string() }
    }

    /// The error of decoding, for codecs of one's own.
    pub fn decode(format: Format, what: impl Display) -> Self {
        Self::Decode { format, what: what.to_string() }
    }
}

/// A fault inside one format, before its name is known.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Fault(pub(crate) String);

#[allow(dead_code, reason = "not every format needs all of them, nor is every format part of every build")]
impl Fault {
    /// Error of a crate underneath, in one line.
    pub(crate) fn of(cause: impl Display) -> Self {
        Self(cause.to_string().replace('\n', " "))
    }

    /// The input goes on after the value.
    pub(crate) fn left_over() -> Self {
        Self("something follows the value; the types of the two sides differ".into())
    }
}

impl serde::ser::Error for Fault {
    fn custom<T: Display>(what: T) -> Self {
        Self(what.to_string())
    }
}

impl serde::de::Error for Fault {
    fn custom<T: Display>(what: T) -> Self {
        Self(what.to_string())
    }
}
