//! From a value to primitives.

use serde::ser::{self, Serialize};

use super::Sink;
use crate::error::Fault;

/// Writes a value's primitives into a sink.
pub(crate) fn write<T: Serialize, S: Sink>(value: &T, sink: &mut S) -> Result<(), Fault> {
    value.serialize(Writer(sink))
}

struct Writer<'a, S>(&'a mut S);

fn no(what: &str) -> Fault {
    Fault(format!("it has no place for {what}"))
}

macro_rules! numbers {
    ($($method:ident $type:ty),*) => {$(
        #[inline]
        fn $method(self, value: $type) -> Result<(), Fault> {
            self.0.number(value)
        }
    )*};
}

impl<'a, S: Sink> ser::Serializer for Writer<'a, S> {
    type Ok = ();
    type Error = Fault;
    type SerializeSeq = Elements<'a, S>;
    type SerializeTuple = Elements<'a, S>;
    type SerializeTupleStruct = Elements<'a, S>;
    type SerializeStruct = Elements<'a, S>;
    type SerializeTupleVariant = ser::Impossible<(), Fault>;
    type SerializeMap = ser::Impossible<(), Fault>;
    type SerializeStructVariant = ser::Impossible<(), Fault>;

    numbers! {
        serialize_i8 i8, serialize_i16 i16, serialize_i32 i32, serialize_i64 i64,
        serialize_u8 u8, serialize_u16 u16, serialize_u32 u32, serialize_u64 u64,
        serialize_f32 f32, serialize_f64 f64
    }

    #[inline]
    fn serialize_bool(self, value: bool) -> Result<(), Fault> {
        self.0.boolean(value)
    }

    fn serialize_char(self, _: char) -> Result<(), Fault> {
        Err(no("a char; use a string or u32"))
    }

    #[inline]
    fn serialize_str(self, value: &str) -> Result<(), Fault> {
        self.0.string(value)
    }

    #[inline]
    fn serialize_bytes(self, value: &[u8]) -> Result<(), Fault> {
        self.0.bytes(value)
    }

    fn serialize_none(self) -> Result<(), Fault> {
        self.0.presence(false)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Fault> {
        self.0.presence(true)?;
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Fault> {
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Fault> {
        Ok(())
    }

    fn serialize_unit_variant(self, _: &'static str, number: u32, _: &'static str) -> Result<(), Fault> {
        self.0.number(number)
    }

    #[inline]
    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Fault> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        _: u32,
        variant: &'static str,
        _: &T,
    ) -> Result<(), Fault> {
        Err(no(&format!("the value that {name}::{variant} carries; use plain enums")))
    }

    #[inline]
    fn serialize_seq(self, count: Option<usize>) -> Result<Elements<'a, S>, Fault> {
        let count = count.ok_or_else(|| no("a sequence that does not know its length"))?;
        self.0.count(count)?;
        Ok(Elements(self.0))
    }

    #[inline]
    fn serialize_tuple(self, _: usize) -> Result<Elements<'a, S>, Fault> {
        Ok(Elements(self.0))
    }

    #[inline]
    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Elements<'a, S>, Fault> {
        Ok(Elements(self.0))
    }

    #[inline]
    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Elements<'a, S>, Fault> {
        Ok(Elements(self.0))
    }

    fn serialize_tuple_variant(
        self,
        name: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, Fault> {
        Err(no(&format!("the values that {name}::{variant} carries; use plain enums")))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self::SerializeMap, Fault> {
        Err(no("a map; use a sequence of pairs"))
    }

    fn serialize_struct_variant(
        self,
        name: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, Fault> {
        Err(no(&format!("the fields that {name}::{variant} carries; use plain enums")))
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}

/// Elements behind the count of a sequence, or fields of a struct: nothing between them.
pub(super) struct Elements<'a, S>(&'a mut S);

macro_rules! elements {
    ($($trait:ident $method:ident),*) => {$(
        impl<S: Sink> ser::$trait for Elements<'_, S> {
            type Ok = ();
            type Error = Fault;
            #[inline]
            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Fault> {
                value.serialize(Writer(&mut *self.0))
            }
            fn end(self) -> Result<(), Fault> {
                Ok(())
            }
        }
    )*};
}

elements! {
    SerializeSeq serialize_element, SerializeTuple serialize_element, SerializeTupleStruct serialize_field
}

impl<S: Sink> ser::SerializeStruct for Elements<'_, S> {
    type Ok = ();
    type Error = Fault;

    #[inline]
    fn serialize_field<T: Serialize + ?Sized>(&mut self, _: &'static str, value: &T) -> Result<(), Fault> {
        value.serialize(Writer(&mut *self.0))
    }

    fn skip_field(&mut self, name: &'static str) -> Result<(), Fault> {
        Err(no(&format!("a field that is left out ({name}); every field is written")))
    }

    fn end(self) -> Result<(), Fault> {
        Ok(())
    }
}
