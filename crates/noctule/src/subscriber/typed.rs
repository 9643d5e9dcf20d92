//! Values of a Rust type instead of bytes.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::time::Duration;

use noctule_formats::plain::{Plain, filled};
use noctule_formats::{Format, FormatError, Message, decode};

use super::{Subscriber, SubscriberBuilder};
use crate::error::{NodeError, ReceiveError};
use crate::sample::{Age, Bytes, Sample, SampleInfo};
use crate::topic_formats::left_out;

/// Settings of a subscriber to values of `T`.
#[derive(Debug)]
#[must_use = "call open"]
pub struct TypedSubscriberBuilder<T> {
    builder: SubscriberBuilder,
    value: PhantomData<fn() -> T>,
}

/// Receives the values of one topic, as [`Subscriber`] does bytes.
pub struct TypedSubscriber<T> {
    subscriber: Subscriber,
    /// Kept from one sample to the next.
    bytes: Vec<u8>,
    value: PhantomData<fn() -> T>,
}

/// A value, and what is known of it. Dereferences to the value.
#[derive(Clone, Debug)]
pub struct TypedSample<T> {
    value: T,
    info: SampleInfo,
}

impl SubscriberBuilder {
    /// Receives values of `T`, in any format that it has in this build. A publisher of another type, or of another
    /// definition of it, gets a notice, and so does the user here.
    pub fn typed<T: Message>(self) -> TypedSubscriberBuilder<T> {
        let mut builder = self.type_name(T::TYPE_NAME, T::type_hash());
        builder.endpoint.formats = T::formats();
        builder.left_out = left_out::<T>();
        TypedSubscriberBuilder { builder, value: PhantomData }
    }
}

impl<T: Message> TypedSubscriberBuilder<T> {
    /// Opens the topic and tells the others.
    ///
    /// # Errors
    /// As [`SubscriberBuilder::open`].
    pub fn open(self) -> Result<TypedSubscriber<T>, NodeError> {
        self.builder.shared.describe::<T>();
        Ok(TypedSubscriber { subscriber: self.builder.open()?, bytes: Vec::new(), value: PhantomData })
    }
}

impl<T: Message> TypedSubscriber<T> {
    /// The next value of any publisher, if there is one.
    ///
    /// # Errors
    /// A publisher is broken, or its bytes are no value; the sample is passed over, and counted.
    pub fn take(&mut self) -> Result<Option<TypedSample<T>>, ReceiveError> {
        match self.subscriber.take()? {
            None => Ok(None),
            Some(sample) => self.decoded(&sample).map(Some),
        }
    }

    /// Like [`take`](TypedSubscriber::take), but waits up to `timeout` for a value; `None` waits for ever.
    ///
    /// # Errors
    /// As [`take`](TypedSubscriber::take).
    pub fn receive(&mut self, timeout: Option<Duration>) -> Result<Option<TypedSample<T>>, ReceiveError> {
        match self.subscriber.receive(timeout)? {
            None => Ok(None),
            Some(sample) => self.decoded(&sample).map(Some),
        }
    }

    /// The subscriber, for what is the same with bytes: waiting, counters, publishers.
    pub fn subscriber(&mut self) -> &mut Subscriber {
        &mut self.subscriber
    }

    fn decoded(&mut self, sample: &Sample) -> Result<TypedSample<T>, ReceiveError> {
        match value_of(sample, &mut self.bytes) {
            Ok(value) => Ok(TypedSample { value, info: *sample.info() }),
            Err(cause) => Err(self.subscriber.undecodable(sample.info(), cause)),
        }
    }
}

impl<T: Message + Plain> TypedSubscriber<T> {
    /// Like [`receive`](TypedSubscriber::receive), but leaves a value where it lies in shared memory, to read
    /// parts of it there.
    ///
    /// # Errors
    /// As [`receive`](TypedSubscriber::receive); or all samples that this subscriber may hold at once are held.
    pub fn receive_in_place(
        &mut self,
        timeout: Option<Duration>,
    ) -> Result<Option<InPlace<T>>, ReceiveError> {
        let Some(sample) = self.subscriber.receive(timeout)? else { return Ok(None) };
        let lies_there = sample.info.format == Some(Format::Plain) && sample.len() == size_of::<T>();
        let decoded = if lies_there { None } else { Some(self.decoded(&sample)?.value) };
        Ok(Some(InPlace { sample, decoded }))
    }
}

/// In `buffer` goes what must be contiguous to be decoded.
fn value_of<T: Message>(sample: &Sample, buffer: &mut Vec<u8>) -> Result<T, FormatError> {
    let Some(format) = sample.info.format else {
        return Err(FormatError::decode(Format::Cdr, "the publisher does not say in which format it writes"));
    };
    if format == Format::Plain
        && let Some(memory) = T::codec(format).and_then(|codec| codec.memory)
        && memory.length_bytes == sample.len()
    {
        return Ok((memory.filled)(&mut |place| sample.copy_to(place)));
    }
    match &sample.bytes {
        Bytes::Copied(bytes) => decode(format, bytes),
        Bytes::Lent(lent) => {
            buffer.resize(sample.len(), 0);
            lent.copy_to(buffer);
            decode(format, buffer)
        }
    }
}

impl<T> AsMut<Subscriber> for TypedSubscriber<T> {
    fn as_mut(&mut self) -> &mut Subscriber {
        &mut self.subscriber
    }
}

impl<T> fmt::Debug for TypedSubscriber<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.subscriber.fmt(f)
    }
}

impl<T> TypedSample<T> {
    /// Metadata of the sample: source time, age, writer.
    pub fn info(&self) -> &SampleInfo {
        &self.info
    }

    /// Its age when it was taken.
    pub fn age(&self) -> Option<Age> {
        self.info.age()
    }

    /// The value alone.
    pub fn into_value(self) -> T {
        self.value
    }
}

impl<T> Deref for TypedSample<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

/// A plain value where it lies in shared memory, which is not used again while this lives. Only what is requested is
/// copied: a Rust reference to memory of another process would promise what cannot be kept.
///
/// A sample from the network is in no memory of this layout; it was decoded, and reads the same.
#[derive(Debug)]
pub struct InPlace<T> {
    sample: Sample,
    decoded: Option<T>,
}

impl<T: Plain> InPlace<T> {
    /// The whole value.
    pub fn value(&self) -> T {
        self.decoded.unwrap_or_else(|| filled(&mut |place| self.sample.copy_to(place)))
    }

    /// One field; [`field!`](crate::field) writes the arguments.
    ///
    /// # Panics
    /// If `offset_bytes` is not that of a field of this type.
    pub fn field<P: Plain>(&self, offset_bytes: usize, _is_of: fn(&T) -> P) -> P {
        match &self.decoded {
            None => filled(&mut |place| self.sample.read_at(offset_bytes, place)),
            Some(value) => filled(&mut |place| {
                let bytes = noctule_formats::plain::bytes_of(value);
                place.copy_from_slice(&bytes[offset_bytes..offset_bytes + place.len()]);
            }),
        }
    }

    /// Metadata of the sample: source time, age, writer.
    pub fn info(&self) -> &SampleInfo {
        self.sample.info()
    }

    /// Its age when it was taken.
    pub fn age(&self) -> Option<Age> {
        self.sample.age()
    }
}

/// One field of a value [`InPlace`]: `field!(sample, Pose, position_m)`.
#[macro_export]
macro_rules! field {
    ($sample:expr, $type:ty, $field:ident) => {
        $sample.field(::std::mem::offset_of!($type, $field), |value: &$type| value.$field)
    };
}
