//! Values of a Rust type instead of bytes.
//!
//! Encoded is what a reader is there for: the type's own memory for readers of this host if it is an encoding, CDR for
//! those of others, unless the topic chose one format for all.

use std::marker::PhantomData;

use noctule_formats::{Format, Memory, Message, encode};
use noctule_time_sync::Local;
use noctule_timebase::Instant;

use super::exactly;
use super::{Publisher, PublisherBuilder};
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
    /// What is published are values of `T`; its name and hash go to the readers, which must expect the same. Without
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
    /// Publishes a value, true now. Nobody reads: nothing is encoded.
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

    /// The publisher, for what is the same with bytes: readers, acknowledgements.
    pub fn publisher(&self) -> &Publisher {
        &self.publisher
    }
}
