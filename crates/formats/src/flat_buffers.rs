//! FlatBuffers: read where it lies, field by field, through offsets that are checked when they are followed.
//!
//! By `planus` (MIT or Apache-2.0), which checks every access and so needs no separate verification; Google's `flatbuffers`
//! crate is as permissive, but its accessors are unsafe and only sound after a verifier has run. A type needs a schema and
//! what `planus rust -o FILE.rs SCHEMA.fbs` makes of it; [`uav_state::flat_buffers`](crate::uav_state::flat_buffers) is the
//! example.
//!
//! A buffer may point to one string from many places, so copying all of it out may take more room than the input has:
//! a program that copies lists of strings must count, as the example does.
//!
//! Source: flatbuffers.dev/internals.

use planus::{Builder, Offset};

use crate::{Format, FormatError};

/// Appends what `write` builds: it gets a builder and returns the root's offset.
pub fn append<T>(out: &mut Vec<u8>, write: impl FnOnce(&mut Builder) -> Offset<T>) {
    let mut builder = Builder::new();
    let root = write(&mut builder);
    // Buffers are built from their end, so they cannot be built in place.
    out.extend_from_slice(builder.finish(root, None));
}

impl From<planus::Error> for FormatError {
    fn from(error: planus::Error) -> Self {
        Self::decode(Format::FlatBuffers, crate::error::Fault::of(error))
    }
}
