//! Samples in an asynchronous program.

use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll};

use super::Subscriber;
use crate::error::TakeError;
use crate::sample::Sample;

/// The samples of a subscriber as they come, in any runtime: see [`Subscriber::into_samples`]. With the feature `stream` it is a `Stream`.
#[derive(Debug)]
pub struct Samples(Subscriber);

impl Subscriber {
    /// The samples of this subscriber for an asynchronous program. A thread sleeps in its place and wakes the task.
    ///
    /// # Errors
    /// The system gives no descriptor or no thread.
    pub fn into_samples(mut self) -> io::Result<Samples> {
        self.readiness()?;
        Ok(Samples(self))
    }
}

impl Samples {
    /// The next sample. Dropping the future before it is ready loses nothing.
    ///
    /// # Errors
    /// As [`Subscriber::take`].
    pub async fn next(&mut self) -> Result<Sample, TakeError> {
        poll_fn(|context| self.poll_sample(context)).await
    }

    fn poll_sample(&mut self, context: &Context<'_>) -> Poll<Result<Sample, TakeError>> {
        if let Some(readiness) = &self.0.readiness {
            // Before the look: what comes after it wakes.
            readiness.set_waker(context.waker());
        }
        self.0.take().map_or_else(
            |error| Poll::Ready(Err(error)),
            |sample| match sample {
                Some(sample) => Poll::Ready(Ok(sample)),
                None => Poll::Pending,
            },
        )
    }

    /// The subscriber itself.
    pub fn into_inner(self) -> Subscriber {
        self.0
    }
}

#[cfg(feature = "stream")]
impl futures_core::Stream for Samples {
    type Item = Result<Sample, TakeError>;

    fn poll_next(mut self: std::pin::Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        // Publishers may come at any time, so it never ends.
        self.poll_sample(context).map(Some)
    }
}
