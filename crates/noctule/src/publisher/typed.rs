//! Values of a Rust type instead of bytes.
//!
//! Encoded is what a reader is there for: the type's own memory for readers of this host if it is an encoding, CDR for
//! those of others, unless the topic chose one format for all.

use std::marker::PhantomData;

use noctule_formats::plain::{Plain, bytes_of};
use noctule_formats::{Format, Memory, Message, encode};
use noctule_time_sync::Local;
use noctule_timebase::Instant;

use super::exactly;
use super::{LoanedSample, Publisher, PublisherBuilder};
use crate::error::{NodeError, PublishError};
use crate::topic_formats::TopicFormats;

/// Settings of a publisher of `T`.
#[derive(Debug)]
#[must_use = "call open"]
pub struct TypedPublisherBuilder<T> {
    builder: PublisherBuilder,
    value: PhantomData<fn(T)>,
}

/// Publishes values of one topic, as [`Publisher`] does bytes.
#[derive(Debug)]
pub struct TypedPublisher<T> {
    publisher: Publisher,
    formats: TopicFormats,
    /// If values lie in shared memory as they are.
    memory: Option<Memory<T>>,
    /// Kept from one value to the next.
    here: Vec<u8>,
    elsewhere: Vec<u8>,
}

impl PublisherBuilder {
    /// Publishes values of `T`; its name and hash go to the readers, which must expect the same. Without
    /// [`format`](PublisherBuilder::format): the plain layout in shared memory for types that have one, CDR
    /// otherwise and on the network. A topic with a history has one format.
    pub fn typed<T: Message>(self) -> TypedPublisherBuilder<T> {
        let builder = self.type_name(T::TYPE_NAME, T::type_hash());
        TypedPublisherBuilder { builder, value: PhantomData }
    }
}

impl<T: Message> TypedPublisherBuilder<T> {
    /// Opens the topic and tells the others.
    ///
    /// # Errors
    /// As [`PublisherBuilder::open`], or the type has no schema for the format.
    pub fn open(self) -> Result<TypedPublisher<T>, NodeError> {
        let mut builder = self.builder;
        let formats = TopicFormats::of::<T>(builder.format, builder.keeps_history())?;
        builder.endpoint.formats = formats.bits();
        builder.shared.describe::<T>();
        let publisher = builder.open()?;
        let is_plain = formats.in_shared_memory == Some(Format::Plain);
        let memory = if is_plain { T::codec(Format::Plain).and_then(|codec| codec.memory) } else { None };
        Ok(TypedPublisher { publisher, formats, memory, here: Vec::new(), elsewhere: Vec::new() })
    }
}

impl<T: Message> TypedPublisher<T> {
    /// Publishes a value, true now. Without a reader nothing is encoded.
    ///
    /// # Errors
    /// A value that its format cannot express, or longer than the topic allows; no reader gets it then.
    pub fn publish(&mut self, value: &T) -> Result<(), PublishError> {
        self.publish_at(value, self.publisher.shared.clock.now())
    }

    /// Publishes a value that was true at `source_time` of this node's clock.
    ///
    /// # Errors
    /// As [`publish`](TypedPublisher::publish).
    pub fn publish_at(&mut self, value: &T, source_time: Instant<Local>) -> Result<(), PublishError> {
        let (is_here, is_elsewhere) = self.publisher.readers_where();
        let TypedPublisher { publisher, formats, memory, here, elsewhere } = self;
        let write = |format: Option<Format>, out: &mut Vec<u8>| {
            out.clear();
            let format = format.unwrap_or(Format::Cdr);
            encode(format, value, out)
                .map_err(|cause| PublishError::Format { topic: publisher.topic().to_owned(), cause })
        };
        let is_one = formats.in_shared_memory == formats.on_network;
        if (is_here || is_elsewhere && is_one) && memory.is_none() {
            write(formats.in_shared_memory, here)?;
        }
        if is_elsewhere && (!is_one || memory.is_some()) {
            write(formats.on_network, elsewhere)?;
        }
        let bytes_here = memory.as_ref().map_or(&here[..], |memory| (memory.bytes)(value));
        let bytes_elsewhere = if is_one && memory.is_none() { &here[..] } else { &elsewhere[..] };
        publisher.put(
            is_here.then_some(bytes_here),
            is_elsewhere.then_some(bytes_elsewhere),
            exactly(source_time),
        )
    }

    /// Publishes a value, true now, whose fields `fill` sets where they will be read: nothing is copied if all readers are on this
    /// host and the topic's one format is [`Format::Plain`]. What `fill` does not set is zero.
    ///
    /// # Errors
    /// As [`publish`](TypedPublisher::publish).
    pub fn publish_in_place(
        &mut self,
        fill: impl FnOnce(&mut FieldsInPlace<'_, '_, T>),
    ) -> Result<(), PublishError>
    where
        T: Plain,
    {
        let is_one = self.formats.on_network == Some(Format::Plain);
        if is_one && self.memory.is_some() {
            return self.publisher.publish_in_place(size_of::<T>(), |place| {
                place.write_at(0, bytes_of(&T::new_zeroed()));
                fill(&mut FieldsInPlace(Fields::Lent(place)));
            });
        }
        let mut value = T::new_zeroed();
        fill(&mut FieldsInPlace(Fields::Here(&mut value)));
        self.publish(&value)
    }

    /// The publisher, for what is the same with bytes: readers, acknowledgements.
    pub fn publisher(&self) -> &Publisher {
        &self.publisher
    }
}

/// The fields of a plain value that is being written where it will be read.
#[derive(Debug)]
pub struct FieldsInPlace<'p, 'l, T>(Fields<'p, 'l, T>);

#[derive(Debug)]
enum Fields<'p, 'l, T> {
    Lent(&'p mut LoanedSample<'l>),
    Here(&'p mut T),
}

impl<T: Plain> FieldsInPlace<'_, '_, T> {
    /// Writes one field; [`set_field!`](crate::set_field) writes the arguments.
    ///
    /// # Panics
    /// If `offset_bytes` is not that of a field of this type.
    pub fn set<P: Plain>(&mut self, offset_bytes: usize, _is_of: fn(&T) -> P, value: P) {
        let bytes = bytes_of(&value);
        match &mut self.0 {
            Fields::Lent(place) => place.write_at(offset_bytes, bytes),
            Fields::Here(whole) => {
                whole.as_mut_bytes()[offset_bytes..offset_bytes + bytes.len()].copy_from_slice(bytes);
            }
        }
    }
}

/// Sets one field of a value that is written in place: `set_field!(place, Pose, position_m, [1.0, 2.0, 3.0])`.
#[macro_export]
macro_rules! set_field {
    ($place:expr, $type:ty, $field:ident, $value:expr) => {
        $place.set(::std::mem::offset_of!($type, $field), |value: &$type| value.$field, $value)
    };
}
