//! Sequences and strings with a greatest length that is part of their type, as `T[<=N]` and `string<=N` of ROS 2.

use std::ops::Deref;

use serde::de::{Deserialize, Deserializer, Error};
use serde::ser::{Serialize, Serializer};

use crate::definition::{Definition, sequence_hash, string_hash};
use crate::describer::Describer;

/// More than a bounded type can hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{length} {unit} are more than the {bound} of the type; shorten the value")]
pub struct TooLong {
    /// Length of the value.
    pub length: usize,
    /// Bound of the type.
    pub bound: usize,
    /// Unit of both: bytes, elements.
    pub unit: &'static str,
}

/// A sequence of at most `N` elements.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sequence<T, const N: usize>(Vec<T>);

/// A string of at most `N` bytes of UTF-8.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text<const N: usize>(String);

fn check(length: usize, bound: usize, unit: &'static str) -> Result<(), TooLong> {
    if length > bound { Err(TooLong { length, bound, unit }) } else { Ok(()) }
}

impl<T, const N: usize> Sequence<T, N> {
    /// Appends an element.
    ///
    /// # Errors
    /// It is full.
    pub fn push(&mut self, element: T) -> Result<(), TooLong> {
        check(self.0.len() + 1, N, "elements")?;
        self.0.push(element);
        Ok(())
    }

    /// The elements.
    pub fn into_inner(self) -> Vec<T> {
        self.0
    }
}

impl<T, const N: usize> Default for Sequence<T, N> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T, const N: usize> TryFrom<Vec<T>> for Sequence<T, N> {
    type Error = TooLong;

    fn try_from(elements: Vec<T>) -> Result<Self, TooLong> {
        check(elements.len(), N, "elements").map(|()| Self(elements))
    }
}

impl<T, const N: usize> Deref for Sequence<T, N> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<const N: usize> TryFrom<String> for Text<N> {
    type Error = TooLong;

    fn try_from(text: String) -> Result<Self, TooLong> {
        check(text.len(), N, "bytes").map(|()| Self(text))
    }
}

impl<const N: usize> TryFrom<&str> for Text<N> {
    type Error = TooLong;

    fn try_from(text: &str) -> Result<Self, TooLong> {
        Self::try_from(text.to_owned())
    }
}

impl<const N: usize> Deref for Text<N> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<T: Serialize, const N: usize> Serialize for Sequence<T, N> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(out)
    }
}

impl<'de, T: Deserialize<'de>, const N: usize> Deserialize<'de> for Sequence<T, N> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        Self::try_from(Vec::deserialize(input)?).map_err(D::Error::custom)
    }
}

impl<const N: usize> Serialize for Text<N> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(out)
    }
}

impl<'de, const N: usize> Deserialize<'de> for Text<N> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        Self::try_from(String::deserialize(input)?).map_err(D::Error::custom)
    }
}

impl<T: Definition, const N: usize> Definition for Sequence<T, N> {
    const HASH: u64 = sequence_hash(T::HASH, N as u64);

    fn describe(types: &mut Describer) -> String {
        format!("{}[<={N}]", T::describe(types))
    }
}

impl<const N: usize> Definition for Text<N> {
    const HASH: u64 = string_hash("string", N as u64);

    fn describe(_: &mut Describer) -> String {
        format!("string<={N}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Format, decode_value, encode_value};

    #[test]
    fn a_bound_holds_when_a_value_is_made_and_when_it_is_read() {
        let mut numbers = Sequence::<u16, 2>::try_from(vec![1]).unwrap();
        numbers.push(2).unwrap();
        let full = numbers.push(3).unwrap_err();
        assert_eq!(full.to_string(), "3 elements are more than the 2 of the type; shorten the value");
        assert!(Text::<3>::try_from("abcd").is_err());

        let value = (numbers, Text::<3>::try_from("abc").unwrap());
        let mut bytes = Vec::new();
        encode_value(Format::Cdr, &value, &mut bytes).unwrap();
        assert_eq!(decode_value::<(Sequence<u16, 2>, Text<3>)>(Format::Cdr, &bytes).unwrap(), value);
        assert_eq!(decode_value::<(Vec<u16>, String)>(Format::Cdr, &bytes).unwrap().0, [1, 2]);
        let refused =
            decode_value::<(Sequence<u16, 1>, Text<3>)>(Format::Cdr, &bytes).unwrap_err().to_string();
        assert!(refused.contains("2 elements are more than the 1"), "{refused}");
        assert!(decode_value::<(Sequence<u16, 2>, Text<2>)>(Format::Cdr, &bytes).is_err());
    }

    #[test]
    fn a_bound_is_part_of_the_definition() {
        assert_ne!(Sequence::<u8, 2>::HASH, Vec::<u8>::HASH);
        assert_ne!(Sequence::<u8, 2>::HASH, <[u8; 2]>::HASH);
        assert_ne!(Text::<2>::HASH, Text::<3>::HASH);
    }
}
