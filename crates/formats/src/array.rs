//! Arrays of any length as fields: serde itself stops at 32 elements.
//!
//! For `#[serde(with = "noctule_formats::array")]`; the bytes are those of the same array within serde's limit.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeTuple, Serializer};

/// Elements that are reserved before any of them is read.
const RESERVED_MAX: usize = 4096;

/// Writes the elements in order, nothing around them.
///
/// # Errors
/// Those of the format.
pub fn serialize<T: Serialize, S: Serializer, const N: usize>(
    array: &[T; N],
    out: S,
) -> Result<S::Ok, S::Error> {
    let mut tuple = out.serialize_tuple(N)?;
    array.iter().try_for_each(|element| tuple.serialize_element(element))?;
    tuple.end()
}

/// Reads exactly `N` elements.
///
/// # Errors
/// Those of the format, and fewer or more elements.
pub fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>, const N: usize>(
    input: D,
) -> Result<[T; N], D::Error> {
    input.deserialize_tuple(N, Elements(PhantomData))
}

struct Elements<T, const N: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const N: usize> Visitor<'de> for Elements<T, N> {
    type Value = [T; N];

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "an array of {N} elements")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<[T; N], A::Error> {
        let mut elements = Vec::with_capacity(N.min(RESERVED_MAX));
        while let Some(element) = sequence.next_element()? {
            if elements.len() == N {
                return Err(A::Error::invalid_length(N + 1, &self));
            }
            elements.push(element);
        }
        let count = elements.len();
        elements.try_into().map_err(|_| A::Error::invalid_length(count, &self))
    }
}

#[cfg(test)]
mod tests {
    use crate::{Definition, Format, decode_value, encode_value, message};

    message! {
        /// A type whose array serde alone could not write.
        #[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        struct Covariance: "test/Covariance" {
            #[serde(with = "crate::array")]
            values: [f64; 36],
        }
    }

    #[test]
    fn an_array_of_36_is_36_numbers_in_every_format_and_keeps_its_hash() {
        let value = Covariance { values: std::array::from_fn(|index| index as f64) };
        let mut bytes = Vec::new();
        encode_value(Format::Cdr, &value, &mut bytes).unwrap();
        assert_eq!(bytes.len(), 4 + 36 * 8);
        assert_eq!(decode_value::<Covariance>(Format::Cdr, &bytes).unwrap(), value);
        assert!(decode_value::<Covariance>(Format::Cdr, &bytes[..bytes.len() - 8]).is_err());
        assert_eq!(Covariance::HASH, crate::struct_hash("test/Covariance", &[("values", <[f64; 36]>::HASH)]));
    }

    #[cfg(feature = "json")]
    #[test]
    fn another_count_is_refused() {
        for count in [35, 37] {
            let text = format!("{{\"values\":{:?}}}", vec![0.5; count]);
            let refused = decode_value::<Covariance>(Format::Json, text.as_bytes()).unwrap_err().to_string();
            assert!(refused.contains("an array of 36 elements"), "{refused}");
        }
    }
}
