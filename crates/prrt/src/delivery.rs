//! Where samples that have arrived go.

use crate::stream::{Delivered, StreamId};
use crate::trace::Record;

/// Takes the samples of a link. One that has memory for long samples of its own can have their fragments written there as they arrive, so that nothing is copied once
/// the last is there.
pub trait Delivery {
    /// A sample, whole.
    fn deliver(&mut self, sample: Delivered<'_>);

    /// A reliable sample of `bytes` in several fragments, the next in order of its writer, begins to arrive. True if it is to be
    /// [written](Delivery::write) fragment by fragment. Nothing else of this writer is delivered before it; it may be given up, and then another begins.
    fn begin(&mut self, _writer: StreamId, _bytes: usize) -> bool {
        false
    }

    /// A fragment of the sample that was begun last, which lies inside it. False if it cannot be written: its sender keeps it.
    fn write(&mut self, _writer: StreamId, _start: usize, _fragment: &[u8]) -> bool {
        false
    }

    /// The sample that was begun last, all of whose bytes were written. Its payload here is empty.
    fn deliver_written(&mut self, _sample: Delivered<'_>) {}
}

/// Where a receiver's samples go, and where it counts.
pub(crate) struct Sink<'a> {
    pub(crate) counters: &'a mut Record,
    pub(crate) delivery: &'a mut dyn Delivery,
}

/// Delivers whole samples only.
pub(crate) struct Whole<'a>(pub(crate) &'a mut dyn FnMut(Delivered<'_>));

impl Delivery for Whole<'_> {
    fn deliver(&mut self, sample: Delivered<'_>) {
        (self.0)(sample);
    }
}
