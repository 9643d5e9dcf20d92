//! Values in CDR and nothing else: the topics of ROS 2 that the library itself publishes. A [`TypedPublisher`](super::TypedPublisher)
//! has all formats of the build compiled for its type.

use std::marker::PhantomData;

use noctule_formats::{Format, Message, encode_message_cdr};

use super::{Publisher, PublisherBuilder, exactly};
use crate::error::{NodeError, PublishError};

/// Publishes values of one topic in CDR.
#[derive(Debug)]
pub(crate) struct CdrPublisher<T> {
    publisher: Publisher,
    /// Kept from one value to the next.
    bytes: Vec<u8>,
    value: PhantomData<fn(T)>,
}

impl PublisherBuilder {
    /// Opens the topic for values of `T`.
    ///
    /// # Errors
    /// As [`PublisherBuilder::open`].
    pub(crate) fn open_cdr<T: Message>(self) -> Result<CdrPublisher<T>, NodeError> {
        self.shared.describe::<T>();
        let publisher = self.type_name(T::TYPE_NAME, T::type_hash()).format(Format::Cdr).open()?;
        Ok(CdrPublisher { publisher, bytes: Vec::new(), value: PhantomData })
    }
}

impl<T: Message> CdrPublisher<T> {
    /// Publishes a value, true now. Without a reader nothing is encoded.
    ///
    /// # Errors
    /// A value that CDR cannot express, or longer than the topic allows; no reader gets it then.
    pub(crate) fn publish(&mut self, value: &T) -> Result<(), PublishError> {
        let now = self.publisher.shared.clock.now();
        let (is_here, is_elsewhere) = self.publisher.readers_where();
        self.bytes.clear();
        if is_here || is_elsewhere {
            encode_message_cdr(value, &mut self.bytes)
                .map_err(|cause| PublishError::Format { topic: self.publisher.topic().to_owned(), cause })?;
        }
        let bytes = &self.bytes[..];
        self.publisher.put(is_here.then_some(bytes), is_elsewhere.then_some(bytes), exactly(now))
    }
}
