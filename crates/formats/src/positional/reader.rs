//! From primitives to a value.

use std::borrow::Cow;
use std::marker::PhantomData;

use serde::de::{self, DeserializeSeed, IntoDeserializer, Visitor};

use super::{DEPTH_MAX, Source};
use crate::error::Fault;

/// Reads a value's primitives from a source. What the source still holds afterwards is the caller's to judge.
pub(crate) fn read<'de, T: de::Deserialize<'de>, S: Source<'de>>(source: &mut S) -> Result<T, Fault> {
    T::deserialize(&mut Reader { source, depth: 0, input: PhantomData })
}

struct Reader<'a, 'de, S> {
    source: &'a mut S,
    depth: u32,
    input: PhantomData<&'de ()>,
}

impl<'a, 'de, S: Source<'de>> Reader<'a, 'de, S> {
    /// Visits `count` values that follow each other.
    fn elements<V: Visitor<'de>>(&mut self, count: usize, visitor: V) -> Result<V::Value, Fault> {
        if self.depth == DEPTH_MAX {
            return Err(Fault(format!("it nests deeper than {DEPTH_MAX}")));
        }
        self.depth += 1;
        let value = visitor.visit_seq(Elements { reader: self, left: count });
        self.depth -= 1;
        value
    }
}

fn undescribed(what: &str) -> Fault {
    Fault(format!("it does not describe itself, so {what} cannot be read; name the type"))
}

macro_rules! numbers {
    ($($method:ident $visit:ident),*) => {$(
        #[inline]
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
            visitor.$visit(self.source.number()?)
        }
    )*};
}

impl<'de, S: Source<'de>> de::Deserializer<'de> for &mut Reader<'_, 'de, S> {
    type Error = Fault;

    numbers! {
        deserialize_i8 visit_i8, deserialize_i16 visit_i16, deserialize_i32 visit_i32,
        deserialize_i64 visit_i64, deserialize_u8 visit_u8, deserialize_u16 visit_u16,
        deserialize_u32 visit_u32, deserialize_u64 visit_u64, deserialize_f32 visit_f32,
        deserialize_f64 visit_f64
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Fault> {
        Err(undescribed("a value of unknown type"))
    }

    #[inline]
    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_bool(self.source.boolean()?)
    }

    fn deserialize_char<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Fault> {
        Err(undescribed("a char"))
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.source.string()? {
            Cow::Borrowed(text) => visitor.visit_borrowed_str(text),
            Cow::Owned(text) => visitor.visit_string(text),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_str(visitor)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.source.bytes()? {
            Cow::Borrowed(bytes) => visitor.visit_borrowed_bytes(bytes),
            Cow::Owned(bytes) => visitor.visit_byte_buf(bytes),
        }
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_bytes(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.source.presence()? {
            true => visitor.visit_some(self),
            false => visitor.visit_none(),
        }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_unit()
    }

    #[inline]
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    #[inline]
    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let count = self.source.count()?;
        self.elements(count, visitor)
    }

    #[inline]
    fn deserialize_tuple<V: Visitor<'de>>(self, count: usize, visitor: V) -> Result<V::Value, Fault> {
        self.elements(count, visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        count: usize,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.elements(count, visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Fault> {
        Err(undescribed("a map"))
    }

    #[inline]
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.elements(fields.len(), visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let number: u32 = self.source.number()?;
        visitor.visit_enum(number.into_deserializer())
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Fault> {
        Err(undescribed("a name"))
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Fault> {
        Err(undescribed("an unknown field"))
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}

struct Elements<'r, 'a, 'de, S> {
    reader: &'r mut Reader<'a, 'de, S>,
    left: usize,
}

impl<'de, S: Source<'de>> de::SeqAccess<'de> for Elements<'_, '_, 'de, S> {
    type Error = Fault;

    #[inline]
    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Fault> {
        let Some(left) = self.left.checked_sub(1) else { return Ok(None) };
        self.left = left;
        seed.deserialize(&mut *self.reader).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        // Serde reserves up to a mebibyte by this; the source has checked it against its input.
        Some(self.left)
    }
}
