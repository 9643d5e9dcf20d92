//! The fields of an event.

use std::net::SocketAddr;

/// The value of a field of an event in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field<'a> {
    /// A number.
    Number(u64),
    /// A word.
    Word(&'a str),
    /// Yes or no.
    Flag(bool),
}

/// Gives the value of a field by its name, if the file has it.
pub type FieldsOfFile<'a, 'f> = dyn Fn(&str) -> Option<Field<'a>> + 'f;

/// Takes each field of an event, its name first.
pub type Put<'p> = dyn FnMut(&'static str, Field<'_>) + 'p;

/// A type that a field of an event can have.
pub trait Value {
    /// Hands it to `put` under this name.
    fn put(&self, key: &'static str, put: &mut Put<'_>);
}

macro_rules! numbers {
    ($($number:ty),*) => {
        $(impl Value for $number {
            fn put(&self, key: &'static str, put: &mut Put<'_>) {
                put(key, Field::Number((*self).into()));
            }
        })*
    };
}

numbers!(u8, u16, u32, u64);

impl Value for bool {
    fn put(&self, key: &'static str, put: &mut Put<'_>) {
        put(key, Field::Flag(*self));
    }
}

impl Value for String {
    fn put(&self, key: &'static str, put: &mut Put<'_>) {
        put(key, Field::Word(self));
    }
}

impl Value for SocketAddr {
    fn put(&self, key: &'static str, put: &mut Put<'_>) {
        put(key, Field::Word(&self.to_string()));
    }
}
